"""Explanations where a text has several labels, or a score, or is one of a pair: against Captum and values worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from checks import ALONE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertForSequenceClassification, set_seed

from hf_vat import Faithfulness, compare_explainers, explain
from hf_vat.errors import InputError
from hf_vat.explanations.analysis import text_generator
from hf_vat.explanations.removal import random_orders
from hf_vat.faithfulness.perturb import Operator
from hf_vat.inference import predict_outputs
from hf_vat.models.problems import Problem
from hf_vat.models.words import encode_words

MULTI, REGRESSION = "multi_label_classification", "regression"
KINDS = {"labels": (MULTI, 3), "scores": (REGRESSION, 2), "score": (REGRESSION, 1), "one logit": (None, 1)}
PAIR = {"text": "good film , not bad", "text_pair": "a plot i like at all"}
SINGLE = "not very good bad film"
ANY_MODEL = sorted(name for name, method in ALONE.items() if not method.reads)
FEW = {"lime": {"n_samples": 40}, "shapley": {"n_samples": 4}, "integrated_gradients": {"n_steps": 20}}
WEIGHTS = {"good": (2.0, -1.0), "bad": (-3.0, 0.5), "film": (0.25, 0.0), "not": (-0.5, 1.5)}


@pytest.fixture(params=KINDS)
def model(request, tokenizer):
    kind, count = KINDS[request.param]
    set_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(
        vocab_size=len(tokenizer), max_position_embeddings=64, initializer_range=0.4, num_labels=count, **sizes
    )
    config.problem_type = kind
    return BertForSequenceClassification(config).double().eval()


class Linear(torch.nn.Module):
    """Logits that are sums over a text's tokens; of a pair the second text counts tenfold."""

    def __init__(self, tokenizer, kind: str):
        super().__init__()
        self.config = BertConfig(max_position_embeddings=64, num_labels=2, problem_type=kind, name_or_path="linear")
        self.device = torch.device("cpu")
        self.embeddings = torch.nn.Embedding(len(tokenizer), 2, dtype=torch.float64)
        with torch.no_grad():
            self.embeddings.weight.zero_()
            for word, weights in WEIGHTS.items():
                self.embeddings.weight[tokenizer.convert_tokens_to_ids(word)] = torch.tensor(weights).double()

    def get_input_embeddings(self):
        return self.embeddings

    def forward(self, input_ids, attention_mask, token_type_ids=None, **kwargs):
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        weights = attention_mask * (1 + 9 * types)
        return SimpleNamespace(logits=(self.embeddings(input_ids) * weights.unsqueeze(-1)).sum(1))


@pytest.mark.parametrize("method", ["occlusion", "shapley", "integrated_gradients", "input_x_gradient"])
@pytest.mark.parametrize("text", [SINGLE, {"text": "good film", "text_pair": "not bad"}])
def test_on_a_linear_score_every_method_gives_the_weights(tokenizer, method, text):
    model = Linear(tokenizer, REGRESSION)
    options = {"baseline": "zero", "n_steps": 3} if method == "integrated_gradients" else {}
    for explanation in explain(model, tokenizer, [text], method=method, **options):
        factors = [10 if explanation.pair_start and place >= 2 else 1 for place in range(len(explanation.words))]
        expected = [
            factor * WEIGHTS.get(word, (0.0, 0.0))[explanation.target]
            for word, factor in zip(explanation.words, factors, strict=True)
        ]
        np.testing.assert_allclose(explanation.scores, expected, atol=1e-6)


def test_occlusion_of_a_label_is_the_loss_of_its_sigmoid(tokenizer):
    model = Linear(tokenizer, MULTI)
    [explanation] = explain(model, tokenizer, ["good bad"], method="occlusion", target=1)

    def sigmoid(value):
        return 1 / (1 + np.exp(-value))

    np.testing.assert_allclose(explanation.probabilities, [sigmoid(-1.0), sigmoid(-0.5)], atol=1e-9)
    expected = [sigmoid(-0.5) - sigmoid(0.5), sigmoid(-0.5) - sigmoid(-1.0)]
    np.testing.assert_allclose(explanation.scores, expected, atol=1e-9)


# Against Captum


def outputs_of_words(model, tokenizer, text):
    """A function from flags of words [S, n] to outputs [S, C], as Captum asks it."""
    [encoded] = encode_words(tokenizer, [text], 64)
    operator = Operator.of("delete", tokenizer, model)

    def function(flags):
        rows = operator.keep(encoded, flags.reshape(-1, len(encoded.words)).bool().numpy())
        return torch.from_numpy(predict_outputs(model, tokenizer, rows))

    return encoded, function


