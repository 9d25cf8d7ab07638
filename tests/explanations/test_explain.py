import json
import re
import warnings
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from checks import ALONE, without_time
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tqdm import tqdm
from transformers import BertConfig, BertForSequenceClassification

from hf_vat import BertWithVMask
from hf_vat.errors import InputError
from hf_vat.explanations import Explanation, explain
from hf_vat.models.words import encode_words

every_method = pytest.mark.parametrize("method", sorted(ALONE))


FEW = {"lime": {"n_samples": 100}, "shapley": {"n_samples": 10}}  # settings that keep the tests short


def explained(model, tokenizer, texts, method, **arguments):
    return explain(model, tokenizer, texts, method, **FEW.get(method, {}), **arguments)


def rebuilt(explanation):
    """The text from the words and what the spans leave out."""
    text, end = "", 0
    for word, (start, stop) in zip(explanation.words, explanation.spans, strict=True):
        text += explanation.text[end:start] + word
        end = stop
    return text + explanation.text[end:]


def test_attention_by_hand(model, tokenizer):
    """Weights: good 20, film 1, bad 4; [CLS] and [SEP] none."""
    (explanation,) = explain(model, tokenizer, ["Good film, bad"], labels=[1])
    assert explanation.words == ["Good", "film", ",", "bad"]
    assert explanation.spans == [(0, 4), (5, 9), (9, 10), (11, 14)]
    assert explanation.scores == pytest.approx([20 / 26, 1 / 26, 1 / 26, 4 / 26])
    assert explanation.prediction == explanation.target == explanation.gold == 1
    assert (explanation.method, explanation.model, explanation.truncated) == ("attention", "planted", 0)
    assert explanation.seconds > 0


def test_attention_with_padding_on_the_left(model, tokenizer):
    texts = ["good", "very very bad film"]
    right = explain(model, tokenizer, texts)
    tokenizer.padding_side = "left"
    assert [e.scores for e in explain(model, tokenizer, texts)] == [e.scores for e in right]


@every_method
def test_c16_train_mode_changes_nothing_and_comes_back(model, tokenizer, method):
    expected = without_time(explained(model, tokenizer, ["very good film"], method))
    model.train()
    model.frozen = torch.nn.Dropout().eval()
    for _ in range(2):
        assert without_time(explained(model, tokenizer, ["very good film"], method)) == expected
    assert model.training and model.dropout.training and not model.frozen.training


def test_mode_comes_back_after_an_error(model_without_importance, tokenizer):
    model_without_importance.train()
    with pytest.raises(InputError) as caught:  # keeping the exception keeps the frames that ran the model
        explain(model_without_importance, tokenizer, ["good"])
    assert model_without_importance.dropout.training and not torch.is_inference_mode_enabled()
    assert "PlantedModel" in str(caught.value) and "'random'" in str(caught.value)


def test_c28_rows_keep_their_own_length(model, tokenizer):
    explanations = explain(model, tokenizer, ["good bad film", "a very very good film plot"], batch_size=2)
    assert [len(e.scores) for e in explanations] == [3, 6]
    for explanation in explanations:
        assert min(explanation.scores) >= 0
        assert sum(explanation.scores) == pytest.approx(1, abs=1e-5)


@every_method
def test_c47_long_text_is_cut_with_one_warning(model, tokenizer, method):
    texts = ["good " * 200, "good film", "film " * 40]
    with pytest.warns(UserWarning) as caught:
        explanations = explained(model, tokenizer, texts, method, batch_size=2)
    assert len(caught) == 1
    assert "2 of 3 texts" in str(caught[0].message) and "180 words" in str(caught[0].message)  # 170 + 10
    assert caught[0].filename == __file__
    long = explanations[0]
    assert len(long.words) == len(long.scores) == 200
    assert long.truncated == 170 and long.seen == [True] * 30 + [False] * 170
    assert long.scores[30:] == [0] * 170
    if method in ("attention", "mask", "random", "gradient"):
        assert min(long.scores[:30]) > 0


