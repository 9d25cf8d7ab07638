"""Loading of text classification data: every case is a file that a user could have."""

import csv
import json
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import BOTH, GOOD_BAD, class_labels, classifier, json_lines, labelled, load, save, train_rows
from transformers import HfArgumentParser

from hf_vat.data import DataArguments, load_texts, stream_texts
from hf_vat.data.answers import label_names_of
from hf_vat.errors import InputError

# Sources


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet"])
def test_c66_local_files_of_every_format_load_without_the_hub(write, suffix):
    path = write(f"train{suffix}", [("good", "positive"), ("bad", "negative")])
    train = load(train_file=path)["train"]
    assert train.features == class_labels(["negative", "positive"])
    assert train[:] == {"text": ["good", "bad"], "label": [1, 0]}


def test_c66_hub_name_offline_names_the_local_file_option(monkeypatch):
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"'trec' cannot be loaded.* there is no such folder\. .*--train_file"):
        load(dataset_name="trec")


def test_c66_folder_with_a_loading_script_says_why(write):
    folder = Path(write("trec/trec.py", "raise SystemExit('must not run')")).parent
    with pytest.raises(InputError, match=r"Dataset scripts are no longer supported.*--train_file"):
        load(dataset_name=str(folder))


def test_folder_with_files_named_like_splits(write):
    write("reviews/train.csv", GOOD_BAD)
    write("reviews/dev.jsonl", json_lines({"text": "007", "label": "positive"}))
    folder = Path(write("reviews/test.tsv", "text\tlabel\nNA\tnegative\n")).parent
    splits = load(dataset_name=str(folder))
    assert list(splits) == ["train", "validation", "test"]
    assert splits["validation"][:] == {"text": ["007"], "label": [1]}
    assert splits["test"][:] == {"text": ["NA"], "label": [0]}


def test_folder_with_two_files_for_a_split_or_none(write):
    folder = Path(write("one/reviews.csv", GOOD_BAD)).parent
    with pytest.raises(InputError, match=r"named like a split.*reviews\.csv"):
        load(dataset_name=str(folder))
    write("two/train.csv", GOOD_BAD)
    folder = Path(write("two/train.tsv", GOOD_BAD)).parent
    with pytest.raises(InputError, match=r"train\.csv, train\.tsv could each be the train split"):
        load(dataset_name=str(folder))


def test_folder_of_parquet_shards_as_cloned_from_the_hub(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "set" / "data").mkdir(parents=True)
    for split, labels in (("train", [1, 0]), ("test", [0])):
        rows = labelled(["pos", "neg"], labels, ["a text"] * len(labels))
        rows.to_parquet(tmp_path / "set" / "data" / f"{split}-00000-of-00001.parquet")
    splits = load(dataset_name=str(tmp_path / "set"))
    assert splits["train"].features["label"].names == ["pos", "neg"]
    assert splits["train"]["label"][:] == [1, 0]
    assert splits["test"]["label"][:] == [0]