@pytest.mark.parametrize("text", [SINGLE, PAIR], ids=["single", "pair"])
def test_shapley_values_are_captums_with_the_same_permutations(model, tokenizer, text):
    from captum.attr import ShapleyValueSampling

    encoded, function = outputs_of_words(model, tokenizer, text)
    n, target = len(encoded.words), model.num_labels - 1
    orders = random_orders(text_generator(3, encoded), 6, n).argsort(1)
    captum = ShapleyValueSampling(lambda flags: function(flags)[:, target])
    captum.permutation_generator = lambda features, samples: iter(orders.tolist())
    expected = captum.attribute(torch.ones(1, n, dtype=torch.float64), baselines=0, n_samples=6)
    [found] = explain(model, tokenizer, [text], method="shapley", target=target, n_samples=6, seed=3)
    np.testing.assert_allclose(found.scores, expected[0].numpy(), atol=1e-6)


@pytest.mark.parametrize("text", [SINGLE, PAIR], ids=["single", "pair"])
def test_occlusion_is_captums_feature_ablation(model, tokenizer, text):
    from captum.attr import FeatureAblation

    encoded, function = outputs_of_words(model, tokenizer, text)
    target = model.num_labels - 1
    captum = FeatureAblation(lambda flags: function(flags)[:, target])
    expected = captum.attribute(torch.ones(1, len(encoded.words)), baselines=0)
    [found] = explain(model, tokenizer, [text], method="occlusion", target=target)
    np.testing.assert_allclose(found.scores, expected[0].numpy(), atol=1e-6)


@pytest.mark.parametrize("text", [SINGLE, PAIR], ids=["single", "pair"])
def test_integrated_gradients_are_captums_at_the_layer_of_embeddings(model, tokenizer, text):
    from captum.attr import LayerIntegratedGradients

    [encoded] = encode_words(tokenizer, [text], 64)
    target, problem = model.num_labels - 1, Problem.of(model.config)
    ids = torch.tensor([encoded.input_ids])
    types = torch.tensor([encoded.token_types or [0] * ids.shape[1]])
    special = torch.tensor([encoded.special])
    baseline = torch.where(special, ids, tokenizer.pad_token_id)

    def function(input_ids):
        output = model(input_ids, torch.ones_like(input_ids), types.expand(len(input_ids), -1))
        return problem.outputs(output.logits.double())[:, target]

    captum = LayerIntegratedGradients(function, model.get_input_embeddings())
    values = captum.attribute(ids, baseline, n_steps=20).sum(-1)[0]
    [found] = explain(model, tokenizer, [text], method="integrated_gradients", target=target, n_steps=20)
    np.testing.assert_allclose(found.scores, encoded.word_scores(values.tolist()), atol=1e-6)


# What holds for every kind


@pytest.mark.parametrize("method", ANY_MODEL)
def test_neither_batches_nor_order_matter(model, tokenizer, method):
    texts = [SINGLE, "good", PAIR, "", {"text": "", "text_pair": "bad"}, {"text": "film", "text_pair": ""}]
    target = model.num_labels - 1
    few = FEW.get(method, {})
    together = explain(model, tokenizer, texts, method=method, target=target, **few)
    turned = explain(model, tokenizer, texts[::-1], method=method, target=target, batch_size=2, **few)[::-1]
    for text, one, other in zip(texts, together, turned, strict=True):
        [alone] = explain(model, tokenizer, [text], method=method, target=target, **few)
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-5)
        np.testing.assert_allclose(one.scores, alone.scores, atol=1e-5)
        np.testing.assert_allclose(one.probabilities, alone.probabilities, atol=1e-5)
        assert one.words == alone.words and one.pair_start == alone.pair_start


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_side_of_padding_does_not_matter(model, tokenizer, side):
    texts = [SINGLE, PAIR, "good"]
    expected = [explain(model, tokenizer, [text], method="occlusion", target=0)[0].scores for text in texts]
    tokenizer.padding_side = side
    for explanation, scores in zip(
        explain(model, tokenizer, texts, method="occlusion", target=0), expected, strict=True
    ):
        np.testing.assert_allclose(explanation.scores, scores, atol=1e-5)


