"""Comprehensiveness as an `evaluate` module: what a classifier loses without a share of the words."""

import evaluate
from datasets import Features, Sequence

from hf_vat.faithfulness import scores
from hf_vat.faithfulness.measure import ERASER_SHARES
from hf_vat.metrics import base, perturbation

_DESCRIPTION = """
Comprehensiveness measures whether a classifier needs the words that an explanation ranks highest: a share of them is
deleted, and the probability of the class predicted on the full text falls. Higher is more faithful. The mean over the
shares is the "AOPC" of ERASER (DeYoung et al. 2020).
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: class probabilities on the full texts, one list of C numbers for each text.
    perturbed: class probabilities after deletion; for each text one list of C numbers for each of `shares`. A text with
        none (an empty list) has no words: it is left out, and `n_skipped` counts it.
    shares: shares q of the words, in (0, 1]: the top ceil(q * n) of n words are deleted, at least one. The default is
        ERASER's (0.01, 0.05, 0.1, 0.2, 0.5).

Returns:
    means over texts, in [-1, 1], higher = more faithful: "comprehensiveness@<q>" for each share, and
    `aopc_comprehensiveness`, the mean over the shares; `scale`, `shares`, `n_total`, `n_scored`, `n_skipped` (by
    reason).

Raises:
    ValueError: if there is no text to score, inputs differ in length, `shares` does not fit the entries, or a row of
        probabilities does not sum to 1.

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

_CITATION = """
@inproceedings{deyoung-etal-2020-eraser,
    title = "{ERASER}: A Benchmark to Evaluate Rationalized {NLP} Models",
    author = "DeYoung, Jay and Jain, Sarthak and Rajani, Nazneen Fatema and Lehman, Eric and Xiong, Caiming and
        Socher, Richard and Wallace, Byron C.",
    booktitle = "Proceedings of ACL",
    year = "2020",
}
"""


class Comprehensiveness(base.TextMetric):
    """See the module's README."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=Features({"predictions": base.NUMBERS, "perturbed": Sequence(base.NUMBERS)}),
        )

    def _compute(self, predictions, perturbed, shares=ERASER_SHARES):
        values, counts = perturbation.average_at_shares(
            scores.comprehensiveness, predictions, perturbed, shares, "perturbed"
        )
        result = {
            f"comprehensiveness@{share:g}": float(value) for share, value in zip(counts["shares"], values, strict=True)
        }
        return {**result, "aopc_comprehensiveness": float(values.mean()), **counts}
