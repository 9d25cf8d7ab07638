"""Settings of a model: one declaration, from which refusals in Python and on the command line follow; and the table of phases."""

import json
import re
from pathlib import Path

import pytest

from hf_vat.cli import parse_arguments
from hf_vat.commands.train import ARGUMENTS, DEFAULTS
from hf_vat.errors import InputError
from hf_vat.models import BertVATConfig, BertVMaskConfig, EncoderVMaskConfig, WordEncoderConfig
from hf_vat.models.configuration_vat import VATSettings
from hf_vat.models.phases import PHASES
from hf_vat.models.setting import WithoutEffect, declared_settings
from hf_vat.options import refuse_without_effect, settings_of

DOCS = Path(__file__).parents[2] / "docs"
WITH_NEEDS = [
    (config_class, one.name)
    for config_class in (BertVATConfig, WordEncoderConfig)
    for one in declared_settings(config_class).values()
    if one.needs
]
NOT_LISTED = {
    "attention_size": 8,
    "latent_size": 8,
    "mask_hidden_size": 8,
    "num_layers": 2,
    "mask_k": 3,
    "bidirectional": True,
}
NOT_LISTED |= {"beta": 0.5, "mask_beta": 0.5, "mask_temperature": 2.0, "kernel_sizes": [2, 4]}
NOT_LISTED |= {"attention_scale": 10.0, "attention_init_std": 1.0, "polarity_head": True, "vw_weight": 0.1}
NOT_LISTED |= {"word_weight": 0.5, "mlm_probability": 0.3, "mask_token_id": 4}


def cases(config_class, name):
    """A value that is not the default, settings that meet all needs, and for each need settings that miss it alone."""
    settings = declared_settings(config_class)
    one = settings[name]
    value = NOT_LISTED[name] if one.choices is None else next(v for v in one.choices if v != one.default)
    met, missed = {}, []
    for number, need in enumerate(one.needs):
        found = {}
        for other, allowed in need.items():
            found[other] = next(
                choice
                for choice in settings[other].choices
                if choice not in allowed and all(choice in before.get(other, [choice]) for before in one.needs[:number])
            )
        missed.append(met | found)
        other, allowed = next(iter(need.items()))
        met = met | {other: allowed[0]}
    return value, met, missed


@pytest.mark.parametrize(("config_class", "name"), WITH_NEEDS)
def test_f37_a_setting_without_effect_is_refused_by_the_configuration(config_class, name, tmp_path):
    value, met, missed = cases(config_class, name)
    hides = {"mask_token_id": 4} if met.get("word_objective") == "mlm" else {}
    assert getattr(config_class(**{**met, **hides, name: value}), name) == value
    for need, settings in zip(declared_settings(config_class)[name].needs, missed, strict=True):
        sentence = f"^{name}={re.escape(repr(value))} is for {next(iter(need))}=.*; leave it out, or change "
        with pytest.raises(WithoutEffect, match=sentence):
            config_class(**settings, **{name: value})
        if settings.get("pooling", "attention") != "attention":
            settings |= {"bottleneck": "none"}
        without = config_class(**settings)
        without.save_pretrained(tmp_path)
        with pytest.raises(WithoutEffect, match=sentence):
            config_class.from_pretrained(tmp_path, **{name: value})
        assert config_class.from_pretrained(tmp_path, **{name: getattr(without, name)}).to_dict() == without.to_dict()
        # A checkpoint may hold it, from when it had an effect.
        if name != "predict_from":
            saved = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
            (tmp_path / "config.json").write_text(json.dumps(saved | {name: value}), encoding="utf-8")
            assert getattr(config_class.from_pretrained(tmp_path), name) == value


@pytest.mark.parametrize(
    ("config_class", "name"), [one for one in WITH_NEEDS if declared_settings(one[0])[one[1]].option]
)
def test_f37_and_by_the_command_line(config_class, name):
    settings = declared_settings(config_class)
    option, default = settings[name].option, settings[name].default
    value, met, missed = cases(config_class, name)

    def check(given, others):
        options = {option: given} | {settings[other].option: chosen for other, chosen in others.items()}
        argv = [word for key, chosen in options.items() for word in (f"--{key}", str(chosen))]
        parsed = parse_arguments(ARGUMENTS, "", ["--output_dir", "out", "--train_file", "a.csv", *argv], **DEFAULTS)
        refuse_without_effect("train", [option], settings_of(*parsed))

    for given in (value, default) if default is not None else (value,):  # what is asked for must have an effect
        check(given, met)
        for need, others in zip(settings[name].needs, missed, strict=True):
            needed = settings[next(iter(need))].option
            with pytest.raises(
                InputError, match=f"^--{option} is {given}, which is for --{needed} .*leave it out, or change"
            ):
                check(given, others)


@pytest.mark.parametrize("config_class", [VATSettings, WordEncoderConfig])
def test_every_setting_is_in_the_docstring_once(config_class):
    named = re.findall(r"^ +(\w+) \(`\w+", config_class.__doc__, re.M)
    settings = set(declared_settings(config_class))
    assert sorted(name for name in named if name in settings) == sorted(settings)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("attention_scale", {}),
        ("attention_init_std", {}),
        ("word_weight", {"word_objective": "tying"}),
        ("mlm_probability", {"word_objective": "mlm", "mask_token_id": 4}),
        ("vw_weight", {"vw_penalty": "abs", "head_layers": 1, "bottleneck": "none"}),
        ("beta", {}),
    ],
)
def test_weights_are_numbers_from_0(name, others, value):
    with pytest.raises(Exception, match=f"{name}={value} must be a"):
        BertVATConfig(**others, **{name: value})


def test_settings_of_a_subclass_have_its_defaults():
    assert declared_settings(BertVATConfig)["mask_type"].default == "none"
    assert declared_settings(BertVMaskConfig)["mask_type"].default == "vmask"
    assert declared_settings(EncoderVMaskConfig)["pooling"].default is None
    assert not BertVATConfig().freeze_embeddings and BertVMaskConfig(mask_type="none").freeze_embeddings
    with pytest.raises(WithoutEffect, match="mask_beta=2 is for mask_type='vmask' or 'iba', but mask_type='none'"):
        BertVMaskConfig(mask_type="none", mask_beta=2)


def test_the_documentation_has_the_table_of_phases():
    page = (DOCS / "concepts" / "bottleneck-and-masks.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| `")
    ]
    found = {row[0].strip("`"): tuple(row[1:]) for row in rows}
    terms = {"learner": "CE(learner)", "compressor": "CE(compressor) + β KL"}
    assert found == {
        name: (
            "all" if len(phase.trained) == 5 else ", ".join(phase.trained),
            " + ".join(terms[head] for head in phase.loss) + (" + mask's term" if "mask" in phase.trained else ""),
            phase.predicts,
        )
        for name, phase in PHASES.items()
    }