def test_each_predicted_label_has_an_explanation(tokenizer):
    model = Linear(tokenizer, MULTI)
    texts = ["good not", "good", "bad bad", "film"]
    made = explain(model, tokenizer, texts, method="occlusion", labels=[["LABEL_0"], [1, 0], [0, 0], [0, 1]])
    assert [(one.text, one.target) for one in made] == [
        ("good not", 0), ("good not", 1), ("good", 0), ("bad bad", 1), ("film", 0), ("film", 1),
    ]  # fmt: skip
    assert [one.prediction for one in made] == [[0, 1], [0, 1], [0], [1], [0, 1], [0, 1]]
    assert [one.gold for one in made] == [[0], [0], [0], [], [1], [1]]
    assert [one.correct for one in made] == [False, False, True, False, False, False]
    model.config.label_thresholds = [0.9, 0.95]
    made = explain(model, tokenizer, texts[:2], method="occlusion")
    assert [(one.text, one.target, one.prediction) for one in made] == [("good not", 0, []), ("good", 0, [])]


def test_asked_labels_are_explained_in_the_order_that_they_are_asked_in(tokenizer):
    model = Linear(tokenizer, MULTI)
    made = explain(model, tokenizer, ["good", "bad"], method="random", target=[["LABEL_1", 0], None])
    assert [(one.text, one.target) for one in made] == [("good", 1), ("good", 0), ("bad", 1)]
    for wrong, mentions in [
        ([[], 0], "target\\[0\\] is \\[\\]; give a class"),
        ([["LABEL_1", 7], 0], "target\\[0\\]\\[1\\] is 7"),
    ]:
        with pytest.raises(InputError, match=mentions):
            explain(model, tokenizer, ["good", "bad"], method="random", target=wrong)


def test_gold_labels_of_another_kind_are_refused(tokenizer):
    labels, scores = Linear(tokenizer, MULTI), Linear(tokenizer, REGRESSION)
    for model, wrong, mentions in [
        (labels, [1], "give the names of the text's labels"),
        (labels, [[0, 2]], "give the names of the text's labels"),
        (labels, [["LABEL_9"]], "is 'LABEL_9'"),
        (scores, [1.0], "has 1 numbers; the model gives 2 scores"),
        (scores, [[1.0, float("nan")]], "is nan; the score of a text is a finite number"),
    ]:
        with pytest.raises(InputError, match=mentions):
            explain(model, tokenizer, ["good"], method="random", labels=wrong)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from([*WEIGHTS, "cafe"]), max_size=5),
    st.lists(st.sampled_from([*WEIGHTS, "cafe"]), max_size=5),
    st.data(),
)
@pytest.mark.parametrize("operator", ["delete", "mask", "pad"])
def test_taking_words_out_keeps_the_structure_of_a_pair(tokenizer, operator, first, second, data):
    [encoded] = encode_words(tokenizer, [{"text": " ".join(first), "text_pair": " ".join(second)}], 64)
    kept = data.draw(st.lists(st.booleans(), min_size=len(encoded.words), max_size=len(encoded.words)))
    [row] = Operator.of(operator, tokenizer).keep(encoded, np.array([kept], dtype=bool).reshape(1, -1))
    ids = [(token if token >= 0 else -1 - token) % 2**32 for token in row]
    types = [(token if token >= 0 else -1 - token) >> 32 for token in row]
    separator = tokenizer.sep_token_id
    assert ids.count(separator) == 2 and types == sorted(types)
    assert types.count(0) == ids.index(separator) + 1  # [CLS] a [SEP] are of type 0, b [SEP] of type 1
    if operator == "delete" and any(kept):
        words = [word.text for word, keep in zip(encoded.words, kept, strict=True) if keep]
        special = {tokenizer.cls_token_id, separator}
        assert tokenizer.convert_ids_to_tokens([one for one in ids if one not in special]) == words


def test_what_an_explanation_shows(tokenizer):
    [scores, *_] = explain(Linear(tokenizer, REGRESSION), tokenizer, [PAIR], method="occlusion", labels=[[1.0, 2.0]])
    told = scores.to_terminal(color=False)
    assert "gold is 1, 2" in told and "explained output LABEL_0" in told and "good film , not bad\na plot" in told
    page = scores.to_html()
    assert page.count('<p class="hfv-text"') == 2 and "right" not in page.split("<body>")[1].split("legend")[0]
    assert type(scores).from_dict(scores.to_dict()) == scores
    [labels, _] = explain(Linear(tokenizer, MULTI), tokenizer, ["good not"], method="occlusion", labels=[["LABEL_1"]])
    told = labels.to_terminal(color=False)
    assert "LABEL_0 (0.818), LABEL_1 (0.622) | WRONG, gold is LABEL_1 | explained output LABEL_0" in told


