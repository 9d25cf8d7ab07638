"""Which heads, start, phases and β: VAT against ATT with as many updates of the encoder, on validation data alone.

    python benchmarks/heads.py --data_dir ../shared/data --encoders lstm --datasets trec,sst2,subj --jobs 2

Every recipe trains the encoder for the same number of epochs, so one ATT run per seed is the control of all of them. The
scorer of all rankings is the seed's base model. No test data are read. Finished cells are kept in `--work_dir` and not run
again, so an interrupted study goes on where it stopped; the table holds what is finished.
"""

from dataclasses import asdict, dataclass, field, replace

import numpy as np
from study import StudyArguments, beside_control, cell_folder, finished, load_validation, write, written_by

from hf_vat.cli import load_classifier, parse_arguments, run
from hf_vat.errors import InputError
from hf_vat.explanations import explain
from hf_vat.faithfulness import Faithfulness
from hf_vat.faithfulness.agreement import normalized_entropy
from hf_vat.report import Table
from hf_vat.report.tables import markdown
from hf_vat.reproduction.running import RESULT, in_parallel, save_result
from hf_vat.reproduction.vat import ENCODERS, Recipe
from hf_vat.reproduction.vat.systems import train_system

START = Recipe("joint", 6, 2, 2, 3, "separate", 0.1, "sum")
SCORES = ("accuracy_drop@5", "posthoc_gold@5")
CONTROLS = {"base": "base", "ATT (matched)": "ATT"}
RECIPES = {
    "lstm": {
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
    },
}


@dataclass
class HeadArguments(StudyArguments):
    train_size: int = field(default=4000, metadata={"help": "Training texts at most."})


def main():
    (args,) = parse_arguments(
        (HeadArguments,), __doc__, datasets="trec,sst2,subj", work_dir="runs/heads", output="runs/heads.md"
    )
    datasets, encoders = args.datasets.split(","), args.encoders.split(",")
    for encoder in encoders:
        names = RECIPES.get(encoder)
        if names is None:
            raise InputError(f"--encoders has {encoder!r}; there are {', '.join(RECIPES)}.")
        for name in (args.only or "").split(";"):
            if name and name not in names:
                raise InputError(f"--only has {name!r}; recipes of {encoder} are {'; '.join(names)}.")
    for controls in (True, False):  # the base model judges all others
        tasks = []
        for encoder in encoders:
            names = (
                ["base"] if controls else ["ATT (matched)", *(args.only.split(";") if args.only else RECIPES[encoder])]
            )
            tasks += [
                (args, dataset, encoder, name, seed)
                for seed in range(args.seeds)
                for dataset in datasets
                for name in names
                if finished(cell_folder(args, dataset, encoder, name, seed), decisive(args, encoder, name)) is None
            ]
        in_parallel(measure, tasks, args.jobs, "cells")
    write(args, to_markdown(args))


def decisive(args: HeadArguments, encoder: str, name: str) -> dict:
    """What must agree before a finished cell is used again."""
    recipe = next(iter(RECIPES[encoder].values())) if name in CONTROLS else RECIPES[encoder][name]
    settings = {"train_size": args.train_size, "bf16": args.bf16 and encoder != "lstm"}
    return settings | {"recipe": asdict(recipe), "training": ENCODERS[encoder].training}


def measure(args: HeadArguments, dataset: str, encoder: str, name: str, seed: int) -> None:
    """Train one cell, and measure the model of its last iteration on the validation split."""
    data = load_validation(args, dataset)
    if args.train_size < len(data["train"]):
        data["train"] = data["train"].shuffle(seed=0).select(range(args.train_size))
    model, tokenizer = trained(args, data, dataset, encoder, name, seed)
    texts, labels = data["validation"]["text"][:], data["validation"]["label"][:]
    if name == "base":
        random = Faithfulness(model, tokenizer, texts, labels, ks=(5,), batch_size=64).random(range(5)).to_dict()
        result = {"accuracy": random["accuracy"], "random": {score: random[score]["mean"] for score in SCORES}}
    else:
        explanations = explain(model, tokenizer, texts, labels=labels, batch_size=64)
        base = trained(args, data, dataset, encoder, "base", seed)
        found = Faithfulness(*base, explanations, ks=(5,), batch_size=64).measure(explanations, name).scores
        result = {
            "accuracy": float(np.mean([explanation.correct for explanation in explanations])),
            "entropy": float(np.mean([normalized_entropy(one.scores) for one in explanations if one.words])),
            **{score: found[score] for score in SCORES},
        }
    result["settings"] = decisive(args, encoder, name)
    save_result(cell_folder(args, dataset, encoder, name, seed) / RESULT, result)


