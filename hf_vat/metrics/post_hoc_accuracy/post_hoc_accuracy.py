"""Post-hoc accuracy as an `evaluate` module: what a classifier predicts from the words ranked highest alone."""

from datasets import Sequence

from hf_vat.faithfulness import scores
from hf_vat.metrics import averages, base, texts

_DESCRIPTION = """
Post-hoc accuracy measures whether the words that an explanation ranks highest are enough for a classifier: it reads
only these. Published definitions differ, so the definition is named in the call and in the result: against gold labels
(`gold`, Zhou et al. 2021) or against the classifier's own prediction on the full text (`self`, Chen and Ji 2020).
"""

_KWARGS_DESCRIPTION = f"""
Args:
{texts.PROBABILITIES}
    kept: class probabilities on the kept words alone; for each text one list of C numbers for each entry of `ks`.
        A text with fewer entries has fewer words: its last entry counts for larger k, and `n_clamped@k` counts it. A
        text with none (an empty list) has no words: it is left out, and `n_skipped` counts it.
{texts.CLASSES}
    definition: what the class predicted from the kept words is compared with. Higher = the kept words suffice. Both lie
        in [0, 1].
        "gold" (default): the reference;
        "self": the class predicted on the full text.
    ks: the numbers of kept words that the entries of `kept` stand for; 1, 2, 3, ... if not given.

Returns:
    the share of texts that agree, under "posthoc_<definition>@<k>" for each k; `definition`, `scale`, `ks`, `n_total`,
    `n_scored`, `n_skipped` (by reason), `n_clamped@<k>`.

Raises:
{texts.CLASS_ERRORS}

Examples:

    >>> post_hoc_accuracy = evaluate.load(hf_vat.metrics.path("post_hoc_accuracy"))
    >>> result = post_hoc_accuracy.compute(
    ...     predictions=[[0.1, 0.9], [0.8, 0.2]],
    ...     kept=[[[0.4, 0.6]], [[0.3, 0.7]]],
    ...     references=[1, 1],
    ...     definition="self",
    ...     ks=[5],
    ... )
    >>> result["posthoc_self@5"]
    0.5
"""

_DEFINITIONS = {
    "gold": lambda full, kept, labels: scores.posthoc_gold(kept, labels),
    "self": lambda full, kept, labels: scores.posthoc_self(full, kept),
}


class PostHocAccuracy(base.TextMetric):
    """See the module's README."""

    def _info(self):
        return base.info(
            _DESCRIPTION,
            _KWARGS_DESCRIPTION,
            [texts.VAT, texts.VMASK],
            predictions=base.NUMBERS,
            kept=Sequence(base.NUMBERS),
            references=base.CLASS_ID,
        )

    def _compute(self, predictions, kept, references, definition="gold", ks=None):
        score = base.choose(_DEFINITIONS, definition)
        result = averages.at_ks(f"posthoc_{definition}", score, predictions, kept, references, ks, "kept")
        return {**result, "definition": definition}
