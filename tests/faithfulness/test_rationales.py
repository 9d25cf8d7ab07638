import itertools
import warnings

import numpy as np
import pytest
from checks import refuses
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from hf_vat.faithfulness.rationales import (
    auprc,
    average_precision,
    iou_f1,
    precision_recall_f1_at_k,
    roc_auc,
    token_f1,
)

# Ranked: text 0 is 1, 3, 0, 2; text 1 is 0, 1, 2 (ties by position); text 2 has no marked word.
SCORES = [[0.2, 0.9, 0.1, 0.5], [1.0, 1.0, 1.0], [3.0, 4.0]]
RATIONALES = [[1, 1, 0, 0], [0, 1, 1], [0, 0]]


def random_texts(seed, sizes=(2, 5, 9, 30)):
    generator = np.random.default_rng(seed)
    scores = [generator.integers(0, 6, n).astype(float) for n in sizes]  # with ties
    rationales = [generator.permutation([1, 0, *generator.integers(0, 2, n - 2)]) for n in sizes]
    return scores, rationales


def test_at_k_by_hand():
    result = precision_recall_f1_at_k(SCORES, RATIONALES, ks=(1, 2, 5))
    np.testing.assert_array_equal(result.hits, [[1, 1, 2], [0, 1, 2], [0, 0, 0]])
    np.testing.assert_array_equal(result.selected, [[1, 2, 4], [1, 2, 3], [1, 2, 2]])
    np.testing.assert_array_equal(result.marked, [[2], [2], [0]])
    nan = np.nan
    np.testing.assert_allclose(result.precision, [[1, 1 / 2, 1 / 2], [0, 1 / 2, 2 / 3], [nan] * 3])
    np.testing.assert_allclose(result.recall, [[1 / 2, 1 / 2, 1], [0, 1 / 2, 1], [nan] * 3])
    np.testing.assert_allclose(result.f1, [[2 / 3, 1 / 2, 2 / 3], [0, 1 / 2, 4 / 5], [nan] * 3])
    assert result.n_unmarked == 1


def test_macro_and_micro_differ_and_leave_out_texts_without_marked_words():
    result = precision_recall_f1_at_k(SCORES, RATIONALES, ks=(1, 5))
    np.testing.assert_allclose(result.macro()["precision"], [1 / 2, 7 / 12])
    np.testing.assert_allclose(result.macro()["f1"], [1 / 3, 11 / 15])
    np.testing.assert_allclose(result.micro()["precision"], [1 / 2, 4 / 7])
    np.testing.assert_allclose(result.micro()["recall"], [1 / 4, 1])
    np.testing.assert_allclose(result.micro()["f1"], [1 / 3, 8 / 11])


def test_denominator_k():
    result = precision_recall_f1_at_k(SCORES[:1], RATIONALES[:1], ks=(2, 5), denominator="k")
    np.testing.assert_allclose(result.precision, [[1 / 2, 2 / 5]])
    np.testing.assert_allclose(result.expected().precision, [[1 / 2, 2 / 5]])


def test_micro_equals_scikit_learn_on_pooled_words_and_macro_on_each_text():
    scores, rationales = random_texts(0)
    result = token_f1(scores, rationales, k=2)
    selected = [np.isin(np.arange(len(row)), np.argsort(-row, kind="stable")[:2]) for row in scores]
    expected = metrics.precision_recall_fscore_support(
        np.concatenate(rationales), np.concatenate(selected), average="binary"
    )[:3]
    np.testing.assert_allclose([*result.micro().values()], np.transpose([expected]))
    per_text = [
        metrics.f1_score(flags, chosen, zero_division=0) for flags, chosen in zip(rationales, selected, strict=True)
    ]
    np.testing.assert_allclose(result.f1[:, 0], per_text)


