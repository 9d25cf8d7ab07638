import json

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hf_vat import compare_explainers, explain
from hf_vat.amortized import fit_l2x
from hf_vat.data import load_paper_dataset
from hf_vat.data.offline import rotten_tomatoes
from hf_vat.data.papers import stratified_split
from hf_vat.errors import InputError
from hf_vat.faithfulness import ERASER_SHARES, Faithfulness, random_ranking
from hf_vat.faithfulness.statistics import (
    bootstrap_interval,
    frequency_correlation,
    paired_bootstrap,
    paired_bootstrap_over_runs,
)
from hf_vat.models.words import split_words
from hf_vat.report import word_cloud
from hf_vat.reproduction.vat.representations import tsne

WEIGHTS = {"good": 2.0, "bad": -3.0, "very": 0.5, "not": -1.0}
FILM = "a very good film"
FILM_SCORES = [0, 0.5, 2.0, 0]
SHARED_STUB = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXTS = st.lists(
    st.lists(st.sampled_from([*WEIGHTS, "film"]), min_size=1, max_size=8).map(" ".join), min_size=1, max_size=5
)


def exact_scores(text):
    """Scores for the predicted class of the stub."""
    weights = [WEIGHTS.get(word.text, 0.0) for word in split_words(text)]
    sign = 1 if sum(weights) > 0 else -1
    return [sign * weight for weight in weights]


def values(stub, tokenizer, text, scores, name, ks):
    result = Faithfulness(stub, tokenizer, [text], [1], ks=ks).measure([scores], "given")
    return np.array([result.values[f"{name}@{k}"][0] for k in ks])


