"""Attention over the words of texts, system under system, as a figure to print: figure 7 of the VAT paper."""

from collections.abc import Mapping, Sequence
from os import PathLike

from hf_vat.errors import InputError
from hf_vat.explained import Explained, gold_text, is_regression, predicted_names

from .figures import INK, MUTED, printable, render, text_width
from .html import check_same_texts
from .layout import lay_out, right_to_left

# One hue from light to strong. Words on it are dark and it stays light, on white pages and on black ones.
_PAPER, _STRONG, _WORD, _UNSEEN = "#ffffff", "#f2992e", "#1f2328", "#757c85"
_WRONG = "#d4495c"
# Points (1/72 inch).
_WIDTH, _LEAST_WORDS, _MARGIN, _GAP, _PAD = 7 * 72, 4.6 * 72, 8, 12, 1.6
_SIZE, _LINE, _CELL = 9, 16.5, 13.5
_SPACE = 1.8


def attention_pairs(runs: Mapping[str, Sequence[Explained]], path: str | PathLike | None = None) -> str:
    """Draw the attention of one or several systems over the same texts, word under word.

    A block for each text: its gold label, if known, then for each system its name, its prediction (✓ right, ✗ wrong)
    and the words in order. The background of a word is as strong as its weight divided by the greatest of the text and
    system, so shades compare within a line, not between lines. Words that the model did not see are grey.

    Args:
        runs: for each system, by the name to show, such as "ATT" and "VAT", its explanations; all of the same texts in
            the same order. A few texts fill a page.
        path: also write the figure to this file, .svg or .png; missing folders are made. An .svg has all
            characters; a .png has boxes, and matplotlib warns, for those that its fonts lack: add a font that has them
            to its setting `font.sans-serif`.

    Returns:
        An SVG element to put into a page, equal for equal input, 7 inches wide or more where names are long; text
        beside the words takes the colour of the page's text.

    Raises:
        InputError: if there is no text, the explanations are not of the same texts, a score is below 0 (not a weight of
            attention), or the path has another suffix.
        ImportError: if matplotlib is not installed.
    """
    runs = {name: list(explanations) for name, explanations in runs.items()}
    _check(runs)
    return render(lambda: _draw(runs), path)


def _check(runs) -> None:
    if not any(runs.values()):
        raise InputError("There is nothing to draw: give the explanations of at least one text by one system.")
    check_same_texts(runs)
    for name, explanations in runs.items():
        for position, explanation in enumerate(explanations):
            if min(explanation.check_scores(), default=0) < 0:
                raise InputError(
                    f"Text {position} of {name!r} has the score {min(explanation.scores):.3g}; weights of attention are "
                    "0 or more. Signed scores are drawn by hf_vat.report.page."
                )


def _draw(runs):
    from matplotlib.figure import Figure

    systems = {name: printable(name) for name in runs}
    predictions = {_prediction(explanation) for explanations in runs.values() for explanation in explanations}
    names_width = max(text_width(name, _SIZE, bold=True) for name in systems.values()) + _GAP
    left = _MARGIN + names_width + max(text_width(prediction, _SIZE) for prediction in predictions) + _GAP
    width = max(_WIDTH, left + _LEAST_WORDS + _MARGIN)
    figure = Figure()
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_axis_off()

    y = _MARGIN
    for position, explanations in enumerate(zip(*runs.values(), strict=True), start=1):
        gold = [gold_text(own) for own in explanations if own.gold is not None][:1]
        title = "  ".join([f"{position}.", *(f"gold label: {printable(name)}" for name in gold)])
        _write(axis, title, _MARGIN, y, color=INK, alpha=0.75)
        y += _LINE
        for name, explanation in zip(systems.values(), explanations, strict=True):
            _write(axis, name, _MARGIN, y, color=INK, weight="bold")
            color = _WRONG if explanation.correct is False else INK
            _write(axis, _prediction(explanation), _MARGIN + names_width, y, color=color)
            y += _LINE * _draw_words(axis, explanation, left, y, width - left - _MARGIN) + 2
        y += 8
    _draw_key(axis, runs, y)
    height = y + _LINE + _MARGIN
    axis.set(xlim=(0, width), ylim=(height, 0))
    figure.set_size_inches(width / 72, height / 72)
    return figure


def _draw_words(axis, explanation, left: float, top: float, width: float) -> int:
    """Draw the words of a text into a column and return the number of its lines."""
    mirrored = right_to_left(explanation.text)
    cells = list(lay_out(explanation.segments(), width, _cell_width, _SPACE, mirrored))
    lines = 1 + max((cell.line for cell in cells), default=0)
    if not cells:
        _write(axis, "(the text has no words)", left, top, color=INK, alpha=0.75)
        return lines
    # Light below all words: white on white paper, a card on a dark page.
    _fill(axis, left, top, width, _LINE * lines, 0)
    for cell in cells:
        x = left + cell.x
        y = top + _LINE * cell.line
        if cell.strength > 0:
            _fill(axis, x, y + (_LINE - _CELL) / 2, cell.width, _CELL, cell.strength)
        # In the middle, as a page may have another font.
        _write(axis, cell.text, x + cell.width / 2, y, color=_WORD if cell.seen else _UNSEEN, ha="center")
    return lines


def _cell_width(text: str) -> float:
    return text_width(text, _SIZE) + 2 * _PAD


def _draw_key(axis, runs, y: float) -> None:
    from matplotlib.patches import Rectangle

    explanations = [explanation for own in runs.values() for explanation in own]
    left, length, steps = _MARGIN + 10, 72, 24
    _write(axis, "0", _MARGIN, y, color=INK, alpha=0.75)
    for step in range(steps):  # each to the end, as seams would show
        start = step * length / steps
        _fill(axis, left + start, y + 4, length - start, _LINE - 8, step / (steps - 1))
    axis.add_artist(Rectangle((left, y + 4), length, _LINE - 8, facecolor="none", edgecolor=MUTED, linewidth=0.6))
    notes = {"greatest weight of the text and system": {"color": INK, "alpha": 0.75}}
    if any(explanation.correct is False for explanation in explanations):
        notes["✗ wrong"] = {"color": _WRONG}
    if not all(seen for explanation in explanations for seen in explanation.seen):
        notes["not seen by the model"] = {"color": _UNSEEN}
    x: float = left + length + 4
    for note, style in notes.items():
        _write(axis, note, x, y, **style)
        x += text_width(note, _SIZE) + _GAP


def _prediction(explanation) -> str:
    mark = {True: "✓ ", False: "✗ ", None: ""}[explanation.correct]
    if is_regression(explanation):
        return ", ".join(f"{output:.3g}" for output in explanation.probabilities)
    return mark + printable(", ".join(name for name, _ in predicted_names(explanation)) or "no label")


def _write(axis, text: str, x: float, top: float, **style) -> None:
    """Write text on the line below `top`."""
    axis.text(x, top + _LINE / 2 + _SIZE * 0.36, text, fontsize=_SIZE, va="baseline", **style)


def _fill(axis, x: float, y: float, width: float, height: float, strength: float) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    color = [low + strength * (high - low) for low, high in zip(to_rgb(_PAPER), to_rgb(_STRONG), strict=True)]
    axis.add_artist(Rectangle((x, y), width, height, facecolor=color, linewidth=0, clip_on=False))
