"""VATTrainer on a tiny BERT: phases, logs, evaluation, errors, several processes, and what people do with a Trainer."""

import json
import re
from pathlib import Path

import numpy as np
import optuna
import pytest
import runs
import torch
from datasets import Dataset
from runs import Poison, launch, records, weights
from transformers import DataCollatorWithPadding, TrainerCallback, set_seed

from hf_vat import BertVMaskConfig, BertWithVMask, EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig
from hf_vat.errors import InputError
from hf_vat.training import VATTrainer, VATTrainingArguments, recipes


class Snapshots(TrainerCallback):
    """Copies of all parameters at the beginning of each epoch and at the end."""

    def __init__(self):
        self.taken = []

    def on_epoch_begin(self, args, state, control, model=None, **kwargs):
        self.taken.append({name: p.detach().clone() for name, p in model.named_parameters()})

    on_train_end = on_epoch_begin


# Phases


@pytest.mark.parametrize("system", ["vat", "vat_shared", "vat_shared_mean", "vat_learned_prior"])
def test_c20_frozen_parameters_are_bitwise_unchanged(train, system):
    snapshots = Snapshots()
    trainer = train(
        system,
        callbacks=[snapshots],
        weight_decay=0.1,
        learning_rate=1e-2,
        gradient_accumulation_steps=2,
        num_train_epochs=5,
    )
    assert len(snapshots.taken) == 6
    for epoch, (before, after) in enumerate(zip(snapshots.taken, snapshots.taken[1:], strict=False)):
        phase = trainer.schedule.phase(epoch)
        active = {
            id(p)
            for modules in trainer.model.phase_modules(phase).values()
            for module in modules
            for p in module.parameters()
        }
        for name, parameter in trainer.model.named_parameters():
            moved = not torch.equal(before[name], after[name])
            assert moved <= (id(parameter) in active), f"{name} moved in {phase}"
        groups = {
            "encoder": "bert.",
            "attention": "attention.",
        }
        trained = trainer.model.phase_modules(phase)
        for group, prefix in groups.items():
            any_moved = any(not torch.equal(before[n], after[n]) for n in before if n.startswith(prefix))
            assert any_moved == (group in trained), f"{group} in {phase}"


def test_phases_and_predicting_head_follow_the_epoch(make_trainer):
    seen = []

    class Watch(TrainerCallback):
        def on_step_end(self, args, state, control, model=None, **kwargs):
            seen.append((model.phase, model.config.predict_from, model.bert.training))

    make_trainer(callbacks=[Watch()]).train()
    assert seen == (
        [("joint", "learner", True)] * 4
        + [("compress", "compressor", False)] * 4
        + [("learn", "learner", True)] * 4
        + [("compress", "compressor", False)] * 4
    )


def test_predicting_head_can_be_forced(train):
    trainer = train(predict_from="learner", num_train_epochs=2)
    assert [record["phase"] for record in trainer.state.log_history][-1] == "compress"
    assert trainer.model.config.predict_from == "learner"


def test_c21_every_active_parameter_is_in_the_optimizer(train):
    for start_epochs in (0, 1):
        snapshots = Snapshots()
        trainer = train(callbacks=[snapshots], start_epochs=start_epochs, num_train_epochs=3)
        in_optimizer = sum(len(group["params"]) for group in trainer.optimizer.param_groups)
        assert in_optimizer == len(list(trainer.model.parameters()))
        first, last = snapshots.taken[0], snapshots.taken[-1]
        still = [name for name in first if torch.equal(first[name], last[name])]
        # Only rows of embeddings are never looked up (token type 1) but share their tensor with rows that are; the
        # learner's head moves in joint and learn, the compressor's in joint and compress: nothing may stand still.
        assert not still
    assert all(parameter.requires_grad for parameter in trainer.model.parameters())


def test_layers_that_the_user_froze_do_not_move(train, make_model):
    model = make_model("vat")
    model.bert.embeddings.requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trainer = train(model=model, num_train_epochs=2, weight_decay=0.1)
    moved = {name for name, value in trainer.model.state_dict().items() if not torch.equal(value, before[name])}
    assert not any(name.startswith("bert.embeddings.") for name in moved)
    assert any(name.startswith("bert.encoder.") for name in moved)
    assert not any(parameter.requires_grad for parameter in model.bert.embeddings.parameters())
    in_optimizer = sum(len(group["params"]) for group in trainer.optimizer.param_groups)
    assert in_optimizer == sum(not name.startswith("bert.embeddings.") for name, _ in model.named_parameters())


