"""The exceptions for what a user can put right, and the checks that every border makes."""

import re
from importlib import import_module
from types import ModuleType

from hf_vat.models.words import split_words

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


def check_texts(texts) -> list[str | tuple[str, ...]]:
    """A list of texts, once for every function that takes texts.

    Returns:
        The texts as given; one that is already split into words, a list or tuple of them, as a tuple.

    Raises:
        InputError: if it is one string, or an entry is neither a text that can be encoded nor a list of visible words,
            naming its position.
    """
    if isinstance(texts, str):
        raise InputError(f"texts is the one string {texts!r}; give a list of texts, such as [text].")
    return [
        _check_words(text, position) if isinstance(text, list | tuple) else _check_text(text, f"Text {position}")
        for position, text in enumerate(texts)
    ]


def _check_text(text, name: str) -> str:
    if not isinstance(text, str):
        raise InputError(
            f"{name} is {text!r} of type {type(text).__name__}; every text must be a str, or a list of words that are "
            "str. Remove or convert it."
        )
    if LONE_SURROGATE.search(text):
        raise InputError(f"{name} contains half a character (a lone surrogate); correct it.")
    return str(text)  # NumPy has strings of its own


def _check_words(words, position: int) -> tuple[str, ...]:
    checked = tuple(_check_text(word, f"Text {position}, word {index}") for index, word in enumerate(words))
    for index, word in enumerate(checked):
        if word != word.strip() or not split_words(word):
            raise InputError(
                f"Text {position}, word {index} is {word!r}; a word must hold a visible character, and no white space at either end. "
                "Remove or strip it."
            )
    return checked
