import runpy
from pathlib import Path

import pytest

from hf_vat import metrics


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluate.config.HF_METRICS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def cases(name: str) -> list[tuple[dict, dict, dict]]:
    """Inputs, options and results of a module's own cases; the last text of each has no words."""
    inputs = metrics.load(name).features
    return [
        (
            {key: case[key] for key in inputs},
            {key: value for key, value in case.items() if key not in inputs and key != "result"},
            case["result"],
        )
        for case in runpy.run_path(str(Path(metrics.path(name), "tests.py")))["test_cases"]
    ]


@pytest.fixture(params=metrics.NAMES)
def name(request):
    return request.param


@pytest.fixture
def case(name):
    """The first case of a module."""
    return cases(name)[0]


@pytest.fixture
def all_cases():
    return cases
