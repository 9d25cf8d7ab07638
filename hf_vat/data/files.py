"""Read the splits of a data set, with every text as it is written.

CSV, TSV and JSON lines are read here and not by `datasets`, whose readers guess types for each file: "007" would become
7, and the words "None" and "NA" missing values. Hub data sets and Parquet files have types of their own.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import logging
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, load_dataset
from datasets.exceptions import DatasetsError

from hf_vat.errors import InputError

if TYPE_CHECKING:
    from .loading import DataArguments

logger = logging.getLogger(__name__)

LOCAL_FILES = "local files (--train_file, --validation_file, --test_file: .csv, .tsv, .json, .jsonl or .parquet)"
_LONGEST_TEXT = 2**27  # characters; those of an unclosed quotation mark are read up to there
_SPLIT_NAMES = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}


class Number(str):
    """A number in a source that has types, kept as it is written there."""


@dataclass
class Source:
    """A split before any check: where it is from, its columns, and the names of the label column if it has any."""

    origin: str
    columns: dict[str, Sequence]
    class_names: list[str] | None = None

    def __post_init__(self):
        if not any(len(values) for values in self.columns.values()):
            raise InputError(f"{self.origin}: no rows. Give data with at least one row of text and label.")

    def column(self, name: str, option: str) -> Sequence:
        if name not in self.columns:
            raise InputError(
                f"{self.origin}: no column {name!r}; found {listed(self.columns)}. Name the column with {option}."
            )
        return self.columns[name][:]


def read_sources(args: DataArguments) -> dict[str, Source]:
    files = local_files(args)
    return {split: read_file(file, args) for split, file in files.items()} if files else _read_hub(args)


def local_files(args: DataArguments) -> dict[str, Path]:
    """The files of the splits; none for a data set on the Hub."""
    if args.dataset_name is None:
        files = {"train": args.train_file, "validation": args.validation_file, "test": args.test_file}
        return {split: Path(file).expanduser() for split, file in files.items() if file}
    folder = Path(args.dataset_name).expanduser()
    return split_files(folder) if folder.is_dir() else {}


def split_files(folder: Path) -> dict[str, Path]:
    """The files of a folder that are named like splits; none if it has no CSV, TSV or JSON files."""
    readable = sorted(path for path in folder.iterdir() if path.suffix.lower() in _READERS)
    files = {}
    for split, names in _SPLIT_NAMES.items():
        found = [path for path in readable if path.stem.lower() in names]
        if len(found) > 1:
            raise InputError(
                f"{folder.resolve()}: {listed(path.name for path in found)} could each be the {split} split. "
                "Keep one of them, or name the files with --train_file, --validation_file and --test_file."
            )
        if found:
            files[split] = found[0]
    if not files and any(path.suffix.lower() != ".parquet" for path in readable):
        raise InputError(
            f"{folder.resolve()}: no file is named like a split (train, validation or dev, test); found "
            f"{listed(path.name for path in readable)}. Rename them, or use --train_file."
        )
    return files


def _read_hub(args: DataArguments) -> dict[str, Source]:
    name = args.dataset_name
    try:
        loaded = load_dataset(name, args.dataset_config_name, revision=args.dataset_revision)
    except (OSError, RuntimeError, ValueError, DatasetsError) as error:
        reason = textwrap.shorten(str(error), 300).rstrip(".")
        no_folder = "" if Path(name).is_dir() else ", and there is no such folder"
        raise InputError(
            f"Data set {name!r} cannot be loaded: {reason}{no_folder}. Check the name and the connection, or use "
            f"{LOCAL_FILES}."
        ) from error
    sources = {}
    for split, names in _SPLIT_NAMES.items():
        found = next((candidate for candidate in names if candidate in loaded), None)
        if found is None:
            continue
        source = _typed_source(f"{name}, split {found!r}", loaded[found], args.label_column)
        labels = source.columns.get(args.label_column, ())
        if split != "train" and len(labels) and all(label is None or label == -1 for label in labels):
            logger.warning("%s has no labels and is left out.", source.origin)
            continue
        sources[split] = source
    if not sources:
        raise InputError(
            f"Data set {name!r} has no train, validation or test split with labels; found {listed(loaded)}."
        )
    return sources


def read_file(path: Path, args: DataArguments) -> Source:
    path = check_file(path)
    try:
        return _READERS[path.suffix.lower()](path, args)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}.") from error


def check_file(path: Path) -> Path:
    """The whole path of a file that is there and of a type that is read."""
    path = path.resolve()
    if path.suffix.lower() not in _READERS:
        raise InputError(f"{path}: files of type {path.suffix!r} cannot be read; allowed are {listed(_READERS)}.")
    if not path.is_file():
        if not path.parent.is_dir():
            raise InputError(f"{path}: there is no folder {path.parent}. Check the path.")
        present = sorted(other.name for other in path.parent.iterdir())
        raise InputError(f"{path}: no such file. The folder contains: {listed(present) or 'nothing'}.")
    return path


def _read_csv(path: Path, args: DataArguments) -> Source:
    lines = io.StringIO(_read_text(path, args.encoding), newline="")
    header, *records = list(csv_records(lines, path)) or [[]]
    return Source(str(path), dict(zip(header, zip(*records, strict=True), strict=False)))


def csv_records(lines: Iterable[str], path: Path) -> Iterator[list[str]]:
    """The column names, then the cells of each row, as many as there are names."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header, row = None, 0
    while True:
        usual_limit = csv.field_size_limit(_LONGEST_TEXT)  # the usual 131,072 characters are too few
        try:
            record = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f"{path}, line {reader.line_num}: {error}. A text that begins with a quotation mark must be put into "
                'quotation marks, and those inside it doubled ("").'
            ) from error
        finally:
            csv.field_size_limit(usual_limit)
        if record is None:
            return
        if not record:
            continue
        if header is None:
            header = record = [name.strip() for name in record]
            twice = [name for name, count in Counter(header).items() if name and count > 1]
            if twice:
                raise InputError(
                    f"{path}: the header has {listed(twice)} more than once; each column needs its own name."
                )
        else:
            row += 1
        if len(record) != len(header):
            raise InputError(
                f"{path}: row {row} has {len(record)} cells, but the header has {len(header)} ({listed(header)}). Put "
                f"texts that contain {delimiter!r} into quotation marks."
            )
        yield record


