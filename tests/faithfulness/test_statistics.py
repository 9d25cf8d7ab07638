import subprocess
import sys

import numpy as np
import pytest
from checks import refuses
from hypothesis import example, given
from hypothesis import strategies as st

from hf_vat.errors import import_extra
from hf_vat.faithfulness.statistics import bootstrap_interval, mcnemar, paired_bootstrap, paired_bootstrap_over_runs


def test_interval_of_zeros_and_ones_follows_the_binomial_distribution():
    # A resampled sum of 100 values, half of them 1, is Binomial(100, 1/2): 2.5 % lie below 40 or 41, above 59 or 60.
    interval = bootstrap_interval([0, 1] * 50, n_resamples=4000)
    assert interval.mean == 0.5
    assert interval.low == pytest.approx(0.40, abs=0.011)
    assert interval.high == pytest.approx(0.60, abs=0.011)
    narrow = bootstrap_interval([0, 1] * 50, confidence=0.5)
    assert interval.low < narrow.low < 0.5 < narrow.high < interval.high


def test_interval_covers_the_mean_about_as_often_as_it_says():
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        interval = bootstrap_interval(generator.normal(1, 2, 40), confidence=0.9, n_resamples=200)
        covered += interval.low <= 1 <= interval.high
    assert 0.82 <= covered / 200 <= 0.96


def test_pairing_removes_what_the_texts_have_in_common():
    generator = np.random.default_rng(1)
    difficulty, noise = generator.normal(0, 10, 50), generator.normal(0, 0.1, 50)
    result = paired_bootstrap(difficulty + 0.2 + noise, difficulty)
    assert 0 < result.low < 0.2 < result.high < 0.3
    assert result.p_value == 2 / 1001  # no resample has the other sign
    mirrored = paired_bootstrap(difficulty, difficulty + 0.2 + noise)
    assert (mirrored.difference, mirrored.p_value) == (pytest.approx(-result.difference), result.p_value)


def test_p_value_of_two_texts_by_hand():
    # Differences 1 and -1: a resample has mean 1, 0, 0 or -1, each with probability 1/4, so both tails hold about 3/4.
    assert paired_bootstrap([1, 0], [0, 1]).p_value == 1
    # Differences 3 and -1: means 3, 1, 1, -1; the tail below 0 holds 1/4.
    assert paired_bootstrap([3, 0], [0, 1], n_resamples=4000).p_value == pytest.approx(0.5, abs=0.04)


@pytest.mark.filterwarnings("error")
def test_constant_differences_have_an_interval_without_width():
    assert paired_bootstrap([0.5, 0.75, 1.0], [0.25, 0.5, 0.75]) == (0.25, 0.25, 0.25, 2 / 1001)
    assert paired_bootstrap([1, 2, 3], [1, 2, 3]) == (0, 0, 0, 1)
    mean, low, high = bootstrap_interval([0.1] * 7)
    assert mean == low == high == pytest.approx(0.1)


def test_mcnemar_by_hand():
    # 10 against 2: twice the chance of at most 2 heads in 12 throws, 2 * (1 + 12 + 66) / 4096
    a = [True] * 10 + [False] * 2 + [True] * 5 + [False] * 3
    b = [False] * 10 + [True] * 2 + [True] * 5 + [False] * 3
    assert mcnemar(a, b) == (10, 2, pytest.approx(158 / 4096))
    assert mcnemar(b, a) == (2, 10, pytest.approx(158 / 4096))
    assert mcnemar([1, 0, 1], [1, 0, 1]) == (0, 0, 1.0)


def test_seed_decides_and_the_global_generator_is_left_alone():
    values = np.linspace(0, 1, 30) ** 3
    state = np.random.get_state()[1].tolist()
    first = paired_bootstrap(values, values[::-1] ** 2)
    assert np.random.get_state()[1].tolist() == state
    np.random.random()
    assert paired_bootstrap(values, values[::-1] ** 2) == first
    assert paired_bootstrap(values, values[::-1] ** 2, seed=1).low != first.low


