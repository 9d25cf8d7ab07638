"""AUPRC as an `evaluate` module: how well word scores rank the words that people marked."""

from hf_vat.faithfulness import rationales
from hf_vat.metrics import base

_DEFINITIONS = {
    "auprc": rationales.auprc,
    "average_precision": rationales.average_precision,
    "roc_auc": rationales.roc_auc,
}


class Auprc(base.WordMetric):
    """See the module's README."""

    def _compute(self, predictions, references, definition="auprc"):
        score = base.choose(_DEFINITIONS, definition)
        scores, flags, counts = base.select_marked(predictions, references, "only marked words")
        return {definition: float(score(scores, flags).mean()), "definition": definition, **counts}
