"""Precision, recall and F1 at K as an `evaluate` module: the top words against marked words."""

from hf_vat.faithfulness import rationales
from hf_vat.metrics import base, texts

_DESCRIPTION = """
Precision, recall and F1 of the top K words of each text against marked words, for example those that carry its
sentiment. Both averages are in the result: `macro` over texts (Zhou et al. 2021, table 5) and `micro` over pooled words
(Rei and Søgaard 2018), and beside them what a random ranking is expected to give.
"""

_KWARGS_DESCRIPTION = f"""
Args:
{texts.WORD_SCORES}
{texts.RATIONALES}
    ks: different numbers of top words, from 1; 1 and 5 if not given.
    denominator: of precision in a text of n words: "min" (default) for min(K, n), or "k" for K.

Returns:
    "<average>_<score>@<K>" for the averages "macro" and "micro", the scores "precision", "recall" and "f1", and each K,
    in [0, 1], higher = closer to the marked words; the same after "expected_" for a uniformly random ranking, exactly;
    `ks`, `denominator`, `n_total`, `n_scored`, `n_skipped` (by reason), `n_tied` (scored texts whose scores are all
    equal, also of one word), `n_clamped@<K>` (scored texts with fewer words).

Raises:
{texts.WORD_ERRORS}

Examples:

    >>> word_f1_at_k = evaluate.load(hf_vat.metrics.path("word_f1_at_k"))
    >>> result = word_f1_at_k.compute(
    ...     predictions=[[0.2, 0.9, 0.1, 0.5], [0.3, 0.7]],
    ...     references=[[1, 1, 0, 0], [0, 1]],
    ...     ks=[1],
    ... )
    >>> round(result["macro_f1@1"], 4), round(result["micro_f1@1"], 4)
    (0.8333, 0.8)
"""


class WordF1AtK(base.WordMetric):
    """See the module's README."""

    def _info(self):
        return base.info(
            _DESCRIPTION,
            _KWARGS_DESCRIPTION,
            [texts.VAT, texts.REI_SOGAARD],
            predictions=base.NUMBERS,
            references=base.FLAGS,
        )

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
