"""Forward passes over many texts: sorted by length, in batches, without gradients or randomness."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import numpy as np
import torch
from tqdm.auto import tqdm

from .errors import InputError

ABSENT = -1  # stands in a list of token ids for a position that the model does not attend to


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
    model, tokenizer, input_ids: Sequence[Sequence[int]], batch_size: int
) -> Iterator[tuple[list[int], object]]:
    """Run token id lists through a model in eval mode without gradients, longest first.

    The batches depend on the lists alone, not on their order, so results are bit-equal in any order.

    Args:
        input_ids: token ids with special tokens, one list per text; [`ABSENT`] at positions to be left out of the
            attention mask.
        batch_size: the largest batch that the model is given.

    Yields:
        The positions in `input_ids` that a batch holds, and the model's output for them.
    """
    order = sorted(range(len(input_ids)), key=lambda position: (-len(input_ids[position]), tuple(input_ids[position])))
    types = _special_token_types(tokenizer)
    with evaluation_mode(model):
        for start in range(0, len(order), batch_size):
            positions = order[start : start + batch_size]
            batch = model_inputs(tokenizer, [input_ids[position] for position in positions], types)
            with torch.inference_mode():  # left before the yield: it would hold for the caller's code too
                output = model(**{name: tensor.to(model.device) for name, tensor in batch.items()})
            yield positions, output


def model_inputs(tokenizer, rows: Sequence[Sequence[int]], types: dict[int, int] | None = None) -> dict:
    """Tensors [B, T] for token id lists, padded to the longest on the tokenizer's side.

    Args:
        types: see `_special_token_types`; worked out here if not given.

    Raises:
        InputError: if something has to be padded and the tokenizer has no padding token.
    """
    width = max(map(len, rows))
    ids = np.full((len(rows), width), ABSENT)
    for row, values in zip(ids, rows, strict=True):
        row[slice(width - len(values), None) if tokenizer.padding_side == "left" else slice(len(values))] = values
    attended = ids != ABSENT
    padding_id = tokenizer.pad_token_id
    if padding_id is None and not attended.all():
        raise InputError(
            f"{type(tokenizer).__name__} has no padding token; set tokenizer.pad_token and model.config.pad_token_id."
        )
    batch = {"input_ids": np.where(attended, ids, padding_id or 0), "attention_mask": attended.astype(int)}
    types = _special_token_types(tokenizer) if types is None else types
    if types:
        token_types = np.where(attended, 0, tokenizer.pad_token_type_id)
        for token, token_type in types.items():
            token_types[ids == token] = token_type
        batch["token_type_ids"] = token_types
    return {name: torch.from_numpy(values) for name, values in batch.items()}


def predict_probabilities(
    model, tokenizer, input_ids: Sequence[Sequence[int]], batch_size: int = 32, bar: tqdm | None = None
) -> np.ndarray:
    """Class probabilities (softmax of the logits) for token id lists; equal lists are run once.

    Args:
        bar: a progress bar, which is moved by one for each of `input_ids`.

    Returns:
        float64 array of shape [len(input_ids), classes], in the order of `input_ids`.

    Raises:
        InputError: if the model does not give one logit for each of its classes.
    """
    unique: dict[tuple[int, ...], int] = {}
    place = [unique.setdefault(tuple(ids), len(unique)) for ids in input_ids]
    repeats = Counter(place)
    probabilities = np.zeros((len(unique), model.config.num_labels))
    # Closed explicitly: an exception below would otherwise leave the generator, and with it eval mode, open.
    with closing(forward_batches(model, tokenizer, list(unique), batch_size)) as batches:
        for positions, output in batches:
            probabilities[positions] = class_probabilities(model, output)
            if bar is not None:
                bar.update(sum(repeats[position] for position in positions))
    return probabilities[place]


def class_probabilities(model, output) -> np.ndarray:
    """Softmax of a model's logits, float64 [B, C].

    Raises:
        InputError: if the logits do not have the shape [B, C], with one column for each class of the model.
    """
    shape, classes = tuple(output.logits.shape), model.config.num_labels
    if len(shape) != 2 or shape[1] != classes:
        raise InputError(
            f"{type(model).__name__} gives logits of shape {shape}; they must be [batch, {classes}], one column for "
            "each class in config.num_labels."
        )
    return output.logits.cpu().double().softmax(-1).numpy()


def progress_bar(label: str | None, total: int) -> tqdm:
    """A progress bar with the time left, hidden without a label."""
    return tqdm(total=total, desc=label, unit="input", disable=label is None)


def _special_token_types(tokenizer) -> dict[int, int]:
    """The token type of each special token that a single text gets, if any differs from 0 (XLNet: its last token)."""
    if "token_type_ids" not in tokenizer.model_input_names:
        return {}
    empty = tokenizer("")
    types = dict(zip(empty["input_ids"], empty.get("token_type_ids", ()), strict=False))
    return types if any(types.values()) else {}
