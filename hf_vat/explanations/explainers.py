"""Explain texts: one call for all methods."""

import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import islice, pairwise
from os import PathLike
from typing import Any

from tqdm.auto import tqdm

from hf_vat.callers import as_classifier
from hf_vat.errors import InputError, check_texts
from hf_vat.inference import (
    check_classifier,
    encode_texts,
    forward_batches,
    model_name,
    model_outputs,
    predict_outputs,
    progress_bar,
    whole_number,
)
from hf_vat.models.problems import MULTI_LABEL, REGRESSION, Problem
from hf_vat.models.reading import named_outputs, takes_center
from hf_vat.models.words import EncodedText
from hf_vat.targets import check_golds, check_targets, is_single
from hf_vat.windowed import WindowedClassifier, in_windows

from . import gradients
from .analysis import Analysis
from .explanation import Explanation
from .methods import METHODS, check_settings
from .store import Store, model_states, recorded_settings, split

_WINDOW = 1024  # model inputs that are sorted by length and run together; bounds what is in memory at a time


def explain(
    model,
    tokenizer=None,
    texts: Sequence[str | Sequence[str] | Mapping[str, Any]] | list[EncodedText] = (),
    method: str = "attention",
    target: int | str | Sequence[int | str | Sequence[int | str]] | None = None,
    batch_size: int = 32,
    seed: int = 0,
    labels: Sequence | None = None,
    max_length: int | None = None,
    progress: bool = False,
    save_to: str | PathLike | Store | None = None,
    bar: tqdm | None = None,
    shard: tuple[int, int] | None = None,
    merge: int | None = None,
    **settings,
) -> list[Explanation]:
    """Score the words of texts by how much a classifier relied on them.

    Works with every sequence classification model of transformers and hf_vat: one class for each text, several labels, or
    scores (`config.problem_type`); the three gradient methods need one with a layer of word embeddings, and a gradient there.
    The model runs in eval mode; its train/eval flags, gradients and the global random state are left as they were. A text
    longer than the model takes is cut (but see `max_length`), with one warning for the call; its words stay in the result,
    marked as not seen. Empty and blank texts have no words, and a prediction.

    Signed scores are on the scale of the target's probability, or of the score of a regression; those of polarity and of
    attention_x_gradient on that of the logit. Words are those of [`hf_vat.models.words`], or the given ones of a text that is a list of
    words. Sub-word scores are summed; mask probabilities are averaged.

    Args:
        model: a sequence classification model; or what needs no tokenizer beside it: a folder or Hub id, a pipeline of
            transformers, a `SetFitModel`, a `CrossEncoder`, a function from texts to probabilities; see [`hf_vat.callers`].
        tokenizer: the model's tokenizer.
        texts: a list of texts; a text that is split into words already is a list of words, a pair of texts a dictionary of
            `text` and `text_pair`. Or what [`encode_words`](hf_vat.models.words.encode_words) makes of them, which another thread can have done meanwhile.
        method: one of

            - "attention": the model's own attention. At least 0; the words of a text sum to 1 (VAT: Zhou et al.,
              Findings of ACL 2021). For models whose output has `token_importance`.
            - "mask": the model's own word mask, the probability that a word is kept, in [0, 1] (VMASK: Chen and Ji,
              EMNLP 2020). For models whose output has `token_mask`.
            - "polarity": attention times what the linear head says of the word's vector, signed (Sun and Lu, ACL 2020): how
              much the word adds to the target's logit minus the mean logit of the other classes, for two classes the
              log-odds of the target. Exact: with `details["bias"]` the scores add up to it. For models whose output has
              `polarity_scores` (`pooling="attention"`, `head_layers=1`).
            - "attention_x_gradient": attention times the gradient of the target's log-odds, or score, at it: what the word's
              state adds by way of the attention, signed, from one forward pass. Setting `center` ("mean"), what states are
              compared with: "mean", the mean of the text's states; "attended", their mean weighted by the attention, which makes
              it the gradient at the attention's scores before the softmax; "none" (Serrano and Smith, ACL 2019), which for a
              linear head and two classes is polarity. For models with `pooling="attention"`.
            - "gradient": length of the probability's gradient at the word's embeddings (Simonyan et al. 2014). At
              least 0.
            - "input_x_gradient": embedding times gradient, signed (Shrikumar et al. 2016).
            - "integrated_gradients": the same along the path from a baseline, signed (Sundararajan et al. 2017);
              settings `n_steps` (50) and `baseline` ("pad"), what stands for the words: "pad", "mask", "unk" (a token)
              or "zero" (a zero vector).
            - "occlusion": probability minus probability without the word, signed (Zeiler and Fergus 2014).
            - "lime": coefficient of a linear model of the probability on random subsets of the words, signed (Ribeiro
              et al. 2016); setting `n_samples` (1000), subsets.
            - "shapley": mean change of the probability when the word joins the words before it in a random order,
              signed (Strumbelj and Kononenko 2010; Castro et al. 2009); settings `n_samples` (25), orders, which come in pairs
              of an order and its reverse, and `exact` (False): all subsets, for texts of at most 12 words.
            - "amortized": what an explainer, a second model, has learned to say in place of a slow method, on that method's scale
              (Jethani et al. 2022; Yang et al. 2023); setting `explainer`, a folder, a Hub id or a model that
              [`fit_amortized`](hf_vat.fit_amortized) has trained, by default the one in the classifier's folder.
            - "random": uniform in [0, 1). The baseline.

            The setting `operator` of occlusion, lime and shapley says how absent words are taken out: "delete" (the
            default), "mask" or "pad", see [`hf_vat.faithfulness.OPERATORS`].
        target: class, label or score to explain, by its id or its name in `config.id2label`; or a list with one for each
            text, or a list of several for a text. By default the predicted class; each label that the text has by
            `config.label_thresholds` (½ if there are none), or the most probable one of a text that has none; and all scores
            of a regression. Attention, mask and random scores do not depend on it.
        batch_size: the largest batch that the model is given, whatever the number of samples. Beside it, a sample of
            lime or shapley takes a few bytes for each word.
        seed: seed of methods that draw random numbers, at least 0. What is drawn for a text depends on the seed and the
            text alone.
        labels: the true class of each text, id or name, to be shown beside the prediction; a list of labels, or of numbers 0
            and 1, for a model of several labels, and the true score for a regression.
        max_length: tokens to keep, special ones included; by default what tokenizer and model allow. If it is more, texts are
            read in windows that overlap: attention pools over the tokens of all of them, and what any other model says of a
            text is the mean of what it says of the windows.
        progress: show a progress bar.
        save_to: a file that takes each explanation as a line of JSON as soon as it is made. The same call finds it and
            goes on from there; see [`load_explanations`](hf_vat.explanations.load_explanations). Or a
            [`Store`](hf_vat.explanations.store.Store) that takes the explanations of several calls.
        bar: for jobs that this is a part of, their open progress bar, which is moved by one for each model input.
        shard: explain a part of the texts only: (3, 8) is the third of eight, which is written to a file of its own beside
            `save_to`, such as `lime-00003-of-00008.jsonl`. The parts are of neighbouring texts, about 1,024 model inputs
            or a multiple of it, and their explanations are those of one call for all texts, to the bit.
        merge: put the explanations of so many shards together in `save_to`, and remove their files.
        settings: settings of the method.

    Returns:
        One explanation per text, or per text of the shard, in the order of `texts`; for a text with several targets one for
            each of them, one after the other. Its `details` hold what a method has to
        say beside the scores: polarity `bias`, that of the head and what tokens outside every word add; integrated gradients
        `baseline_probability` and `convergence_gap` (how far the scores of all tokens are from
        adding up to the difference), lime `intercept`, `local_prediction` and `r2` of the linear model, shapley
        `base_value`, the probability without any word.

    Raises:
        InputError: if an argument cannot be used, or the model has nothing that the method could read.
        MissingExtra: if the method needs a package that is not installed.
    """
    is_encoded = isinstance(texts, list) and bool(texts) and all(isinstance(text, EncodedText) for text in texts)
    given: Any = texts if is_encoded else check_texts(texts)
    settings = check_settings(method, **settings)
    model, tokenizer = as_classifier(model, tokenizer)
    model = in_windows(model, tokenizer, max_length)
    problem = check_classifier(model)
    batch_size, seed = whole_number("batch_size", batch_size, 1), whole_number("seed", seed, 0)
    asked = check_targets([target] * len(given) if is_single(target) else target, given, problem)
    golds = check_golds([None] * len(given) if labels is None else labels, given, problem)
    _check_shards(shard, merge, save_to)
    encoded: list[EncodedText] = given if is_encoded else encode_texts(tokenizer, given, model, max_length)
    if problem.kind == MULTI_LABEL or any(some is not None and len(some) != 1 for some in asked):
        several = targets_of_texts(model, tokenizer, encoded, asked, problem, batch_size)
        places = [place for place, some in enumerate(several) for _ in some]
        encoded, golds = [encoded[place] for place in places], [golds[place] for place in places]
        asked = [[target] for some in several for target in some]
    targets = [None if some is None else some[0] for some in asked]
    again = [bool(place) and text is encoded[place - 1] for place, text in enumerate(encoded)]  # with another target
    asks_once = METHODS[method].at_once
    costs = [
        0 if repeated and asks_once else (not repeated) + METHODS[method].cost(text, settings)
        for text, repeated in zip(encoded, again, strict=True)
    ]

    settings = METHODS[method].prepare(settings, model, tokenizer)
    common = {
        "method": method,
        "label_names": problem.names,
        "problem_type": problem.kind,
        "model": model_name(model),
        "settings": recorded_settings(settings) | ({"seed": seed} if METHODS[method].draws else {}),
    }
    windows = _windows(costs, again)
    ends, part = [window.stop for window in windows], range(len(encoded))
    if shard is not None:
        part = split(ends, shard[1])[shard[0] - 1]
        windows = [window for window in windows if window.start in part]
    _warn_truncated([encoded[place] for place in part if not again[place]])
    store, explanations = None, []
    with ExitStack() as stack, progress_bar(method, sum(costs[part.start : part.stop]), progress, bar) as bar:
        if isinstance(save_to, Store):
            store = save_to
        elif save_to is not None:
            store = Store(
                save_to, model, encoded, {**common, **model_states(settings), "targets": targets, "gold": golds}
            )
            if shard is not None:
                store.finished = store.count()
                if part and store.finished >= part.stop:  # the shards have been put together
                    return list(islice(store.explanations(), part.start, part.stop))
                store = store.shard(*shard)
            stack.enter_context(store)
            explanations += store.read([window.stop - part.start for window in windows])
            if merge is not None:
                explanations += store.take_shards(split(ends, merge))
            bar.update(sum(costs[part.start : part.start + len(explanations)]))
        try:
            for window in windows:
                if window.start - part.start < len(explanations):
                    continue
                started, position = time.perf_counter(), bar.n
                analysis = _analyse(
                    model, tokenizer, encoded[window], targets[window], method, settings, batch_size, seed, bar
                )
                results = METHODS[method].scores(analysis)
                seconds = (time.perf_counter() - started) / len(analysis.texts)
                made = _explanations(analysis, results, golds[window], {**common, "seconds": seconds})
                if store is not None:
                    store.append(made)
                explanations += made
                bar.update(position + sum(costs[window]) - bar.n)  # not every method needs all that it may
        except KeyboardInterrupt as interrupt:
            if store is None or store is save_to:
                raise
            raise KeyboardInterrupt(
                f"Stopped: {len(explanations)} of {len(part)} explanations are in {store.path}; the same call goes on."
            ) from interrupt
    if method == "integrated_gradients":
        gradients.warn_of_gaps(explanations)
    return explanations


