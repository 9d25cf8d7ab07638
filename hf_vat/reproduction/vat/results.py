"""The tables and curves of the VAT paper from finished cells, beside the paper's numbers, with claims and their tests."""

import re
from collections.abc import Sequence

import numpy as np

from hf_vat.report import Table
from hf_vat.reproduction.claims import band, compare, mean_sd
from hf_vat.reproduction.results import Results

from .cells import KS, WORD_KS, VATCell
from .paper import VAT_ITERATIONS, VAT_TABLES, VAT_WORDS
from .systems import ENCODERS, KINDS, ROWS, SYSTEMS

TABLES = {
    2: ("Test accuracy", "accuracy"),
    3: ("AOPC: accuracy lost without the five top words", "accuracy_drop@5"),
    4: ("Post-hoc accuracy: on the five top words alone", "posthoc_gold@5"),
    5: ("Sentiment words among the top words", "f1"),
    6: ("Test accuracy by iteration", "accuracy"),
}
RANKINGS = ("Random", *SYSTEMS[1:])
_POLARITIES = ("positive", "negative")
_PAIRS = (("VAT", "ATT"), ("VAT", "ATT (matched)"), ("VAT", "Random"), ("ATT", "Random"))
_CURVES = ("accuracy_drop", "posthoc_gold")  # figures 4 and 5
_WORD_SCORES = tuple(
    f"{polarity} {score}@{k}" for polarity in _POLARITIES for k in WORD_KS for score in ("precision", "recall", "f1")
)