def trained(args: HeadArguments, data, dataset: str, encoder: str, name: str, seed: int):
    """Model and tokenizer of a cell's last iteration."""
    settings = decisive(args, encoder, name)
    models = train_system(
        CONTROLS.get(name, "VAT"),
        ENCODERS[encoder],
        Recipe(**settings["recipe"]),
        data,
        dataset,
        seed,
        cell_folder(args, dataset, encoder, name, seed) / "model",
        settings,
        settings["bf16"],
    )
    return load_classifier(str(models[max(models)]))


def to_markdown(args: HeadArguments) -> str:
    """One table for each encoder and data set, of what is finished."""
    lines = [
        "# Which heads, which start, which β",
        "",
        written_by("heads.py"),
        "",
        f"At most {args.train_size:,} training texts. Validation data only, on which nothing is trained; each row is the model of "
        "the last epoch. All rows of a table have trained the encoder for as many epochs, so ATT (matched) is the control. The scorer of all rankings is the seed's base model. Percent, mean ± sd "
        "over seeds; in brackets the mean difference from ATT (matched) and the seeds in which it is above 0. Entropy is that "
        "of the attention over words, from 0 to 1. The recipe in bold is what `hf-vat reproduce vat` uses.",
    ]
    for encoder in args.encoders.split(","):
        by_dataset = {}
        for dataset in args.datasets.split(","):
            rows = {}
            for name in (*CONTROLS, *RECIPES[encoder]):
                folders = [cell_folder(args, dataset, encoder, name, seed) for seed in range(args.seeds)]
                found = [finished(folder, decisive(args, encoder, name)) for folder in folders]
                if None not in found:
                    rows[name] = found
            if CONTROLS.keys() <= rows.keys():
                by_dataset[dataset] = rows
        if len(by_dataset) > 1:
            lines += ["", markdown(to_means(by_dataset, encoder))]
        for dataset, rows in by_dataset.items():
            lines += ["", markdown(to_table(rows, dataset, encoder, args.seeds))]
    return "\n".join(lines) + "\n"


def to_means(by_dataset: dict[str, dict[str, list[dict]]], encoder: str) -> Table:
    """Mean differences from ATT (matched) over data sets, of the recipes that all of them have."""
    columns = ("accuracy", *SCORES)
    rows = []
    for name in RECIPES[encoder]:
        if all(name in results for results in by_dataset.values()):
            found = [
                [
                    [result[column] - control[column] for column in columns]
                    for result, control in zip(*pair, strict=True)
                ]
                for pair in ((results[name], results["ATT (matched)"]) for results in by_dataset.values())
            ]
            means, lowest = np.mean(found, axis=(0, 1)), np.mean(found, axis=1).min(0)
            rows.append(
                [
                    bold(name, encoder),
                    *(f"{100 * mean:+.1f} ({100 * low:+.1f})" for mean, low in zip(means, lowest, strict=True)),
                ]
            )
    return Table(
        f"{encoder}: over {', '.join(by_dataset)}",
        ["recipe", *columns],
        rows,
        "Mean difference from ATT (matched) over data sets and seeds; in brackets that of the data set where it is lowest.",
    )


def bold(name: str, encoder: str) -> str:
    """The name, in bold for the recipe in use."""
    return f"**{name}**" if RECIPES[encoder].get(name) == ENCODERS[encoder].recipe else name


def to_table(results: dict[str, list[dict]], dataset: str, encoder: str, seeds: int) -> Table:
    recipes = RECIPES[encoder]
    columns = ("accuracy", *SCORES, "entropy")
    rows = []
    for name, found in {"random": [result["random"] for result in results["base"]], **results}.items():
        cells = []
        for column in columns:
            values = np.array([result.get(column, np.nan) for result in found])
            control = np.array([result.get(column, np.nan) for result in results["ATT (matched)"]])
            cells.append(beside_control(values, None if name in ("random", *CONTROLS) else control, column))
        rows.append([bold(name, encoder), *cells])
    settings = asdict(next(iter(recipes.values())))
    told = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in settings.items())
    return Table(
        f"{dataset}, {encoder} ({seeds} seed{'s' * (seeds > 1)})",
        ["recipe", *columns],
        rows,
        f"Joint start: {told}. The others differ from it in what they name.",
    )


if __name__ == "__main__":
    run(main)
