"""What a paper says of itself so that it can be reproduced: what there is to run, its numbers, and what a page tells."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hf_vat.errors import InputError, parse_json
from hf_vat.explanations import load_explanations
from hf_vat.report import Table

from .cells import Cell, CellSettings
from .claims import band, claims_tables, compare, mean_sd, per_text, recipes_tables
from .encoders import under_recipe
from .pages import Figure, Page, write_page, write_tables

_ON_PAGE = 30  # texts whose explanations the page shows


@dataclass
class Results(ABC):
    """Results of a paper's cells, as [`run_cells`](hf_vat.reproduction.run_cells) returns them, or their summaries (see
    `summaries`): tables need no values of single texts, claims do.

    Attributes:
        rows: rows of the tables by the kind of cell that gives them, if not one of the same name.
        curves_of: scores of the figure of curves, at `ks` numbers of words, for the rankings `ranked`.
    """

    results: dict[Cell, dict]

    rows: ClassVar[Mapping[str, tuple[str, ...]]]
    curves_of: ClassVar[tuple[str, ...]]
    ks: ClassVar[tuple[int, ...]]
    ranked: ClassVar[tuple[str, ...]]

    @abstractmethod
    def found(self, run: dict, row: str, score: str) -> list | float:
        """Values of a row per text, or their mean, in the result of one cell."""

    @abstractmethod
    def printed(self, dataset: str, encoder: str, row: str, score: str) -> float | None:
        """The paper's number, if there is one."""

    @abstractmethod
    def tables(self, numbers: Sequence[int]) -> list[Table]:
        """Some of the paper's tables: ours as mean ± sd over seeds, and the paper's number in brackets."""

    @abstractmethod
    def claims(self, numbers: Sequence[int]) -> list[dict]:
        """The paper's orderings in some of its tables, each made by `claim`."""

    def compared(self, numbers: Sequence[int]) -> dict[str, list[dict]]:
        """What needs the values of single texts, and so is kept beside the summaries."""
        return {"claims": self.claims(numbers)}

    def settings(self) -> list[tuple[str, str]]:
        """Data sets and encoders, in the order given."""
        return list(dict.fromkeys((cell.dataset, cell.encoder) for cell in self.results))

    def heading(self, dataset: str, encoder: str) -> str:
        """The heading of a setting's column, with its number of seeds."""
        seeds = {cell.seed for cell in self.results if (cell.dataset, cell.encoder) == (dataset, encoder)}
        return f"{encoder}, {dataset} ({len(seeds)})"

    def headings(self) -> list[str]:
        return [self.heading(*setting) for setting in self.settings()]

    def there(self, rows: Sequence[str], *setting: str) -> list[str]:
        """Those of the rows that the cells give, or those of a setting: a data set and an encoder."""
        kinds = {cell.kind for cell in self.results if not setting or (cell.dataset, cell.encoder) == setting}
        return [row for row in rows if self._kind(row) in kinds]

    def cells(self, dataset: str, encoder: str, row: str) -> list[Any]:
        """The cells that give a row, by seed."""
        wanted = (dataset, encoder, self._kind(row))
        found = [cell for cell in self.results if (cell.dataset, cell.encoder, cell.kind) == wanted]
        return sorted(found, key=lambda cell: cell.seed)

    def runs(self, dataset: str, encoder: str, row: str) -> list[dict]:
        """Their results."""
        return [self.results[cell] for cell in self.cells(dataset, encoder, row)]

    def values(self, dataset: str, encoder: str, row: str, score: str) -> np.ndarray:
        """Values of a row per seed and text, shape [seeds, texts]; of summaries their means, shape [seeds, 1]."""
        return per_text([self.found(run, row, score) for run in self.runs(dataset, encoder, row)])

    def mean(self, dataset: str, encoder: str, row: str, score: str) -> str:
        """Mean ± sd over seeds in percent, and the paper's number."""
        return mean_sd(self.values(dataset, encoder, row, score).mean(1), self.printed(dataset, encoder, row, score))

    def claim(self, dataset: str, encoder: str, better: str, worse: str, score: str, group: str | None = None) -> dict:
        """Whether a row is above another by a score, for [`claims_tables`](hf_vat.reproduction.claims.claims_tables).

        Args:
            group: the score's name in the counts, if it is not its own.
        """
        claim = {"dataset": dataset, "encoder": encoder, "score": score, "claim": f"{better} > {worse}"}
        claim["group"] = group or score
        rows = [self.values(dataset, encoder, row, score) for row in (better, worse)]
        return self.beside_paper(claim | compare(*rows))

    def beside_paper(self, claim: dict) -> dict:
        """The claim with the difference that the paper prints."""
        better, worse = (
            self.printed(claim["dataset"], claim["encoder"], row, claim["score"]) for row in claim["claim"].split(" > ")
        )
        return claim | {"paper": None if better is None or worse is None else better - worse}

    def curves(self, dataset: str, encoder: str) -> dict:
        """Scores by number of words, for `top_k_curves`; see [`band`](hf_vat.reproduction.claims.band)."""
        return {
            score: {
                "random" if row == "Random" else row: [
                    (float(k), *band(self.values(dataset, encoder, row, f"{score}@{k}"))) for k in self.ks
                ]
                for row in self.there(self.ranked, dataset, encoder)
            }
            for score in self.curves_of
        }

    def across(
        self, heading: str, rows: Sequence[str], cell: Callable[[str, str, str], str], caption: str = "", of="system"
    ) -> Table:
        """A table with a column for each setting.

        Args:
            cell: gives what stands there for data set, encoder and row.
            of: heading of the rows.
        """
        lines = [[row, *(cell(*setting, row) for setting in self.settings())] for row in rows]
        return Table(heading, [of, *self.headings()], lines, caption)

    def down(
        self,
        heading: str,
        columns: Sequence[str],
        rows: Sequence[str],
        cells: Callable[[str, str, str], list[str]],
        caption: str,
    ) -> Table:
        """A table with lines for each setting.

        Args:
            columns: the first of them is the heading of the rows.
            rows: of which a setting has those that its cells give.
            cells: gives those of a line for data set, encoder and row.
        """
        lines = [
            [f"{encoder}, {dataset}", row, *cells(dataset, encoder, row)]
            for dataset, encoder in self.settings()
            for row in self.there(rows, dataset, encoder)
        ]
        return Table(heading, ["setting", *columns], lines, caption)

    def data_table(self) -> Table:
        """The data sets, their sizes, and how these differ from the paper's."""
        rows = {}
        for cell, result in self.results.items():
            sizes = [f"{result['data']['sizes'][split]:,}" for split in ("train", "validation", "test")]
            rows[cell.dataset] = [cell.dataset, *sizes, result["data"]["note"]]
        return Table("Data", ["data set", "train", "validation", "test", "note"], list(rows.values()))

    def made_on(self) -> str:
        """On what the cells ran, and for how long."""
        minutes = sum(result["seconds"] for result in self.results.values()) / 60
        machines = dict.fromkeys(result["machine"] for result in self.results.values())
        return (
            f"{' and '.join(machines)}; {minutes:.0f} minutes of cells, one after the other (of a cell that was interrupted the "
            "last stretch)."
        )

    def each_encoder(self, describe: Callable[[Any], str]) -> str:
        """What is told of each encoder."""
        used = {cell.encoder: cell.settled for cell in self.results}
        return "; ".join(f"`{name}`: {describe(encoder)}" for name, encoder in used.items())

    def summaries(self) -> list[dict]:
        """The results with means in the place of the values of single texts; settings stay as they are."""
        return [_with_means(result) for result in self.results.values()]

    def _kind(self, row: str) -> str:
        return next((kind for kind, rows in self.rows.items() if row in rows), row)


