import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_vat.errors import InputError
from hf_vat.faithfulness import accuracy_drop, area, posthoc_gold, posthoc_self, prob_drop

# Three texts, two values of k. Text 2 is predicted wrongly.
FULL = [[0.1, 0.9], [0.7, 0.3], [0.6, 0.4]]
PERTURBED = [[[0.4, 0.6], [0.8, 0.2]], [[0.6, 0.4], [0.9, 0.1]], [[0.3, 0.7], [0.5, 0.5]]]
LABELS = [1, 0, 1]


def test_values_by_hand():
    np.testing.assert_array_equal(accuracy_drop(FULL, PERTURBED, LABELS), [[0, 1], [0, 0], [-1, 0]])
    np.testing.assert_allclose(prob_drop(FULL, PERTURBED), [[0.3, 0.7], [0.1, -0.2], [0.3, 0.1]])
    np.testing.assert_array_equal(posthoc_gold(PERTURBED, LABELS), [[1, 0], [1, 1], [1, 0]])
    np.testing.assert_array_equal(posthoc_self(FULL, PERTURBED), [[1, 0], [1, 1], [0, 1]])


def test_area_counts_zero_only_if_asked():
    np.testing.assert_allclose(area([[0.3, 0.6], [0.0, -0.6]]), [0.45, -0.3])
    np.testing.assert_allclose(area([[0.3, 0.6], [0.0, -0.6]], from_zero=True), [0.3, -0.2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prob_drop([[2.0, -1.0]], [[[0.5, 0.5]]]), r"full\[0\] is \[2.0, -1.0\].*softmax"),
        (lambda: prob_drop([[90.0, 10.0]], [[[0.5, 0.5]]]), "percent"),
        (lambda: prob_drop([[0.5, 0.5]], [[[0.5, 0.5], [np.nan, 0.5]]]), r"deleted\[0, 1\]"),
        (lambda: prob_drop([[0.5, 0.5]], [[0.5, 0.5]]), r"\[N, K, C\]"),
        (lambda: posthoc_self(FULL, PERTURBED[:2]), r"\(3, 2\).*\(2, 2, 2\)"),
        (lambda: posthoc_gold(PERTURBED, [0, 1]), "3 texts"),
        (lambda: posthoc_gold(PERTURBED, [0, 1, 2]), "Label 2 in row 2.*0 to 1"),
        (lambda: posthoc_gold(PERTURBED, [0, -1, 1]), "Label -1 in row 1"),
        (lambda: posthoc_gold(PERTURBED, [0.0, 1.0, 1.0]), "integer class id"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


LOGITS = st.lists(
    st.lists(st.lists(st.floats(-5, 5), min_size=3, max_size=3), min_size=3, max_size=3), min_size=1, max_size=5
)


@given(LOGITS, st.integers(0, 2))
def test_ranges(logits, label):
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    full, perturbed, labels = probabilities[:, 0], probabilities[:, 1:], [label] * len(logits)
    assert np.abs(prob_drop(full, perturbed)).max() <= 1
    assert set(accuracy_drop(full, perturbed, labels).ravel()) <= {-1, 0, 1}
    assert set(posthoc_self(full, perturbed).ravel()) <= {0, 1}
    assert (posthoc_self(full, full[:, None]) == 1).all()
    gained = posthoc_gold(full[:, None], labels) - posthoc_gold(perturbed, labels)
    np.testing.assert_array_equal(accuracy_drop(full, perturbed, labels), gained)
