"""Cells are trained, measured and kept; tables, claims and curves come from them."""

import json
import sys

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, set_seed

from hf_vat.commands import reproduce
from hf_vat.errors import InputError
from hf_vat.explanations import Explanation
from hf_vat.report.tables import markdown
from hf_vat.reproduction import ENCODERS, SYSTEMS, Cell, CellSettings, Recipe, VATResults, cells, run_cells
from hf_vat.reproduction.systems import Encoder
from hf_vat.reproduction.vat import claims_table
from hf_vat.reproduction.vat_report import heatmap_texts

SCORES = [f"{score}@{k}" for score in cells.SCORES for k in cells.KS]
WORD_SCORES = [
    f"{polarity} {score}@{k}"
    for polarity in ("positive", "negative")
    for score in ("precision", "recall", "f1")
    for k in (1, 5)
]


def result(correct, words=0.0, iterations=((0, 0.5), (1, 0.75)), **scores) -> dict:
    """A result whose scores at every K are those given for one K: one value for each of four texts."""
    found = {"correct": correct, "accuracy": float(np.mean(correct)), "seconds": 30.0, "test": 4, "selected": 1}
    found["words"] = {name: [words, words] for name in WORD_SCORES}
    found["iterations"] = [
        {"iteration": number, "validation": value, "test": value, "silhouette": value / 2, "knn_accuracy": value}
        for number, value in iterations
    ]
    for scorer, value in scores.items():
        found[scorer] = {name: value[name.partition("@")[0]] for name in SCORES}
    return found


def column(drop, kept):
    return {"accuracy_drop": drop, "prob_drop": drop, "posthoc_gold": kept, "posthoc_self": kept}


@pytest.fixture
def results():
    """Two seeds of a made-up data set of four texts."""
    found = {}
    for seed in (0, 1):
        low, high = column([0, 0, 1, 0], [1, 0, 0, 0]), column([1, 1, 1, seed], [1, 1, 1, 1])
        found[Cell("trec", "lstm", "base", seed)] = result([1, 1, 0, 0], random=column([0, 0, 0, 0], [0, 0, 0, 0]))
        found[Cell("trec", "lstm", "ATT", seed)] = result([1, 1, 0, 0], 0.5, ((0, 0.5),), base=low, self=low)
        found[Cell("trec", "lstm", "ATT", seed)]["selected"] = 0
        found[Cell("trec", "lstm", "ATT (matched)", seed)] = result([1, 1, 1, seed], 0.5, base=high, self=low)
        found[Cell("trec", "lstm", "VAT", seed)] = result(
            [1, 1, 1, 1], 0.75, ((0, 0.5), (1, 0.75 + seed / 8)), base=high, self=high
        )
    return VATResults({cell: value | {"cell": {"name": cell.name}} for cell, value in found.items()})


def rows_of(results, number, place=0) -> list[list[str]]:
    return results.tables([number])[place].rows


def test_tables_hold_means_over_seeds_beside_the_papers_numbers(results):
    (table,) = results.tables([2])
    assert table.columns == ["system", "lstm, trec (2)"]
    assert table.rows == [
        ["base", "50.0 ± 0.0 [90.0]"],
        ["ATT", "50.0 ± 0.0 [91.0]"],
        ["ATT (matched)", "87.5 ± 17.7"],
        ["VAT", "100.0 ± 0.0 [92.8]"],
    ]
    assert rows_of(results, 3) == [
        ["Random", "0.0 ± 0.0 [19.4]"],
        ["ATT", "25.0 ± 0.0 [31.0]"],
        ["ATT (matched)", "87.5 ± 17.7"],
        ["VAT", "87.5 ± 17.7 [37.2]"],
    ]
    assert rows_of(results, 4, 1) == [["ATT", "25.0 ± 0.0"], ["ATT (matched)", "25.0 ± 0.0"], ["VAT", "100.0 ± 0.0"]]


