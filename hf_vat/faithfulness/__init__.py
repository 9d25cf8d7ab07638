"""Faithfulness of word rankings: what a scorer predicts when the top words are deleted, or when only they are kept."""

from .measure import DEFINITIONS, Faithfulness, FaithfulnessResult, RandomBaseline
from .perturb import delete_words, keep_words, random_ranking, rank_words
from .scores import accuracy_drop, area, posthoc_gold, posthoc_self, prob_drop

__all__ = [
    "DEFINITIONS",
    "Faithfulness",
    "FaithfulnessResult",
    "RandomBaseline",
    "accuracy_drop",
    "area",
    "delete_words",
    "keep_words",
    "posthoc_gold",
    "posthoc_self",
    "prob_drop",
    "random_ranking",
    "rank_words",
]
