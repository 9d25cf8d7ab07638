"""The result of explaining one text: a score for each word, beside what the model predicted."""

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any

from hf_vat.explained import Segment
from hf_vat.models.problems import PROBLEM_TYPES, REGRESSION, SINGLE_LABEL
from hf_vat.report import html, terminal


@dataclass
class Explanation:
    """Word scores for one text. Holds plain Python values only, so `json.dumps(explanation.to_dict())` works.

    A word is what [`hf_vat.models.words`] says: punctuation marks and emoji are words too. An empty or blank text has
    no words, and keeps the model's prediction.

    Attributes:
        text: the text as given.
        words: the words of the text as typed, also those that the model did not see.
        spans: for each word its (start, end) in `text`, in code points, end exclusive.
        scores: for each word how much it mattered; the unit is the method's (attention: share of 1). 0 if not seen.
        seen: for each word whether the model saw at least one of its tokens.
        method: name of the method that gave the scores.
        target: id of the class, label or score that is explained.
        prediction: id of the class with the highest probability; the ids of the labels that the text has by the model's
            thresholds; None for a regression.
        probabilities: the model's probability of each class or label; the scores of a regression.
        label_names: name of each class, label or score.
        gold: id of the true class, ids of the true labels, or the true score or scores; None if not known.
        truncated: number of words that were cut off before the model.
        model: name of the model.
        settings: settings of the method, such as `n_samples` or `baseline`, and its seed.
        details: what the method has to say about the text, such as `convergence_gap`; see [`explain`].
        seconds: wall-clock time, as the mean over the texts that were run together; None for one that was read from a file.
        problem_type: what the model is asked, in the words of transformers' configurations: "single_label_classification",
            "multi_label_classification" or "regression".
        text_pair: the second text of a pair.
        pair_start: of a pair the position in `words` of the first word of the second text, in which its span and those
            after it are.

    Raises:
        ValueError: if lengths differ, a word is not the text at its span, a score is not finite or a class id is not
            one of the classes. Scores that are set later are looked at again where they are shown or written.
    """

    text: str
    words: list[str]
    spans: list[tuple[int, int]]
    scores: list[float]
    seen: list[bool]
    method: str
    target: int
    prediction: int | list[int] | None
    probabilities: list[float]
    label_names: list[str]
    gold: int | list[int] | float | list[float] | None = None
    truncated: int = 0
    model: str = ""
    settings: dict = field(default_factory=dict)
    details: dict[str, float] = field(default_factory=dict)
    seconds: float | None = None
    problem_type: str = SINGLE_LABEL
    text_pair: str | None = None
    pair_start: int | None = None

    def __post_init__(self) -> None:
        for name in ("spans", "seen"):
            if len(getattr(self, name)) != len(self.words):
                raise ValueError(f"{len(self.words)} words but {len(getattr(self, name))} {name}; give one per word.")
        if len(self.probabilities) != len(self.label_names):
            raise ValueError(
                f"{len(self.probabilities)} probabilities but {len(self.label_names)} label_names; give one per class."
            )
        if self.problem_type not in PROBLEM_TYPES:
            raise ValueError(f"problem_type is {self.problem_type!r}; it is one of {', '.join(PROBLEM_TYPES)}.")
        of_labels = ("target",) if self.problem_type == REGRESSION else ("target", "prediction", "gold")
        for name in of_labels:
            labels: Any = getattr(self, name)
            for label in labels if isinstance(labels, list) else [labels]:
                if label is not None and not 0 <= label < len(self.label_names):
                    raise ValueError(f"{name} is {label}, but the class ids are 0 to {len(self.label_names) - 1}.")
        if (self.text_pair is None) != (self.pair_start is None):
            raise ValueError("text_pair and pair_start are of a pair; give both, or neither.")
        self.spans = [tuple(span) for span in self.spans]  # type: ignore[misc]  # JSON has lists only
        for position, (word, (start, end)) in enumerate(zip(self.words, self.spans, strict=True)):
            text = self.text_of(position)
            if text[start:end] != word:
                raise ValueError(f"The text at ({start}, {end}) is {text[start:end]!r}, not the word {word!r}.")
        self.check_scores()

    def text_of(self, position: int) -> str:
        """The text that a word is in, by its position in `words`: of a pair the first or the second."""
        second = self.text_pair is not None and self.pair_start is not None and position >= self.pair_start
        return str(self.text_pair) if second else self.text

    @property
    def predicted(self) -> list[int]:
        """The ids of what the model says of the text: its class, its labels, or all scores."""
        if self.problem_type == REGRESSION:
            return list(range(len(self.label_names)))
        return self.prediction if isinstance(self.prediction, list) else [self.prediction]  # type: ignore[list-item]

    def check_scores(self) -> list[float]:
        """The scores, which can be set after construction: every outlet asks for them here.

        Raises:
            ValueError: if there is not one for each word, or one is not finite, naming the word.
        """
        if len(self.scores) != len(self.words):
            raise ValueError(f"{len(self.words)} words but {len(self.scores)} scores; give one per word.")
        for word, score in zip(self.words, self.scores, strict=True):
            if not math.isfinite(score):
                raise ValueError(f"The score of {word!r} is {score}; scores are finite numbers.")
        return self.scores

    @property
    def correct(self) -> bool | None:
        """Whether the prediction is the gold label, or all labels are right; None if that is not known, or for a regression."""
        if self.gold is None or self.problem_type == REGRESSION:
            return None
        return self.prediction == self.gold

    @property
    def tied(self) -> bool:
        """Whether the model saw several words and all have one score, so that the scores rank nothing."""
        scores = [score for score, seen in zip(self.check_scores(), self.seen, strict=True) if seen]
        return len(scores) > 1 and len(set(scores)) == 1

    def segments(self, second: bool | None = None) -> Iterator[Segment]:
        """The words in order, each with the characters since the word before it (the text's tail is left out).

        Args:
            second: of a pair the words of the second text alone, or of the first; by default of both.
        """
        scores, end = self.check_scores(), 0
        largest = max(map(abs, scores), default=0.0) or 1.0
        for position, (word, span, score, seen) in enumerate(
            zip(self.words, self.spans, scores, self.seen, strict=True)
        ):
            in_second = self.pair_start is not None and position >= self.pair_start
            if position == self.pair_start:
                end = 0
            if second in (None, in_second):
                before = self.text_of(position)[end : span[0]]
                yield Segment(before, word, score, score / largest, seen)
            end = span[1]

    def to_dict(self) -> dict:
        """All fields as a dict that `json.dumps` takes."""
        self.check_scores()
        return {field.name: copy(getattr(self, field.name)) for field in fields(self)}  # asdict takes ten times as long

    @classmethod
    def from_dict(cls, fields: dict) -> "Explanation":
        """The explanation whose `to_dict()`, through JSON or not, is `fields`."""
        return cls(**fields)

    def to_html(self, path: str | PathLike | None = None) -> str:
        """A page that needs no network, script or notebook.

        Args:
            path: also write the page to this file, as UTF-8; missing folders are made.
        """
        page = html.page("Explanation", {self.model: [self]})
        if path is not None:
            html.write(path, page)
        return page

    def to_terminal(self, color: bool = True) -> str:
        """Lines for a terminal: the prediction, the text and the words with the highest scores.

        Args:
            color: shade each word by its score with ANSI codes.
        """
        return terminal.heatmap(self, color)

    def __str__(self) -> str:
        return self.to_terminal(color=False)

    def _repr_html_(self) -> str:
        return html.heatmap(self)
