"""The VMASK paper again: systems share a start, masks and explanations are measured, tables and claims come from them."""

import json
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, set_seed

from hf_vat.commands import reproduce
from hf_vat.errors import InputError
from hf_vat.reproduction import CellSettings, run_cells
from hf_vat.reproduction.vmask import ENCODERS, SYSTEMS, VMaskCell, VMaskResults
from hf_vat.reproduction.vmask.cells import KS

CURVES = [f"posthoc_self@{k}" for k in KS]


def correlation(value):
    one = {"pearson": value, "pearson_log": 0.5, "spearman": 0.25, "n_words": 9}
    return {"1": one, "5": one}


@pytest.fixture
def results():
    """Two seeds of a made-up data set of four texts."""
    found = {}
    for seed in (0, 1):
        for system in SYSTEMS:
            best = system == "VMASK"
            one = {"correct": [1, 1, 1, seed] if best else [1, 0, 0, 0], "validation": 0.75 if best else 0.5}
            if system in ("IBA", "VMASK"):
                one |= {name: [1, 1, 1, 1] if best else [1, 1, 0, 0] for name in CURVES}
                one |= {
                    "random": {name: [0.5, 0, 0, 0] for name in CURVES},
                    "frequent": 0.5,
                    "important": 0.75 + seed / 8,
                }
                one["correlation"] = correlation((0.05, -0.25)[seed] if best else None)
            if best:
                one["random"] = {name: [0.5, 0, 0, 0] for name in CURVES}
            if system in ("base", "VMASK"):
                one["aopc"] = {"lime": [0.2, 0.3] if best else [0.1, 0.2], "shapley": [0.25, 0.25]}
                one["words"] = ["what", "who", f"seed{seed}"]
            cell = VMaskCell("trec", "lstm", system, seed)
            data = {"sizes": {"train": 5000, "validation": 452, "test": 4}, "note": "TREC."}
            found[cell] = {"cell": asdict(cell), "data": data, "machine": "m", "seconds": 30.0, **one}
    cost = VMaskCell("trec", "lstm", "cost", 0)
    seconds = {"base": 0.02, "l2": 0.02, "L2X": 0.021, "IBA": 0.03, "VMASK": 0.025}
    found[cost] = found[VMaskCell("trec", "lstm", "base", 0)] | {"cell": asdict(cost), "step_seconds": seconds}
    return VMaskResults(found)


def table(results, number) -> list[list[str]]:
    return results.tables([number])[0].rows


def test_tables_hold_means_over_seeds_beside_the_papers_numbers(results):
    assert results.tables([3])[0].columns == ["system", "lstm, trec (2)"]
    accuracy = dict(table(results, 3))
    assert accuracy["base"] == "25.0 ± 0.0 [90.4]" and accuracy["VMASK"] == "87.5 ± 17.7 [90.8]"
    assert list(accuracy) == list(SYSTEMS)
    assert dict(table(results, 8))["VMASK"] == "75.0 ± 0.0 [92.5]"
    assert table(results, 4) == [
        ["LIME, base", "15.0 ± 0.0 [11.9]"],
        ["LIME, VMASK", "25.0 ± 0.0 [12.0]"],
        ["SampleShapley, base", "25.0 ± 0.0 [11.9]"],
        ["SampleShapley, VMASK", "25.0 ± 0.0 [11.9]"],
    ]
    assert table(results, 6) == [["lstm, trec", "what, who, seed0", "what, who, seed0"]]
    assert table(results, 9)[-1] == ["VMASK", "1.25 [1.05]"]


def test_correlations_are_counted_by_seed_and_a_constant_mask_has_none(results):
    vmask, iba = table(results, 11)
    assert vmask[:3] == ["lstm, trec", "VMASK", "-0.10 ± 0.21 [-0.03]"] and vmask[-1] == "1 of 2"
    assert iba[1:4] == ["IBA", "constant", "0.50 ± 0.00"] and iba[-1] == "0 of 2"


def test_figures_1_and_2_in_numbers(results):
    curves, extremes = results.tables([])
    assert [row[1:3] for row in curves.rows] == [
        ["VMASK", "100.0 ± 0.0"],
        ["IBA", "50.0 ± 0.0"],
        ["Random", "12.5 ± 0.0"],
    ]
    assert extremes.rows[0] == ["lstm, trec", "VMASK", "0.50 ± 0.00", "0.81 ± 0.09"]
    assert results.curves("trec", "lstm")["posthoc_self"]["random"][0] == (1.0, 0.125, 0.125, 0.125)


def test_claims_are_paired_over_texts(results):
    found = results.claims([3, 4])
    claims = {(claim["score"], claim["claim"]): claim for claim in found}
    assert len(claims) == len(found) == 4 + 2 + 4 * 2
    against_base = claims["accuracy", "VMASK > base"]
    assert against_base["difference"] == pytest.approx(62.5) and against_base["paper"] == pytest.approx(0.4)
    lime = claims["prob_drop@5, LIME", "VMASK > base"]
    assert (lime["difference"], lime["verdict"]) == (pytest.approx(10), "held")
    assert claims["prob_drop@5, SampleShapley", "VMASK > base"]["verdict"] == "open"
    assert claims["posthoc_self@2", "VMASK > IBA"]["difference"] == pytest.approx(50)
    assert claims["posthoc_self@10", "VMASK > Random"]["difference"] == pytest.approx(87.5)


# Cells


