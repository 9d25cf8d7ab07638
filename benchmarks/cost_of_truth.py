"""What an explanation costs and how faithful it is: every method on the same models and texts.

    python benchmarks/cost_of_truth.py --data_dir ../shared/data --seeds 3 --bf16 --jobs 2 --output docs/cost_of_truth.md

Each cell takes the preset "faithful" on one data set with one seed, as benchmarks/faithful.py trains it, has a student learn by the best
recipe of benchmarks/teachers.py, and explains test texts by every method. The model judges its own words: what its probability loses
without them, and whether they alone give its prediction. Model inputs are for each text, time in bare forward passes of the same texts
in the same process. Finished cells are kept in `--work_dir` and not run again, so an interrupted study goes on where it stopped. Their
numbers, `result.json`, are kept in the repository.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from datasets import DatasetDict
from faithful import PRESET, PresetSettings
from study import Study, StudyArguments
from teachers import STUDENTS, StudentCell, student_of, unlabelled

from hf_vat import explain, fit_amortized
from hf_vat.cli import parse_arguments, run
from hf_vat.explanations import METHODS
from hf_vat.explanations.methods import check_settings
from hf_vat.faithfulness import ERASER_SHARES, Faithfulness, bootstrap_interval
from hf_vat.faithfulness.agreement import kendall_tau
from hf_vat.inference import encode_texts, predict_outputs
from hf_vat.pretrained import load_classifier
from hf_vat.report import Table
from hf_vat.report.figures import INK, LINE_STYLES, MUTED, add_legend, panels, render
from hf_vat.reproduction.claims import compare

TEXTS = 60  # that are explained
AGAIN = 12  # of these, explained with another seed as well
TIME = "time"
STUDENT = "LIME, 32 samples, all texts"  # the best of docs/teachers.md
ROUNDS = 15  # of what takes a pass or two
FEW = 10  # texts, of what takes more
COMPARED = (
    *("random", "attention", "attention_x_gradient", "gradient", "input_x_gradient"),
    *("integrated_gradients", "occlusion", "lime", "shapley", "amortized"),
)
SCORES = ("prob_drop@5", "posthoc_self@5", "aopc_comprehensiveness")
# What one pass has to be as good as, and the share of its score that is asked for.
PAIRS = {("attention_x_gradient", "integrated_gradients"): 0.95, ("amortized", "lime"): 0.97}
PICTURE = Path(__file__).parents[1] / "docs" / "assets" / "cost-of-truth.svg"


@dataclass(frozen=True)
class TruthSettings(PresetSettings):
    def load(self, dataset: str) -> DatasetDict:
        data = super().load(dataset)
        data["test"] = data["test"].select(range(TEXTS))
        return data


class TruthCell(StudentCell):
    """A student, and what every method says of the model's words; or how long each takes, with nothing beside it."""

    study = "truth"
    kinds = (PRESET, TIME)
    timed = (TIME,)

    @property
    def needs(self) -> "TruthCell | None":
        return None if self.kind == PRESET else replace(self, kind=PRESET)

    def decisive(self, settings) -> dict:
        return super().decisive(settings) | {"student": list(STUDENTS[STUDENT])}

    def measure(self, settings, data: DatasetDict) -> dict:
        classifier = load_classifier(str(self.train(settings, data)))
        texts, labels = data["test"]["text"][:], data["test"]["label"][:]
        every = unlabelled(settings, self.dataset, data)
        if self.kind == TIME:
            student = fit_amortized(*classifier, every[:FEW], epochs=1)  # as fast as one that has learned enough
            more = with_student(student)
            return {"passes": {method: passes_of(*classifier, texts, method, **more[method]) for method in COMPARED}}
        folder = self.folder(settings) / "student"
        shutil.rmtree(folder, ignore_errors=True)  # of a cell that was stopped: the time is that of all of it
        started = time.perf_counter()
        student, _ = student_of(STUDENT, *classifier, every, self.seed, settings.bf16, folder)
        fitted, more = time.perf_counter() - started, with_student(student)
        explained = {method: explain(*classifier, texts, method, labels=labels, **more[method]) for method in COMPARED}
        judge = Faithfulness(*classifier, explained["attention"], ks=(5,), shares=ERASER_SHARES, batch_size=64)
        found: dict[str, dict] = {}
        for method, explanations in explained.items():
            values = judge.measure(explanations).values
            found[method] = {score: [round(float(one), 4) for one in values[score]] for score in SCORES}
            found[method]["inputs"] = float(np.mean(inputs_of(*classifier, texts, method, **more[method])))
            if METHODS[method].draws and method != "random":
                other = explain(*classifier, texts[:AGAIN], method, seed=1, **more[method])
                taus = [kendall_tau(a.scores, b.scores) for a, b in zip(explanations, other, strict=False)]
                found[method]["tau"] = float(np.mean(taus))
        accuracy = float(np.mean([one.correct for one in explained["attention"]]))
        return {"accuracy": accuracy, "student_seconds": fitted, "methods": found}


