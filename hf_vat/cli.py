"""What every command line does the same way: strict parsing, errors a user can act on, a clean end."""

import errno
import gc
import logging
import math
import os
import sys
import warnings
from argparse import ArgumentDefaultsHelpFormatter, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from datasets import disable_progress_bars
from huggingface_hub.errors import StrictDataclassError
from tqdm.auto import tqdm
from transformers import HfArgumentParser
from transformers.hf_argparser import string_to_bool
from transformers.utils import logging as transformers_logging

from .errors import InputError, MissingExtra, parse_json, shown
from .explanations.methods import check_settings
from .pretrained import reason
from .ranges import check_ranges
from .report.terminal import clean
from .writing import claim, forget_claims


def parse_arguments(dataclasses: tuple[type, ...], description: str, argv: list[str] | None = None, **defaults):
    """Parse the command line into dataclasses; a setting that is unknown or out of range ends the process with 2.

    Args:
        dataclasses: argument classes for [`~transformers.HfArgumentParser`].
        description: first line of `--help`.
        argv: arguments; those of the process by default.
        defaults: values that differ from the dataclasses' own.

    Returns:
        One object for each dataclass.

    Raises:
        InputError: if a number is out of range; see [`hf_vat.ranges`].
    """
    parser = _parser(dataclasses, description)
    parser.set_defaults(**defaults)
    for word in sys.argv[1:] if argv is None else argv:
        if "\0" in word:
            parser.error(f"{word!r} has a NUL character, which no path and no name can have")
    try:
        *parsed, unknown = parser.parse_args_into_dataclasses(argv, return_remaining_strings=True)
    except Exception as error:  # the argument classes of others raise any kind
        parser.error(reason(error))
    if unknown:
        words = " ".join(word if word.isprintable() else repr(word) for word in unknown)
        parser.error(f"unknown arguments: {words}{_nearest(unknown, parser)}; --help lists what is allowed")
    _given.clear()
    _given.update((name, value) for one in parsed for name, value in vars(one).items() if isinstance(value, str))
    check_ranges(*parsed)
    return tuple(parsed)


def given_options(dataclasses: tuple[type, ...], argv: list[str] | None = None) -> set[str]:
    """The names of the options that a command line, which [`parse_arguments`] has taken, gives: also with default values."""
    parser = _parser(dataclasses, "")
    nothing = object()
    found = parser.parse_args(argv, Namespace(**{action.dest: nothing for action in parser._actions}))
    return {name for name, value in vars(found).items() if value is not nothing}


def _parser(dataclasses: tuple[Any, ...], description: str) -> HfArgumentParser:
    assert all(is_dataclass(cls) for cls in dataclasses)
    # Without allow_abbrev=False a misspelt option could be taken for the one it abbreviates. The usual usage lists every
    # option, two hundred lines above an error.
    usage = "%(prog)s [--option value ...]; --help lists the options"
    parser = HfArgumentParser(
        dataclasses, description=description, allow_abbrev=False, usage=usage, formatter_class=_HelpFormatter
    )
    for action in parser._actions:
        if action.type is string_to_bool:  # `bool | None` would refuse the bare flag that `bool` takes
            action.nargs, action.const = "?", True
        elif action.type in (int, float):
            action.type = _whole if action.type is int else _finite
    return parser


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # also of more digits than Python reads
        raise ArgumentTypeError(f"invalid int value: {shown(text)}") from None


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ArgumentTypeError(f"invalid float value: {shown(text)}") from None
    if not math.isfinite(number):
        raise ArgumentTypeError(f"{shown(text)} is no finite number")
    return number


def _nearest(unknown: list[str], parser: HfArgumentParser) -> str:
    """The options that unknown ones may stand for."""
    options = [option for action in parser._actions for option in action.option_strings]
    misspelt = [word.partition("=")[0] for word in unknown if word.startswith("--")]
    found = dict.fromkeys(nearest for name in misspelt for nearest in get_close_matches(name, options, 1))
    return f" (did you mean {', '.join(found)}?)" if found else ""


class _HelpFormatter(ArgumentDefaultsHelpFormatter, RawDescriptionHelpFormatter):
    """Default values, and the description's lines as they are written."""


_made: list[Path] = []  # folders that this command has made, the outermost first
_given: dict[str, str] = {}  # options of this command whose value may be a path


def run(main: Callable[[], None]) -> None:
    """Run a command and end the process: 0, 2 for input that cannot be used, 130 after Ctrl-C, 141 without a word if nobody reads
    what it prints any more, 1 for a diverged loss.

    Among the input that cannot be used are paths that the system refuses, and a disk that is full. These print their message
    alone; a command that ends with 2 takes the empty folders that it has made away again. Any other exception is a defect
    and keeps its traceback.
    """
    _made.clear()
    forget_claims()
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[_Lines()])
    logging.getLogger("httpx").setLevel(logging.WARNING)
    # Every new layer would be reported as missing in the checkpoint, which is what these commands are for.
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    disable_progress_bars()  # of datasets: one for each split
    code = 0
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*pin_memory.*")
            warnings.showwarning = _Sentences().show
            main()
        if not _is_read():
            code = _NOT_READ
    except BrokenPipeError:
        if _is_read("\n"):  # it is another pipe
            raise
        code = _NOT_READ
    except (InputError, MissingExtra, StrictDataclassError) as error:
        code = _report(error, 2)
        _remove_made_folders()
    except OSError as error:
        if not _is_of_the_system(error):
            raise
        place = "" if error.filename is None else f"{error.filename}: "
        code = _report(f"{place}{error.strerror}. What was done before is kept; mend that, or choose another place.", 2)
        _remove_made_folders()
    except FloatingPointError as error:
        code = _report(error, 1)
    except KeyboardInterrupt as error:
        code = _report(error if error.args else "stopped", 130)
    _leave_process_group(together=code == 0)
    sys.exit(code)


