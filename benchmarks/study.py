"""What the studies of recipes share: their options, cells on validation data alone, and tables beside a control."""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from datasets import Dataset, DatasetDict

from hf_vat.arguments import argument
from hf_vat.explanations import explain
from hf_vat.faithfulness import Faithfulness
from hf_vat.faithfulness.agreement import normalized_entropy
from hf_vat.report import Table
from hf_vat.report.tables import markdown
from hf_vat.reproduction import Cell, CellSettings, run_cells
from hf_vat.reproduction.cells import in_parallel

Results = Mapping[str, Sequence[dict]]  # by row of a table and seed


@dataclass
class StudyArguments:
    data_dir: str = argument("../shared/data", "Folder with a folder for each data set.")
    datasets: str = argument("trec,sst2", "Data sets, with commas between them.")
    encoders: str = argument("lstm", "Encoders, with commas between them.")
    seeds: int = argument(3, "Number of seeds.")
    only: str | None = argument(None, "Rows to run, with semicolons between them; all if left out.")
    train_size: int | None = argument(None, "Training texts at most.")
    work_dir: str = argument("runs/study", "Folder for finished cells.")
    output: str = argument("runs/study.md", "Markdown file to write.")
    bf16: bool = argument(False, "Train MiniLM in bfloat16.")
    jobs: int = argument(1, "Cells that run at the same time.")


@dataclass(frozen=True)
class StudySettings(CellSettings):
    """Settings of cells that see no test split, on which no choice may depend."""

    def load(self, dataset: str) -> DatasetDict:
        data = super().load(dataset)
        data.pop("test")
        return data


@dataclass(frozen=True)
class Study:
    """A study: cells of one kind, and a table for each data set and encoder that has a row for each kind of run.

    Attributes:
        rows: of the tables, kinds of the cell; `controls` are those that always run, and that all others are shown beside.
    """

    args: StudyArguments
    cell: type[Cell]
    settings: CellSettings
    rows: Sequence[str]
    controls: Sequence[str] = ()

    def run(self) -> None:
        """Run what is missing of the rows that are asked for, and of what these need."""
        rows = self.args.only.split(";") if self.args.only else self.rows
        cells = [
            self.cell(dataset, encoder, row, seed)
            for dataset, encoder in self.places()
            for seed in range(self.args.seeds)
            for row in (*self.controls, *rows)
        ]
        wanted = dict.fromkeys(one for cell in cells for one in (cell.needs, cell) if one is not None)
        missing = [cell for cell in wanted if cell.result(self.settings) is None]
        # Models of finished cells may be gone; of two cells that need one at the same time, only one can make it again.
        again = [one for one in dict.fromkeys(cell.needs for cell in missing) if one is not None and one not in missing]
        in_parallel(_train, [(one, self.settings) for one in again], self.args.jobs, "models of finished cells")
        run_cells(list(wanted), self.settings, self.args.jobs)

    def places(self) -> Iterator[tuple[str, str]]:
        """Data sets and encoders."""
        for encoder in self.args.encoders.split(","):
            for dataset in self.args.datasets.split(","):
                yield dataset, encoder

    def finished(self, dataset: str, encoder: str) -> Results:
        """The rows of which all seeds are finished, and all of them; nothing without the controls."""
        found = {
            row: [self.cell(dataset, encoder, row, seed).result(self.settings) for seed in range(self.args.seeds)]
            for row in self.rows
        }
        found = {row: results for row, results in found.items() if None not in results}
        return found if set(self.controls) <= found.keys() else {}

    def write(self, title: str, about: str, tables: Sequence[Table]) -> None:
        """Write the page, and print it."""
        command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
        parts = [f"# {title}", f"Written by `{command}`.", about, *map(markdown, tables)]
        text = "\n\n".join(parts) + "\n"
        Path(self.args.output).write_text(text, encoding="utf-8")
        print(text)


def _train(cell: Cell, settings: CellSettings) -> None:
    cell.train(settings, cell.load(settings))


def attention_measured(
    classifier: tuple, judge: tuple | None, rows: Dataset, scores: Sequence[str], own: Sequence[str] = ()
) -> dict:
    """Accuracy of a classifier and the faithfulness of its attention on rows of data, of what one cell of a table shows.

    Args:
        classifier, judge: model and tokenizer. Without a judge, which scores the rankings, the classifier is itself one: found
            is what random rankings give, "random".
        scores: by the judge.
        own: by the classifier itself; their names then begin with "self ".
    """
    texts, labels, options = rows["text"][:], rows["label"][:], {"ks": (5,), "batch_size": 64}
    if judge is None:
        random = Faithfulness(*classifier, texts, labels, **options).random(range(5)).to_dict()
        found = {score: random[score]["mean"] for score in scores}
        found |= {f"self {score}": random[score]["mean"] for score in own}
        return {"accuracy": random["accuracy"], "random": found}
    explanations = explain(*classifier, texts, labels=labels, batch_size=64)
    by_judge = Faithfulness(*judge, explanations, **options).measure(explanations).scores
    by_self = Faithfulness(*classifier, explanations, **options).measure(explanations).scores if own else {}
    return {
        "accuracy": float(np.mean([explanation.correct for explanation in explanations])),
        "entropy": float(np.mean([normalized_entropy(one.scores) for one in explanations if one.words])),
        **{score: by_judge[score] for score in scores},
        **{f"self {score}": by_self[score] for score in own},
    }


def beside_control(
    results: Results, controls: Sequence[str], columns: Sequence[str], shown: Callable[[str], str]
) -> list[list[str]]:
    """Rows of a table: mean ± sd over seeds in percent; in brackets the mean difference from the last control and the seeds in
    which it is above 0. Entropy is no percentage.

    Args:
        results: with the row "base", whose results hold those of "random" rankings.
        shown: the name of a row as it is written.
    """
    rows = []
    for name, found in {"random": [result["random"] for result in results["base"]], **results}.items():
        cells = []
        for column in columns:
            values, control = (
                np.array([result.get(column, np.nan) for result in one]) for one in (found, results[controls[-1]])
            )
            spread = f" ± {100 * values.std(ddof=1):.1f}" if len(values) > 1 else ""
            against = f" ({100 * (values - control).mean():+.1f}; {(values > control).sum()} of {len(values)})"
            percent = f"{100 * values.mean():.1f}{spread}{'' if name in ('random', *controls) else against}"
            cells.append("" if np.isnan(values).any() else f"{values.mean():.2f}" if column == "entropy" else percent)
        rows.append([shown(name), *cells])
    return rows


def differences(
    by_dataset: Mapping[str, Results], controls: Sequence[str], columns: Sequence[str]
) -> dict[str, np.ndarray]:
    """Differences from the last control, shape [data sets, seeds, columns], of the other rows that all data sets have."""
    values = {
        name: np.array([[[one[column] for column in columns] for one in of[name]] for of in by_dataset.values()])
        for name in next(iter(by_dataset.values()))
        if name != "base" and all(name in of for of in by_dataset.values())
    }
    return {name: found - values[controls[-1]] for name, found in values.items() if name not in controls}
