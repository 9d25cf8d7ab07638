import re

import pytest
from shown import NASTY, elements, texts

from hf_vat.errors import InputError
from hf_vat.report import score_boxes, score_histograms
from hf_vat.report.figures import LINE_STYLES

pytest.importorskip("matplotlib")
BOTH = pytest.mark.parametrize("draw", [score_histograms, score_boxes])
COLORS = [style[0] for style in LINE_STYLES]


def points(path) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", path.get("d"))]


def paths(svg, attribute: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """Colour and points of the paths with a fill or stroke of a type's colour."""
    found = [
        (re.search(rf"{attribute}: (#\w+)", path.get("style") or ""), points(path)) for path in elements(svg, "path")
    ]
    return [(color[1], place) for color, place in found if color and color[1] in COLORS and len(place) > 3]


def test_outlines_have_the_colour_of_their_type_and_stand_where_the_numbers_are():
    svg = score_histograms(
        {"polarity": {"pos": [2.0, 2.05, 3.0], "neg": [-2.0, -3.0]}, "attention": {"neg": [0.0, 1.0]}}
    )
    outlines = paths(svg, "stroke")
    assert [color for color, _ in outlines] == [COLORS[0], COLORS[1], COLORS[1]]

    def middle(place):  # of where the outline is above its lowest line
        ground = max(y for _, y in place)
        raised = [x for x, y in place if y < ground]
        return (min(raised) + max(raised)) / 2

    assert middle(outlines[1][1]) < middle(outlines[0][1])
    assert {"polarity", "attention", "pos", "neg", "density"} <= set(texts(svg))
    # of one width: one holds 2 of 3 numbers, the other 1 of 2
    heights = [max(y for _, y in place) - min(y for _, y in place) for _, place in outlines[:2]]
    assert heights[0] / heights[1] == pytest.approx((2 / 3) / (1 / 2), rel=0.01)


def test_boxes_span_the_quartiles():
    numbers = [0.0, 1.0, 2.0, 3.0, 4.0, 100.0]
    svg = score_boxes({"attention": {"pos": numbers, "neg": [0.0, 100.0]}})
    boxes = paths(svg, "stroke")
    assert [color for color, _ in boxes] == COLORS[:2]
    (low, high), (lowest, highest) = ((max(y for _, y in place), min(y for _, y in place)) for _, place in boxes)
    unit = (lowest - highest) / 50  # the second box is from 25 to 75
    assert (low - high) / unit == pytest.approx(3.75 - 1.25, rel=0.02)
    shown = texts(svg)
    assert {"pos", "neg", "6", "2", "attention"} <= set(shown)  # how many words
    uses = [use for use in elements(svg, "use") if COLORS[0] in (use.get("style") or "")]
    assert len(uses) == 1  # the outlier


@pytest.mark.parametrize(
    ("names", "slanted"), [(("pos", "neg", "neutral"), False), (("talk.politics.guns",) * 4, True)]
)
def test_long_names_of_boxes_are_slanted_so_that_none_covers_another(names, slanted):
    svg = score_boxes({"attention": {f"{name}{place}": [0.0, 1.0] for place, name in enumerate(names)}})
    assert ("rotate(-25" in svg) is slanted
    assert {f"{names[0]}0 2"} <= set(texts(svg)) if slanted else {f"{names[0]}0", "2"} <= set(texts(svg))


@BOTH
def test_a_type_keeps_its_colour_where_others_are_missing_and_names_are_plain_text(draw, tmp_path):
    path = tmp_path / "missing folder" / "scores.png"
    scores = {NASTY[1]: {"$a_b$": [1.0, 2.0], NASTY[3]: [0.0, 1.0]}, "second": {NASTY[3]: [5.0], "empty": []}}
    svg = draw(scores, 1, path)
    assert path.read_bytes().startswith(b"\x89PNG") and draw(scores, 1) == svg
    assert {NASTY[1], "$a_b$", NASTY[3], "second"} <= set(texts(svg)) and "empty" not in texts(svg)
    assert "<script" not in svg


def test_panels_beside_each_other():
    scores = {f"panel {place}": {"pos": [float(place), 1.5]} for place in range(4)}

    def width(columns):
        return float(re.search(r'<svg[^>]* width="([\d.]+)pt"', score_boxes(scores, columns))[1])

    assert width(2) == pytest.approx(2 * width(1)) and width(3) == pytest.approx(3 * width(1))


@BOTH
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, "nothing to draw"),
        ({"a": {"pos": []}}, "nothing to draw"),
        ({"a": {"pos": [float("nan")]}}, "'a' has the number nan for 'pos'"),
        ({"a": {str(place): [1.0] for place in range(11)}}, "more than 10 types"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, scores, message):
    with pytest.raises(InputError, match=message):
        draw(scores)
    with pytest.raises(InputError, match="columns is 0"):
        draw({"a": {"pos": [1.0]}}, 0)
