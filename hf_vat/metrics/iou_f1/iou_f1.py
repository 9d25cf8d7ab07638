"""IOU F1 as an `evaluate` module: spans of the words ranked highest against spans that people marked."""

from hf_vat.faithfulness import rationales
from hf_vat.metrics import base, texts

_DESCRIPTION = """
IOU F1 compares the top words of each text, a hard rationale, with the words of a human rationale, both as spans:
maximal runs of words. A selected span is a hit if its words in common with some marked span are at least a threshold of
the words of both (DeYoung et al. 2020). The average, `macro` over texts or `micro` over pooled spans, is in the result.
"""

_KWARGS_DESCRIPTION = f"""
Args:
{texts.WORD_SCORES}
{texts.RATIONALES}
{texts.AVERAGE}
    threshold: intersection over union from which a span is a hit, from 0.5 to 1.
{texts.HARD_WORDS}

Returns:
    `precision`, `recall`, `f1`, in [0, 1], higher = closer to the rationale; `average`, `threshold`, `k`, `n_total`,
    `n_scored`, `n_skipped` (by reason), `n_tied` (scored texts whose scores are all equal, also of one word).

Raises:
{texts.WORD_ERRORS}

Examples:

    >>> iou_f1 = evaluate.load(hf_vat.metrics.path("iou_f1"))
    >>> result = iou_f1.compute(
    ...     predictions=[[0.2, 0.9, 0.1, 0.5]],
    ...     references=[[1, 1, 0, 0]],
    ...     k=2,
    ... )
    >>> round(result["f1"], 4)
    0.6667
"""


class IouF1(base.WordMetric):
    """See the module's README."""

    def _info(self):
        return base.info(
            _DESCRIPTION, _KWARGS_DESCRIPTION, [texts.ERASER], predictions=base.NUMBERS, references=base.FLAGS
        )

    def _compute(self, predictions, references, average="macro", threshold=0.5, k=None):
        scores, flags, counts = base.select_marked(predictions, references)
        overlap = rationales.iou_f1(scores, flags, threshold, k)
        return {**base.averaged(overlap, average), "average": average, "threshold": threshold, "k": k, **counts}
