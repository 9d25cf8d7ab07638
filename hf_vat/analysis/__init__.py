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
from .controls import Uniform, uniform_attention
from .flow import GradientFlow, gradient_flow
from .information import MutualInformation, StateDistances, mutual_information, state_distances
from .permutation import Permutation, PermutationBin, permutation_table, permute_attention
from .pointing import Pointing, pointing_game
from .probing import CRITERIA, Criterion, Finding, Probe, probe
from .scores import (
    AttentionScores,
    ScoredWord,
    TypeMeans,
    TypeSeparation,
    attention_scores,
    token_type,
    type_separation,
)

__all__ = [
    "CRITERIA",
    "Adversarial",
    "AdversaryCurve",
    "AdversaryDistance",
    "AttentionScores",
    "Criterion",
    "CurvePoint",
    "Finding",
    "GradientFlow",
    "MutualInformation",
    "Permutation",
    "PermutationBin",
    "Pointing",
    "Probe",
    "ScoredWord",
    "StateDistances",
    "TypeMeans",
    "TypeSeparation",
    "Uniform",
    "adversarial_attention",
    "adversary_curve",
    "attention_scores",
    "gradient_flow",
    "measure_adversary",
    "mutual_information",
    "permutation_table",
    "permute_attention",
    "pointing_game",
    "probe",
    "state_distances",
    "token_type",
    "train_adversary",
    "type_separation",
    "uniform_attention",
]
