"""Explanations as an SVG file for a model card, without matplotlib and without styles.

The Hub, like others who host files of strangers, may forbid styles in an image, so all colours are attributes. Fonts of a
reader are not known here: the letters are of one width, and each word is told its own.
"""

import unicodedata
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from hf_vat.explained import Segment, gold_text, is_regression, predicted_names
from hf_vat.explanations import Explanation
from hf_vat.report.figures import printable
from hf_vat.report.layout import lay_out, pieces, right_to_left

_COLUMNS, _WORDS = 80, 120  # letters of a line, and words of a text


def explanations_svg(explanations: Sequence[Explanation]) -> str:
    """An SVG image of explanations: what was predicted, and the words, shaded by score.

    Args:
        explanations: with scores of at least 0.
    """
    blocks, top = [], 0
    for number, explanation in enumerate(explanations, start=1):
        mirrored = right_to_left(explanation.text)
        cells = list(lay_out(_shown(explanation), _COLUMNS, _width, 1, mirrored))
        blocks.append({"top": top, "headline": _cut(f"{number}. {headline(explanation)}"), "cells": cells})
        top += 3 + max(cell.line for cell in cells)  # a line for the headline, one between blocks
    return _templates.get_template("explanations.svg.jinja").render(blocks=blocks, lines=top - 1, columns=_COLUMNS)


def headline(explanation: Explanation) -> str:
    """Prediction, probability or score, and what is true, as one line of text."""
    scored = is_regression(explanation)
    said = [
        f"{name} ({output:.3f})" if scored else f"{name} ({output:.1%})"
        for name, output in predicted_names(explanation)
    ]
    line = f"predicted {', '.join(said) or 'no label'}"
    if explanation.gold is None:
        return line
    verdict = {True: ": right", False: ": wrong", None: ""}[explanation.correct]
    return f"{line}, gold {gold_text(explanation)}{verdict}"


def _shown(explanation: Explanation) -> list[Segment]:
    """The first words, and how many more there are."""
    segments = list(explanation.segments())
    rest = [
        segment._replace(word=f"… {len(segments) - _WORDS} more words", strength=0.0, seen=False)
        for segment in segments[_WORDS : _WORDS + 1]
    ]
    return segments[:_WORDS] + rest


def _width(text: str) -> int:
    marks = sum(unicodedata.category(character) in ("Mn", "Me", "Cf") for character in text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return max(1, len(text) - marks + wide)


def _cut(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if _width(line) <= _COLUMNS else f"{next(pieces(line, _COLUMNS, _width))[:-1]}…"


_templates = Environment(
    loader=PackageLoader("hf_vat.hub"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