def test_compressor_learning_rate_is_that_of_everything_on_top_of_the_encoder(make_trainer):
    trainer = make_trainer(learning_rate=1e-4, compressor_learning_rate=1e-2)
    trainer.create_optimizer()
    by_parameter = {id(p): group["lr"] for group in trainer.optimizer.param_groups for p in group["params"]}
    for name, parameter in trainer.model.named_parameters():
        assert by_parameter[id(parameter)] == (1e-4 if name.startswith("bert.") else 1e-2), name


def test_c22_accumulation_gives_the_same_weights(train):
    weights = []
    for accumulation in (1, 4):
        trainer = train(
            size=8,
            optim="sgd",
            num_train_epochs=1,
            per_device_train_batch_size=8 // accumulation,
            gradient_accumulation_steps=accumulation,
            max_grad_norm=0,
            start="finetune",  # joint draws noise per batch
        )
        weights.append({name: p.detach().clone() for name, p in trainer.model.named_parameters()})
    for name in weights[0]:
        torch.testing.assert_close(weights[0][name], weights[1][name], atol=1e-5, rtol=0)


def test_c25_a_second_train_starts_again(train):
    trainer = train(num_train_epochs=2, warmup_steps=0)
    first_optimizer, first_log = trainer.optimizer, len(trainer.state.log_history)
    trainer.train()
    assert trainer.optimizer is not first_optimizer
    assert trainer.state.global_step == 8 and len(trainer.state.log_history) == first_log
    assert trainer.state.log_history[0]["learning_rate"] == pytest.approx(1e-3)
    assert [record["phase"] for record in records(trainer)] == ["joint"] * 4 + ["compress"] * 4


# Log


def test_c31_log_records_add_up_and_never_mix_phases(make_trainer):
    trainer = make_trainer(
        size=40,  # 5 micro-batches, so the last step of an epoch has one only
        gradient_accumulation_steps=2,
        logging_steps=2,
        eval_strategy="epoch",
    )
    trainer.model.config.beta = 0.3
    trainer.train()
    steps = records(trainer)
    assert {record["phase"] for record in steps} == {"joint", "compress", "learn"}
    for record in steps:
        # Measured or absent (F02): the learner's loss has no compression term.
        assert ("compression" in record) == (record["phase"] != "learn")
        total = record["cross_entropy"] + 0.3 * record.get("compression", 0)
        assert record["loss"] == pytest.approx(total, abs=1e-5)
        assert record["beta"] == 0.3
        assert 0 < record["attention_entropy"] <= 1 + 1e-6
        assert 0 <= record["attention_jsd"] <= np.log(2)
        assert record["phase"] == trainer.schedule.phase(int(np.ceil(record["epoch"])) - 1)
        assert record.get("compression", 1) > 0
    moved = {phase: max(r["attention_jsd"] for r in steps if r["phase"] == phase) for phase in ("joint", "compress")}
    assert min(moved.values()) > 0
    evaluations = records(trainer, "eval_loss")
    assert [record["phase"] for record in evaluations] == ["joint", "compress", "learn", "compress"]
    for record in evaluations:
        assert ("eval_compression" in record) == (record["phase"] == "compress")
        total = record["eval_cross_entropy"] + 0.3 * record.get("eval_compression", 0)
        assert record["eval_loss"] == pytest.approx(total, abs=1e-5)


def test_systems_without_attention_or_bottleneck_log_what_they_have(train):
    trainer = train("base", num_train_epochs=1)
    record = trainer.state.log_history[0]
    assert record["phase"] == "finetune" and record["loss"] == pytest.approx(record["cross_entropy"], abs=1e-6)
    assert "compression" not in record and "attention_jsd" not in record


# Evaluation and prediction


def test_c26_evaluation_keeps_logits_only(make_trainer, make_dataset):
    """What is kept of 600 texts is their logits and labels: nothing of the size of the attention."""
    kept = []
    keep = {"compute_metrics": lambda prediction: kept.append(prediction) or {}}
    make_trainer(eval_dataset=make_dataset(600, seed=1), per_device_eval_batch_size=100, **keep).evaluate()
    assert kept[0].predictions.shape == (600, 2)
    assert kept[0].predictions.nbytes + kept[0].label_ids.nbytes <= 600 * (2 * 4 + 8)


