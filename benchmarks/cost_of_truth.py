"""What an explanation costs and how true it is: every method on the same models and texts.

    python benchmarks/cost_of_truth.py --data_dir ../shared/data --seeds 3 --jobs 2 --output docs/cost_of_truth.md

Each cell trains MiniLM with VAT on one data set with one seed, has a student learn Shapley values of its training texts, and explains
test texts by every method. The model judges its own words: what its probability loses without them, and whether they alone give its
prediction. Model inputs are for each text, seconds in those of a bare forward pass of the same texts in the same process. Finished
cells are kept in `--work_dir` and not run again; `--results` keeps their numbers beside the page.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import ClassVar

import numpy as np
from datasets import DatasetDict
from one_pass import OnePassCell, OnePassEncoder, OnePassSettings
from study import Study, StudyArguments

from hf_vat import Explanation, explain, fit_amortized
from hf_vat.arguments import argument
from hf_vat.cli import parse_arguments, run
from hf_vat.data import load_paper_dataset
from hf_vat.data.offline import rotten_tomatoes
from hf_vat.explanations import METHODS
from hf_vat.explanations.methods import check_settings
from hf_vat.faithfulness import Faithfulness, bootstrap_interval, paired_bootstrap
from hf_vat.faithfulness.agreement import kendall_tau
from hf_vat.inference import encode_texts, predict_outputs
from hf_vat.pretrained import load_classifier
from hf_vat.report import Table
from hf_vat.report.figures import INK, LINE_STYLES, MUTED, add_legend, panels, render
from hf_vat.reproduction.encoders import MINILM
from hf_vat.writing import write_text

TEXTS = 100  # that are explained
AGAIN = 30  # of these, explained with another seed as well
ROUNDS = 5  # of what takes one forward pass, and is timed by the median
# The settings that differ from a method's defaults.
COMPARED: dict[str, dict] = {
    "random": {},
    "attention": {},
    "attention_x_gradient": {},
    "gradient": {},
    "input_x_gradient": {},
    "integrated_gradients": {},
    "occlusion": {},
    "lime": {},
    "shapley": {},
    "amortized": {},
}
SCORES = ("prob_drop@5", "posthoc_self@5", "aopc_comprehensiveness")
PICTURE = Path(__file__).parents[1] / "docs" / "assets" / "cost-of-truth.svg"


@dataclass
class TruthArguments:
    results: str = argument("benchmarks/results/cost_of_truth", "Folder that keeps each cell's numbers.")


@dataclass(frozen=True)
class TruthSettings(OnePassSettings):
    """The same training texts as where recipes are chosen, and test texts that no choice depends on."""

    def load(self, dataset: str) -> DatasetDict:
        data = super().load(dataset)
        if dataset == "rotten_tomatoes":
            data["test"] = rotten_tomatoes(self.size(dataset), 450, 1000)["test"]
        else:
            data["test"] = load_paper_dataset(dataset, self.data_dir)["test"].shuffle(seed=0)
        data["test"] = data["test"].select(range(min(TEXTS, len(data["test"]))))
        return data


class TruthCell(OnePassCell):
    """One model with its student, and what every method says of its words."""

    encoders: ClassVar = {"minilm": OnePassEncoder(**MINILM | {"training": {"per_device_train_batch_size": 32}})}
    kinds = ("VAT",)
    needs = None

    def measure(self, settings, data: DatasetDict) -> dict:
        folder = self.train(settings, data)
        model, tokenizer = load_classifier(str(folder))
        started = time.perf_counter()
        student = fit_amortized(
            model,
            tokenizer,
            data["train"]["text"][:],
            seed=self.seed,
            output_dir=folder.parent / f"{self.name}-student",
        )
        fitted = time.perf_counter() - started
        texts, labels = data["test"]["text"][:], data["test"]["label"][:]
        encoded = encode_texts(tokenizer, texts, model, None)
        ids = [one.typed_ids for one in encoded]
        forward = timed(lambda: predict_outputs(model, tokenizer, ids), ROUNDS)
        faithfulness, found = None, {}
        for method, given in COMPARED.items():
            more = given | ({"explainer": student} if method == "amortized" else {})
            all_settings = check_settings(method, **more)
            inputs = [1 + METHODS[method].cost(one, all_settings) for one in encoded]
            kept: list[list[Explanation]] = []

            def ask(method=method, more=more, kept=kept):
                kept.append(explain(model, tokenizer, texts, method, labels=labels, **more))

            seconds = timed(ask, ROUNDS if max(inputs) <= 2 else 1)
            explanations = kept[-1]
            faithfulness = faithfulness or Faithfulness(model, tokenizer, explanations, ks=(5,), batch_size=64)
            values = faithfulness.measure(explanations).values
            found[method] = {
                "inputs": float(np.mean(inputs)),
                "passes": seconds / forward,
                **{score: [float(one) for one in values[score]] for score in SCORES},
            }
            if METHODS[method].draws and method != "random":
                other = explain(model, tokenizer, texts[:AGAIN], method, seed=1, **more)
                taus = [kendall_tau(a.scores, b.scores) for a, b in zip(explanations, other, strict=False)]
                found[method]["tau"] = float(np.mean(taus))
        return {
            "accuracy": float(np.mean([one.correct for one in explanations])),
            "student": {"seconds": fitted, "texts": len(data["train"])},
            "seconds": forward / len(texts),
            "methods": found,
        }


def timed(ask: Callable[[], object], rounds: int) -> float:
    """Median seconds; where there are several rounds the first one warms up."""
    seconds = []
    for _ in range(rounds + (rounds > 1)):
        started = time.perf_counter()
        ask()
        seconds.append(time.perf_counter() - started)
    return median(seconds[rounds > 1 :])


def main():
    args, truth = parse_arguments(
        (StudyArguments, TruthArguments),
        __doc__,
        datasets="rotten_tomatoes,trec,sst2",
        encoders="minilm",
        work_dir="runs/cost_of_truth",
        output="runs/cost_of_truth.md",
    )
    settings = TruthSettings(args.data_dir, args.work_dir, train_size=args.train_size)
    study = Study(args, TruthCell, settings, TruthCell.kinds)
    kept = Path(truth.results)
    cells = [(dataset, seed) for dataset in args.datasets.split(",") for seed in range(args.seeds)]
    if not all((kept / f"{dataset}-{seed}.json").is_file() for dataset, seed in cells):
        study.run()
        kept.mkdir(parents=True, exist_ok=True)
        for dataset, seed in cells:
            result = TruthCell(dataset, "minilm", "VAT", seed).result(settings)
            write_text(kept / f"{dataset}-{seed}.json", json.dumps(result, indent=1))
    found = {
        dataset: [
            json.loads((kept / f"{dataset}-{seed}.json").read_text(encoding="utf-8")) for seed in range(args.seeds)
        ]
        for dataset in args.datasets.split(",")
    }
    sizes = ", ".join(f"{dataset} {settings.size(dataset):,}" for dataset in found)
    about = (
        f"MiniLM (6 layers) with VAT; training texts: {sizes}; {args.seeds} seeds; {TEXTS} test texts of each data set. The model judges its "
        "own words. Integrated gradients take 50 steps, LIME 1,000 samples, Shapley values 25 orders; *amortized* is a student of Shapley "
        "values of the training texts, 4 orders of each and 8 of half of them. *inputs*: texts that models read for one explanation, the "
        "prediction included; *passes*: time in bare forward passes of the same texts. Scores in percent, means over texts and seeds with 95 % "
        "bootstrap intervals over texts. *τ*: Kendall's τ between explanations by two seeds."
    )
    study.write(
        "What an explanation costs, and how true it is", about, [table_of(name, of) for name, of in found.items()]
    )
    render(lambda: front(found), PICTURE)


def values(results: list[dict], method: str, score: str) -> np.ndarray:
    """For each text the mean over seeds, in percent."""
    return 100 * np.mean([one["methods"][method][score] for one in results], 0)


def table_of(dataset: str, results: list[dict]) -> Table:
    rows = []
    for method in COMPARED:
        of_method = [one["methods"][method] for one in results]
        cells = []
        for score in SCORES:
            mean, low, high = bootstrap_interval(values(results, method, score))
            test = paired_bootstrap(values(results, method, score), values(results, "lime", score))
            worse, better = test.high < 0, test.low > 0
            cells.append(f"{mean:.1f} [{low:.1f}, {high:.1f}]{'−' if worse else '+' if better else ''}")
        tau = [one["tau"] for one in of_method if "tau" in one]
        rows.append(
            [
                method,
                f"{np.mean([one['inputs'] for one in of_method]):,.0f}",
                f"{np.mean([one['passes'] for one in of_method]):,.2f}",
                *cells,
                f"{np.mean(tau):.2f}" if tau else "",
            ]
        )
    minutes = np.mean([one["student"]["seconds"] for one in results]) / 60
    accuracy = 100 * np.mean([one["accuracy"] for one in results])
    caption = (
        f"Accuracy {accuracy:.1f} %. The student took {minutes:.0f} minutes, of which most are its teacher's. + and −: above or below LIME by "
        "a paired bootstrap test over texts."
    )
    return Table(dataset, ["method", "inputs", "passes", *SCORES, "τ"], rows, caption)


def front(found: Mapping[str, list[dict]]):
    """Cost against what the probability loses without the top five words, a panel for each data set."""
    figure, axes = panels(list(found))
    lines = {}
    for (_, results), axis in zip(found.items(), axes, strict=True):
        for method, (colour, _, marker) in zip(COMPARED, LINE_STYLES, strict=True):
            cost = np.mean([one["methods"][method]["passes"] for one in results])
            [line] = axis.plot(cost, values(results, method, SCORES[0]).mean(), marker, color=colour, markersize=7)
            lines[method.replace("_", " ")] = line
        axis.set_xscale("log")
        axis.set_xlabel("time, in forward passes", color=INK)
        axis.set_ylabel("probability lost without 5 words, %", color=INK)
        axis.tick_params(color=MUTED, labelcolor=INK)
    add_legend(figure, lines, handlelength=1)
    return figure


if __name__ == "__main__":
    run(main)
