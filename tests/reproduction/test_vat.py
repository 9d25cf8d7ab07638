"""Cells are trained, measured and kept; tables, claims and curves come from them."""

import json
import sys

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, set_seed

from hf_vat.commands import reproduce
from hf_vat.errors import InputError
from hf_vat.reproduction import SYSTEMS, Cell, CellSettings, VATResults, cells, run_cells

SCORES = [f"{score}@{k}" for score in cells.SCORES for k in cells.KS]


def result(correct, **scores) -> dict:
    """A result whose scores at every K are those given for one K: one value for each of four texts."""
    found = {"correct": correct}
    for scorer, value in scores.items():
        found[scorer] = {name: value[name.partition("@")[0]] for name in SCORES}
    return found


def column(drop, kept):
    return {"accuracy_drop": drop, "prob_drop": drop, "posthoc_gold": kept, "posthoc_self": kept}


@pytest.fixture
def results():
    """Two seeds of a made-up data set of four texts."""
    found = {}
    for seed in (0, 1):
        low, high = column([0, 0, 1, 0], [1, 0, 0, 0]), column([1, 1, 1, seed], [1, 1, 1, 1])
        found[Cell("trec", "lstm", "base", seed)] = result([1, 1, 0, 0], random=column([0, 0, 0, 0], [0, 0, 0, 0]))
        found[Cell("trec", "lstm", "ATT", seed)] = result([1, 1, 0, 0], base=low, self=low)
        found[Cell("trec", "lstm", "ATT (matched)", seed)] = result([1, 1, 1, seed], base=high, self=low)
        found[Cell("trec", "lstm", "VAT", seed)] = result([1, 1, 1, 1], base=high, self=high)
    return VATResults({cell: value | {"cell": {"name": cell.name}} for cell, value in found.items()})


def test_tables_hold_means_over_seeds_beside_the_papers_numbers(results):
    lines = results.table(2).splitlines()
    assert lines[2] == "| system | lstm, trec (2) |"
    assert lines[4:] == [
        "| base | 50.0 ± 0.0 [90.0] |",
        "| ATT | 50.0 ± 0.0 [91.0] |",
        "| ATT (matched) | 87.5 ± 17.7 |",
        "| VAT | 100.0 ± 0.0 [92.8] |",
    ]
    assert results.table(3).splitlines()[4:] == [
        "| Random | 0.0 ± 0.0 [19.4] |",
        "| ATT | 25.0 ± 0.0 [31.0] |",
        "| ATT (matched) | 87.5 ± 17.7 |",
        "| VAT | 87.5 ± 17.7 [37.2] |",
    ]
    assert results.table(4, "self").splitlines()[4:] == [
        "| ATT | 25.0 ± 0.0 |",
        "| ATT (matched) | 25.0 ± 0.0 |",
        "| VAT | 100.0 ± 0.0 |",
    ]


def test_claims_are_paired_over_texts(results):
    claims = {(claim["score"], claim["claim"]): claim for claim in results.claims()}
    assert len(claims) == 3 + 4 + 4
    found = claims["accuracy_drop@5", "VAT > ATT"]
    assert found["difference"] == pytest.approx(100 * np.mean([1, 1, 0, 0.5]))
    assert (found["seeds_won"], found["seeds"]) == (2, 2)
    same = claims["accuracy_drop@5", "VAT > ATT (matched)"]
    assert (same["difference"], same["p_value"], same["verdict"], same["seeds_won"]) == (0, 1, "open", 0)
    assert claims["posthoc_gold@5", "VAT > Random"]["verdict"] == "held"


def test_a_worse_system_fails_its_claim(results):
    swapped = {}
    for cell, value in results.results.items():
        other = {"VAT": "ATT", "ATT": "VAT"}.get(cell.system, cell.system)
        swapped[Cell(cell.dataset, cell.encoder, other, cell.seed)] = value
    verdicts = {(claim["score"], claim["claim"]): claim["verdict"] for claim in VATResults(swapped).claims()}
    assert verdicts["posthoc_gold@5", "VAT > ATT"] == "failed"