def test_c27_predictions_have_one_row_per_text(make_trainer, make_dataset):
    trainer = make_trainer(per_device_eval_batch_size=2)
    output = trainer.predict(make_dataset(5, seed=4))
    assert output.predictions.shape == (5, 2)
    trainer.compute_metrics = None
    every = trainer.predict(make_dataset(5, seed=4), ignore_keys=["token_importance", "hidden_states", "attentions"])
    assert [part.shape[0] for part in every.predictions] == [5] * len(every.predictions)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("batch_size", [1, 8])
def test_c29_the_stock_accuracy_function_works(train, smoothing, batch_size):
    trainer = train(
        label_smoothing_factor=smoothing,
        per_device_eval_batch_size=batch_size,
        num_train_epochs=2,
        size=8,
        eval_strategy="epoch",
    )
    assert 0 <= trainer.evaluate()["eval_accuracy"] <= 1


def test_c32_extra_columns_do_not_matter_and_wrong_ones_are_named(make_trainer, train, make_dataset):
    extra = make_dataset(8).add_column("id", list(range(8)))
    trainer = train(eval_dataset=extra, num_train_epochs=1)
    assert "eval_loss" in trainer.evaluate()
    unlabelled = extra.remove_columns("label")
    assert "test_loss" not in trainer.predict(unlabelled).metrics
    with pytest.raises(InputError, match=r"'labels' or 'label'; its columns are .*'klass'"):
        make_trainer(eval_dataset=extra.rename_column("label", "klass"))


def test_p2_empty_evaluation_set_is_an_error(make_trainer, make_dataset):
    trainer = make_trainer()
    with pytest.raises(ValueError, match="empty"):
        trainer.evaluate(make_dataset(8).select([]))


# Bad input


@pytest.mark.parametrize("label", [2, -1, 5])
def test_c11_labels_out_of_range_are_named_before_the_first_step(make_trainer, make_dataset, label):
    broken = make_dataset(6)
    labels = broken["label"][:]
    labels[4] = label
    rows = broken.remove_columns("label").add_column("label", labels)
    with pytest.raises(InputError, match=f"{label} in row 4 .*0 to 1"):
        make_trainer(eval_dataset=rows)


def test_c11_ignored_labels_are_allowed(make_trainer, make_dataset):
    rows = make_dataset(8).remove_columns("label").add_column("label", [-100] * 8)
    trainer = make_trainer(eval_dataset=rows)
    metrics = trainer.evaluate()
    assert metrics["eval_samples"] == 8 and "eval_cross_entropy" not in metrics  # it was not measured


def test_c15_a_loss_that_is_not_finite_names_step_phase_and_component(make_trainer):
    with pytest.raises(FloatingPointError, match=r"step 6 in phase 'compress': .*compression"):
        make_trainer(callbacks=[Poison("bottleneck.mean.2.bias")]).train()


def test_f43_divergence_is_found_before_anything_is_saved_or_logged(make_trainer, make_model, tmp_path):
    """The answer is read with the next record, at the latest at the end of the epoch, and names the step and the phase."""

    for settings in (
        {"logging_steps": 100, "save_strategy": "steps", "save_steps": 7},
        {"logging_strategy": "no", "eval_strategy": "steps", "eval_steps": 7},
        {"logging_strategy": "no"},
    ):
        trainer = make_trainer(callbacks=[Poison("bottleneck.mean.2.bias")], **settings)
        with pytest.raises(FloatingPointError, match=r"step 6 in phase 'compress': .*compression"):
            trainer.train()
        assert not list((tmp_path / "run").glob("checkpoint-*"))
        assert not any("eval_loss" in record for record in trainer.state.log_history)
        assert trainer.state.global_step == (8 if settings == {"logging_strategy": "no"} else 7)


