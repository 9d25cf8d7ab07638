"""Texts to explain, whole or already split into words, with or without the class ids of a model."""

import logging
from collections.abc import Iterable, Iterator, Sequence

from hf_vat.errors import InputError, shown
from hf_vat.models.words import PAIR

from .arguments import DataArguments
from .files import RawSplit
from .formats import listed
from .labels import MISSING, Row, as_label, as_pair, as_text, class_id, complete_rows, encode_rows, label_ids

logger = logging.getLogger(__name__)


def texts_with_ids(
    source: RawSplit,
    cells: Iterable[tuple],
    args: DataArguments,
    text_column: str,
    names: Sequence[str],
    labelled: bool,
) -> Iterator[tuple[str | list[str], int | None]]:
    """Texts, lists of words, or pairs of these, with the class ids of a model.

    Args:
        cells: text, of pairs second text, and label of each row, as they are found.
        args: the label column, and whether rows are left out.
        text_column: the column that the texts are from.
        names: the class names of the model.
        labelled: whether each row needs a text and a label. If not, a missing text is empty, and the id of a label that is
            missing or unknown None; the first that is unknown is told in the log.

    Raises:
        InputError: while iterating, if a text cannot be used, or a label that is needed.
    """
    read = _read(source.origin, cells, text_column)
    if not labelled:
        return _unlabelled(source, read, args, names)
    rows = (Row(number, text, as_label(source, number, label)) for number, text, label in read)
    complete = complete_rows(source.origin, rows, names, text_column, args)
    return ((_as_text(row), row["label"]) for row in encode_rows(source.origin, complete, names, positions=True))


def _as_text(row: dict):
    return {key: row[key] for key in PAIR} if "text_pair" in row else row["text"]


def _unlabelled(source: RawSplit, rows: Iterable[tuple], args: DataArguments, names: Sequence[str]) -> Iterator[tuple]:
    ids, left_out, told = label_ids(names, positions=True), 0, False
    for number, text, label in rows:
        if text is None and args.drop_empty:
            left_out += 1
            continue
        found, known = _label_or_none(source, number, label, ids)
        if not known and not told:
            told = True
            logger.warning(
                "%s: row %d has the label %s, and the classes of the model are %s; labels that are none of these are left "
                "out",
                *(source.origin, number, shown(label), listed(names)),
            )
        yield text or "", found
    if left_out:
        logger.warning("%s: rows without a text, left out: %d", source.origin, left_out)


def _label_or_none(source: RawSplit, number: int, value: object, ids: dict[str, int]) -> tuple[int | None, bool]:
    """The class id if there is one, and whether the label is one that the model knows, or missing."""
    try:
        label = as_label(source, number, value)
    except InputError:
        return None, False
    if label is None or (label.lower() in MISSING and label not in ids):
        return None, True
    found = class_id(label, ids)
    return found, found is not None


def _read(origin: str, cells: Iterable[tuple], text_column: str) -> Iterator[tuple]:
    """Number, text and label of each row: texts as [`as_text`] gives them, or where each is a list of words, these; of two
    texts a pair.

    Raises:
        InputError: while iterating, if a text cannot be used, or is split into words where those before are not.
    """
    split: bool | None = None
    for number, (given, label) in enumerate(cells, 1):
        texts: list = []
        for cell in given if isinstance(given, tuple) else [given]:
            if cell is None or cell != cell:  # NaN
                texts.append(None)
                continue
            if split not in (None, isinstance(cell, list)):
                raise InputError(
                    f"{origin}: row {number} of column {text_column!r} is {shown(cell)}, but those before are "
                    f"{'lists of words' if split else 'texts'}. Write all rows in the same way."
                )
            split = isinstance(cell, list)
            texts.append(
                _words(origin, number, cell, text_column) if split else as_text(origin, number, cell, text_column)
            )
        yield number, as_pair(texts), label


def _words(origin: str, number: int, cell: list, text_column: str) -> list[str] | None:
    words = [as_text(origin, number, word, text_column) for word in cell]
    if None in words:
        raise InputError(f"{origin}: row {number} has the word {cell[words.index(None)]!r}; a word must be visible.")
    return words or None  # type: ignore[return-value]  # none of them is None