class _Lines(logging.StreamHandler):
    """Writes records above a progress bar, not into it; what they say of data cannot steer the terminal."""

    def emit(self, record):
        tqdm.write(clean(self.format(record)), file=sys.stderr)


class _Sentences:
    """Shows each warning once, without the file and line of code that it came from."""

    def __init__(self):
        self.shown: set[str] = set()

    def show(self, message, *place, **options) -> None:
        text = clean(str(message))
        if text not in self.shown:
            self.shown.add(text)
            tqdm.write(f"warning: {text}", file=sys.stderr)


def method_settings(methods: list[str], settings: list[str]) -> dict[str, dict]:
    """Explanation methods with their settings, from words such as `lime.n_samples=500`.

    Raises:
        InputError: if a method is named twice, or a word is none of a method's settings.
    """
    if len(set(methods)) < len(methods):
        raise InputError(f"A method is named twice: {' '.join(methods)}.")
    parsed: dict[str, dict] = {method: {} for method in methods}
    for setting in settings:
        name, _, value = setting.partition("=")
        method, _, key = name.partition(".")
        if method not in parsed or not key or not value:
            raise InputError(
                f"The setting {setting!r} is not understood; write METHOD.NAME=VALUE with one of the methods "
                f"{', '.join(methods)}, for example lime.n_samples=500."
            )
        try:
            parsed[method][key] = parse_json(value)
        except ValueError:
            parsed[method][key] = value
    for method, given in parsed.items():  # or `seed` would be taken for the argument of `explain`
        check_settings(method, **given)
    return parsed


def settings_of_method(method: str, settings: list[str]) -> dict:
    """The settings of one method, from words such as `n_samples=500`, or `lime.n_samples=500`; see [`method_settings`]."""
    prefix = f"{method}."
    return method_settings([method], [prefix + one.removeprefix(prefix) for one in settings])[method]


def output_folder(option: str, name: str, files: Iterable[str] = ()) -> Path:
    """A folder that will be written to later; it is made now, so that no result is lost for want of it. If the command then
    ends with 2, [`run`] removes it again.

    Args:
        files: names of the files that the command will write there with [`~hf_vat.writing.written_beside`]; see [`output_file`].

    Raises:
        InputError: if it cannot be a folder, or one of the files is not ours to write.
    """
    if not name:
        raise InputError(f"{option} is empty; give a folder, such as '.' for the one you are in.")
    _make_folder(option, name, Path(name))
    for file in files:
        _claim_file(option, name, Path(name, file))
    return Path(name)


def output_file(option: str, name: str, goes_on: bool = False) -> Path:
    """A file that will be written later; its folder is made now, see [`output_folder`].

    Args:
        goes_on: whether the file is one that an interrupted command goes on from, and knows again by itself; any other that
            is there has to be as a command has written it.

    Raises:
        InputError: if it cannot be a file, is another option's too, or holds something of someone else's.
    """
    if not name:
        raise InputError(f"{option} is empty; give a file.")
    path = Path(name)
    _make_folder(option, name, path.parent)
    if path.is_dir():
        raise InputError(f"{option} {name} is a folder; give a file.")
    _claim_file(option, name, path, goes_on)
    return path


def _claim_file(option: str, name: str, path: Path, goes_on: bool = False) -> None:
    for other, value in _given.items():
        if f"--{other}" != option and _is_same(path, value):
            raise InputError(f"{option} {name} would write {path}, which is --{other} {value}; choose another place.")
    if not goes_on:
        claim(path, f"{option} {name}")


def _is_same(path: Path, value: str) -> bool:
    try:
        return os.path.samefile(path, Path(value).expanduser())
    except FileNotFoundError:
        return path.absolute() == Path(value).absolute()
    except OSError:  # which is no path
        return False


def _is_of_the_system(error: OSError) -> bool:
    """Whether an error is the disk's or a path's, and none within the package or what it builds on."""
    if isinstance(error, ConnectionError | TimeoutError) or error.errno is None or error.errno == errno.EPIPE:
        return False
    if error.filename is None:
        return error.errno in _OF_DISKS
    installed = [Path(__file__).parent, Path(sys.prefix)]
    return not any(Path(os.fsdecode(error.filename)).absolute().is_relative_to(folder) for folder in installed)


_OF_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


def in_colour() -> bool:
    """Whether the output is a terminal whose user has not asked for none (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _make_folder(option: str, name: str, folder: Path) -> None:
    try:
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{option} {name}: the folder cannot be made ({error}); choose another.") from error
    _made.extend(reversed(missing))


def _remove_made_folders() -> None:
    for folder in reversed(_made):
        with suppress(OSError):  # it holds something, or another process has removed it
            folder.rmdir()


_NOT_READ = 141  # as the shell has it of a program that SIGPIPE ends


def _is_read(more: str = "") -> bool:
    """Whether the output, with something more, goes somewhere; if not, what is still to be printed goes nowhere."""
    try:
        print(more, end="", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def _report(error: object, code: int) -> int:
    print(clean(f"\nerror: {error}" if code != 130 else f"\n{error}"), file=sys.stderr, flush=True)
    return code


def _leave_process_group(together: bool) -> None:
    """Gloo processes that exit while a peer still runs, or with a wrapped model alive, sometimes abort."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        gc.collect()
        if together:  # after an error the peers may never come
            with suppress(RuntimeError):  # nor after theirs, which they have told
                torch.distributed.barrier()
        torch.distributed.destroy_process_group()