@pytest.mark.parametrize(
    "method", ["attention", "attention_x_gradient", "random", "occlusion", "lime", "shapley", "gradient"]
)
def test_a_text_with_several_targets_is_read_as_often_as_with_one(make_model, tokenizer, method):
    """But for gradients, which each target has its own of. The bar counts what is read."""
    model, read, found = make_model("vat", num_labels=3), [], []
    model.register_forward_pre_hook(lambda _, args, inputs: read.append(len(inputs["input_ids"])), with_kwargs=True)
    texts = ["good film", "it is bad"]
    for targets in ([0], [1], [0, 1]):
        read.clear()
        with tqdm(total=10_000, file=StringIO()) as bar:
            explanations = explained(model, tokenizer, texts, method, target=[targets] * 2, bar=bar)
            found.append((sum(read), bar.n, explanations))
    one, other, both = found
    for place, explanation in enumerate(both[2]):
        wanted = (one, other)[place % 2][2][place // 2]
        assert explanation.scores == pytest.approx(wanted.scores, abs=1e-6)
        assert explanation.probabilities == pytest.approx(wanted.probabilities, abs=1e-6)
    assert (both[0] - one[0], both[1] - one[1]) == ((2, 2) if method == "gradient" else (0, 0))


def test_c47_a_text_with_several_targets_is_counted_once(model, tokenizer):
    with pytest.warns(UserWarning, match="^1 of 2 texts .*: 170 words") as caught:
        assert len(explain(model, tokenizer, ["good " * 200, "good film"], target=[[0, 1], [0, 1]])) == 4
    assert len(caught) == 1


def test_max_length(model, tokenizer):
    with pytest.warns(UserWarning):
        (explanation,) = explain(model, tokenizer, ["good bad film"], max_length=4)
    assert explanation.seen == [True, True, False]
    assert explanation.scores == pytest.approx([20 / 24, 4 / 24, 0])
    with pytest.raises(InputError, match=r"max_length is 2.*3 to 32"):
        explain(model, tokenizer, ["good"], max_length=2)
    with pytest.raises(InputError, match="A model that reads windows gives no token_importance"):
        explain(model, tokenizer, ["good"], max_length=33)


def test_numpy_numbers_are_plain_in_the_result(model, tokenizer):
    (explanation,) = explain(
        model, tokenizer, ["good film"], "lime", seed=np.int64(3), n_samples=np.int64(9), max_length=np.int64(20)
    )
    assert json.loads(json.dumps(explanation.to_dict()))["settings"] == {
        "n_samples": 9,
        "operator": "delete",
        "seed": 3,
    }


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@every_method
def test_the_callers_mode_does_not_matter(model, tokenizer, method, mode):
    expected = explained(model, tokenizer, ["good film"], method)
    with mode():
        found = explained(model, tokenizer, ["good film"], method)
    assert without_time(found) == without_time(expected)


@pytest.mark.parametrize("kind", [list, tuple, iter, np.array])
def test_any_sequence_of_texts(model, tokenizer, kind):
    expected = explain(model, tokenizer, ["good film", "bad"])
    assert without_time(explain(model, tokenizer, kind(["good film", "bad"]))) == without_time(expected)


def test_a_wrapped_model_is_refused_by_name(model, tokenizer):
    with pytest.raises(InputError, match=r"DataParallel, which has no config.*model\.module"):
        explain(torch.nn.DataParallel(model), tokenizer, ["good"])


GRADIENTS = pytest.mark.parametrize("method", ["gradient", "input_x_gradient", "integrated_gradients"])


@GRADIENTS
def test_f28_a_model_that_takes_no_embeddings_is_explained_through_its_ids(model, tokenizer, method):
    expected = explain(model, tokenizer, ["very good film", "bad"], method)
    forward = model.forward
    model.forward = lambda input_ids, attention_mask: forward(input_ids, attention_mask)
    found = explain(model, tokenizer, ["very good film", "bad"], method)
    assert without_time(found) == without_time(expected)


@GRADIENTS
def test_a_model_without_a_layer_of_word_embeddings_is_refused_by_name(model, tokenizer, method):
    layer, forward = model.embeddings, model.forward
    model.get_input_embeddings = lambda: (_ for _ in ()).throw(NotImplementedError)
    with pytest.raises(InputError, match=r"PlantedModel has no word embeddings.*occlusion, lime and shapley"):
        explain(model, tokenizer, ["good"], method)
    model.get_input_embeddings = lambda: layer.weight  # as Perceiver has it
    with pytest.raises(InputError, match="PlantedModel has no word embeddings"):
        explain(model, tokenizer, ["good"], method)
    model.get_input_embeddings = lambda: torch.nn.Embedding.from_pretrained(
        layer.weight
    )  # a copy that is not looked at
    with pytest.raises(InputError, match=r"PlantedModel does not look up the text's tokens.*occlusion"):
        explain(model, tokenizer, ["good"], method)
    model.get_input_embeddings = lambda: layer

    def decoder(input_ids=None, **batch):  # BART reads a shifted text too: the gradient would be a part of it
        layer(input_ids.roll(1, 1))
        return forward(input_ids, **batch)

    model.forward = decoder
    with pytest.raises(InputError, match="does not look up the text's tokens, and no others"):
        explain(model, tokenizer, ["good film"], method)


def bert(tokenizer) -> BertForSequenceClassification:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    return BertForSequenceClassification(BertConfig(vocab_size=len(tokenizer), **sizes)).eval()


@GRADIENTS
@pytest.mark.parametrize("layers", ["all", "some"])
def test_f33_a_quantised_model_is_told_which_methods_work(tokenizer, method, layers, tmp_path):
    attention = {f"bert.encoder.layer.0.attention.self.{name}" for name in ("query", "key", "value")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that this way to quantise is an old one
        model = torch.ao.quantization.quantize_dynamic(
            bert(tokenizer), {torch.nn.Linear} if layers == "all" else attention, dtype=torch.qint8
        )
    with pytest.raises(InputError, match=r"quantised, with Linear layers.* occlusion, lime and shapley work"):
        explain(model, tokenizer, ["good film"], method)
    if method == "gradient":
        [explanation] = explain(model, tokenizer, ["good film"], "occlusion", save_to=tmp_path / "stored")
        assert len(explanation.scores) == 2
        again = explain(model, tokenizer, ["good film"], "occlusion", save_to=tmp_path / "stored")
        assert without_time(again) == without_time([explanation])


@GRADIENTS
def test_f33_other_models_without_a_gradient_are_told_too(model, tokenizer, method):
    model.hf_quantizer = SimpleNamespace(is_trainable=False)
    with pytest.raises(InputError, match=r"PlantedModel is quantised.*occlusion"):
        explain(model, tokenizer, ["good film"], method)
    model.hf_quantizer = None
    forward = model.forward
    model.forward = torch.no_grad()(forward)
    with pytest.raises(InputError, match=r"PlantedModel gives logits without a gradient.*occlusion"):
        explain(model, tokenizer, ["good film"], method)
    model.forward = lambda **batch: SimpleNamespace(logits=forward(**batch).logits.detach() + model.bias)
    model.bias = torch.nn.Parameter(torch.zeros(3))
    with pytest.raises(InputError, match=r"PlantedModel gives logits that have no gradient at the words.*occlusion"):
        explain(model, tokenizer, ["good film"], method)
    with torch.inference_mode():
        loaded_there = bert(tokenizer)
    with pytest.raises(InputError, match=r"made under torch\.inference_mode.*load the model outside.*occlusion"):
        explain(loaded_there, tokenizer, ["good film"], method)


@GRADIENTS
def test_a_compiled_model_is_explained_as_it_is(tokenizer, method):
    model, texts = bert(tokenizer), ["a very good film", "bad"]
    expected = [explanation.scores for explanation in explain(model, tokenizer, texts, method)]
    model.compile(backend="eager")
    model(**tokenizer(texts, padding=True, return_tensors="pt"))
    for compiled in (model, torch.compile(model, backend="eager")):
        assert [explanation.scores for explanation in explain(compiled, tokenizer, texts, method)] == expected


def test_c48_words_as_typed_with_the_sum_of_their_pieces(model, tokenizer):
    explanations = explain(model, tokenizer, ["Unbelievable film", "good 😀 film", "Café good"])
    assert [e.words for e in explanations] == [["Unbelievable", "film"], ["good", "😀", "film"], ["Café", "good"]]
    assert explanations[0].scores == pytest.approx([3 / 4, 1 / 4])
    assert explanations[1].scores == pytest.approx([20 / 22, 1 / 22, 1 / 22])
    assert explanations[2].scores == pytest.approx([1 / 21, 20 / 21])


def test_c49_all_methods_have_the_same_words(model, tokenizer):
    text = "I don't like this well-made film, at all!"
    for typed in (text, text.replace(" ", "  "), text.replace(" ", "\t"), text.replace(" ", "\n")):
        lists = [explained(model, tokenizer, [typed], method)[0] for method in ALONE]
        for explanation in lists:
            assert explanation.words == ["I", "don't", "like", "this", "well-made", "film", ",", "at", "all", "!"]
            assert explanation.spans == lists[0].spans
            assert rebuilt(explanation) == typed


@pytest.mark.parametrize("method", sorted(ALONE.keys() - {"random"}))
def test_c50_planted_word_ranks_first_wherever_it_is(model, tokenizer, method):
    texts = ["good film plot", "film good plot", "film plot good", "good"]
    for explanation in explained(model, tokenizer, texts, method, batch_size=4):
        assert len(explanation.scores) == len(explanation.words)
        assert explanation.words[explanation.scores.index(max(explanation.scores))] == "good"


@every_method
def test_c53_one_word(model, tokenizer, method):
    (explanation,) = explained(model, tokenizer, ["good"], method)
    assert explanation.words == ["good"] and len(explanation.scores) == 1
    if method == "attention":
        assert explanation.scores == [1.0]


@every_method
@pytest.mark.parametrize("batch_size", [1, 8])
def test_c54_empty_texts_have_no_words_and_a_prediction(model, tokenizer, method, batch_size):
    texts = ["", "   ", "\n", "!!! ...", "good film"]
    explanations = explained(model, tokenizer, texts, method, batch_size=batch_size)
    assert [e.words for e in explanations] == [[], [], [], list("!!!..."), ["good", "film"]]
    for explanation in explanations[:3]:  # logits 0, 0, 0.1
        assert explanation.scores == [] and explanation.prediction == 2
    (alone,) = explained(model, tokenizer, texts[4:], method)
    assert explanations[4].scores == pytest.approx(alone.scores, abs=1e-6)


def test_no_texts(model, tokenizer):
    assert explain(model, tokenizer, []) == []


@pytest.mark.parametrize(
    ("texts", "message"),
    [("good film", r"\[text\]"), (["good", None], r"Text 1 is None"), ([3.5], r"Text 0 is 3.5 of type float")],
)
def test_c54_cells_that_are_no_text(model, tokenizer, texts, message):
    with pytest.raises(InputError, match=message):
        explain(model, tokenizer, texts)


def test_c55_repeated_words_have_entries_of_their_own(model, tokenizer):
    (explanation,) = explain(model, tokenizer, ["good movie good"])
    assert explanation.words == ["good", "movie", "good"]
    assert explanation.scores == pytest.approx([20 / 41, 1 / 41, 20 / 41])


@every_method
def test_c62_probabilities_are_the_models(model, tokenizer, method):
    texts = ["good film", "bad", "plot"]
    direct = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits.softmax(-1)
    for explanation, expected in zip(explained(model, tokenizer, texts, method), direct, strict=True):
        assert explanation.probabilities == pytest.approx(expected.tolist(), abs=1e-6)
        assert sum(explanation.probabilities) == pytest.approx(1)
        assert explanation.prediction == expected.argmax()
        assert explanation.label_names == ["LABEL_0", "LABEL_1", "LABEL_2"]


def test_c57_one_output_column_is_the_probability_of_one_label(model, tokenizer):
    model.forward = lambda **batch: SimpleNamespace(logits=torch.zeros(len(batch["input_ids"]), 1))
    model.config.num_labels = 2
    with pytest.raises(InputError, match=r"shape \(1, 1\); they must be \[batch, 2\]"):
        explain(model, tokenizer, ["good"], "occlusion")
    model.config.num_labels = 1
    [explanation] = explain(model, tokenizer, ["good"], "occlusion")
    assert explanation.probabilities == [0.5] and explanation.prediction == [0]


def test_c57_scores_of_a_regression_are_as_the_model_gives_them(model, tokenizer):
    model.config.problem_type = "regression"
    direct = model(**tokenizer(["good film"], return_tensors="pt")).logits[0].tolist()
    for explanation in explain(model, tokenizer, ["good film"], "occlusion"):
        assert explanation.probabilities == pytest.approx(direct, abs=1e-6) and explanation.prediction is None


def test_f31_classes_by_name(model, tokenizer):
    model.config.id2label = {0: "negative", 1: "positive", 2: "0"}
    texts = ["good film", "bad"]
    for named, by_id in (("positive", 1), ("0", 2), (["negative", 1], [0, 1]), (np.array(["positive", "0"]), [1, 2])):
        found = explain(model, tokenizer, texts, "occlusion", target=named, labels=["positive", 0])
        assert without_time(found) == without_time(
            explain(model, tokenizer, texts, "occlusion", target=by_id, labels=[1, 0])
        )
    model.config.id2label = {0: "same", 1: "same", 2: "other"}
    with pytest.raises(InputError, match=r"target\[0\] is 'same'"):
        explain(model, tokenizer, texts, target="same")


@pytest.mark.parametrize("wrong", ["Positive", True, False, np.bool_(True), 1.0, "1", b"positive", [], 3, -1])
@pytest.mark.parametrize("name", ["target", "labels"])
def test_f31_what_is_no_class_is_refused_with_the_classes(model, tokenizer, wrong, name):
    model.config.id2label = {0: "negative", 1: "positive", 2: "neutral"}
    with pytest.raises(InputError, match=rf"{name}\[1\] is .*id.*name.*0 \(negative\), 1 \(positive\), 2 \(neutral\)"):
        explain(model, tokenizer, ["good", "bad"], **{name: [0, wrong]})


def test_target_for_each_text(model, tokenizer):
    explanations = explain(model, tokenizer, ["good", "good"], "occlusion", target=[0, 1])
    assert [e.target for e in explanations] == [0, 1] and explanations[0].scores != explanations[1].scores


def test_c62_probabilities_of_labels_are_sigmoids(model, tokenizer):
    model.config.problem_type = "multi_label_classification"
    direct = model(**tokenizer(["good film"], return_tensors="pt")).logits[0].sigmoid().tolist()
    for explanation in explain(model, tokenizer, ["good film"], "occlusion"):
        assert explanation.probabilities == pytest.approx(direct, abs=1e-6)


def test_c64_no_word_is_lost(model, tokenizer):
    texts = [
        "кириллица хорошо",
        "这部电影很好看",
        "naïve café",
        "nai\u0308ve cafe\u0301",
        "good\u200bfilm",
        "🇭🇷 good",
        "שלום עולם",
    ]
    explanations = explain(model, tokenizer, texts)
    assert [len(e.words) for e in explanations] == [2, 7, 2, 2, 2, 2, 2]
    for explanation in explanations:
        assert rebuilt(explanation) == explanation.text
        assert sum(explanation.scores) == pytest.approx(1)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=4))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_rebuilt_from_its_words(model, tokenizer, texts):
    for text, explanation in zip(texts, explain(model, tokenizer, texts), strict=True):
        assert rebuilt(explanation) == explanation.text == text
        assert len(explanation.scores) == len(explanation.words)
        assert sum(explanation.scores) <= 1 + 1e-5
        if re.fullmatch("[ -~]*[a-z][ -~]*", text):  # other symbols can give a token outside every word
            assert sum(explanation.scores) == pytest.approx(1)


