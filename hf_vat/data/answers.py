"""Labels of other kinds than one class for each text: several labels, and scores."""

import math
from collections.abc import Iterable, Iterator, Sequence

from hf_vat.errors import InputError, shown
from hf_vat.models.problems import MULTI_LABEL, REGRESSION, SINGLE_LABEL

from .arguments import DataArguments
from .files import RawSplit
from .formats import listed
from .labels import by_value

_TRUE, _FALSE = {"1", "1.0", "true"}, {"0", "0.0", "false"}


def problem_type_of(source: RawSplit, args: DataArguments) -> str:
    """The kind of problem that the labels are of, as the options say; lists of labels are several labels."""
    if args.problem_type is not None:
        return args.problem_type
    if args.label_columns or args.label_separator:
        return MULTI_LABEL
    cells = source.columns.get(args.label_column, ())[:100]
    return MULTI_LABEL if any(isinstance(cell, list) for cell in cells) else SINGLE_LABEL


def answers_of(source: RawSplit, args: DataArguments, kind: str, names: Sequence[str] | None) -> list:
    """For each row the names of its labels, or its score; None where it is not known.

    Args:
        names: of the labels, where they are known: then 0 and 1 in lists of as many numbers are flags.

    Raises:
        InputError: if a column is not there, or a cell cannot be used, naming its row.
    """
    if kind == REGRESSION:
        cells = source.column(args.label_column, "--label_column")
        return [_score(source.origin, number, cell) for number, cell in enumerate(cells, 1)]
    if args.label_columns:
        columns = [source.column(name, "--label_columns") for name in args.label_columns]
        return [
            _flagged(source.origin, number, args.label_columns, cells)
            for number, cells in enumerate(zip(*columns, strict=True), 1)
        ]
    cells = source.column(args.label_column, "--label_column")
    several = [_several(source.origin, number, cell, args) for number, cell in enumerate(cells, 1)]
    return _without_flags(source.origin, several, names)


def label_names_of(answers: Iterable[list[str] | None]) -> list[str]:
    """All labels that occur, sorted; numbers by their value."""
    found = {name for some in answers if some is not None for name in some}
    return sorted(found, key=lambda name: (not name.isdecimal(), by_value(name) if name.isdecimal() else (0, "", name)))


def encoded_answers(
    origin: str, answers: Iterable[tuple[int, Sequence[str]]], names: Sequence[str]
) -> Iterator[list[int]]:
    """The ids of the labels of each row.

    Args:
        answers: the number of a row, and the names of its labels.

    Raises:
        InputError: while iterating, if a label is unknown.
    """
    ids = {name: place for place, name in enumerate(names)}
    for number, some in answers:
        unknown = [name for name in some if name not in ids]
        if unknown:
            raise InputError(
                f"{origin}: row {number} has the unknown label {shown(unknown[0])}; known are {listed(names)}. Correct it, or add "
                "rows with this label to the training data."
            )
        yield sorted({ids[name] for name in some})


def _score(origin: str, number: int, cell: object) -> float | None:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        score = float(cell)  # type: ignore[arg-type]  # whatever it is
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score) or isinstance(cell, bool):
        raise InputError(
            f"{origin}: row {number} has the label {shown(cell)}; with regression it must be a finite number."
        )
    return score


def _flagged(origin: str, number: int, names: Sequence[str], cells: Sequence) -> list[str]:
    labels = []
    for name, cell in zip(names, cells, strict=True):
        written = str(cell).strip().lower()
        if written not in _TRUE | _FALSE:
            raise InputError(
                f"{origin}: row {number} has {shown(cell)} in column {name!r}; a column of --label_columns has 1 for the texts with "
                "that label, and 0 for others."
            )
        if written in _TRUE:
            labels.append(name)
    return labels


def _several(origin: str, number: int, cell: object, args: DataArguments) -> list[str] | None:
    if args.label_separator is not None and (cell is None or isinstance(cell, str)):
        return [name for part in (cell or "").split(args.label_separator) if (name := part.strip())]
    if cell is None:
        return None
    if not isinstance(cell, list) or any(isinstance(one, list | dict) or one is None for one in cell):
        raise InputError(
            f"{origin}: row {number} has the label {shown(cell)}; for several labels give a list of names in each row, or say with "
            "--label_separator what separates them, or give --label_columns."
        )
    return [str(one).strip() for one in cell]


def _without_flags(origin: str, several: list, names: Sequence[str] | None) -> list:
    """The names of labels, where all rows are lists of as many numbers 0 and 1: a label cannot occur twice in a row, so such
    numbers are flags."""
    rows = [some for some in several if some is not None]
    lengths = {len(some) for some in rows}
    flags = len(lengths) == 1 and all(set(some) <= _TRUE | _FALSE for some in rows)
    if not flags or not any(len(set(some)) < len(some) for some in rows):
        return several
    [length] = lengths
    names = names or [f"LABEL_{place}" for place in range(length)]
    if len(names) != length:
        raise InputError(
            f"{origin}: each row has {length} flags for labels, but there are {len(names)}: {listed(names)}."
        )
    return [
        None if some is None else [name for name, flag in zip(names, some, strict=True) if flag in _TRUE]
        for some in several
    ]
