"""LoRA through PEFT: what an adapter holds, at which learning rates it trains, and what is refused."""

import importlib.util
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from runs import StopAt, assert_same_weights, broken_and_unbroken
from transformers import AlbertConfig, AutoModelForSequenceClassification, BertConfig, DistilBertConfig, TrainerCallback

from hf_vat import BertVMaskConfig, BertWithVMask, EncoderForVATClassification, EncoderVATConfig
from hf_vat.errors import InputError
from hf_vat.explanations import explain
from hf_vat.training import modules_to_save
from hf_vat.training.adapters import find_classifier

PARTS = ["attention.projection", "attention.score", "bottleneck", "learner_head", "compressor_head"]


def adapted(model, **settings):
    settings = {"target_modules": ["query", "value"], "modules_to_save": modules_to_save(model)} | settings
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return get_peft_model(model, LoraConfig(**settings))


@pytest.fixture
def make_adapted(make_model):
    return lambda system="vat", **settings: adapted(make_model(system), **settings)


def test_f07_what_must_be_saved_is_all_that_is_new(make_model):
    assert modules_to_save(make_model("vat")) == PARTS
    assert modules_to_save(make_model("base")) == ["learner_head"]
    assert modules_to_save(make_model("vat_shared_mean")) == [*PARTS[:3], "compressor_head"]
    sizes = {"vocab_size": 30, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
    masked = BertWithVMask(BertVMaskConfig(**sizes, intermediate_size=8, pooling="first"))
    assert sorted(modules_to_save(masked)) == ["learner_head", "word_mask"]


@pytest.mark.parametrize("task_type", [None, "SEQ_CLS"])
@pytest.mark.parametrize("config", [BertConfig, DistilBertConfig, AlbertConfig])
def test_f07_the_adapter_trains_what_is_new_and_nothing_else_of_the_encoder(config, task_type):
    encoder = config(vocab_size=30, hidden_size=8, num_attention_heads=2, num_hidden_layers=1, intermediate_size=8)
    model = adapted(
        EncoderForVATClassification(EncoderVATConfig(encoder=encoder)), task_type=task_type, target_modules="all-linear"
    )
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert all(".lora_" in name or ".modules_to_save." in name for name in trained)
    assert {part for part in PARTS if any(f"model.{part}." in name for name in trained)} == set(PARTS)
    assert not any(".lora_" in name for name in trained if ".model.encoder." not in name)


def test_f07_heads_that_would_stay_random_are_refused(make_trainer, make_model):
    guess = get_peft_model(make_model("vat"), LoraConfig(task_type="SEQ_CLS", target_modules=["query", "value"]))
    with pytest.raises(
        InputError, match=r"attention, bottleneck, compressor_head, learner_head .*modules_to_save\(model\)"
    ):
        make_trainer(model=guess)
    some = adapted(make_model("vat"), modules_to_save=["learner_head", "bottleneck", *PARTS[:2]])
    with pytest.raises(InputError, match="leaves compressor_head frozen"):
        make_trainer(model=some)
    # Matrices beside a random weight do not save that weight.
    with pytest.raises(InputError, match="leaves attention, bottleneck, compressor_head, learner_head"):
        make_trainer(model=adapted(make_model("vat"), target_modules="all-linear", modules_to_save=None))


def test_f03_f07_an_adapter_has_the_learning_rates_it_should(make_trainer, make_adapted):
    trainer = make_trainer(model=make_adapted(), learning_rate=1e-4, compressor_learning_rate=1e-2)
    trainer.create_optimizer()
    rates = {id(p): group["lr"] for group in trainer.optimizer.param_groups for p in group["params"]}
    for name, parameter in trainer.model.named_parameters():
        expected = (1e-4 if ".lora_" in name else 1e-2) if parameter.requires_grad else None
        assert rates.get(id(parameter)) == expected, name


def test_f07_phases_train_their_part_of_the_adapter(make_trainer, make_adapted):
    moved, before = {}, {}

    class Watch(TrainerCallback):
        def on_epoch_begin(self, args, state, control, model=None, **kwargs):
            before.update({name: p.detach().clone() for name, p in model.named_parameters()})

        def on_epoch_end(self, args, state, control, model=None, **kwargs):
            changed = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
            moved[find_classifier(model).phase] = changed

    make_trainer(
        model=make_adapted(), callbacks=[Watch()], start_epochs=0, num_train_epochs=2, label_smoothing_factor=0.1
    ).train()
    assert all(".modules_to_save." in name for name in moved["compress"]) and moved["compress"]
    assert all(".lora_" in name or "learner_head.modules_to_save." in name for name in moved["learn"])
    assert any(".lora_" in name for name in moved["learn"])


def test_f07_an_adapter_is_saved_loaded_explained_and_merged(train, make_model, make_adapted, tokenizer, tmp_path):
    texts = ["good film", "a very dull and boring film"]
    trainer = train(
        model=make_adapted(), start_epochs=0, num_train_epochs=1, save_strategy="epoch", eval_strategy="epoch",
        load_best_model_at_end=True, metric_for_best_model="accuracy",
    )  # fmt: skip
    trainer.save_model(str(tmp_path / "adapter"))
    files = {path.name for path in (tmp_path / "adapter").iterdir()}
    assert {"adapter_model.safetensors", "adapter_config.json", "config.json"} <= files
    assert "model.safetensors" not in files and "training_args.bin" not in files
    assert trainer.model.config.predict_from == "compressor"
    expected = explain(trainer.model, tokenizer, texts, method="attention")
    fresh = make_model("vat")
    for module in (fresh.bottleneck, fresh.learner_head, fresh.compressor_head, fresh.attention):
        for parameter in module.parameters():  # a new start draws them anew
            torch.nn.init.normal_(parameter)
    loaded = load_example("train_lora").load_adapter(fresh, str(tmp_path / "adapter"))
    assert isinstance(loaded, PeftModel)
    for ours, theirs in zip(explain(loaded, tokenizer, texts, method="attention"), expected, strict=True):
        assert ours.scores == theirs.scores and ours.probabilities == theirs.probabilities
    loaded.merge_and_unload().save_pretrained(tmp_path / "merged")
    merged = AutoModelForSequenceClassification.from_pretrained(tmp_path / "merged")
    for ours, theirs in zip(explain(merged, tokenizer, texts, method="attention"), expected, strict=True):
        assert ours.scores == pytest.approx(theirs.scores, abs=1e-5)
        assert ours.probabilities == pytest.approx(theirs.probabilities, abs=1e-5)


def test_f07_an_adapter_resumes(make_trainer, make_adapted):
    def make(**settings):
        return make_trainer(model=make_adapted(), num_train_epochs=3, **settings)

    resumed, unbroken = broken_and_unbroken(make, StopAt(6))
    assert_same_weights(unbroken.model, resumed.model)


def load_example(name: str):
    path = Path(__file__).resolve().parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
