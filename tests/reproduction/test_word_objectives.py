"""Word objectives: systems are trained alike, states and attention are put to the test, tables and claims come from them."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from hf_vat.errors import InputError
from hf_vat.report.tables import markdown
from hf_vat.reproduction import PAPERS
from hf_vat.reproduction.claims import claims_tables
from hf_vat.reproduction.word_objectives import ENCODERS, SYSTEMS, WordObjectiveCell, WordObjectiveResults
from hf_vat.reproduction.word_objectives.experiments import SCORES
from hf_vat.training import Recipe

MADE = ("ATT", "mlm", "uniform")


def measured(system: str, seed: int) -> dict:
    """Made up, of four texts: mlm is better than ATT in all but faithfulness, where nothing differs."""
    one = {"validation": 0.5, "correct": [1, 1, 0, seed]}
    if system == "uniform":
        return one
    better = system == "mlm"
    states = {
        "value": 2.0 if better else 1.5,
        "shuffled": 0.5,
        "entropy": 4.0,
        "share": 0.5,
        "n_pairs": 8,
        "n_words": 4,
    }
    one["information"] = {"states": states | {"by_text": [states["value"]] * 4}, "words": states}
    one |= {"conicity": [0.5, 0.7], "distance": [1.0, 3.0], "cosine": [0.25, 0.25]}
    one["faithfulness"] = {score: [0.25, 0.5] for score in SCORES}
    one |= {"random": {score: [0.125, 0.25] for score in SCORES}} if system == "ATT" else {}
    one |= {"entropy": [0.5, 0.5], "adversarial": [0.25, 0.25] if better else [0.5, 0.5]}
    one["permuted"] = {"tvd": [0.5, 0.75] if better else [0.25, 0.5], "high": 0.75 if better else None, "share": 0.5}
    points = [{"weight": 0.0, "tvd": 0.0, "jsd": 0.0}, {"weight": 0.5, "tvd": 0.5 if better else 0.25, "jsd": 0.5}]
    one["curve"] = {"points": points, "area": 0.25 if better else 0.125}
    one["curve"] |= {"tvd@0.3": 0.3 if better else 0.15, "tvd@0.5": 0.5 if seed else None}
    return one


@pytest.fixture
def results():
    found = {}
    for seed in (0, 1):
        for system in MADE:
            cell = WordObjectiveCell("trec", "lstm", system, seed)
            data = {"sizes": {"train": 3000, "validation": 452, "test": 4}, "note": "TREC."}
            found[cell] = {
                "cell": asdict(cell),
                "data": data,
                "machine": "m",
                "seconds": 30.0,
                **measured(system, seed),
            }
    return WordObjectiveResults(found)


def test_one_table_has_all_measures_and_dashes_where_there_is_none(results):
    [table] = results.tables([1])
    rows = {row[1]: dict(zip(table.columns[2:], row[2:], strict=True)) for row in table.rows}
    assert list(rows) == ["ATT", "Random", "mlm", "uniform"]
    assert rows["mlm"]["accuracy"] == "62.5 ± 17.7" and rows["mlm"]["information"] == "37.5 ± 0.0"
    assert (rows["mlm"]["permuted"], rows["mlm"]["permuted, high"]) == ("62.5 ± 0.0", "75.0 ± 0.0")
    assert rows["ATT"]["permuted, high"] == "–" and rows["ATT"]["adversarial"] == "50.0 ± 0.0"
    assert (rows["mlm"]["tvd@0.3"], rows["mlm"]["tvd@0.5"], rows["mlm"]["area"]) == ("30.0 ± 0.0", "–", "25.0 ± 0.0")
    assert rows["Random"]["prob_drop@5"] == "18.8 ± 0.0" and rows["Random"]["accuracy"] == "–"
    assert rows["uniform"]["accuracy"] == "62.5 ± 17.7" and rows["uniform"]["permuted"] == "–"


def test_information_in_nats_and_the_curve_in_numbers(results):
    information, curve = results.tables([2, 3])
    nats, states = (
        ["2.00 ± 0.00", "0.50 ± 0.00", "2.00 ± 0.00", "4.00 ± 0.00"],
        ["0.60 ± 0.00", "2.00 ± 0.00", "0.25 ± 0.00"],
    )
    assert information.rows[1][1:] == ["mlm", *nats, "37.5 ± 0.0", *states]
    assert curve.columns[2:4] == ["λ = 0", "λ = 0.5"] and curve.rows[0][2:4] == ["0.0 at 0.00", "25.0 at 0.50"]
    assert results.curves("trec", "lstm")["adversary"]["mlm"] == [(0.0, 0.0, 0.0, 0.0), (0.5, 0.5, 0.5, 0.5)]


def test_claims_say_which_way_is_better_and_none_is_made_of_what_a_curve_does_not_reach(results):
    claims = {(claim["score"], claim["claim"]): claim for claim in results.claims([1, 2, 3])}
    assert ("tvd@0.5", "mlm > ATT") not in claims
    information = claims["information", "mlm > ATT"]
    assert (information["difference"], information["verdict"]) == (pytest.approx(12.5), "held")
    assert claims["adversarial", "ATT > mlm"]["difference"] == pytest.approx(25)
    assert claims["tvd@0.3", "mlm > ATT"]["difference"] == pytest.approx(15)
    assert claims["accuracy + 1", "mlm > ATT"]["difference"] == pytest.approx(1)  # as accurate, so not lower by a point
    assert claims["accuracy + 1", "mlm > ATT"]["verdict"] == "held"
    assert claims["prob_drop@5", "ATT > Random"]["difference"] == pytest.approx(18.75)
    assert claims["prob_drop@5", "mlm > ATT"]["verdict"] == "open"


def test_tables_are_written_again_from_the_json_file(results, tmp_path, run_command):
    written = {"command": "hf-vat reproduce word-objectives", "tables": [1, 2, 3], "cells": results.summaries()}
    written["claims"] = results.claims([1, 2, 3])
    (tmp_path / "word_objectives.json").write_text(json.dumps(written), encoding="utf-8")
    run_command("word-objectives", "--results", tmp_path / "word_objectives.json", "--output_dir", tmp_path / "new")
    text = (tmp_path / "new" / "word_objectives.md").read_text(encoding="utf-8")
    for expected in (
        *results.tables([1, 2, 3]),
        *claims_tables(results.claims([1, 2, 3]), PAPERS["word-objectives"].note),
    ):
        assert markdown(expected) in text, expected.heading
    assert json.loads((tmp_path / "new" / "word_objectives.json").read_text(encoding="utf-8")) == written
    with pytest.raises(InputError, match=r"is no word_objectives\.json that hf-vat reproduce word-objectives"):
        run_command("word-objectives", "--results", tmp_path / "nowhere.json")


def test_systems_differ_in_what_they_are_named_after():
    lstm = ENCODERS["lstm"]
    settings = {kind: lstm.system(kind) for kind in SYSTEMS}
    assert [kind for kind, (model, _) in settings.items() if model["pooling"] != "attention"] == ["uniform"]
    att, vat = (settings[kind][1]["num_train_epochs"] for kind in ("ATT", "VAT"))
    assert vat - att == lstm.recipe.rounds * lstm.recipe.compress_epochs  # in which the encoder stays
    assert {kind for kind, (_, training) in settings.items() if training["num_train_epochs"] != att} == {"VAT"}
    assert settings["tying"][0]["word_weight"] == lstm.weights["tying"] and "word_weight" not in settings["concat"][0]
    sizes = lstm.decisive("tying"), lstm.decisive("ATT")
    assert sizes[0] == sizes[1] | {"weight": lstm.weights["tying"]}
    cells = PAPERS["word-objectives"].cells("trec", "minilm", 1, [1], SYSTEMS)
    assert [cell.kind for cell in cells] == ["ATT", "tying", "mlm", "concat", "VAT", "VMASK"]


# Cells


@pytest.fixture
def tiny(settings_of, monkeypatch):
    lstm = {"word_encoder": "lstm", "bidirectional": True, "encoder_size": 8, "embedding_size": 8, "word_dropout": 0.0}
    made = replace(
        ENCODERS["lstm"],
        model=lambda: dict(lstm),
        recipe=Recipe("joint", 1, 1, 1, 1, "separate", 0.1, "sum"),
        adversary={"trains": "model", "weights": [0.0, 1.0], "epochs": 2, "batch_size": 8},
    )
    monkeypatch.setitem(ENCODERS, "lstm", made)
    words, nouns = {"negative": "bad", "positive": "good"}, ("film", "movie", "scene", "plot")
    return settings_of("sst2", [f"the {word} {noun},{label}" for label, word in words.items() for noun in nouns])


def test_the_command_measures_every_system(tiny, reproduced):
    systems = ["ATT", "mlm", "concat", "VMASK", "frozen", "uniform"]
    options = f"--datasets sst2 --encoders lstm --seeds 1 --systems {','.join(systems)}"
    text, kept = reproduced(tiny, "word_objectives", options, ["sst2-lstm-adversary"])
    for number in (1, 2, 3):
        assert f"### Table {number}. " in text
    summary = json.loads(kept)
    assert [cell["cell"]["kind"] for cell in summary["cells"]] == systems
    cells = {cell["cell"]["kind"]: cell for cell in summary["cells"]}
    assert "curve" not in cells["uniform"] and "random" in cells["ATT"] and "distance" not in cells["concat"]
    for name, cell in cells.items():
        if name != "uniform":
            assert 0 <= cell["adversarial"] <= np.log(2) and 0 <= cell["permuted"]["tvd"] <= 1
            assert [one["weight"] for one in cell["curve"]["points"]] == [0.0, 1.0]
            states = cell["information"]["states"]
            assert states["by_text"] == pytest.approx(states["value"], abs=1e-9) and states["n_pairs"] == 24
    assert cells["mlm"]["distance"] > 0 and "the bad film" not in text + kept
    assert "VMASK with attention" in text and f"tying {ENCODERS['lstm'].weights['tying']:g}" in text


def test_a_page_grows_by_what_another_command_trains(tiny, settings_of, run_command, tmp_path):
    settings_of("trec", [f"{word} it,{label}" for word, label in (("who is", "human"), ("where is", "location")) * 4])
    page = tmp_path / "results" / "word_objectives.json"
    options = ["word-objectives", "--encoders", "lstm", "--seeds", 1, "--systems", "ATT,mlm"]
    options += ["--data_dir", tiny.data_dir, "--output_dir", page.parent]
    run_command(*options, "--datasets", "sst2", "--work_dir", tmp_path / "one")
    first = json.loads(page.read_text(encoding="utf-8"))
    picture = page.with_name("word_objectives-sst2-lstm-adversary.png")
    picture.write_text("as it was", encoding="utf-8")
    options += ["--work_dir", tmp_path / "two", "--extend", page]
    with pytest.raises(InputError, match="has sst2 with lstm already"):
        run_command(*options, "--datasets", "sst2")
    with pytest.raises(InputError, match="max_train_samples was None and is 20"):
        run_command(*options, "--datasets", "trec", "--max_train_samples", 20)
    assert not (tmp_path / "two").exists() or not list(
        (tmp_path / "two").iterdir()
    )  # refused before anything was trained
    run_command(*options, "--datasets", "trec")
    both = json.loads(page.read_text(encoding="utf-8"))
    assert both["cells"][:2] == first["cells"] and [one["cell"]["dataset"] for one in both["cells"][2:]] == ["trec"] * 2
    assert both["claims"][: len(first["claims"])] == first["claims"] != both["claims"]
    assert both["command"].startswith(f"{first['command']}`, then `hf-vat reproduce")
    assert picture.read_text(encoding="utf-8") == "as it was"
    assert page.with_name("word_objectives-trec-lstm-adversary.png").stat().st_size > 1000
    text = page.with_suffix(".md").read_text(encoding="utf-8")
    assert "lstm, sst2" in text and "lstm, trec" in text and picture.name in text


def test_a_frozen_attention_stays_as_it_was_drawn(tiny):
    data, weights = tiny.load("sst2"), {}
    for epochs in (1, 3):
        longer = replace(ENCODERS["lstm"].recipe, learn_epochs=epochs)
        for kind in ("ATT", "frozen"):
            ENCODERS["lstm"] = replace(ENCODERS["lstm"], recipe=longer)  # which the fixture takes back
            settings = replace(tiny, work_dir=f"{tiny.work_dir}-{epochs}")
            model, _ = WordObjectiveCell("sst2", "lstm", kind, 0).trained(settings, data)
            weights[kind, epochs] = [parameter.detach() for parameter in model.attention.parameters()]
    moved = {kind: not all(map(torch.equal, weights[kind, 1], weights[kind, 3])) for kind in ("ATT", "frozen")}
    assert moved == {"ATT": True, "frozen": False}
