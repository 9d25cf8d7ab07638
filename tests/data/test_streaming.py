"""Rows that are read while they are used: the same rows as when loaded, few at a time, checked with their numbers."""

import json
from functools import partial
from itertools import islice
from types import SimpleNamespace

import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, Features, IterableDataset, Value

from hf_vat.data import (
    PAPER_DATASETS,
    DataArguments,
    StreamedEpochs,
    formats,
    load_text_classification,
    load_texts,
    stream_texts,
)
from hf_vat.errors import InputError

ROWS = [("007", "good"), ('He said "no",\nand left', "bad"), ("NA", "good"), (" None ", "bad")]


@pytest.fixture
def write(tmp_path):
    def write_file(name: str, rows=ROWS) -> str:
        frame = pd.DataFrame(rows, columns=["text", "label"])
        path = tmp_path / name
        if path.suffix == ".parquet":
            frame.to_parquet(path)
        elif path.suffix == ".jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
        return str(path)

    return write_file


def load(**arguments):
    share = {} if "paper_dataset" in arguments else {"validation_share": 0}
    return load_text_classification(DataArguments(**{"streaming": True} | share | arguments))


def classifier(*names):
    return SimpleNamespace(config=SimpleNamespace(id2label=dict(enumerate(names)), num_labels=len(names)))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_the_rows_are_those_that_loading_gives(write, suffix):
    files = {"train_file": write(f"train.{suffix}"), "test_file": write(f"test.{suffix}", ROWS[:2])}
    streamed, loaded = load(**files), load(**files, streaming=False)
    assert list(streamed) == ["train", "test"] and isinstance(streamed["train"], IterableDataset)
    assert list(streamed["train"]) == list(loaded["train"]) == list(streamed["train"])  # each pass anew
    assert streamed["train"].features == loaded["train"].features
    assert list(streamed["test"]) == list(loaded["test"])


@pytest.mark.parametrize("labels", [["1.0", "2.0"], ["10", "9"], ["0", "1"]])
def test_numbers_are_classes_as_they_are_when_loaded(write, labels):
    path = write("train.csv", [("a", labels[0]), ("b", labels[1])])
    streamed, loaded = load(train_file=path)["train"], load(train_file=path, streaming=False)["train"]
    assert streamed.features == loaded.features and list(streamed) == list(loaded)


def test_class_names_of_a_file_keep_their_order_and_are_not_looked_for(tmp_path):
    features = Features({"text": Value("string"), "label": ClassLabel(names=["zebra", "ant", "never"])})
    path = tmp_path / "train.parquet"
    Dataset.from_dict({"text": ["a", "b", "c"], "label": [1, 0, -1]}, features=features).to_parquet(path)
    train = load(train_file=str(path))["train"]
    assert train.features["label"].names == ["zebra", "ant", "never"]
    rows = iter(train)
    assert [row["label"] for row in islice(rows, 2)] == [1, 0]
    with pytest.raises(InputError, match=r"row 3 has the label -1"):
        next(rows)


def test_a_folder_of_files_and_its_validation_split(write, tmp_path):
    write("train.csv")
    write("dev.csv", ROWS[:3])
    splits = load(dataset_name=str(tmp_path), max_eval_samples=2, validation_share=0.1)
    assert sum(1 for _ in splits["train"]) == 4, "nothing is held out"
    assert splits["validation"].num_rows == 2


def test_few_rows_are_read_ahead(monkeypatch, write):
    """What is given out counts, not how long the file is; class names take one pass of their own."""
    path, pulled = write("train.csv", [(f"text {row}", "ab"[row % 2]) for row in range(20_000)]), [0]
    records = formats._csv_records

    def counting(*arguments):
        for record in records(*arguments):
            pulled[0] += 1
            yield record

    train = load(train_file=path)["train"].shuffle(seed=0, buffer_size=100)
    monkeypatch.setattr(formats, "_csv_records", counting)
    texts = [row["text"] for row in islice(train, 50)]
    assert len(set(texts)) == 50 and texts != sorted(texts, key=lambda text: int(text[5:]))
    assert pulled[0] < 1000


@pytest.mark.parametrize("streaming", [False, True])
def test_ids_are_positions_in_a_models_names_only(write, streaming):
    """Without a model the test file's 0 is no label of a training file that has names."""
    train = write("train.csv", [("a", "negative"), ("b", "positive")])
    test = write("test.csv", [("c", "0"), ("d", "1")])
    with pytest.raises(InputError, match=r"test\.csv: row 1 has the unknown label '0'; known are negative, positive\."):
        load(train_file=train, test_file=test, streaming=streaming)
    args = DataArguments(train_file=train, test_file=test, streaming=streaming, validation_share=0)
    splits = load_text_classification(args, ["positive", "negative"])
    assert splits["test"]["label"][:] == [0, 1] and [row["label"] for row in splits["train"]] == [1, 0]


