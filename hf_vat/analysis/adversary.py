"""Could a model with another attention say the same? A second model is trained to (Wiegreffe and Pinter, EMNLP 2019)."""

import math
from collections.abc import Sequence
from contextlib import ExitStack, closing
from copy import deepcopy
from dataclasses import dataclass
from operator import attrgetter
from os import PathLike
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from tqdm.auto import tqdm

from hf_vat.distributions import jensen_shannon
from hf_vat.errors import InputError, check_texts
from hf_vat.explanations.store import LineStore
from hf_vat.inference import (
    check_chooser,
    encode_texts,
    evaluation_mode,
    model_inputs,
    model_name,
    progress_bar,
    whole_number,
)
from hf_vat.models import WordEncoderConfig
from hf_vat.models.attention import masked_softmax
from hf_vat.models.words import EncodedText

from .states import attended_probabilities, attention_batches, check_attention, positive_number, total_variation

WEIGHTS = (0.0, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1)
TRAINS = ("model", "attention")
_PRETRAINED = 1 / 50  # of the learning rate, for an encoder that begins with the model's weights


class AdversaryDistance(NamedTuple):
    """How far an adversary is from its model on one text.

    Attributes:
        tvd: total variation distance of the class probabilities, in [0, 1].
        jsd: Jensen-Shannon divergence of the attentions in nats, in [0, ln 2].
        n_tokens: tokens that have attention: neither special nor padding.
    """

    tvd: float
    jsd: float
    n_tokens: int


class CurvePoint(NamedTuple):
    """An adversary by its means over the test texts.

    Attributes:
        weight: of the term that drives the attentions apart.
        tvd, jsd: means of [`AdversaryDistance`].
    """

    weight: float
    tvd: float
    jsd: float


@dataclass(frozen=True)
class AdversaryCurve:
    """What it costs to have another attention, in predictions: a curve that rises early says that the attention is hard to
    replace.

    Attributes:
        points: one for each weight.
        trains: what the adversaries trained, "model" or "attention".
    """

    points: list[CurvePoint]
    trains: str

    def tvd_at(self, jsd: float) -> float:
        """The least mean TVD at which an adversary's attention is as far away as this mean JSD, by straight lines between
        the adversaries and the model itself, which has 0 and 0. An adversary counts only if no other is as far away and
        nearer in its predictions. NaN if none is so far away.

        Args:
            jsd: in nats, from 0 to ln 2.
        """
        reached, costs = self._frontier()
        return float(np.interp(jsd, reached, costs)) if 0 <= jsd <= reached[-1] else math.nan

    @property
    def area(self) -> float:
        """Mean of [`tvd_at`] over all JSD from 0 to ln 2, in [0, 1]. Beyond the furthest adversary its own TVD counts, which
        is too little if any."""
        reached, costs = self._frontier()
        reached, costs = [*reached, math.log(2)], [*costs, costs[-1]]
        trapezoids = (np.diff(reached) * (np.array(costs[1:]) + costs[:-1])) / 2
        return float(trapezoids.sum() / math.log(2))

    def _frontier(self) -> tuple[list[float], list[float]]:
        """JSD and TVD, both rising, from 0 and 0."""
        kept: list[tuple[float, float]] = []
        for _, tvd, jsd in sorted(self.points, key=lambda point: (-point.jsd, point.tvd)):
            if not kept or tvd < kept[-1][1]:
                kept.append((jsd, tvd))
        jsds, tvds = zip((0.0, 0.0), *reversed(kept), strict=True)
        return list(jsds), list(tvds)


