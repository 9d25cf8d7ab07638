"""What the `evaluate` modules of perturbed texts share: means over texts of ragged class probabilities.

`full` has the class probabilities of each full text, and `perturbed` a list of them for each text: one entry for every
number of words k, or for every share of words. It is empty for a text without words, which is skipped and counted. The
modules call it `perturbed` where these words were deleted, and `kept` where they are all that is left.
"""

import numpy as np

from hf_vat.errors import InputError
from hf_vat.metrics import base


def at_ks(name: str, score, full, perturbed, references, ks, column: str) -> dict:
    """Mean over texts for each number of words, or over these too, and what the result says about it.

    Args:
        name: of the values in the result.
        score: function of `full` [N, C], `perturbed` [N, K, C] and `labels` [N].
        ks: numbers of words of the entries; 1, 2, 3, ... if None. A text with fewer entries keeps its last one.
        column: name of the input `perturbed`, for errors.
    """
    sizes = [len(entries) for entries in perturbed]
    numbers = np.asarray(range(1, max(sizes) + 1) if ks is None else ks)
    ks = numbers.tolist()
    if (
        numbers.ndim != 1
        or max(sizes) > len(ks)
        or any(not isinstance(k, int) or k < 1 for k in ks)
        or sorted(set(ks)) != ks
    ):
        raise InputError(
            f"ks is {ks}, and a text has {max(sizes)} entries in {column}; give one number of words from 1 for each "
            "entry, in ascending order."
        )
    rows, counts = base.select(perturbed, "no words")
    filled = [[*entries, *entries[-1:] * (len(ks) - len(entries))] for entries in perturbed]
    values = _score(lambda *arrays: score(*arrays, references), full, filled, len(ks))
    clamped = {f"n_clamped@{k}": sum(sizes[row] <= place for row in rows) for place, k in enumerate(ks)}
    means = values[rows].mean(0)
    result = dict(zip([f"{name}@{k}" for k in ks], means.tolist(), strict=True)) if means.ndim else {name: float(means)}
    return {**result, "scale": "probability", "ks": ks, **counts, **clamped}


def at_shares(score, full, perturbed, shares, column: str) -> dict:
    """Mean over texts for each share and over the shares, and what the result says about it.

    Args:
        score: function of `full` [N, C] and `perturbed` [N, K, C], by whose name the values go.
        shares: shares of words, in (0, 1], of the entries.
        column: name of the input `perturbed`, for errors.
    """
    numbers = np.asarray(shares)
    shares = numbers.tolist()
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf" or not all(0 < share <= 1 for share in shares):
        raise InputError(f"shares is {shares}; give shares of the words above 0 and at most 1, such as [0.2, 0.5].")
    if len(set(shares)) < len(shares):
        raise InputError(f"shares is {shares}; give different ones.")
    for row, entries in enumerate(perturbed):
        if entries and len(entries) != len(shares):
            raise InputError(
                f"{column}[{row}] has {len(entries)} entries for {len(shares)} shares, {shares}; give class "
                "probabilities for each share, or none if the text has no words."
            )
    rows, counts = base.select(perturbed, "no words")
    means, name = _score(score, full, perturbed, len(shares))[rows].mean(0), score.__name__
    result = dict(zip([f"{name}@{share:g}" for share in shares], means.tolist(), strict=True))
    return {**result, f"aopc_{name}": float(means.mean()), "scale": "probability", "shares": shares, **counts}


def _score(score, full, perturbed, entries: int) -> np.ndarray:
    # a text without words stands in with its full prediction, so that errors name the user's rows
    filled = [row or [whole] * entries for whole, row in zip(full, perturbed, strict=True)]
    classes = {len(row) for whole, rows in zip(full, filled, strict=True) for row in [whole, *rows]}
    if len(classes) > 1:
        raise InputError(f"Numbers of classes differ: {sorted(classes)}; give one probability for each class.")
    return score(np.array(full, dtype=float), np.array(filled, dtype=float))