test_bad_input_is_named = refuses(
    (lambda: bootstrap_interval([]), r"values has shape \(0,\)"),
    (lambda: bootstrap_interval([1.0]), "two texts or more"),
    (lambda: bootstrap_interval([[1.0, 2.0]]), "flat list"),
    (lambda: bootstrap_interval([0, 1, np.nan]), r"values\[2\] is nan"),
    (lambda: bootstrap_interval([0, 1], confidence=95), "confidence is 95"),
    (lambda: bootstrap_interval([0, 1], n_resamples=0), "n_resamples is 0"),
    (lambda: paired_bootstrap([0, 1], [0, 1, 1]), "a has 2 entries and b has 3"),
    (lambda: paired_bootstrap([0, 1], [np.inf, 1]), r"b\[0\] is inf"),
    (lambda: paired_bootstrap_over_runs([1, 2, 3], [1, 2, 3]), r"a has shape \(3,\)"),
    (lambda: paired_bootstrap_over_runs([[1, np.nan], [1, 2]], [[1, 1], [1, 2]]), "nan"),
    (lambda: mcnemar([], []), r"a has shape \(0,\)"),
    (lambda: mcnemar([1, 0], [0.5, 1]), r"b\[0\] is 0.5"),
    (lambda: mcnemar([1, 0], [1]), "a has 2 entries and b has 1"),
)


@given(st.lists(st.tuples(st.floats(-10, 10), st.floats(-10, 10)), min_size=2, max_size=8))
@example([(-5.54618857513164, 9.875)] * 3)  # the quantiles differ in the last digit
def test_intervals_are_ordered_and_mirrored(pairs):
    a, b = np.array(pairs).T
    result = paired_bootstrap(a, b, n_resamples=100)
    assert (a - b).min() - 1e-9 <= result.low <= result.high <= (a - b).max() + 1e-9
    assert 0 < result.p_value <= 1
    mirrored = paired_bootstrap(b, a, n_resamples=100)
    np.testing.assert_allclose([mirrored.low, mirrored.high], [-result.high, -result.low], atol=1e-9)
    assert mirrored.p_value == result.p_value


def test_missing_extra_says_how_to_install_it():
    with pytest.raises(ImportError, match=r"needs no_such_module; run: pip install 'hf-vat\[explain\]'"):
        import_extra("no_such_module")


def test_modules_import_without_the_extra():
    code = """
import sys
sys.modules["scipy"] = sys.modules["sklearn"] = None
from hf_vat.faithfulness import agreement, rationales, statistics
try:
    rationales.roc_auc([[1, 2]], [[0, 1]])
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'hf-vat[explain]'" in run.stdout, run.stderr


# Several runs


def test_runs_are_resampled_too():
    rng = np.random.default_rng(0)
    a = rng.random((3, 200))
    steady, wavering = a - 0.1, a - np.array([[0.3], [0.1], [-0.1]])
    sure, unsure = (paired_bootstrap_over_runs(a, b) for b in (steady, wavering))
    assert sure.difference == pytest.approx(0.1) == unsure.difference
    assert sure.high - sure.low < 1e-9 and sure.p_value < 0.01
    # two of three runs are drawn: their mean is -0.1, 0, 0.1, 0.2 or 0.3, with the outer ones in 1 of 9 draws each
    assert (unsure.low, unsure.high) == pytest.approx((-0.1, 0.3)) and unsure.p_value > 0.2


def test_the_spread_of_runs_is_the_mean_s_variance():
    # sd over 5 runs is s, so that of their mean is s / √5
    offsets = np.array([0.0, 1, 2, 3, 4])
    a = np.repeat(offsets[:, None], 50, 1)
    found = paired_bootstrap_over_runs(a, np.zeros_like(a), confidence=0.68268, n_resamples=20_000)
    assert (found.high - found.low) / 2 == pytest.approx(offsets.std(ddof=1) / np.sqrt(5), rel=0.1)


def test_one_run_is_the_paired_bootstrap():
    a, b = np.random.default_rng(0).random((2, 30))
    assert paired_bootstrap_over_runs([a], [b]) == paired_bootstrap(a, b)
