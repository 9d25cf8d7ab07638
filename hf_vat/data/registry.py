"""The data sets of the papers by name: where they are, their classes, their splits and sizes.

Sizes are those of table 1 of Zhou et al. (2021), "Attending via both Fine-tuning and Compressing" (VAT); table 2 of Chen
and Ji (2020), "Learning Variational Word Masks" (VMASK); and table 1 of Sun and Lu (2020), "Understanding Attention for
Text Classification".
"""

import hashlib
import html
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from datasets import (
    ClassLabel,
    Dataset,
    DatasetDict,
    Features,
    IterableDataset,
    IterableDatasetDict,
    Value,
    load_dataset,
)
from datasets.exceptions import DatasetsError

from hf_vat.errors import InputError

from .files import listed, split_files
from .loading import DataArguments, load_text_classification
from .streaming import first_rows, stream_rows

logger = logging.getLogger(__name__)

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class PaperDataset:
    """What is known of a data set.

    Attributes:
        title: its name in the papers.
        hub_id, config_name, revision: where it is on the Hub. No revision is known to be good, so none is pinned yet.
        label_names: class names in the order of their ids.
        sizes: rows of train, validation and test by paper, "VAT", "VMASK" or "Sun & Lu"; the first is the one that
            [`load_paper_dataset`] makes.
        label_column: column of the Hub data set with the class names.
        aliases: other spellings of class names.
        ids_known: whether the labels 0, 1, … are positions in `label_names`; otherwise they are refused.
        held_out_from: split that validation is drawn from if the source has none.
        label_counts: rows of each class in splits of the papers' sizes.
        clean: what is done with each text.
        sorted_by_label: rows of a class follow each other in the source, so they are shuffled.
        other_classes: whether the source holds more classes, whose rows are left out with those without a text.
        exact: whether the Hub data set gives the papers' sizes; if it does not, it has changed and is refused.
        stand_in: name to report instead of `title` for the Hub data set if it is another one, cut to the same sizes.
        look_alike, look_alike_rows: what it is mistaken for, as a sentence, and the training rows of that.
    """

    title: str
    hub_id: str
    label_names: tuple[str, ...]
    sizes: Mapping[str, tuple[int, int, int]]
    config_name: str | None = None
    revision: str | None = None
    label_column: str = "label"
    aliases: Mapping[str, str] = field(default_factory=dict)
    ids_known: bool = True
    held_out_from: str = "train"
    label_counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    clean: Callable[[str], str] | None = None
    sorted_by_label: bool = False
    other_classes: bool = False
    exact: bool = True
    stand_in: str | None = None
    look_alike: str = ""
    look_alike_rows: int | None = None

    @property
    def label_ids(self) -> dict[str, int]:
        """Class ids by every way to write a label."""
        ids = {name: position for position, name in enumerate(self.label_names)}
        positions = {str(position): position for position in ids.values()} if self.ids_known else {}
        return ids | {alias: ids[name] for alias, name in self.aliases.items()} | positions

    @property
    def features(self) -> Features:
        """Columns of the loaded data set: `text` and `label`."""
        return Features({"text": Value("string"), "label": ClassLabel(names=list(self.label_names))})

    @property
    def advice(self) -> str:
        """Where the right data are: the end of every error message."""
        return (
            f"This data set is {self.hub_id!r} on the Hub, or with --data_dir a folder that has a train, a validation and a "
            f"test file with columns text and label. {self.look_alike}"
        ).rstrip()

    @property
    def validation_share(self) -> float:
        """Share of `held_out_from` that becomes validation."""
        sizes = dict(zip(SPLITS, next(iter(self.sizes.values())), strict=True))
        return sizes["validation"] / (sizes["validation"] + sizes[self.held_out_from])


