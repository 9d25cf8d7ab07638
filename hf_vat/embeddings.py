"""What a model's layer of word embeddings gives for the tokens of a text, exchanged for something else."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

import torch

from .errors import InputError

OTHERS = "the methods occlusion, lime and shapley work with any model."


@contextmanager
def embedded_as(model, input_ids: torch.Tensor, embeddings: torch.Tensor) -> Iterator[None]:
    """Calls of the model in which its layer of word embeddings gives these [B, T, d] for these ids [B, T].

    Raises:
        InputError: if the model did not look up these ids there, once or more, and no others.
    """
    layer, thread, calls = embedding_layer(model), get_ident(), []

    def exchange(module, args, *kwargs_and_output):
        output = kwargs_and_output[-1]
        # Another thread's call of the same model; it may come before torch has noted that this hook takes keywords.
        if get_ident() != thread:
            return output
        kwargs = kwargs_and_output[0]
        ids, given = (*args, *kwargs.values())[0], output
        turned = ids.dim() == 2 and len(ids) != len(input_ids)  # XLNet's are [T, B]
        if turned:
            ids, given = ids.T, output.transpose(0, 1)
        calls.append(ids.dim() == 2 and torch.equal(ids[:, : input_ids.shape[1]], input_ids))
        if not calls[-1]:
            return output
        # Longformer pads to a multiple of its window.
        changed = torch.cat([embeddings, given[:, input_ids.shape[1] :]], dim=1)
        return changed.transpose(0, 1) if turned else changed

    hook = layer.register_forward_hook(exchange, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()
    if not calls or not all(calls):
        raise InputError(
            f"{type(model).__name__} does not look up the text's tokens, and no others, in its layer of word embeddings, so "
            f"there is no gradient to take; {OTHERS}"
        )


def embedding_layer(model) -> torch.nn.Module:
    """A model's layer of word embeddings.

    Raises:
        InputError: if it has none.
    """
    try:
        layer = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        layer = None
    if not isinstance(layer, torch.nn.Module):
        raise InputError(f"{type(model).__name__} has no word embeddings to take a gradient at; {OTHERS}")
    return layer
