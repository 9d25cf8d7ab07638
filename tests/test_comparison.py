"""Explanation methods compared: numbers, intervals, tests, files, and planted and human evidence."""

import csv
import json
import re

import numpy as np
import pytest

from hf_vat import Faithfulness, explain
from hf_vat.comparison import compare_explainers
from hf_vat.errors import InputError
from hf_vat.faithfulness.rationales import auprc
from hf_vat.faithfulness.statistics import bootstrap_interval, mcnemar, paired_bootstrap

TEXTS = ["a very good film", "not good", "", "bad movie but good", "very bad", "a film", "good good bad film"]
LABELS = [1, 0, 1, 0, 0, 1, 1]
METHODS = {"occlusion": {}, "few": {"method": "lime", "n_samples": 10}, "gradient": {}}


@pytest.fixture
def compare(stub, stub_tokenizer):
    """Compare methods, occlusion if none are given, for the stub on TEXTS, if no others are given."""

    def compare(methods=("occlusion",), texts=TEXTS, labels=LABELS, **settings):
        return compare_explainers(stub, stub_tokenizer, texts, labels, methods, **settings)

    return compare


@pytest.fixture
def comparison(compare):
    return compare(METHODS, ks=(1, 2, 3), shares=(0.2, 0.5))


def test_values_are_those_of_explain_and_faithfulness(stub, stub_tokenizer, comparison):
    assert list(comparison.methods) == ["occlusion", "few", "gradient", "random"]
    faithfulness = Faithfulness(stub, stub_tokenizer, TEXTS, LABELS, ks=(1, 2, 3), shares=(0.2, 0.5))
    for name, arguments in (("occlusion", {"method": "occlusion"}), ("few", {"method": "lime", "n_samples": 10})):
        expected = faithfulness.measure(explain(stub, stub_tokenizer, TEXTS, **arguments), name)
        found = comparison.methods[name]
        assert set(found.values) == set(expected.values)
        for score, values in expected.values.items():
            assert np.isnan(found.values[score][2]), "the empty text"
            np.testing.assert_allclose(np.delete(found.values[score], 2), values, atol=1e-12)
            assert comparison.intervals[name][score] == bootstrap_interval(values)
    assert comparison.methods["few"].settings["n_samples"] == 10
    random = faithfulness.random(range(5)).to_dict()["prob_drop@2"]
    assert comparison.intervals["random"]["prob_drop@2"].mean == pytest.approx(random["mean"])
    assert comparison.methods["random"].seed_means["prob_drop@2"] == random["values"]
    assert comparison.setup["n_skipped"] == {"no words": 1}


def test_f69_one_progress_bar_for_all_of_it(compare, capsys):
    compare({"gradient": {}, "occlusion": {}}, ks=(1, 2), shares=(0.5,), seeds=range(4), progress=True)
    printed = capsys.readouterr().err
    assert set(re.findall(r"([^\r\n]+): +\d+%", printed)) == {"measuring"}
    # 7 texts: each read once, then 4 + 2 rankings deleted and kept at 2 + 1 places; 2 inputs of the gradient; for
    # occlusion the text, that without any word, and those without one of their 18 words
    inputs = 7 * (1 + 6 * 2 * 3) + 7 * 2 + 7 * 2 + 18
    assert re.findall(r"(\d+)/(\d+) ", printed)[-1] == (str(inputs), str(inputs))
    assert sum(len(text.split()) for text in TEXTS) == 18


def test_pairs_are_tested_on_the_same_texts(comparison):
    pairs = {(pair["a"], pair["b"], pair["score"]): pair for pair in comparison.pairs()}
    assert len(pairs) == 6 * len(comparison.main_scores)
    first, second = (np.delete(comparison.methods[name].values["area_prob"], 2) for name in ("occlusion", "gradient"))
    expected = paired_bootstrap(first, second)
    found = pairs["occlusion", "gradient", "area_prob"]
    assert (found["difference"], found["low"], found["high"], found["p_value"]) == expected
    assert found["test"] == "paired bootstrap"
    first, second = (
        np.delete(comparison.methods[name].values["posthoc_self@3"], 2) == 1 for name in ("few", "gradient")
    )
    found = pairs["few", "gradient", "posthoc_self@3"]
    assert (found["only_a"], found["only_b"], found["p_value"]) == mcnemar(first, second)
    assert found["test"] == "McNemar" and pairs["few", "random", "posthoc_self@3"]["test"] == "paired bootstrap"


def test_agreement_between_methods(comparison):
    rows = comparison.agreement()
    assert [(row["a"], row["b"]) for row in rows] == [
        ("occlusion", "few"),
        ("occlusion", "gradient"),
        ("few", "gradient"),
    ]
    assert rows[1]["kendall_tau"] == 0  # the gradient of a sum is the same for all words
    assert rows[0]["kendall_tau"] > 0.5 and 0 < rows[0]["top_k_overlap"] <= 1


