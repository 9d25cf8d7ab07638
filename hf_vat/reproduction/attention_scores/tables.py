"""The tables and claims of Sun and Lu from finished cells, beside the paper's numbers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hf_vat.report import Table
from hf_vat.reproduction.claims import compare, mean_sd, per_text
from hf_vat.reproduction.paper import Results

from .data import SYNTHETIC
from .numbers import ACCURACY, DATA
from .systems import ENCODERS, LAMBDAS, PENALIZED, ROWS, SYSTEMS

TABLES = {2: "Test accuracy"}
_NOTHING = "–"
_SMALLEST, _USUAL, _LARGER, _LARGEST = (SYSTEMS[name].row for name in ("0.001", "10", "100", "10000"))
_FROM_10 = [SYSTEMS[name].row for name in LAMBDAS[2:]]
_UNPENALIZED = [SYSTEMS[name].row for name in LAMBDAS]
SHOWN = (_USUAL, _LARGER)  # of the paper's figures
# What is claimed of words, in points of a probability: score -> its place in a result.
_AUCS = {
    "attention of polar over neutral words": ("attention_auc",),
    "polarity of a class's over other words": ("polarity_auc",),
    "attention of positive over neutral words": ("auc", "positive, neutral"),
    "attention of positive over negative words": ("auc", "positive, negative"),
}
_POLAR, _POLARITY, _POSITIVE, _SIGNED = _AUCS


class AttentionScoresResults(Results):
    """Results of [`AttentionScoresCell`]. A score is "accuracy", or the probability that a word of a type has a higher score than
    one of another, such as "attention of polar over neutral words": one number of each seed."""

    rows = ROWS
    curves_of = ()
    ks = ()
    ranked = ()

    def found(self, run: dict, row: str, score: str) -> list | float:
        if score == "accuracy":
            return run["correct"]
        for name in _AUCS[score]:
            run = run.get(name)  # type: ignore[assignment]  # the last is a number
        return np.nan if run is None else run  # type: ignore[return-value]

    def printed(self, dataset: str, encoder: str, row: str, score: str) -> float | None:
        if score != "accuracy":
            return None
        return ACCURACY.get((dataset, ENCODERS[encoder].paper, row.removeprefix("λ = ")))

    def rows_of(self, dataset: str, encoder: str, rows: Sequence[str]) -> list[str]:
        """Those of the rows that the cells of a setting give."""
        return [row for row in rows if self.cells(dataset, encoder, row)]

    def _datasets(self) -> dict[str, list[str]]:
        """The models by data set."""
        found: dict[str, list[str]] = {}
        for dataset, encoder in self.settings():
            found.setdefault(dataset, []).append(encoder)
        return found

    # Tables

    def data_table(self) -> Table:
        """Table 1, with the paper's mean lengths and sizes of vocabularies."""
        table = super().data_table()
        by_dataset = {cell.dataset: result for cell, result in self.results.items()}
        rows = []
        for row in table.rows:
            result, (length, vocabulary) = by_dataset[row[0]], DATA.get(row[0], (None, None))
            of_words = [
                f"{result['length']:.0f}" + ("" if length is None else f" [{length}]"),
                f"{result['vocabulary']:,}" + ("" if vocabulary is None else f" [{vocabulary:,}]"),
            ]
            rows.append([row[0], *of_words, *row[1:]])
        columns = ["data set", "mean words", "vocabulary", *table.columns[1:]]
        caption = (
            "Words are those of the training texts; the paper's vocabulary has those of validation and test data too. Texts are cut "
            "to 256 words."
        )
        return replace(table, heading="Table 1. Data", columns=columns, rows=rows, caption=caption)

    def tables(self, numbers: Sequence[int]) -> list[Table]:
        """Also the figures in numbers."""
        datasets = self._datasets()
        accuracy = [self._accuracy_table(*one) for one in datasets.items()] if 2 in numbers else []
        found = [
            *accuracy,
            self._separation_table(),
            self._types_table(),
            self._penalty_table(),
            self._ratio_table(),
            self._cost_table(),
        ]
        return [table for table in found if table.rows]

    def _accuracy_table(self, dataset: str, encoders: list[str]) -> Table:
        lines = []
        for row in _UNPENALIZED:
            there = [encoder for encoder in encoders if self.cells(dataset, encoder, row)]
            cells = [self.mean(dataset, one, row, "accuracy") if one in there else "" for one in encoders]
            lines += [[row, *cells]] if there else []
        columns = ["", *(self.heading(dataset, encoder) for encoder in encoders)]
        return Table(f"Table 2. {TABLES[2]}: {dataset}", columns, lines)

    def _separation_table(self) -> Table:
        def cells(dataset: str, encoder: str, row: str) -> list[str]:
            aucs = [self._known(dataset, encoder, row, score) for score in (_POLAR, _POLARITY, _POSITIVE, _SIGNED)]
            agree = [run["sign_agreement"] for run in self.runs(dataset, encoder, row)]
            return [*aucs, _mean_or_dash(agree)]

        short = ("attention, polar / neutral", "polarity, classes", "attention, pos / neutral", "attention, pos / neg")
        return self._each(
            "Figures 2 to 4 in numbers: attention and polarity scores of words by type",
            ["", *short, "polarity's sign right"],
            lambda dataset, encoder: [_USUAL] if dataset in SYNTHETIC else list(SHOWN),
            cells,
            "Probability in percent that a word of the first type has a higher score than one of the second, 50 for scores that say "
            "nothing; of the polarity score that a word of a class has a higher one than words of the other classes. Types are by "
            "the paper's rule on counts in the training texts (γ = ±1 included); of three classes a word is polar for one that "
            "has three quarters of its occurrences. Sign right: polar words whose polarity score is for their class.",
        )

    def _types_table(self) -> Table:
        lines = []
        for dataset, encoder in self.settings():
            for row in self.rows_of(dataset, encoder, [_USUAL] if dataset in SYNTHETIC else list(SHOWN)):
                runs = self.runs(dataset, encoder, row)
                for name in runs[0]["types"]:
                    of_type = [run["types"][name] for run in runs if name in run["types"]]
                    means = [
                        _mean_or_dash([one[key] for one in of_type], scale=1)
                        for key in ("attention_score", "attention_score_sd", "polarity_score", "polarity_score_sd")
                    ]
                    weight = _mean_or_dash([one["attention"] for one in of_type])
                    setting = f"{encoder}, {dataset}"
                    lines.append(
                        [setting, row, name, str(round(np.mean([one["words"] for one in of_type]))), *means, weight]
                    )
        columns = ["setting", "", "type", "words", "attention score", "its sd", "polarity score", "its sd", "weight"]
        return Table(
            "Scores by type of word (Figure 5: weight)",
            columns,
            lines,
            "Means over words and their standard deviation, each as mean ± sd over seeds. Of three classes the polarity score is the "
            "logit of the word's class less the mean of the others'. Weight: mean attention of the test texts' words, in percent.",
        )

    def _penalty_table(self) -> Table:
        rows = [SYSTEMS[name].row for name in (*LAMBDAS, *PENALIZED)]

        def cells(dataset: str, encoder: str, row: str) -> list[str]:
            runs = self.runs(dataset, encoder, row)
            gaps = [
                abs(run["types"]["positive"]["attention_score"] - run["types"]["negative"]["attention_score"])
                for run in runs
            ]
            return [
                mean_sd(np.array([abs(run["product"]) for run in runs]), scale=1),
                *(mean_sd(np.array([run["norms"][name] for run in runs]), scale=1) for name in "VW"),
                mean_sd(np.array(gaps), scale=1),
                self.mean(dataset, encoder, row, "accuracy"),
            ]

        return self._each(
            "The term on VᵀW: attention scores of positive and negative words",
            ["", "|VᵀW|", "‖V‖²", "‖W‖²", "gap of means", "accuracy"],
            lambda dataset, encoder: rows if self.rows_of(dataset, encoder, rows[len(LAMBDAS) :]) else [],
            cells,
            "η is the weight of |VᵀW| in the loss. Gap: between the mean attention scores of positive and of negative words. The paper "
            "says of it that it nearly vanishes.",
        )

    def _ratio_table(self) -> Table:
        lines = []
        for name, asked in SYNTHETIC.items():
            for encoder in self._datasets().get(name, []):
                runs = self.runs(name, encoder, _USUAL)
                values = np.array([run["product"] for run in runs])
                share = asked.get("positive_share", 0.5)
                ratio = f"{share / min(share, 1 - share):.0f} : {(1 - share) / min(share, 1 - share):.0f}"
                each = ", ".join(f"{value:+.1f}" for value in values)
                lines.append(
                    [f"{encoder}, {name}", ratio, mean_sd(values, scale=1), mean_sd(np.abs(values), scale=1), each]
                )
        return Table(
            "VᵀW by the ratio of classes, synthetic texts",
            ["setting", "positive : negative", "VᵀW", "|VᵀW|", "by seed"],
            lines,
            "After training with λ = 10. The paper: near 0 for balanced classes, and the larger the further the ratio is from 1.",
        )

    def _cost_table(self) -> Table:
        def cells(dataset: str, encoder: str) -> list[str]:
            runs = [run for cell, run in self.results.items() if (cell.dataset, cell.encoder) == (dataset, encoder)]
            return [
                f"{np.mean([run['epochs'] for run in runs]):.0f}",
                f"{np.mean([run['seconds_per_epoch'] for run in runs]):.1f}",
            ]

        lines = [[f"{encoder}, {dataset}", *cells(dataset, encoder)] for dataset, encoder in self.settings()]
        return Table("Training", ["setting", "epochs", "seconds per epoch"], lines, "Means over λ and seeds.")

    def _each(self, heading: str, columns: Sequence[str], rows, cells, caption: str) -> Table:
        """A table with lines for those rows of each setting that `rows` gives and cells are there for."""
        lines = [
            [f"{encoder}, {dataset}", row, *cells(dataset, encoder, row)]
            for dataset, encoder in self.settings()
            for row in self.rows_of(dataset, encoder, rows(dataset, encoder))
        ]
        return Table(heading, ["setting", *columns], lines, caption)

    def _known(self, dataset: str, encoder: str, row: str, score: str) -> str:
        values = self.values(dataset, encoder, row, score)[:, 0]
        return _NOTHING if np.isnan(values).any() else mean_sd(values)

    # Claims

    def claims(self, numbers: Sequence[int]) -> list[dict]:
        """The orderings of table 2, and those of the figures as probabilities; see `beyond`."""
        found = []
        for dataset, encoder in self.settings():
            if 2 in numbers and dataset not in SYNTHETIC:
                found += self._accuracy_claims(dataset, encoder)
        for dataset, encoders in self._datasets().items():
            both = {"dp", "dp-l"} <= set(encoders)
            found += [self._spread_claim(dataset)] if 2 in numbers and both and dataset not in SYNTHETIC else []
            if "dp" in encoders:
                found += self._word_claims(dataset)
        return found

    def _accuracy_claims(self, dataset: str, encoder: str) -> list[dict]:
        there = self.rows_of(dataset, encoder, _UNPENALIZED)
        means = {row: self.values(dataset, encoder, row, "accuracy").mean() for row in there}
        best, worst = max(there, key=means.__getitem__), min(there, key=means.__getitem__)
        beyond = partial(self.beyond, dataset, encoder)
        if encoder == "dp-l":
            return [beyond(worst, best, -5, "lowest > highest - 5 points")]
        found = []
        if _SMALLEST in there:
            for row in (row for row in _FROM_10 if row in there):
                found.append(self.claim(dataset, encoder, row, _SMALLEST, "accuracy"))
                if encoder == "dp":
                    found.append(beyond(row, _SMALLEST, 10, f"{row} > {_SMALLEST} + 10 points"))
        if _LARGEST in there:
            found.append(beyond(_LARGEST, best, -3, f"{_LARGEST} > highest - 3 points"))
        printed = [value for (where, model, _), value in ACCURACY.items() if (where, model) == (dataset, "DP")]
        if encoder == "dp" and printed:
            claim = {"dataset": dataset, "encoder": encoder, "score": "accuracy", "group": "accuracy"}
            claim["claim"] = "highest > the paper's highest - 2 points"
            ours = self.values(dataset, encoder, best, "accuracy")
            level = np.full_like(ours, max(printed) / 100 - 0.02)
            found.append(self.beside_paper(claim | {"rows": [best, best], "margin": -2} | compare(ours, level)))
        return found

    def beyond(self, dataset: str, encoder: str, better: str, worse: str, margin: float, told: str) -> dict:
        """Whether the accuracy of a row is above that of another by more than a margin, in points."""
        one, other = (self.values(dataset, encoder, row, "accuracy") for row in (better, worse))
        claim = {"dataset": dataset, "encoder": encoder, "score": "accuracy", "claim": told, "group": "accuracy"}
        about = {"rows": [better, worse], "margin": margin}
        return self.beside_paper(claim | about | compare(one - margin / 100, other))

    def _spread_claim(self, dataset: str) -> dict:
        spreads = []
        for encoder in ("dp", "dp-l"):
            values = [
                self.values(dataset, encoder, row, "accuracy")
                for row in _UNPENALIZED
                if self.cells(dataset, encoder, row)
            ]
            means = [one.mean() for one in values]
            spreads.append(values[int(np.argmax(means))] - values[int(np.argmin(means))])
        claim = {"dataset": dataset, "encoder": "dp", "score": "accuracy, highest - lowest λ", "claim": "dp > dp-l"}
        return self.beside_paper(claim | {"group": claim["score"]} | compare(*spreads))

    def _word_claims(self, dataset: str) -> list[dict]:
        found = []
        for row, score, level, above in (
            (_USUAL, _POLAR, 0.5, True),
            (_USUAL, _POLARITY, 0.95, True),
            *([(_USUAL, _SIGNED, 0.5, False), (_LARGER, _POSITIVE, 0.5, False)] if dataset == "sst2" else []),
        ):
            values = self._by_seed(dataset, row, score)
            if values is not None:
                pair = (values, np.full_like(values, level))
                told = f"{row}: {score} {'>' if above else '<'} {100 * level:g} %"
                found.append(self._of_words(dataset, told, *(pair if above else pair[::-1])))
        runs = self.runs(dataset, "dp", _USUAL)
        if dataset == "sst2" and len(runs) > 1:  # figure 5
            weights = [
                np.array([[run["types"][name]["attention"]] for run in runs]) for name in ("negative", "positive")
            ]
            found.append(self._of_words(dataset, f"{_USUAL}: weight of negative > of positive words", *weights))
        for plain, penalized in ((SYSTEMS[name.split("-")[0]].row, SYSTEMS[name].row) for name in PENALIZED):
            gaps = [self._by_seed(dataset, row, _SIGNED) for row in (plain, penalized)]
            if all(one is not None for one in gaps):
                one, other = (np.abs(values - 0.5) for values in gaps if values is not None)
                found.append(self._of_words(dataset, f"distance from 50 %, {plain} > {penalized}", one, other))
        return found

    def _by_seed(self, dataset: str, row: str, score: str) -> np.ndarray | None:
        """Values of DP, shape [seeds, 1]; None for a single seed, of which words say nothing, or where there are none."""
        if len(self.cells(dataset, "dp", row)) < 2:
            return None
        values = self.values(dataset, "dp", row, score)
        return None if np.isnan(values).any() else values

    def _of_words(self, dataset: str, told: str, higher: np.ndarray, lower: np.ndarray) -> dict:
        claim = {"dataset": dataset, "encoder": "dp", "score": "words by type", "group": "words by type", "claim": told}
        twice = (np.repeat(values, 2, 1) for values in (higher, lower))  # the test wants two texts at least
        return self.beside_paper(claim | compare(*twice))

    def beside_paper(self, claim: dict) -> dict:
        dataset, paper = claim["dataset"], None
        if claim["group"] == "words by type":
            return claim | {"paper": None}
        if claim["claim"] == "dp > dp-l":
            by_model = [
                [value for (where, one, _), value in ACCURACY.items() if (where, one) == (dataset, model)]
                for model in ("DP", "DP-L")
            ]
            if all(by_model):
                steep, flat = (max(printed) - min(printed) for printed in by_model)
                paper = steep - flat
        elif "margin" in claim:
            one, other = (self.printed(dataset, claim["encoder"], row, "accuracy") for row in claim["rows"])
            paper = None if one is None or other is None else one - other - claim["margin"]
        else:
            return super().beside_paper(claim)
        return claim | {"paper": paper}


def _mean_or_dash(values: Sequence[float | None], scale: int = 100) -> str:
    """Mean ± sd over seeds; a dash where a seed has none."""
    known = [value for value in values if value is not None]
    return mean_sd(per_text(known)[:, 0], scale=scale) if len(known) == len(values) else _NOTHING
