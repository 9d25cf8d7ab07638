"""Which training of VMASK: draws, layers, β and epochs beside the same model without a mask, on validation data alone.

    python benchmarks/masks.py --data_dir ../shared/data --encoders cnn,lstm --datasets trec,sst2 --jobs 2

No test data are read. Finished cells are kept in `--work_dir` and not run again, so an interrupted study goes on where it
stopped; the table holds what is finished.
"""

from dataclasses import replace

import numpy as np
from datasets import DatasetDict
from study import Study, StudyArguments, StudySettings

from hf_vat.cli import parse_arguments, run
from hf_vat.explanations import explain, mask_importance
from hf_vat.faithfulness import Faithfulness
from hf_vat.faithfulness.statistics import frequency_correlation
from hf_vat.report import Table
from hf_vat.reproduction import CellSettings
from hf_vat.reproduction.measuring import predicted_right
from hf_vat.reproduction.vmask import ENCODERS, VMaskCell
from hf_vat.reproduction.vmask.systems import MaskRecipe, VMaskEncoder

PAPER = MaskRecipe(
    layers=1, sample="soft", beta_start=1.0, beta_end=0.01
)  # β: close to the code's, as the paper tells none
# row of the table: system, its recipe, factors of the number of epochs and of the encoder's learning rate
ROWS = {
    "base": ("base", PAPER, 1, 1),
    "IBA": ("IBA", PAPER, 1, 1),
    "one layer, soft draws": ("VMASK", PAPER, 1, 1),
    "one layer, hard draws": ("VMASK", replace(PAPER, sample="hard_st"), 1, 1),
    "β 0.1 to 0.01": ("VMASK", replace(PAPER, beta_start=0.1), 1, 1),
    "β 0.1 throughout": ("VMASK", replace(PAPER, beta_start=0.1, beta_end=0.1), 1, 1),
    "β 0.01 to 1": ("VMASK", replace(PAPER, beta_start=0.01, beta_end=1.0), 1, 1),
    "two layers, hard draws": ("VMASK", replace(PAPER, layers=2, sample="hard_st"), 1, 1),
    "a quarter of the epochs: base": ("base", PAPER, 0.25, 1),
    "a quarter of the epochs": ("VMASK", PAPER, 0.25, 1),
    "three times the rate: base": ("base", PAPER, 1, 3),
    "three times the rate": ("VMASK", PAPER, 1, 3),
}
SCORES = ("accuracy", "prob_drop@5", "posthoc_self@2", "posthoc_self@5")
EXPLAINED = 200  # validation texts


class MaskCell(VMaskCell):
    """A run by one of the rows; measured is the model of the epoch that is best on validation data."""

    kinds = ("start", *ROWS)

    @property
    def settled(self) -> VMaskEncoder:
        """With the row's recipe, number of epochs and learning rate."""
        usual = super().settled
        if self.kind == "start":
            return usual
        _, recipe, epochs, rate = ROWS[self.kind]
        training = usual.training | {"learning_rate": rate * usual.training["learning_rate"]}
        return replace(usual, recipe=recipe, epochs=int(epochs * usual.epochs), training=training)

    @property
    def trained_as(self) -> str:
        return "start" if self.kind == "start" else ROWS[self.kind][0]

    def measure(self, settings: CellSettings, data: DatasetDict) -> dict:
        model, tokenizer = self.best(settings, data)
        result = {"accuracy": float(predicted_right(model, tokenizer, data["validation"]).mean())}
        rows = data["validation"].shuffle(seed=0).select(range(min(EXPLAINED, len(data["validation"]))))
        texts, labels = rows["text"][:], rows["label"][:]
        of_method = {"shapley": ["prob_drop@5"], "mask": ["posthoc_self@2", "posthoc_self@5"]}
        masked = self.trained_as in ("IBA", "VMASK")
        for method, scores in of_method.items() if masked else [("shapley", of_method["shapley"])]:
            options = {"n_samples": 5, "seed": self.seed} if method == "shapley" else {}
            explanations = explain(model, tokenizer, texts, method, labels=labels, batch_size=64, **options)
            measured = Faithfulness(model, tokenizer, explanations, ks=(2, 5), batch_size=64).measure(explanations)
            result |= {score: measured.scores[score] for score in scores}
        if masked:
            table = mask_importance(model, tokenizer, data["train"]["text"][:])
            found = frequency_correlation([row.count for row in table], [row.importance for row in table])
            frequent = sorted(table, key=lambda row: -row.count)[:10]
            result |= {
                "r": found.pearson.value,
                "frequent": float(np.mean([row.importance for row in frequent])),
                "important": float(np.mean([row.importance for row in table.top(10)])),
            }
        return result


def main():
    (args,) = parse_arguments(
        (StudyArguments,), __doc__, encoders="cnn,lstm", seeds=2, work_dir="runs/masks", output="runs/masks.md"
    )
    settings = StudySettings(args.data_dir, args.work_dir, args.train_size, bf16=args.bf16)
    study = Study(args, MaskCell, settings, tuple(ROWS))
    study.run()
    texts = f"At most {args.train_size:,}" if args.train_size else "All"
    about = (
        f"{texts} training texts, validation data only; of each run the epoch that is best on them, as everywhere here. prob_drop@5 of "
        f"{EXPLAINED} texts by sampled Shapley values (5 orders) under the model itself; posthoc_self of the mask's ranking. "
        "Percent, mean over seeds. |r| is that of importance and count of the training words; the last two columns are the "
        "mean mask of the ten most frequent and of the ten most important words."
    )
    tables = []
    for dataset, encoder in study.places():
        rows = []
        for name, found in study.finished(dataset, encoder).items():
            cells = [to_cell([one.get(score) for one in found], 100, 1) for score in SCORES]
            cells += [to_cell([abs(one["r"]) if "r" in one else None for one in found], 1, 3)]
            cells += [to_cell([one.get(score) for one in found], 1, 2) for score in ("frequent", "important")]
            rows.append([name, *cells])
        title = f"{dataset}, {encoder}, {args.seeds} seeds, {ENCODERS[encoder].epochs} epochs"
        tables.append(Table(title, ["training", *SCORES, "|r|", "frequent", "important"], rows, ""))
    study.write("How VMASK is trained", about, tables)


def to_cell(values: list, scale: float, digits: int) -> str:
    return "" if None in values else f"{scale * np.mean(values):.{digits}f}"


if __name__ == "__main__":
    run(main)