class Paper(ABC):
    """A paper that can be reproduced.

    Attributes:
        name: of the command's argument, and with _ for - of the files.
        titles: of the page, by recipe. A recipe is a way to train all systems; its encoders are named by
            [`under_recipe`](hf_vat.reproduction.encoders.under_recipe).
        tables: numbers of the paper's tables; `by_default` those that need no further files.
        default_datasets, default_encoders: what is run if nothing else is asked for.
        systems: kinds of cells that one can choose among; `required` those that claims are about.
        mixed: whether the settings of one page may have other systems, each its own.
        cell, results: what is run, and what tables and claims come from.
        shown: whose explanations the page shows: by name, row and file of explanations.
        note: on the claims.
    """

    name: ClassVar[str]
    titles: ClassVar[Mapping[str, str]]
    tables: ClassVar[tuple[int, ...]]
    by_default: ClassVar[tuple[int, ...]]
    default_datasets: ClassVar[tuple[str, ...]] = ("trec",)
    default_encoders: ClassVar[tuple[str, ...]] = ("lstm",)
    systems: ClassVar[tuple[str, ...]]
    required: ClassVar[tuple[str, str]]
    mixed: ClassVar[bool] = False
    cell: ClassVar[type[Cell]]
    results: ClassVar[type[Results]]
    shown: ClassVar[Mapping[str, tuple[str, str]]]
    note: ClassVar[str] = ""

    @abstractmethod
    def introduction(self, results: Any) -> list[str]:
        """Paragraphs below the title: on what systems ran, and how they were trained."""

    @abstractmethod
    def figures(self, results: Any, settings: CellSettings | None, dataset: str, encoder: str) -> list[Figure]:
        """The paper's figures for a data set and encoder, which the page adds to their names and headings.

        Args:
            settings: of the cells; None if the figures shall only be named.
        """

    def check(
        self, settings: CellSettings, datasets: Sequence[str], numbers: Sequence[int], systems: Sequence[str]
    ) -> None:
        """Refuse what makes no page of the paper, before anything runs.

        Raises:
            InputError: saying what is missing.
        """
        if not set(self.required) <= set(systems):
            raise InputError(
                f"--systems is {','.join(systems)}; {' and '.join(self.required)}, which are compared, must be among them."
            )

    @property
    def file(self) -> str:
        """The name of its files, without suffix."""
        return self.name.replace("-", "_")

    @property
    def encoders(self) -> list[str]:
        """Names of the encoders, without those under a recipe."""
        under = {
            under_recipe(name, recipe) for name in self.cell.encoders for recipe in self.titles if recipe != "paper"
        }
        return [name for name in self.cell.encoders if name not in under]

    def cells(
        self, dataset: str, encoder: str, seeds: int, numbers: Sequence[int], systems: Sequence[str]
    ) -> list[Cell]:
        """The cells that some of the tables need, with what these need before them."""
        wanted = [self.cell(dataset, encoder, system, seed) for seed in range(seeds) for system in systems]
        return list(dict.fromkeys(cell for one in wanted for cell in (one.needs, one) if cell is not None))

    def write(
        self,
        results: Results,
        settings: CellSettings,
        numbers: Sequence[int],
        folder: str | Path,
        command: str,
        earlier: tuple[Results, dict] | None = None,
    ) -> Path:
        """Write tables, claims and figures; see [`write_page`](hf_vat.reproduction.pages.write_page).

        Args:
            numbers: of the paper's tables.
            command: that makes these files again.
            earlier: what `earlier` gives, which stands on the page too; its pictures stay as they are.

        Returns:
            The path of the Markdown file: the paper's name, with that of a recipe other than "paper".
        """
        compared, ours = results.compared(numbers), results.settings()
        summary = {"command": command, "tables": list(numbers), "cells": results.summaries(), **compared}
        if earlier is not None:
            before, told = earlier
            summary["command"] = f"{told['command']}`, then `{command}"
            summary |= {name: [*told.get(name, []), *summary[name]] for name in ("cells", *compared)}
            results = self.results(before.results | results.results)
        explained = {}
        dataset, encoder = ours[0]
        for name, (row, method) in self.shown.items():
            for cell in results.cells(dataset, encoder, row)[:1]:
                found = load_explanations(cell.explanations(settings, method))[:_ON_PAGE]
                explained[f"{name} ({encoder}, {dataset}, seed {cell.seed})"] = found
        return write_page(folder, self._page(results, settings, summary, ours), explained)

    def rewrite(self, file: str | Path, folder: str | Path, numbers: Sequence[int] | None = None) -> Path:
        """Write the tables again from the JSON file of `write`, without any cell; pictures stay as they are.

        What these cells had not measured is shown as a dash.

        Args:
            numbers: of the paper's tables; by default those that the file names.

        Raises:
            InputError: if the file is none of `write`.
        """
        results, summary = self.read(file)
        if numbers:
            summary["tables"] = list(numbers)
        return write_tables(folder, self._page(results, None, summary))

    def earlier(self, file: str | Path, settings: CellSettings, cells: Sequence[Cell]) -> tuple[Results, dict]:
        """What `read` gives, to stand beside other cells.

        Raises:
            InputError: if the file is none of `write`, was made with other settings, has a data set and encoder of the cells, or has
                other systems than they have, where a page cannot.
        """
        results, summary = self.read(file)
        theirs, ours = ({cell.kind for cell in some} for some in (results.results, cells))
        if theirs != ours and not self.mixed:
            raise InputError(
                f"{file} has cells {', '.join(sorted(theirs))}, and this run {', '.join(sorted(ours))}: on the page of {self.name} every data set "
                "has the same. Give --systems and --table as there, or leave out --extend."
            )
        wanted = {(cell.dataset, cell.encoder) for cell in cells}
        for cell, result in results.results.items():
            if (cell.dataset, cell.encoder) in wanted:
                raise InputError(
                    f"{file} has {cell.dataset} with {cell.encoder} already; leave that out of what is run, or leave out --extend."
                )
            if told := cell.differs(result, settings):
                raise InputError(
                    f"{cell.name} in {file} was made with other settings: {told}. Run with those, or leave out --extend."
                )
        return results, summary

    def read(self, file: str | Path) -> tuple[Any, dict]:
        """Results of the JSON file of `write`, with means in the place of the values of single texts, and all that it holds.

        Raises:
            InputError: if the file is none of `write`.
        """
        try:
            summary = parse_json(Path(file).read_text(encoding="utf-8"))
            results = self.results({self.cell(**one["cell"]): one for one in summary["cells"]})
            # The paper's numbers are those of today; earlier files had some that are on another scale.
            summary["claims"] = [results.beside_paper(claim) for claim in summary["claims"]]
            self._page(results, None, summary)  # so that it holds what a page needs
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise InputError(f"{file} is no {self.file}.json that hf-vat reproduce {self.name} has written.") from error
        return results, summary

    def recipe(self, results: Results) -> str:
        """The recipe that the page is about: "paper" if there is no other."""
        used = {cell.encoder for cell in results.results}
        return [one for one in self.titles if used & {under_recipe(name, one) for name in self.encoders}][-1]

    def _page(
        self,
        results: Results,
        settings: CellSettings | None,
        summary: dict,
        drawn: Collection[tuple[str, str]] = (),
    ) -> Page:
        """The page, with the figures of some data sets and encoders to be drawn, and the others to be named."""
        recipe = self.recipe(results)
        name = under_recipe(self.file, recipe)
        figures = [
            one._replace(
                name=f"{name}-{dataset}-{encoder}-{one.name}",
                heading=f"{one.heading}, {encoder}, {dataset}",
                draw=one.draw if (dataset, encoder) in drawn else None,
            )
            for dataset, encoder in results.settings()
            for one in self.figures(results, settings, dataset, encoder)
        ]
        return Page(
            name,
            self.titles[recipe],
            [f"Written by `{summary['command']}`.", *self.introduction(results)],
            [
                results.data_table(),
                *recipes_tables(summary.get("recipes", [])),
                *results.tables(summary.get("tables", list(self.tables))),
                *claims_tables(summary["claims"], self.note),
            ],
            figures,
            summary,
        )


def _with_means(value):
    if isinstance(value, dict):
        return {name: one if name == "settings" else _with_means(one) for name, one in value.items()}
    if isinstance(value, list) and all(isinstance(one, int | float) for one in value):
        return float(np.mean(value))
    return value
