"""Every encoder does what the table of the documentation says, or is refused as it says."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
import encoders


@pytest.mark.parametrize("family", encoders.FAMILIES)
def test_the_table_says_what_becomes_of_it(family):
    assert encoders.row(family) in encoders.PAGE.read_text(encoding="utf-8")


def test_the_table_has_each_family_once():
    lines = encoders.PAGE.read_text(encoding="utf-8").partition("<!-- table -->")[2].splitlines()
    shown = [line.split("|")[1].strip() for line in lines if line.startswith("| ")]
    assert shown[1:] == list(encoders.FAMILIES)
