"""What reproductions share: the order in which cells run, what they are trained in, and when a claim holds."""

import numpy as np
import pytest
from datasets import Dataset, DatasetDict
from filelock import FileLock

from hf_vat.errors import InputError
from hf_vat.reproduction import CellSettings, cells, run_cells
from hf_vat.reproduction.claims import compare
from hf_vat.reproduction.pages import Page, write_tables
from hf_vat.reproduction.vat import VATCell
from hf_vat.reproduction.vmask import VMaskCell


def test_what_others_need_runs_first_and_what_is_timed_runs_alone(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(
        cells, "in_parallel", lambda _, tasks, jobs, label: ran.append((jobs, [cell.kind for cell, _ in tasks]))
    )
    wanted = [VMaskCell("trec", "minilm", kind, 0) for kind in ("cost", "VMASK", "start", "base")]
    run_cells(wanted, CellSettings(work_dir=str(tmp_path)), jobs=2)
    assert ran == [(2, ["start"]), (2, ["VMASK", "base"]), (1, ["cost"])]


def test_two_processes_do_not_write_the_same_cell(tmp_path, monkeypatch):
    rows = DatasetDict(train=Dataset.from_dict({"text": ["a"], "label": [0]}))
    monkeypatch.setattr(CellSettings, "load", lambda self, dataset: rows)
    monkeypatch.setattr(VMaskCell, "measure", lambda self, settings, data: {"measured": 1})
    cell, settings = VMaskCell("trec", "cnn", "base", 0), CellSettings(work_dir=str(tmp_path))
    cell.folder(settings).mkdir()
    with FileLock(cell.folder(settings) / ".hf_vat.lock"), pytest.raises(InputError, match="another process"):
        cells.run_cell(cell, settings)
    assert cell.result(settings) is None
    cells.run_cell(cell, settings)  # the lock goes with its process
    assert cell.result(settings)["measured"] == 1


@pytest.mark.parametrize("cell", [VATCell, VMaskCell])
def test_word_encoders_stay_in_float32(cell):
    settings = CellSettings(bf16=True)
    assert cell("trec", "minilm", "base", 0).decisive(settings)["bf16"]
    assert not cell("trec", "lstm", "base", 0).decisive(settings)["bf16"]
    assert not cell("trec", "minilm", "base", 0).decisive(CellSettings())["bf16"]


def test_a_sure_claim_that_one_seed_contradicts_is_open():
    worse = np.zeros((6, 40))
    better = np.array([[0.5] * 40] * 5 + [[-0.01] * 40])
    found = compare(better, worse)
    assert found["p_value"] < 0.05 and (found["seeds_won"], found["verdict"]) == (5, "open")
    assert compare(better[:5], worse[:5])["verdict"] == "held"
    assert compare(worse, better)["verdict"] == "open" and compare(worse[:5], better[:5])["verdict"] == "failed"


@pytest.mark.parametrize("name", ["vat.json", "vat.md", "vat.html"])
def test_f50_a_page_is_written_over_its_own_files_alone(tmp_path, name):
    page = Page("vat", "A page", [], [], [], {"command": "hf-vat reproduce vat", "cells": []})
    (tmp_path / name).write_text('{"mine": 1}')
    with pytest.raises(InputError, match=rf"{name} is there already, and is no page of hf-vat reproduce"):
        write_tables(tmp_path, page)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, '{"mine": 1}')]
    (tmp_path / name).unlink()
    write_tables(tmp_path, page)
    (tmp_path / "vat.html").touch()
    assert write_tables(tmp_path, page).read_text().startswith("# A page")