@every_method
def test_batches_do_not_matter(model, tokenizer, method):
    texts = ["good film", "a very very bad plot", "", "film"]
    one, many = (explained(model, tokenizer, texts, method, batch_size=size) for size in (1, 4))
    for a, b in zip(one, many, strict=True):
        assert a.scores == pytest.approx(b.scores, abs=1e-6)
        assert a.probabilities == pytest.approx(b.probabilities, abs=1e-6)


def test_mask_is_the_mean_over_the_tokens_of_a_word(model, tokenizer):
    (explanation,) = explain(model, tokenizer, ["unbelievable good film"], "mask")
    assert explanation.scores == pytest.approx([1 / 20, 1, 1 / 20])  # three pieces of 1 / 20 each


@pytest.mark.parametrize(
    ("method", "field", "remedy"),
    [
        ("attention", "token_importance", "pooling"),
        ("mask", "token_mask", "word mask"),
        ("polarity", "token_importance", "pooling"),
        ("attention_x_gradient", "token_attribution", "pooling"),
    ],
)
def test_a_model_without_what_the_method_reads(model_without_importance, tokenizer, method, field, remedy):
    with pytest.raises(InputError, match=rf"PlantedModel gives no {field}.*{remedy}.*'gradient'.*'occlusion'"):
        explain(model_without_importance, tokenizer, ["good"], method)


