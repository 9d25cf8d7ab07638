"""How the phases of VAT are trained on a pretrained encoder: learning rate, optimizer, length, β, on validation data alone.

    python benchmarks/schedules.py --data_dir ../shared/data --seeds 3 --bf16 --jobs 2 --output docs/schedules.md

Every cell trains MiniLM on Rotten Tomatoes sentences or TREC questions, the encoder for the same number of epochs, so that one
ATT run per seed is the control of all. No test data are read: the sentences of the quickstart's test are left out.
Finished cells are kept in `--work_dir` and not run again, so an interrupted study goes on where it stopped.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np
from datasets import DatasetDict
from study import StudyArguments, beside_control, cell_folder, finished, load_validation, write, written_by
from transformers import Trainer

from hf_vat.cli import load_classifier, parse_arguments, run
from hf_vat.data.offline import minilm_folder, rotten_tomatoes
from hf_vat.errors import InputError
from hf_vat.explanations import explain
from hf_vat.faithfulness import Faithfulness
from hf_vat.faithfulness.agreement import normalized_entropy
from hf_vat.report import Table
from hf_vat.report.tables import markdown
from hf_vat.reproduction.running import RESULT, in_parallel, save_result, train_once
from hf_vat.training import ModelArguments, VATTrainer, recipes

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
SCORES = ("accuracy_drop@5", "posthoc_gold@5", "self prob_drop@5", "self posthoc_self@5")
SIZES = {"rotten_tomatoes": 1000, "trec": 1500}
VALIDATION = 450  # texts at most
QUICKSTART_TEST = 1000  # sentences that are left out; the quickstart tests on some of them


@dataclass
class ScheduleArguments(StudyArguments):
    train_size: int | None = field(default=None, metadata={"help": f"Training texts; {SIZES} by default."})


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


def main():
    (args,) = parse_arguments(
        (ScheduleArguments,),
        __doc__,
        datasets="rotten_tomatoes,trec",
        encoders="minilm",
        work_dir="runs/schedules",
        output="runs/schedules.md",
    )
    for option, given, known in (
        ("datasets", args.datasets.split(","), SIZES),
        ("encoders", [args.encoders], ["minilm"]),
    ):
        for name in given:
            if name not in known:
                raise InputError(f"--{option} has {name!r}; there are {', '.join(known)}.")
    names = args.only.split(";") if args.only else list(ROWS)
    for name in names:
        if name not in ROWS:
            raise InputError(f"--only has {name!r}; there are {'; '.join(ROWS)}.")
    for group in (["base"], [name for name in names if name != "base"]):  # the base model judges all others
        tasks = [
            (args, dataset, name, seed)
            for seed in range(args.seeds)
            for dataset in args.datasets.split(",")
            for name in group
            if finished(folder(args, dataset, name, seed), decisive(args, dataset, name)) is None
        ]
        in_parallel(measure, tasks, args.jobs, "cells")
    write(args, to_markdown(args))


def folder(args: ScheduleArguments, dataset: str, name: str, seed: int):
    return cell_folder(args, dataset, "minilm", name, seed)


def decisive(args: ScheduleArguments, dataset: str, name: str) -> dict:
    """What must agree before a finished cell is used again."""
    model, training, patched = ROWS[name]
    size = args.train_size or SIZES[dataset]
    return {"model": model, "training": training, "patched": list(patched), "size": size, "bf16": args.bf16}


def load(args: ScheduleArguments, dataset: str) -> DatasetDict:
    """Training and validation data."""
    size = args.train_size or SIZES[dataset]
    if dataset == "rotten_tomatoes":
        data = rotten_tomatoes(size, VALIDATION, QUICKSTART_TEST)
        data.pop("test")
        return data
    data = load_validation(args, dataset)
    data["train"] = data["train"].shuffle(seed=0).select(range(min(size, len(data["train"]))))
    data["validation"] = data["validation"].select(range(min(VALIDATION, len(data["validation"]))))
    return data


def trained(args: ScheduleArguments, data: DatasetDict, dataset: str, name: str, seed: int):
    """Model and tokenizer of a cell's last epoch."""
    model, training, patched = ROWS[name]
    target = folder(args, dataset, name, seed) / "model"
    with ExitStack() as stack:
        for method in patched:
            stack.enter_context(patch.object(VATTrainer, method, getattr(Other, method)))
        train_once(
            target,
            decisive(args, dataset, name),
            ModelArguments(model_name_or_path=minilm_folder(), max_length=64, **model),
            dataset,
            data,
            save_strategy="no",
            eval_strategy="no",
            per_device_train_batch_size=32,
            seed=seed,
            bf16=args.bf16,
            **training,
        )
    return load_classifier(str(target))


