"""Rank the words of a text, and delete or keep words in what the model reads.

Perturbation works on the token ids that reach the model, after truncation: nothing is decoded or tokenized again, so no
word from beyond the maximum length slides in and no neighbouring pieces merge. Special tokens always stay.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from hf_vat.errors import InputError
from hf_vat.models.words import EncodedText


def rank_words(scores: Sequence[float], candidates: Sequence[int]) -> list[int]:
    """Order candidate words from the most to the least important.

    Args:
        scores: one number for each word of the text, signed; a larger one ranks first. Infinities are allowed.
        candidates: positions of the words that take part.

    Returns:
        The candidates by descending score; equal scores by ascending position.

    Raises:
        InputError: if a score is NaN or not a number.
    """
    values = np.asarray(scores)
    if values.ndim != 1 or values.dtype.kind not in "iufb":
        raise InputError(f"Scores must be a flat list of numbers, one for each word; got {scores!r}.")
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        raise InputError(f"The score of word {missing[0]} is NaN, which has no rank; give a finite score or -inf.")
    return sorted((int(position) for position in candidates), key=lambda position: (-float(values[position]), position))


def random_ranking(candidates: Sequence[int], seed: int, example: int) -> list[int]:
    """Shuffle candidate words uniformly, by a generator of this example's own.

    The ranking depends on `candidates`, `seed` and `example` (a number that identifies the text) alone, so neither
    batch size nor the order of evaluation matters, and the global random state is not touched.
    """
    return np.random.default_rng((seed, example)).permutation(np.asarray(candidates, dtype=int)).tolist()


def delete_words(encoded: EncodedText, positions: Iterable[int], unknown_id: int) -> list[int]:
    """Token ids of a text without some of its words, in the original order.

    A token goes if any of the words it covers is deleted; special tokens stay. If no token of a word is left, one
    unknown token stands where the words were, so that the model has something to read.

    Args:
        positions: positions in `encoded.words`.
        unknown_id: the tokenizer's `unk_token_id`.
    """
    deleted = set(positions)
    left = [
        index for index, words in enumerate(encoded.token_words) if encoded.special[index] or deleted.isdisjoint(words)
    ]
    first = next((index for index, words in enumerate(encoded.token_words) if words), None)
    if first is not None and not any(encoded.token_words[index] for index in left):
        special_ids = [token for token, special in zip(encoded.input_ids, encoded.special, strict=True) if special]
        special_ids.insert(sum(encoded.special[:first]), unknown_id)
        return special_ids
    return [encoded.input_ids[index] for index in left]


def keep_words(encoded: EncodedText, positions: Iterable[int], unknown_id: int) -> list[int]:
    """Token ids of a text without all other words: [`delete_words`] of the complement of `positions`."""
    return delete_words(encoded, set(range(len(encoded.words))).difference(positions), unknown_id)
