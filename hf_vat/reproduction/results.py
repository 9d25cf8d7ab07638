"""Results of finished cells, of whatever paper."""

from dataclasses import dataclass

import numpy as np

from hf_vat.report import Table

from .running import Cell


@dataclass
class Results:
    """Results of cells, as [`run_cells`](hf_vat.reproduction.run_cells) returns them."""

    results: dict[Cell, dict]

    def settings(self) -> list[tuple[str, str]]:
        """Data sets and encoders, in the order given."""
        return list(dict.fromkeys((cell.dataset, cell.encoder) for cell in self.results))

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

    def summaries(self) -> list[dict]:
        """The results with means in the place of the values of single texts."""
        return [_with_means(result) for result in self.results.values()]


def _with_means(value):
    if isinstance(value, dict):
        return {name: _with_means(one) for name, one in value.items()}
    if isinstance(value, list) and all(isinstance(one, int | float) for one in value):
        return float(np.mean(value))
    return value
