"""Explanations of single texts, which words a classifier relied on, and what they say about all texts together."""

from .explainers import explain
from .explanation import Explanation
from .global_importance import (
    GlobalImportance,
    SubmodularPick,
    WordImportance,
    mask_importance,
    submodular_pick,
    vocabulary_importance,
    word_importance,
)
from .l2x import L2X, fit_l2x
from .methods import METHODS
from .store import load_explanations

__all__ = [
    "L2X",
    "METHODS",
    "Explanation",
    "GlobalImportance",
    "SubmodularPick",
    "WordImportance",
    "explain",
    "fit_l2x",
    "load_explanations",
    "mask_importance",
    "submodular_pick",
    "vocabulary_importance",
    "word_importance",
]
