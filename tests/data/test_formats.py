"""Files as people have them: delimiters, encodings, compression, Excel, and one rule for labels whatever the format."""

import bz2
import csv
import gzip
import lzma
import re
import sys
import zipfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, Features, Value
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import BOTH, GOOD_BAD, json_lines, load, save, train_rows

from hf_vat.errors import InputError, MissingExtra

# Encodings


@BOTH
def test_f17_the_encoding_of_windows_is_advised_and_latin_1_noticed(write, streaming):
    path = write("train.csv", "text,label\nI don’t,x\nfine,y\n".encode("cp1252"))
    with pytest.raises(
        InputError, match=r"byte 16 \(counted from 0\) is not utf-8.*--encoding cp1252 for files of Windows"
    ):
        train_rows(path, streaming)
    for encoding in ("latin-1", "iso-8859-15"):
        with pytest.raises(
            InputError,
            match=rf"row 1 has the control character U\+0092.* it is '’': give --encoding cp1252, not {encoding}",
        ):
            train_rows(path, streaming, encoding=encoding)
    assert train_rows(path, streaming, encoding="cp1252") == [("I don’t", "x"), ("fine", "y")]


def test_f17_what_windows_does_not_have_is_left_to_latin_1(write):
    path = write("train.csv", b"text,label\na \x81 b,x\ncaf\xe9,y\n")
    assert [text for text, _ in train_rows(path, encoding="latin-1")] == ["a \x81 b", "café"]


def test_f17_control_characters_in_a_file_that_was_decoded_before_are_told_once(write, caplog):
    path = write("train.jsonl", json_lines({"text": "don\x92t", "label": "x"}) + '{"text": "a\x92", "label": "y"}\n')
    assert [text for text, _ in train_rows(path)] == ["don\x92t", "a\x92"]
    [message] = [record.message for record in caplog.records]
    assert "train.jsonl: texts hold control characters" in message and "cp1252" in message


def test_f17_utf_16_is_recognized(write):
    path = write("train.csv", GOOD_BAD.encode("utf-16"))
    with pytest.raises(InputError, match=r"byte 0 .* is not utf-8.*--encoding utf-16"):
        train_rows(path)
    assert train_rows(path, encoding="utf-16") == [("good", "positive"), ("bad", "negative")]


# Delimiters


@BOTH
@pytest.mark.parametrize(("name", "delimiter"), [("semicolon", ";"), ("tab", "\t"), ("pipe", "|"), ("comma", ",")])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_f18_another_delimiter_is_found_and_told(write, caplog, suffix, name, delimiter, streaming):
    caplog.set_level("INFO", "hf_vat")
    content = f'text{delimiter}label\n"one{delimiter} two, three;\tfour"{delimiter}x\nfive{delimiter}y\n'
    path = write(f"train.{suffix}", content)
    assert train_rows(path, streaming) == [(f"one{delimiter} two, three;\tfour", "x"), ("five", "y")]
    told = [record.message for record in caplog.records if "separated by" in record.message]
    usual = {"csv": ",", "tsv": "\t"}[suffix] == delimiter
    assert told == ([] if usual else [f"{path}: the columns are separated by {name}"])  # once, not for each pass


@BOTH
def test_f18_excels_first_line_names_the_delimiter(write, streaming):
    for line in ("sep=;", '"sep=;"', "SEP=;"):
        path = write("train.csv", f"\ufeff{line}\r\ntext;label\r\na, b;x\r\nc;y\r\n")
        assert train_rows(path, streaming) == [("a, b", "x"), ("c", "y")]


@BOTH
def test_f18_the_delimiter_can_be_said(write, streaming):
    path = write("train.csv", "text:label\na, b:x\nc:y\n")
    assert train_rows(path, streaming, delimiter=":") == [("a, b", "x"), ("c", "y")]
    path = write("train.csv", "my text\tmy, label\nb\tx\nc\ty\n")
    for character in ("tab", "\t", "\\t"):
        named = {"text_column": "my text", "label_column": "my, label"}
        assert train_rows(path, streaming, delimiter=character, **named) == [("b", "x"), ("c", "y")]


