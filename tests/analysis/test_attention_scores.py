"""Attention and polarity scores by hand, what holds for any texts, and types of words."""

import csv
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from hf_vat import EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig
from hf_vat.analysis import AttentionScores, ScoredWord, attention_scores, token_type, type_separation
from hf_vat.data.vocabulary import train_word_tokenizer
from hf_vat.errors import InputError
from hf_vat.explanations import explain, word_importance

TEXTS = ["good film", "bad bad film plot", "good plot, not bad", "film"]
LABELS = [1, 0, 1, 0]
TOKENIZER = train_word_tokenizer(TEXTS)


def word_model(encoder: str = "embedding", num_labels: int = 2, **settings) -> EncoderForVATClassification:
    words = WordEncoderConfig(vocab_size=len(TOKENIZER), encoder_type=encoder, embedding_size=6, dropout=0.5)
    given = {"attention_type": "scaled_dot", "bottleneck": "none", "head_layers": 1, "polarity_head": True}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = EncoderVATConfig(encoder=words, num_labels=num_labels, initializer_range=0.7, **given | settings)
        return EncoderForVATClassification(config).eval()


@pytest.mark.parametrize("context", ["average", "alone"])
def test_scores_of_dp_by_hand(context):
    model = word_model(attention_scale=2.0)
    embeddings = model.get_input_embeddings().weight.detach().double()
    v, w = (one.weight[0].detach().double() for one in (model.attention.score, model.learner_head.out_proj))
    ids = dict(zip(["good", "film", "bad"], TOKENIZER("good film bad")["input_ids"], strict=True))
    table = attention_scores(model, TOKENIZER, TEXTS, LABELS, context=context)
    rows = {row.word: row for row in table}
    assert set(rows) == {"good", "film", "bad", "plot", ",", "not"}
    for word, token in ids.items():
        assert rows[word].attention_score == pytest.approx(float(embeddings[token] @ v) / 2, abs=1e-6)
        assert rows[word].polarity_scores == (pytest.approx(float(embeddings[token] @ w), abs=1e-6),)
    assert [(rows[word].count, rows[word].counts) for word in ids] == [(2, (0, 2)), (3, (2, 1)), (3, (2, 1))]
    assert [rows[word].gamma for word in ids] == pytest.approx([1, -1 / 3, -1 / 3])
    odds = math.exp(rows["good"].attention_score - rows["film"].attention_score)
    alone, among = odds / (1 + odds), explain(model, TOKENIZER, TEXTS[2:3])[0].scores[0]
    assert rows["good"].attention == pytest.approx((alone + among) / 2, abs=1e-6)
    assert [row.attention_score for row in table] == sorted((row.attention_score for row in table), reverse=True)


WORD = st.sampled_from(["good", "Bad", "film", "plot", ",", "not", "unheard"])
CORPUS = st.lists(
    st.tuples(st.lists(WORD, min_size=1, max_size=7).map(" ".join), st.integers(0, 2)), min_size=1, max_size=6
)


@given(CORPUS)
@settings(max_examples=20)
@pytest.mark.parametrize("encoder", ["embedding", "affine"])
def test_alone_and_on_average_agree_where_the_encoder_sees_each_token_for_itself(encoder, corpus):
    model = word_model(encoder, 3)
    texts, labels = zip(*corpus, strict=True)
    average, alone = (
        attention_scores(model, TOKENIZER, texts, labels, context=context, batch_size=2)
        for context in ("average", "alone")
    )
    for one, other in zip(sorted(average), sorted(alone), strict=True):
        assert one.attention_score == pytest.approx(other.attention_score, abs=1e-5)
        assert one.polarity_scores == pytest.approx(other.polarity_scores, abs=1e-5)
        assert (one.count, one.attention, one.counts) == (other.count, other.attention, other.counts)


