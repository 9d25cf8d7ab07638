"""How concentrated a distribution is, and how far two are apart."""

import math

import torch


def normalized_entropy(p: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """Entropy of distributions over the last dimension, divided by the log of their number of entries.

    Args:
        p: [..., n], rows sum to 1 or are all 0.
        size: [...], entries of each that count: n, or fewer where a row is padded with zeros.

    Returns:
        [...], from 0 (one entry has all, or there are fewer than two) to 1 (uniform), up to rounding.
    """
    return _entropy(p) / size.clamp(min=2).to(p.dtype).log()


def jensen_shannon(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon divergence in nats of distributions over the last dimension, [..., n] to [...], from 0 to ln 2.

    Its gradient is finite, also where a weight is 0.
    """
    divergence = _entropy((p + q) / 2) - (_entropy(p) + _entropy(q)) / 2
    return divergence.clamp(0, math.log(2))


def _entropy(p: torch.Tensor) -> torch.Tensor:
    """In nats, [..., n] to [...], with 0 · log 0 = 0."""
    return -(p * p.clamp(min=torch.finfo(p.dtype).tiny).log()).sum(-1)
