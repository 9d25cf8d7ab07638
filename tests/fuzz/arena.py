"""Where generated input is tried: tiny models and tables, and the commands in this process."""

import contextlib
import io
import os
import shutil
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings

from hf_vat import commands

# How often as many examples as in `make test`: `make fuzz` sets it, and with HF_VAT_FUZZ_SEED another generator than always.
TIMES = int(os.environ.get("HF_VAT_FUZZ", "1"))
SECONDS = 60  # of computing, for one example
TRIED: Counter[str] = Counter()


def examples(number: int) -> settings:
    return settings(max_examples=number * TIMES, deadline=None, database=None, derandomize=True, print_blob=True)


class Ended(NamedTuple):
    """How a command ended, and what it wrote to the terminal."""

    code: int
    out: str
    err: str


def run(*argv: str) -> Ended:
    """Run a command; an exception that is none of its ends comes out, also after 60 seconds of computing."""
    TRIED[argv[0]] += 1
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["hf-vat", *argv]
    try:
        with (
            at_most(SECONDS),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            commands.main()
        code = 0
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.argv = before
    return Ended(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Ends what computes for longer; waiting for other processes does not count."""

    def stop(*_):
        raise TimeoutError(f"more than {seconds} seconds of computing")

    handler = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)


def check(ended: Ended) -> None:
    """A command has ended well, or with a short sentence on what is wrong; a diverged loss ends with 1."""
    assert "Traceback" not in ended.out + ended.err
    told = [line for line in ended.err.splitlines() if "error: " in line]
    if ended.code == 0:
        return
    assert ended.code == 2 or (ended.code == 1 and "not finite" in ended.err), ended
    assert told and ended.err.rstrip().endswith(told[-1]) and len(told[-1]) < 1500, ended.err[-2000:]
    message = told[-1].split("error: ", 1)[1]
    assert len(message.split()) > 2, message


class Arena:
    """A folder with what commands read, which stays as it is, and an empty one for what they write."""

    def __init__(self, folder: Path):
        self.inputs, self.out = folder / "inputs", folder / "out"
        self.inputs.mkdir(parents=True)
        self._before: dict[Path, tuple] = {}

    def sealed(self) -> "Arena":
        self._before = self._stamps()
        return self

    @contextlib.contextmanager
    def round(self) -> Iterator[Path]:
        """An empty folder to write into; at the end nothing that was there before is another."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        before = os.getcwd()
        os.chdir(self.out)
        try:
            yield self.out
        finally:
            os.chdir(before)
        assert self._stamps() == self._before, "an input was written over"

    def _stamps(self) -> dict[Path, tuple]:
        stats = {path: path.lstat() for path in self.inputs.rglob("*")}
        return {path: (one.st_mtime_ns, one.st_size, one.st_ino) for path, one in stats.items() if not path.is_dir()}
