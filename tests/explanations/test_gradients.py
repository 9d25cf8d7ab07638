"""Gradient, input times gradient and integrated gradients: hand-worked numbers, Captum, and what is left as found."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from hf_vat import EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig, explain
from hf_vat.data import train_word_tokenizer
from hf_vat.errors import InputError

GRADIENTS = ("gradient", "input_x_gradient", "integrated_gradients")
FILM = "a very good film"


def probability(model, ids, target):
    """The target's probability as a function of embeddings, for one text without padding."""

    def forward(embeddings):
        mask = torch.ones(embeddings.shape[:2], dtype=torch.long)
        return model(inputs_embeds=embeddings, attention_mask=mask).logits.double().softmax(-1)[:, target]

    return forward, model.get_input_embeddings()(torch.tensor([ids])).detach()


def test_input_x_gradient_by_hand(stub, stub_tokenizer):
    """f = sigmoid(sum of weights), so each token gets weight · f(1 - f)."""
    f = 1 / (1 + np.exp(-2.5))
    [explanation] = explain(stub, stub_tokenizer, [FILM], "input_x_gradient", target=1)
    assert explanation.scores == pytest.approx(np.array([0, 0.5, 2.0, 0]) * f * (1 - f), abs=1e-9)
    [gradient] = explain(stub, stub_tokenizer, [FILM], "gradient", target=0)
    assert gradient.scores == pytest.approx([f * (1 - f)] * 4, abs=1e-9)


def test_integrated_gradients_of_a_linear_logit_share_the_difference_by_weight(stub, stub_tokenizer):
    [explanation] = explain(stub, stub_tokenizer, [FILM], "integrated_gradients", target=1)
    difference = 1 / (1 + np.exp(-2.5)) - 0.5
    assert explanation.scores == pytest.approx(np.array([0, 0.2, 0.8, 0]) * difference, abs=1e-6)
    assert explanation.details["baseline_probability"] == pytest.approx(0.5, abs=1e-6)
    assert abs(explanation.details["convergence_gap"]) < 1e-6
    assert explanation.settings == {"n_steps": 50, "baseline": "pad"}


@pytest.mark.parametrize("system", ["base", "att", "vat"])
def test_gradients_are_autograds(make_model, tokenizer, system):
    model = make_model(system)
    ids = tokenizer(FILM)["input_ids"]
    forward, embeddings = probability(model.eval(), ids, 1)
    embeddings.requires_grad_()
    [gradients] = torch.autograd.grad(forward(embeddings).sum(), embeddings)
    [found] = explain(model, tokenizer, [FILM], "gradient", target=1)
    np.testing.assert_allclose(found.scores, gradients[0, 1:-1].norm(dim=-1), atol=1e-6)
    [found] = explain(model, tokenizer, [FILM], "input_x_gradient", target=1)
    np.testing.assert_allclose(found.scores, (gradients * embeddings).sum(-1)[0, 1:-1].detach(), atol=1e-6)


@pytest.mark.parametrize(("baseline", "token"), [("pad", 0), ("unk", 1), ("mask", 4), ("zero", None)])
def test_integrated_gradients_are_captums(make_model, tokenizer, baseline, token):
    from captum.attr import IntegratedGradients

    model = make_model("vat").eval()
    text = "an unbelievable good film"
    ids = tokenizer(text)["input_ids"]
    forward, embeddings = probability(model, ids, 1)
    if token is None:
        start = embeddings.clone()
        start[:, 1:-1] = 0
    else:
        start = model.get_input_embeddings()(torch.tensor([[ids[0], *[token] * (len(ids) - 2), ids[-1]]])).detach()
    expected = IntegratedGradients(forward).attribute(embeddings, baselines=start, n_steps=20).sum(-1)[0]
    [found] = explain(model, tokenizer, [text], "integrated_gradients", target=1, n_steps=20, baseline=baseline)
    by_word = [expected[1], expected[2:5].sum(), expected[5], expected[6]]  # un ##believ ##able
    np.testing.assert_allclose(found.scores, by_word, atol=1e-6)
    assert found.settings["baseline"] == baseline


