"""What each token adds to each logit, by its attention: signed, in closed form, without a graph through the encoder.

The logits of a head depend on the attention through the text vector R = Σ_t α_t h_t alone, so ∂logit_c/∂α_t = h_t · g_c with
g_c = ∂logit_c/∂R. A token's attribution is α_t (h_t − m) · g_c: what its state, as far as it differs from a center m, adds.
"""

from collections.abc import Callable

import torch

CENTERS = ("mean", "attended", "none")


def token_attribution(
    states: torch.Tensor, attention: torch.Tensor, content: torch.Tensor, gradients: torch.Tensor, center: str
) -> torch.Tensor:
    """α_t (h_t − m) · g_c, of each token and logit.

    With `center="none"`, m = 0, it is attention times its gradient (Serrano and Smith, ACL 2019; Chrysostomou and Aletras,
    ACL 2021), and of a linear head attention times polarity (Sun and Lu, ACL 2020), which adds up to the logit but for the bias.
    With `"attended"`, m = R, it is the gradient of the logit at the attention's score before the softmax. With `"mean"`, m is the
    mean of the text's states.

    Args:
        states: h, [B, T, H].
        attention: α, [B, T].
        content: bool [B, T], true on tokens that are neither special nor padding.
        gradients: g, [B, C, H].
        center: one of `CENTERS`.

    Returns:
        [B, T, C], exactly 0 outside `content`; float32, or float64 if the states are.
    """
    precise = torch.promote_types(states.dtype, torch.float32)
    states, attention, gradients = (tensor.to(precise) for tensor in (states, attention, gradients))
    if center == "attended":
        states = states - torch.bmm(attention.unsqueeze(1), states)
    elif center == "mean":
        count = content.sum(1).clamp(min=1)[:, None, None]
        states = states - (states * content.unsqueeze(-1)).sum(1, keepdim=True) / count
    return attention.unsqueeze(-1) * torch.bmm(states, gradients.transpose(1, 2))


def of_log_odds(attribution: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """What tokens add to the log-odds log(p_c / (1 − p_c)) of each class, where a text has one of several.

    Logits of classes mean something beside each other alone. The gradient of the log-odds is that of log p_c over 1 − p_c, so both
    rank tokens alike, but that of log p_c is nearly 0 where the model is sure. For two classes it is the logit minus the other one.

    Args:
        attribution: of the logits, [B, T, C].
        logits: [B, C].

    Returns:
        [B, T, C]
    """
    classes = logits.shape[-1]
    itself = torch.eye(classes, dtype=torch.bool, device=logits.device)
    others = (
        logits.to(attribution.dtype).unsqueeze(1).expand(-1, classes, -1).masked_fill(itself, -torch.inf).softmax(-1)
    )
    return attribution - torch.bmm(attribution, others.transpose(1, 2))


def gradients_of(function: Callable[[torch.Tensor], torch.Tensor], at: torch.Tensor) -> torch.Tensor | None:
    """Gradients of each of a function's results [..., C] at vectors [..., H], [..., C, H]; None where it has none."""
    with torch.inference_mode(False), torch.enable_grad():
        at = at.detach().clone().requires_grad_()
        results = function(at)
        if not results.requires_grad:
            return None
        sums = [one.sum() for one in results.unbind(-1)]
        rows = [torch.autograd.grad(one, at, retain_graph=True, allow_unused=True)[0] for one in sums]
    return None if any(row is None for row in rows) else torch.stack(rows, -2)


__all__ = ["CENTERS", "gradients_of", "of_log_odds", "token_attribution"]
