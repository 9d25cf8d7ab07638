"""Cells are trained, measured and kept; tables, claims and curves come from them."""

import json
import os
import time
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from hf_vat.errors import InputError
from hf_vat.explanations import Explanation
from hf_vat.report.tables import markdown
from hf_vat.reproduction import CellSettings, cells, run_cells
from hf_vat.reproduction.claims import claims_tables
from hf_vat.reproduction.vat import ENCODERS, KINDS, VATCell, VATResults, experiments
from hf_vat.reproduction.vat.page import heatmap_texts
from hf_vat.training import Recipe
from hf_vat.training.checkpoints import UNFINISHED_NAME

SCORES = [f"{score}@{k}" for score in experiments.SCORES for k in experiments.KS]
WORD_SCORES = [
    f"{polarity} {score}@{k}"
    for polarity in ("positive", "negative")
    for score in ("precision", "recall", "f1")
    for k in (1, 5)
]


def row(correct, words=0.0, iteration=1, **judges) -> dict:
    """A row whose scores at every K are those given for one K: one value for each of four texts."""
    found = {"iteration": iteration, "correct": correct, "words": {name: [words, words] for name in WORD_SCORES}}
    return found | {
        judge: {name: values[name.partition("@")[0]] for name in SCORES} for judge, values in judges.items()
    }


def result(cell, rows, *validation) -> dict:
    iterations = [
        {"iteration": number, "validation": value, "test": value, "silhouette": value / 2, "knn_accuracy": value}
        for number, value in enumerate(validation)
    ]
    data = {"sizes": {"train": 5000, "validation": 452, "test": 4}, "note": "TREC."}
    settings = {"words": True}
    return {
        **{"cell": asdict(cell), "settings": settings, "data": data},
        **{"iterations": iterations, "rows": rows, "machine": "m", "seconds": 30.0},
    }


def column(drop, kept):
    return {"accuracy_drop": drop, "prob_drop": drop, "posthoc_gold": kept, "posthoc_self": kept}


@pytest.fixture
def results():
    """Two seeds of a made-up data set of four texts."""
    found = {}
    for seed in (0, 1):
        low, high = column([0, 0, 1, 0], [1, 0, 0, 0]), column([1, 1, 1, seed], [1, 1, 1, 1])
        base, att, vat = (VATCell("trec", "lstm", kind, seed) for kind in KINDS)
        random = row([], base=column([0, 0, 0, 0], [0, 0, 0, 0]))
        found[base] = result(base, {"base": row([1, 1, 0, 0]), "Random": random}, 0.5, 0.75)
        rows = {
            "ATT": row([1, 1, 0, 0], 0.5, 0, base=low, self=low),
            "ATT (matched)": row([1, 1, 1, seed], 0.5, base=high, self=low),
        }
        found[att] = result(att, rows, 0.5, 0.75)
        found[vat] = result(vat, {"VAT": row([1, 1, 1, 1], 0.75, base=high, self=high)}, 0.5, 0.75 + seed / 8)
    return VATResults(found)


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
    assert separation.rows[0] == ["lstm, trec", "ATT", "0.25 ± 0.00", "50.0 ± 0.0", "0: 0.25, 1: 0.38"]
    assert separation.rows[2][2:] == ["0.41 ± 0.04", "81.2 ± 8.8", "0: 0.25, 1: 0.41"]