@pytest.mark.parametrize("name, sizes", [("sst2", (6920, 872, 1821)), ("trec", (5000, 452, 500))])
def test_pitfall_31_real_set_has_its_sizes_and_exact_texts(shared_data, name, sizes):
    folder = shared_data / name
    splits = load(dataset_name=str(folder))
    assert tuple(splits.num_rows.values()) == sizes
    for split, dataset in splits.items():
        with open(folder / f"{split}.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert dataset["text"][:] == [row["text"] for row in rows]
        assert dataset.features["label"].int2str(dataset["label"][:]) == [row["label"] for row in rows]


def texts(**arguments):
    read = stream_texts if arguments.get("streaming") else load_texts
    return read(DataArguments(**arguments), classifier("good", "bad"))


@BOTH
@pytest.mark.parametrize("read", [load, texts])
@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "neither were given"),
        ({"dataset_name": "imdb", "train_file": "x.csv"}, "both were given"),
        ({"test_file": "x.csv", "dataset_name": "y"}, "both were given"),
        ({"paper_dataset": "trec", "train_file": "x.csv"}, "--paper_dataset or local files.*; both were given"),
        ({"train_file": "x.csv", "data_dir": "y"}, "--data_dir is the folder of a --paper_dataset"),
        ({"train_file": "x.csv", "dataset_revision": "main"}, "data sets on the Hub"),
        ({"train_file": "x.csv", "validation_share": 1.0}, "--validation_share is 1.0"),
        ({"train_file": "x.csv", "max_eval_samples": 0}, "--max_eval_samples is 0; it must be at least 1"),
        ({"train_file": "x.csv", "max_eval_samples": -1}, "--max_eval_samples is -1"),
        ({"train_file": "x.csv", "text_column": "label"}, "must differ"),
        ({"train_file": "x.xls"}, r"'\.xls' cannot be read; allowed are \.csv, \.tsv"),
        ({"train_file": "/no/where/x.csv"}, "no folder /no/where"),
        ({"paper_dataset": "trek"}, "no data set 'trek'; known are imdb"),
        ({"paper_dataset": "trec", "label_column": "fine"}, "--label_column is not for --paper_dataset"),
        ({"paper_dataset": "trec", "drop_empty": True}, "--drop_empty is not for --paper_dataset"),
        ({"paper_dataset": "trec", "validation_share": 0.2}, "--validation_share is not for --paper_dataset"),
        ({"paper_dataset": "trec", "dataset_revision": "main"}, "--dataset_revision is not for --paper_dataset"),
        ({"paper_dataset": "trec", "data_dir": "/no/where"}, "no folder /no/where"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(read, arguments, message, streaming):
    with pytest.raises(InputError, match=message):
        read(**arguments, streaming=streaming)


def test_a_sample_has_at_least_one_row():
    with pytest.raises(InputError, match="--max_train_samples is 0"):
        load(train_file="x.csv", max_train_samples=0)


def test_arguments_parse_with_hf_argument_parser():
    (args,) = HfArgumentParser(DataArguments).parse_args_into_dataclasses(
        ["--train_file", "a.csv", "--drop_empty", "--max_train_samples", "5"]
    )
    assert args == DataArguments(train_file="a.csv", drop_empty=True, max_train_samples=5)


def test_missing_file_is_named_with_its_absolute_path_and_its_folder(write, tmp_path, monkeypatch):
    write("train.csv", GOOD_BAD)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        load(train_file="trian.csv")
    assert str(tmp_path.resolve() / "trian.csv") in str(caught.value)
    assert "folder contains: train.csv." in str(caught.value)
    with pytest.raises(InputError, match=r"there is no folder .*nowhere"):
        load(train_file="nowhere/train.csv")


# Texts stay as written


@BOTH
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize(("row", "column"), [((None, "x"), "text"), (("  ", "x"), "text"), (("c", None), "label")])
def test_c68_a_row_without_a_text_or_label_is_named_or_left_out_with_a_count(
    write, caplog, suffix, row, column, streaming
):
    path = write(f"train.{suffix}", [("a", "x"), ("b", "y"), row, ("d", "y"), ("e", "x")])
    with pytest.raises(InputError, match=rf"no text or no label in row 3 \(column '{column}'\)\. .*--drop_empty"):
        train_rows(path, streaming)
    assert [text for text, _ in train_rows(path, streaming, drop_empty=True)] == ["a", "b", "d", "e"]
    assert f"train.{suffix}: rows without a text or a label, left out: 1" in caplog.text


@BOTH
def test_c68_one_row_must_be_left(write, streaming):
    path = write("train.csv", [("", "good"), ("bad", None)])
    with pytest.raises(InputError, match="no row has both a text and a label"):
        load(train_file=path, drop_empty=True, streaming=streaming)


def test_c68_blank_cells_and_pandas_nan_are_missing(write, tmp_path):
    with pytest.raises(InputError, match=r"row 2 \(column 'text'\), row 3 \(column 'text'\)\."):
        load(train_file=write("train.csv", "text,label\na,x\n,y\n  ,y\n"))
    pd.DataFrame({"text": ["a", float("nan")], "label": ["x", "y"]}).to_parquet(tmp_path / "train.parquet")
    with pytest.raises(InputError, match=r"row 2 \(column 'text'\)"):
        load(train_file=tmp_path / "train.parquet")
    with pytest.raises(InputError, match=r"row 7 \(column 'text'\), … \(9 in all\)"):
        load(train_file=write("many.csv", "text,label\na,x\nb,y\n" + ",x\n" * 9))


def test_c73_numbers_and_words_for_nothing_stay_the_texts_that_they_are(write):
    texts = ["12", "7", "007", "1.50", "None", "NA", "null", "nan", " two  spaces ", "TRUE"]
    path = write("train.csv", "text,label\n" + "".join(f"{text},{'xy'[i % 2]}\n" for i, text in enumerate(texts)))
    assert load(train_file=path)["train"]["text"][:] == texts
    path = write("blank.csv", "text,label\n12,x\n,y\n007,y\n")
    assert load(train_file=path, drop_empty=True)["train"]["text"][:] == ["12", "007"]
    path = write("train.jsonl", '{"text": 12, "label": "x"}\n{"text": 7.50, "label": "y"}\n')
    assert load(train_file=path)["train"]["text"][:] == ["12", "7.50"]


@BOTH
def test_c74_other_encodings_need_the_option_and_the_error_says_so(write, streaming):
    for content, byte, found in (("café,x\ntea,y\n", 14, ["café", "tea"]), ("fine,x\nüber,y\n", 18, ["fine", "über"])):
        path = write("train.csv", "text,label\n" + content, "latin-1")
        message = rf"train\.csv: byte {byte} \(counted from 0\) is not utf-8.*--encoding cp1252"
        with pytest.raises(InputError, match=message):
            train_rows(path, streaming)
        assert [text for text, _ in train_rows(path, streaming, encoding="latin-1")] == found
    with pytest.raises(InputError, match="Encoding 'utf-9' is unknown"):
        train_rows(path, streaming, encoding="utf-9")


@BOTH
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_c74_byte_order_mark_quotes_and_line_ends(write, encoding, streaming):
    path = write("train.csv", 'text,label\r\n"a, ""b""\nc",x\r\nd,y\r\n', encoding)
    assert train_rows(path, streaming, text_column="text") == [('a, "b"\nc', "x"), ("d", "y")]


@BOTH
@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.csv", "text,label\n", r"a\.csv: no rows"),
        ("a.csv", "", r"a\.csv: no rows"),
        ("a.jsonl", "\n", r"a\.jsonl: no rows"),
        ("a.csv", "text,label\nfine,x\nNice, good,y\n", "row 2 has 3 cells, but the header has 2"),
        ("a.csv", 'text,label\n"good" film,x\n', "line 2: .*quotation mark"),
        ("a.csv", 'text,label\na,x\n"b" c,y\n', r"a\.csv, line 3: .*quotation mark"),
        ("a.csv", 'text,label\n"never closed,x\n', "quotation mark"),
        ("a.csv", "text,text,label\na,b,x\n", "text more than once"),
        ("a.csv", "text,class\na,x\n", "no column 'label'; found text, class"),
        ("a.csv", "text,label\na,x\nb,x\n", r"all rows have the label 'x'\. .*at least two classes"),
        ("a.csv", "text,label\na,x\nb,0.5\n", "row 1 has the name 'x' as its label, but row 2 the number 0.5"),
        ("a.csv", "text,label\na,1\nb,0.5\n", "row 2 has the label 0.5. Numbers as labels must be whole"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": \n', r"a\.jsonl, line 2: Expecting value"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n5\n', "row 2 is '5', not an object"),
        # F26: words are for explaining alone
        (
            "a.jsonl",
            '{"text": ["a"], "label": "x"}\n',
            r"row 1 of column 'text' is \['a'\].* already split for explaining",
        ),
        ("a.jsonl", '{"text": "a", "label": {"x": 1}}\n', r"row 1 has the label \{'x': '1'\}; each text needs one"),
        ("a.jsonl", '{"text": "half \\ud83d", "label": "x"}\n', "row 1 contains half a character"),
        ("a.parquet", "text,label\n", "not a Parquet file"),
    ],
)
def test_c74_damaged_files_name_the_place(write, name, content, message, streaming):
    with pytest.raises(InputError, match=message):
        load(train_file=write(name, content), streaming=streaming)