def _read_json(path: Path, args: DataArguments) -> Source:
    content = _read_text(path, args.encoding)
    is_array = content.lstrip().startswith("[")
    records = list(json_records([content] if is_array else content.split("\n"), path))
    names = dict.fromkeys(name for record in records for name in record)
    return Source(str(path), {name: [record.get(name) for record in records] for name in names})


def json_records(documents: Iterable[str], path: Path) -> Iterator[dict]:
    """The objects of JSON lines, or of one array."""
    decode = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=lambda _: None).decode
    row = 0
    for line, document in enumerate(documents, 1):
        if not document.strip():
            continue
        try:
            value = decode(document)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{path}, line {line + error.lineno - 1}: {error.msg}. Write one JSON object per line, such as "
                '{"text": "…", "label": "…"}.'
            ) from error
        for record in value if isinstance(value, list) else [value]:
            row += 1
            if not isinstance(record, dict):
                raise InputError(
                    f'{path}: row {row} is {record!r}, not an object such as {{"text": "…", "label": "…"}}.'
                )
            yield record


def _read_parquet(path: Path, args: DataArguments) -> Source:
    try:
        table = pq.ParquetFile(path).read()
    except pa.ArrowException as error:
        raise InputError(f"{path}: not a Parquet file ({str(error).rstrip('.')}). Write the file anew.") from error
    return _typed_source(str(path), Dataset(table), args.label_column)


def _typed_source(origin: str, dataset: Dataset, label_column: str) -> Source:
    columns = {name: dataset[name] for name in dataset.column_names}
    feature = dataset.features.get(label_column)
    if not isinstance(feature, ClassLabel):
        return Source(origin, columns)
    columns[label_column] = [
        label if label is None or label < 0 else feature.names[label] for label in dataset[label_column]
    ]
    return Source(origin, columns, feature.names)


def _read_text(path: Path, encoding: str) -> str:
    check_encoding(encoding)
    try:
        return path.read_bytes().decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.start} (counted from 0) is not {encoding}. Save the file as UTF-8, or name its encoding "
            "with --encoding, e.g. --encoding latin-1."
        ) from error


def check_encoding(encoding: str) -> None:
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise InputError(f"Encoding {encoding!r} is unknown; try 'utf-8', 'latin-1', 'cp1252' or 'utf-16'.") from error


_READERS = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".json": _read_json,
    ".jsonl": _read_json,
    ".parquet": _read_parquet,
}


def listed(items, limit: int = 20) -> str:
    items = list(items)
    more = f", … ({len(items)} in all)" if len(items) > limit else ""
    return ", ".join(str(item) for item in items[:limit]) + more
