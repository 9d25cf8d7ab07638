"""Data sets of the papers: the Hub's columns and label ids, local folders, look-alikes, splits, streams."""

import hashlib
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset, DatasetDict, IterableDatasetDict
from hypothesis import given
from hypothesis import strategies as st
from tables import BOTH, json_lines, labelled, save

from hf_vat.data.papers import load_paper_dataset, size_note, stratified_split
from hf_vat.data.registry import PAPER_DATASETS
from hf_vat.errors import InputError


@pytest.fixture
def hub(monkeypatch):
    """Put a data set where the Hub is, and record what was asked for."""

    def put(**splits: Dataset) -> list:
        asked = []

        def load_dataset(path, name=None, revision=None, streaming=False):
            asked.append((path, name, revision))
            if not streaming:
                return DatasetDict(splits)
            return IterableDatasetDict({split: rows.to_iterable_dataset() for split, rows in splits.items()})

        monkeypatch.setattr("hf_vat.data.files.load_dataset", load_dataset)
        monkeypatch.setattr("hf_vat.data.papers.load_dataset", load_dataset)
        return asked

    return put


@pytest.fixture
def with_sizes(monkeypatch):
    """Pretend that the paper's splits are small."""

    def shrink(name: str, train: int, validation: int, test: int, **others) -> None:
        entry = replace(PAPER_DATASETS[name], sizes={"VAT": (train, validation, test)}, **others)
        monkeypatch.setitem(PAPER_DATASETS, name, entry)

    return shrink


@pytest.fixture
def folder(tmp_path):
    """A folder with a CSV file of columns text and label for each split."""

    def make(header=("text", "label"), **splits) -> Path:
        for split, rows in splits.items():
            save(tmp_path / f"{split}.csv", rows, header)
        return tmp_path

    return make


def with_names(names: list[str], labels: list[int], text="text {}") -> Dataset:
    return labelled(names, labels, [text.format(row) for row in range(len(labels))])


def counts(rows: Dataset) -> list[int]:
    found = Counter(rows["label"])
    return [found[label] for label in range(rows.features["label"].num_classes)]


# Real data


@pytest.mark.parametrize(
    "name, of_classes, digests",
    [
        ("sst1", [279, 633, 389, 510, 399], ["7c328b5d2474de4d", "e3af5d765d51addb", "632cd1dac4142dd2"]),
        ("sst2", [912, 909], ["2e21da8159913d67", "98dbab36df88387a", "929b530c89daec3c"]),
        ("trec", [9, 94, 138, 65, 81, 113], ["54cb72ab1045b641", "7d1985564bb5896c", "6a4381428c9351ee"]),
        ("subj", [495, 505], ["d96dc01aeb8e2f0b", "ac5783be62ce4486", "49cc59bb40de725f"]),
    ],
)
def test_pitfall_31_real_folder_has_the_papers_sizes_and_its_rows(shared_data, name, of_classes, digests):
    """Texts, ids and class names in their order: a change makes committed results those of other data."""
    splits = load_paper_dataset(name, shared_data / name)
    assert list(splits) == ["train", "validation", "test"]
    assert tuple(splits.num_rows.values()) == PAPER_DATASETS[name].sizes["VAT"] == PAPER_DATASETS[name].sizes["VMASK"]
    assert size_note(name, splits.num_rows) == ""
    assert splits["test"].features == PAPER_DATASETS[name].features
    assert counts(splits["test"]) == of_classes
    contents = [[rows["text"][:], rows["label"][:], rows.features["label"].names] for rows in splits.values()]
    assert [hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16] for content in contents] == digests


@pytest.mark.parametrize("name, sizes", [("20news_1", [1078, 119, 796]), ("20news_2", [1564, 173, 1158])])
def test_real_folder_of_other_sizes_says_so(shared_data, caplog, name, sizes):
    splits = load_paper_dataset(name, shared_data / name)
    assert list(splits.num_rows.values()) == sizes
    note = size_note(name, splits.num_rows)
    assert note.startswith(f"Rows unlike the paper's (Sun & Lu): train {sizes[0]:,} instead of ")
    assert note in caplog.text
    assert splits["train"].info.description == f"{PAPER_DATASETS[name].title}. {note}"