@pytest.mark.parametrize("phase", ["finetune", "joint", "compress", "learn"])
@pytest.mark.parametrize("kind", ["bert", "cnn", "vmask", "l2x", "iba"])
def test_f43_a_training_step_never_waits_for_the_device(make_trainer, make_model, monkeypatch, kind, phase):
    """On the meta device there are no values: whoever asks for one, as `bool(tensor)` or `.item()` do, gets an error."""
    small = {"hidden_size": 6, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    vat = {"bottleneck": "gaussian", "pooling": "attention", "vocab_size": 40}
    if kind == "bert":
        model = make_model("vat")
    elif kind == "cnn":
        encoder = WordEncoderConfig(vocab_size=40, encoder_type="cnn", embedding_size=4, hidden_size=6)
        model = EncoderForVATClassification(EncoderVATConfig(encoder=encoder))
    else:
        model = BertWithVMask(BertVMaskConfig(mask_type=kind, **vat, **small))
    trainer = make_trainer(model=model)
    # Transformers itself asks whether there is padding; not ours to change.
    monkeypatch.setattr("transformers.masking_utils._ignore_bidirectional_mask_sdpa", lambda *args: False)
    model.set_phase(phase)
    model.to("meta").train()
    trainer.current_gradient_accumulation_steps = 1
    trainer._prepare_inputs = lambda inputs: inputs
    ids = torch.ones(2, 5, dtype=torch.long, device="meta")
    for _ in range(2):
        loss = trainer.compute_loss(model, {"input_ids": ids, "attention_mask": ids, "labels": ids[:, 0]})
        loss.backward()
        assert loss.device.type == "meta"


def test_settings_that_do_not_fit_are_refused(make_trainer, make_model, tmp_path):
    from transformers import BertConfig, BertForSequenceClassification, TrainingArguments

    plain = BertForSequenceClassification(
        BertConfig(vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    )
    with pytest.raises(InputError, match="BertForSequenceClassification has no phases"):
        make_trainer(model=plain)
    with pytest.raises(InputError, match="VATTrainingArguments"):
        VATTrainer(make_model("vat"), TrainingArguments(str(tmp_path), report_to="none"))
    with pytest.raises(InputError, match="compute_loss_func"):
        make_trainer(others={"compute_loss_func": lambda *a: 0})
    with pytest.raises(InputError, match="predict_from"):
        make_trainer("att", predict_from="compressor")


# β


def test_c14_beta_zero_leaves_cross_entropy_and_a_large_beta_compresses(train, make_model):
    finals = {}
    for beta in (0.0, 100.0):
        trainer = train(model=make_model("vat", beta=beta), num_train_epochs=5, start_epochs=5)
        steps = records(trainer)
        finals[beta] = steps[-1]["compression"]
        if beta == 0:
            assert all(r["loss"] == pytest.approx(r["cross_entropy"], abs=1e-6) for r in steps)
    assert finals[100.0] < finals[0.0] / 2


@pytest.mark.parametrize("moved", ["mask_beta", "beta"])
def test_f14_a_beta_that_moves_is_compiled_once(make_trainer, moved):
    """Graphs are counted at the end of each epoch."""
    counters = torch._dynamo.utils.counters["stats"]
    graphs = []

    class Count(TrainerCallback):
        def on_epoch_end(self, args, state, control, model=None, **kwargs):
            graphs.append(counters["unique_graphs"])
            if moved == "beta":
                model.config.beta /= 2

    set_seed(0)
    model = BertWithVMask(
        BertVMaskConfig(
            pooling="attention", bottleneck="gaussian", beta=0.8, mask_beta=0.8, vocab_size=40, hidden_size=8,
            num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,
        )
    )  # fmt: skip
    torch._dynamo.reset()
    counters.clear()
    trainer = make_trainer(
        model=model,
        size=16,
        callbacks=[Count()],
        torch_compile=True,
        torch_compile_backend="eager",
        num_train_epochs=5,
        start_epochs=5,
        **({"mask_beta_start": 0.8, "mask_beta_end": 0.1} if moved == "mask_beta" else {}),
    )
    trainer.data_collator = DataCollatorWithPadding(trainer.processing_class, padding="max_length", max_length=12)
    trainer.train()
    assert graphs[0] > 0 and graphs == graphs[:1] * 5
    steps = records(trainer)
    assert len({record[moved] for record in steps}) == 5
    for record in steps:  # with the β of its epoch, and not of the one that was compiled
        total = record["cross_entropy"] + record["beta"] * record["compression"]
        total += record["mask_beta"] * record["mask_compression"]
        assert record["loss"] == pytest.approx(total, abs=1e-5)


# Several processes

PHASES = {
    "start": "finetune", "start_epochs": 1, "learning_rate": 1e-3, "compressor_learning_rate": 1e-2,
    "save_strategy": "epoch", "load_best_model_at_end": True, "metric_for_best_model": "prob_drop@1",
    "predict_from": "learner",
}  # fmt: skip


def train_in(processes: int, output: Path, others: dict | None = None, **settings) -> list[dict]:
    return launch(runs.__file__, processes, output, "null", json.dumps(PHASES | settings), json.dumps(others or {}))


def test_c18_c87_c88_two_processes_agree_with_one_also_when_resumed_in_the_middle_of_a_phase(tmp_path):
    settings = {"num_train_epochs": 4, "compress_epochs": 1, "learn_epochs": 2, "load_best_model_at_end": False}
    two, [one] = train_in(2, tmp_path / "two", **settings), train_in(1, tmp_path / "one", **settings)
    resumed = train_in(2, tmp_path / "resumed", {"stop": 10}, **settings)  # epoch 3 of 4, the first of learn's two
    assert [record["world_size"] for record in two + resumed] == [2, 2, 2, 2]
    assert two[0]["sums"] == two[1]["sums"]  # after each phase, bitwise
    for epoch, (ours, theirs) in enumerate(zip(two[0]["sums"], one["sums"], strict=True)):
        assert ours == pytest.approx(theirs, abs=1e-4), f"epoch {epoch}"
    alone, unbroken = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name, tensor in alone.items():
        torch.testing.assert_close(unbroken[name], tensor, atol=1e-5, rtol=0, msg=name)
        assert torch.equal(unbroken[name], weights(tmp_path / "two", 1)[name]), name
        for rank in (0, 1):
            assert torch.equal(unbroken[name], weights(tmp_path / "resumed", rank)[name]), name
    logs = [[record for record in process["log"] if "loss" in record] for process in (two[0], one)]
    for ours, theirs in zip(*logs, strict=True):
        assert ours["cross_entropy"] == pytest.approx(theirs["cross_entropy"], abs=1e-5)
        assert ours["phase"] == theirs["phase"]


def test_c43_c90_early_stopping_on_a_package_metric_ends_on_all_ranks(tmp_path):
    two = train_in(2, tmp_path / "two", {"patience": 1}, num_train_epochs=6, compress_epochs=1, learn_epochs=1)
    assert [record["step"] for record in two] == [20, 20]


def test_c28_attention_by_text_has_no_filler(make_trainer, tokenizer, make_model):
    from hf_vat.explanations import explain

    texts = ["good film plot", "a very dull and boring film"]
    for explanation, size in zip(explain(make_model("vat"), tokenizer, texts, batch_size=2), (3, 6), strict=True):
        assert len(explanation.scores) == size and min(explanation.scores) >= 0
        assert sum(explanation.scores) == pytest.approx(1, abs=1e-5)


def test_trains_on_a_plain_dataset_of_texts(make_trainer):
    """Labels called `labels`, as many collators give them."""
    rows = Dataset.from_dict({"input_ids": [[2, 5, 3], [2, 9, 3]] * 4, "labels": [1, 0] * 4})
    assert "eval_loss" in make_trainer(eval_dataset=rows).evaluate()


# What people do with a Trainer


class _TwoDevices(torch.nn.DataParallel):
    """What DataParallel gives with two devices: the losses of two halves in one vector, all else one after the other."""

    def forward(self, **inputs):
        middle = (len(inputs["input_ids"]) + 1) // 2

        def cut(value, part):  # as torch's scatter does it
            if isinstance(value, tuple):
                return type(value)(*(cut(one, part) for one in value))
            return None if value is None else value[part]

        parts = (slice(0, middle), slice(middle, None))
        halves = [{name: cut(value, part) for name, value in inputs.items()} for part in parts]
        outputs = [self.module(**half) for half in halves]
        joined = {
            name: torch.stack(values) if values[0].dim() == 0 else torch.cat(values)
            for name in outputs[0]
            for values in [[output[name] for output in outputs]]
        }
        return type(outputs[0])(**joined)


@pytest.mark.parametrize("system", ["vat", "base"])
def test_f01_data_parallel_trains(make_trainer, monkeypatch, system):
    monkeypatch.setattr(torch.nn, "DataParallel", _TwoDevices)
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)
    settings = {
        "num_train_epochs": 3,
        "optim": "sgd",
        "eval_strategy": "epoch",
        "max_grad_norm": 0,
        "label_smoothing_factor": 0.1,
    }
    two, one = make_trainer(system, folder="two", **settings), make_trainer(system, folder="one", **settings)
    two.args._n_gpu = 2
    for trainer in (two, one):
        trainer.train()
    assert type(two.model_wrapped) is _TwoDevices
    for (name, expected), actual in zip(one.model.named_parameters(), two.model.parameters(), strict=True):
        torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0, msg=name)
    for ours, theirs in zip(two.state.log_history, one.state.log_history, strict=True):
        for name in ("loss", "cross_entropy", "compression", "attention_entropy", "eval_loss", "eval_cross_entropy"):
            assert ours.get(name) == pytest.approx(theirs.get(name), abs=1e-4), name


