"""AOPC as an `evaluate` module: how much a classifier loses when the words ranked highest are deleted."""

from datasets import Sequence

from hf_vat.errors import InputError
from hf_vat.faithfulness import scores
from hf_vat.metrics import averages, base, texts

_DESCRIPTION = """
AOPC measures whether an explanation ranks the words first that a classifier needs: the words ranked highest are deleted
and the loss is averaged over texts. Published definitions differ, so the definition is named in the call and in the
result: `accuracy_drop` (Zhou et al. 2021), `prob_drop` (Chen and Ji 2020), and areas over several numbers of words.
"""

_KWARGS_DESCRIPTION = f"""
Args:
{texts.PROBABILITIES}
    perturbed: class probabilities after deletion; for each text one list of C numbers for each entry of `ks`. A text
        with fewer entries has fewer words: its last entry counts for larger k, and `n_clamped@k` counts it. A text with
        none (an empty list) has no words: it is left out, and `n_skipped` counts it.
{texts.CLASSES}
    definition: what is averaged over texts. Higher = the deleted words mattered more. All lie in [-1, 1].
        "accuracy_drop" (default): accuracy on full texts minus accuracy after deletion, against the references;
        "prob_drop": probability of the class predicted on the full text, minus its probability after deletion;
        "area_acc", "area_prob": the mean of these over k = 1, 2, ..., K;
        "area_acc_from_0", "area_prob_from_0": the same with k = 0 counted, where the drop is 0.
    ks: the numbers of deleted words that the entries of `perturbed` stand for; 1, 2, 3, ... if not given.

Returns:
    the value under "<definition>@<k>" for each k (under "<definition>" for an area), as a fraction; `definition`,
    `scale`, `ks`, `n_total`, `n_scored`, `n_skipped` (by reason), `n_clamped@<k>`.

Raises:
{texts.CLASS_ERRORS}

Examples:

    >>> aopc = evaluate.load(hf_vat.metrics.path("aopc"))
    >>> result = aopc.compute(
    ...     predictions=[[0.1, 0.9], [0.8, 0.2]],
    ...     perturbed=[[[0.6, 0.4]], [[0.7, 0.3]]],
    ...     references=[1, 0],
    ...     definition="prob_drop",
    ...     ks=[5],
    ... )
    >>> round(result["prob_drop@5"], 4)
    0.3
"""

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

    def _info(self):
        return base.info(
            _DESCRIPTION,
            _KWARGS_DESCRIPTION,
            [texts.VAT, texts.VMASK],
            predictions=base.NUMBERS,
            perturbed=Sequence(base.NUMBERS),
            references=base.CLASS_ID,
        )

    def _compute(self, predictions, perturbed, references, definition="accuracy_drop", ks=None):
        score = base.choose(_DEFINITIONS, definition)
        result = averages.at_ks(definition, score, predictions, perturbed, references, ks, "perturbed")
        ks = result["ks"]
        if definition.startswith("area") and ks != list(range(1, len(ks) + 1)):
            raise InputError(f"ks is {ks}, but an area needs every number of words: 1, 2, 3 and so on.")
        return {**result, "definition": definition}
