"""Forward passes over many texts: sorted by length, in batches, without gradients or randomness.

A list of token ids may hold positions that the model does not attend to: there stands -1 - id, for the id that the model
is given (see [`absent`]). Above the lowest 32 bits of an id stands the token's type (see [`EncodedText.typed_ids`]).
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from math import inf
from typing import Any, TypeVar

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from .errors import InputError, Range
from .models import WordEncoderConfig
from .models.classes import class_id
from .models.problems import Problem
from .models.reading import named_outputs, sees_padding
from .models.words import TYPE_BITS, EncodedText, encode_words, maximum_length

Ids = TypeVar("Ids", int, np.ndarray)


def model_name(model) -> str:
    """The name in results: the Hub id or folder, else the class."""
    return model.config.name_or_path or type(model).__name__


def mask_token_id(model, tokenizer) -> int | None:
    """The id of the mask token, None where there is none that means anything to the model: word encoders of hf_vat that learn
    from classification alone, where no text has it, leave its embedding as it was drawn."""
    encoder = getattr(model.config, "encoder", None)
    words = getattr(encoder, "model_type", None) == WordEncoderConfig.model_type  # whichever module the class came from
    never_seen = words and getattr(model.config, "word_objective", "none") != "mlm"
    return None if never_seen else tokenizer.mask_token_id


def absent(token_id: Ids) -> Ids:
    """What stands in a list of token ids for a token that is outside the attention mask; its own inverse."""
    return -1 - token_id


def check_classifier(model) -> Problem:
    """What a model is asked about a text: for one of several classes, for any number of labels, or for scores.

    Raises:
        InputError: if it is no such model, or wrapped in another module.
    """
    config: Any = getattr(model, "config", None)
    if not hasattr(config, "num_labels") or not hasattr(model, "device"):
        raise InputError(
            f"The model is a {type(model).__name__}, which has no config or device of its own; give a classifier of transformers "
            "itself, such as model.module of a wrapped one."
        )
    try:
        return Problem.of(config)
    except ValueError as error:
        raise InputError(f"The model's configuration cannot be used: {error}") from None


def check_chooser(model) -> None:
    """
    Raises:
        InputError: if it is no classifier, or none that chooses one of several classes for a text.
    """
    problem = check_classifier(model)
    if not problem.is_single_label:
        raise InputError(
            f"The model's problem_type is {problem.kind!r}; this analysis compares the probabilities of classes, of which each text "
            "has one. Give a model of that kind."
        )


def check_tokenizer(tokenizer) -> None:
    """
    Raises:
        InputError: if it is none of transformers.
    """
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise InputError(
            f"The tokenizer is a {type(tokenizer).__name__}; give the model's tokenizer, one of transformers."
        )


def encode_texts(tokenizer, texts: list, model, max_length: int | None) -> list[EncodedText]:
    """Token ids and words of texts, cut to `max_length` tokens or to what model and tokenizer allow.

    Raises:
        InputError: if there is no classifier or no tokenizer, or the length is out of range.
    """
    check_tokenizer(tokenizer)
    check_classifier(model)
    largest = maximum_length(model, tokenizer)
    if max_length is None:
        max_length = largest
    elif getattr(model.config, "window_length", None) is not None:
        largest = _LONGEST
    pairs = any(isinstance(text, Mapping) for text in texts)
    max_length = whole_number("max_length", max_length, tokenizer.num_special_tokens_to_add(pairs) + 1, largest)
    return encode_words(tokenizer, texts, max_length)


def class_ids(name: str, labels: Sequence, names: Sequence[str]) -> list[int | None]:
    """The ids of classes that are given by id or by name, see [`class_id`]; None stays.

    Raises:
        InputError: if one is neither.
    """
    return [
        None if label is None else known_class_id(f"{name}[{position}]", label, names)
        for position, label in enumerate(labels)
    ]


def known_class_id(name: str, label, names: Sequence[str]) -> int:
    """
    Raises:
        InputError: if there is no such class; see [`class_id`].
    """
    try:
        return class_id(label, names)
    except ValueError as error:
        raise InputError(f"{name} {error}") from None


def whole_number(name: str, value, least: int, most: int | None = None) -> Any:
    """A Python int from a Python or NumPy one.

    Raises:
        InputError: if it is none, or out of range.
    """
    return Range(least, inf if most is None else most, whole=True).checked(name, value)


_LONGEST = 2**31 - 1  # tokens of a text that is read in windows; a tokenizer cannot count more
_ID = 2**TYPE_BITS - 1  # the bits of a typed id that are the id itself
_SHARED: dict[object, tuple[int, AbstractContextManager]] = {}
_SHARED_LOCK = threading.RLock()


@contextmanager
def shared(key: object, make: Callable[[], AbstractContextManager]) -> Iterator[None]:
    """A context in which several threads can be at a time: the first one enters it, the last one leaves it.

    Args:
        key: what the context changes; what is entered by another thread under the same key is not made again.
        make: the context.
    """
    with _SHARED_LOCK:
        count, context = _SHARED.get(key) or (0, make())
        if not count:
            context.__enter__()
        _SHARED[key] = count + 1, context
    try:
        yield
    finally:
        with _SHARED_LOCK:
            count, context = _SHARED.pop(key)
            if count > 1:
                _SHARED[key] = count - 1, context
            else:
                context.__exit__(None, None, None)


def evaluation_mode(model: torch.nn.Module) -> AbstractContextManager[None]:
    """Put every module into eval mode, and back as it was when no thread is left that asked for it."""
    return shared(model, lambda: _evaluation_mode(model))


@contextmanager
def _evaluation_mode(model: torch.nn.Module) -> Iterator[None]:
    was_training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in was_training:
            module.training = True


def forward_batches(
    model, tokenizer, input_ids: Sequence[Sequence[int]], batch_size: int, ask: Callable[..., Any] | None = None
) -> Generator[tuple[list[int], Any], None, None]:
    """Run token id lists through a model in eval mode without gradients, longest first.

    The batches depend on the lists alone, not on their order, so results are bit-equal in any order. Where the tokenizer
    pads on the left, or the model sees padding, only lists of equal length share a batch, and nothing is padded: on the right XLNet would read its
    text vector from padding, on the left GPT-2 would count positions from it.

    Args:
        input_ids: token ids with special tokens and types, one list per text.
        batch_size: the largest batch that the model is given.
        ask: a method of the model that takes the batch in place of its forward pass, such as `token_states`.

    Yields:
        The positions in `input_ids` that a batch holds, and the model's output for them.

    Raises:
        InputError: if the tokenizer has tokens that are beyond the model's embeddings.
    """
    known = embedding_rows(model)
    order = sorted(range(len(input_ids)), key=lambda position: (-len(input_ids[position]), tuple(input_ids[position])))
    options = named_outputs(model) if ask is None else {}
    ask = model if ask is None else ask
    equal_lengths = tokenizer.padding_side == "left" or sees_padding(model)
    with evaluation_mode(model):
        start = 0
        while start < len(order):
            positions = order[start : start + batch_size]
            if equal_lengths:
                length = len(input_ids[positions[0]])
                positions = [position for position in positions if len(input_ids[position]) == length]
            start += len(positions)
            batch = model_inputs(tokenizer, [input_ids[position] for position in positions])
            if (highest := int(batch["input_ids"].max())) >= known:
                raise InputError(
                    f"The tokenizer gives the token id {highest} ({tokenizer.convert_ids_to_tokens(highest)}), but the model has "
                    f"embeddings for 0 to {known - 1}; give the model's own tokenizer, or call "
                    "model.resize_token_embeddings(len(tokenizer)) before it is trained."
                )
            with torch.inference_mode():  # left before the yield: it would hold for the caller's code too
                output = ask(**{name: tensor.to(model.device) for name, tensor in batch.items()}, **options)
            yield positions, output


def embedding_rows(model) -> float:
    """How many tokens a model has embeddings for; infinity if it does not say."""
    try:
        return getattr(model.get_input_embeddings(), "num_embeddings", inf)
    except (AttributeError, NotImplementedError):  # an ONNX file; an encoder that hashes characters
        return inf


def model_inputs(tokenizer, rows: Sequence[Sequence[int]]) -> dict:
    """Tensors [B, T] for token id lists, padded on the right to the longest; with token types where one differs from 0.

    Raises:
        InputError: if something has to be padded and the tokenizer has no padding token.
    """
    lengths = np.array([len(row) for row in rows])
    ids = np.zeros((len(rows), lengths.max()), dtype=np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    padding = np.arange(ids.shape[1]) >= lengths[:, None]
    if padding.any():
        if tokenizer.pad_token_id is None:
            raise InputError(
                f"{type(tokenizer).__name__} has no padding token; set tokenizer.pad_token and model.config.pad_token_id."
            )
        ids[padding] = tokenizer.pad_token_id
    attended = ~padding & (ids >= 0)
    ids = np.where(ids < 0, absent(ids), ids)
    batch = {"input_ids": ids & _ID, "attention_mask": attended.astype(np.int64)}
    types = ids >> TYPE_BITS
    if types.any():
        batch["token_type_ids"] = np.where(padding, tokenizer.pad_token_type_id, types)
    return {name: torch.from_numpy(values) for name, values in batch.items()}


def predict_outputs(
    model, tokenizer, input_ids: Sequence[Sequence[int]], batch_size: int = 32, bar: tqdm | None = None
) -> np.ndarray:
    """What a model says of token id lists, see [`model_outputs`]; equal lists are run once.

    Args:
        bar: a progress bar, which is moved by one for each of `input_ids`.

    Returns:
        float64 array of shape [len(input_ids), C], in the order of `input_ids`.

    Raises:
        InputError: if the model does not give one finite logit for each of its classes.
    """
    unique: dict[tuple[int, ...], int] = {}
    place = [unique.setdefault(tuple(ids), len(unique)) for ids in input_ids]
    repeats = Counter(place)
    outputs = np.zeros((len(unique), model.config.num_labels))
    # Closed explicitly: an exception below would otherwise leave the generator, and with it eval mode, open.
    with closing(forward_batches(model, tokenizer, list(unique), batch_size)) as batches:
        for positions, output in batches:
            outputs[positions] = model_outputs(model, output)
            if bar is not None:
                bar.update(sum(repeats[position] for position in positions))
    return outputs[place]


def model_outputs(model, output) -> np.ndarray:
    """Probabilities of classes or labels, or scores, from a model's logits: float64 [B, C]; see [`Problem.outputs`].

    Raises:
        InputError: if the logits do not have the shape [B, C], with one column for each class of the model, or are not
            finite.
    """
    if getattr(output, "logits", None) is None:
        raise InputError(f"{type(model).__name__} gives no logits; give a model for sequence classification.")
    shape, classes = tuple(output.logits.shape), model.config.num_labels
    if len(shape) != 2 or shape[1] != classes:
        raise InputError(
            f"{type(model).__name__} gives logits of shape {shape}; they must be [batch, {classes}], one column for "
            "each class in config.num_labels."
        )
    outputs = Problem.of(model.config).outputs(output.logits.cpu().double()).numpy()
    if not np.isfinite(outputs).all():
        raise InputError(f"{type(model).__name__} gives logits that are not finite; its training has diverged.")
    return outputs


def progress_bar(label: str, total: int, progress: bool, bar: tqdm | None = None) -> AbstractContextManager[tqdm]:
    """A progress bar with the time left. Where nobody sees it move, it is written once a minute.

    Args:
        label: what is done.
        total: model inputs, or whatever is counted.
        progress: show it.
        bar: the open bar of a job that this is a part of, which is then moved, and not closed.
    """
    if bar is not None:
        return nullcontext(bar)
    seconds = 0.1 if sys.stderr.isatty() else 60
    return tqdm(total=total, desc=label, unit="input", disable=not progress, mininterval=seconds)
