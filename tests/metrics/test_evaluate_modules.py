import inspect
import json
import os
import runpy
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import evaluate
import numpy as np
import pandas as pd
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


def close(result: dict) -> dict:
    """Equal up to the rounding of single precision."""
    return {
        key: pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value
        for key, value in result.items()
    }


def test_the_cases_in_the_folder_hold(name, all_cases):
    for inputs, options, expected in all_cases(name):
        result = metrics.load(name).compute(**inputs, **options)
        assert result == close(expected)
        assert json.loads(json.dumps(result)) == result


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
    inputs = {"kept" if name == "perturbed" else name: column for name, column in INPUTS.items()}
    result = metrics.load("post_hoc_accuracy").compute(**inputs, definition=definition, ks=[3, 5])
    assert (result[f"posthoc_{definition}@3"], result[f"posthoc_{definition}@5"]) == (at_1, at_2)
    assert (result["definition"], result["ks"], result["n_clamped@5"]) == (definition, [3, 5], 1)


def test_the_card_is_what_the_module_says_of_itself_and_its_example_runs(name, capsys):
    card = Path(metrics.path(name), "README.md").read_text(encoding="utf-8")
    assert "sdk: gradio" in card.split("---")[1]
    module = metrics.load(name)
    assert module.description and module.description in card
    code = module.inputs_description.split("```python\n")[1].split("```")[0]
    exec(code, {})
    assert capsys.readouterr().out.strip() == code.rsplit("# ", 1)[1].strip()
    options = list(inspect.signature(module._compute).parameters)
    assert set(module.features) <= set(options)
    for option in options:
        assert f"\n- **{option}** (" in module.inputs_description
    assert module.citation.startswith("@") and module.citation.endswith("}\n") and module.citation in card


@pytest.mark.parametrize("convert", [tuple, np.array, torch.tensor])
def test_c44_lists_arrays_and_tensors(name, case, convert):
    inputs, options, expected = case
    module = metrics.load(name)
    ragged = {
        key: [convert(entry) for entry in column] if isinstance(column[0], list) else convert(column)
        for key, column in inputs.items()
    }
    twice = {key: [column[0]] * 2 for key, column in inputs.items()}
    whole = {key: convert(column) for key, column in twice.items()}
    assert module.compute(**whole, **options) == close(module.compute(**twice, **options))
    assert module.compute(**ragged, **options) == close(expected)


def test_c44_tensors_that_need_a_gradient(name, case):
    inputs, options, expected = case
    tensors = {
        key: [torch.tensor(entry, requires_grad=True) if key == "predictions" else entry for entry in column]
        for key, column in inputs.items()
    }
    assert metrics.load(name).compute(**tensors, **options) == close(expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"references": ["pos", "neg", "pos"]}, r"references\[0\] is 'pos'.*references=\[0, 1\].*label2id"),
        ({"references": ["1", "0", "1"]}, r"references\[0\] is '1'"),
        ({"references": [1, 0.9, 1]}, r"references\[1\] is 0\.9"),
        ({"references": np.array([0.9, 0.2, 1.0])}, r"references\[0\] is 0\.9"),
        ({"references": [1, None, 1]}, r"references\[1\] is None"),
        ({"references": [1, 0]}, "'predictions': 3, 'perturbed': 3, 'references': 2"),
        ({"references": [1, 0, 2]}, "Label 2 in row 2.*0 to 1"),
        ({"predictions": None}, "missing: predictions"),
        ({"perturbed": [[[2.0, 1.0]], [], []]}, r"\[0, 0\] is \[2.0, 1.0\]"),
        ({"perturbed": [[], [[0.5, None]], []]}, r"perturbed\[1\]\[0\]\[1\] is None"),
        ({"perturbed": [[], [["0.5", "0.5"]], []]}, r"perturbed\[1\]\[0\]\[0\] is '0.5'"),
        ({"perturbed": [[], [0.5, 0.5], []]}, r"perturbed\[1\]\[0\] is 0.5; give a list"),
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


ONE = {"predictions": "prediction", "references": "reference"}


def test_c45_one_by_one_is_the_same_as_batches(name, all_cases):
    module = metrics.load(name)
    for inputs, options, _ in all_cases(name):
        at_once = module.compute(**inputs, **options)
        for row in range(3):
            module.add(**{ONE.get(key, key): column[row] for key, column in inputs.items()})
        assert module.compute(**options) == at_once
        for part in (slice(0, 2), slice(2, 3)):
            module.add_batch(**{key: column[part] for key, column in inputs.items()})
        assert module.compute(**options) == at_once


def test_c45_one_text_is_checked_as_a_batch_is():
    module = metrics.load("aopc")
    with pytest.raises(InputError, match=r"0\.9"):
        module.add(prediction=[0.5, 0.5], perturbed=[], reference=0.9)
    with pytest.raises(InputError, match="missing: references"):
        module.add(prediction=[0.5, 0.5], perturbed=[])


def test_c46_skipped_texts_are_counted():
    inputs = {"predictions": [[0.1, 0.9]] * 5, "perturbed": [[[0.4, 0.6]]] * 4 + [[]], "references": [1] * 5}
    result = metrics.load("aopc").compute(**inputs, definition="prob_drop", ks=[5])
    assert (result["n_total"], result["n_scored"], result["n_skipped"]) == (5, 4, {"no words": 1})
    assert result["prob_drop@5"] == pytest.approx(0.3)


def test_c46_no_text_that_can_be_scored(name, case):
    inputs, options, expected = case
    module = metrics.load(name)
    with pytest.raises(InputError, match=r"None of the 1 texts can be scored.*'no words': 1"):
        module.compute(**{key: column[2:] for key, column in inputs.items()}, **options)
    with pytest.raises(InputError, match="no texts"):
        module.compute(**{key: [] for key in inputs}, **options)
    assert module.compute(**inputs, **options) == close(expected)


