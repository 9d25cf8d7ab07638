"""From what a student of slow explanations learns best, on validation data alone.

    python benchmarks/teachers.py --data_dir ../shared/data --seeds 1 --bf16 --jobs 2 --output docs/teachers.md

Each cell takes a model of the preset "faithful" (benchmarks/faithful.py) and has a student learn from training texts, by one of the
recipes; the model judges what the student says of the words of validation texts, beside what slow methods say. No test data are read.
Finished cells are kept in `--work_dir` and not run again, so an interrupted study goes on where it stopped. Their numbers,
`result.json`, are kept in the repository.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from datasets import DatasetDict
from faithful import PRESET, PresetCell
from one_pass import OnePassCell, OnePassSettings
from schedules import QUICKSTART_TEST, VALIDATION
from study import Results, Study, StudyArguments

from hf_vat import explain, fit_amortized
from hf_vat.amortized.teacher import teaching_cost
from hf_vat.cli import parse_arguments, run
from hf_vat.data import load_paper_dataset
from hf_vat.data.offline import rotten_tomatoes
from hf_vat.faithfulness import Faithfulness
from hf_vat.inference import encode_texts
from hf_vat.pretrained import load_classifier
from hf_vat.report import Table

TEXTS = 150  # of the validation data
SENTENCES = 8530  # of Rotten Tomatoes
ASKED = "asked"  # the cell of what the student is beside
METHODS_ASKED = ("attention_x_gradient", "integrated_gradients", "shapley", "lime")
SCORES = ("prob_drop@5", "posthoc_self@5")
_LIME: dict[str, Any] = {"teacher": "lime", "learning_rate": 1e-4, "batch_size": 32}
# row: training texts that the student learns from (None: all), and how
STUDENTS: dict[str, tuple[int | None, dict[str, Any]]] = {
    "Shapley values, 1,000 texts": (1000, {"teacher": "shapley"}),
    "LIME, 32 samples, 1,000 texts": (1000, {**_LIME, "n_samples": 32, "epochs": 12}),
    "LIME, 8 samples, all texts": (None, {**_LIME, "n_samples": 8, "epochs": 5}),
    "LIME, 32 samples, all texts": (None, {**_LIME, "n_samples": 32, "epochs": 5}),
}


def unlabelled(settings: OnePassSettings, dataset: str, data: DatasetDict) -> list[str]:
    """All training texts, the model's own first, without those of other splits."""
    if dataset == "rotten_tomatoes":
        every = rotten_tomatoes(SENTENCES - VALIDATION - QUICKSTART_TEST, VALIDATION, QUICKSTART_TEST)["train"]
    else:
        every = load_paper_dataset(dataset, f"{settings.data_dir}/{dataset}")["train"].shuffle(seed=0)
    held_out = {text for split in data if split != "train" for text in data[split]["text"]}
    return [text for text in every["text"] if text not in held_out]


def student_of(row: str, model, tokenizer, texts: Sequence[str], seed: int, bf16: bool, folder: Path):
    """The student that learns by a recipe, and what has been asked for it: a number of model inputs."""
    most, how = STUDENTS[row]
    texts = texts[:most]
    student = fit_amortized(model, tokenizer, texts, seed=seed, bf16=bf16, output_dir=folder, **how)
    encoded = encode_texts(tokenizer, texts, model, None)
    return student, teaching_cost(encoded, student.config.teacher, student.config.teacher_settings)


class StudentCell(PresetCell):
    """What is found of a model of the preset, that of the study on test data, and its students."""

    datasets = OnePassCell.datasets
    study: ClassVar[str]

    @property
    def name(self) -> str:
        return f"{self.study}-{super().name}"

    @property
    def trained_as(self) -> str:
        return PRESET

    def train(self, settings, data: DatasetDict, *more, **training) -> Path:
        return PresetCell(self.dataset, self.encoder, PRESET, self.seed).train(settings, data, *more, **training)


