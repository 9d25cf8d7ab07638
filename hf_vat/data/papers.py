"""The data sets of the papers, loaded: from the Hub or local files, with the papers' classes, splits and sizes."""

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict, IterableDataset, load_dataset
from datasets.exceptions import DatasetsError

from hf_vat.errors import InputError, check_path
from hf_vat.inference import whole_number

from .arguments import DataArguments
from .files import RawSplit, first_rows, local_files, read_file, read_sources
from .formats import class_name, listed
from .labels import Row, as_row, class_id, incomplete_rows, source_rows
from .registry import PAPER_DATASETS, SPLITS, PaperDataset
from .splits import check_classes
from .streaming import FileRows
from .word_labels import is_semeval_messages, read_semeval_messages

logger = logging.getLogger(__name__)


def load_paper_dataset(
    name: str, data_dir: str | Path | None = None, seed: int = 42, streaming: bool = False
) -> DatasetDict | dict[str, Dataset | IterableDataset]:
    """Load a data set of the papers, with the papers' classes and splits.

    If there is no validation split, it is drawn from the split that the papers drew it from, with the same share of
    each class. The Hub stand-in for Twitter is cut to the paper's sizes in the same way. Texts lose what is no text: the
    `<br />` of IMDB, the written-out line breaks of Yelp, and the escapes of AG News.

    `info.description` of each split names the data set and says how its sizes differ from the paper's (see
    [`size_note`]).

    Args:
        name: a key of `PAPER_DATASETS`.
        data_dir: folder with files named like splits (train.csv, validation.jsonl, test.parquet, …), whose columns are
            `text` and `label`, instead of the Hub; or a folder in which such a folder has the data set's name. Of Twitter the organizers' files of SemEval, without a header, are read
            too (.tsv; see [`~hf_vat.data.word_labels.load_semeval_words`]); tweets that say "Not Available" are left
            out and counted in the log.
        seed: of the drawn splits and samples, at least 0.
        streaming: read the training rows while iterating, in constant memory; their number is not checked. If
            validation is drawn from them, it is streamed too, and a hash of each text decides: it has about the paper's
            size, its classes about their shares. Rows keep their order, so shuffle them with a buffer. The other
            splits are loaded.

    Returns:
        Splits "train", "validation" and "test", with columns `text` (string) and `label` (`ClassLabel`). With `streaming`
        a plain dictionary.

    Raises:
        InputError: if the name is unknown, the data cannot be read, a split is missing, a text is missing or blank, a
            label is unknown, the Hub data set has no longer the papers' sizes, splits of those sizes have not their rows of
            each class, or the data set cannot be streamed. Splits of other sizes in `data_dir` are logged as a warning.
    """
    if name not in PAPER_DATASETS:
        raise InputError(f"There is no data set {name!r}; known are {listed(PAPER_DATASETS)}.")
    entry, seed = PAPER_DATASETS[name], whole_number("seed", seed, 0)
    try:
        return _load(entry, None if data_dir is None else _own_folder(name, Path(data_dir)), seed, streaming)
    except InputError as error:
        raise InputError(f"{name}: {error} {entry.advice}") from error


def size_note(name: str, sizes: Mapping[str, int], paper: str | None = None) -> str:
    """How the sizes of splits (`DatasetDict.num_rows`) differ from a paper's; empty if they do not.

    Args:
        paper: "VAT", "VMASK" or "Sun & Lu"; if not given, the first that has the data set.

    Raises:
        InputError: if the paper does not have the data set.
    """
    papers = PAPER_DATASETS[name].sizes
    paper = paper or next(iter(papers))
    if paper not in papers:
        raise InputError(f"{paper!r} gives no sizes of {name}; those that do are {listed(papers)}.")
    return _size_note(sizes, paper, papers[paper])


