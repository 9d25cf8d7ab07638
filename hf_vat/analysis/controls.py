"""Does the model need its attention at all? All tokens alike."""

from collections.abc import Sequence
from contextlib import closing
from os import PathLike
from typing import NamedTuple

import torch
from tqdm.auto import tqdm

from hf_vat.models.words import EncodedText

from .states import attended_probabilities, attention_batches, measure_texts, total_variation

_TOGETHER = 1024


class Uniform(NamedTuple):
    """What became of a text's prediction when all its tokens had the same weight.

    Attributes:
        tvd: total variation distance between the class probabilities, in [0, 1].
        prediction: id of the class that the model predicts with its own attention.
        uniform_prediction: id of the class that it predicts with the uniform one.
        n_tokens: tokens that have attention: neither special nor padding.
    """

    tvd: float
    prediction: int
    uniform_prediction: int
    n_tokens: int


def uniform_attention(
    model,
    tokenizer,
    texts: Sequence[str | Sequence[str]],
    batch_size: int = 32,
    max_length: int | None = None,
    progress: bool = False,
    save_to: str | PathLike | None = None,
    bar: tqdm | None = None,
) -> list[Uniform]:
    """Give all tokens of a text the same weight, and see how far the prediction moves.

    The states of the tokens, and the head, stay as they are. Where the class stays the same for nearly all texts, the weights
    did not decide it. Wiegreffe and Pinter (EMNLP 2019, §3.2) ask the same of a model that is trained so, which is
    `pooling="mean"` here.

    Args:
        model: a classifier of hf_vat with attention pooling; it runs in eval mode and is left as it was.
        tokenizer: its tokenizer.
        texts: a list of texts; a text that is split into words already is a list of words.
        batch_size: texts that are run together.
        max_length: tokens to keep, special ones included; by default what tokenizer and model allow.
        progress: show a progress bar.
        save_to: a file that takes each result as a line of JSON; the same call finds it and goes on from there.
        bar: for jobs that this is a part of, their open progress bar, which is moved by one for each text.

    Returns:
        One result per text, in the order of `texts`.

    Raises:
        InputError: if an argument cannot be used, the model has no attention, or the file belongs to another call.
    """

    def measure(some: Sequence[EncodedText], batch_size: int) -> list[Uniform]:
        return _measure(model, tokenizer, some, batch_size)

    return measure_texts(
        "uniform attention", measure, (Uniform._asdict, lambda fields: Uniform(**fields)), {}, model, tokenizer, texts,
        batch_size, max_length, progress, save_to, bar, _TOGETHER,
    )  # fmt: skip


@torch.inference_mode()
def _measure(model, tokenizer, texts: Sequence[EncodedText], batch_size: int) -> list[Uniform]:
    results = [Uniform(0.0, 0, 0, 0)] * len(texts)
    with closing(attention_batches(model, tokenizer, texts, batch_size)) as batches:
        for batch in batches:
            counts = batch.content.sum(1, keepdim=True)
            uniform = batch.content / counts.clamp(min=1)
            both = torch.stack([batch.attention, uniform], 1)  # [B, 2, T]
            own, other = attended_probabilities(model, both, batch.states).unbind(1)
            rows = zip(
                total_variation(own, other).tolist(), own.argmax(1).tolist(), other.argmax(1).tolist(),
                counts.squeeze(1).tolist(), strict=True,
            )  # fmt: skip
            for position, row in zip(batch.positions, rows, strict=True):
                results[position] = Uniform(*row)
    return results
