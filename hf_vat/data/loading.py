"""Text classification data from the Hub or from local files: one `DatasetDict`, one label map, texts as written."""

import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict, Features, IterableDataset, Value

from hf_vat.errors import LONE_SURROGATE, InputError, check_texts

from .files import LOCAL_FILES, Number, Source, listed, read_sources

logger = logging.getLogger(__name__)

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?")
_WHOLE_NUMBER = re.compile(r"-?[0-9]+(\.0*)?")


@dataclass
class DataArguments:
    """Where the texts and labels come from: `dataset_name`, `paper_dataset`, or files. For `HfArgumentParser`."""

    dataset_name: str | None = field(
        default=None,
        metadata={"help": "Data set on the Hub, or a local folder with files such as train.csv, dev.csv, test.csv."},
    )
    dataset_config_name: str | None = field(
        default=None, metadata={"help": "Configuration of the data set on the Hub, e.g. 'sst2' of 'nyu-mll/glue'."}
    )
    dataset_revision: str | None = field(
        default=None,
        metadata={"help": "Branch, tag or commit of the data set on the Hub; pin it for exact repetition."},
    )
    paper_dataset: str | None = field(
        default=None,
        metadata={
            "help": "Data set of the papers, with their splits and classes: imdb, sst1, sst2, yelp, ag_news, trec, subj, "
            "twitter, 20news_1 or 20news_2."
        },
    )
    data_dir: str | None = field(
        default=None,
        metadata={"help": "Folder with the train, validation and test file of --paper_dataset, in place of the Hub."},
    )
    train_file: str | None = field(
        default=None, metadata={"help": "Training data: .csv, .tsv, .json or .jsonl (JSON lines), or .parquet."}
    )
    validation_file: str | None = field(
        default=None, metadata={"help": "Validation data; if there is none, a share of the training data is held out."}
    )
    test_file: str | None = field(default=None, metadata={"help": "Test data."})
    text_column: str | None = field(
        default=None,
        metadata={
            "help": "Column with the texts. Default: 'text'; if there is no such column, the only one beside the label "
            "that holds words."
        },
    )
    label_column: str = field(default="label", metadata={"help": "Column with the class names or class ids."})
    encoding: str = field(default="utf-8", metadata={"help": "Encoding of CSV, TSV and JSON files, e.g. 'latin-1'."})
    drop_empty: bool = field(
        default=False, metadata={"help": "Leave out rows without a text or a label, which are an error otherwise."}
    )
    validation_share: float = field(
        default=0.1,
        metadata={
            "help": "Share of each class of the training data to hold out if there is no validation data; 0: none."
        },
    )
    split_seed: int = field(default=42, metadata={"help": "Seed for the held-out rows and for the samples."})
    max_train_samples: int | None = field(
        default=None, metadata={"help": "Train on a random sample of at most this many rows."}
    )
    max_eval_samples: int | None = field(
        default=None, metadata={"help": "Use a random sample of at most this many rows of validation and of test data."}
    )
    streaming: bool = field(
        default=False,
        metadata={"help": "Read the rows while they are used, in constant memory; for files and --paper_dataset."},
    )


def load_text_classification(
    args: DataArguments, label_names: Sequence[str] | None = None
) -> DatasetDict | dict[str, Dataset | IterableDataset]:
    """Load texts and labels, with one label map for all splits.

    The label map is `label_names` if given; else the names and order of the training split's `ClassLabel` column, as
    many Hub data sets have it; else the labels that occur in the training split, sorted (numbers by value). Labels are
    compared by name, without the white space around them; 1.0 is read as 1 if all labels of the split are whole
    numbers. If `label_names` are given and none is a number, the ids 0, 1, … in a file are positions in them.

    Texts are the exact strings of the data. A Hub data set's test or validation split in which no row is labelled (as
    in GLUE) is left out with a warning.

    With `streaming` the training split is an `IterableDataset` that reads its file anew in every pass. Nothing is held
    out from it. If there are no class names, the labels of the whole file are read once beforehand, and with them every
    row is checked; otherwise rows are checked while they are read. The other splits are loaded as ever.

    Args:
        args: the source of the data and the columns.
        label_names: the class names of a model, in the order of its ids; needed where there is no training split.

    Returns:
        Those of the splits "train", "validation" and "test" that the source has, and "validation" held out from "train"
        if the source has none. The columns are `text` (string) and `label` (`ClassLabel`). With `streaming` a plain
        dictionary of splits.

    Raises:
        InputError: if the data cannot be found or read, a text or label is missing (unless `drop_empty`), a label is
            unknown, negative or neither a name nor a whole number, or all training rows have the same label. Rows are
            counted from 1, without the header.
    """
    _check_arguments(args)
    if args.streaming:
        from .streaming import stream_text_classification  # which imports this module

        return stream_text_classification(args, label_names)
    return load_sources(_sources(args), args, label_names)


