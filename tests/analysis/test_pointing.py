"""The pointing game on texts of two classes."""

import pytest

from hf_vat.analysis import pointing
from hf_vat.analysis.pointing import pointing_game
from hf_vat.errors import InputError
from hf_vat.explanations import explain


@pytest.fixture(scope="module")
def data(planted_classifier):
    """Model, tokenizer, twelve texts and their classes."""
    model, tokenizer, splits = planted_classifier
    rows = splits["test"][:12]
    assert 3 <= sum(rows["label"]) <= 9
    return model, tokenizer, rows["text"], rows["label"]


@pytest.fixture(scope="module")
def explained(data):
    model, tokenizer, texts, labels = data
    return explain(model, tokenizer, texts, "attention", labels=labels)


def test_each_text_is_used_once_beside_one_of_another_class(stub, stub_tokenizer, monkeypatch):
    """The stub adds up the weights of words, so occlusion finds the word that decides."""
    texts = {"a good film": 1, "very good movie": 1, "a bad film": 0, "bad": 0, "movie but bad": 0}
    explanations = explain(stub, stub_tokenizer, list(texts), "random", labels=list(texts.values()))
    seen = []

    def watch(model, tokenizer, texts, *args, **settings):
        seen.extend(texts)
        return explain(model, tokenizer, texts, *args, **settings)

    monkeypatch.setattr(pointing, "explain", watch)
    points = pointing_game(stub, stub_tokenizer, explanations, "occlusion", k=1, least=0.5)
    assert len(seen) == len(points) == 2
    for text, point in zip(seen, points, strict=True):
        halves = [(one, other) for one in texts for other in texts if f"{one} {other}" == text]
        assert len(halves) == 1 and {texts.pop(half) for half in halves[0]} == {0, 1}
        bad = next(half for half in halves[0] if "bad" in half)  # weighs more than good, so it is predicted
        assert point == (True, 1.0, len(bad.split()) / len(text.split()))


def test_it_depends_on_the_seed_alone(data, explained):
    model, tokenizer, *_ = data
    one, same, other = (
        pointing_game(model, tokenizer, explained, "random", least=0.5, seed=seed) for seed in (0, 0, 1)
    )
    assert one == same and one != other


def test_texts_that_are_uncertain_or_of_one_class_make_no_pair(data, explained):
    model, tokenizer, *_ = data
    assert pointing_game(model, tokenizer, explained, least=1.1) == []
    assert pointing_game(model, tokenizer, [one for one in explained if one.gold], least=0.5) == []


def test_pairs_that_the_model_would_cut_are_left_out(data, explained):
    model, tokenizer, *_ = data
    assert pointing_game(model, tokenizer, explained, least=0.5, max_length=20) == []


def test_gold_classes_are_needed(data):
    model, tokenizer, texts, _ = data
    with pytest.raises(InputError, match="no gold class"):
        pointing_game(model, tokenizer, explain(model, tokenizer, texts, "random"))
