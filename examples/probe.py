"""May the attention of a model be read as an explanation? Two models of the quickstart are asked.

    make quickstart
    python examples/probe.py

Needs no network: the sentences are those of the quickstart.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_vat.analysis import probe
from hf_vat.cli import parse_arguments, run
from hf_vat.data.offline import rotten_tomatoes


@dataclass
class Arguments:
    models: list[str] = field(
        default_factory=lambda: ["runs/quickstart/ATT", "runs/quickstart/VAT"],
        metadata={"help": "Classifiers of negative and positive texts, with attention pooling."},
    )
    texts: int = field(default=100, metadata={"help": "Number of test sentences."})
    train_texts: int = field(default=900, metadata={"help": "Sentences that the trained adversary learns on."})
    output_dir: str = field(default="runs/quickstart/probes", metadata={"help": "Folder for a page of each model."})


def main():
    (args,) = parse_arguments((Arguments,), __doc__)
    data = rotten_tomatoes(args.train_texts, 200, 400, 0)
    test = data["test"][: args.texts]
    for name in args.models:
        started = time.perf_counter()
        model = AutoModelForSequenceClassification.from_pretrained(name)
        tokenizer = AutoTokenizer.from_pretrained(name)
        found = probe(model, tokenizer, test["text"], test["label"], train_texts=data["train"]["text"], progress=True)
        page = found.write(Path(args.output_dir) / Path(name).name)
        print("\n".join([f"\n{name}: {found.told()}", *(f"- {reason}" for reason in found.reasons())]))
        print(f"{time.perf_counter() - started:.0f} seconds; page: {page}")


if __name__ == "__main__":
    run(main)
