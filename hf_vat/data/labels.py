"""Rows as texts and class ids: texts as they are written, labels compared by name, numbers as names of classes."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from datasets import ClassLabel, Features, Value

from hf_vat.errors import LONE_SURROGATE, InputError

from .arguments import DataArguments
from .files import Source
from .formats import Number, listed

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?")
_WHOLE_NUMBER = re.compile(r"-?[0-9]+(\.0*)?")


class Row(NamedTuple):
    """A text and its label as a name, either of them None if it is missing, and where they are, counted from 1."""

    number: int
    text: str | None
    label: str | None

    def missing(self, text_column: str, label_column: str) -> str | None:
        """The place of what is missing."""
        if self.text is not None and self.label is not None:
            return None
        return f"row {self.number} (column {(text_column if self.text is None else label_column)!r})"


def find_text_column(source: Source, args: DataArguments) -> str:
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
        if name != args.label_column
        # a few rows tell texts from ids
        and any(isinstance(value, str) and value and not _NUMBER.fullmatch(value) for value in values[:100])
    ]
    if len(candidates) != 1:
        raise InputError(
            f"{source.origin}: no column 'text', and not exactly one other column with words; found "
            f"{listed(source.columns)}. Name the column with --text_column."
        )
    return candidates[0]


def source_rows(source: Source, text_column: str, label_column: str) -> Iterator[Row]:
    """All rows of a source, also those without a text or a label.

    Raises:
        InputError: if a column is not there, and while iterating if a text or label cannot be used.
    """
    texts = source.column(text_column, "--text_column")
    labels = source.column(label_column, "--label_column")
    pairs = enumerate(zip(texts, labels, strict=True), 1)
    return (as_row(source, number, text, label, text_column) for number, (text, label) in pairs)


def as_row(source: Source, number: int, text: object, label: object, text_column: str) -> Row:
    """A row with its text as it is, and its label as a name.

    Raises:
        InputError: if the text is no string, or the label neither a name nor a number.
    """
    return Row(number, as_text(source.origin, number, text, text_column), _as_label(source, number, label))


def as_text(origin: str, number: int, text: object, text_column: str) -> str | None:
    """A text as it is, None if it is missing or blank.

    Raises:
        InputError: if it is no string, or cannot be encoded.
    """
    if not (text is None or isinstance(text, str)):
        raise InputError(
            f"{origin}: row {number} of column {text_column!r} is {text!r}, but texts must be strings. Name the column "
            "with --text_column."
        )
    if text is None or not text.strip():
        return None
    if LONE_SURROGATE.search(text):
        raise InputError(f"{origin}: row {number} contains half a character (a lone surrogate); correct it.")
    return str(text)


def incomplete_rows(origin: str, places: Sequence[str], advice: str) -> str:
    return (
        f"{origin}: no text or no label in {listed(places, 5)}. Rows are counted from 1, without the header. {advice}"
    )


def _as_label(source: Source, number: int, value: object) -> str | None:
    """The label as a name; a number from a source with types stays marked as one."""
    if source.class_names and isinstance(value, str):
        return value
    if value is None or value != value:  # NaN
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        value = Number(value)
    if not isinstance(value, str):
        raise InputError(f"{source.origin}: row {number} has the label {value!r}; each text needs one name or number.")
    if value.strip().startswith("-") and _NUMBER.fullmatch(value.strip()):
        raise InputError(
            f"{source.origin}: row {number} has the label {value.strip()}. Negative labels mark unlabelled rows, as in "
            "the test sets of GLUE: use a split with labels. If they are classes, write names instead."
        )
    return value if isinstance(value, Number) else value.strip() or None


def whole_numbers(origin: str, rows: list[Row]) -> list[Row]:
    """Write 1.0 as 1 if all labels are numbers; refuse fractions, and numbers mixed with names."""
    fraction = next((row for row in rows if not _WHOLE_NUMBER.fullmatch(row.label)), None)
    if fraction is None:
        return [row._replace(label=row.label.partition(".")[0]) for row in rows]
    if all(_NUMBER.fullmatch(row.label) for row in rows):
        raise InputError(
            f"{origin}: row {fraction.number} has the label {fraction.label}. Numbers as labels must be whole; "
            "regression is not supported."
        )
    number = next((row for row in rows if isinstance(row.label, Number)), None)
    name = next((row for row in rows if not isinstance(row.label, Number)), None)
    if number is not None and name is not None:
        raise InputError(
            f"{origin}: row {name.number} has the name {name.label!r} as its label, but row {number.number} the number "
            f"{number.label}. Write all labels as names, or all as numbers."
        )
    return rows


def sorted_names(labels: set[str]) -> list[str]:
    if all(_WHOLE_NUMBER.fullmatch(label) for label in labels):
        return sorted(labels, key=lambda label: (int(label), label))
    return sorted(labels)


def class_id(label: str, ids: dict[str, int]) -> int | None:
    """The id of a class name, where 1.0 is taken for 1; None if the name is unknown."""
    found = ids.get(label)
    return ids.get(label.partition(".")[0]) if found is None and _WHOLE_NUMBER.fullmatch(label) else found


def label_ids(names: Sequence[str], positions: bool) -> dict[str, int]:
    """Class ids by name, and by position if that is wanted and no name is a number."""
    ids = {name: position for position, name in enumerate(names)}
    if positions and not any(_NUMBER.fullmatch(name) for name in names):
        ids |= {str(position): position for position in range(len(names))}
    return ids


def encode_row(origin: str, row: Row, names: Sequence[str], ids: dict[str, int]) -> dict:
    """Text and class id.

    Raises:
        InputError: if the label is unknown.
    """
    label = class_id(row.label, ids)
    if label is None:
        positions = f" (or 0 to {len(names) - 1})" if len(ids) > len(names) else ""
        raise InputError(
            f"{origin}: row {row.number} has the unknown label {row.label!r}; known are "
            f"{listed(names)}{positions}. Correct it, or add rows with this label to the training data."
        )
    return {"text": row.text, "label": label}


def features_of(names: list[str]) -> Features:
    return Features({"text": Value("string"), "label": ClassLabel(names=names)})
