"""What is shown and written of a [`Probe`](hf_vat.analysis.Probe)."""

import json
from os import PathLike
from pathlib import Path
from typing import Any

from hf_vat.faithfulness import LOWER_IS_BETTER
from hf_vat.writing import write_text

from .html import page
from .tables import Table

PROBE_FILES = ("probe.json", "probe.html")
_SHOWN = 20  # texts in the page
_ANSWERS = {True: "✓ yes", False: "✗ no", None: "not measured"}


def write_probe(probe: Any, folder: str | PathLike) -> Path:
    """Write page and JSON into a folder, and return the path of the page; see [`Probe.write`](hf_vat.analysis.Probe.write)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    report = probe.to_dict()
    write_text(folder / "probe.json", json.dumps(report, ensure_ascii=False, indent=1, allow_nan=False))
    shown = page(
        "Can this attention be read as an explanation?",
        {method: made[:_SHOWN] for method, made in probe.explanations.items()},
        lead=[report["told"], *report["reasons"]],
        settings={
            "model": report["model"],
            **({"other training": report["other"]} if report["other"] else {}),
            "texts": report["n_texts"],
            "texts of the trained adversary": report["n_train_texts"],
            "accuracy": f"{100 * report['accuracy']:.1f} %",
            "seed": report["seed"],
        },
        tables=probe_tables(report),
    )
    write_text(folder / "probe.html", shown)
    return folder / "probe.html"


def probe_tables(report: dict) -> list[Table]:
    """The criteria and the numbers behind them, from [`Probe.to_dict`](hf_vat.analysis.Probe.to_dict)."""
    tables = [criteria_table(report)]
    scores, names = list(next(iter(report["scores"].values()))), report["label_names"]
    tables.append(
        Table(
            "Faithfulness",
            ["words ranked by", *(f"{name} ↓" if name in LOWER_IS_BETTER else name for name in scores)],
            [
                [method, *(f"{100 * values[name]:.1f}" for name in scores)]
                for method, values in report["scores"].items()
            ],
            "Percent, means over texts, the model asked about its own predictions. ↓ lower is better, all others higher.",
        )
    )
    if report["permutation"]:
        tables.append(
            Table(
                "Shuffled weights",
                ["largest weight", "predicted class", "texts", "median change"],
                [
                    [
                        f"{row['low']:g} to {row['high']:g}",
                        names[row["prediction"]],
                        str(row["n_texts"]),
                        f"{row['median_tvd']:.3f}",
                    ]
                    for row in report["permutation"]
                ],
                "Total variation distance of the class probabilities, median over 100 orders of the weights. An attention that "
                "explains changes much where one word has most of it.",
            )
        )
    if report["adversary"]:
        tables.append(
            Table(
                "Trained adversary",
                ["weight of the divergence", "divergence of its attention (nats)", "change of the prediction"],
                [[f"{row['weight']:g}", f"{row['jsd']:.3f}", f"{row['tvd']:.3f}"] for row in report["adversary"]],
                "Means over texts of the Jensen-Shannon divergence and of the total variation distance. The states of the "
                "tokens are the model's own; attention and head are trained anew.",
            )
        )
    return [*tables, _measures_table(report)]


def criteria_table(report: dict) -> Table:
    """Each criterion with its value, threshold and answer."""
    rows = []
    for criterion in report["criteria"].values():
        bound = "≥" if criterion["at_least"] else "≤"
        value = "—" if criterion["value"] is None else f"{criterion['value']:.3f}"
        mean = "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**criterion["mean"]) if criterion["mean"] else "—"
        question = criterion["question"] + (" (needed)" if criterion["needed"] else "")
        wanted = f"{bound} {criterion['threshold']:g}"
        rows.append([question, _ANSWERS[criterion["holds"]], value, wanted, mean])
    return Table(
        "What was asked",
        ["question", "answer", "value", "wanted", "mean [95 %]"],
        rows,
        "The thresholds are a matter of judgement; the verdict is “yes” if all that was measured holds, “with care” if all that is "
        "needed does, “open” if that could not be measured, else “no”.",
    )


def _measures_table(report: dict) -> Table:
    rows = [
        [one["question"], as_sentence(one["measured"]) + "." + (f" {one['note']}" if one["note"] else "")]
        for one in report["criteria"].values()
    ]
    return Table("What was measured", ["question", "value"], rows)


def as_sentence(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]
