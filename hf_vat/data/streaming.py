"""Rows that are read while they are used, so that a file of any length takes the same memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import torch
from datasets import IterableDataset

from hf_vat.errors import InputError

from .arguments import DataArguments
from .files import RawSplit, first_rows
from .formats import stream_rows
from .labels import (
    DROP_EMPTY,
    NO_ROW,
    CompleteRow,
    Row,
    as_row,
    complete_rows,
    encode_rows,
    features_of,
    find_text_column,
    incomplete_rows,
    names_of,
)
from .splits import one_class

_MOST_CLASSES = 1000


class StreamedEpochs(torch.utils.data.IterableDataset):
    """Epochs of a fixed number of rows, cut from a stream whose length is not known.

    Each epoch goes on where the one before it ended. After its last row the stream begins again, in another order if it
    is shuffled. An epoch out of turn, as when a run is resumed, is found by reading from the beginning.

    Args:
        rows: an `IterableDataset`.
        size: rows of an epoch.
    """

    def __init__(self, rows, size: int):
        self.rows, self.size = rows, size
        self._epoch, self._position, self._endless = 0, 0, self._passes()

    def __len__(self) -> int:
        return self.size

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that is read next, counted from 0."""
        self._epoch = epoch

    def __iter__(self) -> Iterator:
        start = self._epoch * self.size
        if self._position != start:
            self._endless = islice(self._passes(), start, None)
        self._position = start
        for row in islice(self._endless, self.size):
            self._position += 1
            yield row

    def _passes(self) -> Iterator:
        for number in count():
            if hasattr(self.rows, "set_epoch"):
                self.rows.set_epoch(number)
            row = None
            for row in self.rows:
                yield row
            if row is None:
                raise InputError("The training stream has no rows; give data with at least one row.")


@dataclass(frozen=True)
class FileRows:
    """The rows of a file, read anew by every iteration, also those without a text or a label.

    Attributes:
        head: the file's columns and first rows.
        args: how the file is read, and its label column.
        text_column: the column with the texts.
    """

    path: Path
    head: RawSplit
    args: DataArguments
    text_column: str

    @classmethod
    def of(cls, path: Path, args: DataArguments) -> FileRows:
        """
        Raises:
            InputError: if the file cannot be used or has no such text column.
        """
        head = first_rows(path, args)
        return cls(path, head, args, find_text_column(head, args))

    @property
    def labelled(self) -> bool:
        """Whether there is a label column."""
        return self.args.label_column in self.head.columns

    def __iter__(self) -> Iterator[Row]:
        self.head.column(self.args.label_column, "--label_column")
        for number, (text, label) in enumerate(self.cells(), 1):
            yield as_row(self.head, number, text, label, self.text_column)

    def cells(self) -> Iterator[tuple]:
        """Text and label of each row as they are found."""
        columns = [self.text_column, *([self.args.label_column] if self.labelled else [])]
        for row in stream_rows(self.path, self.args, columns):
            yield row.get(self.text_column), row.get(self.args.label_column) if self.labelled else None

    def complete(self, names: Sequence[str] | None = None) -> Iterator[CompleteRow]:
        """The rows with a text and a label; see [`complete_rows`]."""
        return complete_rows(self.head.origin, self, names, self.text_column, self.args)


def class_names_of(rows: FileRows) -> list[str]:
    """The classes of a file: those that it names itself, or the labels of all rows.

    Of the rows no more is kept than their labels.

    Raises:
        InputError: if a row that is read cannot be used, or there are fewer than two classes, or more than 1,000.
    """
    if rows.head.class_names:
        check_streamed_classes(rows, rows.head.class_names)
        return rows.head.class_names
    names, missing = names_of(rows.head.origin, _of_few_classes(rows))
    if missing and not rows.args.drop_empty:
        place = Row(missing.number, missing.text, None).missing(rows.text_column, rows.args.label_column)
        raise InputError(incomplete_rows(rows.head.origin, [place], DROP_EMPTY))
    if not names:
        raise InputError(f"{rows.head.origin}: {NO_ROW}")
    if len(names) < 2:
        raise InputError(one_class(rows.head.origin, names[0]))
    return names


def _of_few_classes(rows: FileRows) -> Iterator[CompleteRow]:
    labels = set()
    for row in rows.complete():
        labels.add(row.label)
        if len(labels) > _MOST_CLASSES:
            raise InputError(
                f"{rows.head.origin}: column {rows.args.label_column!r} has more than {_MOST_CLASSES:,} different labels, the "
                f"last of them {row.label!r} in row {row.number}. Name the column of the classes with --label_column."
            )
        yield row


def check_streamed_classes(rows: FileRows, names: Sequence[str]) -> None:
    """Refuse training data of a single class; read are the rows up to the first of another one."""
    first = None
    for row in rows.complete(names):
        first = row.label if first is None else first
        if row.label != first:
            return
    raise InputError(f"{rows.head.origin}: {NO_ROW}" if first is None else one_class(rows.head.origin, first))


def stream_encoded(rows: FileRows, names: Sequence[str], positions: bool) -> IterableDataset:
    """The rows of a file with columns `text` and `label`.

    Args:
        positions: whether 0, 1, … in the file are positions in `names`.
    """
    settings = {"rows": rows, "names": tuple(names), "positions": positions}  # a list would be shards
    return IterableDataset.from_generator(_encoded, features=features_of(list(names)), gen_kwargs=settings)


def _encoded(rows: FileRows, names: Sequence[str], positions: bool) -> Iterator[dict]:
    yield from encode_rows(rows.head.origin, rows.complete(names), names, positions)
