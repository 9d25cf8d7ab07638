"""How numbers of words are distributed for each type of words: figures 2 to 5 of Sun & Lu (ACL 2020)."""

from collections.abc import Mapping, Sequence
from math import isfinite
from os import PathLike

import numpy as np

from hf_vat.errors import InputError
from hf_vat.inference import whole_number

from .bar_plot import shorten
from .figures import INK, LINE_STYLES, MUTED, add_legend, panels, render, text_width

_BINS = 40
_HALF_BOX = 0.3  # of the distance between two


def score_histograms(
    scores: Mapping[str, Mapping[str, Sequence[float]]], columns: int = 3, path: str | PathLike | None = None
) -> str:
    """Draw how scores are distributed, one panel for each kind of score and in it an outline for each type of words: figures 2
    to 4 of Sun & Lu (ACL 2020).

    Outlines enclose the same area whatever the number of words. A type has one colour and dashes in all panels.

    Args:
        scores: for each panel, by its title, the numbers of each type by name, such as `table.by_type("polarity_score")` of
            [`AttentionScores`](hf_vat.analysis.AttentionScores).
        columns: panels beside each other; with three data sets, first their polarity and then their attention scores give the
            figure of the paper.
        path: also write the figure to this file, .svg or .png; missing folders are made.

    Returns:
        An SVG element to put into a page, equal for equal input; its text takes the colour of the page's text.

    Raises:
        InputError: if there is nothing to draw, a number is not finite, there are more than ten types, or the path has another
            suffix.
        MissingExtra: if matplotlib is not installed.
    """
    columns = whole_number("columns", columns, 1)
    checked = _check(scores)
    return render(lambda: _draw_histograms(checked, columns), path)


def score_boxes(
    scores: Mapping[str, Mapping[str, Sequence[float]]], columns: int = 3, path: str | PathLike | None = None
) -> str:
    """Draw medians, quartiles and outliers of numbers, one panel for each kind of number and in it a box for each type of
    words: figure 5 of Sun & Lu (ACL 2020).

    Whiskers reach to the last number within 1.5 times the height of the box; circles are numbers beyond.

    Args:
        scores: as in [`score_histograms`], such as `table.by_type("attention")`.
        columns, path: as in [`score_histograms`].

    Returns:
        An SVG element, as [`score_histograms`].

    Raises:
        InputError: as [`score_histograms`].
        MissingExtra: if matplotlib is not installed.
    """
    columns = whole_number("columns", columns, 1)
    checked = _check(scores)
    return render(lambda: _draw_boxes(checked, columns), path)


def _check(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, dict[str, list[float]]]:
    checked = {
        str(title): {str(name): list(map(float, values)) for name, values in types.items() if len(values)}
        for title, types in scores.items()
    }
    if not checked or not all(checked.values()):
        raise InputError("There is nothing to draw: give at least one panel, and a type of words with numbers in each.")
    for title, types in checked.items():
        for name, values in types.items():
            wrong = [value for value in values if not isfinite(value)]
            if wrong:
                raise InputError(f"{title!r} has the number {wrong[0]} for {name!r}; give finite numbers.")
    if len(_styles(checked)) > len(LINE_STYLES):
        raise InputError(f"There are more than {len(LINE_STYLES)} types of words; draw fewer.")
    return checked


def _styles(scores: dict[str, dict[str, list[float]]]) -> dict[str, int]:
    """The place in `LINE_STYLES` of each type."""
    names = dict.fromkeys(name for types in scores.values() for name in types)
    return {name: place for place, name in enumerate(names)}


def _draw_histograms(scores, columns):
    from matplotlib.lines import Line2D

    figure, axes = panels(list(scores), columns)
    styles = {name: LINE_STYLES[place] for name, place in _styles(scores).items()}
    for types, axis in zip(scores.values(), axes, strict=True):
        edges = np.histogram_bin_edges(np.concatenate(list(types.values())), _BINS)
        for name, values in types.items():
            color, dashes, _ = styles[name]
            density, _ = np.histogram(values, edges, density=True)
            axis.stairs(density, edges, fill=True, color=color, alpha=0.15, zorder=2)
            axis.stairs(density, edges, edgecolor=color, linestyle=dashes, linewidth=1.4, zorder=3)
        axis.axvline(0, color=MUTED, linewidth=0.8, zorder=1)
        axis.set_ylim(bottom=0)
        axis.set_ylabel("density", color=INK)
    handles = [Line2D([], [], color=color, linestyle=dashes) for color, dashes, _ in styles.values()]
    add_legend(figure, dict(zip(map(shorten, styles), handles, strict=True)))
    return figure


def _draw_boxes(scores, columns):
    figure, axes = panels(list(scores), columns)
    styles = _styles(scores)
    room = 72 * 0.8 * figure.get_figwidth() / min(len(scores), columns)  # points of a panel's axis
    slanted = any(len(types) * text_width(shorten(name), 9) > room for types in scores.values() for name in types)
    if slanted:
        figure.set_figheight(1.3 * figure.get_figheight())
    for types, axis in zip(scores.values(), axes, strict=True):
        drawn = axis.boxplot(list(types.values()), widths=2 * _HALF_BOX, patch_artist=True, zorder=2)
        between = " " if slanted else "\n"
        axis.set_xticks(range(1, len(types) + 1), [f"{shorten(name)}{between}{len(types[name])}" for name in types])
        if slanted:
            for label in axis.get_xticklabels():
                label.set(rotation=25, ha="right", rotation_mode="anchor")
        axis.tick_params(axis="x", length=0)
        axis.grid(visible=False, axis="x")
        for name, box, outliers in zip(types, drawn["boxes"], drawn["fliers"], strict=True):
            color = LINE_STYLES[styles[name]][0]
            box.set(facecolor=(color, 0.3), edgecolor=color)
            outliers.set(markeredgecolor=color, markersize=3)
        for part in ("whiskers", "caps", "medians"):
            for line in drawn[part]:
                line.set(color=INK, linewidth=1.4 if part == "medians" else 0.8)
    return figure