def _check_shards(shard, merge, save_to) -> None:
    if shard is None and merge is None:
        return
    if save_to is None or isinstance(save_to, Store):
        raise InputError("Shards are files beside save_to; name that file.")
    if merge is not None:
        whole_number("merge", merge, 1)
    if shard is not None and merge is not None:
        raise InputError("Give shard or merge: shards are put together when all of them are finished.")
    if shard is not None:
        if not isinstance(shard, tuple | list) or len(shard) != 2:
            raise InputError(f"shard is {shard!r}; it must be its number and how many there are, such as (3, 8).")
        whole_number("shard[0]", shard[0], 1, whole_number("shard[1]", shard[1], 1))


def _explanations(analysis: Analysis, results: list, golds: list, common: dict) -> list[Explanation]:
    return [
        Explanation(
            text=text.text,
            words=[word.text for word in text.words],
            spans=[(word.start, word.end) for word in text.words],
            scores=result.scores,
            seen=text.seen,
            target=analysis.targets[place],
            prediction=_prediction(analysis.problem, analysis.outputs[place]),
            probabilities=analysis.outputs[place],
            gold=gold,
            truncated=text.truncated,
            text_pair=text.text_pair,
            pair_start=text.pair_start,
            details=result.details,
            **common,
        )
        for place, (text, result, gold) in enumerate(zip(analysis.texts, results, golds, strict=True))
    ]


