"""HTML pages that stand alone: no script, no network, light and dark, readable in print.

Every string goes through Jinja's autoescape, so texts and names appear as typed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hf_vat.errors import InputError

if TYPE_CHECKING:
    from hf_vat.explanations import Explanation

_templates = Environment(
    loader=PackageLoader("hf_vat.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def heatmap(explanation: Explanation) -> Markup:
    """An HTML fragment of one explanation with its style, for notebooks and other people's pages."""
    return Markup(_templates.get_template("fragment.html").render(explanation=explanation))


def page(
    title: str,
    runs: Mapping[str, Sequence[Explanation]],
    *,
    settings: Mapping[str, object] | None = None,
    columns: Sequence[str] = (),
    rows: Sequence[Sequence[str]] = (),
    caption: str = "",
    curves: str = "",
) -> str:
    """A page with the heatmaps of one or several models for the same texts.

    With gold labels, readers can show only the texts that were classified right or wrong.

    Args:
        title: heading of the page.
        runs: for each model, by the name to show, its explanations; all of the same texts in the same order.
        settings: names and values for the head of the page.
        columns: column names of a table of results; no table is shown without them.
        rows: cells of the table, as they shall be read.
        caption: what the table holds.
        curves: an SVG element such as [`training_curves`] returns. It is inserted as it is: don't pass SVG of others.

    Raises:
        InputError: if the explanations of the runs are not of the same texts, or a row has another number of cells
            than there are columns.
    """
    for row in rows:
        if len(row) != len(columns):
            raise InputError(f"A row of the table has {len(row)} cells for {len(columns)} columns: {list(row)}.")
    return _templates.get_template("page.html").render(
        title=title,
        runs=len(runs),
        examples=_by_text(runs),
        signed=any(score < 0 for run in runs.values() for explanation in run for score in explanation.scores),
        unseen=any(not all(explanation.seen) for run in runs.values() for explanation in run),
        settings=settings or {},
        columns=columns,
        rows=rows,
        caption=caption,
        curves=Markup(curves),
    )


def write_report(path: str | PathLike, title: str, runs: Mapping[str, Sequence[Explanation]], **parts) -> Path:
    """Write a [`page`] (same arguments) to a file and return its path."""
    return write(path, page(title, runs, **parts))


def write(path: str | PathLike, text: str) -> Path:
    """Write a page as UTF-8 whatever the system's encoding, making missing folders, and return its path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


class _Example(NamedTuple):
    """The explanations of one text, by run; the verdict is "right" if every run is."""

    verdict: str
    explanations: dict[str, Explanation]


def _by_text(runs: Mapping[str, Sequence[Explanation]]) -> list[_Example]:
    texts = {name: [explanation.text for explanation in explanations] for name, explanations in runs.items()}
    first = next(iter(texts), None)
    for name in texts:
        if texts[name] != texts[first]:
            raise InputError(
                f"{name!r} and {first!r} explain different texts ({len(texts[name])} and {len(texts[first])}); "
                "explain the same list of texts, in the same order, with every model."
            )
    examples = []
    for explanations in zip(*runs.values(), strict=True):
        verdicts = {explanation.correct for explanation in explanations}
        verdict = "wrong" if False in verdicts else "right" if verdicts == {True} else "unknown"
        examples.append(_Example(verdict, dict(zip(runs, explanations, strict=True))))
    return examples