def test_everything_is_written_and_can_be_drawn_again(comparison, tmp_path):
    page = comparison.write(tmp_path / "new" / "folder")
    files = {path.name for path in page.parent.iterdir()}
    assert files == {"report.html", "curves.svg", "curves.png", "comparison.json", "scores.csv", "texts.csv"} | {
        "explanations.jsonl"
    }
    report = json.loads((page.parent / "comparison.json").read_text(encoding="utf-8"))
    assert report["methods"]["few"]["scores"]["prob_drop@2"]["mean"] == comparison.intervals["few"]["prob_drop@2"].mean
    assert report["definitions"]["prob_drop"] and report["scale"] == "probability" and report["random_seeds"]
    with open(page.parent / "scores.csv", encoding="utf-8", newline="") as file:
        rows = {(row["method"], row["score"], row["at"]): row for row in csv.DictReader(file)}
    for panel, lines in comparison.curves().items():
        for method, points in lines.items():
            for x, mean, low, high in points:
                row = rows[method, panel, f"{x:g}"]
                assert (float(row["mean"]), float(row["low"]), float(row["high"])) == (mean, low, high)
    assert rows["few", "sufficiency", "0.5"]["better"] == "lower"
    with open(page.parent / "texts.csv", encoding="utf-8", newline="") as file:
        texts = list(csv.DictReader(file))
    assert len(texts) == 4 * len(TEXTS) and texts[2]["prob_drop@1"] == ""
    assert float(texts[0]["prob_drop@1"]) == comparison.methods["occlusion"].values["prob_drop@1"][0]
    html = page.read_text(encoding="utf-8")
    for shown in (*comparison.methods, "paired bootstrap", "Kendall", "<svg"):
        assert shown in html


def test_terminal_table_names_methods_scores_and_seconds(comparison):
    printed = str(comparison)
    for shown in (*comparison.methods, *comparison.main_scores, "s / text", "6 texts", "95 % bootstrap"):
        assert shown in printed


def test_an_interrupted_comparison_goes_on(compare, tmp_path):
    arguments = {"methods": ["occlusion", "lime"], "ks": (1, 2), "save_folder": tmp_path}
    first = compare(**arguments)
    (tmp_path / "lime.jsonl").unlink()
    again = compare(**arguments)
    for name, result in first.methods.items():
        for score, values in result.values.items():
            np.testing.assert_array_equal(again.methods[name].values[score], values)
    assert {path.name for path in tmp_path.iterdir()} == {"occlusion.jsonl", "lime.jsonl", ".hf_vat_seconds.json"}
    assert again.methods["occlusion"].seconds == first.methods["occlusion"].seconds > 0  # of the call that explained
    assert again.methods["lime"].seconds != first.methods["lime"].seconds
    (tmp_path / ".hf_vat_seconds.json").unlink()
    unknown = compare(**arguments)
    assert unknown.methods["lime"].seconds is None and "—" in str(unknown)
    assert unknown.to_dict()["methods"]["lime"]["seconds_per_text"] is None


def test_a_scorer_of_its_own(compare, stub, stub_tokenizer, make_model):
    scorer = make_model("base", id2label=stub.config.id2label)
    comparison = compare(scorer=scorer, scorer_tokenizer=stub_tokenizer, ks=(1,))
    expected = Faithfulness(scorer, stub_tokenizer, TEXTS, LABELS, ks=(1,)).measure(
        explain(stub, stub_tokenizer, TEXTS, "occlusion")
    )
    np.testing.assert_allclose(
        np.delete(comparison.methods["occlusion"].values["prob_drop@1"], 2), expected.values["prob_drop@1"], atol=1e-6
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": []}, "give one or more methods"),
        ({"methods": ["occlusion", "random"]}, "Random rankings are always measured"),
        ({"methods": {"a/b": {"method": "lime"}}}, "'a/b'.*slashes"),
        ({"methods": {"fast": {}}}, "Unknown method 'fast'"),
        ({"seeds": ()}, "No seeds were given"),
        ({"texts": ["good", ""], "labels": [1, 0]}, "Only one text has words"),
        ({"rationales": [[0]]}, "rationales of 1 texts for 7"),
        ({"rationales": [[0]] * 7}, r"rationales\[0\] has 1 flags, but text 0 has 4 words: \['a', 'very'"),
        ({"methods": {"occlusion": {}, "lime": {"samples": 3}}}, "'lime' has no setting 'samples'"),
        ({"ks": (0,)}, "ks is"),
        ({"methods": "occlusion"}, r"the one string 'occlusion'; give a list"),
        ({"methods": ["occlusion", "attention"]}, "Stub gives no token_importance"),
        ({"methods": {"shapley": {"exact": True}}, "texts": ["good " * 13] * 7}, "13 words.*limit is 12"),
        ({"methods": {"lime": {"operator": "drop"}}}, "operator is 'drop'"),
        ({"scorer": object()}, "The model is a object; give its tokenizer too"),
        ({"seed": -1}, "seed is -1"),
        ({"max_length": 1}, "max_length is 1"),
        ({"confidence": 95}, "confidence"),
    ],
)
def test_bad_input_is_named_before_anything_is_explained(compare, monkeypatch, change, message):
    def one_text_at_most(model, tokenizer, texts, *args, **kwargs):
        assert len(texts) < 2, "texts were explained first"
        return explain(model, tokenizer, texts, *args, **kwargs)

    monkeypatch.setattr("hf_vat.comparison.explain", one_text_at_most)
    with pytest.raises(InputError, match=message):
        compare(**({"ks": (1,)} | change))


