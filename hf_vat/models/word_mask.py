"""Masks on word embeddings: VMASK (Chen and Ji, EMNLP 2020) and its two competitors there, L2X and IBA."""

import math
from typing import NamedTuple

import torch
from torch import nn
from transformers.models.bert.modeling_bert import BertEmbeddings

from .attention import masked_softmax

MINIMUM_SCALE = 0.01  # of the noise of IBA, as in its reference code
START_LOGIT = 5.0  # IBA starts open: λ = sigmoid(5) = 0.993, as in its reference code


class MaskedWords(NamedTuple):
    """Word embeddings under a mask.

    Attributes:
        embeddings: [B, T, d] in the type of the embeddings given; unchanged outside `content`.
        probabilities: float32 [B, T] in [0, 1], how much of each word gets through; exactly 0 outside `content`, as
            special tokens and padding have no score.
        term: float32 [B], at least 0, in nats: what the mask keeps of a text, to be minimised with weight β; None where
            the method has no such term.
    """

    embeddings: torch.Tensor
    probabilities: torch.Tensor
    term: torch.Tensor | None


def bernoulli_kl(logits: torch.Tensor) -> torch.Tensor:
    """KL(Bernoulli(p) ‖ Bernoulli(½)) with p = sigmoid(logits), elementwise, in nats, from 0 (p = ½) to log 2 (p 0 or 1).

    It is log 2 − H(p). VMASK's objective rewards the entropy H (eq. 9 there), so minimising this divergence is the same;
    it moves p towards ½, not towards 0. Finite for every finite logit, in value and gradient.
    """
    softplus = nn.functional.softplus
    entropy = logits.sigmoid() * softplus(-logits) + (-logits).sigmoid() * softplus(logits)
    return (math.log(2) - entropy).clamp(min=0)


