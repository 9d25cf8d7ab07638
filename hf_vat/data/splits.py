"""Splits in memory: encoded with one label map, held out, drawn from, counted."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict, IterableDataset

from hf_vat.errors import InputError
from hf_vat.models.problems import REGRESSION, SINGLE_LABEL

from .answers import answers_of, encoded_answers, label_names_of, problem_type_of
from .arguments import DataArguments
from .files import RawSplit
from .formats import listed
from .labels import (
    DROP_EMPTY,
    NO_ROW,
    CompleteRow,
    Row,
    as_columns,
    complete_rows,
    encode_rows,
    features_of,
    find_text_column,
    incomplete_rows,
    names_of,
    source_rows,
    source_texts,
    without_mark,
)

logger = logging.getLogger(__name__)


def encode_sources(
    sources: dict[str, RawSplit], args: DataArguments, names: Sequence[str] | None, positions: bool
) -> DatasetDict:
    """Splits with columns `text`, of pairs `text_pair`, and `label`, with a share of "train" as "validation" if there is none.

    Args:
        names: the classes, or labels; by default those of the split "train".
        positions: whether 0, 1, … in a file are positions in `names`.

    Raises:
        InputError: if a row cannot be used, or there is nothing to take names from.
    """
    regression = args.problem_type == REGRESSION
    if names is None and "train" not in sources and not regression and not args.label_columns:
        raise InputError(
            f"There is no training split to take the class names from, only {listed(sources)}. Give a training split, "
            "or the class names of the model."
        )
    first = next(iter(sources.values()))
    text_column, kind = find_text_column(first, args), problem_type_of(first, args)
    if kind != SINGLE_LABEL:
        splits = _encode_answers(sources, args, names, text_column, kind)
    else:
        splits = _encode_classes(sources, args, names, text_column, positions)
    if "train" in splits and "validation" not in splits and args.validation_share > 0:
        train, validation = _hold_out(splits["train"], args.validation_share, args.split_seed)
        splits = DatasetDict({**splits, "train": train, "validation": validation})
    return splits


def _encode_classes(
    sources: dict[str, RawSplit],
    args: DataArguments,
    names: Sequence[str] | None,
    text_column: str,
    positions: bool,
) -> DatasetDict:
    rows = {split: list(source_rows(source, text_column, args)) for split, source in sources.items()}
    if names is None:
        names = sources["train"].class_names
    if names is None:
        names, _ = names_of(sources["train"].origin, (row.complete for row in rows["train"] if row.complete))
    names = list(names)
    complete = {split: _complete_rows(sources[split].origin, rows[split], names, text_column, args) for split in rows}
    splits = DatasetDict()
    features = features_of(names, pairs=args.text_pair_column is not None)
    for split, found in complete.items():
        encoded = encode_rows(sources[split].origin, found, names, positions)
        splits[split] = Dataset.from_list(list(encoded), features=features)
    if "train" in splits:
        check_classes(sources["train"].origin, splits["train"])
    return splits


def _encode_answers(
    sources: dict[str, RawSplit], args: DataArguments, names: Sequence[str] | None, text_column: str, kind: str
) -> DatasetDict:
    """[`encode_sources`] for several labels, and for scores."""
    names = names or args.label_columns
    answers = {split: answers_of(source, args, kind, names) for split, source in sources.items()}
    if kind == REGRESSION:
        names = []
    elif names is None:
        names = label_names_of(answers["train"])
        if not names:
            raise InputError(f"{sources['train'].origin}: no row has a label; check the file and --label_column.")
    splits = DatasetDict()
    for split, source in sources.items():
        texts = list(source_texts(source, text_column, args))
        incomplete = [
            Row(number, text, None).missing(text_column, args.label_column)
            for number, (text, answer) in enumerate(zip(texts, answers[split], strict=True), 1)
            if text is None or answer is None
        ]
        if incomplete and not args.drop_empty:
            raise InputError(incomplete_rows(source.origin, incomplete, DROP_EMPTY))
        if incomplete:
            logger.warning("%s: rows without a text or a label, left out: %d", source.origin, len(incomplete))
        rows = [
            (number, text, answer)
            for number, (text, answer) in enumerate(zip(texts, answers[split], strict=True), 1)
            if text is not None and answer is not None
        ]
        if not rows:
            raise InputError(f"{source.origin}: {NO_ROW}")
        found: Iterable = [answer for _, _, answer in rows]
        if kind != REGRESSION:
            found = encoded_answers(source.origin, [(number, answer) for number, _, answer in rows], names or ())
        encoded = [{**as_columns(text), "label": label} for (_, text, _), label in zip(rows, found, strict=True)]
        features = features_of(names or (), kind, args.text_pair_column is not None)
        splits[split] = Dataset.from_list(encoded, features=features)
    return splits


def check_classes(origin: str, train: Dataset) -> None:
    """Refuse training data of a single class."""
    labels = set(train["label"][:])
    if len(labels) < 2:
        raise InputError(one_class(origin, train.features["label"].int2str(labels.pop())))


def one_class(origin: str, name: str) -> str:
    return (
        f"{origin}: all rows have the label {name!r}. A classifier needs at least two classes in the training data; check "
        "the file and --label_column."
    )


def sampled(splits: Mapping[str, Dataset | IterableDataset], args: DataArguments) -> dict:
    """The splits, of which those in memory are cut to random samples of the wanted sizes and counted in the log."""
    results = dict(splits)
    for split, rows in splits.items():
        if isinstance(rows, IterableDataset):
            continue
        limit = args.max_train_samples if split == "train" else args.max_eval_samples
        results[split] = sample(rows, split, limit, args.split_seed)
    return results


def sample(rows: Dataset, split: str, limit: int | None, seed: int) -> Dataset:
    """The rows of a split, or that many of them drawn at random, counted in the log."""
    drawn = draw(len(rows), limit, seed)
    rows = rows if drawn is None else rows.select(drawn)
    label = rows.features["label"]
    names = getattr(getattr(label, "feature", label), "names", None)  # those of one class, or of lists of labels
    count_rows(split, rows["label"][:], names)
    return rows


def draw(size: int, limit: int | None, seed: int) -> list[int] | None:
    """The positions of `limit` of the rows, drawn at random as files are often sorted by label; None for all rows."""
    if limit is None or limit >= size:
        return None
    return np.random.default_rng(seed).permutation(size)[:limit].tolist()


def count_rows(split: str, labels: Sequence, names: Sequence[str] | None) -> None:
    """Tell in the log how many rows of each class, or with each label, there are; or between what scores lie.

    Args:
        names: of the classes or labels; None of scores.
    """
    known = [label for label in labels if label is not None]
    if names is None:
        described = [f"scores from {np.min(known):g} to {np.max(known):g}"] if known else []
    else:
        counts = Counter(one for label in known for one in (label if isinstance(label, list) else [label]))
        described = [f"{name} {counts[label]}" for label, name in enumerate(names)]
    if len(known) < len(labels):
        described.append(f"without a label {len(labels) - len(known)}")
    logger.info("%s: %d rows (%s)", split, len(labels), ", ".join(described))


def _complete_rows(
    origin: str, rows: list[Row], names: Sequence[str], text_column: str, args: DataArguments
) -> list[CompleteRow]:
    """As [`complete_rows`], but all places are told where rows are missing something."""
    incomplete = [row for row in rows if not without_mark(row, names).complete]
    if incomplete and not args.drop_empty:
        places = [row.missing(text_column, args.label_column) for row in incomplete]
        raise InputError(incomplete_rows(origin, places, DROP_EMPTY))
    complete = list(complete_rows(origin, rows, names, text_column, args))
    if not complete:
        raise InputError(f"{origin}: {NO_ROW}")
    return complete


def _hold_out(train: Dataset, share: float, seed: int) -> tuple[Dataset, Dataset]:
    """Draw a share of each class, but at least one row and never all; of several labels, and of scores, a share of all rows.

    `Dataset.train_test_split` refuses small files and classes with a single row.
    """
    generator = np.random.default_rng(seed)
    one_class_each = isinstance(train.features["label"], ClassLabel)
    labels = np.array(train["label"]) if one_class_each else np.zeros(len(train))
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
