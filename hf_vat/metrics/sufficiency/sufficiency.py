"""Sufficiency as an `evaluate` module: what a classifier loses when it reads a share of the words alone."""

import evaluate
from datasets import Features, Sequence

from hf_vat.faithfulness import scores
from hf_vat.faithfulness.measure import ERASER_SHARES
from hf_vat.metrics import base, perturbation

_DESCRIPTION = """
Sufficiency measures whether the words that an explanation ranks highest are enough for a classifier: it reads only a
share of them, and the probability of the class predicted on the full text should stay. Lower is more faithful. The mean
over the shares is the "AOPC" of ERASER (DeYoung et al. 2020).
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: class probabilities on the full texts, one list of C numbers for each text.
    kept: class probabilities on the kept words alone; for each text one list of C numbers for each of `shares`. A text
        with none (an empty list) has no words: it is left out, and `n_skipped` counts it.
    shares: shares q of the words, in (0, 1]: the top ceil(q * n) of n words are kept, at least one. The default is
        ERASER's (0.01, 0.05, 0.1, 0.2, 0.5).

Returns:
    means over texts, in [-1, 1], lower = more faithful: "sufficiency@<q>" for each share, and `aopc_sufficiency`, the
    mean over the shares; `scale`, `shares`, `n_total`, `n_scored`, `n_skipped` (by reason).

Raises:
    ValueError: if there is no text to score, inputs differ in length, `shares` does not fit the entries, or a row of
        probabilities does not sum to 1.

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

_CITATION = """
@inproceedings{deyoung-etal-2020-eraser,
    title = "{ERASER}: A Benchmark to Evaluate Rationalized {NLP} Models",
    author = "DeYoung, Jay and Jain, Sarthak and Rajani, Nazneen Fatema and Lehman, Eric and Xiong, Caiming and
        Socher, Richard and Wallace, Byron C.",
    booktitle = "Proceedings of ACL",
    year = "2020",
}
"""


class Sufficiency(base.TextMetric):
    """See the module's README."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=Features({"predictions": base.NUMBERS, "kept": Sequence(base.NUMBERS)}),
        )

    def _compute(self, predictions, kept, shares=ERASER_SHARES):
        values, counts = perturbation.average_at_shares(scores.sufficiency, predictions, kept, shares, "kept")
        result = {f"sufficiency@{share:g}": float(value) for share, value in zip(counts["shares"], values, strict=True)}
        return {**result, "aopc_sufficiency": float(values.mean()), **counts}
