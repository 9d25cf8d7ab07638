"""The rows of data files, one after the other, with every text as it is written.

CSV, TSV and JSON lines are read here and not by `datasets`, whose readers guess types for each file: "007" would become
7, and the words "None" and "NA" missing values. Parquet files and Excel workbooks have types of their own.
"""

import codecs
import importlib.util
import json
import logging
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Features

from hf_vat.errors import InputError, check_path, import_extra, shown

from .arguments import DELIMITERS, DataArguments, delimiter_of
from .compression import COMPRESSED, UNREADABLE, file_type, first_undecodable, is_compressed, open_bytes, open_text

logger = logging.getLogger(__name__)

_LONGEST_TEXT = 2**27  # characters; those of an unclosed quotation mark are read up to there
_FIRST_LINES = 100  # from which the delimiter is found
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n?', re.IGNORECASE)  # Excel's first line
_CONTROL = re.compile("[\x80-\x9f]")
_NOT_IN_WINDOWS = "\x81\x8d\x8f\x90\x9d"  # bytes that cp1252 does not have
_TAKEN_FOR_WINDOWS = ("iso8859-1", "iso8859-15")  # encodings that people name when it is cp1252


def _own_csv():
    """A csv module whose limit for the length of a field, a setting of the module, is nobody else's."""
    spec = importlib.util.find_spec("_csv")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.field_size_limit(_LONGEST_TEXT)  # the usual 131,072 characters are too few
    return module


_csv = _own_csv()


