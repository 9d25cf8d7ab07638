"""Cells of the VAT paper: base, ATT and VAT are trained, and their rankings explained and measured."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from datasets import DatasetDict
from transformers import TrainerCallback

from hf_vat.data import load_semeval_words, load_sst_words, sentiment_words
from hf_vat.explanations import explain
from hf_vat.faithfulness import Faithfulness
from hf_vat.faithfulness.rationales import precision_recall_f1_at_k
from hf_vat.pretrained import load_classifier
from hf_vat.reproduction.cells import Cell, CellSettings
from hf_vat.reproduction.measuring import BATCH_SIZE, predicted_right, text_vectors

from .representations import separation
from .systems import ENCODERS, KINDS, ROWS

KS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20)
SCORES = ("accuracy_drop", "prob_drop", "posthoc_gold", "posthoc_self")
# Data sets with labelled words: folder beside the data set's, file, and what reads it. SST's stand in for Twitter's.
WORD_LABELS = {
    "twitter": ("semeval_words", "test.tsv", load_semeval_words),
    "sst2": ("sst_words", "test.jsonl", load_sst_words),
}
WORD_KS = (1, 5)
_SHOWN_VECTORS = 1000  # as many texts as in the paper's figures 3 and 6


class _KeepIterations(TrainerCallback):
    """A checkpoint at the end of each iteration."""

    def __init__(self, ends):
        self.ends = set(ends)

    def on_epoch_end(self, args, state, control, **kwargs):
        control.should_save = round(state.epoch) in self.ends
        return control


class VATCell(Cell):
    """One training run: "base", "ATT" or "VAT".

    Its result holds, by iteration, the accuracy on validation and test data and the separation of the text vectors; and
    for each row of the tables that the run gives (ATT is iteration 0 of its run; all others the best on validation data,
    iteration 0 aside): the iteration, for each test text whether it is classified correctly, and for each score at each K
    its values per text: "base" under the base model (the paper's protocol), "self" under the model itself, "words" against
    labelled words, where there are some. The run of a base model gives the rows "base", without scores, and "Random": means
    over five random rankings, and in "words" what a random ranking is expected to give.
    """

    encoders = ENCODERS
    kinds = KINDS

    @property
    def needs(self) -> "VATCell | None":
        """The cell whose model judges the rankings, by the paper's protocol."""
        return None if self.kind == "base" else replace(self, kind="base")

    def vectors(self, settings: CellSettings) -> Path:
        """File with the text vectors [iterations, texts, H] of random test texts, and their labels."""
        return self.folder(settings) / "vectors.npz"

    def decisive(self, settings: CellSettings) -> dict:
        return super().decisive(settings) | {"words": words_file(settings, self.dataset) is not None}

    def iterations(self, settings: CellSettings, data: DatasetDict) -> dict[int, Path]:
        """Train the system, unless that is done already, and keep the model of every iteration.

        Returns:
            Folder of the model and its tokenizer, by iteration, in order.

        Raises:
            InputError: if the folder holds another run, or the encoder cannot be loaded.
        """
        ends = self.settled.recipe.iterations(self.trained_as == "VAT")
        keep = [_KeepIterations(ends.values())]
        folder = self.train(settings, data, keep, predict_from="learner", save_strategy="no", eval_strategy="no")
        found: dict[int, Path] = {}
        for checkpoint in folder.glob("checkpoint-*"):
            epoch = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))["epoch"]
            # An interrupted run has another checkpoint, where it stopped.
            found |= {number: checkpoint for number, end in ends.items() if abs(epoch - end) < 1e-6}
        return dict(sorted(found.items()))

    def measure(self, settings: CellSettings, data: DatasetDict) -> dict:
        words = labelled_words(settings, self.dataset)
        models = self.iterations(settings, data)
        iterations, correct, vectors = _by_iteration(models, data)
        rows = {}
        for row in ROWS[self.kind]:
            number = next(iter(models)) if row == "ATT" else _select(iterations)
            model, tokenizer = load_classifier(str(models[number]))
            texts, labels = data["test"]["text"][:], data["test"]["label"][:]
            found: dict = {} if row == "Random" else {"correct": correct[number]}
            if row == "Random":
                measured = Faithfulness(model, tokenizer, texts, labels, ks=KS, batch_size=BATCH_SIZE)
                runs = measured.random(range(5)).results
                found["base"] = _wanted(
                    {name: np.mean([run.values[name] for run in runs], 0) for name in runs[0].values}
                )
                found["words"] = _against_words(words, None)
            elif row != "base":
                save_to = self.explanations(settings, row)
                explanations = explain(model, tokenizer, texts, labels=labels, batch_size=BATCH_SIZE, save_to=save_to)
                judges = {"base": self._judge(settings, data), "self": (model, tokenizer)}
                for name, (judge, judges_tokenizer) in judges.items():
                    measured = Faithfulness(judge, judges_tokenizer, explanations, ks=KS, batch_size=BATCH_SIZE)
                    found[name] = _wanted(measured.measure(explanations, row).values)

                def explained(texts, model=model, tokenizer=tokenizer):
                    return explain(model, tokenizer, texts, batch_size=BATCH_SIZE)

                found["words"] = _against_words(words, explained)
            rows[row] = {"iteration": number, **found}
        np.savez_compressed(self.vectors(settings), vectors=vectors["vectors"], labels=vectors["labels"])
        return {"iterations": iterations, "rows": rows}

    def _judge(self, settings: CellSettings, data: DatasetDict):
        base = replace(self, kind="base")
        rows = (base.result(settings) or {})["rows"]  # it is finished, as this cell needs it
        return load_classifier(str(base.iterations(settings, data)[rows["base"]["iteration"]]))


