"""Files that tests write."""

from pathlib import Path

import pytest
from tables import save


@pytest.fixture
def write(tmp_path):
    """Write a file of text, of bytes, or of rows of text and label."""

    def write_file(name: str, content, encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str | bytes):
            return save(path, content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write_file
