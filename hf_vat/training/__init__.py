"""Training in phases, and of word masks."""

from .arguments import VATTrainingArguments
from .run import ModelArguments, claim_output_dir, train_classifier
from .schedule import BetaSchedule, PhaseSchedule
from .trainer import VATTrainer

__all__ = [
    "BetaSchedule",
    "ModelArguments",
    "PhaseSchedule",
    "VATTrainer",
    "VATTrainingArguments",
    "claim_output_dir",
    "train_classifier",
]