@pytest.mark.parametrize(
    "content, message",
    [("[]", r"a\.json: no rows"), ('[{"text": "a", "label": "x"},\n 5]', "row 2 is '5', not an object")],
)
def test_damaged_arrays_name_the_place(write, content, message):
    with pytest.raises(InputError, match=message):
        load(train_file=write("a.json", content))


def test_json_array_is_read_like_json_lines(write):
    content = json.dumps([{"text": "a", "label": "x"}, {"text": "b", "label": "y", "more": 1}], indent=1)
    assert load(train_file=write("train.json", content))["train"]["text"][:] == ["a", "b"]


@settings(max_examples=30)
@given(texts=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=2))
def test_any_text_survives_csv_and_json(tmp_path_factory, texts):
    texts = [text + "." for text in texts]  # never blank
    rows = [(text, "xy"[i % 2]) for i, text in enumerate(texts)]
    folder = tmp_path_factory.mktemp("texts")
    for name in ("a.csv", "a.jsonl"):
        assert load(train_file=save(folder / name, rows))["train"]["text"][:] == texts


# Columns


def test_c72_columns_are_found_or_named(write):
    extra = write("a.csv", "text,reason,label\na,because,x\nb,why,y\n")
    assert load(train_file=extra)["train"].column_names == ["text", "label"]
    assert load(train_file=extra, text_column="reason")["train"]["text"][:] == ["because", "why"]
    assert load(train_file=write("b.csv", "id,sentence,label\n1,a,x\n2,b,y\n"))["train"]["text"][:] == ["a", "b"]
    named = write("c.csv", "title,body,class\na,A,x\nb,B,y\n")
    assert load(train_file=named, text_column="body", label_column="class")["train"]["text"][:] == ["A", "B"]
    with pytest.raises(InputError, match=r"no column 'text', .*; found title, body, class\..*--text_column"):
        load(train_file=named, label_column="class")
    with pytest.raises(InputError, match=r"no column 'label'; found title, body, class\..*--label_column"):
        load(train_file=named, text_column="body")
    with pytest.raises(InputError, match=r"no column 'bdy'; found title, body, class\."):
        load(train_file=named, text_column="bdy", label_column="class")


