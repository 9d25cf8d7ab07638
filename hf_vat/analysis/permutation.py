"""Does it matter which word has which weight? Attention in another order."""

import math
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from os import PathLike
from typing import NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from hf_vat.explanations.analysis import text_generator
from hf_vat.inference import whole_number
from hf_vat.models.words import EncodedText

from .states import attended_probabilities, attention_batches, measure_texts, total_variation

_BINS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the largest weight
_TOGETHER = 1024


class Permutation(NamedTuple):
    """What became of a text's prediction when its attention was shuffled.

    Attributes:
        tvd: median over the permutations of the total variation distance between the class probabilities, in [0, 1]; NaN
            for a text of fewer than two tokens, where there is nothing to shuffle.
        max_attention: the largest weight of the text, in [1/n, 1]; 0 for a text without a token.
        prediction: id of the class that the model predicts with its own attention.
        n_tokens: tokens that have attention: neither special nor padding.
    """

    tvd: float
    max_attention: float
    prediction: int
    n_tokens: int


class PermutationBin(NamedTuple):
    """Texts of one predicted class whose largest weight lies from `low` up to `high`, which is included in the last bin.

    Attributes:
        n_texts: how many there are.
        median_tvd: the median of their `tvd`.
    """

    low: float
    high: float
    prediction: int
    n_texts: int
    median_tvd: float


def permute_attention(
    model,
    tokenizer,
    texts: Sequence[str | Sequence[str]],
    n_permutations: int = 100,
    batch_size: int = 32,
    seed: int = 0,
    max_length: int | None = None,
    progress: bool = False,
    save_to: str | PathLike | None = None,
    bar: tqdm | None = None,
) -> list[Permutation]:
    """Give the attention weights of each text to its tokens in random orders, and see how far the prediction moves.

    The states of the tokens, and the head, stay as they are. Of an attention that explains, much moves where one token has
    most of the weight (Jain and Wallace, NAACL 2019, §4.2.1). Where little moves, the states of all tokens say the same, and
    which of them has the weight means nothing.

    Args:
        model: a classifier of hf_vat with attention pooling; it runs in eval mode and is left as it was.
        tokenizer: its tokenizer.
        texts: a list of texts; a text that is split into words already is a list of words.
        n_permutations: how many random orders.
        batch_size: texts that are run together.
        seed: of the orders. Those of a text depend on the seed and the text alone.
        max_length: tokens to keep, special ones included; by default what tokenizer and model allow.
        progress: show a progress bar.
        save_to: a file that takes each result as a line of JSON; the same call finds it and goes on from there.
        bar: for jobs that this is a part of, their open progress bar, which is moved by one for each text.

    Returns:
        One result per text, in the order of `texts`.

    Raises:
        InputError: if an argument cannot be used, the model has no attention, or the file belongs to another call.
    """
    settings = {
        "n_permutations": whole_number("n_permutations", n_permutations, 1),
        "seed": whole_number("seed", seed, 0),
    }

    def measure(some: Sequence[EncodedText], batch_size: int) -> list[Permutation]:
        return _permute(model, tokenizer, some, batch_size, **settings)

    return measure_texts(
        "permutation", measure, (_to_fields, _from_fields), settings, model, tokenizer, texts, batch_size, max_length,
        progress, save_to, bar, _TOGETHER,
    )  # fmt: skip


def permutation_table(results: Sequence[Permutation]) -> list[PermutationBin]:
    """Median change by predicted class and largest weight, in bins from 0 over 0.25, 0.5 and 0.75 to 1.

    Texts without a `tvd`, and bins without a text, are left out.
    """
    table = []
    for prediction in sorted({result.prediction for result in results}):
        for low, high in pairwise(_BINS):
            last = high == _BINS[-1]
            changes = [
                result.tvd
                for result in results
                if result.prediction == prediction
                and low <= result.max_attention
                and (result.max_attention < high or last)
                and not math.isnan(result.tvd)
            ]
            if changes:
                table.append(PermutationBin(low, high, prediction, len(changes), float(np.median(changes))))
    return table


@torch.inference_mode()
def _permute(model, tokenizer, texts, batch_size: int, n_permutations: int, seed: int) -> list[Permutation]:
    results: list[Permutation] = [Permutation(math.nan, 0.0, 0, 0)] * len(texts)
    with closing(attention_batches(model, tokenizer, texts, batch_size)) as batches:
        for batch in batches:
            order = torch.arange(batch.content.shape[1]).repeat(len(batch.positions), n_permutations, 1)  # [B, K, T]
            for row, position in enumerate(batch.positions):
                tokens = batch.content[row].nonzero().squeeze(1).cpu()
                keys = text_generator(seed, texts[position]).random((n_permutations, len(tokens)))
                order[row, :, tokens] = tokens[torch.from_numpy(keys.argsort(1))]
            own = batch.attention.unsqueeze(1)  # [B, 1, T]
            shuffled = own.expand(order.shape).gather(2, order.to(own.device))
            changes = total_variation(
                attended_probabilities(model, shuffled, batch.states), attended_probabilities(model, own, batch.states)
            )  # [B, K]
            medians = np.median(changes.cpu().numpy(), 1).tolist()
            counts, largest = batch.content.sum(1).tolist(), batch.attention.amax(1).tolist()
            predictions = batch.probabilities.argmax(1).tolist()
            for row, position in enumerate(batch.positions):
                change = medians[row] if counts[row] > 1 else math.nan
                results[position] = Permutation(change, largest[row], predictions[row], counts[row])
    return results


def _to_fields(result: Permutation) -> dict:
    return result._asdict() | {"tvd": None if math.isnan(result.tvd) else result.tvd}


def _from_fields(fields: dict) -> Permutation:
    result = Permutation(**fields)
    return result._replace(tvd=math.nan) if result.tvd is None else result
