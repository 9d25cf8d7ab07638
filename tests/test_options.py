"""The table of options that need others: all of them are in it or always have an effect, and each row refuses and accepts."""

from dataclasses import fields
from importlib import import_module

import pytest
from transformers import TrainingArguments

from hf_vat.cli import given_options, parse_arguments
from hf_vat.commands import COMMANDS
from hf_vat.data import DataArguments
from hf_vat.errors import InputError
from hf_vat.options import MODEL_OPTIONS, NEEDS, WORD_OPTIONS, refuse_without_effect, settings_of
from hf_vat.training import ModelArguments, VATTrainingArguments

ARGUMENTS = {name: import_module(f"hf_vat.commands.{name}").ARGUMENTS for name in COMMANDS}
REQUIRED = {
    "train": "--output_dir out --train_file a.csv",
    "explain": "--model m --test_file a.csv",
    "words": "--model m --test_file a.csv",
    "evaluate": "--model m --methods attention --test_file a.csv",
    "distill": "--model m --output_dir out --train_file a.csv",
    "probe": "--model m --output_dir out --test_file a.csv",
    "reproduce": "",
}
# Options that have an effect whatever the others are, or of which the data loader or the trainer says so itself.
DATA = {
    "dataset_name",
    "dataset_config_name",
    "dataset_revision",
    "paper_dataset",
    "data_dir",
    "streaming",
    "test_file",
}
DATA |= {"text_column", "label_column", "delimiter", "drop_empty", "max_eval_samples"}
DATA |= {"text_pair_column", "label_columns", "label_separator"}
ALWAYS = {
    "train": DATA
    | {"train_file", "validation_file", "class_names", "max_train_samples", "pooling", "bottleneck", "mask_type"}
    | {
        "max_length",
        "word_encoder",
        "card_texts",
        "card_license",
        "card_language",
        "num_train_epochs",
        "compressor_learning_rate",
    }
    | {"mask_beta_start", "mask_beta_end", "mask_beta_step_epochs", "logging_nan_inf_filter"}
    | {"ddp_find_unused_parameters", "class_weights", "lr_scheduler_type", "head_layers"}
    | {"word_objective", "problem_type", "window_length"},
    "explain": DATA
    | {"model", "text", "method", "settings", "batch_size", "show", "html", "json", "save_to"}
    | {"csv", "parquet", "target", "max_length"},
    "words": DATA | {"model", "method", "split", "min_count", "top", "output_dir"},
    "evaluate": DATA
    | {"model", "methods", "settings", "scorer", "ks", "shares", "operator", "confidence", "max_length"}
    | {"seeds", "batch_size", "output_dir"},
    "distill": DATA
    | {"model", "output_dir", "teacher", "settings", "student", "epochs", "learning_rate", "head_learning_rate"}
    | {"batch_size", "max_length", "seed", "bf16", "split", "attach", "train_file", "validation_file"},
    "probe": DATA | {"model", "output_dir", "other", "max_length", "batch_size", "seed", "train_file", "split_seed"},
    "reproduce": {"table", "output_dir", "results"},
}
WORDS = "--word_encoder lstm"
MASK = "--mask_type vmask"


def rows(refused: str, accepted: str | None, **values) -> dict[str, tuple[str, str | None]]:
    """For each of these options the command line, with this value of it, that is refused, and one that is accepted.

    Args:
        refused: other options, with which it has no effect.
        accepted: other options, with which it has one; None if it has none whatever they are.
    """
    options = {name: f"--{name} {value}" for name, value in values.items()}
    return {
        name: (f"{option} {refused}", None if accepted is None else f"{option} {accepted}")
        for name, option in options.items()
    }


