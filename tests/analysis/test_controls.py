"""Uniform attention in place of the model's."""

import math

import pytest
import torch

from hf_vat.analysis import uniform_attention


def test_two_words_by_hand(by_hand, word_tokenizer):
    """α = (¾, ¼) gives log-odds ¾·2 − ¼·4 = 0.5, the uniform one ½·2 − ½·4 = −1."""
    model = by_hand({"good": (math.log(3), 2.0), "film": (0.0, -4.0)})
    result, same = uniform_attention(model, word_tokenizer, ["good film", "film film film"])
    assert result.tvd == pytest.approx(1 / (1 + math.exp(-0.5)) - 1 / (1 + math.exp(1)), abs=1e-6)
    assert result[1:] == (1, 0, 2)
    assert same.tvd == pytest.approx(0, abs=1e-6) and same[1:] == (0, 0, 3)


def test_it_is_the_model_with_mean_pooling(make_model, tokenizer):
    model, mean = make_model("att").eval(), make_model("mean").eval()
    mean.load_state_dict(model.state_dict(), strict=False)
    texts = ["good", "a dull film", "the plot is un unbelievable", ""]
    for text, result in zip(texts, uniform_attention(model, tokenizer, texts, batch_size=2), strict=True):
        with torch.no_grad():
            own, other = (one(**tokenizer(text, return_tensors="pt")).logits.softmax(-1)[0] for one in (model, mean))
        assert result.tvd == pytest.approx((own - other).abs().sum().item() / 2, abs=1e-6)
        assert result[1:3] == (own.argmax().item(), other.argmax().item())