def words_file(settings: CellSettings, dataset: str) -> Path | None:
    """The file with labelled words that belongs to a data set, if there is one."""
    if settings.data_dir is None or dataset not in WORD_LABELS:
        return None
    folder, name, _ = WORD_LABELS[dataset]
    path = Path(settings.data_dir) / folder / name
    return path if path.is_file() else None


def labelled_words(settings: CellSettings, dataset: str) -> dict:
    """The positive and negative texts with labelled words that belong to a data set, by polarity; empty without.

    Raises:
        InputError: if the file cannot be read, or has no text of a polarity.
    """
    path = words_file(settings, dataset)
    if path is None:
        return {}
    split = WORD_LABELS[dataset][2](path)
    return {polarity: sentiment_words(split, polarity) for polarity in ("positive", "negative")}


def _by_iteration(
    models: dict[int, Path], data: DatasetDict
) -> tuple[list[dict], dict[int, list[int]], dict[str, np.ndarray]]:
    """Accuracies and separation by iteration; for each test text whether an iteration classifies it correctly; and the text
    vectors [iterations, texts, H] with their labels."""
    size = len(data["test"])
    shown = np.random.default_rng(0).permutation(size)[:_SHOWN_VECTORS]
    texts = data["test"]["text"][:]
    labels = np.array(data["test"]["label"][:])[shown]
    iterations, correct, vectors = [], {}, []
    for number, folder in models.items():
        model, tokenizer = load_classifier(str(folder))
        right = {split: predicted_right(model, tokenizer, data[split]) for split in ("validation", "test")}
        correct[number] = right["test"].astype(int).tolist()
        vectors.append(text_vectors(model, tokenizer, [texts[place] for place in shown]))
        accuracies = {split: float(found.mean()) for split, found in right.items()}
        iterations.append({"iteration": number} | accuracies | separation(vectors[-1], labels)._asdict())
    return iterations, correct, {"vectors": np.array(vectors, dtype=np.float32), "labels": labels}


def _select(iterations: list[dict]) -> int:
    """The first of the best on validation data; the start of a run with rounds is no VAT yet, and no choice."""
    later = [record for record in iterations if record["iteration"]] or iterations
    return max(later, key=lambda record: record["validation"])["iteration"]


def _against_words(words: dict, explained: Callable | None) -> dict[str, list[float]]:
    """Precision, recall and F1 at K per text with labelled words, by names such as "positive f1@5"; expected at random
    without a function that explains texts."""
    found = {}
    for polarity, wanted in words.items():
        if explained is None:
            scores = [[0.0] * len(text) for text in wanted.texts]
        else:
            scores = [explanation.scores for explanation in explained([tuple(text) for text in wanted.texts])]
        at_k = precision_recall_f1_at_k(scores, wanted.rationales, WORD_KS)
        at_k = at_k.expected() if explained is None else at_k
        for place, k in enumerate(WORD_KS):
            for name in ("precision", "recall", "f1"):
                values = getattr(at_k, name)[:, place]
                found[f"{polarity} {name}@{k}"] = values[~np.isnan(values)].tolist()  # NaN: no word of the polarity
    return found


def _wanted(values: dict[str, np.ndarray]) -> dict[str, list[float]]:
    return {name: column.tolist() for name, column in values.items() if name.partition("@")[0] in SCORES}
