"""One recipe for an encoder: the defaults of `hf-vat train`, and what `hf-vat reproduce vat` uses."""

import sys

import pytest

from hf_vat.commands import train
from hf_vat.errors import InputError
from hf_vat.options import settings_of
from hf_vat.reproduction import CellSettings, encoders
from hf_vat.reproduction.vat import VATCell
from hf_vat.training import ModelArguments, describe_recipe, recipe_defaults
from hf_vat.training.recipes import PRESETS, PRETRAINED_RECIPE

SYSTEMS = {
    "base": ["--bottleneck", "none", "--pooling"],
    "ATT": ["--bottleneck", "none"],
    "VAT": [],
}


@pytest.fixture
def trained_with(monkeypatch, tmp_path):
    """What `hf-vat train` with further options hands over to the run."""

    def ask(*options):
        handed = []
        monkeypatch.setattr(train, "train_classifier", lambda *args, **settings: handed.append(args) or Nobody())
        argv = ["hf-vat", "--dataset_name", "x", "--use_cpu", "--output_dir", str(tmp_path / "run"), *options]
        monkeypatch.setattr(sys, "argv", argv)
        train.main()
        return handed[0]

    return ask


class Nobody:
    def is_world_process_zero(self):
        return False


@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("encoder", ["bert", "lstm"])
def test_f11_f16_f42_both_commands_say_the_same_settings(trained_with, monkeypatch, encoder, kind):
    monkeypatch.setattr(encoders, "glove_folder", lambda: "vectors")
    options = [*SYSTEMS[kind], "max" if encoder == "lstm" else "first"] if kind == "base" else SYSTEMS[kind]
    if encoder == "lstm":
        options = [*options, "--word_encoder", "lstm", "--vectors", "vectors"]
    model_args, data_args, args = trained_with(*options)
    said = describe_recipe(settings_of(model_args, data_args, args))
    cell = VATCell("trec", encoder, kind, 0)
    assert said == cell.describe(CellSettings())
    assert ("beta" in said) == (kind == "VAT") and "learning_rate" in said
    if encoder == "lstm":
        ours, _ = cell.arguments(CellSettings())
        assert ours == model_args


def test_f11_an_option_wins_over_the_recipe(trained_with):
    model_args, _, args = trained_with(
        "--word_encoder", "lstm", "--learning_rate", "0.5", "--beta", "2", "--bidirectional", "False"
    )
    assert (args.learning_rate, model_args.beta, model_args.bidirectional) == (0.5, 2, False)
    assert args.per_device_train_batch_size == 64


def test_a_preset_sets_the_model_and_what_is_given_wins(trained_with):
    model_args, _, args = trained_with("--preset", "faithful")
    for name, value in PRESETS["faithful"].items():
        assert getattr(model_args, name) == value
    recipe = PRETRAINED_RECIPE.model(True) | PRETRAINED_RECIPE.training(True)  # beside which the preset was chosen
    assert {name: getattr(model_args, name, getattr(args, name, None)) for name in recipe} == recipe
    assert "word_objective residual" in describe_recipe(settings_of(model_args, args))
    other, *_ = trained_with("--preset", "faithful", "--word_objective", "tying", "--word_weight", "0.1")
    assert (other.word_objective, other.word_weight) == ("tying", 0.1)
    assert ModelArguments(preset="faithful").word_objective == "residual"
    assert ModelArguments().word_objective is None
    with pytest.raises(InputError, match="preset is 'best'; there is 'faithful', or None"):
        ModelArguments(preset="best")


def test_a_preset_is_refused_where_it_was_not_chosen(trained_with):
    for options in (["--word_encoder", "lstm"], ["--bottleneck", "none"], ["--mask_type", "vmask"]):
        with pytest.raises(InputError, match=r"^--preset is faithful, which is for .*leave it out"):
            trained_with("--preset", "faithful", *options)


def test_streams_are_not_grouped_by_length(trained_with):
    _, _, args = trained_with("--streaming", "--max_steps", "5")
    assert args.train_sampling_strategy == "random"
    assert "train_sampling_strategy" in recipe_defaults(ModelArguments())


def test_what_has_no_effect_is_not_said():
    settings = {
        **{"pooling": "attention", "bottleneck": "none", "num_train_epochs": 4, "learning_rate": 0.1},
        **{"compressor_learning_rate": 0.2, "lr_scheduler_type": "constant", "warmup_steps": 3, "start_epochs": 0},
        **{"per_device_train_batch_size": 8, "train_sampling_strategy": "random"},
    }
    assert describe_recipe(settings) == (
        "pooling attention, bottleneck none, num_train_epochs 4, learning_rate 0.1, compressor_learning_rate 0.2, "
        "lr_scheduler_type constant, per_device_train_batch_size 8, train_sampling_strategy random"
    )


def test_a_word_objective_is_said_where_there_is_one():
    said = describe_recipe({"word_objective": "mlm", "word_weight": 0.5, "mlm_probability": 0.3, "vw_weight": 0.1})
    assert said == "word_objective mlm, word_weight 0.5, mlm_probability 0.3"
