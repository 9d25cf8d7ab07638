"""The exceptions for what a user can put right, and the checks that every border makes."""

import json
import operator
import re
from collections.abc import Iterable, Mapping, Set
from importlib import import_module
from math import inf, isfinite
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from hf_vat.models.words import PAIR, split_words

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class InputError(ValueError):
    """Something a user gave cannot be used: the message says what it was, what is allowed and what to do.

    The command lines print the message alone and exit with status 2; every other exception is a defect of the
    package and keeps its traceback.
    """


class MissingExtra(ImportError):
    """A package is missing that comes with an extra of ours; the message says how to install it."""


def import_extra(module: str, extra: str = "explain") -> ModuleType:
    """A module of a package that only some features need.

    Raises:
        MissingExtra: if it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"This needs {package}; run: pip install 'hf-vat[{extra}]'") from error


def check_texts(texts) -> list[Any]:
    """A list of texts, once for every function that takes texts.

    Returns:
        The texts as given; one that is already split into words, a list or tuple of them, as a tuple; a pair of texts as a
        dictionary of `text` and `text_pair`.

    Raises:
        InputError: if it is one string, or an entry is neither a text that can be encoded nor a list of visible words nor a
            pair of these, naming its position.
    """
    if isinstance(texts, Mapping):
        raise InputError(f"texts is the one pair {shown(texts)}; give a list of pairs, such as [pair].")
    if isinstance(texts, str):
        raise InputError(f"texts is the one string {texts!r}; give a list of texts, such as [text].")
    if not isinstance(texts, Iterable):
        raise InputError(f"texts is {texts!r}; give a list of texts, such as ['a good film'].")
    return [
        _check_pair(text, f"Text {position}") if isinstance(text, Mapping) else _check_one(text, f"Text {position}")
        for position, text in enumerate(texts)
    ]


def _check_pair(given: Mapping, name: str):
    if "text" not in given or not set(given) <= set(PAIR):
        raise InputError(
            f"{name} has the keys {', '.join(map(shown, given))}; a pair is a dictionary of text and text_pair, such as "
            "{'text': 'A man sleeps.', 'text_pair': 'A man is awake.'}."
        )
    checked = {key: _check_one(text, f"{name}, {key}") for key, text in given.items() if text is not None}
    return checked if "text_pair" in checked else checked["text"]


def _check_one(text, name: str):
    return _check_words(text, name) if isinstance(text, list | tuple) else _check_text(text, name)


def _check_text(text, name: str) -> str:
    if not isinstance(text, str):
        raise InputError(
            f"{name} is {text!r} of type {type(text).__name__}; every text must be a str, or a list of words that are "
            "str. Remove or convert it."
        )
    if LONE_SURROGATE.search(text):
        raise InputError(f"{name} contains half a character (a lone surrogate); correct it.")
    return str(text)  # NumPy has strings of its own


def _check_words(words, name: str) -> tuple[str, ...]:
    checked = tuple(_check_text(word, f"{name}, word {index}") for index, word in enumerate(words))
    for index, word in enumerate(checked):
        if word != word.strip() or not split_words(word):
            raise InputError(
                f"{name}, word {index} is {word!r}; a word must hold a visible character, and no white space at either end. "
                "Remove or strip it."
            )
    return checked


def check_list(name: str, values: Any) -> Any:
    """A list, tuple, array or whatever else has a length and an order.

    Raises:
        InputError: if it is none, such as a number, None, or a single string.
    """
    if (
        isinstance(values, str | bytes | Mapping | Set)
        or not hasattr(values, "__len__")
        or getattr(values, "ndim", 1) < 1
    ):
        raise InputError(f"{name} is {shown(values)}; give a list.")
    return values


def parse_json(text: str | bytes) -> Any:
    """What a text in JSON holds.

    Raises:
        ValueError: if it is none, or nested deeper than Python reads.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def check_path(name: str | PathLike) -> Path:
    """The path of a file or folder to read, with the home folder in the place of ~; it need not be there.

    Raises:
        InputError: if nothing can have that path: a loop of links, a name that is too long, a character that none has.
    """
    try:
        path = Path(name).expanduser()
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{shown(str(name))} is no path that can be read ({reason}); correct it.") from error
    return path


_SMALL = 10_000  # up to which both bounds of a range are told, whichever was missed
_MOST_SHOWN = 200  # characters of a value in a message


class Range(NamedTuple):
    """The numbers that an argument may have: from `least` to `most`.

    Attributes:
        whole: whether it must be a whole number, where the type of the argument does not say so.
        above: whether `least` itself is too small.
        below: whether `most` itself is too large.
        beside: a number outside that has a meaning of its own.
    """

    least: float
    most: float = inf
    whole: bool = False
    above: bool = False
    below: bool = False
    beside: float | None = None

    def checked(self, name: str, value: Any) -> float | int:
        """The number as one of Python.

        Raises:
            InputError: if it is none, not finite, or out of range.
        """
        number = _number(value, self.whole)
        if number is None or (isinstance(number, float) and not isfinite(number)):
            kind = "whole number" if self.whole else "finite number"
            raise InputError(f"{name} is {shown(value)}; it must be a {kind}, {self.told}.")
        if number == self.beside:
            return number
        beside = "" if self.beside is None else f", or {self.beside}"
        if number < self.least or (self.above and number == self.least):
            raise InputError(f"{name} is {shown(value)}; it must be {self._either or self._low}{beside}.")
        if number > self.most or (self.below and number == self.most):
            raise InputError(f"{name} is {shown(value)}; it must be {self._either or self._high}{beside}.")
        return number

    @property
    def _either(self) -> str:
        """Both bounds of a range that is small enough to be told so."""
        small = self.whole and self.most <= _SMALL and not (self.above or self.below)
        return f"from {_plain(self.least)} to {_plain(self.most)}" if small else ""

    @property
    def _low(self) -> str:
        return f"{'above' if self.above else 'at least'} {_plain(self.least)}"

    @property
    def _high(self) -> str:
        return f"{'below' if self.below else 'at most'} {_plain(self.most)}"

    @property
    def told(self) -> str:
        """Such as "at least 0", or "at least 0 and below 1"."""
        return self._low if self.most == inf else f"{self._low} and {self._high}"


def _number(value: Any, whole: bool) -> float | int | None:
    if isinstance(value, bool | str | bytes) or value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if whole:
        return number
    try:
        return float(value) if number is None or not isfinite(number) else number
    except (TypeError, ValueError, OverflowError):  # the last for an int that no float holds
        return None


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def shortened(text: str) -> str:
    """The beginning of a text, for a message."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def shown(value: Any) -> str:
    """A value as a message has it, shortened, without control characters."""
    try:
        return shortened(repr(value))
    except ValueError:  # an int of thousands of digits
        return f"a {type(value).__name__} that is too long to show"