def test_claims_are_paired_over_texts(results):
    found = results.claims([2, 3, 4, 5])
    claims = {(claim["score"], claim["claim"]): claim for claim in found}
    assert len(claims) == len(found) == 3 + 2 * (4 + 2) + 12 * 4
    against_att = claims["accuracy_drop@5", "VAT > ATT"]
    assert against_att["difference"] == pytest.approx(100 * np.mean([1, 1, 0, 0.5]))
    assert (against_att["seeds_won"], against_att["seeds"]) == (2, 2)
    same = claims["accuracy_drop@5", "VAT > ATT (matched)"]
    assert (same["difference"], same["p_value"], same["verdict"], same["seeds_won"]) == (0, 1, "open", 0)
    to_random = claims["posthoc_gold@5", "VAT > Random"]
    assert (to_random["verdict"], to_random["paper"]) == ("held", pytest.approx(79.2 - 71.4))
    own = claims["posthoc_gold@5, own", "VAT > ATT (matched)"]
    assert (own["verdict"], own["paper"]) == ("held", None)
    assert claims["positive f1@5", "VAT > ATT"]["difference"] == pytest.approx(25)
    counted, told = map(markdown, claims_tables(found))
    assert "| lstm, trec | posthoc_gold@5 | VAT > Random | +100.0 [100.0, 100.0] | +7.8 |" in told
    assert "| VAT > Random | posthoc_gold@5 | 1 | 0 | 0 | 0 |" in counted
    assert "| VAT > ATT | precision, recall, F1 of sentiment words | 12 | 0 | 0 | 0 |" in counted
    assert claims_tables(results.claims([6])) == []


def test_a_worse_system_fails_its_claim(results):
    for seed in (0, 1):
        rows = results.results[VATCell("trec", "lstm", "ATT", seed)]["rows"]
        vat = results.results[VATCell("trec", "lstm", "VAT", seed)]["rows"]
        rows["ATT"], vat["VAT"] = vat["VAT"], rows["ATT"]
    verdicts = {(claim["score"], claim["claim"]): claim["verdict"] for claim in results.claims([4])}
    assert verdicts["posthoc_gold@5", "VAT > ATT"] == "failed"


def test_a_claim_that_one_seed_contradicts_is_open(results):
    # of 40 texts VAT gains 20 with one seed, and loses 1 with the other
    for seed, values in enumerate(([0, 1] * 20, [1] * 40)):
        for kind in KINDS:
            for name, found in results.results[VATCell("trec", "lstm", kind, seed)]["rows"].items():
                if "base" in found:
                    better = [1] * 40 if seed == 0 else [0] + [1] * 39
                    found["base"]["posthoc_gold@5"] = better if name == "VAT" else values
    claim = next(
        claim for claim in results.claims([4]) if (claim["score"], claim["claim"]) == ("posthoc_gold@5", "VAT > ATT")
    )
    assert claim["difference"] > 20 and (claim["seeds_won"], claim["verdict"]) == (1, "open")
    assert claim["low"] < 0  # as a draw of the other seed alone would give


def test_one_seed_decides_nothing(results):
    one = VATResults({cell: value for cell, value in results.results.items() if cell.seed == 0})
    assert {claim["verdict"] for claim in one.claims([2, 3, 4])} == {"one seed"}


def test_the_papers_broken_rows_are_named():
    cell = [VATCell("trec", "minilm", kind, 0) for kind in KINDS]
    same = column([0, 1], [1, 0])
    rows = [
        {"base": row([1, 0]), "Random": row([], base=same)},
        {"ATT": row([1, 0], base=same, self=same), "ATT (matched)": row([1, 0], base=same, self=same)},
        {"VAT": row([1, 0], base=same, self=same)},
    ]
    results = VATResults({one: result(one, found, 0.5) for one, found in zip(cell, rows, strict=True)})
    by_base, by_itself = results.tables([3])
    assert "cannot be compared" in by_base.caption and by_itself.caption == ""
    assert results.data_table().rows == [["trec", "5,000", "452", "4", "TREC."]]


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
def tiny(bert, settings_of, monkeypatch):
    words = {
        "very negative": "bad",
        "negative": "dull",
        "neutral": "plot",
        "positive": "good",
        "very positive": "great",
    }
    recipe = Recipe("joint", 1, 2, 1, 2, "separate", 0.1, "mean")
    monkeypatch.setitem(ENCODERS, "minilm", replace(ENCODERS["minilm"], model=lambda: bert, recipe=recipe))
    nouns = ("film", "movie", "scene")
    return settings_of("sst1", [f"the {word} {noun},{label}" for label, word in words.items() for noun in nouns])


