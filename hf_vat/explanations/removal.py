"""Occlusion, LIME and Shapley values: what becomes of the probability, or score, when words are taken out.

The three differ in the subsets of words that they ask for and in what they make of the answers. The answers come from
`_ask`, which runs the subsets of all texts of a window together, sorted by length, equal inputs once.

Captum's LIME and Shapley explain one text per call and, by default, run one perturbation at a time; its Shapley values
add up in float32, so to 1e-7 only. What is left beside the batching, Ridge (scikit-learn's, as in Captum) and means in
float64, is done here; the tests compare it with Captum.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hf_vat.errors import InputError, import_extra
from hf_vat.faithfulness.perturb import Operator
from hf_vat.inference import predict_outputs
from hf_vat.models.words import EncodedText

from .analysis import Analysis, WordScores, text_generator

LIME_PENALTY = 1.0
EXACT_SHAPLEY_LIMIT = 12  # words; 2^12 = 4,096 subsets
_ROWS = 4096  # subsets that are turned into token ids at a time


def occlusion(analysis: Analysis) -> list[WordScores]:
    """f(all words) - f(all but this one). Zeiler and Fergus (2014); "leave one out" in Li et al. (2016)."""
    subsets = [~np.eye(n + 1, n, k=-1, dtype=bool) for n in _word_counts(analysis)]  # row 0 keeps every word
    return [
        _scores(text, values[0] - values[1:])
        for text, values in zip(analysis.texts, _ask(analysis, subsets), strict=True)
    ]


def lime(analysis: Analysis) -> list[WordScores]:
    """Ridge regression of f on random subsets of words, weighted by their nearness to the full text.

    As in the authors' package for text with `bow=False`: a subset lacks 1 to n words, each number equally likely; its
    weight is sqrt(exp(-D²/25²)) with D = 100 · cosine distance to the full text; the ridge penalty is 1. All words are
    kept as features. Ribeiro et al. (2016), "Why Should I Trust You?", eq. 1 and algorithm 1.

    Details: `intercept`, `local_prediction` (what the linear model says for the full text) and `r2`, the weighted share
    of variance that it explains.
    """
    ridge = import_extra("sklearn.linear_model").Ridge
    n_samples = analysis.settings["n_samples"]
    drawn = _for_each(analysis, lambda text, n: lime_subsets(text, n_samples, analysis.seed))
    results = []
    for text, (kept, weights), values in zip(
        analysis.texts, drawn, _ask(analysis, [kept for kept, _ in drawn]), strict=True
    ):
        if not kept.shape[1]:
            results.append(_scores(text, np.zeros(0)))
            continue
        linear = ridge(alpha=LIME_PENALTY).fit(kept, values, sample_weight=weights)
        constant = np.ptp(values) == 0  # R² is 0 / 0
        details = {
            "intercept": float(linear.intercept_),
            "local_prediction": float(linear.intercept_ + linear.coef_.sum()),
            "r2": 1.0 if constant else float(linear.score(kept, values, sample_weight=weights)),
        }
        results.append(_scores(text, linear.coef_, details))
    return results


def lime_subsets(text: EncodedText, n_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The subsets of a text's seen words that [`lime`] asks for, [S, n], and their weights [S]; the first has all words."""
    generator, n = text_generator(seed, text), sum(text.seen)
    lacking = np.concatenate([[0], generator.integers(1, n + 1, n_samples - 1)]) if n else np.zeros(n_samples)
    kept = generator.random((n_samples, n)).argsort(1).argsort(1) >= lacking[:, None]
    distance = 100 * (1 - np.sqrt(kept.sum(1) / max(n, 1)))  # the cosine with a vector of ones is sqrt(k / n)
    return kept, np.sqrt(np.exp(-(distance**2) / 25**2))


def shapley(analysis: Analysis) -> list[WordScores]:
    """Mean of f(words before it, and it) - f(words before it), over orders of the words.

    Sampled: `n_samples` random orders (Castro et al. 2009, algorithm 1), see [`random_orders`]. Exact: over all orders, by the
    subsets that they begin with (Shapley 1953). Either way the scores add up to f(all words) - f(no word).

    Details: `base_value`, f(no word); of two pairs of orders or more `standard_error`, the root of the mean over words of the
    squared standard error, as pairs differ.
    """
    exact = analysis.settings["exact"]
    counts = _word_counts(analysis)
    if exact:
        subsets = [_all_subsets(n) for n in counts]
    else:

        def drawn(text: EncodedText, n: int) -> tuple[np.ndarray, np.ndarray]:
            rank = random_orders(text_generator(analysis.seed, text), analysis.settings["n_samples"], n)
            # for each order [P, n]: no word, the first, the first two, ... [P, n + 1, n]
            return rank, (rank[:, None] < np.arange(n + 1)[:, None]).reshape(len(rank) * (n + 1), n)

        both = _for_each(analysis, drawn)
        ranks, subsets = [rank for rank, _ in both], [kept for _, kept in both]
    results = []
    for place, (text, n, values) in enumerate(zip(analysis.texts, counts, _ask(analysis, subsets), strict=True)):
        details = {"base_value": float(values[0])}
        if exact:
            scores = _exact_shapley(values, n)
        else:
            gains = np.diff(values.reshape(-1, n + 1), axis=1)  # [P, n], in each order's own
            gains = np.take_along_axis(gains, ranks[place], 1)
            scores, pairs = gains.mean(0), len(gains) // 2
            if pairs > 1 and n:
                of_pairs = gains[: 2 * pairs].reshape(pairs, 2, n).mean(1)
                details["standard_error"] = float(np.sqrt(of_pairs.var(0, ddof=1).mean() / pairs))
        results.append(_scores(text, scores, details))
    return results