@BOTH
@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("text,label\nI don’t,x\nfine,y\n", {"encoding": "latin-1"}, r"row 1 .* U\+0080.* is UTF-8: leave --encoding latin-1 out"),
        (GOOD_BAD, {"encoding": "utf-16"}, "is not utf-16"),
        (GOOD_BAD, {"encoding": "hex"}, "'hex' is unknown"),
        ('sep=;\ntext;label\na;x\n"b" c;y\n', {}, "line 4"),
        # delimiters that are not found: another one, texts with semicolons, two that could be
        ("text:label\na, b:x\nc:y\n", {}, r"row 1 has 2 cells, but the header has 1 \(text:label\).* say with --delimiter what separates"),
        ("a note;text\tlabel\n1;b\tx\n2;c\ty\n", {"delimiter": ";"}, r"no column 'label'; found .* or say with --delimiter what separates"),
        ("text;label\none; two;x\nthree;y\n", {}, r"row 1 has 3 cells, but the header has 2.*';' into quotation marks"),
        ("review\none; two\nthree|four\n", {}, "no column 'label'; found review"),
        ("text|;label|;label\na|;x|;x\n", {}, "not clear what separates the columns, semicolon, pipe; name it with --delimiter"),
        *((GOOD_BAD, {"delimiter": given}, "--delimiter is .* comma, semicolon, tab, pipe, or one other character") for given in ("", ";;", '"', "\n")),
        # class names
        ("text,label\na,3+\nb,1\nc,2\n", {}, r"row 1 has the name '3.' as its label, but row 2 the number 1.*--class_names"),
        ("text,label\na,0\nb,2\n", {"class_names": ["no", "yes"]}, r"row 2 has the unknown label '2'; known are no, yes \(or 0 to 1\)"),
        *((GOOD_BAD, {"class_names": names}, "--class_names is 'no'.*two or more different names") for names in (["no"], ["no", "no"], ["no", " "])),
    ],
)  # fmt: skip
def test_f17_f18_f24_what_cannot_be_read_so_is_refused(write, content, arguments, message, streaming):
    path = write("train.csv", content)
    with pytest.raises(InputError, match=message):
        list(load(train_file=path, streaming=streaming, **arguments)["train"])


def test_f18_f24_what_is_for_other_files_is_refused(write):
    with pytest.raises(InputError, match="--delimiter is for CSV and TSV files"):
        train_rows(write("train.jsonl", ""), delimiter=";")
    for arguments in ({"delimiter": ";"}, {"class_names": ["no", "yes"]}):
        with pytest.raises(InputError, match=f"--{next(iter(arguments))} is not for --paper_dataset"):
            load(paper_dataset="trec", **arguments)


# Labels: one rule


def as_parquet(path, rows):
    save(path, rows)
    # what the types of Parquet change, such as 1 to 1.0, is another table
    if repr([tuple(row.values()) for row in pq.read_table(path).to_pylist()]) != repr(rows):
        raise pa.ArrowInvalid("another table")


def as_excel(path, rows):
    cells = [cell for row in rows for cell in row]
    if not all(any(cell not in (None, "") and cell == cell for cell in row) for row in rows):
        raise ValueError("an empty row is none")
    if any(isinstance(cell, float) and cell == int(cell) for cell in cells if cell == cell):
        raise ValueError("1.0 is 1")
    if any(isinstance(cell, str) and (cell[:1] == "=" or "\r" in cell or "_x" in cell) for cell in cells):
        raise ValueError("a formula, or characters that are written in another way")
    save(path, [[None if cell != cell else cell for cell in row] for row in rows])


WRITERS = {
    "a.csv": save,
    "a.tsv": save,
    "a.jsonl": save,
    "a.parquet": as_parquet,
    "a.xlsx": as_excel,
}


