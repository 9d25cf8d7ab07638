"""Check explanation methods against the truth: texts whose decisive words are planted, classifiers trained on them.

    python examples/planted_evidence.py --output_dir runs/planted

A small BERT with attention pooling is trained from scratch for each variant and seed (see `hf_vat.data.planted_evidence`),
and its correct predictions are explained by every method. What a method should find is known: the planted words. Prints
and writes, as means over the seeds with their standard deviation, how many of them it ranks first. Runs that are
complete are not repeated.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from transformers import DataCollatorWithPadding, set_seed

from hf_vat import (
    BertForVATClassification,
    BertVATConfig,
    InputError,
    VATTrainer,
    VATTrainingArguments,
    fit_amortized,
)
from hf_vat.cli import method_settings, output_folder, parse_arguments, run
from hf_vat.comparison import compare_explainers
from hf_vat.data import planted_evidence, planted_tokenizer, planted_vocabulary
from hf_vat.inference import predict_outputs
from hf_vat.report import table
from hf_vat.training import show_epochs

KS = (1, 2, 3, 4)
OWN = ("attention", "attention_x_gradient")
ANY = ("gradient", "input_x_gradient", "integrated_gradients", "occlusion", "lime", "shapley", "amortized")
STUDENT_TEXTS, STUDENT = (
    2000,
    {"epochs": 10, "learning_rate": 1e-3, "head_learning_rate": 3e-3},
)  # begins with random words
SCORES = ("precision@1", "recall@2", "recall@4", "auprc", "prob_drop@2")


@dataclass
class PlantedArguments:
    variants: list[str] = field(
        default_factory=lambda: ["clean", "negated"], metadata={"help": "One or more of clean, noisy, negated."}
    )
    seeds: int = field(default=3, metadata={"help": "Number of classifiers for each variant."})
    texts: int = field(default=200, metadata={"help": "Test texts that are explained."})
    train_size: int = field(default=12_000, metadata={"help": "Training texts."})
    epochs: int = field(default=6, metadata={"help": "Training epochs."})
    methods: list[str] = field(
        default_factory=lambda: [*OWN, *ANY],
        metadata={"help": "Methods to compare."},
    )
    settings: list[str] = field(
        default_factory=list,
        metadata={"help": "Settings of methods, e.g. lime.n_samples=500."},
    )
    output_dir: str = field(default="runs/planted", metadata={"help": "Folder for reports and results."})


def main():
    (args,) = parse_arguments((PlantedArguments,), __doc__)
    if args.seeds < 1:
        raise InputError(f"--seeds is {args.seeds}; it must be at least 1.")
    methods = method_settings(args.methods, args.settings)
    if "lime" in methods:
        methods["lime"] = {"n_samples": 500} | methods["lime"]
    folder = output_folder("--output_dir", args.output_dir)
    lines = []
    for variant in args.variants:
        runs = [one_run(args, methods, variant, seed, folder / f"{variant}-{seed}") for seed in range(args.seeds)]
        rows = [
            [name, *[_mean_and_sd([run["methods"][name]["scores"][score]["mean"] for run in runs]) for score in SCORES]]
            for name in runs[0]["methods"]
        ]
        accuracy = _mean_and_sd([run["test_accuracy"] for run in runs])
        heading = (
            f"{variant}: test accuracy {accuracy}; percent, mean ± sd over {args.seeds} classifiers, "
            f"about {runs[0]['n_scored']} correctly classified texts each"
        )
        lines += [heading, "", table(["method", *SCORES], rows), ""]
    text = "\n".join(lines)
    print(f"\n{text}\nReports and curves: {folder}/*/report.html")
    (folder / "summary.txt").write_text(text, encoding="utf-8")


def one_run(args: PlantedArguments, methods: dict, variant: str, seed: int, folder: Path) -> dict:
    """Train a classifier, explain what it gets right, and write the report; or read it, if it is there."""
    done = folder / "comparison.json"
    wanted = {"train_size": args.train_size, "epochs": args.epochs, "texts": args.texts, "methods": methods}
    if done.is_file() and (folder / "run.json").is_file():
        if json.loads((folder / "run.json").read_text(encoding="utf-8"))["wanted"] != wanted:
            raise InputError(f"{folder} holds another run; choose another --output_dir.")
        accuracy = json.loads((folder / "run.json").read_text(encoding="utf-8"))["test_accuracy"]
        return json.loads(done.read_text(encoding="utf-8")) | {"test_accuracy": accuracy}
    vocabulary = planted_vocabulary()
    tokenizer = planted_tokenizer(vocabulary)
    splits = planted_evidence(args.train_size, 1, args.texts, variant, vocabulary=vocabulary, seed=seed)
    model = train(args, splits["train"], tokenizer, seed, folder)
    if "amortized" in methods:  # the other methods need nothing that is trained
        learned = splits["train"]["text"][:STUDENT_TEXTS]
        explainer = fit_amortized(model, tokenizer, learned, seed=seed, progress=True, **STUDENT)
        methods = methods | {"amortized": {"explainer": explainer}}
    test = splits["test"]
    labels = np.array(test["label"])
    predicted = predict_outputs(model, tokenizer, tokenizer(test["text"][:])["input_ids"]).argmax(1)
    accuracy = float((predicted == labels).mean())
    rows = test.select(np.flatnonzero(predicted == labels))
    rows = rows.filter(lambda row: any(row["rationale"]))
    comparison = compare_explainers(
        model,
        tokenizer,
        rows["text"][:],
        rows["label"][:],
        methods,
        rationales=rows["rationale"][:],
        ks=KS,
        seed=seed,
        progress=True,
    )
    comparison.write(folder, f"Planted evidence, {variant}, seed {seed}: which methods find it?")
    (folder / "run.json").write_text(json.dumps({"wanted": wanted, "test_accuracy": accuracy}), encoding="utf-8")
    return comparison.to_dict() | {"test_accuracy": accuracy}


def train(args: PlantedArguments, rows: Dataset, tokenizer, seed: int, folder: Path) -> BertForVATClassification:
    set_seed(seed)
    config = BertVATConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
        bottleneck="none",
    )
    training = VATTrainingArguments(
        str(folder),
        num_train_epochs=args.epochs,
        per_device_train_batch_size=64,
        learning_rate=2e-3,
        lr_scheduler_type="cosine",
        warmup_steps=0.1,
        seed=seed,
        save_strategy="no",
        logging_steps=200,
        report_to="none",
        use_cpu=not torch.cuda.is_available(),
    )
    encoded = rows.map(lambda batch: tokenizer(batch["text"]), batched=True, remove_columns=["text", "rationale"])
    trainer = VATTrainer(
        BertForVATClassification(config),
        training,
        train_dataset=encoded,
        data_collator=DataCollatorWithPadding(tokenizer),
        processing_class=tokenizer,
    )
    show_epochs(trainer)
    trainer.train()
    return trainer.model


def _mean_and_sd(values: list[float]) -> str:
    sd = f" ± {100 * np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{100 * np.mean(values):.1f}{sd}"


if __name__ == "__main__":
    run(main)
