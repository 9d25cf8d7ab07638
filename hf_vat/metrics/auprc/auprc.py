"""AUPRC as an `evaluate` module: how well word scores rank the words that people marked."""

from hf_vat.faithfulness import rationales
from hf_vat.metrics import base, texts

_DESCRIPTION = """
AUPRC measures how well word scores rank the words of a human rationale before the others: the area under the
precision-recall curve of each text, averaged over texts. Definitions of the area differ, so it is named in the call and
in the result: `auprc` by trapezoids (DeYoung et al. 2020), `average_precision` (its mean is MAP), and `roc_auc`.
"""

_KWARGS_DESCRIPTION = f"""
Args:
{texts.WORD_SCORES}
    references: human rationales, one flag for each word: 1 or True if it is marked, 0 or False if not. A text without
        words, without marked words, or of marked words only is left out, and `n_skipped` counts it.
    definition: what is averaged over texts. Higher = closer to the rationale. All lie in [0, 1].
        "auprc" (default): area under the precision-recall curve by trapezoids;
        "average_precision": average precision, without interpolation;
        "roc_auc": probability that a marked word outranks an unmarked one; ties count half, and a random ranking is
        expected to give 0.5.

Returns:
    the value under the definition's name; `definition`, `n_total`, `n_scored`, `n_skipped` (by reason), `n_tied`
    (scored texts whose scores are all equal).

Raises:
{texts.WORD_ERRORS}
    ImportError: if scikit-learn is not installed.

Examples:

    >>> auprc = evaluate.load(hf_vat.metrics.path("auprc"))
    >>> result = auprc.compute(
    ...     predictions=[[0.9, 0.1, 0.5, 0.2]],
    ...     references=[[1, 0, 0, 1]],
    ... )
    >>> round(result["auprc"], 4)
    0.7917
"""

_DEFINITIONS = {
    "auprc": rationales.auprc,
    "average_precision": rationales.average_precision,
    "roc_auc": rationales.roc_auc,
}


class Auprc(base.WordMetric):
    """See the module's README."""

    def _info(self):
        return base.info(
            _DESCRIPTION,
            _KWARGS_DESCRIPTION,
            [texts.ERASER, texts.REI_SOGAARD],
            predictions=base.NUMBERS,
            references=base.FLAGS,
        )

    def _compute(self, predictions, references, definition="auprc"):
        score = base.choose(_DEFINITIONS, definition)
        scores, flags, counts = base.select_marked(predictions, references, "only marked words")
        return {definition: float(score(scores, flags).mean()), "definition": definition, **counts}
