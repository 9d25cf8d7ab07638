"""The tables and curves of the VMASK paper from finished cells, beside the paper's numbers, with claims and their tests."""

from collections.abc import Callable, Sequence

import numpy as np

from hf_vat.data import PAPER_DATASETS
from hf_vat.report import Table
from hf_vat.reproduction.claims import band, compare, mean_sd
from hf_vat.reproduction.results import Results

from .cells import (
    AOPC_K,
    AOPC_TEXTS,
    EXPLAINED,
    KS,
    MASKS,
    METHODS,
    MIN_COUNTS,
    VMaskCell,
    second_softmax_bound,
)
from .paper import VMASK_ACCURACY, VMASK_AOPC, VMASK_CORRELATION, VMASK_SECONDS
from .systems import BY_CODE, ENCODERS, RECIPES, SYSTEMS, with_recipe

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


class VMaskResults(Results):
    """Results of [`VMaskCell`], or of its [`summaries`]: tables need no values of single texts, claims do."""

    @staticmethod
    def cells(
        dataset: str, encoder: str, seeds: int, numbers: Sequence[int], systems: Sequence[str] = SYSTEMS
    ) -> list[VMaskCell]:
        """The cells that some of the tables need.

        Args:
            systems: those to train, base and VMASK among them.
        """
        kinds = ("start", *systems) if ENCODERS[encoder].start_epochs else systems
        found = [VMaskCell(dataset, encoder, kind, seed) for seed in range(seeds) for kind in kinds]
        return found + [VMaskCell(dataset, encoder, "cost", 0)] * (9 in numbers)

    def systems(self, among: Sequence[str] = SYSTEMS) -> list[str]:
        """The systems that there are, in their order."""
        kinds = {cell.kind for cell in self.results}
        return [system for system in among if system in kinds]

    def runs(self, dataset: str, encoder: str, system: str) -> list[dict]:
        """The results of a system, by seed."""
        wanted = (dataset, encoder, system)
        cells = [cell for cell in self.results if (cell.dataset, cell.encoder, cell.kind) == wanted]
        return [self.results[cell] for cell in sorted(cells, key=lambda cell: cell.seed)]

    def values(self, dataset: str, encoder: str, system: str, score: str) -> np.ndarray:
        """Values of a system per seed and text, shape [seeds, texts]; of summaries their means, shape [seeds, 1].

        Args:
            score: "accuracy", "posthoc_self@K" of a system with a mask, or "lime" or "shapley", prob_drop@5.
        """
        found = self.runs(dataset, encoder, system)
        if score == "accuracy":
            return _per_text([run["correct"] for run in found])
        return _per_text([run["aopc"][score] if score in METHODS else run[score] for run in found])

    def _seeds(self, dataset: str, encoder: str) -> int:
        return len(self.runs(dataset, encoder, SYSTEMS[0]))

    def _headings(self) -> list[str]:
        return [f"{encoder}, {dataset} ({self._seeds(dataset, encoder)})" for dataset, encoder in self.settings()]

    # Tables

    def tables(self, numbers: Sequence[int]) -> list[Table]:
        """The paper's tables: ours as mean ± sd over seeds and the paper's number in brackets; and figures 1 and 2 in
        numbers."""
        made = {
            3: self._accuracy_table,
            4: self._aopc_table,
            6: self._words_table,
            8: self._accuracy_table,
            9: self._cost_table,
            11: self._correlation_table,
        }
        found = []
        for number in numbers:
            found.append(made[number](number))
            if number == 4:
                found.append(self._printed_aopc_table())
        return [*found, self._curves_table(), self._extremes_table()]

    def _accuracy_table(self, number: int) -> Table:
        def cell(dataset: str, encoder: str, system: str) -> str:
            runs = self.runs(dataset, encoder, system)
            values = [np.mean(run["correct"]) if number == 3 else run["validation"] for run in runs]
            printed = VMASK_ACCURACY[number].get((ENCODERS[encoder].paper, system), {}).get(dataset)
            return mean_sd(np.array(values), printed)

        rows = [[system, *(cell(*setting, system) for setting in self.settings())] for system in self.systems()]
        caption = "" if number == 3 else "Of the epoch that is best on these very data."
        return Table(f"Table {number}. {TABLES[number]}", ["system", *self._headings()], rows, caption)

    def _aopc_table(self, number: int) -> Table:
        def row(name: str, values: Callable[[dict], list | float | None]) -> list[list[str]]:
            return [
                [f"{name}, {system}", *(self._means(*setting, system, values) for setting in self.settings())]
                for system in self.systems(EXPLAINED)
            ]

        rows = []
        for method in (*METHODS, "random"):
            rows += row(_METHOD_NAMES[method], lambda run, method=method: run["aopc"].get(method))
        rows += row("probability before", lambda run: run.get("full"))
        samples = "; ".join(
            f"{encoder} {ENCODERS[encoder].lime_samples} and {ENCODERS[encoder].shapley_samples}"
            for encoder in dict.fromkeys(encoder for _, encoder in self.settings())
        )
        return Table(
            f"Table {number}. {TABLES[number]}",
            ["explanations, system", *self._headings()],
            rows,
            f"prob_drop@{AOPC_K} on {AOPC_TEXTS} random test texts, the same for all. Subsets of a text for LIME and orders of its words "
            f"for SampleShapley: {samples}. Random words: mean of three random rankings. Probability before: of the predicted "
            "class on the full texts, the most that can be lost; a model that is surer of itself has more to lose, so look at "
            "the distance from random words. The paper's numbers are presumably on another scale, see the next table."
            f"{_unmeasured(rows)}",
        )

    def _printed_aopc_table(self) -> Table:
        rows = []
        for method in METHODS:
            for system in self.systems(EXPLAINED):
                name, printed = f"{_METHOD_NAMES[method]}, {system}", []
                for dataset, encoder in self.settings():
                    number = VMASK_AOPC[ENCODERS[encoder].paper, system, method].get(dataset)
                    printed.append("" if number is None else f"{number:.1f}")
                ours = [
                    self._means(*setting, system, lambda run, method=method: run.get("aopc_softmax", {}).get(method))
                    for setting in self.settings()
                ]
                rows += [[name, "paper, as printed", *printed], [name, "ours, second softmax", *ours]]
        for system in self.systems(EXPLAINED):
            ours = [
                self._means(*setting, system, lambda run: run.get("aopc_softmax", {}).get("random"))
                for setting in self.settings()
            ]
            rows.append([f"{_METHOD_NAMES['random']}, {system}", "ours, second softmax", *ours])
        bounds = [
            f"{100 * second_softmax_bound(len(PAPER_DATASETS[dataset].label_names)):.1f}"
            for dataset, _ in self.settings()
        ]
        return Table(
            "Table 4, the paper's numbers, and ours on the scale that they presumably have",
            ["explanations, system", "whose", *self._headings()],
            [*rows, ["most that can be lost", "after a second softmax", *bounds]],
            "The scale is inferred from the printed numbers and the published code, and not proven: that code's LSTM returns "
            "probabilities, and with a second softmax over them the probability of a class cannot fall by more than "
            "(e - 1) / (e + C - 1) with C classes. The paper's AOPC of CNN and LSTM keep that bound on all its data sets. Those of "
            f"BERT do not, so they are on some other scale, which ours in this table are not comparable with.{_unmeasured(rows)}",
        )

    def _means(self, dataset: str, encoder: str, system: str, values: Callable[[dict], list | float | None]) -> str:
        """Mean ± sd over seeds of the mean over texts; a dash where cells were finished before it was measured."""
        found = [values(run) for run in self.runs(dataset, encoder, system)]
        return _NOT_MEASURED if None in found else mean_sd(_per_text(found).mean(1))

    def _words_table(self, number: int) -> Table:
        rows = [
            [
                f"{encoder}, {dataset}",
                *(", ".join(self.runs(dataset, encoder, one)[0]["words"]) for one in self.systems(EXPLAINED)),
            ]
            for dataset, encoder in self.settings()
        ]
        return Table(
            f"Table {number}. {TABLES[number]}",
            ["setting", *self.systems(EXPLAINED)],
            rows,
            "Of the first seed: the sum of the magnitudes of a word's LIME scores over the texts of table 4. The paper shows IMDB.",
        )

    def _cost_table(self, number: int) -> Table:
        columns, ratios = [], {system: [] for system in SYSTEMS}
        for dataset, encoder in self.settings():
            columns.append(f"{encoder}, {dataset}")
            [run] = self.runs(dataset, encoder, "cost")
            for system in SYSTEMS:
                ratio = run["step_seconds"][system] / run["step_seconds"]["base"]
                printed = [VMASK_SECONDS[ENCODERS[encoder].paper, one].get(dataset) for one in (system, "base")]
                told = "" if None in printed else f" [{printed[0] / printed[1]:.2f}]"
                ratios[system].append(f"{ratio:.2f}{told}")
        asked = ", ".join(f"{limit} ({name})" for name, limit in _COST_LIMITS.items())
        return Table(
            f"Table {number}. {TABLES[number]}",
            ["system", *columns],
            [[system, *found] for system, found in ratios.items()],
            f"Forward, backward and update on the same batches, in turn; embeddings are frozen in all. We ask of VMASK at most {asked}.",
        )

    def _correlation_table(self, number: int) -> Table:
        rows = []
        for dataset, encoder in self.settings():
            for system in self.systems(MASKS):
                found = [run["correlation"] for run in self.runs(dataset, encoder, system)]
                printed = VMASK_CORRELATION[ENCODERS[encoder].paper].get(dataset) if system == "VMASK" else None
                raw = [one[str(MIN_COUNTS[0])]["pearson"] for one in found]
                weak = sum(value is not None and abs(value) < _WEAK for value in raw)
                cells = [
                    _mean_or_none(
                        [one[str(least)][name] for one in found], printed if (least, name) == (1, "pearson") else None
                    )
                    for least in MIN_COUNTS
                    for name in ("pearson", "pearson_log", "spearman")
                ]
                rows.append([f"{encoder}, {dataset}", system, *cells, f"{weak} of {len(raw)}"])
        names = ("r", "r of log counts", "Spearman")
        return Table(
            f"Table {number}. {TABLES[number]}",
            [
                "setting",
                "system",
                *(f"{name}{'' if least == 1 else f', count ≥ {least}'}" for least in MIN_COUNTS for name in names),
                f"seeds with |r| < {_WEAK}",
            ],
            rows,
            "Over the words of the training texts. The paper has |r| < 0.1 everywhere, and does not say whether of counts or of their "
            "logarithms.",
        )

    def _curves_table(self) -> Table:
        rows = []
        for dataset, encoder in self.settings():
            for system, values in self._curve_values(dataset, encoder).items():
                rows.append([f"{encoder}, {dataset}", system, *(mean_sd(one.mean(1)) for one in values)])
        return Table(
            "Figure 1 in numbers: same prediction on the top words alone",
            ["setting", "ranking", *(f"k = {k}" for k in KS)],
            rows,
            "posthoc_self@k of words ranked by the mask, percent of test texts. Random rankings are those of VMASK's models.",
        )

    def _extremes_table(self) -> Table:
        rows = []
        for dataset, encoder in self.settings():
            for system in self.systems(MASKS):
                runs = self.runs(dataset, encoder, system)
                cells = [mean_sd(np.array([run[name] for run in runs]), scale=1) for name in ("frequent", "important")]
                rows.append([f"{encoder}, {dataset}", system, *cells])
        return Table(
            "Figure 2 in numbers: mean mask of the ten most frequent and of the ten most important words",
            ["setting", "system", "most frequent", "most important"],
            rows,
            "The paper (LSTM, Yelp): about 0.5, and above 0.8.",
        )

    # Claims and curves

    def claims(self, numbers: Sequence[int]) -> list[dict]:
        """The paper's orderings in some of its tables and in figure 1, for [`claims_tables`].

        Of AOPC the paper's differences are left out, as they are on another scale.
        """
        found = []
        for dataset, encoder in self.settings():
            paper = ENCODERS[encoder].paper
            if 3 in numbers:
                for worse in self.systems(SYSTEMS[:-1]):
                    printed = [VMASK_ACCURACY[3][paper, one].get(dataset) for one in ("VMASK", worse)]
                    found.append(self._claim(dataset, encoder, "accuracy", worse, printed))
            if 4 in numbers:
                found += [self._claim(dataset, encoder, method, "base") for method in METHODS]
            for k in _CURVE_KS:
                for worse in (*self.systems(["IBA"]), "Random"):
                    found.append(self._claim(dataset, encoder, f"posthoc_self@{k}", worse))
        return found

    def recipes(self, numbers: Sequence[int]) -> list[dict]:
        """What the published code's recipe changes, where both recipes were run: for [`recipes_tables`]."""
        found = []
        for dataset, encoder in self.settings():
            if encoder in BY_CODE or (dataset, with_recipe(encoder, "code")) not in self.settings():
                continue
            for score in (*(["accuracy"] if 3 in numbers else []), *(METHODS if 4 in numbers else ())):
                values = {
                    (recipe, system): self.values(dataset, with_recipe(encoder, recipe), system, score)
                    for recipe in RECIPES
                    for system in ("base", "VMASK")
                }
                seeds = min(map(len, values.values()))
                values = {key: one[:seeds] for key, one in values.items()}
                gains = {recipe: values[recipe, "VMASK"] - values[recipe, "base"] for recipe in RECIPES}
                compared = {
                    "VMASK - base, recipe paper": (values["paper", "VMASK"], values["paper", "base"]),
                    "VMASK - base, recipe code": (values["code", "VMASK"], values["code", "base"]),
                    "the second minus the first": (gains["code"], gains["paper"]),
                    "base, code - paper": (values["code", "base"], values["paper", "base"]),
                    "VMASK, code - paper": (values["code", "VMASK"], values["paper", "VMASK"]),
                }
                for name, pair in compared.items():
                    shown = {"dataset": dataset, "encoder": encoder, "score": _shown(score), "what": name}
                    found.append(shown | compare(*pair))
        return found

    def _claim(self, dataset: str, encoder: str, score: str, worse: str, printed: Sequence = (None, None)) -> dict:
        ours = self.values(dataset, encoder, "VMASK", score)
        if worse == "Random":
            theirs = _per_text([run["random"][score] for run in self.runs(dataset, encoder, "VMASK")])
        else:
            theirs = self.values(dataset, encoder, worse, score)
        shown = _shown(score)
        return {
            **{"dataset": dataset, "encoder": encoder, "score": shown, "group": shown, "claim": f"VMASK > {worse}"},
            "paper": None if None in printed else printed[0] - printed[1],
            **compare(ours, theirs),
        }

    def _curve_values(self, dataset: str, encoder: str) -> dict[str, list[np.ndarray]]:
        """posthoc_self at each k, values [seeds, texts], by ranking."""
        names = [f"posthoc_self@{k}" for k in KS]
        found = {
            system: [self.values(dataset, encoder, system, name) for name in names] for system in self.systems(MASKS)
        }
        runs = self.runs(dataset, encoder, "VMASK")
        return found | {"Random": [_per_text([run["random"][name] for run in runs]) for name in names]}

    def curves(self, dataset: str, encoder: str) -> dict:
        """Figure 1, for `top_k_curves`; bands are ± one standard deviation over seeds, see [`band`]."""
        return {
            "posthoc_self": {
                "random" if system == "Random" else system: [
                    (float(k), *band(one)) for k, one in zip(KS, values, strict=True)
                ]
                for system, values in self._curve_values(dataset, encoder).items()
            }
        }