def test_the_refusal_names_the_method_for_what_the_model_has(model, tokenizer):
    forward = model.forward
    model.forward = lambda **batch: SimpleNamespace(**{**vars(forward(**batch)), "token_importance": None})
    with pytest.raises(
        InputError, match="'attention' has nothing to read; use method='mask', which reads the token_mask"
    ):
        explain(model, tokenizer, ["good"])
    model.forward = lambda **batch: SimpleNamespace(**{**vars(forward(**batch)), "token_mask": None})
    with pytest.raises(InputError, match="use method='attention', which reads the token_importance"):
        explain(model, tokenizer, ["good"], "mask")


def test_polarity_by_hand(model, tokenizer):
    """Weights: good 20, bad 4, film 1. Logits without the bias: 2 for class 1 of "good" and for class 0 of "bad"."""
    (explanation,) = explain(model, tokenizer, ["Good film, bad"], "polarity")
    assert explanation.prediction == 1
    assert explanation.scores == pytest.approx([20 / 26 * 2, 0, 0, 4 / 26 * -1])  # less the mean of the other classes
    assert explanation.details == {"bias": pytest.approx(-0.05)}
    (explanation,) = explain(model, tokenizer, ["unbelievable bad film"], "polarity", target=2)
    assert explanation.scores == pytest.approx([0, 4 / 8 * -1, 0])
    assert explanation.details == {"bias": pytest.approx(0.1)}


