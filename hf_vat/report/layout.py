"""The words of a text in lines, whatever draws them."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from hf_vat.explained import Segment

from .figures import printable


class Cell(NamedTuple):
    """A word, or a piece of a long one, at its place among the words: `x` from the left, `line` from the top, both from 0;
    `strength` in [0, 1]."""

    text: str
    x: float
    line: int
    width: float
    strength: float
    seen: bool


def lay_out(
    segments: Iterable[Segment], width: float, measure: Callable[[str], float], space: float, mirrored: bool
) -> Iterator[Cell]:
    """Put words side by side, line under line.

    Args:
        width: of a line, in the unit of `measure`, the width of a word; and of `space`, between words.
        mirrored: words begin at the right.
    """
    x: float = 0
    line = 0
    for segment in segments:
        if x and segment.before:
            x += space
        for piece in pieces(printable(segment.word), width, measure):
            own = measure(piece)
            if x and x + own > width:
                x, line = 0, line + 1
            yield Cell(piece, width - x - own if mirrored else x, line, own, segment.strength, segment.seen)
            x += own


def pieces(word: str, width: float, measure: Callable[[str], float]) -> Iterator[str]:
    """The word, cut where it is wider than a line."""
    while measure(word) > width:
        end = next(end for end in range(2, len(word) + 1) if measure(word[:end]) > width) - 1
        yield word[:end]
        word = word[end:]
    yield word


def right_to_left(text: str) -> bool:
    """Whether the first letter with a direction says so, as in `dir="auto"` of HTML."""
    directions = map(unicodedata.bidirectional, text)
    return next((direction for direction in directions if direction in ("L", "R", "AL")), "L") != "L"
