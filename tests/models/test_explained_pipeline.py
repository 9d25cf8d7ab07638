"""The pipeline "text-classification-explained": probabilities, words, batches, and the folder it is saved in."""

import copy
import json
import logging
import math
import os
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    pipeline,
)
from transformers.pipelines.text_classification import ClassificationFunction

from hf_vat import explain
from hf_vat.models import ExplainedTextClassificationPipeline
from hf_vat.models.configuration_vat import SEE_PADDING

sys.path.append(str(Path(__file__).parent))
import encoders

TASK = "text-classification-explained"
TEXTS = ["good film", "", "Unbelievable, a dull plot!", "it is", "  ", "the actor is very good and the scene is bad"]
NAMES = {0: "neg", 1: "neutral", 2: "pos"}


@pytest.fixture
def make_pipeline(make_model, tokenizer):
    def make(system: str = "vat", **settings) -> ExplainedTextClassificationPipeline:
        return pipeline(TASK, model=make_model(system, **settings), tokenizer=copy.deepcopy(tokenizer))

    return make


def numbers(result: dict) -> list[float]:
    return [result["score"], *(word[name] for word in result["words"] for name in ("score", "attention"))]


def words_of(result: dict) -> list[tuple]:
    return [(word["word"], word["start"], word["end"], word["seen"]) for word in result["words"]]


def explanations_of(classify, texts: list[str], target: int | None = None):
    return explain(classify.model, classify.tokenizer, texts, "attention_x_gradient", target=target)


def test_result_by_hand(make_pipeline):
    explain = make_pipeline(id2label={0: "neg", 1: "pos"})
    with torch.no_grad():
        for parameter in explain.model.attention.parameters():
            parameter.zero_()  # every token gets the same attention
        explain.model.learner_head.out_proj.weight.zero_()
        explain.model.learner_head.out_proj.bias.copy_(torch.tensor([0, math.log(3)]))
    # tokens: un ##believ ##able good
    result = explain("Unbelievable good")
    assert [word["score"] for word in result["words"]] == [0, 0]  # no word changes a logit
    assert list(result) == ["label", "score", "words"]
    assert result["label"] == "pos" and result["score"] == pytest.approx(0.75)
    assert words_of(result) == [("Unbelievable", 0, 12, True), ("good", 13, 17, True)]
    assert [word["attention"] for word in result["words"]] == pytest.approx([0.75, 0.25])
    assert set(result["words"][0]) == {"word", "start", "end", "score", "attention", "seen"}
    assert json.loads(json.dumps(result)) == result


def test_shapes_are_those_of_the_stock_pipeline_with_words(make_pipeline):
    explain = make_pipeline(num_labels=3, id2label=NAMES)
    alone = explain("good film")
    assert explain(["good film"]) == [alone] and explain([]) == []
    assert list(explain(text for text in ["good film"])) == [alone]
    everything = explain("good film", top_k=None)
    assert {result["label"] for result in everything} == set(NAMES.values())
    scores = [result["score"] for result in everything]
    assert scores == sorted(scores, reverse=True) and sum(scores) == pytest.approx(1)
    assert everything[0] == alone and all(words_of(result) == words_of(alone) for result in everything)
    of_words = {result["label"]: [word["score"] for word in result["words"]] for result in everything}
    for target, name in NAMES.items():
        [explained] = explanations_of(explain, ["good film"], target)
        assert of_words[name] == pytest.approx(explained.scores, abs=1e-6)
    assert explain("good film", top_k=1) == [alone]
    assert explain(["good film"], top_k=2) == [everything[:2]]
    chosen = pipeline(TASK, model=explain.model, tokenizer=explain.tokenizer, top_k=2)
    assert chosen("good film") == everything[:2] and chosen("good film", top_k=9) == everything


@pytest.mark.parametrize("system", ["att", "vat", "vat_shared_mean"])
@pytest.mark.parametrize("padding_side", ["left", "right"])
def test_a_batch_gives_the_same_as_one_by_one(make_pipeline, system, padding_side):
    explain = make_pipeline(system)
    explain.tokenizer.padding_side = padding_side
    together = explain(TEXTS, batch_size=4)
    for text, result in zip(TEXTS, together, strict=True):
        alone = explain(text)
        assert result["label"] == alone["label"] and words_of(result) == words_of(alone)
        assert numbers(result) == pytest.approx(numbers(alone), abs=1e-6)


