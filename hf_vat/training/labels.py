"""Labels of the data: checked once, in a stream while it is read, and weighed by class."""

import operator
from collections import Counter
from collections.abc import Iterable

import numpy as np

from hf_vat.errors import InputError, shown
from hf_vat.models.problems import MULTI_LABEL, Problem


def check_labels(dataset, name: str, problem: Problem) -> None:
    """Check the label column of a map-style dataset once, before the first step.

    Args:
        dataset: rows; without columns there is nothing that could be checked.
        name: what the set is for, in the error's words.
        problem: what the model is asked.

    Raises:
        InputError: if there is none, or no row, or naming the first label that is not of that kind, and its row (counted from
            0).
    """
    columns = getattr(dataset, "column_names", None)
    if name == "training" and dataset is not None and hasattr(dataset, "__len__") and not len(dataset):
        raise InputError(f"The {name} data has no rows; give at least one.")
    if columns is None or not len(dataset):
        return
    column = label_column(columns, name)
    for row, label in enumerate(dataset[column]):
        _check_label(label, f"row {row} of column {column!r}", name, problem)


class CheckedRows:
    """The rows of a stream, whose labels are checked while they are read."""

    def __init__(self, rows: Iterable[dict], problem: Problem):
        self.rows, self.problem = rows, problem

    def set_epoch(self, epoch: int) -> None:
        if hasattr(self.rows, "set_epoch"):
            self.rows.set_epoch(epoch)

    def __iter__(self):
        for number, row in enumerate(self.rows):
            column = label_column(row, "training")
            _check_label(row[column], f"row {number} of the stream, column {column!r}", "training", self.problem)
            yield row


def label_column(columns: Iterable[str], name: str) -> str:
    """The column that holds the labels, as the Trainer knows it.

    Raises:
        InputError: if there is none.
    """
    column = next((column for column in ("labels", "label", "label_ids") if column in columns), None)
    if column is None:
        raise InputError(f"The {name} set has no column 'labels' or 'label'; its columns are {list(columns)}.")
    return column


def find_class_weights(given: str | list[float] | None, dataset, classes: int) -> list[float] | None:
    """One number for each class, or none.

    Args:
        given: the numbers, or `"balanced"` for N / (C · N_c), with N_c of the N texts of `dataset` in class c out of C.
        dataset: the training set.
        classes: C.

    Raises:
        InputError: if there is not one number for each class, or the labels cannot be counted.
    """
    if given is None:
        return None
    if given != "balanced":
        if len(given) != classes:
            raise InputError(
                f"class_weights={given} are {len(given)} numbers, and the model has {classes} classes; give one each."
            )
        return [float(weight) for weight in given]
    columns = getattr(dataset, "column_names", None)
    if columns is None:
        raise InputError(
            'class_weights="balanced" counts the labels of the training set beforehand, which a stream or a set without '
            "columns does not allow; give one number per class."
        )
    found = Counter(dataset[label_column(columns, "training")][:])
    counts = [found[label] for label in range(classes)]
    if 0 in counts:
        raise InputError(
            f'class_weights="balanced" has no weight for class {counts.index(0)}, of which the training set has no text; '
            "give one number per class."
        )
    return [sum(counts) / (classes * count) for count in counts]


def _check_label(label, place: str, name: str, problem: Problem) -> None:
    classes = len(problem.names)
    if not problem.is_single_label:
        return _check_numbers(label, place, name, problem)
    try:
        known = 0 <= operator.index(label) < classes or label == -100  # also NumPy integers
    except TypeError:
        known = False
    if not known:
        raise InputError(
            f"The {name} set has the label {label!r} in {place}; labels must be whole numbers from 0 to "
            f"{classes - 1} (or -100 to leave a text out of the loss)."
        )


def _check_numbers(label, place: str, name: str, problem: Problem) -> None:
    """A number for each label, 0 or 1 or between, or for each score."""
    count = len(problem.names)
    try:
        numbers = np.asarray(label)
    except ValueError:  # lists of different lengths
        numbers = np.array(None)
    known = numbers.dtype.kind in "iufb" and numbers.shape in ((count,), *([()] if count == 1 else []))
    if known and problem.kind == MULTI_LABEL:
        known = bool(((numbers >= 0) & (numbers <= 1)).all())
    if not known or not np.isfinite(numbers).all():
        what = "from 0 to 1, 1 for a label that the text has" if problem.kind == MULTI_LABEL else "that are finite"
        raise InputError(
            f"The {name} set has the label {shown(label)} in {place}; with problem_type={problem.kind!r} each text needs "
            f"{count} number{'s' * (count > 1)}, {what}."
        )