def test_c73_a_column_of_numbers_gives_the_texts_that_other_formats_give(tmp_path):
    for name in ("a.parquet", "a.jsonl"):
        assert load(train_file=save(tmp_path / name, [(12, "x"), (7, "y")]))["train"]["text"][:] == ["12", "7"]


# Labels


def test_c69_one_label_map_made_from_train(write):
    train = write("train.csv", "text,label\na,positive\nb,negative\nc,neutral\n")
    test = write("test.csv", "text,label\nd,positive\ne,neutral\n")
    splits = load(train_file=train, test_file=test)
    assert splits["test"].features == splits["train"].features
    assert splits["train"].features["label"].names == ["negative", "neutral", "positive"]
    assert splits["test"]["label"][:] == [2, 1]
    with pytest.raises(InputError, match=r"dev\.csv: row 2 has the unknown label 'mixed'; known are negative, neutral"):
        load(train_file=train, validation_file=write("dev.csv", "text,label\nf,neutral\ng,mixed\n"))


def test_c69_given_names_keep_their_order_and_need_no_train_split(write):
    test = write("test.csv", "text,label\nd,positive\ne,neutral\n")
    names = ["positive", "negative", "neutral"]
    splits = load(names, test_file=test)
    assert splits["test"].features["label"].names == names
    assert splits["test"]["label"][:] == [0, 2]
    with pytest.raises(InputError, match="no training split to take the class names from, only test"):
        load(test_file=test)


