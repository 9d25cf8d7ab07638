"""The student: an encoder with one signed score for each token and class, and how it is trained."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn
from tqdm.auto import tqdm
from transformers import MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING, AutoModelForTokenClassification, PreTrainedModel

from hf_vat.errors import InputError
from hf_vat.inference import evaluation_mode, model_inputs
from hf_vat.models.reading import sees_padding
from hf_vat.writing import written_beside

from .teacher import Taught

_MOST_GRADIENT = 1.0  # norm
_SORTED_TOGETHER = 50  # batches whose texts are sorted by length


def new_student(model, layers: int | None, seed: int) -> PreTrainedModel:
    """A model for token classification that begins with a classifier's encoder.

    Args:
        layers: of the encoder that are taken, from the first; all by default.

    Raises:
        InputError: if transformers has no model for token classification on such an encoder.
    """
    encoder: Any = getattr(model, "base_model", model)
    known = MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING
    kind: Any = next((one for one in type(encoder.config).__mro__ if one in known), None)
    if kind is None or encoder is model:
        raise InputError(
            f"{type(model).__name__} has no encoder that transformers has a model for token classification on; give a student, such as "
            "the folder of one."
        )
    own = kind().to_dict()  # a configuration of ours has settings of its own beside
    fields = {
        name: value for name, value in encoder.config.to_dict().items() if name in own and name != "architectures"
    }
    config = kind.from_dict(fields)
    config.id2label = dict(model.config.id2label)
    config.label2id = {name: label for label, name in config.id2label.items()}
    config.problem_type, config.return_dict = None, True
    if layers is not None:
        most = getattr(config, "num_hidden_layers", 1)
        if not 1 <= layers <= most:
            raise InputError(f"layers is {layers}; the classifier's encoder has 1 to {most}.")
        if most > 1:
            config.num_hidden_layers = layers
        if getattr(config, "layer_types", None):  # of ModernBERT and its kin
            config.layer_types = config.layer_types[:layers]
        config = kind.from_dict(config.to_dict())  # which checks it now, and not when it is saved
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        student = AutoModelForTokenClassification.from_config(config)
    missing, _ = student.base_model.load_state_dict(encoder.state_dict(), strict=False)
    if missing:
        raise InputError(
            f"The encoder of {type(model).__name__} lacks {', '.join(missing[:3])}, which {type(student).__name__} has; give a student."
        )
    return student.float().to(model.device)


def train_student(
    student: PreTrainedModel,
    tokenizer,
    texts: list[Taught],
    bases: np.ndarray | None,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    head_learning_rate: float,
    seed: int,
    bf16: bool,
    state: Path | None,
    bar: tqdm,
) -> None:
    """Squared error between the scores of words, those that the tokens' scores add up to and those of the teacher; or, of a teacher
    that fits a linear model to each text, that model's error with the student's scores. With `bases`, f(no word), the student's add
    up to f(text) - f(no word) as well, by equal shares of what they lack (Jethani et al. 2022).

    AdamW with a rate that falls to 0 in a line. Each epoch draws from a seed of its own, so that a run that goes on from
    `state`, what the last epoch has left, ends where it would have ended.
    """
    encoder = list(student.base_model.parameters())
    known = set(encoder)
    groups = [
        {"params": encoder, "lr": learning_rate},
        {"params": [one for one in student.parameters() if one not in known], "lr": head_learning_rate},
    ]
    optimizer = torch.optim.AdamW(groups, fused=True)
    begun = 0 if state is None or not state.is_file() else _read_state(state, student, optimizer)
    bar.update(begun * len(texts))
    with torch.random.fork_rng(), torch.enable_grad():
        for epoch in range(begun, epochs):
            torch.manual_seed(1_000_003 * seed + epoch)
            student.train()
            batches = _batches(texts, batch_size, sees_padding(student))
            for step, places in enumerate(batches):
                for group, rate in zip(optimizer.param_groups, (learning_rate, head_learning_rate), strict=True):
                    group["lr"] = rate * (1 - (epoch * len(batches) + step) / (epochs * len(batches)))
                loss = _squared_error(student, tokenizer, [texts[place] for place in places], bases, bf16)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(student.parameters(), _MOST_GRADIENT)
                optimizer.step()
                bar.update(len(places))
            if not all(bool(weights.isfinite().all()) for weights in student.parameters()):
                raise InputError(
                    f"The student's weights are no longer finite after {epoch + 1} of {epochs} epochs: its training has diverged. Lower "
                    f"learning_rate ({learning_rate}) and head_learning_rate ({head_learning_rate})."
                )
            if state is not None and epoch + 1 < epochs:
                _write_state(state, student, optimizer, epoch + 1)
    student.eval()


def reduced_precision(device: torch.device, bf16: bool) -> torch.autocast:
    """In which products of matrices are of bfloat16, with `bf16`."""
    return torch.autocast(device.type, torch.bfloat16, enabled=bf16)


def _write_state(path: Path, student: PreTrainedModel, optimizer: torch.optim.Optimizer, epochs: int) -> None:
    """What the next epoch goes on from, as safetensors: weights, and the optimizer's two moments and number of steps for each."""
    tensors = {f"student.{name}": tensor for name, tensor in student.state_dict().items()}
    for place, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{place}.{name}": tensor for name, tensor in moments.items()}
    tensors = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}  # none shares memory
    with written_beside(path) as partial:
        save_file(tensors, partial, {"epochs": str(epochs)})


