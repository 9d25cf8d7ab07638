"""Other attention for the same prediction, by search."""

import math

import pytest
import torch
from checks import refuses

from hf_vat.analysis import adversarial_attention
from hf_vat.distributions import jensen_shannon
from hf_vat.models.attention import weighted_sum

TEXTS = ["good film", "the plot and the film", "", "bad", "very very bad and a film the plot good", "awful film"]


def test_where_all_states_are_equal_attention_can_be_any_other(by_hand, word_tokenizer):
    """Its own attention is uniform over eight tokens, so that the furthest is one token: (n+1)/2n and so on by hand."""
    model = by_hand({"good": (0.0, 2.0)})
    n = 8
    [result] = adversarial_attention(model, word_tokenizer, [" ".join(["good"] * n)], n_steps=300, learning_rate=0.1)
    mixed = [(1 + 1 / n) / 2] + [1 / (2 * n)] * (n - 1)
    furthest = -sum(p * math.log(p) for p in mixed) - math.log(n) / 2
    assert furthest - 0.01 < result.jsd <= furthest + 1e-5 and result.tvd == pytest.approx(0, abs=1e-6)
    assert max(result.attention) > 0.97 and len(result.attention) == n


def test_where_one_token_has_the_weight_and_all_are_equal_the_divergence_nears_ln_2(by_hand, word_tokenizer):
    model = by_hand({"good": (9.0, 2.0), "film": (0.0, 2.0)})
    [result] = adversarial_attention(model, word_tokenizer, ["good film film film"])
    assert math.log(2) - 0.01 < result.jsd <= math.log(2) + 1e-6 and result.attention[0] < 0.02


def test_where_one_token_decides_no_other_attention_will_do(by_hand, word_tokenizer):
    """P moves from σ(4) = 0.98 by at most ε = 0.05 as long as "good" keeps Σ ≥ 2.6: a weight of 0.82 or more."""
    model = by_hand({"good": (9.0, 4.0), "film": (0.0, -4.0)})
    [result] = adversarial_attention(model, word_tokenizer, ["film good film"])
    assert result.tvd <= 0.05 and result.jsd < 0.1
    assert result.attention is None or result.attention[1] > 0.8


def test_texts_of_fewer_than_two_tokens_have_no_other(make_model, tokenizer):
    empty, one = adversarial_attention(make_model(), tokenizer, ["", "bad"], n_steps=5)
    assert empty == (0, 0, None, 0) and one == (0, 0, None, 1)


@pytest.mark.parametrize("system", ["att", "vat"])
def test_numbers_are_those_of_the_attention_that_is_returned(make_model, tokenizer, system):
    model = make_model(system).eval()
    texts = ["a dull film", "the plot is un unbelievable", "good film and a dull plot, very"]
    for epsilon in (0.01, 0.2):
        results = adversarial_attention(model, tokenizer, texts, n_steps=100, learning_rate=0.05, epsilon=epsilon)
        assert any(result.attention for result in results)
        for text, result in zip(texts, results, strict=True):
            if result.attention is None:
                continue
            with torch.no_grad():
                found = model.token_states(**tokenizer(text, return_tensors="pt"))
                other = torch.tensor([result.attention])
                logits = [model.logits_of(weighted_sum(one, found.states)) for one in (found.attention, other)]
            first, second = (one.softmax(-1)[0] for one in logits)
            assert result.tvd == pytest.approx((first - second).abs().sum().item() / 2, abs=1e-5)
            assert result.tvd <= epsilon
            assert result.jsd == pytest.approx(jensen_shannon(other, found.attention).item(), abs=1e-5)
            assert result.attention[0] == result.attention[-1] == 0 and sum(result.attention) == pytest.approx(1)
            assert result.n_tokens == len(result.attention) - 2


def test_results_depend_neither_on_order_nor_on_neighbours(make_lstm, word_tokenizer):
    settings = {"n_steps": 150, "learning_rate": 0.04}
    expected = adversarial_attention(make_lstm(), word_tokenizer, TEXTS, batch_size=1, **settings)
    found = adversarial_attention(make_lstm(), word_tokenizer, TEXTS[::-1], batch_size=4, **settings)[::-1]
    for one, other in zip(expected, found, strict=True):
        assert one.jsd == pytest.approx(other.jsd, abs=1e-5) and one.tvd == pytest.approx(other.tvd, abs=1e-5)
        assert one.attention == pytest.approx(other.attention, abs=1e-4)
    [other] = adversarial_attention(make_lstm(), word_tokenizer, TEXTS[4:5], seed=1, **settings)
    assert other.attention != pytest.approx(expected[4].attention, abs=1e-4)


def test_more_adversaries_and_one_alone(make_lstm, word_tokenizer):
    [alone] = adversarial_attention(make_lstm(), word_tokenizer, TEXTS[4:5], n_adversaries=1, n_steps=50, epsilon=1)
    [more] = adversarial_attention(make_lstm(), word_tokenizer, TEXTS[4:5], n_adversaries=8, n_steps=50, epsilon=1)
    assert 0 < alone.jsd < more.jsd <= math.log(2)


test_refusals = refuses(
    (
        lambda stub, stub_tokenizer: adversarial_attention(stub, stub_tokenizer, ["good"]),
        "Stub has no attention pooling",
    ),
    (lambda make_model, tokenizer: adversarial_attention(make_model(), tokenizer, [], n_steps=0), "n_steps is 0"),
    (
        lambda make_model, tokenizer: adversarial_attention(make_model(), tokenizer, [], epsilon=0),
        "epsilon is 0;.* at most 1",
    ),
    (lambda make_model, tokenizer: adversarial_attention(make_model(), tokenizer, [], epsilon=5), "epsilon is 5"),
    (
        lambda make_model, tokenizer: adversarial_attention(make_model(), tokenizer, [], epsilon=float("nan")),
        "epsilon is nan",
    ),
    (
        lambda make_model, tokenizer: adversarial_attention(make_model(), tokenizer, [], learning_rate=-1),
        "more than 0",
    ),
    (
        lambda make_model, tokenizer: adversarial_attention(make_model(), tokenizer, [], learning_rate=float("inf")),
        "learning_rate is inf",
    ),
)
