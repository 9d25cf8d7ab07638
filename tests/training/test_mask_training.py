"""VATTrainer on models with a word mask: weight of the term, statistics, collapse, checkpoints, refusals."""

import json
import logging
import math
import os
import re

import numpy as np
import pytest
import runs
import torch
from runs import EACH_EPOCH, SMALL, Poison, StopAt, assert_same_weights, broken_and_unbroken, launch, records, weights
from transformers import TrainerCallback, set_seed

from hf_vat import BertVMaskConfig, BertWithVMask, EncoderVMaskConfig, EncoderWithVMask, WordEncoderConfig, explain
from hf_vat.errors import InputError

DOWN = {"mask_beta_start": 0.8, "mask_beta_end": 0.2}  # 0.8, 0.6, 0.4, 0.2 in four epochs
VAT = {"pooling": "attention", "bottleneck": "gaussian"}


@pytest.fixture
def make_model(tokenizer):
    """The same weights each time."""

    def make(mask="vmask", **settings):
        with torch.random.fork_rng():
            set_seed(0)
            settings = {"attention_probs_dropout_prob": 0.0, "initializer_range": 0.2} | settings
            return BertWithVMask(BertVMaskConfig(vocab_size=len(tokenizer), mask_type=mask, **SMALL, **settings))

    return make


def set_scores(model, logit: float) -> None:
    """The same mask logit for every word."""
    with torch.no_grad():
        model.word_mask.scorer.weight.zero_()
        model.word_mask.scorer.bias.fill_(logit)


# Log


@pytest.mark.parametrize(
    ("mask", "settings"), [("vmask", {}), ("iba", {}), ("vmask", VAT)], ids=["vmask", "iba", "vat"]
)
def test_c31_the_parts_add_up_to_the_loss_in_every_epoch(train, make_model, mask, settings):
    trainer = train(
        model=make_model(mask, **settings),
        gradient_accumulation_steps=2,
        logging_steps=3,
        eval_strategy="epoch",
        **DOWN,
    )
    found = [(record, "") for record in records(trainer)]
    found += [(record, "eval_") for record in records(trainer, "eval_loss")]
    assert len(found) >= 8
    for record, prefix in found:
        beta = record[f"{prefix}mask_beta"]
        assert beta == pytest.approx([0.8, 0.6, 0.4, 0.2][math.ceil(record["epoch"] - 1e-6) - 1])
        total = record[f"{prefix}cross_entropy"] + beta * record.get(f"{prefix}mask_compression", 0)
        if settings:
            total += record[f"{prefix}beta"] * record.get(f"{prefix}compression", 0)
        assert record[f"{prefix}loss"] == pytest.approx(total, abs=1e-5)
        trained = prefix or record["phase"] != "compress"  # there the mask is frozen, and its term out of the loss
        assert (f"{prefix}mask_compression" in record) == bool(trained)  # measured or absent (F02)
        assert record.get(f"{prefix}mask_compression", 1) > 0
        assert 0 < record[f"{prefix}mask_mean"] < 1 and 0 <= record[f"{prefix}mask_open"] <= 1
    assert trainer.model.config.mask_beta == 0.2


def masks_by_text(trainer) -> list[float]:
    """Of all words that are evaluated, text by text."""
    model, masks = trainer.model.eval(), []
    for row in trainer.eval_dataset:
        with torch.no_grad():
            masks += model(input_ids=torch.tensor([row["input_ids"]])).token_mask[0, 1:-1].tolist()
    return masks


def test_the_mean_is_over_the_content_tokens(make_trainer, make_model, make_dataset):
    """Worked out text by text, without padding; texts count by their length."""
    trainer = make_trainer(per_device_eval_batch_size=4)
    with torch.no_grad():
        trainer.model.word_mask.scorer.weight.mul_(20)
    masks = masks_by_text(trainer)
    metrics = trainer.evaluate()
    assert min(masks) < 0.4 and max(masks) > 0.6
    assert metrics["eval_mask_mean"] == pytest.approx(np.mean(masks), abs=1e-6)
    assert metrics["eval_mask_open"] == pytest.approx(np.mean(np.array(masks) > 0.5), abs=1e-6)
    assert trainer.predict(make_dataset(4)).metrics.keys() >= {"test_mask_mean", "test_mask_beta"}


