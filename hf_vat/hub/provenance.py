"""What a run was made from and how, told without the paths, names and tokens of the machine that it ran on."""

import os
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path

from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from transformers.utils import CONFIG_NAME

from hf_vat.data import PAPER_DATASETS, DataArguments

LOCAL = "(local)"
# Places, people and secrets. All other settings are told.
_PRIVATE = {
    *("output_dir", "run_name", "project", "trackio_space_id", "trackio_bucket_id", "trackio_static_space_id"),
    *("hub_token", "hub_model_id", "hub_revision", "push_to_hub", "resume_from_checkpoint", "local_rank"),
}
_FILES = {"train_file", "validation_file", "test_file", "data_dir"}
_HUB_OR_LOCAL = {"model_name_or_path", "dataset_name", "vectors"}


@dataclass(frozen=True)
class Origin:
    """Where a data set or a checkpoint comes from.

    Attributes:
        name: what to call it.
        hub_id, config, revision: where it is on the Hub, if it is there.
        local: whether it is a file or folder of the machine, which may be private.
    """

    name: str
    hub_id: str | None = None
    config: str | None = None
    revision: str | None = None
    local: bool = False

    @classmethod
    def of(cls, name: str, revision: str | None = None, config: str | None = None) -> "Origin":
        """The origin that a user named by a Hub id, by a path, or in words of their own."""
        if os.path.exists(os.path.expanduser(name)):
            return cls("local files", local=True)
        if hub_id(name):
            return cls(name, name, config, revision)
        return cls("local files", local=True) if _is_path(name) else cls(name, revision=revision)

    @classmethod
    def of_data(cls, args: DataArguments) -> "Origin":
        """The origin that a run's arguments name."""
        if args.paper_dataset is not None:
            known = PAPER_DATASETS[args.paper_dataset]
            if args.data_dir is not None:
                return cls(known.title, local=True)
            return cls(known.stand_in or known.title, known.hub_id, known.config_name, known.revision)
        if args.dataset_name is None:
            return cls("local files", local=True)
        return cls.of(args.dataset_name, args.dataset_revision, args.dataset_config_name)


def hub_id(name: str) -> bool:
    """Whether a name could be that of a repository on the Hub."""
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def loaded_commit(repo_id: str, revision: str | None) -> str | None:
    """The commit that a checkpoint was loaded from, as the cache of the Hub's files has it; nothing is asked."""
    path = try_to_load_from_cache(repo_id, CONFIG_NAME, revision=revision)
    return Path(path).parent.name if isinstance(path, str) else None


def non_default(arguments) -> dict[str, object]:
    """The settings of a dataclass of arguments that differ from its defaults, without what is private: places, people and
    secrets are left out, and `(local)` stands for files and folders."""
    found = {}
    for field in fields(arguments):
        value, default = _plain(getattr(arguments, field.name)), _plain(_default(field))
        if field.name in _PRIVATE or value == default or not (value or default):  # None, [] and "" all say: none
            continue
        if is_dataclass(value) and not isinstance(value, type):
            if value == type(value)():
                continue
            value = vars(value)
        found[field.name] = _told(field.name, value)
    return found


def _default(field: Field):
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _plain(value):
    return value.value if isinstance(value, Enum) else value


def _told(name: str, value):
    if isinstance(value, Mapping):
        return {key: _told(name, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_told(name, item) for item in value]
    if isinstance(value, os.PathLike) or name in _FILES:
        return LOCAL
    if not isinstance(value, str):
        return value
    if name in _HUB_OR_LOCAL:
        return LOCAL if Origin.of(value).local else value
    return LOCAL if _is_path(value) or Path(value).exists() else value


def _is_path(value: str) -> bool:
    return "/" in value or "\\" in value or value.startswith(("~", "."))
