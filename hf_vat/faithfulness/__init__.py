"""Faithfulness of word rankings: what a scorer predicts when the top words are deleted, or when only they are kept."""

from .measure import DEFINITIONS, ERASER_SHARES, LOWER_IS_BETTER, Faithfulness, FaithfulnessResult, RandomBaseline
from .perturb import OPERATORS, Operator, random_ranking, rank_words
from .scores import (
    accuracy_drop,
    aopc_comprehensiveness,
    aopc_sufficiency,
    area_acc,
    area_prob,
    comprehensiveness,
    posthoc_gold,
    posthoc_self,
    prob_drop,
    sufficiency,
)

__all__ = [
    "DEFINITIONS",
    "ERASER_SHARES",
    "LOWER_IS_BETTER",
    "OPERATORS",
    "Faithfulness",
    "FaithfulnessResult",
    "Operator",
    "RandomBaseline",
    "accuracy_drop",
    "aopc_comprehensiveness",
    "aopc_sufficiency",
    "area_acc",
    "area_prob",
    "comprehensiveness",
    "posthoc_gold",
    "posthoc_self",
    "prob_drop",
    "random_ranking",
    "rank_words",
    "sufficiency",
]
