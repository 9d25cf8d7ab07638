"""Time of a training step in each phase, against plain transformers in the same run.

    python benchmarks/train_step.py --check

The two ratios are those of the project's targets. Ours and the baseline are measured in turn, round by round, on the
same batches. Of each step the fastest round counts, since other work on a shared machine only ever adds time; the ratio
is the median over steps. Exits 1 if a target is missed.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict

from datasets import Dataset
from transformers import (
    AutoTokenizer,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.utils import logging

from hf_vat import BertForVATClassification, VATTrainer, VATTrainingArguments
from hf_vat.data.offline import minilm_folder, rotten_tomatoes

TARGETS = {"learner step": 1.05, "compressor step": 0.35}


class Stopwatch(TrainerCallback):
    """Seconds of each optimizer step."""

    def __init__(self):
        self.seconds = []

    def on_step_begin(self, args, state, control, **kwargs):
        self.started = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        self.seconds.append(time.perf_counter() - self.started)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of both (default: 7)")
    args = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()

    encoder = minilm_folder()
    sentences = rotten_tomatoes(1, 1, 256)["test"]["text"][:]
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    rows = Dataset.from_dict({**tokenizer(sentences, truncation=True, max_length=64), "label": [0, 1] * 128})
    # what: for each step (its batch is the same in every round) the seconds of all rounds, ours and the baseline's
    measured = {name: defaultdict(lambda: ([], [])) for name in TARGETS}

    def record(name: str, step: int, ours: float, baseline: float) -> None:
        measured[name][step][0].append(ours)
        measured[name][step][1].append(baseline)

    for _ in range(args.rounds):
        # Two epochs of 8 steps with the same batches: ours compresses in the first and learns in the second.
        stock = step_seconds(stock_trainer(encoder, tokenizer, rows))
        ours = step_seconds(vat_trainer(encoder, tokenizer, rows))
        for step in range(2, 16):
            record("compressor step" if step < 8 else "learner step", step, ours[step], stock[step])

    missed = False
    print(f"{'what':28}{'ours (s)':>10}{'baseline (s)':>14}{'ratio':>8}{'target':>9}")
    for name, target in TARGETS.items():
        best = [(min(ours), min(baseline)) for ours, baseline in measured[name].values()]
        ours, baseline = (statistics.median(column) for column in zip(*best, strict=True))
        ratio = statistics.median(ours / baseline for ours, baseline in best)
        missed |= ratio > target
        print(f"{name:28}{ours:10.3f}{baseline:14.3f}{ratio:8.3f}{target:9.2f}{'  MISSED' if ratio > target else ''}")
    sys.exit(int(args.check and missed))


def settings(folder: str) -> dict:
    return {
        "output_dir": folder,
        "num_train_epochs": 2,
        "per_device_train_batch_size": 32,
        "report_to": "none",
        "save_strategy": "no",
        "logging_strategy": "no",
        "disable_tqdm": True,
        "use_cpu": True,
    }


def stock_trainer(encoder, tokenizer, rows) -> Trainer:
    with tempfile.TemporaryDirectory() as folder:
        return Trainer(
            BertForSequenceClassification.from_pretrained(encoder, num_labels=2),
            TrainingArguments(**settings(folder)),
            train_dataset=rows,
            data_collator=DataCollatorWithPadding(tokenizer),
        )


def vat_trainer(encoder, tokenizer, rows) -> VATTrainer:
    with tempfile.TemporaryDirectory() as folder:
        return VATTrainer(
            BertForVATClassification.from_pretrained(encoder, num_labels=2),
            VATTrainingArguments(**settings(folder), compress_epochs=1, learn_epochs=1),
            train_dataset=rows,
            data_collator=DataCollatorWithPadding(tokenizer),
        )


def step_seconds(trainer: Trainer) -> list[float]:
    watch = Stopwatch()
    trainer.add_callback(watch)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return watch.seconds


if __name__ == "__main__":
    main()