def train_adversary(
    model,
    tokenizer,
    texts: Sequence[str | Sequence[str]],
    weight: float,
    *,
    trains: str = "model",
    epochs: int = 10,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
    seed: int = 0,
    max_length: int | None = None,
    progress: bool = False,
    bar: tqdm | None = None,
):
    """Train a second model to predict as a model does, with an attention that is as far as possible from the model's.

    The loss is the mean over texts of TVD(ŷ, ŷ′) − weight · KL(α ‖ α′); labels play no part. The adversary is drawn anew, as
    in the paper, but for word embeddings, which it has from the model (the authors' begin with the same vectors). An encoder
    of transformers keeps the model's weights to begin with, as no training on a few thousand texts would replace what it was
    pretrained on; its attention and heads are drawn anew. So is it with `trains="attention"`, where any encoder stays as the
    model's. A word mask is the model's, and stays. Nothing is dropped out or sampled: the question is what can be reached.

    Args:
        model: a classifier of hf_vat with attention pooling; it runs in eval mode and is left as it was.
        tokenizer: its tokenizer.
        texts: texts to train on, such as the training texts, without labels.
        weight: λ_adv, from 0, which asks for nothing but the same predictions; see [`adversary_curve`].
        trains: "model", the whole adversary; or "attention", its attention and heads alone. The states of all tokens are then
            worked out once and kept in memory, 4 bytes for each number; cheap also with a large encoder.
        epochs: passes over the texts.
        batch_size: texts of a step.
        learning_rate: of Adam; a fiftieth of it for an encoder that begins with the model's weights.
        seed: of the adversary's new weights and of the order of texts. The global random state is left as it was.
        max_length: tokens to keep, special ones included; by default what tokenizer and model allow.
        progress: show a progress bar.
        bar: for jobs that this is a part of, their open progress bar, which is moved by one for each text of an epoch.

    Returns:
        The adversary, of the model's class and configuration, in eval mode.

    Raises:
        InputError: if an argument cannot be used, or the model has no attention.
    """
    recipe = _check_recipe(trains, epochs, batch_size, learning_rate, seed)
    encoded = _encode(model, tokenizer, texts, max_length, "texts")
    [weight] = _check_weights([weight])
    with progress_bar("adversary", epochs * len(encoded), progress, bar) as bar:
        answers = _ask(model, tokenizer, encoded, recipe.batch_size, keep_states=trains == "attention")
        return _train(model, answers, weight, recipe, bar)


def measure_adversary(
    model,
    adversary,
    tokenizer,
    texts: Sequence[str | Sequence[str]],
    batch_size: int = 32,
    max_length: int | None = None,
) -> list[AdversaryDistance]:
    """How far an adversary is from its model, in predictions and in attention.

    Args:
        model: a classifier of hf_vat with attention pooling.
        adversary: what [`train_adversary`] has made of it; both run in eval mode and are left as they were.
        tokenizer: of both.
        texts: texts that the adversary was not trained on.
        batch_size: texts that are run together.
        max_length: tokens to keep, special ones included; by default what tokenizer and model allow.

    Returns:
        One result per text, in the order of `texts`.

    Raises:
        InputError: if an argument cannot be used, or one of the two has no attention.
    """
    check_attention(adversary)
    if adversary.config.num_labels != getattr(getattr(model, "config", None), "num_labels", None):
        raise InputError(
            f"The adversary has {adversary.config.num_labels} classes, and the model another number; give a model, and "
            "what train_adversary made of it."
        )
    batch_size = whole_number("batch_size", batch_size, 1)
    encoded = _encode(model, tokenizer, texts, max_length, None)
    if not encoded:
        return []
    return _measure(adversary, _ask(model, tokenizer, encoded, batch_size, keep_states=False), batch_size)


def adversary_curve(
    model,
    tokenizer,
    train_texts: Sequence[str | Sequence[str]],
    test_texts: Sequence[str | Sequence[str]],
    weights: Sequence[float] = WEIGHTS,
    *,
    trains: str = "model",
    epochs: int = 10,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
    seed: int = 0,
    max_length: int | None = None,
    progress: bool = False,
    save_to: str | PathLike | None = None,
    bar: tqdm | None = None,
) -> AdversaryCurve:
    """Train an adversary for each weight, and measure how far predictions and attention are from the model's.

    Args:
        model, tokenizer, trains, epochs, batch_size, learning_rate, seed, max_length: see [`train_adversary`].
        train_texts: what the adversaries are trained on, without labels.
        test_texts: what they are measured on.
        weights: λ_adv of each adversary, from 0.
        progress: show a progress bar.
        save_to: a file that takes the numbers of each adversary as a line of JSON; the same call finds it and goes on from
            there.
        bar: for jobs that this is a part of, their open progress bar, which is moved by one for each text of an epoch.

    Raises:
        InputError: if an argument cannot be used, the model has no attention, or the file belongs to another call.
    """
    recipe = _check_recipe(trains, epochs, batch_size, learning_rate, seed)
    weights = _check_weights(weights)
    train = _encode(model, tokenizer, train_texts, max_length, "train_texts")
    test = _encode(model, tokenizer, test_texts, max_length, "test_texts")
    points: list[CurvePoint] = []
    cost = recipe.epochs * len(train)
    with ExitStack() as stack, progress_bar("adversaries", cost * len(weights), progress, bar) as bar:
        store = None
        if save_to is not None:
            settings = {**recipe._asdict(), "weights": weights, "train_texts": len(train)}
            run = {"model": model_name(model), "settings": settings}
            to_point = (CurvePoint._asdict, lambda fields: CurvePoint(**fields))
            store = LineStore(save_to, "adversary's point", model, [*train, *test], run, *to_point)
            stack.enter_context(store)
            points += store.read(range(len(weights) + 1))
            bar.update(cost * len(points))
        if len(points) < len(weights):
            keep = recipe.trains == "attention"
            of_train, of_test = (_ask(model, tokenizer, some, recipe.batch_size, keep) for some in (train, test))
        try:
            for weight in weights[len(points) :]:
                adversary = _train(model, of_train, weight, recipe, bar)
                distances = _measure(adversary, of_test, recipe.batch_size)
                tvd, jsd = (float(np.mean([getattr(one, name) for one in distances])) for name in ("tvd", "jsd"))
                points.append(CurvePoint(weight, tvd, jsd))
                if store is not None:
                    store.append(points[-1:])
        except KeyboardInterrupt as interrupt:
            if store is None:
                raise
            raise KeyboardInterrupt(
                f"Stopped: {len(points)} of {len(weights)} adversaries are in {save_to}; the same call goes on."
            ) from interrupt
    return AdversaryCurve(points, trains)