class _Wrapper(torch.nn.Module):
    """Renames parameters as FSDP does, around the encoder and around all."""

    def __init__(self, module):
        super().__init__()
        self._fsdp_wrapped_module = module

    def forward(self, *args, **kwargs):
        return self._fsdp_wrapped_module(*args, **kwargs)


@pytest.mark.parametrize("wrap", [_Wrapper, torch.compile, torch.nn.DataParallel])
def test_f03_learning_rates_follow_modules_not_names(make_trainer, wrap):
    trainer = make_trainer(learning_rate=1e-4, compressor_learning_rate=1e-2, weight_decay=0.1)
    encoder = {id(parameter) for parameter in trainer.model.bert.parameters()}
    if wrap is _Wrapper:
        trainer.model.bert = _Wrapper(trainer.model.bert)
    trainer.create_optimizer(wrap(trainer.model))
    groups = trainer.optimizer.param_groups
    assert {id(p) for group in groups if group["lr"] == 1e-4 for p in group["params"]} == encoder
    assert sum(len(group["params"]) for group in groups) == len(list(trainer.model.parameters()))
    assert {group["weight_decay"] for group in groups} == {0.0, 0.1}


@pytest.mark.parametrize("kind", ["deepspeed", "fsdp"])
def test_f03_flat_parameters_are_refused(make_trainer, monkeypatch, kind):
    prepare = VATTrainer.create_accelerator_and_postprocess

    def pretend(self):
        prepare(self)
        setattr(self, f"is_{kind}_enabled", True)

    monkeypatch.setattr(VATTrainer, "create_accelerator_and_postprocess", pretend)
    with pytest.raises(InputError, match=f'(?i:{kind}) cannot keep still .* bottleneck="none"'):
        make_trainer("vat")
    make_trainer("att")  # everything is trained, all the time


