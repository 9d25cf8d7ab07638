"""Data with known decisive words: what it promises holds, and explainers can be checked against it."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from hf_vat.data.planted import PlantedVocabulary, planted_evidence, planted_tokenizer, planted_vocabulary
from hf_vat.errors import InputError
from hf_vat.inference import predict_outputs
from hf_vat.models.words import encode_words, split_words

VARIANTS = ["clean", "noisy", "negated"]
TINY = PlantedVocabulary(("good", "great"), ("bad", "dull"), ("film", "plot", "scene"))


def vote(words: list[str], vocabulary: PlantedVocabulary) -> int:
    """The rule written down: each polar word counts +1 or -1, the other way round right after a negator."""
    total = 0
    for before, word in zip([None, *words], words, strict=False):
        polarity = (word in vocabulary.positive) - (word in vocabulary.negative)
        total += -polarity if before in vocabulary.negators else polarity
    return total


def rows_of(split) -> list[tuple[list[str], int, list[int]]]:
    return [(row["text"].split(" "), row["label"], row["rationale"]) for row in split]


def without(words: list[str], position: int) -> list[str]:
    return words[:position] + words[position + 1 :]


@pytest.fixture(scope="module")
def data():
    return {variant: planted_evidence(4000, 10, 2000, variant) for variant in VARIANTS}


# Structure


@pytest.mark.parametrize("variant", VARIANTS)
def test_splits_columns_and_classes(data, variant):
    splits = data[variant]
    assert {name: len(split) for name, split in splits.items()} == {"train": 4000, "validation": 10, "test": 2000}
    assert splits["train"].column_names == ["text", "label", "rationale"]
    assert splits["train"].features["label"].names == ["negative", "positive"]
    for split in splits.values():
        assert sum(split["label"]) == len(split) // 2


@pytest.mark.parametrize(("share", "positives"), [(1 / 2, 30), (1 / 3, 20), (1 / 6, 10), (5 / 6, 50)])
def test_class_ratios_hold_in_every_split(share, positives):
    splits = planted_evidence(60, 60, 60, vocabulary=TINY, positive_share=share)
    assert [sum(split["label"]) for split in splits.values()] == [positives] * 3


def test_the_default_vocabulary_is_that_of_the_paper_and_never_changes():
    vocabulary = planted_vocabulary()
    assert [len(group) for group in vars(vocabulary).values()] == [50, 50, 1000, 2]
    assert len(set(vocabulary.words)) == 1102
    assert vocabulary == planted_vocabulary()
    assert vocabulary.positive[:2] == ("pogake", "lemepi")


def test_all_artificial_words_that_there_can_be_differ():
    assert len(set(planted_vocabulary(1, 1, 12**3 * 5**3 - 2).words)) == 216_000 + 2


def test_each_word_is_one_token():
    vocabulary = planted_vocabulary()
    tokenizer = planted_tokenizer(vocabulary)
    assert len(tokenizer) == 5 + 1102
    ids = tokenizer(" ".join(vocabulary.words), add_special_tokens=False)["input_ids"]
    assert ids == list(range(5, 5 + 1102))
    assert tokenizer("")["input_ids"] == [tokenizer.cls_token_id, tokenizer.sep_token_id]


# Rationales are the truth


@settings(max_examples=60)
@given(
    variant=st.sampled_from(VARIANTS),
    polar_words=st.integers(1, 4),
    more_neutral=st.integers(0, 5),
    rate=st.floats(0, 0.5),
    share=st.floats(0.1, 0.9),
    seed=st.integers(0, 2**32),
)
def test_rationales_decide_and_nothing_else_does(variant, polar_words, more_neutral, rate, share, seed):
    neutral_words = 2 * polar_words + more_neutral
    splits = planted_evidence(
        6,
        2,
        2,
        variant,
        vocabulary=TINY,
        polar_words=polar_words,
        neutral_words=neutral_words,
        opposite_rate=0 if variant == "clean" else rate,
        positive_share=share,
        seed=seed,
    )
    polar = {*TINY.positive, *TINY.negative}
    for split in splits.values():
        for row, (words, label, rationale) in zip(split, rows_of(split), strict=True):
            assert [word.text for word in split_words(row["text"])] == words
            assert len(rationale) == len(words)
            assert set(rationale) <= {0, 1}
            assert sum(word in polar for word in words) == polar_words
            assert sum(word in TINY.neutral for word in words) == neutral_words
            assert sum(word in TINY.negators for word in words) == (polar_words if variant == "negated" else 0)

            sign = 1 if label else -1
            kept = [word for word, decisive in zip(words, rationale, strict=True) if decisive]
            left = [word for word, decisive in zip(words, rationale, strict=True) if not decisive]
            # The rationale says the label with one voice, and the rest nothing, or in noisy data its opposite.
            speaking = sum(word in polar for word in kept)
            assert sign * vote(kept, TINY) == speaking
            assert sign * vote(left, TINY) == (speaking - polar_words if variant == "noisy" else 0)
            if variant != "noisy":
                assert speaking == polar_words
                assert sign * vote(words, TINY) == polar_words
                assert polar.isdisjoint(left)
            for position in [position for position, decisive in enumerate(rationale) if not decisive]:
                if words[position] not in polar:
                    assert vote(without(words, position), TINY) == vote(words, TINY)


def test_taking_a_decisive_negator_away_turns_its_polar_word(data):
    vocabulary = planted_vocabulary()
    turned = 0
    for words, label, rationale in rows_of(data["negated"]["test"]):
        for position, word in enumerate(words):
            if rationale[position] and word in vocabulary.negators:
                turned += 1
                assert vote(without(words, position), vocabulary) == 0  # one word for the class, one against
                assert vote(words, vocabulary) == (2 if label else -2)
    assert turned == pytest.approx(2000 * 2 * 0.25, abs=100)  # 3.6 standard deviations


# Statistics


def test_clean_texts_have_two_polar_words_of_their_class(data):
    vocabulary = planted_vocabulary()
    for words, label, rationale in rows_of(data["clean"]["test"]):
        group = vocabulary.positive if label else vocabulary.negative
        assert rationale == [int(word in group) for word in words]
        assert (sum(rationale), len(words)) == (2, 12)


def test_noise_replaces_one_polar_word_in_twenty(data):
    rationales = data["noisy"]["train"]["rationale"][:]
    counts = np.bincount([sum(rationale) for rationale in rationales], minlength=3)
    # Binomial with 2 draws of probability 0.95: 0.0025, 0.095, 0.9025; within 4 standard deviations.
    assert counts == pytest.approx(4000 * np.array([0.0025, 0.095, 0.9025]), abs=75)
    assert counts[0] == pytest.approx(10, abs=12.6)


def test_decisive_words_are_at_every_position_alike(data):
    frequency = np.mean(data["clean"]["train"]["rationale"][:], axis=0)
    assert frequency == pytest.approx(np.full(12, 2 / 12), abs=4 * np.sqrt(1 / 6 * 5 / 6 / 4000))


def test_the_words_outside_the_rationale_are_alike_in_both_classes(data):
    """A classifier that is given them alone learns nothing."""
    split = data["negated"]
    rest = [
        " ".join(word for word, decisive in zip(words, rationale, strict=True) if not decisive)
        for words, _, rationale in rows_of(split["train"]) + rows_of(split["test"])
    ]
    assert accuracy(rest[:4000], split["train"]["label"], rest[4000:], split["test"]["label"]) < 0.55


def accuracy(train_texts, train_labels, test_texts, test_labels, ngrams: int = 1) -> float:
    counter = CountVectorizer(ngram_range=(1, ngrams))
    classifier = LogisticRegression(C=1.0, max_iter=500).fit(counter.fit_transform(train_texts), train_labels)
    return classifier.score(counter.transform(test_texts), test_labels)


def bag_accuracy(splits, ngrams: int) -> float:
    train, test = splits["train"], splits["test"]
    return accuracy(train["text"], train["label"][:], test["text"], test["label"][:], ngrams)


def test_a_bag_of_words_decides_clean_texts(data):
    assert bag_accuracy(data["clean"], 1) > 0.99


def test_a_bag_of_words_cannot_decide_negated_texts(data):
    assert bag_accuracy(data["negated"], 1) < 0.78  # no such model can expect more than 0.75


@pytest.mark.parametrize(("rate", "most"), [(None, 0.78), (0.5, 0.55)])
def test_pairs_of_words_decide_negated_texts_and_at_rate_one_half_the_bag_says_nothing(rate, most):
    few = planted_vocabulary(5, 5, 20)  # so that each pair of words occurs often enough
    splits = planted_evidence(4000, 1, 2000, "negated", vocabulary=few, opposite_rate=rate)
    assert bag_accuracy(splits, 1) < most
    assert bag_accuracy(splits, 2) > 0.99


# Repeatability and input


@pytest.mark.parametrize("variant", VARIANTS)
def test_same_seed_same_data_and_splits_do_not_depend_on_each_other(variant):
    def rows(*sizes, seed=0):
        return {name: split.to_list() for name, split in planted_evidence(*sizes, variant, seed=seed).items()}

    first = rows(20, 10, 10)
    assert rows(20, 10, 10) == first
    other = rows(50, 5, 10)
    assert other["test"] == first["test"]
    assert rows(20, 5, 3)["train"] == first["train"]
    assert rows(20, 10, 10, seed=1)["test"] != first["test"]
    texts = [row["text"] for split in first.values() for row in split]
    assert len(set(texts)) == 40


def test_global_random_state_is_left_as_found():
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    planted_evidence(5, 5, 5, "negated")
    assert random.getstate() == before[0]
    assert all(np.array_equal(now, then) for now, then in zip(np.random.get_state(), before[1], strict=True))
    assert torch.equal(torch.get_rng_state(), before[2])


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"variant": "hard"}, "variant is 'hard'"),
        ({"train_size": 0}, "train_size is 0"),
        ({"test_size": -1}, "test_size is -1"),
        ({"validation_size": 2.5}, "validation_size is 2.5"),
        ({"polar_words": 0}, "polar_words is 0"),
        ({"neutral_words": -1}, "neutral_words is -1"),
        ({"variant": "negated", "neutral_words": 3}, "neutral_words is 3; .* at least 4"),
        ({"opposite_rate": 0.1}, "opposite_rate is 0.1; for the variant 'clean' it may be 0 to 0"),
        ({"variant": "noisy", "opposite_rate": 0.6}, "opposite_rate is 0.6"),
        ({"variant": "noisy", "opposite_rate": float("nan")}, "opposite_rate is nan"),
        ({"positive_share": 1.0}, "positive_share is 1.0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_numbers_out_of_range_are_named(settings, named):
    with pytest.raises(InputError, match=named):
        planted_evidence(**({"train_size": 2, "validation_size": 2, "test_size": 2} | settings))


@pytest.mark.parametrize(
    ("group", "words", "named"),
    [
        ("neutral", (), "no neutral words"),
        ("neutral", ("film", "good"), "'good' 2 times"),
        ("positive", ("Good",), "'Good'"),
        ("positive", ("well-made",), "'well-made'"),
    ],
)
def test_vocabularies_that_would_blur_the_truth_are_refused(group, words, named):
    with pytest.raises(InputError, match=named):
        replace(TINY, **{group: words})


def test_vocabulary_sizes_out_of_range_are_named():
    with pytest.raises(InputError, match="0 positive"):
        planted_vocabulary(positive=0)
    with pytest.raises(InputError, match="at most 216000"):
        planted_vocabulary(neutral=216_000)


# An explainer against the truth


def test_deleting_words_one_by_one_finds_the_planted_ones(planted_classifier):
    model, tokenizer, splits = planted_classifier
    test = splits["test"]
    encoded = encode_words(tokenizer, test["text"][:], max_length=32)
    full = predict_outputs(model, tokenizer, [text.input_ids for text in encoded])
    predicted = full.argmax(1)
    assert (predicted == np.array(test["label"])).mean() > 0.95

    shortened = [without(text.input_ids, 1 + word) for text in encoded for word in range(12)]  # 1 is [CLS]
    left = predict_outputs(model, tokenizer, shortened).reshape(200, 12, 2)
    rows = np.arange(200)
    drop = full[rows, predicted][:, None] - left[rows, :, predicted]  # [200, 12]
    top = np.argsort(-drop, axis=1, kind="stable")[:, :2]
    recall = np.take_along_axis(np.array(test["rationale"]), top, axis=1).sum(1) / 2
    assert recall.mean() > 0.7  # by chance 2/12
