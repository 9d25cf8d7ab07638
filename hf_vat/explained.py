"""What is read of an explanation by those who draw it or measure it, so that neither needs the package that makes it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeGuard

from hf_vat.models.problems import REGRESSION


class Segment(NamedTuple):
    """A word with the characters before it, ready to be drawn.

    `strength` is the score divided by the greatest magnitude in the text, in [-1, 1].
    """

    before: str
    word: str
    score: float
    strength: float
    seen: bool


class Explained(Protocol):
    """An [`Explanation`](hf_vat.explanations.Explanation), whose attributes these are."""

    text: str
    words: list[str]
    scores: list[float]
    seen: list[bool]
    method: str
    target: int
    prediction: int | list[int] | None
    probabilities: list[float]
    label_names: list[str]
    gold: int | list[int] | float | list[float] | None
    truncated: int
    model: str
    problem_type: str
    text_pair: str | None
    pair_start: int | None

    @property
    def predicted(self) -> list[int]: ...

    @property
    def correct(self) -> bool | None: ...

    @property
    def tied(self) -> bool: ...

    def check_scores(self) -> list[float]: ...

    def segments(self, second: bool | None = None) -> Iterator[Segment]: ...


def are_explanations(entries: Sequence) -> TypeGuard[Sequence[Explained]]:
    """Whether a list holds explanations, one or more and nothing else."""
    return len(entries) > 0 and all(hasattr(entry, "scores") for entry in entries)


def predicted_names(explanation: Explained) -> list[tuple[str, float]]:
    """What the model says of the text: the name and probability of its class or of each of its labels, which may be none; or
    the name and value of each score."""
    return [(explanation.label_names[label], explanation.probabilities[label]) for label in explanation.predicted]


def gold_text(explanation: Explained) -> str:
    """What is true of the text, in words; "" if that is not known."""
    gold, names = explanation.gold, explanation.label_names
    if gold is None:
        return ""
    several = gold if isinstance(gold, list) else [gold]
    if is_regression(explanation):
        return ", ".join(f"{score:g}" for score in several)
    return ", ".join(names[int(label)] for label in several) or "no label"


def explains_another(explanation: Explained) -> bool:
    """Whether what is explained has to be said beside what is predicted."""
    return explanation.predicted != [explanation.target]


def is_regression(explanation: Explained) -> bool:
    return explanation.problem_type == REGRESSION


def parts_of(explanation: Explained) -> list[Iterator[Segment]]:
    """The segments of the text, or of each text of a pair."""
    if explanation.text_pair is None:
        return [explanation.segments()]
    return [explanation.segments(second) for second in (False, True)]


def texts_of(explanation: Explained) -> list[str]:
    """The text, or both of a pair."""
    return [explanation.text] if explanation.text_pair is None else [explanation.text, explanation.text_pair]