def test_an_lstm_sees_the_words_before():
    model = word_model("lstm")
    average, alone = (attention_scores(model, TOKENIZER, TEXTS, LABELS, context=one) for one in ("average", "alone"))
    scores = {row.word: row.attention_score for row in alone}
    assert any(abs(row.attention_score - scores[row.word]) > 1e-3 for row in average)
    found = model(**TOKENIZER(["bad"], return_tensors="pt"))
    assert scores["bad"] == pytest.approx(float(found.attention_scores[0, 0]), abs=1e-6)


@pytest.mark.parametrize("labels", [2, 3])
def test_logits_of_a_text_are_the_mean_of_its_words_weighted_by_their_attention(make_model, tokenizer, labels):
    """Of BERT, with words in pieces; each text is a table of its own, in which no word repeats."""
    model = make_model("att", head_layers=1, num_labels=labels).eval()
    for text in ("a good film", "unbelievable , the actor is dull", "Unbelievable"):
        table = attention_scores(model, tokenizer, [text], [0])
        logits = model(**tokenizer([text], return_tensors="pt")).logits[0].detach().double()
        expected = (logits[1:] - logits[:1] if labels == 2 else logits).tolist()
        total = sum(row.attention * np.array(row.polarity_scores) for row in table)
        assert total == pytest.approx(expected, abs=1e-5)
        assert sum(row.attention for row in table) == pytest.approx(1, abs=1e-6)
        mass = sum(math.exp(row.attention_score) for row in table)
        for row in table:
            assert row.attention == pytest.approx(math.exp(row.attention_score) / mass, rel=1e-4)


def test_words_and_weights_are_those_of_explanations(make_model, tokenizer):
    """For a head with two layers too; modes and random state are left as they were."""
    model = make_model("vat", hidden_dropout_prob=0.5).train()
    texts = ["A good film", "a bad, unbelievable film", "", "the film"]
    state = torch.random.get_rng_state()
    table = attention_scores(model, tokenizer, texts, [1, 0, 0, 1], batch_size=2)
    assert model.training and model.bert.encoder.layer[0].training and torch.equal(state, torch.random.get_rng_state())
    expected = {row.word: row for row in word_importance(explain(model, tokenizer, texts), "mean")}
    assert {row.word for row in table} == set(expected)
    for row in table:
        assert row.count == expected[row.word].count
        assert row.attention == pytest.approx(expected[row.word].importance, abs=1e-6)
    swapped = attention_scores(model, tokenizer, texts[::-1], [1, 0, 0, 1], batch_size=2)
    assert {row.word: row[3:5] for row in swapped} == {row.word: row[3:5] for row in table}  # to the bit, in any order


def test_names_of_classes_min_count_and_attention_of_other_texts():
    model = word_model(id2label={0: "neg", 1: "pos"})
    table = attention_scores(
        model, TOKENIZER, TEXTS, ["pos", "neg", "pos", "neg"], min_count=2, attention_texts=["good"], batch_size=1
    )
    assert {row.word: row.attention for row in table} == {"good": 1.0, "film": None, "bad": None, "plot": None}
    assert table.label_names == ["neg", "pos"] and table.type_names == ["pos", "neg", "neutral"]


def test_words_that_are_cut_off_do_not_count():
    table = attention_scores(word_model(), TOKENIZER, ["good film bad"], [1], max_length=2)
    assert sorted(row.word for row in table) == ["film", "good"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": []}, "no texts"),
        ({"texts": [" "], "labels": [0]}, "has a word that the model sees"),
        ({"labels": [1]}, "labels has 1 entries for 4"),
        ({"labels": [1, 0, None, 0]}, "are None"),
        ({"labels": [1, 0, 2, 0]}, r"labels\[2\] is 2"),
        ({"context": "global"}, "'global'; choose one of 'average', 'alone'"),
        ({"min_count": 4}, r"at least 4 times in the texts \(6 different"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"attention_texts": []}, "no texts"),
    ],
)
def test_what_cannot_be_used_is_refused(arguments, message):
    arguments = {"texts": TEXTS, "labels": LABELS} | arguments
    if not arguments["texts"]:
        arguments["labels"] = []
    with pytest.raises(InputError, match=message):
        attention_scores(word_model(), TOKENIZER, **arguments)


