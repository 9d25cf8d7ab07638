"""Folders of all classes in a process that has transformers alone."""

import json
import os
import subprocess
import sys

import pytest
from transformers import pipeline

from hf_vat.models import WordEncoderConfig, WordEncoderModel

KINDS = [("bert", None), ("bert", "vmask"), ("roberta", None), ("roberta", "vmask"), ("lstm", None), ("lstm", "vmask")]
WORD_ENCODERS = (
    {"encoder_type": "embedding"},
    {"encoder_type": "affine"},
    {"bidirectional": True},
    {"encoder_type": "cnn"},
)
TEXTS = ["good film", "", "Unbelievable, a dull plot!", "it is", "  ", "the actor is very good and the scene is bad"]
LOAD = """
import json, os, sys
sys.modules["hf_vat"] = None  # makes "import hf_vat" fail
import torch
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer, pipeline
task, texts, results = "text-classification-explained", json.loads(sys.argv[1]), []

def refused(load):
    try:
        load(trust_remote_code=False)
    except ValueError as error:
        assert "trust_remote_code" in str(error), error
        return
    raise SystemExit("loaded without trust_remote_code")

for folder in sys.argv[2:]:
    auto = AutoModel if "word_encoder" in folder else AutoModelForSequenceClassification
    refused(lambda **given: auto.from_pretrained(folder, **given))
    model = auto.from_pretrained(folder, trust_remote_code=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    batch = tokenizer(texts[:1] + texts[3:4], padding=True, return_tensors="pt")
    if auto is AutoModel:
        results.append(model(**batch).last_hidden_state.sum((1, 2)).tolist())
        continue
    assert AutoConfig.from_pretrained(folder, trust_remote_code=True).predict_from == "learner"
    for settings in ({"task": task}, {}, {"task": "text-classification"}):
        refused(lambda **given: pipeline(model=folder, **settings, **given))
    named = pipeline(task, model=folder, trust_remote_code=True)
    named.save_pretrained(folder + " 2")
    model.save_pretrained(folder + " 3")
    tokenizer.save_pretrained(folder + " 3")
    again = AutoModelForSequenceClassification.from_pretrained(folder + " 3", trust_remote_code=True).eval()
    logits = model(**batch).logits.tolist()
    assert again(**batch).logits.tolist() == logits
    explained = [named(texts, batch_size=2)]
    for saved in (folder, folder + " 2", folder + " 3"):
        assert "explained_pipeline.py" in os.listdir(saved)
        found = pipeline(model=saved, trust_remote_code=True)
        assert found.task == task
        explained.append(found(texts))
    stock = [pipeline("text-classification", model=model, tokenizer=tokenizer)]
    stock += [pipeline("text-classification", model=saved, trust_remote_code=True) for saved in (folder, folder + " 2")]
    results.append([logits, explained, [classify(texts) for classify in stock]])
print(json.dumps(results))
"""


def test_c01_c75_c76_f71_folders_alone_work_and_are_loaded_without_a_warning(tiny, tmp_path):
    made = {f"word_encoder {number}": ("lstm", settings) for number, settings in enumerate(WORD_ENCODERS)}
    expected = []
    for folder, (name, settings) in made.items():
        model = WordEncoderModel(WordEncoderConfig(vocab_size=22, embedding_size=6, **settings)).eval()
        model.save_pretrained(tmp_path / folder)
        tiny.tokenizer(name).save_pretrained(tmp_path / folder)
        assert {"modeling_word_encoder.py", "configuration_word_encoder.py"} <= set(os.listdir(tmp_path / folder))
        expected.append(model(**tiny.batch(name, [TEXTS[0], TEXTS[3]])).last_hidden_state.sum((1, 2)).tolist())
    for name, mask in KINDS:
        folder = f"a {name} {mask}"
        made[folder] = (name, mask)
        model, tokenizer = tiny.model(name, mask, id2label={0: "neg", 1: "pos"}).eval(), tiny.tokenizer(name)
        model.save_pretrained(tmp_path / folder)
        tokenizer.save_pretrained(tmp_path / folder)
        logits = model(**tiny.batch(name, [TEXTS[0], TEXTS[3]])).logits.tolist()
        explain, classify = (
            pipeline(task, model=model, tokenizer=tokenizer)
            for task in ("text-classification-explained", "text-classification")
        )
        expected.append((logits, explain(TEXTS), classify(TEXTS)))
    done = subprocess.run(
        [sys.executable, "-c", LOAD, json.dumps(TEXTS), *(str(tmp_path / folder) for folder in made)],
        **{"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 290},
        env=os.environ | {"TRANSFORMERS_NO_ADVISORY_WARNINGS": "", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "You are using a model of type" not in done.stderr
    found = json.loads(done.stdout)
    words = len(WORD_ENCODERS)
    for sums, ours in zip(found[:words], expected[:words], strict=True):
        assert sums == pytest.approx(ours, abs=1e-5)
    for (logits, *by_task), (our_logits, *ours_by_task) in zip(found[words:], expected[words:], strict=True):
        assert logits == our_logits
        for runs, ours in zip(by_task, ours_by_task, strict=True):
            assert len(runs) in (3, 4)
            for results in runs:
                for result, our in zip(results, ours, strict=True):
                    assert without_scores(result) == without_scores(our)
                    assert numbers(result) == pytest.approx(numbers(our), abs=1e-6)


def numbers(result: dict) -> list[float]:
    words = result.get("words", ())
    return [result["score"], *(word[name] for word in words for name in ("score", "attention") if name in word)]


def without_scores(result: dict) -> dict:
    words = [word | dict.fromkeys({"score", "attention"} & set(word)) for word in result.get("words", ())]
    return {**result, "score": None, "words": words}
