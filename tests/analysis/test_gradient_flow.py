"""The closed forms against autograd of the same model, written again in float64."""

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

from hf_vat import BertForVATClassification, EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig
from hf_vat.analysis import gradient_flow
from hf_vat.errors import InputError

WORDS = ["good", "bad", "film", "plot", "very", "not", "a", "fine", "dull", "so"]
TEXTS = ["good film film", "bad plot very bad so", "a film", "not good a a dull film plot", "fine"]
LABELS = {2: [1, 0, 1, 0, 1], 3: [1, 0, 2, 0, 1]}
KINDS = {
    "DP": ("embedding", "scaled_dot", 2),
    "DP-A": ("affine", "scaled_dot", 2),
    "AD": ("embedding", "additive", 2),
    "DP of three classes": ("embedding", "scaled_dot", 3),
    "DP-A of three classes": ("affine", "scaled_dot", 3),
    "AD of three classes": ("embedding", "additive", 3),
}


@pytest.fixture
def tokenizer():
    vocabulary = {word: index for index, word in enumerate(["[PAD]", "[UNK]", *WORDS])}
    of_words = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    of_words.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=of_words, pad_token="[PAD]", unk_token="[UNK]")


def make(kind: str, scale: float = 2.0, **settings) -> EncoderForVATClassification:
    encoder, attention, labels = KINDS[kind]
    sizes = {"hidden_size": 5} if encoder == "affine" else {}
    words = WordEncoderConfig(vocab_size=len(WORDS) + 2, encoder_type=encoder, embedding_size=6, **sizes)
    given = {"attention_type": attention, "attention_scale": scale, "bottleneck": "none", "head_layers": 1}
    given |= {"polarity_head": True, "initializer_range": 0.6}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = EncoderVATConfig(encoder=words, **{"num_labels": labels} | given | settings)
        model = EncoderForVATClassification(config)
        torch.nn.init.uniform_(model.get_input_embeddings().weight[1:], -0.7, 0.7)
    return model.eval()


def by_autograd(model, tokenizer, labels):
    """ds_e/dτ [V, K], da_e/dτ [V], de/dτ [V, d] and the logits, from a forward pass in float64 of the model's weights."""
    weights = {name: parameter.detach().double().requires_grad_() for name, parameter in model.named_parameters()}

    def scores(weights):
        of = {name.rpartition(".")[0].rpartition(".")[2]: weight for name, weight in weights.items()}
        e = of["word_embeddings"]
        h = e @ of["encoder"].T if "encoder" in of else e
        keys = torch.tanh(h @ of["projection"].T) if "projection" in of else h
        return h, (keys @ of["score"].T).squeeze(-1) / model.config.attention_scale, h @ of["out_proj"].T

    _h, a, s = scores(weights)
    loss, logits = 0, []
    for text, label in zip(TEXTS, labels, strict=True):
        ids = torch.tensor(tokenizer(text)["input_ids"])
        r = a[ids].softmax(0) @ s[ids]
        row = r if len(r) > 1 else torch.cat([-r / 2, r / 2])
        logits.append(row)
        loss = loss + torch.nn.functional.cross_entropy(row[None], torch.tensor([label])) / len(TEXTS)
    gradients = torch.autograd.grad(loss, list(weights.values()))
    direction = {name: -gradient for name, gradient in zip(weights, gradients, strict=True)}
    detached = {name: weight.detach() for name, weight in weights.items()}
    _, (_, da, ds) = torch.func.jvp(scores, (detached,), (direction,))
    [motion] = [one for name, one in direction.items() if "embeddings" in name]
    return ds.numpy(), da.numpy(), motion.numpy(), torch.stack(logits).detach()


