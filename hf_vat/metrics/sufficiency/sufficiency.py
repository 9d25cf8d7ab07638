"""Sufficiency as an `evaluate` module: what a classifier loses when it reads a share of the words alone."""

from hf_vat.faithfulness import ERASER_SHARES, scores
from hf_vat.metrics import averages, base


class Sufficiency(base.TextMetric):
    """See the module's README."""

    def _compute(self, predictions, kept, shares=ERASER_SHARES):
        return averages.at_shares(scores.sufficiency, predictions, kept, shares, "kept")
