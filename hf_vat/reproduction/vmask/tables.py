"""The tables and claims of the VMASK paper from finished cells, beside the paper's numbers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from hf_vat.data import PAPER_DATASETS
from hf_vat.report import Table
from hf_vat.reproduction.claims import compare, mean_sd, per_text
from hf_vat.reproduction.encoders import under_recipe
from hf_vat.reproduction.paper import Results

from .experiments import (
    AOPC_K,
    AOPC_TEXTS,
    EXPLAINED,
    KS,
    MASKS,
    METHODS,
    MIN_COUNTS,
    second_softmax_bound,
)
from .numbers import VMASK_ACCURACY, VMASK_AOPC, VMASK_CORRELATION, VMASK_SECONDS
from .systems import ENCODERS, SYSTEMS

TABLES = {
    3: "Test accuracy",
    4: "AOPC: probability lost without the five top words, each model judging its own explanations",
    6: "Most important words by explanations of single texts",
    8: "Validation accuracy",
    9: "Time of a training step, as a multiple of the base model's",
    11: "Correlation of global importance with frequency",
}
_METHOD_NAMES = {"lime": "LIME", "shapley": "SampleShapley", "random": "random words"}
_NOT_MEASURED = "–"
_CURVE_KS = (1, 2, 5, 10)  # of the claims about figure 1
_COST_LIMITS = {"CNN": 1.5, "LSTM": 1.3, "BERT": 1.1}  # what is asked of VMASK
_WEAK = 0.1  # |r| below it in the paper


_AOPC_SCORES = {f"prob_drop@{AOPC_K}, {_METHOD_NAMES[method]}": method for method in METHODS}


class VMaskResults(Results):
    """Results of [`VMaskCell`]. A score is "accuracy", "validation", which is accuracy too, "posthoc_self@K" of a system with a
    mask, or "prob_drop@5, LIME" or "prob_drop@5, SampleShapley"."""

    rows: ClassVar = {"VMASK": ("VMASK", "Random")}
    curves_of = ("posthoc_self",)  # figure 1
    ks = KS
    ranked = (*MASKS, "Random")

    def found(self, run: dict, row: str, score: str) -> list | float:
        if score in _AOPC_SCORES:
            return run["aopc"][_AOPC_SCORES[score]]
        if score == "accuracy":
            return run["correct"]
        return run["random"][score] if row == "Random" else run[score]

    def printed(self, dataset: str, encoder: str, row: str, score: str) -> float | None:
        """None for AOPC, as the paper's is on another scale."""
        numbers = VMASK_ACCURACY[{"accuracy": 3, "validation": 8}[score]] if score in ("accuracy", "validation") else {}
        return numbers.get((ENCODERS[encoder].paper, row), {}).get(dataset)

    def compared(self, numbers: Sequence[int]) -> dict[str, list[dict]]:
        return {"recipes": self.recipes(numbers), **super().compared(numbers)}

    # Tables

    def tables(self, numbers: Sequence[int]) -> list[Table]:
        """Also figures 1 and 2 in numbers."""
        made = {
            3: lambda: [self._accuracy_table(3, "accuracy", "")],
            4: lambda: [self._aopc_table(), self._printed_aopc_table()],
            6: lambda: [self._words_table()],
            8: lambda: [self._accuracy_table(8, "validation", "Of the epoch that is best on these very data.")],
            9: lambda: [self._cost_table()],
            11: lambda: [self._correlation_table()],
        }
        found = [table for number in numbers for table in made[number]()]
        return [*found, self._curves_table(), self._extremes_table()]

    def _accuracy_table(self, number: int, score: str, caption: str) -> Table:
        return self.across(_heading(number), self.there(SYSTEMS), partial(self.mean, score=score), caption)

    def _aopc_table(self) -> Table:
        names = _METHOD_NAMES | {"full": "probability before"}
        rows = {f"{name}, {system}": (system, key) for key, name in names.items() for system in self.there(EXPLAINED)}

        def cell(dataset: str, encoder: str, row: str) -> str:
            system, key = rows[row]
            runs = self.runs(dataset, encoder, system)
            return _means([run.get("full") if key == "full" else run["aopc"].get(key) for run in runs])

        samples = "; ".join(
            f"{encoder} {ENCODERS[encoder].lime_samples} and {ENCODERS[encoder].shapley_samples}"
            for encoder in dict.fromkeys(encoder for _, encoder in self.settings())
        )
        caption = (
            f"prob_drop@{AOPC_K} on {AOPC_TEXTS} random test texts, the same for all. Subsets of a text for LIME and orders of its words "
            f"for SampleShapley: {samples}. Random words: mean of three random rankings. Probability before: of the predicted "
            "class on the full texts, the most that can be lost; a model that is surer of itself has more to lose, so look at "
            "the distance from random words. The paper's numbers are presumably on another scale, see the next table."
        )
        return _with_dashes(self.across(_heading(4), list(rows), cell, caption, "explanations, system"))

    def _printed_aopc_table(self) -> Table:
        rows = []
        for method, name in _METHOD_NAMES.items():
            for system in self.there(EXPLAINED):
                printed, ours = [], []
                for dataset, encoder in self.settings():
                    number = VMASK_AOPC.get((ENCODERS[encoder].paper, system, method), {}).get(dataset)
                    printed.append("" if number is None else f"{number:.1f}")
                    runs = self.runs(dataset, encoder, system)
                    ours.append(_means([run.get("aopc_softmax", {}).get(method) for run in runs]))
                if method in METHODS:
                    rows.append([f"{name}, {system}", "paper, as printed", *printed])
                rows.append([f"{name}, {system}", "ours, second softmax", *ours])
        bounds = [
            f"{100 * second_softmax_bound(len(PAPER_DATASETS[dataset].label_names)):.1f}"
            for dataset, _ in self.settings()
        ]
        table = Table(
            "Table 4, the paper's numbers, and ours on the scale that they presumably have",
            ["explanations, system", "whose", *self.headings()],
            [*rows, ["most that can be lost", "after a second softmax", *bounds]],
            "The scale is inferred from the printed numbers and the published code, and not proven: that code's LSTM returns "
            "probabilities, and with a second softmax over them the probability of a class cannot fall by more than "
            "(e - 1) / (e + C - 1) with C classes. The paper's AOPC of CNN and LSTM keep that bound on all its data sets. Those of "
            "BERT do not, so they are on some other scale, which ours in this table are not comparable with.",
        )
        return _with_dashes(table)

    def _words_table(self) -> Table:
        rows = [
            [
                f"{encoder}, {dataset}",
                *(", ".join(self.runs(dataset, encoder, one)[0]["words"]) for one in self.there(EXPLAINED)),
            ]
            for dataset, encoder in self.settings()
        ]
        return Table(
            _heading(6),
            ["setting", *self.there(EXPLAINED)],
            rows,
            "Of the first seed: the sum of the magnitudes of a word's LIME scores over the texts of table 4. The paper shows IMDB.",
        )

    def _cost_table(self) -> Table:
        def cell(dataset: str, encoder: str, system: str) -> str:
            [run] = self.runs(dataset, encoder, "cost")
            ratio = run["step_seconds"][system] / run["step_seconds"]["base"]
            ours, base = (VMASK_SECONDS[ENCODERS[encoder].paper, one].get(dataset) for one in (system, "base"))
            return f"{ratio:.2f}" + ("" if ours is None or base is None else f" [{ours / base:.2f}]")

        asked = ", ".join(f"{limit} ({name})" for name, limit in _COST_LIMITS.items())
        table = self.across(
            _heading(9),
            SYSTEMS,
            cell,
            f"Forward, backward and update on the same batches, in turn; embeddings are frozen in all. We ask of VMASK at most {asked}.",
        )
        return replace(table, columns=["system", *(f"{encoder}, {dataset}" for dataset, encoder in self.settings())])

    def _correlation_table(self) -> Table:
        def cells(dataset: str, encoder: str, system: str) -> list[str]:
            found = [run["correlation"] for run in self.runs(dataset, encoder, system)]
            printed = VMASK_CORRELATION[ENCODERS[encoder].paper].get(dataset) if system == "VMASK" else None
            raw = [one["1"]["pearson"] for one in found]
            weak = sum(value is not None and abs(value) < _WEAK for value in raw)
            means = [
                _mean_or_none(
                    [one[str(least)][name] for one in found], printed if (least, name) == (1, "pearson") else None
                )
                for least in MIN_COUNTS
                for name in ("pearson", "pearson_log", "spearman")
            ]
            return [*means, f"{weak} of {len(raw)}"]

        names = ("r", "r of log counts", "Spearman")
        columns = [f"{name}{'' if least == 1 else f', count ≥ {least}'}" for least in MIN_COUNTS for name in names]
        return self.down(
            _heading(11),
            ["system", *columns, f"seeds with |r| < {_WEAK}"],
            MASKS,
            cells,
            "Over the words of the training texts. The paper has |r| < 0.1 everywhere, and does not say whether of counts or of their "
            "logarithms.",
        )

    def _curves_table(self) -> Table:
        return self.down(
            "Figure 1 in numbers: same prediction on the top words alone",
            ["ranking", *(f"k = {k}" for k in KS)],
            self.ranked,
            lambda dataset, encoder, row: [self.mean(dataset, encoder, row, f"posthoc_self@{k}") for k in KS],
            "posthoc_self@k of words ranked by the mask, percent of test texts. Random rankings are those of VMASK's models.",
        )

    def _extremes_table(self) -> Table:
        return self.down(
            "Figure 2 in numbers: mean mask of the ten most frequent and of the ten most important words",
            ["system", "most frequent", "most important"],
            MASKS,
            lambda *place: [
                mean_sd(np.array([run[name] for run in self.runs(*place)]), scale=1)
                for name in ("frequent", "important")
            ],
            "The paper (LSTM, Yelp): about 0.5, and above 0.8.",
        )

    # Claims

    def claims(self, numbers: Sequence[int]) -> list[dict]:
        """Also those in figure 1."""
        compared = [(worse, "accuracy") for worse in self.there(SYSTEMS[:-1]) if 3 in numbers]
        compared += [("base", score) for score in _AOPC_SCORES if 4 in numbers]
        compared += [(worse, f"posthoc_self@{k}") for k in _CURVE_KS for worse in self.there(("IBA", "Random"))]
        return [self.claim(*setting, "VMASK", *one) for setting in self.settings() for one in compared]

    def recipes(self, numbers: Sequence[int]) -> list[dict]:
        """What the published code's recipe changes, where both recipes were run: for
        [`recipes_tables`](hf_vat.reproduction.claims.recipes_tables)."""
        found = []
        for dataset, encoder in self.settings():
            code = under_recipe(encoder, "code")
            if (dataset, code) not in self.settings():
                continue
            for score in (*(["accuracy"] if 3 in numbers else []), *(_AOPC_SCORES if 4 in numbers else ())):
                both = [self.values(dataset, name, row, score) for name in (encoder, code) for row in ("base", "VMASK")]
                seeds = min(map(len, both))
                base, vmask, code_base, code_vmask = (values[:seeds] for values in both)
                compared = {
                    "VMASK - base, recipe paper": (vmask, base),
                    "VMASK - base, recipe code": (code_vmask, code_base),
                    "the second minus the first": (code_vmask - code_base, vmask - base),
                    "base, code - paper": (code_base, base),
                    "VMASK, code - paper": (code_vmask, vmask),
                }
                for name, pair in compared.items():
                    found.append(
                        {"dataset": dataset, "encoder": encoder, "score": score, "what": name} | compare(*pair)
                    )
        return found


def _heading(number: int) -> str:
    return f"Table {number}. {TABLES[number]}"


def _means(values: list) -> str:
    """Mean ± sd over seeds of the mean over texts; a dash where cells were finished before it was measured."""
    return _NOT_MEASURED if None in values else mean_sd(per_text(values).mean(1))


def _with_dashes(table: Table) -> Table:
    """The table with a sentence about its dashes, if there are any."""
    if not any(_NOT_MEASURED in row for row in table.rows):
        return table
    told = f" {_NOT_MEASURED}: not measured, as these cells were run before it was asked for."
    return replace(table, caption=table.caption + told)


def _mean_or_none(values: Sequence[float | None], printed: float | None) -> str:
    """Mean ± sd over the seeds whose mask is not the same everywhere, and how many of them these are, if not all."""
    known = np.array([value for value in values if value is not None])
    if not len(known):
        return "constant"
    return mean_sd(known, printed, scale=1) + ("" if len(known) == len(values) else f" ({len(known)} seeds)")