def test_real_ag_news_sample_names_the_difference(shared_data):
    splits = load_paper_dataset("ag_news", shared_data / "ag_news_small")
    assert size_note("ag_news", splits.num_rows, "VMASK") == (
        "Rows unlike the paper's (VMASK): train 6,000 instead of 114,000, validation 600 instead of 6,000, test 1,000 "
        "instead of 7,600."
    )
    assert splits["test"].features["label"].names == ["World", "Sports", "Business", "Sci/Tech"]
    assert not any("\\" in text or "#39;" in text for text in splits["train"]["text"])


# The Hub


def test_imdb_is_split_without_line_break_tags_and_shuffled(hub, with_sizes):
    with_sizes("imdb", 16, 4, 12)
    names = ["neg", "pos"]
    asked = hub(
        train=with_names(names, [0] * 10 + [1] * 10, "One {}.<br /><br />Two<br/>."),
        test=with_names(names, [0] * 6 + [1] * 6),
        unsupervised=with_names(names, [-1] * 3),
    )
    splits = load_paper_dataset("imdb")
    assert asked == [("stanfordnlp/imdb", None, None)]
    assert list(splits) == ["train", "validation", "test"]
    assert splits["train"].features["label"].names == ["negative", "positive"]
    assert counts(splits["train"]) == [8, 8] and counts(splits["validation"]) == [2, 2]
    assert {*splits["train"]["text"], *splits["validation"]["text"]} == {f"One {row}. Two ." for row in range(20)}
    for split in ("train", "test"):
        assert len(set(splits[split]["label"][:6])) == 2  # not sorted by label
    assert load_paper_dataset("imdb")["validation"][:] == splits["validation"][:]
    assert load_paper_dataset("imdb", seed=1)["validation"][:] != splits["validation"][:]


def test_yelp_class_names_are_numbers_and_line_breaks_written_out(hub, with_sizes):
    with_sizes("yelp", 10, 2, 2)
    hub(train=with_names(["1", "2"], [1, 0] * 6, "Nice.\\nRow {}."), test=with_names(["1", "2"], [0, 1]))
    splits = load_paper_dataset("yelp")
    assert splits["test"].features["label"].names == ["negative", "positive"]
    assert splits["test"]["label"][:] == [0, 1]
    assert all(text.startswith("Nice. Row ") for text in splits["train"]["text"])


def test_ag_news_is_unescaped(hub, with_sizes):
    with_sizes("ag_news", 4, 2, 4)
    names = ["World", "Sports", "Business", "Sci/Tech"]
    text = "It #39;s AT&amp;T\\and &lt;b&gt; #36;5 quot;so quot; #1;{} C#39; 5 lt; 6"
    hub(train=with_names(names, [0, 1, 2, 3, 0, 1]), test=with_names(names, [0, 1, 2, 3], text))
    assert load_paper_dataset("ag_news")["test"]["text"][0].startswith('It \'s AT&T and <b> $5 "so " ')


TREC = {
    "description and abstract concepts": "description",
    "entities": "entity",
    "abbreviation": "abbreviation",
    "human beings": "human",
    "numeric values": "numeric",
    "locations": "location",
}


def test_trec_takes_coarse_classes_by_their_texts_not_their_ids(hub, with_sizes):
    with_sizes("trec", 6, 6, 6)

    def rows(copies):
        texts = [*TREC] * copies
        return Dataset.from_dict(
            {
                "text": [f"Question {row} ?" for row in range(len(texts))],
                "label": [40 + row for row in range(len(texts))],  # fine ids
                "label_text": ["a fine class"] * len(texts),
                "label_coarse": [row % 6 for row in range(len(texts))],
                "label_coarse_text": texts,
            }
        )

    asked = hub(train=rows(2), test=rows(1))
    splits = load_paper_dataset("trec")
    assert asked[0][0] == "SetFit/TREC-QC"
    assert splits["test"].column_names == ["text", "label"]
    names = ["abbreviation", "entity", "description", "human", "location", "numeric"]
    assert splits["test"].features["label"].names == names
    assert [names[label] for label in splits["test"]["label"]] == [*TREC.values()]
    assert counts(splits["validation"]) == [1] * 6


