"""Post-hoc accuracy as an `evaluate` module: what a classifier predicts from the words ranked highest alone."""

import evaluate
from datasets import Features, Sequence

from hf_vat.faithfulness import scores
from hf_vat.metrics import base, perturbation

_DESCRIPTION = """
Post-hoc accuracy measures whether the words that an explanation ranks highest are enough for a classifier: it reads
only these. Published definitions differ, so the definition is named in the call and in the result: against gold labels
(`gold`, Zhou et al. 2021) or against the classifier's own prediction on the full text (`self`, Chen and Ji 2020).
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: class probabilities on the full texts, one list of C numbers for each text.
    kept: class probabilities on the kept words alone; for each text one list of C numbers for each entry of `ks`.
        A text with fewer entries has fewer words: its last entry counts for larger k, and `n_clamped@k` counts it. A
        text with none (an empty list) has no words: it is left out, and `n_skipped` counts it.
    references: gold class ids (integers), one for each text.
    definition: what the class predicted from the kept words is compared with. Higher = the kept words suffice. Both lie
        in [0, 1].
        "gold" (default): the reference;
        "self": the class predicted on the full text.
    ks: the numbers of kept words that the entries of `kept` stand for; 1, 2, 3, ... if not given.

Returns:
    the share of texts that agree, under "posthoc_<definition>@<k>" for each k; `definition`, `scale`, `ks`, `n_total`,
    `n_scored`, `n_skipped` (by reason), `n_clamped@<k>`.

Raises:
    ValueError: if there is no text to score, inputs differ in length, a reference is not a class id, or a row of
        probabilities does not sum to 1.

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

_CITATION = """
@inproceedings{zhou-etal-2021-attending,
    title = "Attending via both Fine-tuning and Compressing",
    author = "Zhou, Jie and Wu, Yuanbin and Chen, Qin and Huang, Xuanjing and He, Liang",
    booktitle = "Findings of the Association for Computational Linguistics: ACL-IJCNLP 2021",
    year = "2021",
}
@inproceedings{chen-ji-2020-learning,
    title = "Learning Variational Word Masks to Improve the Interpretability of Neural Text Classifiers",
    author = "Chen, Hanjie and Ji, Yangfeng",
    booktitle = "Proceedings of EMNLP",
    year = "2020",
}
"""

_DEFINITIONS = {
    "gold": lambda full, kept, labels: scores.posthoc_gold(kept, labels),
    "self": lambda full, kept, labels: scores.posthoc_self(full, kept),
}


class PostHocAccuracy(base.TextMetric):
    """See the module's README."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=Features(
                {
                    "predictions": base.NUMBERS,
                    "kept": Sequence(base.NUMBERS),
                    "references": base.CLASS_ID,
                }
            ),
        )

    def _compute(self, predictions, kept, references, definition="gold", ks=None):
        score = base.choose(_DEFINITIONS, definition)
        values, counts = perturbation.average_at_ks(score, predictions, kept, references, ks, "kept")
        result = {f"posthoc_{definition}@{k}": float(value) for k, value in zip(counts["ks"], values, strict=True)}
        return {**result, "definition": definition, **counts}
