"""Scores of text vectors against numbers worked out by hand; t-SNE gives the same points again."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_vat.errors import InputError
from hf_vat.reproduction.vat.representations import separation, tsne

pytest.importorskip("sklearn")
PAIRS = [[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [10.0, 1.0]]


def test_silhouette_of_two_pairs():
    # to the own class 1, to the other (10 + √101) / 2 on average: s = 1 - 1 / that, for each of the four
    assert separation(PAIRS, [0, 0, 1, 1]).silhouette == pytest.approx(1 - 2 / (10 + 101**0.5))
    # labels across the pairs: to the own class 10, to the other (1 + √101) / 2; s = b / a - 1
    assert separation(PAIRS, [0, 1, 0, 1]).silhouette == pytest.approx((1 + 101**0.5) / 20 - 1)


def test_nearest_neighbours_by_hand():
    vectors = [[0], [1], [2], [3.5], [20], [21]]
    # classes of the two nearest others: 00, 00, 01, 00, 11, 11; the fourth is wrong, and the third's tie goes to 0
    found = separation(vectors, [0, 0, 0, 1, 1, 1])
    assert found.neighbours == 2  # three texts per class, less the text itself
    assert found.knn_accuracy == pytest.approx(5 / 6)
    assert separation(vectors, [1, 1, 1, 0, 0, 0]).knn_accuracy == pytest.approx(4 / 6)
    assert separation(PAIRS, [0, 0, 1, 1])[1:] == (1.0, 1)
    assert separation(PAIRS, [0, 1, 0, 1])[1:] == (0.0, 1)


def test_ten_neighbours_where_texts_suffice_and_a_lone_text_is_wrong():
    vectors = [*([float(place), 0.0] for place in range(30)), [-0.5, 0.0]]
    labels = [0] * 30 + [1]
    found = separation(vectors, labels)
    assert found.neighbours == 10
    assert found.knn_accuracy == pytest.approx(30 / 31)
    # A text is not its own neighbour, even among equals.
    assert separation([[0.0], [0.0], [0.0], [5.0], [5.0]], [0, 0, 1, 1, 1]).knn_accuracy < 1


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 4), st.floats(0.01, 100))
def test_scores_stay_in_range_and_ignore_unit_and_place(seed, classes, scale):
    vectors = np.random.default_rng(seed).normal(size=(20, 3))
    labels = np.arange(20) % classes
    found = separation(vectors, labels)
    assert -1 <= found.silhouette <= 1 and 0 <= found.knn_accuracy <= 1
    assert separation(vectors * scale + 7, labels) == pytest.approx(found)


def test_tsne_gives_the_same_points_again_and_leaves_global_random_state():
    vectors = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    vectors[:20] += 20
    before = np.random.get_state()[1:3], random.getstate(), torch.get_rng_state()
    points = tsne(vectors, seed=3)
    found = separation(points, [0] * 20 + [1] * 20)
    assert np.array_equal(np.random.get_state()[1], before[0][0]) and np.random.get_state()[2] == before[0][1]
    assert random.getstate() == before[1] and torch.equal(torch.get_rng_state(), before[2])
    np.random.rand()  # the points do not depend on the global state either
    assert points.shape == (40, 2) and np.array_equal(points, tsne(vectors, seed=3))
    assert found.knn_accuracy == 1 and found.silhouette > 0.3


@pytest.mark.parametrize("count", [3, 4, 20])
def test_tsne_takes_few_texts(count):
    points = tsne(np.random.default_rng(1).normal(size=(count, 5)))
    assert points.shape == (count, 2) and np.isfinite(points).all()


@pytest.mark.parametrize(
    ("vectors", "labels", "message"),
    [
        (PAIRS, [0, 0, 1], r"labels have shape \(3,\) for 4 vectors"),
        (PAIRS, [0, 0, 0, 0], "4 texts are of 1 classes"),
        (PAIRS, [0, 1, 2, 3], "4 texts are of 4 classes"),
        (PAIRS[:2], [0, 1], r"shape \(2, 2\).*at least 3 texts"),
        ([0.0, 1.0, 2.0], [0, 0, 1], r"shape \(3,\)"),
        ([[0.0], [1.0], [float("nan")]], [0, 0, 1], "not finite"),
    ],
)
def test_vectors_and_labels_are_checked(vectors, labels, message):
    with pytest.raises(InputError, match=message):
        separation(vectors, labels)


def test_tsne_checks_its_input():
    with pytest.raises(InputError, match="do not span a plane"):
        tsne(np.ones((5, 3)))
    with pytest.raises(InputError, match="5 vectors of 1 numbers"):
        tsne(np.arange(5.0)[:, None])
    with pytest.raises(InputError, match="perplexity is 0"):
        tsne(PAIRS, perplexity=0)
    with pytest.raises(InputError, match="not finite"):
        tsne([[0, 1], [2, 3], [4, float("inf")]])
