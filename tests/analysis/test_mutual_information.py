"""Mutual information of words and states, by hand and at its limits, and how far states are from embeddings."""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch
from checks import refuses
from hypothesis import given
from hypothesis import strategies as st

from hf_vat import (
    BertForVATClassification,
    BertVATConfig,
    EncoderForVATClassification,
    EncoderVATConfig,
    WordEncoderConfig,
)
from hf_vat.analysis import mutual_information, state_distances
from hf_vat.analysis.information import plug_in_information
from hf_vat.data.vocabulary import train_word_tokenizer
from hf_vat.errors import InputError

pytest.importorskip("sklearn")

TEXTS = ["a good film", "a bad film", "good good", "the plot and the film", "bad plot"]


def make(encoder_type="lstm", **settings):
    """An untrained model on words, whose states are 8 wide, as are its embeddings, with its tokenizer."""
    tokenizer = train_word_tokenizer(TEXTS, model_max_length=32)
    sizes = {"embedding_size": 8, "hidden_size": 8, "vocab_size": len(tokenizer), "dropout": 0.0}
    encoder = WordEncoderConfig(encoder_type=encoder_type, initializer_range=1.0, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return EncoderForVATClassification(
            EncoderVATConfig(encoder=encoder, bottleneck="none", **settings)
        ).eval(), tokenizer


@pytest.fixture(scope="module")
def lstm():
    return make()


@pytest.fixture
def bert(tokenizer):
    """Which puts special tokens around a text."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    return BertForVATClassification(BertVATConfig(vocab_size=len(tokenizer), bottleneck="none", **sizes)), tokenizer


def test_special_tokens_and_padding_take_no_part(bert):
    found = mutual_information(*bert, ["a good film", ""])
    assert found.n_pairs == 3 and found.by_text[1] == 0
    assert state_distances(*bert, ["a good film", ""]).distance[1] == 0


# The estimate


def test_plug_in_information_by_hand():
    words, clusters = np.array([3, 3, 3, 3, 7, 7, 7, 7]), np.array([0, 0, 0, 1, 1, 1, 1, 0])
    entropy, value, parts = plug_in_information(words, clusters)
    assert entropy == pytest.approx(math.log(2))
    # three eighths twice at a ratio of 3/2, one eighth twice at 1/2
    assert value == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert parts == pytest.approx([math.log(ratio) for ratio in (1.5, 1.5, 1.5, 0.5, 1.5, 1.5, 1.5, 0.5)])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=60))
def test_information_is_that_of_scikit_learn_symmetric_and_within_the_entropies(pairs):
    from sklearn.metrics import mutual_info_score

    words, clusters = np.array(pairs).T
    entropy, value, _ = plug_in_information(words, clusters)
    other, swapped, _ = plug_in_information(clusters, words)
    assert value == pytest.approx(mutual_info_score(words, clusters), abs=1e-9)
    assert value == pytest.approx(swapped, abs=1e-9) and value <= min(entropy, other) + 1e-9


def test_states_that_are_the_words_tell_all_of_them():
    found = mutual_information(*make("embedding"), TEXTS)
    counts = np.array([3, 3, 2, 2, 2, 2, 1])  # film, good, a, bad, plot, the, and
    share = counts / counts.sum()
    assert (found.n_pairs, found.n_words, found.n_clusters) == (15, 7, 7)
    assert found.value == pytest.approx(-(share * np.log(share)).sum()) == pytest.approx(found.entropy)
    assert found.share == pytest.approx(1) and found.difference == found.value - found.shuffled


def test_what_has_nothing_to_do_with_the_words_tells_what_shuffled_pairs_tell():
    generator = np.random.default_rng(0)
    words, clusters = generator.integers(50, size=20_000), generator.integers(40, size=20_000)
    value, shuffled = (plug_in_information(one, clusters)[1] for one in (words, generator.permutation(words)))
    assert value > 0.04 and abs(value - shuffled) < 0.005  # 49 · 39 / 40,000 for nothing


def test_parts_of_texts_make_up_the_value_and_order_does_not_matter(lstm):
    found = mutual_information(*lstm, TEXTS, n_clusters=4)
    assert found.by_text.mean() == pytest.approx(found.value)
    backwards = mutual_information(*lstm, TEXTS[::-1], n_clusters=4)
    assert backwards.value == found.value and backwards.by_text[::-1].tolist() == found.by_text.tolist()


def test_the_most_frequent_words_alone_and_no_more_pairs_than_asked_for(lstm):
    few = mutual_information(*lstm, TEXTS, n_words=2, n_clusters=3)
    assert (few.n_words, few.n_pairs) == (2, 6)  # film and good
    assert few.entropy == pytest.approx(math.log(2)) and few.n_clusters == 3
    drawn = [mutual_information(*lstm, TEXTS, n_pairs=9, seed=seed) for seed in (0, 0, 1)]
    assert {one.n_pairs for one in drawn} == {9}
    assert drawn[0].value == drawn[1].value and drawn[0].value != drawn[2].value


def test_the_layer_of_words_is_the_embeddings_and_the_model_stays_as_it_was(lstm):
    model, tokenizer = lstm
    model.train()
    before = torch.random.get_rng_state()
    words = mutual_information(model, tokenizer, TEXTS, layer="words")
    assert words.share == pytest.approx(1)
    assert model.training and torch.equal(before, torch.random.get_rng_state())
    model.eval()


# Distances


def test_distances_are_those_of_the_states(lstm):
    model, tokenizer = lstm
    found = state_distances(model, tokenizer, TEXTS)
    ids = torch.tensor([tokenizer("a bad film")["input_ids"]])
    tokens = model.token_states(ids, words=True)
    states, words = tokens.states[0].detach().numpy(), tokens.words[0].detach().numpy()

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    assert found.distance[1] == pytest.approx(np.linalg.norm(states - words, axis=1).mean(), rel=1e-5)
    assert found.cosine[1] == pytest.approx(np.mean(list(map(cosine, states, words))), rel=1e-4)
    assert found.conicity[1] == pytest.approx(np.mean([cosine(state, states.mean(0)) for state in states]), rel=1e-4)
    assert found.conicity[2] < 1


def test_states_that_are_the_words_are_at_no_distance_and_wider_ones_at_none():
    found = state_distances(*make("embedding"), TEXTS)
    assert not found.distance.any() and found.cosine[0] == pytest.approx(1) and found.conicity[2] == pytest.approx(1)
    wider = state_distances(*make(word_objective="concat"), TEXTS)
    assert wider.distance is None and wider.cosine is None and wider.conicity.shape == (5,)


@pytest.mark.parametrize("measure", [mutual_information, state_distances])
def test_a_model_that_has_diverged_is_refused(measure, lstm):
    model, tokenizer = deepcopy(lstm[0]), lstm[1]
    with torch.no_grad():
        model.get_input_embeddings().weight[:] = float("nan")
    with pytest.raises(InputError, match="not finite; its training has diverged"):
        measure(model, tokenizer, TEXTS)


test_refusals = refuses(
    (lambda lstm: mutual_information(*lstm, TEXTS, layer="heads"), "layer is 'heads'; it must be one of states, words"),
    (lambda lstm: mutual_information(*lstm, TEXTS, n_clusters=0), "n_clusters is 0"),
    (lambda bert: mutual_information(*bert, [""]), "None of the 1 texts has a token"),
    (lambda lstm: mutual_information(*lstm, []), "There are no texts"),
    (lambda: state_distances(*make(pooling="mean"), TEXTS), 'pooling="mean", and no attention'),
)