@pytest.mark.parametrize("pad_id", [0, 7])
@pytest.mark.parametrize("n_steps", [50, 200])
def test_c59_integrated_gradients_add_up_whatever_the_padding_id(make_model, tokenizer, pad_id, n_steps):
    model = make_model("att", pad_token_id=pad_id)
    tokenizer = deepcopy(tokenizer)
    tokenizer.pad_token = tokenizer.convert_ids_to_tokens(pad_id)
    texts = [FILM, "bad", "the movie is great and the actor superb"]
    for explanation in explain(model, tokenizer, texts, "integrated_gradients", n_steps=n_steps):
        difference = explanation.probabilities[explanation.target] - explanation.details["baseline_probability"]
        gap = abs(sum(explanation.scores) - difference)  # words only: special tokens get nothing
        assert gap <= max(0.01 * abs(difference), 1e-3)
        assert gap == pytest.approx(abs(explanation.details["convergence_gap"]), abs=1e-6)
        ids = tokenizer(explanation.text)["input_ids"]
        forward, embeddings = probability(
            model.eval(), [ids[0], *[pad_id] * (len(ids) - 2), ids[-1]], explanation.target
        )
        assert explanation.details["baseline_probability"] == pytest.approx(float(forward(embeddings)), abs=1e-5)


def test_c59_a_large_gap_gives_one_warning(make_model, tokenizer):
    model = make_model("vat", initializer_range=1.5)
    with pytest.warns(UserWarning, match=r"of 2 texts .*more n_steps") as caught:
        explain(model, tokenizer, [FILM, "a bad plot and the actor"], "integrated_gradients", n_steps=1)
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize("method", GRADIENTS)
def test_c52_batches_are_bounded_and_parameters_untouched(make_model, tokenizer, method):
    model = make_model("vat").train()
    sizes = []
    model.register_forward_pre_hook(
        lambda module, args, kwargs: sizes.append(len(kwargs.get("input_ids", kwargs.get("inputs_embeds")))),
        with_kwargs=True,
    )
    parameter = next(model.parameters())
    parameter.requires_grad_(False)
    texts = [FILM, "bad", "a very bad film", "the plot is dull"] * 2
    with torch.no_grad():  # a caller's mode does not matter
        explain(model, tokenizer, texts, method, batch_size=3, **({"n_steps": 30} if "int" in method else {}))
    assert max(sizes) == 3
    assert model.training and not parameter.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("method", GRADIENTS)
def test_texts_together_are_as_alone(make_model, tokenizer, method):
    model = make_model("vat")
    texts = [FILM, "bad", "", "a very bad film", "the movie is great", "unbelievable"]
    together = explain(model, tokenizer, texts, method)
    assert [explanation.text for explanation in together] == texts
    for explanation in together:
        [alone] = explain(model, tokenizer, [explanation.text], method, batch_size=1)
        assert explanation.scores == pytest.approx(alone.scores, abs=1e-6)
        assert explanation.target == alone.target


def test_a_sure_prediction_still_has_a_gradient(stub, stub_tokenizer):
    """In float32 the probability of "good" 12 times over is 1 and its gradient 0."""
    [explanation] = explain(stub, stub_tokenizer, ["good " * 12], "input_x_gradient")
    assert min(explanation.scores) > 0


def test_unknown_or_missing_baseline(stub, stub_tokenizer):
    with pytest.raises(InputError, match="baseline is 'noise'; choose one of 'pad', 'mask', 'unk', 'zero'"):
        explain(stub, stub_tokenizer, ["good"], "integrated_gradients", baseline="noise")
    with pytest.raises(InputError, match=r'no mask token.*baseline="zero"'):
        explain(stub, stub_tokenizer, ["good"], "integrated_gradients", baseline="mask")


@pytest.mark.parametrize("encoder_type", ["lstm", "cnn"])
@pytest.mark.parametrize("baseline", ["pad", "unk"])
def test_c59_word_encoders_add_up_too(encoder_type, baseline):
    tokenizer = train_word_tokenizer([FILM, "the movie is bad and dull"])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = WordEncoderConfig(
            vocab_size=len(tokenizer), encoder_type=encoder_type, embedding_size=8, initializer_range=0.3
        )
        model = EncoderForVATClassification(EncoderVATConfig(encoder=encoder, initializer_range=0.5))
    texts = [FILM, "bad", "the very good movie is dull"]
    for explanation in explain(model, tokenizer, texts, "integrated_gradients", n_steps=200, baseline=baseline):
        difference = explanation.probabilities[explanation.target] - explanation.details["baseline_probability"]
        assert sum(explanation.scores) == pytest.approx(difference, abs=max(0.01 * abs(difference), 1e-3))
        assert abs(difference) > 1e-3, "else there is nothing to add up to"