def test_sentiment_words_stand_beside_twitters(results):
    (table,) = results.tables([5])
    assert table.heading == "Table 5. Sentiment words among the top words: lstm, trec (2)"
    assert table.columns[1:4] == ["pos P@1", "pos R@1", "pos F1@1"] and len(table.columns) == 13
    assert [row[1] for row in table.rows] == [
        "0.0 ± 0.0 [14.9]",
        "50.0 ± 0.0 [58.7]",
        "50.0 ± 0.0",
        "75.0 ± 0.0 [65.2]",
    ]
    assert "2 positive and 2 negative texts" in table.caption and "compare the order of rows" in table.caption


def test_iterations_and_separation(results):
    iterations, separation = results.tables([6])
    assert iterations.columns == ["setting", "system", "0", "1", "selected, by seed"]
    assert iterations.rows[1] == ["lstm, trec", "VAT", "50.0 ± 0.0", "81.2 ± 8.8", "1, 1"]
    assert separation.rows[0] == ["lstm, trec", "ATT", "0.25 ± 0.00", "50.0 ± 0.0", "0: 0.25"]
    assert separation.rows[2][2:] == ["0.41 ± 0.04", "81.2 ± 8.8", "0: 0.25, 1: 0.41"]


def test_claims_are_paired_over_texts(results):
    found = results.claims([2, 3, 4, 5])
    claims = {(claim["score"], claim["judge"], claim["claim"]): claim for claim in found}
    assert len(claims) == len(found) == 3 + 2 * (4 + 2) + 4 * 4
    against_att = claims["accuracy_drop@5", "base", "VAT > ATT"]
    assert against_att["difference"] == pytest.approx(100 * np.mean([1, 1, 0, 0.5]))
    assert (against_att["seeds_won"], against_att["seeds"]) == (2, 2)
    same = claims["accuracy_drop@5", "base", "VAT > ATT (matched)"]
    assert (same["difference"], same["p_value"], same["verdict"], same["seeds_won"]) == (0, 1, "open", 0)
    assert claims["posthoc_gold@5", "base", "VAT > Random"]["verdict"] == "held"
    assert claims["posthoc_gold@5", "self", "VAT > ATT (matched)"]["verdict"] == "held"
    assert claims["positive f1@5", "words", "VAT > ATT"]["difference"] == pytest.approx(25)
    assert "| lstm, trec | posthoc_gold@5 | VAT > Random | +100.0 [100.0, 100.0] |" in markdown(claims_table(found))


def test_a_worse_system_fails_its_claim(results):
    swapped = {}
    for cell, value in results.results.items():
        other = {"VAT": "ATT", "ATT": "VAT"}.get(cell.system, cell.system)
        swapped[Cell(cell.dataset, cell.encoder, other, cell.seed)] = value
    verdicts = {
        (claim["score"], claim["judge"], claim["claim"]): claim["verdict"] for claim in VATResults(swapped).claims([4])
    }
    assert verdicts["posthoc_gold@5", "base", "VAT > ATT"] == "failed"


def test_a_claim_that_one_seed_contradicts_is_open(results):
    # of 40 texts VAT gains 20 with one seed, and loses 2 with the other
    gains = {0: [0, 1] * 20, 1: [0.9, 1, *[1] * 38]}
    for seed, values in gains.items():
        for system in (*SYSTEMS[1:], "base"):
            place = "random" if system == "base" else "base"
            found = results.results[Cell("trec", "lstm", system, seed)]
            found[place]["posthoc_gold@5"] = values if system != "VAT" else [1] * 40 if seed == 0 else [0.8] + [1] * 39
    claim = next(claim for claim in results.claims([4]) if (claim["judge"], claim["claim"]) == ("base", "VAT > ATT"))
    assert claim["p_value"] < 0.05 and claim["difference"] > 0
    assert (claim["seeds_won"], claim["verdict"]) == (1, "open")


def test_curves_have_bands_over_seeds(results):
    points = {point[0]: point for point in results.curves("trec", "lstm")["accuracy_drop"]["VAT"]}
    sd = np.std([0.75, 1], ddof=1)
    assert points[5] == pytest.approx((5, 0.875, 0.875 - sd, 0.875 + sd))
    one = VATResults({cell: value for cell, value in results.results.items() if cell.seed == 0})
    assert one.curves("trec", "lstm")["accuracy_drop"]["VAT"][4][1:3] == (0.75, 0.25)  # bootstrap over texts


