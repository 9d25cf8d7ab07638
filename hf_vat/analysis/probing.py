"""Can this attention be read as an explanation? One page of evidence, and a verdict that names the thresholds it used."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hf_vat.errors import InputError
from hf_vat.explanations import Explanation, explain
from hf_vat.faithfulness import (
    ERASER_SHARES,
    Faithfulness,
    Interval,
    bootstrap_interval,
    kendall_tau,
    paired_bootstrap,
)
from hf_vat.inference import model_name
from hf_vat.models.classes import class_names
from hf_vat.report.probe import as_sentence, write_probe

from .adversarial import adversarial_attention
from .adversary import AdversaryCurve, adversary_curve
from .controls import uniform_attention
from .permutation import permutation_table, permute_attention
from .pointing import pointing_game
from .states import check_attention

RIVALS = ("gradient", "occlusion")
SCORES = ("aopc_comprehensiveness", "aopc_sufficiency", "prob_drop@5", "posthoc_self@5")
WEIGHTS = (0.0, 1e-3, 3e-3, 6e-3, 1e-2, 3e-2)  # of the divergence, in the loss of the trained adversary
DIVERGENCE = 0.3  # nats, at which the trained adversary's price is read
_SEEDS = range(3)


class Criterion(NamedTuple):
    """A question to the attention, and what counts as a yes.

    Attributes:
        question: in words.
        measured: what is measured, and its unit.
        threshold: what the value is held against.
        at_least: whether it has to be at least, or at most, that much.
        fails: what it means if it does not.
        needed: whether an attention without it is no explanation at all.
    """

    question: str
    measured: str
    threshold: float
    at_least: bool
    fails: str
    needed: bool = False

    def holds(self, value: float) -> bool:
        return value >= self.threshold if self.at_least else value <= self.threshold


CRITERIA = {
    "random": Criterion(
        "Do its top words decide more than random words?",
        "comprehensiveness of attention minus that of random rankings, lower end of the 95 % interval (probability)",
        0.0,
        True,
        "taking out its top words changes the prediction no more than taking out random ones",
        needed=True,
    ),
    "rivals": Criterion(
        "Do they decide as much as those of other methods?",
        f"comprehensiveness of attention, as a share of the best of {' and '.join(RIVALS)}",
        0.8,
        True,
        "another method finds words that decide more",
    ),
    "permutation": Criterion(
        "Does it matter which word has which weight?",
        "change of the prediction when weights are shuffled, mean over texts of the median (total variation)",
        0.1,
        True,
        "shuffled weights give nearly the same prediction",
        needed=True,
    ),
    "uniform": Criterion(
        "Does the model need it at all?",
        "change of the prediction under equal weights for all words, mean over texts (total variation)",
        0.1,
        True,
        "equal weights for all words give nearly the same prediction",
    ),
    "adversarial": Criterion(
        "Is it the only one that gives this prediction?",
        "divergence of the furthest attention found that moves the prediction by at most 0.05, mean over texts (JSD, nats)",
        0.35,  # half of ln 2
        False,
        "for most texts quite another attention gives the same prediction",
    ),
    "adversary": Criterion(
        "Is it hard to train a model that says the same by another attention?",
        f"change of the prediction that a trained adversary pays for a divergence of {DIVERGENCE} nats (total variation)",
        0.1,
        True,
        "a model with another attention can be trained to say the same",
    ),
    "agreement": Criterion(
        "Does it rank words as other methods do?",
        f"Kendall τ-b with the magnitudes of {' and '.join(RIVALS)}, the lower of the two means over texts",
        0.3,
        True,
        "other methods rank the words in another order",
    ),
    "seeds": Criterion(
        "Does another training lead to the same?",
        "Kendall τ-b with the attention of the other training, mean over texts",
        0.5,
        True,
        "another training of the same model gives other words weight",
    ),
    "punctuation": Criterion(
        "Is it on words?",
        "share of the attention that lies on punctuation",
        0.2,
        False,
        "much of it lies on punctuation",
    ),
    "planted": Criterion(
        "Does it find evidence whose place is known?",
        "share of texts put together from two classes whose top word is in the part of the predicted one, minus that of chance, "
        "lower end of the 95 % interval",
        0.0,
        True,
        "in a text of two parts it does not point to the one that decides",
    ),
}


@dataclass(frozen=True)
class Finding:
    """What was measured for a criterion.

    Attributes:
        value: what is held against the threshold; None where it could not be measured.
        mean: mean over texts with a 95 % bootstrap interval, where there is one.
        note: what else there is to say, such as why nothing was measured.
    """

    value: float | None
    mean: Interval | None = None
    note: str = ""


@dataclass(frozen=True)
class Probe:
    """What is known of a model's attention.

    Attributes:
        setup: model, texts, seeds, JSON-ready.
        findings: by the names of [`CRITERIA`].
        scores: faithfulness by method and score, means over texts.
        permutation: median change by predicted class and largest weight.
        curve: of the trained adversary; None without training texts.
        explanations: of the first texts, by method, for the page.
    """

    setup: dict
    findings: dict[str, Finding]
    scores: dict[str, dict[str, float]]
    permutation: list[dict]
    curve: AdversaryCurve | None
    explanations: dict[str, list[Explanation]] = field(default_factory=dict)

    def holds(self, name: str) -> bool | None:
        """Whether a criterion is met; None where it was not measured."""
        value = self.findings[name].value
        return None if value is None else CRITERIA[name].holds(value)

    @property
    def verdict(self) -> str:
        """`"yes"`, if all that was measured holds; `"with care"`, if what is needed does; `"no"`, if that does not; and `"open"`,
        if that could not be measured."""
        needed = [self.holds(name) for name, criterion in CRITERIA.items() if criterion.needed]
        if not all(needed):
            return "no" if False in needed else "open"
        return "with care" if any(self.holds(name) is False for name in CRITERIA) else "yes"

    def told(self) -> str:
        """The verdict in words, and how many criteria hold."""
        measured = [holds for name in CRITERIA if (holds := self.holds(name)) is not None]
        told = {
            "yes": "Yes: this attention may be read as an explanation.",
            "with care": "With care: its top words matter, but it is not the explanation of the prediction.",
            "no": "No: this attention should not be read as an explanation.",
            "open": "Open: what is needed to tell could not be measured on these texts.",
        }[self.verdict]
        return f"{told} {sum(measured)} of {len(measured)} criteria hold."

    def reasons(self) -> list[str]:
        """What speaks against, a sentence for each criterion that does not hold."""
        found = []
        for name, criterion in CRITERIA.items():
            if self.holds(name) is False:
                bound = "at least" if criterion.at_least else "at most"
                found.append(
                    f"{as_sentence(criterion.fails)}: {self.findings[name].value:.3f}, wanted {bound} {criterion.threshold:g}."
                )
        return found

    def to_dict(self) -> dict:
        """Everything but the explanations, ready for JSON."""
        return {
            **self.setup,
            "verdict": self.verdict,
            "told": self.told(),
            "reasons": self.reasons(),
            "criteria": {
                name: {
                    **criterion._asdict(),
                    "value": self.findings[name].value,
                    "mean": None if (mean := self.findings[name].mean) is None else mean._asdict(),
                    "holds": self.holds(name),
                    "note": self.findings[name].note,
                }
                for name, criterion in CRITERIA.items()
            },
            "scores": self.scores,
            "permutation": self.permutation,
            "adversary": None if self.curve is None else [point._asdict() for point in self.curve.points],
        }

    def write(self, folder: str | PathLike) -> Path:
        """Write `probe.html`, one page that stands alone, and `probe.json` into a folder; returns the path of the page."""
        return write_probe(self, folder)


def probe(
    model,
    tokenizer,
    texts: Sequence[str | Sequence[str]],
    labels: Sequence[int | str],
    *,
    train_texts: Sequence[str | Sequence[str]] = (),
    other=None,
    batch_size: int = 32,
    seed: int = 0,
    max_length: int | None = None,
    save_folder: str | PathLike | None = None,
    progress: bool = False,
) -> Probe:
    """Ask a classifier's attention whether it may be read as an explanation.

    Stress tests (shuffled and equal weights, adversaries found and trained: Jain and Wallace, NAACL 2019; Wiegreffe and
    Pinter, EMNLP 2019), faithfulness beside random rankings and other methods, agreement with these and with another
    training, share on punctuation, and planted evidence. [`CRITERIA`] has each question with its threshold: these are ours, and
    a matter of judgement, so all values are shown.

    Args:
        model: a classifier of hf_vat with attention pooling.
        tokenizer: its tokenizer.
        texts: texts that it was not trained on; at least two.
        labels: their gold classes, ids or names.
        train_texts: texts that the trained adversary learns on; without any it is left out.
        other: a model of the same training with another seed, for the agreement of the two; left out if not given.
        batch_size, max_length: as in [`explain`].
        seed: of everything that is drawn.
        save_folder: takes what is measured text by text as it is made; the same call goes on from there.
        progress: show progress bars, one for each step.

    Raises:
        InputError: if the model, or the other one, has no attention, the two have other classes or vocabularies, or an
            argument cannot be used.
    """
    for one in (model, *([] if other is None else [other])):
        check_attention(one)
    if other is not None:
        _check_alike(model, other)
    if len(texts) < 2:
        raise InputError(f"There are {len(texts)} texts; intervals need two or more.")
    common = {"batch_size": batch_size, "max_length": max_length, "progress": progress}

    def saved(name: str) -> dict:
        return common | {"save_to": None if save_folder is None else Path(save_folder) / f"{name}.jsonl"}

    def explained(by, name: str, method: str) -> list[Explanation]:
        return explain(by, tokenizer, texts, method, labels=labels, seed=seed, **saved(name))

    explanations = {method: explained(model, method, method) for method in ("attention", *RIVALS)}
    attention = explanations["attention"]
    findings: dict[str, Finding] = {}
    scores, findings["random"], findings["rivals"] = _faithfulness(model, tokenizer, explanations, common)

    shuffled = permute_attention(model, tokenizer, texts, seed=seed, **saved("permutation"))
    findings["permutation"] = _mean([result.tvd for result in shuffled])
    equal = uniform_attention(model, tokenizer, texts, **saved("uniform"))
    findings["uniform"] = _mean([result.tvd for result in equal])
    searched = adversarial_attention(model, tokenizer, texts, seed=seed, **saved("adversarial"))
    findings["adversarial"] = _mean([result.jsd for result in searched if result.n_tokens > 1])
    curve = None
    if len(train_texts):
        curve = adversary_curve(
            model, tokenizer, train_texts, texts, WEIGHTS, trains="attention", seed=seed, **saved("adversary")
        )
    findings["adversary"] = _of_curve(curve)

    agreement = {method: _tau(attention, explanations[method]) for method in RIVALS}
    findings["agreement"] = _lower(agreement)
    findings["seeds"] = (
        Finding(None, note="Give a model of another seed to measure it.")
        if other is None
        else _tau(attention, explained(other, "other", "attention"))
    )
    findings["punctuation"] = _punctuation(attention)
    findings["planted"] = _planted(model, tokenizer, attention, seed, common)
    setup = {
        "model": model_name(model),
        "other": None if other is None else model_name(other),
        "label_names": attention[0].label_names,
        "n_texts": len(texts),
        "n_train_texts": len(train_texts),
        "accuracy": float(np.mean([one.correct for one in attention])),
        "seed": seed,
        "max_length": max_length,
    }
    table = [one._asdict() for one in permutation_table(shuffled)]
    return Probe(setup, findings, scores, table, curve, explanations)


def _check_alike(model, other) -> None:
    names, others = class_names(model.config), class_names(other.config)
    if names != others:
        raise InputError(
            f"The other model has the classes {', '.join(others)}, and the model {', '.join(names)}; give the same training "
            "with another seed."
        )
    sizes = [one.get_input_embeddings().num_embeddings for one in (model, other)]
    if sizes[0] != sizes[1]:
        raise InputError(
            f"The other model has a vocabulary of {sizes[1]} tokens, and the model one of {sizes[0]}; give the same training "
            "with another seed."
        )


def _faithfulness(model, tokenizer, explanations: dict, common: dict) -> tuple[dict, Finding, Finding]:
    attention = explanations["attention"]
    faithfulness = Faithfulness(model, tokenizer, attention, ks=(5,), shares=ERASER_SHARES, **common)
    measured = {method: faithfulness.measure(made) for method, made in explanations.items()}
    drawn = faithfulness.random(_SEEDS).results
    scores = {
        method: {name: value for name, value in found.scores.items() if name in SCORES}
        for method, found in measured.items()
    }
    scores["random"] = {name: float(np.mean([one.scores[name] for one in drawn])) for name in SCORES}
    score = "aopc_comprehensiveness"
    own = measured["attention"].values[score]
    test = paired_bootstrap(own, np.mean([one.values[score] for one in drawn], 0))
    above = Finding(test.low, Interval(test.difference, test.low, test.high))
    best = max(RIVALS, key=lambda method: scores[method][score])
    reached = scores[best][score]
    told = f"attention {scores['attention'][score]:.3f}, {best} {reached:.3f}"
    share = scores["attention"][score] / reached if reached > 0 else None
    return scores, above, Finding(share, note=told)


def _mean(values: Sequence[float]) -> Finding:
    known = np.array([value for value in values if not math.isnan(value)])
    if len(known) < 2:
        return Finding(None, note="Fewer than two texts have two words.")
    interval = bootstrap_interval(known)
    return Finding(interval.mean, interval)


def _of_curve(curve: AdversaryCurve | None) -> Finding:
    if curve is None:
        return Finding(None, note="Give training texts to measure it.")
    price = curve.tvd_at(DIVERGENCE)
    if math.isnan(price):
        furthest = max(point.jsd for point in curve.points)
        return Finding(None, note=f"No adversary came further than {furthest:.2f} nats from this attention.")
    return Finding(price)


def _tau(one: list[Explanation], other: list[Explanation]) -> Finding:
    return _mean(
        [
            kendall_tau(*(_magnitudes(own) for own in pair)) if sum(pair[0].seen) > 1 else math.nan
            for pair in zip(one, other, strict=True)
        ]
    )


def _lower(agreement: dict[str, Finding]) -> Finding:
    known = {method: found for method, found in agreement.items() if found.value is not None}
    if not known:
        return next(iter(agreement.values()))
    lower = min(known.values(), key=lambda found: found.value or 0.0)
    return Finding(lower.value, lower.mean, ", ".join(f"{method} {found.value:.2f}" for method, found in known.items()))


def _magnitudes(explanation: Explanation) -> list[float]:
    return [abs(score) for score, seen in zip(explanation.scores, explanation.seen, strict=True) if seen]


def _is_punctuation(word: str) -> bool:
    return not any(character.isalnum() for character in word)


def _punctuation(attention: list[Explanation]) -> Finding:
    shares, words = [], []
    for one in attention:
        total, flags = sum(one.scores), [_is_punctuation(word) for word in one.words]
        if total:
            shares.append(sum(score for score, flag in zip(one.scores, flags, strict=True) if flag) / total)
            words += [flag for flag, seen in zip(flags, one.seen, strict=True) if seen]
    found = _mean(shares)
    return Finding(found.value, found.mean, f"{100 * float(np.mean(words)):.0f} % of the words are." if words else "")


def _planted(model, tokenizer, attention: list[Explanation], seed: int, common: dict) -> Finding:
    points = pointing_game(model, tokenizer, attention, seed=seed, **common)
    if len(points) < 2:
        return Finding(None, note="Too few texts are classified rightly and with certainty.")
    hits, chance = (np.array([getattr(one, name) for one in points], float) for name in ("hit", "chance"))
    test = paired_bootstrap(hits, chance)
    recall = float(np.mean([one.recall for one in points]))
    told = f"{len(points)} texts: {hits.mean():.2f} against {chance.mean():.2f} by chance; of the top 5 words {recall:.2f}."
    return Finding(test.low, Interval(test.difference, test.low, test.high), told)