def test_a_mask_of_exactly_0_counts_as_a_content_token(make_trainer, make_model, make_dataset):
    trainer = make_trainer(model=make_model(), num_train_epochs=1, per_device_eval_batch_size=4)
    with torch.no_grad():  # words are kept whole or, so far away that nothing is left in float32, not at all
        trainer.model.word_mask.scorer.weight.mul_(1e4)
    masks = masks_by_text(trainer)
    share = np.mean(masks)
    assert set(masks) == {0.0, 1.0} and 0.1 < share < 0.9
    metrics = trainer.evaluate()
    assert metrics["eval_mask_mean"] == metrics["eval_mask_open"] == pytest.approx(share, abs=1e-6)
    assert metrics["eval_mask_sd"] == pytest.approx((share * (1 - share)) ** 0.5, abs=1e-6)


@pytest.mark.parametrize("mask", ["l2x", "none"])
def test_what_a_model_lacks_is_not_logged(train, mask):
    trainer = train(mask, num_train_epochs=1, eval_strategy="epoch")
    names = {name.removeprefix("eval_") for record in trainer.state.log_history for name in record}
    assert names & {"mask_compression", "mask_beta", "mask_mean", "mask_open"} == (
        {"mask_mean", "mask_open"} if mask == "l2x" else set()
    )


def test_c15_a_loss_that_is_not_finite_names_the_mask(make_trainer):
    poison = Poison("word_mask.scorer.bias")
    with pytest.raises(FloatingPointError, match=r"step 6 in phase 'finetune': .*mask_compression, token_mask"):
        make_trainer(callbacks=[poison]).train()


# Weight of the term


def test_without_a_schedule_the_weight_is_the_callers(train, make_model):
    class Switch(TrainerCallback):
        def on_epoch_begin(self, args, state, control, model=None, **kwargs):
            model.config.mask_beta = 0.5 if state.epoch < 2 else 3.0

    constant = train(model=make_model(mask_beta=0.7))
    assert {record["mask_beta"] for record in records(constant)} == {0.7}
    switched = train(callbacks=[Switch()])
    assert [r["mask_beta"] for r in records(switched)] == [0.5] * 8 + [3.0] * 8


def test_a_second_train_and_a_second_trainer_begin_with_the_first_weight(train):
    first = train(num_train_epochs=2, **DOWN)
    first.train()
    second = train(model=first.model, num_train_epochs=2, **DOWN)
    for trainer in (first, second):
        betas = [record["mask_beta"] for record in records(trainer)]
        assert betas == pytest.approx([0.8] * 4 + [0.2] * 4)


def test_the_schedule_goes_by_steps_where_these_limit_training(train):
    trainer = train(max_steps=10, num_train_epochs=99, **DOWN)  # two epochs and a half
    betas = {record["step"]: record["mask_beta"] for record in records(trainer)}
    assert [betas[step] for step in (4, 5, 8, 9, 10)] == pytest.approx([0.8, 0.5, 0.5, 0.2, 0.2])


def test_the_weight_goes_down_in_steps_as_in_the_published_code(train):
    trainer = train(mask_beta_start=1.0, mask_beta_end=0.01, mask_beta_step_epochs=2)
    betas = [record["mask_beta"] for record in records(trainer)]
    assert betas == pytest.approx([1.0] * 8 + [0.901] * 8)


@pytest.mark.parametrize(
    ("mask", "settings", "message"),
    [
        ("vmask", {"mask_beta_start": 1.0}, "mask_beta_end is None; give both"),
        ("vmask", {"mask_beta_step_epochs": 1}, "mask_beta_start is None and .* neither .and no mask_beta_step_epochs"),
        ("vmask", {**DOWN, "mask_beta_step_epochs": 0}, "--mask_beta_step_epochs is 0; it must be at least 1"),
        ("vmask", {"mask_beta_start": 1.0, "mask_beta_end": -0.1}, "--mask_beta_end is -0.1; it must be at least 0"),
        ("l2x", DOWN, "BertWithVMask with mask_type='l2x' has none; leave it out, or use mask_type 'vmask' or 'iba'"),
        ("none", DOWN, "mask_type='none' has none"),
    ],
)
def test_a_schedule_that_does_not_fit_is_refused(make_trainer, mask, settings, message):
    with pytest.raises(InputError, match=message):
        make_trainer(mask, **settings)


