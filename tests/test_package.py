"""The package as installed: public names, import cost, files in the wheel, and what its code may not contain."""

import ast
import json
import re
import statistics
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hf_vat

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "hf_vat").rglob("*.py"))
HEAVY = {"captum", "datasets", "evaluate", "gradio", "matplotlib", "pandas", "sklearn"}

MEASURE_IMPORT = """
import json, sys, time
clock = [time.process_time()]
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, BertModel
before = set(sys.modules)
clock.append(time.process_time())
import hf_vat
clock.append(time.process_time())
share = (clock[2] - clock[1]) / (clock[1] - clock[0])
print(json.dumps({"share": share, "before": sorted(before), "loaded": sorted(set(sys.modules) - before)}))
"""


def nodes(path: Path):
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


# Public names


MODULES = {"amortized", "callers", "comparison", "data", "errors", "explanations", "export", "faithfulness", "hub"}
MODULES |= {"metrics", "models", "pretrained", "report", "reproduction", "training"}
NAMES = {
    "BertForVATClassification",
    "BertVATConfig",
    "BertVMaskConfig",
    "BertWithVMask",
    "EncoderForVATClassification",
    "EncoderVATConfig",
    "EncoderVMaskConfig",
    "EncoderWithVMask",
    "Explanation",
    "Faithfulness",
    "InputError",
    "VATClassifierOutput",
    "VATTrainer",
    "fit_amortized",
    "VATTrainingArguments",
    "WordEncoderConfig",
    "WordEncoderModel",
    "compare_explainers",
    "explain",
    "load_explanations",
}


@pytest.mark.parametrize("name", hf_vat.__all__)
def test_public_names_resolve(name):
    found = getattr(hf_vat, name)
    assert (found.__module__ if name in NAMES else found.__name__).startswith("hf_vat.")
    assert name in dir(hf_vat)


def test_public_names_are_these_and_the_modules():
    modules = {path.stem for path in (ROOT / "hf_vat").iterdir() if not path.name.startswith(("_", "."))}
    assert set(hf_vat.__all__) == NAMES | MODULES
    assert modules >= MODULES
    assert issubclass(hf_vat.InputError, ValueError)
    assert callable(hf_vat.explain), "the function, not a module of that name"


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = hf_vat.nothing_like_it
    with pytest.raises(ImportError, match="nothing_like_it"):
        exec("from hf_vat import nothing_like_it", {})


# Cost of the import, beyond torch and transformers


@pytest.fixture(scope="module")
def imports():
    """Three fresh processes that import torch, transformers and then hf_vat."""
    results = []
    for _ in range(3):
        finished = subprocess.run(
            [sys.executable, "-c", MEASURE_IMPORT],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            timeout=300,
        )
        assert finished.returncode == 0, finished.stderr[-3000:]
        results.append(json.loads(finished.stdout))
    return results


def test_import_takes_a_tenth_of_what_torch_and_transformers_take_before(imports):
    assert statistics.median(result["share"] for result in imports) < 0.1


def test_import_loads_nothing_heavy(imports):
    loaded = imports[0]["loaded"]
    assert "hf_vat.models.modeling_vat" in loaded
    assert HEAVY.isdisjoint(name.split(".")[0] for name in loaded)
    assert HEAVY.isdisjoint(imports[0]["before"]), "transformers loads it already, so this test cannot tell any more"


# Source


def test_files_that_travel_with_a_model_import_only_their_neighbours():
    """The Hub copies one flat folder: anything else from the package would be missing there."""
    folder = ROOT / "hf_vat" / "models"
    assert not [path for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__"]
    neighbours = {path.stem for path in folder.glob("*.py")}
    relative = 0
    for path in folder.glob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.Import):
                assert not [name.name for name in node.names if name.name.split(".")[0] == "hf_vat"], path.name
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert node.module.split(".")[0] != "hf_vat", f"{path.name}:{node.lineno}"
            elif isinstance(node, ast.ImportFrom):
                relative += 1
                assert node.level == 1 and node.module in neighbours, f"{path.name}:{node.lineno}"
    assert relative > 0


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_unpickled(path):
    unsafe = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found = {name.name.split(".")[0] for name in node.names} & unsafe
        elif isinstance(node, ast.ImportFrom):
            found = {(node.module or "").split(".")[0]} & unsafe
            if node.module == "torch":
                found |= {name.name for name in node.names} & {"load"}
        elif isinstance(node, ast.Attribute):
            found = {ast.unparse(node)} & {"torch.load", "torch.jit.load", "torch.package"}
        elif isinstance(node, ast.keyword):
            found = {"allow_pickle"} & {node.arg} if not _is_false(node.value) else set()
        else:
            continue
        assert not found, f"line {node.lineno}: {found}"


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


# Distribution


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> Path:
    """A folder with the source distribution, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )
    assert built.returncode == 0, (built.stdout + built.stderr)[-3000:]
    return folder


@pytest.fixture(scope="module")
def wheel(distributions) -> zipfile.ZipFile:
    [path] = distributions.glob("hf_vat-*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_wheel_holds_the_package_and_nothing_else(wheel):
    files = set(wheel.namelist())
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "hf_vat").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {
        "hf_vat/py.typed",
        "hf_vat/report/templates/page.html",
        "hf_vat/metrics/aopc/README.md",
        "hf_vat/metrics/aopc/requirements.txt",
    } <= package
    assert package <= files
    assert all(".dist-info/" in name for name in files - package)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files)


def test_distributions_carry_the_version_and_pass_twine(distributions):
    names = {path.name for path in distributions.iterdir()}
    assert names == {f"hf_vat-{hf_vat.__version__}.tar.gz", f"hf_vat-{hf_vat.__version__}-py3-none-any.whl"}
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, distributions.iterdir())],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert checked.returncode == 0 and checked.stdout.count("PASSED") == 2, checked.stdout + checked.stderr


def test_wheel_metadata(wheel):
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    lines = wheel.read(name).decode().splitlines()
    needs: dict[str, set[str]] = {}
    for line in lines:
        if line.startswith("Provides-Extra: "):
            needs[line.removeprefix("Provides-Extra: ")] = set()
        elif line.startswith("Requires-Dist: "):
            requirement, _, marker = line.removeprefix("Requires-Dist: ").partition(";")
            extra = re.search(r"extra == ['\"](\w+)", marker)
            needs.setdefault(extra[1] if extra else "", set()).add(requirement)
    always = needs.pop("")
    assert HEAVY & always == {"datasets", "evaluate"}
    extras = {
        "explain",
        "viz",
        "excel",
        "ray",
        "words",
        "demo",
        "lora",
        "onnx",
        "quickstart",
        "bench",
        "glove",
        "test",
        "docs",
        "dev",
        "all",
    }
    assert set(needs) == extras
    assert needs["all"] == set().union(*(needs[extra] for extra in needs if extra != "all"))


def test_constraints_pin_what_the_package_needs():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert pins["torch"] == "2.13.0"
    assert {"transformers", "datasets", "evaluate", "accelerate", "captum"} <= set(pins)
