"""Precision, recall and F1 at K as an `evaluate` module: the top words against marked words."""

import evaluate
from datasets import Features

from hf_vat.faithfulness import rationales
from hf_vat.metrics import base

_DESCRIPTION = """
Precision, recall and F1 of the top K words of each text against marked words, for example those that carry its
sentiment. Both averages are in the result: `macro` over texts (Zhou et al. 2021, table 5) and `micro` over pooled words
(Rei and Søgaard 2018), and beside them what a random ranking is expected to give.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: word scores, one list of numbers for each text; a larger score ranks first, equal ones by position.
    references: human rationales, one flag for each word: 1 or True if it is marked, 0 or False if not. A text without
        words or without marked words is left out, and `n_skipped` counts it.
    ks: different numbers of top words, from 1; 1 and 5 if not given.
    denominator: of precision in a text of n words: "min" (default) for min(K, n), or "k" for K.

Returns:
    "<average>_<score>@<K>" for the averages "macro" and "micro", the scores "precision", "recall" and "f1", and each K,
    in [0, 1], higher = closer to the marked words; the same after "expected_" for a uniformly random ranking, exactly;
    `ks`, `denominator`, `n_total`, `n_scored`, `n_skipped` (by reason), `n_tied` (scored texts whose scores are all
    equal, also of one word), `n_clamped@<K>` (scored texts with fewer words).

Raises:
    ValueError: if there is no text to score, inputs or the words of a text differ in number, a score is no number, a
        flag is not 0 or 1, or an option is none of those allowed.

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

_CITATION = """
@inproceedings{zhou-etal-2021-attending,
    title = "Attending via both Fine-tuning and Compressing",
    author = "Zhou, Jie and Wu, Yuanbin and Chen, Qin and Huang, Xuanjing and He, Liang",
    booktitle = "Findings of the Association for Computational Linguistics: ACL-IJCNLP 2021",
    year = "2021",
}
@inproceedings{rei-sogaard-2018-zero,
    title = "Zero-Shot Sequence Labeling: Transferring Knowledge from Sentences to Tokens",
    author = "Rei, Marek and S{\\o}gaard, Anders",
    booktitle = "Proceedings of NAACL-HLT",
    year = "2018",
}
"""


class WordF1AtK(base.WordMetric):
    """See the module's README."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=Features({"predictions": base.NUMBERS, "references": base.FLAGS}),
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