class VATResults(Results):
    """Results of [`VATCell`]."""

    @staticmethod
    def cells(dataset: str, encoder: str, seeds: int, numbers: Sequence[int]) -> list[VATCell]:
        """The cells that some of the tables need: all, whichever these are."""
        return [VATCell(dataset, encoder, kind, seed) for seed in range(seeds) for kind in KINDS]

    def seeds(self, dataset: str, encoder: str) -> list[int]:
        return sorted({cell.seed for cell in self.results if (cell.dataset, cell.encoder) == (dataset, encoder)})

    def runs(self, dataset: str, encoder: str, row: str) -> list[dict]:
        """The results of the training runs that give a row, by seed."""
        [kind] = [kind for kind, rows in ROWS.items() if row in rows]
        return [self.results[VATCell(dataset, encoder, kind, seed)] for seed in self.seeds(dataset, encoder)]

    def values(self, dataset: str, encoder: str, row: str, score: str, judge: str = "base") -> np.ndarray:
        """Values of a row per seed and text, shape [seeds, texts].

        Args:
            row: a system, or "Random".
            score: "accuracy", or a score at K such as "accuracy_drop@5".
            judge: "base", the paper's protocol; "self"; or "words", the labelled words.
        """
        found = [run["rows"][row] for run in self.runs(dataset, encoder, row)]
        return np.array([one["correct"] if score == "accuracy" else one[judge][score] for one in found], dtype=float)

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
            printed = self._printed(dataset, encoder, score, judge, row)
            return mean_sd(self.values(dataset, encoder, row, score, judge).mean(1), printed)

        settings = self.settings()
        columns = [f"{encoder}, {dataset} ({len(self.seeds(dataset, encoder))})" for dataset, encoder in settings]
        caption = ""
        if number > 2 and judge == "base" and any(ENCODERS[encoder].paper == "BERT" for _, encoder in settings):
            caption = (
                "The paper's numbers for BERT cannot be compared: there even random words take the scorer to about one class, "
                "as if its inputs had been broken."
            )
        return Table(
            heading,
            ["system", *columns],
            [[row, *(cell(*setting, row) for setting in settings)] for row in rows],
            caption,
        )

    def _has_words(self, dataset: str, encoder: str) -> bool:
        return all(run["settings"]["words"] for run in self.runs(dataset, encoder, "base"))

    def _words_table(self, dataset: str, encoder: str) -> Table:
        texts = [self.values(dataset, encoder, "VAT", f"{polarity} f1@1", "words").shape[1] for polarity in _POLARITIES]
        rows = []
        for row in RANKINGS:
            cells = []
            for score in _WORD_SCORES:
                printed = self._printed(dataset, encoder, score, "words", row)
                cells.append(mean_sd(self.values(dataset, encoder, row, score, "words").mean(1), printed))
            rows.append([row, *cells])
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
        settings = self.settings()
        most = 1 + max(number for setting in settings for number in self._by_iteration(*setting, "VAT", "test"))
        rows = []
        for dataset, encoder in settings:
            paper = VAT_ITERATIONS.get((ENCODERS[encoder].paper, dataset), ())
            for system in ("ATT (matched)", "VAT"):
                by_iteration = self._by_iteration(dataset, encoder, system, "test")
                cells = []
                for number in range(most):
                    printed = paper[number] if system == "VAT" and number < len(paper) else None
                    cells.append(mean_sd(by_iteration[number], printed) if number in by_iteration else "")
                selected = [str(run["rows"][system]["iteration"]) for run in self.runs(dataset, encoder, system)]
                rows.append([f"{encoder}, {dataset}", system, *cells, ", ".join(selected)])
        return Table(
            f"Table 6. {TABLES[6][0]}",
            ["setting", "system", *map(str, range(most)), "selected, by seed"],
            rows,
            "Iteration 0 is the start: of ATT (matched) the row ATT, of VAT the phase before the first compressor phase (in the paper "
            "ATT's). ATT (matched) has had as many updates of the encoder. Selected is the best later iteration on validation data.",
        )

    def _separation_table(self) -> Table:
        rows = []
        for dataset, encoder in self.settings():
            for system in SYSTEMS[1:]:
                chosen = [
                    next(one for one in run["iterations"] if one["iteration"] == run["rows"][system]["iteration"])
                    for run in self.runs(dataset, encoder, system)
                ]
                cells = [
                    mean_sd(np.array([record["silhouette"] for record in chosen]), scale=1),
                    mean_sd(np.array([record["knn_accuracy"] for record in chosen])),
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

    def _by_iteration(self, dataset: str, encoder: str, system: str, name: str) -> dict[int, np.ndarray]:
        """Values of a record by iteration, each of shape [seeds]."""
        runs = [run["iterations"] for run in self.runs(dataset, encoder, system)]
        return {
            records[0]["iteration"]: np.array([record[name] for record in records])
            for records in zip(*runs, strict=True)
        }

    # Claims and curves

    def claims(self, numbers: Sequence[int]) -> list[dict]:
        """The paper's orderings in some of its tables, for [`claims_tables`]; "own" are those by each model's own judgement."""
        found = []
        for dataset, encoder in self.settings():
            compared = []
            for number in numbers:
                score = TABLES[number][1]
                if number == 2:
                    compared += [(score, "base", "VAT", worse) for worse in ("ATT", "ATT (matched)", "base")]
                elif number in (3, 4):
                    compared += [(score, "base", *pair) for pair in _PAIRS]
                    compared += [(score, "self", *pair) for pair in _PAIRS[:2]]
                elif number == 5 and self._has_words(dataset, encoder):
                    compared += [(name, "words", *pair) for name in _WORD_SCORES for pair in _PAIRS]
            found += [self._claim(dataset, encoder, *one) for one in dict.fromkeys(compared)]
        return found

    def _claim(self, dataset: str, encoder: str, score: str, judge: str, better: str, worse: str) -> dict:
        papers = [self._printed(dataset, encoder, score, judge, row) for row in (better, worse)]
        shown = score + (", own" if judge == "self" else "")
        return {
            **{"dataset": dataset, "encoder": encoder, "score": shown, "claim": f"{better} > {worse}"},
            "group": "precision, recall, F1 of sentiment words" if judge == "words" else shown,
            "paper": None if None in papers else papers[0] - papers[1],
            **compare(*(self.values(dataset, encoder, row, score, judge) for row in (better, worse))),
        }

    def _printed(self, dataset: str, encoder: str, score: str, judge: str, row: str) -> float | None:
        """The paper's number."""
        place = (ENCODERS[encoder].paper, row)
        if judge == "words":
            return VAT_WORDS.get(place, {}).get(score)
        if judge == "self":
            return None
        [number] = [number for number in (2, 3, 4) if TABLES[number][1] == score]
        return VAT_TABLES[number].get(place, {}).get(dataset)

    def curves(self, dataset: str, encoder: str) -> dict:
        """Figures 4 and 5: scores by number of words, for `top_k_curves`.

        Bands are ± one standard deviation over seeds; with one seed, bootstrap intervals over texts.
        """
        return {
            score: {
                row.lower() if row == "Random" else row: [
                    (float(k), *band(self.values(dataset, encoder, row, f"{score}@{k}"))) for k in KS
                ]
                for row in (*RANKINGS[1:], "Random")
            }
            for score in _CURVES
        }
