"""The map of what explanations cost and how faithful they are: its tables and its picture, from results by hand."""

import re
from pathlib import Path

import cost_of_truth
import numpy as np
import pytest
from cost_of_truth import COMPARED, SCORES

from hf_vat.report.figures import render

ROOT = Path(__file__).resolve().parents[2]
PICTURE, CONCEPTS = "assets/cost-of-truth.svg", ROOT / "docs" / "concepts" / "index.md"


def result(drops: dict[str, float], passes: dict[str, float], seed: int = 0) -> dict:
    """Of one seed: two texts, of which the second has a score that is 0.1 higher."""
    methods = {}
    for method in COMPARED:
        drop = drops.get(method, 0.1) + 0.01 * seed
        methods[method] = {score: [drop, drop + 0.1] for score in SCORES} | {"inputs": 2.0}
    times = {method: passes.get(method, 10.0 + place) for place, method in enumerate(COMPARED)}
    return {"accuracy": 0.9, "student_seconds": 120, "methods": methods, "passes": times}


@pytest.fixture
def found() -> dict:
    drops, passes = (
        {"lime": 0.75, "amortized": 0.6, "attention": 0.3},
        {"lime": 900.0, "amortized": 2.0, "attention": 1.5},
    )
    return {"trec": [result(drops, passes, seed) for seed in range(3)]}


def test_shares_of_a_rivals_score_are_of_means(found):
    table = cost_of_truth.one_pass(found)
    [row] = [row for row in table.rows if row[0] == "amortized" and row[3] == "prob_drop@5"]
    assert row[4:6] == [f"{(0.65 + 0.01) / (0.8 + 0.01):.3f}", "0.97: missed"]
    assert row[6:] == ["-15.0 [-15.0, -15.0]", "2.00", "900"]
    [row] = [row for row in table.rows if row[0] == "attention_x_gradient" and row[3] == "prob_drop@5"]
    assert row[4:6] == ["1.000", "0.95: reached"]


def test_the_first_table_has_all_methods_and_data_sets(found):
    table = cost_of_truth.summary(found | {"sst2": found["trec"][:1]})
    assert [row[0] for row in table.rows] == [f"`{method}`" for method in COMPARED]
    [row] = [row for row in table.rows if row[0] == "`lime`"]
    assert row == ["`lime`", "2", "900.0", "81.0", "80.0"]


def test_the_front_is_what_no_method_reaches_in_less_time(found, tmp_path):
    figures = []
    render(lambda: figures.append(cost_of_truth.front(found)) or figures[-1], tmp_path / "front.svg")
    front, *points = figures[0].axes[0].lines
    assert [
        (float(point.get_xdata()[0]), float(point.get_ydata()[0])) for point in points if point.get_ydata()[0] > 20
    ] == [
        pytest.approx((1.5, 36)),
        pytest.approx((900, 81)),
        pytest.approx((2, 66)),
    ]
    times, heights = front.get_data()
    assert list(times) == sorted(times) and list(times[:2]) == [1.5, 2]
    assert heights == pytest.approx(np.array([36, *[66] * (len(COMPARED) - 2), 81]))


def test_the_picture_and_the_first_table_open_the_readme_and_the_concepts():
    """Those of the page: the numbers that a reader sees first are the ones that a command wrote."""
    readme, page = (ROOT / name for name in ("README.md", "docs/cost_of_truth.md"))
    pictures = {
        path: re.findall(r"!\[[^\]]+\]\(([^)]+)\)", path.read_text(encoding="utf-8")) for path in (readme, CONCEPTS)
    }
    assert pictures[readme][0] == f"docs/{PICTURE}" and pictures[CONCEPTS][0] == f"../{PICTURE}"
    first, wanted = (
        re.search(r"^\|(?:.*\|\n)+", path.read_text(encoding="utf-8"), re.MULTILINE)[0] for path in (readme, page)
    )
    assert first == wanted
    picture = (ROOT / "docs" / PICTURE).read_text(encoding="utf-8")
    datasets = first.splitlines()[0].strip("| ").split(" | ")[3:]
    assert len(datasets) == 3
    for name in (*datasets, *(method.replace("_", " ") for method in COMPARED)):
        assert f">{name}</text>" in picture
