"""Explanations of single texts: which words a classifier relied on."""

from .explainers import METHODS, explain
from .explanation import Explanation
from .store import load_explanations

__all__ = ["METHODS", "Explanation", "explain", "load_explanations"]
