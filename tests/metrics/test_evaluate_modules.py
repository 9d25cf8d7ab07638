import doctest
import os
import subprocess
import sys
from pathlib import Path

import evaluate
import numpy as np
import pytest
import torch

from hf_vat import metrics
from hf_vat.errors import InputError

# Three texts: two words, one word, none. Text 1 is predicted wrongly.
INPUTS = {
    "predictions": [[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]],
    "perturbed": [[[0.4, 0.6], [0.7, 0.3]], [[0.3, 0.7]], []],
    "references": [1, 1, 1],
}


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluate.config.HF_METRICS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("accuracy_drop", {"accuracy_drop@1": -0.5, "accuracy_drop@2": 0.0}),
        ("prob_drop", {"prob_drop@1": 0.4, "prob_drop@2": 0.55}),
        ("area_acc", {"area_acc": -0.25}),
        ("area_prob", {"area_prob": 0.475}),
        ("area_acc_from_0", {"area_acc_from_0": -0.5 / 3}),
        ("area_prob_from_0", {"area_prob_from_0": 0.95 / 3}),
    ],
)
def test_c37_aopc_by_its_named_definitions(definition, expected):
    result = metrics.load("aopc").compute(**INPUTS, definition=definition)
    assert result == {
        **{name: pytest.approx(value) for name, value in expected.items()},
        "definition": definition,
        "scale": "probability",
        "ks": [1, 2],
        "n_total": 3,
        "n_scored": 2,
        "n_skipped": {"no words": 1},
        "n_clamped@1": 0,
        "n_clamped@2": 1,
    }


@pytest.mark.parametrize(("definition", "at_1", "at_2"), [("gold", 1.0, 0.5), ("self", 0.5, 0.0)])
def test_c37_post_hoc_accuracy_by_its_named_definitions(definition, at_1, at_2):
    result = metrics.load("post_hoc_accuracy").compute(**INPUTS, definition=definition, ks=[3, 5])
    assert (result[f"posthoc_{definition}@3"], result[f"posthoc_{definition}@5"]) == (at_1, at_2)
    assert (result["definition"], result["ks"], result["n_clamped@5"]) == (definition, [3, 5], 1)


@pytest.mark.parametrize("name", metrics.NAMES)
def test_the_documented_example_runs(name):
    module = metrics.load(name)
    example = doctest.DocTestParser().get_doctest(
        module.inputs_description, {"evaluate": evaluate, "hf_vat": sys.modules["hf_vat"]}, name, None, 0
    )
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("name", metrics.NAMES)
def test_the_card_example_runs_and_names_every_input(name, capsys):
    card = Path(metrics.path(name), "README.md").read_text(encoding="utf-8")
    code = card.split("```python\n")[1].split("```")[0]
    exec(code, {})
    assert capsys.readouterr().out.strip() == code.rsplit("# ", 1)[1].strip()
    assert "sdk: gradio" in card.split("---")[1]
    for feature in metrics.load(name).features:
        assert f"**{feature}**" in card


@pytest.mark.parametrize("convert", [lambda rows: rows, np.array, torch.tensor])
@pytest.mark.parametrize("name", metrics.NAMES)
def test_c44_lists_arrays_and_tensors(name, convert):
    result = metrics.load(name).compute(
        predictions=convert([[0.25, 0.75], [0.75, 0.25]]),
        perturbed=convert([[[0.75, 0.25]], [[0.5, 0.5]]]),
        references=convert([1, 0]),
    )
    assert result[{"aopc": "accuracy_drop@1", "post_hoc_accuracy": "posthoc_gold@1"}[name]] == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"references": ["pos", "neg", "pos"]}, r"'pos' in row 0.*references=\[0, 1\].*label2id"),
        ({"references": ["1", "0", "1"]}, "'1' in row 0"),
        ({"references": [1, 0.9, 1]}, "0.9 in row 1"),
        ({"references": np.array([0.9, 0.2, 1.0])}, "row 0"),
        ({"references": [1, None, 1]}, "None in row 1"),
        ({"references": [1, 0]}, "'predictions': 3, 'perturbed': 3, 'references': 2"),
        ({"references": [1, 0, 2]}, "Label 2 in row 2.*0 to 1"),
        ({"predictions": None}, "missing: predictions"),
        ({"perturbed": [[[2.0, 1.0]], [], []]}, r"\[0, 0\] is \[2.0, 1.0\]"),
        ({"perturbed": [[], [[0.5, None]], []]}, r"\[1, 0\] is \[0.5, nan\]"),
        ({"perturbed": [[[0.2, 0.3, 0.5]], [], []]}, r"classes differ: \[2, 3\]"),
        ({"perturbed": [[], [], []]}, "None of the 3 texts"),
        ({"definition": "aopc"}, "'aopc'; there are accuracy_drop, prob_drop"),
        ({"ks": [5]}, "2 entries"),
        ({"ks": 5}, "ks is"),
        ({"ks": [2, 1]}, "ascending"),
        ({"ks": [0, 1]}, "from 1"),
        ({"ks": [1, 5], "definition": "area_prob"}, "every number of words"),
        ({"predictions": [], "perturbed": [], "references": []}, "no texts"),
    ],
)
def test_c44_bad_input_is_named(change, message):
    module = metrics.load("aopc")
    with pytest.raises(InputError, match=message):
        module.compute(**{**INPUTS, **change})
    assert module.compute(**INPUTS)["n_total"] == 3


