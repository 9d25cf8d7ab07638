import re

import pytest
from shown import elements, texts

from hf_vat.errors import InputError
from hf_vat.faithfulness import LOWER_IS_BETTER
from hf_vat.report import top_k_curves
from hf_vat.report.figures import LINE_STYLES, render
from hf_vat.report.top_k_plot import _PANELS, _draw

pytest.importorskip("matplotlib")

RISING = [(1, 0.125, 0.1, 0.2), (2, 0.25, 0.2, 0.3), (3, 0.5, 0.4, 0.6)]
GREY = "#8a919a"


def lines(svg):
    """Colour and dashes of each drawn curve, without grid, axes and legend."""
    styles = [element.get("style") or "" for element in elements(svg, "path")]
    found = [
        re.search(r"(?:stroke-dasharray: ([^;]+);.*)?stroke: (#\w+).*stroke-width: 1.2", style) for style in styles
    ]
    return [(match[2], match[1]) for match in found if match]


def test_panels_say_what_is_better_and_what_is_counted():
    shown = texts(
        top_k_curves({"prob_drop": {"lime": RISING}, "sufficiency": {"lime": RISING}, "own": {"lime": RISING}})
    )
    assert {
        "Probability lost without the top words", "prob_drop · higher is better ↑", "top words",
        "Probability lost on the top share alone", "sufficiency · lower is better ↓", "share of words",
        "own", "lime", "20 %",
    } <= set(shown)  # fmt: skip
    assert not any("own ·" in text for text in shown)


@pytest.mark.parametrize("score", list(_PANELS))
def test_titles_fit(score):
    drawn, points = [], [(1, 0.675, 0.661, 0.688), (10, 0.875, 0.86, 0.895)]  # ticks as wide as 87.5 %
    render(lambda: drawn.append(_draw({score: {"lime": points}}, {"lime": LINE_STYLES[0]}, True)) or drawn[0], None)
    drawn[0].draw_without_rendering()
    title = drawn[0].axes[0]._left_title
    assert title.get_text() and title.get_window_extent().x1 < drawn[0].bbox.x1


def test_directions_are_those_of_the_scores():
    assert {name for name, panel in _PANELS.items() if "lower" in panel.note} == LOWER_IS_BETTER & set(_PANELS)


def test_random_is_grey_dashed_and_last():
    svg = top_k_curves({"recall": {"random": RISING, "lime": RISING, "mask": RISING}})
    assert texts(svg)[-3:] == ["lime", "mask", "random"]
    grey = [dashes for color, dashes in lines(svg) if color == GREY]
    assert grey and all(grey)


def test_ten_methods_differ_without_colour_and_more_are_refused():
    names = [f"method {number}" for number in range(11)]
    svg = top_k_curves({"recall": dict.fromkeys([*names[:10], "random"], RISING)})
    assert len({color for color, _ in lines(svg)}) == 11
    # a marker's outline is drawn once for each method and used at its points
    outlines = {path.get("d") for defs in elements(svg, "defs") for path in defs.findall("{*}path")}
    assert len(outlines) >= 11
    with pytest.raises(InputError, match="11 methods; 10 beside 'random'"):
        top_k_curves({"recall": dict.fromkeys(names, RISING)})


def test_a_method_keeps_its_colour_in_all_panels():
    svg = top_k_curves({"recall": {"a": RISING, "b": RISING}, "prob_drop": {"b": RISING}})
    colors = [color for color, _ in lines(svg)]
    assert sorted(map(colors.count, set(colors))) == [2, 3]  # a: panel and legend; b: two panels and legend


def test_means_and_intervals_are_drawn_to_scale():
    svg = top_k_curves({"recall": {"a": [(1, 0.0, 0.0, 0.0), (2, 0.5, 0.25, 1.0), (3, 1.0, 1.0, 1.0)]}})
    paths = [element.get("d") for element in elements(svg, "path")]
    points = [[tuple(map(float, point)) for point in re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", path)] for path in paths]
    (curve,) = [p for p in points if len(p) == len(set(p)) == len({y for _, y in p}) == 3]
    (x1, y1), (x2, y2), (x3, y3) = curve
    assert x2 - x1 == pytest.approx(x3 - x2) and y2 == pytest.approx((y1 + y3) / 2)
    height = float(elements(svg, "svg")[0].get("viewBox").split()[3])  # a band is stored above the figure
    heights = {y + height for p in points if len(p) >= 6 for x, y in p if x == pytest.approx(x2)}
    assert min(heights) == pytest.approx(y3) and max(heights) == pytest.approx(y1 + (y3 - y1) / 4)


def test_c82_names_are_plain_text():
    names = ["<script>", "a&b$x$", "_hidden", "</svg>", "\"'"]
    svg = top_k_curves({name: dict.fromkeys(names, RISING) for name in names})
    assert set(names) <= set(texts(svg)) and "<script" not in svg