def test_f03_distributed_settings_that_phases_cannot_have(make_trainer, monkeypatch):
    monkeypatch.setattr(VATTrainingArguments, "world_size", 2)
    for setting in ({"ddp_find_unused_parameters": False}, {"ddp_static_graph": True}):
        with pytest.raises(InputError, match="each phase leaves other parameters unused"):
            make_trainer("vat", **setting)
        make_trainer("att", **setting)


class _Fails(TrainerCallback):
    def __init__(self, error):
        self.error = error

    def on_step_end(self, args, state, control, **kwargs):
        raise self.error


@pytest.mark.parametrize("error", [None, RuntimeError("no"), KeyboardInterrupt()])
def test_f04_after_training_the_model_is_as_one_that_was_loaded(make_trainer, make_model, error):
    model = make_model("vat")
    model.bert.embeddings.requires_grad_(False)  # the user's own wish, and kept
    open_before = [parameter.requires_grad for parameter in model.parameters()]
    callbacks = [] if error is None else [_Fails(error)]
    trainer = make_trainer(model=model, start_epochs=0, num_train_epochs=1, callbacks=callbacks)  # ends in compress
    if error is None:
        trainer.train()
    else:
        with pytest.raises(type(error)):
            trainer.train()
    assert model.phase == make_model("vat").phase == "joint"
    assert [parameter.requires_grad for parameter in model.parameters()] == open_before
    assert not any(module.training for module in model.modules()) and not trainer.is_in_train
    model.train()
    assert all(module.training for module in model.modules())
    ids = torch.tensor([[2, 5, 6, 3]])
    model(input_ids=ids, labels=torch.tensor([1])).loss.backward()
    reached = {name for name, p in model.named_parameters() if p.grad is not None}
    assert {name for name, p in model.named_parameters() if p.requires_grad} == reached
    assert "phase" not in trainer.evaluate()