def test_models_without_attention_are_refused(make_model, tokenizer, stub, stub_tokenizer):
    with pytest.raises(InputError, match=r'pooling="max", and no attention.*pooling="attention"'):
        attention_scores(make_model("max"), tokenizer, ["good"], [1])
    with pytest.raises(InputError, match="Stub has no attention"):
        attention_scores(stub, stub_tokenizer, ["good"], [1])


# Types


@pytest.mark.parametrize(
    ("negative", "positive", "expected"),
    [
        (0, 6, 1),  # γ = 1, which the paper's open interval would leave out
        (6, 0, 0),  # γ = −1
        (0, 5, None),  # too rare
        (2, 6, None),  # γ = 0.5
        (2, 7, 1),
        (25, 8, 0),  # γ = −17 / 33
        (24, 8, None),
        (9, 11, None),  # |γ| = 0.1
        (10, 12, 2),  # |γ| = 2 / 22
        (100, 104, 2),
        (100, 105, None),  # five more
        (1, 1, 2),
        (0, 1, None),
    ],
)
def test_types_of_two_classes(negative, positive, expected):
    assert token_type([negative, positive]) == expected
    mirrored = None if expected is None else {0: 1, 1: 0, 2: 2}[expected]
    assert token_type([positive, negative]) == mirrored


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 10, 3), 1),  # 10 / 13
        ((0, 9, 3), None),  # 9 / 12
        ((5, 0, 1), None),
        ((6, 0, 1), 0),
        ((3, 3, 3), 3),
        ((11, 12, 10), 3),  # 12 / 33 is 0.03 above a third
        ((20, 24, 19), None),  # 24 / 63 is 0.048 above, but five more
        ((2, 3, 2), None),
        ((1, 0, 0), None),
    ],
)
def test_types_of_three_classes(counts, expected):
    assert token_type(counts) == expected


@given(st.lists(st.integers(0, 300), min_size=2, max_size=2).filter(any))
def test_the_rule_for_several_classes_is_the_papers_for_two(counts):
    negative, positive = counts
    gamma = (positive - negative) / (positive + negative)
    if min(abs(abs(gamma) - 0.5), abs(abs(gamma) - 0.1)) < 1e-12:
        return  # where floats may err
    expected = None
    if gamma > 0.5 and positive > 5:
        expected = 1
    elif gamma < -0.5 and negative > 5:
        expected = 0
    elif abs(gamma) < 0.1 and abs(positive - negative) < 5:
        expected = 2
    assert token_type(counts) == expected


# The table


def scored(word, kind, attention, *polarity, counts=(3, 3), weight=0.5):
    gamma = (counts[1] - counts[0]) / sum(counts)
    return ScoredWord(word, sum(counts), kind, attention, polarity, gamma, weight, tuple(counts))


TABLE = AttentionScores(
    [
        scored("good", "pos", 2.0, 1.5, counts=(0, 9)),
        scored("fine", "pos", 0.5, -0.5, counts=(0, 7)),
        scored("bad", "neg", 1.0, -2.0, counts=(8, 0)),
        scored("the", "neutral", 1.0, 0.25),
        scored("a", "neutral", -1.0, 0.0, weight=None),
        scored("rare", None, 5.0, 9.0, counts=(0, 1)),
    ],
    ["neg", "pos"],
)