def _prediction(problem: Problem, outputs: list[float]) -> int | list[int] | None:
    predicted = problem.predicted(outputs)
    if problem.kind == REGRESSION:
        return None
    return predicted[0] if problem.is_single_label else predicted


def _windows(costs: list[int], again: list[bool]) -> list[slice]:
    """Neighbouring texts, together about `_WINDOW` model inputs: the same windows for the same texts.

    Args:
        again: whether it is the text before with another target; its targets stay together.
    """
    windows, start, inputs = [], 0, 0
    for position, (cost, repeated) in enumerate(zip(costs, again, strict=True)):
        if inputs and inputs + cost > _WINDOW and not repeated:
            windows.append(slice(start, position))
            start, inputs = position, 0
        inputs += cost
    return [*windows, slice(start, len(costs))] if costs else []


def _analyse(model, tokenizer, texts, targets, method, settings, batch_size, seed, bar: tqdm) -> Analysis:
    problem = Problem.of(model.config)
    once = [
        place for place, text in enumerate(texts) if not place or text is not texts[place - 1]
    ]  # whatever its targets
    outputs: list[list[float]] = [[]] * len(once)
    token_values: dict[str, list[list]] = {field: [[]] * len(once) for field in METHODS[method].reads}
    input_ids = [texts[place].typed_ids for place in once]
    asked = METHODS[method].asks(settings)
    ask = partial(model, **asked, **named_outputs(model)) if asked and takes_center(model) else None
    # Closed explicitly: an exception below would otherwise leave the generator, and with it eval mode, open.
    with closing(forward_batches(model, tokenizer, input_ids, batch_size, ask)) as batches:
        for positions, output in batches:
            for position, row in zip(positions, model_outputs(model, output).tolist(), strict=True):
                outputs[position] = row
            bar.update(len(positions))
            for field, rows in token_values.items():
                values = getattr(output, field, None)
                if values is None:
                    raise _refusal(model, method, field, output)
                for position, row in zip(positions, values.float().tolist(), strict=True):
                    rows[position] = row[: len(input_ids[position])]
    repeats = [end - place for place, end in pairwise([*once, len(texts)])]
    outputs = _repeated(outputs, repeats)
    token_values = {field: _repeated(rows, repeats) for field, rows in token_values.items()}
    targets = [
        problem.explained(row)[0] if target is None else target for row, target in zip(outputs, targets, strict=True)
    ]
    return Analysis(
        model,
        tokenizer,
        problem,
        texts,
        outputs,
        targets,
        token_values,
        settings,
        batch_size,
        seed,
        bar,
    )