@pytest.mark.parametrize("classes", [("negative", "positive"), ("0", "1")])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_c70_names_ids_and_ids_as_strings_give_the_same_ids(write, name, classes):
    for values in [classes, (0, 1)] if classes == ("0", "1") else [classes]:
        train = load(train_file=write(name, [("a", values[1]), ("b", values[0])]))["train"]
        assert train["label"][:] == [1, 0]
        assert train.features["label"].names == list(classes)


def test_numbers_as_labels_are_sorted_by_value(write):
    path = write("a.csv", "text,label\na,10\nb,9\nc,2\n")
    assert load(train_file=path)["train"].features["label"].names == ["2", "9", "10"]


def test_c71_missing_and_mixed_labels_name_the_row(write):
    blank = write("a.csv", "text,label\na,pos\nb,\nc,neg\n")
    with pytest.raises(InputError, match=r"row 2 \(column 'label'\)"):
        load(train_file=blank)
    assert load(train_file=blank, drop_empty=True)["train"]["text"][:] == ["a", "c"]
    mixed = json_lines({"text": "a", "label": "pos"}, {"text": "b", "label": "neg"}, {"text": "c", "label": 1})
    with pytest.raises(InputError, match="row 1 has the name 'pos' as its label, but row 3 the number 1"):
        load(train_file=write("a.jsonl", mixed))


def test_c71_whole_floats_are_the_integers_only_if_all_are_whole(write, tmp_path):
    floats = write("a.csv", "text,label\na,1.0\nb,0\nc,\n")
    integers = write("b.csv", "text,label\nd,1\n")
    splits = load(train_file=floats, test_file=integers, drop_empty=True)
    assert splits["train"].features["label"].names == ["0", "1"]
    assert (splits["train"]["label"][:], splits["test"]["label"][:]) == ([1, 0], [1])
    pd.DataFrame({"text": ["a", "b", "c"], "label": [1.0, 0.0, None]}).to_parquet(tmp_path / "a.parquet")
    splits = load(train_file=tmp_path / "a.parquet", drop_empty=True)
    assert splits["train"].features["label"].names == ["0", "1"]
    with pytest.raises(InputError, match=r"row 2 has the label 0\.5\. Numbers as labels must be whole"):
        load(train_file=write("c.csv", "text,label\na,1.0\nb,0.5\n"))


def test_c11_labels_outside_the_given_classes(write):
    path = write("a.csv", "text,label\na,0\nb,1\n")
    assert load(["no", "yes"], train_file=path)["train"]["label"][:] == [0, 1]
    for content, row, value in (("a,1\nb,2\n", 2, 2), ("a,5\nb,1\n", 1, 5)):
        path = write("a.csv", "text,label\n" + content)
        with pytest.raises(InputError, match=rf"row {row} has the unknown label '{value}'; .* \(or 0 to 1\)"):
            load(["no", "yes"], train_file=path)
    # without a model, 1 and 2 are two classes like any others
    train = load(train_file=write("a.csv", "text,label\na,1\nb,2\n"))["train"]
    assert (train["label"][:], train.features["label"].names) == ([0, 1], ["1", "2"])


def test_c11_given_names_that_are_numbers_are_names_not_positions(write):
    path = write("a.csv", "text,label\na,1\nb,2\n")
    assert load(["2", "1"], train_file=path)["train"]["label"][:] == [1, 0]
    with pytest.raises(InputError, match="row 1 has the unknown label '0'"):
        load(["2", "1"], test_file=write("b.csv", "text,label\na,0\n"))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_pitfall_32_negative_labels_are_unlabelled_rows(write, tmp_path, name):
    if name != "a.parquet":
        write(name, [("a", 1), ("b", -1)])
    else:
        labelled(["no", "yes"], [1, -1], "ab").to_parquet(tmp_path / name)
    with pytest.raises(InputError, match=r"row 2 has the label -1\. Negative labels mark unlabelled rows"):
        load(train_file=tmp_path / name)


