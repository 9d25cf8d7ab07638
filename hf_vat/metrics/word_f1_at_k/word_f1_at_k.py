"""Precision, recall and F1 at K as an `evaluate` module: the top words against marked words."""

from hf_vat.faithfulness import rationales
from hf_vat.metrics import base


class WordF1AtK(base.WordMetric):
    """See the module's README."""

    def _compute(self, predictions, references, ks=(1, 5), denominator="min"):
        scores, flags, counts = base.select_marked(predictions, references)
        top = rationales.precision_recall_f1_at_k(scores, flags, ks, denominator)
        ks = [int(k) for k in ks]
        result = {
            f"{prefix}{average}_{name}@{k}": float(value)
            for prefix, overlap in (("", top), ("expected_", top.expected()))
            for average in ("macro", "micro")
            for name, values in getattr(overlap, average)().items()
            for k, value in zip(ks, values, strict=True)
        }
        clamped = {f"n_clamped@{k}": int((top.words < k).sum()) for k in ks}
        return {**result, "ks": ks, "denominator": denominator, **counts, **clamped}
