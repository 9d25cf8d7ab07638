"""Encoders of the reproductions: word encoders on GloVe vectors, and pretrained ones; which of a paper's they stand for."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hf_vat.data.offline import glove_folder, minilm_folder
from hf_vat.training import recipes


@dataclass(frozen=True)
class Encoder(ABC):
    """An encoder of a reproduction, with what a paper settles for the systems on it.

    Attributes:
        paper: name of the paper's encoder that it stands for.
        model: its part of `ModelArguments`, made when it is needed, as packages are looked up.
        training: its part of `VATTrainingArguments`.
    """

    paper: str
    model: Callable[[], dict]
    training: dict

    @property
    def pretrained(self) -> bool:
        return self.paper == "BERT"

    @abstractmethod
    def system(self, kind: str) -> tuple[dict, dict]:
        """What makes a system on the encoder: parts of `ModelArguments` and of `VATTrainingArguments`."""

    @abstractmethod
    def decisive(self, kind: str) -> dict:
        """What must agree before a trained system is used again."""


def word_encoder(name: str, **settings) -> dict[str, Any]:
    """The attributes of an encoder that learns from scratch, on GloVe vectors.

    Args:
        name: as in `ModelArguments`.
        settings: further ones of `ModelArguments`.
    """

    def model() -> dict:
        return {"word_encoder": name, "vectors": glove_folder(), **settings}

    return {"paper": name.upper(), "model": model, "training": recipes.WORDS}


# The attributes of pretrained encoders. MiniLM stands in for BERT-base, and needs no Hub.
BERT: dict[str, Any] = {
    "paper": "BERT",
    "model": lambda: {"model_name_or_path": "google-bert/bert-base-uncased"},
    "training": recipes.PRETRAINED,
}
MINILM = BERT | {"model": lambda: {"model_name_or_path": minilm_folder()}}


def under_recipe(name: str, recipe: str) -> str:
    """The name of an encoder, or of a page, under one of a paper's recipes; "paper" is what goes without saying."""
    return name if recipe == "paper" else f"{name}-{recipe}"
