"""Pages of studies whose results are kept here: each is what its own command writes, and says what the project rests on."""

import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import cost_of_truth
import one_pass
import pytest
import teachers
from one_pass import CONTROLS, OnePassSettings
from study import Study, StudyArguments

from hf_vat.training.recipes import PRESETS

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("one_pass", "faithful", "teachers", "cost_of_truth")


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_its_command_writes(name, monkeypatch, tmp_path):
    """From the kept results, which have to be those of today's settings: a cell that is missing or differs would be run."""
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^Written by `(.*)`\.$", page, re.MULTILINE)
    python, script, *options = shlex.split(command)
    assert (python, script) == ("python", f"benchmarks/{name}.py")
    written = tmp_path / "page.md"
    place = options.index("--output") + 1
    assert options[place] == f"docs/{name}.md"
    options[place] = str(written)
    study = import_module(name)
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", [script, *options])
    monkeypatch.setattr("study.run_cells", lambda cells, settings, jobs: None)
    monkeypatch.setattr("study.in_parallel", lambda function, tasks, jobs, label: None)
    monkeypatch.setattr(cost_of_truth, "PICTURE", tmp_path / "picture.svg")
    study.main()
    assert written.read_text(encoding="utf-8").replace(str(written), f"docs/{name}.md") == page


def test_the_preset_is_what_the_search_found_best():
    """By the mean of its scores, among the rows of all three data sets that lose no more than a point of accuracy beside ATT."""
    work_dir = str(ROOT / "benchmarks" / "results" / "one_pass")
    settings = OnePassSettings("../shared/data", work_dir)
    study = Study(StudyArguments(), one_pass.OnePassCell, settings, tuple(one_pass.ROWS), CONTROLS)
    by_dataset = [one_pass.finished(study, dataset) for dataset in one_pass.OnePassCell.datasets]
    by_dataset = dict(zip(one_pass.OnePassCell.datasets, by_dataset, strict=True))
    best = one_pass.chosen(by_dataset)
    assert one_pass.ROWS[best] == (one_pass.VAT[0] | PRESETS["faithful"], one_pass.VAT[1])

    def moved(row: str, points: float) -> dict:
        """The results with a row that is more faithful, and less accurate."""
        by_row = {}
        for dataset, results in by_dataset.items():
            one = json.loads(json.dumps(results[row][0]))
            one["accuracy"] = results["ATT (matched)"][0]["accuracy"] - points / 100
            one["rankings"]["center mean"] = dict.fromkeys(one_pass.SCORES, 0.99)
            by_row[dataset] = results | {row: {0: one}}
        return by_row

    assert one_pass.chosen(moved("VAT, tying", 0.9)) == "VAT, tying"
    assert one_pass.chosen(moved("VAT, tying", 1.1)) == best


def test_the_student_is_what_the_search_found_best():
    """As its page says."""
    page = (ROOT / "docs" / "teachers.md").read_text(encoding="utf-8")
    assert f"the best is *{cost_of_truth.STUDENT}*." in page
    lime, better, worse = (
        [{"methods": {"lime": dict.fromkeys(teachers.SCORES, 0.8)}}],
        *({"prob_drop@5": drop, "posthoc_self@5": 0.8} for drop in (0.6, 0.4)),
    )
    one, other, third, _ = teachers.STUDENTS
    found = {
        "a": {"asked": lime, one: [worse], other: [better], third: [better]},
        "b": {"asked": lime, one: [better], other: [better]},
    }
    assert teachers.best(found) == other
    assert teachers.shares(found["a"], one) == pytest.approx([0.5, 1])