def test_cells_are_run_once_and_go_on(tiny, tmp_path, monkeypatch):
    wanted = [VATCell("sst1", "minilm", kind, 0) for kind in KINDS]
    ran = []
    run_cell = cells.run_cell
    monkeypatch.setattr(cells, "run_cell", lambda cell, settings: (ran.append(cell.kind), run_cell(cell, settings)))
    first = run_cells(wanted[:1], tiny)
    results = run_cells(wanted, tiny)
    assert ran == ["base", "ATT", "VAT"] and results[wanted[0]] == first[wanted[0]]
    assert run_cells(wanted, tiny) == results and len(ran) == 3
    rows = {}
    for found in results.values():
        assert found["data"]["sizes"] == {"train": 15, "validation": 15, "test": 15}
        by_iteration = {record["iteration"]: record for record in found["iterations"]}
        assert list(by_iteration) == [0, 1, 2]
        for name, values in found["rows"].items():
            rows[name] = values
            for judge in {"Random": ["base"], "base": []}.get(name, ["base", "self"]):
                assert set(values[judge]) == set(SCORES) and len(values[judge]["accuracy_drop@5"]) == 15
            if name != "Random":
                assert np.mean(values["correct"]) == by_iteration[values["iteration"]]["test"]
                assert (values["iteration"] == 0) == (name == "ATT")
    assert list(rows) == ["base", "Random", "ATT", "ATT (matched)", "VAT"]

    log = json.loads(((wanted[2].folder(tiny) / "model") / "trainer_state.json").read_text())["log_history"]
    phases = {round(record["epoch"]): record["phase"] for record in log if "loss" in record}
    assert list(phases.values()) == ["joint", *["compress", "learn", "learn"] * 2]
    checkpoints = sorted(folder.name for folder in (wanted[2].folder(tiny) / "model").glob("checkpoint-*"))
    assert checkpoints == ["checkpoint-1", "checkpoint-4", "checkpoint-7"]  # one batch in an epoch
    assert not list((wanted[2].folder(tiny) / "model").rglob("optimizer.pt"))
    with pytest.raises(InputError, match="made with other settings"):
        run_cells(wanted, CellSettings(tiny.data_dir, tiny.work_dir, max_train_samples=5))


def test_the_command_writes_the_tables(tiny, tmp_path, reproduced, capsys):
    options = "--datasets sst1 --encoders minilm --seeds 2 --table 2 --add sst1/minilm/1"
    figures = [f"sst1-minilm-{name}" for name in ("curves", "vectors", "iterations", "attention")]
    text, kept = reproduced(tiny, "vat", options, figures)
    said = capsys.readouterr().out
    assert "### Table 2" in said and "minilm, VAT: pooling attention, bottleneck gaussian" in said
    assert "| system | minilm, sst1 (1) |" in text and "hf-vat reproduce vat --datasets sst1" in text
    # texts of the data are not in what is kept
    assert "-attention.png)" not in text and "-vectors.png)" in text
    assert "the film" not in text + kept
    page = (tmp_path / "results" / "vat.html").read_text(encoding="utf-8")
    assert "Figure 7. Attention of ATT and VAT" in page and "Table 2. Test accuracy" in page
    summary = json.loads(kept)
    assert [cell["cell"]["kind"] for cell in summary["cells"]] == list(KINDS)
    vat = summary["cells"][-1]["rows"]["VAT"]
    assert isinstance(vat["correct"], float) and isinstance(vat["base"]["accuracy_drop@5"], float)


def test_table_5_needs_labelled_words(tiny, run_command):
    options = ["--datasets", "sst1", "--encoders", "minilm", "--data_dir", tiny.data_dir, "--table", "5"]
    with pytest.raises(InputError, match="--table 5 needs texts with labelled words"):
        run_command("vat", *options, "--work_dir", tiny.work_dir)


