"""Results of a reproduction as files: Markdown, JSON, figures, and a page."""

import json
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from hf_vat.errors import InputError, parse_json
from hf_vat.explanations import Explanation
from hf_vat.report import Table, write_report
from hf_vat.report.tables import markdown
from hf_vat.writing import write_text


class Figure(NamedTuple):
    """A figure of a setting.

    Attributes:
        name: of its file, without suffix.
        heading: what it shows.
        draw: makes an SVG element, and the file at the path it is given; None of a figure that is there already.
        shows_texts: whether texts of the data are in it, which then are not ours to publish.
    """

    name: str
    heading: str
    draw: Callable[[str | PathLike | None], str] | None
    shows_texts: bool = False


class Page(NamedTuple):
    """What is written of a reproduction.

    Attributes:
        name: of the files, without suffix.
        introduction: paragraphs below the title.
        summary: for the JSON file.
    """

    name: str
    title: str
    introduction: Sequence[str]
    tables: Sequence[Table]
    figures: Sequence[Figure]
    summary: Mapping


def write_page(folder: str | Path, page: Page, runs: Mapping[str, Sequence[Explanation]]) -> Path:
    """Write what [`write_tables`] does, every figure as SVG and PNG, and the page `<name>.html` with all of it.

    Args:
        runs: explanations to show on the page, by system.

    Returns:
        The path of the Markdown file.
    """
    path = write_tables(folder, page)
    folder, drawn = path.parent, {}
    for figure in page.figures:
        if figure.draw is not None:
            figure.draw(folder / f"{figure.name}.png")
            drawn[figure.heading] = figure.draw(folder / f"{figure.name}.svg")
    about = {"about": " ".join(page.introduction), "texts": f"below, the first of {', '.join(runs)}"}
    write_report(folder / f"{page.name}.html", page.title, runs, settings=about, tables=page.tables, figures=drawn)
    return path


def refuse_foreign(folder: Path, name: str) -> None:
    """Refuse to write the files of a page over others; they are its own where its JSON file is one of [`write_tables`].

    Raises:
        InputError: if there is a file of their names, and no such JSON file.
    """
    record = folder / f"{name}.json"
    try:
        if {"command", "cells"} <= parse_json(record.read_text(encoding="utf-8")).keys():
            return
    except (FileNotFoundError, ValueError, AttributeError):
        pass
    for path in (record, folder / f"{name}.md", folder / f"{name}.html"):
        if path.exists():
            raise InputError(
                f"{path} is there already, and is no page of hf-vat reproduce; choose another --output_dir."
            )


def write_tables(folder: str | Path, page: Page) -> Path:
    """Write `<name>.md` and `<name>.json` alone: figures are named there, and not drawn.

    Returns:
        The path of the Markdown file.
    """
    folder = Path(folder)
    refuse_foreign(folder, page.name)
    folder.mkdir(parents=True, exist_ok=True)
    # First, as it is what the files are known by
    write_text(folder / f"{page.name}.json", json.dumps(page.summary, indent=1, allow_nan=False))
    lines = [f"# {page.title}", ""]
    for paragraph in page.introduction:
        lines += [paragraph, ""]
    for table in page.tables:
        lines += [markdown(table), ""]
    for figure in page.figures:
        if not figure.shows_texts:
            lines += [f"### {figure.heading}", "", f"![{figure.heading}]({figure.name}.png)", ""]
    hidden = [f"`{figure.name}.png`" for figure in page.figures if figure.shows_texts]
    heatmaps = f" and heatmaps ({', '.join(hidden)})" if hidden else ""
    lines.append(
        f"The command also writes `{page.name}.html`{heatmaps} with texts of the data, which are not kept here."
    )
    path = folder / f"{page.name}.md"
    write_text(path, "\n".join(lines) + "\n")
    return path
