"""Token F1 as an `evaluate` module: the words ranked highest against the words that people marked."""

from hf_vat.faithfulness import rationales
from hf_vat.metrics import base


class TokenF1(base.WordMetric):
    """See the module's README."""

    def _compute(self, predictions, references, average="macro", k=None):
        scores, flags, counts = base.select_marked(predictions, references)
        overlap = rationales.token_f1(scores, flags, k)
        expected = base.averaged(overlap.expected(), average, "expected_")
        return {**base.averaged(overlap, average), **expected, "average": average, "k": k, **counts}
