"""Explanations as an SVG file for a model card, without matplotlib and without styles.

The Hub, like others who host files of strangers, may forbid styles in an image, so all colours are attributes. Fonts of a
reader are not known here: the letters are of one width, and each word is told its own.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from hf_vat.explanations import Explanation
from hf_vat.report.attention_plot import right_to_left
from hf_vat.report.figures import printable

_COLUMNS, _WORDS = 80, 120  # letters of a line, and words of a text


class Cell(NamedTuple):
    """A word, or a piece of a long one: its first column, line, width in columns, and strength in [0, 1]."""

    text: str
    column: int
    line: int
    width: int
    strength: float
    seen: bool


def explanations_svg(explanations: Sequence[Explanation]) -> str:
    """An SVG image of explanations: what was predicted, and the words, shaded by score.

    Args:
        explanations: with scores of at least 0.
    """
    blocks, top = [], 0
    for number, explanation in enumerate(explanations, start=1):
        cells = list(_lay_out(explanation))
        blocks.append({"top": top, "headline": _cut(f"{number}. {headline(explanation)}"), "cells": cells})
        top += 3 + max(cell.line for cell in cells)  # a line for the headline, one between blocks
    return _templates.get_template("explanations.svg.jinja").render(blocks=blocks, lines=top - 1, columns=_COLUMNS)


def headline(explanation: Explanation) -> str:
    """Prediction, probability and gold label, as one line of text."""
    names = explanation.label_names
    predicted = f"predicted {names[explanation.prediction]} ({explanation.probabilities[explanation.prediction]:.1%})"
    if explanation.gold is None:
        return predicted
    return f"{predicted}, gold {names[explanation.gold]}: {'right' if explanation.correct else 'wrong'}"


def _lay_out(explanation: Explanation) -> Iterator[Cell]:
    mirrored = right_to_left(explanation.text)
    column, line = 0, 0
    for number, (before, word, _, strength, seen) in enumerate(explanation.segments()):
        if number == _WORDS:
            word, strength, seen = f"… {len(explanation.words) - _WORDS} more words", 0.0, False
        if column and before:
            column += 1
        for piece in _pieces(printable(word)):
            width = _width(piece)
            if column and column + width > _COLUMNS:
                column, line = 0, line + 1
            yield Cell(piece, _COLUMNS - column - width if mirrored else column, line, width, strength, seen)
            column += width
        if number == _WORDS:
            return


def _pieces(text: str) -> Iterator[str]:
    """A word, cut where it is wider than a line."""
    piece = ""
    for character in text:
        if _width(piece + character) > _COLUMNS:
            yield piece
            piece = ""
        piece += character
    yield piece


def _width(text: str) -> int:
    marks = sum(unicodedata.category(character) in ("Mn", "Me", "Cf") for character in text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return max(1, len(text) - marks + wide)


def _cut(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if _width(line) <= _COLUMNS else f"{next(_pieces(line))[:-1]}…"


_templates = Environment(
    loader=PackageLoader("hf_vat.hub"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
