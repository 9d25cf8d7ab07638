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
    entropy = -torch.special.xlogy(p, p).sum(-1)
    return entropy / size.clamp(min=2).to(entropy.dtype).log()


def jensen_shannon(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon divergence in nats of distributions over the last dimension, [..., n] to [...], from 0 to ln 2."""
    mixture = (p + q) / 2
    entropy = [-torch.special.xlogy(one, one).sum(-1) for one in (mixture, p, q)]
    return (entropy[0] - (entropy[1] + entropy[2]) / 2).clamp(0, math.log(2))
