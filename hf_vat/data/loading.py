"""Text classification data from the Hub or from local files: one label map for all splits, texts as written."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from datasets import Dataset, DatasetDict, IterableDataset

from hf_vat.errors import InputError
from hf_vat.models.classes import class_names
from hf_vat.models.problems import MULTI_LABEL, Problem

from .answers import answers_of, encoded_answers
from .arguments import DataArguments, check_arguments
from .files import RawSplit, local_files, read_file, read_sources
from .formats import listed
from .labels import DROP_EMPTY, NO_ROW, features_of, find_text_column, incomplete_rows, source_texts
from .papers import load_paper_dataset
from .splits import count_rows, draw, encode_sources, sample, sampled
from .streaming import FileRows, check_streamed_classes, class_names_of, stream_encoded
from .texts import texts_with_ids

logger = logging.getLogger(__name__)


def load_text_classification(
    args: DataArguments, label_names: Sequence[str] | None = None
) -> DatasetDict | dict[str, Dataset | IterableDataset]:
    """Load texts and labels, with one label map for all splits.

    The label map is `label_names` or `args.class_names` if given; else the names and order of the training split's
    `ClassLabel` column, as many Hub data sets have it; else the labels that occur in the training split, sorted (numbers
    by value). If names are given and none is a number, the ids 0, 1, … in a file are positions in them.

    Labels are compared by what is written, alike in every format: without the white space around them, 1.0 as 1, `true` in
    lower case, the number 1 as the text "1". In a split they are all names, or all whole numbers. Among numbers "nan"
    and its like ("NA", "None", "null", "#N/A") are missing labels; among names they are names.

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
            unknown, negative or neither a name nor a whole number, names are mixed with numbers, or all training rows have
            the same label. Rows are counted from 1, without the header.
        MissingExtra: if a file is an Excel workbook and openpyxl is not installed.
    """
    check_arguments(args)
    label_names = label_names or args.class_names
    if args.paper_dataset is not None:
        splits = load_paper_dataset(args.paper_dataset, args.data_dir, args.split_seed, args.streaming)
        splits = {split: _in_memory(rows) if split != "train" else rows for split, rows in splits.items()}
        splits = {split: _with_classes(rows, label_names, args.paper_dataset) for split, rows in splits.items()}
    elif args.streaming:
        splits = _stream_files(args, label_names)
    else:
        splits = encode_sources(read_sources(args), args, label_names, positions=label_names is not None)
    splits = sampled(splits, args)
    return splits if args.streaming else DatasetDict(splits)


def load_texts(
    args: DataArguments, model, labelled: bool = True, split: str | None = None
) -> tuple[list[str | list[str]], list[int | None] | None]:
    """The texts and class ids of a split; other splits are not used. Of a model of several labels the names of each text's
    labels are in place of the ids, of a regression the scores.

    A column of JSON or Parquet whose cells are lists of words holds texts that are already split.

    Args:
        args: arguments, whose `max_eval_samples` are for any split.
        model: the classifier whose classes the labels are.
        labelled: whether each row needs a text and a label. If not, a missing text is empty (left out with `drop_empty`),
            and the id of a label that is missing or unknown to the model None; the log tells the first that is unknown.
            If there are no ids at all, None is in their place.
        split: "train", "validation" or "test"; by default the test split, or the first that there is.

    Raises:
        InputError: see [`load_text_classification`]; also with `streaming`.
    """
    check_arguments(args)
    if args.streaming:
        raise InputError("All texts are needed at once here, so they cannot be streamed; leave --streaming out.")
    if args.paper_dataset is not None:
        if not Problem.of(model.config).is_single_label:
            raise InputError(
                f"--paper_dataset {args.paper_dataset} has one class for each text, and the model has problem_type="
                f"{model.config.problem_type!r}; give a data set of that kind."
            )
        rows = _paper_split(args.paper_dataset, args, model, split or "test")
        return rows["text"][:], rows["label"][:]
    sources = read_sources(args, labelled)
    if split is None:
        split = "test" if "test" in sources else next(iter(sources))
    elif split not in sources:
        raise InputError(f"There is no {split} split, only {listed(sources)}.")
    source, names = sources[split], class_names(model.config)
    text_column = find_text_column(source, args)
    texts = source.column(text_column, "--text_column")
    if args.text_pair_column is not None:
        texts = list(zip(texts, source.column(args.text_pair_column, "--text_pair_column"), strict=True))
    if not Problem.of(model.config).is_single_label:
        return _texts_with_answers(source, args, model, split, labelled)
    if labelled or args.label_column in source.columns:
        labels = source.column(args.label_column, "--label_column")
    else:
        labels = [None] * len(texts)
    rows = list(texts_with_ids(source, zip(texts, labels, strict=True), args, text_column, names, labelled))
    if not rows:
        raise InputError(f"{source.origin}: {NO_ROW if labelled else 'no row has a text.'}")
    drawn = draw(len(rows), args.max_eval_samples, args.split_seed)
    texts, labels = zip(*(rows if drawn is None else [rows[place] for place in drawn]), strict=True)
    count_rows(split, labels, names)
    return list(texts), None if set(labels) == {None} else list(labels)


def _texts_with_answers(
    source: RawSplit, args: DataArguments, model, split: str, labelled: bool
) -> tuple[list, list | None]:
    """[`load_texts`] for several labels, and for scores."""
    problem, text_column = Problem.of(model.config), find_text_column(source, args)
    if args.label_column not in source.columns and args.label_columns is None:
        own = [name for name in problem.names if name in source.columns]
        args = replace(args, label_columns=own or None)
    texts = list(source_texts(source, text_column, args))
    answers: list = [None] * len(texts)
    if labelled or args.label_columns or args.label_column in source.columns:
        answers = answers_of(source, args, problem.kind, problem.names)
    if problem.kind == MULTI_LABEL and labelled:
        list(encoded_answers(source.origin, enumerate((answer or [] for answer in answers), 1), problem.names))
    elif problem.kind == MULTI_LABEL:
        answers = [some and [name for name in some if name in problem.names] for some in answers]
    missing = [
        place
        for place, (text, answer) in enumerate(zip(texts, answers, strict=True))
        if text is None or (labelled and answer is None)
    ]
    if labelled and missing and not args.drop_empty:
        places = [f"row {place + 1}" for place in missing]
        raise InputError(incomplete_rows(source.origin, places, DROP_EMPTY))
    left_out = set(missing) if args.drop_empty else set()
    rows = [(text or "", answers[place]) for place, text in enumerate(texts) if place not in left_out]
    if not rows:
        raise InputError(f"{source.origin}: {NO_ROW if labelled else 'no row has a text.'}")
    drawn = draw(len(rows), args.max_eval_samples, args.split_seed)
    texts, answers = map(list, zip(*(rows if drawn is None else [rows[place] for place in drawn]), strict=True))
    logger.info("%s: %d rows", split, len(texts))
    return texts, None if all(answer is None for answer in answers) else answers


def stream_texts(args: DataArguments, model) -> Iterator[tuple[str | list[str], int | None]]:
    """The texts of the test split, or of the first split that there is, with their class ids while they are read.

    They are those of [`load_texts`] where no labels are needed.

    Args:
        args: arguments with `streaming`; the first `max_eval_samples` rows are read.
        model: the classifier whose classes the labels are.

    Returns:
        An iterator over texts and class ids, which are None where there is none that the model knows, or it does not choose
        between classes.

    Raises:
        InputError: at once if the source cannot be used, and while iterating if a row cannot.
    """
    check_arguments(args)
    if args.paper_dataset is not None:
        split = _paper_split(args.paper_dataset, replace(args, max_eval_samples=None), model, "test")
        return islice(zip(split["text"], split["label"], strict=True), args.max_eval_samples)
    files = _files(args)
    rows = FileRows.of(files.get("test") or next(iter(files.values())), args)
    texts = texts_with_ids(rows.head, rows.cells(), args, rows.text_column, class_names(model.config), labelled=False)
    if not Problem.of(model.config).is_single_label:
        texts = ((text, None) for text, _ in texts)
    return islice(texts, args.max_eval_samples)


def _stream_files(args: DataArguments, label_names: Sequence[str] | None) -> dict[str, Dataset | IterableDataset]:
    files = _files(args)
    if "train" not in files:
        raise InputError(f"There is no training split, only {listed(files)}. Give a training split or --train_file.")
    rows = FileRows.of(files.pop("train"), args)
    if label_names is not None:
        check_streamed_classes(rows, label_names)
    names, positions = label_names or class_names_of(rows), label_names is not None
    loaded = replace(args, streaming=False, text_column=rows.text_column)
    sources = {split: read_file(path, loaded) for split, path in files.items()}
    others = encode_sources(sources, loaded, names, positions) if sources else {}
    return {"train": stream_encoded(rows, names, positions), **others}


def _files(args: DataArguments) -> dict[str, Path]:
    files = local_files(args)
    if not files:
        raise InputError(
            f"--streaming reads local files and --paper_dataset, not {args.dataset_name!r} from the Hub. Give files, or "
            "leave --streaming out."
        )
    return files


def _paper_split(name: str, args: DataArguments, model, split: str) -> Dataset:
    rows = load_paper_dataset(name, args.data_dir, args.split_seed, args.streaming)[split]
    rows = _with_classes(rows, class_names(model.config), name)
    return rows if isinstance(rows, IterableDataset) else sample(rows, split, args.max_eval_samples, args.split_seed)


def _with_classes(rows: Dataset | IterableDataset, names: Sequence[str] | None, origin: str):
    """The same rows with the class ids of a model."""
    own = rows.features["label"].names
    if names is None or list(names) == own:
        return rows
    if not set(own) <= set(names):
        raise InputError(f"{origin} has the classes {listed(own)}, but the model {listed(names)}.")
    ids = [names.index(name) for name in own]
    return rows.map(
        lambda batch: {"label": [ids[label] for label in batch["label"]]},
        batched=True,
        features=features_of(list(names)),
    )


def _in_memory(rows: Dataset | IterableDataset) -> Dataset:
    if isinstance(rows, Dataset):
        return rows
    read = list(rows)
    if not read:
        raise InputError(
            "No row of the streamed training data falls to validation: there are too few. Give a validation file, or leave "
            "--streaming out."
        )
    return Dataset.from_list(read, features=rows.features)
