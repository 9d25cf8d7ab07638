"""Sufficiency as an `evaluate` module: what a classifier loses when it reads a share of the words alone."""

from datasets import Sequence

from hf_vat.faithfulness import ERASER_SHARES, scores
from hf_vat.metrics import averages, base, texts

_DESCRIPTION = """
Sufficiency measures whether the words that an explanation ranks highest are enough for a classifier: it reads only a
share of them, and the probability of the class predicted on the full text should stay. Lower is more faithful. The mean
over the shares is the "AOPC" of ERASER (DeYoung et al. 2020).
"""

_KWARGS_DESCRIPTION = f"""
Args:
{texts.PROBABILITIES}
    kept: class probabilities on the kept words alone; for each text one list of C numbers for each of `shares`. A text
        with none (an empty list) has no words: it is left out, and `n_skipped` counts it.
    shares: shares q of the words, in (0, 1]: the top ceil(q * n) of n words are kept, at least one. The default is
        ERASER's (0.01, 0.05, 0.1, 0.2, 0.5).

Returns:
    means over texts, in [-1, 1], lower = more faithful: "sufficiency@<q>" for each share, and `aopc_sufficiency`, the
    mean over the shares; `scale`, `shares`, `n_total`, `n_scored`, `n_skipped` (by reason).

Raises:
{texts.SHARE_ERRORS}

Examples:

    >>> sufficiency = evaluate.load(hf_vat.metrics.path("sufficiency"))
    >>> result = sufficiency.compute(
    ...     predictions=[[0.1, 0.9], [0.8, 0.2]],
    ...     kept=[[[0.3, 0.7], [0.1, 0.9]], [[0.9, 0.1], [0.8, 0.2]]],
    ...     shares=[0.2, 0.5],
    ... )
    >>> round(result["sufficiency@0.2"], 4)
    0.05
"""


class Sufficiency(base.TextMetric):
    """See the module's README."""

    def _info(self):
        return base.info(
            _DESCRIPTION, _KWARGS_DESCRIPTION, [texts.ERASER], predictions=base.NUMBERS, kept=Sequence(base.NUMBERS)
        )

    def _compute(self, predictions, kept, shares=ERASER_SHARES):
        return averages.at_shares(scores.sufficiency, predictions, kept, shares, "kept")
