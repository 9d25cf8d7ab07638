"""Rank the words of a text, and take words out of what the model reads.

Perturbation works on the token ids that reach the model, after truncation: nothing is decoded or tokenized again, so no
word from beyond the maximum length slides in and no neighbouring pieces merge. Special tokens always stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hf_vat.errors import InputError
from hf_vat.inference import absent, check_tokenizer, mask_token_id, whole_number
from hf_vat.models.words import TYPE_BITS, EncodedText

OPERATORS = {
    "delete": "the tokens of absent words are deleted; an unknown token stands for a text without any word left",
    "mask": "each token of an absent word is replaced by the mask token (the unknown token, if there is none, and for word "
    "encoders, which never learn the mask token)",
    "pad": "the tokens of absent words are left out of the attention mask; the others keep their positions",
}


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


def check_ks(ks) -> tuple[int, ...]:
    """Numbers of top words as Python ints.

    Raises:
        InputError: if one is not a whole number from 1, or occurs twice.
    """
    numbers = np.asarray(ks)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or (numbers < 1).any() or len(set(ks)) < len(ks):
        raise InputError(f"ks is {ks!r}; give different whole numbers of words from 1, for example (1, 5).")
    return tuple(numbers.tolist())


def random_ranking(candidates: Sequence[int], seed: int, example: int) -> list[int]:
    """Shuffle candidate words uniformly, by a generator of this example's own.

    The ranking depends on `candidates`, `seed` and `example` (a number that identifies the text) alone, so neither
    batch size nor the order of evaluation matters, and the global random state is not touched.

    Raises:
        InputError: if the seed or the number is no whole number from 0.
    """
    seed, example = whole_number("seed", seed, 0), whole_number("example", example, 0)
    return np.random.default_rng((seed, example)).permutation(np.asarray(candidates, dtype=int)).tolist()


@dataclass(frozen=True)
class Operator:
    """How words are taken out of a text: a name of [`OPERATORS`], and the token id that it needs.

    DeYoung et al. (2020), "ERASER", delete; "pad" is how HEDGE (Chen et al. 2020) marks absent words.
    """

    name: str
    token_id: int

    @classmethod
    def of(cls, name: str, tokenizer, model=None) -> "Operator":
        """The operator for a tokenizer, and for the model that will read the ids.

        Raises:
            InputError: if there is no such operator, or the tokenizer has no token to stand for absent words.
        """
        check_tokenizer(tokenizer)
        if not isinstance(name, str) or name not in OPERATORS:
            raise InputError(f"There is no operator {name!r}; there are {', '.join(OPERATORS)}.")
        mask = tokenizer.mask_token_id if model is None else mask_token_id(model, tokenizer)
        needed = {
            "delete": [tokenizer.unk_token_id],
            "mask": [mask, tokenizer.unk_token_id],
            # RoBERTa counts positions by what is no padding token
            "pad": [tokenizer.unk_token_id, mask, tokenizer.pad_token_id],
        }[name]
        token_id = next((token for token in needed if token is not None), None)
        if token_id is None:
            raise InputError(f"operator={name!r} needs a token to stand for absent words; set tokenizer.unk_token.")
        return cls(name, token_id)

    def keep(self, encoded: EncodedText, kept) -> list[list[int]]:
        """Token ids of a text with some of its words, in the original order.

        A token is taken out if any of the words it covers is; tokens outside every word stay, such as those between a pair
        of texts.

        Args:
            kept: boolean array [S, n]: which of the text's n words stay, in each of S perturbations.

        Returns:
            S lists of token ids, with their types (see [`EncodedText.typed_ids`]).
        """
        kept = np.asarray(kept, dtype=bool)
        ids = np.array(encoded.typed_ids)
        covers = np.zeros((kept.shape[1], len(ids)), dtype=np.float32)  # [n, T]
        for token, words in enumerate(encoded.token_words):
            covers[list(words), token] = 1
        taken = (~kept).astype(np.float32) @ covers > 0  # [S, T]
        if self.name != "delete":
            stand_in = (ids >> TYPE_BITS << TYPE_BITS) + self.token_id  # of the type of what it stands for
            return np.where(taken, stand_in if self.name == "mask" else absent(stand_in), ids).tolist()
        rows = [ids[~row].tolist() for row in taken]
        in_word = covers.any(0)
        if in_word.any():
            empty = encoded.without_words(self.token_id)
            for row in np.flatnonzero(taken[:, in_word].all(1)):
                rows[row] = empty
        return rows
