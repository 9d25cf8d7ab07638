"""IOU F1 as an `evaluate` module: spans of the words ranked highest against spans that people marked."""

import evaluate
from datasets import Features

from hf_vat.faithfulness import rationales
from hf_vat.metrics import base

_DESCRIPTION = """
IOU F1 compares the top words of each text, a hard rationale, with the words of a human rationale, both as spans:
maximal runs of words. A selected span is a hit if its words in common with some marked span are at least a threshold of
the words of both (DeYoung et al. 2020). The average, `macro` over texts or `micro` over pooled spans, is in the result.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: word scores, one list of numbers for each text; a larger score ranks first, equal ones by position.
    references: human rationales, one flag for each word: 1 or True if it is marked, 0 or False if not. A text without
        words or without marked words is left out, and `n_skipped` counts it.
    average: "macro" (default): mean over texts; "micro": of counts summed over texts.
    threshold: intersection over union from which a span is a hit, from 0.5 to 1.
    k: words in the hard rationale; if not given, the mean share of marked words (over texts that have some) times the
        words of the text, rounded, at least 1.

Returns:
    `precision`, `recall`, `f1`, in [0, 1], higher = closer to the rationale; `average`, `threshold`, `k`, `n_total`,
    `n_scored`, `n_skipped` (by reason), `n_tied` (scored texts whose scores are all equal, also of one word).

Raises:
    ValueError: if there is no text to score, inputs or the words of a text differ in number, a score is no number, a
        flag is not 0 or 1, or an option is none of those allowed.

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

_CITATION = """
@inproceedings{deyoung-etal-2020-eraser,
    title = "{ERASER}: A Benchmark to Evaluate Rationalized {NLP} Models",
    author = "DeYoung, Jay and Jain, Sarthak and Rajani, Nazneen Fatema and Lehman, Eric and Xiong, Caiming and
        Socher, Richard and Wallace, Byron C.",
    booktitle = "Proceedings of ACL",
    year = "2020",
}
"""


class IouF1(base.WordMetric):
    """See the module's README."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=Features({"predictions": base.NUMBERS, "references": base.FLAGS}),
        )

    def _compute(self, predictions, references, average="macro", threshold=0.5, k=None):
        base.check_average(average)
        scores, flags, counts = base.select_marked(predictions, references)
        overlap = rationales.iou_f1(scores, flags, threshold, k)
        result = {name: float(value) for name, [value] in getattr(overlap, average)().items()}
        return {**result, "average": average, "threshold": threshold, "k": k, **counts}
