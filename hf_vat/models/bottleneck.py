"""Variational information bottleneck on the text vector."""

from typing import Any

import torch
from torch import nn

MINIMUM_SCALE = 1e-6


def gaussian_kl(
    mean: torch.Tensor, scale: torch.Tensor, prior_mean: torch.Tensor, prior_scale: torch.Tensor
) -> torch.Tensor:
    """KL(N(mean, scale²) ‖ N(prior_mean, prior_scale²)) of each dimension, in nats, at least 0.

    log(σ_p/σ) + (σ² + (μ − μ_p)²) / (2σ_p²) − ½; with a standard prior ½(μ² + σ² − 1 − log σ²).
    """
    ratio = scale / prior_scale
    return 0.5 * (ratio.square() + ((mean - prior_mean) / prior_scale).square() - 1) - ratio.log()


class GaussianBottleneck(nn.Module):
    """z = μ(R) + σ(R) ⊙ ε with ε ~ N(0, I) in training and z = μ(R) in evaluation.

    σ = softplus(·) + 1e-6, computed in float32 as is the divergence, so that neither overflows in half precision.
    """

    def __init__(self, hidden_size: int, latent_size: int, reduction: str, learned_prior: bool):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(hidden_size, hidden_size), nn.Tanh(), nn.Linear(hidden_size, latent_size))
        self.scale = nn.Sequential(nn.Linear(hidden_size, hidden_size), nn.Tanh(), nn.Linear(hidden_size, latent_size))
        self.reduction = reduction
        # The prior's scale goes through exp, so that zeros in both parameters are the standard Gaussian.
        self.prior_mean = nn.Parameter(torch.zeros(latent_size)) if learned_prior else None
        self.prior_log_scale = nn.Parameter(torch.zeros(latent_size)) if learned_prior else None

    def forward(self, text: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Sample z and measure how much it keeps.

        Args:
            text: R, [B, H].

        Returns:
            z [B, Z] in the type of `text`, and the divergence from the prior [B] in float32 nats, summed or averaged
            over latent dimensions.
        """
        mean = self.mean(text).float()
        scale = nn.functional.softplus(self.scale(text).float()) + MINIMUM_SCALE
        if self.prior_mean is None or self.prior_log_scale is None:
            prior_mean, prior_scale = torch.zeros_like(mean), torch.ones_like(scale)
        else:
            prior_mean, prior_scale = self.prior_mean.float(), self.prior_log_scale.float().exp()
        divergence = gaussian_kl(mean, scale, prior_mean, prior_scale)
        divergence = divergence.sum(-1) if self.reduction == "sum" else divergence.mean(-1)
        z = mean + scale * torch.randn_like(scale) if self.training else mean
        return z.to(text.dtype), divergence

    def pulled_back(self, text: torch.Tensor, gradients: torch.Tensor) -> torch.Tensor:
        """Gradients at R, [..., C, H], from those at μ(R), [..., C, Z]."""
        first: Any = self.mean[0]
        last: Any = self.mean[2]
        slope = 1 - torch.tanh(first(text)).square()
        return (gradients @ last.weight) * slope.unsqueeze(-2) @ first.weight
