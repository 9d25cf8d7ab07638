"""Tables and claims from finished cells. The paper's own numbers are not known, so no table has them."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hf_vat.report import Table
from hf_vat.reproduction.claims import compare, mean_sd
from hf_vat.reproduction.paper import Results

from .experiments import HIGH, JSDS, N_CLUSTERS, SCORES, TEXTS
from .systems import EXTRAS, OBJECTIVES, SYSTEMS

TABLES = {
    1: "States, attention under stress, faithfulness",
    2: "What states say of their words",
    3: "The model-level adversary",
}
SLACK = 0.01  # accuracy that a system may lose against ATT
NOT_LOWER = f"accuracy + {100 * SLACK:g}"
_CURVE = (*(f"tvd@{jsd}" for jsd in JSDS), "area")
_NOT_MEASURED = "–"
_ROWS = ("ATT", "Random", *SYSTEMS[1:])
_MEASURES = ("accuracy", "information", "permuted", "adversarial", *_CURVE, *SCORES)


class WordObjectiveResults(Results):
    """Results of [`WordObjectiveCell`]. A score is "accuracy"; "information", I(w; q) of states less that of shuffled pairs, as
    a share of H(w); "conicity", "distance", "cosine", "entropy"; "permuted" and "adversarial"; "tvd@J" and "area" of the
    adversary's curve, one number for each seed; or one of faithfulness, such as "prob_drop@5", which "Random" has too."""

    rows: ClassVar = {"ATT": ("ATT", "Random")}
    curves_of = ("adversary",)
    ks = ()
    ranked = tuple(one for one in SYSTEMS if one != "uniform")

    def found(self, run: dict, row: str, score: str) -> list | float:
        """Raises KeyError where it is not measured."""
        if row == "Random":
            return run["random"][score]
        if score == "information":
            states = run["information"]["states"]
            return (np.array(states["by_text"]) - states["shuffled"]) / states["entropy"]
        if score in SCORES:
            return run["faithfulness"][score]
        if score in _CURVE:
            return run["curve"][score]
        return run["permuted"]["tvd"] if score == "permuted" else run[{"accuracy": "correct"}.get(score, score)]

    def printed(self, dataset: str, encoder: str, row: str, score: str) -> None:
        return None

    def values(self, dataset: str, encoder: str, row: str, score: str) -> np.ndarray:
        """Of the curve one number for each seed, twice: a text more, so that it can be compared, and resampling changes nothing."""
        found = super().values(dataset, encoder, row, score)
        return np.repeat(found, 2, axis=1) if score in _CURVE else found

    # Tables

    def tables(self, numbers: Sequence[int]) -> list[Table]:
        made = {1: self._all_table, 2: self._information_table, 3: self._curve_table}
        return [made[number]() for number in numbers]

    def _all_table(self) -> Table:
        columns = (*_MEASURES[:3], "permuted, high", *_MEASURES[3:], "entropy")

        def cells(dataset: str, encoder: str, row: str) -> list[str]:
            high = [run.get("permuted", {}).get("high") for run in self.runs(dataset, encoder, row)]
            return [
                _mean(high if row != "Random" else [None])
                if column == "permuted, high"
                else self._shown(dataset, encoder, row, column)
                for column in columns
            ]

        return self.down(
            f"Table 1. {TABLES[1]}",
            ["system", *columns],
            _ROWS,
            cells,
            "Percent, mean ± sd over seeds. Of all test texts: accuracy, and information, what states say of their words (table 2). Of "
            f"{TEXTS} random ones: permuted is the median TVD of the output over 100 random orders of a text's attention, high the "
            f"same where one word has {100 * HIGH:g} % of the attention or more; adversarial the JSD, in hundredths of a nat, of the "
            "furthest attention that is found for a text and moves the output by at most 0.05: lower says that attention is harder to "
            "replace. tvd@J is what the output of a second model, trained to have another attention, has moved when its attention is "
            "J nats away; area its mean over all J (table 3). prob_drop and the scores after it are of the ranking by attention, each "
            "model judging its own; of aopc_sufficiency less is better. Random: rankings of ATT's models at random. Entropy is that "
            f"of the attention. uniform has no attention. {_NOT_MEASURED}: nothing to measure, or not reached by a seed.",
        )

    def _information_table(self) -> Table:
        def cells(dataset: str, encoder: str, row: str) -> list[str]:
            runs = [run["information"] for run in self.runs(dataset, encoder, row) if "information" in run]
            found = [
                mean_sd(np.array([run[layer][name] for run in runs]), scale=1) if runs else _NOT_MEASURED
                for layer, name in (
                    ("states", "value"),
                    ("states", "shuffled"),
                    ("words", "value"),
                    ("words", "entropy"),
                )
            ]
            others = [self._shown(dataset, encoder, row, name, 1) for name in ("conicity", "distance", "cosine")]
            return [*found, self._shown(dataset, encoder, row, "information"), *others]

        return self.down(
            f"Table 2. {TABLES[2]}",
            ["system", "I(w; h)", "shuffled", "I(w; x)", "H(w)", "information", "conicity", "‖h − x‖", "cos(h, x)"],
            [row for row in SYSTEMS if row != "uniform"],
            cells,
            f"Nats, of the test texts' 1,000 most frequent tokens and {N_CLUSTERS} clusters of states (k-means); shuffled is what as "
            "many pairs at random would give, and information the difference from it in percent of H(w). I(w; x) is that of the "
            "embeddings. States are what attention reads: with concat and residual the embedding is in them.",
        )

    def _curve_table(self) -> Table:
        def cells(dataset: str, encoder: str, row: str) -> list[str]:
            by_weight = self._points(dataset, encoder, row)
            points = (f"{100 * np.mean(tvds):.1f} at {np.mean(jsds):.2f}" for tvds, jsds in by_weight.values())
            return [*points, *(self._shown(dataset, encoder, row, score) for score in _CURVE)]

        weights = list(dict.fromkeys(weight for setting in self.settings() for weight in self._points(*setting, "ATT")))
        return self.down(
            f"Table 3. {TABLES[3]}",
            ["system", *(f"λ = {weight:g}" for weight in weights), *_CURVE],
            [row for row in SYSTEMS if row != "uniform"],
            cells,
            "A second model is trained to predict as the first with another attention, whose divergence the loss weighs by λ "
            "(Wiegreffe and Pinter 2019). TVD of the outputs in percent, at the mean JSD of the attentions in nats: a larger TVD at the "
            "same JSD says that attention is harder to replace. The TVD at λ = 0 is what it costs to copy the model at all, with whatever "
            "attention.",
        )

    def _points(self, dataset: str, encoder: str, row: str) -> dict[float, tuple[list[float], list[float]]]:
        """TVD and JSD by seed, for each weight."""
        runs = [run["curve"]["points"] for run in self.runs(dataset, encoder, row)]
        return {
            points[0]["weight"]: ([one["tvd"] for one in points], [one["jsd"] for one in points])
            for points in zip(*runs, strict=True)
        }

    def _shown(self, dataset: str, encoder: str, row: str, score: str, scale: int = 100) -> str:
        try:
            found = [self.found(run, row, score) for run in self.runs(dataset, encoder, row)]
        except KeyError:
            return _NOT_MEASURED
        return _mean([None if one is None else float(np.mean(one)) for one in found], scale)

    def curves(self, dataset: str, encoder: str) -> dict:
        """TVD by JSD, for `top_k_curves`: means and ± one standard deviation of TVD over seeds, for each weight."""
        return {
            "adversary": {
                row: [
                    (float(np.mean(jsds)), *_around(np.array(tvds)))
                    for tvds, jsds in self._points(dataset, encoder, row).values()
                ]
                for row in self.there(self.ranked, dataset, encoder)
            }
        }

    # Claims

    def claims(self, numbers: Sequence[int]) -> list[dict]:
        """That objectives, and VAT and VMASK, make attention harder to replace, keep more of the words, and cost no accuracy.

        Where a curve does not come to a JSD in some seed, nothing is claimed of it.
        """
        found = []
        for dataset, encoder in self.settings():
            for system in self.there((*OBJECTIVES, *EXTRAS, "VAT", "VMASK"), dataset, encoder):
                compared = [(system, "ATT", "information")] if system in OBJECTIVES + EXTRAS else []
                compared += [(system, "ATT", score) for score in ("permuted", *_CURVE)]
                compared += [("ATT", system, "adversarial")]
                compared += [
                    (system, "ATT", score) for score in ("prob_drop@5", "aopc_comprehensiveness", "posthoc_self@5")
                ]
                found += [
                    self.claim(dataset, encoder, *one) for one in compared if self._reached(dataset, encoder, *one)
                ]
                found.append(self._not_lower(dataset, encoder, system))
            pairs = [("ATT", worse, "prob_drop@5") for worse in self.there(("Random", "frozen"), dataset, encoder)]
            found += [self.claim(dataset, encoder, *one) for one in pairs]
        return found

    def _reached(self, dataset: str, encoder: str, better: str, worse: str, score: str) -> bool:
        found = [self.found(run, row, score) for row in (better, worse) for run in self.runs(dataset, encoder, row)]
        return all(one is not None for one in found)

    def _not_lower(self, dataset: str, encoder: str, system: str) -> dict:
        values = [self.values(dataset, encoder, row, "accuracy") for row in (system, "ATT")]
        told = {"dataset": dataset, "encoder": encoder, "score": NOT_LOWER, "group": NOT_LOWER, "paper": None}
        return told | {"claim": f"{system} > ATT"} | compare(values[0] + SLACK, values[1])


def _mean(values: list, scale: int = 100) -> str:
    """Mean ± sd over seeds; a dash where one is missing."""
    return _NOT_MEASURED if None in values else mean_sd(np.array(values), scale=scale)


def _around(values: np.ndarray) -> tuple[float, float, float]:
    mean, sd = float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return mean, mean - sd, mean + sd
