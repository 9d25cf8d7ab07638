"""Attention entropy as an `evaluate` module: how concentrated attention weights are."""

from hf_vat.faithfulness import max_weight, normalized_entropy
from hf_vat.metrics import base

_DESCRIPTION = """
How concentrated the attention of a classifier is on few words or tokens: the entropy of the weights of each text,
divided by that of uniform weights, and the largest weight, both averaged over texts.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: attention weights, one list for each text, one number for each word or token, from 0 with sum 1. A text
        without words (an empty list) is left out, and `n_skipped` counts it.

Returns:
    means over texts: `normalized_entropy`, in [0, 1], 0 = all weight on one word (also for a text of one word), 1 =
    uniform; `max_weight`, in (0, 1], 1 = all weight on one word; `n_total`, `n_scored`, `n_skipped` (by reason).

Raises:
    ValueError: if there is no text to score, or weights are no distribution.
    ImportError: if scipy is not installed.

Examples:

    >>> attention_entropy = evaluate.load(hf_vat.metrics.path("attention_entropy"))
    >>> result = attention_entropy.compute(predictions=[[0.25, 0.25, 0.25, 0.25], [1.0, 0.0]])
    >>> result["normalized_entropy"], result["max_weight"]
    (0.5, 0.625)
"""

_CITATION = """@article{shannon-1948-mathematical,
    title = "A Mathematical Theory of Communication",
    author = "Shannon, Claude E.",
    journal = "Bell System Technical Journal",
    year = "1948",
}
"""


class AttentionEntropy(base.TextMetric):
    """See the module's README."""

    def _info(self):
        return base.info(_DESCRIPTION, _KWARGS_DESCRIPTION, [_CITATION], predictions=base.NUMBERS)

    def _compute(self, predictions):
        rows, counts = base.select(predictions, "no words")
        result = {
            name: sum(base.per_text(score, rows, predictions)) / len(rows)
            for name, score in (("normalized_entropy", normalized_entropy), ("max_weight", max_weight))
        }
        return {**result, **counts}
