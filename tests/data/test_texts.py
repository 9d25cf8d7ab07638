"""Texts to explain: with or without labels, already split into words or not, the same in memory and streamed."""

import pytest
from datasets import DatasetDict
from tables import BOTH, classifier, json_lines, labelled, load, save

from hf_vat.data import DataArguments, load_texts, stream_texts
from hf_vat.errors import InputError

MODEL = classifier("bad", "good")


def read(path, streaming=False, **arguments) -> list[tuple]:
    """Texts and class ids that need no labels."""
    args = DataArguments(test_file=str(path), streaming=streaming, **arguments)
    if streaming:
        return list(stream_texts(args, MODEL))
    texts, labels = load_texts(args, MODEL, labelled=False)
    return list(zip(texts, labels or [None] * len(texts), strict=True))


# Labels


@BOTH
@pytest.mark.parametrize(
    ("content", "ids"),
    [
        ("text,label\na,\nb,\n", [None, None]),
        ("text,label\na,good\nb,\n", [1, None]),
        ("text,label\na,mixed\nb,good\n", [None, 1]),
        ("text,label\na,0.5\nb,1.0\n", [None, 1]),
        ("text,label\na,-1\nb,0\n", [None, 0]),
        ("text,label\na,nan\nb,NA\n", [None, None]),
        ("text,label\na,\"['good']\"\nb,1\n", [None, 1]),
        ("text,note\na,x\nb,y\n", [None, None]),
    ],
)
def test_f20_texts_to_explain_need_no_labels(write, content, ids, streaming):
    assert read(write("test.csv", content), streaming) == list(zip("ab", ids, strict=True))


@BOTH
def test_f20_the_first_label_that_is_unknown_is_told(write, caplog, streaming):
    read(write("test.csv", "text,label\na,\nb,mixed\nc,other\nd,good\n"), streaming)
    [message] = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert "row 2 has the label 'mixed', and the classes of the model are bad, good" in message


@pytest.mark.parametrize("label", ["", "mixed", "0.5", "-1", "nan"])
def test_f20_measuring_needs_labels(write, label):
    path = write("test.csv", f"text,label\na,good\nb,{label}\n")
    with pytest.raises(InputError, match="row 2"):
        load_texts(DataArguments(test_file=str(path)), MODEL)
    with pytest.raises(InputError, match="no column 'label'"):
        load_texts(DataArguments(test_file=str(write("bare.csv", "text\na\n"))), MODEL)


def test_f20_a_split_of_the_hub_without_labels_is_explained(monkeypatch):
    labels = {"validation": [0, 1], "test": [-1, -1]}
    splits = {split: labelled(["bad", "good"], ids, [split] * 2) for split, ids in labels.items()}
    monkeypatch.setattr("hf_vat.data.files.load_dataset", lambda *_, **__: DatasetDict(splits))
    args = DataArguments(dataset_name="glue")
    assert load_texts(args, MODEL, labelled=False) == (["test", "test"], None)
    assert load_texts(args, MODEL) == (["validation", "validation"], [0, 1])


@BOTH
def test_f20_missing_texts_are_empty_or_left_out(write, streaming, caplog):
    path = write("test.csv", "text,label\na,good\n,bad\n  ,\nb,\n")
    assert read(path, streaming) == [("a", 1), ("", 0), ("", None), ("b", None)]
    assert read(path, streaming, drop_empty=True) == [("a", 1), ("b", None)]
    assert "test.csv: rows without a text, left out: 2" in caplog.text


@BOTH
def test_f21_a_blank_line_or_row_of_a_single_column_is_an_empty_text(write, tmp_path, streaming):
    book = save(tmp_path / "test.xlsx", [["a"], [None], ["b"], [None]], ["review"])
    for path in (write("test.csv", "review\na\n\nb\n"), book):
        assert read(path, streaming) == [("a", None), ("", None), ("b", None)]
    assert read(write("two.csv", "text,label\na,good\n\nb,bad\n"), streaming) == [("a", 1), ("b", 0)]


# Samples


def test_f23_the_same_rows_are_drawn_with_and_without_labels(write):
    rows = [f"text {row}" for row in range(50)]
    complete = write("complete.csv", "text,label\n" + "".join(f"{text},good\n" for text in rows))
    bare = write("bare.csv", "text\n" + "".join(f"{text}\n" for text in rows))
    empty = write("empty.csv", "text,label\n" + "".join(f"{text},\n" for text in rows))
    drawn = [text for text, _ in read(complete, max_eval_samples=10)]
    assert drawn == [text for text, _ in read(bare, max_eval_samples=10)] != rows[:10]
    assert drawn == [text for text, _ in read(empty, max_eval_samples=10)]
    assert drawn == load_texts(DataArguments(test_file=str(complete), max_eval_samples=10), MODEL)[0]
    training = load(["bad", "good"], test_file=complete, max_eval_samples=10)
    assert drawn == training["test"]["text"][:]
    assert drawn != [text for text, _ in read(bare, max_eval_samples=10, split_seed=1)]


# Texts that are already split


@BOTH
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_f26_lists_of_words_are_texts_already_split(tmp_path, suffix, streaming):
    rows = [(["ดี", "มาก"], "good"), (["New York", "12"], "bad"), ([], None)]
    path = save(tmp_path / f"test.{suffix}", rows, ("tokens", "label"))
    expected = [(["ดี", "มาก"], 1), (["New York", "12"], 0), ("", None)]
    assert read(path, streaming, text_column="tokens") == expected
    args = DataArguments(test_file=str(path), text_column="tokens", drop_empty=True)
    assert load_texts(args, MODEL) == ([["ดี", "มาก"], ["New York", "12"]], [1, 0])


@BOTH
@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["a", ["b"]], r"row 2 of column 'text' is \['b'\], but those before are texts"),
        ([["a"], None, "b"], "row 3 of column 'text' is 'b', but those before are lists of words"),
        ([["a"], ["b", " "]], "row 2 has the word ' '; a word must be visible"),
        ([["a"], [["b"]]], r"row 2 of column 'text' is \['b'\], but texts must be strings"),
        ([{"a": 1}], "row 1 of column 'text' is .* but texts must be strings"),
        ([["half \ud83d"]], "row 1 contains half a character"),
    ],
)
def test_f26_what_is_neither_text_nor_words_is_named(write, cells, message, streaming):
    with pytest.raises(InputError, match=message):
        read(write("test.jsonl", json_lines(*({"text": cell} for cell in cells))), streaming)