def outcome(path, streaming, drop_empty):
    """Texts and classes, or the row that is refused."""
    try:
        return train_rows(path, streaming, drop_empty=drop_empty)
    except InputError as error:
        place = re.search(r"row (\d+)", str(error).replace(str(path), ""))
        return place[0] if place else re.sub(r"\W+", " ", str(error).replace(str(path), ""))[:40]


def outcomes(rows, folder, drop_empty=False) -> list:
    """What each format gives that can hold the table: first in memory, then streamed."""
    found = {False: [], True: []}
    for name, write in WRITERS.items():
        try:
            write(folder / name, rows)
        except (pa.ArrowException, ValueError, TypeError, openpyxl.utils.exceptions.IllegalCharacterError):
            continue
        for streaming, results in found.items():
            results.append(outcome(folder / name, streaming, drop_empty))
    results = [*found[False], *found[True]]
    # of several faults another one may be the first that is found
    assert all(isinstance(result, str) for result in results) or all(result == results[0] for result in results), (
        results
    )
    return found[False]


NAN = float("nan")
WITH_NAN = st.sampled_from([0.0, 1.0, 2.0, NAN])
TEXTS = st.lists(
    st.one_of(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6),
        st.sampled_from(['"', 'a "b"\nc', "a, b;c\td", " x ", "NA", "nan", "12", "007", "1.0", "[1]", "don’t", "日本"]),
    ),
    min_size=2,
    max_size=6,
) | st.sampled_from([[12, 7, 3], [1.5, 0.25, 2.75], [True, False, True], [None, "a", "b"], [12, None, 7]])
NAMES = st.sampled_from(["good", "bad", " good ", "None", "nan", "True", "FALSE", "[x]", "(a)", "1 star"])
ONE_KIND = [
    NAMES,
    NAMES | st.none(),
    st.integers(0, 3),
    st.integers(0, 3) | st.none(),
    WITH_NAN,
    st.sampled_from([0.0, 1.0, 0.5]),
    st.sampled_from(["0", "1", "1.0", "nan", "NA", ""]),
    st.booleans(),
    st.integers(-1, 1),
]
# Among names NaN is a missing label in JSON, which knows numbers, and a name in CSV, which does not.
ANY = st.one_of(*(kind for kind in ONE_KIND if kind is not WITH_NAN), st.sampled_from([{"x": "y"}, {"x": "z"}]))


@settings(max_examples=60)
@given(
    texts=TEXTS,
    labels=st.sampled_from([*ONE_KIND, ANY]).flatmap(lambda one: st.lists(one, min_size=6, max_size=6)),
    drop=st.booleans(),
)
def test_f19_the_same_table_gives_the_same_texts_and_classes_in_every_format(tmp_path_factory, texts, labels, drop):
    rows = list(zip(texts, labels, strict=False))
    outcomes(rows, tmp_path_factory.mktemp("table"), drop)


@pytest.mark.parametrize(
    ("labels", "formats", "expected"),
    [
        ([1.0, 0.0, NAN], 4, "row 3"),  # Excel has no NaN, and no 1.0
        (["1.0", "0.0", "nan"], 5, "row 3"),
        (["1", "neg", "0"], 5, "row 2"),
        ([1, "neg", 0], 4, "row 2"),
        ([{"x": "y"}, {"x": "z"}, {"x": "y"}], 4, "row 1"),
        (["['x', 'y']", "x", "y"], 5, "row 1"),
        (["x", "y", '["x", "y"]'], 5, "row 3"),
        (["x", "y", "[0 1]"], 5, "row 3"),
        (["x", "y", "('x', 'y')"], 5, "row 3"),
        (["x", "[INST]", "(none)"], 5, ["x", "[INST]", "(none)"]),
        (["x", "nan", "None"], 5, ["x", "nan", "None"]),  # names among names: "nan" is a language
        ([True, False, True], 5, ["true", "false", "true"]),
        (["TRUE", "False", "true"], 5, ["true", "false", "true"]),
        (["1", "0", "1.0"], 5, ["1", "0", "1"]),
        (["1", "0", "0.5"], 5, "row 3"),
        (["1", "0", "-1"], 5, "row 3"),
    ],
)  # fmt: skip
def test_f19_labels_are_taken_alike_in_every_format(tmp_path, labels, formats, expected):
    rows = list(zip(("one", "two", "three"), labels, strict=True))
    found = outcomes(rows, tmp_path)
    assert len(found) == formats and found == found[:1] * formats
    assert found[0] == (
        expected if isinstance(expected, str) else list(zip(("one", "two", "three"), expected, strict=True))
    )


