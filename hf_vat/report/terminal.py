"""Explanations and tables as lines of text, with or without ANSI colours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hf_vat.errors import InputError

if TYPE_CHECKING:
    from hf_vat.explanations import Explanation

# Colour codes of the 256-colour palette, which all terminals have, from weak to strong.
_POSITIVE = (230, 229, 222, 221, 214)
_NEGATIVE = (195, 153, 117, 111, 75)
_BLACK = 16
# A text must not be able to send control codes to the terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def heatmap(explanation: Explanation, color: bool = True, top: int = 5) -> str:
    """The prediction, the text with its words shaded by score, and the `top` words with their scores."""
    segments = list(explanation.segments())
    body = "".join(_clean(before) + _draw(word, strength, color) for before, word, _, strength, _ in segments)
    lines = [_headline(explanation), *body.strip().splitlines()]
    if not segments:
        lines.append("(the text has no words)")
    if explanation.tied:
        lines.append("All words tie: the scores rank none of them above another.")
    elif segments:
        ranked = sorted(segments, key=lambda segment: -segment.score)  # stable: the earlier of two equal words first
        lines.append(f"highest: {_list(ranked[:top])}")
        if any(segment.score < 0 for segment in segments):
            lines.append(f"lowest: {_list(ranked[: -top - 1 : -1])}")
    if explanation.truncated:
        lines.append(f"Cut off, not seen by the model: {explanation.truncated} words.")
    return "\n".join(lines)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A text table with aligned columns: the first to the left, all others, usually numbers, to the right.

    Raises:
        InputError: if a row has another number of cells than there are columns.
    """
    for row in rows:
        if len(row) != len(columns):
            raise InputError(f"A row of the table has {len(row)} cells for {len(columns)} columns: {list(row)}.")
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lines = [columns, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _headline(explanation: Explanation) -> str:
    names = explanation.label_names
    parts = [f"{names[explanation.prediction]} ({explanation.probabilities[explanation.prediction]:.3f})"]
    if explanation.gold is not None:
        parts.append("right" if explanation.correct else f"WRONG, gold is {names[explanation.gold]}")
    if explanation.target != explanation.prediction:
        parts.append(f"explained class {names[explanation.target]}")
    parts += [explanation.method, explanation.model]
    return _clean(" | ".join(part for part in parts if part))


def _draw(word: str, strength: float, color: bool) -> str:
    level = round(abs(strength) * len(_POSITIVE))
    if not color or level == 0:
        return _clean(word)
    shade = (_POSITIVE if strength > 0 else _NEGATIVE)[level - 1]
    return f"\x1b[38;5;{_BLACK};48;5;{shade}m{_clean(word)}\x1b[0m"


def _list(segments) -> str:
    return ", ".join(f"{_clean(segment.word)} {segment.score:.3f}" for segment in segments)


def _clean(text: str) -> str:
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))
