"""Whatever classifies texts is explained: what each caller says of a text is what the explanation says it is."""

import numpy as np
import pytest
import torch
from checks import ALONE
from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast, pipeline, set_seed

from hf_vat import Faithfulness, compare_explainers, explain
from hf_vat.callers import TextFunction
from hf_vat.errors import InputError
from hf_vat.explanations import load_explanations

WORDS = ["good", "bad", "film", "very", "not", "a", "plot", "the", ".", ","]
TEXTS = ["a very good film .", "not good , a bad plot", "film"]
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
ANY_MODEL = ("occlusion", "lime", "shapley", "random")
FEW = {"lime": {"n_samples": 60}, "shapley": {"n_samples": 4}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An encoder, and classifiers on it."""
    folder = tmp_path_factory.mktemp("callers")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    tokenizer = BertTokenizerFast(vocab={word: place for place, word in enumerate(vocabulary)}, model_max_length=32)
    set_seed(0)
    config = {"vocab_size": len(vocabulary), "max_position_embeddings": 32, "initializer_range": 0.4, **SIZES}
    BertModel(BertConfig(**config)).save_pretrained(folder / "encoder")
    BertForSequenceClassification(BertConfig(num_labels=3, **config)).save_pretrained(folder / "classifier")
    BertForSequenceClassification(BertConfig(num_labels=1, **config)).save_pretrained(folder / "ranker")
    for name in ("encoder", "classifier", "ranker"):
        tokenizer.save_pretrained(folder / name)
    return folder


@pytest.fixture(scope="module")
def classifier(folder):
    model = BertForSequenceClassification.from_pretrained(folder / "classifier").eval()
    return model, BertTokenizerFast.from_pretrained(folder / "classifier")


def assert_same(found, expected, tolerance=1e-6):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=tolerance)
        np.testing.assert_allclose(one.probabilities, other.probabilities, atol=tolerance)
        assert (one.words, one.target, one.label_names) == (other.words, other.target, other.label_names)


def test_a_pipeline_and_a_name_are_their_model_and_tokenizer(folder, classifier):
    model, tokenizer = classifier
    for method in (*ANY_MODEL, "gradient"):
        expected = explain(model, tokenizer, TEXTS, method=method, **FEW.get(method, {}))
        of_pipeline = pipeline("text-classification", model=model, tokenizer=tokenizer)
        for caller in (of_pipeline, str(folder / "classifier")):
            assert_same(explain(caller, texts=TEXTS, method=method, **FEW.get(method, {})), expected)


def test_what_measures_takes_callers_too(folder, classifier):
    model, tokenizer = classifier
    made = explain(model, tokenizer, TEXTS, method="occlusion", labels=[0, 1, 2])
    expected = Faithfulness(model, tokenizer, made, ks=(1,)).measure(made)
    found = Faithfulness(str(folder / "classifier"), texts=made, ks=(1,)).measure(made)
    assert found.scores == expected.scores
    comparison = compare_explainers(
        pipeline("text-classification", model=model, tokenizer=tokenizer),
        texts=TEXTS, labels=[0, 1, 2], methods=["occlusion"], ks=(1,), shares=(), seeds=range(2),
    )  # fmt: skip
    assert comparison.intervals["occlusion"]["prob_drop@1"].mean == pytest.approx(expected.scores["prob_drop@1"])


def test_an_exported_model_brings_its_tokenizer(classifier, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from hf_vat.export import OnnxClassifier, export_onnx

    model, tokenizer = classifier
    exported = OnnxClassifier(export_onnx(model, tokenizer, tmp_path))
    expected = explain(model, tokenizer, TEXTS, method="occlusion")
    assert_same(explain(exported, texts=TEXTS, method="occlusion"), expected, 1e-5)


@pytest.mark.parametrize("identity", [False, True])
def test_a_cross_encoder_ranks_pairs(folder, identity):
    library = pytest.importorskip("sentence_transformers")
    activation = torch.nn.Identity() if identity else torch.nn.Sigmoid()
    encoder = library.CrossEncoder(str(folder / "ranker"), activation_fn=activation, device="cpu")
    pairs = [("a good film", "not bad"), ("the plot", "a very bad plot .")]
    texts = [{"text": first, "text_pair": second} for first, second in pairs]
    expected = encoder.predict(pairs)
    for method in ("occlusion", "integrated_gradients"):
        made = explain(encoder, texts=texts, method=method)
        np.testing.assert_allclose([one.probabilities[0] for one in made], expected, atol=1e-5)
        assert {one.problem_type for one in made} == {"regression" if identity else "multi_label_classification"}
    assert encoder.model.config.problem_type != "regression"  # the caller's own stays as it was
    without = encoder.predict([("good film", "not bad")])[0]
    [one, _] = explain(encoder, texts=texts, method="occlusion")
    assert one.scores[0] == pytest.approx(float(expected[0] - without), abs=1e-5)


@pytest.mark.parametrize("head", ["scikit-learn", "torch"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_setfit_model_is_explained(folder, head, classes):
    library = pytest.importorskip("sentence_transformers")
    setfit = pytest.importorskip("setfit")
    from sklearn.linear_model import LogisticRegression

    body = library.SentenceTransformer(str(folder / "encoder"), device="cpu")
    names = ["no", "yes", "maybe"][:classes]
    if head == "torch":
        set_seed(1)
        own = setfit.SetFitHead(in_features=16, out_features=classes)
    else:
        texts = [f"{one} {other}" for one in WORDS for other in WORDS]
        own = LogisticRegression(C=10).fit(body.encode(texts), np.arange(len(texts)) % classes)
    model = setfit.SetFitModel(model_body=body, model_head=own, labels=names)
    expected = model.predict_proba(TEXTS, as_numpy=True)
    for method in ("occlusion", "shapley", "input_x_gradient"):
        made = explain(model, texts=TEXTS, method=method, **FEW.get(method, {}))
        np.testing.assert_allclose([one.probabilities for one in made], expected, atol=1e-5)
        assert made[0].label_names == names
    of_function = explain(lambda texts: model.predict_proba(texts, as_numpy=True), texts=TEXTS, method="occlusion")
    made = explain(model, texts=TEXTS, method="occlusion")
    for one, other in zip(
        made[:2], of_function[:2], strict=True
    ):  # without its only word the third is an unknown token, or ""
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-5)


# Functions


def likes_it(texts):
    """The share of "good" among the words, and its rest."""
    shares = [text.split().count("good") / max(len(text.split()), 1) for text in texts]
    return [[1 - share, share] for share in shares]


@pytest.mark.parametrize("method", ANY_MODEL)
def test_a_function_is_explained_by_every_method_without_gradients(method):
    texts = ["good bad", "  a  good\tgood film ", "", "東京 good"]
    made = explain(likes_it, texts=texts, method=method, **FEW.get(method, {}))
    np.testing.assert_allclose([one.probabilities for one in made], likes_it(texts), atol=1e-9)
    if method == "occlusion":
        np.testing.assert_allclose(made[0].scores, [0.5 - 1, 0.5 - 0], atol=1e-9)  # of the first class
    if method == "shapley":
        for one in made:
            total = one.probabilities[one.target] - one.details["base_value"]
            assert sum(one.scores) == pytest.approx(total, abs=1e-9)


def test_a_function_is_given_what_is_left_of_the_string():
    seen = []

    def function(texts):
        seen.extend(texts)
        return np.full(len(texts), 0.3)

    [explanation] = explain(function, texts=["Well-made,  so\tgood!"], method="occlusion")
    assert explanation.words == ["Well-made", ",", "so", "good", "!"]
    assert set(seen) == {
        "a", "Well-made,  so\tgood!", ",  so\tgood!", "Well-made  so\tgood!", "Well-made,  \tgood!",
        "Well-made,  so\t!", "Well-made,  so\tgood",
    }  # fmt: skip
    assert explanation.probabilities == pytest.approx([0.7, 0.3])


def test_a_function_of_pairs_is_given_pairs():
    def same_words(pairs):
        return [float(set(pair["text"].split()) == set(pair["text_pair"].split())) for pair in pairs[:]]

    def function(texts):
        return [0.0 if isinstance(text, str) else same_words([text])[0] for text in texts]

    texts = [{"text": "a b", "text_pair": "b a"}]
    [explanation] = explain(TextFunction(function, ["no", "yes"]), texts=texts, method="occlusion", target="yes")
    assert explanation.scores == pytest.approx([1, 1, 1, 1], abs=1e-9) and explanation.pair_start == 2


def test_labels_and_scores_of_functions(tmp_path):
    def stars(texts):
        return [text.count("good") - 2.0 * text.count("bad") for text in texts]

    function = TextFunction(stars, ["stars"], "regression")
    [explanation] = explain(function, texts=["good bad film"], method="shapley", save_to=tmp_path / "lines.jsonl")
    assert explanation.scores == pytest.approx([1, -2, 0]) and explanation.probabilities == [-1]
    assert load_explanations(tmp_path / "lines.jsonl")[0].scores == explanation.scores
    labels = TextFunction(
        lambda texts: [[0.9 * ("good" in text), 0.8 * ("film" in text)] for text in texts], ["praise", "film"],
        "multi_label_classification",
    )  # fmt: skip
    made = explain(labels, texts=["good film", "film"], method="occlusion")
    assert [(one.label_names[one.target], np.round(one.scores, 6).tolist()) for one in made] == [
        ("praise", [0.9, 0.0]), ("film", [0.0, 0.8]), ("film", [0.8]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "mentions"),
    [
        (lambda texts: "good", "must give an array of numbers"),
        (lambda texts: np.ones((len(texts) + 1, 2)), "must give finite numbers of shape"),
        (lambda texts: [float("nan")] * len(texts), "must give finite numbers"),
        (lambda texts: [[0.5, 0.6]] * len(texts), "sum to 1.1; of classes they sum to 1"),
        (lambda texts: [[-1.0, 2.0]] * len(texts), "give probabilities from 0 to 1"),
    ],
)
def test_what_is_no_probability_is_refused(answer, mentions):
    with pytest.raises(InputError, match=mentions):
        explain(answer, texts=["a"], method="occlusion")


def test_what_a_function_raises_itself_is_raised():
    def broken(texts):
        raise TypeError("its own fault")

    with pytest.raises(TypeError, match="its own fault"):
        explain(broken, texts=["a"], method="occlusion")


def test_methods_that_a_function_cannot_be_explained_by_say_so():
    for method in sorted(set(ALONE) - set(ANY_MODEL)):
        with pytest.raises(InputError, match="occlusion"):
            explain(likes_it, texts=["a good film"], method=method)


def test_a_model_without_its_tokenizer_is_refused(classifier):
    with pytest.raises(InputError, match="The model is a BertForSequenceClassification; give its tokenizer too"):
        explain(classifier[0], texts=["a"])
    for nothing in (None, 3, torch.nn.Linear(2, 2)):
        with pytest.raises(InputError):
            explain(nothing, texts=["a"])
