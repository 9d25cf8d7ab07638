"""What all figures share: style, axes, legend, and the way to SVG and PNG.

matplotlib is imported only here and in the functions that draw, and only when they draw.
"""

import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from math import ceil
from os import PathLike
from pathlib import Path

from hf_vat.errors import InputError, import_extra
from hf_vat.writing import written_beside

INK = "#3d444d"
MUTED = "#8a919a"
# Colour, dashes and marker of each line. Medium colours, the first by Okabe and Ito, stand out on white and on black;
# dashes and markers tell lines apart for colour-blind readers and in grey.
LINE_STYLES = (
    ("#3d96d8", "-", "o"),
    ("#e0701a", (0, (5, 1.5)), "s"),
    ("#1b9e77", (0, (1.5, 1)), "^"),
    ("#cc79a7", (0, (5, 1.5, 1, 1.5)), "D"),
    ("#a98b00", "-", "v"),
    ("#8668d6", (0, (5, 1.5)), "P"),
    ("#d4495c", (0, (1.5, 1)), "X"),
    ("#1fa3b5", (0, (5, 1.5, 1, 1.5)), "p"),
    ("#9b6a3c", "-", "<"),
    ("#6f9a2b", (0, (5, 1.5)), ">"),
)
_RC = {
    "svg.hashsalt": "hf_vat",  # ids in the file are random without it
    "svg.fonttype": "none",
    "text.parse_math": False,  # a $ in a name is a $
    "font.size": 9,
    "font.family": ["DejaVu Sans", "sans-serif"],  # every text of an SVG repeats the list
}
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_PANEL_SIZE = (3.2, 2.3)  # inches
_TITLE_SIZE = 9.5  # points
_TITLE_LEFT = 0.8  # inches, of the ticks' labels left of a title and a gap right of it


def render(draw: Callable, path: str | PathLike | None) -> str:
    """Call `draw`, which returns a matplotlib figure, and write what it draws.

    Args:
        draw: a function without arguments.
        path: also write the figure to this file, .svg or .png; missing folders are made.

    Returns:
        An SVG element to put into a page, equal for equal figures; what is drawn in `INK` takes the colour of the
        page's text.

    Raises:
        InputError: if the path has another suffix.
        MissingExtra: if matplotlib is not installed.
    """
    path = None if path is None else Path(path)
    if path is not None and path.suffix.lower() not in (".svg", ".png"):
        raise InputError(f"{str(path)!r} ends in {path.suffix!r}; figures are written as .svg or .png.")
    matplotlib = import_extra("matplotlib", "viz")
    with matplotlib.rc_context(_RC):
        with warnings.catch_warnings():
            # Who reads an SVG has fonts of their own; a PNG does lack the character, and says so.
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            figure = draw()
            svg = StringIO()
            figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
            with written_beside(path) as partial:
                figure.savefig(partial, format=path.suffix[1:].lower(), dpi=150, metadata=metadata)
    element = svg.getvalue()
    # Nothing refers to the ids of groups (axes_1, …), which a page with two figures would hold twice.
    element = re.sub(r'<g id="[^"]*"', "<g", element[element.index("<svg") :])
    return element.replace(INK, "currentColor")


def panels(titles: Sequence[str], columns: int = 3):
    """A figure with one panel for each title, at most `columns` beside each other, all of one size, with room for the titles."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = min(len(titles), columns)
    rows = ceil(len(titles) / columns)
    longest = max(text_width(line, _TITLE_SIZE) for title in titles for line in title.splitlines())
    width, height = _PANEL_SIZE
    width = min(max(width, longest / 72 + _TITLE_LEFT), 2 * width)  # a title may be a model's path
    figure = Figure(figsize=(width * columns, height * rows), layout=ConstrainedLayoutEngine(h_pad=0.1))
    axes = figure.subplots(rows, columns, squeeze=False).flat
    for title, axis in zip(titles, axes, strict=False):
        axis.set_title(title, loc="left", color=INK, fontsize=_TITLE_SIZE)
        axis.tick_params(color=MUTED, labelcolor=INK)
        axis.grid(color=MUTED, alpha=0.25, linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.spines[["left", "bottom"]].set_color(MUTED)
    for axis in axes[len(titles) :]:
        axis.set_visible(False)
    return figure, list(axes[: len(titles)])


def add_legend(figure, lines: Mapping[str, object], handlelength: float = 3.2) -> None:
    """A legend of the lines by name below the panels, which keep their size; `handlelength` in font sizes."""
    longest = max(map(len, lines))
    columns = max(1, min(len(lines), int(figure.get_figwidth() / (0.65 + 0.07 * longest))))
    figure.set_figheight(figure.get_figheight() + 0.2 + 0.2 * ceil(len(lines) / columns))
    figure.legend(
        lines.values(),
        lines,
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        labelcolor=INK,
        handlelength=handlelength,
    )


def printable(text: str) -> str:
    """A text as a figure can hold it: � for control characters, which no SVG may have, and for halves of characters."""
    return _UNPRINTABLE.sub("\ufffd", text)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width in points of a text of a size in points.

    Wide characters (Han, emoji) count one em at least, as matplotlib's fonts may lack them.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    width *= 1.02  # whole pixels make letters of a PNG wider
    return max(width, size * sum(unicodedata.east_asian_width(character) in "WF" for character in text))
