"""Results as lines of JSON in a file, written as they are made, so that an interrupted run loses little."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from hashlib import sha256
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Generic, TypeVar

import torch

from hf_vat.errors import InputError, check_path, parse_json
from hf_vat.inference import model_name
from hf_vat.models.words import EncodedText
from hf_vat.writing import locked, written_beside

from .explanation import Explanation

_KIND = "explanation"
_OF_CALL, _STATE = ("model", "method", "settings"), " state"
_TOGETHER = 1000  # explanations that are in memory at a time while shards are put together
_SIGNATURE = b'{"format": "hf_vat '  # how every file begins
Result = TypeVar("Result")


def load_explanations(path: str | PathLike) -> list[Explanation]:
    """The explanations in a file that `explain(..., save_to=path)` has written, also one that was interrupted.

    Raises:
        InputError: if the file is not such a file.
        FileNotFoundError: if there is none.
    """
    path = check_path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the file that explain(..., save_to=file) has written.")
    _, lines = _read(path, _KIND)
    return [_parse(path, _KIND, Explanation.from_dict, number, line) for number, line in enumerate(lines, 1)]


class LineStore(Generic[Result]):
    """A file of results, one for each text, for one call.

    Its first line says which model (configuration and weights), settings and texts (as the model reads them) it belongs to.
    The file is made with the first results. In a `with` statement the store keeps other processes from it, and a thread
    writes while the caller goes on: what the store was given is on the disk at the end of the statement.

    Args:
        kind: what a result is called, in the singular.
        texts: all texts of the call, as the model reads them; None if they are read one by one.
        run: what the call is beside model and texts, such as its settings: names and values of JSON.
        more: what else the results depend on text by text, such as targets: values of JSON.
        to_fields, from_fields: a result as a dictionary that JSON takes, and back; ValueError or TypeError for another.

    Attributes:
        finished: the number of results in the file, as far as this store has read them, or was given them to write.

    Raises:
        InputError: if the path is none, a folder, or a device; in a `with` statement, if another process writes the file.
    """

    def __init__(
        self,
        path: str | PathLike,
        kind: str,
        model,
        texts: Sequence[EncodedText] | None,
        run: dict,
        to_fields: Callable[[Result], dict],
        from_fields: Callable[[dict], Result],
        more: Sequence = (),
    ):
        self.path, self.kind, self.finished = check_path(path), kind, 0
        if self.path.is_symlink():
            self.path = self.path.resolve()  # the link stays, also where it leads to no file yet
        self._writer: ThreadPoolExecutor | None = None
        self._writing: Future | None = None
        self._to_fields, self._from_fields = to_fields, from_fields
        if self.path.is_dir():
            raise InputError(f"save_to is {path}, a folder; give a file.")
        if self.path.exists() and not self.path.is_file():
            raise InputError(f"save_to is {path}, no regular file, from which nothing could go on; give a file.")
        inputs = None
        if texts is not None:
            fields = [[(text.text, text.words, text.input_ids) for text in texts], *more]
            inputs = sha256(json.dumps(fields).encode()).hexdigest()
        self._header = {
            "format": _format(kind),
            **run,
            "texts": None if texts is None else len(texts),
            "model state": model_digest(model),
            "inputs": inputs,
        }

    def __enter__(self):
        self._lock = locked(self.path, "wait until it has ended, or choose another file")
        self._lock.__enter__()
        self._writer = ThreadPoolExecutor(1)
        return self

    def __exit__(self, *error) -> None:
        try:
            self._finish_writing()
        finally:
            self._writer = None
            self._lock.__exit__(*error)

    def read(self, ends: Sequence[int]) -> list[Result]:
        """The finished results, up to the last of `ends` (numbers of texts) that was reached.

        What comes after it, such as half a line, is cut off.

        Raises:
            InputError: if the file belongs to another call, or is something else.
        """
        begun = self.path.read_bytes() if self.path.exists() else b""
        if self._is_torn(begun):
            return []
        header, lines = _read(self.path, self.kind)
        if lines:
            self._check(header)
        done = max((end for end in ends if end <= len(lines)), default=0)
        results = [self._result(number, line) for number, line in enumerate(lines[:done], 1)]
        kept = (self._first_line() + b"".join(line + b"\n" for line in lines[:done])) if done else b""
        if kept != begun:
            with written_beside(self.path) as partial:  # never lose what is there
                partial.write_bytes(kept)
        self.finished = done
        return results

    def append(self, results: Sequence[Result]) -> None:
        """Write results to the end of the file, and to the disk.

        Raises:
            InputError: if the file belongs to another call, or is something else.
        """
        self._finish_writing()
        begun = self._is_begun()
        if self._writer is None:
            self._write(results, begun)
        else:
            self._writing = self._writer.submit(self._write, results, begun)
        self.finished += len(results)

    def _finish_writing(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()

    def _write(self, results: Sequence[Result], begun: bool) -> None:
        lines = [json.dumps(self._to_fields(result), allow_nan=False).encode() + b"\n" for result in results]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if begun:
            with open(self.path, "ab") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
        else:
            with written_beside(self.path) as partial:
                partial.write_bytes(self._first_line() + b"".join(lines))

    def _is_begun(self) -> bool:
        """Whether results can be added to the file; if not, nothing is lost when it is replaced."""
        if not self.path.exists():
            return False
        with open(self.path, "rb") as file:
            first, more = file.readline(), file.read(1)
        if first == self._first_line():
            return True
        if not self._is_torn(first):
            header = _header(self.path, self.kind, first)
            if more:
                self._check(header)
        return False

    def _is_torn(self, begun: bytes) -> bool:
        """Whether a file is empty, or holds no more than a part of this call's first line."""
        return not begun or (begun.startswith(_SIGNATURE) and self._first_line().startswith(begun))

    def _result(self, number: int, line: bytes) -> Result:
        return _parse(self.path, self.kind, self._from_fields, number, line)

    def _check(self, header: dict) -> None:
        different = [name for name, value in self._header.items() if header.get(name) != value]
        if different:
            values = {name: f" ({_shown(name, header)} there, {_shown(name, self._header)} here)" for name in different}
            values |= {"model state": " (configuration or weights)", "inputs": " (texts, targets, gold labels)"}
            raise InputError(
                f"{self.path} holds {self.kind}s of another call, with other "
                f"{', '.join(name + values[name] for name in different)}. Choose another file, or delete it to begin "
                "again."
            )

    def _first_line(self) -> bytes:
        return json.dumps(self._header).encode() + b"\n"


