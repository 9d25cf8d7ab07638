"""Explain texts: one call for all methods.

A method is a function from an [`Analysis`] to token or word scores per text, and an entry of `METHODS`.
"""

import operator
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from hf_vat.errors import InputError, check_texts
from hf_vat.inference import forward_batches
from hf_vat.models.words import EncodedText, encode_words, maximum_length

from .explanation import Explanation


def explain(
    model,
    tokenizer,
    texts: Sequence[str],
    method: str = "attention",
    target: int | None = None,
    batch_size: int = 32,
    seed: int = 0,
    gold: Sequence[int] | None = None,
    max_length: int | None = None,
    progress: bool = False,
) -> list[Explanation]:
    """Score the words of texts by how much a classifier relied on them.

    The model runs in eval mode and without gradients; its train/eval flags and the global random state are left as
    they were. A text longer than the model takes is cut, with one warning for the call; its words stay in the result,
    marked as not seen. Empty and blank texts have no words, and a prediction.

    Args:
        model: a sequence classification model of transformers or hf_vat.
        tokenizer: its fast tokenizer.
        texts: a list of texts.
        method: one of

            - "attention": the model's own attention, summed over the tokens of a word. At least 0; the words of a
              text sum to 1 (VAT: Zhou et al., Findings of ACL 2021).
            - "random": uniform in [0, 1), drawn for each text from (`seed`, its position). The baseline.
        target: class to explain; by default the predicted one. Attention and random scores do not depend on it.
        batch_size: the largest batch that the model is given.
        seed: seed of methods that draw random numbers, at least 0.
        gold: the true class id of each text, to be shown beside the prediction.
        max_length: tokens to keep, special ones included; by default what tokenizer and model allow.
        progress: show a progress bar.

    Returns:
        One explanation per text, in the order of `texts`.

    Raises:
        InputError: if an argument cannot be used, or the model has nothing that the method could read.
    """
    started = time.perf_counter()
    texts = check_texts(texts)
    if method not in METHODS:
        raise InputError(f"Unknown method {method!r}; choose one of {', '.join(map(repr, METHODS))}.")
    if model.config.problem_type == "multi_label_classification":
        raise InputError("The model is multi-label; explanations are for models that choose one class per text.")
    names = [model.config.id2label[label] for label in range(model.config.num_labels)]
    if target is not None:
        target = _check_label("target", target, names)
    if gold is not None and len(gold) != len(texts):
        raise InputError(f"{len(gold)} gold labels for {len(texts)} texts; give one per text.")
    golds = [None] * len(texts)
    if gold is not None:
        golds = [_check_label(f"gold[{position}]", label, names) for position, label in enumerate(gold)]
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; it must be at least 1.")
    if seed < 0:
        raise InputError(f"seed is {seed}; it must be at least 0.")

    encoded = encode_words(tokenizer, texts, _check_length(max_length, model, tokenizer))
    _warn_truncated(encoded)
    analysis = _analyse(model, tokenizer, encoded, method, target, batch_size, seed, progress)
    scores = METHODS[method](analysis)
    seconds = (time.perf_counter() - started) / max(len(texts), 1)
    return [
        Explanation(
            text=text.text,
            words=[word.text for word in text.words],
            spans=[(word.start, word.end) for word in text.words],
            scores=text_scores,
            seen=text.seen,
            method=method,
            target=analysis.targets[position],
            prediction=analysis.predictions[position],
            probabilities=analysis.probabilities[position],
            label_names=names,
            gold=golds[position],
            truncated=text.truncated,
            model=model.config.name_or_path or type(model).__name__,
            seconds=seconds,
        )
        for position, (text, text_scores) in enumerate(zip(encoded, scores, strict=True))
    ]


@dataclass
class Analysis:
    """What a method gets: the texts with the model's predictions for them.

    Attributes:
        probabilities: softmax of the logits, per text.
        predictions: the class with the highest probability, per text.
        targets: the class to explain, per text.
        token_importance: the model's own score for each of a text's `input_ids`, per text; None for methods that do
            not read it.
    """

    model: object
    tokenizer: object
    texts: list[EncodedText]
    probabilities: list[list[float]]
    predictions: list[int]
    targets: list[int]
    token_importance: list[list[float]] | None
    batch_size: int
    seed: int
    progress: bool


def _analyse(model, tokenizer, texts, method, target, batch_size, seed, progress) -> Analysis:
    probabilities: list[list[float]] = [[]] * len(texts)
    token_importance: list[list[float]] | None = [[]] * len(texts) if method in _READ_FROM_OUTPUT else None
    left_padded = tokenizer.padding_side == "left"
    input_ids = [text.input_ids for text in texts]
    # Closed explicitly: an exception below would otherwise leave the generator, and with it eval mode, open.
    with closing(forward_batches(model, tokenizer, input_ids, batch_size, "explain" if progress else None)) as batches:
        for positions, output in batches:
            for position, row in zip(positions, output.logits.cpu().double().softmax(-1).tolist(), strict=True):
                probabilities[position] = row
            if token_importance is None:
                continue
            importance = getattr(output, "token_importance", None)
            if importance is None:
                others = ", ".join(repr(name) for name in METHODS if name not in _READ_FROM_OUTPUT)
                raise InputError(
                    f"{type(model).__name__} gives no token_importance, so method={method!r} has nothing to read; use a "
                    f'model with pooling="attention" or a word mask, or another method: {others}.'
                )
            for position, row in zip(positions, importance.tolist(), strict=True):
                length = len(input_ids[position])
                token_importance[position] = row[len(row) - length :] if left_padded else row[:length]
    predictions = [max(range(len(row)), key=row.__getitem__) for row in probabilities]
    targets = predictions if target is None else [target] * len(texts)
    return Analysis(
        model, tokenizer, texts, probabilities, predictions, targets, token_importance, batch_size, seed, progress
    )


def _attention(analysis: Analysis) -> list[list[float]]:
    return [
        text.word_scores(importance) for text, importance in zip(analysis.texts, analysis.token_importance, strict=True)
    ]


def _random(analysis: Analysis) -> list[list[float]]:
    return [
        (np.random.default_rng([analysis.seed, position]).random(len(text.words)) * text.seen).tolist()
        for position, text in enumerate(analysis.texts)
    ]


METHODS: dict[str, Callable[[Analysis], list[list[float]]]] = {"attention": _attention, "random": _random}
_READ_FROM_OUTPUT = {"attention"}  # methods that need `Analysis.token_importance`


def _check_label(name: str, label, names: list[str]) -> int:
    try:
        label = operator.index(label)  # also NumPy integers
    except TypeError:
        raise InputError(f"{name} is {label!r}; give a class id, an integer.") from None
    if not 0 <= label < len(names):
        classes = ", ".join(f"{label} ({class_name})" for label, class_name in enumerate(names))
        raise InputError(f"{name} is {label}; the classes of the model are {classes}.")
    return label


def _check_length(max_length: int | None, model, tokenizer) -> int:
    largest = maximum_length(model, tokenizer)
    if max_length is None:
        return largest
    smallest = tokenizer.num_special_tokens_to_add() + 1
    if not smallest <= max_length <= largest:
        raise InputError(
            f"max_length is {max_length}; this model and tokenizer take {smallest} to {largest} tokens, "
            "special ones included."
        )
    return max_length


def _warn_truncated(texts: list[EncodedText]) -> None:
    cut = [text.truncated for text in texts if text.truncated]
    if cut:
        warnings.warn(
            f"{len(cut)} of {len(texts)} texts are longer than the model takes: {sum(cut)} words at their ends were "
            "not seen and have score 0.",
            stacklevel=3,
        )
