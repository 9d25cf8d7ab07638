"""Tables of results, for a page or as text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hf_vat.errors import InputError

# A missing value is an empty cell or a dash.
_NUMBER = re.compile(r"[+\-−±<>≤≥≈=\s]*\.?\d|[-–—](\s|$)|$")


@dataclass(frozen=True)
class Table:
    """A table with a heading.

    Attributes:
        heading: heading above the table.
        columns: column names.
        rows: for each row its cells, as they shall be read.
        caption: what the table holds.

    Raises:
        InputError: if a row has another number of cells than there are columns.
    """

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InputError(
                    f"A row of the table has {len(row)} cells for {len(self.columns)} columns: {list(row)}."
                )

    @property
    def numeric(self) -> list[bool]:
        """For each column whether it stands to the right: its cells begin with a number. The first never does."""
        return [place > 0 and all(_NUMBER.match(row[place]) for row in self.rows) for place in range(len(self.columns))]


def markdown(given: Table) -> str:
    """A table in GitHub's Markdown: heading, caption, and numbers to the right. A `|` in a cell is escaped."""
    rows = [given.columns, ["--:" if right else "---" for right in given.numeric], *given.rows]
    lines = [f"### {given.heading}", ""] + ([given.caption, ""] if given.caption else [])
    for place, row in enumerate(rows):
        cells = row if place == 1 else [cell.replace("|", "\\|") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A text table with aligned columns: numbers to the right, all else, and the first column, to the left.

    Raises:
        InputError: if a row has another number of cells than there are columns.
    """
    numeric = Table("", columns, rows).numeric
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lines = [columns, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )
