"""Rows that are read while they are used: the same rows as when loaded, few at a time, checked with their numbers."""

from functools import partial
from itertools import islice

import pytest
from datasets import Dataset, IterableDataset
from tables import BOTH, classifier, json_lines, labelled, load, save, train_rows

from hf_vat.data import PAPER_DATASETS, DataArguments, StreamedEpochs, formats, load_texts, stream_texts
from hf_vat.errors import InputError

ROWS = [("007", "good"), ('He said "no",\nand left', "bad"), ("NA", "good"), (" None ", "bad")]


stream = partial(load, streaming=True)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("rows", [ROWS, *([("a", x), ("b", y)] for x, y in (("1.0", "2.0"), ("10", "9"), ("0", "1")))])
def test_the_rows_are_those_that_loading_gives(write, suffix, rows):
    files = {"train_file": write(f"train.{suffix}", rows), "test_file": write(f"test.{suffix}", rows[:2])}
    streamed, loaded = stream(**files), load(**files)
    assert list(streamed) == ["train", "test"] and isinstance(streamed["train"], IterableDataset)
    assert list(streamed["train"]) == list(loaded["train"]) == list(streamed["train"])  # each pass anew
    assert streamed["train"].features == loaded["train"].features
    assert list(streamed["test"]) == list(loaded["test"])


def test_class_names_of_a_file_keep_their_order_and_are_not_looked_for(tmp_path):
    path = tmp_path / "train.parquet"
    labelled(["zebra", "ant", "never"], [1, 0, -1], "abc").to_parquet(path)
    train = stream(train_file=path)["train"]
    assert train.features["label"].names == ["zebra", "ant", "never"]
    rows = iter(train)
    assert [row["label"] for row in islice(rows, 2)] == [1, 0]
    with pytest.raises(InputError, match=r"row 3 has the label -1"):
        next(rows)


def test_a_folder_of_files_and_its_validation_split(write, tmp_path):
    write("train.csv", ROWS)
    write("dev.csv", ROWS[:3])
    splits = stream(dataset_name=str(tmp_path), max_eval_samples=2, validation_share=0.1)
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

    train = stream(train_file=path)["train"].shuffle(seed=0, buffer_size=100)
    monkeypatch.setattr(formats, "_csv_records", counting)
    texts = [row["text"] for row in islice(train, 50)]
    assert len(set(texts)) == 50 and texts != sorted(texts, key=lambda text: int(text[5:]))
    assert pulled[0] < 1000


@BOTH
def test_ids_are_positions_in_a_models_names_only(write, streaming):
    """Without a model the test file's 0 is no label of a training file that has names."""
    train = write("train.csv", [("a", "negative"), ("b", "positive")])
    test = write("test.csv", [("c", "0"), ("d", "1")])
    with pytest.raises(InputError, match=r"test\.csv: row 1 has the unknown label '0'; known are negative, positive\."):
        load(train_file=train, test_file=test, streaming=streaming)
    splits = load(["positive", "negative"], train_file=train, test_file=test, streaming=streaming)
    assert splits["test"]["label"][:] == [0, 1] and [row["label"] for row in splits["train"]] == [1, 0]


@BOTH
def test_all_splits_have_the_text_column_of_the_training_split(write, tmp_path, streaming):
    write("train.csv", "sentence,label\none,x\ntwo,y\n")
    write("dev.csv", "sentence,text,label\nthree,other,x\n")
    splits = load(dataset_name=str(tmp_path), streaming=streaming)
    assert splits["validation"]["text"][:] == ["three"]


@BOTH
def test_classes_are_looked_for_until_there_are_two(tmp_path, streaming):
    labelled(["no", "yes"], [1, 1], "ab").to_parquet(tmp_path / "train.parquet")
    for names in (None, ["no", "yes"]):
        with pytest.raises(InputError, match="all rows have the label 'yes'"):
            load(names, train_file=tmp_path / "train.parquet", streaming=streaming)


def test_of_a_parquet_file_only_text_and_label_are_read(tmp_path, monkeypatch):
    rows, asked = [(1, "a", "x", ""), (2, "b", "y", "")], []
    path = save(tmp_path / "train.parquet", rows, ("id", "text", "label", "page"))

    class Recorded(formats.pq.ParquetFile):
        def iter_batches(self, size, columns):
            asked.append(columns)
            return super().iter_batches(size, columns=columns)

    train = stream(train_file=path)["train"]
    monkeypatch.setattr(formats.pq, "ParquetFile", Recorded)
    assert len(list(train)) == 2
    assert asked == [["text", "label"]]


