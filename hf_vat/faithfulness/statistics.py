"""How sure a mean over texts is, whether two methods or two classifiers differ on the same texts, and whether the
importance of words follows their frequency.

Resampling has a generator of its own: the same values and the same seed give the same result, and the global random
state is not touched. scipy is needed.
"""

from typing import NamedTuple

import numpy as np

from hf_vat.errors import InputError, import_extra, shown
from hf_vat.inference import whole_number


class Interval(NamedTuple):
    """A mean over texts and its bootstrap confidence interval."""

    mean: float
    low: float
    high: float


class Comparison(NamedTuple):
    """Mean of a - b over texts, its bootstrap confidence interval, and the two-sided p-value of no difference."""

    difference: float
    low: float
    high: float
    p_value: float


class McNemarResult(NamedTuple):
    """Texts that only a or only b classifies correctly, and the two-sided p-value of no difference."""

    only_a: int
    only_b: int
    p_value: float


class Correlation(NamedTuple):
    """A correlation in [-1, 1] and its bootstrap confidence interval; NaN if one of the two never changes."""

    value: float
    low: float
    high: float


class FrequencyCorrelation(NamedTuple):
    """How importance goes with frequency over `n_words` words; 0 = not at all, 1 = frequent words matter more.

    Pearson's r with the counts and with their logarithms, and Spearman's rank correlation, the same for both.
    """

    pearson: Correlation
    pearson_log: Correlation
    spearman: Correlation
    n_words: int


def bootstrap_interval(values, confidence: float = 0.95, n_resamples: int = 1000, seed: int = 0) -> Interval:
    """Percentile bootstrap interval of a mean over texts.

    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapter 13. It is narrower than it should be for
    fewer than about 20 texts.

    Args:
        values: one number for each text, shape [N], at least two.
        confidence: share of such intervals that shall hold the true mean, between 0 and 1.
        n_resamples: how often N texts are drawn with replacement.
        seed: of the generator, at least 0.

    Raises:
        InputError: if there are fewer than two values, one is not finite, or an option is out of range.
        MissingExtra: if scipy is not installed.
    """
    values = _numbers(values, "values")
    low, high, _ = _bootstrap(values, confidence, n_resamples, seed)
    return Interval(float(values.mean()), low, high)


def paired_bootstrap(a, b, confidence: float = 0.95, n_resamples: int = 1000, seed: int = 0) -> Comparison:
    """Compare the means of two scores of the same texts by resampling texts.

    The p-value is the smallest 1 - confidence at which the interval does not hold 0: twice the smaller share of
    resampled differences <= 0 or >= 0, at most 1. Each share is (count + 1) / (n_resamples + 1), so no p-value is 0
    (Davison and Hinkley 1997, "Bootstrap Methods and their Application", section 4.2).

    Args:
        a, b: one number for each text, shape [N], texts in the same order; the other arguments as in
            [`bootstrap_interval`].

    Raises:
        InputError: if lengths differ, there are fewer than two texts, a value is not finite, or an option is out of
            range.
        MissingExtra: if scipy is not installed.
    """
    a, b = _numbers(a, "a"), _numbers(b, "b")
    _check_pair(a, b)
    differences = a - b
    low, high, resampled = _bootstrap(differences, confidence, n_resamples, seed)
    return Comparison(float(differences.mean()), low, high, _p_value(resampled))


