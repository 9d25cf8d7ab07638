"""AOPC as an `evaluate` module: how much a classifier loses when the words ranked highest are deleted."""

from hf_vat.errors import InputError
from hf_vat.faithfulness import scores
from hf_vat.metrics import averages, base

_DEFINITIONS = {
    "accuracy_drop": lambda full, deleted, labels: scores.accuracy_drop(full, deleted, labels),
    "prob_drop": lambda full, deleted, labels: scores.prob_drop(full, deleted),
    "area_acc": lambda full, deleted, labels: scores.area_acc(full, deleted, labels),
    "area_prob": lambda full, deleted, labels: scores.area_prob(full, deleted),
    "area_acc_from_0": lambda full, deleted, labels: scores.area_acc(full, deleted, labels, True),
    "area_prob_from_0": lambda full, deleted, labels: scores.area_prob(full, deleted, True),
}


class Aopc(base.TextMetric):
    """See the module's README."""

    def _compute(self, predictions, perturbed, references, definition="accuracy_drop", ks=None):
        score = base.choose(_DEFINITIONS, definition)
        result = averages.at_ks(definition, score, predictions, perturbed, references, ks, "perturbed")
        ks = result["ks"]
        if definition.startswith("area") and ks != list(range(1, len(ks) + 1)):
            raise InputError(f"ks is {ks}, but an area needs every number of words: 1, 2, 3 and so on.")
        return {**result, "definition": definition}
