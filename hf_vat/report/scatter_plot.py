"""Texts as points in the plane, such as t-SNE of their vectors, by class: figures 3 and 6 of the VAT paper."""

from collections.abc import Mapping, Sequence
from os import PathLike

import numpy as np

from hf_vat.errors import InputError

from .figures import INK, LINE_STYLES, MUTED, add_legend, panels, render

_SIZES = {
    "s": 0.9,
    "D": 0.85,
    "^": 1.1,
    "v": 1.1,
    "<": 1.1,
    ">": 1.1,
    "P": 1.15,
    "X": 1.15,
    "p": 1.1,
}  # equal to the eye


def text_scatter(
    systems: Mapping[str, tuple[Sequence[Sequence[float]], Sequence[int]]],
    class_names: Sequence[str],
    notes: Mapping[str, str] | None = None,
    path: str | PathLike | None = None,
) -> str:
    """Draw texts as points, one panel per system, each class with a colour and a marker of its own.

    The axes are scaled alike and have no numbers: those of t-SNE have no unit. Of points at one place, that of the
    rarer class is on top.

    Args:
        systems: for each system, by the title to show, such as "ATT" or "VAT, iteration 1", its points, shape [N, 2],
            and their class ids, shape [N].
        class_names: name of each class, by id; at most ten.
        notes: for a title, a line to show below it, such as "silhouette 0.41, kNN accuracy 92.4 %".
        path: also write the figure to this file, .svg or .png; missing folders are made.

    Returns:
        An SVG element to put into a page, equal for equal input, of about 100 bytes per point; its text takes the
        colour of the page's text.

    Raises:
        InputError: if there is no system, a system has no points or their shape is another, a number is not finite, a
            class id has no name, a note has no system, there are more than ten classes or two of one name, or the path
            has another suffix.
        ImportError: if matplotlib is not installed.
    """
    arrays = {title: (np.asarray(points), np.asarray(labels)) for title, (points, labels) in systems.items()}
    notes = dict(notes or {})
    _check(arrays, class_names, notes)
    return render(lambda: _draw(arrays, class_names, notes), path)


def _check(systems, class_names, notes) -> None:
    if not systems:
        raise InputError("There is nothing to draw: give the points and labels of at least one system.")
    if len(class_names) > len(LINE_STYLES):
        raise InputError(
            f"There are {len(class_names)} classes; {len(LINE_STYLES)} can be told apart. Draw some of them, or join some."
        )
    if len(set(class_names)) < len(class_names):
        raise InputError(f"Two of the class names {', '.join(map(repr, class_names))} are equal; give each its own.")
    for title, (points, labels) in systems.items():
        if points.ndim != 2 or points.shape[1] != 2 or not len(points) or labels.shape != points.shape[:1]:
            raise InputError(
                f"{title!r} has points of shape {points.shape} and labels of shape {labels.shape}; give points [N, 2] "
                "and labels [N]."
            )
        if not np.isfinite(points).all():
            raise InputError(f"{title!r} has points that are not finite; leave them out.")
        for label in labels.tolist():
            if label not in range(len(class_names)):
                raise InputError(
                    f"{title!r} has the label {label!r}; labels are ids of the {len(class_names)} class names, 0 to "
                    f"{len(class_names) - 1}."
                )
    for title in notes:
        if title not in systems:
            raise InputError(f"There is a note for {title!r}; the systems are {', '.join(map(repr, systems))}.")


def _draw(systems, class_names, notes):
    from matplotlib.lines import Line2D

    figure, axes = panels([f"{title}\n" if notes else title for title in systems])
    figure.set_figheight(figure.get_figheight() * 1.3)  # nearly square panels
    styles = [
        {"color": color, "marker": marker, "linestyle": "", "markeredgewidth": 0}
        for color, _, marker in LINE_STYLES[: len(class_names)]
    ]
    most = max(len(points) for points, _ in systems.values())
    size = float(np.clip(90 / np.sqrt(most), 2.5, 5))  # points: 2.8 for 1,000 texts
    for (title, (points, labels)), axis in zip(systems.items(), axes, strict=True):
        axis.text(0, 1.03, notes.get(title, ""), transform=axis.transAxes, color=INK, alpha=0.75, fontsize=8)
        counts = [int((labels == label).sum()) for label in range(len(class_names))]
        for place, label in enumerate(sorted(range(len(class_names)), key=counts.__getitem__, reverse=True)):
            style = styles[label]
            x, y = points[labels == label].T
            scale = _SIZES.get(style["marker"], 1)
            # Transparent, so that crowds look denser; without outlines, which would double the file.
            axis.plot(x, y, **style, markersize=size * scale, alpha=0.75, zorder=2 + place / 100)
        axis.set_xticks([])
        axis.set_yticks([])
        axis.margins(0.04)
        axis.set_aspect("equal", adjustable="datalim")
        axis.spines[:].set(visible=True, color=MUTED, linewidth=0.6)
    keys = [Line2D([], [], **style, markersize=6 * _SIZES.get(style["marker"], 1)) for style in styles]
    add_legend(figure, dict(zip(class_names, keys, strict=True)), handlelength=1)
    return figure
