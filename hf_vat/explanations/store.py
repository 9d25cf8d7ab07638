"""Explanations as lines of JSON in a file, written as they are made, so that an interrupted run loses little."""

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path

import torch

from hf_vat.errors import InputError

from .explanation import Explanation

_FORMAT = "hf_vat explanations 1"


def load_explanations(path: str | PathLike) -> list[Explanation]:
    """The explanations in a file that `explain(..., save_to=path)` has written, also one that was interrupted.

    Raises:
        InputError: if the file is not such a file.
        FileNotFoundError: if there is none.
    """
    _, lines = _read(Path(path))
    return [Explanation.from_dict(json.loads(line)) for line in lines]


class Store:
    """A file of explanations for one call of `explain`.

    Its first line says which model (by name and weights), method, settings and texts it belongs to.

    Raises:
        InputError: if the file exists and belongs to another call, or is something else.
    """

    def __init__(self, path: str | PathLike, model, texts: Sequence, run: dict):
        self.path = Path(path)
        inputs = [texts, run["targets"], run["gold"]]
        self._header = {
            "format": _FORMAT,
            "model": model.config.name_or_path,
            "weights": _weights_digest(model),
            "method": run["method"],
            "settings": run["settings"],
            "max_length": run["max_length"],
            "texts": len(texts),
            "inputs": sha256(json.dumps(inputs).encode()).hexdigest(),
        }

    def read(self, ends: Sequence[int]) -> list[Explanation]:
        """The finished explanations, up to the last of `ends` (numbers of texts) that was reached.

        What comes after it, such as half a line, is cut off.
        """
        if not self.path.exists() or not self.path.stat().st_size:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self._header) + "\n", encoding="utf-8")
            return []
        header, lines = _read(self.path)
        different = [name for name, value in self._header.items() if header.get(name) != value]
        if different:
            told = "; ".join(f"{name}: {header.get(name)!r} there, {self._header[name]!r} here" for name in different)
            raise InputError(
                f"{self.path} holds explanations of another call ({told}). Choose another file, or delete it to begin "
                "again."
            )
        done = max((end for end in ends if end <= len(lines)), default=0)
        kept = "".join(f"{line}\n" for line in [json.dumps(self._header), *lines[:done]]).encode()
        if self.path.stat().st_size != len(kept):
            partial = self.path.with_name(self.path.name + ".partial")  # never lose what is there
            partial.write_bytes(kept)
            os.replace(partial, self.path)
        return [Explanation.from_dict(json.loads(line)) for line in lines[:done]]

    def append(self, explanations: Sequence[Explanation]) -> None:
        """Write explanations to the end of the file, and to the disk."""
        lines = "".join(json.dumps(explanation.to_dict()) + "\n" for explanation in explanations)
        with open(self.path, "ab") as file:
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())


def _read(path: Path) -> tuple[dict, list[str]]:
    """Header and complete lines; a last line without its end was torn by an interruption."""
    try:
        complete, _, _ = path.read_bytes().rpartition(b"\n")
        header, *lines = complete.decode("utf-8").split("\n")
        header = json.loads(header)
        known = isinstance(header, dict) and header.get("format") == _FORMAT
    except ValueError:
        known = False
    if not known:
        raise InputError(f"{path} is no file of explanations; choose another file name. It is left as it was.")
    return header, lines


def _weights_digest(model) -> str:
    """Two checkpoints in one folder, one after the other, must not be mixed."""
    digest = sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
