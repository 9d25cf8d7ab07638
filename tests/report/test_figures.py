"""What all figures have in common."""

from functools import partial

import numpy as np
import pytest
from shown import explanation_of

from hf_vat.errors import InputError
from hf_vat.explanations import GlobalImportance, WordImportance
from hf_vat.report import (
    attention_pairs,
    frequency_scatter,
    text_scatter,
    top_k_curves,
    training_curves,
    word_bars,
    word_cloud,
)

pytest.importorskip("matplotlib")

FILM = explanation_of("a good film", [0.1, 0.6, 0.3])
WORDS = [("rare", 0.25, 1), ("film", 0.5, 10), ("the", 0.5, 100), ("good", 0.75, 10)]
TABLE = GlobalImportance([WordImportance(*word, 1) for word in WORDS])
POINTS = [(0.0, 0.0), (1.0, 2.0), (4.0, 1.0)]
RISING = [(1, 0.125, 0.1, 0.2), (2, 0.25, 0.2, 0.3), (3, 0.5, 0.4, 0.6)]
LOG = [{"loss": 0.7, "epoch": 1.0}, {"loss": 0.5, "phase": "compress", "epoch": 2.0}]

# A function, arguments, and others that mean the same.
FIGURES = {
    attention_pairs: ([{"ATT": [FILM]}], [{"ATT": (FILM,)}]),
    word_bars: ([{"LSTM": [("good", 1.0)]}], [{"LSTM": [("good", 1.0, 7, 3)]}]),
    frequency_scatter: ([{"LSTM": TABLE, "CNN": TABLE}], [{"LSTM": list(TABLE), "CNN": WORDS[::-1]}]),
    text_scatter: (
        [{"ATT": (POINTS, [0, 1, 1])}, ["no", "yes"]],
        [{"ATT": (np.array(POINTS), np.array([0, 1, 1]))}, ("no", "yes"), {}],
    ),
    top_k_curves: ([{"recall": {"a": RISING}}], [{"recall": {"a": RISING[::-1]}, "f1": {"a": []}}]),
    training_curves: ([{"ATT": LOG}], [{"ATT": tuple(LOG)}]),
}

# What each function refuses, and what it says.
REFUSED = {
    attention_pairs: [
        ({"ATT": [], "VAT": []}, "nothing to draw"),
        (
            {"ATT": [explanation_of("a")], "VAT": [explanation_of("b")]},
            "'VAT' and 'ATT' explain different texts .1 and 1.",
        ),
        ({"ATT": [explanation_of("a")], "VAT": []}, "'VAT' and 'ATT' explain different texts .0 and 1."),
        ({"ATT": [explanation_of("a"), explanation_of("a b", [0.5, -0.25])]}, "Text 1 of 'ATT' has the score -0.25"),
    ],
    word_bars: [
        ({"LSTM": [("good", 1.0)], "CNN": []}, "nothing to draw"),
        ({"LSTM": [("good", float("nan"))]}, "importance of 'good' in 'LSTM' is nan"),
    ],
    word_cloud: [
        ([], "at least one word"),
        ([("good", 0.0)], "importance above 0"),
        ([("good", float("inf"))], "finite importance"),
    ],
    partial(word_cloud, path="cloud.svg"): [
        ([("good", 1.0)], "'cloud.svg' ends in '.svg'; clouds are written as .png"),
    ],
    frequency_scatter: [
        ({"LSTM": []}, "nothing to draw"),
        ({"LSTM": [("a", float("nan"), 1)]}, "'a' in 'LSTM' has importance nan and count 1"),
        ({"LSTM": [("a", 1.0, 0)]}, r"count 0; .* leave out words that do not occur \(min_count=1\)"),
        ({"LSTM": [("a", 1.0, float("inf"))]}, "count inf"),
    ],
    partial(frequency_scatter, n_labels=-1): [
        ({"LSTM": WORDS}, "n_labels is -1"),
    ],
    partial(text_scatter, class_names=["negative", "positive"]): [
        ({"ATT": ([], [])}, r"'ATT' has points of shape \(0,\)"),
        ({"ATT": ([(1, 2, 3)], [0])}, r"points of shape \(1, 3\)"),
        ({"ATT": (POINTS, [0, 1])}, r"labels of shape \(2,\)"),
        ({"ATT": ([(0, float("nan"))], [0])}, "not finite"),
        ({"ATT": (POINTS, [0, 1, 2])}, "label 2; labels are ids of the 2 class names, 0 to 1"),
        ({"ATT": (POINTS, ["a", "b", "b"])}, "label 'a'"),
    ],
    top_k_curves: [
        ({"recall": {"a": []}}, "nothing to draw"),
        ({"recall": {"a": [(1, 0.5)]}}, "'a' in 'recall' is .1, 0.5.; give four finite numbers"),
        ({"recall": {"a": [(1, 0.5, float("nan"), 1.0)]}}, "four finite numbers"),
    ],
}


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG")])
@pytest.mark.parametrize("draw", FIGURES)
def test_equal_for_equal_input_and_written_by_suffix(draw, suffix, start, tmp_path):
    given, same = FIGURES[draw]
    path = tmp_path / "missing folder" / f"figure{suffix}"
    svg = draw(*given, path=path)
    first = path.read_bytes()
    assert svg == draw(*same, path=path)
    assert first.startswith(start) and path.read_bytes() == first
    assert svg.startswith("<svg") and "<dc:date>" not in svg and "currentColor" in svg and 'id="axes' not in svg


@pytest.mark.parametrize("draw", FIGURES)
def test_wrong_suffixes_and_nothing_to_draw_are_refused(draw, tmp_path):
    given, _ = FIGURES[draw]
    with pytest.raises(InputError, match=r"\.pdf.*\.svg or \.png"):
        draw(*given, path=tmp_path / "figure.pdf")
    with pytest.raises(InputError, match="nothing to draw"):
        draw({}, *given[1:])


@pytest.mark.parametrize("draw", FIGURES)
def test_matplotlib_is_left_as_it_was(draw):
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw(*FIGURES[draw][0])
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("draw", "given", "message"), [(draw, *case) for draw, cases in REFUSED.items() for case in cases]
)
def test_what_is_drawn_is_checked(draw, given, message):
    with pytest.raises(InputError, match=message):
        draw(given)