def random_orders(generator: np.random.Generator, count: int, n: int) -> np.ndarray:
    """Random orders of n words: the rank of each word in each, [count, n].

    Each is uniform, and they come in pairs, an order and its reverse; of n - 1 pairs the vectors that are sorted are orthogonal to
    each other, so that the orders are as different as they can be (Mitchell et al., JMLR 2022, §4.2). Against exact values
    the mean squared error is that of independent orders times a half or less from a dozen orders on
    (`benchmarks/orders.py`).
    """
    vectors: list[np.ndarray] = []
    while 2 * len(vectors) < count:
        drawn = generator.standard_normal((n, min((count - 2 * len(vectors) + 1) // 2, max(n - 1, 1))))
        if n > 1:
            drawn, upper = np.linalg.qr(drawn - drawn.mean(0))
            drawn = drawn * np.sign(np.diag(upper))  # as likely as their opposites: QR has signs of its own
        vectors += list(drawn.T)
    pairs = [one for vector in vectors for one in (vector, -vector)]
    return np.array(pairs[:count]).reshape(count, n).argsort(1).argsort(1)


def shapley_cost(text: EncodedText, settings: dict) -> int:
    """The number of subsets that Shapley values need.

    Raises:
        InputError: if exact values are asked for a text with too many words.
    """
    n = sum(text.seen)
    if not settings["exact"]:
        return settings["n_samples"] * (n + 1)
    if n > EXACT_SHAPLEY_LIMIT:
        raise InputError(
            f"Exact Shapley values of {n} words need 2^{n} model inputs; the limit is {EXACT_SHAPLEY_LIMIT} words. Use "
            "sampled ones (exact=False, n_samples=25), or shorter texts."
        )
    return 2**n


def _for_each(analysis: Analysis, make: Callable[[EncodedText, int], Any]) -> list:
    """What is made of each text and the number of its words that are seen; once for a text that comes several times in a row."""
    found: list = []
    for place, text in enumerate(analysis.texts):
        again = place and text is analysis.texts[place - 1]
        found.append(found[-1] if again else make(text, sum(text.seen)))
    return found


def _word_counts(analysis: Analysis) -> list[int]:
    """Only words that the model sees are features."""
    return [sum(text.seen) for text in analysis.texts]


def _scores(text: EncodedText, values: np.ndarray, details: dict | None = None) -> WordScores:
    scores = np.zeros(len(text.words))
    scores[text.seen] = values
    return WordScores(scores.tolist(), details or {})


def _ask(analysis: Analysis, subsets: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The target's probability, or score, on subsets of each text's seen words.

    A text that comes several times in a row, with a target each, is asked once.

    Args:
        subsets: for each text a boolean array [S, n]: which of its n seen words are kept.

    Returns:
        For each text a float64 array [S].
    """
    operator = Operator.of(analysis.settings["operator"], analysis.tokenizer, analysis.model)
    answers: list[np.ndarray] = []
    pending: list[tuple[int, slice, list[list[int]]]] = []

    def run() -> None:
        inputs = [ids for _, _, rows in pending for ids in rows]
        outputs = predict_outputs(analysis.model, analysis.tokenizer, inputs, analysis.batch_size, analysis.bar)
        start = 0
        for place, part, rows in pending:
            answers[place][part] = outputs[start : start + len(rows)]
            start += len(rows)
        pending.clear()

    waiting = 0
    for place, (text, kept) in enumerate(zip(analysis.texts, subsets, strict=True)):
        if place and text is analysis.texts[place - 1]:
            answers.append(answers[-1])
            continue
        answers.append(np.empty((len(kept), len(analysis.problem.names))))
        for start in range(0, len(kept), _ROWS):
            part = slice(start, start + _ROWS)
            words = np.zeros((len(kept[part]), len(text.words)), dtype=bool)
            words[:, text.seen] = kept[part]
            pending.append((place, part, operator.keep(text, words)))
            waiting += len(words)
            if waiting >= _ROWS:
                run()
                waiting = 0
    run()
    return [values[:, target] for values, target in zip(answers, analysis.targets, strict=True)]


def _all_subsets(n: int) -> np.ndarray:
    """[2^n, n]; row s has the words whose bit is set in s."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1


def _exact_shapley(values: np.ndarray, n: int) -> np.ndarray:
    codes = np.arange(2**n)
    sizes = _all_subsets(n).sum(1)
    # |S|! (n - |S| - 1)! / n! for a subset S that a word joins
    weights = np.ones(n)
    for size in range(1, n):
        weights[size] = weights[size - 1] * size / (n - size)
    weights /= max(n, 1)
    scores = np.zeros(n)
    for word in range(n):
        without = codes[codes >> word & 1 == 0]
        scores[word] = (weights[sizes[without]] * (values[without | 1 << word] - values[without])).sum()
    return scores
