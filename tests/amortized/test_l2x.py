"""L2X as an explainer after the fact: a selector that learns from a classifier's answers which words tell them."""

import json

import numpy as np
import pytest
import torch

from hf_vat.amortized import fit_l2x
from hf_vat.errors import InputError
from hf_vat.explanations import Explanation, explain
from hf_vat.faithfulness import precision_recall_f1_at_k


@pytest.fixture(scope="module")
def fitted(planted_classifier):
    model, tokenizer, splits = planted_classifier
    return fit_l2x(model, tokenizer, splits["train"]["text"][:], k=2, epochs=3)


def precision(explanations, rationales, k: int) -> float:
    """The share of decisive words among the k that are ranked first, mean over texts."""
    top = precision_recall_f1_at_k([explanation.scores for explanation in explanations], rationales, ks=[k])
    return top.macro()["precision"].item()


def test_the_planted_words_are_found_without_labels(fitted, planted_classifier):
    """2 of 12 words are decisive; either of them tells the class, so the second is not always chosen."""
    model, tokenizer, splits = planted_classifier
    texts, rationales = splits["test"]["text"][:], splits["test"]["rationale"][:]
    found, chance = fitted.explain(texts), explain(model, tokenizer, texts, "random")
    assert precision(chance, rationales, 2) < 0.25
    assert precision(found, rationales, 1) > 0.9
    assert precision(found, rationales, 2) > 0.65


def test_the_model_is_explained_and_not_the_task(planted_classifier):
    """A model that looks for one neutral word instead."""
    model, tokenizer, splits = planted_classifier
    texts = splits["train"]["text"][:500]
    word = sorted({word for text in texts for word in text.split()})[0]
    token = tokenizer.convert_tokens_to_ids(word)

    class Looks(torch.nn.Module):
        config, device = model.config, model.device

        def forward(self, input_ids, attention_mask):
            there = (input_ids == token).any(1).float()
            return type(model(input_ids[:1]))(logits=torch.stack([-4 * there + 2, 4 * there - 2], 1))

    mixed = [f"{text} {word}" if number % 2 else text for number, text in enumerate(texts)]
    explanations = fit_l2x(Looks(), tokenizer, mixed, k=1, epochs=10).explain(mixed[1::2])
    assert np.mean([np.argmax(e.scores) == e.words.index(word) for e in explanations]) > 0.9


def test_results_are_explanations(fitted, planted_classifier):
    model, tokenizer, splits = planted_classifier
    texts = [
        splits["test"]["text"][0],
        "",
        splits["test"]["text"][1] + " " + splits["test"]["text"][2],
        ["pogake", "new"],
    ]
    explanations = fitted.explain(texts, labels=[1, 0, 1, 0], batch_size=2)
    expected = explain(model, tokenizer, texts, "random", labels=[1, 0, 1, 0])
    for ours, theirs in zip(explanations, expected, strict=True):
        for name in ("text", "words", "spans", "seen", "prediction", "target", "gold", "model"):
            assert getattr(ours, name) == getattr(theirs, name)
        assert ours.method == "l2x" and ours.settings == {"k": 2, "epochs": 3, "batch_size": 32, "seed": 0}
        assert min(ours.scores, default=0) >= 0 and sum(ours.scores) == pytest.approx(1 if ours.words else 0, abs=1e-5)
        assert Explanation.from_dict(json.loads(json.dumps(ours.to_dict()))) == ours
    for text, together in zip(texts, explanations, strict=True):  # padding and neighbours do not matter
        [alone] = fitted.explain([text])
        assert alone.scores == pytest.approx(together.scores, abs=1e-5)
    assert fitted.explain([]) == []


def test_what_is_random_depends_on_the_seed_alone(planted_classifier):
    model, tokenizer, splits = planted_classifier
    texts = splits["train"]["text"][:40]
    state, training = torch.random.get_rng_state(), model.training

    def scores(**settings):
        return [e.scores for e in fit_l2x(model, tokenizer, texts, k=2, epochs=1, **settings).explain(texts[:3])]

    first, second = scores(), scores()
    assert first == second != scores(seed=1)
    assert torch.equal(torch.random.get_rng_state(), state) and model.training == training


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"texts": []}, "no texts to learn from"),
        ({"texts": "pogake"}, "give a list of texts"),
        ({"k": 0}, "k is 0; it must be at least 1"),
        ({"epochs": 1.5}, "epochs is 1.5; it must be a whole number"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_wrong_arguments_say_what_is_allowed(planted_classifier, settings, message):
    model, tokenizer, _ = planted_classifier
    with pytest.raises(InputError, match=message):
        fit_l2x(model, tokenizer, **({"texts": ["pogake"]} | settings))
