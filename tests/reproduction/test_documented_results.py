"""What docs/results holds: its pages follow from its JSON files, and its numbers from cells that are trained again."""

import json
import math
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from hf_vat.errors import InputError
from hf_vat.reproduction import PAPERS, CellSettings, run_cells

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
FILES = {
    "vat": "vat",
    "minilm/vat": "vat",
    "vmask": "vmask",
    "vmask-code": "vmask",
    "attention_scores": "attention-scores",
    "word_objectives": "word-objectives",
}  # file: paper
# Of the texts with labelled words the JSON file has means, and not their number.
NOT_IN_JSON = {"847 positive and 692 negative texts that have": "Texts that have"}


@pytest.mark.parametrize("file", FILES)
def test_f65_the_page_in_the_documentation_is_what_its_json_file_gives(file, tmp_path):
    path = PAPERS[FILES[file]].rewrite(RESULTS / f"{file}.json", tmp_path)
    assert path.name == f"{file}.md".removeprefix("minilm/")
    text = (RESULTS / f"{file}.md").read_text(encoding="utf-8")
    for told, rewritten in NOT_IN_JSON.items():
        text = text.replace(told, rewritten)
    assert path.read_text(encoding="utf-8") == text
    again = path.with_suffix(".json").read_text(encoding="utf-8")
    assert again == (RESULTS / f"{file}.json").read_text(encoding="utf-8")


def documented(file: str) -> list[dict]:
    return json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("kind", ["ATT", "tying", "VMASK"])
def test_a_setting_of_a_page_may_lack_systems(kind, tmp_path):
    """A row that the other settings have is left out of its lines."""
    whole = json.loads((RESULTS / "word_objectives.json").read_text(encoding="utf-8"))
    cells = [one for one in whole["cells"] if (one["cell"]["encoder"], one["cell"]["kind"]) != ("minilm", kind)]
    assert len(cells) == len(whole["cells"]) - 3
    (tmp_path / "fewer.json").write_text(json.dumps(whole | {"cells": cells}), encoding="utf-8")
    text = PAPERS["word-objectives"].rewrite(tmp_path / "fewer.json", tmp_path / "again").read_text(encoding="utf-8")
    assert f"| lstm, trec | {kind} |" in text and f"| minilm, trec | {kind} |" not in text
    assert "| minilm, trec | VAT |" in text and "nan" not in text


@pytest.mark.parametrize("paper", ["vat", "vmask"])
def test_a_page_whose_settings_have_the_same_systems_takes_no_others(paper):
    settings = CellSettings(max_train_samples=10)
    cells = [PAPERS[paper].cell("20news_1", "lstm", kind, 0) for kind in PAPERS[paper].required]
    with pytest.raises(InputError, match=r"has cells (ATT|IBA).* and this run (VAT|VMASK), base: on the page"):
        PAPERS[paper].earlier(RESULTS / f"{paper}.json", settings, cells)


def sample() -> list:
    """The documented cells of seed 0 on TREC, one for each paper, encoder and system, without those that measure time."""
    cells = [(file, PAPERS[FILES[file]].cell(**one["cell"])) for file in FILES for one in documented(file)]
    return [
        pytest.param(file, cell, id=f"{file}-{cell.name}")
        for file, cell in cells
        if (cell.dataset, cell.seed) == ("trec", 0) and cell.kind not in cell.timed
    ]


def differences(measured, expected, place: str = "") -> list[str]:
    """Where two summaries of results differ, but for machine and time. What only one of them has is left out: earlier results
    hold less."""
    if isinstance(expected, dict):
        both = [name for name in expected if name in measured and name not in ("machine", "seconds")]
        return [told for name in both for told in differences(measured[name], expected[name], f"{place}/{name}")]
    if isinstance(expected, list):
        pairs = enumerate(zip(measured, expected, strict=True))
        return [told for number, pair in pairs for told in differences(*pair, f"{place}/{number}")]
    return [] if measured == expected else [f"{place}: {measured} and not {expected}"]


def test_a_digit_that_differs_is_found():
    expected = {"rows": [{"correct": 0.5, "words": {}}], "seconds": 3.0, "words": ["a"]}
    assert differences(expected | {"seconds": 4.0, "more": 1}, expected) == []
    other = {"rows": [{"correct": math.nextafter(0.5, 1), "words": {}}], "words": ["b"]}
    told = ["/rows/0/correct: 0.5000000000000001 and not 0.5", "/words/0: b and not a"]
    assert differences(other, expected) == told


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("file", "cell"), sample())
def test_a_cell_that_is_trained_again_has_the_same_result(file, cell, tmp_path, shared_data):
    """To the digit, on one machine with as many threads; another rounds differently, and training carries that on.

    HF_VAT_RESULTS names the folder of what is expected: docs/results on the machine that wrote it, or else one with the work
    folders of an earlier version, such as vat/trec-lstm-base-0/result.json.
    """
    folder = os.environ.get("HF_VAT_RESULTS")
    if folder is None:
        pytest.skip("needs results of this machine in the folder HF_VAT_RESULTS; those in docs/results are of another")
    finished = Path(folder, file, cell.name, "result.json")
    known = documented(file) if Path(folder).resolve() == RESULTS else []
    if finished.is_file():
        known = [json.loads(finished.read_text(encoding="utf-8"))]
    known = [one for one in known if one["cell"] == asdict(cell)]
    if not known:
        pytest.skip(f"{folder} has no {finished}")
    results = PAPERS[FILES[file]].results
    [expected] = results({cell: known[0]}).summaries()
    given = {name: expected["settings"][name] for name in ("max_train_samples", "max_eval_samples", "bf16")}
    settings = CellSettings(str(shared_data), str(tmp_path), **given)
    try:
        cell.arguments(settings)
    except InputError as error:  # word vectors, or the pretrained encoder
        pytest.skip(str(error))
    ran = run_cells([one for one in (cell.needs, cell) if one is not None], settings)
    [measured] = results({cell: ran[cell]}).summaries()
    assert differences(measured, expected) == []
