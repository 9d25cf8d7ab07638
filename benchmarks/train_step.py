"""Time of a training step in each phase, against plain transformers in the same run.

    python benchmarks/train_step.py --check

The ratios are those of the project's targets. Ours and the baseline are measured in turn, round by round, on the same batches. Of
each step the fastest round counts, since other work on a shared machine only ever adds time; the ratio is that of the means over
steps, without the first two. Exits 1 if a target is missed.
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

# Of a round of two compressor and two learner epochs by its steps, and of all of it.
STEPS, EPOCHS = 8, 4
TARGETS = {"compressor, first epoch": 0.30, "compressor, later epochs": 0.03, "learner": 1.05, "all": 0.75}


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
    # For each step (its batch is the same in every round) the seconds of all rounds.
    ours, baseline = defaultdict(list), defaultdict(list)
    for _ in range(args.rounds):
        for measured, trainer in ((baseline, stock_trainer), (ours, vat_trainer)):
            for step, seconds in enumerate(step_seconds(trainer(encoder, tokenizer, rows))):
                measured[step].append(seconds)

    steps = range(2, STEPS), range(STEPS, 2 * STEPS), range(2 * STEPS, EPOCHS * STEPS), range(2, EPOCHS * STEPS)
    missed = False
    print(f"{'what':28}{'ours (s)':>10}{'baseline (s)':>14}{'ratio':>8}{'target':>9}")
    for (name, target), which in zip(TARGETS.items(), steps, strict=True):
        best = [(min(ours[step]), min(baseline[step])) for step in which]
        one, other = (statistics.mean(column) for column in zip(*best, strict=True))
        ratio = one / other
        missed |= ratio > target
        print(f"{name:28}{one:10.3f}{other:14.3f}{ratio:8.3f}{target:9.2f}{'  MISSED' if ratio > target else ''}")
    sys.exit(int(args.check and missed))


def settings(folder: str) -> dict:
    return {
        "output_dir": folder,
        "num_train_epochs": EPOCHS,
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
            VATTrainingArguments(**settings(folder), compress_epochs=2, learn_epochs=2),
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