def stream_rows(path: Path, args: DataArguments, columns: Sequence[str] | None = None) -> Iterator[dict]:
    """The rows of a file by column name, few of them in memory at a time.

    Args:
        args: the encoding and delimiter; the label column, whose ids are replaced by names if a Parquet file has those;
            and whether to stream, as then a JSON file cannot be one array.
        columns: those that are needed, if that is known; of a Parquet file no others are read.

    Raises:
        InputError: if there is no such file, and while iterating if it cannot be read, naming the row.
    """
    number = 0
    try:
        path = check_file(path)
        _check_encoding(args.encoding)
        for row in _PARSERS[file_type(path)](path, args, columns):
            number += 1
            _check_characters(path, number, row, args.encoding)
            yield row
    except UnicodeError as error:
        raise InputError(_wrong_encoding(path, args.encoding)) from error
    except (*UNREADABLE, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read after row {number}: {str(error).rstrip('.')}.") from error


def class_label(path: Path, label_column: str) -> list[str] | None:
    """The class names of a Parquet file's label column, if it has any."""
    if file_type(path) != ".parquet":
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
    path = check_path(path).resolve()
    kind = file_type(path)
    if kind not in _PARSERS:
        raise InputError(
            f"{path}: files of type {kind!r} cannot be read; allowed are {listed(_PARSERS)}, and those of text also "
            f"compressed ({listed(COMPRESSED)})."
        )
    if is_compressed(path) and kind not in _OF_TEXT:
        raise InputError(
            f"{path}: {kind} files are compressed as they are. Unpack it, and give the file that is in it."
        )
    if not path.is_file():
        if not path.parent.is_dir():
            raise InputError(f"{path}: there is no folder {path.parent}. Check the path.")
        present = sorted(other.name for other in path.parent.iterdir())
        raise InputError(f"{path}: no such file. The folder contains: {listed(present) or 'nothing'}.")
    return path


def listed(items, limit: int = 20) -> str:
    items = list(items)
    more = f", … ({len(items)} in all)" if len(items) > limit else ""
    return ", ".join(" ".join(str(item).split()) for item in items[:limit]) + more


# Formats


def _csv_rows(path: Path, args: DataArguments, columns: Sequence[str] | None) -> Iterator[dict]:
    with open_text(path, args.encoding, newline="") as file:
        first = file.readline().removeprefix("\ufeff")
        separator = _SEPARATOR_LINE.fullmatch(first)
        head = [*([] if separator else [first]), *islice(file, _FIRST_LINES)]
        if args.delimiter is not None:
            delimiter = delimiter_of(args.delimiter)
        else:
            delimiter = separator[1] if separator else _find_delimiter(head, path, args)
        records = _csv_records(chain(head, file), path, delimiter, 1 if separator else 0)
        header = next(records, [])
        for record in records:
            yield dict(zip(header, record, strict=True))


def _find_delimiter(head: list[str], path: Path, args: DataArguments) -> str:
    """The usual delimiter of the file's type; where that leaves a single column, the one that the columns have."""
    usual = "\t" if file_type(path) == ".tsv" else ","
    if len(_first_records(head, usual)[0]) != 1:
        return usual
    wanted, found = {"text", args.text_column, args.label_column}, []
    for name, delimiter in DELIMITERS.items():
        header, *rows = _first_records(head, delimiter)
        if len(header) > 1 and (
            wanted.intersection(cell.strip() for cell in header) or all(len(row) == len(header) for row in rows)
        ):
            found.append(name)
    if len(found) > 1:
        raise InputError(
            f"{path}: it is not clear what separates the columns, {listed(found)}; name it with --delimiter."
        )
    if not found:
        return usual
    _say_once("%s: the columns are separated by %s", path, found[0])
    return DELIMITERS[found[0]]


def _first_records(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The header and rows in some lines, of which the last may end amid a record; at least one, which may be empty."""
    records = []
    with suppress(_csv.Error):  # which is told when the file is read
        for record in _csv.reader(lines, delimiter=delimiter):
            records += [record] if record else []
    return records[:-1] if len(records) > 2 else records or [[]]


@cache
def _say_once(message: str, *arguments) -> None:
    """A file is opened for its class names and for each epoch."""
    logger.info(message, *arguments)


def _csv_records(lines: Iterable[str], path: Path, delimiter: str, skipped: int) -> Iterator[list[str]]:
    """The column names, then the cells of each row, as many as there are names; `skipped` lines came before."""
    reader = _csv.reader(lines, delimiter=delimiter, strict=True)
    advice = (
        f"Put texts that contain {delimiter!r} into quotation marks, or say with --delimiter what separates the columns"
    )
    header, row = None, 0
    while True:
        try:
            record = next(reader, None)
        except _csv.Error as error:
            raise InputError(
                f"{path}, line {reader.line_num + skipped}: {error}. A text that begins with a quotation mark must be put "
                'into quotation marks, and those inside it doubled ("").'
            ) from error
        if record is None:
            return
        if header is None:
            if record:
                header = _checked_header(record, path)
                yield header
            continue
        if not record and len(header) > 1:  # a blank line; of a single column it is an empty text
            continue
        row += 1
        yield _checked_row(record or [""], row, header, path, advice)


def _checked_header(names: Iterable[str], path: Path) -> list[str]:
    header = [name.strip() for name in names]
    twice = [name for name, count in Counter(header).items() if name and count > 1]
    if twice:
        raise InputError(f"{path}: the header has {listed(twice)} more than once; each column needs its own name.")
    return header


def _checked_row(cells: list, row: int, header: list[str], path: Path, advice: str) -> list:
    if len(cells) != len(header):
        raise InputError(
            f"{path}: row {row} has {len(cells)} cells, but the header has {len(header)} ({listed(header)}). {advice}."
        )
    return cells


def _excel_rows(path: Path, args: DataArguments, columns: Sequence[str] | None) -> Iterator[dict]:
    """The rows of the first sheet, without the empty ones at its end."""
    openpyxl = import_extra("openpyxl", "excel")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (KeyError, ValueError, zipfile.BadZipFile, openpyxl.utils.exceptions.InvalidFileException) as error:
        raise InputError(f"{path}: not an Excel workbook ({error}). Write the file anew.") from error
    try:
        if not book.worksheets:
            return
        sheet = book.worksheets[0]
        if len(book.worksheets) > 1:
            _say_once("%s: the first sheet, %s, is read", path, sheet.title)
        sheet.reset_dimensions()  # some programs write wrong ones
        header, row, empty = None, 0, 0
        for cells in sheet.iter_rows(values_only=True):
            filled = max((place for place, cell in enumerate(cells, 1) if cell is not None), default=0)
            if header is None:
                if filled:
                    header = _checked_header(("" if cell is None else str(cell) for cell in cells[:filled]), path)
                continue
            if not filled:
                empty += len(header) == 1  # as in a CSV file
                continue
            for _ in range(empty):
                row += 1
                yield dict.fromkeys(header)
            row, empty = row + 1, 0
            cells = [*cells[:filled], *[None] * (len(header) - filled)]
            yield dict(zip(header, _checked_row(cells, row, header, path, "Give each column a name"), strict=True))
    finally:
        book.close()


def _json_rows(path: Path, args: DataArguments, columns: Sequence[str] | None) -> Iterator[dict]:
    with open_text(path, args.encoding, newline="\n") as file:
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
    """The objects of JSON lines, or of one array that begins in line `first_line`; numbers as they are written."""
    constants = {"NaN": None, "Infinity": "inf", "-Infinity": "-inf"}
    decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=constants.get).decode
    row = 0
    for line, document in enumerate(documents, first_line):
        if not document.strip():
            continue
        try:
            value = decode(document)
        except RecursionError as error:
            raise InputError(f"{path}, line {line}: the JSON is nested too deeply to be a text and a label.") from error
        except json.JSONDecodeError as error:
            raise InputError(
                f"{path}, line {line + error.lineno - 1}: {error.msg}. Write one JSON object per line, such as "
                '{"text": "…", "label": "…"}.'
            ) from error
        for record in value if isinstance(value, list) else [value]:
            row += 1
            if not isinstance(record, dict):
                raise InputError(
                    f'{path}: row {row} is {shown(record)}, not an object such as {{"text": "…", "label": "…"}}.'
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


_OF_TEXT = {".csv": _csv_rows, ".tsv": _csv_rows, ".json": _json_rows, ".jsonl": _json_rows}
_PARSERS = {**_OF_TEXT, ".parquet": _parquet_rows, ".xlsx": _excel_rows}
SUFFIXES = tuple(_PARSERS)


# Encodings


def _check_encoding(encoding: str) -> None:
    try:
        "".encode(encoding)
    except (LookupError, ValueError) as error:
        raise InputError(
            f"Encoding {shown(encoding)} is unknown; try 'utf-8', 'cp1252', 'latin-1' or 'utf-16'."
        ) from error


def _wrong_encoding(path: Path, encoding: str) -> str:
    place = first_undecodable(path, encoding)
    what = "the end" if place is None else f"byte {place} (counted from 0)"
    with open_bytes(path) as file:
        utf_16 = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    example = (
        ", here --encoding utf-16" if utf_16 else ", e.g. --encoding cp1252 for files of Windows in Western Europe"
    )
    return f"{path}: {what} is not {encoding}. Save the file as UTF-8, or name its encoding with --encoding{example}."


def _check_characters(path: Path, number: int, row: dict, encoding: str) -> None:
    """Look for control characters that are quotation marks and dashes of Windows, read as if they were Latin-1.

    They separate words: "don\\x92t" would be "don" and "t".
    """
    for cell in row.values():
        found = _CONTROL.search(cell) if isinstance(cell, str) and not cell.isascii() else None
        if found is None:
            continue
        named = f"row {number} has the control character U+00{ord(found[0]):02X}, which separates words"
        if (
            file_type(path) in _OF_TEXT
            and codecs.lookup(encoding).name in _TAKEN_FOR_WINDOWS
            and found[0] not in _NOT_IN_WINDOWS
        ):
            with suppress(UnicodeError):
                cell.encode(encoding).decode("utf-8")
                raise InputError(f"{path}: {named}. The file is UTF-8: leave --encoding {encoding} out.")
            shown = found[0].encode("latin-1").decode("cp1252")
            raise InputError(
                f"{path}: {named}. In the encoding of Windows it is {shown!r}: give --encoding cp1252, not {encoding}."
            )
        _warn_of_controls(path)
        return


@cache
def _warn_of_controls(path: Path) -> None:
    logger.warning(
        "%s: texts hold control characters (U+0080 to U+009F), which separate words. Mostly they are quotation marks and "
        "dashes of Windows that were once read as Latin-1: decode the original as cp1252.",
        path,
    )
