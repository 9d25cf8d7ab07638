"""What a slow method says of the words of many texts, for every class, from which a student learns."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from hf_vat.explanations import METHODS, Explanation, explain
from hf_vat.explanations.methods import check_settings
from hf_vat.explanations.removal import LIME_PENALTY, lime_subsets
from hf_vat.faithfulness.perturb import Operator
from hf_vat.models.words import EncodedText

TEACHERS = tuple(name for name, method in METHODS.items() if method.at_once and not method.fitted)
ADDS_UP = ("shapley",)  # teachers whose scores are f(text) - f(no word) together
# What the explained variance of a student is a share of, on texts that it has not learned from.
EXPLAINED = dict.fromkeys(TEACHERS, "the squared scores of its teacher") | {
    "lime": "the variance of what the classifier says of subsets of their words"
}
_DEFAULTS: dict[str, dict] = {
    "shapley": {"n_samples": 4},
    "lime": {"n_samples": 32},
}  # fewer than where one text matters


@dataclass(frozen=True)
class Regression:
    """What a linear model of a text is fitted to: random subsets of its words, and weighted moments, about the means, of what the
    classifier says of them.

    The mean squared error of word scores s of a class is `variance - 2 s·outputs + |design s|²`.

    Attributes:
        kept: the words of each subset, [S, n].
        weights: of the subsets, which add up to 1, [S].
        outputs: covariance of words and what the classifier says, [n, C].
        variance: of what it says, [C].
    """

    kept: np.ndarray
    weights: np.ndarray
    outputs: np.ndarray
    variance: np.ndarray

    @property
    def design(self) -> np.ndarray:
        """Which words are there, about the mean and times the roots of the weights, [S, n]. It is made when it is needed: of long
        texts it takes far more memory than the subsets, and their covariances take more yet."""
        return _design(self.kept, self.weights)


@dataclass(frozen=True)
class Taught:
    """A text with its teacher's scores.

    Attributes:
        text: as the classifier reads it.
        scores: of the words that it sees, [n, C].
        outputs: what the classifier says of it, [C].
        regression: of a teacher that fits a linear model, which the student fits in its place.
    """

    text: EncodedText
    scores: np.ndarray
    outputs: np.ndarray
    regression: Regression | None = None


def teacher_settings(teacher: str, given: dict) -> dict:
    """All settings of a teacher.

    Raises:
        InputError: if it has no such setting, or a value is none of its.
    """
    return check_settings(teacher, **{**_DEFAULTS.get(teacher, {}), **given})


def has_second_round(teacher: str, settings: dict) -> bool:
    """Whether the teacher says how sure it is of a text."""
    return teacher == "shapley" and not settings["exact"] and settings["n_samples"] >= 4


def teaching_cost(texts: list[EncodedText], teacher: str, settings: dict) -> int:
    """About how many model inputs the teacher's scores of texts take.

    Raises:
        InputError: if the teacher refuses a text.
    """
    cost = sum(METHODS[teacher].cost(text, settings) for text in texts)
    return cost + cost // 2 if has_second_round(teacher, settings) else cost


def teach(
    model,
    tokenizer,
    texts: list[EncodedText],
    teacher: str,
    settings: dict,
    batch_size: int,
    seed: int,
    folder: Path | None,
    bar: tqdm,
) -> list[Taught]:
    """Scores of the words of texts for every class, label or score.

    Shapley values come in two rounds: the half of the texts whose pairs of orders disagree most get as many orders again.

    Args:
        folder: takes the scores as they are made, `teacher-1.jsonl` and `teacher-2.jsonl`; the same call goes on from there.
    """
    classes = model.config.num_labels

    def asked(some: list[EncodedText], number: int) -> list[list[Explanation]]:
        explanations = explain(
            model,
            tokenizer,
            some,
            teacher,
            target=[list(range(classes))] * len(some),
            batch_size=batch_size,
            seed=seed + number - 1,
            save_to=None if folder is None else folder / f"teacher-{number}.jsonl",
            bar=bar,
            **settings,
        )
        return [explanations[place : place + classes] for place in range(0, len(explanations), classes)]

    rounds = [[of_text] for of_text in asked(texts, 1)]
    if has_second_round(teacher, settings):
        errors = [np.mean([one.details["standard_error"] for one in first] or 0.0) for [first] in rounds]
        unsure = sorted(np.argsort(errors, kind="stable")[len(texts) - len(texts) // 2 :].tolist())
        again = asked([texts[place] for place in unsure], 2) if unsure else []
        for place, of_text in zip(unsure, again, strict=True):
            rounds[place].append(of_text)
    taught = [_taught(text, of_text) for text, of_text in zip(texts, rounds, strict=True)]
    if teacher != "lime":
        return taught
    samples = settings["n_samples"]
    return [
        replace(one, regression=lime_regression(one, first, samples, seed))
        for one, [first] in zip(taught, rounds, strict=True)
    ]


def lime_regression(taught: Taught, explanations: list[Explanation], n_samples: int, seed: int) -> Regression:
    """What LIME has fitted to, from what it has found: coefficients c of classes solve (designᵀ design + penalty) c = outputs.

    One text's few subsets do not tell its coefficients, but those of many texts tell a student's. So it is fitted to the subsets
    themselves, as FastSHAP is to those of Shapley values (Jethani et al. 2022, eq. 5), and not to each text's coefficients.
    """
    kept, weights = lime_subsets(taught.text, n_samples, seed)
    total = weights.sum()
    weights, found = weights / total, taught.scores
    design = _design(kept, weights)
    fitted = design.T @ (design @ found)
    outputs = fitted + LIME_PENALTY / total * found
    explained = (found * (2 * outputs - fitted)).sum(0)  # [C], of the variance
    shares = np.array([one.details["r2"] for one in explanations])
    variance = np.divide(explained, shares, out=np.zeros_like(explained), where=shares > 0)
    return Regression(kept, weights, outputs, variance)


def _design(kept: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (kept - weights @ kept) * np.sqrt(weights)[:, None]


def no_word_ids(model, tokenizer, texts: list[EncodedText], operator: str) -> list[int] | None:
    """What the classifier is given for a text without any word, if it is the same whatever the text: not if words are replaced, or
    for single texts beside pairs."""
    without = Operator.of(operator, tokenizer, model)
    found = {tuple(without.keep(text, np.zeros((1, len(text.words)), dtype=bool))[0]) for text in texts}
    return list(found.pop()) if len(found) == 1 else None


def _taught(text: EncodedText, rounds: list[list[Explanation]]) -> Taught:
    scores = np.mean([[one.scores for one in of_round] for of_round in rounds], 0).T[text.seen]  # [n, C]
    return Taught(text, scores, np.array(rounds[0][0].probabilities))
