"""Rows that are read while they are used, so that a file of any length takes the same memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from datasets import ClassLabel, Dataset, Features, IterableDataset

from hf_vat.errors import InputError

from .files import Source, check_encoding, check_file, csv_records, json_records, listed, local_files, read_file
from .loading import (
    DataArguments,
    Row,
    as_row,
    class_names,
    encode_row,
    features_of,
    find_text_column,
    incomplete_rows,
    label_ids,
    load_sources,
    paper_source,
    sorted_names,
    whole_numbers,
)

_FIRST_ROWS = 100
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


def stream_text_classification(
    args: DataArguments, label_names: Sequence[str] | None = None
) -> dict[str, Dataset | IterableDataset]:
    """[`~hf_vat.data.load_text_classification`] with `streaming`, whose arguments are checked already."""
    if args.paper_dataset is not None:
        splits = _paper_streams(args)
        train = splits.pop("train")
        names = train.features["label"].names
        if label_names is not None and list(label_names) != names:
            raise InputError(f"{args.paper_dataset} has the classes {listed(names)}, not {listed(label_names)}.")
        sources = {split: paper_source(args, split, _in_memory(rows)) for split, rows in splits.items()}
        return {"train": train, **load_sources(sources, args, names)}
    files = _files(args)
    if "train" not in files:
        raise InputError(f"There is no training split, only {listed(files)}. Give a training split or --train_file.")
    head = first_rows(files["train"], args)
    names = list(label_names or head.class_names or _names_in(head, files["train"], args))
    settings = {"args": args, "names": tuple(names), "positions": label_names is not None}  # a list would be shards
    train = IterableDataset.from_generator(
        _encoded_rows, features=features_of(names), gen_kwargs={"path": files.pop("train"), **settings}
    )
    sources = {split: read_file(path, args) for split, path in files.items()}
    return {"train": train, **(load_sources(sources, args, names) if sources else {})}


def stream_texts(args: DataArguments, model) -> Iterator[tuple[str, int | None]]:
    """The texts of the test split, or of the first split that there is, with their class ids while they are read.

    Args:
        args: arguments with `streaming`; the first `max_eval_samples` rows are read.
        model: the classifier whose classes the labels are.

    Returns:
        An iterator over texts and class ids. The id is None where a file has no label column.

    Raises:
        InputError: at once if the source cannot be used, and while iterating if a row cannot.
    """
    names = class_names(model)
    if args.paper_dataset is not None:
        rows = _paper_streams(args)["test"]
        own = rows.features["label"].names
        if set(own) != set(names):
            raise InputError(f"{args.paper_dataset} has the classes {listed(own)}, but the model {listed(names)}.")
        texts = ((row["text"], names.index(own[row["label"]])) for row in rows)
    else:
        files = _files(args)
        path = files.get("test") or next(iter(files.values()))
        head = first_rows(path, args)
        text_column = args.text_column or find_text_column(head, args.label_column)
        head.column(text_column, "--text_column")
        if args.label_column in head.columns:
            texts = ((row["text"], row["label"]) for row in _encoded_rows(path, args, names, positions=True))
        else:
            texts = ((row.get(text_column) or "", None) for row in stream_rows(path, args))
    return islice(texts, args.max_eval_samples)


def first_rows(path: Path, args: DataArguments) -> Source:
    """The columns and first rows of a file, and the class names if it has any.

    Raises:
        InputError: if there is no such file, or it has no rows or cannot be read.
    """
    path = check_file(path)
    records = list(islice(stream_rows(path, args), _FIRST_ROWS))
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: [record.get(name) for record in records] for name in names}
    return Source(str(path), columns, _class_label(path, args.label_column))


def stream_rows(path: Path, args: DataArguments) -> Iterator[dict]:
    """The rows of a CSV, TSV, JSON lines or Parquet file by column name, with every text as it is written.

    Raises:
        InputError: while iterating, if the file cannot be read, naming the row.
    """
    path, number = check_file(path), 0
    rows = {".csv": _csv_rows, ".tsv": _csv_rows, ".parquet": _parquet_rows}.get(path.suffix.lower(), _json_rows)
    check_encoding(args.encoding)
    try:
        for row in rows(path, args):
            number += 1
            yield row
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: what follows row {number} is not {args.encoding}. Save the file as UTF-8, or name its encoding with "
            "--encoding, e.g. --encoding latin-1."
        ) from error
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read after row {number}: {error}.") from error


# Readers


def _csv_rows(path: Path, args: DataArguments) -> Iterator[dict]:
    with open(path, encoding=args.encoding, newline="") as file:
        records = csv_records(chain([file.readline().removeprefix("\ufeff")], file), path)
        header = next(records, [])
        for record in records:
            yield dict(zip(header, record, strict=True))


def _json_rows(path: Path, args: DataArguments) -> Iterator[dict]:
    with open(path, encoding=args.encoding, newline="\n") as file:
        first = file.readline().removeprefix("\ufeff")
        if first.lstrip().startswith("["):
            raise InputError(
                f"{path}: a JSON array has to be read as a whole. Write one object per line, or leave --streaming out."
            )
        yield from json_records((line.removesuffix("\n") for line in chain([first], file)), path)


def _parquet_rows(path: Path, args: DataArguments) -> Iterator[dict]:
    label = _class_label(path, args.label_column)
    with pq.ParquetFile(path, buffer_size=2**16) as file:  # or whole row groups are read
        for batch in file.iter_batches(1000):
            for row in batch.to_pylist():
                if label and isinstance(row[args.label_column], int) and row[args.label_column] >= 0:
                    row[args.label_column] = label[row[args.label_column]]
                yield row


def _class_label(path: Path, label_column: str) -> list[str] | None:
    if path.suffix.lower() != ".parquet":
        return None
    feature = Features.from_arrow_schema(pq.read_schema(path)).get(label_column)
    return feature.names if isinstance(feature, ClassLabel) else None


# Rows as texts and class ids


def _rows(path: Path, head: Source, args: DataArguments) -> Iterator[Row]:
    text_column = args.text_column or find_text_column(head, args.label_column)
    head.column(text_column, "--text_column")
    head.column(args.label_column, "--label_column")
    for number, values in enumerate(stream_rows(path, args), 1):
        row = as_row(head, number, values.get(text_column), values.get(args.label_column), text_column)
        missing = row.missing(text_column, args.label_column)
        if missing and not args.drop_empty:
            raise InputError(incomplete_rows(head.origin, [missing]))
        if not missing:
            yield row


def _encoded_rows(path: Path, args: DataArguments, names: Sequence[str], positions: bool) -> Iterator[dict]:
    head, ids = first_rows(path, args), label_ids(names, positions)
    for row in _rows(path, head, args):
        yield encode_row(head.origin, row, names, ids)


def _names_in(head: Source, path: Path, args: DataArguments) -> list[str]:
    """The labels of the whole file, of which no more is kept than the first row of each."""
    firsts: dict = {}
    for row in _rows(path, head, args):
        firsts.setdefault((type(row.label), row.label), row)
        if len(firsts) > _MOST_CLASSES:
            raise InputError(
                f"{head.origin}: column {args.label_column!r} has more than {_MOST_CLASSES:,} different labels, the last of "
                f"them {row.label!r} in row {row.number}. Name the column of the classes with --label_column."
            )
    names = sorted_names({row.label for row in whole_numbers(head.origin, list(firsts.values()))})
    if len(names) < 2:
        raise InputError(
            f"{head.origin}: all rows have the label {listed(names)!r}. A classifier needs at least two classes in the "
            "training data; check the file and --label_column."
        )
    return names


def _files(args: DataArguments) -> dict[str, Path]:
    files = local_files(args)
    if not files:
        raise InputError(
            f"--streaming reads local files and --paper_dataset, not {args.dataset_name!r} from the Hub. Give files, or "
            "leave --streaming out."
        )
    return files


def _paper_streams(args: DataArguments) -> dict[str, IterableDataset]:
    from .registry import load_paper_dataset  # which imports this module

    return dict(load_paper_dataset(args.paper_dataset, args.data_dir, args.split_seed, streaming=True))


def _in_memory(rows: IterableDataset) -> Dataset:
    return Dataset.from_list(list(rows), features=rows.features)
