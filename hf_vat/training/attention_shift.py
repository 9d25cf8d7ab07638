"""How concentrated the attention is, and how far a phase has moved it."""

import math

import torch


def normalised_entropy(attention: torch.Tensor) -> torch.Tensor:
    """Entropy of each text's attention divided by the log of the number of tokens that have any.

    Args:
        attention: [B, T], rows sum to 1 or are all 0.

    Returns:
        [B], from 0 (one token has all) to 1 (uniform); 0 for texts of fewer than two tokens.
    """
    count = (attention > 0).sum(-1)
    entropy = -torch.special.xlogy(attention, attention).sum(-1)
    return entropy / count.clamp(min=2).to(entropy.dtype).log()


def jensen_shannon(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon divergence in nats of distributions over the last dimension, from 0 to ln 2."""
    middle = (first + second) / 2
    entropy = [-torch.special.xlogy(p, p).sum(-1) for p in (middle, first, second)]
    return (entropy[0] - (entropy[1] + entropy[2]) / 2).clamp(0, math.log(2))