READ = {
    **rows("--test_file a.parquet", "", encoding="latin-1"),
    **rows("", None, class_names="no yes", max_train_samples=5, validation_share=0.2, problem_type="regression"),
    **rows("", None, train_file="b.csv", validation_file="b.csv"),
    **rows("", "--max_eval_samples 5", split_seed=1),
}
# For each row of the table what is refused, and the same option where it has an effect (None: nowhere in this command).
CASES = {
    "train": {
        **rows(WORDS, "", model_name_or_path="here/bert", model_revision="v1"),
        **rows("--bottleneck none", "", predict_from="learner", compress_epochs=2, learn_epochs=2),
        **rows("--bottleneck none", "", cache_encoder_outputs="disk", preset="faithful"),
        **rows("", "--start_epochs 1", start="joint"),
        "start_epochs": ("--start_epochs 0 --bottleneck none", "--start_epochs 1"),
        **rows("--pooling max", "", attention_probe_size=8),
        **rows("", WORDS, word_preset="vat", min_count=1, vectors="nothere.txt", encoder_size=10),
        **rows("", WORDS, embedding_dropout=0, embedding_size=300),
        "word_dropout": ("--word_dropout 0.7", f"--word_dropout 0.2 {WORDS}"),
        **rows(WORDS, f"--vectors here.txt {WORDS}", extra_words=10),
        **rows(f"--mask_beta_start 0 --mask_beta_end 1 {MASK}", MASK, mask_beta=0.5),
        **rows("", "--mask_type none", freeze_embeddings=""),
        **rows("--lr_scheduler_type constant", "", warmup_steps=5),
        **rows("", "--weight_decay 0.1", weight_decay_on="layers"),
        **rows("--logging_strategy epoch", "", logging_steps=5),
        "eval_steps": ("--eval_steps 5", "--eval_steps 5 --eval_strategy steps --save_strategy steps --save_steps 5"),
        "save_steps": ("--save_steps 5", "--save_steps 5 --eval_strategy steps --save_strategy steps --eval_steps 5"),
        **rows("--eval_strategy no --load_best_model_at_end no", "", eval_delay=1, early_stopping_patience=2),
        **rows("", "--early_stopping_patience 2", early_stopping_threshold=0.1),
        **rows("--save_strategy no --load_best_model_at_end no", "", save_total_limit=2, save_only_model=""),
        **rows("--load_best_model_at_end no", "", metric_for_best_model="loss", greater_is_better=""),
        **rows("", "--report_to tensorboard", run_name="mine"),
        **rows("", "--report_to trackio", project="mine"),
        **rows("", "--dataloader_num_workers 1", dataloader_persistent_workers=""),
        **rows("", "--activation_checkpointing", activation_checkpointing_kwargs='{"use_reentrant":false}'),
        **rows("", "--gradient_checkpointing", gradient_checkpointing_kwargs='{"use_reentrant":false}'),
        **rows("", "--push_to_hub", hub_model_id="you/mine", hub_strategy="end", hub_revision="mine"),
        **rows("", "--push_to_hub", hub_private_repo="", hub_always_push=""),
        **rows("--train_file a.parquet", "", encoding="latin-1"),
        **rows("--validation_file b.csv", "", validation_share=0.2, split_seed=1),
        **rows("--card_texts 0", "", card_examples=2),
        **rows("", "--window_length 128", window_overlap=32),
    },
    "explain": {
        **READ,
        **rows("--method attention", "--method lime", seed=0),
        **rows("", "--save_to a.jsonl", merge=8),
        "shard": ("--shard 1/8 --merge 8 --save_to a.jsonl", "--shard 1/8 --save_to a.jsonl"),
    },
    "words": {
        **READ,
        **rows("", "--split train", train_file="b.csv"),
        **rows("", "--split validation", validation_file="b.csv"),
        **rows("", "--method shapley", seed=1),
        **rows("", "--method attention", batch_size=32),
        "settings": ("--settings n_samples=5", "--settings n_samples=5 --method lime"),
        "aggregate": ("--aggregate sum --method polarity", "--aggregate sum --method lime"),
        **rows("--method attention", "--method polarity", context="alone"),
        **rows("--output_dir out", "--output_dir out --method lime", shard="1/8", merge=8),
    },
    "evaluate": READ
    | rows("", "--methods attention lime", seed=1)
    | rows("", "--output_dir out", shard="1/8", merge=8),
    "distill": {
        **{name: lines for name, lines in READ.items() if name not in ("train_file", "validation_file")},
        "encoding": ("--encoding latin-1 --train_file a.parquet", "--encoding latin-1"),
        **rows("--student there", "", layers=2),
    },
    "probe": {name: lines for name, lines in READ.items() if name not in ("train_file", "split_seed")}
    | rows("", "--train_file b.csv", train_texts=50),
    "reproduce": {
        **rows("", "--encoders lstm,minilm", bf16=""),
        **rows("--results vmask.json", "", datasets="trec", encoders="cnn", seeds=2, add="trec/cnn/2", recipe="code"),
        **rows("--results vmask.json", "", systems="base,VMASK", data_dir="data", work_dir="runs/cells", jobs=2),
        **rows("--results vmask.json", "", max_train_samples=20, max_eval_samples=20, extend="vmask.json"),
    },
}
# Settings of a model that say themselves what they need: tests/models/test_settings.py.
DECLARED = {option for option, one in (MODEL_OPTIONS | WORD_OPTIONS).items() if one.needs}
ROWS = [(command, option) for command, options in CASES.items() for option in options]
OWN = {field.name for field in fields(VATTrainingArguments)} - {field.name for field in fields(TrainingArguments)}