class _Recipe(NamedTuple):
    trains: str
    epochs: int
    batch_size: int
    learning_rate: float
    seed: int


@dataclass
class _Answers:
    """What a model says of texts.

    Attributes:
        tokenizer: which makes their input.
        ids: token ids of each text.
        content: bool [T] of each text, true on tokens that are neither special nor padding.
        attention: α, float32 [T] of each text.
        probabilities: float32 [N, C].
        states: [T, H] of each text, if an adversary is to have them as they are.
    """

    tokenizer: object
    ids: list[list[int]]
    content: list[torch.Tensor]
    attention: list[torch.Tensor]
    probabilities: torch.Tensor
    states: list[torch.Tensor] | None


@torch.inference_mode(False)  # which would hold for what is kept
def _ask(model, tokenizer, texts: list[EncodedText], batch_size: int, keep_states: bool) -> _Answers:
    none = torch.zeros(0)
    content, attention, probabilities, states = ([none] * len(texts) for _ in range(4))
    with closing(attention_batches(model, tokenizer, texts, batch_size)) as batches:
        for batch in batches:
            for row, position in enumerate(batch.positions):
                length = len(texts[position].input_ids)
                content[position] = batch.content[row, :length].cpu()
                attention[position] = batch.attention[row, :length].cpu()
                probabilities[position] = batch.probabilities[row].cpu()
                if keep_states:
                    states[position] = batch.states[row, :length].float().cpu().clone()
    ids = [text.typed_ids for text in texts]
    return _Answers(tokenizer, ids, content, attention, torch.stack(probabilities), states if keep_states else None)


class _Comparison(NamedTuple):
    """Distances of an adversary on the texts of a batch, each [B]; `kl` is KL(α ‖ α′) in nats."""

    tvd: torch.Tensor
    kl: torch.Tensor
    jsd: torch.Tensor


def _compare(adversary, answers: _Answers, rows: list[int]) -> _Comparison:
    """The adversary beside the model on some of the texts."""
    own, target = pad_sequence([answers.attention[row] for row in rows], True), answers.probabilities[rows]
    own, target = own.to(adversary.device), target.to(adversary.device)
    if answers.states is None:
        batch = model_inputs(answers.tokenizer, [answers.ids[row] for row in rows])
        found = adversary.token_states(**{name: tensor.to(adversary.device) for name, tensor in batch.items()})
        states, content, scores = found.states, found.content, found.scores
    else:
        states = pad_sequence([answers.states[row] for row in rows], True).to(adversary.device)
        content = pad_sequence([answers.content[row] for row in rows], True).to(adversary.device)
        scores = adversary.attention(states).float()
    attention = masked_softmax(scores, content)
    probabilities = attended_probabilities(adversary, attention.unsqueeze(1), states).squeeze(1)
    log_attention = scores.masked_fill(~content, torch.finfo(torch.float32).min).log_softmax(-1)
    kl = (torch.special.xlogy(own, own) - own * log_attention).sum(1)
    return _Comparison(total_variation(probabilities, target), kl, jensen_shannon(attention, own))


