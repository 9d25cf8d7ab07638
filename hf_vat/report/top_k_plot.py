"""Top-K curves: how scores of explanation methods change with the number, or the share, of top words."""

from collections.abc import Mapping, Sequence
from math import isfinite
from os import PathLike
from typing import NamedTuple

from hf_vat.errors import InputError

from .figures import INK, LINE_STYLES, MUTED, add_legend, panels, render

_RANDOM = "random"
_RANDOM_STYLE = (MUTED, (0, (4, 2)), ".")


class _Panel(NamedTuple):
    title: str
    note: str = "higher is better ↑"
    x_label: str = "top words"


_PANELS = {
    "prob_drop": _Panel("Probability lost without the top words"),
    "accuracy_drop": _Panel("Accuracy lost without the top words"),
    "posthoc_gold": _Panel("Accuracy on the top words alone"),
    "posthoc_self": _Panel("Same prediction on the top words alone"),
    "comprehensiveness": _Panel("Probability lost without the top share", x_label="share of words"),
    "sufficiency": _Panel("Probability lost on the top share alone", "lower is better ↓", "share of words"),
    "output_change": _Panel("Score changed without the top words"),
    "posthoc_change": _Panel("Score changed on the top words alone", "lower is better ↓"),
    "precision": _Panel("Top words that are evidence"),
    "recall": _Panel("Evidence found among the top words"),
    "f1": _Panel("F1 of the top words against the evidence"),
    "adversary": _Panel(
        "Output moved by another attention", "higher is harder to replace ↑", "JSD of the attentions, nats"
    ),
}

_OF_SCORES = {
    "comprehensiveness": _Panel("Score changed without the top share", x_label="share of words"),
    "sufficiency": _Panel("Score changed on the top share alone", "lower is better ↓", "share of words"),
}


def top_k_curves(
    curves: Mapping[str, Mapping[str, Sequence[tuple[float, float, float, float]]]],
    path: str | PathLike | None = None,
    percent: bool = True,
) -> str:
    """Draw scores by number of top words: one panel per score, one line with its interval per method.

    The method "random" is drawn in grey dashes and stands last in the legend.

    Args:
        curves: for each score, by names such as "prob_drop" or "recall", and each method, by the name to show, its
            points (x, mean, low, high): x is a number of words, for "comprehensiveness" and "sufficiency" a share of
            them, for "adversary" a divergence; the others are the score and its interval, fractions that are drawn in percent. A score of another
            name is drawn under its name.
        percent: whether the scores are fractions; otherwise they are on the scale of a regression's output.
        path: also write the figure to this file, .svg or .png; missing folders are made.

    Returns:
        An SVG element to put into a page, equal for equal input; its text takes the colour of the page's text.

    Raises:
        InputError: if there is no point, a point is not four finite numbers, there are more than ten methods beside
            "random", or the path has another suffix.
        ImportError: if matplotlib is not installed.
    """
    drawn = {
        score: {name: sorted(map(tuple, points)) for name, points in methods.items() if len(points)}
        for score, methods in curves.items()
        if any(map(len, methods.values()))
    }
    _check(drawn)
    names = list(dict.fromkeys(name for methods in drawn.values() for name in methods if name != _RANDOM))
    if len(names) > len(LINE_STYLES):
        raise InputError(
            f"There are {len(names)} methods; {len(LINE_STYLES)} beside {_RANDOM!r} can be told apart. Draw several "
            "figures."
        )
    styles = dict(zip(names, LINE_STYLES, strict=False)) | {_RANDOM: _RANDOM_STYLE}
    return render(lambda: _draw(drawn, styles, percent), path)


def _check(curves) -> None:
    if not curves:
        raise InputError("There is nothing to draw: give at least one point (x, mean, low, high) of one method.")
    for score, methods in curves.items():
        for name, points in methods.items():
            for point in points:
                if len(point) != 4 or not all(map(isfinite, point)):
                    raise InputError(
                        f"A point of {name!r} in {score!r} is {point}; give four finite numbers (x, mean, low, high)."
                    )


def _draw(curves, styles, percent: bool):
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    known = _PANELS if percent else _PANELS | _OF_SCORES
    shown = [known.get(score, _Panel(score, "")) for score in curves]
    figure, axes = panels([f"{panel.title}\n" for panel in shown])
    lines = {}
    for (score, methods), panel, axis in zip(curves.items(), shown, axes, strict=True):
        note = " · ".join(part for part in (score, panel.note) if part and part != panel.title)
        axis.text(0, 1.04, note, transform=axis.transAxes, color=INK, alpha=0.75, fontsize=8)
        for name, points in methods.items():
            color, dashes, marker = styles[name]
            x, mean, low, high = zip(*points, strict=True)
            # Thin edges keep intervals visible where bands overlap, and those of a single point.
            axis.fill_between(x, low, high, facecolor=(color, 0.1), edgecolor=(color, 0.25), linewidth=0.5, zorder=1)
            (lines[name],) = axis.plot(
                x, mean, color=color, linestyle=dashes, linewidth=1.2, marker=marker, markersize=3.5, zorder=2
            )
        axis.set_xlabel(panel.x_label, color=INK)
        if percent or score in ("precision", "recall", "f1"):
            axis.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        if panel.x_label == "share of words":
            axis.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        elif panel.x_label == "top words":
            places = [point[0] for points in methods.values() for point in points]
            axis.set_xlim(min(places) - 0.5, max(places) + 0.5)
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    add_legend(figure, {name: lines[name] for name in styles if name in lines})
    return figure