def recipes_tables(recipes: Sequence[dict]) -> list[Table]:
    """What [`VMaskResults.recipes`] found, as a table; nothing without."""
    rows = [
        [
            f"{one['encoder']}, {one['dataset']}",
            one["score"],
            one["what"],
            f"{one['difference']:+.1f} [{one['low']:.1f}, {one['high']:.1f}]",
            f"{one['p_value']:.3f}",
            f"{one['seeds_won']} of {one['seeds']}",
        ]
        for one in recipes
    ]
    columns = ["setting", "score", "what", "difference", "p", "seeds above 0"]
    caption = "Differences in points on the same test texts; intervals and p as those of the claims below."
    return [Table("Recipes compared", columns, rows, caption)] if rows else []


def _shown(score: str) -> str:
    return f"prob_drop@{AOPC_K}, {_METHOD_NAMES[score]}" if score in METHODS else score


def _per_text(values: Sequence) -> np.ndarray:
    """Values per seed and text, or one for each seed, as an array [seeds, texts] or [seeds, 1]."""
    return np.array(values, dtype=float).reshape(len(values), -1)


def _unmeasured(rows: Sequence[Sequence[str]]) -> str:
    """A sentence about dashes, if there are any."""
    dashes = any(_NOT_MEASURED in row for row in rows)
    return f" {_NOT_MEASURED}: not measured, as these cells were run before it was asked for." if dashes else ""


def _mean_or_none(values: Sequence[float | None], printed: float | None) -> str:
    """Mean ± sd over the seeds whose mask is not the same everywhere, and how many of them these are, if not all."""
    known = np.array([value for value in values if value is not None])
    if not len(known):
        return "constant"
    return mean_sd(known, printed, scale=1) + ("" if len(known) == len(values) else f" ({len(known)} seeds)")