@pytest.fixture
def tiny(tokenizer, tmp_path, monkeypatch):
    """A tiny CNN and a tiny BERT in place of the encoders, and a data set whose label is one word."""
    with torch.random.fork_rng():
        set_seed(0)
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        encoder = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=256, **sizes))
    encoder.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    words = {"negative": "bad", "positive": "good"}
    nouns = ("film", "movie", "scene", "plot")
    rows = [f"the {word} {noun},{label}" for label, word in words.items() for noun in nouns]
    (tmp_path / "data" / "sst2").mkdir(parents=True)
    for split in ("train", "validation", "test"):
        (tmp_path / "data" / "sst2" / f"{split}.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    cnn = {"word_encoder": "cnn", "encoder_size": 6, "embedding_size": 8, "word_preset": "vmask", "word_dropout": 0.0}
    few = {"epochs": 2, "lime_samples": 20, "shapley_samples": 2}
    monkeypatch.setitem(ENCODERS, "cnn", replace(ENCODERS["cnn"], model=lambda: dict(cnn), **few))
    bert = {"model_name_or_path": str(tmp_path / "encoder")}
    made = replace(ENCODERS["minilm"], model=lambda: bert, start_epochs=1, **few)
    monkeypatch.setitem(ENCODERS, "minilm", made)
    return CellSettings(str(tmp_path / "data"), str(tmp_path / "work"))


def log_of(cell, settings):
    state = json.loads((cell.folder(settings) / "model" / "trainer_state.json").read_text(encoding="utf-8"))
    return [record for record in state["log_history"] if "loss" in record]


def test_systems_on_a_pretrained_encoder_start_from_one_model(tiny):
    wanted = [VMaskCell("sst2", "minilm", kind, 0) for kind in ("start", "base", "VMASK")]
    with pytest.raises(InputError, match="sst2-minilm-VMASK-0 needs sst2-minilm-start-0"):
        run_cells(wanted[2:], tiny)
    results = run_cells(wanted, tiny)
    for cell in wanted:
        assert not list((cell.folder(tiny) / "model").glob("checkpoint-*"))
    settings = json.loads((wanted[2].folder(tiny) / "model" / "run.json").read_text(encoding="utf-8"))
    assert settings["model"]["model_name_or_path"] == str(wanted[0].folder(tiny) / "model")
    assert [record["mask_beta"] for record in log_of(wanted[2], tiny)] == pytest.approx([1.0, 0.01])
    vmask = results[wanted[2]]
    assert len(vmask["correct"]) == 8 and set(CURVES) <= vmask.keys()
    assert {len(vmask[name]) for name in CURVES} == {8} and vmask["posthoc_self@10"] == [1.0] * 8
    assert {len(values) for values in vmask["aopc"].values()} == {8} and len(vmask["words"]) == 3
    assert "correlation" not in results[wanted[1]] and "aopc" not in results[wanted[0]]
    words = {row.word: row for row in wanted[2].importance(tiny)}
    assert set(words) == {"the", "bad", "good", "film", "movie", "scene", "plot"}
    assert words["the"].count == 8 and vmask["correlation"]["1"]["n_words"] == 7
    few = {"pearson": None, "pearson_log": None, "spearman": None, "n_words": 1}  # only "the" is there 5 times
    assert vmask["correlation"]["5"] == few


def test_the_command_writes_the_tables(tiny, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "results"
    options = ["--datasets", "sst2", "--encoders", "cnn", "--seeds", "2", "--data_dir", tiny.data_dir]
    options += ["--work_dir", tiny.work_dir, "--output_dir", str(folder)]
    monkeypatch.setattr(sys, "argv", ["hf-vat reproduce", "vmask", *options])
    reproduce.main()
    text = (folder / "vmask.md").read_text(encoding="utf-8")
    for number in (3, 4, 6, 8, 9, 11):
        assert f"### Table {number}. " in text
    figures = {f"vmask-sst2-cnn-{name}" for name in ("curves", "frequency", "words")}
    assert {file.name for file in folder.iterdir()} == {
        *("vmask.md", "vmask.json", "vmask.html"),
        *(f"{name}{suffix}" for name in figures for suffix in (".svg", ".png")),
    }
    summary = json.loads((folder / "vmask.json").read_text(encoding="utf-8"))
    kinds = [cell["cell"]["kind"] for cell in summary["cells"]]
    assert kinds == [*SYSTEMS, *SYSTEMS, "cost"]
    vmask = summary["cells"][kinds.index("VMASK")]
    assert isinstance(vmask["correct"], float) and isinstance(vmask["aopc"]["lime"], float) and len(vmask["words"]) == 3
    cost = summary["cells"][-1]["step_seconds"]
    assert list(cost) == list(SYSTEMS) and all(0 < seconds < 10 for seconds in cost.values())
    accuracy = np.mean([cell["correct"] for cell in summary["cells"] if cell["cell"]["kind"] == "VMASK"])
    assert f"| VMASK | {100 * accuracy:.1f} ± " in text
    decays = {}
    for system in SYSTEMS:
        run = VMaskCell("sst2", "cnn", system, 0).folder(tiny) / "model" / "run.json"
        decays[system] = json.loads(run.read_text(encoding="utf-8"))["training"]["weight_decay"]
    assert decays == dict.fromkeys(SYSTEMS, 0.0) | {"l2": 0.1}
    assert "the bad film" not in text + (folder / "vmask.json").read_text(encoding="utf-8")
