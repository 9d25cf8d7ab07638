"""The experiments of Sun and Lu (2020), "Understanding Attention for Text Classification"."""

from .data import SYNTHETIC
from .experiments import AttentionScoresCell
from .page import AttentionScoresPaper
from .systems import ENCODERS, LAMBDAS, SYSTEMS
from .tables import TABLES, AttentionScoresResults

__all__ = [
    "ENCODERS",
    "LAMBDAS",
    "SYNTHETIC",
    "SYSTEMS",
    "TABLES",
    "AttentionScoresCell",
    "AttentionScoresPaper",
    "AttentionScoresResults",
]