def set_fit(name: str, labels: list[str]) -> Dataset:
    """As SetFit's data sets are: the ids in `label` tell nothing, the names are in `label_text`."""
    return Dataset.from_dict(
        {"text": [f"{name} {row}" for row in range(len(labels))], "label": [0] * len(labels), "label_text": labels}
    )


def test_subj_validation_comes_from_the_test_split(hub, with_sizes):
    with_sizes("subj", 4, 4, 4)
    test = set_fit("test", ["objective"] * 4 + ["subjective"] * 4)
    hub(train=set_fit("train", ["subjective", "objective"] * 2), test=test)
    splits = load_paper_dataset("subj")
    assert splits["train"]["label"][:] == [1, 0, 1, 0]
    assert counts(splits["validation"]) == counts(splits["test"]) == [2, 2]
    assert {*splits["validation"]["text"], *splits["test"]["text"]} == {f"test {row}" for row in range(8)}


def test_twitter_from_the_hub_is_called_tweeteval_subset(hub, with_sizes):
    with_sizes("twitter", 10, 4, 6)
    names = ["negative", "neutral", "positive"]
    asked = hub(
        train=with_names(names, [0, 1, 1, 2, 2] * 6),
        validation=with_names(names, [0, 1, 2, 1] * 3),
        test=with_names(names, [0, 1, 2] * 5),
    )
    splits = load_paper_dataset("twitter")
    assert asked == [("cardiffnlp/tweet_eval", "sentiment", None)]
    assert {split: counts(rows) for split, rows in splits.items()} == {
        "train": [2, 4, 4],
        "validation": [1, 2, 1],
        "test": [2, 2, 2],
    }
    assert {rows.info.description for rows in splits.values()} == {"TweetEval subset."}


def test_twitter_from_a_folder_is_not_called_tweeteval(folder):
    rows = [("so so", "neutral"), ("yay", "positive"), ("nope", "negative")]
    splits = load_paper_dataset("twitter", folder(train=rows, validation=rows, test=rows))
    assert splits["train"]["label"][:] == [1, 2, 0]
    assert splits["train"].info.description.startswith(
        "Twitter. Rows unlike the paper's (VAT): train 3 instead of 7,969"
    )


TWEETS = [
    ("1", "11", "positive", "so good http://t.co/x"),
    ("2", "12", '"objective-OR-neutral"', "at 5 PM"),
    ("3", "13", "negative", "Not Available"),
    ("4", "14", "negative", 'he said "no", twice'),
]


@pytest.fixture
def semeval(tmp_path):
    """The organizers' files of subtask B: tabs, no header, no quoting."""

    def make(rows, **splits) -> Path:
        for split in ("train", "validation", "test"):
            lines = ["\t".join(fields) for fields in splits.get(split, rows)]
            (tmp_path / f"{split}.tsv").write_text("\n".join(lines), encoding="utf-8")
        return tmp_path

    return make


def test_twitter_from_the_organizers_files(semeval, caplog):
    with_topic = [(*fields[:2], "a topic", *fields[2:]) for fields in TWEETS]
    caplog.set_level("INFO", "hf_vat")
    splits = load_paper_dataset("twitter", semeval(TWEETS, test=with_topic))
    for split in ("train", "validation", "test"):
        assert splits[split]["text"][:] == [TWEETS[0][3], TWEETS[1][3], TWEETS[3][3]]
        assert splits[split]["label"][:] == [2, 1, 0]
    assert "test.tsv: 3 tweets; left out: 1 not available" in caplog.text
    assert splits["train"].info.description.startswith(
        "Twitter. Rows unlike the paper's (VAT): train 3 instead of 7,969"
    )


