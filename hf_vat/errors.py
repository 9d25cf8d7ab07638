"""The one exception for input that a user can put right, and the check that every border makes."""

import re

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class InputError(ValueError):
    """Something a user gave cannot be used: the message says what it was, what is allowed and what to do.

    The command lines print the message alone and exit with status 2; every other exception is a defect of the
    package and keeps its traceback.
    """


def check_texts(texts) -> list[str]:
    """A list of texts, once for every function that takes texts.

    Raises:
        InputError: if it is one string, or an entry is not a string that can be encoded, naming its position.
    """
    if isinstance(texts, str):
        raise InputError(f"texts is the one string {texts!r}; give a list of texts, such as [text].")
    texts = list(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"Text {position} is {text!r} of type {type(text).__name__}; every text must be a str. "
                "Remove or convert it."
            )
        if LONE_SURROGATE.search(text):
            raise InputError(f"Text {position} contains half a character (a lone surrogate); correct it.")
    return texts
