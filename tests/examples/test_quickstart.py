"""The quickstart on a few sentences: everything but the size is real."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_vat.data.offline import minilm_folder, rotten_tomatoes
from hf_vat.errors import InputError
from hf_vat.explanations import explain

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "quickstart.py"


def run_quickstart(folder, *arguments):
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--output_dir", str(folder), *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=400,
    )


def test_quickstart_trains_measures_reports_and_goes_on(tmp_path):
    sizes = ("--train_size", "32", "--test_size", "12")
    finished = run_quickstart(tmp_path / "run", *sizes)
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert "On this machine that takes about" in finished.stdout

    # F69: read by a person who has never seen a Trainer's log
    lines, shown = finished.stdout.splitlines(), finished.stdout + finished.stderr
    assert "{" not in shown and "Warning" not in shown and "\x1b" not in shown
    epochs = re.findall(
        r"^epoch (\d) of (\d) \| (\w+) \| training loss [\d.]+ \| validation accuracy [\d.]+ % \| [\d.]+ min left$",
        finished.stdout,
        re.MULTILINE,
    )
    for number, name in enumerate(("base", "ATT", "VAT"), 1):
        assert any(line.startswith(f"{number} of 3: BERT-{name}, ") for line in lines)
        log = tmp_path / "run" / name / "training_log.jsonl"
        records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        assert f"all records of the training: {log}" in lines
        evaluated = [record["phase"] for record in records if "eval_accuracy" in record]
        told, epochs = epochs[: len(evaluated)], epochs[len(evaluated) :]
        expected = [(str(epoch), str(len(evaluated)), phase) for epoch, phase in enumerate(evaluated, 1)]
        assert told == expected
    assert not epochs
    bars = re.findall(r"([^\r\n]+): +100%", finished.stderr)
    # One for one job; a card that is measured in a moment shows none.
    assert list(dict.fromkeys(bars)) in (["model card", "measuring"], ["measuring"])

    results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    assert results["settings"]["test"] == 12
    own = {name: [name, f"{name} × gradient"] for name in ("ATT", "VAT")}
    for scorer, rankings in {"base": own["ATT"] + own["VAT"], **own}.items():
        measured = results[f"scorer={scorer}"]
        assert sorted(measured) == sorted([*rankings, "random"])
        assert measured["random"]["seeds"] == [0, 1, 2, 3, 4]
        for name in rankings:
            assert measured[name]["scorer"] == scorer and measured[name]["n_scored"] == 12
            table_row = next(line for line in finished.stdout.splitlines() if line.startswith(f"BERT-{name}  "))
            if scorer == "base":
                assert f"{100 * measured[name]['prob_drop@5']:.1f} / " in table_row

    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run" / "VAT")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run" / "VAT")
    assert model.config.id2label == {0: "negative", 1: "positive"}
    texts = rotten_tomatoes(32, 6, 12, seed=0)["test"]["text"][:]
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    first = explain(model, tokenizer, texts[:1], "attention_x_gradient")[0]
    assert first.words[0] in page and "<svg" in page and "right" in page and "wrong" in page
    assert first.words[0] in finished.stdout

    again = run_quickstart(tmp_path / "run", *sizes)
    assert again.returncode == 0, again.stderr[-3000:]
    assert "epoch 1 of" not in again.stdout  # nothing is trained twice
    other = run_quickstart(tmp_path / "run", "--train_size", "24", "--test_size", "12")
    assert (
        other.returncode == 2
        and "max_train_samples was 32 and is 24" in other.stderr
        and "Traceback" not in other.stderr
    )


def test_offline_data_is_split_without_overlap_and_refuses_too_much():
    splits = rotten_tomatoes(30, 20, 10, seed=3)
    assert {name: len(rows) for name, rows in splits.items()} == {"train": 30, "validation": 20, "test": 10}
    texts = [text for rows in splits.values() for text in rows["text"]]
    assert len(set(texts)) == 60
    assert rotten_tomatoes(90, 20, 10, seed=3)["test"]["text"][:] == splits["test"]["text"][:]
    assert rotten_tomatoes(30, 20, 10, seed=4)["test"]["text"][:] != splits["test"]["text"][:]
    with pytest.raises(InputError, match="8530"):
        rotten_tomatoes(8000, 500, 500)
    with pytest.raises(InputError, match="at least 1"):
        rotten_tomatoes(10, 0, 10)
    assert Path(minilm_folder(), "model.safetensors").is_file()
