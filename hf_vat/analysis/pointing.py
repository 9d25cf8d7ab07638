"""Evidence whose place is known, in any classifier's own language: sentences of two classes in one text."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hf_vat.errors import InputError
from hf_vat.explanations import Explanation, explain
from hf_vat.faithfulness import rank_words
from hf_vat.inference import check_chooser, encode_texts, whole_number


class Pointing(NamedTuple):
    """What a method said of a text that was put together from two.

    Attributes:
        hit: whether the top word is in the part of the predicted class.
        recall: share of its top k words that are.
        chance: share of all words that are: what a random ranking gets of either.
    """

    hit: bool
    recall: float
    chance: float


def pointing_game(
    model,
    tokenizer,
    explanations: Sequence[Explanation],
    method: str = "attention",
    k: int = 5,
    least: float = 0.9,
    batch_size: int = 32,
    seed: int = 0,
    max_length: int | None = None,
    progress: bool = False,
    **settings,
) -> list[Pointing]:
    """Put a text of one class beside a text of another and see whether an explanation of the predicted class points into the
    part that is of it: the hybrid documents of Poerner et al. (ACL 2018, §4.1).

    Evidence is planted so without another training. Parts are texts that the model classifies rightly and with certainty; each
    is used once, with a partner of another class, in random order. Left out are pairs that are longer than the model reads,
    and those whose prediction is of neither part.

    Args:
        explanations: of the texts that parts are taken from, by any method, with gold classes.
        method: the method to measure, of [`explain`].
        k: number of top words.
        least: the probability from which on a part is certain.
        batch_size, max_length, progress: as in [`explain`].
        seed: of the pairs, and of methods that draw.
        settings: of the method.

    Returns:
        One entry for each pair that was scored; none if texts of only one class are certain.

    Raises:
        InputError: if an explanation has no gold class, or an argument cannot be used.
    """
    k = whole_number("k", k, 1)
    check_chooser(model)
    if any(one.gold is None for one in explanations):
        raise InputError("An explanation has no gold class; give explain(..., labels=labels).")
    generator = np.random.default_rng(whole_number("seed", seed, 0))
    certain = [
        one for one in explanations if one.correct and any(one.seen) and one.probabilities[one.predicted[0]] >= least
    ]
    pairs = _pairs([certain[place] for place in generator.permutation(len(certain))], generator)
    texts = [f"{first.text} {second.text}" for first, second in pairs]
    fits = [not encoded.truncated for encoded in encode_texts(tokenizer, texts, model, max_length)] if texts else []
    pairs = [pair for pair, whole in zip(pairs, fits, strict=True) if whole]
    texts = [text for text, whole in zip(texts, fits, strict=True) if whole]
    made = explain(
        model, tokenizer, texts, method, batch_size=batch_size, seed=seed, max_length=max_length, progress=progress,
        **settings,
    )  # fmt: skip
    return [
        _points(explanation, pair, k)
        for explanation, pair in zip(made, pairs, strict=True)
        if explanation.prediction in {part.gold for part in pair}
    ]


def _pairs(texts: list[Explanation], generator: np.random.Generator) -> list[tuple[Explanation, Explanation]]:
    """Each text once, with the next one of another class."""
    pairs = []
    while texts:
        first = texts.pop()
        partner = next((place for place in reversed(range(len(texts))) if texts[place].gold != first.gold), None)
        if partner is not None:
            pair = (first, texts.pop(partner))
            pairs.append(pair if generator.random() < 0.5 else pair[::-1])
    return pairs


def _points(explanation: Explanation, pair: tuple[Explanation, Explanation], k: int) -> Pointing:
    boundary = len(pair[0].text)
    wanted = pair[0].gold == explanation.prediction
    right = [(start < boundary) == wanted for start, _ in explanation.spans]
    words = [place for place, seen in enumerate(explanation.seen) if seen]
    top = rank_words(explanation.scores, words)[:k]
    inside = [right[place] for place in top]
    return Pointing(inside[0], float(np.mean(inside)), float(np.mean([right[place] for place in words])))