def stratified_split(labels: Sequence[int], sizes: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Draw disjoint sets of rows of exact sizes, each with the classes in proportion: off by less than one row a class.

    Returns:
        For each name in `sizes` the positions of its rows, in random order; always the same for the same arguments.

    Raises:
        InputError: if the sizes are negative, or more together than there are rows, or the seed is below 0.
    """
    ids = np.asarray(labels)
    if min(sizes.values()) < 0 or sum(sizes.values()) > len(ids):
        raise InputError(f"Splits of {dict(sizes)} rows cannot be drawn from {len(ids)} rows.")
    generator = np.random.default_rng(whole_number("seed", seed, 0))
    left = [generator.permutation(np.flatnonzero(ids == label)) for label in np.unique(ids)]
    splits = {}
    for name, size in sizes.items():
        available = np.array([len(rows) for rows in left])
        quotas = size * available / max(available.sum(), 1)
        counts = np.floor(quotas).astype(int)
        largest_remainders = np.argsort(counts - quotas, kind="stable")[: size - counts.sum()]
        counts[largest_remainders] += 1
        drawn = [rows[:count] for rows, count in zip(left, counts, strict=True)]
        left = [rows[count:] for rows, count in zip(left, counts, strict=True)]
        splits[name] = generator.permutation(np.concatenate(drawn))
    return splits


def _own_folder(name: str, data_dir: Path) -> Path:
    """The folder of a data set: the one given, or the one of that name in it.

    Raises:
        InputError: if there is none, or the folder is another data set's or holds others alone.
    """
    folder = check_path(data_dir)
    if not folder.is_dir():
        raise InputError(f"There is no folder {data_dir}.")
    if (folder / name).is_dir():
        return folder / name
    own, inside = folder.resolve().name, sorted(folder.iterdir())
    others = [path.name for path in inside if path.is_dir() and path.name in PAPER_DATASETS]
    if any(path.is_file() and path.stem.lower().startswith("train") for path in inside):
        others = []
    if others or (own in PAPER_DATASETS and own != name):
        found = f"holds {listed(others)} and no folder {name!r}" if others else f"is that of {own!r}"
        raise InputError(
            f"The folder {data_dir} {found}. Give the folder with the files of {name}, or one that has it by the name {name!r}."
        )
    return folder


def _load(entry: PaperDataset, data_dir, seed: int, streaming: bool) -> DatasetDict | dict:
    from_hub = data_dir is None
    args = DataArguments(
        dataset_name=entry.hub_id if from_hub else str(data_dir),
        dataset_config_name=entry.config_name if from_hub else None,
        dataset_revision=entry.revision if from_hub else None,
        text_column="text",
        label_column=entry.label_column if from_hub else "label",
    )
    splits = _streamed_splits(entry, args, from_hub) if streaming else _loaded_splits(entry, args)
    if entry.sorted_by_label:
        splits = {split: rows.shuffle(seed=seed) for split, rows in splits.items()}
    if "validation" not in splits:
        splits |= _hold_out(entry, splits[entry.held_out_from], seed)
    if from_hub and entry.stand_in:
        for split, size in zip(SPLITS, next(iter(entry.sizes.values())), strict=True):
            splits |= _draw(splits[split], {split: size}, seed)
    splits = {split: splits[split] for split in SPLITS}
    _check_sizes(entry, {split: rows for split, rows in splits.items() if isinstance(rows, Dataset)}, from_hub)
    return splits if streaming else DatasetDict(splits)


# Sources


def _loaded_splits(entry: PaperDataset, args: DataArguments) -> dict[str, Dataset]:
    files = local_files(args) if entry.semeval else {}
    sources = {split: _tweets(path) or read_file(path, args) for split, path in files.items()} or read_sources(args)
    _check_splits(sources)
    splits = {split: _from_source(source, entry, args.label_column) for split, source in sources.items()}
    if len(splits["train"]) == entry.look_alike_rows:
        raise InputError(f"The training split has {entry.look_alike_rows:,} rows.")
    check_classes(sources["train"].origin, splits["train"])
    return splits


def _tweets(path: Path) -> RawSplit | None:
    """The rows of a file of SemEval; None for any other file."""
    return RawSplit(str(path.resolve()), read_semeval_messages(path)) if is_semeval_messages(path) else None


def _streamed_splits(entry: PaperDataset, args: DataArguments, from_hub: bool) -> dict[str, Dataset | IterableDataset]:
    if entry.stand_in or entry.sorted_by_label:
        why = "its rows are sorted by class, and a stream is shuffled among neighbours only; " * entry.sorted_by_label
        size = sum(next(iter(entry.sizes.values())))
        raise InputError(
            f"{entry.title} cannot be streamed: {why}its {size:,} rows fit in memory. Leave --streaming out."
        )
    if from_hub:
        streams = _stream_hub(entry)
        _check_splits(streams)
        rows = {split: _HubRows.of(split, streams[split], args) for split in SPLITS if split in streams}
        splits = {
            split: _in_memory(found.head.origin, found, entry) for split, found in rows.items() if split != "train"
        }
        return {"train": _stream(rows["train"], entry), **splits}
    files = local_files(args)
    _check_splits(files)
    path, args_of_stream = files.pop("train"), replace(args, streaming=True)
    train = FileRows(path, first_rows(path, args_of_stream), args_of_stream, "text")
    _check_columns(train.head, args.label_column)
    splits = {split: _from_source(read_file(path, args), entry, args.label_column) for split, path in files.items()}
    return {"train": _stream(train, entry), **splits}


def _stream_hub(entry: PaperDataset) -> Mapping[str, IterableDataset]:
    try:
        return load_dataset(entry.hub_id, entry.config_name, revision=entry.revision, streaming=True)
    except (OSError, RuntimeError, ValueError, DatasetsError) as error:
        raise InputError(f"Data set {entry.hub_id!r} cannot be streamed: {error}.") from error


@dataclass(frozen=True)
class _HubRows:
    """The rows of a stream from the Hub, as [`FileRows`] has those of a file."""

    stream: IterableDataset
    head: RawSplit
    args: DataArguments

    @classmethod
    def of(cls, split: str, stream: IterableDataset, args: DataArguments) -> "_HubRows":
        feature = (stream.features or {}).get(args.label_column)
        names = feature.names if isinstance(feature, ClassLabel) else None
        first = {name: [value] for row in stream.take(1) for name, value in row.items()}
        head = RawSplit(f"{args.dataset_name}, split {split!r}", first, names)
        _check_columns(head, args.label_column)
        return cls(stream, head, args)

    def __iter__(self) -> Iterator[Row]:
        for number, row in enumerate(self.stream, 1):
            label = class_name(row[self.args.label_column], self.head.class_names)
            yield as_row(self.head, number, row["text"], label, "text")


def _check_splits(splits: Iterable[str]) -> None:
    missing = {"train", "test"}.difference(splits)
    if missing:
        raise InputError(f"There is no split {listed(sorted(missing))} with labels; found {listed(splits)}.")


def _check_columns(source: RawSplit, label_column: str) -> None:
    if not {"text", label_column} <= source.columns.keys():
        raise InputError(f"{source.origin}: no columns text and {label_column}; found {listed(source.columns)}.")


# Rows with the texts and class ids of the papers


def _stream(rows: FileRows | _HubRows, entry: PaperDataset) -> IterableDataset:
    settings = {"origin": rows.head.origin, "rows": rows, "entry": entry}
    return IterableDataset.from_generator(_advised_rows, features=entry.features, gen_kwargs=settings)


def _advised_rows(origin: str, rows: FileRows | _HubRows, entry: PaperDataset) -> Iterator[dict]:
    """Rows whose errors, which come after [`load_paper_dataset`] has returned, end as its own do."""
    try:
        yield from _own_rows(origin, rows, entry)
    except InputError as error:
        raise InputError(f"{error} {entry.advice}") from error


def _from_source(source: RawSplit, entry: PaperDataset, label_column: str) -> Dataset:
    _check_columns(source, label_column)
    return _in_memory(source.origin, source_rows(source, "text", DataArguments(label_column=label_column)), entry)


def _in_memory(origin: str, rows: Iterable[Row], entry: PaperDataset) -> Dataset:
    read = list(_own_rows(origin, rows, entry))
    if not read:
        raise InputError(f"{origin}: no row has a text and one of the classes {listed(entry.label_names)}.")
    return Dataset.from_list(read, features=entry.features)


def _own_rows(origin: str, rows: Iterable[Row], entry: PaperDataset) -> Iterator[dict]:
    """The one reader of texts and labels, streamed or not."""
    ids, clean = entry.label_ids, entry.clean or str
    for row in rows:
        text = "" if row.text is None else clean(str(row.text))
        row = row._replace(text=text if text.strip() else None)
        label = None if row.label is None else class_id(row.label, ids)
        if entry.other_classes and (row.text is None or label is None):
            continue
        if not row.complete:
            raise InputError(incomplete_rows(origin, [row.missing("text", "label")], "Fill them in or remove them."))
        if label is None:
            raise InputError(
                f"{origin}: row {row.number}, {text[:40]!r}, has the unknown label {row.label!r}; allowed are "
                f"{listed(entry.label_names)}."
            )
        yield {"text": text, "label": label}


# Drawn splits and sizes


def _hold_out(entry: PaperDataset, rows: Dataset | IterableDataset, seed: int) -> dict[str, Dataset | IterableDataset]:
    if isinstance(rows, IterableDataset):
        settings = {"share": entry.validation_share, "seed": seed}
        return {
            "validation": rows.filter(_is_held_out, fn_kwargs=settings),
            entry.held_out_from: rows.filter(_is_held_out, fn_kwargs=settings | {"wanted": False}),
        }
    held_out = round(entry.validation_share * len(rows))
    return _draw(rows, {entry.held_out_from: len(rows) - held_out, "validation": held_out}, seed)


def _draw(rows: Dataset, sizes: Mapping[str, int], seed: int) -> dict[str, Dataset]:
    drawn = stratified_split(rows["label"][:], sizes, seed)
    return {split: rows.select(positions) for split, positions in drawn.items()}


def _check_sizes(entry: PaperDataset, splits: Mapping[str, Dataset], from_hub: bool) -> None:
    paper, sizes = next(iter(entry.sizes.items()))
    for split, expected in entry.label_counts.items():
        if split not in splits:
            continue
        counts = Counter(splits[split]["label"])
        found = tuple(counts[label] for label in range(len(entry.label_names)))
        if sum(found) == sum(expected) and found != expected:
            raise InputError(
                f"The {split} split has {listed(found)} rows of the classes {listed(entry.label_names)}, but the papers' "
                f"has {listed(expected)}: these are other texts or other labels."
            )
    note = _size_note({split: len(rows) for split, rows in splits.items()}, paper, sizes)
    if note and entry.exact and from_hub:
        raise InputError(f"{note} The data set on the Hub has changed.")
    title = entry.stand_in if from_hub and entry.stand_in else entry.title
    if note:
        logger.warning("%s: %s", title, note)
    for rows in splits.values():
        rows.info.description = f"{title}. {note}".rstrip()


def _size_note(found: Mapping[str, int], paper: str, expected: tuple[int, int, int]) -> str:
    differing = [
        f"{split} {found[split]:,} instead of {size:,}"
        for split, size in zip(SPLITS, expected, strict=True)
        if split in found and found[split] != size
    ]
    return f"Rows unlike the paper's ({paper}): {', '.join(differing)}." if differing else ""


def _is_held_out(row: dict, share: float, seed: int, wanted: bool = True) -> bool:
    """By the text alone, so that any order and any number of workers give the same disjoint splits."""
    digest = hashlib.blake2b(f"{seed}\n{row['text']}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") < share * 2**64) == wanted