def test_the_report_is_written_with_curves(results, tmp_path):
    path = results.write(tmp_path / "new", [2, 3], "hf-vat reproduce --seeds 2")
    text = path.read_text(encoding="utf-8")
    assert "hf-vat reproduce --seeds 2" in text and "### Table 3" in text and "### Table 4" not in text
    assert "| trec, lstm | accuracy | VAT > ATT |" in text
    assert {file.name for file in path.parent.iterdir()} == {
        *("vat.md", "vat.json", "vat-trec-lstm.svg", "vat-trec-lstm.png")
    }
    assert len(json.loads((path.parent / "vat.json").read_text())["claims"]) == 11


# Cells


@pytest.fixture
def tiny(tokenizer, tmp_path, monkeypatch):
    """A tiny BERT in place of the encoders, and a data set whose label is one word."""
    with torch.random.fork_rng():
        set_seed(0)
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        encoder = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=256, **sizes))
    encoder.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    words = {
        "very negative": "bad",
        "negative": "dull",
        "neutral": "plot",
        "positive": "good",
        "very positive": "great",
    }
    rows = [f"the {word} {noun},{label}" for label, word in words.items() for noun in ("film", "movie", "scene")]
    (tmp_path / "data" / "sst1").mkdir(parents=True)
    for split in ("train", "validation", "test"):
        (tmp_path / "data" / "sst1" / f"{split}.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    entry = ("BERT", lambda: {"model_name_or_path": str(tmp_path / "encoder")}, cells._PRETRAINED)
    monkeypatch.setitem(cells.ENCODERS, "minilm", entry)
    return CellSettings(str(tmp_path / "data"), str(tmp_path / "work"))


def test_cells_are_run_once_and_go_on(tiny, tmp_path, monkeypatch):
    wanted = [Cell("sst1", "minilm", system, 0) for system in SYSTEMS]
    ran = []
    run_cell = cells.run_cell
    monkeypatch.setattr(cells, "run_cell", lambda cell, settings: (ran.append(cell.system), run_cell(cell, settings)))
    first = run_cells(wanted[:1], tiny)
    results = run_cells(wanted, tiny)
    assert ran == ["base", "ATT", "ATT (matched)", "VAT"] and results[wanted[0]] == first[wanted[0]]
    assert run_cells(wanted, tiny) == results and len(ran) == 4
    for cell, found in results.items():
        assert found["test"] == len(found["correct"]) == 15
        assert found["accuracy"] == np.mean(found["correct"])
        for scorer in ("random",) if cell.system == "base" else ("base", "self"):
            assert set(found[scorer]) == set(SCORES)
            assert len(found[scorer]["accuracy_drop@5"]) == 15
    log = json.loads((wanted[3].folder(tiny) / "model" / "trainer_state.json").read_text())["log_history"]
    assert [record["phase"] for record in log if "eval_loss" in record] == ["compress"] * 2 + ["learn"] * 3
    matched = json.loads((wanted[2].folder(tiny) / "model" / "trainer_state.json").read_text())["log_history"]
    assert [record["phase"] for record in matched if "eval_loss" in record] == ["finetune"] * 3
    with pytest.raises(InputError, match="made with other settings"):
        run_cells(wanted, CellSettings(tiny.data_dir, tiny.work_dir, max_train_samples=5))


def test_the_command_writes_the_tables(tiny, tmp_path, monkeypatch, capsys):
    options = ["--datasets", "sst1", "--encoders", "minilm", "--seeds", "1", "--data_dir", tiny.data_dir]
    options += ["--work_dir", tiny.work_dir, "--output_dir", str(tmp_path / "results"), "--table", "2"]
    monkeypatch.setattr(sys, "argv", ["hf-vat reproduce", "vat", *options])
    reproduce.main()
    assert "### Table 2" in capsys.readouterr().out
    assert "minilm, sst1 (1)" in (tmp_path / "results" / "vat.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["vat", "--datasets", "trec,sst5"], "--datasets has 'sst5'; there are imdb,"),
        (["vat", "--encoders", "gru"], "--encoders has 'gru'; there are lstm,minilm,bert"),
        (["vat", "--table", "7"], "--table has '7'; there are 2,3,4"),
        (["vat", "--seeds", "0"], "--seeds is 0"),
        (["bert"], "The paper is 'bert'; it must be 'vat'"),
        ([], "The paper is None"),
    ],
)
def test_bad_options_are_named(monkeypatch, options, message):
    monkeypatch.setattr(sys, "argv", ["hf-vat reproduce", *options])
    with pytest.raises(InputError, match=message):
        reproduce.main()