@pytest.mark.parametrize("streaming", [False, True])
def test_all_splits_have_the_text_column_of_the_training_split(tmp_path, streaming):
    (tmp_path / "train.csv").write_text("sentence,label\none,x\ntwo,y\n", encoding="utf-8")
    (tmp_path / "dev.csv").write_text("sentence,text,label\nthree,other,x\n", encoding="utf-8")
    splits = load(dataset_name=str(tmp_path), streaming=streaming)
    assert splits["validation"]["text"][:] == ["three"]


@pytest.mark.parametrize("streaming", [False, True])
def test_classes_are_looked_for_until_there_are_two(tmp_path, streaming):
    features = Features({"text": Value("string"), "label": ClassLabel(names=["no", "yes"])})
    path = str(tmp_path / "train.parquet")
    Dataset.from_dict({"text": ["a", "b"], "label": [1, 1]}, features=features).to_parquet(path)
    for names in (None, ["no", "yes"]):
        args = DataArguments(train_file=path, streaming=streaming, validation_share=0)
        with pytest.raises(InputError, match="all rows have the label 'yes'"):
            load_text_classification(args, names)


def test_of_a_parquet_file_only_text_and_label_are_read(tmp_path, monkeypatch):
    path, asked = tmp_path / "train.parquet", []
    pd.DataFrame({"id": [1, 2], "text": ["a", "b"], "label": ["x", "y"], "page": ["", ""]}).to_parquet(path)

    class Recorded(formats.pq.ParquetFile):
        def iter_batches(self, size, columns):
            asked.append(columns)
            return super().iter_batches(size, columns=columns)

    train = load(train_file=str(path))["train"]
    monkeypatch.setattr(formats.pq, "ParquetFile", Recorded)
    assert len(list(train)) == 2
    assert asked == [["text", "label"]]


# Rows that cannot be used


@pytest.mark.parametrize("streaming", [False, True])
def test_columns_of_json_lines_may_come_late(tmp_path, streaming):
    """The first 150 rows are left out, and do not even have the column."""
    path = tmp_path / "train.jsonl"
    rows = [{"text": f"text {row}"} | ({"label": "xy"[row % 2]} if row >= 150 else {}) for row in range(160)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    train = load(train_file=str(path), drop_empty=True, streaming=streaming)["train"]
    assert [row["text"] for row in train] == [f"text {row}" for row in range(150, 160)]


@pytest.mark.parametrize("streaming", [False, True])
def test_rows_that_are_left_out_are_counted(write, streaming, caplog):
    rows = [*ROWS, ("  ", "good"), ("fine", None)]
    list(load(train_file=write("train.csv", rows), drop_empty=True, streaming=streaming)["train"])
    assert "train.csv: rows without a text or a label, left out: 2" in caplog.text
    with pytest.raises(InputError, match="no row has both a text and a label"):
        load(train_file=write("train.csv", [("", "good"), ("bad", None)]), drop_empty=True, streaming=streaming)


def test_c68_a_row_without_a_text_or_label_is_named_or_left_out(write):
    for row, column in (((None, "good"), "text"), (("fine", None), "label"), (("  ", "bad"), "text")):
        path = write("train.csv", [*ROWS, row])
        with pytest.raises(InputError, match=rf"no text or no label in row 5 \(column '{column}'\)"):
            load(train_file=path)
        assert len(list(load(train_file=path, drop_empty=True)["train"])) == 4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.csv", "text,label\na,x\nb,y,z\n", "row 2 has 3 cells"),
        ("train.csv", 'text,label\na,x\n"b" c,y\n', r"train\.csv, line 3: .*quotation mark"),
        ("train.csv", "text,label\na,x\nb,x\n", "all rows have the label 'x'"),
        ("train.csv", "text,label\na,x\nb,0.5\n", "row 1 has the name 'x' as its label, but row 2 the number 0.5"),
        ("train.csv", "text,label\na,1\nb,0.5\n", "row 2 has the label 0.5. Numbers as labels must be whole"),
        ("train.csv", "text,class\na,x\n", "no column 'label'; found text, class"),
        ("train.csv", "", "no rows"),
        ("train.csv", "text,label\n" + "".join(f"a,id{row}\n" for row in range(1001)), "more than 1,000 different.*row 1001"),
        ("train.jsonl", '{"text": "a", "label": 1}\n{"text": \n', r"train\.jsonl, line 2"),
        ("train.jsonl", '[{"text": "a", "label": 1}]', "JSON array has to be read as a whole"),
        ("train.jsonl", '\n \n[\n{"text": "a", "label": 1}]', "JSON array has to be read as a whole"),
        ("train.parquet", "PAR", "not a Parquet file"),
    ],
)  # fmt: skip
def test_c74_what_cannot_be_read_is_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load(train_file=str(path))


