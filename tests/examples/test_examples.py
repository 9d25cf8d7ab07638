"""The examples as they are in the folder, on tiny models and a folder of CSV files."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import datasets
import pytest
import torch
from transformers import AutoModelForSequenceClassification, BertConfig, BertModel, set_seed
from transformers.utils import logging as transformers_logging

from hf_vat import BertVMaskConfig, BertWithVMask
from hf_vat.cli import run
from hf_vat.explanations import load_explanations, mask_importance

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
ADJECTIVES = {"good": 1, "great": 1, "superb": 1, "bad": 0, "awful": 0, "dull": 0}


@pytest.fixture
def example(monkeypatch, capsys, tmp_path):
    """Run an example in this process: its output. A defect's exception comes out."""
    verbosity = transformers_logging.get_verbosity()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")

    def run_example(name: str, *argv) -> str:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, argv)])
        with pytest.raises(SystemExit) as ended:
            run(module.main)
        output = capsys.readouterr()
        assert ended.value.code == 0, output.err
        return output.out

    yield run_example
    transformers_logging.set_verbosity(verbosity)
    transformers_logging.enable_progress_bar()


@pytest.fixture
def save(tokenizer, tmp_path):
    """Save a model and its tokenizer: the folder."""

    def save_model(model) -> Path:
        for part in (model, tokenizer):
            part.save_pretrained(tmp_path / "model")
        return tmp_path / "model"

    return save_model