def test_losses_of_different_weights_are_not_to_be_compared(make_trainer, caplog):
    make_trainer(metric_for_best_model="accuracy", **EACH_EPOCH, **DOWN)
    make_trainer(**EACH_EPOCH)
    assert not caplog.records
    make_trainer(**EACH_EPOCH, **DOWN)
    assert "cannot be compared while mask_beta goes from 0.8 to 0.2" in caplog.text


# Collapse


def test_c17_a_mask_that_has_collapsed_is_logged_and_warned_of(make_trainer, make_model, tokenizer, caplog):
    """Without the term; the accuracy says nothing of it."""
    model = make_model(mask_beta=0)
    set_scores(model, 5.5)
    trainer = make_trainer(model=model, num_train_epochs=13, eval_strategy="epoch", compressor_learning_rate=1e-3)
    with caplog.at_level(logging.WARNING):
        trainer.train()
    evaluations = records(trainer, "eval_loss")
    assert trainer.state.global_step > 50 and len(evaluations) == 13
    assert all(record["eval_mask_mean"] > 0.99 and record["eval_mask_open"] == 1 for record in evaluations)
    warned = [record.message for record in caplog.records if "mask_mean" in record.message]
    assert len(warned) == 13
    mean = evaluations[-1]["eval_mask_mean"]
    assert warned[-1] == (
        f"eval_mask_mean is {mean:.4f} and eval_mask_sd {evaluations[-1]['eval_mask_sd']:.4f}: the word mask lets nearly every "
        "word through whole, so it cannot tell which words matter. Raise mask_beta (now 0) or lower compressor_learning_rate (0.001)."
    )
    set_scores(trainer.model, 20.0)
    [explanation] = explain(trainer.model, tokenizer, ["a very good film"], "mask")
    assert explanation.tied and "All words tie" in str(explanation)


@pytest.mark.parametrize(
    ("mask", "logit", "settings", "message"),
    [
        (
            "vmask",
            -6.0,
            {},
            r"lets nearly nothing through.*Raise mask_beta \(now 1.0\) or lower compressor_learning_rate",
        ),
        ("iba", 0.5, {}, r"every word through whole.*Raise mask_beta \(now 1.0\)"),  # beside the 5 it starts with
        ("iba", -10.0, {}, r"lets nearly nothing through.*Lower mask_beta"),
        ("l2x", -6.0, {"mask_normalization": "sigmoid"}, r"matter\. Lower compressor_learning_rate"),
        ("vmask", 0.0, {}, r"nearly the same for all words.*Lower mask_beta \(now 1.0\) or train longer"),
        ("l2x", 0.0, {"mask_normalization": "sigmoid"}, r"nearly the same for all words.*matter\. Train longer"),
        ("iba", 0.0, {}, None),  # where it starts, at 0.9933
        ("l2x", -6.0, {}, None),  # weights of a text sum to 1 whatever the scores
    ],
)
def test_c17_the_warning_says_what_to_do(make_trainer, make_model, caplog, mask, logit, settings, message):
    trainer = make_trainer(model=make_model(mask, **settings))
    set_scores(trainer.model, logit)
    trainer.evaluate()
    warned = [record.message for record in caplog.records if "mask_mean" in record.message]
    if message is None:
        assert not warned
    else:
        [text] = warned
        assert re.search(message, text)


# Optimizer


def test_the_mask_has_the_learning_rate_of_new_parameters(make_trainer):
    trainer = make_trainer(learning_rate=1e-4, compressor_learning_rate=1e-2)
    trainer.create_optimizer()
    rates = {id(p): group["lr"] for group in trainer.optimizer.param_groups for p in group["params"]}
    for name, parameter in trainer.model.named_parameters():
        assert rates[id(parameter)] == (1e-4 if name.startswith("bert.") else 1e-2), name
    assert {name for name, _ in trainer.model.named_parameters() if "mask" in name} == {
        "word_mask.scorer.weight",
        "word_mask.scorer.bias",
    }


