"""Token F1 as an `evaluate` module: the words ranked highest against the words that people marked."""

from hf_vat.faithfulness import rationales
from hf_vat.metrics import base, texts

_DESCRIPTION = """
Token F1 compares the top words of each text, a hard rationale, with the words of a human rationale: precision, recall
and F1. Averages differ, so the average is named in the call and in the result: `macro` over texts (instance macro,
DeYoung et al. 2020) or `micro` over pooled words. What a random ranking is expected to give stands beside it.
"""

_KWARGS_DESCRIPTION = f"""
Args:
{texts.WORD_SCORES}
{texts.RATIONALES}
{texts.AVERAGE}
{texts.HARD_WORDS}

Returns:
    `precision`, `recall`, `f1`, in [0, 1], higher = closer to the rationale; `expected_precision`, `expected_recall`,
    `expected_f1`, the exact expectation of a uniformly random ranking; `average`, `k`, `n_total`, `n_scored`,
    `n_skipped` (by reason), `n_tied` (scored texts whose scores are all equal, also of one word).

Raises:
{texts.WORD_ERRORS}

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


class TokenF1(base.WordMetric):
    """See the module's README."""

    def _info(self):
        return base.info(
            _DESCRIPTION, _KWARGS_DESCRIPTION, [texts.ERASER], predictions=base.NUMBERS, references=base.FLAGS
        )

    def _compute(self, predictions, references, average="macro", k=None):
        scores, flags, counts = base.select_marked(predictions, references)
        overlap = rationales.token_f1(scores, flags, k)
        expected = base.averaged(overlap.expected(), average, "expected_")
        return {**base.averaged(overlap, average), **expected, "average": average, "k": k, **counts}
