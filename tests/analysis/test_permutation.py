"""Attention in random orders."""

import math

import pytest
import torch
from checks import refuses

from hf_vat.analysis import Permutation, PermutationBin, permutation_table, permute_attention

TEXTS = ["good film", "the plot and the film", "", "bad", "very very bad and a film the plot good", "awful film"]


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def test_two_tokens_by_hand(by_hand, word_tokenizer):
    """α = (¾, ¼) and log-odds 2 and −1: ¾·2 − ¼ = 1.25, the other way round ¼·2 − ¾ = −0.25."""
    model = by_hand({"good": (math.log(3), 2.0), "film": (0.0, -1.0)})
    moved = sigmoid(1.25) - sigmoid(-0.25)
    found = set()
    for seed in range(20):
        [result] = permute_attention(model, word_tokenizer, ["good film"], n_permutations=1, seed=seed)
        assert result.max_attention == pytest.approx(0.75) and result[2:] == (1, 2)
        found.add(round(result.tvd, 5))
    assert found == {0.0, round(moved, 5)}


def test_the_median_is_taken(by_hand, word_tokenizer):
    """Of three tokens one has all the weight, and one of two others would change the class: two thirds of the orders move
    the prediction, by much or by little."""
    model = by_hand({"good": (30.0, 3.0), "bad": (0.0, -3.0), "film": (0.0, -3.0)})
    [result] = permute_attention(model, word_tokenizer, ["good bad film"], n_permutations=301)
    assert result.tvd == pytest.approx(sigmoid(3) - sigmoid(-3), abs=1e-5)


def test_where_attention_is_uniform_or_all_states_are_equal_nothing_moves(by_hand, word_tokenizer):
    uniform = by_hand({"good": (0.0, 2.0), "film": (0.0, -1.0), "plot": (0.0, 5.0)})
    [result] = permute_attention(uniform, word_tokenizer, ["good film plot"])
    assert result.tvd == pytest.approx(0, abs=1e-6) and result.max_attention == pytest.approx(1 / 3)
    [result] = permute_attention(uniform, word_tokenizer, ["good good good"])
    assert result.tvd == pytest.approx(0, abs=1e-6)


def test_a_text_of_fewer_than_two_tokens_has_none(make_model, tokenizer):
    empty, one = permute_attention(make_model(), tokenizer, ["", "bad"])
    assert math.isnan(empty.tvd) and empty.max_attention == 0 and empty.n_tokens == 0
    assert math.isnan(one.tvd) and one.max_attention == 1 and one.n_tokens == 1


@pytest.mark.parametrize("system", ["att", "vat", "vat_shared_mean"])
def test_special_tokens_take_no_part(make_model, tokenizer, system):
    """With one token between [CLS] and [SEP] nothing can be shuffled; and the prediction is that of the model."""
    model = make_model(system).eval()
    texts = ["good", "a dull film", "the plot is un unbelievable"]
    one, *others = permute_attention(model, tokenizer, texts)
    assert math.isnan(one.tvd) and one.max_attention == 1
    for text, result in zip(texts[1:], others, strict=True):
        with torch.no_grad():
            output = model(**tokenizer(text, return_tensors="pt"))
        assert result.prediction == output.logits.argmax().item() and 0 < result.tvd < 1
        assert result.max_attention == pytest.approx(output.token_importance.max().item(), abs=1e-6)


def test_results_depend_neither_on_order_nor_on_batches(make_lstm, word_tokenizer):
    expected = permute_attention(make_lstm(), word_tokenizer, TEXTS, batch_size=1)
    found = permute_attention(make_lstm(), word_tokenizer, TEXTS[::-1], batch_size=4)[::-1]
    for one, other in zip(expected, found, strict=True):
        assert one == pytest.approx(other, abs=1e-5, nan_ok=True)
    other = permute_attention(make_lstm(), word_tokenizer, TEXTS, seed=1, n_permutations=3)
    assert other[4].tvd != pytest.approx(expected[4].tvd, abs=1e-4)


def test_table_by_hand():
    nan = math.nan
    rows = [
        (0.1, 0.2, 1, 9),
        (0.3, 0.0, 1, 9),
        (0.9, 0.25, 1, 4),
        (nan, 1.0, 1, 1),
        (0.5, 1.0, 0, 3),
        (0.7, 0.75, 0, 3),
    ]
    assert permutation_table([Permutation(*row) for row in rows]) == [
        PermutationBin(0.75, 1.0, 0, 2, pytest.approx(0.6)),
        PermutationBin(0.0, 0.25, 1, 2, pytest.approx(0.2)),
        PermutationBin(0.25, 0.5, 1, 1, pytest.approx(0.9)),
    ]
    assert permutation_table([]) == []


test_refusals = refuses(
    (
        lambda stub, stub_tokenizer: permute_attention(stub, stub_tokenizer, ["good"]),
        "Stub has no attention pooling.*attention",
    ),
    (
        lambda make_model, tokenizer: permute_attention(make_model("max"), tokenizer, ["good"]),
        'pooling="max".*train one',
    ),
    (lambda make_model, tokenizer: permute_attention(make_model(), tokenizer, "good"), "one string"),
    (
        lambda make_model, tokenizer: permute_attention(make_model(), tokenizer, [], n_permutations=0),
        "n_permutations is 0",
    ),
    (lambda make_model, tokenizer: permute_attention(make_model(), tokenizer, [], batch_size=0), "batch_size is 0"),
    (lambda make_model, tokenizer: permute_attention(make_model(), tokenizer, [], seed=-1), "seed is -1"),
)
