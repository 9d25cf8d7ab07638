"""The systems of the VAT paper on its encoders: what they are made of, and how they are trained."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from datasets import DatasetDict
from transformers import TrainerCallback

from hf_vat.data.offline import glove_folder, minilm_folder
from hf_vat.reproduction.running import TRAINING, train_once
from hf_vat.training import ModelArguments, Recipe, VATTrainingArguments, describe_recipe, recipes

# Rows of the tables by the kind of training run that gives them. ATT is the run's iteration 0, as in the paper; ATT
# (matched) has as many updates of the encoder as VAT, and is not in the paper.
ROWS = {"base": ("base", "Random"), "ATT": ("ATT", "ATT (matched)"), "VAT": ("VAT",)}
KINDS = tuple(ROWS)
SYSTEMS = tuple(row for rows in ROWS.values() for row in rows if row != "Random")


@dataclass(frozen=True)
class Encoder:
    """An encoder of the reproduction.

    Attributes:
        paper: name of the paper's encoder that it stands for.
        model: its part of `ModelArguments`, made when it is needed, as packages are looked up.
        training: its part of `VATTrainingArguments`.
        base_pooling: pooling of the base system (VAT paper, section 4.2).
        recipe: of VAT, found on validation data with the LSTM and with MiniLM (docs/heads).
    """

    paper: str
    model: Callable[[], dict]
    training: dict
    base_pooling: str
    recipe: Recipe

    @property
    def pretrained(self) -> bool:
        return self.paper == "BERT"


_WORDS = (recipes.WORDS, "max", recipes.WORDS_RECIPE)
_PRETRAINED = (recipes.PRETRAINED, "first", recipes.PRETRAINED_RECIPE)
ENCODERS = {
    "lstm": Encoder("LSTM", lambda: {"word_encoder": "lstm", **recipes.LSTM, "vectors": glove_folder()}, *_WORDS),
    "minilm": Encoder("BERT", lambda: {"model_name_or_path": minilm_folder()}, *_PRETRAINED),
    "bert": Encoder("BERT", lambda: {"model_name_or_path": "google-bert/bert-base-uncased"}, *_PRETRAINED),
}


class _KeepIterations(TrainerCallback):
    """A checkpoint at the end of each iteration."""

    def __init__(self, ends):
        self.ends = set(ends)

    def on_epoch_end(self, args, state, control, **kwargs):
        control.should_save = round(state.epoch) in self.ends
        return control


def settings(kind: str, encoder: Encoder, recipe: Recipe) -> tuple[ModelArguments, dict]:
    """What makes a system of a kind, "base", "ATT" or "VAT": its model, and its part of `VATTrainingArguments`."""
    model = ModelArguments(
        pooling=encoder.base_pooling if kind == "base" else "attention",
        max_length=256,
        **recipe.model(kind == "VAT"),
        **encoder.model(),
    )
    return model, recipe.training(kind == "VAT") | encoder.training


def describe(kind: str, encoder: Encoder) -> str:
    """How a system of a kind is trained, as `hf-vat train` says it."""
    model, training = settings(kind, encoder, encoder.recipe)
    defaults = {field.name: field.default for field in fields(VATTrainingArguments)}
    return describe_recipe(vars(model) | defaults | TRAINING | training)


def train_system(
    kind: str,
    encoder: Encoder,
    recipe: Recipe,
    data: DatasetDict,
    name: str,
    seed: int,
    folder: Path,
    decisive: dict,
    bf16: bool = False,
) -> dict[int, Path]:
    """Train a system, unless it is trained already, and keep the model of every iteration.

    Args:
        kind: "base", "ATT" or "VAT".
        name: of the data set, for the run's settings.
        folder, decisive: see [`train_once`].

    Returns:
        Folder of the model and its tokenizer, by iteration, in order.

    Raises:
        InputError: if the folder holds another run, or the encoder cannot be loaded.
    """
    ends = recipe.iterations(kind == "VAT")
    model, training = settings(kind, encoder, recipe)
    train_once(
        folder,
        decisive,
        model,
        name,
        data,
        [_KeepIterations(ends.values())],
        predict_from="learner",
        save_strategy="no",
        eval_strategy="no",
        seed=seed,
        bf16=bf16,
        **training,
    )
    found = {}
    for checkpoint in folder.glob("checkpoint-*"):
        epoch = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))["epoch"]
        # An interrupted run has another checkpoint, where it stopped.
        found |= {number: checkpoint for number, end in ends.items() if abs(epoch - end) < 1e-6}
    return dict(sorted(found.items()))