def test_damaged_files_of_the_organizers_name_the_line(semeval):
    with pytest.raises(InputError, match=r"train\.tsv, line 2: unknown polarity 'unknwn'.*gold labels"):
        load_paper_dataset("twitter", semeval([TWEETS[0], ("2", "12", "unknwn", "text")]))
    with pytest.raises(InputError, match=r"train\.tsv, line 2: .* has not the form"):
        load_paper_dataset("twitter", semeval([TWEETS[0], ("2", "positive", "text")]))
    with pytest.raises(InputError, match=r"test\.tsv: no tweet is left: 1 are not available"):
        load_paper_dataset("twitter", semeval(TWEETS, test=[TWEETS[2]]))


def test_20news_keeps_its_two_groups_and_drops_empty_texts(hub):
    groups = ["sci.space", "rec.sport.hockey", "rec.sport.baseball"] * 10
    train = set_fit("post", groups)
    empty = {"text": "  \n", "label": 0, "label_text": "rec.sport.hockey"}
    hub(train=Dataset.from_list([*train, empty]), test=set_fit("test", groups))
    splits = load_paper_dataset("20news_1")
    # 310 of 1,546 is a fifth
    assert {split: counts(rows) for split, rows in splits.items()} == {
        "train": [8, 8],
        "validation": [2, 2],
        "test": [10, 10],
    }


def test_a_hub_data_set_that_has_changed_is_refused(hub):
    hub(**{split: set_fit(split, ["negative", "positive"] * 2) for split in ("train", "validation", "test")})
    with pytest.raises(InputError, match=r"sst2: .*train 4 instead of 6,920.* The data set on the Hub has changed"):
        load_paper_dataset("sst2")


@BOTH
def test_c66_offline_names_the_hub_id_and_data_dir(monkeypatch, streaming):
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"yelp: Data set 'fancyzhx/yelp_polarity' cannot be .*--data_dir"):
        load_paper_dataset("yelp", streaming=streaming)


# Local folders

ROWS = [("good", "positive"), ("bad", "negative"), ("fine", "positive"), ("poor", "negative")]


@BOTH
def test_c69_label_order_is_the_registrys_whatever_the_order_in_the_file(folder, streaming):
    path = folder(train=ROWS, validation=ROWS[::-1], test=ROWS[:1])
    splits = load_paper_dataset("sst2", path, streaming=streaming)
    assert [row["label"] for row in splits["train"]] == [1, 0, 1, 0]
    assert [row["label"] for row in splits["validation"]] == [0, 1, 0, 1]
    assert list(splits["test"]) == [{"text": "good", "label": 1}]
    assert splits["train"].features == PAPER_DATASETS["sst2"].features


@BOTH
def test_c70_ids_are_positions_where_the_hub_has_that_order(folder, streaming):
    path = folder(train=[("good", 1), ("bad", 0)], validation=[("bad", 0)], test=[("good", 1)])
    splits = load_paper_dataset("sst2", path, streaming=streaming)
    assert [row["label"] for row in splits["train"]] == [1, 0]


@BOTH
@pytest.mark.parametrize(
    "name, label, message",
    [
        ("trec", "17", "unknown label '17'.*'label' of the Hub holds the 50 fine classes"),
        ("trec", "3", "unknown label '3'; allowed are abbreviation, entity"),
        ("yelp", "0", "unknown label '0'.*1 and 2 as in the original files"),
        ("subj", "1", "unknown label '1'; allowed are objective, subjective"),
        ("sst2", "-1", "label '?-1.*GLUE's SST-2 .* is another set"),
        ("sst1", "fair", "unknown label 'fair'"),
    ],
)
def test_labels_of_another_kind_are_refused(folder, name, label, message, streaming):
    good = PAPER_DATASETS[name].label_names
    rows = [("a text", good[0]), ("another", good[1])]
    unlike = [*rows, ("a third", label)]
    path = folder(train=unlike if label != "-1" else rows, validation=rows, test=unlike)
    with pytest.raises(InputError, match=message):
        list(load_paper_dataset(name, path, streaming=streaming)["test"])


