"""What an evaluation measures does not depend on the number of processes or the size of a batch."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from runs import SMALL, launch, tiny_data
from transformers import DataCollatorWithPadding, EvalPrediction, set_seed

from hf_vat import BertVMaskConfig, BertWithVMask
from hf_vat.distributions import normalized_entropy
from hf_vat.training import VATTrainer, VATTrainingArguments
from hf_vat.training.metrics import accuracy_and_macro_f1

SIZES, BATCHES = range(1, 10), range(1, 5)
NOT_MEASURES = ("runtime", "per_second", "preparation_time")


def make_model(tokenizer) -> BertWithVMask:
    """Attention, bottleneck and word mask, so that it has every measure."""
    set_seed(0)
    return BertWithVMask(
        BertVMaskConfig(
            vocab_size=len(tokenizer), initializer_range=0.2, pooling="attention", bottleneck="gaussian",
            predict_from="compressor", beta=0.7, mask_beta=0.4, **SMALL,
        )
    )  # fmt: skip


def make_trainer(tokenizer, folder, **settings) -> VATTrainer:
    args = VATTrainingArguments(str(folder), use_cpu=True, report_to="none", disable_tqdm=True, **settings)
    collator = DataCollatorWithPadding(tokenizer)
    return VATTrainer(make_model(tokenizer), args, collator, compute_metrics=accuracy_and_macro_f1)


def evaluations(tokenizer, rows, folder, processes: int = 1) -> dict[str, dict]:
    """All measures for each number of texts and size of a batch."""
    found = {}
    for batch in BATCHES:
        trainer = make_trainer(tokenizer, folder, per_device_eval_batch_size=batch)
        assert trainer.args.world_size == processes
        for size in SIZES:
            metrics = trainer.evaluate(rows.select(range(size)))
            found[f"{size} {batch}"] = {k: v for k, v in metrics.items() if not k.endswith(NOT_MEASURES)}
    return found


def labelled(rows):
    """One text is to be left out of the loss."""
    return rows.map(lambda row, place: {"label": -100 if place == 2 else row["label"]}, with_indices=True)


def main():
    """A process of two: `python test_evaluation.py OUTPUT`."""
    tokenizer, make_dataset = tiny_data()
    found = evaluations(tokenizer, labelled(make_dataset(max(SIZES))), sys.argv[1], processes=2)
    Path(f"{sys.argv[1]}.{os.environ['RANK']}.json").write_text(json.dumps(found))


def test_f12_two_processes_measure_what_one_does(tmp_path, tokenizer, make_dataset):
    first, second = launch(__file__, 2, tmp_path / "two")
    rows = labelled(make_dataset(max(SIZES)))
    alone = evaluations(tokenizer, rows, tmp_path / "one")
    assert len(alone) == 36 and first == second and first.keys() == alone.keys()
    for case, expected in alone.items():
        assert first[case] == pytest.approx(expected, abs=1e-6), case
        # Batches do not matter either: the same texts, one by one.
        assert expected == pytest.approx(alone[f"{case.split()[0]} 1"], abs=1e-6), case

    model = make_model(tokenizer).eval()
    with torch.no_grad():
        texts = [model(input_ids=torch.tensor([row["input_ids"]]), labels=torch.tensor([row["label"]])) for row in rows]
    counted = [text for row, text in zip(rows, texts, strict=True) if row["label"] != -100]
    mask = torch.cat([text.token_mask[0, 1:-1] for text in texts])
    means = {
        "loss": np.mean([text.loss.item() for text in counted]),
        "cross_entropy": np.mean([text.cross_entropy.item() for text in counted]),
        "compression": np.mean([text.compression.item() for text in counted]),
        "mask_compression": np.mean([text.mask_compression.item() for text in counted]),
        "attention_entropy": np.mean(
            [normalized_entropy(a, (a > 0).sum(-1)).item() for a in (text.token_importance for text in texts)]
        ),
        "mask_mean": mask.mean().item(),
        "mask_open": (mask > 0.5).float().mean().item(),
        "mask_sd": mask.std(correction=0).item(),
        "accuracy": np.mean(
            [
                text.logits.argmax().item() == label
                for text, label in zip(texts, rows["label"], strict=True)
                if label >= 0
            ]
        ),
    }
    for name, value in means.items():
        assert first["9 4"][f"eval_{name}"] == pytest.approx(value, abs=1e-6), name


def test_f12_class_weights_do_not_depend_on_the_batch(tmp_path, tokenizer, make_dataset):
    rows, weights, found = labelled(make_dataset(7)), [0.1, 0.4], []
    for batch in (1, 3, 7):
        trainer = make_trainer(tokenizer, tmp_path, per_device_eval_batch_size=batch, class_weights=weights)
        metrics = trainer.evaluate(rows)
        found.append([metrics["eval_loss"], metrics["eval_cross_entropy"]])
    logits, labels = torch.tensor(trainer.predict(rows).predictions), torch.tensor(rows["label"][:])
    expected = torch.nn.functional.cross_entropy(logits, labels, weight=torch.tensor(weights)).item()
    for loss, cross_entropy in found:
        assert cross_entropy == pytest.approx(expected, abs=1e-6) and loss == pytest.approx(found[0][0], abs=1e-6)


def test_f02_without_a_label_nothing_is_measured_that_needs_one(tmp_path, tokenizer, make_dataset):
    rows = make_dataset(3).map(lambda row: {"label": -100})
    metrics = make_trainer(tokenizer, tmp_path).evaluate(rows)
    assert {"eval_attention_entropy", "eval_mask_mean"} <= metrics.keys()
    absent = {"loss", "cross_entropy", "compression", "mask_compression", "accuracy", "macro_f1"}
    assert not {f"eval_{name}" for name in absent} & metrics.keys()


@pytest.mark.parametrize("classes", [2, 5])
def test_f10_accuracy_and_macro_f1_are_those_of_scikit_learn(classes):
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(0)
    for size in (1, 2, 7, 100):
        logits, gold = generator.normal(size=(size, classes)), generator.integers(0, classes, size)
        found = accuracy_and_macro_f1(EvalPrediction(predictions=logits, label_ids=gold))
        predicted = logits.argmax(-1)
        assert found["accuracy"] == pytest.approx(metrics.accuracy_score(gold, predicted), abs=1e-12)
        assert found["macro_f1"] == pytest.approx(metrics.f1_score(gold, predicted, average="macro"), abs=1e-12)
        # Texts without a label do not count.
        more = EvalPrediction(np.vstack([logits, logits[:1]]), np.append(gold, -100))
        assert accuracy_and_macro_f1(more) == found


if __name__ == "__main__":
    from hf_vat.cli import run

    run(main)
