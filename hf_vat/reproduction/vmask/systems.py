"""The systems of the VMASK paper on its encoders: what they are made of, and how they are trained."""

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from datasets import DatasetDict

from ...data.offline import glove_folder, minilm_folder
from ...training import ModelArguments
from ..running import train_once

SYSTEMS = ("base", "l2", "L2X", "IBA", "VMASK")
_MASK_TYPES = {"base": "none", "l2": "none", "L2X": "l2x", "IBA": "iba", "VMASK": "vmask"}


@dataclass(frozen=True)
class Recipe:
    """How VMASK is trained where paper and published code differ or are silent.

    Attributes:
        layers, sample: see [`VMaskSettings`].
        beta_start, beta_end: weight of the entropy in the first epoch and in the last.
    """

    layers: int = 1
    sample: str = "soft"
    beta_start: float = 1.0  # the code's values
    beta_end: float = 0.01


@dataclass(frozen=True)
class Encoder:
    """An encoder of the reproduction, and the training of all systems on it.

    Attributes:
        paper: name of the paper's encoder that it stands for.
        model: its part of `ModelArguments`, made when it is needed, as packages are looked up.
        training: its part of `VATTrainingArguments`.
        start_epochs: epochs of fine-tuning without mask that come first and that all systems share (the paper: "we
            fine-tune BERT-base on the task first"); 0 for encoders that start with a mask.
        epochs: epochs of each system after that, with frozen embeddings.
        weight_decay: of the system l2.
        lime_samples, shapley_samples: subsets of a text for LIME, and orders of its words for sampled Shapley values.
        recipe: of VMASK.
    """

    paper: str
    model: Callable[[], dict]
    training: dict
    start_epochs: int
    epochs: int
    weight_decay: float
    lime_samples: int
    shapley_samples: int
    recipe: Recipe = Recipe()

    @property
    def pretrained(self) -> bool:
        return self.paper == "BERT"

    def decisive(self, kind: str) -> dict:
        """What must agree before a trained system, or the cost of all, is used again."""
        settled = asdict(self)
        del settled["model"]  # a function
        if kind not in ("VMASK", "cost"):
            del settled["recipe"]
        return settled

    def system(self, kind: str) -> dict:
        """What makes a system, as model arguments and training arguments."""
        model, training = {"mask_type": _MASK_TYPES[kind]}, {"num_train_epochs": self.epochs}
        if kind == "l2":
            training["weight_decay"] = self.weight_decay
        if kind == "VMASK":
            model |= {"mask_layers": self.recipe.layers, "mask_sample": self.recipe.sample}
            training |= {"mask_beta_start": self.recipe.beta_start, "mask_beta_end": self.recipe.beta_end}
        return {"model": model, "training": training}


def _glove() -> dict:
    return {"vectors": glove_folder(), "word_preset": "vmask", "word_dropout": 0.2}


_WORDS = {"learning_rate": 1e-3, "per_device_train_batch_size": 64, "lr_scheduler_type": "constant"}
_PRETRAINED = {
    **{"learning_rate": 5e-5, "per_device_train_batch_size": 32},
    **{"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 0.1},
}
ENCODERS = {
    "cnn": Encoder(
        "CNN", lambda: {"word_encoder": "cnn", "encoder_size": 300, **_glove()}, _WORDS, 0, 40, 0.1, 500, 10
    ),
    "lstm": Encoder(
        "LSTM", lambda: {"word_encoder": "lstm", "encoder_size": 100, **_glove()}, _WORDS, 0, 40, 0.1, 500, 10
    ),
    "minilm": Encoder("BERT", lambda: {"model_name_or_path": minilm_folder()}, _PRETRAINED, 3, 3, 0.1, 100, 5),
    "bert": Encoder(
        "BERT", lambda: {"model_name_or_path": "google-bert/bert-base-uncased"}, _PRETRAINED, 3, 3, 0.1, 100, 5
    ),
}


def train_system(
    kind: str,
    encoder: Encoder,
    data: DatasetDict,
    name: str,
    seed: int,
    folder: Path,
    decisive: dict,
    start: Path | None = None,
    bf16: bool = False,
) -> Path:
    """Train a system, unless it is trained already, and keep the model of the epoch that is best on validation data.

    Args:
        kind: a system, or "start": what systems on a pretrained encoder share.
        name: of the data set, for the run's settings.
        folder, decisive: see [`train_once`].
        start: folder of the model of "start"; None for encoders without.

    Returns:
        The folder, with the model and its tokenizer.

    Raises:
        InputError: if the folder holds another run, or the encoder cannot be loaded.
    """
    model = encoder.model() if start is None else {"model_name_or_path": str(start)}
    if kind == "start":
        made = {
            "model": {"pooling": "first", "bottleneck": "none"},
            "training": {"num_train_epochs": encoder.start_epochs},
        }
    else:
        made = encoder.system(kind)
    train_once(
        folder,
        decisive,
        ModelArguments(max_length=256, **made["model"], **model),
        name,
        data,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="accuracy",
        seed=seed,
        bf16=bf16,
        **made["training"],
        **encoder.training,
    )
    for checkpoint in folder.glob("checkpoint-*"):  # the best is what the folder itself holds
        shutil.rmtree(checkpoint)
    return folder
