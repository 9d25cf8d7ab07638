"""The probe of an attention: criteria, verdict, page, and the command."""

import csv
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from hf_vat import commands
from hf_vat.analysis.probing import CRITERIA, Finding, Probe, probe
from hf_vat.errors import InputError
from hf_vat.explanations import load_explanations

SCORES = {"attention": {"aopc_comprehensiveness": 0.2}, "random": {"aopc_comprehensiveness": 0.1}}


def found(**values) -> Probe:
    """A probe whose criteria hold by a margin, but for those that are given."""
    findings = {
        name: Finding(criterion.threshold + (0.1 if criterion.at_least else -0.1))
        for name, criterion in CRITERIA.items()
    }
    findings |= {name: Finding(value) for name, value in values.items()}
    setup = {
        "model": "m",
        "other": None,
        "n_texts": 5,
        "n_train_texts": 0,
        "accuracy": 0.8,
        "label_names": ["no", "yes"],
        "seed": 0,
        "max_length": None,
    }
    return Probe(setup, findings, SCORES, [], None)


def test_a_threshold_belongs_to_what_holds():
    for criterion in CRITERIA.values():
        assert criterion.holds(criterion.threshold)
        beyond = -0.01 if criterion.at_least else 0.01
        assert not criterion.holds(criterion.threshold + beyond)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({}, "yes"),
        ({"seeds": None, "adversary": None}, "yes"),
        ({"agreement": 0.1}, "with care"),
        ({"adversarial": 0.6, "planted": -0.1}, "with care"),
        ({"random": -0.01}, "no"),
        ({"permutation": 0.05}, "no"),
        ({"permutation": 0.05, "agreement": 0.1}, "no"),
        ({"permutation": None}, "open"),
        ({"permutation": None, "agreement": 0.1}, "open"),
        ({"permutation": None, "random": -0.01}, "no"),
    ],
)
def test_the_verdict(values, verdict):
    made = found(**values)
    assert made.verdict == verdict
    told = made.told()
    measured = len(CRITERIA) - sum(value is None for value in values.values())
    failed = [name for name in CRITERIA if values.get(name) is not None]
    assert f"{measured - len(failed)} of {measured} criteria hold." in told
    for name, reason in zip(failed, made.reasons(), strict=True):
        assert CRITERIA[name].fails[1:] in reason and f": {values[name]:.3f}, wanted at " in reason


def test_the_page_and_the_file(tmp_path):
    made = found(agreement=0.1, seeds=None)
    path = made.write(tmp_path)
    report = json.loads((tmp_path / "probe.json").read_text(encoding="utf-8"))
    assert report["verdict"] == "with care" and report["criteria"]["seeds"]["holds"] is None
    assert (
        report["criteria"]["agreement"] | {"holds": False, "value": 0.1, "threshold": 0.3}
        == report["criteria"]["agreement"]
    )
    page = path.read_text(encoding="utf-8")
    assert (
        made.told() in page
        and made.reasons()[0] in page
        and page.count("✓ yes") == len(CRITERIA) - 2
        and page.count("not measured") == 1
    )
    assert sorted(file.name for file in tmp_path.iterdir()) == ["probe.html", "probe.json"]


@pytest.fixture(scope="module")
def data(planted_classifier):
    """Model, tokenizer, a dozen texts, one of them with punctuation, and their classes."""
    model, tokenizer, splits = planted_classifier
    rows = splits["test"][:12]
    return model, tokenizer, [rows["text"][0] + " , !", *rows["text"][1:]], rows["label"]


@pytest.fixture(scope="module")
def everything(data, tmp_path_factory):
    model, _, texts, _ = data
    folder = tmp_path_factory.mktemp("probe")
    settings = {"train_texts": texts, "other": model, "save_folder": folder}
    return folder, settings, probe(*data, **settings)


