"""The tables and curves of the VAT paper from finished cells, beside the paper's numbers, with claims and their tests."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..faithfulness.statistics import bootstrap_interval, mcnemar, paired_bootstrap
from ..report import Table
from .cells import KS, WORD_KS, Cell
from .paper import VAT_ITERATIONS, VAT_TABLES, VAT_WORDS
from .systems import ENCODERS, SYSTEMS

TABLES = {
    2: ("Test accuracy", "accuracy"),
    3: ("AOPC: accuracy lost without the five top words", "accuracy_drop@5"),
    4: ("Post-hoc accuracy: on the five top words alone", "posthoc_gold@5"),
    5: ("Sentiment words among the top words", "f1"),
    6: ("Test accuracy by iteration", "accuracy"),
}
RANKINGS = ("Random", *SYSTEMS[1:])
_CURVES = ("accuracy_drop", "posthoc_gold")  # figures 4 and 5
_WORD_SCORES = tuple(
    f"{polarity} {score}@{k}"
    for polarity in ("positive", "negative")
    for k in WORD_KS
    for score in ("precision", "recall", "f1")
)


@dataclass
class VATResults:
    """Results of cells, as [`run_cells`](hf_vat.reproduction.run_cells) returns them."""

    results: dict[Cell, dict]

    def settings(self) -> list[tuple[str, str]]:
        """Data sets and encoders, in the order given."""
        return list(dict.fromkeys((cell.dataset, cell.encoder) for cell in self.results))

    def seeds(self, dataset: str, encoder: str) -> list[int]:
        return sorted({cell.seed for cell in self.results if (cell.dataset, cell.encoder) == (dataset, encoder)})

    def of_row(self, dataset: str, encoder: str, row: str) -> list[dict]:
        """The results of a system, or of "Random", by seed."""
        system = "base" if row == "Random" else row
        return [self.results[Cell(dataset, encoder, system, seed)] for seed in self.seeds(dataset, encoder)]

    def values(self, dataset: str, encoder: str, row: str, score: str, judge: str = "base") -> np.ndarray:
        """Values of a row per seed and text, shape [seeds, texts].

        Args:
            row: a system, or "Random".
            score: "accuracy", or a score at K such as "accuracy_drop@5".
            judge: "base", the paper's protocol; "self"; or "words", the labelled words.
        """
        if score == "accuracy":
            return np.array([result["correct"] for result in self.of_row(dataset, encoder, row)], dtype=float)
        place = "random" if row == "Random" and judge == "base" else judge
        return np.array([result[place][score] for result in self.of_row(dataset, encoder, row)])

    # Tables

    def tables(self, numbers: Sequence[int]) -> list[Table]:
        """The paper's tables: ours as mean ± sd over seeds, in percent, and the paper's number in brackets."""
        found = []
        for number in numbers:
            if number == 5:
                found += [self._words_table(*setting) for setting in self.settings() if self._has_words(*setting)]
            elif number == 6:
                found += [self._iterations_table(), self._separation_table()]
            else:
                found += [
                    self._scores_table(number, judge) for judge in (("base", "self") if number > 2 else ("base",))
                ]
        return found

    def _scores_table(self, number: int, judge: str) -> Table:
        title, score = TABLES[number]
        rows = SYSTEMS if number == 2 else RANKINGS if judge == "base" else RANKINGS[1:]
        heading = f"Table {number}. {title}"
        if number > 2:
            heading += ", judged by the base model" if judge == "base" else ", each model judging its own ranking"

        def cell(dataset: str, encoder: str, row: str) -> str:
            paper = VAT_TABLES[number].get((ENCODERS[encoder].paper, row), {}).get(dataset)
            return _mean_sd(
                self.values(dataset, encoder, row, score, judge).mean(1), paper if judge == "base" else None
            )

        return self._by_setting(heading, rows, cell)

    def _by_setting(self, heading: str, rows: Sequence[str], cell: Callable[[str, str, str], str]) -> Table:
        settings = self.settings()
        columns = [f"{encoder}, {dataset} ({len(self.seeds(dataset, encoder))})" for dataset, encoder in settings]
        return Table(
            heading, ["system", *columns], [[row, *(cell(*setting, row) for setting in settings)] for row in rows]
        )

    def _has_words(self, dataset: str, encoder: str) -> bool:
        return all(result["words"] for result in self.of_row(dataset, encoder, "base"))

    def _words_table(self, dataset: str, encoder: str) -> Table:
        texts = [self.values(dataset, encoder, "VAT", f"{polarity} f1@1", "words").shape[1] for polarity in _POLARITIES]
        rows = []
        for row in RANKINGS:
            paper = VAT_WORDS.get((ENCODERS[encoder].paper, row), {})
            found = [self.values(dataset, encoder, row, score, "words").mean(1) for score in _WORD_SCORES]
            rows.append(
                [row, *(_mean_sd(means, paper.get(score)) for means, score in zip(found, _WORD_SCORES, strict=True))]
            )
        source = (
            ""
            if dataset == "twitter"
            else " The paper's numbers are of Twitter, SemEval-2013: compare the order of rows."
        )
        short = {"positive": "pos", "negative": "neg", "precision": "P", "recall": "R", "f1": "F1"}
        columns = [re.sub("|".join(short), lambda found: short[found[0]], score) for score in _WORD_SCORES]
        return Table(
            f"Table 5. {TABLES[5][0]}: {encoder}, {dataset} ({len(self.seeds(dataset, encoder))})",
            ["ranking", *columns],
            rows,
            f"{texts[0]} positive and {texts[1]} negative texts that have a word of their polarity; means over texts. Random "
            f"is what a random ranking is expected to give.{source}",
        )

    def _iterations_table(self) -> Table:
        rows, most = [], 1 + max(record["iteration"] for record in self._all_iterations())
        for dataset, encoder in self.settings():
            paper = VAT_ITERATIONS.get((ENCODERS[encoder].paper, dataset), ())
            for system in ("ATT (matched)", "VAT"):
                by_iteration = self._by_iteration(dataset, encoder, system, "test")
                cells = []
                for number in range(most):
                    printed = paper[number] if system == "VAT" and number < len(paper) else None
                    cells.append(_mean_sd(by_iteration[number], printed) if number in by_iteration else "")
                selected = [str(result["selected"]) for result in self.of_row(dataset, encoder, system)]
                rows.append([f"{encoder}, {dataset}", system, *cells, ", ".join(selected)])
        return Table(
            f"Table 6. {TABLES[6][0]}",
            ["setting", "system", *map(str, range(most)), "selected, by seed"],
            rows,
            "Iteration 0 is the start. ATT (matched) has had as many updates of the encoder. The iteration selected is the best "
            "on validation data.",
        )

    def _separation_table(self) -> Table:
        rows = []
        for dataset, encoder in self.settings():
            for system in SYSTEMS[1:]:
                results = self.of_row(dataset, encoder, system)
                chosen = [
                    next(record for record in result["iterations"] if record["iteration"] == result["selected"])
                    for result in results
                ]
                cells = [
                    _mean_sd(np.array([record["silhouette"] for record in chosen]), scale=1),
                    _mean_sd(np.array([record["knn_accuracy"] for record in chosen])),
                ]
                by_iteration = self._by_iteration(dataset, encoder, system, "silhouette")
                cells.append(", ".join(f"{number}: {values.mean():.2f}" for number, values in by_iteration.items()))
                rows.append([f"{encoder}, {dataset}", system, *cells])
        return Table(
            "Figures 3 and 6 in numbers: how well text vectors separate the classes",
            ["setting", "system", "silhouette", "kNN accuracy", "silhouette by iteration"],
            rows,
            "Of the text vectors themselves, not of their t-SNE picture: up to 1,000 random test texts; the silhouette is from -1 "
            "to 1, kNN accuracy in percent.",
        )

    def _all_iterations(self) -> list[dict]:
        return [record for result in self.results.values() for record in result["iterations"]]

    def _by_iteration(self, dataset: str, encoder: str, system: str, name: str) -> dict[int, np.ndarray]:
        """Values of a record by iteration, each of shape [seeds]."""
        runs = [result["iterations"] for result in self.of_row(dataset, encoder, system)]
        return {
            records[0]["iteration"]: np.array([record[name] for record in records])
            for records in zip(*runs, strict=True)
        }

    # Claims and curves

    def claims(self, numbers: Sequence[int]) -> list[dict]:
        """The paper's orderings in some of its tables, with the difference in points.

        Differences and intervals are over texts, whose values are means over seeds; p is the bootstrap's, for accuracies with
        one seed McNemar's. A claim "held" if p < 0.05 and the difference is above 0 in every seed, "failed" if p < 0.05 and it
        is below 0 in every seed, else it is "open".
        """
        found = []
        for dataset, encoder in self.settings():
            compared = []
            for number in numbers:
                score = TABLES[number][1]
                if number == 2:
                    compared += [("accuracy", "base", worse) for worse in ("ATT", "ATT (matched)", "base")]
                elif number in (3, 4):
                    compared += [(score, "base", worse) for worse in RANKINGS]
                    compared += [(score, "self", worse) for worse in RANKINGS[1:]]
                elif number == 5 and self._has_words(dataset, encoder):
                    names = [name for name in _WORD_SCORES if " f1@" in name]
                    compared += [(name, "words", worse) for name in names for worse in RANKINGS]
            for score, judge, worse in compared:
                if worse != "VAT":
                    found.append(self._claim(dataset, encoder, score, judge, "VAT", worse))
                if worse == "Random":
                    found.append(self._claim(dataset, encoder, score, judge, "ATT", worse))
        return found

    def _claim(self, dataset: str, encoder: str, score: str, judge: str, better: str, worse: str) -> dict:
        a, b = (self.values(dataset, encoder, row, score, judge) for row in (better, worse))
        test = paired_bootstrap(a.mean(0), b.mean(0))
        p = test.p_value
        if score == "accuracy" and len(a) == 1:
            p = mcnemar(a[0] == 1, b[0] == 1).p_value
        differences = (a - b).mean(1)
        won, lost = int((differences > 0).sum()), int((differences < 0).sum())
        verdict = "open" if p >= 0.05 else "held" if won == len(a) else "failed" if lost == len(a) else "open"
        return {
            **{"dataset": dataset, "encoder": encoder, "score": score, "judge": judge, "claim": f"{better} > {worse}"},
            **{"difference": 100 * test.difference, "low": 100 * test.low, "high": 100 * test.high, "p_value": p},
            **{"seeds_won": won, "seeds": len(a), "verdict": verdict},
        }

    def curves(self, dataset: str, encoder: str) -> dict:
        """Figures 4 and 5: scores by number of words, for `top_k_curves`.

        Bands are ± one standard deviation over seeds; with one seed, bootstrap intervals over texts.
        """
        return {
            score: {
                row.lower() if row == "Random" else row: [
                    (float(k), *_band(self.values(dataset, encoder, row, f"{score}@{k}"))) for k in KS
                ]
                for row in (*RANKINGS[1:], "Random")
            }
            for score in _CURVES
        }


_POLARITIES = ("positive", "negative")


def claims_table(claims: Sequence[dict]) -> Table:
    """The claims with their tests, one in each row."""
    judges = {"base": "", "self": ", own", "words": ""}
    return Table(
        "Claims",
        ["setting", "score", "claim", "difference", "p", "seeds won", "verdict"],
        [
            [
                f"{claim['encoder']}, {claim['dataset']}",
                claim["score"] + judges[claim["judge"]],
                claim["claim"],
                f"{claim['difference']:+.1f} [{claim['low']:.1f}, {claim['high']:.1f}]",
                f"{claim['p_value']:.3f}",
                f"{claim['seeds_won']} of {claim['seeds']}",
                claim["verdict"],
            ]
            for claim in claims
        ],
        "Differences in points with bootstrap intervals over texts, whose values are means over seeds. Held: p < 0.05 and won "
        'in every seed; failed: p < 0.05 and lost in every seed; else open. p-values are not adjusted for their number. "own": '
        "each model judges its own ranking.",
    )


def _mean_sd(values: np.ndarray, paper: float | None = None, scale: int = 100) -> str:
    digits = 1 if scale == 100 else 2
    sd = f" ± {scale * values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    printed = "" if paper is None else f" [{paper:.1f}]"
    return f"{scale * values.mean():.{digits}f}{sd}{printed}"


def _band(values: np.ndarray) -> tuple[float, float, float]:
    means = values.mean(1)
    if len(means) == 1:
        return bootstrap_interval(values[0])
    return means.mean(), means.mean() - means.std(ddof=1), means.mean() + means.std(ddof=1)
