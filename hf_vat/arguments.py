"""How an argument of a command line is declared."""

from dataclasses import MISSING, field
from typing import Any


def argument(default: Any = MISSING, help: str = "", **metadata) -> Any:
    """A field of a dataclass that [`~transformers.HfArgumentParser`] makes an option of.

    Args:
        default: the value where the option is not given; without one it has to be. A list is copied.
        metadata: what else `argparse` is told of the option, such as its `choices`.
    """
    metadata = {"help": help, **metadata}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)
