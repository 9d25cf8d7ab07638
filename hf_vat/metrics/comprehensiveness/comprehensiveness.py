"""Comprehensiveness as an `evaluate` module: what a classifier loses without a share of the words."""

from hf_vat.faithfulness import ERASER_SHARES, scores
from hf_vat.metrics import averages, base


class Comprehensiveness(base.TextMetric):
    """See the module's README."""

    def _compute(self, predictions, perturbed, shares=ERASER_SHARES):
        return averages.at_shares(scores.comprehensiveness, predictions, perturbed, shares, "perturbed")
