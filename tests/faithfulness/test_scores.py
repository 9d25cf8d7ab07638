import math

import numpy as np
import pytest
from checks import refuses
from hypothesis import given
from hypothesis import strategies as st

from hf_vat import faithfulness
from hf_vat.faithfulness import agreement, rationales, scores, statistics

# Three texts, two values of k. Text 2 is predicted wrongly.
FULL = [[0.1, 0.9], [0.7, 0.3], [0.6, 0.4]]
PERTURBED = [[[0.4, 0.6], [0.8, 0.2]], [[0.6, 0.4], [0.9, 0.1]], [[0.3, 0.7], [0.5, 0.5]]]
LABELS = [1, 0, 1]


def test_values_by_hand():
    np.testing.assert_array_equal(scores.accuracy_drop(FULL, PERTURBED, LABELS), [[0, 1], [0, 0], [-1, 0]])
    np.testing.assert_allclose(scores.prob_drop(FULL, PERTURBED), [[0.3, 0.7], [0.1, -0.2], [0.3, 0.1]])
    np.testing.assert_array_equal(scores.posthoc_gold(PERTURBED, LABELS), [[1, 0], [1, 1], [1, 0]])
    np.testing.assert_array_equal(scores.posthoc_self(FULL, PERTURBED), [[1, 0], [1, 1], [0, 1]])


def stub(*sums):
    """Probabilities of the STUB scorer for sums of word weights, shape [len(sums), 2]."""
    positive = 1 / (1 + np.exp(-np.array(sums)))
    return np.stack([1 - positive, positive], 1)


def test_c34_sufficiency_is_not_comprehensiveness_of_the_other_words():
    # "a very good film": very 0.5 and good 2; "good" is the first word, "very" the second
    np.testing.assert_allclose(scores.comprehensiveness(stub(2.5), [stub(0.5, 0)]), [[0.301682, 0.424142]], atol=1e-6)
    np.testing.assert_allclose(scores.sufficiency(stub(2.5), [stub(2, 2.5)]), [[0.043345, 0.0]], atol=1e-6)
    np.testing.assert_allclose(scores.aopc_comprehensiveness(stub(2.5), [stub(0.5, 0)]), [0.362912], atol=1e-6)
    np.testing.assert_allclose(scores.aopc_sufficiency(stub(2.5), [stub(2, 2.5)]), [0.0216725], atol=1e-6)


def test_c37_area_counts_zero_only_if_asked():
    full, deleted = stub(2.5), [stub(0.5, 0, 0)]
    np.testing.assert_allclose(scores.area_prob(full, deleted), [0.383322], atol=1e-6)
    np.testing.assert_allclose(scores.area_prob(full, deleted, from_zero=True), [0.287492], atol=1e-6)
    np.testing.assert_allclose(scores.area_acc(FULL, PERTURBED, LABELS), [0.5, 0, -0.5])
    np.testing.assert_allclose(scores.area_acc(FULL, PERTURBED, LABELS, from_zero=True), [1 / 3, 0, -1 / 3])


def test_c38_negative_drops_are_kept():
    # "not good but bad": predicted negative; deleting "bad" or "good"
    np.testing.assert_allclose(scores.prob_drop(stub(-2), [stub(1, -4)]), [[0.611856, -0.101217]], atol=1e-6)


def test_eraser_scores_of_a_linear_bag_of_words():
    # Independent of the arrays' arithmetic: three classes, word by word, in plain Python.
    generator = np.random.default_rng(0)
    shares = (0.01, 0.05, 0.1, 0.2, 0.5)

    def probabilities(weights):
        exponentials = [math.exp(sum(row[c] for row in weights)) for c in range(3)]
        return [value / sum(exponentials) for value in exponentials]

    full, deleted, kept, expected = [], [], [], []
    for n in (1, 3, 7, 30):
        weights = generator.normal(size=(n, 3)).tolist()  # in the order of the ranking
        sizes = [max(1, math.ceil(share * n)) for share in shares]
        full.append(probabilities(weights))
        deleted.append([probabilities(weights[size:]) for size in sizes])
        kept.append([probabilities(weights[:size]) for size in sizes])
        c = full[-1].index(max(full[-1]))
        lost = [full[-1][c] - row[c] for row in deleted[-1]]
        missed = [full[-1][c] - row[c] for row in kept[-1]]
        expected.append((lost, missed, sum(lost) / 5, sum(missed) / 5))
    for score, inputs, values in zip(
        (scores.comprehensiveness, scores.sufficiency, scores.aopc_comprehensiveness, scores.aopc_sufficiency),
        (deleted, kept) * 2,
        zip(*expected, strict=True),
        strict=True,
    ):
        np.testing.assert_allclose(score(full, inputs), values, atol=1e-12)


test_bad_input_is_named = refuses(
    (lambda: scores.prob_drop([[2.0, -1.0]], [[[0.5, 0.5]]]), r"full\[0\] is \[2.0, -1.0\].*softmax"),
    (lambda: scores.prob_drop([[90.0, 10.0]], [[[0.5, 0.5]]]), "percent"),
    (lambda: scores.prob_drop([[0.5, 0.5]], [[[0.5, 0.5], [np.nan, 0.5]]]), r"deleted\[0, 1\]"),
    (lambda: scores.prob_drop([[0.5, 0.5]], [[0.5, 0.5]]), r"\[N, K, C\]"),
    (lambda: scores.sufficiency([[0.5, 0.5]], [[[0.5, 0.6]]]), r"kept\[0, 0\]"),
    (lambda: scores.posthoc_self(FULL, PERTURBED[:2]), r"\(3, 2\).*\(2, 2, 2\)"),
    (lambda: scores.posthoc_gold(PERTURBED, [0, 1]), "3 texts"),
    (lambda: scores.posthoc_gold(PERTURBED, [0, 1, 2]), "Label 2 in row 2.*0 to 1"),
    (lambda: scores.posthoc_gold(PERTURBED, [0, -1, 1]), "Label -1 in row 1"),
    (lambda: scores.posthoc_gold(PERTURBED, [0.0, 1.0, 1.0]), "integer class id"),
)


LOGITS = st.lists(
    st.lists(st.lists(st.floats(-5, 5), min_size=3, max_size=3), min_size=3, max_size=3), min_size=1, max_size=5
)


@given(LOGITS, st.integers(0, 2))
def test_ranges(logits, label):
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    full, perturbed, labels = probabilities[:, 0], probabilities[:, 1:], [label] * len(logits)
    assert np.abs(scores.prob_drop(full, perturbed)).max() <= 1
    assert set(scores.accuracy_drop(full, perturbed, labels).ravel()) <= {-1, 0, 1}
    assert set(scores.posthoc_self(full, perturbed).ravel()) <= {0, 1}
    assert (scores.posthoc_self(full, full[:, None]) == 1).all()
    gained = scores.posthoc_gold(full[:, None], labels) - scores.posthoc_gold(perturbed, labels)
    np.testing.assert_array_equal(scores.accuracy_drop(full, perturbed, labels), gained)


@pytest.mark.parametrize("module", [agreement, rationales, scores, statistics])
def test_public_scores_can_be_imported_from_the_package(module):
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    assert {name for name in own if not name.startswith("_")} <= set(faithfulness.__all__)
