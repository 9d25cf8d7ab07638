"""Which option of a command needs which other before it has an effect: one table, and the check that reads it."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .errors import InputError, check_path
from .explanations import METHODS
from .models import WordEncoderConfig
from .models.configuration_vat import VATSettings
from .models.setting import WithoutEffect, declared_settings

# Settings of a model and of a word encoder that are options, by the name of the option.
MODEL_OPTIONS, WORD_OPTIONS = (
    {one.option: one for one in declared_settings(config).values() if one.option is not None}
    for config in (VATSettings, WordEncoderConfig)
)
# Settings that others need and a model's checkpoint may decide, so that "not given" is not known before it is loaded.
OF_MODEL = {name for one in MODEL_OPTIONS.values() for need in one.needs for name in need} - {"mask_type"}


_OPTION = {one.name: option for option, one in WORD_OPTIONS.items()}  # where it has another name


class Need(NamedTuple):
    """What an option needs before it has an effect.

    Attributes:
        setting: the other setting; None if there is nothing that could be set here.
        told: what it must be.
        met: whether it is, by all settings of the command.
    """

    setting: str | None
    told: str
    met: Callable[[Mapping[str, Any]], bool]


def _one_of(setting: str, *values) -> Need:
    return _any_of({setting: values})


def _any_of(need: Mapping[str, tuple]) -> Need:
    """A need as settings of models declare it; see [`Setting`]."""
    *_, last = options = {_OPTION.get(name, name): values for name, values in need.items()}
    told = " or ".join(f"--{name} {' or '.join(map(str, values))}" for name, values in options.items())
    return Need(last, told, lambda settings: any(settings[name] in values for name, values in options.items()))


def _other_than(setting: str, value: str) -> Need:
    return Need(setting, f"another --{setting} than {value}", lambda settings: settings[setting] != value)


def _given(setting: str) -> Need:
    """The setting is given, and not as 0 or False, which leave out what it is about."""
    return Need(setting, f"--{setting}", lambda settings: bool(settings[setting]))


def _without(setting: str) -> Need:
    return Need(setting, f"commands without --{setting}", lambda settings: settings[setting] is None)


def _never(told: str) -> Need:
    return Need(None, told, lambda settings: False)


def _unless_read(file: str) -> Need:
    """A file is not read beside one that comes first, unless its split is asked for."""
    return Need(
        file, f"commands without --{file}", lambda settings: not settings[file] or settings.get("split") is not None
    )


def _holds_text(settings: Mapping) -> bool:
    files = [settings[f"{split}_file"] for split in ("train", "validation", "test") if settings[f"{split}_file"]]
    name = settings["dataset_name"]
    return any(Path(file).suffix not in (".parquet", ".xlsx") for file in files) or (
        name is not None and check_path(name).is_dir()
    )


def _encoders_of(settings: Mapping) -> list[str]:
    added = [one.split("/")[1] for one in (settings["add"] or "").split(",") if one.count("/") > 1]
    return [*(settings["encoders"] or "lstm").split(","), *added]


def _draws_rows(settings: Mapping) -> bool:
    sampled = settings["max_train_samples"] or settings["max_eval_samples"]
    held_out = settings["validation_share"] and not settings["validation_file"] and not settings["streaming"]
    return bool(settings["paper_dataset"] or sampled or held_out)


_WORD_ENCODERS = ("lstm", "cnn", "dp", "dp-l", "dp-a", "ad")
_VAT, _WORDS = _one_of("bottleneck", "gaussian"), _given("word_encoder")
_DRAWING = [name for name, method in METHODS.items() if method.draws]
_EVALUATION = Need(
    "eval_strategy", "--eval_strategy steps or epoch", lambda settings: settings["eval_strategy"] != "no"
)
_SAVING = Need(
    "save_strategy", "--save_strategy steps, epoch or best", lambda settings: settings["save_strategy"] != "no"
)
_BEST = Need(
    "load_best_model_at_end",
    "--load_best_model_at_end, --early_stopping_patience, --save_strategy best or a schedule that follows a metric",
    lambda settings: (
        settings["load_best_model_at_end"]
        or settings["early_stopping_patience"] is not None
        or settings["save_strategy"] == "best"
        or settings["lr_scheduler_type"] in ("reduce_lr_on_plateau", "greedy")
    ),
)
_EXPLAINS = [_other_than("method", "mask"), _other_than("method", "polarity")]
_TEXT_FILE = Need("dataset_name", "local files other than .parquet and .xlsx", _holds_text)
_READ = {
    "encoding": [_TEXT_FILE],
    "class_names": [_never("hf-vat train; a trained model has its own class names")],
    "problem_type": [_never("hf-vat train; a trained model knows what it is asked")],
    "max_train_samples": [_never("hf-vat train; here --max_eval_samples says how many rows are read")],
    "validation_share": [_never("hf-vat train, as nothing is held out here")],
    "split_seed": [
        Need(
            "max_eval_samples",
            "--max_eval_samples or --paper_dataset",
            lambda settings: bool(settings["max_eval_samples"] or settings["paper_dataset"]),
        )
    ],
    "train_file": [_unless_read("test_file")],
    "validation_file": [_unless_read("train_file"), _unless_read("test_file")],
}

# Command: option: what it needs. An option that is not here always has an effect.
NEEDS: dict[str, dict[str, list[Need]]] = {
    "train": {
        "model_name_or_path": [_without("word_encoder")],
        "model_revision": [
            _without("word_encoder"),
            Need(
                "model_name_or_path",
                "checkpoints on the Hub",
                lambda settings: not check_path(settings["model_name_or_path"]).is_dir(),
            ),
        ],
        **{option: [*map(_any_of, one.needs)] for option, one in MODEL_OPTIONS.items() if one.needs},
        **{
            name: [_VAT]
            for name in ("predict_from", "start_epochs", "compress_epochs", "learn_epochs", "cache_encoder_outputs")
        },
        "start": [_VAT, _given("start_epochs")],
        "preset": [_VAT, _without("word_encoder"), _without("mask_type")],
        "attention_probe_size": [_one_of("pooling", "attention")],
        **{name: [_WORDS] for name in ("word_preset", "min_count", "vectors")},
        **{
            option: [*map(_any_of, one.needs), _WORDS]
            for option, one in WORD_OPTIONS.items()
            if option != "word_encoder"
        },
        "extra_words": [_WORDS, _given("vectors")],
        "embedding_size": [_WORDS, _without("vectors")],
        "mask_beta": [*map(_any_of, MODEL_OPTIONS["mask_beta"].needs), _without("mask_beta_start")],
        "freeze_embeddings": [_one_of("mask_type", "vmask", "l2x", "iba", "none")],
        "warmup_steps": [_other_than("lr_scheduler_type", "constant")],
        "weight_decay_on": [_given("weight_decay")],
        "logging_steps": [_one_of("logging_strategy", "steps")],
        "eval_steps": [_one_of("eval_strategy", "steps")],
        "save_steps": [_one_of("save_strategy", "steps")],
        **{name: [_EVALUATION] for name in ("eval_delay", "early_stopping_patience")},
        "early_stopping_threshold": [_given("early_stopping_patience")],
        **{name: [_SAVING] for name in ("save_total_limit", "save_only_model")},
        **{name: [_BEST] for name in ("metric_for_best_model", "greater_is_better")},
        **{name: [_given("report_to")] for name in ("run_name", "project")},
        "dataloader_persistent_workers": [_given("dataloader_num_workers")],
        "activation_checkpointing_kwargs": [_given("activation_checkpointing")],
        "gradient_checkpointing_kwargs": [_given("gradient_checkpointing")],
        **{
            name: [_given("push_to_hub")]
            for name in ("hub_model_id", "hub_strategy", "hub_private_repo", "hub_always_push", "hub_revision")
        },
        "encoding": [_TEXT_FILE],
        "validation_share": [_without("validation_file")],
        "split_seed": [
            Need(
                "max_train_samples",
                "rows that are drawn: held out for validation, or by --max_train_samples",
                _draws_rows,
            )
        ],
        "card_examples": [_given("card_texts")],
        "window_overlap": [_given("window_length")],
    },
    "explain": {
        **_READ,
        "seed": [_one_of("method", *_DRAWING)],
        "shard": [_given("save_to"), _without("merge")],
        "merge": [_given("save_to")],
    },
    "words": {
        **_READ,
        "seed": [_one_of("method", *_DRAWING)],
        **dict.fromkeys(("settings", "aggregate"), _EXPLAINS),
        "shard": [*_EXPLAINS, _given("output_dir"), _without("merge")],
        "merge": [*_EXPLAINS, _given("output_dir")],
        "batch_size": [_other_than("method", "mask")],
        "context": [_one_of("method", "polarity")],
    },
    "evaluate": {
        **_READ,
        "shard": [_given("output_dir"), _without("merge")],
        "merge": [_given("output_dir")],
        "seed": [
            Need(
                "methods",
                f"--methods with one of {', '.join(_DRAWING)}",
                lambda settings: any(name in _DRAWING for name in settings["methods"]),
            )
        ],
    },
    "distill": {
        **{option: needs for option, needs in _READ.items() if option not in ("train_file", "validation_file")},
        "layers": [_without("student")],
    },
    "probe": {
        **{option: needs for option, needs in _READ.items() if option not in ("train_file", "split_seed")},
        "train_texts": [
            Need(
                "train_file",
                "--train_file, --dataset_name or --paper_dataset",
                lambda settings: any(settings[name] for name in ("train_file", "dataset_name", "paper_dataset")),
            )
        ],
    },
    "reproduce": {
        "bf16": [
            Need(
                "encoders",
                "pretrained encoders, as word encoders stay in float32",
                lambda settings: any(word not in _WORD_ENCODERS for word in _encoders_of(settings)),
            )
        ],
        **{
            name: [_without("results")]
            for name in (
                *("datasets", "encoders", "seeds", "add", "recipe", "systems", "data_dir", "work_dir", "jobs"),
                *("max_train_samples", "max_eval_samples", "extend"),
            )
        },
    },
}


def settings_of(*arguments) -> dict[str, Any]:
    """All settings of a command by name, from its dataclasses."""
    return {name: value for of_one in arguments for name, value in vars(of_one).items()}


def has_effect(command: str, option: str, settings: Mapping[str, Any]) -> bool:
    """Whether an option has an effect beside all settings of the command."""
    return all(need.met(settings) for need in NEEDS[command].get(option, ()))


def refuse_without_effect(command: str, given: Collection[str], settings: Mapping[str, Any]) -> None:
    """Refuse options that were given and would be ignored.

    Args:
        command: a key of `NEEDS`.
        given: names of the options that were given.
        settings: all settings; what the model decides may be None, and is then not looked at.

    Raises:
        InputError: naming the option, its value and what it needs.
    """
    for name in given:
        for need in NEEDS[command].get(name, ()):
            found = None if need.setting is None else settings.get(need.setting)
            if (need.setting in OF_MODEL and found is None) or need.met(settings):
                continue
            raise _refusal(name, settings[name], need, found)


def as_option(error: WithoutEffect) -> InputError:
    """What a configuration has refused, in the words of the command line."""
    return _refusal(error.setting.option or error.setting.name, error.value, _any_of(error.need), error.found)


def _refusal(name: str, value: object, need: Need, found: object) -> InputError:
    but, change = "", ""
    if need.setting is not None:
        but = ", but none is given" if found in (None, False, []) else f", but that is {_told(found)}"
        change = f", or change --{need.setting}"
    return InputError(f"--{name} is {_told(value)}, which is for {need.told}{but}; leave it out{change}.")


def _told(value) -> str:
    words = map(str, value) if isinstance(value, list) else [str(getattr(value, "value", value))]
    return " ".join(word for one in words for word in one.split())  # of which one may have several lines
