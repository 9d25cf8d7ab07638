"""Encoders of the reproductions: word encoders on GloVe vectors, and pretrained ones; which of a paper's they stand for."""

from collections.abc import Callable
from dataclasses import dataclass

from hf_vat.data.offline import glove_folder, minilm_folder
from hf_vat.training import recipes


@dataclass(frozen=True)
class Encoder:
    """An encoder of a reproduction; a paper adds what it settles for all systems on it.

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


def word_encoder(name: str, **settings) -> Encoder:
    """An encoder that learns from scratch, on GloVe vectors.

    Args:
        name: as in `ModelArguments`.
        settings: further ones of `ModelArguments`.
    """
    return Encoder(name.upper(), lambda: {"word_encoder": name, "vectors": glove_folder(), **settings}, recipes.WORDS)


BERT = Encoder("BERT", lambda: {"model_name_or_path": "google-bert/bert-base-uncased"}, recipes.PRETRAINED)
MINILM = Encoder("BERT", lambda: {"model_name_or_path": minilm_folder()}, recipes.PRETRAINED)  # where there is no Hub


def under_recipe(name: str, recipe: str) -> str:
    """The name of an encoder, or of a page, under one of a paper's recipes; "paper" is what goes without saying."""
    return name if recipe == "paper" else f"{name}-{recipe}"
