"""How the phases of VAT are trained on a pretrained encoder: learning rate, optimizer, length, β, on validation data alone.

    python benchmarks/schedules.py --data_dir ../shared/data --seeds 3 --bf16 --jobs 2 --output docs/schedules.md

Every cell trains MiniLM on Rotten Tomatoes sentences or TREC questions, the encoder for the same number of epochs, so that one
ATT run per seed is the control of all. No test data are read: the sentences of the quickstart's test are left out.
Finished cells are kept in `--work_dir` and not run again, so an interrupted study goes on where it stopped.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

from datasets import DatasetDict
from study import Study, StudyArguments, StudySettings, attention_measured, beside_control, differences
from transformers import Trainer, TrainerCallback

from hf_vat.cli import parse_arguments, run
from hf_vat.data.offline import rotten_tomatoes
from hf_vat.pretrained import load_classifier
from hf_vat.report import Table
from hf_vat.reproduction import Cell, CellSettings
from hf_vat.reproduction.encoders import MINILM, Encoder
from hf_vat.training import VATTrainer, recipes

LEARNER_EPOCHS = 4  # of the encoder, in every row
LINEAR = {"learning_rate": 5e-5, "warmup_steps": 0.1, "lr_scheduler_type": "linear"}
CONSTANT = LINEAR | {"lr_scheduler_type": "constant_with_warmup"}
TWICE = {"start_epochs": 0, "compress_epochs": 2, "learn_epochs": 2, "num_train_epochs": 8}
ONCE = {"start_epochs": 0, "compress_epochs": 2, "learn_epochs": 4, "num_train_epochs": 6}
ATT = {"pooling": "attention", "bottleneck": "none"}
SUM = {"pooling": "attention", "bottleneck": "gaussian", "beta": 0.1, "kl_reduction": "sum"}
MEAN = SUM | {"kl_reduction": "mean"}
JOINT = {"start": "joint", "start_epochs": 2, "compress_epochs": 2, "learn_epochs": 2, "num_train_epochs": 6}
# What VATTrainer does not do: one schedule of the learning rate over all phases; moments that begin with each phase.
OVER_ALL = ("create_scheduler",)
FRESH = ("enter_epoch",)
# row: settings of the model, settings of training, methods of the trainer that `Other` replaces
ROWS = {
    "base": ({"pooling": "first", "bottleneck": "none"}, LINEAR | {"num_train_epochs": LEARNER_EPOCHS}, ()),
    "ATT (matched)": (ATT, LINEAR | {"num_train_epochs": LEARNER_EPOCHS}, ()),
    "ATT (matched), constant": (ATT, CONSTANT | {"num_train_epochs": LEARNER_EPOCHS}, ()),
    "linear over all phases": (MEAN, TWICE | LINEAR, OVER_ALL),
    "constant": (MEAN, TWICE | CONSTANT, OVER_ALL),
    "constant, sum of the KL": (SUM, TWICE | CONSTANT, OVER_ALL),
    "linear in each phase": (MEAN, TWICE | LINEAR, ()),
    "linear in each phase, fresh moments": (MEAN, TWICE | LINEAR, FRESH),
    "constant, a warm-up in each phase, fresh moments": (MEAN, TWICE | CONSTANT, FRESH),
    "constant, one round": (MEAN, ONCE | CONSTANT, OVER_ALL),
    "linear in each phase, one round": (MEAN, ONCE | LINEAR, ()),
    "linear in each phase, joint start": (MEAN, JOINT | LINEAR, ()),
}
CONTROLS = ("base", "ATT (matched)")  # beside which the others are shown
JUDGED = ("accuracy_drop@5", "posthoc_gold@5")  # by the base model
OWN = ("prob_drop@5", "posthoc_self@5")  # by the model itself
SCORES = (*JUDGED, *(f"self {score}" for score in OWN))
SIZES = {"rotten_tomatoes": 1000, "trec": 1500}
VALIDATION = 450  # texts at most
QUICKSTART_TEST = 1000  # sentences that are left out; the quickstart tests on some of them


@dataclass(frozen=True)
class ScheduleSettings(StudySettings):
    """Also of Rotten Tomatoes, and for few texts: `train_size` for training, by default those in `SIZES`."""

    train_size: int | None = None

    def size(self, dataset: str) -> int:
        return self.train_size or SIZES[dataset]

    def load(self, dataset: str) -> DatasetDict:
        size = self.size(dataset)
        if dataset == "rotten_tomatoes":
            data = rotten_tomatoes(size, VALIDATION, QUICKSTART_TEST)
            data.pop("test")
            return data
        data = super().load(dataset)
        data["train"] = data["train"].shuffle(seed=0).select(range(min(size, len(data["train"]))))
        data["validation"] = data["validation"].select(range(min(VALIDATION, len(data["validation"]))))
        return data


class Other:
    """Methods for [`VATTrainer`] in place of its own."""

    create_scheduler = Trainer.create_scheduler

    def enter_epoch(self, epoch: int) -> None:
        """A phase begins with a fresh optimizer for what it trains."""
        _ENTER_EPOCH(self, epoch)
        if self.schedule.begins(epoch):
            for parameter in self.model.parameters():
                if parameter.requires_grad:
                    self.optimizer.state.pop(parameter, None)


_ENTER_EPOCH = VATTrainer.enter_epoch


@dataclass(frozen=True)
class ScheduleEncoder(Encoder):
    """MiniLM with the systems of the rows."""

    def system(self, kind: str) -> tuple[dict, dict]:
        model, training, _ = ROWS[kind]
        return model | {"max_length": 64}, training

    def decisive(self, kind: str) -> dict:
        model, training, patched = ROWS[kind]
        return {"model": model, "training": training, "patched": list(patched)}


class ScheduleCell(Cell):
    """A run by one of the rows; measured is the model of its last epoch, under the seed's base model and under itself."""

    datasets = tuple(SIZES)
    encoders: ClassVar = {"minilm": ScheduleEncoder(**MINILM | {"training": {"per_device_train_batch_size": 32}})}
    kinds = tuple(ROWS)

    @property
    def replaced(self) -> Sequence[str]:
        """Methods of the trainer in whose place are those of `Other`."""
        return ROWS[self.kind][2]

    @property
    def needs(self) -> "ScheduleCell | None":
        return None if self.kind == "base" else replace(self, kind="base")

    def decisive(self, settings: CellSettings) -> dict:
        return super().decisive(settings) | {"size": settings.size(self.dataset)}

    def train(
        self, settings: CellSettings, data: DatasetDict, callbacks: Sequence[TrainerCallback] = (), **training
    ) -> Path:
        with ExitStack() as stack:
            for method in self.replaced:
                stack.enter_context(patch.object(VATTrainer, method, getattr(Other, method)))
            return super().train(settings, data, callbacks, save_strategy="no", eval_strategy="no", **training)

    def measure(self, settings: CellSettings, data: DatasetDict) -> dict:
        judge = None if self.needs is None else load_classifier(str(self.needs.train(settings, data)))
        classifier = load_classifier(str(self.train(settings, data)))
        return attention_measured(classifier, judge, data["validation"], JUDGED, OWN)


