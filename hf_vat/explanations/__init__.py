"""Explanations of single texts: which words a classifier relied on."""

from .explainers import METHODS, explain
from .explanation import Explanation

__all__ = ["METHODS", "Explanation", "explain"]