def test_pitfall_32_glue_sst2_is_refused_by_its_rows_and_its_labels(folder, tmp_path):
    phrases = [(f"phrase {row}", row % 2) for row in range(67_349)]
    path = folder(("sentence", "label"), train=phrases, validation=phrases[:4], test=phrases[:4])
    with pytest.raises(InputError, match=r"no columns text and label; found sentence, label.*GLUE's SST-2"):
        load_paper_dataset("sst2", path)
    path = folder(train=phrases, validation=phrases[:4], test=phrases[:4])
    with pytest.raises(InputError, match=r"training split has 67,349 rows.*GLUE's SST-2"):
        load_paper_dataset("sst2", path)
    path = folder(train=phrases[:4], validation=phrases[:4], test=[("phrase", -1)])
    with pytest.raises(InputError, match=r"row 1 has the label -1.*GLUE's SST-2"):
        load_paper_dataset("sst2", path)


def test_right_sizes_with_other_label_counts_are_refused(folder, with_sizes):
    with_sizes("sst2", 4, 4, 4, label_counts={"test": (2, 2)})
    splits = load_paper_dataset("sst2", folder(train=ROWS, validation=ROWS, test=ROWS))
    assert splits["train"].info.description == "SST-2."
    path = folder(test=[("good", "positive"), *ROWS[:3]])
    with pytest.raises(InputError, match=r"test split has 1, 3 rows of the classes negative, positive.* has 2, 2"):
        load_paper_dataset("sst2", path)


def test_folder_without_validation_gets_the_papers_share(folder):
    rows = [(f"text {row}", ("negative", "positive")[row % 4 == 0]) for row in range(100)]
    splits = load_paper_dataset("sst2", folder(train=rows, test=rows[:8]))
    # 872 of 6,920 + 872 is 11.2 %, and a quarter of the rows is positive
    assert counts(splits["validation"]) == [8, 3] and counts(splits["train"]) == [67, 22]


@BOTH
def test_f68_the_folder_of_the_set_or_the_one_above_it(tmp_path, streaming):
    """Subjectivity and SST-2: two sets whose rows must not be read for each other's."""
    for name, classes in {"subj": ("objective", "subjective"), "sst2": ("negative", "positive")}.items():
        (tmp_path / "data" / name).mkdir(parents=True)
        for split in ("train", "validation", "test"):
            rows = [(f"{name} {split} {row}", classes[row % 2]) for row in range(8)]
            save(tmp_path / "data" / name / f"{split}.csv", rows)
    (tmp_path / "data" / "notes").mkdir()
    read = {}
    for data_dir in (tmp_path / "data", str(tmp_path / "data"), tmp_path / "data" / "sst2"):
        splits = load_paper_dataset("sst2", data_dir, streaming=streaming)
        read[str(data_dir)] = [row["text"] for split in splits.values() for row in split]
        assert len(read[str(data_dir)]) == 24 and all(text.startswith("sst2 ") for text in read[str(data_dir)])
    assert len({tuple(texts) for texts in read.values()}) == 1
    with pytest.raises(
        InputError, match=r"holds .*sst2.*subj.* and no folder 'trec'\. Give the folder with the files of trec"
    ):
        load_paper_dataset("trec", tmp_path / "data", streaming=streaming)
    with pytest.raises(InputError, match=r"is that of 'sst2'\. Give the folder with the files of trec"):
        load_paper_dataset("trec", tmp_path / "data" / "sst2", streaming=streaming)


def test_f68_a_folder_with_files_of_its_own_may_hold_other_sets(folder):
    own = folder(train=ROWS, test=ROWS)
    (own / "trec").mkdir()
    assert len(load_paper_dataset("sst2", own)["test"]) == len(ROWS)


