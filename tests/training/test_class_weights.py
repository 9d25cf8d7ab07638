"""Class weights: torch's weighted cross-entropy in every phase and head, to the bit, on the command line and when resuming."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import StopAt, assert_same_weights, records
from transformers import HfArgumentParser, Trainer, TrainingArguments
from transformers.trainer_pt_utils import LabelSmoother

from hf_vat.errors import InputError
from hf_vat.training import VATTrainer, VATTrainingArguments

WEIGHTS = [1.0, 2.5]


class Weighted(Trainer):
    """As the documentation of transformers shows it."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = torch.nn.CrossEntropyLoss(weight=torch.tensor(WEIGHTS))(outputs.logits, labels)
        return (loss, outputs) if return_outputs else loss


def test_f08_weights_are_those_of_the_documented_override_to_the_bit(make_trainer, make_model, make_dataset):
    same = {"compressor_learning_rate": 1e-3, "lr_scheduler_type": "linear", "warmup_steps": 0, "num_train_epochs": 2}
    ours = make_trainer("att", class_weights=WEIGHTS, **same)
    args = {"num_train_epochs": 2, "per_device_train_batch_size": 8, "learning_rate": 1e-3, "use_cpu": True}
    stock = Weighted(
        make_model("att"),
        TrainingArguments(ours.args.output_dir, **args, report_to="none", disable_tqdm=True, save_strategy="no"),
        train_dataset=make_dataset(32),
        data_collator=ours.data_collator,
    )
    for trainer in (ours, stock):
        torch.manual_seed(0)
        trainer.train()
    assert_same_weights(stock.model, ours.model)
    plain = make_trainer("att", **same)
    torch.manual_seed(0)
    plain.train()
    assert not torch.equal(plain.model.learner_head.out_proj.weight, ours.model.learner_head.out_proj.weight)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(2, 5), st.floats(0, 0.5))
def test_f08_loss_and_gradients_are_those_of_torch(seed, size, classes, smoothing):
    from hf_vat.models.classifier import VATClassifier

    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(size, classes, generator=generator) * 3
    labels = torch.randint(-1, classes, (size,), generator=generator)
    labels[labels < 0] = -100
    weights = torch.rand(classes, generator=generator) + 0.1
    head = VATClassifier()
    head.num_labels = classes
    for weight, smooth in ((weights, smoothing), (weights, 0.0), (None, smoothing)):
        head.class_weights, head.label_smoothing = weight, smooth
        given_logits, same_logits = (logits.clone().requires_grad_() for _ in range(2))
        loss, by_text = head._cross_entropy(given_logits, labels)
        loss.backward()
        assert loss.item() == pytest.approx(by_text.sum().item() / max((labels != -100).sum().item(), 1), abs=1e-5)
        if (labels == -100).all():
            assert loss == 0 and not given_logits.grad.any()
            continue
        if weight is None and smooth:
            expected = LabelSmoother(smooth)({"logits": same_logits}, labels)
        else:
            criterion = torch.nn.CrossEntropyLoss(weight=weight, label_smoothing=smooth)
            expected = criterion(same_logits, labels)
        expected.backward()
        torch.testing.assert_close(loss, expected)
        if weight is None or not smooth:
            assert torch.equal(given_logits.grad, same_logits.grad)
        else:
            torch.testing.assert_close(given_logits.grad, same_logits.grad)


def test_f08_a_weighted_mean_by_hand(make_model, tokenizer):
    """Two texts, of cross-entropy a and b and weights 1 and 3: (a + 3b) / 4."""
    model = make_model("att").eval()
    batch, labels = tokenizer(["good film", "bad film"], return_tensors="pt"), torch.tensor([0, 1])
    a, b = model(**batch, labels=labels).cross_entropy.tolist()
    model.class_weights = torch.tensor([1.0, 3.0])
    out = model(**batch, labels=labels)
    assert out.loss.item() == pytest.approx((a + 3 * b) / 4, abs=1e-6)
    assert out.cross_entropy.tolist() == pytest.approx([a / 2, 3 * b / 2], abs=1e-6)  # over the mean weight, 2


