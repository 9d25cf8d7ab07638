"""What the logits of a classifier say: one class of several, any number of labels, or scores.

The kinds are those of transformers' `config.problem_type`; where it is not set, a model with one logit says how probable its one
label is, by a sigmoid, and one with more chooses between classes, as in transformers' text-classification pipeline.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from .classes import class_names

SINGLE_LABEL = "single_label_classification"
MULTI_LABEL = "multi_label_classification"
REGRESSION = "regression"
PROBLEM_TYPES = (SINGLE_LABEL, MULTI_LABEL, REGRESSION)


class Problem(NamedTuple):
    """What a model is asked about a text.

    Attributes:
        kind: one of `PROBLEM_TYPES`.
        names: of its classes, labels or scores, in the order of their ids.
        thresholds: for each label the probability from which the text has it.
    """

    kind: str
    names: list[str]
    thresholds: list[float]

    @classmethod
    def of(cls, config) -> "Problem":
        """That of the model with a configuration, whose `label_thresholds` are ½ where it has none.

        Raises:
            ValueError: if `problem_type` is none of transformers', or the thresholds are not one probability for each label.
        """
        kind, count = getattr(config, "problem_type", None), config.num_labels
        if kind not in (None, *PROBLEM_TYPES):
            raise ValueError(f"problem_type={kind!r} must be one of {', '.join(map(repr, PROBLEM_TYPES))}.")
        if kind != REGRESSION and count == 1:
            kind = MULTI_LABEL
        thresholds = getattr(config, "label_thresholds", None) or [0.5] * count
        if len(thresholds) != count or not all(0 < threshold < 1 for threshold in thresholds):
            raise ValueError(
                f"label_thresholds={thresholds} must be one probability for each of the {count} labels, above 0 and below 1."
            )
        return cls(kind or SINGLE_LABEL, class_names(config), list(thresholds))

    @property
    def is_single_label(self) -> bool:
        return self.kind == SINGLE_LABEL

    def outputs(self, logits: torch.Tensor) -> torch.Tensor:
        """Probabilities of classes (they sum to 1) or of labels, or scores as they are: [..., C] to [..., C]."""
        if self.kind == REGRESSION:
            return logits
        return logits.softmax(-1) if self.is_single_label else logits.sigmoid()

    def logits(self, outputs: torch.Tensor) -> torch.Tensor:
        """Logits that have these outputs: [..., C] to [..., C]; finite where a probability is 0 or 1."""
        if self.kind == REGRESSION:
            return outputs
        if self.is_single_label:
            return outputs.clamp(min=torch.finfo(outputs.dtype).tiny).log()
        return outputs.logit(eps=1e-16)

    def predicted(self, outputs: Sequence[float]) -> list[int]:
        """The ids of the most probable class, or of the labels that reach their thresholds; no scores are predicted."""
        if self.kind == REGRESSION:
            return []
        if self.is_single_label:
            return [_largest(outputs)]
        return [label for label, output in enumerate(outputs) if output >= self.thresholds[label]]

    def explained(self, outputs: Sequence[float]) -> list[int]:
        """The ids of what is explained if nothing else is asked for: what is predicted, all scores, or the most probable label
        of a text that has none."""
        if self.kind == REGRESSION:
            return list(range(len(outputs)))
        return self.predicted(outputs) or [_largest(outputs)]


def says_the_same(before: Sequence[float], now: Sequence[float]) -> bool:
    """Whether outputs of a classifier for one text are those of another time, but for the precision of its numbers: within 0.02
    for probabilities, and 2 % of the largest score where there are larger ones."""
    difference = max(abs(one - other) for one, other in zip(before, now, strict=True))
    return difference <= 0.02 * max(1.0, *map(abs, before))


def _largest(outputs: Sequence[float]) -> int:
    return max(range(len(outputs)), key=outputs.__getitem__)  # the smaller id if two are equal


__all__ = ["MULTI_LABEL", "PROBLEM_TYPES", "REGRESSION", "SINGLE_LABEL", "Problem", "says_the_same"]