@BOTH
def test_what_is_missing_is_named(folder, tmp_path, streaming):
    with pytest.raises(InputError, match=r"no data set 'sst3'; known are imdb, sst1"):
        load_paper_dataset("sst3", streaming=streaming)
    with pytest.raises(InputError, match=r"no folder .*nowhere.*--data_dir"):
        load_paper_dataset("sst2", tmp_path / "nowhere", streaming=streaming)
    with pytest.raises(InputError, match=r"no split test with labels; found train"):
        load_paper_dataset("sst2", folder(train=ROWS), streaming=streaming)
    with pytest.raises(InputError, match="'VMASK' gives no sizes of twitter; those that do are VAT"):
        size_note("twitter", {}, "VMASK")


# Drawn splits


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60).flatmap(
        lambda labels: st.tuples(
            st.just(labels), st.lists(st.integers(0, len(labels)), min_size=2, max_size=2), st.integers(0, 9)
        )
    )
)
def test_drawn_splits_are_disjoint_and_in_proportion(drawn):
    labels, (cut, other), seed = drawn
    sizes = {"train": min(cut, other), "validation": abs(cut - other)}
    splits = stratified_split(labels, sizes, seed)
    rows = np.concatenate(list(splits.values()))
    assert {name: len(positions) for name, positions in splits.items()} == sizes
    assert len(set(rows.tolist())) == len(rows)
    for label in set(labels):
        share = labels.count(label) / len(labels)
        assert abs(sum(labels[row] == label for row in splits["train"]) - share * sizes["train"]) < 1


def test_drawn_splits_are_always_the_same():
    splits = stratified_split([0, 1, 1, 2] * 500, {"train": 1500, "validation": 500}, seed=42)
    digest = hashlib.sha256(np.concatenate([splits["train"], splits["validation"]]).astype("<i8").tobytes())
    assert digest.hexdigest()[:16] == "ff9978415dd830dd"


def test_more_rows_than_there_are_cannot_be_drawn():
    with pytest.raises(InputError, match=r"\{'train': 3\} rows cannot be drawn from 2 rows"):
        stratified_split([0, 1], {"train": 3}, 0)


# Streams


def test_streamed_hub_set_has_disjoint_splits_and_the_same_rows_again(hub, with_sizes):
    with_sizes("yelp", 500_000, 60_000, 2)
    names = ["1", "2"]
    hub(train=with_names(names, [0, 1] * 1500, "Row\\n{}"), test=with_names(names, [1, 0]))
    splits = load_paper_dataset("yelp", streaming=True)
    rows = {split: list(stream) for split, stream in splits.items()}
    assert rows["test"] == [{"text": "text 0", "label": 1}, {"text": "text 1", "label": 0}]
    texts = [row["text"] for row in rows["train"] + rows["validation"]]
    assert sorted(texts) == sorted(f"Row {row}" for row in range(3000))
    # 60,000 of 560,000 is 10.7 %: 321 rows, with a standard deviation of 17
    assert 260 < len(rows["validation"]) < 382
    assert 0.4 < np.mean([row["label"] for row in rows["validation"]]) < 0.6
    assert all(stream.features == PAPER_DATASETS["yelp"].features for stream in splits.values())
    shuffled = load_paper_dataset("yelp", streaming=True)["validation"].shuffle(seed=1, buffer_size=100)
    assert sorted(row["text"] for row in shuffled) == sorted(row["text"] for row in rows["validation"])
    assert list(load_paper_dataset("yelp", seed=1, streaming=True)["validation"]) != rows["validation"]


def test_streamed_20news_keeps_its_groups(hub):
    hub(**{split: set_fit(split, ["sci.space", "rec.sport.hockey"] * 2) for split in ("train", "test")})
    assert list(load_paper_dataset("20news_1", streaming=True)["test"]) == [
        {"text": "test 1", "label": 1},
        {"text": "test 3", "label": 1},
    ]