@pytest.fixture
def data(tmp_path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for split, nouns in {"train": ["film", "movie", "plot"], "validation": ["scene"], "test": ["actor"]}.items():
        rows = [f"the {word} {noun},{label}" for word, label in ADJECTIVES.items() for noun in nouns]
        (folder / f"{split}.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    return folder


@pytest.fixture
def training(save, data, tmp_path) -> list:
    """Options of a short training run from a BERT encoder."""
    with torch.random.fork_rng():
        set_seed(0)
        encoder = BertModel(BertConfig(vocab_size=64, max_position_embeddings=512, **SIZES))
    return [
        *("--model_name_or_path", save(encoder), "--output_dir", tmp_path / "run", "--use_cpu", "--disable_tqdm"),
        *("--num_train_epochs", 2, "--compress_epochs", 1, "--learn_epochs", 1, "--per_device_train_batch_size", 8),
    ]


def test_explain_shows_three_methods_for_each_text(example, make_model, save):
    out = example("explain", "--model", save(make_model("base")), "--text", "a good film", "the plot is dull")
    for method in ("occlusion", "integrated_gradients", "lime"):
        assert out.count(f"\n{method} ") == 2
    assert "\na good film\n" in out and "\nthe plot is dull\n" in out


def test_compare_explainers_prints_intervals_and_paired_tests(example, make_model, save, tmp_path):
    folder = tmp_path / "comparison"
    out = example("compare_explainers", "--model", save(make_model("vat")), "--texts", 6, "--output_dir", folder)
    report = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    assert report["n_scored"] == 6 and (folder / "report.html").is_file()
    pairs = [pair for pair in report["pairs"] if pair["score"] == "prob_drop@5"]
    assert len(pairs) == 6  # of three methods and random
    for pair in pairs:
        difference, low, high = (f"{100 * pair[name]:+.1f}" for name in ("difference", "low", "high"))
        assert f"\n{pair['a']} - {pair['b']}: {difference} [{low}, {high}], p = {pair['p_value']:.3f}\n" in out


def test_probe_gives_a_verdict_for_each_model(example, make_model, save, tmp_path):
    model = save(make_model("att"))
    out = example("probe", "--models", model, "--texts", 6, "--train_texts", 8, "--output_dir", tmp_path / "probes")
    report = json.loads((tmp_path / "probes" / "model" / "probe.json").read_text(encoding="utf-8"))
    assert report["n_texts"] == 6 and f"{model}: {report['told']}" in out
    assert all(f"\n- {reason}\n" in out for reason in report["reasons"])


def test_words_prints_and_draws_what_a_mask_keeps(example, save, data, tokenizer, tmp_path):
    config = BertVMaskConfig(vocab_size=len(tokenizer), max_position_embeddings=32, num_labels=2, **SIZES)
    with torch.random.fork_rng():
        set_seed(0)
        model = BertWithVMask(config).eval()
    picture = tmp_path / "words.png"
    out = example("words", "--model", save(model), "--dataset_name", data, "--min_count", 2, "--picture", picture)
    texts = [line.split(",")[0] for line in (data / "train.csv").read_text().splitlines()[1:]]
    best = mask_importance(model, tokenizer, texts, min_count=2).top(10)
    told = [f"{row.importance:.3f}  {row.word}  ({row.count} times in {row.texts} texts)" for row in best]
    assert out.splitlines()[:10] == told and len(best) == 10
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_train_vat_trains_in_phases_and_saves_a_classifier(example, training, data, tmp_path):
    out = example("train_vat", *training, "--dataset_name", data)
    assert (
        re.search(r"^epoch 1 of 2 \| compress .*\nepoch 2 of 2 \| learn ", out, re.MULTILINE) and "test accuracy" in out
    )
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run")
    assert model.config.bottleneck == "gaussian" and model.num_labels == 2


@pytest.fixture
def command_line(tmp_path):
    """Run python with arguments in a process of its own: its output."""

    def run_line(*argv, **told: str) -> str:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_DATASETS_CACHE": str(tmp_path / "cache")} | told
        line = [sys.executable, *map(str, argv)]
        finished = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=280)
        assert finished.returncode == 0, finished.stderr[-3000:]
        return finished.stdout

    return run_line


@pytest.mark.slow
def test_accelerate_launch(training, data, command_line, tmp_path):
    config = EXAMPLES / "accelerate_configs" / "multi_cpu.yaml"
    out = command_line(
        *("-m", "accelerate.commands.launch", "--config_file", config, EXAMPLES / "train_vat.py"),
        *(*training, "--dataset_name", data),
    )
    assert out.count("epoch 2 of 2 | learn ") == 1  # two processes, of which the first prints
    assert (tmp_path / "run" / "model.safetensors").is_file()


def test_f07_train_lora_saves_an_adapter_and_the_whole_model(example, training, data, tmp_path):
    out = example(
        *("train_lora", *training, "--train_file", data / "train.csv", "--test_file", data / "test.csv"),
        *("--rank", 2, "--eval_strategy", "epoch", "--class_weights", "balanced"),
    )
    assert re.search(r"^[\d,]+ of [\d,]+ weights are trained$", out, re.MULTILINE) and "test accuracy" in out
    assert (tmp_path / "run" / "adapter_model.safetensors").is_file()
    assert "film" in example("explain", "--model", tmp_path / "run" / "merged", "--text", "a good film")


@pytest.mark.slow
def test_explain_with_ray_gives_what_explain_gives(make_model, tokenizer, command_line, tmp_path):
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    for part in (make_model("vat"), tokenizer):
        part.save_pretrained(tmp_path / "model")
    texts = [f"the {word} film{' and plot' * (place % 3)}" for place, word in enumerate([*ADJECTIVES, *ADJECTIVES])]
    (tmp_path / "texts.csv").write_text("\n".join(["text", *texts]))
    line = ("--model", tmp_path / "model", "--test_file", tmp_path / "texts.csv", "--method", "lime")
    line += ("--settings", "n_samples=50", "--seed", 3)
    with tempfile.TemporaryDirectory(prefix="ray") as sessions:  # names of sockets must be short
        out = command_line(
            *(EXAMPLES / "explain_with_ray.py", *line, "--workers", 2, "--together", 5),
            *("--output_file", tmp_path / "ray.jsonl"),
            RAY_TMPDIR=sessions,
        )
    assert f"12 explanations by 2 workers: {tmp_path / 'ray.jsonl'}" in out
    command_line("-m", "hf_vat.commands", "explain", *line, "--save_to", tmp_path / "one.jsonl")
    found, expected = (load_explanations(tmp_path / f"{name}.jsonl") for name in ("ray", "one"))
    assert [one.text for one in found] == texts
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.scores == pytest.approx(theirs.scores, abs=1e-6)
        assert ours.probabilities == pytest.approx(theirs.probabilities, abs=1e-6)
        assert (ours.words, ours.settings, ours.model) == (theirs.words, theirs.settings, theirs.model)