class Store(LineStore[Explanation]):
    """A file of explanations for one call of `explain`.

    The seconds that an explanation took are not in it, so that the same call writes the same file, to the byte.

    Args:
        texts: all texts of the call; None if they are read one by one, which [`Store.skip_finished`] then compares.
        run: model, method and settings, with the state of each model among these, and with texts targets and gold labels.

    Raises:
        InputError: if the path is a folder.
    """

    def __init__(self, path: str | PathLike, model, texts: Sequence[EncodedText] | None, run: dict):
        of_call = {name: value for name, value in run.items() if name in _OF_CALL or name.endswith(_STATE)}
        more = () if texts is None else (run["targets"], run["gold"])
        super().__init__(path, _KIND, model, texts, of_call, _untimed, Explanation.from_dict, more)

    def shard(self, number: int, count: int) -> "Store":
        """The store of a part of the explanations, in a file of its own beside this one, such as `lime-00003-of-00008.jsonl`.
        It has the seconds, for whoever puts the parts together."""
        part = copy(self)
        part.path = self.path.with_name(f"{self.path.stem}-{number:05}-of-{count:05}{self.path.suffix}")
        part._header = self._header | {"shard": f"{number}/{count}"}
        part._to_fields, part.finished = Explanation.to_dict, 0
        return part

    def take_shards(
        self, parts: Sequence[range], rows: Iterator[tuple[str | Sequence[str], int | None]] | None = None
    ) -> Iterator[Explanation]:
        """Put the explanations of shards that this store lacks to its end, and in the end remove the shards.

        A thousand explanations are in memory at a time.

        Args:
            parts: the positions of each shard's texts; see [`split`].
            rows: texts and gold labels that come next, if they are read one by one, and so have to be compared.

        Yields:
            The explanations, in order.

        Raises:
            InputError: while iterating, if shards are missing or not finished, or of another call or other texts, or damaged.
        """
        shards = [self.shard(number, len(parts)) for number in range(1, len(parts) + 1)]
        needed = [
            (shard, part) for shard, part in zip(shards, parts, strict=True) if part and part.stop > self.finished
        ]
        found = {shard._header["shard"]: (shard.count(), len(part)) for shard, part in needed}
        lacking = [f"{name} ({lines} of {size} explanations)" for name, (lines, size) in found.items() if lines < size]
        if lacking:
            raise InputError(
                f"{self.path} cannot be put together: of its shards, {', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} "
                "not finished. Run these again, each goes on where it stopped; then merge."
            )
        for shard, part in needed:
            with open(shard.path, "rb") as file:
                lines = islice(enumerate(file), 1 + max(self.finished - part.start, 0), 1 + len(part))
                while some := [shard._result(number, line) for number, line in islice(lines, _TOGETHER)]:
                    if rows is not None:
                        for number, explanation in enumerate(some, self.finished + 1):
                            self._compare(explanation, next(rows, None), number)
                    self.append(some)
                    yield from some
        self._finish_writing()
        for shard in shards:
            with suppress(InputError):  # it is not of this call
                if shard.count():
                    shard.path.unlink()

    def count(self) -> int:
        """The number of explanations that the file has, 0 if there is none.

        Raises:
            InputError: if the file belongs to another call, or is something else.
        """
        if not self.path.exists():
            return 0
        with open(self.path, "rb") as file:
            if not (header := file.readline()).endswith(b"\n"):  # torn
                return 0
            self._check(_header(self.path, self.kind, header))
            return sum(line.endswith(b"\n") for line in file)

    def skip_finished(self, rows: Iterator[tuple[str | Sequence[str], int | None]]) -> None:
        """Take the texts and gold labels whose explanations are in the file from the front of `rows`, and count them.

        One line is in memory at a time. Half a line at the end of the file is cut off.

        Raises:
            InputError: if the file belongs to another call or other texts, is damaged, or is something else.
        """
        if not self.path.exists():
            return
        end = 0
        with open(self.path, "r+b") as file:
            for line in file:
                if not end and not self._is_torn(line):
                    self._check(_header(self.path, self.kind, line))
                if not line.endswith(b"\n"):
                    break
                if end:
                    number = self.finished + 1
                    self._compare(self._result(number, line), next(rows, None), number)
                    self.finished = number
                end += len(line)
            file.truncate(end)

    def _compare(
        self, explanation: Explanation, row: tuple[str | Sequence[str], int | None] | None, number: int
    ) -> None:
        if row is None:
            raise InputError(
                f"{self.path} holds more explanations than there are rows to explain, {number - 1}. Choose another file, or "
                "as many rows as before."
            )
        text, gold = row
        same = explanation.text == text if isinstance(text, str) else explanation.words == list(text)
        if not same or explanation.gold != gold:
            raise InputError(
                f"{self.path} holds explanations of other texts, or with other gold labels: the first that differs is in "
                f"row {number}. Choose another file, or delete it to begin again."
            )

    def explanations(self) -> Iterator[Explanation]:
        """The finished explanations, one after the other.

        Raises:
            InputError: while iterating, if the file is damaged.
        """
        if self.finished:
            with open(self.path, "rb") as file:
                for number, line in enumerate(islice(file, 1, self.finished + 1), 1):
                    yield self._result(number, line)


