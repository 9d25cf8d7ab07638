"""The encoder's outputs in a phase that leaves the encoder as it is: each text is encoded once, however many epochs it has."""

import hashlib
import logging
import math
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import torch
from torch.nn.functional import pad

from hf_vat.errors import InputError
from hf_vat.models.classifier import EncodedTexts, VATClassifier

logger = logging.getLogger(__name__)

# Batches are encoded with lengths and numbers of texts that are multiples of these: then a CPU gives a text the same states to
# the bit, whatever it is in a batch with. The first is the number of floats in the widest registers.
_LENGTHS, _TEXTS = 16, 8
_OF_TEXT = ("attention_mask", "input_ids", "token_type_ids", "position_ids", "inputs_embeds", "special_tokens_mask")
_FREE_MEMORY, _FREE_DISK = 0.25, 0.8  # shares that may be taken without being asked for
_CLOSE = 1e-2  # of the largest state: how far those of a text may lie apart where the same bits cannot be had


class _Kept(NamedTuple):
    """States [n, H] of a text from its first attended token to its last, and the word mask on these, [n]."""

    states: torch.Tensor
    token_mask: torch.Tensor | None


class EncoderOutputs:
    """What the encoder makes of the texts of a phase. Batches are known by their contents, so any sampler, stream or number of
    processes, each of which keeps what it has seen, will do.

    Args:
        model: the classifier, whose encoder does not change as long as this is used.
        kept: where outputs are kept; None to encode every batch.
    """

    def __init__(self, model: VATClassifier, kept: "_Memory | _Disk | None"):
        self.model, self.kept = model, kept

    def of(self, inputs: Mapping[str, torch.Tensor]) -> EncodedTexts | None:
        """States [B, T, H] and word mask [B, T] of a batch, 0 on padding; None if it holds what only the model understands."""
        tensors = _of_texts(inputs)
        if tensors is None:
            return None
        spans = _spans(tensors)
        keys: Sequence[Any] = range(len(spans)) if self.kept is None else _keys(tensors, spans)
        found: dict[Any, _Kept] = {}
        for key in dict.fromkeys(keys):
            kept = None if self.kept is None else self.kept.get(key)
            if kept is not None:
                found[key] = kept
        rows = list({key: row for row, key in enumerate(keys) if key not in found}.values())
        for together in _batches(rows, spans, tensors["attention_mask"].device):
            for row, kept in zip(together, self._encode(tensors, together, spans), strict=True):
                found[keys[row]] = kept
                if self.kept is not None:
                    self.kept.put(keys[row], kept)
        return _placed([found[key] for key in keys], spans, tensors["attention_mask"])

    @torch.no_grad()
    def _encode(self, tensors: Mapping[str, torch.Tensor], rows: list[int], spans) -> Iterator[_Kept]:
        first, last = min(spans[row][0] for row in rows), max(spans[row][1] for row in rows)
        length = math.ceil((last - first) / _LENGTHS) * _LENGTHS
        positions = getattr(self.model.base_model.config, "max_position_embeddings", None) or length
        length = max(min(length, positions), last - first)
        batch = {}
        for name, tensor in tensors.items():
            part = tensor[[*rows, *rows[:1] * (-len(rows) % _TEXTS)], first:last]
            behind = (0, 0) * (part.dim() - 2) + (0, length - part.shape[1])
            filling = (self.model.base_model.config.pad_token_id or 0) if name == "input_ids" else 0
            batch[name] = pad(part, behind, value=filling)
        encoded = self.model.encode_texts(**batch)
        for place, row in enumerate(rows):
            here = slice(spans[row][0] - first, spans[row][1] - first)
            mask = encoded.token_mask
            yield _Kept(encoded.states[place, here], None if mask is None else mask[place, here])


class _Memory:
    """Outputs in memory, up to a number of bytes; of further texts none are kept."""

    def __init__(self, capacity: int):
        self.capacity, self.used = capacity, 0
        self._kept: dict[bytes, _Kept] = {}

    def get(self, key: bytes) -> _Kept | None:
        return self._kept.get(key)

    def put(self, key: bytes, kept: _Kept) -> None:
        size = kept.states.nbytes
        if self.used + size <= self.capacity:
            self.used += size
            mask = kept.token_mask
            # Copies, as these are views of a whole batch.
            self._kept[key] = _Kept(kept.states.cpu().clone(), None if mask is None else mask.cpu().clone())


