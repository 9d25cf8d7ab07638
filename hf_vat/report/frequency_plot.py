"""Importance of words by their frequency: figure 2 of the VMASK paper."""

from collections.abc import Iterable, Mapping
from math import isfinite
from os import PathLike

from hf_vat.errors import InputError
from hf_vat.inference import whole_number

from .bar_plot import shorten
from .figures import INK, LINE_STYLES, MUTED, add_legend, panels, render, text_width

_FONT_SIZE, _LINE, _GAP = 7, 8.5, 5  # points: of labels, their height, and their distance from the point
_MARK = 4  # points
_TRIES = 24  # lines up or down that a label may move
_SCALE = 1.45  # larger panels than elsewhere: they hold words
_MANY = 2000  # points from which an SVG holds them as a picture
_KINDS = ("most frequent words", "most important words", "other words")


def frequency_scatter(
    systems: Mapping[str, Iterable[tuple]], n_labels: int = 10, path: str | PathLike | None = None
) -> str:
    """Draw words as points, by count on a logarithmic axis and by importance, one panel per system.

    The most frequent and the most important words are marked and labelled; a word that is both counts as important.

    Args:
        systems: for each system, by the title to show, its words: tuples that begin with (word, importance, count), such
            as a [`GlobalImportance`](hf_vat.explanations.GlobalImportance). Counts are at least 1.
        n_labels: how many of the most frequent and how many of the most important words are labelled.
        path: also write the figure to this file, .svg or .png; missing folders are made.

    Returns:
        An SVG element to put into a page, equal for equal input; its text takes the colour of the page's text. In panels
        of more than 2,000 words the other words are a picture in it.

    Raises:
        InputError: if there is no system, one has no words, an importance is not finite, a count is less than 1, or the
            path has another suffix.
        MissingExtra: if matplotlib is not installed.
    """
    systems = {
        title: [(str(word), float(value), float(count)) for word, value, count, *_ in words]
        for title, words in systems.items()
    }
    n_labels = whole_number("n_labels", n_labels, 0)
    if not systems or not all(systems.values()):
        raise InputError(
            "There is nothing to draw: give at least one system, and (word, importance, count) for its words."
        )
    for title, words in systems.items():
        for word, value, count in words:
            if not isfinite(value) or not 1 <= count < float("inf"):
                raise InputError(
                    f"{word!r} in {title!r} has importance {value} and count {count:g}; give finite numbers, and leave out "
                    "words that do not occur (min_count=1)."
                )
    return render(lambda: _draw(systems, n_labels), path)


def _draw(systems, n_labels):
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure, axes = panels(list(systems))
    figure.set_size_inches(figure.get_size_inches() * _SCALE)
    figure.set_dpi(200)  # of the picture in an SVG
    styles = [
        {"color": color, "marker": marker, "linestyle": "", "markeredgewidth": 0, "markersize": size, "alpha": alpha}
        for color, marker, size, alpha in (
            (LINE_STYLES[0][0], "o", _MARK, 1),
            (LINE_STYLES[1][0], "s", _MARK, 1),
            (MUTED, "o", 2.5, 0.4),
        )
    ]
    labelled = []
    for (_, words), axis in zip(systems.items(), axes, strict=True):
        important = sorted(words, key=lambda row: (-row[1], -row[2], row[0]))[:n_labels]
        frequent = sorted(set(words) - set(important), key=lambda row: (-row[2], -row[1], row[0]))[:n_labels]
        others = sorted(set(words).difference(important, frequent))
        for place, (rows, style) in enumerate(zip((frequent, important, others), styles, strict=True)):
            _, importance, counts = zip(*rows, strict=True) if rows else ((), (), ())
            rasterized = rows is others and len(words) > _MANY
            axis.plot(counts, importance, **style, zorder=3 - place / 10, rasterized=rasterized)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(10))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))  # 10³ would need math text
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlim(0.7, max(count for _, _, count in words) * 4)  # labels stand to the right of points
        axis.margins(y=0.15)
        axis.tick_params(which="minor", length=0)
        axis.set_xlabel("occurrences", color=INK)
        axis.set_ylabel("importance", color=INK)
        labelled.append([*important, *frequent])
    add_legend(figure, dict(zip(_KINDS, (Line2D([], [], **style) for style in styles), strict=True)), handlelength=1)
    figure.draw_without_rendering()  # settles where the axes are
    for axis, rows in zip(axes, labelled, strict=True):
        _label(axis, rows, 72 / figure.dpi)
    return figure


def _label(axis, rows, points_per_pixel: float) -> None:
    """Write each word beside its point, moved up or down until it covers no marked point and no other label, with a
    line where it moved."""
    left, bottom, right, top = axis.bbox.extents * points_per_pixel
    marked = [axis.transData.transform((count, value)) * points_per_pixel for _, value, count in rows]
    # Left and right end, middle and half the height of what is not to be covered.
    taken = [(x - _MARK / 2, x + _MARK / 2, y, _MARK / 2) for x, y in marked]
    for (word, value, count), (x, y) in zip(rows, marked, strict=True):
        text = shorten(word)
        width = text_width(text, _FONT_SIZE)
        places = [
            (step * _LINE / 2, start)
            for step in sorted(range(-_TRIES, _TRIES + 1), key=abs)
            for start in (x + _GAP, x - _GAP - width)
        ]
        free = [
            (shift, start)
            for shift, start in places
            if left <= start and start + width <= right and bottom <= y + shift <= top
            if all(
                start > other_end + 1 or start + width < other_start - 1 or abs(y + shift - middle) >= _LINE / 2 + half
                for other_start, other_end, middle, half in taken
            )
        ]
        shift, start = (free or places)[0]
        taken.append((start, start + width, y + shift, _LINE / 2))
        axis.annotate(
            text,
            (count, value),
            ((start if start > x else start + width) - x, shift),
            textcoords="offset points",
            ha="left" if start > x else "right",
            va="center",
            fontsize=_FONT_SIZE,
            color=INK,
            zorder=4,
            in_layout=False,
            arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0}
            if shift
            else None,
        )
