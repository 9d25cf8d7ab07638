import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_vat.errors import InputError
from hf_vat.explanations import Explanation
from hf_vat.report import table


def film(scores, **fields):
    defaults = {"seen": [True] * 3, "method": "attention", "target": 1, "prediction": 1}
    return Explanation(
        "a good film", ["a", "good", "film"], [(0, 1), (2, 6), (7, 11)], scores,
        probabilities=[0.25, 0.75], label_names=["negative", "positive"], **{**defaults, **fields},
    )  # fmt: skip


def test_readable_without_colour():
    assert film([0.1, 0.7, 0.2], gold=0, model="tiny").to_terminal(color=False).splitlines() == [
        "positive (0.750) | WRONG, gold is negative | attention | tiny",
        "a good film",
        "highest: good 0.700, film 0.200, a 0.100",
    ]


def test_colour_shades_by_score_and_changes_nothing_else():
    explanation = film([0.0, 0.8, -0.4])
    shaded = explanation.to_terminal()
    assert "a \x1b[38;5;16;48;5;214mgood\x1b[0m \x1b[38;5;16;48;5;153mfilm\x1b[0m" in shaded
    assert re.sub(r"\x1b\[[0-9;]*m", "", shaded) == str(explanation)


def test_signed_scores_list_the_lowest_too():
    assert "lowest: film -0.400, a 0.000, good 0.800" in str(film([0.0, 0.8, -0.4]))


def test_notes():
    assert "All words tie" in str(film([0.2, 0.2, 0.2]))
    assert "Cut off, not seen by the model: 1 words" in str(film([0.4, 0.6, 0], seen=[True, True, False], truncated=1))
    assert "explained class negative" in str(film([0.4, 0.6, 0], target=0))
    assert "no words" in str(Explanation("", [], [], [], [], "attention", 0, 0, [1.0], ["one"]))


@given(st.text(max_size=12))
def test_a_text_sends_no_control_codes(before):
    text = before + "x"
    span = [(len(text) - 1, len(text))]
    explanation = Explanation(text, ["x"], span, [1.0], [True], "m\x1b[2J", 0, 0, [1.0], ["one\x1b]0;\x07"])
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", str(explanation))


def test_table_aligns_columns():
    assert table(["system", "AOPC"], [["ATT", "9.10"], ["VAT", "12.30"]]).splitlines() == [
        "system   AOPC",
        "------  -----",
        "ATT      9.10",
        "VAT     12.30",
    ]
    with pytest.raises(InputError, match="1 cells for 2 columns"):
        table(["a", "b"], [["c"]])
