"""What is shown and written of an [`ExplainerComparison`](hf_vat.comparison.ExplainerComparison)."""

import csv
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hf_vat.faithfulness import LOWER_IS_BETTER
from hf_vat.writing import write_text, written_beside

from .html import write_report
from .tables import Table
from .top_k_plot import top_k_curves

COMPARISON_FILES = (
    *("comparison.json", "scores.csv", "texts.csv", "explanations.jsonl"),
    *("curves.svg", "curves.png", "report.html"),
)
_SHOWN = 50  # texts in the page


def write_comparison(comparison: Any, folder: str | PathLike, title: str) -> Path:
    """Write page, figures and files into a folder, and return the path of the page; what they are says
    [`ExplainerComparison.write`](hf_vat.comparison.ExplainerComparison.write)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    report = comparison.to_dict()
    found = json.dumps(report, ensure_ascii=False, indent=1, allow_nan=False)
    write_text(folder / "comparison.json", found)
    _write_scores(comparison, folder / "scores.csv")
    _write_texts(comparison, folder / "texts.csv")
    _write_explanations(comparison, folder / "explanations.jsonl")
    curves, setup = comparison.curves(), comparison.setup
    percent = setup["scale"] != "score"
    figure = top_k_curves(curves, folder / "curves.svg", percent)
    top_k_curves(curves, folder / "curves.png", percent)
    return write_report(
        folder / "report.html",
        title,
        {name: one.explanations[:_SHOWN] for name, one in comparison.methods.items() if one.explanations},
        settings={
            "model": setup["model"],
            "scorer": setup["scorer"],
            **{
                f"accuracy of the {who}": f"{100 * setup[name]:.1f} %"
                for who, name in (("model", "model_accuracy"), ("scorer", "accuracy"))
                if setup.get(name) is not None
            },
            "texts": setup["n_scored"],
            "words taken out by": setup["operator"],
        },
        tables=_tables(comparison, report),
        figures={"By number of words": figure},
        rationales=None if comparison.rationales is None else comparison.rationales[:_SHOWN],
    )


def comparison_table(comparison: Any) -> Table:
    """The main scores, in percent with intervals, and the seconds per text: methods side by side."""
    rows = [
        ["s / text", *("—" if one.seconds is None else f"{one.seconds:.3f}" for one in comparison.methods.values())]
    ]
    for score in comparison.main_scores:
        cells = []
        for intervals in comparison.intervals.values():
            cells.append("{} [{},\u00a0{}]".format(*(_number(comparison, score, one) for one in intervals[score])))
        rows.append([_column(score), *cells])
    setup = comparison.setup
    scale = "On the scale of the output" if setup["scale"] == "score" else "Percent"
    caption = (
        f"{scale}, mean over {setup['n_scored']} texts with {100 * comparison.confidence:g} % bootstrap interval; "
        f"random: mean over {len(setup['random_seeds'])} seeds. ↓ lower is better, all others higher."
    )
    if "auprc" in comparison.main_scores:
        caption += f" Against rationales: the {comparison.n_texts('token_f1')} texts with marked words."
    return Table("Results", ["", *comparison.methods], rows, caption)


def _tables(comparison: Any, report: dict) -> list[Table]:
    tests = [
        [
            f"{pair['a']} − {pair['b']}",
            _column(pair["score"]),
            "{} [{}, {}]".format(
                *(_number(comparison, pair["score"], pair[name]) for name in ("difference", "low", "high"))
            ),
            f"{pair['p_value']:.3f}",
            pair["test"],
        ]
        for pair in report["pairs"]
    ]
    unit = "" if comparison.setup["scale"] == "score" else " in percentage points"
    note = f"Difference{unit} with interval; p-values are not adjusted for their number."
    tables = [
        comparison_table(comparison),
        Table("Paired tests", ["methods", "score", "difference", "p", "test"], tests, note),
    ]
    if report["agreement"]:
        alike = [
            [f"{pair['a']}, {pair['b']}", f"{pair['kendall_tau']:.2f}", f"{pair['top_k_overlap']:.2f}"]
            for pair in report["agreement"]
        ]
        names = ["methods", "Kendall τ-b", f"overlap of top {comparison.at}"]
        tables.append(Table("Agreement between methods", names, alike, "Means over texts."))
    settings = [
        [name, ", ".join(f"{key} {value}" for key, value in one.settings.items()) or "—"]
        for name, one in comparison.methods.items()
    ]
    definitions = [list(pair) for pair in comparison.setup["definitions"].items()]
    return [
        *tables,
        Table("Settings", ["method", "settings"], settings),
        Table("Scores", ["score", "what it is"], definitions),
    ]


def _write_scores(comparison: Any, path: Path) -> None:
    with written_beside(path) as partial, open(partial, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["method", "score", "at", "mean", "low", "high", "n_texts", "better"])
        for name, intervals in comparison.intervals.items():
            for score, interval in intervals.items():
                base, _, at = score.partition("@")
                better = "lower" if base in LOWER_IS_BETTER else "higher"
                writer.writerow([name, base, at, *interval, comparison.n_texts(score), better])


def _write_texts(comparison: Any, path: Path) -> None:
    names = list(next(iter(comparison.methods.values())).values)
    with written_beside(path) as partial, open(partial, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["method", "text", *names])
        for name, one in comparison.methods.items():
            for number, values in enumerate(zip(*[one.values[score] for score in names], strict=True)):
                writer.writerow([name, number, *["" if np.isnan(value) else value for value in values]])


def _write_explanations(comparison: Any, path: Path) -> None:
    with written_beside(path) as partial, open(partial, "w", encoding="utf-8") as file:
        for name, one in comparison.methods.items():
            for number, explanation in enumerate(one.explanations):
                fields = {"name": name, "number": number, **explanation.to_dict()}
                file.write(json.dumps(fields, ensure_ascii=False) + "\n")


def _number(comparison: Any, score: str, value: float) -> str:
    """In percent; on the scale of the output where the scorer gives scores."""
    of_texts = score.partition("@")[0] in ("recall", "f1", "token_f1", "iou_f1", "auprc")
    return f"{value:.3g}" if comparison.setup["scale"] == "score" and not of_texts else f"{100 * value:.1f}"


def _column(score: str) -> str:
    return f"{score} ↓" if score.partition("@")[0] in LOWER_IS_BETTER else score