# Rows that cannot be used


@BOTH
def test_columns_of_json_lines_may_come_late(write, streaming):
    """The first 150 rows are left out, and do not even have the column."""
    rows = [{"text": f"text {row}"} | ({"label": "xy"[row % 2]} if row >= 150 else {}) for row in range(160)]
    read = train_rows(write("train.jsonl", json_lines(*rows)), streaming, drop_empty=True)
    assert [text for text, _ in read] == [f"text {row}" for row in range(150, 160)]


@BOTH
def test_rows_that_are_left_out_are_counted(write, streaming, caplog):
    train_rows(write("train.csv", [*ROWS, ("  ", "good"), ("fine", None)]), streaming, drop_empty=True)
    assert "train.csv: rows without a text or a label, left out: 2" in caplog.text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.csv", "text,label\n" + "".join(f"a,id{row}\n" for row in range(1001)), "more than 1,000 different.*row 1001"),
        ("train.jsonl", '[{"text": "a", "label": 1}]', "JSON array has to be read as a whole"),
        ("train.jsonl", '\n \n[\n{"text": "a", "label": 1}]', "JSON array has to be read as a whole"),
    ],
)  # fmt: skip
def test_c74_what_cannot_be_streamed_is_named(write, name, content, message):
    with pytest.raises(InputError, match=message):
        stream(train_file=write(name, content))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset_name": "SetFit/sst2"}, "not 'SetFit/sst2' from the Hub. Give files, or leave --streaming out"),
        ({"train_file": "x.csv", "max_train_samples": 5}, "--max_train_samples .* cannot be used with --streaming"),
        ({"test_file": "x.csv"}, "no training split, only test"),
        (
            {"train_file": "x.csv", "validation_share": 0.2},
            "--validation_share is 0.2, but nothing is held out from a stream",
        ),
    ],
)
def test_what_cannot_be_streamed_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        stream(**arguments)


# Data sets of the papers


@pytest.fixture
def trec(write, tmp_path):
    names = PAPER_DATASETS["trec"].label_names
    for split in ("train", "validation", "test"):
        write(f"{split}.csv", [(f"{split} {row}?", names[row % 6]) for row in range(12)])
    return {"paper_dataset": "trec", "data_dir": str(tmp_path)}


@BOTH
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


def test_each_split_is_counted_once(trec, caplog):
    caplog.set_level("INFO", "hf_vat")
    load(**trec)
    counted = [record.message for record in caplog.records if " rows (" in record.message]
    assert [message.partition(":")[0] for message in counted] == ["train", "validation", "test"]
    assert counted[0].startswith("train: 12 rows (abbreviation 2, entity 2, description 2")


def test_too_few_rows_for_a_streamed_validation_split(trec, write, tmp_path):
    (tmp_path / "validation.csv").unlink()
    write("train.csv", [("who?", "human"), ("where?", "location")])
    with pytest.raises(InputError, match="falls to validation: there are too few"):
        stream(**trec)


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


def test_texts_come_with_the_models_class_ids_or_without(write):
    path = write("test.csv", ROWS)
    rows = stream_texts(DataArguments(test_file=path, streaming=True, max_eval_samples=3), classifier("good", "bad"))
    assert list(rows) == [("007", 0), (ROWS[1][0], 1), ("NA", 0)]
    rows = stream_texts(DataArguments(test_file=path, streaming=True), classifier("good", "fine"))
    assert next(rows) == ("007", 0)
    assert next(rows) == (ROWS[1][0], None)
    bare = write("bare.jsonl", json_lines(*({"text": text} for text in ("one", None, "three"))))
    rows = stream_texts(DataArguments(test_file=str(bare), streaming=True), classifier("good", "bad"))
    assert list(rows) == [("one", None), ("", None), ("three", None)]
    write("bare.jsonl", '{"text": "one"}\n{"text": ["two"]}\n{"text": "half \\ud83d"}\n')
    for streaming in (False, True):
        with pytest.raises(InputError, match=r"bare\.jsonl: row 2 of column 'text' is \['two'\]"):
            read = stream_texts if streaming else partial(load_texts, labelled=False)
            list(read(DataArguments(test_file=str(bare), streaming=streaming), classifier("good", "bad")))
    with pytest.raises(InputError, match="leave --streaming out"):
        load_texts(DataArguments(test_file=path, streaming=True), classifier("good", "bad"))


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
