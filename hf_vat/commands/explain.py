"""Show which words decided, for texts on the command line or in a file.

python examples/explain.py --model runs/quickstart/VAT --text "A warm, funny and beautifully acted film."
python examples/explain.py --model runs/mine --test_file reviews.csv --html explanations.html --json all.json
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from hf_vat.cli import is_main_process, load_classifier, output_file, parse_arguments, run
from hf_vat.data import DataArguments, load_text_classification
from hf_vat.errors import InputError
from hf_vat.explanations import explain
from hf_vat.report import write_report


@dataclass
class ExplainArguments:
    model: str = field(metadata={"help": "Classifier: a folder or a Hub id."})
    text: list[str] = field(default_factory=list, metadata={"help": "One or more texts, each in quotation marks."})
    method: str = field(default="attention", metadata={"help": "How words are scored: attention or random."})
    batch_size: int = field(default=32, metadata={"help": "Texts per forward pass."})
    seed: int = field(default=0, metadata={"help": "Seed of methods that draw random numbers."})
    show: int = field(default=10, metadata={"help": "Number of texts to show in the terminal."})
    html: str | None = field(default=None, metadata={"help": "Also write a page with all texts to this file."})
    json: str | None = field(default=None, metadata={"help": "Also write all scores to this file."})


def main():
    args, data_args = parse_arguments((ExplainArguments, DataArguments), __doc__)
    if not is_main_process():
        return
    if bool(args.text) == (data_args != DataArguments()):
        raise InputError("Give either texts with --text, or a data set with --test_file or --dataset_name.")
    html = args.html and output_file("--html", args.html)
    scores = args.json and output_file("--json", args.json)
    model, tokenizer = load_classifier(args.model)
    texts, gold = args.text, None
    if not texts:
        names = [model.config.id2label[label] for label in range(model.config.num_labels)]
        splits = load_text_classification(data_args, names)
        rows = splits["test"] if "test" in splits else next(iter(splits.values()))
        texts, gold = rows["text"][:], rows["label"][:]
    explanations = explain(
        model,
        tokenizer,
        texts,
        method=args.method,
        batch_size=args.batch_size,
        seed=args.seed,
        gold=gold,
        progress=len(texts) > args.batch_size,
    )
    for explanation in explanations[: args.show]:
        print(explanation.to_terminal(), end="\n\n")
    if html:
        write_report(html, f"Explanations by {args.method}", {Path(args.model).name: explanations})
        print(f"Page: {html}")
    if scores:
        fields = [explanation.to_dict() for explanation in explanations]
        scores.write_text(json.dumps(fields, ensure_ascii=False, indent=1), encoding="utf-8")
        print(f"Scores: {scores}")


if __name__ == "__main__":
    run(main)
