"""Rows of the bench suite: medians, quartiles and rates worked out by hand."""

import json

import measuring
import pytest
from measuring import Row, compared, interleaved, number, rows_table
from suite import write


def test_medians_over_rounds_and_quartiles_of_their_ratios():
    row = compared("a step", "stock", [3.0, 1.0, 2.0], [2.0, 2.0, 8.0], 1.05)
    assert (row.ours, row.baseline, row.ratio) == (2.0, 2.0, 1.0)
    assert (row.low, row.high) == (0.375, 1.0)  # of 0.25, 0.5 and 1.5
    assert (row.rounds, row.met) == (3, True)


def test_of_steps_the_mean_of_their_medians_counts():
    row = compared("a step", "stock", [[1, 10], [2, 30], [3, 20]], [[4, 4], [4, 4], [4, 4]], 2.0)
    assert (row.ours, row.baseline) == (11.0, 4.0)  # (2 + 20) / 2
    assert not row.met
    assert (row.low, row.high) == (2.125, 3.4375)  # of 5.5/4, 11.5/4 and 16/4


def test_a_rate_is_the_higher_the_better():
    row = compared("texts", "Captum", [2.0], [8.0], 4.0, "at least", "texts/s", amount=40)
    assert (row.ours, row.baseline, row.ratio) == (20.0, 5.0, 4.0)
    assert row.met
    assert not compared("texts", "Captum", [2.0], [7.9], 4.0, "at least", "texts/s", amount=40).met


def test_a_round_runs_both_and_they_take_turns_at_the_first_place(monkeypatch):
    ran = []
    monkeypatch.setattr(measuring, "timed", lambda call: call() or float(len(ran)))
    ours, baseline = interleaved(lambda: ran.append("ours"), lambda: ran.append("baseline"), 3)
    assert ran == ["ours", "baseline", "baseline", "ours", "ours", "baseline"]
    assert (ours, baseline) == ([1.0, 4.0, 5.0], [2.0, 3.0, 6.0])


@pytest.mark.parametrize(
    ("value", "shown"), [(41315.4, "41,315"), (0.0343, "0.0343"), (1.548, "1.55"), (2e-7, "2e-07")]
)
def test_numbers_are_short(value, shown):
    assert number(value) == shown


def test_a_row_shows_its_target_and_whether_it_is_missed():
    missed = Row("a step", "stock", "s", 0.512, 1.665, "at most", 0.30, 5, 0.2991, 0.31)
    alone = Row("peak", "few", "MiB", 649.3, 638.14, "at most", None, 1, 1.0175, 1.0175)
    assert rows_table([missed, alone]).rows == [
        ["a step", "stock", "s", "0.512", "1.67", "0.308", "0.299 to 0.310", "≤ 0.30, missed"],
        ["peak", "few", "MiB", "649", "638", "1.017", "–", "–"],
    ]


def test_rows_come_back_from_their_file(tmp_path):
    row = compared("texts", "Captum", [2.0, 3.0], [8.0, 9.0], 3.0, "at least", "texts/s", amount=40)
    path = tmp_path / "new" / "cpu.json"
    write(path, [row], 61.0)
    written = json.loads(path.read_text())
    assert written["rows"][0]["ratio"] == row.ratio
    assert written["machine"] and written["date"]
    assert Row.from_dict(written["rows"][0]) == row