def load_paper_dataset(
    name: str, data_dir: str | Path | None = None, seed: int = 42, streaming: bool = False
) -> DatasetDict | IterableDatasetDict:
    """Load a data set of the papers, with the papers' classes and splits.

    If there is no validation split, it is drawn from the split that the papers drew it from, with the same share of
    each class. The Hub stand-in for Twitter is cut to the paper's sizes in the same way. Texts lose what is no text: the
    `<br />` of IMDB, the written-out line breaks of Yelp, and the escapes of AG News.

    `info.description` of each split names the data set and says how its sizes differ from the paper's (see
    [`size_note`]).

    Args:
        name: a key of `PAPER_DATASETS`.
        data_dir: folder with files named like splits (train.csv, validation.jsonl, test.parquet, …), whose columns are
            `text` and `label`, instead of the Hub.
        seed: of the drawn splits and samples.
        streaming: read while iterating, in constant memory; sizes are not checked. What is drawn is then decided by a
            hash of each text: validation has about the paper's size, its classes about their shares, and rows keep
            their order, so shuffle them with a buffer.

    Returns:
        Splits "train", "validation" and "test", with columns `text` (string) and `label` (`ClassLabel`).

    Raises:
        InputError: if the name is unknown, the data cannot be read, a split is missing, a label is unknown, the Hub data
            set has no longer the papers' sizes, or splits of those sizes have not their rows of each class. Splits of
            other sizes in `data_dir` are logged as a warning.
    """
    if name not in PAPER_DATASETS:
        raise InputError(f"There is no data set {name!r}; known are {listed(PAPER_DATASETS)}.")
    entry = PAPER_DATASETS[name]
    try:
        if data_dir is not None and not Path(data_dir).expanduser().is_dir():
            raise InputError(f"There is no folder {data_dir}.")
        return _stream(entry, data_dir, seed) if streaming else _load(entry, data_dir, seed)
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
        InputError: if the sizes are negative, or more together than there are rows.
    """
    labels = np.asarray(labels)
    if min(sizes.values()) < 0 or sum(sizes.values()) > len(labels):
        raise InputError(f"Splits of {dict(sizes)} rows cannot be drawn from {len(labels)} rows.")
    generator = np.random.default_rng(seed)
    left = [generator.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
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


# In memory


def _load(entry: PaperDataset, data_dir, seed: int) -> DatasetDict:
    from_hub = data_dir is None
    loaded = load_text_classification(
        DataArguments(
            dataset_name=entry.hub_id if from_hub else str(data_dir),
            dataset_config_name=entry.config_name if from_hub else None,
            dataset_revision=entry.revision if from_hub else None,
            text_column="text",
            label_column=entry.label_column if from_hub else "label",
            drop_empty=entry.other_classes,
            validation_share=0,
        )
    )
    _check_splits(loaded)
    if len(loaded["train"]) == entry.look_alike_rows:
        raise InputError(f"The training split has {entry.look_alike_rows:,} rows.")
    splits = {split: _with_own_labels(rows, entry) for split, rows in loaded.items()}
    if entry.sorted_by_label:
        splits = {split: rows.shuffle(seed=seed) for split, rows in splits.items()}
    if "validation" not in splits:
        source = splits[entry.held_out_from]
        held_out = round(entry.validation_share * len(source))
        sizes = {entry.held_out_from: len(source) - held_out, "validation": held_out}
        splits |= _draw(source, sizes, seed)
    if from_hub and entry.stand_in:
        for split, size in zip(SPLITS, next(iter(entry.sizes.values())), strict=True):
            splits |= _draw(splits[split], {split: size}, seed)
    splits = DatasetDict({split: splits[split] for split in SPLITS})
    _check_sizes(entry, splits, from_hub)
    return splits


def _draw(rows: Dataset, sizes: Mapping[str, int], seed: int) -> dict[str, Dataset]:
    drawn = stratified_split(rows["label"][:], sizes, seed)
    return {split: rows.select(positions) for split, positions in drawn.items()}


def _check_splits(splits: Iterable[str]) -> None:
    missing = {"train", "test"}.difference(splits)
    if missing:
        raise InputError(f"There is no split {listed(sorted(missing))} with labels; found {listed(splits)}.")


def _with_own_labels(rows: Dataset, entry: PaperDataset) -> Dataset:
    """Same texts, cleaned, with the ids of the registry for the class names that were found."""
    ids = [entry.label_ids.get(name) for name in rows.features["label"].names]
    labels = [ids[label] for label in rows["label"]]
    if None in labels and not entry.other_classes:
        row = labels.index(None)
        found = rows.features["label"].int2str(rows["label"][row])
        raise InputError(_unknown_label(found, rows["text"][row], entry))
    clean = entry.clean or str
    kept = [(clean(text), label) for text, label in zip(rows["text"], labels, strict=True) if label is not None]
    texts, labels = zip(*kept, strict=True) if kept else ((), ())
    return Dataset.from_dict({"text": list(texts), "label": list(labels)}, features=entry.features)


def _unknown_label(label: str, text: str, entry: PaperDataset) -> str:
    return f"The text {text[:40]!r} has the unknown label {label!r}; allowed are {listed(entry.label_names)}."


def _check_sizes(entry: PaperDataset, splits: DatasetDict, from_hub: bool) -> None:
    paper, sizes = next(iter(entry.sizes.items()))
    for split, expected in entry.label_counts.items():
        counts = Counter(splits[split]["label"])
        found = tuple(counts[label] for label in range(len(entry.label_names)))
        if sum(found) == sum(expected) and found != expected:
            raise InputError(
                f"The {split} split has {listed(found)} rows of the classes {listed(entry.label_names)}, but the papers' "
                f"has {listed(expected)}: these are other texts or other labels."
            )
    note = _size_note(splits.num_rows, paper, sizes)
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
        if found[split] != size
    ]
    return f"Rows unlike the paper's ({paper}): {', '.join(differing)}." if differing else ""


# Streams


def _stream(entry: PaperDataset, data_dir, seed: int) -> IterableDatasetDict:
    if data_dir is None:
        if entry.stand_in:
            raise InputError(f"The {entry.stand_in} is drawn from all rows, so it cannot be streamed; load it whole.")
        loaded, column = _stream_hub(entry), entry.label_column
    else:
        files = split_files(Path(data_dir).expanduser())
        loaded, column = {split: _stream_file(path) for split, path in files.items()}, "label"
    _check_splits(loaded)
    splits = {split: _stream_labels(rows, column, entry) for split, rows in loaded.items() if split in SPLITS}
    if "validation" not in splits:
        source, settings = splits[entry.held_out_from], {"share": entry.validation_share, "seed": seed}
        splits["validation"] = source.filter(_in_validation, fn_kwargs=settings)
        splits[entry.held_out_from] = source.filter(_not_in_validation, fn_kwargs=settings)
    return IterableDatasetDict({split: splits[split] for split in SPLITS})


def _stream_hub(entry: PaperDataset) -> Mapping[str, IterableDataset]:
    try:
        return load_dataset(entry.hub_id, entry.config_name, revision=entry.revision, streaming=True)
    except (OSError, RuntimeError, ValueError, DatasetsError) as error:
        raise InputError(f"Data set {entry.hub_id!r} cannot be streamed: {error}.") from error


def _stream_file(path: Path) -> IterableDataset:
    columns = Features({"text": Value("string"), "label": Value("string")})
    found = first_rows(path, DataArguments()).columns
    if not columns.keys() <= found.keys():
        raise InputError(f"{path}: no columns text and label; found {listed(found)}.")
    return IterableDataset.from_generator(_text_and_label, features=columns, gen_kwargs={"path": path})


def _text_and_label(path: Path) -> Iterator[dict]:
    for row in stream_rows(path, DataArguments()):
        yield {"text": row.get("text"), "label": None if row.get("label") is None else str(row["label"])}


def _stream_labels(rows: IterableDataset, column: str, entry: PaperDataset) -> IterableDataset:
    settings = {"entry": entry, "column": column, "names": getattr((rows.features or {}).get(column), "names", None)}
    rows = rows.select_columns(["text", column])
    if entry.other_classes:
        rows = rows.filter(_is_of_the_paper, fn_kwargs=settings)
    return rows.map(_own_row, fn_kwargs=settings, features=entry.features, remove_columns=["text", column])


def _is_of_the_paper(row: dict, entry: PaperDataset, column: str, names: list[str] | None) -> bool:
    return _label_of(row, column, names) in entry.label_ids and bool((row["text"] or "").strip())


def _own_row(row: dict, entry: PaperDataset, column: str, names: list[str] | None) -> dict:
    text, label = row["text"], _label_of(row, column, names)
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{entry.title}: a row with the label {label!r} has no text; remove it from the file.")
    if label not in entry.label_ids:
        raise InputError(f"{entry.title}: {_unknown_label(label, text, entry)} {entry.advice}")
    return {"text": entry.clean(text) if entry.clean else text, "label": entry.label_ids[label]}


def _label_of(row: dict, column: str, names: list[str] | None) -> str:
    label = row[column]
    return names[label] if names and isinstance(label, int) and label >= 0 else str(label).strip()


def _in_validation(row: dict, share: float, seed: int) -> bool:
    """By the text alone, so that any order and any number of workers give the same disjoint splits."""
    digest = hashlib.blake2b(f"{seed}\n{row['text']}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def _not_in_validation(row: dict, share: float, seed: int) -> bool:
    return not _in_validation(row, share, seed)


# Texts


def _without_line_break_tags(text: str) -> str:
    return re.sub(r"(\s*<br\s*/?>\s*)+", " ", text)


def _without_written_line_breaks(text: str) -> str:
    return text.replace("\\n", " ")


def _unescaped(text: str) -> str:
    """AG News: references that have lost their ampersand, tags, and backslashes in place of line breaks."""
    text = re.sub(r"(?<![&\w])(#[0-9]+|quot|lt|gt|amp|nbsp);", r"&\1;", text)
    return html.unescape(text).replace("\\", " ")


# The data sets

_SST1 = (8544, 1101, 2210)
_SST2 = (6920, 872, 1821)
_TREC = ("abbreviation", "entity", "description", "human", "location", "numeric")
_NEWSGROUPS = {
    "hub_id": "SetFit/20_newsgroups",
    "label_column": "label_text",
    "ids_known": False,
    "other_classes": True,
    "exact": False,
}


def _vat_and_vmask(train: int, validation: int, test: int) -> dict[str, tuple[int, int, int]]:
    return {"VAT": (train, validation, test), "VMASK": (train, validation, test)}


PAPER_DATASETS: dict[str, PaperDataset] = {
    "imdb": PaperDataset(
        title="IMDB",
        hub_id="stanfordnlp/imdb",
        label_names=("negative", "positive"),
        aliases={"neg": "negative", "pos": "positive"},
        # Sun & Lu sampled and filtered the reviews
        sizes=_vat_and_vmask(20_000, 5_000, 25_000) | {"Sun & Lu": (17_212, 4_304, 4_363)},
        label_counts={"test": (12_500, 12_500)},
        clean=_without_line_break_tags,
        sorted_by_label=True,
    ),
    "sst1": PaperDataset(
        title="SST-1",
        hub_id="SetFit/sst5",
        label_column="label_text",
        label_names=("very negative", "negative", "neutral", "positive", "very positive"),
        sizes=_vat_and_vmask(*_SST1),
        label_counts={"test": (279, 633, 389, 510, 399)},
    ),
    "sst2": PaperDataset(
        title="SST-2",
        hub_id="SetFit/sst2",
        label_column="label_text",
        label_names=("negative", "positive"),
        sizes=_vat_and_vmask(*_SST2) | {"Sun & Lu": _SST2},
        label_counts={"train": (3310, 3610), "validation": (428, 444), "test": (912, 909)},
        look_alike="GLUE's SST-2 (stanfordnlp/sst2) is another set: 67,349 phrases, and a test split labelled -1.",
        look_alike_rows=67_349,
    ),
    "yelp": PaperDataset(
        title="Yelp polarity",
        hub_id="fancyzhx/yelp_polarity",
        label_names=("negative", "positive"),
        aliases={"1": "negative", "2": "positive"},
        ids_known=False,  # 1 is the name of the first class, not the id of the second
        sizes=_vat_and_vmask(500_000, 60_000, 38_000),
        label_counts={"test": (19_000, 19_000)},
        clean=_without_written_line_breaks,
        look_alike="Labels are the names, or 1 and 2 as in the original files.",
    ),
    "ag_news": PaperDataset(
        title="AG News",
        hub_id="fancyzhx/ag_news",
        label_names=("World", "Sports", "Business", "Sci/Tech"),
        sizes=_vat_and_vmask(114_000, 6_000, 7_600),
        label_counts={"test": (1900, 1900, 1900, 1900)},
        clean=_unescaped,
    ),
    "trec": PaperDataset(
        title="TREC",
        hub_id="SetFit/TREC-QC",
        label_column="label_coarse_text",
        label_names=_TREC,
        aliases=dict(zip(("ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"), _TREC, strict=True))
        | {
            "entities": "entity",
            "description and abstract concepts": "description",
            "human beings": "human",
            "locations": "location",
            "numeric values": "numeric",
        },
        ids_known=False,
        sizes=_vat_and_vmask(5_000, 452, 500),
        label_counts={"test": (9, 94, 138, 65, 81, 113)},
        look_alike="The column 'label' of the Hub holds the 50 fine classes; the 6 of the papers are in "
        "'label_coarse_text'.",
    ),
    "subj": PaperDataset(
        title="Subj",
        hub_id="SetFit/subj",
        label_column="label_text",
        label_names=("objective", "subjective"),
        ids_known=False,
        sizes=_vat_and_vmask(8_000, 1_000, 1_000),
        held_out_from="test",
    ),
    "twitter": PaperDataset(
        title="Twitter",
        hub_id="cardiffnlp/tweet_eval",
        config_name="sentiment",
        label_names=("negative", "neutral", "positive"),
        sizes={"VAT": (7_969, 1_375, 3_795)},
        stand_in="TweetEval subset",
        look_alike="The paper's tweets (SemEval 2013 to 2015) are not on the Hub: TweetEval is SemEval 2017.",
    ),
    "20news_1": PaperDataset(
        title="20News I",
        label_names=("rec.sport.baseball", "rec.sport.hockey"),
        sizes={"Sun & Lu": (1236, 310, 387)},
        **_NEWSGROUPS,
    ),
    "20news_2": PaperDataset(
        title="20News II",
        label_names=("rec.motorcycles", "sci.med", "talk.politics.guns"),
        sizes={"Sun & Lu": (2300, 240, 274)},
        **_NEWSGROUPS,
    ),
}
