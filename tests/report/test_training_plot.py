import subprocess
import sys
from xml.etree import ElementTree

import pytest

from hf_vat.errors import InputError
from hf_vat.report import training_curves

ATT = [
    {"loss": 0.7, "cross_entropy": 0.7, "attention_entropy": 0.9, "epoch": 1.0, "step": 10},
    {"eval_loss": 0.6, "eval_accuracy": 0.7, "epoch": 1.0, "step": 10},
    {"loss": 0.5, "cross_entropy": 0.5, "attention_entropy": 0.8, "epoch": 2.0, "step": 20},
    {"eval_loss": 0.5, "eval_accuracy": 0.8, "epoch": 2.0, "step": 20},
    {"train_loss": 0.6, "train_runtime": 1.0, "epoch": 2.0, "step": 20},
]
VAT = [{**record, "phase": phase, "beta": 0.1} for record, phase in zip(ATT[:3:2], ("learn", "compress"), strict=True)]


@pytest.fixture(autouse=True)
def needs_matplotlib():
    pytest.importorskip("matplotlib")


def texts(svg):
    return [
        "".join(element.itertext()) for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    ]


def test_panels_are_what_was_logged():
    svg = training_curves({"ATT": ATT, "VAT": VAT})
    assert {"Training loss", "Evaluation accuracy", "Attention entropy", "ATT", "VAT", "compress phase"} <= set(
        texts(svg)
    )
    assert "Change of attention (JSD)" not in texts(svg)
    assert "compress phase" not in texts(training_curves({"ATT": ATT}))


def test_svg_is_deterministic_and_inline():
    svg = training_curves({"ATT": ATT})
    assert svg == training_curves({"ATT": ATT})
    assert svg.startswith("<svg") and "<dc:date>" not in svg and "currentColor" in svg


def test_run_names_are_plain_text():
    names = ["$x_1$", "<b>&", "a$b"]
    assert set(names) <= set(texts(training_curves(dict.fromkeys(names, ATT))))


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG")])
def test_writes_by_suffix(tmp_path, suffix, start):
    path = tmp_path / "missing folder" / f"curves{suffix}"
    training_curves({"ATT": ATT}, path)
    first = path.read_bytes()
    training_curves({"ATT": ATT}, path)
    assert first.startswith(start) and path.read_bytes() == first


def test_leaves_matplotlib_as_it_was():
    import matplotlib

    before = dict(matplotlib.rcParams)
    training_curves({"ATT": ATT})
    assert dict(matplotlib.rcParams) == before


def test_wrong_input_says_what_is_allowed(tmp_path):
    with pytest.raises(InputError, match=r"\.pdf.*\.svg or \.png"):
        training_curves({"ATT": ATT}, tmp_path / "curves.pdf")
    with pytest.raises(InputError, match=r"nothing to draw.*eval_accuracy"):
        training_curves({"ATT": [{"train_runtime": 1.0, "epoch": 1.0}]})


def test_says_how_to_get_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from hf_vat.report import training_curves\n"
        "training_curves({'run': [{'loss': 1.0, 'epoch': 1.0}]})"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "This needs matplotlib; run: pip install 'hf-vat[viz]'" in result.stderr