def test_token_f1_selects_the_mean_share_of_marked_words():
    # Shares 1/2 and 2/3, mean 7/12: of 4 words 2.33, of 3 words 1.75, so two of each; a text of one word has one.
    result = token_f1([*SCORES, [0.0]], [*RATIONALES, [0]])
    np.testing.assert_array_equal(result.selected[:, 0], [2, 2, 1, 1])
    np.testing.assert_allclose(result.f1[:2, 0], [1 / 2, 1 / 2])
    sparse = [1] + [0] * 9
    assert token_f1([range(10), [0, 0]], [sparse, [0, 0]]).selected.tolist() == [[1], [1]]


def test_iou_f1_by_hand():
    # Selected words 0-3 and 6: two spans. Span 0-3 shares 2 of 4 words with 0-1; word 6 shares 1 of 3 with 6-8.
    scores = [[9, 8, 7, 6, 0, 0, 5, 0, 0, 0]]
    rationales = [[1, 1, 0, 0, 0, 0, 1, 1, 1, 0]]
    result = iou_f1(scores, rationales)
    assert [counts.tolist() for counts in (result.hits, result.selected, result.marked)] == [[[1]], [[2]], [[2]]]
    assert result.f1.tolist() == [[0.5]]
    assert iou_f1(scores, rationales, threshold=0.6).f1.tolist() == [[0.0]]
    assert iou_f1(rationales, rationales, threshold=1).f1.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (average_precision, metrics.average_precision_score),
        (roc_auc, metrics.roc_auc_score),
        (auprc, lambda y, s: metrics.auc(*metrics.precision_recall_curve(y, s)[1::-1])),
    ],
)
def test_ranking_metrics_equal_scikit_learn(ours, theirs):
    scores, rationales = random_texts(1)
    expected = [theirs(flags, numbers) for flags, numbers in zip(rationales, scores, strict=True)]
    np.testing.assert_allclose(ours(scores, rationales), expected)
    pooled = ours([np.concatenate(scores)], [np.concatenate(rationales)])
    np.testing.assert_allclose(pooled, [theirs(np.concatenate(rationales), np.concatenate(scores))])


def test_average_precision_and_areas_by_hand():
    # Ranked flags 1, 0, 1, 0: precision 1 at recall 1/2, 1/2 at 1/2, 2/3 at 1.
    scores, rationales = [[4, 3, 2, 1]], [[1, 0, 1, 0]]
    np.testing.assert_allclose(average_precision(scores, rationales), [(1 + 2 / 3) / 2])
    np.testing.assert_allclose(roc_auc(scores, rationales), [3 / 4])
    np.testing.assert_allclose(auprc(scores, rationales), [(1 + (1 / 2 + 2 / 3) / 2) / 2])


@pytest.mark.filterwarnings("error")
def test_c39_constant_scores_and_texts_of_one_word():
    scores, rationales = [[0, 0, 0, 0], [0]], [[0, 1, 0, 0], [1]]
    np.testing.assert_array_equal(roc_auc(scores, rationales), [0.5, np.nan])
    np.testing.assert_array_equal(average_precision(scores, rationales), [0.25, np.nan])
    np.testing.assert_array_equal(auprc(scores, rationales), [0.625, np.nan])
    np.testing.assert_array_equal(precision_recall_f1_at_k(scores, rationales, (1, 2)).recall, [[0, 1], [1, 1]])


@pytest.mark.filterwarnings("error")
def test_c46_texts_without_words_or_marked_words_are_nan_and_counted():
    scores, rationales = [[1, 2], [], [3, 1], [5, -np.inf]], [[0, 1], [], [0, 0], [1, 1]]
    np.testing.assert_array_equal(roc_auc(scores, rationales), [1, np.nan, np.nan, np.nan])
    for result in (token_f1(scores, rationales), iou_f1(scores, rationales)):
        assert result.n_unmarked == 2
        assert np.isnan(result.f1[:, 0]).tolist() == [False, True, True, False]
        assert np.isfinite([*result.macro().values(), *result.micro().values()]).all()


