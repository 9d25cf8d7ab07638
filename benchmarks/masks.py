"""Which training of VMASK: draws, layers, β and epochs beside the same model without a mask, on validation data alone.

    python benchmarks/masks.py --data_dir ../shared/data --encoders cnn,lstm --datasets trec,sst2 --jobs 2

No test data are read. Finished cells are kept in `--work_dir` and not run again, so an interrupted study goes on where it
stopped; the table holds what is finished.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from study import StudyArguments, cell_folder, finished, load_validation, write, written_by

from hf_vat.cli import load_classifier, parse_arguments, run
from hf_vat.errors import InputError
from hf_vat.explanations import explain, mask_importance
from hf_vat.faithfulness import Faithfulness
from hf_vat.faithfulness.statistics import frequency_correlation
from hf_vat.report import Table
from hf_vat.report.tables import markdown
from hf_vat.reproduction.running import RESULT, in_parallel, predicted_right, save_result
from hf_vat.reproduction.vmask.systems import ENCODERS, Encoder, Recipe, train_system

PAPER = Recipe(
    layers=1, sample="soft", beta_start=1.0, beta_end=0.01
)  # β: close to the code's, as the paper tells none
# row of the table: system, its recipe, factors of the number of epochs and of the encoder's learning rate
ROWS = {
    "base": ("base", PAPER, 1, 1),
    "IBA": ("IBA", PAPER, 1, 1),
    "one layer, soft draws": ("VMASK", PAPER, 1, 1),
    "one layer, hard draws": ("VMASK", replace(PAPER, sample="hard_st"), 1, 1),
    "β 0.1 to 0.01": ("VMASK", replace(PAPER, beta_start=0.1), 1, 1),
    "β 0.1 throughout": ("VMASK", replace(PAPER, beta_start=0.1, beta_end=0.1), 1, 1),
    "β 0.01 to 1": ("VMASK", replace(PAPER, beta_start=0.01, beta_end=1.0), 1, 1),
    "two layers, hard draws": ("VMASK", replace(PAPER, layers=2, sample="hard_st"), 1, 1),
    "a quarter of the epochs: base": ("base", PAPER, 0.25, 1),
    "a quarter of the epochs": ("VMASK", PAPER, 0.25, 1),
    "three times the rate: base": ("base", PAPER, 1, 3),
    "three times the rate": ("VMASK", PAPER, 1, 3),
}
SCORES = ("accuracy", "prob_drop@5", "posthoc_self@2", "posthoc_self@5")
EXPLAINED = 200  # validation texts


def main():
    (args,) = parse_arguments(
        (StudyArguments,), __doc__, encoders="cnn,lstm", seeds=2, work_dir="runs/masks", output="runs/masks.md"
    )
    names = args.only.split(";") if args.only else list(ROWS)
    for given, known, option in ((args.encoders.split(","), ENCODERS, "encoders"), (names, ROWS, "only")):
        for name in given:
            if name not in known:
                raise InputError(f"--{option} has {name!r}; there are {'; '.join(known)}.")
    tasks = [
        (args, dataset, encoder, name, seed)
        for name in names
        for seed in range(args.seeds)
        for encoder in args.encoders.split(",")
        for dataset in args.datasets.split(",")
        if finished(cell_folder(args, dataset, encoder, name, seed), decisive(args, encoder, name)) is None
    ]
    starts = [
        (args, *key) for key in {(task[1], task[2], task[4]): None for task in tasks} if ENCODERS[key[1]].start_epochs
    ]
    in_parallel(start, starts, args.jobs, "starts")
    in_parallel(measure, tasks, args.jobs, "cells")
    write(args, to_markdown(args))


def varied(encoder: str, name: str) -> Encoder:
    """The encoder with the row's recipe, number of epochs and learning rate."""
    _, recipe, epochs, rate = ROWS[name]
    usual = ENCODERS[encoder]
    training = usual.training | {"learning_rate": rate * usual.training["learning_rate"]}
    return replace(usual, recipe=recipe, epochs=int(epochs * usual.epochs), training=training)


def decisive(args: StudyArguments, encoder: str, name: str) -> dict:
    """What must agree before a finished cell is used again."""
    return varied(encoder, name).decisive(ROWS[name][0]) | {"bf16": args.bf16 and ENCODERS[encoder].pretrained}


