"""Agreement between explanations of one text: two attention distributions, or the scores of two methods.

`p` and `q` are distributions over the same n words, `a` and `b` are signed scores of them, shape [n] each. A number
comes back for the text; the mean over texts is the number of a data set.
"""

import numpy as np
import torch

from hf_vat import distributions
from hf_vat.errors import InputError, import_extra

from .perturb import rank_words


def as_distribution(scores) -> np.ndarray:
    """|s| / sum |s|, shape [n]; uniform if all scores are 0.

    Raises:
        InputError: if there is no score, or one is not finite.
    """
    values = np.asarray(scores, dtype=float)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise InputError(f"Scores must be a flat list of finite numbers, one or more; got {scores!r}.")
    if not values.any():
        return np.full(values.shape, 1 / values.size)
    magnitudes = np.abs(values)
    magnitudes = magnitudes / magnitudes.max()  # so that the sum of huge scores is finite
    return magnitudes / magnitudes.sum()


def tvd(p, q) -> float:
    """Total variation distance, half the sum of |p - q|, in [0, 1]; 0 = the same distribution.

    Raises:
        InputError: if `p` or `q` is no distribution, or they differ in length.
    """
    p, q = _distributions(p, q)
    return float(np.abs(p - q).sum() / 2)


def jsd(p, q) -> float:
    """Jensen-Shannon divergence in nats, in [0, ln 2]; 0 = the same distribution.

    Jain and Wallace (2019), "Attention is not Explanation".

    Raises:
        InputError: if `p` or `q` is no distribution, or they differ in length.
    """
    p, q = _distributions(p, q)
    return distributions.jensen_shannon(torch.from_numpy(p), torch.from_numpy(q)).item()


def normalized_entropy(p) -> float:
    """Entropy divided by ln n, in [0, 1]; 0 = all weight on one word, also for a text of one word; 1 = uniform.

    Raises:
        InputError: if `p` is no distribution.
    """
    p = torch.from_numpy(_distribution(p, "p"))
    return distributions.normalized_entropy(p, torch.tensor(len(p))).clamp(0, 1).item()  # rounding may pass the limits


def max_weight(p) -> float:
    """The largest weight, in [1/n, 1]; 1 = all weight on one word.

    Raises:
        InputError: if `p` is no distribution.
    """
    return float(_distribution(p, "p").max())


def kendall_tau(a, b) -> float:
    """Kendall's tau-b of two lists of scores, in [-1, 1]; 1 = the same order.

    It is 0 if one of them gives no ranking ([`is_constant`]): what breaking its ties at random gives on average. So no
    text drops out of a mean; count these texts beside it.

    Raises:
        InputError: if the lists differ in length, or a score is NaN or not a number.
        MissingExtra: if scipy is not installed.
    """
    stats = import_extra("scipy.stats")
    _same_length(a, b, "a", "b")
    if is_constant(a) or is_constant(b):
        return 0.0
    return float(stats.kendalltau(a, b, variant="b").statistic)


def is_constant(scores) -> bool:
    """Whether no two scores differ (also for one word or none), so that they rank nothing.

    Raises:
        InputError: if a score is NaN or not a number.
    """
    ranking = rank_words(scores, range(len(scores)))
    return not ranking or bool(scores[ranking[0]] == scores[ranking[-1]])


def top_k_overlap(a, b, k: int) -> float:
    """Jaccard index of the top k words of two lists of scores, in [0, 1]; 1 = the same words.

    A text without words has 1. A text of fewer than k words too: all of them are top words.

    Raises:
        InputError: if the lists differ in length, a score is NaN or not a number, or k is less than 1.
    """
    _same_length(a, b, "a", "b")
    if k < 1:
        raise InputError(f"k is {k!r}; give a number of words from 1.")
    top_a, top_b = (set(rank_words(scores, range(len(scores)))[:k]) for scores in (a, b))
    return len(top_a & top_b) / len(top_a | top_b) if top_a else 1.0


def _distributions(p, q) -> tuple[np.ndarray, np.ndarray]:
    _same_length(p, q, "p", "q")
    return _distribution(p, "p"), _distribution(q, "q")


def _distribution(values, name: str) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    # half precision leaves sums up to about 1e-3 away from 1
    if values.ndim != 1 or not (values >= 0).all() or not abs(values.sum() - 1) < 2e-3:
        raise InputError(
            f"{name} is {values.tolist()}, which is no distribution over words; give numbers from 0 with sum 1, for "
            "example as_distribution(scores)."
        )
    return values / values.sum()


def _same_length(one, other, name: str, other_name: str) -> None:
    if len(one) != len(other):
        raise InputError(
            f"{name} has {len(one)} entries and {other_name} has {len(other)}; give one for each word of the same text."
        )
