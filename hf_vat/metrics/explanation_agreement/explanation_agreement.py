"""Agreement of two explanation methods as an `evaluate` module: word scores of the same texts."""

from functools import partial

from hf_vat.errors import InputError
from hf_vat.faithfulness import as_distribution, is_constant, jsd, kendall_tau, top_k_overlap, tvd
from hf_vat.metrics import base

_DEFINITIONS = {
    "kendall_tau": kendall_tau,
    "tvd": lambda a, b: tvd(as_distribution(a), as_distribution(b)),
    "jsd": lambda a, b: jsd(as_distribution(a), as_distribution(b)),
    "top_k_overlap": top_k_overlap,
}


class ExplanationAgreement(base.WordMetric):
    """See the module's README."""

    inputs = base.INPUTS | {"references": base.NUMBERS}

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