def split(ends: Sequence[int], count: int) -> list[range]:
    """The positions of the texts of each of `count` shards: neighbours, cut where a call cuts its texts in any case.

    Args:
        ends: the numbers of texts after which it does, which are those of one process.
    """
    starts = [0, *ends]
    return [
        range(starts[len(ends) * number // count], starts[len(ends) * (number + 1) // count]) for number in range(count)
    ]


def _untimed(explanation: Explanation) -> dict:
    fields = explanation.to_dict()
    del fields["seconds"]
    return fields


def _format(kind: str) -> str:
    return f"hf_vat {kind}s 1"


def _read(path: Path, kind: str) -> tuple[dict, list[bytes]]:
    """Header and complete lines; a last line without its end was torn by an interruption."""
    header, *lines = path.read_bytes().rpartition(b"\n")[0].split(b"\n")
    return _header(path, kind, header), lines


def _header(path: Path, kind: str, line: bytes) -> dict:
    try:
        header = parse_json(line)
        known = isinstance(header, dict) and header.get("format") == _format(kind)
    except ValueError:
        known = False
    if not known:
        raise InputError(f"{path} is no file of {kind}s; choose another file name. It is left as it was.")
    return header


def _shown(name: str, header: dict) -> str:
    return "streamed" if name == "texts" and header.get(name) is None else repr(header.get(name))


def _parse(path: Path, kind: str, from_fields: Callable[[dict], Result], number: int, line: bytes) -> Result:
    try:
        return from_fields(parse_json(line))
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{path}: line {number + 1} is no {kind} ({error}). The file is damaged: choose another, or delete it to begin "
            "again. It is left as it was."
        ) from error


def recorded_settings(settings: dict) -> dict:
    """Settings as explanations have them, with the names of models among them."""
    return settings | {name: model_name(value) for name, value in _models(settings)}


def model_states(settings: dict) -> dict:
    """The state of each model among the settings, for the header of a file. It takes as long as reading all weights."""
    return {f"{name}{_STATE}": model_digest(value) for name, value in _models(settings)}


def _models(settings: dict) -> list[tuple[str, torch.nn.Module]]:
    return [(name, value) for name, value in settings.items() if isinstance(value, torch.nn.Module)]


def model_digest(model) -> str:
    """Two models in one folder, one after the other, must not be mixed, nor two that differ in a setting."""
    settings = {name: value for name, value in model.config.to_dict().items() if not name.startswith("_")}
    for name in ("transformers_version", "explainer"):  # who wrote it, and what lies beside it
        settings.pop(name, None)
    digest = sha256(f"{type(model).__name__} {json.dumps(settings, sort_keys=True, default=str)}".encode())
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        for part in value if isinstance(value, tuple) else (value,):  # quantised layers hold tuples, and data types
            if not isinstance(part, torch.Tensor):
                digest.update(repr(part).encode())
                continue
            tensor = part.dequantize() if part.is_quantized else part
            digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
