"""Cells of the VMASK paper: systems are trained, and their word masks and explanations measured."""

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from datasets import DatasetDict

from hf_vat.explanations import GlobalImportance, WordImportance, explain, mask_importance, word_importance
from hf_vat.faithfulness import Faithfulness
from hf_vat.faithfulness.statistics import FrequencyCorrelation, frequency_correlation
from hf_vat.reproduction.cells import Cell, CellSettings
from hf_vat.reproduction.measuring import BATCH_SIZE, predicted_right
from hf_vat.training import ModelArguments

from .cost import step_seconds
from .numbers import VMASK_LENGTHS
from .systems import ENCODERS, SYSTEMS

KS = tuple(range(1, 11))  # figure 1
AOPC_K = 5
AOPC_TEXTS = 300
MASKS = ("VMASK", "IBA")  # systems whose mask gives a word one importance in all texts
EXPLAINED = ("base", "VMASK")  # systems of table 4
MIN_COUNTS = (1, 5)
METHODS = ("lime", "shapley")
_AOPC = f"prob_drop@{AOPC_K}"
_SHOWN_WORDS = 10


class VMaskCell(Cell):
    """One training run, of a system or of the "start" that systems on a pretrained encoder share; or "cost", table 9.

    The result of a system holds "validation", its accuracy, and "correct", for each test text whether it is classified
    correctly. With a mask that gives a word one importance ([`MASKS`]) also "posthoc_self@K" by its ranking, for VMASK also
    by "random" ones, values per test text; "correlation" of importance and frequency over the words of the training texts, by the least
    count; and "frequent" and "important", the mean importance of the ten words of each kind. "aopc" are prob_drop@5 per
    text of up to 300 random test texts by each method and at "random", under the model itself; "aopc_softmax" the same where
    a softmax has been taken of the probabilities, see [`second_softmax`]; "full" the probability of the predicted class of
    the full texts; and "words" the three most important by LIME. The result of "cost" is "step_seconds", by system.
    """

    encoders = ENCODERS
    kinds = ("start", *SYSTEMS, "cost")
    timed = ("cost",)

    @property
    def needs(self) -> "VMaskCell | None":
        """The "start" of systems on a pretrained encoder."""
        shared = self.settled.start_epochs and self.kind not in ("start", "cost")
        return replace(self, kind="start") if shared else None

    def importance(self, settings: CellSettings) -> GlobalImportance:
        """Importance of the words of the training texts, of a finished cell."""
        with open(self._table(settings), encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
        return GlobalImportance(
            [WordImportance(word, float(value), int(count), int(texts)) for word, value, count, texts in rows]
        )

    def _table(self, settings: CellSettings) -> Path:
        return self.folder(settings) / "importance.csv"

    def arguments(self, settings: CellSettings) -> tuple[ModelArguments, dict]:
        model, training = super().arguments(settings)
        given: dict[str, Any] = {}
        if self.needs:
            given["model_name_or_path"] = str(self.needs.folder(settings) / "model")
        if self.settled.paper_lengths:
            given["max_length"] = VMASK_LENGTHS.get(self.dataset, model.max_length)
        return replace(model, **given), training

    def measure(self, settings: CellSettings, data: DatasetDict) -> dict:
        if self.kind == "cost":
            return {"step_seconds": step_seconds(self.settled, data)}
        model, tokenizer = self.best(settings, data)
        found = {
            "validation": float(predicted_right(model, tokenizer, data["validation"]).mean()),
            "correct": predicted_right(model, tokenizer, data["test"]).astype(int).tolist(),
        }
        if self.kind in MASKS:
            found |= self._measure_mask(settings, data, model, tokenizer)
        if self.kind in EXPLAINED:
            found |= self._measure_explanations(settings, data, model, tokenizer)
        return found

    def _measure_mask(self, settings: CellSettings, data: DatasetDict, model, tokenizer) -> dict:
        texts, labels = data["test"]["text"][:], data["test"]["label"][:]
        explanations = explain(model, tokenizer, texts, "mask", batch_size=BATCH_SIZE)
        faithfulness = Faithfulness(model, tokenizer, explanations, labels, ks=KS, batch_size=BATCH_SIZE)
        names = [f"posthoc_self@{k}" for k in KS]
        ours = faithfulness.measure(explanations, self.kind).values
        found = {name: ours[name].tolist() for name in names}
        if self.kind == "VMASK":  # whose claims are against these
            runs = [run.values for run in faithfulness.random(range(3)).results]
            found["random"] = {name: np.mean([values[name] for values in runs], 0).tolist() for name in names}
        table = mask_importance(model, tokenizer, data["train"]["text"][:])
        table.to_csv(self._table(settings))
        frequent = sorted(table, key=lambda row: (-row.count, row.word))[:_SHOWN_WORDS]
        return found | {
            "correlation": {str(least): _correlation(table, least) for least in MIN_COUNTS},
            "frequent": float(np.mean([row.importance for row in frequent])),
            "important": float(np.mean([row.importance for row in table.top(_SHOWN_WORDS)])),
        }

    def _measure_explanations(self, settings: CellSettings, data: DatasetDict, model, tokenizer) -> dict:
        encoder, test = self.settled, data["test"]
        rows = test.select(np.sort(np.random.default_rng(0).permutation(len(test))[:AOPC_TEXTS]))
        texts, labels = rows["text"][:], rows["label"][:]
        found: dict[str, Any] = {"aopc": {}, "aopc_softmax": {}}
        for method, samples in zip(METHODS, (encoder.lime_samples, encoder.shapley_samples), strict=True):
            explanations = explain(
                model,
                tokenizer,
                texts,
                method,
                labels=labels,
                seed=self.seed,
                batch_size=BATCH_SIZE,
                save_to=self.explanations(settings, method),
                n_samples=samples,
            )
            for name in ("aopc", "aopc_softmax"):
                with second_softmax(model) if name == "aopc_softmax" else nullcontext():
                    faithfulness = Faithfulness(model, tokenizer, explanations, ks=(AOPC_K,), batch_size=BATCH_SIZE)
                    found[name][method] = faithfulness.measure(explanations, method).values[_AOPC].tolist()
                    if method == METHODS[0]:
                        runs = [run.values[_AOPC] for run in faithfulness.random(range(3)).results]
                        found[name]["random"] = np.mean(runs, 0).tolist()
                        if name == "aopc":
                            found["full"] = faithfulness.full.max(-1).tolist()
            if method == "lime":
                found["words"] = [row.word for row in word_importance(explanations).top(3)]
        return found


@contextmanager
def second_softmax(model) -> Iterator[None]:
    """The model gives its probabilities as logits, so that whoever takes a softmax of them takes a second one.

    The published code's LSTM does so. A predicted class stays the same; its probability is then at most e / (e + C - 1) of
    C classes and at least 1 / (e + C - 1), so what can be lost of it is at most [`second_softmax_bound`].
    """

    def soften(module, inputs, output):
        output.logits = output.logits.float().softmax(-1)
        return output

    handle = model.register_forward_hook(soften)
    try:
        yield
    finally:
        handle.remove()


def second_softmax_bound(classes: int) -> float:
    """(e - 1) / (e + C - 1): the most that the probability of a class can fall under [`second_softmax`]."""
    return (math.e - 1) / (math.e + classes - 1)


def _correlation(table: GlobalImportance, least: int) -> dict[str, float | int | None]:
    """Correlations by their names; None where importance never changes, as that of a collapsed mask."""
    rows = [row for row in table if row.count >= least]
    if len(rows) < 3:
        return dict.fromkeys(FrequencyCorrelation._fields[:-1]) | {"n_words": len(rows)}
    found = frequency_correlation([row.count for row in rows], [row.importance for row in rows])
    values = {name: getattr(found, name).value for name in FrequencyCorrelation._fields[:-1]}
    return {name: None if np.isnan(value) else value for name, value in values.items()} | {"n_words": found.n_words}
