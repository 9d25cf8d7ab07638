"""Files that are written whole or not at all, by one process at a time, and never over those of others."""

import os
import re
import threading
from pathlib import Path

import pytest

import hf_vat
from hf_vat.errors import InputError
from hf_vat.writing import RECORD_NAME, claim, forget_claims, locked, write_text, written_beside


@pytest.fixture(autouse=True)
def no_claims():
    forget_claims()
    yield
    forget_claims()


def test_f47_an_error_leaves_what_was_there_and_nothing_beside_it(tmp_path):
    path = tmp_path / "result.json"
    write_text(path, "earlier")
    with pytest.raises(ZeroDivisionError), written_beside(path) as partial:
        partial.write_text("half of")
        raise ZeroDivisionError
    assert path.read_text() == "earlier" and list(tmp_path.iterdir()) == [path]


def test_f47_an_error_of_the_system_names_the_file_and_not_the_partial_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no/result\.json"):
        write_text(tmp_path / "no" / "result.json", "text")


def test_f49_two_that_write_the_same_file_at_once_do_not_mix(tmp_path):
    path = tmp_path / "result.json"
    with written_beside(path) as first, written_beside(path) as second:
        first.write_text("first")
        second.write_text("second")
        assert first != second
    assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("length", [1, 200, 255])
def test_f47_a_name_of_any_length_that_the_system_takes(tmp_path, length):
    path = tmp_path / ("n" * length)
    claim(path, "--json n")
    write_text(path, "text")
    with locked(path, "wait"):
        assert path.read_text() == "text"


def test_f47_everything_is_written_beside():
    """In all of the package: whatever opens a file to write has a name for it that says that it is moved in the end."""
    writing = re.compile(r"([\w)]+)\.(?:write_text|write_bytes)\(|open\((\S+?), [\"'][wx]|savefig\((\w+),")
    found = {}
    for path in Path(hf_vat.__file__).parent.rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            for match in writing.finditer(line):
                target = next(group for group in match.groups() if group)
                if target != "partial":
                    found.setdefault(path.name, []).append(target)
    # Within a checkpoint, which is moved as a whole; and a string.
    assert found == {"checkpoints.py": ["manifest"], "resume.py": ["path"], "figures.py": ["svg"]}


# Whose a file is


def test_f50_a_file_is_replaced_as_long_as_it_is_as_it_was_written(tmp_path):
    path = tmp_path / "words.csv"
    for text in ("one", "two", "three"):
        forget_claims()
        claim(path, "--output_dir .")
        write_text(path, text)
    assert path.read_text() == "three" and (tmp_path / RECORD_NAME).is_file()
    path.write_text("edited by someone")
    forget_claims()
    with pytest.raises(InputError, match=r"--output_dir \.: .*words.csv is there already.*is left as it is"):
        claim(path, "--output_dir .")
    assert path.read_text() == "edited by someone"


def test_f50_a_file_of_someone_else_is_not_ours(tmp_path):
    write_text(tmp_path / "by-the-library.csv", "text")  # without a claim: no command wrote it
    (tmp_path / "theirs.csv").write_text("text")
    for name in ("by-the-library.csv", "theirs.csv"):
        with pytest.raises(InputError, match="is there already"):
            claim(tmp_path / name, "--csv")
    (tmp_path / "empty.csv").touch()
    claim(tmp_path / "empty.csv", "--csv")  # there is nothing to lose


@pytest.mark.parametrize("replaced", [False, True])
def test_f50_a_process_that_is_killed_while_it_replaces_a_file_does_not_lose_it(tmp_path, monkeypatch, replaced):
    """The new content is noted before the file is replaced, and the old one stays noted."""
    path = tmp_path / "words.csv"
    claim(path, "--output_dir .")
    write_text(path, "old")
    really = os.replace

    def killed(source, target):
        if Path(target) != path or replaced:
            really(source, target)
        if Path(target) == path:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    monkeypatch.undo()
    forget_claims()
    claim(path, "--output_dir .")
    assert path.read_text() == ("new" if replaced else "old")


@pytest.mark.parametrize("leads_to", ["there.csv", "nowhere.csv", "link"])
def test_f50_a_link_is_not_replaced(tmp_path, leads_to):
    """To a file, to none, or to itself."""
    (tmp_path / "there.csv").write_text("ours or not")
    (tmp_path / "link").symlink_to(tmp_path / leads_to)
    with pytest.raises(InputError, match="link is a link, which a file would take the place of"):
        claim(tmp_path / "link", "--csv")


def test_f51_a_device_is_no_file_to_write(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no regular file"):
        claim(tmp_path / "pipe", "--html")
    assert (tmp_path / "pipe").is_fifo()


# Locks


@pytest.mark.parametrize("kind", ["file", "new file", "folder"])
def test_f49_one_at_a_time(tmp_path, kind):
    path = tmp_path / "it"
    path.touch() if kind == "file" else path.mkdir() if kind == "folder" else None
    found = []

    def other():
        try:
            with locked(path, "wait until it has ended"):
                found.append("got it")
        except InputError as error:
            found.append(str(error))

    with locked(path, "wait"), locked(path, "wait"):
        for _ in range(2):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
    other()
    assert found == [f"{path} is being written by another process; wait until it has ended."] * 2 + ["got it"]
    assert [one.name for one in tmp_path.rglob("*")] == ([] if kind == "new file" else ["it"])
