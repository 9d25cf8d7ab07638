"""Compare explanation methods on one classifier and data set: scores with intervals, paired tests, seconds, a report.

```python
comparison = compare_explainers(model, tokenizer, texts, labels, {"attention": {}, "lime": {"n_samples": 500}})
print(comparison)
comparison.write("runs/comparison")
```
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hf_vat.callers import as_classifier
from hf_vat.errors import InputError, check_list, check_texts, import_extra, parse_json, shown
from hf_vat.explanations import METHODS, Explanation, explain
from hf_vat.explanations.explainers import targets_of_texts
from hf_vat.explanations.methods import check_settings
from hf_vat.faithfulness import (
    ERASER_SHARES,
    Faithfulness,
    Interval,
    auprc,
    bootstrap_interval,
    iou_f1,
    kendall_tau,
    mcnemar,
    paired_bootstrap,
    precision_recall_f1_at_k,
    token_f1,
    top_k_overlap,
)
from hf_vat.faithfulness.measure import check_seeds
from hf_vat.faithfulness.perturb import check_ks
from hf_vat.inference import check_classifier, encode_texts, model_name, progress_bar
from hf_vat.models.words import EncodedText
from hf_vat.report import Table, table
from hf_vat.report.comparison import comparison_table, write_comparison
from hf_vat.targets import check_golds, check_targets
from hf_vat.windowed import in_windows
from hf_vat.writing import written_beside

RANDOM = "random"
_CURVES = (
    *("prob_drop", "accuracy_drop", "posthoc_gold", "posthoc_self", "output_change", "posthoc_change"),
    *("comprehensiveness", "sufficiency", "recall"),
)
_MOST = 10  # methods, beside random


@dataclass
class MethodResult:
    """What one method got.

    Attributes:
        settings: the method's settings.
        seconds: wall-clock seconds per text, over those that were explained by the last call that explained any; None if none is
            known.
        n_tied: number of texts whose words all have the same score.
        values: for each score one number per text, NaN where the text is not scored.
        seed_means: for the random rankings, the mean over texts of each score by seed; else empty.
        explanations: one per text; none for the random rankings.
    """

    settings: dict
    seconds: float | None
    n_tied: int
    values: dict[str, np.ndarray]
    seed_means: dict[str, list[float]] = field(default_factory=dict)
    explanations: list[Explanation] = field(default_factory=list)


@dataclass
class ExplainerComparison:
    """The methods' results on the same texts.

    Attributes:
        setup: model, scorer, numbers of texts, definitions of the scores, accuracy, JSON-ready.
        methods: by name, "random" last.
        ks: numbers of words.
        shares: shares of words.
        rationales: for each text a flag for each word, if given.
        confidence: of the intervals.
    """

    setup: dict
    methods: dict[str, MethodResult]
    ks: tuple[int, ...]
    shares: tuple[float, ...]
    rationales: list[list[int]] | None
    confidence: float

    @property
    def at(self) -> int:
        """The K of the table and of the paired tests: 5, as in the papers, or the nearest of `ks`."""
        return min(self.ks, key=lambda k: (abs(k - 5), k))

    @property
    def main_scores(self) -> list[str]:
        """The scores of the table and of the paired tests, in order."""
        k = self.at
        names = [f"prob_drop@{k}", f"accuracy_drop@{k}", f"posthoc_gold@{k}", f"posthoc_self@{k}", "area_prob"]
        names += [f"output_change@{k}", f"output_change_sd@{k}", f"posthoc_change@{k}", "area_output"]
        names += ["aopc_comprehensiveness", "aopc_sufficiency", f"recall@{k}", f"f1@{k}", "token_f1", "iou_f1", "auprc"]
        return [name for name in names if name in self.intervals[RANDOM]]

    @cached_property
    def intervals(self) -> dict[str, dict[str, Interval]]:
        """For each method and score its mean over the texts that have one, with a bootstrap interval.

        A score that fewer than two texts have is left out.
        """
        return {
            name: {
                score: bootstrap_interval(values[~np.isnan(values)], self.confidence)
                for score, values in result.values.items()
                if self.n_texts(score) > 1
            }
            for name, result in self.methods.items()
        }

    def n_texts(self, score: str) -> int:
        """Number of texts that have a score: all with words, or those with marked words."""
        return int((~np.isnan(self.methods[RANDOM].values[score])).sum())

    def pairs(self) -> list[dict]:
        """Paired tests of the main scores for each two methods: bootstrap over texts; McNemar where texts are right or
        wrong (its p-value; the bootstrap gives the interval). P-values are not adjusted for their number.
        """
        tests = []
        for (a, first), (b, second) in combinations(self.methods.items(), 2):
            for score in self.main_scores:
                known = ~np.isnan(first.values[score])
                x, y = first.values[score][known], second.values[score][known]
                test = paired_bootstrap(x, y, self.confidence)
                row = {"a": a, "b": b, "score": score, **test._asdict(), "test": "paired bootstrap"}
                if score.startswith(("posthoc_gold", "posthoc_self")) and RANDOM not in (a, b):
                    exact = mcnemar(x == 1, y == 1)
                    row |= {"test": "McNemar", "p_value": exact.p_value, "only_a": exact.only_a, "only_b": exact.only_b}
                tests.append(row)
        return tests

    def agreement(self) -> list[dict]:
        """How alike two methods rank the words that the model saw: mean Kendall τ-b over texts, and overlap of their
        top words.
        """
        scores = {
            name: [_seen(made.scores, made.seen) for made in result.explanations if any(made.seen)]
            for name, result in self.methods.items()
            if name != RANDOM
        }
        rows = []
        for (a, first), (b, second) in combinations(scores.items(), 2):
            texts = list(zip(first, second, strict=True))
            tau = np.mean([kendall_tau(x, y) for x, y in texts])
            overlap = np.mean([top_k_overlap(x, y, self.at) for x, y in texts])
            rows.append({"a": a, "b": b, "kendall_tau": float(tau), "top_k_overlap": float(overlap), "k": self.at})
        return rows

    def curves(self) -> dict[str, dict[str, list[tuple[float, float, float, float]]]]:
        """For each score by number or share of words, and each method, the points (x, mean, low, high)."""
        panels = {}
        for panel in _CURVES:
            places = self.shares if panel in ("comprehensiveness", "sufficiency") else self.ks
            if places and f"{panel}@{places[0]:g}" in self.intervals[RANDOM]:
                panels[panel] = {
                    name: [(float(x), *self.intervals[name][f"{panel}@{x:g}"]) for x in places] for name in self.methods
                }
        return panels

    def table(self) -> Table:
        """The main scores, in percent with intervals, and the seconds per text: methods side by side."""
        return comparison_table(self)

    def __str__(self) -> str:
        results = self.table()
        return f"{table(results.columns, results.rows)}\n\n{results.caption}"

    def to_dict(self) -> dict:
        """Everything but the values of single texts, ready for JSON."""
        methods = {}
        for name, result in self.methods.items():
            scores = {
                score: {**interval._asdict(), "n_texts": self.n_texts(score)}
                for score, interval in self.intervals[name].items()
            }
            methods[name] = {
                "settings": result.settings,
                "seconds_per_text": result.seconds,
                "n_tied": result.n_tied,
                "scores": scores,
            }
            if result.seed_means:
                methods[name]["seed_means"] = result.seed_means
        return {**self.setup, "methods": methods, "pairs": self.pairs(), "agreement": self.agreement()}

    def write(self, folder: str | PathLike, title: str = "Explanation methods compared") -> Path:
        """Write the report into a folder, which is made if it is missing.

        - `report.html`: table, curves, tests, and the first 50 texts explained by every method;
        - `curves.svg`, `curves.png`: scores by number of words;
        - `comparison.json`: setup, scores with intervals, tests, agreement;
        - `scores.csv`: one line for each method and score; `texts.csv`: one for each method and text;
        - `explanations.jsonl`: the word scores, one line for each method and text.

        Returns:
            The path of the page.
        """
        return write_comparison(self, folder, title)


def compare_explainers(
    model,
    tokenizer=None,
    texts: Sequence[str | Sequence[str] | Mapping[str, Any]] = (),
    labels: Sequence | None = None,
    methods: Sequence[str] | Mapping[str, dict] = (),
    *,
    scorer=None,
    scorer_tokenizer=None,
    rationales: Sequence[Sequence[int]] | None = None,
    ks: Sequence[int] = tuple(range(1, 11)),
    shares: Sequence[float] = ERASER_SHARES,
    operator: str = "delete",
    seeds: Iterable[int] = range(5),
    confidence: float = 0.95,
    batch_size: int = 32,
    seed: int = 0,
    max_length: int | None = None,
    save_folder: str | PathLike | None = None,
    merge: int | None = None,
    progress: bool = False,
) -> ExplainerComparison:
    """Explain texts by several methods and measure how faithful each is, beside random rankings.

    Args:
        model: the classifier that is explained: its predicted class; each of the labels that it gives a text, or each of its
            scores, as if these were texts of their own.
        labels: gold class ids; of several labels and of scores as in [`explain`], or None where they are not known.
        methods: names of methods of [`explain`]; or for each name to show the settings of its method, where "method"
            names the method if the name is another: `{"lime 5000": {"method": "lime", "n_samples": 5000}}`.
        scorer: the classifier that is asked about texts without their top words; `model` itself by default.
        scorer_tokenizer: its tokenizer, to be given with it.
        rationales: for each text a flag for each of its words: does it decide, by human judgement or by design? Adds
            precision, recall and F1 of the top words, token and IOU F1, and AUPRC.
        ks, shares, operator: see [`Faithfulness`].
        seeds: of the random rankings.
        confidence: of the bootstrap intervals.
        batch_size, seed, max_length: see [`explain`].
        progress: show one progress bar for all of it, which counts model inputs.
        save_folder: takes the explanations of each method as they are made, in a file; the same call goes on from them.
        merge: put the files there together from so many shards first, see [`explain`].

    Raises:
        InputError: if an argument cannot be used; see [`explain`] and [`Faithfulness`].
    """
    texts = check_texts(texts)
    if isinstance(methods, str):
        raise InputError(f"methods is the one string {methods!r}; give a list of methods, such as [{methods!r}].")
    check_list("methods", list(methods) if isinstance(methods, Mapping) else methods)
    if scorer is None and scorer_tokenizer is not None:
        raise InputError("A scorer's tokenizer is given without the scorer; give both, or neither.")
    model, tokenizer = as_classifier(model, tokenizer)
    if scorer is not None:
        scorer, scorer_tokenizer = as_classifier(scorer, scorer_tokenizer)
    problem, others = check_classifier(model), check_classifier(scorer or model)
    if problem != others and problem.names == others.names:
        raise InputError(
            f"Model and scorer are asked for different things, {problem.kind} and {others.kind}, or have other label_thresholds; "
            "give a scorer of the same kind."
        )
    if scorer is not None and model.config.id2label != scorer.config.id2label:
        raise InputError(
            f"Model and scorer have different classes, {model.config.id2label} and {scorer.config.id2label}; give a scorer "
            "with the classes of the model in the same order, or, if it has them by other names, set its config.id2label."
        )
    for name in methods:
        if not isinstance(name, str) or not isinstance(
            methods[name] or {} if isinstance(methods, Mapping) else {}, Mapping
        ):
            raise InputError(
                f"methods has {shown(name)}; give names of methods, or a dictionary of names and settings, such as "
                "{'lime': {'n_samples': 500}}."
            )
    methods = {name: methods[name] or {} if isinstance(methods, Mapping) else {} for name in methods}
    if not methods or RANDOM in methods:
        raise InputError(
            f"methods are {list(methods)}; give one or more methods to compare. Random rankings are always measured."
        )
    if len(methods) > _MOST:
        raise InputError(f"There are {len(methods)} methods; {_MOST} at most can be told apart in a figure.")
    import_extra("scipy.stats")  # for every interval
    bootstrap_interval([0.0, 1.0], confidence)  # its own check
    for name in methods:
        if Path(name).name != name:
            raise InputError(f"A method is called {name!r}; names become file names, so leave out slashes.")
    seeds, ks, shares = check_seeds(seeds), check_ks(ks), check_list("shares", shares)
    # Whatever can be wrong is found before the first text is explained, which may take hours.
    windowed = in_windows(model, tokenizer, max_length)
    encoded = encode_texts(tokenizer, texts, windowed, max_length)
    marked_words = None if rationales is None else _check_rationales(rationales, encoded)
    targets = None
    if not problem.is_single_label:
        all_of_them = check_targets([None] * len(texts), texts, problem)
        asked = targets_of_texts(windowed, tokenizer, encoded, all_of_them, problem, batch_size)
        known = list(check_list("labels", [None] * len(texts) if labels is None else labels))
        golds = check_golds(known, texts, problem)
        places = [place for place, some in enumerate(asked) for _ in some]
        targets = [target for some in asked for target in some]
        texts, encoded = [texts[place] for place in places], [encoded[place] for place in places]
        labels = None if any(gold is None for gold in golds) else [known[place] for place in places]
        marked_words = None if marked_words is None else [marked_words[place] for place in places]
    all_marked = marked_words
    calls = {name: {"method": name, **settings} for name, settings in methods.items()}
    inputs = Faithfulness.count_inputs(len(texts), len(calls) + len(seeds), ks, shares)
    for call in calls.values():
        settings = check_settings(call["method"], **{key: value for key, value in call.items() if key != "method"})
        first = texts[:1] if METHODS[call["method"]].reads else []
        explain(model, tokenizer, first, batch_size=batch_size, seed=seed, max_length=max_length, **call)
        inputs += sum(1 + METHODS[call["method"]].cost(text, settings) for text in encoded)
    with progress_bar("measuring", inputs, progress) as bar:
        faithfulness = Faithfulness(
            scorer or model,
            scorer_tokenizer or tokenizer,
            texts,
            labels,
            seen=[text.seen for text in encoded],
            targets=targets,
            ks=ks,
            shares=shares,
            operator=operator,
            batch_size=batch_size,
            max_length=max_length if scorer is None else None,
            bar=bar,
        )
        if len(faithfulness.rows) < 2:
            raise InputError("Only one text has words; intervals and tests need two or more.")
        baseline = faithfulness.random(seeds)
        values = {
            score: _spread(
                np.mean([result.values[score] for result in baseline.results], 0), faithfulness.rows, len(texts)
            )
            for score in baseline.results[0].values
        }
        if all_marked is not None:
            # As for faithfulness: words that the model did not see cannot be ranked.
            marked_words = [_seen(flags, text.seen) for flags, text in zip(all_marked, encoded, strict=True)]
            values |= _expected_by_chance(marked_words, ks, baseline.seeds)
        seed_means = {
            score: [result.scores[score] for result in baseline.results] for score in baseline.results[0].scores
        }
        random = MethodResult({"seeds": baseline.seeds}, 0.0, 0, values, seed_means)

        results = {}
        for name, call in calls.items():
            made = explain(
                model,
                tokenizer,
                texts,
                target=targets,
                labels=labels,
                batch_size=batch_size,
                seed=seed,
                max_length=max_length,
                bar=bar,
                save_to=None if save_folder is None else Path(save_folder) / f"{name}.jsonl",
                merge=merge,
                **call,
            )
            measured = faithfulness.measure(made, name)
            values = {score: _spread(column, measured.rows, len(texts)) for score, column in measured.values.items()}
            if marked_words is not None:
                values |= _against_rationales([_seen(one.scores, one.seen) for one in made], marked_words, ks)
            seconds = _seconds(made, save_folder, name)
            results[name] = MethodResult(made[0].settings, seconds, measured.n_tied, values, explanations=made)
        bar.update(bar.total - bar.n)  # texts without words
    results[RANDOM] = random
    setup = {
        "model": model_name(model),
        **({} if made[0].correct is None else {"model_accuracy": float(np.mean([bool(one.correct) for one in made]))}),
        **{name: value for name, value in measured.setup.items() if name != "explainer"},
        "random_seeds": baseline.seeds,
        "confidence": confidence,
        "seed": seed,
        "max_length": max_length,
        "versions": {package: version(package) for package in ("hf-vat", "torch", "transformers")},
    }
    if all_marked is not None and marked_words is not None:
        marked = sum(map(sum, all_marked))
        setup |= {"n_marked_words": marked, "n_marked_words_not_seen": marked - sum(map(sum, marked_words))}
    return ExplainerComparison(setup, results, faithfulness.ks, faithfulness.shares, all_marked, confidence)


def _seconds(explanations: Sequence[Explanation], folder: str | PathLike | None, method: str) -> float | None:
    """Mean seconds per text. The files of explanations do not have them, so they are in one beside these."""
    path = None if folder is None else Path(folder) / ".hf_vat_seconds.json"
    known: dict[str, float] = {}
    if path is not None:
        with suppress(FileNotFoundError, ValueError):
            known = parse_json(path.read_text(encoding="utf-8"))
    timed = [explanation.seconds for explanation in explanations if explanation.seconds is not None]
    if timed:
        known[method] = float(np.mean(timed))
        if path is not None:
            with written_beside(path) as partial:
                partial.write_text(json.dumps(known), encoding="utf-8")
    return known.get(method)


def _check_rationales(rationales, encoded: list[EncodedText]) -> list[list[int]]:
    if len(check_list("rationales", rationales)) != len(encoded):
        raise InputError(
            f"There are rationales of {len(rationales)} texts for {len(encoded)} texts; give one for each."
        )
    for row, (flags, text) in enumerate(zip(rationales, encoded, strict=True)):
        if len(flags) != len(text.words):
            raise InputError(
                f"rationales[{row}] has {len(flags)} flags, but text {row} has {len(text.words)} words: "
                f"{[word.text for word in text.words]}. Give one for each, or the text as a list of its words."
            )
        if any(flag not in (0, 1) for flag in flags):
            raise InputError(f"rationales[{row}] is {list(flags)}; every flag must be 0 or 1.")
    return [[int(flag) for flag in flags] for flags in rationales]


def _against_rationales(scores: list, rationales: list, ks: Sequence[int]) -> dict[str, np.ndarray]:
    return {
        **_at_ks(precision_recall_f1_at_k(scores, rationales, ks), ks),
        "token_f1": token_f1(scores, rationales).f1[:, 0],
        "iou_f1": iou_f1(scores, rationales).f1[:, 0],
        "auprc": auprc(scores, rationales),
    }


def _expected_by_chance(rationales: list, ks: Sequence[int], seeds: Sequence[int]) -> dict[str, np.ndarray]:
    """Closed forms under a uniformly random ranking, and random rankings where there is none."""
    drawn = []
    for seed in seeds:
        scores = [np.random.default_rng((seed, row)).random(len(flags)) for row, flags in enumerate(rationales)]
        drawn.append((auprc(scores, rationales), iou_f1(scores, rationales).f1[:, 0]))
    area, spans = np.mean(drawn, 0)
    return {
        **_at_ks(precision_recall_f1_at_k(scores, rationales, ks).expected(), ks),
        "token_f1": token_f1(scores, rationales).expected().f1[:, 0],
        "iou_f1": spans,
        "auprc": area,
    }


def _at_ks(at_k, ks: Sequence[int]) -> dict[str, np.ndarray]:
    columns = {"precision": at_k.precision, "recall": at_k.recall, "f1": at_k.f1}
    return {f"{name}@{k}": column[:, place] for name, column in columns.items() for place, k in enumerate(ks)}


def _seen(values: list, seen: list[bool]) -> list:
    return [value for value, flag in zip(values, seen, strict=True) if flag]


def _spread(column: np.ndarray, rows: np.ndarray, length: int) -> np.ndarray:
    spread = np.full(length, np.nan)
    spread[rows] = column
    return spread
