"""What is inside a classifier with attention: what its states say of their words, and what other attention would do."""

from .adversarial import Adversarial, adversarial_attention
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
from .permutation import Permutation, PermutationBin, permutation_table, permute_attention

__all__ = [
    "Adversarial",
    "AttentionScores",
    "GradientFlow",
    "Permutation",
    "PermutationBin",
    "ScoredWord",
    "TypeMeans",
    "TypeSeparation",
    "adversarial_attention",
    "attention_scores",
    "gradient_flow",
    "permutation_table",
    "permute_attention",
    "token_type",
    "type_separation",
]
