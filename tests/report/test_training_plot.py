import subprocess
import sys

import pytest
from shown import texts

from hf_vat.errors import InputError
from hf_vat.report import training_curves

pytest.importorskip("matplotlib")

ATT = [
    {"loss": 0.7, "cross_entropy": 0.7, "attention_entropy": 0.9, "epoch": 1.0, "step": 10},
    {"eval_loss": 0.6, "eval_accuracy": 0.7, "epoch": 1.0, "step": 10},
    {"loss": 0.5, "cross_entropy": 0.5, "attention_entropy": 0.8, "epoch": 2.0, "step": 20},
    {"eval_loss": 0.5, "eval_accuracy": 0.8, "epoch": 2.0, "step": 20},
    {"train_loss": 0.6, "train_runtime": 1.0, "epoch": 2.0, "step": 20},
]
VAT = [{**record, "phase": phase, "beta": 0.1} for record, phase in zip(ATT[:3:2], ("learn", "compress"), strict=True)]


def test_panels_are_what_was_logged():
    svg = training_curves({"ATT": ATT, "VAT": VAT})
    assert {"Training loss", "Evaluation accuracy", "Attention entropy", "ATT", "VAT", "compress phase"} <= set(
        texts(svg)
    )
    assert "Change of attention (JSD)" not in texts(svg)
    assert "compress phase" not in texts(training_curves({"ATT": ATT}))


def test_run_names_are_plain_text():
    names = ["$x_1$", "<b>&", "a$b"]
    assert set(names) <= set(texts(training_curves(dict.fromkeys(names, ATT))))


def test_wrong_input_says_what_is_allowed():
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
