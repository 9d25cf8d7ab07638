import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shown import explanation_of

from hf_vat.errors import InputError
from hf_vat.explanations import Explanation
from hf_vat.report import side_by_side


def film(scores, **fields):
    known = {"target": 1, "prediction": 1, "probabilities": [0.25, 0.75]}
    return explanation_of("a good film", scores, **known | fields)


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
    assert "highest: good 0.800, a 0.000\nlowest: film -0.400" in str(film([0.0, 0.8, -0.4]))


def test_notes():
    assert "All words tie" in str(film([0.2, 0.2, 0.2]))
    assert "Cut off, not seen by the model: 1 words" in str(film([0.4, 0.6, 0], seen=[True, True, False], truncated=1))
    assert "explained class negative" in str(film([0.4, 0.6, 0], target=0))
    assert "no words" in str(explanation_of(""))


@given(st.text(max_size=12))
def test_a_text_sends_no_control_codes(before):
    text = before + "x"
    span = [(len(text) - 1, len(text))]
    explanation = Explanation(text, ["x"], span, [1.0], [True], "m\x1b[2J", 0, 0, [1.0], ["one\x1b]0;\x07"])
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", str(explanation))


def test_side_by_side_lists_the_top_words_of_each_method():
    methods = [film([0.1, 0.7, 0.2], gold=0, model="tiny"), film([0.0, 0.8, -0.4], method="lime", gold=0)]
    assert side_by_side(methods, color=False, top=2).splitlines() == [
        "positive (0.750) | WRONG, gold is negative | tiny",
        "a good film",
        "attention  good 0.700, film 0.200",
        "lime       good 0.800, a 0.000",
    ]
    assert side_by_side([*methods, film([0.5] * 3)], color=True).splitlines()[1:] == [
        "attention  \x1b[38;5;16;48;5;230ma\x1b[0m \x1b[38;5;16;48;5;214mgood\x1b[0m \x1b[38;5;16;48;5;230mfilm\x1b[0m",
        "lime       a \x1b[38;5;16;48;5;214mgood\x1b[0m \x1b[38;5;16;48;5;153mfilm\x1b[0m",
        "attention  (all words tie)",
    ]


def test_side_by_side_keeps_a_text_of_several_lines_on_one():
    poem = Explanation("a\n\nb", ["a", "b"], [(0, 1), (3, 4)], [0.0, -1.0], [True] * 2, "m", 0, 0, [1.0], ["one"])
    assert [line.split()[0] for line in side_by_side([poem, poem]).splitlines()] == ["one", "m", "m"]
    empty = Explanation("", [], [], [], [], "m\x1b", 0, 0, [1.0], ["one"])
    assert side_by_side([empty], color=False).splitlines()[-1] == "m\ufffd  (the text has no words)"


def test_side_by_side_takes_one_text():
    other = Explanation("other", ["other"], [(0, 5)], [1.0], [True], "m", 0, 0, [1.0], ["one"])
    with pytest.raises(InputError, match="different texts, 'a good film' and 'other'"):
        side_by_side([film([0, 0, 1]), other])
    with pytest.raises(InputError, match="no explanation"):
        side_by_side([])