def main():
    (args,) = parse_arguments(
        (StudyArguments,),
        __doc__,
        datasets="rotten_tomatoes,trec",
        encoders="minilm",
        work_dir="runs/schedules",
        output="runs/schedules.md",
    )
    settings = ScheduleSettings(args.data_dir, args.work_dir, bf16=args.bf16, train_size=args.train_size)
    study = Study(args, ScheduleCell, settings, tuple(ROWS), CONTROLS)
    study.run()
    datasets = args.datasets.split(",")
    sizes = ", ".join(f"{dataset} {settings.size(dataset):,}" for dataset in datasets)
    about = (
        f"MiniLM (6 layers); training texts: {sizes}; batches of 32; validation data only, at most {VALIDATION} texts, on which "
        f"nothing is trained; each row is the model of the last epoch. Every row trains the encoder for {LEARNER_EPOCHS} "
        "epochs, so ATT (matched) is the control. VAT has 2 epochs of the compressor and 2 of the learner, twice, in *one round* 2 and 4; the KL has "
        "weight 0.1 and is averaged over latent dimensions, but in the row that has its sum. With a *joint start* learner and "
        "compressor are trained together for 2 epochs, then come 2 and 2. "
        "One schedule of the learning rate, with one warm-up, and Adam's moments go through all phases, but where the row says "
        "that *each phase* has its own, or begins with *fresh moments*. The recipe in bold is that of `hf-vat train`, of "
        "`hf-vat reproduce vat` and of the quickstart. Scores are of the attention as it ranks words. "
        "accuracy_drop and posthoc_gold: the scorer of all rankings is the seed's base model; *self*: the model itself. Percent, "
        "mean ± sd over seeds; in brackets the mean difference from ATT (matched) and the seeds in which it is above 0. "
        "Entropy is that of the attention over words, from 0 to 1."
    )
    by_dataset = {dataset: study.finished(dataset, "minilm") for dataset in datasets}
    by_dataset = {dataset: rows for dataset, rows in by_dataset.items() if rows}
    tables = [to_means(by_dataset)] if len(by_dataset) > 1 else []
    columns = ("accuracy", *SCORES, "entropy")
    for dataset, results in by_dataset.items():
        rows = beside_control(results, CONTROLS, columns, bold)
        tables.append(Table(f"{dataset} ({args.seeds} seeds)", ["training", *columns], rows, ""))
    study.write("How phases are trained", about, tables)


def bold(name: str) -> str:
    """The name, in bold for the recipe in use."""
    if name == "random":
        return name
    model, training, replaced = ROWS[name]
    recipe = recipes.PRETRAINED_RECIPE
    used = recipes.PRETRAINED | recipe.model(bottleneck=True) | recipe.training(bottleneck=True)
    return (
        f"**{name}**"
        if not replaced and (model | training).items() <= (used | {"pooling": "attention"}).items()
        else name
    )


def to_means(by_dataset: dict) -> Table:
    """Mean differences from ATT (matched) over data sets and seeds."""
    columns = ("accuracy", *SCORES)
    rows = []
    for name, found in differences(by_dataset, CONTROLS, columns).items():
        overall = found[..., 1:].mean(2)  # [data sets, seeds]
        error = overall.std(ddof=1) / overall.size**0.5
        means = [f"{100 * value:+.1f}" for value in found.mean((0, 1))]
        rows.append([bold(name), *means, f"{100 * overall.mean():+.1f} ± {100 * error:.1f}"])
    return Table(
        f"Over {', '.join(by_dataset)}",
        ["training", *columns, "mean of the four scores"],
        rows,
        "Mean difference from ATT (matched) over data sets and seeds; in the last column with its standard error.",
    )


if __name__ == "__main__":
    run(main)
