"""Why did a classifier of the Hub decide so? Three methods on the same texts, side by side in the terminal.

    python examples/explain.py
    python examples/explain.py --model runs/quickstart/base --text "The acting is fine, and the plot is dull."

The second needs no network, and the first but `make quickstart`. The extra explain has to be installed.
"""

from dataclasses import dataclass, field

from transformers import AutoModelForSequenceClassification, AutoTokenizer

import hf_vat
from hf_vat.cli import in_colour, parse_arguments, run
from hf_vat.report import side_by_side

METHODS = {"occlusion": {}, "integrated_gradients": {"n_steps": 50}, "lime": {"n_samples": 300}}
TEXTS = ["A warm, funny and beautifully acted film.", "The jokes are old, but I laughed all the same."]


@dataclass
class Arguments:
    model: str = field(
        default="distilbert/distilbert-base-uncased-finetuned-sst-2-english",
        metadata={"help": "Any sequence classifier: a Hub id or a folder."},
    )
    text: list[str] = field(default_factory=lambda: TEXTS, metadata={"help": "Texts, each in quotation marks."})


def main():
    (args,) = parse_arguments((Arguments,), __doc__)
    model = AutoModelForSequenceClassification.from_pretrained(args.model)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    explained = [
        hf_vat.explain(model, tokenizer, args.text, method=method, **settings) for method, settings in METHODS.items()
    ]
    for one_text in zip(*explained, strict=True):
        print(side_by_side(one_text, color=in_colour()), end="\n\n")


if __name__ == "__main__":
    run(main)
