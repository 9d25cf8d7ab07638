"""Agreement of two explanation methods as an `evaluate` module: word scores of the same texts."""

from functools import partial

from hf_vat.errors import InputError
from hf_vat.faithfulness import as_distribution, is_constant, jsd, kendall_tau, top_k_overlap, tvd
from hf_vat.metrics import base

_DESCRIPTION = """
How far the word scores of two explanation methods agree on the same texts, averaged over texts. Measures differ, so the
definition is named in the call and in the result: rank correlation (`kendall_tau`), distances of the scores as
distributions (`tvd`, and `jsd` of Jain and Wallace 2019), or the overlap of the top words (`top_k_overlap`).
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: word scores of one method, one list of numbers for each text; a larger score ranks first, equal ones by
        position.
    references: word scores of the other method for the same words. A text without words is left out, and `n_skipped`
        counts it.
    definition: what is averaged over texts.
        "kendall_tau" (default): Kendall's tau-b, in [-1, 1], higher = closer; 0 if one of the two gives no ranking;
        "tvd": total variation distance of |scores| / sum, in [0, 1], lower = closer;
        "jsd": Jensen-Shannon divergence of |scores| / sum in nats, in [0, ln 2], lower = closer;
        "top_k_overlap": Jaccard index of the top k words, in [0, 1], higher = closer.
    k: number of top words from 1; for "top_k_overlap", which needs it.

Returns:
    the value under the definition's name ("top_k_overlap@<k>"); `definition`, `n_total`, `n_scored`, `n_skipped` (by
    reason), `n_tied` (scored texts where one of the two gives no ranking: all scores equal, or a single word).

Raises:
    ValueError: if there is no text to score, inputs or the words of a text differ in number, a score is no number (for
        the distances: not finite), or an option is none of those allowed.
    ImportError: if scipy is not installed.

Examples:

    >>> explanation_agreement = evaluate.load(hf_vat.metrics.path("explanation_agreement"))
    >>> result = explanation_agreement.compute(
    ...     predictions=[[1.0, 2.0, 3.0, 4.0]],
    ...     references=[[0.1, 0.3, 0.2, 0.4]],
    ... )
    >>> round(result["kendall_tau"], 4)
    0.6667
"""

_CITATION = """@inproceedings{jain-wallace-2019-attention,
    title = "Attention is not Explanation",
    author = "Jain, Sarthak and Wallace, Byron C.",
    booktitle = "Proceedings of NAACL-HLT",
    year = "2019",
}
@article{kendall-1945-treatment,
    title = "The Treatment of Ties in Ranking Problems",
    author = "Kendall, Maurice G.",
    journal = "Biometrika",
    year = "1945",
}
"""

_DEFINITIONS = {
    "kendall_tau": kendall_tau,
    "tvd": lambda a, b: tvd(as_distribution(a), as_distribution(b)),
    "jsd": lambda a, b: jsd(as_distribution(a), as_distribution(b)),
    "top_k_overlap": top_k_overlap,
}


class ExplanationAgreement(base.WordMetric):
    """See the module's README."""

    def _info(self):
        return base.info(
            _DESCRIPTION, _KWARGS_DESCRIPTION, [_CITATION], predictions=base.NUMBERS, references=base.NUMBERS
        )

    def _compute(self, predictions, references, definition="kendall_tau", k=None):
        score, name = base.choose(_DEFINITIONS, definition), definition
        if definition == "top_k_overlap":
            if not isinstance(k, int) or k < 1:
                raise InputError(f"k is {k!r}; top_k_overlap needs a whole number of top words from 1, such as k=5.")
            score, name = partial(top_k_overlap, k=k), f"top_k_overlap@{k}"
        elif k is not None:
            raise InputError(f"k is {k!r}, but {definition} compares all words; leave it out.")
        rows, counts = base.select(predictions, "no words")
        values = base.per_text(score, rows, predictions, references)
        n_tied = sum(is_constant(predictions[row]) or is_constant(references[row]) for row in rows)
        return {name: sum(values) / len(values), "definition": definition, **counts, "n_tied": n_tied}
