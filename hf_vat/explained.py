"""What is read of an explanation by those who draw it or measure it, so that neither needs the package that makes it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeGuard


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
    prediction: int
    probabilities: list[float]
    label_names: list[str]
    gold: int | None
    truncated: int
    model: str

    @property
    def correct(self) -> bool | None: ...

    @property
    def tied(self) -> bool: ...

    def check_scores(self) -> list[float]: ...

    def segments(self) -> Iterator[Segment]: ...


def are_explanations(entries: Sequence) -> TypeGuard[Sequence[Explained]]:
    """Whether a list holds explanations, one or more and nothing else."""
    return len(entries) > 0 and all(hasattr(entry, "scores") for entry in entries)
