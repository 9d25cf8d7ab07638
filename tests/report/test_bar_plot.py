import re
from io import BytesIO
from itertools import pairwise

import pytest
from shown import NASTY, elements, texts

from hf_vat.errors import MissingExtra
from hf_vat.explanations import GlobalImportance, WordImportance
from hf_vat.report import word_bars, word_cloud
from hf_vat.report.figures import LINE_STYLES

pytest.importorskip("matplotlib")


def bars(svg):
    """Colour, left, right and middle of each bar in the file's order."""
    found = []
    for path in elements(svg, "path"):
        color = re.search(r"fill: (#\w+)", path.get("style") or "")
        if color and color[1] in {style[0] for style in LINE_STYLES}:
            x, y = zip(*re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", path.get("d")), strict=True)
            x, y = sorted(map(float, x)), sorted(map(float, y))
            found.append((color[1], x[0], x[-1], (y[0] + y[-1]) / 2))
    return found


def test_bars_are_drawn_to_scale_from_top_to_bottom():
    drawn = bars(word_bars({"sum": [("good", 0.5), ("film", 0.25), ("bad", -0.5)]}))
    assert [color for color, *_ in drawn] == [LINE_STYLES[0][0]] * 2 + [LINE_STYLES[1][0]]
    (_, zero, right, first), (_, left2, right2, second), (_, left3, right3, third) = drawn
    assert zero == pytest.approx(left2) == pytest.approx(right3)
    assert right - zero == pytest.approx(2 * (right2 - zero)) == pytest.approx(zero - left3)
    assert first < second < third and third - second == pytest.approx(second - first)


def test_rows_of_a_table_and_bars_of_one_height_in_all_panels():
    table = GlobalImportance([WordImportance(word, 1.0 + place, 2, 1) for place, word in enumerate("abcdef")])
    svg = word_bars({"LSTM": table.top(6), "CNN": table.top(2)})
    middles = [middle for *_, middle in bars(svg)]
    assert middles[:2] == pytest.approx(middles[6:])
    shown = texts(svg)
    assert {"LSTM", "CNN", "importance"} <= set(shown)
    assert [text for text in shown if text in "abcdef"] == list("fedcba") + list("fe")


def test_more_words_make_a_higher_figure_with_bars_as_high():
    for size in (1, 10, 40):
        svg = word_bars({"LSTM": [(f"word {place}", 1.0) for place in range(size)]})
        middles = [middle for *_, middle in bars(svg)]
        assert len(middles) == size
        assert all(12 < lower - upper < 16 for upper, lower in pairwise(middles))  # points


def test_words_are_plain_text():
    svg = word_bars({"$t$ <b>": [(word, 1.0) for word in [*NASTY, ""]]})
    assert set(NASTY) <= set(texts(svg)) and "<script" not in svg
    assert "$t$ <b>" in texts(svg)


def test_what_an_svg_cannot_hold_is_replaced_and_long_words_are_cut():
    shown = texts(word_bars({"LSTM": [("a\0b\nc", 1.0), ("\ud800", 1.0), ("x" * 24, 1.0), ("y" * 25, 1.0)]}))
    assert {"a\ufffdb\ufffdc", "\ufffd", "x" * 24, "y" * 23 + "…"} <= set(shown)


def test_cloud_is_a_picture_and_equal_for_equal_input(tmp_path):
    pytest.importorskip("wordcloud")
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "missing folder" / "cloud.png"
    words = [("good", 1.0, 3, 2), *((word, 0.5) for word in NASTY)]
    png = word_cloud(words, path)
    assert path.read_bytes() == png == word_cloud(words) != word_cloud(words, seed=1)
    assert image.open(BytesIO(png)).size == (800, 400)


def test_cloud_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "wordcloud", None)
    with pytest.raises(MissingExtra, match=r"needs wordcloud; run: pip install 'hf-vat\[viz\]'"):
        word_cloud([("good", 1.0)])