@pytest.mark.parametrize("encoder", ["lstm", "cnn"])
def test_l2_is_weight_decay_of_weights_alone(make_trainer, tokenizer, encoder):
    """Biases have none; frozen embeddings are not in the optimizer at all."""
    words = WordEncoderConfig(
        vocab_size=len(tokenizer), encoder_type=encoder, embedding_size=8, hidden_size=12, pad_token_id=0
    )
    model = EncoderWithVMask(EncoderVMaskConfig(encoder=words, mask_type="none"))
    trainer = make_trainer(model=model, weight_decay=0.01)
    trainer.create_optimizer()
    decays = {id(p): group["weight_decay"] for group in trainer.optimizer.param_groups for p in group["params"]}
    found = {name: decays[id(parameter)] for name, parameter in model.named_parameters()}
    assert found == {name: 0.0 if "bias" in name else 0.01 for name in found}
    assert len(found) == {"lstm": 4, "cnn": 6}[encoder] + 4 and not any("embeddings" in name for name in found)


def test_l2_shrinks_the_weights_and_leaves_the_embeddings(make_trainer):
    norms = []
    for decay in (0.0, 5.0):
        trainer = make_trainer("none", weight_decay=decay)
        before = {name: tensor.clone() for name, tensor in trainer.model.bert.embeddings.state_dict().items()}
        trainer.train()
        norms.append(trainer.model.learner_head.dense.weight.norm().item())
        for name, tensor in trainer.model.bert.embeddings.state_dict().items():
            assert torch.equal(tensor, before[name]), name
    assert norms[1] < 0.8 * norms[0]


# Checkpoints


@pytest.mark.parametrize(("mask", "step"), [("vmask", 4), ("iba", 10)])  # at an end of an epoch, and within one
def test_c23_resume_is_bit_equal_with_a_schedule(make_trainer, make_model, mask, step):
    resumed, unbroken = broken_and_unbroken(lambda **settings: make_trainer(mask, **settings, **DOWN), StopAt(step))
    assert_same_weights(resumed.model, unbroken.model)  # parameters, frozen embeddings and the estimates of IBA
    found = resumed.model.state_dict()
    untrained = make_model(mask)
    assert not torch.equal(found["word_mask.scorer.weight"], untrained.word_mask.scorer.weight)
    for name, tensor in untrained.bert.embeddings.state_dict().items():
        assert torch.equal(found[f"bert.embeddings.{name}"], tensor), name
    logs = [
        [(record["loss"], record["mask_beta"], record["mask_mean"]) for record in records(trainer)]
        for trainer in (unbroken, resumed)
    ]
    assert logs[0] == logs[1]


def test_c23_resume_with_another_mask_or_schedule_says_which(make_trainer, make_model):
    make_trainer(callbacks=[StopAt(2)], **DOWN).train()
    for settings, message in (
        ({"model": make_model(mask_sample="hard_st"), **DOWN}, "mask_sample was 'soft' and is 'hard_st'"),
        ({"model": make_model(freeze_embeddings=False), **DOWN}, "freeze_embeddings was True and is False"),
        ({"model": make_model("iba"), **DOWN}, "mask_type was 'vmask' and is 'iba'"),
        ({**DOWN, "mask_beta_end": 0.1}, "mask_beta_end was 0.2 and is 0.1"),
        ({**DOWN, "mask_beta_step_epochs": 1}, "mask_beta_step_epochs was None and is 1"),
        ({}, "mask_beta_start was 0.8 and is None"),
    ):
        with pytest.raises(InputError, match=message):
            make_trainer(**settings).train(resume_from_checkpoint=True)


