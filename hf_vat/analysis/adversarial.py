"""Is there another attention that gives the same prediction? A search for each text, by gradient descent."""

from collections.abc import Sequence
from contextlib import closing
from itertools import combinations
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from hf_vat.distributions import jensen_shannon
from hf_vat.explanations.analysis import text_generator
from hf_vat.inference import whole_number
from hf_vat.models.attention import masked_softmax
from hf_vat.models.words import EncodedText

from .states import (
    AttentionBatch,
    attended_probabilities,
    attention_batches,
    measure_texts,
    positive_number,
    total_variation,
)

# As in the authors' code, github.com/successar/AttentionExplanation
_SPREAD = 3.0  # standard deviation of the start, in log attention
_SLACK = 0.01  # how far the outputs may move before it costs
_PENALTY = 500.0
_TOGETHER = 256


class Adversarial(NamedTuple):
    """The attention found for a text that is furthest from the model's own and gives about the same prediction.

    Attributes:
        jsd: Jensen-Shannon divergence from the model's attention in nats, in [0, ln 2]; 0 if none was found, as for a text
            of one token.
        tvd: total variation distance of the class probabilities that it gives, in [0, ε]; 0 if none was found.
        attention: the weights found, one for each token of the text as the model reads it, 0 on special tokens; None if none
            was found.
        n_tokens: tokens that have attention: neither special nor padding.
    """

    jsd: float
    tvd: float
    attention: list[float] | None
    n_tokens: int


def adversarial_attention(
    model,
    tokenizer,
    texts: Sequence[str | Sequence[str]],
    n_adversaries: int = 5,
    epsilon: float = 0.05,
    n_steps: int = 500,
    learning_rate: float = 0.01,
    batch_size: int = 64,
    seed: int = 0,
    max_length: int | None = None,
    progress: bool = False,
    save_to: str | PathLike | None = None,
    bar: tqdm | None = None,
) -> list[Adversarial]:
    """Search for attention weights far from a text's own that leave the prediction where it is (Jain and Wallace, NAACL
    2019, §4.2.2).

    The states of the tokens, and the head, stay as they are. `n_adversaries` distributions α^(k), drawn at first, are moved
    by Adam to make Σ_k JSD(α^(k), α) plus the mean JSD between any two of them large, at a cost of
    500 · max(0, Σ_c |Δŷ_c| − 0.01) each. The result is the furthest one with ½ Σ_c |Δŷ_c| ≤ ε, of two classes the change of
    either's probability; what the paper calls ε-max JSD. The authors' code searches with dropout; here the model is in eval
    mode. A text's result depends neither on its neighbours nor on its place, up to rounding.

    Args:
        model: a classifier of hf_vat with attention pooling; it runs in eval mode and is left as it was.
        tokenizer: its tokenizer.
        texts: a list of texts; a text that is split into words already is a list of words.
        n_adversaries: K, how many distributions are searched together.
        epsilon: ε, the total variation distance that counts as the same prediction, in [0, 1].
        n_steps: steps of Adam.
        learning_rate: of these, in log attention.
        batch_size: texts that are searched together.
        seed: of the start. That of a text depends on the seed and the text alone.
        max_length: tokens to keep, special ones included; by default what tokenizer and model allow.
        progress: show a progress bar.
        save_to: a file that takes each result as a line of JSON; the same call finds it and goes on from there.
        bar: for jobs that this is a part of, their open progress bar, which is moved by one for each text.

    Returns:
        One result per text, in the order of `texts`. Their mean `jsd` is the number of a data set: near ln 2 = 0.693, the
        attention could have been almost any other.

    Raises:
        InputError: if an argument cannot be used, the model has no attention, or the file belongs to another call.
    """
    settings: dict[str, Any] = {
        "n_adversaries": whole_number("n_adversaries", n_adversaries, 1),
        "epsilon": positive_number("epsilon", epsilon, 1.0),
        "n_steps": whole_number("n_steps", n_steps, 1),
        "learning_rate": positive_number("learning_rate", learning_rate),
        "seed": whole_number("seed", seed, 0),
    }

    def measure(some: Sequence[EncodedText], batch_size: int) -> list[Adversarial]:
        return _search(model, tokenizer, some, batch_size, **settings)

    return measure_texts(
        "adversarial attention", measure, (Adversarial._asdict, lambda fields: Adversarial(**fields)), settings, model,
        tokenizer, texts, batch_size, max_length, progress, save_to, bar, _TOGETHER,
    )  # fmt: skip


@torch.inference_mode(False)
@torch.enable_grad()
def _search(model, tokenizer, texts, batch_size: int, n_adversaries: int, epsilon: float, seed: int, **steps):
    results: list[Adversarial] = [Adversarial(0.0, 0.0, None, 0)] * len(texts)
    with closing(attention_batches(model, tokenizer, texts, batch_size)) as batches:
        for batch in batches:
            counts = batch.content.sum(1).tolist()
            start = np.zeros((len(batch.positions), n_adversaries, batch.content.shape[1]), dtype=np.float32)
            for row, position in enumerate(batch.positions):
                noise = text_generator(seed, texts[position]).standard_normal((n_adversaries, counts[row]))
                start[row][:, batch.content[row].cpu().numpy()] = _SPREAD * noise
            found = _optimise(model, batch, torch.from_numpy(start).to(batch.scores.device), **steps)  # [B, K, T]
            with torch.inference_mode():
                own = batch.attention.unsqueeze(1)
                moved = total_variation(
                    attended_probabilities(model, found, batch.states), attended_probabilities(model, own, batch.states)
                )
                divergence = jensen_shannon(found, own).masked_fill(moved > epsilon, -1.0)
                best, which = divergence.max(1)
            for row, position in enumerate(batch.positions):
                if counts[row] > 1 and best[row] >= 0:
                    one = which[row]
                    weights = found[row, one, : len(texts[position].input_ids)].tolist()
                    results[position] = Adversarial(best[row].item(), moved[row, one].item(), weights, counts[row])
                else:
                    results[position] = results[position]._replace(n_tokens=counts[row])
    return results


def _optimise(model, batch: AttentionBatch, start: torch.Tensor, n_steps: int, learning_rate: float) -> torch.Tensor:
    """Adversaries [B, K, T] after all steps, from log attention [B, K, T]. The loss is a sum over texts, and Adam moves each
    number on its own, so no text sees another."""
    content, own = batch.content.unsqueeze(1), batch.attention.unsqueeze(1)
    target = attended_probabilities(model, own, batch.states).detach()  # [B, 1, C]
    pairs = torch.tensor([*combinations(range(start.shape[1]), 2)], device=start.device).reshape(-1, 2)
    log_attention = start.requires_grad_(True)
    optimizer = torch.optim.Adam([log_attention], lr=learning_rate, amsgrad=True)
    for _ in range(n_steps):
        attention = masked_softmax(log_attention, content)
        moved = 2 * total_variation(attended_probabilities(model, attention, batch.states), target)  # [B, K]
        gain = jensen_shannon(attention, own).sum()
        if len(pairs):
            gain = gain + jensen_shannon(attention[:, pairs[:, 0]], attention[:, pairs[:, 1]]).mean(1).sum()
        loss = _PENALTY * (moved - _SLACK).relu().sum() - gain
        (log_attention.grad,) = torch.autograd.grad(loss, log_attention)
        optimizer.step()
    return masked_softmax(log_attention.detach(), content)