# Faithfulness, worked out by hand on the linear model


def test_faithfulness_of_labels(tokenizer):
    model = Linear(tokenizer, MULTI)
    made = explain(model, tokenizer, ["good film", "bad not"], method="occlusion", labels=[["LABEL_0"], ["LABEL_1"]])
    # Logits: "good film" (2.25, -1) has label 0; "bad not" (-3.5, 2) has label 1.
    assert [one.target for one in made] == [0, 1]
    found = Faithfulness(model, tokenizer, made, ks=(1,), shares=(0.5,)).measure(made)
    sigmoid = torch.tensor([2.25, 0.25, 2.0, 0.5]).double().sigmoid().numpy()
    np.testing.assert_allclose(found.values["prob_drop@1"], [sigmoid[0] - sigmoid[1], sigmoid[2] - sigmoid[3]])
    np.testing.assert_allclose(found.values["comprehensiveness@0.5"], found.values["prob_drop@1"])
    # Without "good", film alone has (0.25, 0): both labels. Without "not", bad alone has (-3, 0.5): label 1 still.
    np.testing.assert_array_equal(found.values["accuracy_drop@1"], [1, 0])
    # "good" alone (2, -1) and "not" alone (-0.5, 1.5) give the labels of the texts.
    np.testing.assert_array_equal(found.values["posthoc_self@1"], [1, 1])
    np.testing.assert_array_equal(found.values["posthoc_gold@1"], [1, 1])
    by_target = found.by_target()
    assert by_target["LABEL_0"]["accuracy_drop@1"] == 1 and by_target["macro"]["accuracy_drop@1"] == 0.5
    assert found.to_dict()["accuracy"] == 1 and found.to_dict()["by_target"] == by_target


def test_faithfulness_of_scores(tokenizer):
    model = Linear(tokenizer, REGRESSION)
    made = explain(model, tokenizer, ["good film", "bad not"], method="occlusion", target=0)
    faithfulness = Faithfulness(model, tokenizer, made, ks=(1, 2), shares=(0.5,))
    found = faithfulness.measure(made)
    np.testing.assert_allclose(found.values["output_change@1"], [2, 3])  # "bad" lowers the score, by most
    np.testing.assert_allclose(found.values["output_change@2"], [2.25, 3.5])
    np.testing.assert_allclose(found.values["output_change_sd@1"], np.array([2, 3]) / np.std([2.25, -3.5]))
    np.testing.assert_allclose(found.values["posthoc_change@1"], [0.25, 0.5])
    np.testing.assert_allclose(found.values["area_output"], [2.125, 3.25])
    np.testing.assert_allclose(found.values["sufficiency@0.5"], [0.25, 0.5])
    assert "accuracy" not in found.setup and found.setup["scale"] == "score"
    random = faithfulness.random(range(3))
    assert set(random.results[0].scores) == set(found.scores)


def test_without_gold_labels_the_scores_that_need_them_are_left_out(tokenizer):
    model = Linear(tokenizer, MULTI)
    made = explain(model, tokenizer, ["good film", "bad"], method="occlusion")
    found = Faithfulness(model, tokenizer, made, ks=(1,)).measure(made)
    assert set(found.scores) == {"prob_drop@1", "posthoc_self@1"}


@pytest.mark.parametrize("kind", [MULTI, REGRESSION])
def test_methods_are_compared(tokenizer, kind, tmp_path):
    model = Linear(tokenizer, kind)
    texts = ["good film", "bad not", PAIR, "not good at all", "film film bad"]
    labels = [["LABEL_0"]] * 5 if kind == MULTI else [[1.0, 2.0]] * 5
    comparison = compare_explainers(
        model, tokenizer, texts, labels, ["occlusion", "gradient"], ks=(1, 2), shares=(0.5,), seeds=range(2)
    )
    name = "prob_drop@1" if kind == MULTI else "output_change@1"
    ours, random = (comparison.intervals[method][name].mean for method in ("occlusion", "random"))
    assert ours > random and str(comparison)
    page = comparison.write(tmp_path / "report").read_text(encoding="utf-8")
    assert "prob_drop" in page if kind == MULTI else "output_change" in page