def test_every_criterion_is_measured(everything):
    folder, _, made = everything
    values = {name: finding.value for name, finding in made.findings.items()}
    # The planted part may find too few texts that are certain, and no adversary may come far enough.
    assert {name for name, value in values.items() if value is None} <= {"planted", "adversary"}
    assert values["seeds"] == pytest.approx(1)  # the same model
    for name in ("permutation", "uniform", "punctuation"):
        assert 0 <= values[name] <= 1
    assert 0 <= values["adversarial"] <= np.log(2)
    assert {"attention", "gradient", "occlusion", "random"} == set(made.scores)
    attention = load_explanations(folder / "attention.jsonl")
    shares = [
        sum(score for word, score in zip(one.words, one.scores, strict=True) if word in ",!") / sum(one.scores)
        for one in attention
    ]
    assert values["punctuation"] == pytest.approx(np.mean(shares))
    assert json.dumps(made.to_dict(), allow_nan=False)


def test_the_same_call_goes_on_from_its_files(everything, data, monkeypatch):
    _, settings, made = everything
    monkeypatch.setattr(data[0], "token_states", None)  # nothing is run again that was measured text by text
    again = probe(*data, **settings)
    assert again.to_dict() == made.to_dict()


def test_what_cannot_be_probed(data, make_model):
    model, tokenizer, texts, labels = data
    plain = make_model("base")
    for arguments in ({"model": plain}, {"model": model, "other": plain}):
        with pytest.raises(InputError, match='pooling="attention"'):
            probe(tokenizer=tokenizer, texts=texts, labels=labels, **arguments)
    with pytest.raises(InputError, match="two or more"):
        probe(model, tokenizer, texts[:1], labels[:1])
    for change, message in (
        ({"id2label": {0: "other", 1: "names"}}, "the classes other, names, and the model"),
        ({"vocab_size": 99}, "a vocabulary of 99 tokens"),
    ):
        with pytest.raises(InputError, match=message):
            probe(model, tokenizer, texts, labels, other=make_model("att", **change))


def test_of_texts_of_one_word_the_verdict_is_open(data):
    model, tokenizer, _, _ = data
    made = probe(model, tokenizer, [tokenizer.convert_ids_to_tokens(place) for place in range(10, 14)], [0, 1, 0, 1])
    assert made.findings["permutation"].value is None and made.verdict == "open" and made.told().startswith("Open: ")
    assert json.dumps(made.to_dict(), allow_nan=False)


def test_the_command(data, tmp_path, monkeypatch, capsys):
    model, tokenizer, texts, labels = data
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "model")
    names = model.config.id2label
    for split in ("train", "test"):
        with open(tmp_path / f"{split}.csv", "w", encoding="utf-8", newline="") as file:
            rows = [(text, names[label]) for text, label in zip(texts, labels, strict=True)]
            csv.writer(file).writerows([("text", "label"), *rows])
    line = f"--model {tmp_path}/model --train_file {tmp_path}/train.csv --test_file {tmp_path}/test.csv"
    monkeypatch.setattr(sys, "argv", ["hf-vat", "probe", *line.split(), "--output_dir", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    out = capsys.readouterr().out
    assert ended.value.code == 0, out
    assert re.search(r"(Yes|With care|No): .* criteria hold\.", out) and "probe.html" in out
    report = json.loads((tmp_path / "out" / "probe.json").read_text(encoding="utf-8"))
    assert report["n_texts"] == report["n_train_texts"] == len(texts)
    assert report["told"] in out and all(reason in out for reason in report["reasons"])
    assert len(report["adversary"]) > 2
    # Another training has the same words, in the same places.
    moved = type(tokenizer).from_pretrained(tmp_path / "model")
    moved.add_tokens(["unheard-of"])
    for part in (model, moved):
        part.save_pretrained(tmp_path / "other")
    other = ["--other", str(tmp_path / "other"), "--output_dir", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["hf-vat", "probe", *line.split(), *other])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == 2 and "has another vocabulary than" in capsys.readouterr().err


def test_the_how_to_page_has_every_criterion():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "probe.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    assert rows[1:] == [
        [
            criterion.question + (" *needed*" if criterion.needed else ""),
            criterion.measured,
            f"{'≥' if criterion.at_least else '≤'} {criterion.threshold:g}",
        ]
        for criterion in CRITERIA.values()
    ]
