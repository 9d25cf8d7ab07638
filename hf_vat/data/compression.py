"""Data files as they lie on the disk, compressed or not: what a name says that a file is, and how to read it."""

import bz2
import codecs
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, Any, BinaryIO, TextIO

import pyarrow as pa

from hf_vat.errors import InputError


def _open_zst(path: Path, mode: str) -> BinaryIO:
    return pa.CompressedInputStream(pa.OSFile(str(path), mode), "zstd")


_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": _open_zst}
COMPRESSED = (*_OPENERS, ".zip")
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def file_type(path: Path) -> str:
    """The suffix in lower case, such as ".csv", without that of a compression.

    Of reviews.zip, whose name does not say what is in it, it is the suffix of the one file there.
    """
    inner = _without_compression(path)
    if path.suffix.lower() == ".zip" and not PurePath(inner).suffix and path.is_file():
        with _opened_zip(path) as (_, member):
            inner = member
    return PurePath(inner).suffix.lower()


def file_stem(path: Path) -> str:
    """The name without the suffixes of type and compression."""
    return PurePath(_without_compression(path)).stem


def is_compressed(path: Path) -> bool:
    return path.suffix.lower() in COMPRESSED


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, decompressed while they are read.

    Raises:
        InputError: if an archive does not hold exactly one file, or needs a password.
    """
    if path.suffix.lower() == ".zip":
        with _opened_zip(path) as (archive, member):
            try:
                file = archive.open(member)
            except (RuntimeError, NotImplementedError) as error:  # a password; a method that Python does not know
                raise InputError(f"{path}: {error}. Unpack it, and give the file that is in it.") from error
            with file:
                yield file
    else:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            yield file


@contextmanager
def open_text(path: Path, encoding: str, newline: str) -> Iterator[TextIO]:
    with open_bytes(path) as file, io.TextIOWrapper(file, encoding, newline=newline) as text:
        yield text


def first_undecodable(path: Path, encoding: str) -> int | None:
    """The position of the first byte that cannot be decoded, counted from 0; None if it is the end that is missing.

    What reads by line and block does not know it.
    """
    decoder, start = codecs.getincrementaldecoder(encoding)(), 0
    with open_bytes(path) as file:
        for block in iter(lambda: file.read(2**16), b""):
            kept = len(decoder.getstate()[0])  # half a character
            try:
                decoder.decode(block)
            except UnicodeError as error:
                return start - kept + getattr(error, "start", 0)
            start += len(block)
    return None


def _without_compression(path: Path) -> str:
    return path.stem if is_compressed(path) else path.name


@contextmanager
def _opened_zip(path: Path) -> Iterator[tuple[zipfile.ZipFile, str]]:
    """The archive and the name of its one file, beside which macOS puts notes of its own."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise InputError(f"{path}: not a ZIP archive ({error}). Pack the file anew.") from error
    with archive:
        names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
        if len(names) != 1:
            raise InputError(
                f"{path}: the archive holds {', '.join(names[:5]) or 'no file'}{', …' if len(names) > 5 else ''}, but it must "
                "be one file. Unpack it, and give the file that you mean."
            )
        yield archive, names[0]