@pytest.mark.parametrize(
    "family", [one for one in encoders.FAMILIES if encoders.config_of(one).model_type in SEE_PADDING]
)
@pytest.mark.parametrize("given", [{}, {"bottleneck": "gaussian"}])
def test_encoders_that_see_padding_are_given_none(family, given):
    """So the number of texts in a batch does not change what they say of one."""
    model = encoders.make(family, pooling="attention", **given)
    classify = pipeline("text-classification-explained", model=model, tokenizer=encoders.tokenizer())
    texts = [*encoders.TEXTS, "good"]  # Funnel itself fails on texts of no word
    alone = [classify(text, top_k=None) for text in texts]
    assert len({len(one[0]["words"]) for one in alone}) > 2
    for batch_size in (2, 5):
        for one, other in zip(alone, classify(texts, batch_size=batch_size, top_k=None), strict=True):
            assert [found["label"] for found in one] == [found["label"] for found in other]
            assert [words_of(found) for found in one] == [words_of(found) for found in other]
            for a, b in zip(map(numbers, one), map(numbers, other), strict=True):
                assert a == pytest.approx(b, abs=1e-5)


def test_a_pair_needs_more_tokens_than_a_text(make_pipeline):
    classify, pair = make_pipeline("vat"), {"text": "good film", "text_pair": "bad"}
    assert len(classify("good film", max_length=3)["words"]) == 2
    with pytest.raises(ValueError, match="max_length is 3; a pair of texts needs at least 4 tokens"):
        classify(pair, max_length=3)
    assert any(word["seen"] for word in classify(pair, max_length=4)["words"])


def test_without_a_padding_token_texts_run_one_by_one(make_pipeline):
    explain = make_pipeline()
    expected = explain(TEXTS)
    explain.tokenizer.pad_token = None
    assert explain(TEXTS) == expected


@settings(max_examples=25)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_words_lie_in_the_text_and_share_at_most_all_attention(any_pipeline, text):
    words = any_pipeline(text)["words"]
    assert all(word["word"] == text[word["start"] : word["end"]] for word in words)
    assert all(word["attention"] >= 0 and (word["seen"] or word["attention"] == word["score"] == 0) for word in words)
    assert sum(word["attention"] for word in words) <= 1 + 1e-5


@pytest.fixture(scope="module")
def any_pipeline(tokenizer):
    from hf_vat import BertForVATClassification, BertVATConfig

    config = BertVATConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    return pipeline(TASK, model=BertForVATClassification(config), tokenizer=copy.deepcopy(tokenizer))


def test_agrees_with_explain(make_pipeline):
    classify = make_pipeline()
    results, attention = classify(TEXTS, batch_size=2), explain(classify.model, classify.tokenizer, TEXTS)
    for result, explanation, weights in zip(results, explanations_of(classify, TEXTS), attention, strict=True):
        assert [word["word"] for word in result["words"]] == explanation.words
        both = [one for pair in zip(explanation.scores, weights.scores, strict=True) for one in pair]
        assert numbers(result) == pytest.approx([max(explanation.probabilities), *both], abs=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"num_labels": 3, "problem_type": "multi_label_classification"},
        {"num_labels": 2, "problem_type": "regression"},
        {"num_labels": 1, "problem_type": "regression"},
        {"head_layers": 1, "num_labels": 3},
    ],
)
def test_words_of_each_label_or_score_are_those_of_explain(make_pipeline, settings):
    classify = make_pipeline("att", **settings)
    for result in classify("a very good film", top_k=None):
        [explanation] = explanations_of(classify, ["a very good film"], result["label"])
        assert [word["score"] for word in result["words"]] == pytest.approx(explanation.scores, abs=1e-6)


def test_a_model_in_train_mode_neither_drops_out_nor_samples(make_pipeline):
    explain = make_pipeline(hidden_dropout_prob=0.5, predict_from="compressor")
    expected = explain("a very good film")
    explain.model.train()
    assert explain("a very good film") == expected


def test_what_cannot_be_used_is_named(make_pipeline, tokenizer):
    explain = make_pipeline()
    for wrong, mentions in [
        (3, "a int"),
        ({"text": "good", "pair": "bad"}, "a dict.*text_pair"),
        (["good", None], "a NoneType"),
        ("a\ud800b", "surrogate"),
    ]:
        with pytest.raises(ValueError, match=mentions):
            explain(wrong)
    for top_k in (0, -1, "all", 1.5):
        with pytest.raises(ValueError, match="top_k is"):
            explain("good", top_k=top_k)