class TeacherCell(StudentCell):
    """One of the students, or what slow methods say of the model's words; measured on validation texts."""

    study = "teachers"
    kinds = (ASKED, *STUDENTS)

    @property
    def needs(self) -> "TeacherCell | None":
        return None if self.kind == ASKED else replace(self, kind=ASKED)

    def decisive(self, settings) -> dict:
        return super().decisive(settings) | ({} if self.kind == ASKED else {"student": list(STUDENTS[self.kind])})

    def measure(self, settings, data: DatasetDict) -> dict:
        classifier = load_classifier(str(self.train(settings, data)))
        rows = data["validation"].select(range(TEXTS))
        texts, labels = rows["text"][:], rows["label"][:]
        judge = Faithfulness(*classifier, texts, labels, ks=(5,), batch_size=64)

        def measured(method: str, **more) -> dict:
            found = judge.measure(explain(*classifier, texts, method, labels=labels, batch_size=64, **more)).scores
            return {score: found[score] for score in SCORES}

        if self.kind == ASKED:
            return {"methods": {method: measured(method) for method in METHODS_ASKED}}
        every, folder = unlabelled(settings, self.dataset, data), self.folder(settings) / "student"
        shutil.rmtree(folder, ignore_errors=True)  # of a cell that was stopped: the time is that of all of it
        student, inputs = student_of(self.kind, *classifier, every, self.seed, settings.bf16, folder)
        return {"inputs": inputs, **measured("amortized", explainer=student)}


def main():
    (args,) = parse_arguments(
        (StudyArguments,),
        __doc__,
        datasets="rotten_tomatoes,trec",
        encoders="minilm",
        work_dir="benchmarks/results/faithful",
        output="runs/teachers.md",
    )
    settings = OnePassSettings(args.data_dir, args.work_dir, bf16=args.bf16, train_size=args.train_size)
    study = Study(args, TeacherCell, settings, TeacherCell.kinds, (ASKED,))
    study.run()
    found = {dataset: study.finished(dataset, "minilm") for dataset in args.datasets.split(",")}
    found = {dataset: rows for dataset, rows in found.items() if rows}
    about = (
        f"MiniLM (6 layers) by the preset *faithful*; seeds: {args.seeds}; {TEXTS} validation texts of each data set, judged by the model "
        "itself; percent. *inputs*: texts that the teacher asks the classifier for; *minutes*: of one core, for all of it: teacher, training, "
        "and what is measured. *of LIME*: the scores as shares of those of LIME with 1,000 samples for each text. *all texts*: those of the training data, of which "
        f"the classifier knows a part; students need no labels. One seed does not tell students apart that differ by a point. By the mean of all shares the best is *{best(found)}*."
    )
    study.write("From what a student learns best", about, [table(name, rows) for name, rows in found.items()])


def shares(results: Results, row: str) -> np.ndarray:
    """Each score of a student as a share of LIME's, [scores], means over seeds."""
    asked = [one["methods"]["lime"] for one in results[ASKED]]
    return means(results[row]) / means(asked)


def means(found: Sequence[dict]) -> np.ndarray:
    """[scores]"""
    return np.array([[one[score] for score in SCORES] for one in found]).mean(0)


def best(found: Mapping[str, Results]) -> str:
    """The student with the largest mean of all shares, among those that all data sets have."""
    rows = [row for row in STUDENTS if all(row in results for results in found.values())]
    return max(rows, key=lambda row: np.mean([shares(results, row) for results in found.values()]))


def table(dataset: str, results: Results) -> Table:
    asked = {method: [one["methods"][method] for one in results[ASKED]] for method in METHODS_ASKED}
    lines = []
    for row, of_row in (asked | {name: rows for name, rows in results.items() if name != ASKED}).items():
        of_lime = ", ".join(f"{one:.2f}" for one in means(of_row) / means(asked["lime"]))
        told = [*(f"{100 * one:.1f}" for one in means(of_row)), of_lime]
        if row in asked:
            lines.append([f"`{row}`", "", "", *told])
        else:
            inputs, minutes = np.mean([[one["inputs"] / 1000, one["seconds"] / 60] for one in of_row], 0)
            lines.append([f"student of {row}", f"{inputs:,.0f},000", f"{minutes:.0f}", *told])
    return Table(dataset, ["method", "inputs", "minutes", *SCORES, "of LIME"], lines)


if __name__ == "__main__":
    run(main)
