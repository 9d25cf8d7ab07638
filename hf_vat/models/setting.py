"""Settings of a model, each declared once: the field of its configuration says all that there is to know of it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from math import inf
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig


class Setting(NamedTuple):
    """A setting as its configuration declares it.

    Attributes:
        name, type, default: of the field.
        help: what it is, in a few words.
        needs: what it needs before it has an effect. Each need names settings with their values, of which one has to hold.
        minimum, maximum: the least and the most that a number may be.
        moves: whether training may write into it, so that a checkpoint may have another value than the run began with.
        option: its option on the command line; None if it has none.
    """

    name: str
    type: Any
    default: Any
    help: str
    needs: tuple[Mapping[str, tuple], ...] = ()
    minimum: float | None = None
    maximum: float = inf
    moves: bool = False
    option: str | None = None

    @property
    def choices(self) -> list | None:
        """The values that it may have, where these are listed."""
        return list(get_args(self.type)) if get_origin(self.type) is Literal else None

    @property
    def value_type(self) -> type:
        """The type of a value that is given: of `float | int` and `int | None` the first."""
        if self.choices is not None:
            return type(self.choices[0])
        return next(kind for kind in get_args(self.type) or [self.type] if kind is not NoneType)


def setting(default: Any, help: str, *, option: str | bool = True, **about) -> Any:
    """The field of a [`Setting`]; `option=True` gives it the name of the field, `False` none."""
    return field(default=default, metadata={"setting": {"help": help, "option": option, **about}})


def declared_settings(config_class: type) -> dict[str, Setting]:
    """The settings that a configuration declares or inherits, by name. A subclass may have other defaults."""
    found: dict[str, Setting] = {}
    for base in reversed(config_class.__mro__):
        for name, one in vars(base).get("__dataclass_fields__", {}).items():
            if "setting" in one.metadata:
                about = dict(one.metadata["setting"])
                option = about.pop("option")
                about["option"] = name if option is True else option or None
                found[name] = Setting(name, one.type, one.default, **about)
            elif name in found:
                found[name] = found[name]._replace(default=one.default)
    return found


class WithoutEffect(ValueError):
    """A setting that has no effect with the others.

    Args:
        setting: what was given.
        value: its value.
        need: what it needs.
        found: the value there, of the last setting in `need`.
    """

    def __init__(self, setting: Setting, value: Any, need: Mapping[str, tuple], found: Any):
        needed = " or ".join(f"{name}={' or '.join(map(repr, values))}" for name, values in need.items())
        *_, other = need
        super().__init__(
            f"{setting.name}={value!r} is for {needed}, but {other}={found!r}; leave it out, or change {other}."
        )
        self.setting, self.value, self.need, self.found = setting, value, need, found


def unmet_need(one: Setting, value_of: Callable[[str], Any]) -> Mapping[str, tuple] | None:
    """The first need of a setting that the values of the others do not meet."""
    return next((need for need in one.needs if not any(value_of(name) in need[name] for name in need)), None)


@strict
class ConfigWithSettings(PreTrainedConfig):
    """A configuration that refuses a [`Setting`] without effect, if it was asked for: given to the class or to
    `from_pretrained`, and not as its default. What a checkpoint holds is taken as it is."""

    @classmethod
    def from_dict(cls, config_dict, **kwargs):
        loaded = super().from_dict({**config_dict, "_loaded": True}, **kwargs)
        (loaded[0] if isinstance(loaded, tuple) else loaded)._refuse_without_effect(kwargs)
        return loaded

    def __post_init__(self, **kwargs):
        loaded = kwargs.pop("_loaded", False)
        super().__post_init__(**kwargs)
        if not loaded:
            self._refuse_without_effect(declared_settings(type(self)))

    def _refuse_without_effect(self, given: Collection[str]) -> None:
        for name, one in declared_settings(type(self)).items():
            value = getattr(self, name)
            if name in given and (tuple(value) if isinstance(value, list) else value) != one.default:
                need = unmet_need(one, lambda other: getattr(self, other))
                if need is not None:
                    raise WithoutEffect(one, value, need, getattr(self, [*need][-1]))

    def validate_ranges(self):
        """Class validator, run at construction.

        Raises:
            ValueError: naming the setting, its value and what is allowed.
        """
        for name, one in declared_settings(type(self)).items():
            value = getattr(self, name)
            if one.minimum is None or value is None or (one.minimum <= value <= one.maximum and value < inf):
                continue
            most = f" and at most {one.maximum}" if one.maximum < inf else " and finite" if value == inf else ""
            none = "" if one.default is not None else ", or None"
            raise ValueError(f"{name}={value} must be at least {one.minimum}{most}{none}.")


__all__ = ["ConfigWithSettings"]