@pytest.mark.parametrize("settings", [{"num_labels": 2}, {"num_labels": 3}, {"polarity_head": True}])
def test_polarity_adds_up_to_what_the_model_says(make_model, settings, request):
    tokenizer = request.getfixturevalue("stub_tokenizer")
    model = make_model("att", head_layers=1, **settings).eval()
    with torch.no_grad():
        for parameter in model.learner_head.parameters():
            parameter.normal_()
    texts = ["a good film", "not very bad but a movie", "good", ""]
    logits = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits.double()
    for target in range(model.num_labels):
        others = [one for one in range(model.num_labels) if one != target]
        expected = (logits[:, target] - logits[:, others].mean(1)).tolist()
        found = explain(model, tokenizer, texts, "polarity", target=target, batch_size=2)
        assert [sum(one.scores) + one.details["bias"] for one in found] == pytest.approx(expected, abs=1e-5)
        bias = model.learner_head.out_proj.bias
        of_head = 0 if bias is None else float((bias[target] - bias[others].mean()).detach())
        assert [one.details["bias"] for one in found] == pytest.approx([of_head] * 4, abs=1e-6)


def test_polarity_needs_a_linear_head(make_model, stub_tokenizer):
    with pytest.raises(InputError, match=r"no polarity_scores.*use method='attention', which.*head_layers=1"):
        explain(make_model("att"), stub_tokenizer, ["good"], "polarity")
    with pytest.raises(InputError, match=r"no token_importance.*pooling"):
        explain(make_model("base"), stub_tokenizer, ["good"], "polarity")