def _read_state(path: Path, student: PreTrainedModel, optimizer: torch.optim.Optimizer) -> int:
    """The number of epochs that a student has been trained, whose weights and optimizer are restored."""
    with safe_open(path, "pt", device=str(student.device)) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        epochs = int(file.metadata()["epochs"])
    student.load_state_dict({name[8:]: tensor for name, tensor in tensors.items() if name.startswith("student.")})
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, place, name = key.split(".")
            moments.setdefault(int(place), {})[name] = tensor
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    return epochs


@torch.no_grad()
def explained_variance(
    student: PreTrainedModel, tokenizer, texts: list[Taught], bases: np.ndarray | None, batch_size: int
) -> float:
    """1 minus the student's squared error over that of scores of 0, of texts that it has not learned from."""
    groups = _groups(range(len(texts)), texts, batch_size, sees_padding(student))
    with evaluation_mode(student):
        found = [_errors(student, tokenizer, [texts[place] for place in places], bases) for places in groups]
    errors, squares = (sum(float(one[place].sum()) for one in found) for place in (0, 1))
    return 1 - errors / squares if squares else 0.0


def _batches(texts: list[Taught], batch_size: int, equal_lengths: bool) -> list[list[int]]:
    """Places of texts in random order, of which neighbours that are sorted by length share a batch."""
    order = torch.randperm(len(texts)).tolist()
    several = batch_size * _SORTED_TOGETHER
    batches = [
        batch
        for start in range(0, len(order), several)
        for batch in _groups(order[start : start + several], texts, batch_size, equal_lengths)
    ]
    return [batches[place] for place in torch.randperm(len(batches)).tolist()]


def _groups(places: Sequence[int], texts: list[Taught], batch_size: int, equal_lengths: bool) -> Iterator[list[int]]:
    """Places by the lengths of their texts, as batches; with `equal_lengths` as a student that sees padding has to read them."""

    def length(place: int) -> int:
        return len(texts[place].text.input_ids)

    ordered = sorted(places, key=length)
    for some in (list(group) for _, group in groupby(ordered, length)) if equal_lengths else [ordered]:
        for start in range(0, len(some), batch_size):
            yield some[start : start + batch_size]


def _squared_error(student, tokenizer, texts: list[Taught], bases: np.ndarray | None, bf16: bool) -> torch.Tensor:
    errors, _ = _errors(student, tokenizer, texts, bases, bf16)
    terms = len(texts) if texts[0].regression else sum(len(one.scores) for one in texts)
    return errors.sum() / max(terms * errors.shape[-1], 1)


def _errors(
    student, tokenizer, texts: list[Taught], bases: np.ndarray | None, bf16: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The squared error of each word and class, and the square of the teacher's score, [B, W, C]; 0 beyond a text's words.

    Of a teacher that fits a linear model the mean squared error of the student's, and that of one without words, [B, C]."""
    device = student.device
    batch = model_inputs(tokenizer, [one.text.typed_ids for one in texts])
    shares, seen = _shares(texts, batch["input_ids"].shape[1])
    shares, seen = shares.to(device), seen.to(device)
    with reduced_precision(device, bf16):  # for each batch anew: it keeps its copies of weights, which training changes
        tokens = student(**{name: tensor.to(device) for name, tensor in batch.items()}).logits  # [B, T, C]
    words = torch.bmm(shares, tokens.float())
    if bases is not None:
        total = torch.from_numpy(np.array([one.outputs for one in texts]) - bases).to(words)  # [B, C]
        lacking = (total - words.sum(1)) / seen.sum(1, keepdim=True).clamp(min=1)
        words = words + lacking.unsqueeze(1) * seen.unsqueeze(-1)
    regressions = [one.regression for one in texts if one.regression]
    if regressions:
        design = _padded([one.design.T for one in regressions]).to(device)  # [B, W, S]
        outputs = _padded([one.outputs for one in regressions]).to(device)
        variance = torch.from_numpy(np.array([one.variance for one in regressions])).to(words)
        fitted = design.mT @ words  # [B, S, C]
        return variance + fitted.square().sum(1) - 2 * (words * outputs).sum(1), variance
    targets = _padded([one.scores for one in texts]).to(device)
    return (words - targets).square() * seen.unsqueeze(-1), targets.square()


def _padded(rows: list[np.ndarray]) -> torch.Tensor:
    """Matrices [W, ...] of texts as one tensor, [B, W, ...], 0 beyond a text's words."""
    return nn.utils.rnn.pad_sequence([torch.from_numpy(row).float() for row in rows], batch_first=True)


def _shares(texts: list[Taught], tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """How much of each token is of each seen word, [B, W, T], as [`EncodedText.word_scores`] has it, and where there is a word,
    [B, W]."""
    most = max(len(one.scores) for one in texts)
    shares, seen = torch.zeros(len(texts), most, tokens), torch.zeros(len(texts), most, dtype=torch.bool)
    for place, one in enumerate(texts):
        number = np.cumsum(one.text.seen) - 1  # of each word among those that are seen
        seen[place, : len(one.scores)] = True
        for token, words in enumerate(one.text.token_words):
            for word in words:
                shares[place, number[word], token] += 1 / len(words)
    return shares, seen
