import math

import numpy as np
import pytest
from checks import refuses
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import jensenshannon

from hf_vat.faithfulness.agreement import (
    as_distribution,
    is_constant,
    jsd,
    kendall_tau,
    max_weight,
    normalized_entropy,
    top_k_overlap,
    tvd,
)


def test_distances_by_hand():
    assert tvd([0.5, 0.5, 0], [0.2, 0.2, 0.6]) == pytest.approx(0.6)
    # mixture (3/4, 1/4): half of ln(4/3), and half of (ln(2/3) + ln 2) / 2
    assert jsd([1, 0], [0.5, 0.5]) == pytest.approx(math.log(4 / 3) / 2 + math.log(4 / 3) / 4)
    assert jsd([1, 0], [0, 1]) == math.log(2)
    assert tvd([1, 0], [0, 1]) == 1
    assert tvd([0.3, 0.7], [0.3, 0.7]) == jsd([0.3, 0.7], [0.3, 0.7]) == 0


def test_entropy_and_largest_weight_by_hand():
    assert normalized_entropy([0.25] * 4) == pytest.approx(1)
    assert normalized_entropy([0.5, 0.5, 0, 0]) == pytest.approx(0.5)
    assert normalized_entropy([1, 0]) == normalized_entropy([1]) == 0
    assert max_weight([0.2, 0.5, 0.3]) == 0.5


def test_as_distribution():
    np.testing.assert_allclose(as_distribution([1, -3, 0]), [0.25, 0.75, 0])
    np.testing.assert_allclose(as_distribution([0, 0, 0, 0]), [0.25] * 4)
    np.testing.assert_allclose(as_distribution([1e308, 1e308]), [0.5, 0.5])


def test_kendall_counted_by_hand():
    # Pairs of (1,1) (2,3) (3,2) (4,4): five agree, one does not.
    assert kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(4 / 6)
    # Of the three pairs of (0,0) (0,1) (1,2) one is tied in a, and the other two agree.
    assert kendall_tau([0, 0, 1], [0, 1, 2]) == pytest.approx(2 / math.sqrt(2 * 3))
    assert kendall_tau([1, 2, 3], [3, 2, 1]) == -1


@pytest.mark.filterwarnings("error")
def test_c39_constant_scores_have_tau_zero_and_can_be_counted():
    assert kendall_tau([0, 0, 0], [1, 2, 3]) == kendall_tau([1, 2, 3], [5, 5, 5]) == 0
    assert kendall_tau([1], [2]) == kendall_tau([], []) == 0
    assert [is_constant(scores) for scores in ([0, 0], [7], [], [0, 1], [-0.0, 0.0])] == [True, True, True, False, True]


def test_overlap_of_top_words():
    assert top_k_overlap([3, 2, 1, 0], [3, 0, 2, 1], k=2) == pytest.approx(1 / 3)
    assert top_k_overlap([0, 0, 0], [0, 0, 0], k=1) == 1
    assert top_k_overlap([1, 2], [2, 1], k=5) == top_k_overlap([], [], k=1) == 1


test_bad_input_is_named = refuses(
    (lambda: tvd([1], [0.5, 0.5]), "p has 1 entries and q has 2"),
    (lambda: jsd([0.5, 0.5], [50, 50]), r"q is \[50.0, 50.0\].*as_distribution"),
    (lambda: normalized_entropy([1.5, -0.5]), "no distribution"),
    (lambda: max_weight([]), r"p is \[\]"),
    (lambda: max_weight([np.nan, 1.0]), "no distribution"),
    (lambda: as_distribution([]), "one or more"),
    (lambda: as_distribution([1, np.inf]), "finite"),
    (lambda: kendall_tau([1, 2], [1]), "a has 2 entries and b has 1"),
    (lambda: kendall_tau([1, 2], [1, np.nan]), "word 1 is NaN"),
    (lambda: top_k_overlap([1], [1], k=0), "k is 0"),
)


PAIRS = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=1, max_size=10)


@given(PAIRS, st.sampled_from([1e-6, 3, 1e9]))
def test_ranges_symmetry_and_scaling(pairs, scale):
    a, b = np.array(pairs).T
    p, q = as_distribution(a), as_distribution(b)
    np.testing.assert_allclose(as_distribution(scale * a), p)
    assert 0 <= tvd(p, q) <= 1 + 1e-12
    assert 0 <= jsd(p, q) <= math.log(2)
    assert tvd(p, q) == tvd(q, p)
    assert jsd(p, q) == pytest.approx(jsd(q, p))
    assert jsd(p, q) == pytest.approx(jensenshannon(p, q) ** 2, abs=1e-9)
    assert 0 <= normalized_entropy(p) <= 1
    assert 1 / len(p) <= max_weight(p) + 1e-12 <= 1 + 1e-11
    assert 0 <= top_k_overlap(a, b, 3) <= 1
    expected = 0 if is_constant(a) or is_constant(b) else stats.kendalltau(a, b).statistic
    assert kendall_tau(scale * a, b) == pytest.approx(expected)
