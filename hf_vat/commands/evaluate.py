"""Measure how faithful a model's explanations are, beside random rankings.

    python examples/evaluate_explanations.py --explainer runs/quickstart/VAT --scorer runs/quickstart/base \
        --test_file test.csv --ks 1 3 5 10 --output_file faithfulness.json

The explainer ranks the words; the scorer is the model whose predictions are watched while words are taken away. The VAT
paper takes BERT-base as scorer; by default the explainer scores itself.
"""

import json
from dataclasses import dataclass, field

from hf_vat.cli import is_main_process, load_classifier, output_file, parse_arguments, run
from hf_vat.data import DataArguments, load_text_classification
from hf_vat.errors import InputError
from hf_vat.explanations import explain
from hf_vat.faithfulness import DEFINITIONS, Faithfulness
from hf_vat.report import table


@dataclass
class EvaluateArguments:
    explainer: str = field(metadata={"help": "Model that ranks the words: a folder or a Hub id."})
    scorer: str | None = field(default=None, metadata={"help": "Model that is asked; the explainer by default."})
    method: str = field(default="attention", metadata={"help": "How words are scored: attention or random."})
    ks: list[int] = field(default_factory=lambda: [1, 3, 5, 10], metadata={"help": "Numbers of words, e.g. 1 5 10."})
    random_seeds: int = field(default=5, metadata={"help": "Number of seeds of the random baseline."})
    batch_size: int = field(default=32, metadata={"help": "Texts per forward pass."})
    output_file: str | None = field(default=None, metadata={"help": "Also write the results to this JSON file."})


def main():
    args, data_args = parse_arguments((EvaluateArguments, DataArguments), __doc__)
    if args.random_seeds < 1:
        raise InputError(f"--random_seeds is {args.random_seeds}; it must be at least 1.")
    if not is_main_process():
        return
    output = args.output_file and output_file("--output_file", args.output_file)
    explainer, tokenizer = load_classifier(args.explainer)
    scorer, scorer_tokenizer = load_classifier(args.scorer) if args.scorer else (explainer, tokenizer)
    if explainer.config.id2label != scorer.config.id2label:
        raise InputError(
            f"Explainer and scorer have different classes: {explainer.config.id2label} and {scorer.config.id2label}."
        )
    names = [scorer.config.id2label[label] for label in range(scorer.config.num_labels)]
    splits = load_text_classification(data_args, names)
    rows = splits["test"] if "test" in splits else next(iter(splits.values()))
    texts, labels = rows["text"][:], rows["label"][:]

    explanations = explain(explainer, tokenizer, texts, method=args.method, batch_size=args.batch_size, progress=True)
    faithfulness = Faithfulness(
        scorer,
        scorer_tokenizer,
        texts,
        labels,
        seen=[explanation.seen for explanation in explanations],
        ks=args.ks,
        batch_size=args.batch_size,
        scorer_name=args.scorer or args.explainer,
        progress="scorer",
    )
    measured = faithfulness.measure([explanation.scores for explanation in explanations], args.explainer).to_dict()
    random = faithfulness.random(range(args.random_seeds)).to_dict()

    rows = [
        [f"{score}@{k}", f"{100 * measured[f'{score}@{k}']:.2f}", _with_sd(random[f"{score}@{k}"])]
        for score in DEFINITIONS
        for k in args.ks
    ]
    print(table([f"percent, n = {measured['n_scored']}", args.method, f"random ({args.random_seeds} seeds)"], rows))
    print(f"\nscorer {measured['scorer']}: accuracy {100 * measured['accuracy']:.2f}")
    if output:
        text = json.dumps({args.method: measured, "random": random}, ensure_ascii=False, indent=2)
        output.write_text(text, encoding="utf-8")


def _with_sd(baseline: dict) -> str:
    sd = "" if baseline["sd"] is None else f" ± {100 * baseline['sd']:.2f}"
    return f"{100 * baseline['mean']:.2f}{sd}"


if __name__ == "__main__":
    run(main)