@pytest.mark.parametrize("value", [1.0, 0.0, 0.3])
def test_c17_words_under_a_constant_mask_tie(model, tokenizer, value):
    """Also where a word has three tokens, whose mean could differ in the last digit."""
    forward = model.forward

    def constant(**batch):
        output = forward(**batch)
        output.token_mask = torch.full_like(output.token_mask, value) * batch["attention_mask"]
        return output

    model.forward = constant
    (explanation,) = explain(model, tokenizer, ["unbelievable good film, not bad"], "mask")
    assert explanation.tied and len(explanation.words) == 6
    shown = explanation.to_terminal(color=False)
    assert "All words tie" in shown and "highest" not in shown
    assert "All words tie" in explanation.to_html()


@every_method
def test_words_that_are_given(model, tokenizer, method):
    """Already split texts keep their words, and are the joined text to the model."""
    (explanation,) = explained(model, tokenizer, [["good", "film", "wo", "n't", "bad"]], method)
    assert explanation.words == ["good", "film", "wo", "n't", "bad"]
    assert explanation.text == "good film wo n't bad" and rebuilt(explanation) == explanation.text
    (joined,) = explained(model, tokenizer, [explanation.text], method)
    assert explanation.probabilities == joined.probabilities
    if method == "attention":
        assert explanation.scores[0] == pytest.approx(joined.scores[0])


@every_method
def test_result_names_method_settings_and_seconds(model, tokenizer, method):
    (explanation,) = explained(model, tokenizer, ["good film"], method, seed=5)
    assert (explanation.method, explanation.model) == (method, "planted") and explanation.seconds > 0
    assert explanation.settings == {
        **ALONE[method].settings,
        **FEW.get(method, {}),
        **({"seed": 5} if method in ("lime", "shapley", "random") else {}),
    }
    assert Explanation.from_dict(json.loads(json.dumps(explanation.to_dict()))) == explanation


