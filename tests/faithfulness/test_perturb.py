from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_vat import (
    EncoderForVATClassification,
    EncoderVATConfig,
    EncoderVMaskConfig,
    EncoderWithVMask,
    WordEncoderConfig,
    explain,
)
from hf_vat.data import train_word_tokenizer
from hf_vat.errors import InputError
from hf_vat.faithfulness import OPERATORS, Faithfulness, Operator, random_ranking, rank_words
from hf_vat.inference import absent
from hf_vat.models.words import EncodedText, encode_words, split_words

UNKNOWN = 1


def encoded_by_hand():
    """ "ab c d": "ab" in two pieces, "c" and "d" share a token, and one token belongs to no word."""
    return EncodedText(
        "ab c d",
        split_words("ab c d"),
        input_ids=[2, 10, 11, 12, 13, 3],
        token_words=[(), (0,), (0,), (), (1, 2), ()],
        special=[True, False, False, False, False, True],
    )


DELETE = Operator("delete", UNKNOWN)


def without(operator, encoded, positions):
    kept = [position not in positions for position in range(len(encoded.words))]
    [ids] = operator.keep(encoded, [kept])
    return ids


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ([], [2, 10, 11, 12, 13, 3]),
        ([0], [2, 12, 13, 3]),
        ([1], [2, 10, 11, 12, 3]),
        ([2], [2, 10, 11, 12, 3]),
        ([0, 1, 2], [2, UNKNOWN, 3]),
        ([0, 1], [2, UNKNOWN, 3]),  # the token that "d" shares goes with "c"
    ],
)
def test_delete(positions, expected):
    assert without(DELETE, encoded_by_hand(), positions) == expected


def test_mask_and_pad_keep_the_length():
    assert without(Operator("mask", 99), encoded_by_hand(), [0]) == [2, 99, 99, 12, 13, 3]
    assert without(Operator("mask", 99), encoded_by_hand(), [0, 1, 2]) == [2, 99, 99, 12, 99, 3]
    assert without(Operator("pad", 99), encoded_by_hand(), [2]) == [2, 10, 11, 12, absent(99), 3]
    assert absent(99) < 0 and absent(absent(99)) == 99


def test_many_perturbations_at_once():
    kept = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 0]], dtype=bool)
    assert DELETE.keep(encoded_by_hand(), kept) == [[2, 10, 11, 12, 13, 3], [2, 12, 13, 3], [2, UNKNOWN, 3]]
    assert DELETE.keep(encoded_by_hand(), kept[:0]) == []


def test_unknown_token_stands_where_the_words_were():
    text = EncodedText("a", split_words("a"), [7, 9, 3, 2], [(), (0,), (), ()], [True, False, True, True])
    assert without(DELETE, text, [0]) == [7, UNKNOWN, 3, 2]


def test_no_special_tokens():
    text = EncodedText("a", split_words("a"), [9], [(0,)], [False])
    assert without(DELETE, text, [0]) == [UNKNOWN]


def test_a_text_without_words_stays_as_it_is():
    text = EncodedText("", [], [2, 3], [(), ()], [True, True])
    for name in OPERATORS:
        assert Operator(name, UNKNOWN).keep(text, np.zeros((2, 0))) == [[2, 3], [2, 3]]


def test_words_beyond_the_maximum_length_do_not_slide_in(stub_tokenizer):
    [text] = encode_words(stub_tokenizer, ["good good bad bad bad"], max_length=4)
    good = stub_tokenizer.convert_tokens_to_ids("good")
    assert without(DELETE, text, [0]) == [stub_tokenizer.cls_token_id, good, stub_tokenizer.sep_token_id]


def test_operators_take_their_tokens_from_the_tokenizer(tokenizer, stub_tokenizer):
    assert Operator.of("delete", tokenizer).token_id == tokenizer.unk_token_id
    assert Operator.of("mask", tokenizer).token_id == tokenizer.mask_token_id != tokenizer.unk_token_id
    assert Operator.of("mask", stub_tokenizer).token_id == stub_tokenizer.unk_token_id, "it has no mask token"
    with pytest.raises(InputError, match="no operator 'drop'; there are delete, mask, pad"):
        Operator.of("drop", tokenizer)
    stub_tokenizer = deepcopy(stub_tokenizer)
    stub_tokenizer.unk_token = None
    assert Operator.of("pad", stub_tokenizer).token_id == stub_tokenizer.pad_token_id
    for name in ("delete", "mask"):
        with pytest.raises(InputError, match=f"operator='{name}' needs a token"):
            Operator.of(name, stub_tokenizer)