def test_expected_is_the_mean_over_all_rankings():
    rationales = [[1, 0, 1, 0, 0], [0, 1, 1, 1, 1]]
    orders = [[order] * 2 for order in itertools.permutations(range(5))]
    results = [precision_recall_f1_at_k(order, rationales, ks=(1, 2, 3, 8)) for order in orders]
    expected = results[0].expected()
    for name in ("precision", "recall", "f1"):
        np.testing.assert_allclose(getattr(expected, name), np.mean([getattr(r, name) for r in results], 0))
        for average in ("macro", "micro"):
            mean = np.mean([getattr(result, average)()[name] for result in results], 0)
            np.testing.assert_allclose(getattr(expected, average)()[name], mean)
    np.testing.assert_allclose(expected.precision[0], [2 / 5] * 4)
    np.testing.assert_allclose(expected.recall[0], [1 / 5, 2 / 5, 3 / 5, 1])
    np.testing.assert_allclose(np.mean([roc_auc(order, rationales) for order in orders], 0), [0.5, 0.5])


test_bad_input_is_named = refuses(
    (lambda: token_f1([[1]], []), "1 texts and rationales of 0"),
    (lambda: token_f1([], []), "None of the 0 texts"),
    (lambda: roc_auc([[1, 2]], [[0, 0]]), "None of the 1 texts has a marked word"),
    (lambda: auprc([[1, 2]], [[0, 1, 1]]), r"rationales\[0\] is \[0, 1, 1\].*2 scores"),
    (lambda: auprc([[1, 2]], [[0, 0.5]]), "one flag, 0 or 1"),
    (lambda: average_precision([[1], [1, np.nan]], [[1], [0, 1]]), "Text 1.*word 1 is NaN"),
    (lambda: precision_recall_f1_at_k([[1]], [[1]], ks=(0,)), r"ks is \(0,\)"),
    (lambda: precision_recall_f1_at_k([[1]], [[1]], ks=(2, 2)), "different whole numbers"),
    (lambda: precision_recall_f1_at_k([[1]], [[1]], ks=(1,), denominator="n"), "no denominator 'n'"),
    (lambda: token_f1([[1]], [[1]], k=0), "k is 0"),
    (lambda: iou_f1([[1]], [[1]], threshold=0.3), "threshold is 0.3"),
)


WORDS = st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 1)), max_size=8)
TEXTS = st.lists(WORDS, min_size=1, max_size=4).filter(lambda texts: any(flag for text in texts for _, flag in text))


def values(scores, rationales):
    at_k = precision_recall_f1_at_k(scores, rationales, ks=(1, 3, 10))
    hard = (at_k, token_f1(scores, rationales), iou_f1(scores, rationales))
    columns = [getattr(result, name).T for result in hard for name in ("precision", "recall", "f1")]
    areas = [metric(scores, rationales) for metric in (auprc, average_precision, roc_auc)]
    return np.concatenate([*columns, areas])  # [numbers, N]


@given(TEXTS, st.sampled_from([1e-3, 0.5, 7, 1e6]))
def test_ranges_scaling_and_order_of_texts(texts, scale):
    scores = [[score for score, _ in text] for text in texts]
    rationales = [[flag for _, flag in text] for text in texts]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = values(scores, rationales)
    given_texts = ~np.isnan(result)
    assert ((result[given_texts] >= 0) & (result[given_texts] <= 1)).all()
    np.testing.assert_array_equal(values([[scale * s for s in text] for text in scores], rationales), result)
    # the shares are summed in another order, which may round otherwise and move K; so K is given by the columns above
    reverse = precision_recall_f1_at_k(scores[::-1], rationales[::-1], ks=(1, 3, 10)).f1[::-1]
    np.testing.assert_array_equal(reverse, precision_recall_f1_at_k(scores, rationales, ks=(1, 3, 10)).f1)
    np.testing.assert_array_equal(auprc(scores[::-1], rationales[::-1])[::-1], auprc(scores, rationales))