def load_texts(args: DataArguments, model, labelled: bool = True) -> tuple[list[str], list[int] | None]:
    """The texts and class ids of the test split, or of the first split that there is; other splits are not read.

    Args:
        model: the classifier whose classes the labels are.
        labelled: whether labels are needed; if not, a source without the label column gives None in their place.

    Raises:
        InputError: see [`load_text_classification`]; also with `streaming`.
    """
    _check_arguments(args)
    if args.streaming:
        raise InputError("All texts are needed at once here, so they cannot be streamed; leave --streaming out.")
    sources = _sources(args)
    split = "test" if "test" in sources else next(iter(sources))
    source = sources[split]
    if not labelled and args.label_column not in source.columns:
        column = args.text_column or find_text_column(source, args.label_column)
        texts = check_texts(["" if text is None else text for text in source.column(column, "--text_column")])
        logger.info("%s of %s: %d texts without labels", split, source.origin, len(texts))
        return texts[: args.max_eval_samples], None
    rows = load_sources({"test": source}, args, class_names(model))["test"]
    return rows["text"][:], rows["label"][:]


def class_names(model) -> list[str]:
    """The classes of a classifier in the order of their ids."""
    return [model.config.id2label[label] for label in range(model.config.num_labels)]


def _sources(args: DataArguments) -> dict[str, Source]:
    if args.paper_dataset is None:
        return read_sources(args)
    from .registry import load_paper_dataset  # which imports this module

    splits = load_paper_dataset(args.paper_dataset, args.data_dir, args.split_seed)
    return {split: paper_source(args, split, rows) for split, rows in splits.items()}


def paper_source(args: DataArguments, split: str, rows: Dataset) -> Source:
    """A split of the registry before it is sampled, and encoded with the classes of a model."""
    label = rows.features["label"]
    columns = {"text": rows["text"][:], "label": label.int2str(rows["label"][:])}
    return Source(f"{args.paper_dataset}, split {split!r}", columns, label.names)


def load_sources(sources: dict[str, Source], args: DataArguments, label_names: Sequence[str] | None) -> DatasetDict:
    if label_names is None and "train" not in sources:
        raise InputError(
            f"There is no training split to take the class names from, only {listed(sources)}. Give a training split, "
            "or the class names of the model."
        )
    first = next(iter(sources.values()))
    text_column = args.text_column or find_text_column(first, args.label_column)
    rows = {split: _labelled_rows(source, text_column, args) for split, source in sources.items()}

    if label_names is not None:
        names = list(label_names)
    else:
        names = sources["train"].class_names or sorted_names({row.label for row in rows["train"]})
    ids = label_ids(names, positions=label_names is not None)
    splits = DatasetDict({split: _encode(sources[split].origin, rows[split], names, ids) for split in rows})

    if "train" in splits and len(set(splits["train"]["label"])) < 2:
        raise InputError(
            f"{sources['train'].origin}: all rows have the label {rows['train'][0].label!r}. A classifier needs at "
            "least two classes in the training data; check the file and --label_column."
        )
    if "train" in splits and "validation" not in splits and args.validation_share > 0:
        train, validation = _hold_out(splits["train"], args.validation_share, args.split_seed)
        splits = DatasetDict({**splits, "train": train, "validation": validation})
    for split, dataset in splits.items():
        limit = args.max_train_samples if split == "train" else args.max_eval_samples
        if limit is not None and limit < len(dataset):
            splits[split] = dataset.shuffle(seed=args.split_seed).select(
                range(limit)
            )  # files are often sorted by label
        counts = Counter(splits[split]["label"][:])
        described = ", ".join(f"{name} {counts[position]}" for position, name in enumerate(names))
        logger.info("%s: %d rows (%s)", split, len(splits[split]), described)
    return splits


def _check_arguments(args: DataArguments) -> None:
    files = any([args.train_file, args.validation_file, args.test_file])
    given = [args.dataset_name is not None, args.paper_dataset is not None, files]
    if sum(given) != 1:
        found = {0: "neither", 2: "both"}.get(sum(given), "all")
        raise InputError(f"Give either --dataset_name, --paper_dataset or {LOCAL_FILES}; {found} were given.")
    if args.data_dir is not None and args.paper_dataset is None:
        raise InputError("--data_dir is the folder of a --paper_dataset; for other folders use --dataset_name.")
    own = [name for name, value in vars(args).items() if name in _NOT_OF_PAPERS and value != _NOT_OF_PAPERS[name]]
    if args.paper_dataset is not None and own:
        raise InputError(
            f"--{own[0]} is not for --paper_dataset, whose columns and splits are the papers'; leave it out."
        )
    if args.streaming and args.max_train_samples is not None:
        raise InputError(
            "--max_train_samples draws from all rows, so it cannot be used with --streaming; --max_steps says how many "
            "batches to train on."
        )
    if (args.dataset_config_name or args.dataset_revision) and (files or Path(args.dataset_name).expanduser().is_dir()):
        raise InputError("--dataset_config_name and --dataset_revision are for data sets on the Hub; leave them out.")
    if args.text_column == args.label_column:
        raise InputError(f"--text_column and --label_column are both {args.label_column!r}; they must differ.")
    if not 0 <= args.validation_share < 1:
        raise InputError(f"--validation_share is {args.validation_share}; it must be at least 0 and below 1.")
    for option in ("max_train_samples", "max_eval_samples"):
        limit = getattr(args, option)
        if limit is not None and limit < 1:
            raise InputError(f"--{option} is {limit}; it must be at least 1, or left out for all rows.")