@pytest.mark.parametrize("operator", ["delete", "mask", "pad"])
def test_c34_comprehensiveness_and_sufficiency(stub, stub_tokenizer, operator):
    """Of four words, one and two: the top word "good", then "very"; the mask word has weight 0."""
    faithfulness = Faithfulness(stub, stub_tokenizer, [FILM], [1], shares=(0.25, 0.5), operator=operator)
    result = faithfulness.measure([FILM_SCORES], "given")
    expected = {
        "comprehensiveness@0.25": 0.301682,
        "comprehensiveness@0.5": 0.424142,
        "aopc_comprehensiveness": 0.362912,
        "sufficiency@0.25": 0.043345,
        "sufficiency@0.5": 0.0,
        "aopc_sufficiency": 0.0216725,
    }
    assert {name: result.scores[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert result.to_dict()["operator"] == operator


def test_shares_are_rounded_up_to_whole_words(stub, stub_tokenizer):
    words = ["good"] * 30
    scores = list(range(30, 0, -1))
    faithfulness = Faithfulness(stub, stub_tokenizer, [" ".join(words)], [1], shares=(*ERASER_SHARES, 1), ks=(3,))
    found = faithfulness.measure([scores], "given").scores
    # 1, 2, 3, 6, 15 and 30 of 30 words; 0.1 · 30 must not become 4
    kept = {0.01: 1, 0.05: 2, 0.1: 3, 0.2: 6, 0.5: 15, 1: 30}
    full = 1 / (1 + np.exp(-60))
    for share, number in kept.items():
        assert found[f"sufficiency@{share:g}"] == pytest.approx(full - 1 / (1 + np.exp(-2 * number)), abs=1e-9)
    assert found["comprehensiveness@1"] == pytest.approx(full - 0.5)


def test_c36_drops_are_probabilities(stub, stub_tokenizer):
    drops = values(stub, stub_tokenizer, FILM, FILM_SCORES, "prob_drop", (1, 2, 3))
    np.testing.assert_allclose(drops, [0.301682, 0.424142, 0.424142], atol=1e-6)
    report = Faithfulness(stub, stub_tokenizer, [FILM], [1]).measure([FILM_SCORES], "given").to_dict()
    assert report["scale"] == "probability"

    forward = stub.forward

    def shifted(**batch):
        output = forward(**batch)
        output.logits = output.logits + 100
        return output

    stub.forward = shifted
    np.testing.assert_allclose(values(stub, stub_tokenizer, FILM, FILM_SCORES, "prob_drop", (1, 2, 3)), drops)


def test_c37_area_and_clamping(stub, stub_tokenizer):
    three = Faithfulness(stub, stub_tokenizer, [FILM], [1], ks=(1, 2, 3)).measure([FILM_SCORES], "given")
    assert three.scores["area_prob"] == pytest.approx(0.383322, abs=1e-6)
    assert three.scores["area_acc"] == pytest.approx(2 / 3)  # without "good" and "very" it is 0.5, read as class 0
    assert "area_prob" in three.to_dict()["definitions"]

    result = Faithfulness(stub, stub_tokenizer, [FILM], [1], ks=(1, 2, 3, 4, 5)).measure([FILM_SCORES], "given")
    assert result.scores["area_prob"] == pytest.approx(0.399650, abs=1e-6)
    report = result.to_dict()
    assert "area_prob" not in Faithfulness(stub, stub_tokenizer, [FILM], [1], ks=(1, 3)).random().results[0].scores
    assert [report[f"n_clamped@{k}"] for k in (3, 4, 5)] == [0, 0, 1]
    assert [report[f"n_emptied@{k}"] for k in (3, 4, 5)] == [0, 1, 1]


def test_c37_post_hoc_definitions_differ_on_a_wrong_prediction(stub, stub_tokenizer):
    faithfulness = Faithfulness(stub, stub_tokenizer, [FILM, FILM], [1, 0], ks=(1,))
    report = faithfulness.measure([FILM_SCORES] * 2, "given").to_dict()
    assert (report["accuracy"], report["posthoc_gold@1"], report["posthoc_self@1"]) == (0.5, 0.5, 1.0)
    assert (report["accuracy_drop@1"], set(report["definitions"])) == (
        0.0,
        {"accuracy_drop", "prob_drop", "posthoc_gold", "posthoc_self"},
    )


def test_c38_signed_scores_and_negative_drops(stub, stub_tokenizer):
    text = "not good but bad"
    np.testing.assert_allclose(
        values(stub, stub_tokenizer, text, [1, -2, 0, 3], "prob_drop", (1,)), [0.611856], atol=1e-6
    )
    np.testing.assert_allclose(
        values(stub, stub_tokenizer, text, [0, 1, 0, 0], "prob_drop", (1,)), [-0.101217], atol=1e-6
    )


@pytest.mark.filterwarnings("error:.*:RuntimeWarning")
def test_c39_constant_scores_are_ranked_by_position_and_counted(stub, stub_tokenizer):
    texts = ["bad film", "good film", "very good film", "good"]
    faithfulness = Faithfulness(stub, stub_tokenizer, texts, [0, 1, 1, 1], ks=(1,))
    result = faithfulness.measure([[0] * len(text.split()) for text in texts], "zeros")
    assert result.n_tied == 3  # one word has only one ranking
    # the first word goes: sigmoid(3) - .5, sigmoid(2) - .5, sigmoid(2.5) - sigmoid(2), sigmoid(2) - .5
    np.testing.assert_allclose(result.values["prob_drop@1"], [0.452574, 0.380797, 0.043345, 0.380797], atol=1e-6)
    again = faithfulness.measure([[0] * len(text.split()) for text in texts], "zeros")
    assert result.to_dict() == again.to_dict()
    json.dumps(result.to_dict(), allow_nan=False)


def test_c46_texts_without_words_are_counted(stub, stub_tokenizer):
    texts = ["good film", "", "bad", "not good", "very good"]
    faithfulness = Faithfulness(stub, stub_tokenizer, texts, [1, 0, 0, 0, 1], ks=(1,))
    report = faithfulness.measure([[1] * len(text.split()) for text in texts], "ones").to_dict()
    assert (report["n_total"], report["n_scored"], report["n_skipped"]) == (5, 4, {"no words": 1})
    assert faithfulness.rows.tolist() == [0, 2, 3, 4]
    assert report["accuracy"] == 0.75  # "not good" is predicted positive


@pytest.mark.parametrize(("texts", "message"), [([], "one or more"), (["", " \n"], "None of the 2 texts")])
def test_c46_nothing_to_score(stub, stub_tokenizer, texts, message):
    with pytest.raises(ValueError, match=message):
        Faithfulness(stub, stub_tokenizer, texts, [0] * len(texts))


def test_c54_a_text_without_words_leaves_the_others_alone(stub, stub_tokenizer):
    texts = ["", "   ", "\n", "!!! ...", FILM]
    scores = [[], [], [], [0] * 6, FILM_SCORES]
    result = Faithfulness(stub, stub_tokenizer, texts, [1] * 5, ks=(1,)).measure(scores, "given")
    assert result.rows.tolist() == [3, 4]
    np.testing.assert_allclose(result.values["prob_drop@1"][1], 0.301682, atol=1e-6)


def test_c55_deleting_a_repeated_word_deletes_one_occurrence(stub, stub_tokenizer):
    drop = values(stub, stub_tokenizer, "good movie good", [0.24, 0, 0.24], "prob_drop", (1,))
    np.testing.assert_allclose(drop, [0.982014 - 0.880797], atol=2e-6)


def test_words_that_only_one_model_sees_take_no_part(stub, stub_tokenizer):
    # the explainer sees "good", the scorer (two words) sees "good film"; neither "bad" is ever read
    text = "good film bad bad"
    faithfulness = Faithfulness(
        stub, stub_tokenizer, [text], [1], seen=[[True, False, False, True]], ks=(1,), max_length=4
    )
    assert faithfulness.candidates == [[0]]
    report = faithfulness.measure([[0, 5, 9, 9]], "given").to_dict()
    assert report["prob_drop@1"] == pytest.approx(0.380797, abs=1e-6)
    assert report["posthoc_self@1"] == 1


def test_names_are_in_the_result(stub, stub_tokenizer):
    report = Faithfulness(stub, stub_tokenizer, [FILM], [1]).measure([FILM_SCORES], "vat").to_dict()
    assert (report["explainer"], report["scorer"], report["operator"]) == ("vat", "stub", "delete")
    named = Faithfulness(stub, stub_tokenizer, [FILM], [1], scorer_name="base").measure([FILM_SCORES], "vat")
    assert named.to_dict()["scorer"] == "base"


@pytest.mark.filterwarnings("ignore:.*longer than the model takes")
@pytest.mark.parametrize(
    "texts", [[FILM, "", "bad  film."], [["very good", "film"], ["bad"], []], [[], "not good", ["very", "bad film"]]]
)
def test_explanations_bring_texts_words_labels_and_a_name(stub, stub_tokenizer, texts):
    """Words that a text was split into before stay its words."""
    labels = [1, 0, 0]
    explanations = explain(stub, stub_tokenizer, texts, "occlusion", labels=labels, max_length=4)
    options = {"ks": (1, 2), "shares": (0.5,)}
    found = Faithfulness(stub, stub_tokenizer, explanations, **options)
    expected = Faithfulness(stub, stub_tokenizer, texts, labels, [one.seen for one in explanations], **options)
    assert found.candidates == expected.candidates and found.labels.tolist() == expected.labels.tolist()
    result, scores = found.measure(explanations), [one.scores for one in explanations]
    assert result.to_dict() == expected.measure(scores, "occlusion of stub").to_dict()
    assert found.measure(explanations, "mine").setup["explainer"] == "mine"
    np.testing.assert_equal(result.values, found.measure(scores, "mine").values)
    assert set(Faithfulness(stub, stub_tokenizer, explanations, [1, 1, 1]).labels) == {1} != set(found.labels)


def test_what_does_not_fit_the_explanations_is_named(stub, stub_tokenizer):
    texts = [FILM, "bad film"]
    explanations = explain(stub, stub_tokenizer, texts, "occlusion")
    with pytest.raises(InputError, match="Label None in row 0"):
        Faithfulness(stub, stub_tokenizer, explanations)
    with pytest.raises(InputError, match="There are no labels; give one class id for each text, or explanations"):
        Faithfulness(stub, stub_tokenizer, texts)
    faithfulness = Faithfulness(stub, stub_tokenizer, explanations, [1, 0])
    with pytest.raises(InputError, match="explanations has 1 entries for 2 texts"):
        faithfulness.measure(explanations[:1])
    with pytest.raises(
        InputError, match="Explanation 0 is of 'bad film' in 2 words, but text 0 is 'a very good film' in 4"
    ):
        faithfulness.measure(explanations[::-1])
    with pytest.raises(
        InputError, match="Explanation 1 is of 'bad film' in 1 words, but text 1 is 'bad film' in 2 words"
    ):
        faithfulness.measure(explain(stub, stub_tokenizer, [FILM, ["bad film"]], "occlusion"))
    with pytest.warns(UserWarning, match="2 words"):
        cut = explain(stub, stub_tokenizer, texts, "occlusion", max_length=4)
    with pytest.raises(InputError, match="Explanation 0 is of a model that sees other words"):
        faithfulness.measure(cut)
    with pytest.raises(InputError, match="Scores say not where they come from"):
        faithfulness.measure([[0] * 4, [0] * 2])


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_f35_seeds_are_whole_numbers_from_0(stub, stub_tokenizer, seed):
    faithfulness = Faithfulness(stub, stub_tokenizer, [FILM, "bad"], [1, 0])
    with pytest.raises(InputError, match=rf"seeds\[1\] is {seed!r}; it must be"):
        faithfulness.random([0, seed])
    values, counts = [0.5, 1.0, 0.25], [3, 2, 1]
    for draw in (
        lambda: explain(stub, stub_tokenizer, [FILM], "random", seed=seed),
        lambda: fit_l2x(stub, stub_tokenizer, [FILM], seed=seed),
        lambda: random_ranking([0, 1], seed, 0),
        lambda: bootstrap_interval(values, seed=seed),
        lambda: paired_bootstrap(values, counts, seed=seed),
        lambda: paired_bootstrap_over_runs([values, counts], [counts, values], seed=seed),
        lambda: frequency_correlation(counts, values, seed=seed),
        lambda: word_cloud([("good", 1.0)], seed=seed),
        lambda: stratified_split([0, 1], {"train": 1}, seed),
        lambda: load_paper_dataset("trec", seed=seed),
        lambda: rotten_tomatoes(1, 1, 1, seed=seed),
        lambda: tsne([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], seed=seed),
    ):
        with pytest.raises(InputError, match=f"seed is {seed!r}"):
            draw()
    with pytest.raises(InputError, match=r"seeds\[1\] is 1\.5; it must be a whole number, at least 0"):
        compare_explainers(stub, stub_tokenizer, [FILM, "bad"], [1, 0], ["occlusion"], seeds=[0, 1.5])


def test_f31_a_label_that_is_a_truth_value_is_refused(stub, stub_tokenizer):
    with pytest.raises(InputError, match="Label True in row 0 is no class id"):
        Faithfulness(stub, stub_tokenizer, [FILM], [True])


def test_random_baseline_reports_mean_and_sd_over_seeds(stub, stub_tokenizer):
    faithfulness = Faithfulness(stub, stub_tokenizer, [FILM, "not very bad movie"], [1, 0], ks=(1, 2))
    report = faithfulness.random(seeds=range(4)).to_dict()
    drop = report["prob_drop@1"]
    assert (report["explainer"], report["seeds"], len(drop["values"])) == ("random", [0, 1, 2, 3], 4)
    assert drop["mean"] == pytest.approx(sum(drop["values"]) / 4)
    assert drop["sd"] == pytest.approx(np.sqrt(sum((v - drop["mean"]) ** 2 for v in drop["values"]) / 3))
    assert faithfulness.random(seeds=[2]).to_dict()["prob_drop@1"] == {
        "mean": drop["values"][2],
        "sd": None,
        "values": [drop["values"][2]],
    }
    json.dumps(report, allow_nan=False)


def test_full_texts_are_read_once_and_equal_inputs_too(stub, stub_tokenizer):
    faithfulness = Faithfulness(stub, stub_tokenizer, [FILM] * 6, [1] * 6, ks=(1, 2), batch_size=4)
    assert stub.batches == [(1, 6)]
    faithfulness.measure([FILM_SCORES] * 6, "given")
    # the distinct inputs of k = 1, 2: two deletions of 3 and 2 words left, two of 1 and 2 words kept
    assert stub.batches[1:] == [(4, 5)]


def test_the_scorer_and_the_random_state_are_left_as_found(stub, stub_tokenizer):
    stub.train()
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].tolist()
    Faithfulness(stub, stub_tokenizer, [FILM], [1]).random()
    assert stub.training
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.random.get_state()[1].tolist() == numpy_state


@SHARED_STUB
@given(TEXTS, st.integers(1, 7), st.randoms(use_true_random=False))
def test_batches_and_order_do_not_matter(stub, stub_tokenizer, texts, batch_size, random):
    order = list(range(len(texts)))
    random.shuffle(order)
    scores = [exact_scores(text) for text in texts]
    one = Faithfulness(stub, stub_tokenizer, texts, [1] * len(texts), ks=(1, 3), batch_size=64)
    two = Faithfulness(
        stub, stub_tokenizer, [texts[i] for i in order], [1] * len(texts), ks=(1, 3), batch_size=batch_size
    )
    first = one.measure(scores, "exact").values
    second = two.measure([scores[i] for i in order], "exact").values
    for name in first:
        np.testing.assert_allclose(first[name][order], second[name], atol=1e-12)


@SHARED_STUB
@given(TEXTS)
def test_all_words_kept_is_the_full_text(stub, stub_tokenizer, texts):
    result = Faithfulness(stub, stub_tokenizer, texts, [0] * len(texts), ks=(8, 20)).random(seeds=[0])
    assert (result.results[0].values["posthoc_self@8"] == 1).all()
    assert result.results[0].n_emptied == {8: len(texts), 20: len(texts)}


@SHARED_STUB
@given(TEXTS)
def test_the_exact_ranking_is_best_for_a_linear_scorer(stub, stub_tokenizer, texts):
    faithfulness = Faithfulness(stub, stub_tokenizer, texts, [1] * len(texts), ks=(1, 2, 4))
    exact = faithfulness.measure([exact_scores(text) for text in texts], "exact").values
    for result in faithfulness.random(seeds=range(5)).results:
        for k in (1, 2, 4):
            assert (exact[f"prob_drop@{k}"] >= result.values[f"prob_drop@{k}"] - 1e-12).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"texts": FILM}, "give a list of texts"),
        ({"texts": ["good", None]}, "Text 1 is None"),
        ({"labels": [1]}, "1 labels for 2 texts"),
        ({"labels": [1, 2]}, "Label 2 in row 1.*0 to 1"),
        ({"labels": [-1, 0]}, "Label -1 in row 0"),
        ({"labels": ["pos", "neg"]}, "'pos' in row 0.*label2id"),
        ({"labels": [0.9, 0.2]}, "Label 0.9 in row 0"),
        ({"ks": ()}, "ks is"),
        ({"ks": (0, 1)}, "ks is"),
        ({"ks": (2.5,)}, "ks is"),
        ({"ks": 5}, "ks is"),
        ({"shares": (0.2, 0)}, "shares has 0;.*above 0 and at most 1"),
        ({"shares": (20,)}, "shares has 20"),
        ({"operator": "drop"}, "no operator 'drop'"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"seen": [[True] * 4]}, "seen has 1 entries for 2 texts"),
        ({"seen": [[True] * 4, [True]]}, r"seen\[1\] has 1 entries, but text 1 has 2 words"),
    ],
)
def test_bad_input_is_named(stub, stub_tokenizer, change, message):
    given = {"texts": [FILM, "good film"], "labels": [1, 1], **change}
    with pytest.raises(InputError, match=message):
        Faithfulness(stub, stub_tokenizer, **given)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[0, 0]], "scores has 1 entries for 2 texts"),
        ([[0, 0], [0]], r"scores\[1\] has 1 entries"),
        ([[0, 0], [0, float("nan")]], "Text 1: The score of word 1 is NaN"),
        ([[0, None], [0, 0]], "Text 0"),
    ],
)
def test_bad_scores_are_named(stub, stub_tokenizer, scores, message):
    faithfulness = Faithfulness(stub, stub_tokenizer, ["good film", "bad film"], [1, 0])
    with pytest.raises(InputError, match=message):
        faithfulness.measure(scores, "given")
