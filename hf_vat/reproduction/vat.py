"""The tables and curves of the VAT paper from finished cells, beside the paper's numbers, with claims and their tests."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ..faithfulness.statistics import bootstrap_interval, mcnemar, paired_bootstrap
from ..report import top_k_curves
from .cells import ENCODERS, KS, SYSTEMS, Cell
from .paper import VAT_TABLES

TABLES = {
    2: ("Test accuracy", "accuracy"),
    3: ("AOPC: accuracy lost without the five top words, judged by the base model", "accuracy_drop@5"),
    4: ("Post-hoc accuracy: on the five top words alone, judged by the base model", "posthoc_gold@5"),
}
_CURVES = ("accuracy_drop", "posthoc_gold")  # figures 4 and 5


@dataclass
class VATResults:
    """Results of cells, as [`run_cells`](hf_vat.reproduction.run_cells) returns them."""

    results: dict[Cell, dict]

    def seeds(self, dataset: str, encoder: str) -> list[int]:
        return sorted({cell.seed for cell in self.results if (cell.dataset, cell.encoder) == (dataset, encoder)})

    def values(self, dataset: str, encoder: str, row: str, score: str, scorer: str = "base") -> np.ndarray:
        """Values of a row per seed and test text, shape [seeds, texts].

        Args:
            row: a system, or "Random".
            score: "accuracy", or a score at K such as "accuracy_drop@5".
            scorer: "base", the paper's protocol, or "self".
        """
        system = "base" if row == "Random" else row
        found = []
        for seed in self.seeds(dataset, encoder):
            result = self.results[Cell(dataset, encoder, system, seed)]
            if score == "accuracy":
                found.append(result["correct"])
            else:
                found.append(result["random" if row == "Random" else scorer][score])
        return np.array(found, dtype=float)

    def settings(self) -> list[tuple[str, str]]:
        """Data sets and encoders, in the order given."""
        return list(dict.fromkeys((cell.dataset, cell.encoder) for cell in self.results))

    def table(self, number: int, scorer: str = "base") -> str:
        """A table of the paper in Markdown: ours as mean ± sd over seeds, the paper's number in brackets."""
        title, score = TABLES[number]
        settings = self.settings()
        heads = [f"{encoder}, {dataset} ({len(self.seeds(dataset, encoder))})" for dataset, encoder in settings]
        lines = [f"### Table {number}. {title}", ""]
        if scorer == "self":
            lines = [f"### As table {number}, each model judging its own ranking", ""]
        lines += [f"| system | {' | '.join(heads)} |", f"|---{'|---' * len(heads)}|"]
        for row in SYSTEMS if number == 2 else ("Random", *SYSTEMS[1:]):
            if scorer == "self" and row == "Random":
                continue
            cells = []
            for dataset, encoder in settings:
                means = 100 * self.values(dataset, encoder, row, score, scorer).mean(1)
                sd = f" ± {means.std(ddof=1):.1f}" if len(means) > 1 else ""
                paper = VAT_TABLES[number].get((ENCODERS[encoder][0], row), {}).get(dataset)
                printed = f" [{paper:.1f}]" if paper is not None and scorer == "base" else ""
                cells.append(f"{means.mean():.1f}{sd}{printed}")
            lines.append(f"| {row} | {' | '.join(cells)} |")
        return "\n".join(lines)

    def claims(self) -> list[dict]:
        """The paper's orderings, with the difference in points over texts (values of a text are means over seeds).

        Intervals are bootstrapped over texts. p is the bootstrap's; for accuracies with one seed McNemar's. A claim
        "held" if the difference is above 0 with p < 0.05, "failed" if it is below 0 with p < 0.05, else is "open".
        """
        found = []
        for dataset, encoder in self.settings():
            for number, (_, score) in TABLES.items():
                pairs = [("VAT", "ATT"), ("VAT", "ATT (matched)")]
                pairs += [("VAT", "base")] if number == 2 else [("ATT", "Random"), ("VAT", "Random")]
                for better, worse in pairs:
                    a, b = (self.values(dataset, encoder, row, score) for row in (better, worse))
                    test = paired_bootstrap(a.mean(0), b.mean(0))
                    p = test.p_value
                    if score == "accuracy" and len(a) == 1:
                        p = mcnemar(a[0] == 1, b[0] == 1).p_value
                    verdict = "open" if p >= 0.05 else "held" if test.difference > 0 else "failed"
                    wins = int((a.mean(1) > b.mean(1)).sum())
                    found.append(
                        {
                            "dataset": dataset,
                            "encoder": encoder,
                            "score": score,
                            "claim": f"{better} > {worse}",
                            "difference": 100 * test.difference,
                            "low": 100 * test.low,
                            "high": 100 * test.high,
                            "p_value": p,
                            "seeds_won": wins,
                            "seeds": len(a),
                            "verdict": verdict,
                        }
                    )
        return found

    def curves(self, dataset: str, encoder: str) -> dict:
        """Figures 4 and 5: scores by number of words, for `top_k_curves`; bands are bootstrap intervals over texts."""
        return {
            score: {
                row.lower() if row == "Random" else row: [
                    (float(k), *bootstrap_interval(self.values(dataset, encoder, row, f"{score}@{k}").mean(0)))
                    for k in KS
                ]
                for row in (*SYSTEMS[1:], "Random")
            }
            for score in _CURVES
        }

    def write(self, folder: str | Path, tables: Sequence[int], command: str) -> Path:
        """Write `vat.md`, `vat.json` and for each data set and encoder the curves as SVG and PNG.

        Returns:
            The path of the Markdown file.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        claims = self.claims()
        lines = ["# VAT again", "", f"Written by `{command}`.", ""]
        packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
        lines += [
            f"{platform.machine()}, {os.cpu_count()} cores; {packages}. Percent, mean ± sd over seeds; in brackets of a "
            "heading the number of seeds, in brackets of a cell the number that the paper prints. The encoder `lstm` is "
            "an LSTM of 100 states in each direction on 50-dimensional GloVe vectors (the paper: 300, and it does not say "
            "whether it reads both ways); `minilm` has 6 layers of width 384 "
            "and stands in for BERT-base. ATT (matched) has as many updates of the encoder as VAT, and is not in the "
            "paper. No model is selected: every row is that of the last epoch.",
            "",
        ]
        for number in tables:
            lines += [self.table(number), ""]
            if number > 2:
                lines += [self.table(number, "self"), ""]
        lines += ["### Claims", "", "| data set, encoder | score | claim | difference | p | seeds won | verdict |"]
        lines.append("|---" * 7 + "|")
        for claim in claims:
            lines.append(
                f"| {claim['dataset']}, {claim['encoder']} | {claim['score']} | {claim['claim']} | "
                f"{claim['difference']:+.1f} [{claim['low']:.1f}, {claim['high']:.1f}] | {claim['p_value']:.3f} | "
                f"{claim['seeds_won']} of {claim['seeds']} | {claim['verdict']} |"
            )
        for dataset, encoder in self.settings():
            name = f"vat-{dataset}-{encoder}"
            for suffix in (".svg", ".png"):
                top_k_curves(self.curves(dataset, encoder), folder / f"{name}{suffix}")
            lines += ["", f"![Scores by number of words, {dataset}, {encoder}]({name}.png)"]
        path = folder / "vat.md"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        summary = {"command": command, "cells": [result["cell"] for result in self.results.values()], "claims": claims}
        (folder / "vat.json").write_text(json.dumps(summary, indent=1, allow_nan=False), encoding="utf-8")
        return path
