"""Pooling of token vectors into one text vector."""

import torch
from torch import nn


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension within a mask, in float32.

    Args:
        scores: [B, T].
        mask: [B, T], true where a position takes part.

    Returns:
        float32 [B, T], exactly 0 outside the mask; a row without any position is all 0, not NaN.
    """
    scores = scores.float().masked_fill(~mask, torch.finfo(torch.float32).min)
    return scores.softmax(-1) * mask


class AdditiveAttention(nn.Module):
    """Scores of the VAT paper: a_t = vᵀ tanh(W x_t) / λ, without biases (§3.2 there, with λ = 1); with λ the model AD of
    Sun & Lu (ACL 2020)."""

    def __init__(self, hidden_size: int, attention_size: int, scale: float = 1.0):
        super().__init__()
        self.projection = nn.Linear(hidden_size, attention_size, bias=False)
        self.score = nn.Linear(attention_size, 1, bias=False)
        self.scale = scale

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Scores a before the softmax: [B, T, H] -> [B, T]."""
        return self.score(torch.tanh(self.projection(hidden))).squeeze(-1) / self.scale

    def direction(self) -> torch.Tensor:
        """The direction [H] along which scores grow where tanh is linear: Wᵀ v."""
        return self.projection.weight.T @ self.score.weight[0]


class ScaledDotAttention(nn.Module):
    """Scores of Sun & Lu (ACL 2020, §3): a_t = x_tᵀ V / λ."""

    def __init__(self, hidden_size: int, scale: float = 1.0):
        super().__init__()
        self.score = nn.Linear(hidden_size, 1, bias=False)
        self.scale = scale

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Scores a before the softmax: [B, T, H] -> [B, T]."""
        return self.score(hidden).squeeze(-1) / self.scale

    def direction(self) -> torch.Tensor:
        """The direction [H] along which scores grow: V."""
        return self.score.weight[0]


def weighted_sum(weights: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """Σ_t α_t x_t: float32 [B, T], [B, T, H] -> [B, H] in the type of `hidden`."""
    return torch.bmm(weights.to(hidden.dtype).unsqueeze(1), hidden).squeeze(1)


def max_pool(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Maximum over the positions in `mask`: [B, T, H] -> [B, H]; a row without any position gives 0."""
    if not hidden.shape[1]:  # no text of the batch has a token
        return hidden.new_zeros(hidden.shape[0], hidden.shape[2])
    pooled = hidden.masked_fill(~mask.unsqueeze(-1), torch.finfo(hidden.dtype).min).amax(1)
    return pooled * mask.any(1, keepdim=True)


def mean_pool(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean over the positions in `mask`: [B, T, H] -> [B, H]; a row without any position gives 0."""
    count = mask.sum(1, keepdim=True).clamp(min=1)
    return (hidden * mask.unsqueeze(-1)).sum(1) / count