@BOTH
def test_f19_a_missing_label_is_left_out_if_asked(write, streaming):
    path = write("train.csv", "text,label\na,1.0\nb,0.0\nc,nan\nd,NA\n")
    with pytest.raises(InputError, match=r"no text or no label in row 3 \(column 'label'\).*--drop_empty"):
        train_rows(path, streaming)
    assert train_rows(path, streaming, drop_empty=True) == [("a", "1"), ("b", "0")]


# Class names


@BOTH
@pytest.mark.parametrize("labels", [("0", "1"), ("0.0", "1.0"), ("negative", "positive")])
def test_f24_class_names_are_given_to_ids(write, labels, streaming):
    path = write("train.csv", "text,label\na,{1}\nb,{0}\n".format(*labels))
    rows = train_rows(path, streaming, class_names=["negative", "positive"])
    assert rows == [("a", "positive"), ("b", "negative")]


def test_f24_class_names_keep_their_order_and_may_look_like_numbers(write, tmp_path):
    path = write("train.csv", "text,label\na,3+\nb,1\nc,2\n")
    train = load(train_file=path, class_names=["1", "2", "3+"])["train"]
    assert (train["label"][:], train.features["label"].names) == ([2, 0, 1], ["1", "2", "3+"])
    unnamed = Features({"text": Value("string"), "label": ClassLabel(num_classes=2)})
    Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=unnamed).to_parquet(tmp_path / "train.parquet")
    rows = train_rows(tmp_path / "train.parquet", class_names=["negative", "positive"])
    assert rows == [("a", "positive"), ("b", "negative")]


# Compression


