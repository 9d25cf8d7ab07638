"""The data sets of the papers by name: where they are, their classes, their splits and sizes.

Sizes are those of table 1 of Zhou et al. (2021), "Attending via both Fine-tuning and Compressing" (VAT); table 2 of Chen
and Ji (2020), "Learning Variational Word Masks" (VMASK); and table 1 of Sun and Lu (2020), "Understanding Attention for
Text Classification".
"""

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from datasets import Features

from .labels import features_of

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class PaperDataset:
    """What is known of a data set.

    Attributes:
        title: its name in the papers.
        hub_id, config_name, revision: where it is on the Hub. No revision is known to be good, so none is pinned yet.
        label_names: class names in the order of their ids.
        sizes: rows of train, validation and test by paper, "VAT", "VMASK" or "Sun & Lu"; the first is the one that
            [`~hf_vat.data.load_paper_dataset`] makes.
        label_column: column of the Hub data set with the class names.
        aliases: other spellings of class names.
        ids_known: whether the labels 0, 1, … are positions in `label_names`; otherwise they are refused.
        held_out_from: split that validation is drawn from if the source has none.
        label_counts: rows of each class in splits of the papers' sizes.
        clean: what is done with each text.
        sorted_by_label: rows of a class follow each other in the source, so they are shuffled, and not streamed.
        other_classes: whether the source holds more classes, whose rows are left out with those without a text.
        exact: whether the Hub data set gives the papers' sizes; if it does not, it has changed and is refused.
        semeval: whether files in the tab-separated format of SemEval are read too.
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
    semeval: bool = False
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
        return features_of(list(self.label_names))

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

_SST2 = (6920, 872, 1821)
_TREC = ("abbreviation", "entity", "description", "human", "location", "numeric")


def _vat_and_vmask(train: int, validation: int, test: int) -> dict[str, tuple[int, int, int]]:
    return {"VAT": (train, validation, test), "VMASK": (train, validation, test)}


def _newsgroups(title: str, label_names: tuple[str, ...], sizes: tuple[int, int, int]) -> PaperDataset:
    return PaperDataset(
        title=title,
        hub_id="SetFit/20_newsgroups",
        label_column="label_text",
        label_names=label_names,
        ids_known=False,
        sizes={"Sun & Lu": sizes},
        other_classes=True,
        exact=False,
    )


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
        sizes=_vat_and_vmask(8_544, 1_101, 2_210),
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
        semeval=True,
        stand_in="TweetEval subset",
        look_alike="The paper's tweets (SemEval 2013 to 2015) are not on the Hub: TweetEval is SemEval 2017. The organizers' "
        "files of subtask B (tweet id, user id, polarity, text, with tabs between) are read from --data_dir as they are, "
        "named train.tsv, validation.tsv and test.tsv.",
    ),
    "20news_1": _newsgroups("20News I", ("rec.sport.baseball", "rec.sport.hockey"), (1236, 310, 387)),
    "20news_2": _newsgroups("20News II", ("rec.motorcycles", "sci.med", "talk.politics.guns"), (2300, 240, 274)),
}
