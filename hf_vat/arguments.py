"""How an argument of a command line is declared."""

from dataclasses import field
from typing import Any


def argument(default: Any, help: str, **metadata) -> Any:
    """A field of a dataclass that [`~transformers.HfArgumentParser`] makes an option of.

    Args:
        metadata: what else `argparse` is told of the option, such as its `choices`.
    """
    return field(default=default, metadata={"help": help, **metadata})
