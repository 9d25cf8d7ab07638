"""The tables and claims of the VAT paper from finished cells, beside the paper's numbers."""

import re
from collections.abc import Sequence
from functools import partial

import numpy as np

from hf_vat.report import Table
from hf_vat.reproduction.claims import mean_sd
from hf_vat.reproduction.paper import Results

from .experiments import KS, WORD_KS
from .numbers import VAT_ITERATIONS, VAT_TABLES, VAT_WORDS
from .systems import ENCODERS, ROWS, SYSTEMS

TABLES = {
    2: ("Test accuracy", "accuracy"),
    3: ("AOPC: accuracy lost without the five top words", "accuracy_drop@5"),
    4: ("Post-hoc accuracy: on the five top words alone", "posthoc_gold@5"),
    5: ("Sentiment words among the top words", "f1"),
    6: ("Test accuracy by iteration", "accuracy"),
}
RANKINGS = ("Random", *SYSTEMS[1:])
OWN = ", own"  # ends the name of a score by each model's own judgement
_POLARITIES = ("positive", "negative")
_PAIRS = (("VAT", "ATT"), ("VAT", "ATT (matched)"), ("VAT", "Random"), ("ATT", "Random"))
_WORD_SCORES = tuple(
    f"{polarity} {score}@{k}" for polarity in _POLARITIES for k in WORD_KS for score in ("precision", "recall", "f1")
)


