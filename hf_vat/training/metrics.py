"""What an evaluation tells of a classifier beside its loss: for one class per text, for several labels, and for scores."""

import numpy as np
from transformers import EvalPrediction

from hf_vat.errors import InputError
from hf_vat.models.problems import MULTI_LABEL, REGRESSION, SINGLE_LABEL

from .arguments import VATTrainingArguments


def accuracy_and_macro_f1(prediction: EvalPrediction) -> dict[str, float]:
    """Share of texts whose class is right, and the mean of F1 over classes, for `compute_metrics`.

    F1 of a class is 2 TP / (2 TP + FP + FN); the mean is over the classes that are gold or predicted, as in scikit-learn.
    Texts with the label -100 are left out; where all are, there is nothing to tell.
    """
    labels = np.asarray(prediction.label_ids)
    labelled = labels != -100
    if not labelled.any():
        return {}
    predicted, gold = np.argmax(prediction.predictions, -1)[labelled], labels[labelled]
    f1 = [
        2 * np.sum((predicted == label) & (gold == label)) / (np.sum(predicted == label) + np.sum(gold == label))
        for label in np.union1d(predicted, gold)
    ]
    return {"accuracy": float(np.mean(predicted == gold)), "macro_f1": float(np.mean(f1))}


def f1_of_labels(prediction: EvalPrediction) -> dict[str, float]:
    """For `compute_metrics` with several labels per text, each of which a text has if its logit is above 0: `accuracy`, the share
    of texts with all labels right (subset accuracy), `micro_f1` over all labels of all texts, and `macro_f1`, the mean of F1
    over the labels that are gold or predicted.
    """
    predicted, gold = np.asarray(prediction.predictions) > 0, np.asarray(prediction.label_ids) > 0.5
    both, either = (predicted & gold).sum(0), predicted.sum(0) + gold.sum(0)  # by label
    occurs = either > 0
    return {
        "accuracy": float((predicted == gold).all(1).mean()),
        "micro_f1": float(2 * both.sum() / max(either.sum(), 1)),
        "macro_f1": float(np.mean(2 * both[occurs] / either[occurs])) if occurs.any() else 1.0,
    }


def errors_of_scores(prediction: EvalPrediction) -> dict[str, float]:
    """For `compute_metrics` of a regression: the root of the mean squared error, and where scores differ Pearson's correlation,
    each as the mean over scores."""
    predicted = np.asarray(prediction.predictions, dtype=float)
    gold = np.asarray(prediction.label_ids, dtype=float).reshape(predicted.shape)
    found = {"rmse": float(np.sqrt(np.square(predicted - gold).mean()))}
    if len(gold) > 1 and (predicted.std(0) > 0).all() and (gold.std(0) > 0).all():
        pairs = zip(predicted.T, gold.T, strict=True)
        found["pearson"] = float(np.mean([np.corrcoef(one, other)[0, 1] for one, other in pairs]))
    return found


METRICS = {SINGLE_LABEL: accuracy_and_macro_f1, MULTI_LABEL: f1_of_labels, REGRESSION: errors_of_scores}
_NAMES = {
    SINGLE_LABEL: ("accuracy", "macro_f1"),
    MULTI_LABEL: ("accuracy", "micro_f1", "macro_f1"),
    REGRESSION: ("rmse", "pearson"),
}
ALL_NAMES = tuple(dict.fromkeys(name for names in _NAMES.values() for name in names))


def check_metric(args: VATTrainingArguments, kind: str) -> None:
    """
    Raises:
        InputError: if the best model is to be chosen by what is not measured of such a problem.
    """
    metric = (args.metric_for_best_model or "loss").removeprefix("eval_")
    known = (*_NAMES[kind], "loss", "cross_entropy")
    if metric not in known:
        raise InputError(
            f"--metric_for_best_model is {metric!r}; with problem_type {kind} it is one of {', '.join(known)}."
        )
