"""Which heads, start, phases and β: VAT against ATT with as many updates of the encoder, on validation data alone.

    python benchmarks/heads.py --data_dir ../shared/data --encoders lstm --datasets trec,sst2,subj --jobs 2

Every recipe trains the encoder for the same number of epochs, so one ATT run per seed is the control of all of them. The
scorer of all rankings is the seed's base model. No test data are read. Finished cells are kept in `--work_dir` and not run
again, so an interrupted study goes on where it stopped; the table holds what is finished.
"""

from dataclasses import asdict, replace
from typing import ClassVar

from datasets import DatasetDict
from study import Study, StudyArguments, StudySettings, attention_measured, beside_control, differences

from hf_vat.cli import parse_arguments, run
from hf_vat.pretrained import load_classifier
from hf_vat.report import Table
from hf_vat.reproduction import CellSettings
from hf_vat.reproduction.vat import ENCODERS, VATCell
from hf_vat.reproduction.vat.systems import VATEncoder
from hf_vat.training import Recipe

START = Recipe("joint", 6, 2, 2, 3, "separate", 0.1, "sum")
SCORES = ("accuracy_drop@5", "posthoc_gold@5")
CONTROLS = {"base": "base", "ATT (matched)": "ATT"}
RECIPES = {
    "joint start": START,
    "joint 9, one round": replace(START, start_epochs=9, rounds=1),
    "joint 6, six rounds of 1 and 1": replace(START, rounds=6, compress_epochs=1, learn_epochs=1),
    "ATT as start (the paper's reading)": replace(START, start="finetune"),
    "compressor first": replace(START, start_epochs=0, rounds=4),
    "shared head": replace(START, heads="shared"),
    "shared head on the mean": replace(START, heads="shared_mean"),
    "β = 0.01": replace(START, beta=0.01),
    "β = 0.3": replace(START, beta=0.3),
    "mean KL, β = 1": replace(START, kl_reduction="mean", beta=1.0),
    "mean KL, β = 10": replace(START, kl_reduction="mean", beta=10.0),
    "compressor rate 3e-3": replace(START, compressor_learning_rate=3e-3),
}


class HeadCell(VATCell):
    """A run by one of the recipes, or a control; measured is the model of its last iteration."""

    encoders: ClassVar = {"lstm": ENCODERS["lstm"]}
    kinds = (*CONTROLS, *RECIPES)

    @property
    def settled(self) -> VATEncoder:
        return replace(super().settled, recipe=RECIPES.get(self.kind, START))

    @property
    def trained_as(self) -> str:
        return CONTROLS.get(self.kind, "VAT")

    def measure(self, settings: CellSettings, data: DatasetDict) -> dict:
        judge = None if self.needs is None else self.needs.last(settings, data)
        return attention_measured(self.last(settings, data), judge, data["validation"], SCORES)

    def last(self, settings: CellSettings, data: DatasetDict):
        """Model and tokenizer of the last iteration."""
        models = self.iterations(settings, data)
        return load_classifier(str(models[max(models)]))


def main():
    (args,) = parse_arguments(
        (StudyArguments,),
        __doc__,
        datasets="trec,sst2,subj",
        train_size=4000,
        work_dir="runs/heads",
        output="runs/heads.md",
    )
    settings = StudySettings(args.data_dir, args.work_dir, args.train_size, bf16=args.bf16)
    study = Study(args, HeadCell, settings, HeadCell.kinds, tuple(CONTROLS))
    study.run()
    about = (
        f"At most {args.train_size:,} training texts. Validation data only, on which nothing is trained; each row is the model of "
        "the last epoch. All rows of a table have trained the encoder for as many epochs, so ATT (matched) is the control. The scorer of all rankings is the seed's base model. Percent, mean ± sd "
        "over seeds; in brackets the mean difference from ATT (matched) and the seeds in which it is above 0. Entropy is that "
        "of the attention over words, from 0 to 1. The recipe in bold is what `hf-vat reproduce vat` uses."
    )
    tables = []
    for encoder in args.encoders.split(","):
        by_dataset = {dataset: study.finished(dataset, encoder) for dataset in args.datasets.split(",")}
        by_dataset = {dataset: rows for dataset, rows in by_dataset.items() if rows}
        tables += [to_means(by_dataset, encoder)] if len(by_dataset) > 1 else []
        tables += [to_table(rows, dataset, encoder, args.seeds) for dataset, rows in by_dataset.items()]
    study.write("Which heads, which start, which β", about, tables)


def to_means(by_dataset: dict, encoder: str) -> Table:
    """Mean differences from ATT (matched) over data sets, of the recipes that all of them have."""
    columns = ("accuracy", *SCORES)
    rows = []
    for name, found in differences(by_dataset, tuple(CONTROLS), columns).items():
        means, lowest = found.mean((0, 1)), found.mean(1).min(0)
        cells = (f"{100 * mean:+.1f} ({100 * low:+.1f})" for mean, low in zip(means, lowest, strict=True))
        rows.append([bold(name), *cells])
    return Table(
        f"{encoder}: over {', '.join(by_dataset)}",
        ["recipe", *columns],
        rows,
        "Mean difference from ATT (matched) over data sets and seeds; in brackets that of the data set where it is lowest.",
    )


def bold(name: str) -> str:
    """The name, in bold for the recipe in use."""
    return f"**{name}**" if RECIPES.get(name) == ENCODERS["lstm"].recipe else name


def to_table(results: dict, dataset: str, encoder: str, seeds: int) -> Table:
    columns = ("accuracy", *SCORES, "entropy")
    told = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in asdict(START).items())
    return Table(
        f"{dataset}, {encoder} ({seeds} seed{'s' * (seeds > 1)})",
        ["recipe", *columns],
        beside_control(results, tuple(CONTROLS), columns, bold),
        f"Joint start: {told}. The others differ from it in what they name.",
    )


if __name__ == "__main__":
    run(main)