class VATResults(Results):
    """Results of [`VATCell`]. A score is "accuracy", or one at K such as "accuracy_drop@5": by the base model, which is the
    paper's protocol, or by each model itself, "accuracy_drop@5, own"; or one of sentiment words, "positive f1@1"."""

    rows = ROWS
    curves_of = ("accuracy_drop", "posthoc_gold")  # figures 4 and 5
    ks = KS
    ranked = (*RANKINGS[1:], "Random")

    def found(self, run: dict, row: str, score: str) -> list | float:
        values = run["rows"][row]
        if score == "accuracy":
            return values["correct"]
        judge = "words" if score in _WORD_SCORES else "self" if score.endswith(OWN) else "base"
        return values[judge][score.removesuffix(OWN)]

    def printed(self, dataset: str, encoder: str, row: str, score: str) -> float | None:
        place = (ENCODERS[encoder].paper, row)
        if score in _WORD_SCORES:
            return VAT_WORDS.get(place, {}).get(score)
        by_score = {TABLES[number][1]: numbers for number, numbers in VAT_TABLES.items()}
        return by_score.get(score, {}).get(place, {}).get(dataset)

    # Tables

    def tables(self, numbers: Sequence[int]) -> list[Table]:
        found = []
        for number in numbers:
            if number == 5:
                found += [self._words_table(*setting) for setting in self.settings() if self._has_words(*setting)]
                continue
            if number == 6:
                found += [self._iterations_table(), self._separation_table()]
                continue
            title, score = TABLES[number]
            judged = [("", SYSTEMS, "", "")]
            if number > 2:
                judged = [(", judged by the base model", RANKINGS, "", self._broken())]
                judged.append((", each model judging its own ranking", RANKINGS[1:], OWN, ""))
            for by, rows, own, caption in judged:
                mean = partial(self.mean, score=score + own)
                found.append(self.across(f"Table {number}. {title}{by}", self.there(rows), mean, caption))
        return found

    def _broken(self) -> str:
        if all(ENCODERS[encoder].paper != "BERT" for _, encoder in self.settings()):
            return ""
        return (
            "The paper's numbers for BERT cannot be compared: there even random words take the scorer to about one class, "
            "as if its inputs had been broken."
        )

    def _has_words(self, dataset: str, encoder: str) -> bool:
        return all(run["settings"]["words"] for run in self.runs(dataset, encoder, "base"))

    def _words_table(self, dataset: str, encoder: str) -> Table:
        rows = [
            [row, *(self.mean(dataset, encoder, row, score) for score in _WORD_SCORES)] for row in self.there(RANKINGS)
        ]
        positive, negative = (
            self.values(dataset, encoder, "VAT", f"{polarity} f1@1").shape[1] for polarity in _POLARITIES
        )
        counted = f"{positive} positive and {negative} negative texts" if positive > 1 else "Texts"
        source = (
            ""
            if dataset == "twitter"
            else " The paper's numbers are of Twitter, SemEval-2013: compare the order of rows."
        )
        short = {"positive": "pos", "negative": "neg", "precision": "P", "recall": "R", "f1": "F1"}
        columns = [re.sub("|".join(short), lambda found: short[found[0]], score) for score in _WORD_SCORES]
        return Table(
            f"Table 5. {TABLES[5][0]}: {self.heading(dataset, encoder)}",
            ["ranking", *columns],
            rows,
            f"{counted} that have a word of their polarity; means over texts. Random "
            f"is what a random ranking is expected to give.{source}",
        )

    def _iterations_table(self) -> Table:
        most = 1 + max(number for setting in self.settings() for number in self._by_iteration(*setting, "VAT", "test"))

        def cells(dataset: str, encoder: str, system: str) -> list[str]:
            paper = VAT_ITERATIONS.get((ENCODERS[encoder].paper, dataset), ()) if system == "VAT" else ()
            printed = dict(enumerate(paper))
            by_iteration = self._by_iteration(dataset, encoder, system, "test")
            selected = [str(run["rows"][system]["iteration"]) for run in self.runs(dataset, encoder, system)]
            means = (
                mean_sd(by_iteration[number], printed.get(number)) if number in by_iteration else ""
                for number in range(most)
            )
            return [*means, ", ".join(selected)]

        return self.down(
            f"Table 6. {TABLES[6][0]}",
            ["system", *map(str, range(most)), "selected, by seed"],
            ("ATT (matched)", "VAT"),
            cells,
            "Iteration 0 is the start: of ATT (matched) the row ATT, of VAT the phase before the first compressor phase (in the paper "
            "ATT's). ATT (matched) has had as many updates of the encoder. Selected is the best later iteration on validation data.",
        )

    def _separation_table(self) -> Table:
        def cells(dataset: str, encoder: str, system: str) -> list[str]:
            chosen = [
                next(one for one in run["iterations"] if one["iteration"] == run["rows"][system]["iteration"])
                for run in self.runs(dataset, encoder, system)
            ]
            by_iteration = self._by_iteration(dataset, encoder, system, "silhouette")
            return [
                mean_sd(np.array([record["silhouette"] for record in chosen]), scale=1),
                mean_sd(np.array([record["knn_accuracy"] for record in chosen])),
                ", ".join(f"{number}: {values.mean():.2f}" for number, values in by_iteration.items()),
            ]

        return self.down(
            "Figures 3 and 6 in numbers: how well text vectors separate the classes",
            ["system", "silhouette", "kNN accuracy", "silhouette by iteration"],
            SYSTEMS[1:],
            cells,
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

    # Claims

    def claims(self, numbers: Sequence[int]) -> list[dict]:
        found = []
        for dataset, encoder in self.settings():
            compared: list[tuple[str, ...]] = []
            for number in numbers:
                score = TABLES[number][1]
                if number == 2:
                    compared += [("VAT", worse, score) for worse in ("ATT", "ATT (matched)", "base")]
                elif number in (3, 4):
                    compared += [(*pair, score) for pair in _PAIRS]
                    compared += [(*pair, score + OWN) for pair in _PAIRS[:2]]
                elif number == 5 and self._has_words(dataset, encoder):
                    group = "precision, recall, F1 of sentiment words"
                    compared += [(*pair, name, group) for name in _WORD_SCORES for pair in _PAIRS]
            wanted = [one for one in dict.fromkeys(compared) if len(self.there(one[:2])) == 2]
            found += [self.claim(dataset, encoder, *one) for one in wanted]
        return found
