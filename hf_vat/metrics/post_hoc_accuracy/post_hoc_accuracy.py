"""Post-hoc accuracy as an `evaluate` module: what a classifier predicts from the words ranked highest alone."""

from hf_vat.faithfulness import scores
from hf_vat.metrics import averages, base

_DEFINITIONS = {
    "gold": lambda full, kept, labels: scores.posthoc_gold(kept, labels),
    "self": lambda full, kept, labels: scores.posthoc_self(full, kept),
}


class PostHocAccuracy(base.TextMetric):
    """See the module's README."""

    def _compute(self, predictions, kept, references, definition="gold", ks=None):
        score = base.choose(_DEFINITIONS, definition)
        result = averages.at_ks(f"posthoc_{definition}", score, predictions, kept, references, ks, "kept")
        return {**result, "definition": definition}
