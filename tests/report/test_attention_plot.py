import re
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shown import content, elements, explanation_of, texts

from hf_vat.models.words import split_words
from hf_vat.report import attention_pairs

pytest.importorskip("matplotlib")


def explain(text, scores=None, **fields):
    scores = scores or [0.0] * len(split_words(text))
    return explanation_of(text, scores, **{"prediction": 1, "probabilities": [0.25, 0.75]} | fields)


def placed(svg):
    """Each text of the figure with its x, y and colour, in the file's order."""
    return [
        (content(text), float(text.get("x")), float(text.get("y")), re.search(r"fill: ([#\w]+)", text.get("style"))[1])
        for text in elements(svg, "text")
    ]


def cells(svg):
    """Left, right and fill of each rectangle that lies below words, without the key's, in the file's order."""
    key = next(y for text, _, y, _ in placed(svg) if text.startswith("greatest weight"))
    found = []
    for path in elements(svg, "path"):
        fill = re.search(r"fill: (#\w+)", path.get("style") or "")
        corners = [tuple(map(float, corner)) for corner in re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", path.get("d"))]
        if fill and max(y for _, y in corners) < key:
            found.append((min(x for x, _ in corners), max(x for x, _ in corners), fill[1]))
    return found


def channels(color):
    return [int(color[place : place + 2], 16) for place in (1, 3, 5)]


def test_each_system_has_its_prediction_and_all_words_in_order():
    text = "not a good film , at all"
    att, vat = explain(text, gold=0), explain(text, gold=0, prediction=0)
    other = explain("dull", prediction=0)
    assert texts(attention_pairs({"ATT": [att, other], "VAT": [vat, other]})) == [
        "1.  gold label: negative",
        "ATT", "✗ positive", *text.split(),
        "VAT", "✓ negative", *text.split(),
        "2.", "ATT", "negative", "dull", "VAT", "negative", "dull",
        "0", "greatest weight of the text and system", "✗ wrong",
    ]  # fmt: skip


def test_backgrounds_are_as_strong_as_weight_by_greatest_weight():
    svg = attention_pairs({"ATT": [explain("a good film x", [0.1, 0.5, 0.25, 0.0])]})
    strip, weak, strong, middle = cells(svg)  # none for a weight of 0
    assert (strip[2], strong[2]) == ("#ffffff", "#f2992e")
    for cell, strength in ((weak, 0.2), (middle, 0.5)):
        expected = [255 + strength * (value - 255) for value in channels("#f2992e")]
        assert channels(cell[2]) == pytest.approx(expected, abs=1)
    # a word stands in the middle of its cell, dark on dark pages too
    places = {text: (x, color) for text, x, _, color in placed(svg)}
    for word, (left, right, _) in zip(("a", "good", "film"), (weak, strong, middle), strict=True):
        assert places[word] == (pytest.approx((left + right) / 2), "#1f2328")
    assert places["ATT"][1] == "currentColor"


def test_shades_are_relative_to_the_system():
    svg = attention_pairs({"ATT": [explain("a b", [0.2, 0.1])], "VAT": [explain("a b", [0.8, 0.4])]})
    fills = [fill for *_, fill in cells(svg)]
    assert fills[:3] == fills[3:] and len(set(fills)) == 3


def test_words_on_the_darkest_shade_are_readable():
    def luminance(color):
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in channels(color))
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    (_, strong), word = cells(attention_pairs({"ATT": [explain("a", [1.0])]})), "#1f2328"
    assert (luminance(strong[2]) + 0.05) / (luminance(word) + 0.05) > 4.5  # WCAG 2.2, 1.4.3


def test_words_not_seen_are_grey_and_explained():
    svg = attention_pairs({"ATT": [explain("a good film", [0.5, 0.5, 0.0], seen=[True, True, False], truncated=1)]})
    colors = {text: color for text, _, _, color in placed(svg)}
    assert colors["film"] == colors["not seen by the model"] != colors["good"]
    assert "not seen by the model" not in texts(attention_pairs({"ATT": [explain("a good film")]}))


def test_long_texts_wrap_and_long_words_are_cut():
    text = "word " * 60 + "w" * 300
    svg = attention_pairs({"ATT": [explain(text, [1.0] * 61)]})
    ((left, right, _), *own) = cells(svg)
    assert all(left <= start < end <= right + 1e-6 for start, end, _ in own)
    words = [entry for entry in placed(svg) if set(entry[0]) <= set("word")]
    assert "".join(text for text, *_ in words) == text.replace(" ", "")
    lines = [y for _, _, y, _ in words]
    heights = np.diff(sorted(set(lines)))
    assert lines == sorted(lines) and len(heights) > 5 and heights == pytest.approx(heights[0])
    key = next(y for text, _, y, _ in placed(svg) if text == "0")
    assert key > lines[-1]


def test_long_names_widen_the_figure_and_leave_room_for_words():
    svg = attention_pairs({"system " * 12: [explain("a b", names=["no", "label " * 12])]})
    assert float(elements(svg, "svg")[0].get("viewBox").split()[2]) > 504
    left, right, _ = cells(svg)[0]
    assert right - left >= 300


def test_right_to_left_texts_begin_at_the_right():
    first, second = "فيلم", "جيد"
    places = {text: x for text, x, *_ in placed(attention_pairs({"ATT": [explain(f"{first} {second}")]}))}
    assert places[first] > places[second]


def test_c82_names_and_words_are_plain_text():
    names = ["<script>", "a&b$x$", "_hidden", "</svg>", "\"'", "a\x00\nb"]
    words = ["$x$", "<b>", "]]>", "a\x0bb", "c d"]
    split = explanation_of(words, names=["<i>$"], gold=0)
    found = texts(attention_pairs({name: [split] for name in names}))
    assert {*names[:-1], "a\ufffd\ufffdb", "$x$", "<b>", "]]>", "a\ufffdb", "c d", "✓ <i>$"} <= set(found)


def test_any_script_is_drawn_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = texts(attention_pairs({"ATT": [explain("我喜欢 😀 👨‍👩‍👧 très हिन्दी"), explain("")]}))
    assert found[3:10] == ["我", "喜", "欢", "😀", "👨‍👩‍👧", "très", "हिन्दी"] and "(the text has no words)" in found


@settings(max_examples=20)
@given(st.text(max_size=30))
@example("a--b -->")
@example("w" * 200)
def test_any_text_gives_an_svg_with_all_its_words(text):
    explanation = explain(text)
    found = texts(attention_pairs({"ATT": [explanation]}))[3:-2]
    assert "".join(found) == ("".join(explanation.words) or "(the text has no words)")
