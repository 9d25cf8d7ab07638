"""The splits of a data set as they are found: files, folders of files, the Hub."""

import logging
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from datasets import ClassLabel, Dataset, load_dataset
from datasets.exceptions import DatasetsError

from hf_vat.errors import InputError, check_path

from .arguments import DELIMITERS, LOCAL_FILES, DataArguments
from .compression import file_stem, file_type
from .formats import SUFFIXES, check_file, class_label, class_name, listed, stream_rows

logger = logging.getLogger(__name__)

_FIRST_ROWS = 100
_MOST_ENTRIES = 10_000  # of a folder that is read by datasets
_SPLIT_NAMES = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}


@dataclass
class RawSplit:
    """A split before any check: where it is from, its columns, and the names of the label column if it has any."""

    origin: str
    columns: Mapping[str, Sequence]
    class_names: list[str] | None = None

    def __post_init__(self):
        if not any(len(values) for values in self.columns.values()):
            raise InputError(f"{self.origin}: no rows. Give data with at least one row of text and label.")

    def column(self, name: str, option: str) -> Sequence:
        if name not in self.columns:
            raise InputError(
                f"{self.origin}: no column {name!r}; found {listed(self.columns)}. {self.column_advice(option)}"
            )
        return self.columns[name][:]

    def column_advice(self, option: str) -> str:
        if any(delimiter in name for name in self.columns for delimiter in DELIMITERS.values()):
            return f"Name the column with {option}, or say with --delimiter what separates the columns."
        return f"Name the column with {option}."


def read_sources(args: DataArguments, labelled: bool = True) -> dict[str, RawSplit]:
    """
    Args:
        labelled: whether splits of the Hub without labels are left out.
    """
    files = local_files(args)
    if files or args.dataset_name is None:
        return {split: read_file(file, args) for split, file in files.items()}
    return _read_hub(args.dataset_name, args, labelled)


def local_files(args: DataArguments) -> dict[str, Path]:
    """The files of the splits; none for a data set on the Hub.

    Raises:
        InputError: if a delimiter is given and none of them is a CSV or TSV file.
    """
    if args.dataset_name is None:
        given = {"train": args.train_file, "validation": args.validation_file, "test": args.test_file}
        files = {split: check_path(file) for split, file in given.items() if file}
    else:
        folder = check_path(args.dataset_name)
        files = split_files(folder) if folder.is_dir() else {}
    if args.delimiter is not None and not any(file_type(file) in (".csv", ".tsv") for file in files.values()):
        raise InputError("--delimiter is for CSV and TSV files, and none is given; leave it out.")
    return files


def split_files(folder: Path) -> dict[str, Path]:
    """The files of a folder that are named like splits; none if it has no files that are read here alone."""
    readable = sorted(path for path in folder.iterdir() if _is_readable(path))
    files = {}
    for split, names in _SPLIT_NAMES.items():
        found = [path for path in readable if file_stem(path).lower() in names]
        if len(found) > 1:
            raise InputError(
                f"{folder.resolve()}: {listed(path.name for path in found)} could each be the {split} split. "
                "Keep one of them, or name the files with --train_file, --validation_file and --test_file."
            )
        if found:
            files[split] = found[0]
    if not files and any(file_type(path) != ".parquet" for path in readable):
        raise InputError(
            f"{folder.resolve()}: no file is named like a split (train, validation or dev, test); found "
            f"{listed(path.name for path in readable)}. Rename them, or use --train_file."
        )
    return files


def _is_readable(path: Path) -> bool:
    try:
        return file_type(path) in SUFFIXES
    except InputError:  # an archive of many files
        return False


def _read_hub(name: str, args: DataArguments, labelled: bool) -> dict[str, RawSplit]:
    if check_path(name).is_dir():
        _check_size(check_path(name))
    try:
        loaded = load_dataset(name, args.dataset_config_name, revision=args.dataset_revision)
    except (OSError, RuntimeError, ValueError, DatasetsError) as error:
        reason = textwrap.shorten(str(error), 300).rstrip(".")
        no_folder = "" if check_path(name).is_dir() else ", and there is no such folder"
        raise InputError(
            f"Data set {name!r} cannot be loaded: {reason}{no_folder}. Check the name and the connection, or use "
            f"{LOCAL_FILES}."
        ) from error
    sources = {}
    for split, names in _SPLIT_NAMES.items():
        found = next((candidate for candidate in names if candidate in loaded), None)
        if found is None:
            continue
        source = _hub_source(f"{name}, split {found!r}", loaded[found], args.label_column)
        labels = source.columns.get(args.label_column, ()) if labelled and split != "train" else ()
        if len(labels) and all(label is None or label == -1 for label in labels):
            logger.warning("%s has no labels and is left out.", source.origin)
            continue
        sources[split] = source
    if not sources:
        raise InputError(
            f"Data set {name!r} has no train, validation or test split with labels; found {listed(loaded)}."
        )
    return sources


def _check_size(folder: Path) -> None:
    """datasets looks into every folder below, of /proc for minutes."""
    entries = 0
    for _, folders, files in os.walk(folder):
        entries += len(folders) + len(files)
        if entries > _MOST_ENTRIES:
            raise InputError(
                f"{folder} holds more than {_MOST_ENTRIES:,} files and folders; give one that holds the data files alone, or name "
                "them with --train_file, --validation_file and --test_file."
            )


def read_file(path: Path, args: DataArguments) -> RawSplit:
    """All columns of a file.

    Raises:
        InputError: if there is no such file, or it has no rows or cannot be read.
    """
    path = check_file(path)
    return RawSplit(str(path), _columns(stream_rows(path, args)), class_label(path, args.label_column))


def first_rows(path: Path, args: DataArguments) -> RawSplit:
    """The columns and first rows of a file, and the class names if it has any.

    Raises:
        InputError: if there is no such file, or it has no rows or cannot be read.
    """
    path = check_file(path)
    rows = stream_rows(path, args)
    columns = _columns(islice(rows, _FIRST_ROWS))
    if args.drop_empty and file_type(path) in (".json", ".jsonl"):
        # the first rows may all be among those to be left out, and need not say what they lack
        wanted = {name for name in (args.label_column, args.text_column) if name is not None}.difference(columns)
        while wanted and (row := next(rows, None)) is not None:
            columns |= {name: [] for name in wanted.intersection(row)}
            wanted.difference_update(row)
    return RawSplit(str(path), columns, class_label(path, args.label_column))


def _columns(rows: Iterable[dict]) -> dict[str, list]:
    columns: dict[str, list] = {}
    for number, row in enumerate(rows):
        columns |= {name: [None] * number for name in row if name not in columns}
        for name, values in columns.items():
            values.append(row.get(name))
    return columns


def _hub_source(origin: str, dataset: Dataset, label_column: str) -> RawSplit:
    columns = {name: dataset[name] for name in dataset.column_names}
    feature = dataset.features.get(label_column)
    if not isinstance(feature, ClassLabel):
        return RawSplit(origin, columns)
    columns[label_column] = [class_name(label, feature.names) for label in dataset[label_column]]
    return RawSplit(origin, columns, feature.names)