def start(args: StudyArguments, dataset: str, encoder: str, seed: int) -> Path:
    """The fine-tuned model that all rows of a pretrained encoder share."""
    folder = cell_folder(args, dataset, encoder, "start", seed)
    settings = {"training": ENCODERS[encoder].training, "epochs": ENCODERS[encoder].start_epochs}
    return train_system(
        "start",
        ENCODERS[encoder],
        load_validation(args, dataset),
        dataset,
        seed,
        folder / "model",
        settings,
        bf16=args.bf16,
    )


def measure(args: StudyArguments, dataset: str, encoder: str, name: str, seed: int) -> None:
    """Train one cell, and measure the model of its best epoch on the validation split."""
    data, settings = load_validation(args, dataset), decisive(args, encoder, name)
    folder = cell_folder(args, dataset, encoder, name, seed)
    system = ROWS[name][0]
    trained = train_system(
        system,
        varied(encoder, name),
        data,
        dataset,
        seed,
        folder / "model",
        settings,
        start(args, dataset, encoder, seed) if ENCODERS[encoder].start_epochs else None,
        settings["bf16"],
    )
    model, tokenizer = load_classifier(str(trained))
    result = {"accuracy": float(predicted_right(model, tokenizer, data["validation"]).mean()), "settings": settings}
    rows = data["validation"].shuffle(seed=0).select(range(min(EXPLAINED, len(data["validation"]))))
    texts, labels = rows["text"][:], rows["label"][:]
    for method, scores in (("shapley", ("prob_drop@5",)), ("mask", ("posthoc_self@2", "posthoc_self@5"))):
        if method == "mask" and system == "base":
            continue
        options = {"n_samples": 5, "seed": seed} if method == "shapley" else {}
        explanations = explain(model, tokenizer, texts, method, labels=labels, batch_size=64, **options)
        measured = Faithfulness(model, tokenizer, explanations, ks=(2, 5), batch_size=64).measure(explanations)
        result |= {score: measured.scores[score] for score in scores}
    if system != "base":
        table = mask_importance(model, tokenizer, data["train"]["text"][:])
        found = frequency_correlation([row.count for row in table], [row.importance for row in table])
        frequent = sorted(table, key=lambda row: -row.count)[:10]
        result |= {
            "r": found.pearson.value,
            "frequent": float(np.mean([row.importance for row in frequent])),
            "important": float(np.mean([row.importance for row in table.top(10)])),
        }
    save_result(folder / RESULT, result)


def to_markdown(args: StudyArguments) -> str:
    """One table for each encoder and data set, of what is finished."""
    lines = [
        "# How VMASK is trained",
        "",
        written_by("masks.py"),
        "",
        "All training texts, validation data only; of each run the epoch that is best on them, as everywhere here. prob_drop@5 of "
        f"{EXPLAINED} texts by sampled Shapley values (5 orders) under the model itself; posthoc_self of the mask's ranking. "
        "Percent, mean over seeds. |r| is that of importance and count of the training words; the last two columns are the "
        "mean mask of the ten most frequent and of the ten most important words.",
    ]
    for encoder in args.encoders.split(","):
        for dataset in args.datasets.split(","):
            rows = []
            for name in ROWS:
                folders = [cell_folder(args, dataset, encoder, name, seed) for seed in range(args.seeds)]
                found = [finished(folder, decisive(args, encoder, name)) for folder in folders]
                if None not in found:
                    cells = [to_cell([one.get(score) for one in found], 100, 1) for score in SCORES]
                    cells += [to_cell([abs(one["r"]) if "r" in one else None for one in found], 1, 3)]
                    cells += [to_cell([one.get(score) for one in found], 1, 2) for score in ("frequent", "important")]
                    rows.append([name, *cells])
            title = f"{dataset}, {encoder}, {args.seeds} seeds, {ENCODERS[encoder].epochs} epochs"
            lines += ["", markdown(Table(title, ["training", *SCORES, "|r|", "frequent", "important"], rows, ""))]
    return "\n".join(lines) + "\n"


def to_cell(values: list, scale: float, digits: int) -> str:
    return "" if None in values else f"{scale * np.mean(values):.{digits}f}"


if __name__ == "__main__":
    run(main)