@pytest.mark.parametrize("phase", ["joint", "compress", "learn", "finetune"])
def test_f08_every_phase_and_head_has_the_weights(make_model, tokenizer, phase, monkeypatch):
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)
    model = make_model("vat", beta=0.5).train()
    model.set_phase(phase)
    batch, labels = tokenizer(["good film", "bad film"], return_tensors="pt"), torch.tensor([0, 1])
    texts = model(**batch, labels=labels)
    model.class_weights = torch.tensor([1.0, 3.0])
    out = model(**batch, labels=labels)
    a, b = texts.cross_entropy.tolist()
    term = 0 if texts.compression is None else 0.5 * texts.compression.mean().item()  # has no class weights
    assert out.loss.item() == pytest.approx((a + 3 * b) / 4 + term, abs=1e-6)


def test_f08_balanced_by_hand(train, make_dataset):
    """Of 32 texts 8 in class 0: N / (C N_c) is 32 / (2 · 8) = 2 and 32 / (2 · 24) = 2/3. The loss is then the log's sum."""
    rows = make_dataset(32).remove_columns("label").add_column("label", [0] * 8 + [1] * 24)
    trainer = train(rows=rows, class_weights="balanced", num_train_epochs=2, eval_strategy="epoch")
    assert trainer._class_weights.tolist() == pytest.approx([2, 2 / 3])
    for record in records(trainer):
        assert record["loss"] == pytest.approx(record["cross_entropy"] + 0.1 * record["compression"], abs=1e-5)
    assert (
        trainer.model.class_weights is None and trainer.model.label_smoothing == 0
    )  # those of the run, not the model's


def test_f08_what_cannot_be_weights_is_refused(make_trainer, make_dataset, tmp_path):
    for wrong in ([1, 0], [1, -2], [1, float("nan")], [1, float("inf")], "even", ["a", "b"], [], 3):
        with pytest.raises(InputError, match="'balanced' or one number above 0"):
            VATTrainingArguments(str(tmp_path), class_weights=wrong, report_to="none")
    with pytest.raises(InputError, match="3 numbers, and the model has 2 classes"):
        make_trainer(class_weights=[1, 2, 3])
    trainer = make_trainer(class_weights="balanced")
    trainer.train_dataset = trainer.train_dataset.filter(lambda row: row["label"] == 1)
    with pytest.raises(InputError, match=r"no weight for class 0, .* one number per class"):
        trainer.train()
    stream = make_dataset(8).to_iterable_dataset()
    with pytest.raises(InputError, match=r"a stream .* give one number per class"):
        make_trainer(rows=stream, class_weights="balanced", max_steps=2)


def test_f08_resuming_needs_the_same_weights(make_trainer):
    make_trainer(class_weights=WEIGHTS, callbacks=[StopAt(2)]).train()
    with pytest.raises(InputError, match=r"class_weights was \[1.0, 2.5\] and is None"):
        make_trainer().train(resume_from_checkpoint=True)
    make_trainer(folder="without", callbacks=[StopAt(2)]).train()
    with pytest.raises(InputError, match=r"class_weights was None and is \[1.0, 1.0\]"):
        make_trainer(folder="without", class_weights="balanced").train(resume_from_checkpoint=True)


@pytest.mark.parametrize(("words", "expected"), [(["balanced"], "balanced"), (["1", "2.5"], [1.0, 2.5])])
def test_f08_the_command_line_has_them(words, expected, tmp_path):
    parser = HfArgumentParser(VATTrainingArguments)
    options = ["--output_dir", str(tmp_path), "--report_to", "none"]
    [args] = parser.parse_args_into_dataclasses([*options, "--class_weights", *words])
    assert args.class_weights == expected and args.to_dict()["class_weights"] == expected
    assert parser.parse_args_into_dataclasses(options)[0].class_weights is None


def test_f08_a_loss_of_one_s_own_is_built_on_or_refused(make_trainer, train):
    class Replaces(VATTrainer):
        compute_loss = Weighted.compute_loss

    class Adds(VATTrainer):
        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
            return (loss + 1, outputs) if return_outputs else loss + 1

    with pytest.raises(InputError, match=r"Replaces.compute_loss replaces .* class_weights .* super\(\).compute_loss"):
        make_trainer(cls=Replaces)
    plain, adds = (train(cls=cls, num_train_epochs=1, start="finetune") for cls in (VATTrainer, Adds))
    losses = [[record["loss"] for record in records(trainer)] for trainer in (plain, adds)]
    assert np.subtract(losses[1], losses[0]) == pytest.approx([1] * 4, abs=1e-5)