def test_f31_the_result_of_a_class_by_name_or_id(make_pipeline):
    explain = make_pipeline(num_labels=3, id2label=NAMES)
    by_name = {result["label"]: result for result in explain("good film", top_k=None)}
    for label, name in NAMES.items():
        assert explain("good film", target=name) == explain("good film", target=label) == by_name[name]
    assert explain(["good film", "bad"], target="neg")[0] == by_name["neg"]
    made = pipeline(TASK, model=explain.model, tokenizer=explain.tokenizer, target="neg")
    assert made("good film") == by_name["neg"] and made("good film", target="pos") == by_name["pos"]
    assert made("good film", top_k=None) == explain("good film", top_k=None)
    for wrong in ("Pos", True, 3, -1, 1.0):
        with pytest.raises(ValueError, match=r"target is .*0 \(neg\), 1 \(neutral\), 2 \(pos\)"):
            explain("good film", target=wrong)
    with pytest.raises(ValueError, match="Both target and top_k"):
        explain("good film", target="pos", top_k=1)


def as_stock(results):
    return [{name: result[name] for name in ("label", "score")} for result in results]


@pytest.mark.parametrize("function", ["softmax", "sigmoid", "none", "NONE", *ClassificationFunction])
def test_f32_function_to_apply_as_in_the_stock_pipeline(make_pipeline, function):
    explain = make_pipeline(num_labels=3, id2label=NAMES)
    stock = pipeline("text-classification", model=explain.model, tokenizer=explain.tokenizer)
    for result, expected in zip(
        as_stock(explain("good film", function_to_apply=function, top_k=None)),
        stock("good film", function_to_apply=function, top_k=None),
        strict=True,
    ):
        assert result == {"label": expected["label"], "score": pytest.approx(expected["score"], abs=1e-6)}


@pytest.mark.parametrize(
    "given",
    [
        {"truncation": True},
        {"truncation": "longest_first", "padding": True},
        {"padding": "max_length", "max_length": 32},
        {"max_length": 512, "truncation": True},
        {"return_all_scores": False},
        {"padding": "longest", "batch_size": 2},
    ],
)
def test_f32_what_the_stock_pipeline_is_often_given(make_pipeline, given):
    explain = make_pipeline(num_labels=3, id2label=NAMES)
    expected = explain(TEXTS)
    made = pipeline(TASK, model=explain.model, tokenizer=explain.tokenizer, **given)
    for results in (explain(TEXTS, **given), made(TEXTS)):
        for result, wanted in zip(results, expected, strict=True):
            assert words_of(result) == words_of(wanted) and numbers(result) == pytest.approx(numbers(wanted), abs=1e-6)


def test_f32_all_scores_and_a_length(make_pipeline):
    explain = make_pipeline(num_labels=3, id2label=NAMES)
    assert explain("good film", return_all_scores=True) == explain("good film", top_k=None)
    assert explain("good film", return_all_scores=True, top_k=1) == explain("good film", top_k=1)
    cut = explain("good film and bad", max_length=4)
    assert [word["seen"] for word in cut["words"]] == [True, True, False, False]
    assert cut["score"] == pytest.approx(explain("good film")["score"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"truncation": False}, "truncation is False; a text that is too long is always cut"),
        ({"truncation": "sometimes"}, "truncation is 'sometimes'"),
        ({"padding": 3}, "padding is 3"),
        ({"max_length": 2}, "max_length is 2; give a whole number of tokens, at least 3"),
        ({"max_length": True}, "max_length is True"),
        ({"top_k": True}, "top_k is True"),
        ({"function_to_apply": "tanh"}, "function_to_apply is 'tanh'; choose one of softmax, sigmoid, none"),
        (
            {"add_special_tokens": False, "stride": 3},
            "add_special_tokens, stride cannot be given.*it takes top_k, target",
        ),
    ],
)
def test_f32_the_rest_is_refused_with_a_sentence(make_pipeline, given, message):
    explain = make_pipeline()
    with pytest.raises(ValueError, match=message):
        explain("good film", **given)
    with pytest.raises(ValueError, match=message):
        pipeline(TASK, model=explain.model, tokenizer=explain.tokenizer, **given)


def test_models_without_token_importance_are_refused(make_pipeline, tokenizer):
    with pytest.raises(ValueError, match=r'BertForVATClassification.*pooling="attention".*occlusion'):
        make_pipeline("base")("good film")
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    stock = pipeline(TASK, model=BertForSequenceClassification(config), tokenizer=tokenizer)
    with pytest.raises(ValueError, match="BertForSequenceClassification returns no token_importance"):
        stock("good film")


# Cases


