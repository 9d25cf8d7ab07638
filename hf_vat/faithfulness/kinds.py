"""The scores of faithfulness for each kind of problem: which there are, what they say, and how they are computed."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from hf_vat.models.problems import MULTI_LABEL, REGRESSION, SINGLE_LABEL, Problem

from . import scores

# "@K" and "@q" in a result's names: the number, or the share, of the top words.
DEFINITIONS = {
    "accuracy_drop": "accuracy on full texts minus accuracy without the top K words, against gold labels",
    "prob_drop": "probability of the class predicted on the full text, minus that without the top K words",
    "posthoc_gold": "accuracy on the top K words alone, against gold labels",
    "posthoc_self": "share of texts whose top K words alone give the class predicted on the full text",
    "area_acc": "mean of accuracy_drop@k over k = 1..K",
    "area_prob": "mean of prob_drop@k over k = 1..K",
    "comprehensiveness": "probability of the predicted class, minus that without the top share q of words",
    "sufficiency": "probability of the predicted class, minus that on the top share q of words alone",
    "aopc_comprehensiveness": "mean of comprehensiveness@q over the shares",
    "aopc_sufficiency": "mean of sufficiency@q over the shares",
}
_OF_LABELS = {
    "accuracy_drop": "share of texts with all labels right on the full text, minus that without the top K words",
    "prob_drop": "probability of the explained label on the full text, minus that without the top K words",
    "posthoc_gold": "share of texts whose top K words alone give all gold labels and no other",
    "posthoc_self": "share of texts whose top K words alone give the labels of the full text and no other",
    "comprehensiveness": "probability of the explained label, minus that without the top share q of words",
    "sufficiency": "probability of the explained label, minus that on the top share q of words alone",
}
_OF_SCORES = {
    "output_change": "change of the explained score, in either direction, without the top K words",
    "output_change_sd": "output_change@K over the standard deviation of the score between texts",
    "posthoc_change": "change of the explained score, in either direction, on the top K words alone",
    "area_output": "mean of output_change@k over k = 1..K",
    "comprehensiveness": "change of the explained score, in either direction, without the top share q of words",
    "sufficiency": "change of the explained score, in either direction, on the top share q of words alone",
}
_MEANS = {name: DEFINITIONS[name] for name in ("aopc_comprehensiveness", "aopc_sufficiency")}
BY_KIND = {
    SINGLE_LABEL: DEFINITIONS,
    MULTI_LABEL: {**DEFINITIONS, **_OF_LABELS},
    REGRESSION: {**_OF_SCORES, **_MEANS},
}
NEED_GOLD = ("accuracy_drop", "posthoc_gold", "area_acc")
LOWER_IS_BETTER = {"sufficiency", "aopc_sufficiency", "posthoc_change"}


class Outputs(NamedTuple):
    """What a scorer says of N texts and of K perturbations of each.

    Attributes:
        full, deleted, kept: outputs [N, C] and [N, K, C], on the text, without the top words and on these alone.
        labels: gold class ids [N], or flags of gold labels [N, C]; None where they are not known.
        targets: ids of the explained labels or scores [N].
    """

    full: np.ndarray
    deleted: np.ndarray
    kept: np.ndarray
    labels: np.ndarray | None
    targets: np.ndarray


def of_kind(problem: Problem) -> Mapping[str, Callable[[Outputs], np.ndarray]]:
    """For each score a function to its values, [N, K], or [N] of a mean over perturbations."""
    return {SINGLE_LABEL: _CLASSES, MULTI_LABEL: _labels(problem), REGRESSION: _SCORES}[problem.kind]


_CLASSES: dict[str, Callable[[Outputs], np.ndarray]] = {
    "accuracy_drop": lambda of: scores.accuracy_drop(of.full, of.deleted, of.labels),
    "prob_drop": lambda of: scores.prob_drop(of.full, of.deleted),
    "posthoc_gold": lambda of: scores.posthoc_gold(of.kept, of.labels),
    "posthoc_self": lambda of: scores.posthoc_self(of.full, of.kept),
    "area_acc": lambda of: scores.area_acc(of.full, of.deleted, of.labels),
    "area_prob": lambda of: scores.area_prob(of.full, of.deleted),
    "comprehensiveness": lambda of: scores.comprehensiveness(of.full, of.deleted),
    "sufficiency": lambda of: scores.sufficiency(of.full, of.kept),
    "aopc_comprehensiveness": lambda of: scores.aopc_comprehensiveness(of.full, of.deleted),
    "aopc_sufficiency": lambda of: scores.aopc_sufficiency(of.full, of.kept),
}


def _labels(problem: Problem) -> dict[str, Callable[[Outputs], np.ndarray]]:
    thresholds = np.array(problem.thresholds)

    def right(of: Outputs, outputs: np.ndarray) -> np.ndarray:
        return scores.same_labels(of.labels, outputs >= thresholds)

    def accuracy_drop(of: Outputs) -> np.ndarray:
        return right(of, of.full[:, None]) - right(of, of.deleted)

    def change(of: Outputs, perturbed: np.ndarray) -> np.ndarray:
        return scores.target_change(of.full, perturbed, of.targets)

    return {
        "accuracy_drop": accuracy_drop,
        "prob_drop": lambda of: change(of, of.deleted),
        "posthoc_gold": lambda of: right(of, of.kept),
        "posthoc_self": lambda of: scores.same_labels(of.full >= thresholds, of.kept >= thresholds),
        "area_acc": lambda of: accuracy_drop(of).mean(1),
        "area_prob": lambda of: change(of, of.deleted).mean(1),
        "comprehensiveness": lambda of: change(of, of.deleted),
        "sufficiency": lambda of: change(of, of.kept),
        "aopc_comprehensiveness": lambda of: change(of, of.deleted).mean(1),
        "aopc_sufficiency": lambda of: change(of, of.kept).mean(1),
    }


def _deleted(of: Outputs) -> np.ndarray:
    return np.abs(scores.target_change(of.full, of.deleted, of.targets))


def _kept(of: Outputs) -> np.ndarray:
    return np.abs(scores.target_change(of.full, of.kept, of.targets))


def _spread(of: Outputs) -> np.ndarray:
    """Standard deviation of each text's score between texts, [N, 1]; 1 where all are the same."""
    deviations = of.full.std(0)
    return np.where(deviations > 0, deviations, 1)[of.targets][:, None]


_SCORES: dict[str, Callable[[Outputs], np.ndarray]] = {
    "output_change": _deleted,
    "output_change_sd": lambda of: _deleted(of) / _spread(of),
    "posthoc_change": _kept,
    "area_output": lambda of: _deleted(of).mean(1),
    "comprehensiveness": _deleted,
    "sufficiency": _kept,
    "aopc_comprehensiveness": lambda of: _deleted(of).mean(1),
    "aopc_sufficiency": lambda of: _kept(of).mean(1),
}
