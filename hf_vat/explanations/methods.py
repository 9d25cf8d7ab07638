"""The methods that `explain` offers.

A method is an entry of `METHODS`: a function from an [`Analysis`] to word scores, its settings, and what it costs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from hf_vat.errors import InputError, import_extra
from hf_vat.faithfulness.perturb import OPERATORS
from hf_vat.inference import whole_number
from hf_vat.models.attribution import CENTERS, of_log_odds
from hf_vat.models.words import EncodedText

from . import gradients, removal
from .analysis import Analysis, WordScores, text_generator
from .students import amortized, with_explainer


@dataclass(frozen=True)
class Method:
    """A way to score words.

    Attributes:
        scores: from the texts with the model's predictions to the scores of their words.
        settings: names and default values.
        cost: the number of model inputs that a text needs at most, beside the text itself. May refuse a text.
        needs: module that the method needs beside those that the package always has.
        reads: fields of the model's output that the method reads.
        asks: from the settings to what the model's forward pass is told, so that its output has them.
        draws: whether the method draws random numbers.
        at_once: whether the inputs for one target of a text are those for every other.
        fitted: whether the method needs something that was fitted to the model before.
        prepare: from the settings as they are given to those that the method reads, for a model and its tokenizer. May refuse
            them.
    """

    scores: Callable[[Analysis], list[WordScores]]
    settings: dict = field(default_factory=dict)
    cost: Callable[[EncodedText, dict], int] = lambda text, settings: 0
    needs: str | None = None
    reads: tuple[str, ...] = ()
    asks: Callable[[dict], dict] = lambda settings: {}
    draws: bool = False
    at_once: bool = False
    fitted: bool = False
    prepare: Callable[[dict, Any, Any], dict] = lambda settings, model, tokenizer: settings


def check_settings(method: str, /, **given) -> dict:
    """All settings of a method, with default values for those not given.

    Raises:
        InputError: if there is no such method, or it has no such setting, or a value is not of the setting's kind.
        MissingExtra: if the method needs a package that is not installed.
    """
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"Unknown method {method!r}; choose one of {', '.join(map(repr, METHODS))}.")
    needs, defaults = METHODS[method].needs, METHODS[method].settings
    if needs is not None:
        import_extra(needs)
    for name, value in given.items():
        if name not in defaults:
            allowed = ", ".join(defaults) or "no settings"
            raise InputError(f"method={method!r} has no setting {name!r}; it has {allowed}.")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise InputError(f"{name} is {value!r}; choose one of {', '.join(map(repr, _CHOICES[name]))}.")
        if isinstance(defaults[name], bool) and not isinstance(value, bool):
            raise InputError(f"{name} is {value!r}; it must be True or False.")
        if type(defaults[name]) is int:
            given[name] = whole_number(name, value, 1, _MOST_SAMPLES)
    return {**defaults, **given}


def _of_tokens(of_words: Callable, field: str, analysis: Analysis) -> list[WordScores]:
    """What the model says of tokens, made into scores of words by this method of [`EncodedText`]."""
    return [
        WordScores(of_words(text, values))
        for text, values in zip(analysis.texts, analysis.token_values[field], strict=True)
    ]


def _polarity(analysis: Analysis) -> list[WordScores]:
    head_bias = analysis.model.learner_head.out_proj.bias
    bias = np.zeros(len(analysis.problem.names)) if head_bias is None else head_bias.detach().double().cpu().numpy()
    results = []
    for place, (text, target) in enumerate(zip(analysis.texts, analysis.targets, strict=True)):
        attention, logits = (
            np.array(analysis.token_values[field][place]) for field in ("token_importance", "polarity_scores")
        )  # [T], [T, C]
        if analysis.problem.is_single_label:
            logits, of_head = _margins(logits - bias), _margins(bias)
        else:  # every label, or score, has a logit of its own
            logits, of_head = logits - bias, bias
        contributions = attention * logits[:, target]
        scores = text.word_scores(contributions)
        of_no_word = contributions.sum() - sum(scores)
        results.append(WordScores(scores, {"bias": float(of_head[target] + of_no_word)}))
    return results


def _attention_x_gradient(analysis: Analysis) -> list[WordScores]:
    results = []
    for place, (text, target) in enumerate(zip(analysis.texts, analysis.targets, strict=True)):
        values = torch.tensor(analysis.token_values["token_attribution"][place], dtype=torch.float64)
        values = values.reshape(len(text.input_ids), -1)  # [T, C], also where there is no token
        if analysis.problem.is_single_label:
            logits = analysis.problem.logits(torch.tensor(analysis.outputs[place], dtype=torch.float64))
            values = of_log_odds(values.unsqueeze(0), logits.unsqueeze(0)).squeeze(0)
        results.append(WordScores(text.word_scores(values[:, target].tolist())))
    return results


def _margins(logits: np.ndarray) -> np.ndarray:
    """Each class's logit minus the mean of the others', [..., C]: of two classes the log-odds."""
    classes = logits.shape[-1]
    return (classes * logits - logits.sum(-1, keepdims=True)) / (classes - 1)


def _random(analysis: Analysis) -> list[WordScores]:
    return [
        WordScores((text_generator(analysis.seed, text).random(len(text.words)) * text.seen).tolist())
        for text in analysis.texts
    ]


_MOST_SAMPLES = 10**6  # of one text, all in memory
_OPERATOR = {"operator": "delete"}
_CHOICES = {"operator": tuple(OPERATORS), "baseline": gradients.BASELINES, "center": CENTERS}
METHODS: dict[str, Method] = {
    "attention": Method(partial(_of_tokens, EncodedText.word_scores, "token_importance"), reads=("token_importance",)),
    "mask": Method(partial(_of_tokens, EncodedText.word_averages, "token_mask"), reads=("token_mask",)),
    "polarity": Method(_polarity, reads=("token_importance", "polarity_scores")),
    "attention_x_gradient": Method(
        _attention_x_gradient,
        {"center": CENTERS[0]},
        reads=("token_attribution",),
        asks=lambda settings: {"attribution_center": settings["center"]},
    ),
    "gradient": Method(gradients.gradient, cost=lambda text, settings: 1),
    "input_x_gradient": Method(gradients.input_x_gradient, cost=lambda text, settings: 1),
    "integrated_gradients": Method(
        gradients.integrated_gradients,
        {"n_steps": 50, "baseline": "pad"},
        cost=lambda text, settings: settings["n_steps"] + 2,
        needs="captum.attr",
    ),
    "occlusion": Method(removal.occlusion, _OPERATOR, cost=lambda text, settings: len(text.words) + 1, at_once=True),
    "lime": Method(
        removal.lime,
        {"n_samples": 1000, **_OPERATOR},
        cost=lambda text, settings: settings["n_samples"],
        needs="sklearn.linear_model",
        draws=True,
        at_once=True,
    ),
    "shapley": Method(
        removal.shapley,
        {"n_samples": 25, "exact": False, **_OPERATOR},
        cost=removal.shapley_cost,
        draws=True,
        at_once=True,
    ),
    "amortized": Method(
        amortized,
        {"explainer": None},
        cost=lambda text, settings: 1,
        at_once=True,
        fitted=True,
        prepare=with_explainer,
    ),
    "random": Method(_random, draws=True),
}