def test_pitfall_32_unlabelled_hub_split_is_left_out(monkeypatch, caplog):
    features = Features({"sentence": Value("string"), "label": ClassLabel(names=["no", "yes"]), "idx": Value("int32")})
    rows = {"sentence": ["a", "b"], "idx": [0, 1]}
    glue = DatasetDict(
        train=Dataset.from_dict({**rows, "label": [1, 0]}, features=features),
        validation=Dataset.from_dict({**rows, "label": [0, 1]}, features=features),
        test=Dataset.from_dict({**rows, "label": [-1, -1]}, features=features),
    )
    calls = []
    monkeypatch.setattr("hf_vat.data.files.load_dataset", lambda *a, **k: calls.append((a, k)) or glue)
    splits = load(dataset_name="nyu-mll/glue", dataset_config_name="sst2", dataset_revision="abc")
    assert calls == [(("nyu-mll/glue", "sst2"), {"revision": "abc"})]
    assert list(splits) == ["train", "validation"]
    assert splits["train"][:] == {"text": ["a", "b"], "label": [1, 0]}
    assert "split 'test' has no labels" in caplog.text


def test_declared_class_names_are_kept_even_if_they_look_like_numbers(tmp_path):
    rows = labelled(["2.5", "-1", "1.0"], [2, 1], "ab")
    rows.to_parquet(tmp_path / "a.parquet")
    train = load(train_file=tmp_path / "a.parquet")["train"]
    assert train.features == rows.features
    assert train["label"][:] == [2, 1]


# Held-out rows and samples


@pytest.fixture
def sorted_file(write):
    """90 rows of class x, then 30 of class y, then one of class z."""
    rows = [f"text {i},{'x' if i < 90 else 'y' if i < 120 else 'z'}\n" for i in range(121)]
    return write("train.csv", "text,label\n" + "".join(rows))


def test_validation_is_a_seeded_share_of_each_class(sorted_file):
    splits = load(train_file=sorted_file, validation_share=0.1)
    assert np.bincount(splits["validation"]["label"], minlength=3).tolist() == [9, 3, 0]
    assert np.bincount(splits["train"]["label"]).tolist() == [81, 27, 1]
    both = splits["train"]["text"][:] + splits["validation"]["text"][:]
    assert sorted(both) == sorted(f"text {i}" for i in range(121))
    again = load(train_file=sorted_file, validation_share=0.1)
    other = load(train_file=sorted_file, validation_share=0.1, split_seed=1)
    assert again["validation"]["text"][:] == splits["validation"]["text"][:] != other["validation"]["text"][:]


def test_nothing_is_held_out_if_there_is_validation_data_or_no_share(sorted_file, write):
    dev = write("dev.csv", "text,label\na,x\n")
    assert load(train_file=sorted_file, validation_file=dev, validation_share=0.5).num_rows == {
        "train": 121,
        "validation": 1,
    }
    assert load(train_file=sorted_file, validation_share=0).num_rows == {"train": 121}
    with pytest.raises(InputError, match="only one training row"):
        load(train_file=write("a.csv", GOOD_BAD), validation_share=0.1)


def test_samples_are_drawn_from_the_whole_file_and_leave_global_random_state(sorted_file):
    numpy_state, python_state = np.random.get_state()[1].copy(), random.getstate()
    splits = load(train_file=sorted_file, test_file=sorted_file, max_train_samples=40, max_eval_samples=20)
    assert splits.num_rows == {"train": 40, "test": 20}
    assert {0, 1} <= set(splits["train"]["label"])  # the first 40 rows are all of class x
    assert {0, 1} <= set(splits["test"]["label"])
    assert len(load(train_file=sorted_file, max_train_samples=1000)["train"]) == 121
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)
    assert random.getstate() == python_state


def test_labels_that_are_numbers_of_any_length_are_sorted_by_value():
    """Python's int takes 4,300 digits."""
    long = "1" + "0" * 5000
    assert label_names_of([["b", "10", long], ["9", "a"], None, ["009"]]) == ["009", "9", "10", long, "a", "b"]