def concrete_top_k(logits: torch.Tensor, content: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
    """A relaxed choice of about k words of each text: the largest of k independent Gumbel-softmax draws over its words.

    [B, T], [B, T] -> float32 [B, T] in [0, 1], 0 outside `content`. Chen et al. (ICML 2018), section 3.3.
    """
    exponential = torch.empty(k, *logits.shape, device=logits.device).exponential_()
    gumbel = -exponential.clamp(min=torch.finfo(torch.float32).tiny).log()  # [k, B, T]
    return masked_softmax((logits + gumbel) / temperature, content).amax(0)


class WordMask(nn.Module):
    """What the three masks share: a score for each word from its embedding alone, without its context.

    Args:
        config: holds [`VATSettings`].
        size: width d of the embeddings.
    """

    def __init__(self, config, size: int):
        super().__init__()
        hidden = config.mask_hidden_size or size
        self.scorer = (
            nn.Linear(size, 1)
            if config.mask_layers == 1
            else nn.Sequential(nn.Linear(size, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        )
        self.temperature = config.mask_temperature
        self.reduction = config.mask_reduction

    def forward(self, words: torch.Tensor, content: torch.Tensor) -> MaskedWords:
        """Mask the words of texts.

        Args:
            words: embeddings [B, T, d].
            content: bool [B, T], true on the words of the text: neither special tokens nor padding.
        """
        raise NotImplementedError

    def _logits(self, words: torch.Tensor) -> torch.Tensor:
        """Scores [B, T] in float32, so that neither logarithms nor exponentials overflow in half precision."""
        return self.scorer(words).squeeze(-1).float()

    def _reduce(self, divergence: torch.Tensor, content: torch.Tensor) -> torch.Tensor:
        """One number for each text, [B, T] -> [B]: the mean or sum over its words, 0 for a text without any, or, as
        "position_mean", the mean over all positions of the batch, special tokens and padding included."""
        if self.reduction == "position_mean":
            return divergence.sum(1) / max(divergence.shape[1], 1)
        total = (divergence * content).sum(1)
        return total if self.reduction == "sum" else total / content.sum(1).clamp(min=1)


class VariationalMask(WordMask):
    """VMASK: each word is kept with probability p = sigmoid(score) and otherwise zero; in evaluation it is p times itself.

    In training the mask is one draw per word from the binary Gumbel-softmax distribution (appendix B of the paper): the
    difference of two Gumbel variables is logistic, so one score gives the same distribution as two. `soft` uses the
    draw in (0, 1); `hard_st` rounds it to 0 or 1 and passes the gradient of the soft one. The term is [`bernoulli_kl`].
    """

    def __init__(self, config, size: int):
        super().__init__(config, size)
        self.sample = config.mask_sample

    def forward(self, words: torch.Tensor, content: torch.Tensor) -> MaskedWords:
        logits = self._logits(words)
        probabilities = logits.sigmoid()
        mask = self._draw(logits) if self.training else probabilities
        term = self._reduce(bernoulli_kl(logits), content)
        return MaskedWords(_multiply(words, mask, content), probabilities * content, term)

    def _draw(self, logits: torch.Tensor) -> torch.Tensor:
        noise = torch.logit(torch.rand_like(logits), eps=1e-7)  # logistic; eps keeps it finite
        soft = ((logits + noise) / self.temperature).sigmoid()
        if self.sample == "soft":
            return soft
        return (soft > 0.5).float() + (soft - soft.detach())  # the bracket is exactly 0, with a gradient


class L2XMask(WordMask):
    """L2X as in appendix C of the VMASK paper: each word is multiplied with its weight, and there is no term.

    The paper leaves open how scores become weights. `softmax`: over the words of the text, sum 1. `sigmoid`: each word
    for itself. `concrete_topk`, as in Chen et al. (ICML 2018): in training the largest of k independent Gumbel-softmax
    draws over the words of the text; in evaluation 1 − (1 − softmax)^k, the probability that k draws contain the word,
    which ranks words as the scores do. (Chen et al. keep the k words with the highest scores there.)
    """

    def __init__(self, config, size: int):
        super().__init__(config, size)
        self.normalization = config.mask_normalization
        self.k = config.mask_k

    def forward(self, words: torch.Tensor, content: torch.Tensor) -> MaskedWords:
        logits = self._logits(words)
        if self.normalization == "sigmoid":
            mask = weights = logits.sigmoid() * content
        elif self.normalization == "softmax":
            mask = weights = masked_softmax(logits, content)
        else:
            weights = 1 - (1 - masked_softmax(logits, content)).pow(self.k)
            mask = concrete_top_k(logits, content, self.k, self.temperature) if self.training else weights
        return MaskedWords(_multiply(words, mask, content), weights, None)


class InformationBottleneckMask(WordMask):
    """IBA, the readout bottleneck of Schulz et al. (ICLR 2020): z = λx + (1 − λ)ε with λ = sigmoid(score + 5).

    ε ~ N(μ, σ²) has mean and variance of the embeddings, feature by feature. They are estimated from the words seen in
    training, word by word with equal weight, and saved with the model; σ is at least 0.01. In evaluation ε is μ. With
    x̂ = (x − μ)/σ a word's term is the mean over features of KL(N(λx̂, (1 − λ)²) ‖ N(0, 1)),
    −½ (1 + log (1 − λ)² − (λx̂)² − (1 − λ)²), the divergence of z from the noise; minimising it closes the mask. In
    the reference code scores are clamped to ±5, which stops their gradient; here they are free. Trained by several
    processes, the estimates are those of the first, as in batch normalisation. They are float32 whatever the type of the
    model: a step is a small share of the estimate, and bfloat16 would round it away.
    """

    mean: torch.Tensor
    variance: torch.Tensor
    count: torch.Tensor

    def __init__(self, config, size: int):
        super().__init__(config, size)
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float32))
        self.register_buffer("variance", torch.ones(size, dtype=torch.float32))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def _apply(self, fn, recurse=True):
        """As in torch, which `to` and `half` go through, but the estimates keep their type and every digit."""
        estimates = {"mean": self.mean, "variance": self.variance}
        super()._apply(fn, recurse)
        for name, tensor in estimates.items():
            if getattr(self, name).dtype != tensor.dtype:
                setattr(self, name, tensor.to(getattr(self, name).device))
        return self

    def forward(self, words: torch.Tensor, content: torch.Tensor) -> MaskedWords:
        if self.training:
            self._observe(words, content)
        mean, scale = self.mean, self.variance.sqrt().clamp(min=MINIMUM_SCALE)
        logits = self._logits(words) + START_LOGIT
        kept = logits.sigmoid()  # λ
        noise = mean + scale * torch.randn_like(words, dtype=torch.float32) if self.training else mean
        share = kept.unsqueeze(-1)
        masked = torch.where(content.unsqueeze(-1), (share * words + (1 - share) * noise).to(words.dtype), words)

        squares = ((words.float() - mean) / scale).square().mean(-1)  # [B, T]
        # The formula above with −log(1 − λ) = softplus(score), sorted so that small numbers are not lost in 1.
        divergence = (0.5 * kept * (kept * (squares + 1) - 2) + nn.functional.softplus(logits)).clamp(min=0)
        return MaskedWords(masked, kept * content, self._reduce(divergence, content))

    @torch.no_grad()
    def _observe(self, words: torch.Tensor, content: torch.Tensor) -> None:
        """Take the words of a batch into the estimates (Welford's algorithm for batches)."""
        weights = content.float().unsqueeze(-1)  # [B, T, 1]
        number = content.sum()
        mean = (words.float() * weights).sum((0, 1)) / number.clamp(min=1)
        variance = ((words.float() - mean) * weights).square().sum((0, 1)) / number.clamp(min=1)
        self.count += number
        share = number / self.count.clamp(min=1)
        shift = mean - self.mean
        variance = torch.lerp(self.variance, variance, share) + share * (1 - share) * shift.square()
        self.variance.copy_(variance)
        self.mean.copy_(self.mean + share * shift)


MASKS: dict[str, type[WordMask]] = {"vmask": VariationalMask, "l2x": L2XMask, "iba": InformationBottleneckMask}


class MaskableEmbeddings(BertEmbeddings):
    """
    BERT's embedding layer, whose output [B, T, H] may lie under a mask: BERT, which calls it, is given that output as
    `inputs_embeds`, and it comes back as it is. With `of_words=True` they are word embeddings, as in BERT itself.
    """

    def forward(self, input_ids=None, *, inputs_embeds=None, of_words: bool = False, **kwargs) -> torch.Tensor:  # type: ignore[override]  # as BERT calls it
        if input_ids is None and not of_words:
            return inputs_embeds
        return super().forward(input_ids, inputs_embeds=inputs_embeds, **kwargs)


def _multiply(words: torch.Tensor, mask: torch.Tensor, content: torch.Tensor) -> torch.Tensor:
    """Words [B, T, d] times mask [B, T] where there is content, and as they are elsewhere."""
    return words * mask.masked_fill(~content, 1.0).to(words.dtype).unsqueeze(-1)
