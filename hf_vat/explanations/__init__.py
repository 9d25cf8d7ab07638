"""Explanations of single texts: which words a classifier relied on."""

from .explainers import explain
from .explanation import Explanation
from .methods import METHODS
from .store import load_explanations

__all__ = ["METHODS", "Explanation", "explain", "load_explanations"]
