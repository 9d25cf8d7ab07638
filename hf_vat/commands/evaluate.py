"""Compare explanation methods on one classifier and data set, beside random rankings.

    hf-vat evaluate --model runs/quickstart/VAT --methods attention integrated_gradients lime shapley \
        --settings lime.n_samples=500 --test_file test.csv --output_dir runs/comparison

Prints each method's faithfulness with a bootstrap interval and its seconds per text, and writes a page, curves, JSON and
CSV. The scorer is the model whose predictions are watched while words are taken away; the VAT paper takes BERT-base, by
default the model scores itself. After an interruption the same command goes on where it stopped. With --shard 3/8 a job of a
cluster explains a part of the texts by all methods, and --merge 8 does the rest; processes of torchrun share the texts by
themselves, and the first one measures.
"""

from dataclasses import dataclass
from pathlib import Path

from hf_vat.arguments import argument
from hf_vat.cli import given_options, method_settings, output_folder, parse_arguments
from hf_vat.comparison import compare_explainers
from hf_vat.data import DataArguments, load_texts
from hf_vat.errors import import_extra
from hf_vat.explanations import METHODS, explain
from hf_vat.faithfulness import ERASER_SHARES, OPERATORS
from hf_vat.options import refuse_without_effect, settings_of
from hf_vat.pretrained import load_classifier
from hf_vat.processes import is_main_process
from hf_vat.report.comparison import COMPARISON_FILES

from .sharing import ShardArguments, turns


@dataclass
class EvaluateArguments:
    model: str = argument(help="Classifier that is explained: a folder or a Hub id.")
    methods: list[str] = argument(help=f"One or more of {', '.join(name for name in METHODS if name != 'random')}.")
    settings: list[str] = argument([], "Settings of methods, e.g. lime.n_samples=500 shapley.exact=true.")
    scorer: str | None = argument(None, "Classifier that is asked; the model by default.")
    ks: list[int] = argument(list(range(1, 11)), "Numbers of words, e.g. 1 5 10.")
    shares: list[float] = argument(list(ERASER_SHARES), "Shares of words, e.g. 0.1 0.5.")
    operator: str = argument("delete", "How the scorer's words are taken out.", choices=list(OPERATORS))
    confidence: float = argument(0.95, "Of the intervals.")
    max_length: int | None = argument(None, "Tokens per text; as many as the model takes.")
    seeds: int = argument(5, "Number of random rankings.")
    batch_size: int = argument(32, "Model inputs per forward pass.")
    seed: int = argument(0, "Seed of methods that draw random numbers.")
    output_dir: str | None = argument(None, "Write page, curves, JSON and CSV to this folder.")


ARGUMENTS = (EvaluateArguments, DataArguments, ShardArguments)


def main():
    args, data_args, shard_args = parse_arguments(ARGUMENTS, __doc__)
    refuse_without_effect("evaluate", given_options(ARGUMENTS), settings_of(args, data_args, shard_args))
    work = turns(shard_args, args.output_dir, "output_dir")
    methods = method_settings(args.methods, args.settings)
    folder = None if args.output_dir is None else output_folder("--output_dir", args.output_dir, COMPARISON_FILES)
    if folder:
        import_extra("matplotlib", "viz")  # the curves come last
    model, tokenizer = load_classifier(args.model)
    scorer, scorer_tokenizer = load_classifier(args.scorer) if args.scorer else (None, None)
    texts, labels = load_texts(data_args, model)
    for turn in work:
        if turn.shard is not None:
            for method, settings in methods.items():
                file = Path(args.output_dir, "explanations", f"{method}.jsonl")
                explanations = explain(
                    model,
                    tokenizer,
                    texts,
                    method,
                    labels=labels,
                    batch_size=args.batch_size,
                    seed=args.seed,
                    max_length=args.max_length,
                    progress=is_main_process(),
                    save_to=file,
                    shard=turn.shard,
                    **settings,
                )
                turn.tell(len(explanations), len(texts), file)
            continue
        comparison = compare_explainers(
            model,
            tokenizer,
            texts,
            labels,
            methods,
            scorer=scorer,
            scorer_tokenizer=scorer_tokenizer,
            ks=args.ks,
            shares=args.shares,
            operator=args.operator,
            seeds=range(args.seeds),
            confidence=args.confidence,
            max_length=args.max_length,
            batch_size=args.batch_size,
            seed=args.seed,
            save_folder=folder and folder / "explanations",
            progress=True,
            merge=turn.merge,
        )
        setup = comparison.setup
        quality = [f"accuracy {100 * setup['accuracy']:.1f}"] if "accuracy" in setup else []
        quality += [f"root mean squared error {setup['rmse']:.3g}"] if "rmse" in setup else []
        print(f"scorer {': '.join([setup['scorer'], *quality])}\n\n{comparison}")
        if folder:
            print(f"\nPage: {comparison.write(folder, f'Explanations of {Path(args.model).name} compared')}")