@every_method
def test_progress_bar_reaches_its_end(model, tokenizer, method, capsys):
    explained(model, tokenizer, ["good film", "bad", "", "good film"], method)
    assert capsys.readouterr().err == ""
    explained(model, tokenizer, ["good film", "bad", "", "good film"], method, progress=True)
    printed = capsys.readouterr().err
    done, total = re.findall(r"(\d+)/(\d+) ", printed)[-1]
    assert method in printed and done == total


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@every_method
def test_c61_on_a_gpu(make_model, stub_tokenizer, method, tmp_path):
    model = make_model("att", head_layers=1)
    if method == "mask":
        model.save_pretrained(tmp_path)
        model = BertWithVMask.from_pretrained(tmp_path)
    texts = ["a good film", "the plot is dull"]
    expected = explained(model, stub_tokenizer, texts, method)
    found = explained(model.to("cuda"), stub_tokenizer, texts, method)
    assert model.device.type == "cuda"
    for a, b in zip(found, expected, strict=True):
        assert a.scores == pytest.approx(b.scores, abs=1e-4)
    explained(model.to("cpu"), stub_tokenizer, texts, method)


def test_random_needs_no_importance(model_without_importance, tokenizer):
    (explanation,) = explain(model_without_importance, tokenizer, ["good film"], "random")
    assert len(explanation.scores) == 2


def test_target_and_labels(model, tokenizer):
    explanations = explain(model, tokenizer, ["good", "bad"], target=np.int64(2), labels=np.array([1, 2]))
    assert [e.target for e in explanations] == [2, 2] and [e.gold for e in explanations] == [1, 2]
    assert [e.correct for e in explanations] == [True, False]
    assert all(type(value) is int for e in explanations for value in (e.target, e.gold, e.prediction))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "magic"}, "'magic'.*'attention', 'mask', 'polarity', 'attention_x_gradient'"),
        ({"target": 3}, r"target\[0\] is 3.*0 \(LABEL_0\), 1"),
        ({"target": [0]}, "target has 1 entries for 2 texts"),
        ({"target": [0, 3]}, r"target\[1\] is 3"),
        ({"target": "pos"}, "'pos'.*integer"),
        ({"n_samples": 5}, "'attention' has no setting 'n_samples'; it has no settings"),
        ({"method": "lime", "samples": 5}, "'lime' has no setting 'samples'; it has n_samples, operator"),
        ({"method": "lime", "n_samples": 0}, "n_samples is 0; it must be at least 1"),
        ({"method": "lime", "n_samples": 2.5}, "n_samples is 2.5; it must be a whole number, at least 1"),
        ({"method": "lime", "operator": "drop"}, "operator is 'drop'; choose one of 'delete', 'mask', 'pad'"),
        ({"method": "shapley", "exact": 1}, "exact is 1; it must be True or False"),
        ({"labels": [0]}, "labels has 1 entries for 2 texts"),
        ({"labels": [0, -1]}, r"labels\[1\] is -1"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5; it must be a whole number"),
        ({"max_length": 2}, "max_length is 2; it must be from 3 to 32"),
    ],
)
def test_wrong_arguments_say_what_is_allowed(model, tokenizer, arguments, message):
    with pytest.raises(InputError, match=message):
        explain(model, tokenizer, ["good", "bad"], **arguments)


def test_short_texts_give_no_warning(model, tokenizer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(explain(model, tokenizer, ["good film"])[0], Explanation)


@pytest.mark.parametrize("method", ["random", "lime"])
def test_texts_may_be_encoded_before(stub, stub_tokenizer, method):
    texts = ["very good film", "", ["pre", "split"]]
    encoded = encode_words(stub_tokenizer, texts, 4)
    expected = explain(stub, stub_tokenizer, texts, method, max_length=4)
    assert without_time(explain(stub, stub_tokenizer, encoded, method)) == without_time(expected)


@every_method
def test_a_configuration_that_asks_for_tuples(make_model, stub_tokenizer, method):
    model = make_model("att", head_layers=1, mask_type="vmask")  # so that every method has what it reads
    expected = explained(model, stub_tokenizer, ["a good film", "very bad"], method)
    model.config.return_dict = False
    found = explained(model, stub_tokenizer, ["a good film", "very bad"], method)
    assert without_time(found) == without_time(expected)