def test_c23_resume_with_another_constant_weight_says_which(make_trainer, make_model):
    def trained(**settings):
        return make_trainer(model=make_model(beta=0.3, mask_beta=0.5, **VAT), **settings)

    trained(callbacks=[StopAt(2)]).train()
    for settings, message in (
        ({"beta": 0.3, "mask_beta": 0.7}, r"cannot be resumed .*: mask_beta was 0\.5 and is 0\.7\. Use"),
        ({"beta": 0.2, "mask_beta": 0.5}, r"cannot be resumed .*: beta was 0\.3 and is 0\.2\. Use"),
        ({"beta": 0.3, "mask_beta": 0.5, "kl_reduction": "sum"}, "kl_reduction was 'mean' and is 'sum'"),
    ):
        with pytest.raises(InputError, match=message):
            make_trainer(model=make_model(**settings, **VAT)).train(resume_from_checkpoint=True)
    resumed = trained()
    resumed.train(resume_from_checkpoint=True)
    assert resumed.state.global_step == 16


def test_resume_goes_by_the_weight_that_training_began_with(make_trainer):
    """A callback of the user's may move it."""

    class Switch(TrainerCallback):
        def on_epoch_begin(self, args, state, control, model=None, **kwargs):
            model.config.mask_beta = 2.0 + int(state.epoch + 1e-6)

    make_trainer(callbacks=[Switch(), StopAt(10)]).train()
    resumed = make_trainer(callbacks=[Switch()])
    resumed.train(resume_from_checkpoint=True)
    assert [record["mask_beta"] for record in records(resumed)][-8:] == [4.0] * 4 + [5.0] * 4


def test_the_saved_weight_is_the_one_that_was_used(train):
    scores = iter([0.1, 0.9, 0.5, 0.2])  # the second epoch is best
    rigged = {"compute_metrics": lambda prediction: {"score": next(scores)}, "metric_for_best_model": "score"}
    trainer = train(**EACH_EPOCH, **rigged, **DOWN)
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-8")
    assert trainer.model.config.mask_beta == pytest.approx(0.6)
    for step, beta in ((4, 0.8), (8, 0.6), (12, 0.4), (16, 0.2)):
        folder = os.path.join(trainer.args.output_dir, f"checkpoint-{step}")
        assert BertWithVMask.from_pretrained(folder).config.mask_beta == pytest.approx(beta)


def test_a_finished_run_keeps_its_last_weight(make_trainer):
    make_trainer(save_strategy="epoch", num_train_epochs=2, **DOWN).train()
    again = make_trainer(num_train_epochs=2, **DOWN)
    again.train(resume_from_checkpoint=True)
    assert again.state.global_step == 8 and again.model.config.mask_beta == 0.2


# Several processes


@pytest.mark.slow
@pytest.mark.parametrize("mask", ["vmask", "iba"])
def test_c18_c88_two_processes_agree_with_each_other_and_with_one(tmp_path, mask):
    def train_in(processes: int) -> list[dict]:
        model = SMALL | {"mask_type": mask, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        rates = {"learning_rate": 1e-2, "compressor_learning_rate": 1e-1}
        settings = {"num_train_epochs": 2, "save_strategy": "no", **rates, **DOWN}
        output = tmp_path / str(processes)
        return launch(runs.__file__, processes, output, json.dumps(model), json.dumps(settings), "{}")

    two = train_in(2)
    assert [record["world_size"] for record in two] == [2, 2]
    first, second = weights(tmp_path / "2"), weights(tmp_path / "2", 1)
    for name in first:  # the frozen embeddings too
        # Estimates of IBA are sent from the first process at the beginning of each step, and so differ after the last.
        if name not in ("word_mask.mean", "word_mask.variance", "word_mask.count"):
            assert torch.equal(first[name], second[name]), name
    if mask == "iba":
        assert first["word_mask.count"] < 200  # the words of one process, of two epochs of 32 texts
        return
    [one] = train_in(1)
    for name, tensor in weights(tmp_path / "1").items():
        torch.testing.assert_close(first[name], tensor, atol=1e-5, rtol=0, msg=name)
    for ours, theirs in zip(two[0]["log"], one["log"], strict=True):
        for name in ours:
            if "loss" in ours and ("mask" in name or name == "cross_entropy"):
                assert ours[name] == pytest.approx(theirs[name], abs=1e-5), name