def test_encodings(tmp_path):
    path = tmp_path / "train.csv"
    path.write_bytes("text,label\nfine,x\nüber,y\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"byte 18 \(counted from 0\) is not utf-8.*--encoding cp1252"):
        load(train_file=str(path))
    assert [row["text"] for row in load(train_file=str(path), encoding="latin-1")["train"]] == ["fine", "über"]
    with pytest.raises(InputError, match="Encoding 'utf-9' is unknown"):
        load(train_file=str(path), encoding="utf-9")
    path.write_bytes("\ufefftext,label\r\nfine,x\r\nbad,y\r\n".encode())
    assert [row["text"] for row in load(train_file=str(path))["train"]] == ["fine", "bad"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset_name": "SetFit/sst2"}, "not 'SetFit/sst2' from the Hub. Give files, or leave --streaming out"),
        ({"train_file": "x.csv", "max_train_samples": 5}, "--max_train_samples .* cannot be used with --streaming"),
        ({"train_file": "/no/where/x.csv"}, "no folder /no/where"),
        ({"test_file": "x.csv"}, "no training split, only test"),
        (
            {"train_file": "x.csv", "validation_share": 0.2},
            "--validation_share is 0.2, but nothing is held out from a stream",
        ),
    ],
)
def test_what_cannot_be_streamed_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        load(**arguments)


# Data sets of the papers


@pytest.fixture
def trec(write, tmp_path):
    names = PAPER_DATASETS["trec"].label_names
    for split in ("train", "validation", "test"):
        write(f"{split}.csv", [(f"{split} {row}?", names[row % 6]) for row in range(12)])
    return {"paper_dataset": "trec", "data_dir": str(tmp_path)}


@pytest.mark.parametrize("streaming", [False, True])
def test_a_data_set_of_the_papers_has_their_classes(trec, streaming):
    splits = load(**trec, streaming=streaming, max_eval_samples=6)
    assert list(splits) == ["train", "validation", "test"]
    assert splits["train"].features["label"].names == list(PAPER_DATASETS["trec"].label_names)
    assert list(splits["train"])[:2] == [{"text": "train 0?", "label": 0}, {"text": "train 1?", "label": 1}]
    assert splits["test"].num_rows == splits["validation"].num_rows == 6


