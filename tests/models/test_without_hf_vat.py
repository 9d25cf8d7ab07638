"""Folders of all classes in a process that has transformers alone."""

import json
import os
import subprocess
import sys

import pytest
from transformers import pipeline

from hf_vat.models import WordEncoderConfig, WordEncoderModel

KINDS = [("bert", None), ("bert", "vmask"), ("roberta", None), ("roberta", "vmask"), ("lstm", None), ("lstm", "vmask")]
TASKS = ("text-classification", "text-classification-explained")
LOAD = """
import json, sys
sys.modules["hf_vat"] = None  # makes "import hf_vat" fail
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer, pipeline
texts, results = json.loads(sys.argv[1]), []
for folder in sys.argv[2:]:
    config = AutoConfig.from_pretrained(folder, trust_remote_code=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    if folder.endswith("word_encoder"):
        AutoModel.from_pretrained(folder, trust_remote_code=True)
        continue
    assert config.predict_from == "learner"
    try:
        AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=False)
        raise SystemExit("loaded without trust_remote_code")
    except ValueError as error:
        assert "trust_remote_code" in str(error), error
    model = AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True).eval()
    model.save_pretrained(folder + " again")
    tokenizer.save_pretrained(folder + " again")
    again = AutoModelForSequenceClassification.from_pretrained(folder + " again", trust_remote_code=True).eval()
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    logits = model(**batch).logits.tolist()
    assert again(**batch).logits.tolist() == logits
    pipelines = [
        pipeline("text-classification", model=model, tokenizer=tokenizer),
        pipeline("text-classification", model=folder, trust_remote_code=True),
        pipeline(model=folder + " again", trust_remote_code=True),
    ]
    results.append([logits, [classify(texts) for classify in pipelines]])
print(json.dumps(results))
"""


def test_c01_c75_c76_f71_folders_alone_work_and_are_loaded_without_a_warning(tiny, tmp_path):
    folders, expected = [tmp_path / "word_encoder"], []
    WordEncoderModel(WordEncoderConfig(vocab_size=22, embedding_size=8)).save_pretrained(folders[0])
    tiny.tokenizer("lstm").save_pretrained(folders[0])
    for name, mask in KINDS:
        model, tokenizer = tiny.model(name, mask, id2label={0: "neg", 1: "pos"}).eval(), tiny.tokenizer(name)
        folders.append(tmp_path / f"a {name} {mask}")
        model.save_pretrained(folders[-1])
        tokenizer.save_pretrained(folders[-1])
        logits = model(**tiny.batch(name)).logits.tolist()
        expected.append([logits, [pipeline(task, model=model, tokenizer=tokenizer)(tiny.texts) for task in TASKS]])
    done = subprocess.run(
        [sys.executable, "-c", LOAD, json.dumps(tiny.texts), *map(str, folders)],
        **{"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 290},
        env=os.environ | {"TRANSFORMERS_NO_ADVISORY_WARNINGS": "", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "You are using a model of type" not in done.stderr
    for (logits, found), (our_logits, (stock, explained)) in zip(json.loads(done.stdout), expected, strict=True):
        assert logits == our_logits
        for results, ours in zip(found, (stock, stock, explained), strict=True):
            for result, our in zip(results, ours, strict=True):
                assert result["label"] == our["label"] and numbers(result) == pytest.approx(numbers(our), abs=1e-6)


def numbers(result: dict) -> list[float]:
    return [result["score"], *(word["score"] for word in result.get("words", ()))]
