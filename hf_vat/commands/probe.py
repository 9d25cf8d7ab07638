"""Can the attention of a classifier be read as an explanation? One page of evidence, and a verdict.

    hf-vat probe --model runs/quickstart/VAT --train_file train.csv --test_file test.csv --output_dir runs/probe

Shuffles the attention's weights and makes them equal, searches and trains other attentions that give the same predictions, and
measures how faithful it is beside random rankings, gradients and occlusion, how it agrees with these and with another training
(--other), how much of it lies on punctuation, and whether it finds evidence whose place is known. Prints the verdict and writes
probe.html and probe.json. After an interruption the same command goes on where it stopped.
"""

from dataclasses import dataclass, replace

from hf_vat.analysis import probe
from hf_vat.arguments import argument
from hf_vat.cli import given_options, output_folder, parse_arguments
from hf_vat.data import DataArguments, load_texts
from hf_vat.errors import InputError
from hf_vat.options import refuse_without_effect, settings_of
from hf_vat.pretrained import load_classifier
from hf_vat.processes import is_main_process
from hf_vat.report import table
from hf_vat.report.probe import PROBE_FILES, criteria_table


@dataclass
class ProbeArguments:
    model: str = argument(help="Classifier with attention pooling: a folder or a Hub id.")
    output_dir: str = argument(help="Write page and JSON to this folder.")
    other: str | None = argument(None, "The same training with another seed: a folder or a Hub id.")
    train_texts: int = argument(
        1000, "Training texts that the trained adversary learns on, drawn at random; 0 leaves it out."
    )
    max_length: int | None = argument(None, "Tokens per text; as many as the model takes.")
    batch_size: int = argument(32, "Model inputs per forward pass.")
    seed: int = argument(0, "Seed of what is drawn.")


ARGUMENTS = (ProbeArguments, DataArguments)
DEFAULTS = {"max_eval_samples": 100}


def main():
    args, data_args = parse_arguments(ARGUMENTS, __doc__, **DEFAULTS)
    if not is_main_process():
        return
    refuse_without_effect("probe", given_options(ARGUMENTS), settings_of(args, data_args))
    folder = output_folder("--output_dir", args.output_dir, PROBE_FILES)
    model, tokenizer = load_classifier(args.model)
    other = None
    if args.other:
        other, others = load_classifier(args.other)
        if others.get_vocab() != tokenizer.get_vocab():
            raise InputError(f"--other {args.other} has another vocabulary than {args.model}; give the same training.")
    texts, labels = load_texts(data_args, model)
    train: list = []
    if args.train_texts and (data_args.train_file or data_args.dataset_name or data_args.paper_dataset):
        drawn = replace(data_args, max_eval_samples=args.train_texts)
        train, _ = load_texts(drawn, model, labelled=False, split="train")
    found = probe(
        model,
        tokenizer,
        texts,
        labels,
        train_texts=train,
        other=other,
        batch_size=args.batch_size,
        seed=args.seed,
        max_length=args.max_length,
        save_folder=folder / "texts",
        progress=True,
    )
    criteria = criteria_table(found.to_dict())
    print(table(criteria.columns, criteria.rows))
    print("\n".join(["", found.told(), *(f"- {reason}" for reason in found.reasons())]))
    print(f"\nPage: {found.write(folder)}")
