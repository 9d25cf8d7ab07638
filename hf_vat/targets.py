"""What is asked of texts and what is known of them, as users give it: classes, labels or scores."""

import math
from collections.abc import Sequence

import numpy as np

from .errors import InputError, check_list, shown
from .inference import class_ids, known_class_id
from .models.problems import REGRESSION, Problem


def check_targets(targets, texts: Sequence, problem: Problem) -> list[list[int] | None]:
    """What is asked for of each text, by ids; None where nothing is.

    Raises:
        InputError: if there is not one entry for each text, or one is no class of the model, or an empty list.
    """
    _check_count("target", targets, texts)
    found = []
    for place, some in enumerate(targets):
        if some is None:
            found.append(list(range(len(problem.names))) if problem.kind == REGRESSION else None)
            continue
        name = f"target[{place}]"
        if is_single(some):
            found.append([known_class_id(name, some, problem.names)])
            continue
        if not len(some):
            known_class_id(name, some, problem.names)  # which refuses it
        found.append([known_class_id(f"{name}[{number}]", one, problem.names) for number, one in enumerate(some)])
    return found


def check_golds(labels, texts: Sequence, problem: Problem) -> list:
    """The truth about each text: a class id, a list of label ids, or a number or several; None where it is not known.

    Raises:
        InputError: if there is not one entry for each text, or one is not of the model's kind.
    """
    _check_count("labels", labels, texts)
    if problem.is_single_label:
        return class_ids("labels", labels, problem.names)
    check = _gold_scores if problem.kind == REGRESSION else _gold_labels
    return [None if label is None else check(f"labels[{place}]", label, problem) for place, label in enumerate(labels)]


def _gold_labels(name: str, given, problem: Problem) -> list[int]:
    """Label ids, from names or from a number 0 or 1 for each label, as in the training of transformers."""
    given = [given] if is_single(given) else list(given)
    if all(isinstance(one, str) for one in given):
        return sorted({known_class_id(f"{name}[{number}]", one, problem.names) for number, one in enumerate(given)})
    if len(given) != len(problem.names) or any(one not in (0, 1) for one in given):
        raise InputError(
            f"{name} is {shown(given)}; give the names of the text's labels, or {len(problem.names)} numbers, 1 for a label that "
            "it has and 0 for one that it has not."
        )
    return [label for label, flag in enumerate(given) if flag]


def _gold_scores(name: str, given, problem: Problem) -> float | list[float]:
    scores = [_finite(name, score) for score in ([given] if is_single(given) else given)]
    if len(scores) != len(problem.names):
        raise InputError(f"{name} has {len(scores)} numbers; the model gives {len(problem.names)} scores.")
    return scores[0] if len(scores) == 1 else scores


def _finite(name: str, score) -> float:
    try:
        number = math.nan if isinstance(score, str | bool) else float(score)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} is {shown(score)}; the score of a text is a finite number.")
    return number


def _check_count(name: str, values, texts: Sequence) -> None:
    if len(check_list(name, values)) != len(texts):
        raise InputError(f"{name} has {len(values)} entries for {len(texts)} texts; give one for each text.")


def is_single(label) -> bool:
    """Whether it is one name or number, and no list of them."""
    return isinstance(label, str | bytes) or not np.iterable(label)
