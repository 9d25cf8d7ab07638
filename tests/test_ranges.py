"""Numbers of arguments: bounds both ways, NaN and infinity, fractions, in every command and in Python."""

from dataclasses import fields
from importlib import import_module
from math import inf, nan

import numpy as np
import pytest
from huggingface_hub.errors import StrictDataclassError
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_vat.cli import parse_arguments
from hf_vat.commands import COMMANDS
from hf_vat.data import DataArguments
from hf_vat.errors import InputError, Range
from hf_vat.models import BertVATConfig, EncoderVATConfig, WordEncoderConfig
from hf_vat.models.configuration_vat import VATSettings
from hf_vat.models.setting import declared_settings
from hf_vat.ranges import RANGES, check_ranges
from hf_vat.training import ModelArguments, VATTrainingArguments

ARGUMENTS = {name: import_module(f"hf_vat.commands.{name}").ARGUMENTS for name in COMMANDS}
REQUIRED = {"model": "m", "methods": "lime", "output_dir": "out"}


def numbers(arguments: type) -> list:
    """The fields that hold numbers."""
    return [
        one
        for one in fields(arguments)
        if {"int", "float"} & set(str(one.type).replace("[", " ").replace("]", " ").split()) or one.type in (int, float)
    ]


def required(command: str) -> list[str]:
    given = [one.name for arguments in ARGUMENTS[command] for one in fields(arguments) if one.name in REQUIRED]
    return [word for name in given for word in (f"--{name}", REQUIRED[name])]


@pytest.mark.parametrize("command", COMMANDS)
def test_f53_f54_every_argument_that_is_a_number_has_bounds(command):
    names = {one.name for arguments in ARGUMENTS[command] for one in numbers(arguments)} - {"class_weights"}
    assert names <= set(RANGES), names - set(RANGES)
    assert all(one.least > -inf for one in RANGES.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_f53_f54_f55_a_command_refuses_numbers_out_of_bounds(command, capsys):
    for arguments in ARGUMENTS[command]:
        for one in numbers(arguments):
            allowed = RANGES.get(one.name, Range(0))
            outside = [
                allowed.least - 1,
                allowed.most + 1,
                *[allowed.least] * allowed.above,
                *[allowed.most] * allowed.below,
            ]
            for value in [*outside, "inf", "nan", "1e400", "0x1", "9" * 30]:
                value = "9" * 400 if value == inf else value if value != "9" * 30 or allowed.most < inf else "nan"
                whole = one.type is int or "int" in str(one.type)
                text = f"{value:.0f}" if isinstance(value, float) and whole else str(value)
                with pytest.raises((InputError, SystemExit)) as error:
                    parse_arguments(ARGUMENTS[command], "", [*required(command), f"--{one.name}", text])
                told = str(error.value) if error.type is InputError else capsys.readouterr().err
                assert one.name in told, (one.name, text)


@pytest.mark.parametrize("value", [nan, inf, -inf, "x", True, [1], 1.5, 10**400])
def test_f38_f53_nor_do_arguments_in_python(value):
    for make in (ModelArguments, DataArguments, lambda: VATTrainingArguments("out")):
        for one in numbers(type(make())):
            if one.name == "class_weights" or (value == 1.5 and "float" in str(one.type)):
                continue
            if value == [1] and "list" in str(one.type):
                continue
            arguments = make()
            setattr(arguments, one.name, value)
            with pytest.raises(InputError, match=f"--{one.name} is "):
                check_ranges(arguments)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"start_epochs": 1.5}, "--start_epochs is 1.5; it must be a whole number"),
        ({"start": "zzz"}, "--start is 'zzz'; choose one of finetune, joint"),
        ({"predict_from": "zzz"}, "--predict_from is 'zzz'"),
        ({"warmup_steps": nan}, "--warmup_steps is nan"),
        ({"logging_steps": inf}, "--logging_steps is inf"),
        ({"adam_beta1": -1}, "--adam_beta1 is -1; it must be at least 0"),
        ({"num_train_epochs": 1e300}, "--num_train_epochs is 1e.300; it must be at most 100000"),
        ({"seed": -1}, "--seed is -1"),
        ({"seed": 2**40}, "--seed is 1099511627776; it must be at most 4294967295"),
    ],
)
def test_f53_f54_training_arguments(arguments, named):
    with pytest.raises(InputError, match=named):
        VATTrainingArguments("out", **arguments)


@settings(max_examples=25)
@given(
    value=st.one_of(st.floats(), st.integers(), st.none(), st.text(max_size=3), st.booleans(), st.lists(st.integers()))
)
def test_f53_settings_of_models_take_finite_numbers_alone(value):
    for config, made in (
        (VATSettings, BertVATConfig),
        (VATSettings, EncoderVATConfig),
        (WordEncoderConfig, WordEncoderConfig),
    ):
        for name, one in declared_settings(config).items():
            if one.minimum is None:
                continue
            needed = {other: values[0] for other, values in (one.needs[0] if one.needs else {}).items()}
            try:
                made(**needed, **{name: value})
            except (ValueError, StrictDataclassError) as error:
                assert name in str(error) or "mask_token_id" in str(error)
            else:
                assert value is None or (one.minimum <= value <= one.maximum and value < inf)


@given(
    least=st.integers(-5, 5),
    size=st.integers(0, 5),
    value=st.one_of(
        st.floats(-12, 12),
        st.integers(-12, 12),
        st.sampled_from([nan, inf, None, "3", True, np.int64(3), np.float32(2.5)]),
    ),
    above=st.booleans(),
    below=st.booleans(),
    whole=st.booleans(),
)
def test_a_range_takes_what_is_in_it_and_nothing_else(least, size, value, above, below, whole):
    allowed = Range(least, least + size, whole, above, below)
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    number = number and not (whole and isinstance(value, float | np.floating))
    inside = number and least <= value <= least + size and not (above and value == least)
    inside = inside and not (below and value == least + size)
    if inside:
        assert allowed.checked("x", value) == value
        return
    with pytest.raises(InputError, match=r"^x is .*it must be"):
        allowed.checked("x", value)
