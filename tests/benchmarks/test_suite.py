"""The page of the bench suite, and its script for a GPU on a small model and a CPU."""

import json
from itertools import count
from math import isfinite

import gpu
import pytest
import suite
import torch
from measuring import Row


def test_the_page_is_what_the_results_give():
    page = suite.PAGE.read_text(encoding="utf-8")
    assert suite.rendered(page, suite.RESULTS) == page
    pictures = {line.rpartition("(")[2].rstrip(")") for line in page.splitlines() if line.startswith("![")}
    assert len(pictures) == 3
    assert all((suite.PAGE.parent / picture).is_file() for picture in pictures)


def test_every_promise_has_a_finite_ratio_in_the_results():
    rows = json.loads((suite.RESULTS / "cpu.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) >= 18
    for row in map(Row.from_dict, rows):
        assert isfinite(row.ratio) and row.ratio > 0
        assert row.low <= row.high


def test_rendering_replaces_what_is_between_the_marks(tmp_path):
    row = Row("a step", "stock", "s", 1.0, 2.0, "at most", 0.6, 5, 0.4, 0.6)
    for name in ("cpu", "gpu"):
        suite.write(tmp_path / f"{name}.json", [row], 120)
    (tmp_path / "costs.json").write_text((suite.RESULTS / "costs.json").read_text(encoding="utf-8"))
    page = suite.rendered(suite.PAGE.read_text(encoding="utf-8"), tmp_path)
    told = "| a step | stock | s | 1 | 2 | 0.500 | 0.400 to 0.600 | ≤ 0.60 |"
    assert page.splitlines().count(told) == 2
    assert suite.NO_GPU not in page
    assert suite.rendered(page, tmp_path) == page


def test_the_gpu_script_measures_on_a_device(monkeypatch):
    peaks = count(2**21, 2**20)  # of the four epochs of ours, of those of the stock Trainer, and of explaining
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: next(peaks))
    sizes = {
        "vocab_size": 64,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    rows = {row.what: row for row in gpu.measure("cpu", tokens=8, words=4, explained=8, rounds=1, **sizes)}
    assert {row.unit for row in rows.values()} == {"tokens/s", "MiB"}
    assert all(isfinite(row.ratio) and row.ratio > 0 for row in rows.values())
    assert [rows[f"peak memory: {name}"].ours for name in ("compressor", "learner", "attention of 8 texts")] == [
        3,
        5,
        10,
    ]
    assert [rows[f"peak memory: {name}"].baseline for name in ("compressor", "learner")] == [7, 9]
    assert len(rows) == 8


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a CUDA device")
def test_without_a_gpu_the_script_says_so(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gpu.py"])
    with pytest.raises(SystemExit) as left:
        gpu.main()
    assert left.value.code == 2
    assert "no CUDA device" in capsys.readouterr().err


@pytest.fixture
def small_suite(tmp_path, monkeypatch):
    """A suite of two promises, of which the second is missed, that writes nothing into the repository."""
    met = Row("a step", "stock", "s", 1.0, 2.0, "at most", 0.6, 5, 0.4, 0.6)
    missed = Row("a file", "bare", "texts/s", 1.0, 2.0, "at least", 0.9, 5, 0.4, 0.6)
    scripts = {"first": (lambda rounds=5: [met], {"rounds": 1}), "second": (lambda: [missed], {})}
    grown = json.loads((suite.RESULTS / "costs.json").read_text(encoding="utf-8"))
    monkeypatch.setattr(suite, "SCRIPTS", scripts)
    monkeypatch.setattr(suite.costs, "measure", lambda **sizes: grown)
    monkeypatch.setattr(suite.explain, "load", lambda folder: None)
    return tmp_path / "results"


@pytest.mark.parametrize(("options", "code"), [(["--check"], 1), (["--quick"], 0)])
def test_the_suite_prints_and_writes_one_table(small_suite, options, code, monkeypatch, capsys):
    page = suite.PAGE.read_bytes()
    monkeypatch.setattr("sys.argv", ["suite.py", *options, "--output", str(small_suite)])
    with pytest.raises(SystemExit) as left:
        suite.main()
    assert left.value.code == code
    assert "≥ 0.90, missed" in capsys.readouterr().out
    assert [row["met"] for row in json.loads((small_suite / "cpu.json").read_text())["rows"]] == [True, False]
    assert (small_suite / "costs.json").is_file()
    assert suite.PAGE.read_bytes() == page
