"""Time of a training step in each phase, against plain transformers in the same run.

    python benchmarks/train_step.py --check

The ratios are those of the project's targets. Ours and the baseline are measured in turn, round by round, on the same batches. Of
each step the median over rounds counts, and of these the mean over steps, without the first two. Exits 1 if a target is missed.
"""

import argparse
import tempfile
import time
from collections.abc import Callable

import numpy as np
import torch
from datasets import Dataset
from measuring import ROUNDS, Row, compared, quiet, tell
from transformers import (
    AutoTokenizer,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from hf_vat import BertForVATClassification, VATTrainer, VATTrainingArguments
from hf_vat.data.offline import minilm_folder, rotten_tomatoes

# Of a round of two compressor and two learner epochs by its steps, and of all of it.
STEPS, EPOCHS = 8, 4
TARGETS = {"compressor, first epoch": 0.30, "compressor, later epochs": 0.03, "learner": 1.05, "all": 0.75}
PARTS = slice(2, STEPS), slice(STEPS, 2 * STEPS), slice(2 * STEPS, EPOCHS * STEPS), slice(2, EPOCHS * STEPS)


class Stopwatch(TrainerCallback):
    """Seconds of each optimizer step."""

    def __init__(self):
        self.seconds = []

    def on_step_begin(self, args, state, control, **kwargs):
        self.started = now()

    def on_step_end(self, args, state, control, **kwargs):
        self.seconds.append(now() - self.started)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of both (default: {ROUNDS})")
    args = parser.parse_args()
    quiet()
    tell(rows(args.rounds), args.check)


def rows(rounds: int = ROUNDS) -> list[Row]:
    encoder = minilm_folder()
    sentences = rotten_tomatoes(1, 1, 32 * STEPS)["test"]["text"][:]
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    texts = Dataset.from_dict({**tokenizer(sentences, truncation=True, max_length=64), "label": [0, 1] * 16 * STEPS})

    def stock():
        return BertForSequenceClassification.from_pretrained(encoder, num_labels=2)

    def vat():
        return BertForVATClassification.from_pretrained(encoder, num_labels=2)

    ours, baseline = measured(stock, vat, texts, DataCollatorWithPadding(tokenizer), rounds, use_cpu=True)
    return [
        compared(f"training step: {name}", "stock Trainer", ours[:, part], baseline[:, part], target)
        for (name, target), part in zip(TARGETS.items(), PARTS, strict=True)
    ]


def measured(
    stock: Callable, vat: Callable, texts: Dataset, collator: Callable, rounds: int, **training
) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of each step, shape [rounds, steps], of ours and of the stock Trainer.

    Args:
        stock, vat: make the models anew.
        texts: `STEPS` batches of 32.
        training: settings of both trainers.
    """
    seconds = {vat: [], stock: []}
    for number in range(rounds):
        for model in (stock, vat) if number % 2 == 0 else (vat, stock):
            watch = Stopwatch()
            make_trainer(model(), texts, collator, watch, **training).train()
            seconds[model].append(watch.seconds)
    return np.array(seconds[vat]), np.array(seconds[stock])


def make_trainer(model, texts: Dataset, collator: Callable, watch: TrainerCallback, **training) -> Trainer:
    """Our trainer for a model of ours, or else the stock one."""
    with tempfile.TemporaryDirectory() as folder:
        common = settings(folder) | training
    if isinstance(model, BertForVATClassification):
        arguments = VATTrainingArguments(**common, compress_epochs=2, learn_epochs=2)
        trainer = VATTrainer(model, arguments, train_dataset=texts, data_collator=collator, callbacks=[watch])
    else:
        arguments = TrainingArguments(**common)
        trainer = Trainer(model, arguments, train_dataset=texts, data_collator=collator, callbacks=[watch])
    trainer.remove_callback(PrinterCallback)
    return trainer


def settings(folder: str) -> dict:
    return {
        "output_dir": folder,
        "num_train_epochs": EPOCHS,
        "per_device_train_batch_size": 32,
        "report_to": "none",
        "save_strategy": "no",
        "logging_strategy": "no",
        "disable_tqdm": True,
    }


def now() -> float:
    """The time, when the GPU is done with what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
