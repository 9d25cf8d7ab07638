"""Folders that an earlier version saved (commit 0eaa98c) load with the same settings and give the same logits.

They are tiny models with random weights: `torch.manual_seed(i); model = cls(config); model.train()(**batch)` (for the
estimates of IBA), `model.eval().save_pretrained(name)`, of which weights and configuration, on one line, are kept. `expected.safetensors`
holds the batch and what that version gave for it.
"""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification

SAVED = Path(__file__).parent / "saved"
EXPECTED = load_file(SAVED / "expected.safetensors")
WRITTEN = dict.fromkeys(("auto_map", "custom_pipelines", "transformers_version", "encoder"))  # by whoever saves it
NAMES = sorted(path.name for path in SAVED.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_an_earlier_version_loads_with_the_same_logits(name, tmp_path):
    stored = json.loads((SAVED / name / "config.json").read_text(encoding="utf-8"))
    model, info = AutoModelForSequenceClassification.from_pretrained(SAVED / name, output_loading_info=True)
    assert [type(model).__name__] == stored["architectures"]
    assert not any(info.values())
    assert model.state_dict().keys() == load_file(SAVED / name / "model.safetensors").keys()
    for head in (model.learner_head, model.compressor_head):  # what came later is as it was before
        assert model.config.head_layers == 2 and (head is None or head.dense is not None)
    encoder = getattr(model.config, "encoder", None)
    if getattr(encoder, "model_type", None) == "word_encoder":
        assert encoder.embedding_dropout is None and model.encoder.dropout.p == encoder.dropout
    batch = {key: EXPECTED[key] for key in ("input_ids", "attention_mask")}
    model.save_pretrained(tmp_path)
    for one in (model, AutoModelForSequenceClassification.from_pretrained(tmp_path)):
        found = json.loads(one.config.to_json_string(use_diff=False))
        assert {**found, **stored, **WRITTEN} == {**found, **WRITTEN}
        if "encoder" in stored:
            encoder = {**stored["encoder"], "dtype": found["encoder"]["dtype"]}
            assert {**found["encoder"], **encoder} == found["encoder"]
        with torch.no_grad():
            out = one.eval().double()(**batch)  # of which no two machines' kernels differ by as much as is allowed
        for part in ("logits", "token_importance", "token_mask"):
            expected = EXPECTED.get(f"{name}.{part}")
            if expected is None:
                assert getattr(out, part) is None, part
            else:
                torch.testing.assert_close(out[part].float(), expected, atol=1e-6, rtol=0, msg=part)
