"""Show which words decided, for texts on the command line or in a file.

hf-vat explain --model runs/quickstart/VAT --text "A warm, funny and beautifully acted film."
hf-vat explain --model runs/mine --method lime --test_file reviews.csv --html explanations.html --save_to lime.jsonl

With --save_to each explanation is written as soon as it is made, and after an interruption the same command goes on.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from hf_vat.cli import in_colour, is_main_process, load_classifier, method_settings, output_file, parse_arguments
from hf_vat.data import DataArguments, load_texts
from hf_vat.errors import InputError
from hf_vat.explanations import METHODS, explain
from hf_vat.report import write_report


@dataclass
class ExplainArguments:
    model: str = field(metadata={"help": "Classifier: a folder or a Hub id."})
    text: list[str] = field(default_factory=list, metadata={"help": "One or more texts, each in quotation marks."})
    method: str = field(default="attention", metadata={"help": f"How words are scored: {', '.join(METHODS)}."})
    settings: list[str] = field(
        default_factory=list, metadata={"help": "Settings of the method, e.g. n_samples=500 operator=mask."}
    )
    batch_size: int = field(default=32, metadata={"help": "Model inputs per forward pass."})
    seed: int = field(default=0, metadata={"help": "Seed of methods that draw random numbers."})
    show: int = field(default=10, metadata={"help": "Number of texts to show in the terminal."})
    html: str | None = field(default=None, metadata={"help": "Also write a page with all texts to this file."})
    json: str | None = field(default=None, metadata={"help": "Also write all scores to this file."})
    save_to: str | None = field(
        default=None, metadata={"help": "Write explanations as they are made to this file, and go on from it."}
    )


def main():
    args, data_args = parse_arguments((ExplainArguments, DataArguments), __doc__)
    if not is_main_process():
        return
    if bool(args.text) == (data_args != DataArguments()):
        raise InputError("Give either texts with --text, or a data set with --test_file or --dataset_name.")
    if args.show < 0:
        raise InputError(f"--show is {args.show}; it must be at least 0.")
    prefix = f"{args.method}."
    given = [prefix + setting.removeprefix(prefix) for setting in args.settings]
    [settings] = method_settings([args.method], given).values()
    html = args.html and output_file("--html", args.html)
    scores = args.json and output_file("--json", args.json)
    save_to = args.save_to and output_file("--save_to", args.save_to)
    model, tokenizer = load_classifier(args.model)
    texts, gold = (args.text, None) if args.text else load_texts(data_args, model, labelled=False)
    explanations = explain(
        model,
        tokenizer,
        texts,
        args.method,
        gold=gold,
        batch_size=args.batch_size,
        seed=args.seed,
        progress=len(texts) > args.batch_size or args.method not in ("attention", "mask", "random"),
        save_to=save_to,
        **settings,
    )
    for explanation in explanations[: args.show]:
        print(explanation.to_terminal(color=in_colour()), end="\n\n")
    if html:
        write_report(html, f"Explanations by {args.method}", {Path(args.model).name: explanations})
        print(f"Page: {html}")
    if scores:
        fields = [explanation.to_dict() for explanation in explanations]
        scores.write_text(json.dumps(fields, ensure_ascii=False, indent=1, allow_nan=False), encoding="utf-8")
        print(f"Scores: {scores}")
