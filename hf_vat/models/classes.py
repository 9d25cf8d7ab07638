"""Classes as users give them: by id or by name."""

import operator
from collections.abc import Sequence


def class_names(config) -> list[str]:
    """The classes of a classifier with this configuration, in the order of their ids."""
    return [config.id2label[label] for label in range(config.num_labels)]


def class_id(label, names: Sequence[str]) -> int:
    """The id of a class that is given by id (a Python or NumPy integer) or by name.

    Args:
        names: the classes in the order of their ids.

    Raises:
        ValueError: if it is neither, listing the classes. True and False are no ids.
    """
    names = list(names)
    given = names.index(label) if isinstance(label, str) and names.count(label) == 1 else label
    try:
        given = -1 if isinstance(given, bool) else operator.index(given)
    except TypeError:
        given = -1
    if not 0 <= given < len(names):
        classes = ", ".join(f"{number} ({name})" for number, name in enumerate(names))
        raise ValueError(
            f"is {label!r}; give a class by its id, an integer, or by its name. The classes of the model are {classes}."
        )
    return given
