"""Explanations as lines of JSON in a file, written as they are made, so that an interrupted run loses little."""

import json
import os
from collections.abc import Iterator, Sequence
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

    Args:
        texts: all texts of the call; None if they are read one by one, which [`Store.skip_finished`] then compares.
        run: model, method and settings, and with texts targets and gold labels.

    Raises:
        InputError: if the path is a folder.
    """

    def __init__(self, path: str | PathLike, model, texts: Sequence[EncodedText] | None, run: dict):
        self.path = Path(path)
        if self.path.is_dir():
            raise InputError(f"save_to is {path}, a folder; give a file.")
        inputs = None
        if texts is not None:
            fields = [[(text.text, text.words, text.input_ids) for text in texts], run["targets"], run["gold"]]
            inputs = sha256(json.dumps(fields).encode()).hexdigest()
        self._header = {
            "format": _FORMAT,
            "model": run["model"],
            "method": run["method"],
            "settings": run["settings"],
            "texts": None if texts is None else len(texts),
            "model state": _model_digest(model),
            "inputs": inputs,
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
        if lines:
            self._check(header)
        done = max((end for end in ends if end <= len(lines)), default=0)
        kept = (self._first_line() + b"".join(line.encode() + b"\n" for line in lines[:done])) if done else b""
        if kept != begun:
            partial = self.path.with_name(self.path.name + ".partial")  # never lose what is there
            partial.write_bytes(kept)
            os.replace(partial, self.path)
        return [Explanation.from_dict(json.loads(line)) for line in lines[:done]]

    def skip_finished(self, rows: Iterator[tuple[str, int | None]]) -> int:
        """Take the texts and gold labels whose explanations are in the file from the front of `rows`.

        One line is in memory at a time. Half a line at the end of the file is cut off.

        Returns:
            The number of finished explanations.

        Raises:
            InputError: if the file belongs to another call or other texts, or is something else.
        """
        if not self.path.exists():
            return 0
        done, end = 0, 0
        with open(self.path, "r+b") as file:
            for line in file:
                if not self._first_line().startswith(line) and not end:
                    self._check(_header(self.path, line))
                if not line.endswith(b"\n"):
                    break
                if end:
                    fields = json.loads(line)
                    if next(rows, None) != (fields["text"], fields["gold"]):
                        raise InputError(
                            f"{self.path} holds explanations of other texts, or with other gold labels: the first that "
                            f"differs is in row {done + 1}. Choose another file, or delete it to begin again."
                        )
                    done += 1
                end += len(line)
            file.truncate(end)
        return done

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

    def _check(self, header: dict) -> None:
        different = [name for name, value in self._header.items() if header.get(name) != value]
        if different:
            values = {name: f" ({header.get(name)!r} there, {self._header[name]!r} here)" for name in different}
            values |= {"model state": " (configuration or weights)", "inputs": " (texts, targets, gold labels)"}
            raise InputError(
                f"{self.path} holds explanations of another call, with other "
                f"{', '.join(name + values[name] for name in different)}. Choose another file, or delete it to begin "
                "again."
            )

    def _first_line(self) -> bytes:
        return json.dumps(self._header).encode() + b"\n"


def _read(path: Path) -> tuple[dict, list[str]]:
    """Header and complete lines; a last line without its end was torn by an interruption."""
    header, *lines = path.read_bytes().rpartition(b"\n")[0].split(b"\n")
    return _header(path, header), [line.decode() for line in lines]


def _header(path: Path, line: bytes) -> dict:
    try:
        header = json.loads(line)
        known = isinstance(header, dict) and header.get("format") == _FORMAT
    except ValueError:
        known = False
    if not known:
        raise InputError(f"{path} is no file of explanations; choose another file name. It is left as it was.")
    return header


def _model_digest(model) -> str:
    """Two models in one folder, one after the other, must not be mixed, nor two that differ in a setting."""
    settings = {name: value for name, value in model.config.to_dict().items() if not name.startswith("_")}
    settings.pop("transformers_version", None)
    digest = sha256(f"{type(model).__name__} {json.dumps(settings, sort_keys=True, default=str)}".encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
