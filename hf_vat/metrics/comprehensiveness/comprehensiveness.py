"""Comprehensiveness as an `evaluate` module: what a classifier loses without a share of the words."""

from datasets import Sequence

from hf_vat.faithfulness import ERASER_SHARES, scores
from hf_vat.metrics import averages, base, texts

_DESCRIPTION = """
Comprehensiveness measures whether a classifier needs the words that an explanation ranks highest: a share of them is
deleted, and the probability of the class predicted on the full text falls. Higher is more faithful. The mean over the
shares is the "AOPC" of ERASER (DeYoung et al. 2020).
"""

_KWARGS_DESCRIPTION = f"""
Args:
{texts.PROBABILITIES}
    perturbed: class probabilities after deletion; for each text one list of C numbers for each of `shares`. A text with
        none (an empty list) has no words: it is left out, and `n_skipped` counts it.
    shares: shares q of the words, in (0, 1]: the top ceil(q * n) of n words are deleted, at least one. The default is
        ERASER's (0.01, 0.05, 0.1, 0.2, 0.5).

Returns:
    means over texts, in [-1, 1], higher = more faithful: "comprehensiveness@<q>" for each share, and
    `aopc_comprehensiveness`, the mean over the shares; `scale`, `shares`, `n_total`, `n_scored`, `n_skipped` (by
    reason).

Raises:
{texts.SHARE_ERRORS}

Examples:

    >>> comprehensiveness = evaluate.load(hf_vat.metrics.path("comprehensiveness"))
    >>> result = comprehensiveness.compute(
    ...     predictions=[[0.1, 0.9], [0.8, 0.2]],
    ...     perturbed=[[[0.4, 0.6], [0.7, 0.3]], [[0.7, 0.3], [0.6, 0.4]]],
    ...     shares=[0.2, 0.5],
    ... )
    >>> round(result["aopc_comprehensiveness"], 4)
    0.3
"""


class Comprehensiveness(base.TextMetric):
    """See the module's README."""

    def _info(self):
        return base.info(
            _DESCRIPTION,
            _KWARGS_DESCRIPTION,
            [texts.ERASER],
            predictions=base.NUMBERS,
            perturbed=Sequence(base.NUMBERS),
        )

    def _compute(self, predictions, perturbed, shares=ERASER_SHARES):
        return averages.at_shares(scores.comprehensiveness, predictions, perturbed, shares, "perturbed")