def paired_bootstrap_over_runs(a, b, confidence: float = 0.95, n_resamples: int = 1000, seed: int = 0) -> Comparison:
    """[`paired_bootstrap`] for several training runs: runs are resampled too, so that their spread is in interval and p.

    Of R runs R - 1 are drawn each time, which gives the mean over runs its unbiased variance (Rao and Wu 1988,
    "Resampling inference with complex survey data", section 2); of N texts N. With one run only texts are resampled, and
    the result holds for that run. A run's own noise in a text is counted twice, in the runs and in the texts, so the interval is
    too wide, up to 1.7 times, where runs differ in nothing else (Owen 2007, "The pigeonhole bootstrap").

    Args:
        a, b: one number for each run and text, shape [R, N], runs and texts in the same order; the other arguments as in
            [`bootstrap_interval`].

    Raises:
        InputError, MissingExtra: as [`paired_bootstrap`].
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.ndim != 2 or a.shape != b.shape:
        raise InputError(f"a has shape {a.shape} and b {b.shape}; give both one row for each run, of the same texts.")
    differences = a - b
    mean = _numbers(differences.mean(0), "a - b").mean()
    runs, texts = differences.shape
    if runs == 1:
        return paired_bootstrap(a[0], b[0], confidence, n_resamples, seed)
    _check_options(confidence, n_resamples, seed)
    rng = np.random.default_rng(seed)
    resampled = np.empty(n_resamples)
    for number in range(n_resamples):
        drawn = differences[rng.integers(runs, size=runs - 1)].mean(0)
        resampled[number] = drawn[rng.integers(texts, size=texts)].mean()
    low, high = sorted(np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist())
    return Comparison(float(mean), low, high, _p_value(resampled))


def mcnemar(a, b) -> McNemarResult:
    """Exact McNemar test: do two classifiers differ in accuracy on the same texts?

    The binomial test with probability 1/2 on the texts that only one of them gets right (McNemar 1947); p = 1 if there
    are none.

    Args:
        a, b: for each text whether the classifier is correct, booleans or 0/1, shape [N].

    Raises:
        InputError: if lengths differ, there are no texts, or a value is not a boolean or 0/1.
        MissingExtra: if scipy is not installed.
    """
    stats = import_extra("scipy.stats")
    a, b = _flags(a, "a"), _flags(b, "b")
    _check_pair(a, b)
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    p_value = float(stats.binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0
    return McNemarResult(only_a, only_b, p_value)


def frequency_correlation(
    counts, importance, confidence: float = 0.95, n_resamples: int = 1000, seed: int = 0
) -> FrequencyCorrelation:
    """Correlation of the global importance of words with their frequency.

    Chen and Ji (EMNLP 2020, table 11 in appendix F) have |r| < 0.1 between frequency and mask probability on all data
    sets, and do not say whether of counts or of their logarithms. Counts of words are so skewed that a few of them decide r; its interval shows it.
    Words are resampled (percentile bootstrap), as intervals from a formula take both for normally distributed.

    Args:
        counts: how often each word occurs, at least 1, shape [W], at least three words.
        importance: of each word, shape [W]; the other arguments as in [`bootstrap_interval`].

    Raises:
        InputError: if lengths differ, there are fewer than three words, a number is not finite, a count is less than 1,
            or an option is out of range.
        MissingExtra: if scipy is not installed.
    """
    stats = import_extra("scipy.stats")
    counts, importance = _numbers(counts, "counts"), _numbers(importance, "importance")
    if len(counts) != len(importance) or len(counts) < 3:
        raise InputError(
            f"There are {len(counts)} counts and {len(importance)} importances; give one of each per word, for three words "
            "or more."
        )
    if counts.min() < 1:
        raise InputError(f"A count is {counts.min():g}; leave out words that do not occur (min_count=1).")
    _check_options(confidence, n_resamples, seed)

    def correlations(rows: np.ndarray) -> list[float]:
        x, y = counts[rows], importance[rows]
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            return [np.nan] * 3
        pearson = [np.corrcoef(values, y)[0, 1] for values in (x, np.log(x))]
        return [*pearson, np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1]]

    words = np.arange(len(counts))
    values = correlations(words)
    if np.isnan(values).any():
        unknown = Correlation(np.nan, np.nan, np.nan)
        return FrequencyCorrelation(unknown, unknown, unknown, len(words))
    rng = np.random.default_rng(seed)
    resampled: list[list[float]] = []
    while len(resampled) < n_resamples:
        drawn = correlations(rng.choice(words, len(words)))
        if not np.isnan(drawn).any():  # of few words all drawn may be the same one, which says nothing
            resampled.append(drawn)
    bounds = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0).T
    pearson, pearson_log, spearman = (
        Correlation(float(value), float(low), float(high)) for value, (low, high) in zip(values, bounds, strict=True)
    )
    return FrequencyCorrelation(pearson, pearson_log, spearman, len(words))


def _p_value(resampled: np.ndarray) -> float:
    smaller_tail = min((resampled <= 0).sum(), (resampled >= 0).sum())
    return min(1.0, 2 * (int(smaller_tail) + 1) / (len(resampled) + 1))


def _check_options(confidence: float, n_resamples: int, seed: int) -> None:
    whole_number("seed", seed, 0)
    numbers = isinstance(confidence, int | float | np.number) and isinstance(n_resamples, int | np.integer)
    if not numbers or not 0 < confidence < 1 or not 1 <= n_resamples <= 10**6:
        raise InputError(
            f"confidence is {confidence!r} and n_resamples is {n_resamples!r}; give a confidence between 0 and 1, for "
            "example 0.95, and one resample or more."
        )


def _bootstrap(values: np.ndarray, confidence: float, n_resamples: int, seed: int) -> tuple[float, float, np.ndarray]:
    _check_options(confidence, n_resamples, seed)
    result = import_extra("scipy.stats").bootstrap(
        (values,),
        np.mean,
        vectorized=True,
        method="percentile",
        confidence_level=confidence,
        n_resamples=n_resamples,
        batch=100,  # bounds memory; the draws are the same
        rng=np.random.default_rng(seed),
    )
    # Of equal values the quantiles can differ in the last digit, and then in either direction.
    low, high = sorted(map(float, result.confidence_interval))
    return low, high, result.bootstrap_distribution


def _numbers(values, name: str) -> np.ndarray:
    try:
        values = np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {shown(values)}; give a flat list of numbers.") from None
    if values.ndim != 1 or values.size < 2:
        raise InputError(
            f"{name} has shape {values.shape}; give a flat list of one number for each of two texts or more."
        )
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise InputError(
            f"{name}[{wrong[0]}] is {values[wrong[0]]}; leave out texts without a value, in both lists, and count them."
        )
    return values


def _flags(values, name: str) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 1 or not values.size:
        raise InputError(
            f"{name} has shape {values.shape}; give a flat list of one 0 or 1 for each of one text or more."
        )
    wrong = np.flatnonzero(~np.isin(values, (0, 1)))
    if wrong.size:
        raise InputError(
            f"{name}[{wrong[0]}] is {values[wrong[0]]}; give for each text whether it is classified correctly: 0 or 1."
        )
    return values.astype(bool)


def _check_pair(a: np.ndarray, b: np.ndarray) -> None:
    if len(a) != len(b):
        raise InputError(f"a has {len(a)} entries and b has {len(b)}; give one for each of the same texts.")
