"""What an explanation method is given, and what it gives back."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from hf_vat.models.problems import Problem
from hf_vat.models.words import EncodedText


@dataclass
class Analysis:
    """Texts with a model's predictions for them.

    Attributes:
        model, tokenizer: what `explain` was given.
        problem: what the model is asked.
        outputs: probabilities of classes or labels, or scores, per text; see [`Problem.outputs`].
        targets: the class, label or score to explain, per text.
        token_values: by name the fields of the model's output that the method reads, per text a value, or a list of
            them, for each of its `input_ids`.
        settings: the settings of the method.
        bar: progress, to be moved by one for each model input.
    """

    model: Any
    tokenizer: Any
    problem: Problem
    texts: list[EncodedText]
    outputs: list[list[float]]
    targets: list[int]
    token_values: dict[str, list[list]]
    settings: dict
    batch_size: int
    seed: int
    bar: tqdm


@dataclass
class WordScores:
    """The scores of a text's words, 0 for those not seen, and what else the method has to say about the text."""

    scores: list[float]
    details: dict[str, float] = field(default_factory=dict)


def text_generator(seed: int, text: EncodedText) -> np.random.Generator:
    """A random generator of a text's own: neither its neighbours nor its place in the list matter."""
    both = text.text if text.text_pair is None else f"{text.text}\0{text.text_pair}"
    digest = sha256(both.encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "little")])
