"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path


@contextmanager
def written_beside(path: str | PathLike) -> Iterator[Path]:
    """A file to write, which takes the place of `path` in the end, and none if there is an error."""
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
