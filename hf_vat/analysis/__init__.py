"""What is inside a classifier with attention: what its states say of their words, and what other attention would do."""

from .attention_scores import (
    AttentionScores,
    ScoredWord,
    TypeMeans,
    TypeSeparation,
    attention_scores,
    token_type,
    type_separation,
)
from .gradient_flow import GradientFlow, gradient_flow

__all__ = [
    "AttentionScores",
    "GradientFlow",
    "ScoredWord",
    "TypeMeans",
    "TypeSeparation",
    "attention_scores",
    "gradient_flow",
    "token_type",
    "type_separation",
]
