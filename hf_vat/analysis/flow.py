"""What gradient descent does to attention and polarity scores: the terms A to F of Sun & Lu (ACL 2020, §4 and appendix).

    flow = gradient_flow(model, tokenizer, texts, labels)
    flow.attention["E"] + flow.attention["D"]

Time τ is that of gradient flow, dθ/dτ = −∂ℓ/∂θ, with the mean cross-entropy ℓ over the texts that are given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from hf_vat.errors import InputError, check_texts
from hf_vat.inference import check_chooser, class_ids, encode_texts, model_inputs
from hf_vat.models.attention import AdditiveAttention
from hf_vat.models.classes import class_names


@dataclass(frozen=True)
class GradientFlow:
    """How scores of each vocabulary entry e change along the gradient flow: float64, V entries, K polarity scores.

    For two classes K is 1, the log-odds s_e; for C classes K is C, the logits. Sums over texts t and their tokens j are over
    c_tj = α_j times what the loss wants of s^(t), for two classes y β α_j with y = ±1 and β = σ(−y s^(t)). "At e" are those
    where the token is e.

    Attributes:
        polarity: parts of ds_e/dτ by name, [V, K] each:

            - A: e is moved by the attention that it gets: its own part of VᵀW / λ, times Σ at e of c (s_e − s^(t));
            - B: e is moved by its own polarity: ‖W‖² Σ at e of c;
            - C: W is moved by all tokens: Σ c h_eᵀh_j;
            - G: the affine layer M is moved; 0 for other encoders.
        attention: parts of da_e/dτ by name, [V] each:

            - D: e is moved by its own polarity: VᵀW / λ, times Σ at e of c;
            - E: e is moved by the attention that it gets: ‖V‖² / λ², times Σ at e of c (s_e − s^(t));
            - F: V is moved by all tokens: Σ c (s_j − s^(t)) h_eᵀh_j / λ²;
            - H: the affine layer, or the matrix of additive attention, is moved; 0 for DP.
        embeddings: e, [V, d].
        motion: de/dτ, [V, d].
    """

    polarity: dict[str, np.ndarray]
    attention: dict[str, np.ndarray]
    embeddings: np.ndarray
    motion: np.ndarray

    @property
    def total_polarity(self) -> np.ndarray:
        """ds_e/dτ, [V, K]."""
        return np.sum(list(self.polarity.values()), 0)

    @property
    def total_attention(self) -> np.ndarray:
        """da_e/dτ, [V]."""
        return np.sum(list(self.attention.values()), 0)

    def products(self, entries: Sequence[int]) -> np.ndarray:
        """dΩ_ik/dτ of the products Ω_ik = e_iᵀe_k of n vocabulary entries, [n, n]: for DP with a large λ those of one polarity
        grow, and those of opposite ones fall."""
        motion, embeddings = self.motion[list(entries)], self.embeddings[list(entries)]
        half = motion @ embeddings.T
        return half + half.T


def gradient_flow(
    model,
    tokenizer,
    texts: Sequence[str | Sequence[str]],
    labels: Sequence[int | str],
    max_length: int | None = None,
) -> GradientFlow:
    """Closed forms of ds_e/dτ and da_e/dτ of a model's vocabulary, without dropout, in float64.

    Args:
        model: an [`EncoderForVATClassification`](hf_vat.EncoderForVATClassification) with `polarity_head=True` and no other
            term in its loss: DP (word encoder "embedding", `attention_type="scaled_dot"`), DP-A ("affine", "scaled_dot") or
            AD ("embedding", "additive").
        tokenizer: its tokenizer.
        texts: of one step, or of the whole training set; a text without a token counts, and moves nothing.
        labels: the class of each text, by id or name.
        max_length: tokens to keep; by default what tokenizer and model allow.

    Raises:
        InputError: if an argument cannot be used, or the model is another one.
    """
    check_model(model)
    texts = check_texts(texts)
    if not texts or len(labels) != len(texts):
        raise InputError(
            f"There are {len(texts)} texts and {len(labels)} labels; give one label for each, and at least one."
        )
    check_chooser(model)
    names = class_names(model.config)
    if any(label is None for label in labels):
        raise InputError("Some labels are None; give the class of each text.")
    of_texts = torch.tensor(class_ids("labels", labels, names))
    rows = [text.typed_ids for text in encode_texts(tokenizer, texts, model, max_length)]
    batch = model_inputs(tokenizer, rows)
    content = model.content_tokens(batch["attention_mask"], input_ids=batch["input_ids"])
    return _flow(model, batch["input_ids"], content, of_texts)


def check_model(model) -> None:
    """Refuse models whose gradient flow has other terms.

    Raises:
        InputError: naming the setting.
    """
    config = getattr(model, "config", None)
    encoder = getattr(config, "encoder", None)
    kind = getattr(encoder, "encoder_type", None)
    if kind not in ("embedding", "affine"):
        raise InputError(
            f'{type(model).__name__} has no word encoder "embedding" or "affine", for which alone there are closed forms.'
        )
    assert config is not None and encoder is not None
    wanted = {
        "pooling": "attention",
        "bottleneck": "none",
        "head_layers": 1,
        "polarity_head": True,
        "word_objective": "none",
        "vw_penalty": "none",
        "mask_type": "none",
        "freeze_embeddings": False,
        "attention_type": "scaled_dot" if kind == "affine" else config.attention_type,
    }
    for name, value in wanted.items():
        if getattr(config, name) != value:
            raise InputError(
                f"The model has {name}={getattr(config, name)!r}; the closed forms of the gradient flow are those of models "
                f"with {name}={value!r}."
            )
    if encoder.freeze_embeddings:
        raise InputError("The model's word encoder has freeze_embeddings=True, so its embeddings do not move.")


def _flow(model, input_ids: torch.Tensor, content: torch.Tensor, labels: torch.Tensor) -> GradientFlow:
    def weight(module) -> torch.Tensor:
        return module.weight.detach().double().cpu()

    scale, of_affine = model.attention.scale, getattr(model.base_model.encoder, "weight", None)
    e = weight(model.get_input_embeddings())  # [V, d]
    w = weight(model.learner_head.out_proj).T  # [H, K]
    v = weight(model.attention.score)[0]  # [H], or [d_a] of additive attention
    h = e if of_affine is None else e @ weight(model.base_model.encoder).T  # [V, H]
    w_of_e = w if of_affine is None else weight(model.base_model.encoder).T @ w  # W' = MᵀW, [d, K]
    if isinstance(model.attention, AdditiveAttention):
        matrix = weight(model.attention.projection)  # M_a [d_a, d]
        keys = (e @ matrix.T).tanh()  # [V, d_a]
        slopes = (1 - keys.square()) * v  # D_e v
        v_of_e = slopes @ matrix  # u_e = M_aᵀ D_e v, [V, d]
    else:
        keys = h
        v_of_e = (v if of_affine is None else v @ weight(model.base_model.encoder)).expand_as(e)  # V' = MᵀV
    a, s = keys @ v / scale, h @ w  # [V], [V, K]

    # One row for each token: padded to the longest, long texts would not fit in memory.
    texts, text, token = len(labels), content.nonzero()[:, 0], input_ids[content]  # [N] tokens
    peaks = a.new_full((texts,), -torch.inf).scatter_reduce(0, text, a[token], "amax")
    mass = (a[token] - peaks[text]).exp()
    alpha = (mass / mass.new_zeros(texts).index_add(0, text, mass)[text]).unsqueeze(-1)  # [N, 1]
    s_texts = s.new_zeros(texts, s.shape[1]).index_add(0, text, alpha * s[token])  # [texts, K]
    if w.shape[1] == 1:  # y β
        sign = 2.0 * labels.unsqueeze(-1) - 1
        wants = sign * torch.sigmoid(-sign * s_texts)
    else:  # onehot(y) − p
        wants = torch.nn.functional.one_hot(labels, w.shape[1]) - s_texts.softmax(-1)
    c = alpha * wants[text] / texts  # [N, K]
    pull = (c * (s[token] - s_texts[text])).sum(-1)  # [N], summed over classes
    # π(e) [V, K] and ρ(e) [V], divided by the number of texts.
    pi, rho = torch.zeros_like(s).index_add(0, token, c), torch.zeros_like(a).index_add(0, token, pull)
    v_w = v_of_e @ w_of_e  # [V, K]; VᵀW of DP for all entries
    polarity = {
        "A": v_w * rho.unsqueeze(-1) / scale,
        "B": pi @ (w_of_e.T @ w_of_e),
        "C": h @ (h.T @ pi),
        "G": torch.zeros_like(s),
    }
    attention = {
        "D": (v_w * pi).sum(-1) / scale,
        "E": v_of_e.square().sum(-1) * rho / scale**2,
        "F": keys @ (keys.T @ rho) / scale**2,
        "H": torch.zeros_like(a),
    }
    if of_affine is not None:  # dM/dτ = Σ (W c + V pull / λ) e_jᵀ
        moved = (w @ (pi.T @ e) + torch.outer(v, rho @ e) / scale) @ e.T  # dM/dτ e, [H, V]
        polarity["G"] = moved.T @ w
        attention["H"] = moved.T @ v / scale
    elif isinstance(model.attention, AdditiveAttention):  # dM_a/dτ = Σ pull D_j v e_jᵀ / λ
        moved = ((slopes * rho.unsqueeze(-1)).T @ e) @ e.T / scale
        attention["H"] = (slopes * moved.T).sum(-1) / scale
    motion = rho.unsqueeze(-1) * v_of_e / scale + pi @ w_of_e.T
    return GradientFlow(
        {name: values.numpy() for name, values in polarity.items()},
        {name: values.numpy() for name, values in attention.items()},
        e.numpy(),
        motion.numpy(),
    )