def explanation(scores, prediction, gold=0):
    words = [f"w{place}" for place in range(len(scores))]
    spans = [(3 * place, 3 * place + 2) for place in range(len(scores))]
    return Explanation(
        text=" ".join(words),
        words=words,
        spans=spans,
        scores=scores,
        seen=[True] * len(words),
        method="attention",
        model="m",
        label_names=["no", "yes"],
        probabilities=[0.5, 0.5],
        prediction=prediction,
        target=prediction,
        gold=gold,
    )


def test_heatmaps_show_where_the_attention_differs_most():
    even, first, last = [1 / 6] * 6, [1.0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1.0]
    att = [explanation(even, 0), explanation(first, 0), explanation(first, 1), explanation([0.5, 0.5], 0)]
    vat = [explanation(first, 0), explanation(last, 0), explanation(even, 0), explanation([1.0, 0.0], 1)]
    chosen_att, chosen_vat = heatmap_texts(att, vat)
    assert chosen_att == [att[1], att[2]] and chosen_vat == [vat[1], vat[2]]  # the last text is too short


# Cells


@pytest.fixture
def tiny(tokenizer, tmp_path, monkeypatch):
    """A tiny BERT in place of the encoders, and a data set whose label is one word."""
    with torch.random.fork_rng():
        set_seed(0)
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        encoder = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=256, **sizes))
    encoder.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    words = {
        "very negative": "bad",
        "negative": "dull",
        "neutral": "plot",
        "positive": "good",
        "very positive": "great",
    }
    rows = [f"the {word} {noun},{label}" for label, word in words.items() for noun in ("film", "movie", "scene")]
    (tmp_path / "data" / "sst1").mkdir(parents=True)
    for split in ("train", "validation", "test"):
        (tmp_path / "data" / "sst1" / f"{split}.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    model = {"model_name_or_path": str(tmp_path / "encoder")}
    recipe = Recipe("joint", 1, 2, 1, 2, "separate", 0.1, "mean")
    encoder = Encoder("BERT", lambda: model, ENCODERS["minilm"].training, "first", recipe)
    monkeypatch.setitem(ENCODERS, "minilm", encoder)
    return CellSettings(str(tmp_path / "data"), str(tmp_path / "work"))


def test_cells_are_run_once_and_go_on(tiny, tmp_path, monkeypatch):
    wanted = [Cell("sst1", "minilm", system, 0) for system in SYSTEMS]
    ran = []
    run_cell = cells.run_cell
    monkeypatch.setattr(cells, "run_cell", lambda cell, settings: (ran.append(cell.system), run_cell(cell, settings)))
    first = run_cells(wanted[:1], tiny)
    results = run_cells(wanted, tiny)
    assert ran == ["base", "ATT (matched)", "VAT", "ATT"] and results[wanted[0]] == first[wanted[0]]
    assert run_cells(wanted, tiny) == results and len(ran) == 4
    for cell, found in results.items():
        assert found["test"] == len(found["correct"]) == 15
        assert found["accuracy"] == np.mean(found["correct"])
        by_iteration = {record["iteration"]: record for record in found["iterations"]}
        assert list(by_iteration) == ([0] if cell.system == "ATT" else [0, 1, 2])
        assert found["accuracy"] == by_iteration[found["selected"]]["test"]
        for scorer in ("random",) if cell.system == "base" else ("base", "self"):
            assert set(found[scorer]) == set(SCORES)
            assert len(found[scorer]["accuracy_drop@5"]) == 15
    att, matched = results[wanted[1]], results[wanted[2]]
    assert att["iterations"] == matched["iterations"][:1]  # one run: ATT is its iteration 0
    assert matched["selected"] > 0

    log = json.loads((wanted[3].models(tiny) / "trainer_state.json").read_text())["log_history"]
    phases = {round(record["epoch"]): record["phase"] for record in log if "loss" in record}
    assert list(phases.values()) == ["joint", *["compress", "learn", "learn"] * 2]
    checkpoints = sorted(folder.name for folder in wanted[3].models(tiny).glob("checkpoint-*"))
    assert checkpoints == ["checkpoint-1", "checkpoint-4", "checkpoint-7"]  # one batch in an epoch
    assert not list(wanted[3].models(tiny).rglob("optimizer.pt"))
    with pytest.raises(InputError, match="made with other settings"):
        run_cells(wanted, CellSettings(tiny.data_dir, tiny.work_dir, max_train_samples=5))


def test_the_command_writes_the_tables(tiny, tmp_path, monkeypatch, capsys):
    options = ["--datasets", "sst1", "--encoders", "minilm", "--seeds", "1", "--data_dir", tiny.data_dir]
    options += ["--work_dir", tiny.work_dir, "--output_dir", str(tmp_path / "results"), "--table", "2"]
    monkeypatch.setattr(sys, "argv", ["hf-vat reproduce", "vat", *options])
    reproduce.main()
    assert "### Table 2" in capsys.readouterr().out
    folder = tmp_path / "results"
    text = (folder / "vat.md").read_text(encoding="utf-8")
    assert "| system | minilm, sst1 (1) |" in text and "hf-vat reproduce vat --datasets sst1" in text
    figures = {f"vat-sst1-minilm-{name}" for name in ("curves", "vectors", "iterations", "attention")}
    assert {file.name for file in folder.iterdir()} == {
        *("vat.md", "vat.json", "report.html"),
        *(f"{name}{suffix}" for name in figures for suffix in (".svg", ".png")),
    }
    # texts of the data are not in what is kept
    assert "-attention.png)" not in text and "-vectors.png)" in text
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Figure 7. Attention of ATT and VAT" in page and "Table 2. Test accuracy" in page
    summary = json.loads((folder / "vat.json").read_text(encoding="utf-8"))
    assert [cell["cell"]["system"] for cell in summary["cells"]] == list(SYSTEMS)


def test_table_5_needs_labelled_words(tiny, monkeypatch):
    options = ["--datasets", "sst1", "--encoders", "minilm", "--data_dir", tiny.data_dir, "--table", "5"]
    monkeypatch.setattr(sys, "argv", ["hf-vat reproduce", "vat", *options, "--work_dir", tiny.work_dir])
    with pytest.raises(InputError, match="--table 5 needs texts with labelled words"):
        reproduce.main()


def test_labelled_words_are_scored(tiny, tmp_path):
    path = tmp_path / "data" / "sst_words" / "test.jsonl"
    path.parent.mkdir()
    lines = [
        {"tokens": ["a", "good", "film"], "token_labels": [2, 3, 2], "label": 3},
        {"tokens": ["a", "film"], "token_labels": [2, 2], "label": 3},
        {"tokens": ["bad", "film"], "token_labels": [1, 2], "label": 1},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows = ["text,label", *["a bad film,negative", "a good film,positive"] * 3]
    (tmp_path / "data" / "sst2").mkdir()
    for split in ("train", "validation", "test"):
        (tmp_path / "data" / "sst2" / f"{split}.csv").write_text("\n".join(rows), encoding="utf-8")
    base, vat = Cell("sst2", "minilm", "base", 0), Cell("sst2", "minilm", "VAT", 0)
    results = run_cells([base, vat], tiny)
    expected = results[base]["words"]
    assert expected["positive precision@1"] == pytest.approx([1 / 3])  # the text without a positive word is left out
    assert expected["negative recall@1"] == [0.5] and expected["negative f1@5"] == pytest.approx([2 / 3])
    assert results[vat]["words"].keys() == expected.keys()
    assert results[vat]["words"]["positive precision@1"] in ([0.0], [1.0])
    assert results[vat]["words"]["positive recall@5"] == [1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["vat", "--datasets", "trec,sst5"], "--datasets has 'sst5'; there are imdb,"),
        (["vat", "--encoders", "gru"], "--encoders has 'gru'; there are lstm,minilm,bert"),
        (["vat", "--table", "7"], "--table has '7'; there are 2,3,4,5,6"),
        (["vat", "--seeds", "0"], "--seeds is 0"),
        (["bert"], "The paper is 'bert'; it must be 'vat'"),
        ([], "The paper is None"),
    ],
)
def test_bad_options_are_named(monkeypatch, options, message):
    monkeypatch.setattr(sys, "argv", ["hf-vat reproduce", *options])
    with pytest.raises(InputError, match=message):
        reproduce.main()
