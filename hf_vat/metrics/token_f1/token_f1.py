"""Token F1 as an `evaluate` module: the words ranked highest against the words that people marked."""

import evaluate
from datasets import Features

from hf_vat.faithfulness import rationales
from hf_vat.metrics import base

_DESCRIPTION = """
Token F1 compares the top words of each text, a hard rationale, with the words of a human rationale: precision, recall
and F1. Averages differ, so the average is named in the call and in the result: `macro` over texts (instance macro,
DeYoung et al. 2020) or `micro` over pooled words. What a random ranking is expected to give stands beside it.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: word scores, one list of numbers for each text; a larger score ranks first, equal ones by position.
    references: human rationales, one flag for each word: 1 or True if it is marked, 0 or False if not. A text without
        words or without marked words is left out, and `n_skipped` counts it.
    average: "macro" (default): mean over texts; "micro": of counts summed over texts.
    k: words in the hard rationale; if not given, the mean share of marked words (over texts that have some) times the
        words of the text, rounded, at least 1.

Returns:
    `precision`, `recall`, `f1`, in [0, 1], higher = closer to the rationale; `expected_precision`, `expected_recall`,
    `expected_f1`, the exact expectation of a uniformly random ranking; `average`, `k`, `n_total`, `n_scored`,
    `n_skipped` (by reason), `n_tied` (scored texts whose scores are all equal, also of one word).

Raises:
    ValueError: if there is no text to score, inputs or the words of a text differ in number, a score is no number, a
        flag is not 0 or 1, or an option is none of those allowed.

Examples:

    >>> token_f1 = evaluate.load(hf_vat.metrics.path("token_f1"))
    >>> result = token_f1.compute(
    ...     predictions=[[0.2, 0.9, 0.1, 0.5]],
    ...     references=[[1, 1, 0, 0]],
    ...     k=1,
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


class TokenF1(base.WordMetric):
    """See the module's README."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=Features({"predictions": base.NUMBERS, "references": base.FLAGS}),
        )

    def _compute(self, predictions, references, average="macro", k=None):
        base.check_average(average)
        scores, flags, counts = base.select_marked(predictions, references)
        overlap = rationales.token_f1(scores, flags, k)
        result = {name: float(value) for name, [value] in getattr(overlap, average)().items()}
        expected = {
            f"expected_{name}": float(value) for name, [value] in getattr(overlap.expected(), average)().items()
        }
        return {**result, **expected, "average": average, "k": k, **counts}
