"""What a model predicts for many texts, and the words that decided, as a table: a row for each text."""

import csv
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from os import PathLike

import pyarrow as pa
import pyarrow.parquet as pq

from hf_vat.explained import Explained, gold_text, is_regression
from hf_vat.models.problems import SINGLE_LABEL
from hf_vat.writing import written_beside

_TOGETHER = 1000  # rows that are in memory


def write_predictions(
    explanations: Iterable[Explained],
    label_names: Sequence[str],
    csv_path: str | PathLike | None = None,
    parquet_path: str | PathLike | None = None,
) -> None:
    """Write explanations as a CSV or a Parquet file, or both; one that is there is replaced when all is written.

    Columns: `text`, of pairs also `text_pair`, the predicted class by name (`prediction`), its `probability`, the given class
    (`gold`; empty if there is none), the class that is explained (`target`), and for each class `probability_` and its name.
    Of several labels the names are joined by commas, and `probability` is that of the label that is explained; of a
    regression `prediction` is empty, and `score` and `score_` take the place of `probability` and `probability_`. Then the words: in CSV
    one column `words`, such as "funny 0.612; warm 0.221", those with the highest scores first, without words that the model
    did not see; in Parquet `words` and `scores`, lists in the order of the text.

    Args:
        explanations: [`~hf_vat.explanations.Explanation`]s of one model; few are in memory at a time.
        label_names: the model's class names.
        csv_path, parquet_path: files to write, in folders that are there.
    """
    explanations = iter(explanations)
    first = next(explanations, None)
    explanations = chain([] if first is None else [first], explanations)
    pairs = first is not None and first.text_pair is not None
    output = "score" if first is not None and is_regression(first) else "probability"
    texts = ["text", "text_pair"] if pairs else ["text"]
    names = [*texts, "prediction", output, "gold", "target", *(f"{output}_{name}" for name in label_names)]
    kinds = [*[pa.string()] * (1 + len(texts)), pa.float64(), *[pa.string()] * 2, *[pa.float64()] * len(label_names)]
    words = [("words", pa.list_(pa.string())), ("scores", pa.list_(pa.float64()))]
    schema = pa.schema([*zip(names, kinds, strict=True), *words])
    with ExitStack() as stack:
        rows = parquet = None
        if csv_path is not None:
            partial = stack.enter_context(written_beside(csv_path))
            rows = csv.writer(stack.enter_context(open(partial, "w", encoding="utf-8", newline="")))
            rows.writerow([*names, "words"])
        if parquet_path is not None:
            parquet = pq.ParquetWriter(stack.enter_context(written_beside(parquet_path)), schema)
            stack.enter_context(parquet)
        while some := list(islice(explanations, _TOGETHER)):
            cells = [_cells(explanation, pairs) for explanation in some]
            if rows:
                rows.writerows([*row, _readable(one)] for row, one in zip(cells, some, strict=True))
            if parquet:
                lists = [(one.words, one.check_scores()) for one in some]
                columns = zip(*([*row, *both] for row, both in zip(cells, lists, strict=True)), strict=True)
                arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
                parquet.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _cells(explanation: Explained, pairs: bool) -> list:
    names, predicted = explanation.label_names, explanation.predicted
    shown = predicted[0] if explanation.problem_type == SINGLE_LABEL else explanation.target
    return [
        explanation.text,
        *([explanation.text_pair] if pairs else []),
        None if is_regression(explanation) else ", ".join(names[label] for label in predicted),
        explanation.probabilities[shown],
        gold_text(explanation) or None,
        names[explanation.target],
        *explanation.probabilities,
    ]


def _readable(explanation) -> str:
    words = zip(explanation.words, explanation.check_scores(), explanation.seen, strict=True)
    ranked = sorted((row for row in words if row[2]), key=lambda row: -row[1])
    return "; ".join(f"{word} {score:.3g}" for word, score, _ in ranked)