class _Disk:
    """Outputs in a file without a name, which is gone with the process; what a word mask makes of them stays in memory."""

    def __init__(self, folder: str, capacity: int):
        self.capacity, self.used = capacity, 0
        os.makedirs(folder, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - open as long as the phase lasts
        self._places: dict[bytes, tuple[int, torch.Size, torch.dtype, torch.Tensor | None]] = {}

    def get(self, key: bytes) -> _Kept | None:
        if key not in self._places:
            return None
        start, shape, dtype, mask = self._places[key]
        self._file.seek(start)
        read = bytearray(self._file.read(shape.numel() * dtype.itemsize))
        return _Kept(torch.frombuffer(read, dtype=dtype).view(shape) if read else torch.empty(shape, dtype=dtype), mask)

    def put(self, key: bytes, kept: _Kept) -> None:
        states = kept.states.cpu().contiguous()
        if self.used + states.nbytes > self.capacity:
            return
        try:
            self._file.seek(self.used)
            self._file.write(states.view(torch.uint8).numpy().data)
            self._file.flush()
        except OSError as error:
            logger.warning("No more of the encoder's outputs are kept: %s.", error)
            self.capacity = 0
            return
        mask = None if kept.token_mask is None else kept.token_mask.cpu().clone()
        self._places[key] = (self.used, states.shape, states.dtype, mask)
        self.used += states.nbytes


def encoder_outputs(
    how: str,
    model: VATClassifier,
    examples: Callable[[], Mapping[str, torch.Tensor]],
    texts: int,
    epochs: int,
    folder: str,
    processes: int = 1,
) -> EncoderOutputs:
    """Where the outputs of a phase are kept, said in the log.

    Args:
        how: "auto", "memory", "disk" or "off".
        model: in the phase.
        examples: gives inputs of the model for some training texts, in the way that training gets them; asked twice.
        texts: how many are read in an epoch.
        epochs: of the phase that are to come.
        folder: on whose disk they may be kept.
        processes: that share memory and disk.

    Raises:
        InputError: if the disk that was asked for has not enough room.
    """
    if how == "off":
        return EncoderOutputs(model, None)
    with _random_state_as_found():
        batch, again = _of_texts(examples()), _of_texts(examples())
        reason = _why_not(model, batch, again, epochs)
    if reason is not None or batch is None:
        logger.info("The encoder's outputs are not kept for other epochs of the phase: %s.", reason)
        return EncoderOutputs(model, None)
    tokens = sum(last - first for first, last in _spans(batch)) / len(batch["attention_mask"]) * texts
    width = model.config.hidden_size if model.word_objective is None else model.word_objective.output_size
    size = int(tokens * width * model.dtype.itemsize)
    memory = int(_FREE_MEMORY * psutil.virtual_memory().available / processes)
    there = next(path for path in (Path(folder).absolute(), *Path(folder).absolute().parents) if path.is_dir())
    disk = int(_FREE_DISK * shutil.disk_usage(there).free / processes)
    if how == "disk" and size > disk:
        raise InputError(
            f"cache_encoder_outputs='disk' needs about {size / 2**30:.1f} GiB for each of {processes} processes, and "
            f"{_FREE_DISK:.0%} of what {folder} has left are {disk / 2**30:.1f} GiB for each; make room, choose another output_dir, or "
            "use 'auto', which keeps what there is room for."
        )
    to_disk = how == "disk" or (how == "auto" and memory < size <= disk)
    room = disk if to_disk else memory
    logger.info(
        "The encoder's outputs of about %s texts, %s MiB, are kept in %s for the other epochs of the phase%s.",
        f"{texts:,}",
        f"{size / 2**20:,.1f}",
        f"a file in {folder}" if to_disk else "memory",
        "" if size <= room else f", as far as {room / 2**20:,.0f} MiB go",
    )
    return EncoderOutputs(model, _Disk(folder, room) if to_disk else _Memory(room))


def _why_not(model: VATClassifier, once: dict | None, again: dict | None, epochs: int) -> str | None:
    """Why outputs cannot be used again, if so.

    Args:
        once, again: inputs for the same texts.
    """
    if epochs < 2:
        return "no text is read twice"
    if model.config.output_hidden_states or model.config.output_attentions:
        return "the configuration asks for hidden states or self-attention in the output"
    if once is None or again is None:
        return f"batches hold other inputs than {', '.join(_OF_TEXT)}"
    if _keys(once, _spans(once)) != _keys(again, _spans(again)):
        return "the inputs of a text are others each time"
    outputs = EncoderOutputs(model, None)
    together = outputs.of(once)
    lengths = {math.ceil((last - first) / _LENGTHS): row for row, (first, last) in enumerate(_spans(once))}
    for row in lengths.values():  # one text for each length that is encoded
        alone = outputs.of({name: tensor[row : row + 1] for name, tensor in once.items()})
        if alone is None or together is None or not _same(alone.states, together.states[row : row + 1]):
            return "the encoder's outputs of a text are others each time, or beside other texts"
    return None


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.device.type == "cpu":
        return torch.equal(one, other)
    return bool((one - other).abs().max() <= _CLOSE * other.abs().max()) if one.numel() else True


def _of_texts(inputs: Mapping[str, Any]) -> dict[str, torch.Tensor] | None:
    """What the encoder and the word mask read, with an attention mask [B, T]; None if there is more than they are known to."""
    tensors = {name: value for name, value in inputs.items() if name != "labels" and value is not None}
    texts = tensors.get("input_ids", tensors.get("inputs_embeds"))
    if texts is None or not set(tensors) <= set(_OF_TEXT):
        return None
    if "attention_mask" not in tensors:
        tensors["attention_mask"] = torch.ones(texts.shape[:2], dtype=torch.long, device=texts.device)
    return tensors if all(tensor.shape[:2] == texts.shape[:2] for tensor in tensors.values()) else None


def _batches(rows: list[int], spans: Sequence[tuple[int, int]], device: torch.device) -> list[list[int]]:
    """Texts that are encoded together: on a CPU few of similar length, as there padding costs more than a further pass."""
    if device.type != "cpu":
        return [rows] if rows else []
    by_length = sorted(rows, key=lambda row: spans[row][1] - spans[row][0])
    return [by_length[start : start + _TEXTS] for start in range(0, len(by_length), _TEXTS)]


def _spans(tensors: Mapping[str, torch.Tensor]) -> list[tuple[int, int]]:
    """Where each text begins and ends, without the padding around it."""
    attended = tensors["attention_mask"].bool().cpu().numpy()
    return [(int(row.argmax()), len(row) - int(row[::-1].argmax())) if row.any() else (0, 0) for row in attended]


def _keys(tensors: Mapping[str, torch.Tensor], spans: Sequence[tuple[int, int]]) -> list[bytes]:
    """What each text is known by: all of its inputs."""
    of_cpu = {name: tensors[name].cpu() for name in sorted(tensors)}
    keys = []
    for row, (first, last) in enumerate(spans):
        digest = hashlib.blake2b(digest_size=16)
        for name, tensor in of_cpu.items():
            part = tensor[row, first:last].contiguous()
            digest.update(f"{name} {part.dtype} ".encode())
            digest.update(part.view(torch.uint8).numpy().data)
        keys.append(digest.digest())
    return keys


def _placed(kept: Sequence[_Kept], spans: Sequence[tuple[int, int]], attention_mask: torch.Tensor) -> EncodedTexts:
    """Outputs of texts as a batch, 0 on the padding."""
    size, first = tuple(attention_mask.shape), kept[0]
    states = first.states.new_zeros(*size, first.states.shape[-1])
    mask = None if first.token_mask is None else first.token_mask.new_zeros(size)
    for row, (one, (start, end)) in enumerate(zip(kept, spans, strict=True)):
        states[row, start:end] = one.states
        if mask is not None and one.token_mask is not None:
            mask[row, start:end] = one.token_mask
    device = attention_mask.device
    return EncodedTexts(states.to(device), None if mask is None else mask.to(device))


@contextmanager
def _random_state_as_found() -> Iterator[None]:
    """Whatever draws inside, generators of Python, NumPy and torch are left as they were."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
