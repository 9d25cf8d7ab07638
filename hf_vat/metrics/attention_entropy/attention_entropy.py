"""Attention entropy as an `evaluate` module: how concentrated attention weights are."""

from hf_vat.faithfulness import max_weight, normalized_entropy
from hf_vat.metrics import base


class AttentionEntropy(base.TextMetric):
    """See the module's README."""

    def _compute(self, predictions):
        rows, counts = base.select(predictions, "no words")
        result = {
            name: sum(base.per_text(score, rows, predictions)) / len(rows)
            for name, score in (("normalized_entropy", normalized_entropy), ("max_weight", max_weight))
        }
        return {**result, **counts}
