import re
from collections import Counter

import numpy as np
import pytest
from shown import elements, texts

from hf_vat.errors import InputError
from hf_vat.report import text_scatter
from hf_vat.report.figures import LINE_STYLES

pytest.importorskip("matplotlib")

POINTS = [(0.0, 0.0), (1.0, 2.0), (4.0, 1.0)]
NAMES = ["negative", "positive"]


def markers(svg):
    """Shape, colour, x and y of each marker in the file's order; the legend's are opaque and left out."""
    found = []
    for use in elements(svg, "use"):
        color = re.search(r"fill: (#\w+); fill-opacity", use.get("style"))
        if color:
            shape = use.get("{http://www.w3.org/1999/xlink}href")
            found.append((shape, color[1], float(use.get("x")), float(use.get("y"))))
    return found


def test_each_class_has_its_number_of_markers_of_one_shape_and_colour():
    many = np.random.default_rng(0).normal(size=(60, 2))
    labels = [0] * 10 + [1] * 20 + [2] * 30
    found = markers(text_scatter({"ATT": (many, labels), "VAT": (many, labels)}, ["a", "b", "c"]))
    counts = Counter((shape, color) for shape, color, *_ in found)
    assert sorted(counts.values()) == [20, 40, 60]
    assert len({shape for shape, _ in counts}) == len({color for _, color in counts}) == 3
    assert counts[next(key for key in counts if key[1] == LINE_STYLES[2][0])] == 60


def test_points_are_drawn_to_one_scale_on_both_axes():
    (x0, y0), (x1, y1), (x2, y2) = [place[2:] for place in markers(text_scatter({"ATT": (POINTS, [0, 0, 0])}, ["a"]))]
    unit = x1 - x0
    assert unit > 0
    assert (x2 - x0, y0 - y1, y0 - y2) == pytest.approx((4 * unit, 2 * unit, 1 * unit))


def test_the_rarer_class_is_on_top():
    svg = text_scatter({"ATT": ([(0, 0)] * 5, [1, 0, 0, 0, 0])}, NAMES)
    assert [color for _, color, *_ in markers(svg)] == [LINE_STYLES[0][0]] * 4 + [LINE_STYLES[1][0]]
    svg = text_scatter({"ATT": ([(0, 0)] * 5, [1, 1, 1, 1, 0])}, NAMES)
    assert [color for _, color, *_ in markers(svg)] == [LINE_STYLES[1][0]] * 4 + [LINE_STYLES[0][0]]


def test_titles_notes_and_one_legend_but_no_ticks():
    svg = text_scatter(
        {"ATT": (POINTS, [0, 1, 1]), "VAT, iteration 1": (POINTS, [0, 0, 0])}, NAMES, {"ATT": "silhouette 0.41 %"}
    )
    assert sorted(texts(svg)) == sorted(["ATT", "silhouette 0.41 %", "VAT, iteration 1", *NAMES])


def test_ten_classes_differ_and_more_are_refused():
    points, labels = np.arange(22.0).reshape(11, 2), list(range(11))
    names = [f"class {label}" for label in labels]
    found = markers(text_scatter({"ATT": (points[:10], labels[:10])}, names[:10]))
    assert len({shape for shape, *_ in found}) == len({color for _, color, *_ in found}) == 10
    with pytest.raises(InputError, match="11 classes; 10 can be told apart"):
        text_scatter({"ATT": (points, labels)}, names)


def test_two_panels_of_1000_texts_stay_small():
    points = np.random.default_rng(0).normal(size=(1000, 2))
    labels = np.arange(1000) % 6
    svg = text_scatter({"ATT": (points, labels), "VAT": (points, labels)}, list("abcdef"))
    assert len(svg) < 300_000 and len(markers(svg)) == 2000


def test_names_are_plain_text():
    names = ["<script>", "a&b$x$", "_hidden", "</svg>", "\"'", "喜欢"]
    svg = text_scatter({name: (POINTS, [0, 1, 5]) for name in names}, names, {names[1]: "$x$ <b>"})
    assert Counter(texts(svg)) == Counter([*names, *names, "$x$ <b>"]) and "<script" not in svg


def test_names_and_notes_are_checked():
    with pytest.raises(InputError, match="note for 'VAT'; the systems are 'ATT'"):
        text_scatter({"ATT": (POINTS, [0, 1, 1])}, NAMES, {"VAT": "x"})
    with pytest.raises(InputError, match="Two of the class names 'a', 'a' are equal"):
        text_scatter({"ATT": (POINTS, [0, 1, 1])}, ["a", "a"])
