"""Forward passes over many texts: sorted by length, in batches, without gradients or randomness."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import numpy as np
import torch
from tqdm.auto import tqdm


@contextmanager
def evaluation_mode(model: torch.nn.Module) -> Iterator[None]:
    """Put every module into eval mode, and back as it was afterwards."""
    was_training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in was_training:
            module.training = True


def forward_batches(
    model, tokenizer, input_ids: Sequence[Sequence[int]], batch_size: int, progress: str | None = None
) -> Iterator[tuple[list[int], object]]:
    """Run token id lists through a model in eval mode without gradients, longest first.

    Args:
        input_ids: token ids with special tokens, one list per text.
        batch_size: the largest batch that the model is given.
        progress: label of a progress bar; none is shown if it is not given.

    Yields:
        The positions in `input_ids` that a batch holds, and the model's output for them.
    """
    order = sorted(range(len(input_ids)), key=lambda position: -len(input_ids[position]))
    with (
        evaluation_mode(model),
        tqdm(total=len(order), desc=progress, unit="text", disable=progress is None) as bar,
    ):
        for start in range(0, len(order), batch_size):
            positions = order[start : start + batch_size]
            batch = tokenizer.pad(
                {"input_ids": [list(input_ids[position]) for position in positions]}, return_tensors="pt"
            )
            with torch.inference_mode():  # left before the yield: it would hold for the caller's code too
                output = model(**batch.to(model.device))
            yield positions, output
            bar.update(len(positions))


def predict_probabilities(
    model, tokenizer, input_ids: Sequence[Sequence[int]], batch_size: int = 32, progress: str | None = None
) -> np.ndarray:
    """Class probabilities (softmax of the logits) for token id lists; equal lists are run once.

    Returns:
        float64 array of shape [len(input_ids), classes], in the order of `input_ids`.
    """
    unique: dict[tuple[int, ...], int] = {}
    place = [unique.setdefault(tuple(ids), len(unique)) for ids in input_ids]
    probabilities = np.zeros((len(unique), model.config.num_labels))
    # Closed explicitly: an exception below would otherwise leave the generator, and with it eval mode, open.
    with closing(forward_batches(model, tokenizer, list(unique), batch_size, progress)) as batches:
        for positions, output in batches:
            probabilities[positions] = output.logits.cpu().double().softmax(-1).numpy()
    return probabilities[place]