@pytest.mark.parametrize(
    "name, message",
    [
        ("twitter", "Twitter cannot be streamed: its 13,139 rows fit in memory"),
        ("imdb", "IMDB cannot be streamed: its rows are sorted by class.* 50,000 rows fit in memory"),
    ],
)
def test_a_stand_in_and_a_set_sorted_by_class_are_not_streamed(folder, name, message):
    for data_dir in (None, folder(train=ROWS, validation=ROWS, test=ROWS)):
        with pytest.raises(InputError, match=message):
            load_paper_dataset(name, data_dir, streaming=True)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_c73_streamed_texts_are_the_strings_as_written(tmp_path, suffix):
    texts = ["007", "NA", "None", 'He said "no", twice\nand left', "1.0"]
    rows = [(row, text, ("negative", "positive")[row % 2]) for row, text in enumerate(texts, 1)]
    for split in ("train", "validation", "test"):
        save(tmp_path / f"{split}.{suffix}", rows, ("id", "text", "label"))
    splits = load_paper_dataset("sst2", tmp_path, streaming=True)
    assert list(splits["train"]) == [
        {"text": text, "label": label} for text, label in zip(texts, [1, 0, 1, 0, 1], strict=True)
    ]
    assert list(load_paper_dataset("sst2", tmp_path)["train"]) == list(splits["train"])


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("train.csv", "sentence,label\ngood,positive\n", r"no columns text and label; found sentence, label"),
        ("train.csv", "text,label\n", r"train\.csv: no rows"),
        ("train.csv", "", r"train\.csv: no rows"),
        (
            "train.jsonl",
            json_lines({"sentence": "good", "label": "positive"}),
            "no columns text and label; found sentence, label",
        ),
    ],
)
def test_c74_streamed_file_that_cannot_be_used(folder, write, name, content, message):
    write(name, content)
    with pytest.raises(InputError, match=message):
        load_paper_dataset("sst2", folder(test=ROWS), streaming=True)


@BOTH
@pytest.mark.parametrize("blank", [" ", "\\n \\n"])
def test_c68_a_text_that_is_blank_or_is_so_when_it_is_cleaned(folder, blank, streaming):
    rows = [("good\\nfilm", 2), ("bad", 1), (blank, 2)]
    message = r"train\.csv: no text or no label in row 3 \(column 'text'\)\. .*Fill them in or remove them\. This data"
    with pytest.raises(InputError, match=message):
        list(load_paper_dataset("yelp", folder(train=rows, test=rows[:2]), streaming=streaming)["train"])


@BOTH
def test_c71_whole_floats_are_names_of_classes(folder, streaming):
    rows = [("good", "2.0"), ("bad", "1.0"), ("fine", "2.0")]
    splits = load_paper_dataset("yelp", folder(train=rows, validation=rows, test=rows), streaming=streaming)
    assert [row["label"] for row in splits["train"]] == [1, 0, 1] == splits["test"]["label"][:]


def test_splits_beside_a_streamed_one_are_the_loaded_ones(folder, with_sizes):
    rows = [(f"text {row}", ("objective", "subjective")[row % 2]) for row in range(40)]
    path = folder(train=rows, test=rows)
    streamed, loaded = (load_paper_dataset("subj", path, streaming=streaming) for streaming in (True, False))
    assert list(streamed) == list(loaded) == ["train", "validation", "test"]
    for split in ("train", "validation", "test"):
        assert list(streamed[split]) == list(loaded[split])
    assert "validation 20 instead of 1,000" in streamed["test"].info.description
    with_sizes("subj", 40, 20, 20, label_counts={"test": (9, 11)})
    with pytest.raises(InputError, match="test split has 10, 10 rows of the classes objective, subjective"):
        load_paper_dataset("subj", path, streaming=True)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory in use from /proc")
def test_streamed_file_takes_constant_memory(folder):
    long = " ".join(["word"] * 200)
    train = ((f"{row} {long}", ("negative", "positive")[row % 2]) for row in range(50_000))  # 50 MB
    path = folder(train=train, validation=ROWS, test=ROWS)

    def resident() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    used, seen = [], 0
    for row in load_paper_dataset("sst2", path, streaming=True)["train"]:
        seen += row["label"]
        if row["text"].startswith(("5000 ", "49999 ")):
            used.append(resident())
    assert seen == 25_000
    assert used[1] - used[0] < 10  # MB