def test_a_data_set_of_the_papers_is_explained_with_the_classes_of_the_model(trec):
    model = classifier(*reversed(PAPER_DATASETS["trec"].label_names))
    texts, labels = load_texts(DataArguments(**trec), model)
    assert (texts[0], labels[0]) == ("test 0?", 5)
    streamed = list(stream_texts(DataArguments(**trec, streaming=True), model))
    assert streamed == list(zip(texts, labels, strict=True))
    with pytest.raises(InputError, match=r"trec has the classes abbreviation, .* but the model no, yes"):
        stream_texts(DataArguments(**trec, streaming=True), classifier("no", "yes"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paper_dataset": "trek"}, "no data set 'trek'; known are imdb"),
        ({"paper_dataset": "trec", "train_file": "x.csv"}, "--paper_dataset or local files.*; both were given"),
        ({"train_file": "x.csv", "data_dir": "y"}, "--data_dir is the folder of a --paper_dataset"),
        ({"paper_dataset": "trec", "label_column": "fine"}, "--label_column is not for --paper_dataset"),
        ({"paper_dataset": "trec", "drop_empty": True}, "--drop_empty is not for --paper_dataset"),
        ({"paper_dataset": "trec", "validation_share": 0.2}, "--validation_share is not for --paper_dataset"),
        ({"paper_dataset": "trec", "dataset_revision": "main"}, "--dataset_revision is not for --paper_dataset"),
        ({"paper_dataset": "trec", "data_dir": "/no/where"}, "no folder /no/where"),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_arguments_that_do_not_go_with_a_paper_are_refused(arguments, message, streaming):
    with pytest.raises(InputError, match=message):
        load(**arguments, streaming=streaming)


def test_each_split_is_counted_once(trec, caplog):
    caplog.set_level("INFO", "hf_vat")
    load(**trec, streaming=False)
    counted = [record.message for record in caplog.records if " rows (" in record.message]
    assert [message.partition(":")[0] for message in counted] == ["train", "validation", "test"]
    assert counted[0].startswith("train: 12 rows (abbreviation 2, entity 2, description 2")


def test_too_few_rows_for_a_streamed_validation_split(trec, tmp_path):
    (tmp_path / "validation.csv").unlink()
    (tmp_path / "train.csv").write_text("text,label\nwho?,human\nwhere?,location\n", encoding="utf-8")
    with pytest.raises(InputError, match="falls to validation: there are too few"):
        load(**trec)


def test_help_names_every_data_set_of_the_papers():
    for name in PAPER_DATASETS:
        assert name in DataArguments.__dataclass_fields__["paper_dataset"].metadata["help"]


# Texts to explain


@pytest.mark.parametrize("source", ["files", "paper"])
def test_the_texts_of_a_split_are_all_of_its_rows_counted_by_its_name(trec, write, source, caplog):
    caplog.set_level("INFO", "hf_vat")
    model = classifier(*PAPER_DATASETS["trec"].label_names)
    if source == "files":
        names = PAPER_DATASETS["trec"].label_names
        files = {
            f"{split}_file": write(f"own-{split}.csv", [(f"{split}?", names[0])] * 12) for split in ("train", "test")
        }
        arguments = {**files, "validation_share": 0.5}
    else:
        arguments = trec
    texts, labels = load_texts(DataArguments(**arguments), model, split="train")
    assert len(texts) == len(labels) == 12 and texts[0].startswith("train")
    assert [record.message.partition(" (")[0] for record in caplog.records if " rows (" in record.message][-1:] == [
        "train: 12 rows"
    ]
    assert len(load_texts(DataArguments(**arguments, max_eval_samples=5), model, split="train")[0]) == 5
    assert load_texts(DataArguments(**arguments), model)[0][0].startswith("test")


def test_texts_come_with_the_models_class_ids_or_without(write, tmp_path):
    path = write("test.csv")
    rows = stream_texts(DataArguments(test_file=path, streaming=True, max_eval_samples=3), classifier("good", "bad"))
    assert list(rows) == [("007", 0), (ROWS[1][0], 1), ("NA", 0)]
    rows = stream_texts(DataArguments(test_file=path, streaming=True), classifier("good", "fine"))
    assert next(rows) == ("007", 0)
    assert next(rows) == (ROWS[1][0], None)
    bare = tmp_path / "bare.jsonl"
    bare.write_text("".join(json.dumps({"text": text}) + "\n" for text in ("one", None, "three")), encoding="utf-8")
    rows = stream_texts(DataArguments(test_file=str(bare), streaming=True), classifier("good", "bad"))
    assert list(rows) == [("one", None), ("", None), ("three", None)]
    bare.write_text('{"text": "one"}\n{"text": ["two"]}\n{"text": "half \\ud83d"}\n', encoding="utf-8")
    for streaming in (False, True):
        with pytest.raises(InputError, match=r"bare\.jsonl: row 2 of column 'text' is \['two'\]"):
            read = stream_texts if streaming else partial(load_texts, labelled=False)
            list(read(DataArguments(test_file=str(bare), streaming=streaming), classifier("good", "bad")))
    with pytest.raises(InputError, match="leave --streaming out"):
        load_texts(DataArguments(test_file=path, streaming=True), classifier("good", "bad"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "neither were given"),
        ({"test_file": "x.csv", "dataset_name": "y"}, "both were given"),
        ({"test_file": "x.csv", "max_eval_samples": 0}, "--max_eval_samples is 0; it must be at least 1"),
        ({"test_file": "x.csv", "max_eval_samples": -1}, "--max_eval_samples is -1"),
        ({"test_file": "x.csv", "data_dir": "y"}, "--data_dir is the folder of a --paper_dataset"),
        ({"test_file": "x.csv", "text_column": "label"}, "must differ"),
        ({"paper_dataset": "trec", "label_column": "fine"}, "--label_column is not for --paper_dataset"),
    ],
)
def test_arguments_for_texts_are_checked(arguments, message):
    with pytest.raises(InputError, match=message):
        stream_texts(DataArguments(**arguments, streaming=True), classifier("good", "bad"))


# Epochs of a fixed size


def test_epochs_follow_each_other_and_begin_again_after_the_last_row():
    epochs = StreamedEpochs(range(5), 3)
    assert len(epochs) == 3
    read = []
    for epoch in range(4):
        epochs.set_epoch(epoch)
        read.append(list(epochs))
    assert read == [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4, 0, 1]]
    resumed = StreamedEpochs(range(5), 3)
    resumed.set_epoch(2)
    assert list(resumed) == read[2]
    half = iter(resumed)
    next(half)
    resumed.set_epoch(0)
    assert list(resumed) == read[0], "a second run begins again"


def test_each_pass_has_its_own_order():
    rows = Dataset.from_dict({"n": list(range(20))}).to_iterable_dataset().shuffle(seed=0, buffer_size=20)
    epochs = StreamedEpochs(rows, 20)
    passes = []
    for epoch in range(2):
        epochs.set_epoch(epoch)
        passes.append([row["n"] for row in epochs])
    assert sorted(passes[0]) == sorted(passes[1]) == list(range(20)) and passes[0] != passes[1]


def test_an_empty_stream_is_refused_and_does_not_hang():
    with pytest.raises(InputError, match="no rows"):
        list(StreamedEpochs([], 3))