@pytest.mark.parametrize("scale", [0.05, 1, 10, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_closed_forms_equal_autograd(kind, scale, tokenizer):
    model = make(kind, scale)
    labels = LABELS[model.num_labels]
    flow = gradient_flow(model, tokenizer, TEXTS, labels)
    ds, da, motion, logits = by_autograd(model, tokenizer, labels)
    with torch.no_grad():
        found = model(**tokenizer(TEXTS, padding=True, return_tensors="pt", return_token_type_ids=False)).logits
    np.testing.assert_allclose(logits, found, atol=1e-5)  # it is the same model
    words = slice(1, None)  # the padding has no embedding
    assert np.abs(ds[words]).max() > 1e-3 and np.abs(da[words]).max() > 1e-9
    for ours, theirs in ((flow.total_polarity, ds), (flow.total_attention, da), (flow.motion, motion)):
        np.testing.assert_allclose(ours[words], theirs[words], rtol=1e-8, atol=1e-10 * np.abs(theirs).max())
    entries = [2, 3, 7]
    moved = motion[entries] @ flow.embeddings[entries].T
    np.testing.assert_allclose(flow.products(entries), moved + moved.T, rtol=1e-9, atol=1e-12)


def test_terms_of_dp_as_the_paper_has_them(tokenizer):
    """A to F of binary DP by loops over texts and tokens."""
    model, scale = make("DP", 3.0), 3.0
    e = model.get_input_embeddings().weight.detach().double().numpy()
    w = model.learner_head.out_proj.weight.detach().double().numpy()[0]
    v = model.attention.score.weight.detach().double().numpy()[0]
    s, a, m = e @ w, e @ v / scale, len(TEXTS)
    pi, rho, c_term, f_term = np.zeros(len(e)), np.zeros(len(e)), np.zeros(len(e)), np.zeros(len(e))
    for text, label in zip(TEXTS, LABELS[2], strict=True):
        ids, y = tokenizer(text)["input_ids"], 2 * label - 1
        alpha = np.exp(a[ids]) / np.exp(a[ids]).sum()
        of_text = alpha @ s[ids]
        beta = 1 / (1 + np.exp(y * of_text))
        for one, weight in zip(ids, alpha, strict=True):
            c = y * beta * weight
            pi[one] += c
            rho[one] += c * (s[one] - of_text)
            c_term += c * (e @ e[one]) / m
            f_term += c * (s[one] - of_text) * (e @ e[one]) / (m * scale**2)
    flow = gradient_flow(model, tokenizer, TEXTS, LABELS[2])
    expected = {"A": (v @ w / scale) * rho / m, "B": (w @ w) * pi / m, "C": c_term, "G": np.zeros(len(e))}
    for name, values in expected.items():
        np.testing.assert_allclose(flow.polarity[name][:, 0], values, atol=1e-12)
    expected = {"D": (v @ w) * pi / (m * scale), "E": (v @ v) * rho / (m * scale**2), "F": f_term, "H": 0 * pi}
    for name, values in expected.items():
        np.testing.assert_allclose(flow.attention[name], values, atol=1e-12)
    i, k = 2, 3  # dΩ_ik/dτ, methods of the paper's §4.2
    velocity = lambda one, other: (rho[one] * a[other] + pi[one] * s[other]) / m  # noqa: E731
    np.testing.assert_allclose(flow.products([i, k])[0, 1], velocity(i, k) + velocity(k, i), atol=1e-12)


def test_class_names_and_a_text_without_a_token(tokenizer):
    model = make("DP", id2label={0: "neg", 1: "pos"})
    flow = gradient_flow(model, tokenizer, [*TEXTS[:2], ""], ["pos", "neg", "pos"])
    alone = gradient_flow(model, tokenizer, TEXTS[:2], [1, 0])
    assert np.isfinite(flow.total_polarity).all()
    np.testing.assert_allclose(flow.total_attention[2:] * 3, alone.total_attention[2:] * 2, atol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bottleneck": "gaussian"}, "bottleneck='gaussian'.*bottleneck='none'"),
        ({"polarity_head": False}, "polarity_head=False"),
        ({"vw_penalty": "abs"}, "vw_penalty='abs'"),
        ({"freeze_embeddings": True}, "freeze_embeddings=True"),
    ],
)
def test_other_models_are_refused(tokenizer, settings, message):
    with pytest.raises(InputError, match=message):
        gradient_flow(make("DP", **settings), tokenizer, TEXTS, LABELS[2])


def test_what_cannot_be_used_is_refused(tokenizer, make_model):
    assert isinstance(make_model("att"), BertForVATClassification)
    with pytest.raises(InputError, match="no word encoder"):
        gradient_flow(make_model("att"), tokenizer, TEXTS, LABELS[2])
    for texts, labels in (([], []), (TEXTS, [1])):
        with pytest.raises(InputError, match=r"texts and \d labels"):
            gradient_flow(make("DP"), tokenizer, texts, labels)
    with pytest.raises(InputError, match="labels are None"):
        gradient_flow(make("DP"), tokenizer, ["good"], [None])