def with_student(student) -> dict[str, dict]:
    """Settings of the methods."""
    return {method: {"explainer": student} if method == "amortized" else {} for method in COMPARED}


def inputs_of(model, tokenizer, texts: Sequence[str], method: str, **more) -> list[int]:
    """What models read for the explanation of each text, and for its prediction."""
    settings = check_settings(method, **more)
    return [1 + METHODS[method].cost(one, settings) for one in encode_texts(tokenizer, texts, model, None)]


def passes_of(model, tokenizer, texts: Sequence[str], method: str, **more) -> float:
    """How many times as long as bare forward passes of the texts explaining takes: the median of rounds of one and the other.

    What takes more than two inputs is asked of a few texts, once."""
    slow = max(inputs_of(model, tokenizer, texts, method, **more)) > 2
    texts = texts[:FEW] if slow else texts
    ids = [one.typed_ids for one in encode_texts(tokenizer, texts, model, None)]

    def forward() -> float:
        started = time.perf_counter()
        predict_outputs(model, tokenizer, ids)
        return time.perf_counter() - started

    def ask() -> float:
        started = time.perf_counter()
        explain(model, tokenizer, texts, method, **more)
        return time.perf_counter() - started

    for warm_up in (forward,) if slow else (forward, ask):
        warm_up()
    return median(ask() / forward() for _ in range(1 if slow else ROUNDS))


def main():
    (args,) = parse_arguments(
        (StudyArguments,),
        __doc__,
        datasets="rotten_tomatoes,trec,sst2",
        encoders="minilm",
        work_dir="benchmarks/results/faithful",
        output="runs/cost_of_truth.md",
    )
    settings = TruthSettings(args.data_dir, args.work_dir, bf16=args.bf16, train_size=args.train_size)
    study = Study(args, TruthCell, settings, TruthCell.kinds)
    study.run()
    found = {}
    for name in args.datasets.split(","):
        rows = study.finished(name, "minilm")
        if rows.keys() == {PRESET, TIME}:
            found[name] = [{**one, **timed} for one, timed in zip(rows[PRESET], rows[TIME], strict=True)]
    sizes = ", ".join(f"{dataset} {settings.size(dataset):,}" for dataset in found)
    about = (
        f"MiniLM (6 layers) by the preset *faithful*; training texts: {sizes}; {args.seeds} seeds; {TEXTS} test texts of each data set. The "
        "model judges its own words: they are deleted, which is also how occlusion, LIME, Shapley values and the student's teacher ask it, and "
        "not how gradients do. Integrated gradients take 50 steps, LIME 1,000 samples, Shapley values 25 orders; *amortized* is the "
        f"student that was best on validation data (docs/teachers.md): {STUDENT}. *inputs*: texts that models read for "
        "one explanation, the prediction included; *passes*: time in bare forward passes of the same texts, with nothing beside it. *τ*: "
        "Kendall's τ between explanations by two seeds, where a method draws. Whether the same methods find words that are known to decide: docs/planted.md."
    )
    tables = [summary(found), one_pass(found), *(of_methods(name, results) for name, results in found.items())]
    study.write("What an explanation costs, and how faithful it is", about, tables)
    if found:
        render(lambda: front(found), PICTURE)


def values(results: Sequence[dict], method: str, score: str) -> np.ndarray:
    """[seeds, texts]"""
    return np.array([one["methods"][method][score] for one in results])


def passes(results: Sequence[dict], method: str) -> float:
    return median(one["passes"][method] for one in results)


