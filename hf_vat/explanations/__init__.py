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
from .methods import METHODS
from .store import load_explanations

__all__ = [
    "METHODS",
    "Explanation",
    "GlobalImportance",
    "SubmodularPick",
    "WordImportance",
    "explain",
    "load_explanations",
    "mask_importance",
    "submodular_pick",
    "vocabulary_importance",
    "word_importance",
]