# Pairs that can be asked of one classifier, or one explanation, at once: inputs of the same meaning have the same names.
WORDS = ("auprc", "iou_f1", "token_f1", "word_f1_at_k", "attention_entropy", "explanation_agreement")
PAIRS = [("aopc", "post_hoc_accuracy"), ("comprehensiveness", "sufficiency"), *combinations(WORDS, 2)]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_f62_modules_combine(pair):
    modules = {name: metrics.load(name) for name in pair}
    inputs = {
        "predictions": [[0.1, 0.9], [0.8, 0.2]],
        "perturbed": [[[0.4, 0.6], [0.7, 0.3]], [[0.3, 0.7], [0.6, 0.4]]],
        "kept": [[[0.3, 0.7], [0.2, 0.8]], [[0.9, 0.1], [0.4, 0.6]]],
        "references": [1, 0],
    }
    options = {"ks": [1, 5]} if "aopc" in pair else {"shares": [0.2, 0.5]}
    if pair[0] in WORDS:
        inputs, options = {"predictions": [[0.7, 0.1, 0.2], [0.5, 0.4, 0.1]], "references": [[1, 0, 0], [0, 1, 1]]}, {}
    combined = evaluate.combine(modules, force_prefix=True)
    together = combined.compute(**inputs, **options)
    for name, module in modules.items():
        alone = module.compute(**{key: inputs[key] for key in module.features}, **options)
        assert {
            key.removeprefix(f"{name}_"): value for key, value in together.items() if key.startswith(f"{name}_")
        } == (alone)
    combined.add_batch(**inputs)
    assert combined.compute(**options) == together


def test_f62_an_input_of_no_module_is_refused():
    module = metrics.load("comprehensiveness")
    inputs = {"predictions": [[0.1, 0.9]], "perturbed": [[[0.4, 0.6]]], "shares": [0.5]}
    with pytest.raises(TypeError, match="keep"):
        module.compute(**inputs, keep=[[[0.2, 0.8]]])
    with pytest.raises(ValueError, match="are missing: kept"):
        metrics.load("sufficiency").compute(**inputs)


def test_comprehensiveness_and_sufficiency_combine_and_need_no_references():
    both = evaluate.combine([metrics.load(name) for name in ("comprehensiveness", "sufficiency")])
    both.add_batch(predictions=[[0.1, 0.9]], perturbed=[[[0.4, 0.6]] * 5], kept=[[[0.2, 0.8]] * 5], references=[0])
    result = both.compute()
    assert result["comprehensiveness@0.01"] == result["aopc_comprehensiveness"] == pytest.approx(0.3)
    assert result["sufficiency@0.5"] == result["aopc_sufficiency"] == pytest.approx(0.1)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of evaluate's widget
def test_the_space_app_computes_what_is_typed(name, case, monkeypatch):
    """`gradio` as `launch_gradio_widget` calls it; a table of JSON comes in, and one row that is still empty."""
    launched = []

    class Interface:
        def __init__(self, fn, article, **settings):
            self.fn, self.article = fn, article

        def launch(self):
            launched.append(self)

    anything = SimpleNamespace(Dataframe=lambda **settings: None, Textbox=lambda **settings: None)
    monkeypatch.setitem(sys.modules, "gradio", SimpleNamespace(Interface=Interface, inputs=anything, outputs=anything))
    monkeypatch.chdir(metrics.path(name))
    monkeypatch.syspath_prepend(metrics.path(name))
    runpy.run_path("app.py")
    [interface] = launched
    assert interface.article.strip().startswith("# Metric card for")
    inputs, options, expected = case
    typed = {
        key: [json.dumps(v) if isinstance(v, list) else v for v in column] + [""] for key, column in inputs.items()
    }
    if "shares" in options:  # the app has no options, and these modules have five shares if none are given
        with pytest.raises(InputError, match="2 entries for 5 shares"):
            interface.fn(pd.DataFrame(typed))
    else:
        assert interface.fn(pd.DataFrame(typed)) == close(expected)


def test_unknown_name():
    with pytest.raises(InputError, match="'bleu'; there are aopc, attention_entropy, auprc"):
        metrics.path("bleu")


OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
COMPUTE = """
import json
import os
import socket
def refuse(*args): raise AssertionError("the network was used")
socket.socket.connect = refuse
from hf_vat import metrics
for name, (inputs, options, expected) in json.loads(os.environ["CASES"]).items():
    module = metrics.load(name)
    results = [module.compute(**inputs, **options) for _ in range(int(os.environ["REPEATS"]))]
    for result in results:
        assert result == results[0]
        assert all(abs(result[key] - value) < 1e-9 for key, value in expected.items() if isinstance(value, float))
print(metrics.__file__)
"""


@pytest.fixture
def environment(tmp_path, all_cases):
    return {
        **os.environ,
        **OFFLINE,
        "HF_HOME": str(tmp_path / "cache"),
        "CASES": json.dumps({name: all_cases(name)[0] for name in metrics.NAMES}),
    }


def test_c41_loads_offline_from_an_installed_wheel(tmp_path, environment):
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
        assert {f"{name}.py", "README.md", "app.py", "requirements.txt", "tests.py"} <= files
    env = {**environment, "PYTHONPATH": str(target), "REPEATS": "1"}
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
def test_c42_processes_that_share_a_cache(tmp_path, environment):
    env = {**environment, "REPEATS": "50"}
    done = subprocess.run([sys.executable, "-c", FOUR_PROCESSES], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*.arrow*"))