def check(command: str, line: str) -> None:
    """As the command does before it loads anything."""
    argv = f"{REQUIRED[command]} {line}".split()
    defaults = getattr(import_module(f"hf_vat.commands.{command}"), "DEFAULTS", {})
    parsed = parse_arguments(ARGUMENTS[command], "", argv, **defaults)
    refuse_without_effect(command, given_options(ARGUMENTS[command], argv), settings_of(*parsed))


@pytest.mark.parametrize("command", NEEDS)
def test_f37_every_option_is_in_the_table_or_always_has_an_effect(command):
    """A new option has to be put into the one or the other."""
    ours = {
        field.name
        for arguments in ARGUMENTS[command]
        for field in fields(arguments)
        if arguments is not VATTrainingArguments or field.name in OWN
    }
    inherited = {field.name for field in fields(TrainingArguments)} if command == "train" else set()
    table = set(NEEDS[command])
    assert ours - table == ALWAYS[command] - inherited
    assert not table & ALWAYS[command] and table <= ours | inherited
    assert {need.setting for needs in NEEDS[command].values() for need in needs} <= ours | inherited | {None, "split"}
    assert set(CASES[command]) | (DECLARED if command == "train" else set()) == table


@pytest.mark.parametrize(("command", "option"), ROWS)
def test_f37_an_option_without_effect_is_refused_and_with_one_accepted(command, option):
    refused, accepted = CASES[command][option]
    with pytest.raises(InputError, match=f"^--{option} is .*, which is for .*leave it out") as error:
        check(command, refused)
    assert "\n" not in str(error.value)
    if accepted is not None:
        check(command, accepted)


def test_f37_settings_in_python_are_refused_too_and_one_set_of_phases_serves_several_models():
    model = ModelArguments(bottleneck="none", beta=0.5)
    settings = settings_of(model, DataArguments(), VATTrainingArguments("out", compress_epochs=1))
    with pytest.raises(InputError, match=r"--beta is 0\.5, which is for --bottleneck gaussian, but that is none"):
        refuse_without_effect("train", ["beta"], settings)


# Numbers that are none


def floats(arguments: type) -> list[str]:
    return [field.name for field in fields(arguments) if "float" in str(field.type)]


@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "1e999"])
@pytest.mark.parametrize("command", NEEDS)
def test_f38_no_option_takes_infinity_or_nan(command, number, capsys):
    names = [name for arguments in ARGUMENTS[command] for name in floats(arguments)]
    assert command in ("explain", "words", "probe", "reproduce") or len(names) > 2
    for name in names:
        with pytest.raises(SystemExit) as ended:
            parse_arguments(ARGUMENTS[command], "", [*REQUIRED[command].split(), f"--{name}", number])
        assert ended.value.code == 2
        assert name in capsys.readouterr().err