def test_a_scorer_with_other_classes_is_refused(compare, stub_tokenizer, make_model):
    with pytest.raises(InputError, match=r"different classes, .*LABEL_2"):
        compare(scorer=make_model("base", num_labels=3), scorer_tokenizer=stub_tokenizer)


def test_words_that_are_not_seen_do_not_count_against_rationales(compare):
    """A random method must fare as the random rankings do: words beyond the maximum length cannot be ranked."""
    texts = ["good bad very not film movie but a"] * 40
    rationales = [[0, 1, 0, 0, 0, 0, 0, 1]] * 40  # the last one is not seen
    with pytest.warns(UserWarning, match="4 words|160 words"):
        methods = {"chance": {"method": "gradient"}, "occlusion": {}}
        comparison = compare(methods, texts, [1] * 40, rationales=rationales, ks=(1, 2), max_length=6)
    assert comparison.intervals["random"]["recall@2"].mean == pytest.approx(2 / 4)
    assert comparison.intervals["occlusion"]["recall@1"].mean == 1  # "bad", the only one of two that can be found
    assert (comparison.setup["n_marked_words"], comparison.setup["n_marked_words_not_seen"]) == (80, 40)
    assert comparison.agreement()[0]["top_k_overlap"] <= 1


def test_scores_of_fewer_than_two_texts_are_left_out(compare, tmp_path):
    rationales = [[0] * len(text.split()) for text in TEXTS]
    rationales[0][2] = 1
    comparison = compare(rationales=rationales, ks=(1,))
    assert "auprc" not in comparison.intervals["occlusion"] and comparison.n_texts("auprc") == 1
    assert "recall@1" not in comparison.main_scores
    comparison.write(tmp_path)


# Evidence that is known


def test_planted_words_are_found(planted_classifier, tmp_path):
    """Recall of the planted words among the top 2 of 12: 1/6 by chance, which is exact for the random rankings."""
    model, tokenizer, splits = planted_classifier
    rows = splits["test"].select(range(60))
    methods = {
        "occlusion": {},
        "input_x_gradient": {},
        "integrated_gradients": {"n_steps": 20},
        "lime": {"n_samples": 300},
        "shapley": {"n_samples": 15},
    }
    comparison = compare_explainers(
        model,
        tokenizer,
        rows["text"][:],
        rows["label"][:],
        methods,
        rationales=rows["rationale"][:],
        ks=(1, 2, 3),
    )
    assert comparison.intervals["random"]["recall@2"].mean == pytest.approx(2 / 12)
    assert comparison.intervals["random"]["precision@1"].mean == pytest.approx(2 / 12)
    for name in methods:
        assert comparison.intervals[name]["recall@2"].mean > 0.6, name
        assert comparison.intervals[name]["auprc"].mean > 0.6, name
    page = comparison.write(tmp_path).read_text(encoding="utf-8")
    assert "recall@3" in page
    assert "recall" in comparison.curves()


def test_human_rationales_of_texts_that_are_split_already(shared_data, make_model, tokenizer):
    """Sentences with a polarity for each word: the words of the file are the words that are measured."""
    with open(shared_data / "sst_words" / "validation.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file][:40]
    rows = [row for row in rows if len(row["tokens"]) <= 20]
    texts = [row["tokens"] for row in rows]
    rationales = [[int(label != 2) for label in row["token_labels"]] for row in rows]
    model = make_model("att")
    comparison = compare_explainers(
        model, tokenizer, texts, [0] * len(texts), ["attention", "occlusion"], rationales=rationales, ks=(1, 5)
    )
    explanations = comparison.methods["attention"].explanations
    assert [explanation.words for explanation in explanations] == texts
    expected = auprc([explanation.scores for explanation in explanations], rationales)
    np.testing.assert_array_equal(comparison.methods["attention"].values["auprc"], expected)
    shares = [np.mean(flags) for flags in rationales if any(flags)]
    assert comparison.intervals["random"]["precision@1"].mean == pytest.approx(np.mean(shares))
    assert 0 <= comparison.intervals["occlusion"]["token_f1"].mean <= 1
