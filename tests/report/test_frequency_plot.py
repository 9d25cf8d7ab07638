from itertools import combinations

import numpy as np
import pytest
from shown import NASTY, content, elements, texts

from hf_vat.report import frequency_scatter
from hf_vat.report.figures import LINE_STYLES, MUTED

pytest.importorskip("matplotlib")

FREQUENT, IMPORTANT = LINE_STYLES[0][0], LINE_STYLES[1][0]
WORDS = [("rare", 0.25, 1), ("film", 0.5, 10), ("the", 0.5, 100), ("good", 0.75, 10)]
LEGEND = {"most frequent words", "most important words", "other words"}


def labels(svg):
    """Text, side and place of each label of a word."""
    found = []
    for element in elements(svg, "text"):
        style = element.get("style")
        if "font-size: 7px" in style:
            right = "text-anchor: end" in style
            found.append((content(element), right, float(element.get("x")), float(element.get("y"))))
    return found


def markers(svg, color):
    """Place of each marker of a colour, without the legend's, in the file's order."""
    found = []
    for use in elements(svg, "use"):
        if f"fill: {color}" in use.get("style") and "stroke" not in use.get("style"):  # ticks have one
            found.append((float(use.get("x")), float(use.get("y"))))
    return found[:-1]


def test_points_are_drawn_to_scale_with_counts_on_a_logarithmic_axis():
    svg = frequency_scatter({"LSTM": WORDS}, n_labels=0)
    assert not markers(svg, FREQUENT) and not markers(svg, IMPORTANT) and not labels(svg)
    (x1, y1), (x2, y2), (x3, y3), (x4, y4) = sorted(markers(svg, MUTED), key=lambda place: (place[0], -place[1]))
    assert x2 == x3 and x4 - x2 == pytest.approx(x2 - x1, abs=1e-4)
    assert y2 == y4 and y1 - y2 == pytest.approx(y2 - y3, abs=1e-4) and y1 > y2
    assert {"1", "10", "100", "occurrences", "importance", "LSTM"} <= set(texts(svg))


def test_the_most_frequent_and_the_most_important_words_are_marked_and_labelled():
    svg = frequency_scatter({"LSTM": WORDS}, n_labels=1)
    assert len(markers(svg, FREQUENT)) == len(markers(svg, IMPORTANT)) == 1 and len(markers(svg, MUTED)) == 2
    assert {text for text, *_ in labels(svg)} == {"the", "good"} and set(texts(svg)) >= LEGEND
    [(x, y)] = markers(svg, FREQUENT)
    [place] = [place for text, _, *place in labels(svg) if text == "the"]
    assert x < place[0] < x + 10 and abs(y - place[1]) < 5


def test_a_word_that_is_both_is_labelled_once_as_important():
    svg = frequency_scatter({"LSTM": [("the", 0.9, 100), ("a", 0.1, 50), ("good", 0.5, 1)]}, n_labels=1)
    assert sorted(text for text, *_ in labels(svg)) == ["a", "the"]
    [(the, _)], [(a, _)] = markers(svg, IMPORTANT), markers(svg, FREQUENT)
    assert the > a
    assert len(labels(frequency_scatter({"LSTM": WORDS}, n_labels=10))) == 4


def test_labels_do_not_cover_each_other():
    crowd = [(f"word{place}", 0.5, 30) for place in range(20)]
    placed = labels(frequency_scatter({"LSTM": crowd}))
    assert len(placed) == 20
    for (_, side, x, y), (_, other_side, other_x, other_y) in combinations(placed, 2):
        assert side != other_side or abs(x - other_x) > 25 or abs(y - other_y) >= 8


def test_words_are_plain_text():
    nasty = [*NASTY, "\0", "\ud800"]
    words = [(word, 0.5 + place / 100, place + 1) for place, word in enumerate(nasty)]
    svg = frequency_scatter({"$t$ <b>": words}, n_labels=13)
    assert {*nasty[:-2], "\ufffd", "$t$ <b>"} <= set(texts(svg)) and "<script" not in svg


def test_many_words_stay_small_and_equal():
    generator = np.random.default_rng(0)
    words = [(f"word{place}", generator.beta(5, 5), generator.zipf(1.5)) for place in range(20_000)]
    svg = frequency_scatter({"LSTM": words})
    assert len(svg) < 300_000 and len(labels(svg)) == 20 and "data:image/png" in svg
    assert svg == frequency_scatter({"LSTM": words})
