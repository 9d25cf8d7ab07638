"""Which weights of the word objectives: tying, mlm and conicity beside attention without, on validation data alone.

    python benchmarks/word_objectives.py --data_dir ../shared/data --encoders lstm --datasets trec,sst2 --train_size 3000

The weight of an objective is the largest whose accuracy, as a mean over data sets and seeds, is at most one point below that of
ATT, and no more than two on any data set (so one that loses more need not be run on the others); where none is, the one with
the highest accuracy. No test data are read. Finished cells
are kept in `--work_dir` and not run again, so an interrupted study goes on where it stopped; the tables hold what is finished.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from datasets import DatasetDict
from study import Results, Study, StudyArguments, StudySettings

from hf_vat.cli import parse_arguments, run
from hf_vat.report import Table
from hf_vat.reproduction import CellSettings
from hf_vat.reproduction.claims import mean_sd
from hf_vat.reproduction.measuring import predicted_right
from hf_vat.reproduction.word_objectives import WordObjectiveCell
from hf_vat.reproduction.word_objectives.experiments import information
from hf_vat.reproduction.word_objectives.systems import WordObjectiveEncoder

GRID = {"tying": (0.1, 1, 5, 10, 20), "mlm": (0.1, 1, 10), "conicity": (0.1, 1, 5, 10)}
# row of the table: objective and its weight
ROWS = {"ATT": ("ATT", 0.0)} | {f"{kind} {weight:g}": (kind, weight) for kind in GRID for weight in GRID[kind]}
MOST, MOST_ANYWHERE = 0.01, 0.02  # accuracy that may be lost


class WeightCell(WordObjectiveCell):
    """A run by one of the rows; measured is the model of the last epoch."""

    kinds = tuple(ROWS)

    @property
    def settled(self) -> WordObjectiveEncoder:
        return replace(super().settled, weights=dict([ROWS[self.kind]]))

    @property
    def trained_as(self) -> str:
        return ROWS[self.kind][0]

    def decisive(self, settings: CellSettings) -> dict:
        found = super().decisive(settings)
        del found["adversary"]  # of which there is none here
        return found

    def measure(self, settings: CellSettings, data: DatasetDict) -> dict:
        model, tokenizer = self.trained(settings, data)
        right = predicted_right(model, tokenizer, data["validation"])
        return {"accuracy": float(right.mean()), **information(model, tokenizer, data["validation"]["text"][:])}


def chosen(by_dataset: Mapping[str, Results], kind: str) -> str | None:
    """The row of the weight that an objective has, among those that are finished on all data sets, if there are any."""
    rows = [f"{kind} {weight:g}" for weight in GRID[kind]]
    lost = {
        row: [accuracy(found["ATT"]) - accuracy(found[row]) for found in by_dataset.values()]
        for row in rows
        if all(row in found for found in by_dataset.values())
    }
    allowed = [row for row in lost if np.mean(lost[row]) <= MOST and max(lost[row]) <= MOST_ANYWHERE]
    return allowed[-1] if allowed else min(lost, key=lambda row: float(np.mean(lost[row])), default=None)


def accuracy(found: Sequence[dict]) -> float:
    return float(np.mean([one["accuracy"] for one in found]))


def main():
    (args,) = parse_arguments(
        (StudyArguments,), __doc__, train_size=3000, work_dir="runs/words", output="runs/word_objectives.md"
    )
    settings = StudySettings(args.data_dir, args.work_dir, args.train_size, bf16=args.bf16)
    study = Study(args, WeightCell, settings, tuple(ROWS), ("ATT",))
    study.run()
    about = (
        f"At most {args.train_size:,} training texts. Validation data only, on which nothing is trained; each row is the model of "
        "the last epoch. Information is that of words and states less that of shuffled pairs, as a share of the words' entropy. In bold "
        f"the chosen weight: the largest that loses at most {100 * MOST:g} point of accuracy over all data sets and "
        f"{100 * MOST_ANYWHERE:g} on any, or else the one that loses least."
    )
    tables = []
    for encoder in args.encoders.split(","):
        by_dataset = {dataset: study.finished(dataset, encoder) for dataset in args.datasets.split(",")}
        by_dataset = {dataset: rows for dataset, rows in by_dataset.items() if rows}
        bold = {chosen(by_dataset, kind) for kind in GRID}
        tables += [
            to_table(rows, f"{dataset}, {encoder}, {args.seeds} seeds", bold) for dataset, rows in by_dataset.items()
        ]
    study.write("Weights of the word objectives", about, tables)


def to_table(results: Results, title: str, bold: Collection[str | None]) -> Table:
    rows = []
    for name, found in results.items():
        states = [one["information"]["states"] for one in found]
        told = np.array([(one["value"] - one["shuffled"]) / one["entropy"] for one in states])
        columns = [mean_sd(np.array([one["accuracy"] for one in found])), mean_sd(told)]
        columns += [
            mean_sd(np.array([np.mean(one[key]) for one in found]), scale=1) for key in ("conicity", "distance")
        ]
        rows.append([f"**{name}**" if name in bold else name, *columns])
    return Table(title, ["objective and weight", "accuracy", "information", "conicity", "‖h − x‖"], rows, "")


if __name__ == "__main__":
    run(main)
