"""What every function of hf_vat.analysis leaves as it was: random state, modes, gradients, weights; whatever is around it."""

import inspect
import random
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model

from hf_vat import EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig, analysis, explain
from hf_vat.training import modules_to_save

TEXTS = ["good film", "a bad bad film and very awful plot", "", "good", "the great film", "awful"]
LABELS = [1, 0, 1, 1, 1, 0]


def _pointing(model, tokenizer):
    return analysis.pointing_game(model, tokenizer, explain(model, tokenizer, TEXTS, labels=LABELS), least=0.0)


def _measure_adversary(model, tokenizer):
    adversary = analysis.train_adversary(model, tokenizer, TEXTS, 0.1, epochs=1)
    return analysis.measure_adversary(model, adversary, tokenizer, TEXTS)


def _probe(model, tokenizer):
    return analysis.probe(model, tokenizer, TEXTS, LABELS, train_texts=TEXTS, other=model).to_dict()


CALLS = {
    "adversarial_attention": lambda *model: analysis.adversarial_attention(*model, TEXTS, n_steps=3),
    "adversary_curve": lambda *model: analysis.adversary_curve(*model, TEXTS, TEXTS, [0.0, 0.1], epochs=1),
    "attention_scores": lambda *model: [
        list(analysis.attention_scores(*model, TEXTS, LABELS, context=context)) for context in ("average", "alone")
    ],
    "gradient_flow": lambda *model: analysis.gradient_flow(*model, TEXTS, LABELS).motion.tolist(),
    "measure_adversary": _measure_adversary,
    "mutual_information": lambda *model: analysis.mutual_information(*model, TEXTS, n_clusters=3).value,
    "permute_attention": lambda *model: str(analysis.permute_attention(*model, TEXTS, n_permutations=5)),
    "pointing_game": _pointing,
    "probe": _probe,
    "state_distances": lambda *model: analysis.state_distances(*model, TEXTS).conicity.tolist(),
    "train_adversary": lambda *model: [
        parameter.tolist() for parameter in analysis.train_adversary(*model, TEXTS, 0.1, epochs=1).parameters()
    ],
    "uniform_attention": lambda *model: analysis.uniform_attention(*model, TEXTS),
}
SURROUNDINGS = {"nothing": nullcontext, "no_grad": torch.no_grad, "inference_mode": torch.inference_mode}


@pytest.fixture
def model(word_tokenizer):
    """A DP with dropout, some of its modules in training mode and a parameter that is frozen."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = WordEncoderConfig(
            encoder_type="embedding", vocab_size=len(word_tokenizer), embedding_size=6, dropout=0.5
        )
        heads = {"attention_type": "scaled_dot", "head_layers": 1, "polarity_head": True, "bottleneck": "none"}
        made = EncoderForVATClassification(EncoderVATConfig(encoder=encoder, classifier_dropout=0.5, **heads)).train()
    made.attention.eval()
    made.learner_head.out_proj.weight.requires_grad_(False)
    return made


def _state(model):
    return {
        "weights": {name: value.tolist() for name, value in model.state_dict().items()},
        "modes": [module.training for module in model.modules()],
        "requires_grad": [parameter.requires_grad for parameter in model.parameters()],
        "gradients": [parameter.grad for parameter in model.parameters()],
        "settings": model.config.to_dict(),
        "random": (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()),
        "around": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
    }


def test_every_function_that_is_given_a_model_is_here():
    public = {name: getattr(analysis, name) for name in analysis.__all__}
    asking = {
        name
        for name, one in public.items()
        if inspect.isfunction(one) and next(iter(inspect.signature(one).parameters)) == "model"
    }
    assert asking == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_all_is_left_as_found_and_nothing_around_matters(name, model, word_tokenizer):
    CALLS[name](model, word_tokenizer)  # importing scikit-learn draws from Python's generator
    before, found = _state(model), []
    for around in SURROUNDINGS.values():
        with around():
            inside = _state(model)
            found.append(CALLS[name](model, word_tokenizer))
            assert _state(model) == inside
    assert _state(model) == before
    assert found[1:] == found[:-1]


@pytest.mark.parametrize("name", ["adversary_curve", "permute_attention", "attention_scores", "mutual_information"])
def test_a_wrapped_model_is_the_model(name, model, word_tokenizer):
    expected = CALLS[name](model, word_tokenizer)
    assert CALLS[name](torch.compile(model, backend="eager"), word_tokenizer) == expected
    config = LoraConfig(target_modules=["word_embeddings"], modules_to_save=modules_to_save(model))
    adapted = get_peft_model(model, config)
    before = _state(adapted)
    assert CALLS[name](adapted, word_tokenizer) == expected  # a new adapter adds nothing
    assert _state(adapted) == before
