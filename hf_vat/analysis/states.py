"""Token states and attention of many texts, so that another attention can be tried on them."""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from os import PathLike
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import torch
from tqdm.auto import tqdm

from hf_vat.errors import InputError, check_texts
from hf_vat.explanations.store import LineStore
from hf_vat.inference import (
    check_chooser,
    encode_texts,
    forward_batches,
    model_name,
    model_outputs,
    progress_bar,
    whole_number,
)
from hf_vat.models.words import EncodedText

Result = TypeVar("Result")


class AttentionBatch(NamedTuple):
    """Texts of a batch as a classifier's attention sees them, and what the classifier says.

    Attributes:
        positions: places of the texts in the list that was given.
        states: what is pooled of each token, [B, T, H].
        content: bool [B, T], true on tokens that are neither special nor padding.
        scores: of the attention before the softmax, float32 [B, T].
        attention: α, float32 [B, T].
        probabilities: of the classes, float32 [B, C].
    """

    positions: list[int]
    states: torch.Tensor
    content: torch.Tensor
    scores: torch.Tensor
    attention: torch.Tensor
    probabilities: torch.Tensor


def check_attention(model) -> None:
    """
    Raises:
        InputError: if the model has no attention that another could take the place of.
    """
    if not hasattr(model, "token_states"):
        raise InputError(
            f"{type(model).__name__} has no attention pooling; give a classifier of hf_vat that has, such as "
            'BertForVATClassification with pooling="attention".'
        )
    if model.attention is None:
        raise InputError(
            f'The model has pooling="{model.config.pooling}", and no attention that another could take the place of; train '
            'one with pooling="attention".'
        )


def check_finite(model, *values: torch.Tensor) -> None:
    """
    Raises:
        InputError: if a number that the model gives is none.
    """
    if not all(torch.isfinite(one).all() for one in values):
        raise InputError(f"{type(model).__name__} gives numbers that are not finite; its training has diverged.")


def positive_number(name: str, value, most: float = math.inf) -> float:
    """
    Raises:
        InputError: if it is no finite number above 0, or too large.
    """
    if isinstance(value, str) or not 0 < value <= most or value == math.inf:
        raise InputError(
            f"{name} is {value!r}; it must be a number of more than 0 and {'finite' if most == math.inf else f'at most {most:g}'}."
        )
    return float(value)


def attention_batches(
    model, tokenizer, texts: Sequence[EncodedText], batch_size: int
) -> Generator[AttentionBatch, None, None]:
    """Run texts through a model without gradients, longest first; see [`forward_batches`]. The model is in eval mode until
    the generator is closed.

    Raises:
        InputError: if the model's logits are not finite.
    """
    ids = [text.typed_ids for text in texts]
    with closing(forward_batches(model, tokenizer, ids, batch_size, model.token_states)) as batches:
        for positions, found in batches:
            with torch.inference_mode():
                logits = attended_logits(model, found.attention.unsqueeze(1), found.states).squeeze(1)
            probabilities = torch.from_numpy(model_outputs(model, SimpleNamespace(logits=logits)))
            # Cloned outside of inference mode, so that gradients may be asked of what is made of them.
            tensors = (found.states, found.content, found.scores, found.attention)
            states, content, scores, attention = (tensor.clone() for tensor in tensors)
            yield AttentionBatch(positions, states, content, scores, attention, probabilities.to(scores))


def attended_logits(model, attention: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
    """Logits if other attention takes the place of the model's: [B, K, T], [B, T, H] -> [B, K, C]."""
    return model.logits_of(attention.to(states.dtype) @ states)


def attended_probabilities(model, attention: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
    """Softmax of [`attended_logits`], float32 [B, K, C]."""
    return attended_logits(model, attention, states).float().softmax(-1)


def total_variation(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """½ Σ |p − q| over the last dimension, [..., C] -> [...], from 0 to 1."""
    return (p - q).abs().sum(-1) / 2


def measure_texts(
    kind: str,
    measure: Callable[[Sequence[EncodedText], int], list[Result]],
    fields: tuple[Callable[[Result], dict], Callable[[dict], Result]],
    settings: dict[str, Any],
    model,
    tokenizer,
    texts: Sequence[str | Sequence[str]],
    batch_size: int,
    max_length: int | None,
    progress: bool,
    save_to: str | PathLike | None,
    bar: tqdm | None,
    together: int,
) -> list[Result]:
    """Measure texts of a model with attention, and keep what is measured in a file from which the same call goes on.

    Args:
        kind: what a result is called, in the singular.
        measure: from texts and batch size to one result for each text.
        fields: a result as a dictionary that JSON takes, and back.
        settings: what the results depend on beside model and texts.
        together: how many texts are measured, and written, at a time.

    Raises:
        InputError: if an argument cannot be used, or the model has no attention.
    """
    texts = check_texts(texts)
    check_chooser(model)
    check_attention(model)
    batch_size = whole_number("batch_size", batch_size, 1)
    encoded = encode_texts(tokenizer, texts, model, max_length)
    windows = [slice(start, min(start + together, len(texts))) for start in range(0, len(texts), together)]
    store, results = None, []
    with ExitStack() as stack, progress_bar(kind, len(texts), progress, bar) as bar:
        if save_to is not None:
            run = {"model": model_name(model), "settings": settings}
            store = stack.enter_context(LineStore(save_to, kind, model, encoded, run, *fields))
            results += store.read([window.stop for window in windows])
            bar.update(len(results))
        try:
            for window in windows:
                if window.start < len(results):
                    continue
                made = measure(encoded[window], batch_size)
                if store is not None:
                    store.append(made)
                results += made
                bar.update(len(made))
        except KeyboardInterrupt as interrupt:
            if store is None:
                raise
            raise KeyboardInterrupt(
                f"Stopped: {len(results)} of {len(texts)} {kind}s are in {save_to}; the same call goes on."
            ) from interrupt
    return results
