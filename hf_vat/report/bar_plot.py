"""The most important words of systems, as bars or as a cloud: figure 3 of the VMASK paper."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from math import isfinite
from os import PathLike
from pathlib import Path

from hf_vat.errors import InputError, import_extra
from hf_vat.inference import whole_number
from hf_vat.writing import written_beside

from .figures import INK, LINE_STYLES, panels, printable, render

_BAR_HEIGHT = 0.19  # inches
_LONGEST_NAME = 24  # characters


def word_bars(systems: Mapping[str, Sequence[tuple]], path: str | PathLike | None = None) -> str:
    """Draw words with their importance as bars, one panel per system, the first word on top.

    Bars of negative importance, as sums of signed scores have, go to the left in a colour of their own. Words of more
    than 24 characters are cut.

    Args:
        systems: for each system, by the title to show, its words in the order to draw: tuples that begin with (word,
            importance), such as the rows of `table.top(10)` of a
            [`GlobalImportance`](hf_vat.explanations.GlobalImportance).
        path: also write the figure to this file, .svg or .png; missing folders are made.

    Returns:
        An SVG element to put into a page, equal for equal input; its text takes the colour of the page's text.

    Raises:
        InputError: if there is no system, one has no words, an importance is not finite, or the path has another suffix.
        MissingExtra: if matplotlib is not installed.
    """
    systems = {title: [(str(word), float(value)) for word, value, *_ in words] for title, words in systems.items()}
    if not systems or not all(systems.values()):
        raise InputError("There is nothing to draw: give at least one system, and (word, importance) for its words.")
    for title, words in systems.items():
        for word, value in words:
            if not isfinite(value):
                raise InputError(f"The importance of {word!r} in {title!r} is {value}; give finite numbers.")
    return render(lambda: _draw(systems), path)


def word_cloud(words: Sequence[tuple], path: str | PathLike | None = None, seed: int = 0) -> bytes:
    """Draw words as large as they are important, for a look: sizes cannot be read off, see [`word_bars`].

    Args:
        words: tuples that begin with (word, importance), as in [`word_bars`]; importance above 0.
        path: also write the picture to this file, .png; missing folders are made.
        seed: of places and colours, from 0 to 2**32 - 1.

    Returns:
        A PNG picture of 800 x 400 pixels, equal for equal input.

    Raises:
        InputError: if there are no words, an importance is not above 0 or not finite, the seed is out of range, or
            the path has another suffix.
        MissingExtra: if wordcloud is not installed.
    """
    seed = whole_number("seed", seed, 0, 2**32 - 1)
    sizes = {str(word): float(value) for word, value, *_ in words}
    if not sizes or not all(value > 0 and isfinite(value) for value in sizes.values()):
        raise InputError("A cloud needs at least one word, and of each a finite importance above 0; draw bars instead.")
    if path is not None and Path(path).suffix.lower() != ".png":
        raise InputError(f"{str(path)!r} ends in {Path(path).suffix!r}; clouds are written as .png.")
    wordcloud = import_extra("wordcloud", "viz")
    cloud = wordcloud.WordCloud(width=800, height=400, background_color="white", random_state=seed)
    buffer = BytesIO()
    cloud.generate_from_frequencies(sizes).to_image().save(buffer, "PNG")
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with written_beside(path) as partial:
            partial.write_bytes(buffer.getvalue())
    return buffer.getvalue()


def shorten(word: str) -> str:
    """A word to be drawn: without control characters and halves of characters, cut after 24 others."""
    word = printable(word)
    return word if len(word) <= _LONGEST_NAME else word[: _LONGEST_NAME - 1] + "…"


def _draw(systems):
    figure, axes = panels(list(systems))
    most = max(map(len, systems.values()))
    figure.set_figheight(figure.get_figheight() * (0.6 + _BAR_HEIGHT * most) / 2.3)
    for (_, words), axis in zip(systems.items(), axes, strict=True):
        values = [value for _, value in words]
        colors = [LINE_STYLES[0 if value >= 0 else 1][0] for value in values]
        axis.barh(range(len(words)), values, height=0.7, color=colors, zorder=2)
        axis.set_yticks(range(len(words)), [shorten(word) for word, _ in words])
        axis.set_ylim(most - 0.4, -0.6)  # bars of one height in all panels, the first on top
        axis.tick_params(axis="y", length=0)
        axis.grid(visible=False, axis="y")
        axis.axvline(0, color=INK, linewidth=0.8, zorder=3)
        axis.set_xlabel("importance", color=INK)
    return figure
