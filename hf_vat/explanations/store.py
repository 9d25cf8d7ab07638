"""Explanations as lines of JSON in a file, written as they are made, so that an interrupted run loses little."""

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path

import torch

from hf_vat.errors import InputError
from hf_vat.models.words import EncodedText

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

    Its first line says which model (configuration and weights), method, settings and texts (as the model reads them) it
    belongs to. The file is made with the first explanations.

    Raises:
        InputError: if the path is a folder.
    """

    def __init__(self, path: str | PathLike, model, texts: Sequence[EncodedText], run: dict):
        self.path = Path(path)
        if self.path.is_dir():
            raise InputError(f"save_to is {path}, a folder; give a file.")
        inputs = [[(text.text, text.words, text.input_ids) for text in texts], run["targets"], run["gold"]]
        self._header = {
            "format": _FORMAT,
            "model": run["model"],
            "method": run["method"],
            "settings": run["settings"],
            "texts": len(texts),
            "model state": _model_digest(model),
            "inputs": sha256(json.dumps(inputs).encode()).hexdigest(),
        }

    def read(self, ends: Sequence[int]) -> list[Explanation]:
        """The finished explanations, up to the last of `ends` (numbers of texts) that was reached.

        What comes after it, such as half a line, is cut off.

        Raises:
            InputError: if the file belongs to another call, or is something else.
        """
        begun = self.path.read_bytes() if self.path.exists() else b""
        if self._first_line().startswith(begun):  # nothing, or a first line that was torn
            self.path.unlink(missing_ok=True)
            return []
        header, lines = _read(self.path)
        different = [name for name, value in self._header.items() if header.get(name) != value]
        if different and lines:
            values = {name: f" ({header.get(name)!r} there, {self._header[name]!r} here)" for name in different}
            values |= {"model state": " (configuration or weights)", "inputs": " (texts, targets, gold labels)"}
            raise InputError(
                f"{self.path} holds explanations of another call, with other "
                f"{', '.join(name + values[name] for name in different)}. Choose another file, or delete it to begin "
                "again."
            )
        done = max((end for end in ends if end <= len(lines)), default=0)
        kept = (self._first_line() + b"".join(line.encode() + b"\n" for line in lines[:done])) if done else b""
        if kept != begun:
            partial = self.path.with_name(self.path.name + ".partial")  # never lose what is there
            partial.write_bytes(kept)
            os.replace(partial, self.path)
        return [Explanation.from_dict(json.loads(line)) for line in lines[:done]]

    def append(self, explanations: Sequence[Explanation]) -> None:
        """Write explanations to the end of the file, and to the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab") as file:
            if not file.tell():
                file.write(self._first_line())
            for explanation in explanations:
                file.write(json.dumps(explanation.to_dict(), allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _first_line(self) -> bytes:
        return json.dumps(self._header).encode() + b"\n"


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


def _model_digest(model) -> str:
    """Two models in one folder, one after the other, must not be mixed, nor two that differ in a setting."""
    settings = {name: value for name, value in model.config.to_dict().items() if not name.startswith("_")}
    settings.pop("transformers_version", None)
    digest = sha256(f"{type(model).__name__} {json.dumps(settings, sort_keys=True, default=str)}".encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