@torch.inference_mode(False)
@torch.enable_grad()
def _train(model, answers: _Answers, weight: float, recipe: _Recipe, bar: tqdm):
    adversary = _fresh(model, recipe)
    encoder = [] if answers.states is not None else [*adversary.base_model.parameters()]
    heads = [adversary.attention, adversary.learner_head, adversary.bottleneck, adversary.compressor_head]
    new = [parameter for module in heads if module is not None for parameter in module.parameters()]
    rate = recipe.learning_rate * (1 if _is_of_words(adversary) else _PRETRAINED)
    optimizer = torch.optim.Adam([{"params": new, "lr": recipe.learning_rate}, {"params": encoder, "lr": rate}])
    generator = torch.Generator().manual_seed(recipe.seed)
    for module in adversary.modules():
        module.train(isinstance(module, nn.RNNBase))  # which has no dropout, and in eval mode no gradient on a GPU
    for _ in range(recipe.epochs):
        for rows in torch.randperm(len(answers.ids), generator=generator).split(recipe.batch_size):
            found = _compare(adversary, answers, rows.tolist())
            optimizer.zero_grad()
            (found.tvd - weight * found.kl).mean().backward()
            optimizer.step()
            bar.update(len(rows))
    adversary.zero_grad()
    return adversary.eval()


def _fresh(model, recipe: _Recipe):
    """A model of the same class and configuration, drawn anew but for what [`train_adversary`] says."""
    model = _unwrapped(model)
    with torch.random.fork_rng():
        # Not the seed itself, by which the model may have been drawn: the two would begin alike.
        torch.manual_seed(int(np.random.default_rng([recipe.seed, 1]).integers(2**63)))
        adversary = type(model)(deepcopy(model.config))
    adversary = adversary.to(model.device)
    kept = "base_model.word_embeddings" if _is_of_words(model) and recipe.trains == "model" else "base_model"
    for name in (kept, "word_mask", "word_objective"):
        theirs = attrgetter(name)(model)
        if theirs is not None:
            attrgetter(name)(adversary).load_state_dict(theirs.state_dict())
    return adversary


def _unwrapped(model):
    """The classifier itself, of one that `torch.compile` or PEFT have wrapped; a copy with the adapter in its weights."""
    model = getattr(model, "_orig_mod", model)
    return deepcopy(model).merge_and_unload() if hasattr(model, "merge_and_unload") else model


def _is_of_words(model) -> bool:
    return model.base_model.config.model_type == WordEncoderConfig.model_type  # whichever module the class came from


@torch.inference_mode()
def _measure(adversary, answers: _Answers, batch_size: int) -> list[AdversaryDistance]:
    results = [AdversaryDistance(0.0, 0.0, 0)] * len(answers.ids)
    order = sorted(range(len(results)), key=lambda row: -len(answers.ids[row]))
    with evaluation_mode(adversary):
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            found = _compare(adversary, answers, rows)
            for row, tvd, jsd in zip(rows, found.tvd.tolist(), found.jsd.tolist(), strict=True):
                results[row] = AdversaryDistance(tvd, jsd, int(answers.content[row].sum()))
    return results


def _encode(model, tokenizer, texts, max_length: int | None, needed: str | None) -> list[EncodedText]:
    texts = check_texts(texts)
    check_chooser(model)
    check_attention(model)
    if needed and not texts:
        raise InputError(f"{needed} is empty; give texts, a thousand or more to train on.")
    return encode_texts(tokenizer, texts, model, max_length)


def _check_weights(weights) -> list[float]:
    try:
        found = [float(weight) for weight in weights]
    except (TypeError, ValueError):
        found = []
    if not found or not all(0 <= weight < math.inf for weight in found):
        raise InputError(f"weights are {weights}; give one or more numbers from 0, such as 0.001.")
    return found


def _check_recipe(trains, epochs, batch_size, learning_rate, seed) -> _Recipe:
    if trains not in TRAINS:
        raise InputError(f"trains is {trains!r}; choose one of {', '.join(map(repr, TRAINS))}.")
    learning_rate = positive_number("learning_rate", learning_rate)
    epochs, batch_size = whole_number("epochs", epochs, 1), whole_number("batch_size", batch_size, 1)
    return _Recipe(trains, epochs, batch_size, learning_rate, whole_number("seed", seed, 0, 2**63 - 1))
