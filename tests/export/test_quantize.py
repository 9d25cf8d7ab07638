"""The example that quantises: on a toy model and a CSV file, and what it prints against the package's own measures."""

import json
import logging
import runpy
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from hf_vat import (
    BertVMaskConfig,
    BertWithVMask,
    EncoderForVATClassification,
    EncoderVATConfig,
    Faithfulness,
    WordEncoderConfig,
    explain,
)
from hf_vat.cli import run
from hf_vat.data.vocabulary import train_word_tokenizer
from hf_vat.export import OnnxClassifier

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "quantize.py"


@pytest.fixture
def quantize(monkeypatch, capsys):
    """Run the example in this process: exit code, output, errors."""
    level = logging.getLogger().level
    main = runpy.run_path(str(SCRIPT))["main"]

    def run_script(*argv):
        monkeypatch.setattr(sys, "argv", ["quantize.py", *map(str, argv)])
        with pytest.raises(SystemExit) as ended:
            run(main)
        return ended.value.code, *capsys.readouterr()

    yield run_script
    logging.getLogger().setLevel(level)


def saved(model, tokenizer, folder: Path) -> Path:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def csv_file(path: Path, dataset) -> Path:
    rows = [f"{text},LABEL_{label}" for text, label in zip(dataset["text"], dataset["label"], strict=True)]
    path.write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    return path


def test_both_models_are_measured_and_compared(make_model, make_dataset, tokenizer, quantize, tmp_path):
    model, data = make_model("att"), make_dataset(12)
    folder = saved(model, tokenizer, tmp_path / "model")
    file = csv_file(tmp_path / "test.csv", data)
    arguments = ("--model", folder, "--test_file", file, "--output_dir", tmp_path / "out", "--seeds", 2)
    code, out, err = quantize(*arguments)
    assert code == 0, err

    texts, labels = data["text"][:], data["label"][:]
    explanations = explain(model, tokenizer, texts, labels=labels)
    wanted = Faithfulness(model, tokenizer, explanations).measure(explanations).to_dict()
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    for name in ("accuracy", "accuracy_drop@5", "prob_drop@5", "posthoc_gold@5"):
        assert results["float32"]["own"][name] == pytest.approx(wanted[name], abs=1e-5)
    [line] = [line for line in out.splitlines() if line.startswith("float32 ")]
    assert f"{100 * wanted['accuracy']:.1f}" in line and f"{100 * wanted['accuracy_drop@5']:.1f} / " in line

    integers = explain(OnnxClassifier(tmp_path / "out" / "int8"), tokenizer, texts)
    same = [a.prediction == b.prediction for a, b in zip(explanations, integers, strict=True)]
    assert results["agreement"]["same class"] == sum(same) / len(same)
    assert [made.scores for made in integers] != [made.scores for made in explanations]
    assert 0.5 < results["agreement"]["kendall_tau"] <= 1  # 1 for the same rankings, 0 for unrelated ones
    assert f"Kendall τ-b {results['agreement']['kendall_tau']:.2f}" in out


@pytest.mark.slow
def test_a_mask_and_an_lstm_are_quantised_too(make_dataset, tokenizer, quantize, tmp_path):
    data = make_dataset(12)
    file = csv_file(tmp_path / "test.csv", data)
    words = train_word_tokenizer(data["text"])
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        mask = BertWithVMask(BertVMaskConfig(vocab_size=len(tokenizer), initializer_range=0.2, **sizes))
        encoder = WordEncoderConfig(
            vocab_size=len(words), encoder_type="lstm", embedding_size=8, hidden_size=16, initializer_range=0.5
        )
        lstm = EncoderForVATClassification(EncoderVATConfig(encoder=encoder))
    for name, model, its_tokenizer, method in (("mask", mask, tokenizer, "mask"), ("lstm", lstm, words, "attention")):
        folder = saved(model, its_tokenizer, tmp_path / name)
        code, out, err = quantize("--model", folder, "--test_file", file, "--output_dir", tmp_path / f"{name} out")
        assert code == 0, err
        results = json.loads((tmp_path / f"{name} out" / "results.json").read_text())
        assert results["int8"]["own"]["explainer"] == method and f"rankings by {method}" in out
        assert results["agreement"]["kendall_tau"] > 0.5
        assert b"Integer" in (tmp_path / f"{name} out" / "int8" / "model.onnx").read_bytes()  # the operators' names


def test_a_model_without_attention_and_mask_is_refused_before_anything_is_done(
    make_model, tokenizer, quantize, tmp_path
):
    folder = saved(make_model("base"), tokenizer, tmp_path / "model")
    code, _, err = quantize("--model", folder, "--output_dir", tmp_path / "out")
    assert code == 2 and "BertForVATClassification has neither attention nor a word mask" in err
    assert AutoModelForSequenceClassification.from_pretrained(folder).attention is None
    assert not (tmp_path / "out").exists()
