"""What a training logs of attention and polarity scores."""

import math

import pytest
from runs import records

from hf_vat.analysis import attention_scores, type_separation
from hf_vat.errors import InputError
from hf_vat.training import AttentionScoresCallback


@pytest.fixture
def train(make_trainer, make_dataset, tokenizer):
    def train(*which, model, **settings):
        trainer = make_trainer(*which, model=model, **settings)
        rows = make_dataset(64)
        trainer.add_callback(AttentionScoresCallback(trainer, rows["text"][:], rows["label"][:]))
        trainer.train()
        return trainer, rows

    return train


def test_scores_of_each_epoch_are_in_the_log(train, make_model, tokenizer):
    model = make_model("att", head_layers=1, polarity_head=True, id2label={0: "neg", 1: "pos"})
    trainer, rows = train(model=model, num_train_epochs=2, logging_strategy="epoch")
    found = records(trainer, "attention_square")
    assert [record["epoch"] for record in found] == [1, 2]
    assert [record["epoch"] for record in records(trainer)] == [1, 2]  # with the losses that other records have
    last = found[-1]
    vector, head = model.attention.direction(), model.learner_head.out_proj.weight[0]
    assert last["attention_polarity_product"] == pytest.approx((vector @ head).item())
    assert last["attention_square"] == pytest.approx((vector @ vector).item())
    assert last["polarity_square"] == pytest.approx((head @ head).item())
    separation = type_separation(attention_scores(model, tokenizer, rows["text"][:], rows["label"][:]))
    assert set(separation.means) == {"pos", "neg", "neutral"}
    for name, means in separation.means.items():
        assert last[f"attention_score_{name}"] == pytest.approx(means.attention_score, abs=1e-6)
        assert last[f"polarity_score_{name}"] == pytest.approx(means.polarity_score, abs=1e-6)
    assert last["attention_auc"] == pytest.approx(separation.attention_auc)
    assert found[0]["polarity_score_pos"] != last["polarity_score_pos"]
    assert all(math.isfinite(value) for value in last.values() if isinstance(value, float))


def test_a_head_of_two_layers_has_no_product_and_three_classes_have_one_each(train, make_model):
    trainer, _ = train(model=make_model("att"), num_train_epochs=1)
    [record] = records(trainer, "attention_auc")
    assert not any(name.startswith("attention_polarity_product") for name in record)
    model = make_model("att", head_layers=1, num_labels=3, id2label={0: "a", 1: "b", 2: "c"})
    trainer, _ = train(model=model, num_train_epochs=1, folder="three")
    [record] = records(trainer, "attention_square")
    assert {name for name in record if "product" in name} == {f"attention_polarity_product_{one}" for one in "abc"}


def test_it_changes_nothing_of_the_training(train, make_trainer, make_model):
    with_it, _ = train(model=make_model("att", head_layers=1), num_train_epochs=2)
    without = make_trainer(
        model=make_model("att", head_layers=1), num_train_epochs=2,
        folder="without",
    )  # fmt: skip
    without.train()
    losses = [[record["loss"] for record in records(trainer)] for trainer in (with_it, without)]
    assert losses[0] == losses[1]


def test_it_needs_a_tokenizer(make_trainer):
    trainer = make_trainer()
    trainer.processing_class = None
    with pytest.raises(InputError, match="processing_class=tokenizer"):
        AttentionScoresCallback(trainer, ["good"], [1])
