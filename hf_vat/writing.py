"""Files that are written whole or not at all, by one process at a time, and never in the place of someone else's."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from os import PathLike
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from hf_vat.errors import InputError, parse_json

RECORD_NAME = ".hf_vat_outputs.json"  # in each folder with outputs of a command: what it wrote there, by SHA-256
_PARTIAL = ".hf_vat-*.partial"
_claimed: set[Path] = set()  # what the command of this process writes


@contextmanager
def written_beside(path: str | PathLike) -> Iterator[Path]:
    """A file to write, which takes the place of `path` in the end, and none if there is an error.

    Its name is its own, so that two processes may write the same file: the last one's stays, and is whole.

    Raises:
        OSError: if it cannot be written, naming `path`.
    """
    path = Path(path)
    partial = path.with_name(_PARTIAL.replace("*", uuid4().hex))  # of any length of name
    try:
        yield partial
        flush_to_disk(partial)
        if path.absolute() in _claimed:
            _record(path, digest(partial))
        os.replace(partial, path)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(partial)):
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def write_text(path: str | PathLike, text: str, newline: str | None = None) -> None:
    """Write a text as UTF-8, whole or not at all; see [`written_beside`]."""
    with written_beside(path) as partial:
        partial.write_text(text, encoding="utf-8", newline=newline)


def flush_to_disk(path: Path) -> None:
    """Have the content of a file on the disk, so that it outlives the machine's power."""
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


def digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def remove_partial(folder: Path) -> None:
    """Remove what killed processes left of [`written_beside`] in a folder; none may be writing there."""
    for partial in folder.glob(_PARTIAL):
        partial.unlink(missing_ok=True)


def claim(path: Path, told: str) -> None:
    """Let this process write a file by [`written_beside`], and note so in its folder (`RECORD_NAME`).

    Args:
        told: how a user asked for it, such as "--html page.html".

    Raises:
        InputError: if there is such a file that no command has written, or that has changed since, or something else.
    """
    if path.is_symlink():
        raise InputError(
            f"{told}: {path} is a link, which a file would take the place of; give the file that it leads to, or another."
        )
    if path.exists():
        if not path.is_file():
            raise InputError(f"{told}: {path} is no regular file, and what is there would be lost; choose another.")
        if path.stat().st_size and digest(path) not in _written(path):
            raise InputError(
                f"{told}: {path} is there already, and is not as a command of hf-vat wrote it. It is left as it is: move it "
                "away, or choose another place."
            )
    _claimed.add(path.absolute())


def forget_claims() -> None:
    """Begin a command that has claimed nothing."""
    _claimed.clear()


def _written(path: Path) -> list[str]:
    """The hashes of what commands have written to a file: the last, and the one before, if a process was killed between."""
    return _records(path.parent).get(path.name, [])


def _record(path: Path, written: str) -> None:
    records = _records(path.parent)
    records[path.name] = [written, *records.get(path.name, [])][:2]
    write_text(path.with_name(RECORD_NAME), json.dumps(records, indent=1))


def _records(folder: Path) -> dict[str, list[str]]:
    try:
        found = parse_json((folder / RECORD_NAME).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@contextmanager
def locked(path: Path, advice: str) -> Iterator[None]:
    """Keep other processes, and other threads, from a file, or from a folder that is there; a killed process keeps no lock.

    The lock is a file of its own, beside the file or in the folder, with a name of ours; it is gone in the end. A thread
    that holds it already may take it again.

    Args:
        advice: what to do where another one holds it.

    Raises:
        InputError: if another one holds it.
    """
    place = path / ".hf_vat.lock"
    if not path.is_dir():
        place = path.with_name(f".hf_vat-{sha256(path.name.encode()).hexdigest()[:16]}.lock")  # of any length of name
    lock = FileLock(place.absolute(), timeout=0, is_singleton=True)
    try:
        lock.acquire()
    except Timeout as error:
        raise InputError(f"{path} is being written by another process; {advice}.") from error
    try:
        yield
    finally:
        if lock.lock_counter == 1:  # while it is held: FileLock then takes no lock that another one is about to get
            with suppress(OSError):
                place.unlink()
        lock.release()