def _repeated(rows: list, times: Sequence[int]) -> list:
    return [row for row, count in zip(rows, times, strict=True) for _ in range(count)]


_NEEDED = {
    "token_importance": 'pooling="attention"',
    "token_mask": "a word mask",
    "token_attribution": 'pooling="attention" and heads that have gradients, which quantised ones have not',
    "polarity_scores": 'pooling="attention" and head_layers=1, a linear head',
}


def _refusal(model, method: str, field: str, output) -> InputError:
    """What to do with a model whose output lacks a field that the method reads."""
    others = ", ".join(repr(name) for name, other in METHODS.items() if not other.reads and not other.fitted)
    own = "".join(
        f"method={name!r}, which reads the {' and '.join(other.reads)} that it gives, "
        for name, other in METHODS.items()
        if other.reads and all(getattr(output, one, None) is not None for one in other.reads)
    )
    name = "A model that reads windows" if isinstance(model, WindowedClassifier) else type(model).__name__
    return InputError(
        f"{name} gives no {field}, so method={method!r} has nothing to read; use {own}a model with "
        f"{_NEEDED[field]}, or a method that works with any model: {others}."
    )


def targets_of_texts(
    model, tokenizer, encoded: list[EncodedText], asked: list[list[int] | None], problem: Problem, batch_size: int
) -> list[list[int]]:
    """What is explained of each text: what was asked for, else what the model says of it."""
    places = [place for place, some in enumerate(asked) if some is None]
    outputs = predict_outputs(model, tokenizer, [encoded[place].typed_ids for place in places], batch_size)
    found = dict(zip(places, map(problem.explained, outputs.tolist()), strict=True))
    return [found[place] if some is None else some for place, some in enumerate(asked)]


def _warn_truncated(texts: list[EncodedText]) -> None:
    cut = [text.truncated for text in texts if text.truncated]
    if cut:
        warnings.warn(
            f"{len(cut)} of {len(texts)} texts are longer than the model takes: {sum(cut)} words were cut off, not "
            "seen, and have score 0.",
            stacklevel=3,
        )