def summary(found: Mapping[str, Sequence[dict]]) -> Table:
    """Cost, and the first score on each data set."""
    rows = []
    for method in COMPARED:
        inputs = [one["methods"][method]["inputs"] for results in found.values() for one in results]
        times = [passes(results, method) for results in found.values()]
        drops = (f"{100 * values(results, method, SCORES[0]).mean():.1f}" for results in found.values())
        rows.append([f"`{method}`", f"{np.mean(inputs):,.0f}", f"{np.mean(times):,.1f}", *drops])
    caption = f"{SCORES[0]}: what the predicted class loses of its probability without the five words ranked first, in points."
    return Table("All methods", ["method", "inputs", "passes", *found], rows, caption)


def one_pass(found: Mapping[str, Sequence[dict]]) -> Table:
    """What one pass reaches of the score of a method of many."""
    rows = []
    for (method, rival), asked in PAIRS.items():
        for dataset, results in found.items():
            for score in SCORES[:2]:
                own, others = values(results, method, score), values(results, rival, score)
                test, share = compare(own, others), own.mean() / others.mean()
                rows.append(
                    [
                        method,
                        rival,
                        dataset,
                        score,
                        f"{share:.3f}",
                        f"{asked}: {'reached' if share >= asked else 'missed'}",
                        f"{test['difference']:+.1f} [{test['low']:.1f}, {test['high']:.1f}]",
                        f"{passes(results, method):.2f}",
                        f"{passes(results, rival):,.0f}",
                    ]
                )
    caption = (
        "*share*: the score as a share of the rival's; *asked*: for at least this share, before it was measured; *difference* in points, with "
        "95 % intervals from resampling seeds and texts."
    )
    columns = ["method", "rival", "data set", "score", "share", "asked", "difference", "passes", "the rival's"]
    return Table("One pass beside hundreds", columns, rows, caption)


def of_methods(dataset: str, results: Sequence[dict]) -> Table:
    rows = []
    for method in COMPARED:
        cells = []
        for score in SCORES:
            mean, low, high = bootstrap_interval(100 * values(results, method, score).mean(0))
            cells.append(f"{mean:.1f} [{low:.1f}, {high:.1f}]")
        of_method = [one["methods"][method] for one in results]
        tau = [one["tau"] for one in of_method if "tau" in one]
        inputs = np.mean([one["inputs"] for one in of_method])
        rows.append(
            [
                method,
                f"{inputs:,.0f}",
                f"{passes(results, method):,.2f}",
                *cells,
                f"{np.mean(tau):.2f}" if tau else "",
            ]
        )
    minutes = np.mean([one["student_seconds"] for one in results]) / 60
    accuracy = 100 * np.mean([one["accuracy"] for one in results])
    caption = (
        f"Accuracy {accuracy:.1f} %. The student took {minutes:.0f} minutes of one core, with its teacher. Scores in percent, means "
        "over texts and seeds, with 95 % bootstrap intervals over texts."
    )
    return Table(dataset, ["method", "inputs", "passes", *SCORES, "τ"], rows, caption)


def front(found: Mapping[str, Sequence[dict]]):
    """Time against what the probability loses without the top five words, a panel for each data set, with a line along what
    no other method reaches in less time."""
    figure, axes = panels(list(found))
    lines = {}
    for (_, results), axis in zip(found.items(), axes, strict=True):
        times = np.array([passes(results, method) for method in COMPARED])
        drops = np.array([100 * values(results, method, SCORES[0]).mean() for method in COMPARED])
        by_time = np.argsort(times)
        axis.step(
            times[by_time], np.maximum.accumulate(drops[by_time]), where="post", color=MUTED, linewidth=1, zorder=0
        )
        for method, passed, drop, (colour, _, marker) in zip(COMPARED, times, drops, LINE_STYLES, strict=True):
            [line] = axis.plot(passed, drop, marker, color=colour, markersize=7)
            lines[method.replace("_", " ")] = line
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter("")
        axis.set_xlabel("time, forward passes", color=INK)
        axis.set_ylabel("probability lost, points", color=INK)
        axis.tick_params(color=MUTED, labelcolor=INK)
    add_legend(figure, lines, handlelength=1)
    return figure


if __name__ == "__main__":
    run(main)
