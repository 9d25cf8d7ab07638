"""Predictions as a table: what a row says, and that no table is ever half written."""

import csv

import pyarrow.parquet as pq
import pytest
from shown import explanation_of

from hf_vat.explanations import Explanation
from hf_vat.report import write_predictions

NAMES = ["bad", "good"]


def explanation(text: str, scores: list[float], **fields) -> Explanation:
    known = {"method": "lime", "target": 1, "prediction": 1, "probabilities": [0.25, 0.75]}
    return explanation_of(text, scores, NAMES, text.split(), **known | fields)


def test_a_row_has_the_prediction_and_the_words(tmp_path):
    rows = [
        explanation("a warm film", [0.0625, 0.5, -0.25], gold=0, seen=[True, True, False]),
        explanation('=1+1 "x"\ny', [0.0, 1e-5, 2.0], target=0, prediction=0, probabilities=[0.5, 0.5]),
        explanation("", []),
    ]
    write_predictions(iter(rows), NAMES, tmp_path / "out.csv", tmp_path / "out.parquet")
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        header, *cells = csv.reader(file)
    assert header == [
        *("text", "prediction", "probability", "gold", "target", "probability_bad", "probability_good", "words")
    ]
    assert cells == [
        ["a warm film", "good", "0.75", "bad", "good", "0.25", "0.75", "warm 0.5; a 0.0625"],
        ['=1+1 "x"\ny', "bad", "0.5", "", "bad", "0.5", "0.5", 'y 2; "x" 1e-05; =1+1 0'],
        ["", "good", "0.75", "", "good", "0.25", "0.75", ""],
    ]
    typed = pq.read_table(tmp_path / "out.parquet")
    assert typed.column_names == [*header, "scores"]
    assert [row["gold"] for row in typed.to_pylist()] == ["bad", None, None]
    assert typed["scores"].to_pylist() == [[0.0625, 0.5, -0.25], [0.0, 1e-5, 2.0], []]
    assert typed["words"].to_pylist()[0] == ["a", "warm", "film"]


@pytest.mark.parametrize("size", [0, 1000, 1001])
def test_any_number_of_rows(tmp_path, size):
    rows = (explanation(f"film {row}", [1.0, 0.0]) for row in range(size))
    write_predictions(rows, NAMES, tmp_path / "out.csv", tmp_path / "out.parquet")
    texts = [f"film {row}" for row in range(size)]
    assert pq.read_table(tmp_path / "out.parquet")["text"].to_pylist() == texts
    assert len((tmp_path / "out.csv").read_text().splitlines()) == size + 1


def test_a_table_that_is_there_is_kept_if_writing_fails(tmp_path):
    def interrupted():
        yield explanation("a film", [1.0, 0.0])
        raise KeyboardInterrupt

    table = tmp_path / "out.csv"
    table.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_predictions(interrupted(), NAMES, table, tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"] and table.read_text() == "old"
