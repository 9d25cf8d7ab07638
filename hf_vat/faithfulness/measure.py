"""Measure how faithful word rankings are to a scorer, over a whole data set.

    explanations = explain(model, tokenizer, texts, labels=labels)
    faithfulness = Faithfulness(scorer, tokenizer, explanations, ks=(1, 5))
    attention = faithfulness.measure(explanations)
    random = faithfulness.random(seeds=range(5))
    attention.to_dict(), random.to_dict()

The model that explains and the model that is asked (the scorer) are separate; they may be the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from hf_vat.callers import as_classifier
from hf_vat.errors import InputError, check_list, check_texts
from hf_vat.explained import Explained, are_explanations, texts_of
from hf_vat.inference import (
    check_classifier,
    encode_texts,
    model_name,
    predict_outputs,
    progress_bar,
    whole_number,
)
from hf_vat.models.problems import REGRESSION, Problem
from hf_vat.models.words import PAIR, EncodedText
from hf_vat.targets import check_golds, check_targets
from hf_vat.windowed import in_windows

from .kinds import BY_KIND, NEED_GOLD, Outputs, of_kind
from .perturb import Operator, check_ks, random_ranking, rank_words

ERASER_SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
_WINDOW = 4096  # model inputs that are made and run together; bounds what is in memory at a time


@dataclass(frozen=True)
class FaithfulnessResult:
    """Faithfulness of one set of rankings under one scorer.

    Attributes:
        targets: for several labels, or scores, the name of that which each scored text was explained for; else empty.
        setup: what was measured and on which texts, JSON-ready; see [`Faithfulness`].
        rows: positions of the scored texts in `texts`, shape [n_scored].
        values: for each score, by names such as `prob_drop@5` and `area_prob`, its values per text, shape [n_scored],
            for intervals and paired tests.
        n_tied: number of texts of two or more words that all have the same score; these are ranked by position.
        n_emptied: for each K the number of texts that are left without any word when K words are taken out.
    """

    setup: dict
    rows: np.ndarray
    values: dict[str, np.ndarray]
    n_tied: int
    n_emptied: dict[int, int]
    targets: tuple[str, ...] = ()

    @property
    def scores(self) -> dict[str, float]:
        """Means over texts: fractions, not percent."""
        return {name: float(values.mean()) for name, values in self.values.items()}

    def to_dict(self) -> dict:
        """The setup, the counts and the mean scores, ready for JSON."""
        emptied = {f"n_emptied@{k}": count for k, count in self.n_emptied.items()}
        by_target = {"by_target": self.by_target()} if self.targets else {}
        return {**self.setup, "n_tied": self.n_tied, **emptied, **self.scores, **by_target}

    def by_target(self) -> dict[str, dict[str, float]]:
        """Means over the texts of each label, or score, and the mean of these means, under "macro"; empty where each text has
        one class."""
        rows = {name: np.array([one == name for one in self.targets]) for name in sorted(set(self.targets))}
        means = {
            name: {score: float(values[own].mean()) for score, values in self.values.items()}
            for name, own in rows.items()
        }
        if means:
            means["macro"] = {score: float(np.mean([own[score] for own in means.values()])) for score in self.values}
        return means


@dataclass(frozen=True)
class RandomBaseline:
    """Faithfulness of random rankings of the same candidate words, one result for each seed."""

    seeds: list[int]
    results: list[FaithfulnessResult]

    def to_dict(self) -> dict:
        """The setup, the seeds, and for each score its mean, standard deviation (n - 1; null for one seed) and values.

        The values are those of the seeds, in their order.
        """
        report = {**self.results[0].setup, "seeds": self.seeds}
        for name in self.results[0].scores:
            values = [result.scores[name] for result in self.results]
            sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
            report[name] = {"mean": float(np.mean(values)), "sd": sd, "values": values}
        return report


class Faithfulness:
    """A scorer on a set of texts, against which any number of explainers is measured.

    Words that take part (candidates) are those that both the scorer and the explainer see. Words that only the scorer
    sees are taken out of its input before anything is measured, the full text included: else they would stay when only
    the top words should. The scorer reads the full texts once, here.

    Args:
        scorer: a sequence classification model; it is run in eval mode, on its own device. Or what needs no tokenizer beside it;
            see [`hf_vat.callers`].
        tokenizer: the scorer's tokenizer.
        texts: explanations of the texts, from which labels, seen words and targets are taken too; or texts as the user wrote
            them, or as lists of words, or pairs.
        labels: gold class ids, one for each text; those of the explanations, if not given. For several labels as in
            [`explain`](hf_vat.explain); without them the scores that need them are left out. A regression has no use for them.
        targets: for several labels, or scores, which of them is explained of each text, by id or name; as the explanations say,
            or the first that [`explain`](hf_vat.explain) would explain, if not given.
        seen: for each text one flag for each of its words: does the explainer see it? As the explanations say, or all, if
            not given.
            Words are ranked by their scores; those of a regression by their magnitude, since they raise the score or lower
            it.
        ks: numbers of top words to delete and to keep; a text with fewer words has all of them deleted or kept and is
            counted in `n_clamped@K`. The areas are measured if these are 1, 2, …, K.
        shares: shares q of the words, in (0, 1], for comprehensiveness and sufficiency: the top ⌈q·n⌉ of n words.
            [`ERASER_SHARES`] are those of DeYoung et al. (2020).
        operator: how absent words are taken out: "delete", "mask" or "pad", see [`OPERATORS`].
        batch_size: the largest batch that the scorer is given.
        max_length: tokens that the scorer reads; as many as it can, if not given. If it is more, texts are read in windows; see
            [`explain`](hf_vat.explain).
        scorer_name: name in the results; the model's own, if not given.
        progress: show a progress bar for each measurement.
        bar: for jobs that these are parts of, their open bar, which is moved by one for each model input; see
            [`Faithfulness.count_inputs`].

    Attributes:
        rows: positions in `texts` of the texts that are scored. A text without candidates is skipped and counted in
            `n_skipped`, under "no words".
        candidates: for each scored text the positions of its candidate words.
        full: the scorer's probabilities, or scores, on the full texts, shape [n_scored, C].
        targets: for several labels, or scores, the id of that which is explained of each scored text.

    Raises:
        InputError: if there are no texts or no words, lengths do not fit, a label is not a class id of the scorer, a K
            is not a positive whole number, a share not in (0, 1], or the tokenizer lacks a token that the operator
            needs.
    """

    def __init__(
        self,
        scorer,
        tokenizer=None,
        texts: Sequence[str | Sequence[str] | Mapping[str, Any] | Explained] = (),
        labels: Sequence | None = None,
        seen: Sequence[Sequence[bool]] | None = None,
        *,
        targets: Sequence[int | str] | None = None,
        ks: Sequence[int] = (5,),
        shares: Sequence[float] = (),
        operator: str = "delete",
        batch_size: int = 32,
        max_length: int | None = None,
        scorer_name: str | None = None,
        progress: bool = False,
        bar: tqdm | None = None,
    ):
        texts = list(texts) if isinstance(texts, Iterable) and not isinstance(texts, str) else texts
        scorer, tokenizer = as_classifier(scorer, tokenizer)
        scorer = in_windows(scorer, tokenizer, max_length)
        problem = check_classifier(scorer)
        golds: Sequence | None = None
        if isinstance(texts, list) and are_explanations(texts):
            golds = None if labels is not None else [explanation.gold for explanation in texts]
            seen = [explanation.seen for explanation in texts] if seen is None else seen
            targets = [explanation.target for explanation in texts] if targets is None else targets
            texts = [_as_given(explanation) for explanation in texts]
        texts = check_texts(texts)
        if golds is None:
            golds = _golds(labels, texts, problem)
        _check_inputs(texts, golds, shares, problem)
        self.scorer, self.tokenizer, self.problem = scorer, tokenizer, problem
        self.ks = check_ks(ks)
        self.shares = tuple(float(share) for share in shares)
        self.batch_size, self._progress, self._bar = whole_number("batch_size", batch_size, 1), progress, bar
        self._operator = Operator.of(operator, tokenizer, scorer)

        encoded = encode_texts(tokenizer, texts, scorer, max_length)
        if seen is None:
            seen = [text.seen for text in encoded]
        _check_words(seen, "seen", encoded)
        candidates = [_seen_by_both(text, flags) for text, flags in zip(encoded, seen, strict=True)]
        self.rows = np.array([row for row, positions in enumerate(candidates) if positions], dtype=int)
        if not self.rows.size:
            raise InputError(
                f"None of the {len(texts)} texts has a word that scorer and explainer see; nothing to rank."
            )
        self._encoded = encoded
        self.candidates = [candidates[row] for row in self.rows]
        self.labels = _as_array([golds[row] for row in self.rows], problem)
        self.full = self._predict(self.candidates, lambda candidates: np.ones((1, len(candidates))))[:, 0]
        self.targets = self._find_targets(targets, texts)
        sizes = np.array([len(positions) for positions in self.candidates])
        self._setup = {
            "scorer": scorer_name or model_name(scorer),
            "scale": "score" if problem.kind == REGRESSION else "probability",
            "operator": operator,
            "definitions": {name: BY_KIND[problem.kind][name] for name in self._score_names()},
            "ks": list(self.ks),
            "shares": list(self.shares),
            "n_total": len(texts),
            "n_scored": len(self.rows),
            "n_skipped": {"no words": len(texts) - len(self.rows)},
            **{f"n_clamped@{k}": int((sizes < k).sum()) for k in self.ks},
            **self._quality(),
        }

    def _find_targets(self, targets: Sequence[int | str] | None, texts: list) -> np.ndarray:
        """The ids of what is explained of each scored text; of one class per text that which is predicted."""
        if self.problem.is_single_label or targets is None:
            return np.array([self.problem.explained(row)[0] for row in self.full.tolist()])
        found = check_targets(targets, texts, self.problem)
        several = next((row for row, some in enumerate(found) if some is None or len(some) != 1), None)
        if several is not None:
            raise InputError(f"targets[{several}] is {targets[several]!r}; give one label or score for each text.")
        return np.array([some[0] for some in found if some is not None])[self.rows]

    def _quality(self) -> dict[str, float]:
        """How good the scorer is on the full texts, as far as the truth is known."""
        if self.problem.is_single_label:
            return {"accuracy": float((self.full.argmax(-1) == self.labels).mean())}
        if self.labels is None:
            return {}
        if self.problem.kind == REGRESSION:
            return {"rmse": float(np.sqrt(np.square(self.full - self.labels).mean()))}
        decided = self.full >= np.array(self.problem.thresholds)
        return {"accuracy": float((decided == self.labels.astype(bool)).all(-1).mean())}

    def measure(
        self, explanations: Sequence[Explained] | Sequence[Sequence[float]], explainer: str | None = None
    ) -> FaithfulnessResult:
        """Measure the rankings that an explainer's word scores give.

        Args:
            explanations: for each of `texts` (skipped ones too) its explanation; or one score for each of its words, where
                they come from elsewhere. A larger score ranks first; see [`rank_words`].
            explainer: name in the result; for explanations by default their method and model.

        Raises:
            InputError: if explanations are of other texts or of a model that sees other words, there is not one score
                for each word, a score is NaN or not a number, or scores have no name.
        """
        scores = check_list("explanations", explanations)
        if are_explanations(explanations):
            self._check_explanations(explanations)
            first, scores = explanations[0], [explanation.scores for explanation in explanations]
            explainer = explainer or (f"{first.method} of {first.model}" if first.model else first.method)
        if explainer is None:
            raise InputError(
                "Scores say not where they come from; give measure(scores, explainer=...) a name for them."
            )
        _check_words(scores, "scores", self._encoded)
        rankings, n_tied = [], 0
        for row, candidates in zip(self.rows, self.candidates, strict=True):
            try:
                rankings.append(rank_words(self._ranked_by(scores[row]), candidates))
            except InputError as error:
                raise InputError(f"Text {row}: {error}") from None
            n_tied += len(candidates) > 1 and len({float(scores[row][position]) for position in candidates}) == 1
        return self._measure(rankings, explainer, n_tied)

    def _ranked_by(self, scores: Sequence[float]) -> Sequence[float]:
        if self.problem.kind != REGRESSION:
            return scores
        values = np.asarray(scores)
        return np.abs(values) if values.dtype.kind in "iuf" else scores  # others are refused when they are ranked

    def _check_explanations(self, explanations: Sequence[Explained]) -> None:
        _check_count(explanations, "explanations", self._encoded)
        for row, target in zip(self.rows, self.targets, strict=True):
            if not self.problem.is_single_label and explanations[row].target != target:
                raise InputError(
                    f"Explanation {row} is of {self.problem.names[explanations[row].target]!r}, but that of text {row} is measured "
                    f"for {self.problem.names[target]!r}; explain with target=…, one for each text, and give them here as "
                    "targets."
                )
        for row, (explanation, text) in enumerate(zip(explanations, self._encoded, strict=True)):
            if (*texts_of(explanation), explanation.words) != (*text.texts, [word.text for word in text.words]):
                raise InputError(
                    f"Explanation {row} is of {explanation.text[:40]!r} in {len(explanation.words)} words, but text {row} is "
                    f"{text.text[:40]!r} in {len(text.words)} words; give the explanations of the same texts in the same order."
                )
        for row, candidates in zip(self.rows, self.candidates, strict=True):
            if _seen_by_both(self._encoded[row], explanations[row].seen) != candidates:
                raise InputError(
                    f"Explanation {row} is of a model that sees other words than those that take part; give Faithfulness "
                    "these explanations as its texts, or as `seen` the words that all explainers see."
                )

    @staticmethod
    def count_inputs(texts: int, measurements: int, ks: Sequence[int] = (5,), shares: Sequence[float] = ()) -> int:
        """The model inputs of a scorer that reads so many texts and measures so many rankings of their words."""
        return texts * (1 + measurements * 2 * (len(ks) + len(shares)))

    def random(self, seeds: Iterable[int] = range(5)) -> RandomBaseline:
        """Measure random rankings of the same candidates, one set for each seed; see [`random_ranking`].

        A text's ranking depends on the seed, its candidates and its position in `texts`.

        Raises:
            InputError: if there is no seed, or one is no whole number from 0.
        """
        seeds, results = check_seeds(seeds), []
        for seed in seeds:
            rankings = [
                random_ranking(candidates, seed, int(row))
                for row, candidates in zip(self.rows, self.candidates, strict=True)
            ]
            results.append(self._measure(rankings, "random", n_tied=0))
        return RandomBaseline(seeds, results)

    def _score_names(self) -> list[str]:
        areas = len(self.ks) > 1 and self.ks == tuple(range(1, len(self.ks) + 1))
        return [
            name
            for name in BY_KIND[self.problem.kind]
            if self._places(name)[1]
            and (areas or not name.startswith("area"))
            and (self.labels is not None or name not in NEED_GOLD)
        ]

    def _places(self, name: str) -> tuple[slice, list[str]]:
        """Which perturbations a score is of, those of numbers of words or after them those of shares, and their names."""
        if name.endswith(("ness", "sufficiency")):
            return slice(len(self.ks), None), [f"{share:g}" for share in self.shares]
        return slice(len(self.ks)), [str(k) for k in self.ks]

    def _measure(self, rankings: list[list[int]], explainer: str, n_tied: int) -> FaithfulnessResult:
        def without_and_with(ranking: list[int]) -> np.ndarray:
            counts = np.array([min(k, len(ranking)) for k in self.ks] + [_count(q, len(ranking)) for q in self.shares])
            top = np.arange(len(ranking)) < counts[:, None]  # [K + Q, n], in the order of the ranking
            return np.concatenate([~top, top])

        probabilities = self._predict(rankings, without_and_with)
        probabilities = probabilities.reshape(len(rankings), 2, len(self.ks) + len(self.shares), -1)
        deleted, kept = probabilities[:, 0], probabilities[:, 1]  # [n_scored, K + Q, classes]
        values: dict[str, np.ndarray] = {}
        functions = of_kind(self.problem)
        for name in self._score_names():
            part, places = self._places(name)
            column = functions[name](Outputs(self.full, deleted[:, part], kept[:, part], self.labels, self.targets))
            means = column.ndim == 1
            values |= {name: column} if means else dict(zip([f"{name}@{at}" for at in places], column.T, strict=True))
        setup = {"explainer": explainer, **self._setup}
        sizes = np.array([len(ranking) for ranking in rankings])
        n_emptied = {k: int((sizes <= k).sum()) for k in self.ks}
        names = () if self.problem.is_single_label else tuple(self.problem.names[target] for target in self.targets)
        return FaithfulnessResult(setup, self.rows, values, n_tied, n_emptied, names)

    def _predict(self, rankings: list[list[int]], kept) -> np.ndarray:
        """The scorer's probabilities, shape [n_scored, S, classes], on perturbations of each scored text.

        Args:
            rankings: for each scored text its candidate words, in an order.
            kept: from such an order to S boolean rows: which of these words stay. All other words go.
        """
        probabilities, inputs = [], []
        with progress_bar("faithfulness", len(rankings) * len(kept(rankings[0])), self._progress, self._bar) as bar:
            for row, ranking in zip(self.rows, rankings, strict=True):
                flags = kept(ranking)
                words = np.zeros((len(flags), len(self._encoded[row].words)), dtype=bool)
                words[:, ranking] = flags
                inputs += self._operator.keep(self._encoded[row], words)
                if len(inputs) >= _WINDOW or row == self.rows[-1]:
                    found = predict_outputs(self.scorer, self.tokenizer, inputs, self.batch_size)
                    probabilities.append(found.reshape(-1, len(flags), found.shape[1]))
                    bar.update(len(inputs))
                    inputs = []
        return np.concatenate(probabilities)


def check_seeds(seeds: Iterable[int]) -> list[int]:
    """The seeds of random rankings.

    Raises:
        InputError: if there is no seed, or one is no whole number from 0.
    """
    if not isinstance(seeds, Iterable):
        raise InputError(f"seeds is {seeds!r}; give a list of whole numbers, such as range(5).")
    seeds = [whole_number(f"seeds[{place}]", seed, 0) for place, seed in enumerate(seeds)]
    if not seeds:
        raise InputError("No seeds were given for the random baseline; give one or more, such as range(5).")
    return seeds


def _as_given(explanation: Explained) -> Any:
    """The text as it was explained: words that it was split into already are joined by single spaces."""

    def as_given(text: str, words: list[str]) -> str | list[str]:
        return words if " ".join(words) == text else text

    if explanation.text_pair is None:
        return as_given(explanation.text, explanation.words)
    words = explanation.words[: explanation.pair_start], explanation.words[explanation.pair_start :]
    return dict(zip(PAIR, map(as_given, texts_of(explanation), words), strict=True))


def _golds(labels, texts: list, problem: Problem) -> list:
    if labels is None and problem.is_single_label:
        raise InputError("There are no labels; give one class id for each text, or explanations that have gold labels.")
    if problem.is_single_label or labels is None:
        return list(check_list("labels", [None] * len(texts) if labels is None else labels))
    return check_golds(labels, texts, problem)


def _as_array(golds: list, problem: Problem) -> np.ndarray | None:
    """Class ids [N], or for each label a flag, or scores, [N, C]; None if one of them is not known."""
    if problem.is_single_label:
        return np.asarray(golds, dtype=int)
    if any(gold is None for gold in golds):
        return None
    if problem.kind == REGRESSION:
        return np.asarray(golds, dtype=float).reshape(len(golds), -1)
    flags = np.zeros((len(golds), len(problem.names)))
    for row, labels in enumerate(golds):
        flags[row, labels] = 1
    return flags


def _seen_by_both(text: EncodedText, flags: Sequence[bool]) -> list[int]:
    return np.flatnonzero(np.logical_and(text.seen, flags)).tolist()


def _count(share: float, words: int) -> int:
    return max(1, ceil(share * words - 1e-9))  # 0.1 · 30 is a little above 3


def _check_inputs(texts, labels, shares, problem: Problem) -> None:
    if not texts:
        raise InputError("There are no texts; give a list of one or more, for example ['a good film'].")
    if len(check_list("labels", labels)) != len(texts):
        raise InputError(f"There are {len(labels)} labels for {len(texts)} texts; give one class id for each text.")
    classes = len(problem.names)
    for row, label in enumerate(np.asarray(labels).tolist() if problem.is_single_label else []):
        if not isinstance(label, int) or isinstance(label, bool) or not 0 <= label < classes:
            raise InputError(
                f"Label {label!r} in row {row} is no class id of the scorer; allowed are the integers 0 to "
                f"{classes - 1}. Map names with model.config.label2id and leave out texts without a gold label."
            )
    for share in check_list("shares", shares):
        if not isinstance(share, int | float | np.number) or not 0 < share <= 1:
            raise InputError(f"shares has {share}; give shares of the words above 0 and at most 1, such as 0.2.")


def _check_count(values, name: str, encoded) -> None:
    if len(check_list(name, values)) != len(encoded):
        raise InputError(f"{name} has {len(values)} entries for {len(encoded)} texts; give one for each text.")


def _check_words(values, name: str, encoded) -> None:
    _check_count(values, name, encoded)
    for row, (entries, text) in enumerate(zip(values, encoded, strict=True)):
        if len(check_list(f"{name}[{row}]", entries)) != len(text.words):
            raise InputError(
                f"{name}[{row}] has {len(entries)} entries, but text {row} has {len(text.words)} words; give one for "
                "each word of hf_vat.models.words.split_words."
            )
