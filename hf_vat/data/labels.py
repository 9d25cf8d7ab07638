"""Rows as texts and class ids: texts as they are written, labels compared by name, numbers as names of classes.

One rule for every format, by what is written: CSV files have no types, so the number 1 and the text "1" are one label.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from datasets import ClassLabel, Features, List, Value

from hf_vat.errors import LONE_SURROGATE, InputError, shortened, shown
from hf_vat.models.problems import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from hf_vat.models.words import PAIR

from .arguments import DataArguments
from .files import RawSplit
from .formats import listed

logger = logging.getLogger(__name__)

DROP_EMPTY = "Fill them in, or leave them out with --drop_empty."
NO_ROW = "no row has both a text and a label."

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?")
_WHOLE_NUMBER = re.compile(r"-?[0-9]+(\.0*)?")
_TRUTH = ("true", "false")
# a list of JSON, Python or NumPy, a tuple, a set or an object
_LIST = re.compile(r"""\[\s*(?:(?:['"]|-?[0-9.]).*)?\] | [({]\s*['"].*[)}]""", re.VERBOSE | re.DOTALL)
MISSING = {"nan", "none", "null", "na", "n/a", "<na>", "#n/a"}  # what programs write for a number that is missing


class Row(NamedTuple):
    """A text and its label as a name, either of them None if it is missing, and where they are, counted from 1.

    A text that is explained may come as a list of words. A pair of texts is a dictionary of `text` and `text_pair`.
    """

    number: int
    text: str | list[str] | dict[str, str] | None
    label: str | None

    @property
    def complete(self) -> "CompleteRow | None":
        """The row, if it has both."""
        if self.text is None or self.label is None:
            return None
        return CompleteRow(self.number, self.text, self.label)

    def missing(self, text_column: str, label_column: str) -> str:
        """The place of what is missing."""
        return f"row {self.number} (column {(text_column if self.text is None else label_column)!r})"


class CompleteRow(NamedTuple):
    """A [`Row`] that has a text and a label."""

    number: int
    text: str | list[str] | dict[str, str]
    label: str


def find_text_column(source: RawSplit, args: DataArguments) -> str:
    """The named column; by default 'text', or else the only one beside the labels that holds words.

    Raises:
        InputError: if it is not there, or there is none or more than one.
    """
    if args.text_column is not None:
        source.column(args.text_column, "--text_column")
        return args.text_column
    if "text" in source.columns:
        return "text"
    candidates = [
        name
        for name, values in source.columns.items()
        if name not in (args.label_column, args.text_pair_column, *(args.label_columns or ()))
        # a few rows tell texts from ids
        and any(isinstance(value, str) and value and not _NUMBER.fullmatch(value) for value in values[:100])
    ]
    if len(candidates) != 1:
        raise InputError(
            f"{source.origin}: no column 'text', and not exactly one other column with words; found "
            f"{listed(source.columns)}. {source.column_advice('--text_column')}"
        )
    return candidates[0]


def source_rows(source: RawSplit, text_column: str, args: DataArguments) -> Iterator[Row]:
    """All rows of a source, also those without a text or a label.

    Raises:
        InputError: if a column is not there, and while iterating if a text or label cannot be used.
    """
    labels = source.column(args.label_column, "--label_column")
    texts = source_texts(source, text_column, args)
    return (
        Row(number, text, as_label(source, number, label))
        for number, (text, label) in enumerate(zip(texts, labels, strict=True), 1)
    )


def source_texts(source: RawSplit, text_column: str, args: DataArguments) -> Iterator[str | dict[str, str] | None]:
    """The texts of a source, or its pairs of texts; None where one is missing.

    Raises:
        InputError: if a column is not there, and while iterating if a text cannot be used.
    """
    columns = {text_column: source.column(text_column, "--text_column")}
    if args.text_pair_column is not None:
        columns[args.text_pair_column] = source.column(args.text_pair_column, "--text_pair_column")
    for number, cells in enumerate(zip(*columns.values(), strict=True), 1):
        yield as_pair([as_text(source.origin, number, cell, name) for name, cell in zip(columns, cells, strict=True)])


def as_pair(texts: list) -> Any:
    """The only text, or two as a pair; None if one is missing."""
    if None in texts:
        return None
    return texts[0] if len(texts) == 1 else dict(zip(PAIR, texts, strict=True))


def as_columns(text: Any) -> dict[str, Any]:
    """The columns that a text, or a pair, is stored in."""
    return dict(text) if isinstance(text, dict) else {"text": text}


def as_row(source: RawSplit, number: int, text: object, label: object, text_column: str) -> Row:
    """A row with its text as it is, and its label as a name.

    Raises:
        InputError: if the text is no string or number, or the label neither a name nor a number.
    """
    return Row(number, as_text(source.origin, number, text, text_column), as_label(source, number, label))


def as_text(origin: str, number: int, text: object, text_column: str) -> str | None:
    """A text as it is, None if it is missing or blank.

    Raises:
        InputError: if it is no string or number, or cannot be encoded.
    """
    if text is None or text != text:  # NaN
        return None
    if not isinstance(text, str | bool | int | float):
        words = " A list of words is a text already split for explaining alone." * isinstance(text, list)
        raise InputError(
            f"{origin}: row {number} of column {text_column!r} is {shown(text)}, but texts must be strings.{words} Name the "
            "column with --text_column."
        )
    text = str(text)
    if LONE_SURROGATE.search(text):
        raise InputError(f"{origin}: row {number} contains half a character (a lone surrogate); correct it.")
    return text if text.strip() else None


def complete_rows(
    origin: str, rows: Iterable[Row], names: Sequence[str] | None, text_column: str, args: DataArguments
) -> Iterator[CompleteRow]:
    """The rows that have a text and a label; how many are left out is told in the log.

    Args:
        names: the class names, if they are known; labels that stand for a missing one and are not among them are missing.
        args: the label column, and whether rows are left out.

    Raises:
        InputError: while iterating, if a row is not complete, unless such rows are left out.
    """
    left_out = 0
    for row in rows:
        row = row if names is None else without_mark(row, names)
        if row.complete:
            yield row.complete
        elif args.drop_empty:
            left_out += 1
        else:
            raise InputError(incomplete_rows(origin, [row.missing(text_column, args.label_column)], DROP_EMPTY))
    if left_out:
        logger.warning("%s: rows without a text or a label, left out: %d", origin, left_out)


def incomplete_rows(origin: str, places: Sequence[str], advice: str) -> str:
    return (
        f"{origin}: no text or no label in {listed(places, 5)}. Rows are counted from 1, without the header. {advice}"
    )


def as_label(source: RawSplit, number: int, value: object) -> str | None:
    """The label as a name, None if it is missing.

    Raises:
        InputError: if it is neither a name nor a number of at least 0.
    """
    if source.class_names and isinstance(value, str):
        return value
    if value is None or value != value:  # NaN
        return None
    name = str(value).strip()
    if not isinstance(value, str | bool | int | float) or _LIST.fullmatch(name):
        raise InputError(
            f"{source.origin}: row {number} has the label {shown(value)}; each text needs one name or number."
        )
    if name.startswith("-") and _NUMBER.fullmatch(name):
        raise InputError(
            f"{source.origin}: row {number} has the label {shortened(name)}. Negative labels mark unlabelled rows, as in the test "
            "sets of GLUE: use a split with labels. If they are classes, write names instead."
        )
    return name.lower() if name.lower() in _TRUTH else name or None


class OneKind:
    """Sees to it that the labels of a file are all names, or all whole numbers.

    Args:
        names: the class names if they are known, which may look like numbers.
    """

    def __init__(self, origin: str, names: Iterable[str] = ()):
        self.origin, self.names = origin, frozenset(names)
        self._name: CompleteRow | None = None
        self._number: CompleteRow | None = None

    def checked(self, row: CompleteRow) -> CompleteRow:
        """The row, with 1.0 written as 1.

        Raises:
            InputError: if the label is a fraction, or of another kind than those before.
        """
        if not _NUMBER.fullmatch(row.label):
            self._name = self._name or row
        elif row.label not in self.names:
            self._number = self._number or row
        if self._name and self._number:
            raise InputError(
                f"{self.origin}: row {self._name.number} has the name {shown(self._name.label)} as its label, but row "
                f"{self._number.number} the number {shortened(self._number.label)}. Write all labels as names, or all as numbers; or "
                "list all classes with --class_names."
            )
        if row.label in self.names or not _NUMBER.fullmatch(row.label):
            return row
        if not _WHOLE_NUMBER.fullmatch(row.label):
            raise InputError(
                f"{self.origin}: row {row.number} has the label {shortened(row.label)}. Numbers as labels must be whole; for scores "
                "give --problem_type regression."
            )
        return row._replace(label=row.label.partition(".")[0])


def names_of(origin: str, rows: Iterable[CompleteRow]) -> tuple[list[str], CompleteRow | None]:
    """The classes of rows, and the first of those whose label stands for a missing one.

    "nan" and its like are missing among numbers; among names they are names like others.

    Raises:
        InputError: while iterating, if the labels are not all names or all whole numbers.
    """
    kind, names = OneKind(origin), set()
    marks: dict[str, CompleteRow] = {}
    for row in rows:
        if row.label.lower() in MISSING:
            marks.setdefault(row.label, row)
        else:
            names.add(kind.checked(row).label)
    if all(_NUMBER.fullmatch(name) for name in names):
        return sorted(names, key=by_value), next(iter(marks.values()), None)
    return sorted(names.union(marks)), None


def by_value(number: str) -> tuple[int, str, str]:
    """What whole numbers from 0 are sorted by, of any number of digits: Python's int takes 4,300."""
    digits = number.lstrip("0")
    return len(digits), digits, number


def without_mark(row: Row, names: Sequence[str]) -> Row:
    """The row, without a label that stands for a missing one and is not among the class names."""
    missing = row.label is not None and row.label.lower() in MISSING and row.label not in names
    return row._replace(label=None) if missing else row


def class_id(label: str, ids: dict[str, int]) -> int | None:
    """The id of a class name, where 1.0 is taken for 1; None if the name is unknown."""
    found = ids.get(label)
    return ids.get(label.partition(".")[0]) if found is None and _WHOLE_NUMBER.fullmatch(label) else found


def label_ids(names: Sequence[str], positions: bool) -> dict[str, int]:
    """Class ids by name, and by position if that is wanted and no name is a number."""
    ids = {name: position for position, name in enumerate(names)}
    ids = {name.lower(): position for name, position in ids.items() if name.lower() in _TRUTH} | ids
    if positions and not any(_NUMBER.fullmatch(name) for name in names):
        ids |= {str(position): position for position in range(len(names))}
    return ids


def encode_rows(origin: str, rows: Iterable[CompleteRow], names: Sequence[str], positions: bool) -> Iterator[dict]:
    """Texts and class ids.

    Args:
        positions: whether 0, 1, … are positions in `names`.

    Raises:
        InputError: while iterating, if a label is unknown, a fraction, or of another kind than those before.
    """
    kind, ids = OneKind(origin, names), label_ids(names, positions)
    for row in map(kind.checked, rows):
        label = class_id(row.label, ids)
        if label is None:
            told = f" (or 0 to {len(names) - 1})" if "0" in ids and "0" not in names else ""
            raise InputError(
                f"{origin}: row {row.number} has the unknown label {shown(row.label)}; known are "
                f"{listed(names)}{told}. Correct it, or add rows with this label to the training data."
            )
        yield {**as_columns(row.text), "label": label}


def features_of(names: Sequence[str], kind: str = SINGLE_LABEL, pairs: bool = False) -> Features:
    """The columns of a split: texts as strings, class ids, or lists of label ids, or scores."""
    texts = {name: Value("string") for name in (PAIR if pairs else PAIR[:1])}
    label: Any = Value("float64") if kind == REGRESSION else ClassLabel(names=list(names))
    return Features({**texts, "label": List(label) if kind == MULTI_LABEL else label})
