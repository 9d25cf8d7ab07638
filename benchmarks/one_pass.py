"""Which training makes the scores of one forward pass faithful, and what they are centred on: on validation data alone.

    python benchmarks/one_pass.py --data_dir ../shared/data --seeds 3 --jobs 2 --output docs/one_pass.md

Every cell trains MiniLM on Rotten Tomatoes sentences, TREC questions or SST-2 sentences, the encoder for the same number of epochs,
so that one ATT run per seed is the control of all. Words are ranked by the attention, and by attention times gradient with each
center (`method="attention_x_gradient"`). No test data are read. Finished cells are kept in `--work_dir` and not run again, so an
interrupted study goes on where it stopped; the tables hold what is finished. Their numbers, `result.json`, are kept in the repository, as
the study takes hours.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from datasets import DatasetDict
from schedules import ROWS as SCHEDULES
from schedules import ScheduleCell, ScheduleEncoder, ScheduleSettings
from study import Study, StudyArguments

from hf_vat.cli import parse_arguments, run
from hf_vat.explanations import explain
from hf_vat.faithfulness import Faithfulness
from hf_vat.models.attribution import CENTERS
from hf_vat.pretrained import load_classifier
from hf_vat.report import Table
from hf_vat.reproduction.encoders import MINILM
from hf_vat.training import recipes

TRAINED = recipes.PRETRAINED_RECIPE
ATT, VAT = (
    ({"pooling": "attention"} | TRAINED.model(bottleneck), recipes.PRETRAINED | TRAINED.training(bottleneck))
    for bottleneck in (False, True)
)
LINEAR_HEAD, TYING = {"head_layers": 1}, {"word_objective": "tying", "word_weight": 0.1}
# row: settings of the model, settings of training
ROWS = {
    "base": SCHEDULES["base"][:2],
    "ATT (matched)": ATT,
    "VAT": VAT,
    "ATT, linear head": (ATT[0] | LINEAR_HEAD, ATT[1]),
    "VAT, linear head": (VAT[0] | LINEAR_HEAD, VAT[1]),
    "ATT, tying": (ATT[0] | TYING, ATT[1]),
    "VAT, tying": (VAT[0] | TYING, VAT[1]),
    "VAT, tying, linear head": (VAT[0] | TYING | LINEAR_HEAD, VAT[1]),
    "VAT, concat": (VAT[0] | {"word_objective": "concat"}, VAT[1]),
    "VAT, residual": (VAT[0] | {"word_objective": "residual"}, VAT[1]),
    "VAT, residual, linear head": (VAT[0] | {"word_objective": "residual"} | LINEAR_HEAD, VAT[1]),
    "ATT, residual": (ATT[0] | {"word_objective": "residual"}, ATT[1]),
    "VAT, sum of the KL": (VAT[0] | {"kl_reduction": "sum"}, VAT[1]),
    "VAT, λ = 4": (VAT[0] | {"attention_scale": 4.0}, VAT[1]),
    "VAT, under a word mask": (VAT[0] | {"mask_type": "vmask", "mask_beta": 0.1}, VAT[1]),
}
CONTROLS = ("base", "ATT (matched)")
ALLOWED = 1  # points of accuracy that the preset may lose
RANKINGS = {"attention": ("attention", {})} | {
    f"center {center}": ("attention_x_gradient", {"center": center}) for center in CENTERS
}
JUDGED = ("prob_drop@5", "accuracy_drop@5", "posthoc_gold@5")  # by the seed's base model
OWN = ("prob_drop@5", "posthoc_self@5")  # by the model itself
SCORES = (*JUDGED, *(f"self {score}" for score in OWN))


@dataclass(frozen=True)
class OnePassSettings(ScheduleSettings):
    def size(self, dataset: str) -> int:
        return self.train_size or (1000 if dataset == "sst2" else super().size(dataset))


@dataclass(frozen=True)
class OnePassEncoder(ScheduleEncoder):
    rows: ClassVar = ROWS

    def system(self, kind: str) -> tuple[dict, dict]:
        model, training = self.rows[kind]
        return model | {"max_length": 64}, training

    def decisive(self, kind: str) -> dict:
        model, training = self.rows[kind]
        return {"model": model, "training": training}


class OnePassCell(ScheduleCell):
    """A run by one of the rows; measured is the model of its last epoch, by each ranking, under the base model and itself."""

    datasets = ("rotten_tomatoes", "trec", "sst2")
    encoders: ClassVar = {"minilm": OnePassEncoder(**MINILM | {"training": {"per_device_train_batch_size": 32}})}
    kinds = tuple(ROWS)
    replaced = ()

    def measure(self, settings, data: DatasetDict) -> dict:
        rows, options = data["validation"], {"ks": (5,), "batch_size": 64}
        texts, labels = rows["text"][:], rows["label"][:]
        classifier = load_classifier(str(self.train(settings, data)))
        if self.needs is None:
            random = Faithfulness(*classifier, texts, labels, **options).random(range(5)).to_dict()
            return {"accuracy": random["accuracy"], "random": {score: random[score]["mean"] for score in JUDGED}}
        judge = load_classifier(str(self.needs.train(settings, data)))
        scorers, found = {}, {}
        for ranking, (method, more) in RANKINGS.items():
            explanations = explain(*classifier, texts, method, labels=labels, batch_size=64, **more)
            if not scorers:
                scorers = {
                    name: Faithfulness(*one, explanations, **options)
                    for name, one in (("base", judge), ("self", classifier))
                }
            by_judge, by_self = (scorers[name].measure(explanations).scores for name in ("base", "self"))
            found[ranking] = {score: by_judge[score] for score in JUDGED} | {f"self {one}": by_self[one] for one in OWN}
        return {"accuracy": float(np.mean([one.correct for one in explanations])), "rankings": found}


def main():
    (args,) = parse_arguments(
        (StudyArguments,),
        __doc__,
        datasets="rotten_tomatoes,trec,sst2",
        encoders="minilm",
        work_dir="benchmarks/results/one_pass",
        output="runs/one_pass.md",
    )
    settings = OnePassSettings(args.data_dir, args.work_dir, bf16=args.bf16, train_size=args.train_size)
    study = Study(args, OnePassCell, settings, tuple(ROWS), CONTROLS)
    study.run()
    by_dataset = {dataset: finished(study, dataset) for dataset in args.datasets.split(",")}
    by_dataset = {dataset: rows for dataset, rows in by_dataset.items() if set(CONTROLS) <= rows.keys()}
    sizes = ", ".join(f"{dataset} {settings.size(dataset):,}" for dataset in by_dataset)
    about = (
        f"MiniLM (6 layers); training texts: {sizes}; batches of 32; validation data only, at most 450 texts, on which nothing is "
        f"trained. Every row trains the encoder for {TRAINED.learn_epochs} epochs. Words are ranked by the attention or by attention times "
        "gradient, centred on nothing (*none*), on the states' mean under the attention (*attended*) or on their plain *mean*. Scores without "
        "*self* are by the seed's base model, which judges all rankings by the class that it predicts; *self*: by the model itself. Percent, "
        "means over seeds. Rows of one seed were run with `--seeds 1 --only` and their names; beside them stands *VAT, seed 0*. Those of VAT "
        "that were not promising on the first data set were not run on all, and of ATT not all were run."
    )
    if by_dataset:
        about += (
            f" The preset *faithful* is the row with the largest mean of scores, seed 0, among those of all data sets that lose no more than "
            f"{ALLOWED} point of accuracy beside ATT (matched): *{chosen(by_dataset)}*."
        )
    tables = [centers(by_dataset)] if by_dataset else []
    tables += [trainings(dataset, results) for dataset, results in by_dataset.items()]
    study.write("Faithful in one pass: training and center", about, tables)


def finished(study: Study, dataset: str) -> dict[str, dict[int, dict]]:
    """Results by row and seed, as far as they are finished."""
    found: dict[str, dict[int, dict]] = {}
    for row in study.rows:
        for seed in range(study.args.seeds):
            result = study.cell(dataset, "minilm", row, seed).result(study.settings)
            if result is not None:
                found.setdefault(row, {})[seed] = result
    return found


def chosen(by_dataset: Mapping[str, Mapping[str, Mapping[int, dict]]]) -> str:
    """The row with the largest mean of scores by the default center, among those that are accurate enough; of the first seed."""
    rows = [row for row in ROWS if row != "base" and all(0 in results.get(row, {}) for results in by_dataset.values())]

    def mean(row: str, found: Callable[[Iterable[dict]], np.ndarray]) -> float:
        return float(np.mean([found([results[row][0]]) for results in by_dataset.values()]))

    allowed = [row for row in rows if mean(row, accuracies) >= mean(CONTROLS[-1], accuracies) - ALLOWED]
    return max(allowed, key=lambda row: mean(row, lambda results: values(results, f"center {CENTERS[0]}")))


def values(results: Iterable[dict], ranking: str) -> np.ndarray:
    """[seeds, scores], in percent."""
    return 100 * np.array([[one["rankings"][ranking][score] for score in SCORES] for one in results])


def centers(by_dataset: Mapping[str, Mapping[str, Mapping[int, dict]]]) -> Table:
    """Each ranking of ATT and VAT; in brackets for each data set its mean over the scores and seeds."""
    rows = []
    for training in ("ATT (matched)", "VAT", chosen(by_dataset)):
        found = {name: results[training].values() for name, results in by_dataset.items() if training in results}
        for ranking in RANKINGS if found else ():
            of_all = np.array([values(results, ranking).mean(0) for results in found.values()])  # [data sets, scores]
            means = ", ".join(f"{one:.1f}" for one in of_all.mean(1))
            rows.append(
                [training, ranking, *(f"{one:.1f}" for one in of_all.mean(0)), f"{of_all.mean():.1f} ({means})"]
            )
    caption = f"Means over {', '.join(by_dataset)}; the last column is over all scores, in brackets for each data set."
    return Table("What attention times gradient is centred on", ["training", "ranking", *SCORES, "all"], rows, caption)


def trainings(dataset: str, results: Mapping[str, Mapping[int, dict]]) -> Table:
    """Each training by the default center, beside ATT with the same seeds."""
    ranking, rows = f"center {CENTERS[0]}", []
    shown = {}
    for name, by_seed in results.items():
        shown[name] = by_seed
        if name == "VAT" and len(by_seed) > 1:
            shown["VAT, seed 0"] = {0: by_seed[0]}
    for name, by_seed in shown.items():
        accuracy = accuracies(by_seed.values())
        told, seeds = f"{accuracy.mean():.1f}", f"{len(by_seed)}"
        if name == "base":
            rows.append([name, seeds, told, *[""] * len(SCORES), ""])
            continue
        shared = by_seed.keys() & results[CONTROLS[-1]].keys()
        pairs = [(by_seed[seed], results[CONTROLS[-1]][seed]) for seed in sorted(shared)]
        ours, control = zip(*pairs, strict=True)
        own = values(by_seed.values(), ranking)
        differences = (values(ours, ranking) - values(control, ranking)).mean(1)
        spread = own.std(0, ddof=1) if len(own) > 1 else [None] * len(SCORES)
        rows.append(
            [
                name,
                seeds,
                f"{told} ({(accuracies(ours) - accuracies(control)).mean():+.1f})",
                *(
                    f"{one:.1f}" + ("" if sd is None else f" ± {sd:.1f}")
                    for one, sd in zip(own.mean(0), spread, strict=True)
                ),
                f"{differences.mean():+.1f}; {(differences > 0).sum()} of {len(differences)}",
            ]
        )
    caption = (
        "By attention times gradient with the plain mean as center; in brackets the accuracy, and in the last column the mean of the scores, "
        "beside ATT (matched) with the same seeds, and the seeds in which that mean is above."
    )
    return Table(dataset, ["training", "seeds", "accuracy", *SCORES, "beside ATT"], rows, caption)


def accuracies(results: Iterable[dict]) -> np.ndarray:
    """[seeds], in percent."""
    return 100 * np.array([one["accuracy"] for one in results])


if __name__ == "__main__":
    run(main)
