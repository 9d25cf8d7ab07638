"""Explainers that are fitted to a classifier once, and then explain any text in one forward pass.

[`fit_amortized`] has a student learn what a slow method, its teacher, says of the words of texts; [`fit_l2x`] has a selector learn
which words tell what the classifier says.
"""

from .fit import attach_explainer, fit_amortized
from .l2x import L2X, fit_l2x

__all__ = ["L2X", "attach_explainer", "fit_amortized", "fit_l2x"]
