"""What is inside a classifier with attention: what its states say of their words, and what other attention would do."""

from .adversarial import Adversarial, adversarial_attention
from .adversary import (
    AdversaryCurve,
    AdversaryDistance,
    CurvePoint,
    adversary_curve,
    measure_adversary,
    train_adversary,
)
from .attention_scores import (
    AttentionScores,
    ScoredWord,
    TypeMeans,
    TypeSeparation,
    attention_scores,
    token_type,
    type_separation,
)
from .controls import Uniform, uniform_attention
from .gradient_flow import GradientFlow, gradient_flow
from .permutation import Permutation, PermutationBin, permutation_table, permute_attention

__all__ = [
    "Adversarial",
    "AdversaryCurve",
    "AdversaryDistance",
    "AttentionScores",
    "CurvePoint",
    "GradientFlow",
    "Permutation",
    "PermutationBin",
    "ScoredWord",
    "TypeMeans",
    "TypeSeparation",
    "Uniform",
    "adversarial_attention",
    "adversary_curve",
    "attention_scores",
    "gradient_flow",
    "measure_adversary",
    "permutation_table",
    "permute_attention",
    "token_type",
    "train_adversary",
    "type_separation",
    "uniform_attention",
]