@pytest.mark.parametrize("name", metrics.NAMES)
def test_c45_one_by_one_is_the_same_as_batches(name):
    module = metrics.load(name)
    at_once = module.compute(**INPUTS)
    for prediction, perturbed, reference in zip(*INPUTS.values(), strict=True):
        module.add(prediction=prediction, perturbed=perturbed, reference=reference)
    assert module.compute() == at_once
    for part in (slice(0, 2), slice(2, 3)):
        module.add_batch(**{key: column[part] for key, column in INPUTS.items()})
    assert module.compute() == at_once
    with pytest.raises(InputError, match=r"0\.9"):
        module.add(prediction=[0.5, 0.5], perturbed=[], reference=0.9)


def test_c46_skipped_texts_are_counted():
    inputs = {"predictions": [[0.1, 0.9]] * 5, "perturbed": [[[0.4, 0.6]]] * 4 + [[]], "references": [1] * 5}
    result = metrics.load("aopc").compute(**inputs, definition="prob_drop", ks=[5])
    assert (result["n_total"], result["n_scored"], result["n_skipped"]) == (5, 4, {"no words": 1})
    assert result["prob_drop@5"] == pytest.approx(0.3)


def test_combines_with_other_modules():
    both = evaluate.combine([metrics.load(name) for name in metrics.NAMES])
    assert {"accuracy_drop@1", "posthoc_gold@1"} <= set(both.compute(**INPUTS))


def test_unknown_name():
    with pytest.raises(InputError, match="'bleu'; there are aopc, post_hoc_accuracy"):
        metrics.path("bleu")


OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
COMPUTE = """
import socket
import time
def refuse(*args): raise AssertionError("the network was used")
socket.socket.connect = refuse
from hf_vat import metrics
started = time.perf_counter()
modules = [metrics.load(name) for name in metrics.NAMES]
assert time.perf_counter() - started < 5
inputs = dict(predictions=[[0.1, 0.9], [0.8, 0.2]], perturbed=[[[0.6, 0.4]], []], references=[1, 0])
for _ in range(50):
    assert [list(module.compute(**inputs).values())[0] for module in modules] == [1.0, 0.0]
print(metrics.__file__)
"""


def test_c41_loads_offline_from_an_installed_wheel(tmp_path):
    pytest.importorskip("hatchling", reason="building a wheel needs hatchling")
    root = Path(__file__).parents[2]
    target = tmp_path / "installed"
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, root],
        check=True,
        capture_output=True,
    )
    [wheel] = tmp_path.glob("*.whl")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", target, wheel],
        check=True,
        capture_output=True,
    )
    for name in metrics.NAMES:
        files = {file.name for file in (target / "hf_vat" / "metrics" / name).iterdir()}
        assert {f"{name}.py", "README.md", "app.py", "requirements.txt"} <= files
    env = {**os.environ, **OFFLINE, "PYTHONPATH": str(target), "HF_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", COMPUTE], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(target) in done.stdout


FOUR_PROCESSES = f"""
import multiprocessing
from hf_vat import metrics
fork = multiprocessing.get_context("fork")
processes = [fork.Process(target=exec, args=({COMPUTE!r}, {{}})) for _ in range(4)]
for process in processes: process.start()
for process in processes: process.join()
assert [process.exitcode for process in processes] == [0] * 4
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork: four imports of torch would take a minute")
def test_c42_processes_that_share_a_cache(tmp_path):
    env = {**os.environ, **OFFLINE, "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FOUR_PROCESSES], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*.arrow*"))
