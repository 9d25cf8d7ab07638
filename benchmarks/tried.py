"""What was tried for speed and is not the default: bfloat16 and `torch.compile`, each against what is.

    python benchmarks/tried.py

MiniLM on sentences of Rotten Tomatoes. Predicting in batches of 32, sorted by length: under autocast to bfloat16, and with the
model compiled for any length, once it is compiled. A step of fine-tuning by the Trainer, with `bf16`. A ratio below 1 is a gain.
"""

import argparse
from collections.abc import Callable

import torch
from datasets import Dataset
from measuring import ROUNDS, Row, compared, interleaved, quiet, tell
from train_step import STEPS, Stopwatch, make_trainer
from transformers import AutoTokenizer, BertForSequenceClassification, DataCollatorWithPadding

from hf_vat.data.offline import minilm_folder, rotten_tomatoes

TEXTS = 500


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of both (default: {ROUNDS})")
    args = parser.parse_args()
    quiet()
    tell(rows(args.rounds), check=False)


def rows(rounds: int = ROUNDS) -> list[Row]:
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    texts = rotten_tomatoes(1, 1, max(TEXTS, 32 * STEPS))["test"]["text"][:]
    encoded = sorted(tokenizer(texts[:TEXTS], truncation=True, max_length=64)["input_ids"], key=len, reverse=True)
    batches = [
        tokenizer.pad({"input_ids": encoded[start : start + 32]}, return_tensors="pt")
        for start in range(0, len(encoded), 32)
    ]
    plain, compiled = new_model().eval(), torch.compile(new_model().eval(), dynamic=True)
    predict(compiled, batches)

    def in_bfloat16():
        with torch.autocast("cpu", torch.bfloat16):
            predict(plain, batches)

    found = [
        compared(
            "predicting in bfloat16", "float32", *interleaved(in_bfloat16, as_it_is(plain, batches), rounds), None
        ),
        compared(
            "predicting, compiled",
            "as it is",
            *interleaved(as_it_is(compiled, batches), as_it_is(plain, batches), rounds),
            None,
        ),
    ]
    train = Dataset.from_dict(
        {**tokenizer(texts[: 32 * STEPS], truncation=True, max_length=64), "label": [0, 1] * 16 * STEPS}
    )
    seconds: dict[bool, list] = {True: [], False: []}
    for _ in range(rounds):
        for bf16, taken in seconds.items():
            watch = Stopwatch()
            make_trainer(new_model(), train, DataCollatorWithPadding(tokenizer), watch, use_cpu=True, bf16=bf16).train()
            taken.append(watch.seconds[2:])
    return [*found, compared("step of fine-tuning in bfloat16", "float32", seconds[True], seconds[False], None)]


def new_model() -> BertForSequenceClassification:
    return BertForSequenceClassification.from_pretrained(minilm_folder(), num_labels=2)


def as_it_is(model, batches: list) -> Callable:
    return lambda: predict(model, batches)


@torch.inference_mode()
def predict(model, batches: list) -> None:
    for batch in batches:
        model(**batch).logits.softmax(-1).tolist()


if __name__ == "__main__":
    main()