def test_labelled_words_are_scored(tiny, settings_of, tmp_path):
    path = tmp_path / "data" / "sst_words" / "test.jsonl"
    path.parent.mkdir()
    lines = [
        {"tokens": ["a", "good", "film"], "token_labels": [2, 3, 2], "label": 3},
        {"tokens": ["a", "film"], "token_labels": [2, 2], "label": 3},
        {"tokens": ["bad", "film"], "token_labels": [1, 2], "label": 1},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    settings_of("sst2", ["a bad film,negative", "a good film,positive"] * 3)
    base, vat = VATCell("sst2", "minilm", "base", 0), VATCell("sst2", "minilm", "VAT", 0)
    results = run_cells([base, vat], tiny)
    expected = results[base]["rows"]["Random"]["words"]
    assert expected["positive precision@1"] == pytest.approx([1 / 3])  # the text without a positive word is left out
    assert expected["negative recall@1"] == [0.5] and expected["negative f1@5"] == pytest.approx([2 / 3])
    found = results[vat]["rows"]["VAT"]["words"]
    assert found.keys() == expected.keys()
    assert found["positive precision@1"] in ([0.0], [1.0]) and found["positive recall@5"] == [1.0]


def test_another_compressor_leaves_base_and_att_as_they_are():
    recipe = Recipe("joint", 1, 2, 1, 2, "separate", 0.1, "mean")
    other = replace(recipe, start="finetune", compress_epochs=2, heads="shared", beta=1.0, kl_reduction="sum")
    longer = replace(recipe, learn_epochs=3)
    for kind in ("base", "ATT"):
        assert recipe.decisive(kind) == other.decisive(kind) != longer.decisive(kind)
    assert recipe.decisive("VAT") != other.decisive("VAT")


def test_a_model_of_other_settings_is_not_taken(tiny):
    base = VATCell("sst1", "minilm", "base", 0)
    run_cells([base], tiny)
    (base.folder(tiny) / "result.json").unlink()  # as if killed while measuring
    fewer = replace(tiny, max_train_samples=5)
    with pytest.raises(InputError, match="trained with other settings"):
        run_cells([base], fewer)


def test_a_half_written_checkpoint_does_not_stop_a_cell(tiny):
    base = VATCell("sst1", "minilm", "base", 0)
    half = base.folder(tiny) / "model" / UNFINISHED_NAME / "checkpoint-3"
    half.mkdir(parents=True)  # as if killed while it was written
    (half / "vat_state.json").write_text("{}", encoding="utf-8")
    run_cells([base], tiny)
    assert not half.exists() and base.result(tiny) is not None


def test_a_ranking_needs_its_judge(tiny):
    with pytest.raises(InputError, match="needs sst1-minilm-base-0, which is not among the cells"):
        run_cells([VATCell("sst1", "minilm", "VAT", 0)], tiny)
    with pytest.raises(InputError, match="kind is 'Random'"):
        VATCell("sst1", "minilm", "Random", 0)


def _write_process(path, seconds):
    time.sleep(seconds)
    path.write_text(f"{os.getpid()} {torch.get_num_threads()}", encoding="utf-8")


def test_jobs_run_in_processes_that_share_the_cores(tmp_path):
    paths = [tmp_path / str(number) for number in range(3)]
    cells.in_parallel(_write_process, [(path, 0) for path in paths], 2, "cells")
    found = [path.read_text(encoding="utf-8").split() for path in paths]
    assert str(os.getpid()) not in {process for process, _ in found}
    assert {threads for _, threads in found} == {str(max(1, torch.get_num_threads() // 2))}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["vat", "--datasets", "trec,sst5"], "--datasets has 'sst5'; there are imdb,"),
        (["vat", "--encoders", "gru"], "--encoders has 'gru'; there are lstm,minilm,bert"),
        (["vat", "--table", "7"], "--table has '7'; there are 2,3,4,5,6"),
        (["vat", "--seeds", "0"], "--seeds is 0"),
        (["vat", "--add", "trec/minilm"], "--add has 'trec/minilm'"),
        (["vat", "--add", "trec/minilm/0"], "such as trec/minilm/2"),
        (["vat", "--max_eval_samples", "3"], "--max_eval_samples is 3; it must be at least 20"),
        (["bert"], "The paper is 'bert'; it must be one of vat, vmask"),
        ([], "The paper is None"),
    ],
)
def test_bad_options_are_named(run_command, options, message):
    with pytest.raises(InputError, match=message):
        run_command(*options)