_NOT_OF_PAPERS = {
    name: DataArguments.__dataclass_fields__[name].default
    for name in ("dataset_config_name", "dataset_revision", "text_column", "label_column", "encoding", "drop_empty")
}


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


# Texts and labels


def find_text_column(source: Source, label_column: str) -> str:
    if "text" in source.columns:
        return "text"
    candidates = [
        name
        for name, values in source.columns.items()
        if name != label_column
        # a few rows tell texts from ids
        and any(isinstance(value, str) and value and not _NUMBER.fullmatch(value) for value in values[:100])
    ]
    if len(candidates) != 1:
        raise InputError(
            f"{source.origin}: no column 'text', and not exactly one other column with words; found "
            f"{listed(source.columns)}. Name the column with --text_column."
        )
    return candidates[0]


def _labelled_rows(source: Source, text_column: str, args: DataArguments) -> list[Row]:
    texts = source.column(text_column, "--text_column")
    labels = source.column(args.label_column, "--label_column")
    rows, incomplete = [], []
    for number, (text, value) in enumerate(zip(texts, labels, strict=True), 1):
        row = as_row(source, number, text, value, text_column)
        missing = row.missing(text_column, args.label_column)
        if missing:
            incomplete.append(missing)
        else:
            rows.append(row)
    if incomplete and not args.drop_empty:
        raise InputError(incomplete_rows(source.origin, incomplete))
    if incomplete:
        logger.warning("%s: rows without a text or a label, left out: %d", source.origin, len(incomplete))
    if not rows:
        raise InputError(f"{source.origin}: no row has both a text and a label.")
    return rows if source.class_names else whole_numbers(source.origin, rows)


def as_row(source: Source, number: int, text: object, label: object, text_column: str) -> Row:
    """A row with its text as it is, and its label as a name.

    Raises:
        InputError: if the text is no string, or the label neither a name nor a number.
    """
    name = _as_label(source, number, label)
    if not (text is None or isinstance(text, str)):
        raise InputError(
            f"{source.origin}: row {number} of column {text_column!r} is {text!r}, but texts must be strings. Name "
            "the column with --text_column."
        )
    if text is None or not text.strip():
        return Row(number, None, name)
    if LONE_SURROGATE.search(text):
        raise InputError(f"{source.origin}: row {number} contains half a character (a lone surrogate); correct it.")
    return Row(number, str(text), name)


def incomplete_rows(origin: str, places: Sequence[str]) -> str:
    return (
        f"{origin}: no text or no label in {listed(places, 5)}. Rows are counted from 1, without the header. Fill them "
        "in, or leave them out with --drop_empty."
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


def label_ids(names: Sequence[str], positions: bool) -> dict[str, int]:
    """Class ids by name, and by position if that is wanted and no name is a number."""
    ids = {name: position for position, name in enumerate(names)}
    if positions and not any(_NUMBER.fullmatch(name) for name in names):
        ids |= {str(position): position for position in range(len(names))}
    return ids


def encode_row(origin: str, row: Row, names: Sequence[str], ids: dict[str, int]) -> dict:
    """Text and class id; 1.0 is taken for 1.

    Raises:
        InputError: if the label is unknown.
    """
    label = ids.get(row.label)
    if label is None and _WHOLE_NUMBER.fullmatch(row.label):
        label = ids.get(row.label.partition(".")[0])
    if label is None:
        positions = f" (or 0 to {len(names) - 1})" if len(ids) > len(names) else ""
        raise InputError(
            f"{origin}: row {row.number} has the unknown label {row.label!r}; known are "
            f"{listed(names)}{positions}. Correct it, or add rows with this label to the training data."
        )
    return {"text": row.text, "label": label}


def features_of(names: list[str]) -> Features:
    return Features({"text": Value("string"), "label": ClassLabel(names=names)})


def _encode(origin: str, rows: list[Row], names: list[str], ids: dict[str, int]) -> Dataset:
    encoded = [encode_row(origin, row, names, ids) for row in rows]
    columns = {column: [row[column] for row in encoded] for column in ("text", "label")}
    return Dataset.from_dict(columns, features=features_of(names))


def _hold_out(train: Dataset, share: float, seed: int) -> tuple[Dataset, Dataset]:
    """Draw a share of each class, but at least one row and never all.

    `Dataset.train_test_split` refuses small files and classes with a single row.
    """
    generator = np.random.default_rng(seed)
    labels = np.array(train["label"])
    held_out = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        count = min(max(1, round(share * len(rows))), len(rows) - 1)
        held_out[generator.permutation(rows)[:count]] = True
    if not held_out.any():
        raise InputError(
            "Each class has only one training row, so none can be held out for validation. Give a validation split, or "
            "--validation_share 0."
        )
    return train.select(np.flatnonzero(~held_out)), train.select(np.flatnonzero(held_out))