def test_separation_by_hand():
    found = type_separation(TABLE)
    polar, neutral = [2.0, 0.5, 1.0], [1.0, -1.0]
    assert found.attention_auc == pytest.approx(roc_auc_score([1] * 3 + [0] * 2, polar + neutral)) == 4.5 / 6
    assert found.polarity_auc == 1.0
    assert found.sign_agreement == pytest.approx(2 / 3)
    assert list(found.means) == ["pos", "neg", "neutral"]
    assert found.means["pos"] == pytest.approx((2, 1.25, 1.5 / 2**0.5, 0.5, 2 / 2**0.5))
    assert found.means["neg"][:2] == (1, 1.0) and math.isnan(found.means["neg"].attention_score_sd)
    assert TABLE.by_type("attention") == {"pos": [0.5, 0.5], "neg": [0.5], "neutral": [0.5]}
    with pytest.raises(InputError, match="'polarity'; choose one of"):
        TABLE.by_type("polarity")


def test_separation_of_three_classes_does_not_see_what_is_added_to_all_logits():
    rows = [
        scored("engine", "auto", 1.0, 9.0, 7.0, 7.0, counts=(9, 0, 0)),
        scored("doctor", "med", 1.0, -3.0, -1.0, -3.0, counts=(0, 9, 0)),
        scored("gun", "guns", 1.0, 2.0, 1.5, 0.5, counts=(0, 0, 9)),
    ]
    found = type_separation(AttentionScores(rows, ["auto", "med", "guns"]))
    assert math.isnan(found.attention_auc)
    assert found.polarity_auc == pytest.approx(2 / 3)  # for "guns" the others have −1, and "gun" −1.25
    assert found.sign_agreement == pytest.approx(2 / 3)
    assert found.means["auto"].polarity_score == 2.0 and list(found.means) == ["auto", "med", "guns"]


def test_a_class_that_is_called_neutral():
    table = AttentionScores(
        [scored("so", "neutral", 1.0, 0.0, 3.0, 0.0), scored("the", "no class", 0.0, 0.0, 1.0, 0.0)],
        ["a", "neutral", "b"],
    )
    assert table.type_names == ["a", "neutral", "b", "no class"]
    assert [table.label_of(row) for row in table] == [1, None]


@given(
    st.lists(
        st.sampled_from(["a", "neutral", "no class", *(f"no class {n}" for n in range(2, 5))]), min_size=2, unique=True
    )
)
def test_whatever_classes_are_called_no_two_types_have_one_name(names):
    types = AttentionScores([], names).type_names
    assert sorted(types[:-1]) == sorted(names) and len(set(types)) == len(names) + 1


@pytest.mark.parametrize("of", ["attention", "learner_head"])
def test_a_model_that_has_diverged_has_no_scores(make_lstm, word_tokenizer, of):
    model = make_lstm()
    with torch.no_grad():
        next(getattr(model, of).parameters()).fill_(float("nan"))
    with pytest.raises(InputError, match="not finite; its training has diverged"):
        attention_scores(model, word_tokenizer, ["good film", ""], [0, 1])


def test_csv_has_a_row_for_each_word(tmp_path):
    path = tmp_path / "missing folder" / "words.csv"
    TABLE.to_csv(path)
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "word",
        "count",
        "type",
        "attention_score",
        "polarity_score",
        "gamma",
        "attention",
        "count_neg",
        "count_pos",
    ]
    assert [row["word"] for row in rows] == [row.word for row in TABLE] == ["rare", "good", "bad", "the", "fine", "a"]
    assert rows[0]["type"] == "" and rows[1]["type"] == "pos" and rows[5]["attention"] == ""
    assert [path.name for path in path.parent.iterdir()] == ["words.csv"]
    AttentionScores([scored("so", None, 1.0, 0.0, 3.0, 0.0)], ["a", "b", "c"]).to_csv(path)
    assert "polarity_score_a,polarity_score_b,polarity_score_c,gamma" in path.read_text()


def test_the_first_words():
    assert [row.word for row in TABLE.top(2)] == ["rare", "good"] and len(TABLE.top(99)) == len(TABLE) == 6
    with pytest.raises(InputError, match="n is 0"):
        TABLE.top(0)