def test_f04_constructing_a_trainer_leaves_the_model_s_loss_as_it_is(make_trainer, make_model):
    model = make_model("att")
    batch = {"input_ids": torch.tensor([[2, 5, 6, 3]]), "labels": torch.tensor([1])}
    before = model.eval()(**batch).loss
    trainer = make_trainer(model=model, label_smoothing_factor=0.4, class_weights=[1.0, 3.0], num_train_epochs=1)
    assert torch.equal(model(**batch).loss, before)
    loss = trainer.compute_loss(model, batch)
    assert not torch.isclose(loss, before) and torch.equal(model(**batch).loss, before)


def test_f05_model_init_has_all_settings(make_trainer, train, make_model):
    """The trainer makes a second model when it trains; it has the smoothing of the first, as a model that is given."""
    settings = {"label_smoothing_factor": 0.4, "num_train_epochs": 2}
    given = train(model=make_model("vat"), folder="given", **settings)
    made = make_trainer(folder="made", others={"model_init": lambda: make_model("vat")}, **settings)
    first = made.model
    made.train()
    assert made.model is not first
    losses = [[r["loss"] for r in records(trainer)] for trainer in (given, made)]
    smoothed = train(folder="plain", num_train_epochs=2)
    plain = [r["loss"] for r in records(smoothed)]
    assert losses[0] == losses[1] != plain


def test_f05_trials(make_trainer, make_model):
    """Settings of a trial take effect, though the first trainer was made with others, and the stock objective works."""
    seen = []

    def search_space(trial):
        return {
            "compress_epochs": trial.suggest_categorical("compress_epochs", [1, 2]),
            "learn_epochs": trial.suggest_categorical("learn_epochs", [1]),
            "start_epochs": trial.suggest_categorical("start_epochs", [0]),
            "class_weights": trial.suggest_categorical("class_weights", ["balanced"]),
        }

    class Watch(TrainerCallback):
        def on_epoch_end(self, args, state, control, model=None, **kwargs):
            seen[-1].append(model.phase)

        def on_train_begin(self, args, state, control, **kwargs):
            seen.append([args.compress_epochs])

    init = {"model_init": lambda: make_model("vat")}
    trainer = make_trainer(
        num_train_epochs=3, eval_strategy="epoch", compress_epochs=1, callbacks=[Watch()], others=init
    )
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    best = trainer.hyperparameter_search(
        search_space, n_trials=2, direction="maximize", sampler=optuna.samplers.GridSampler(
            {"compress_epochs": [1, 2], "learn_epochs": [1], "start_epochs": [0], "class_weights": ["balanced"]}
        ),
    )  # fmt: skip
    phases = {1: ["compress", "learn", "compress"], 2: ["compress", "compress", "learn"]}
    assert sorted(epochs for epochs, *_ in seen) == [1, 2]
    for epochs, *trained in seen:
        assert trained == phases[epochs]
    assert 0 <= best.objective <= 1  # accuracy alone, as from the stock Trainer


def test_f05_a_schedule_of_mask_beta_is_a_trial_s(make_trainer, make_model):
    from types import SimpleNamespace

    trainer = make_trainer("vat", num_train_epochs=2)
    trainer.model_init, trainer.hp_space = lambda: make_model("vat"), lambda trial: {"compress_epochs": 0}
    trainer.hp_search_backend = "optuna"
    with pytest.raises(InputError, match="compress_epochs=0 must be at least 1"):
        trainer.train(None, SimpleNamespace(number=0, params={}))


def test_f06_an_optimizer_class_is_used(make_trainer):
    given = make_trainer(others={"optimizer_cls_and_kwargs": (torch.optim.SGD, {"lr": 0.5})})
    optimizer = given.create_optimizer()
    assert type(optimizer) is torch.optim.SGD and {group["lr"] for group in optimizer.param_groups} == {0.5}

    whole = []

    class Factory:
        def __call__(self, model, lr):
            whole.append(model)
            return torch.optim.Adagrad(model.parameters(), lr=lr)

    made = make_trainer(others={"optimizer_cls_and_kwargs": (Factory, {"lr": 0.1})})
    assert type(made.create_optimizer()) is torch.optim.Adagrad and whole == [made.model]