def test_c47_a_long_text_is_cut_with_one_warning_and_all_words(make_pipeline, caplog):
    explain = make_pipeline()  # 32 positions: 30 words between [CLS] and [SEP]
    logging.Logger.warning_once.cache_clear()
    results = explain([" ".join(["good"] * 200), "good film", " ".join(["dull"] * 100)], batch_size=2)
    assert [len(result["words"]) for result in results] == [200, 2, 100]
    for result in (results[0], results[2]):
        assert [word["seen"] for word in result["words"]] == [True] * 30 + [False] * (len(result["words"]) - 30)
        assert all(word["score"] == word["attention"] == 0 for word in result["words"][30:])
        assert sum(word["attention"] for word in result["words"]) == pytest.approx(1, abs=1e-5)
    assert ["cut to the 32 tokens" in record.getMessage() for record in caplog.records] == [True]


def test_c54_empty_and_blank_texts_have_no_words_and_a_prediction(make_pipeline):
    explain = make_pipeline(id2label={0: "neg", 1: "pos"})
    alone = explain("good film")
    results = explain(["", "   ", "\n", "!!! ...", "good film"], batch_size=5)
    assert [len(result["words"]) for result in results] == [0, 0, 0, 6, 2]
    assert all(0 <= result["score"] <= 1 and result["label"] in {"neg", "pos"} for result in results)
    assert numbers(results[4]) == pytest.approx(numbers(alone), abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_c62_probabilities_are_those_of_the_model_and_of_the_stock_pipeline(make_pipeline, tokenizer, dtype):
    explain = make_pipeline(num_labels=3, id2label=NAMES)
    explain.model.to(dtype)
    stock = pipeline("text-classification", model=explain.model, tokenizer=tokenizer)
    for text in TEXTS:
        logits = explain.model(**tokenizer([text], return_tensors="pt")).logits[0]
        direct = dict(zip(NAMES.values(), logits.double().softmax(-1).tolist(), strict=True))
        ours = {result["label"]: result["score"] for result in explain(text, top_k=None)}
        assert ours == pytest.approx(direct, abs=1e-6)
        assert {result["label"]: result["score"] for result in stock(text, top_k=None)} == pytest.approx(ours, abs=1e-6)
        assert explain(text)["label"] == max(direct, key=direct.get)


def test_c75_config_names_the_pipeline_only_where_there_is_attention(make_model, tmp_path):
    for system, tasks in (("vat", {TASK}), ("base", set())):
        folder = tmp_path / system
        model = make_model(system)
        model.config.custom_pipelines = {TASK: {"impl": "from an older checkpoint"}}
        Trainer(model, TrainingArguments(str(folder), report_to="none", use_cpu=True)).save_model()
        saved = json.loads((folder / "config.json").read_text())["custom_pipelines"]
        assert set(saved) == tasks
    assert {"explained_pipeline.py", "words.py"} <= set(os.listdir(tmp_path / "vat"))
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "vat")
    model.config.custom_pipelines["another-task"] = {"impl": "another_file.AnotherPipeline"}
    model.save_pretrained(tmp_path / "again")
    saved = json.loads((tmp_path / "again" / "config.json").read_text())["custom_pipelines"]
    assert set(saved) == {TASK, "another-task"}
    assert saved[TASK]["impl"] == "explained_pipeline.ExplainedTextClassificationPipeline"


@pytest.mark.parametrize("save", ["model", "pipeline"])
def test_f32_the_installed_package_asks_for_no_remote_code(make_pipeline, tmp_path, save):
    explain = make_pipeline()
    if save == "pipeline":
        explain.save_pretrained(tmp_path)
    else:
        explain.model.save_pretrained(tmp_path)
        explain.tokenizer.save_pretrained(tmp_path)
    expected = explain("good film")
    for trust in (None, False, True):
        found = pipeline(TASK, model=str(tmp_path), trust_remote_code=trust)
        assert type(found) is ExplainedTextClassificationPipeline and found("good film") == expected
    again = tmp_path / "again"
    found.save_pretrained(again)
    saved = [json.loads((folder / "config.json").read_text())["custom_pipelines"] for folder in (tmp_path, again)]
    assert set(saved[0]) == set(saved[1]) == {TASK}
    config = AutoConfig.from_pretrained(tmp_path)
    assert config.to_dict()["custom_pipelines"] == copy.deepcopy(config).custom_pipelines == saved[0]


def test_c75_installed_package_finds_the_pipeline_of_a_folder(make_pipeline, tmp_path):
    explain = make_pipeline()
    explain.save_pretrained(tmp_path)
    expected = explain("good film")
    found = pipeline(model=str(tmp_path), trust_remote_code=True)
    assert found.task == TASK and found("good film") == expected
    ours = pipeline(TASK, model=str(tmp_path), pipeline_class=ExplainedTextClassificationPipeline)
    assert type(ours) is ExplainedTextClassificationPipeline and ours("good film") == expected
