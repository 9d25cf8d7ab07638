"""The rows of CSV, TSV, JSON lines and Parquet files, one after the other, with every text as it is written.

CSV, TSV and JSON lines are read here and not by `datasets`, whose readers guess types for each file: "007" would become
7, and the words "None" and "NA" missing values. Parquet files have types of their own.
"""

import codecs
import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Features

from hf_vat.errors import InputError

from .arguments import DataArguments

_LONGEST_TEXT = 2**27  # characters; those of an unclosed quotation mark are read up to there


class Number(str):
    """A number in a source that has types, kept as it is written there."""


def stream_rows(path: Path, args: DataArguments, columns: Sequence[str] | None = None) -> Iterator[dict]:
    """The rows of a file by column name, few of them in memory at a time.

    Args:
        args: the encoding; the label column, whose ids are replaced by names if a Parquet file has those; and whether
            to stream, as then a JSON file cannot be one array.
        columns: those that are needed, if that is known; of a Parquet file no others are read.

    Raises:
        InputError: if there is no such file, and while iterating if it cannot be read, naming the row.
    """
    path, number = check_file(path), 0
    _check_encoding(args.encoding)
    try:
        for row in _PARSERS[path.suffix.lower()](path, args, columns):
            number += 1
            yield row
    except UnicodeError as error:
        raise InputError(
            f"{path}: {_undecodable(path, args.encoding)} is not {args.encoding}. Save the file as UTF-8, or name its "
            "encoding with --encoding, e.g. --encoding latin-1."
        ) from error
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read after row {number}: {str(error).rstrip('.')}.") from error


def class_label(path: Path, label_column: str) -> list[str] | None:
    """The class names of a Parquet file's label column, if it has any."""
    if path.suffix.lower() != ".parquet":
        return None
    try:
        feature = Features.from_arrow_schema(pq.read_schema(path)).get(label_column)
    except pa.ArrowException as error:
        raise InputError(f"{path}: not a Parquet file ({str(error).rstrip('.')}). Write the file anew.") from error
    return feature.names if isinstance(feature, ClassLabel) else None


def class_name(label: object, names: Sequence[str] | None) -> object:
    """A label as it is, or the name of the class whose id it is; ids below 0 have none."""
    return names[label] if names and isinstance(label, int) and label >= 0 else label


def check_file(path: Path) -> Path:
    """The whole path of a file that is there and of a type that is read."""
    path = path.resolve()
    if path.suffix.lower() not in _PARSERS:
        raise InputError(f"{path}: files of type {path.suffix!r} cannot be read; allowed are {listed(_PARSERS)}.")
    if not path.is_file():
        if not path.parent.is_dir():
            raise InputError(f"{path}: there is no folder {path.parent}. Check the path.")
        present = sorted(other.name for other in path.parent.iterdir())
        raise InputError(f"{path}: no such file. The folder contains: {listed(present) or 'nothing'}.")
    return path


def listed(items, limit: int = 20) -> str:
    items = list(items)
    more = f", … ({len(items)} in all)" if len(items) > limit else ""
    return ", ".join(str(item) for item in items[:limit]) + more


# Formats


def _csv_rows(path: Path, args: DataArguments, columns: Sequence[str] | None) -> Iterator[dict]:
    with open(path, encoding=args.encoding, newline="") as file:
        records = _csv_records(chain([file.readline().removeprefix("\ufeff")], file), path)
        header = next(records, [])
        for record in records:
            yield dict(zip(header, record, strict=True))


def _csv_records(lines: Iterable[str], path: Path) -> Iterator[list[str]]:
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


def _json_rows(path: Path, args: DataArguments, columns: Sequence[str] | None) -> Iterator[dict]:
    with open(path, encoding=args.encoding, newline="\n") as file:
        lines = enumerate(chain([file.readline().removeprefix("\ufeff")], file), 1)
        number, first = next(((number, line) for number, line in lines if line.strip()), (1, ""))
        if not first.lstrip().startswith("["):
            yield from _json_records((line.removesuffix("\n") for line in chain([first], file)), path, number)
        elif not args.streaming:
            yield from _json_records([first + file.read()], path, number)
        else:
            raise InputError(
                f"{path}: a JSON array has to be read as a whole. Write one object per line, or leave --streaming out."
            )


def _json_records(documents: Iterable[str], path: Path, first_line: int) -> Iterator[dict]:
    """The objects of JSON lines, or of one array that begins in line `first_line`."""
    decode = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=lambda _: None).decode
    row = 0
    for line, document in enumerate(documents, first_line):
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


def _parquet_rows(path: Path, args: DataArguments, columns: Sequence[str] | None) -> Iterator[dict]:
    names = class_label(path, args.label_column)
    with pq.ParquetFile(path, buffer_size=2**16) as file:  # or whole row groups are read
        for batch in file.iter_batches(1000, columns=columns):
            for row in batch.to_pylist():
                if names and args.label_column in row:
                    row[args.label_column] = class_name(row[args.label_column], names)
                yield row


_PARSERS = {
    ".csv": _csv_rows,
    ".tsv": _csv_rows,
    ".json": _json_rows,
    ".jsonl": _json_rows,
    ".parquet": _parquet_rows,
}
SUFFIXES = tuple(_PARSERS)


def _check_encoding(encoding: str) -> None:
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise InputError(f"Encoding {encoding!r} is unknown; try 'utf-8', 'latin-1', 'cp1252' or 'utf-16'.") from error


def _undecodable(path: Path, encoding: str) -> str:
    """The place of the first byte that cannot be decoded: what reads by line and block does not know it."""
    decoder, start = codecs.getincrementaldecoder(encoding)(), 0
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(2**16), b""):
            kept = len(decoder.getstate()[0])  # half a character
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                return f"byte {start - kept + error.start} (counted from 0)"
            start += len(block)
    return "the end"
