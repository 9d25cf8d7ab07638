"""The best of all phases, early stopping by rounds, and which checkpoints are left."""

from pathlib import Path

import numpy as np
import pytest
import torch
from runs import EACH_EPOCH, records
from transformers import AutoModelForSequenceClassification, EarlyStoppingCallback

from hf_vat.errors import InputError


def test_c30_best_of_all_phases_is_loaded_with_its_head(train, plain_accuracy):
    scores = iter([0.1, 0.9, 0.5, 0.2])  # the compress phase of epoch 2 is best

    rigged = {"compute_metrics": lambda prediction: {"score": next(scores)}, "metric_for_best_model": "score"}
    trainer = train(**EACH_EPOCH, **rigged)
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-8")
    best = AutoModelForSequenceClassification.from_pretrained(trainer.state.best_model_checkpoint)
    assert best.config.predict_from == trainer.model.config.predict_from == "compressor"
    for (name, expected), actual in zip(best.named_parameters(), trainer.model.named_parameters(), strict=True):
        assert torch.equal(expected, actual[1]), name
    trainer.compute_metrics = plain_accuracy
    batch = trainer.data_collator([{"input_ids": row["input_ids"]} for row in trainer.eval_dataset])
    np.testing.assert_allclose(
        trainer.predict(trainer.eval_dataset).predictions, best.eval()(**batch).logits.detach().numpy(), atol=1e-5
    )


def test_c30_unknown_metric_names_the_available_ones(make_trainer):
    trainer = make_trainer(**EACH_EPOCH, metric_for_best_model="aopc")
    with pytest.raises(KeyError, match=r"eval_aopc.*eval_accuracy"):
        trainer.train()


def test_c30_several_evaluation_sets(train, make_dataset):
    trainer = train(
        eval_dataset={"one": make_dataset(6, seed=2), "two": make_dataset(6, seed=3)},
        num_train_epochs=2,
        **EACH_EPOCH,
        metric_for_best_model="eval_two_accuracy",
    )
    names = {name for record in trainer.state.log_history for name in record}
    assert {"eval_one_cross_entropy", "eval_two_compression"} <= names


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize(
    ("system", "scores", "stops"),
    [
        ("att", [1, 1, 1], 3),  # without phases as ever: two evaluations that are no better
        ("vat", [1] * 7, 7),  # joint, compress, learn; compress, learn; compress, learn: two rounds that are no better
        ("vat", [1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1], 11),  # the best in the middle of a round, of which the end is worse
        ("vat", [1, 2, 1, 3, 1, 4, 1, 5, 1], 9),  # better in each round, if not at its end
    ],
)
def test_f10_patience_counts_rounds_of_phases(train, system, scores, stops, ours):
    settings = {"early_stopping_patience": 2} if ours else {"callbacks": [EarlyStoppingCallback(2)]}
    given = iter([*scores, 0])
    trainer = train(
        system,
        size=8,
        **EACH_EPOCH,
        save_total_limit=1,
        metric_for_best_model="score",
        compute_metrics=lambda prediction: {"score": float(next(given))},
        num_train_epochs=len(scores) + (len(scores) < 8),
        **settings,
    )
    assert trainer.state.epoch == stops


def test_f10_default_phases_train_the_encoder_before_patience_ends(make_trainer):
    trainer = make_trainer(
        size=8,
        **EACH_EPOCH,
        metric_for_best_model="score",
        num_train_epochs=9,
        callbacks=[EarlyStoppingCallback(1)],
        **{"start_epochs": 0, "compress_epochs": 2, "learn_epochs": 2},
    )
    trainer.compute_metrics = lambda prediction: {"score": -trainer.state.epoch}  # worse each time
    trainer.train()
    phases = [record["phase"] for record in records(trainer)]
    assert phases == ["compress", "compress", "learn", "learn"] * 2


def test_f10_a_threshold_and_what_patience_needs(make_trainer, train):
    settings = EACH_EPOCH | {"metric_for_best_model": "score", "num_train_epochs": 4, "early_stopping_patience": 1}
    given = iter([0.0, 1.0, 1.4, 9.0])
    rigged = {"early_stopping_threshold": 0.5, "compute_metrics": lambda prediction: {"score": next(given)}}
    trainer = train("att", **settings, **rigged)
    assert trainer.state.epoch == 3
    for change, mentions in [
        ({"eval_strategy": "no", "load_best_model_at_end": False}, "eval_strategy"),
        ({"metric_for_best_model": None, "load_best_model_at_end": False}, "metric_for_best_model"),
        ({"early_stopping_patience": 0}, "at least 1"),
        ({"early_stopping_threshold": float("nan")}, "at least 0"),
    ]:
        with pytest.raises(InputError, match=mentions):
            make_trainer("att", **(settings | change))


def test_f09_losses_of_two_kinds_are_said_to_be_so(make_trainer, make_model, caplog):
    def train(system="vat", **settings):
        caplog.clear()
        make_trainer(system, size=8, num_train_epochs=1, **(EACH_EPOCH | settings)).train()
        return [record.getMessage() for record in caplog.records if "cannot be compared" in record.getMessage()]

    [warning] = train()
    assert "beta=0.1" in warning and "metric_for_best_model='cross_entropy'" in warning
    assert not train(metric_for_best_model="accuracy")
    assert not train(predict_from="compressor")  # one head, whose loss always has the term
    assert not train("att")
    assert not train(model=make_model("vat", beta=0.0))
    assert not train(load_best_model_at_end=False, metric_for_best_model="loss")
    assert train(load_best_model_at_end=False, metric_for_best_model="loss", callbacks=[EarlyStoppingCallback(1)])


def test_f09_cross_entropy_chooses_the_lowest(train):
    trainer = train(**EACH_EPOCH, metric_for_best_model="cross_entropy", num_train_epochs=3)
    values = [record["eval_cross_entropy"] for record in records(trainer, "eval_loss")]
    assert trainer.state.best_metric == min(values) and trainer.args.greater_is_better is False


def test_c33_checkpoints_are_limited_and_loadable(train, tmp_path):
    trainer = train(
        num_train_epochs=2,
        **EACH_EPOCH,
        metric_for_best_model="accuracy",
        save_total_limit=1,
    )
    [left] = Path(tmp_path / "run").glob("checkpoint-*")
    assert str(left) == trainer.state.best_model_checkpoint
    assert AutoModelForSequenceClassification.from_pretrained(left).config.bottleneck == "gaussian"