def measure(args: ScheduleArguments, dataset: str, name: str, seed: int) -> None:
    """Train one cell, and measure it on the validation split: under the seed's base model, and under itself."""
    data = load(args, dataset)
    model, tokenizer = trained(args, data, dataset, name, seed)
    texts, labels = data["validation"]["text"][:], data["validation"]["label"][:]
    options = {"ks": (5,), "batch_size": 64}
    if name == "base":
        random = Faithfulness(model, tokenizer, texts, labels, **options).random(range(5)).to_dict()
        own = {f"self {score}": random[score]["mean"] for score in ("prob_drop@5", "posthoc_self@5")}
        result = {
            "accuracy": random["accuracy"],
            "random": {score: random[score]["mean"] for score in SCORES if score in random} | own,
        }
    else:
        explanations = explain(model, tokenizer, texts, labels=labels, batch_size=64)
        base = trained(args, data, dataset, "base", seed)
        by_base = Faithfulness(*base, explanations, **options).measure(explanations, name).scores
        by_self = Faithfulness(model, tokenizer, explanations, **options).measure(explanations, name).scores
        result = {
            "accuracy": float(np.mean([explanation.correct for explanation in explanations])),
            "entropy": float(np.mean([normalized_entropy(one.scores) for one in explanations if one.words])),
            **{score: by_base[score] for score in SCORES if score in by_base},
            **{f"self {score}": by_self[score] for score in ("prob_drop@5", "posthoc_self@5")},
        }
    result["settings"] = decisive(args, dataset, name)
    save_result(folder(args, dataset, name, seed) / RESULT, result)


def to_markdown(args: ScheduleArguments) -> str:
    """A table of means over data sets, then one for each data set, of what is finished."""
    sizes = ", ".join(f"{dataset} {args.train_size or SIZES[dataset]:,}" for dataset in args.datasets.split(","))
    lines = [
        "# How phases are trained",
        "",
        written_by("schedules.py"),
        "",
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
        "Entropy is that of the attention over words, from 0 to 1.",
    ]
    by_dataset = {}
    for dataset in args.datasets.split(","):
        rows = {}
        for name in ROWS:
            found = [
                finished(folder(args, dataset, name, seed), decisive(args, dataset, name)) for seed in range(args.seeds)
            ]
            if None not in found:
                rows[name] = found
        if set(CONTROLS) <= rows.keys():
            by_dataset[dataset] = rows
    if len(by_dataset) > 1:
        lines += ["", markdown(to_means(by_dataset))]
    for dataset, rows in by_dataset.items():
        lines += ["", markdown(to_table(rows, f"{dataset} ({args.seeds} seeds)"))]
    return "\n".join(lines) + "\n"


def bold(name: str) -> str:
    """The name, in bold for the recipe in use."""
    model, training, replaced = ROWS[name]
    recipe = recipes.PRETRAINED_RECIPE
    used = recipes.PRETRAINED | recipe.model(bottleneck=True) | recipe.training(bottleneck=True)
    return (
        f"**{name}**"
        if not replaced and (model | training).items() <= (used | {"pooling": "attention"}).items()
        else name
    )


def to_means(by_dataset: dict[str, dict[str, list[dict]]]) -> Table:
    """Mean differences from ATT (matched) over data sets and seeds."""
    rows = []
    for name in ROWS:
        if name not in CONTROLS and all(name in results for results in by_dataset.values()):
            differences = np.array(
                [
                    [
                        [result[column] - control[column] for column in ("accuracy", *SCORES)]
                        for result, control in zip(results[name], results["ATT (matched)"], strict=True)
                    ]
                    for results in by_dataset.values()
                ]
            )  # [data sets, seeds, columns]
            overall = differences[..., 1:].mean(2)  # [data sets, seeds]
            rows.append(
                [
                    bold(name),
                    *(f"{100 * value:+.1f}" for value in differences.mean((0, 1))),
                    f"{100 * overall.mean():+.1f} ± {100 * overall.std(ddof=1) / overall.size**0.5:.1f}",
                ]
            )
    return Table(
        f"Over {', '.join(by_dataset)}",
        ["training", "accuracy", *SCORES, "mean of the four scores"],
        rows,
        "Mean difference from ATT (matched) over data sets and seeds; in the last column with its standard error.",
    )


def to_table(results: dict[str, list[dict]], title: str) -> Table:
    columns = ("accuracy", *SCORES, "entropy")
    rows = []
    for name, found in {"random": [result["random"] for result in results["base"]], **results}.items():
        cells = []
        for column in columns:
            values = np.array([result.get(column, np.nan) for result in found])
            control = np.array([result[column] for result in results["ATT (matched)"]])
            cells.append(beside_control(values, None if name in ("random", *CONTROLS) else control, column))
        rows.append([name if name == "random" else bold(name), *cells])
    return Table(title, ["training", *columns], rows, "")


if __name__ == "__main__":
    run(main)
