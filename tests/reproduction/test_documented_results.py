"""What docs/results holds: its pages follow from its JSON files, and its numbers from cells that are trained again."""

from pathlib import Path

import pytest

from hf_vat.reproduction import PAPERS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
FILES = {"vat": "vat", "minilm/vat": "vat", "vmask": "vmask", "vmask-code": "vmask"}  # file: paper
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