@pytest.mark.parametrize(
    ("family", "config"), [(EncoderForVATClassification, EncoderVATConfig), (EncoderWithVMask, EncoderVMaskConfig)]
)
def test_f30_word_encoders_never_learn_the_mask_token_so_the_unknown_one_stands_for_words(family, config):
    tokenizer = train_word_tokenizer(["a good film", "bad"])
    assert tokenizer.mask_token_id not in (None, tokenizer.unk_token_id)
    encoder = WordEncoderConfig(vocab_size=len(tokenizer), encoder_type="cnn", embedding_size=4, hidden_size=6)
    model = family(config(encoder=encoder)).eval()
    assert Operator.of("mask", tokenizer, model).token_id == tokenizer.unk_token_id

    asked = []
    model.register_forward_pre_hook(
        lambda module, args, kwargs: asked.extend(kwargs["input_ids"].tolist()), with_kwargs=True
    )
    explain(model, tokenizer, ["a good film"], "occlusion", operator="mask")
    Faithfulness(model, tokenizer, ["a good film"], [0], ks=(1,), operator="mask").measure([[0, 1, 0]], "given")
    ids, unknown = tokenizer("a good film")["input_ids"], tokenizer.unk_token_id
    assert [ids[0], unknown, ids[2]] in asked
    assert not any(tokenizer.mask_token_id in row for row in asked)
    with pytest.raises(InputError, match=r'never learns its mask token; use baseline="unk"'):
        explain(model, tokenizer, ["a good film"], "integrated_gradients", baseline="mask")


def test_f30_other_models_keep_the_mask_token(make_model, tokenizer):
    assert Operator.of("mask", tokenizer, make_model()).token_id == tokenizer.mask_token_id


def test_rank_words_breaks_ties_by_position_and_takes_the_sign():
    assert rank_words([1, -5, 3, 1, -np.inf], [4, 3, 1, 0]) == [0, 3, 1, 4]


@pytest.mark.parametrize("scores", [[0.5, float("nan")], [0.5, None], ["0.5", "1"], 3.0, [[1.0, 2.0]]])
def test_rank_words_refuses_what_has_no_rank(scores):
    with pytest.raises(InputError, match=r"NaN|numbers"):
        rank_words(scores, [0])


def test_rankings_are_plain_integers():
    assert {type(p) for p in rank_words(np.array([1.0, 2.0]), np.array([0, 1]))} == {int}
    assert {type(p) for p in random_ranking(np.array([0, 1]), 0, 0)} == {int}


@given(st.lists(st.sampled_from("abc "), min_size=1).map("".join), st.randoms(use_true_random=False))
def test_deletions_are_nested(text, random):
    words = split_words(text)
    encoded = EncodedText(
        text, words, [2, *range(10, 10 + len(words)), 3], [(), *((p,) for p in range(len(words))), ()],
        [True, *[False] * len(words), True],
    )  # fmt: skip
    ranking = list(range(len(words)))
    random.shuffle(ranking)
    lefts = [without(DELETE, encoded, ranking[:k]) for k in range(len(words) + 1)]
    for k, (left, fewer) in enumerate(pairwise(lefts)):
        assert set(fewer) - {UNKNOWN} < set(left)
        assert left[1:-1] == sorted(left[1:-1])
        assert len(left) == 2 + len(words) - k
    assert {(left[0], left[-1]) for left in lefts} == {(2, 3)}


@given(st.lists(st.integers(0, 40), unique=True), st.integers(0, 9), st.integers(0, 99))
def test_random_ranking_is_a_reproducible_permutation(candidates, seed, example):
    state = np.random.get_state()[1].tolist()
    ranking = random_ranking(candidates, seed, example)
    assert sorted(ranking) == sorted(candidates)
    random_ranking(candidates, seed + 1, example + 1)
    assert random_ranking(candidates, seed, example) == ranking
    assert np.random.get_state()[1].tolist() == state


def test_random_ranking_differs_between_seeds_and_examples():
    draws = {tuple(random_ranking(range(20), seed, example)) for seed in range(3) for example in range(3)}
    assert len(draws) == 9
