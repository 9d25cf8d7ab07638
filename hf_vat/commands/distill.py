"""Train a small second model that says in one forward pass what Shapley values or LIME say of the words after many.

    hf-vat distill --model runs/mine --train_file train.csv --output_dir runs/explainer
    hf-vat explain --model runs/mine --method amortized --settings explainer=runs/explainer --text "A warm, funny film."

Works with any classifier; texts need no labels, and a thousand or more of them are needed. They are those of the training split, or of
another --split. First the teacher explains the texts, which takes most of the time, then the student learns its scores. After an
interruption the same command goes on where it stopped.

The folder then holds the student, a model for token classification with a card. --attach also puts it into the classifier's folder,
where `--method amortized` and the pipeline `text-classification-explained` find it:

    hf-vat distill --model runs/mine --train_file train.csv --output_dir runs/explainer --attach
    hf-vat explain --model runs/mine --method amortized --text "A warm, funny film."
"""

from dataclasses import dataclass
from pathlib import Path

from hf_vat.amortized import attach_explainer, fit_amortized
from hf_vat.amortized.fit import RUN_NAME
from hf_vat.amortized.teacher import EXPLAINED, TEACHERS
from hf_vat.arguments import argument
from hf_vat.cli import given_options, parse_arguments, settings_of_method
from hf_vat.data import DataArguments, load_texts
from hf_vat.errors import InputError, check_path, parse_json
from hf_vat.options import refuse_without_effect, settings_of
from hf_vat.pretrained import load_classifier


@dataclass
class DistillArguments:
    model: str = argument(help="Classifier: a folder or a Hub id.")
    output_dir: str = argument(help="Folder for the teacher's scores and the student.")
    teacher: str = argument("shapley", "Method that the student learns from.", choices=list(TEACHERS))
    settings: list[str] = argument(
        [], "Settings of the teacher, e.g. n_samples=8; of shapley orders in each of two rounds."
    )
    student: str | None = argument(
        None, "Model that the student begins with, of the same vocabulary; the classifier's encoder by default."
    )
    layers: int | None = argument(None, "Layers of the classifier's encoder that the student has; all by default.")
    epochs: int = argument(6, "Passes of the student over the texts.")
    learning_rate: float = argument(5e-5, "Of the student's encoder.")
    head_learning_rate: float = argument(1e-3, "Of the layer that gives the student's scores.")
    batch_size: int = argument(16, "Texts of a training step, and model inputs per forward pass.")
    max_length: int | None = argument(None, "Tokens per text; as many as the models take.")
    seed: int = argument(0, "Seed of the teacher's draws, the student's new layer, and the order of texts.")
    bf16: bool = argument(False, "Compute in bfloat16: faster on hardware that can.")
    split: str = argument("train", "Texts of which split.", choices=["train", "validation", "test"])
    attach: bool = argument(False, "Also put the student into the classifier's folder.")


ARGUMENTS = (DistillArguments, DataArguments)


def main():
    args, data_args = parse_arguments(ARGUMENTS, __doc__)
    refuse_without_effect("distill", given_options(ARGUMENTS), settings_of(args, data_args))
    if args.attach and not check_path(args.model).is_dir():
        raise InputError(f"--attach is for a classifier in a folder, but --model is {args.model}; leave it out.")
    if args.attach and check_path(args.output_dir).resolve().parent == check_path(args.model).resolve():
        raise InputError(
            f"--output_dir {args.output_dir} is in the classifier's folder, where --attach puts the student alone; choose another."
        )
    settings = settings_of_method(args.teacher, args.settings)
    model, tokenizer = load_classifier(args.model)
    texts, _ = load_texts(data_args, model, labelled=False, split=args.split)
    student = fit_amortized(
        model,
        tokenizer,
        texts,
        teacher=args.teacher,
        student=args.student,
        layers=args.layers,
        output_dir=args.output_dir,
        epochs=args.epochs,
        batch_size=args.batch_size,
        learning_rate=args.learning_rate,
        head_learning_rate=args.head_learning_rate,
        max_length=args.max_length,
        seed=args.seed,
        bf16=args.bf16,
        progress=True,
        **settings,
    )
    run = parse_json(Path(args.output_dir, RUN_NAME).read_text(encoding="utf-8"))
    print(
        f"The student has learned from {run['texts'] - run['held_out']:,} texts; of {run['held_out']} others its scores explain "
        f"{100 * run['explained_variance']:.0f} % of {EXPLAINED[args.teacher]}.\nExplainer: {args.output_dir}"
    )
    if args.attach:
        print(f"In the classifier's folder: {attach_explainer(args.model, student)}")
