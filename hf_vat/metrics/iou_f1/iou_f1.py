"""IOU F1 as an `evaluate` module: spans of the words ranked highest against spans that people marked."""

from hf_vat.faithfulness import rationales
from hf_vat.metrics import base


class IouF1(base.WordMetric):
    """See the module's README."""

    def _compute(self, predictions, references, average="macro", threshold=0.5, k=None):
        scores, flags, counts = base.select_marked(predictions, references)
        overlap = rationales.iou_f1(scores, flags, threshold, k)
        return {**base.averaged(overlap, average), "average": average, "threshold": threshold, "k": k, **counts}