def test_f06_groups_that_an_optimizer_makes_keep_what_it_needs(make_trainer, monkeypatch):
    """GaLore brings parameter groups with settings of its own, by way of "params"; ours are cut out of these."""

    class LowRank(torch.optim.SGD):
        def __init__(self, params, lr):
            super().__init__(params, lr=lr)

    def low_rank(args, model=None):
        first, second = list(model.parameters())[::2], list(model.parameters())[1::2]
        return LowRank, {"params": [{"params": first}, {"params": second, "rank": 4}], "lr": args.learning_rate}

    monkeypatch.setattr(VATTrainer, "get_optimizer_cls_and_kwargs", staticmethod(low_rank))
    trainer = make_trainer(learning_rate=1e-4, compressor_learning_rate=1e-2)
    encoder = {id(parameter) for parameter in trainer.model.bert.parameters()}
    seen = set()
    for group in trainer.create_optimizer().param_groups:
        seen.add((group.get("rank"), group["lr"]))
        assert {id(p) in encoder for p in group["params"]} == {group["lr"] == 1e-4}
    assert seen == {(None, 1e-4), (None, 1e-2), (4, 1e-4), (4, 1e-2)}


def test_auto_find_batch_size_begins_the_phases_again(train):
    """Memory runs out in the sixth step; the smaller batches, of 7, see the phases from the start."""
    phases = []

    class Exhausted(TrainerCallback):
        def on_step_begin(self, args, state, control, model=None, **kwargs):
            phases.append((state.global_step, model.phase, model.attention.score.weight.requires_grad))
            if len(phases) == 6:
                raise RuntimeError("CUDA out of memory.")

    train(auto_find_batch_size=True, start_epochs=0, num_train_epochs=2, callbacks=[Exhausted()])
    assert phases[4:6] == [(4, "learn", False), (5, "learn", False)]
    assert phases[6:] == [(step, "compress" if step < 5 else "learn", step < 5) for step in range(10)]


@pytest.mark.parametrize(
    ("encoder", "attention", "layers"),
    [
        ("affine", "scaled_dot", {"encoder.encoder.weight"}),
        ("embedding", "additive", {"attention.projection.weight"}),
        ("embedding", "scaled_dot", set()),
    ],
)
def test_weight_decay_on_layers_spares_embeddings_scores_and_heads(make_trainer, tokenizer, encoder, attention, layers):
    words = WordEncoderConfig(vocab_size=len(tokenizer), encoder_type=encoder, embedding_size=8)
    settings = {"attention_type": attention, "head_layers": 1, "polarity_head": True, "bottleneck": "none"}
    with torch.random.fork_rng():
        model = EncoderForVATClassification(EncoderVATConfig(encoder=words, **settings))
    trainer = make_trainer(
        model=model, weight_decay=0.5, weight_decay_on="layers", **(recipes.ADAGRAD | {"num_train_epochs": 1})
    )
    trainer.create_optimizer()
    groups = trainer.optimizer.param_groups
    decays = {id(parameter): group["weight_decay"] for group in groups for parameter in group["params"]}
    assert {name for name, parameter in model.named_parameters() if decays[id(parameter)]} == layers
    assert isinstance(trainer.optimizer, torch.optim.Adagrad)
    assert {group["lr_decay"] for group in groups} == {1e-3} and {group["lr"] for group in groups} == {0.02}


def test_a_configuration_that_asks_for_tuples(make_trainer, make_model, make_dataset):
    """Training, its records and an evaluation are the same."""
    records = []
    for named in (True, False):
        model = make_model("vat")
        model.config.return_dict = named
        trainer = make_trainer(model=model, eval_dataset=make_dataset(8, seed=1), eval_strategy="epoch")
        trainer.train()
        timeless = (
            {name: one[name] for name in one if not re.search("runtime|per_second", name)}
            for one in trainer.state.log_history
        )
        records.append(list(timeless))
    assert records[0] == records[1] and "eval_accuracy" in records[0][-2]
