"""Cells of Sun and Lu: a system is trained, and its attention and polarity scores measured."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import DatasetDict

from hf_vat.analysis import AttentionScores, attention_scores, type_separation
from hf_vat.analysis.scores import FIELDS
from hf_vat.faithfulness.rationales import roc_auc
from hf_vat.pretrained import load_classifier
from hf_vat.reproduction.cells import DATASETS, Cell, CellSettings
from hf_vat.reproduction.measuring import predicted_right
from hf_vat.training import ModelArguments
from hf_vat.writing import write_text

from .data import SYNTHETIC, load_data
from .systems import ENCODERS, PATIENCE, SYSTEMS

_BATCH_SIZE = 256
# As in the paper, but for the rate, there 0.015, and the epochs, there up to 500: their product is the same. The words that a
# gradient goes to are few, so the larger steps follow the same path.
_SYNTHETIC = {
    **{"optim": "sgd", "optim_args": None, "learning_rate": 0.25, "compressor_learning_rate": 0.25},
    **{"per_device_train_batch_size": 200, "num_train_epochs": 30},
}
# Types of two classes that attention scores are compared of: by name, which should have the higher ones, if the name is right.
COMPARED = {"positive, neutral": ("positive", "neutral"), "positive, negative": ("positive", "negative")}


class AttentionScoresCell(Cell):
    """One training run of a model with one λ.

    Its result holds "validation", its accuracy, and "correct", for each test text whether it is classified correctly; "epochs"
    trained and "seconds_per_epoch"; "length" and "vocabulary", mean words of a training text and entries of the tokenizer; "product", VᵀW, or of more than
    two classes the sum of its magnitudes; "norms",
    ‖V‖² and ‖W‖²; and of the words of the training texts, by type: "attention_auc", "polarity_auc" and "sign_agreement", see
    [`TypeSeparation`], "types", its means with the mean attention weight in test texts, and, if classes are called positive
    and negative, "auc", the probability that a word of a type has a higher attention score than one of another.
    """

    datasets = (*DATASETS, *SYNTHETIC)
    encoders = ENCODERS
    kinds = tuple(SYSTEMS)

    @property
    def needs(self) -> None:
        return None

    def load(self, settings: CellSettings) -> DatasetDict:
        return load_data(self.dataset, settings)

    def decisive(self, settings: CellSettings) -> dict:
        found = super().decisive(settings)
        return found | {"training": found["training"] | _SYNTHETIC} if self.dataset in SYNTHETIC else found

    def arguments(self, settings: CellSettings) -> tuple[ModelArguments, dict]:
        model, training = super().arguments(settings)
        if self.dataset not in SYNTHETIC:
            return model, training
        model.word_dropout = 0.0
        return model, training | _SYNTHETIC

    def trained(self, settings: CellSettings, data: DatasetDict):
        """Model and tokenizer of the epoch that is best on validation data; of synthetic texts, where many are, of the last.

        Raises:
            InputError: if the folder holds another run.
        """
        size: dict[str, Any] = {"per_device_eval_batch_size": _BATCH_SIZE}
        if self.dataset not in SYNTHETIC:
            return self.best(settings, data, early_stopping_patience=PATIENCE, **size)
        return load_classifier(str(self.train(settings, data, eval_strategy="no", save_strategy="no", **size)))

    def types(self, settings: CellSettings) -> dict[str, dict[str, list[float]]]:
        """Numbers of the words of each type, of a finished cell: by the field of [`AttentionScores.by_type`]."""
        return json.loads(self._types(settings).read_text(encoding="utf-8"))

    def _types(self, settings: CellSettings) -> Path:
        return self.folder(settings) / "types.json"

    def measure(self, settings: CellSettings, data: DatasetDict) -> dict:
        model, tokenizer = self.trained(settings, data)
        texts, labels = data["train"]["text"][:], data["train"]["label"][:]
        table = attention_scores(
            model, tokenizer, texts, labels, attention_texts=data["test"]["text"][:], batch_size=_BATCH_SIZE
        )
        by_field = {field: table.by_type(field) for field in FIELDS}
        write_text(self._types(settings), json.dumps(by_field))
        trained = json.loads((self.folder(settings) / "model" / "all_results.json").read_text(encoding="utf-8"))
        products = model.attention_polarity_product().tolist()
        return {
            "validation": float(predicted_right(model, tokenizer, data["validation"]).mean()),
            "correct": predicted_right(model, tokenizer, data["test"]).astype(int).tolist(),
            "epochs": trained["epoch"],
            "seconds_per_epoch": trained["train_runtime"] / trained["epoch"],
            "length": _mean([len(words) for words in tokenizer(texts)["input_ids"]]),
            "vocabulary": len(tokenizer),
            "product": products[0] if len(products) == 1 else sum(map(abs, products)),
            "norms": {
                "V": model.attention.direction().square().sum().item(),
                "W": model.learner_head.directions().square().sum().item(),
            },
            **_separation(table, by_field),
        }


def _separation(table: AttentionScores, by_field: Mapping[str, Mapping[str, list[float]]]) -> dict:
    """What [`AttentionScoresCell`] keeps of the table; None for what has no word of a type that it needs."""
    found = type_separation(table)
    weights = by_field["attention"]
    means = {name: {**one._asdict(), "attention": _mean(weights.get(name, []))} for name, one in found.means.items()}
    scores = by_field["attention_score"]
    compared = {
        name: _known(roc_auc([[*scores[high], *scores[low]]], [[1] * len(scores[high]) + [0] * len(scores[low])])[0])
        for name, (high, low) in COMPARED.items()
        if high in scores and low in scores
    }
    return {
        **{name: _known(getattr(found, name)) for name in ("attention_auc", "polarity_auc", "sign_agreement")},
        "types": {name: {key: _known(value) for key, value in one.items()} for name, one in means.items()},
        "auc": compared,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _known(value: float) -> float | None:
    """The number for JSON, which has no NaN."""
    return None if math.isnan(value) else float(value)
