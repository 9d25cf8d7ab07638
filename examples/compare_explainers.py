"""Which explanation of a model is the truest? Methods on the same texts, with intervals and paired tests.

    make quickstart
    python examples/compare_explainers.py

Needs no network: the model is the quickstart's and the sentences are the first of its test sentences. The extra explain has
to be installed.
"""

from dataclasses import dataclass, field

from transformers import AutoModelForSequenceClassification, AutoTokenizer

import hf_vat
from hf_vat.cli import parse_arguments, run
from hf_vat.data.offline import rotten_tomatoes

METHODS = {"attention": {}, "integrated_gradients": {}, "lime": {"n_samples": 100}}


@dataclass
class Arguments:
    model: str = field(default="runs/quickstart/VAT", metadata={"help": "A classifier of negative and positive texts."})
    texts: int = field(default=100, metadata={"help": "Number of test sentences."})
    output_dir: str = field(default="runs/quickstart/comparison", metadata={"help": "Folder for page, curves and CSV."})


def main():
    (args,) = parse_arguments((Arguments,), __doc__)
    model = AutoModelForSequenceClassification.from_pretrained(args.model)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    test = rotten_tomatoes(1, 1, args.texts)["test"]
    comparison = hf_vat.compare_explainers(model, tokenizer, test["text"][:], test["label"][:], METHODS, progress=True)
    print(comparison)
    print("\nThe same texts under two methods: probability lost without the top 5 words, in points")
    for pair in comparison.pairs():
        if pair["score"] == "prob_drop@5":
            difference, low, high = (100 * pair[name] for name in ("difference", "low", "high"))
            print(f"{pair['a']} - {pair['b']}: {difference:+.1f} [{low:+.1f}, {high:+.1f}], p = {pair['p_value']:.3f}")
    comparison.write(args.output_dir)
    print(f"\nPage: {args.output_dir}/report.html")


if __name__ == "__main__":
    run(main)
