"""Correlation of importance and frequency: by hand, against scipy, and how its intervals hold."""

import math

import numpy as np
import pytest
from checks import refuses
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hf_vat.faithfulness.statistics import frequency_correlation


def test_three_words_by_hand():
    # Deviations of the counts -36, -27, 63 and of the importance 1, 0, -1: r = -99 / sqrt(5994 * 2)
    result = frequency_correlation([1, 10, 100], [3, 2, 1])
    assert result.pearson.value == pytest.approx(-99 / math.sqrt(5994 * 2))
    assert result.pearson_log.value == pytest.approx(-1)
    assert result.spearman.value == pytest.approx(-1)
    assert result.n_words == 3


def test_ties_by_hand():
    # Ranks 2, 2, 2, 4 less one half and 1, 2, 3, 4: covariance (-0.5)(-1.5) + (-0.5)(-0.5) + (-0.5)(0.5) + 1.5 * 1.5 = 3
    result = frequency_correlation([1, 1, 1, 5], [0.1, 0.2, 0.3, 0.4])
    assert result.spearman.value == pytest.approx(3 / math.sqrt(3 * 5))


@pytest.mark.filterwarnings("error")
@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.integers(-1000, 1000)), min_size=3, max_size=20),
    st.randoms(use_true_random=False),
)
def test_values_are_those_of_scipy_and_intervals_lie_within_the_limits(words, random):
    counts, importance = zip(*words, strict=True)
    result = frequency_correlation(counts, importance, n_resamples=20)
    if len(set(counts)) == 1 or len(set(importance)) == 1:
        assert all(math.isnan(number) for found in result[:3] for number in found)
        return
    expected = [
        stats.pearsonr(counts, importance).statistic,
        stats.pearsonr(np.log(counts), importance).statistic,
        stats.spearmanr(counts, importance).statistic,
    ]
    assert [found.value for found in result[:3]] == pytest.approx(expected, abs=1e-9)
    assert all(-1 <= found.low <= found.high <= 1 for found in result[:3])
    words = random.sample(words, len(words))
    shuffled = frequency_correlation(*zip(*words, strict=True), n_resamples=1)
    assert [found.value for found in shuffled[:3]] == pytest.approx(expected, abs=1e-9)


def test_intervals_hold_the_true_correlation_about_as_often_as_they_say():
    generator = np.random.default_rng(0)
    held = np.zeros(3)
    for seed in range(60):
        counts = np.exp(generator.normal(3, 1, 80)) + 1
        result = frequency_correlation(counts, generator.uniform(0, 1, 80), confidence=0.9, n_resamples=100, seed=seed)
        held += [found.low <= 0 <= found.high for found in result[:3]]
    assert (held / 60 >= 0.75).all() and (held / 60 <= 0.99).all()


def test_the_interval_follows_confidence_and_seed_and_leaves_random_state_alone():
    generator = np.random.default_rng(1)
    counts, importance = generator.zipf(1.7, 200), generator.uniform(0, 1, 200)
    before = np.random.get_state()[1].copy()
    wide = frequency_correlation(counts, importance, n_resamples=100)
    assert wide == frequency_correlation(counts.tolist(), importance.tolist(), n_resamples=100)
    narrow = frequency_correlation(counts, importance, confidence=0.5, n_resamples=100)
    assert wide != frequency_correlation(counts, importance, n_resamples=100, seed=1)
    assert (np.random.get_state()[1] == before).all()
    for inner, outer in zip(narrow[:3], wide[:3], strict=True):
        assert outer.low < inner.low < inner.high < outer.high


test_words_are_checked = refuses(
    (
        lambda: frequency_correlation([1, 2], [1, 2]),
        "2 counts and 2 importances; give one of each per word, for three words or more",
    ),
    (lambda: frequency_correlation([1, 2, 3], [1, 2]), "3 counts and 2 importances"),
    (
        lambda: frequency_correlation([0, 1, 2], [1, 2, 3]),
        r"A count is 0; leave out words that do not occur \(min_count=1\)",
    ),
    (lambda: frequency_correlation([1, 2, 3], [1, 2, np.nan]), r"importance\[2\] is nan"),
    (lambda: frequency_correlation([1, 2, np.inf], [1, 2, 3]), r"counts\[2\] is inf"),
    (lambda: frequency_correlation([[1, 2, 3]], [1, 2, 3]), "counts has shape"),
    (lambda: frequency_correlation([1, 2, 3], [1, 2, 4], confidence=1), "confidence is 1"),
)