def as_zip(content: bytes, path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__MACOSX/._notes", "no data")
        archive.writestr("data/" + path.name.removesuffix(".zip"), content)


COMPRESSIONS = {
    "gz": lambda content, path: path.write_bytes(gzip.compress(content)),
    "bz2": lambda content, path: path.write_bytes(bz2.compress(content)),
    "xz": lambda content, path: path.write_bytes(lzma.compress(content)),
    "zst": lambda content, path: path.write_bytes(pa.compress(content, "zstd", asbytes=True)),
    "zip": as_zip,
}
_CSV, _JSON = "text,label\ngöod,x\nbad,y\n", '{"text": "göod", "label": "x"}\n{"text": "bad", "label": "y"}\n'
CONTENTS = {"csv": _CSV, "tsv": _CSV.replace(",", "\t"), "jsonl": _JSON, "json": _JSON}


@BOTH
@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("suffix", CONTENTS)
def test_f22_compressed_files_are_read(tmp_path, suffix, compression, streaming):
    path = tmp_path / f"train.{suffix}.{compression}"
    COMPRESSIONS[compression](CONTENTS[suffix].encode(), path)
    assert train_rows(path, streaming) == [("göod", "x"), ("bad", "y")]
    COMPRESSIONS[compression](CONTENTS[suffix].encode("cp1252"), path)
    with pytest.raises(InputError, match=r"is not utf-8.*cp1252"):
        train_rows(path, streaming)
    assert train_rows(path, streaming, encoding="cp1252") == [("göod", "x"), ("bad", "y")]


def test_f22_a_folder_of_compressed_files_and_an_archive_whose_name_says_nothing(tmp_path):
    COMPRESSIONS["gz"](CONTENTS["csv"].encode(), tmp_path / "Train.CSV.GZ")
    with zipfile.ZipFile(tmp_path / "test.zip", "w") as archive:
        archive.writestr("reviews.jsonl", CONTENTS["jsonl"])
    with zipfile.ZipFile(tmp_path / "backup.zip", "w") as archive:
        archive.writestr("one.csv", "")
        archive.writestr("two.csv", "")
    splits = load(dataset_name=str(tmp_path))
    assert splits["train"]["text"][:] == splits["test"]["text"][:] == ["göod", "bad"]
    with pytest.raises(InputError, match=r"backup\.zip: the archive holds one\.csv, two\.csv, but it must be one file"):
        train_rows(tmp_path / "backup.zip")


@BOTH
def test_f22_damaged_archives_are_named(write, streaming):
    whole = gzip.compress(("text,label\n" + "a,x\nb,y\n" * 10_000).encode())
    for name, content, message in (
        ("cut.csv.gz", whole[: len(whole) // 2], r"cut\.csv\.gz cannot be read after row \d+"),
        ("no.csv.gz", GOOD_BAD, r"no\.csv\.gz cannot be read after row 0: Not a gzipped file"),
        ("no.csv.xz", GOOD_BAD, r"no\.csv\.xz cannot be read after row 0"),
        ("no.csv.zst", GOOD_BAD, r"no\.csv\.zst cannot be read after row 0"),
        ("no.csv.zip", GOOD_BAD, r"no\.csv\.zip: not a ZIP archive"),
        ("a.parquet.gz", "", r"\.parquet files are compressed as they are"),
        ("a.txt.gz", "", r"type '\.txt' cannot be read; allowed are \.csv.* compressed \(\.gz"),
    ):
        with pytest.raises(InputError, match=message):
            train_rows(write(name, content), streaming)


# Excel


@BOTH
def test_excel_workbooks_are_read(tmp_path, caplog, streaming):
    caplog.set_level("INFO", "hf_vat")
    rows = [["text", "label", "page"], ['a "b"\nc', 1, 2.5], [12, 0], [None, None, None], ["007", 1, "x"]]
    path = save(tmp_path / "train.xlsx", rows, header=[])
    book = openpyxl.load_workbook(path)
    book.create_sheet("Notes").append(["text"])
    book["Notes"].append(["other"])
    book.save(path)
    assert train_rows(path, streaming) == [('a "b"\nc', "1"), ("12", "0"), ("007", "1")]
    assert [record.message for record in caplog.records if "sheet" in record.message] == [
        f"{path}: the first sheet, Sheet, is read"
    ]


@BOTH
def test_excel_workbooks_that_cannot_be_read_are_refused(tmp_path, write, streaming, monkeypatch):
    for (header, *rows), message in (
        (
            [["text", "label"], ["a", "x"], ["b", "y", "more"]],
            "row 2 has 3 cells, but the header has 2.*Give each column a name",
        ),
        ([["text", "text"], ["a", "x"]], "text more than once"),
        ([["text", "label"]], "no rows"),
        ([["text", "label"], ["a", "x"], [None, "y"]], r"row 2 \(column 'text'\)"),
    ):
        with pytest.raises(InputError, match=message):
            train_rows(save(tmp_path / "train.xlsx", rows, header), streaming)
    for content in (GOOD_BAD, ""):
        with pytest.raises(InputError, match="not an Excel workbook"):
            train_rows(write("no.xlsx", content), streaming)
    path = write("train.xlsx", [("a", "x"), ("b", "y")])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtra, match=r"This needs openpyxl; run: pip install 'hf-vat\[excel\]'"):
        train_rows(path, streaming)


# The csv module


@BOTH
def test_f25_the_limit_of_the_csv_module_is_left_alone(write, monkeypatch, streaming):
    def refused(*limit):
        raise AssertionError("the limit belongs to the whole process")

    text, limit = "word " * 30_000, csv.field_size_limit()
    path = write("train.csv", f"text,label\n{text},x\nb,y\n")
    with monkeypatch.context() as patched:
        patched.setattr(csv, "field_size_limit", refused)
        assert train_rows(path, streaming)[0] == (text, "x")
    assert csv.field_size_limit() == limit
    with pytest.raises(csv.Error, match="larger than field limit"):
        next(csv.reader(["a" * 150_000]))
