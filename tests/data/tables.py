"""Tables as files and as data sets, and what is read from them."""

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, Features, Value

from hf_vat.data import DataArguments, load_text_classification

BOTH = pytest.mark.parametrize("streaming", [False, True])
GOOD_BAD = "text,label\ngood,positive\nbad,negative\n"


def json_lines(*records) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def save(path: Path, rows, header=("text", "label")) -> Path:
    """Rows as a file of the format that its name says."""
    if path.suffix in (".csv", ".tsv"):
        with open(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows([header, *rows])
        return path
    if path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in [header, *rows]:
            book.active.append(row)
        book.save(path)
        return path
    records = [dict(zip(header, row, strict=True)) for row in rows]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    else:
        path.write_text(json_lines(*records), encoding="utf-8")
    return path


def class_labels(names) -> Features:
    return Features({"text": Value("string"), "label": ClassLabel(names=list(names))})


def labelled(names, labels, texts) -> Dataset:
    """Texts with ids of named classes, as many sets of the Hub are."""
    return Dataset.from_dict({"text": list(texts), "label": labels}, features=class_labels(names))


def load(label_names=None, **arguments):
    """The splits of files or of a paper's set; of files nothing is held out unless the arguments say so."""
    share = {} if "paper_dataset" in arguments else {"validation_share": 0}
    return load_text_classification(DataArguments(**share | arguments), label_names)


def train_rows(path, streaming=False, **arguments) -> list[tuple[str, str]]:
    """Texts and the names of their classes, as training gets them."""
    train = load(train_file=str(path), streaming=streaming, **arguments)["train"]
    names = train.features["label"].names
    return [(row["text"], names[row["label"]]) for row in train]


def classifier(*names):
    """What a reader of texts wants to know of a model."""
    return SimpleNamespace(config=SimpleNamespace(id2label=dict(enumerate(names)), num_labels=len(names)))
