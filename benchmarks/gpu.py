"""Tokens per second and peak memory of training and explaining on a GPU, against plain transformers in the same run.

    python benchmarks/gpu.py                  # under 4 minutes; writes benchmarks/results/gpu.json
    python benchmarks/suite.py --render       # puts it into docs/benchmarks.md

A BERT of the base size (12 layers of 768 numbers) with random weights, on random letters, in bfloat16: as fast as a pretrained one,
and nothing is downloaded. As in `train_step.py`: two compressor and two learner epochs against four of the stock Trainer on the same
batches, here of 32 texts of 128 tokens. Explaining is `hf_vat.explain` by attention, with weights in bfloat16, against tokenizing and
a bare forward pass. Memory is the peak of what torch has allocated. Without a CUDA device it says so and exits 2.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable

import torch
from costs import letter_tokenizer, make_texts
from datasets import Dataset
from explain import bare_forward
from measuring import RESULTS, ROUNDS, Row, compared, interleaved, quiet, rows_table
from suite import write
from train_step import PARTS, STEPS, TARGETS, make_trainer, measured
from transformers import BertConfig, BertForSequenceClassification, DataCollatorWithPadding, TrainerCallback, set_seed

import hf_vat
from hf_vat import BertForVATClassification, BertVATConfig
from hf_vat.report import table

BATCH, TOKENS, WORDS = 32, 128, 90  # of a text
EXPLAINED = 4096  # texts


class PeakWatch(TrainerCallback):
    """MiB of the GPU at the peak of each epoch."""

    def __init__(self):
        self.peaks = []

    def on_epoch_begin(self, args, state, control, **kwargs):
        torch.cuda.reset_peak_memory_stats()

    def on_epoch_end(self, args, state, control, **kwargs):
        self.peaks.append(torch.cuda.max_memory_allocated() / 2**20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of both (default: {ROUNDS})")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("error: this machine has no CUDA device that torch can use, so nothing was measured.", file=sys.stderr)
        sys.exit(2)
    quiet()
    started = time.perf_counter()
    rows = measure("cuda", rounds=args.rounds)
    write(RESULTS / "gpu.json", rows, time.perf_counter() - started)
    shown = rows_table(rows)
    print(torch.cuda.get_device_name(), table(shown.columns, shown.rows), sep="\n")


def measure(
    device: str, tokens: int = TOKENS, words: int = WORDS, explained: int = EXPLAINED, rounds: int = ROUNDS, **sizes
):
    """Rows of training and explaining on a device.

    Args:
        tokens, words: of each text.
        explained: texts that are explained.
        sizes: settings of the encoder, by default those of BERT-base.
    """
    tokenizer = letter_tokenizer()
    texts = make_texts(max(explained, BATCH * STEPS), tokens, words)
    encoded = tokenizer(texts[: BATCH * STEPS])["input_ids"]
    rows = Dataset.from_dict({"input_ids": encoded, "label": [row % 2 for row in range(len(encoded))]})

    def stock():
        set_seed(0)
        return BertForSequenceClassification(BertConfig(**sizes))

    def vat():
        set_seed(0)
        return BertForVATClassification(BertVATConfig(**sizes))

    given = (rows, DataCollatorWithPadding(tokenizer))
    training = {"use_cpu": device == "cpu", "bf16": True}
    ours, baseline = measured(stock, vat, *given, rounds, **training)
    found = [
        compared(
            f"training step: {name}",
            "stock Trainer",
            ours[:, part],
            baseline[:, part],
            None,
            "at least",
            "tokens/s",
            BATCH * tokens,
        )
        for name, part in zip(TARGETS, PARTS, strict=True)
    ]
    peaks = [training_peaks(model(), *given, **training) for model in (vat, stock)]
    for name, epochs in (("compressor", slice(0, 2)), ("learner", slice(2, 4))):
        mine, other = ([max(one[epochs])] for one in peaks)
        found.append(compared(f"peak memory: {name}", "stock Trainer", mine, other, None, unit="MiB"))
    return found + explaining(vat().to(device, torch.bfloat16).eval(), tokenizer, texts[:explained], tokens, rounds)


def training_peaks(model, rows: Dataset, collator: Callable, **training) -> list[float]:
    gc.collect()  # of earlier trainers, which hold their models in cycles
    watch = PeakWatch()
    make_trainer(model, rows, collator, watch, **training).train()
    return watch.peaks


def explaining(model, tokenizer, texts: list[str], tokens: int, rounds: int) -> list[Row]:
    def ours():
        hf_vat.explain(model, tokenizer, texts, batch_size=BATCH)

    def bare():
        bare_forward(model, tokenizer, texts)

    def peak(call):
        torch.cuda.reset_peak_memory_stats()
        call()
        return [torch.cuda.max_memory_allocated() / 2**20]

    gc.collect()
    peaks = peak(ours), peak(bare)  # the first calls, which compile kernels
    seconds = interleaved(ours, bare, rounds)
    what, against = f"attention of {len(texts):,} texts", "forward passes"
    return [
        compared(what, against, *seconds, None, "at least", "tokens/s", len(texts) * tokens),
        compared(f"peak memory: {what}", against, *peaks, None, unit="MiB"),
    ]


if __name__ == "__main__":
    main()
