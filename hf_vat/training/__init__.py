"""Training in phases."""

from .arguments import VATTrainingArguments
from .run import ModelArguments, claim_output_dir, train_classifier
from .schedule import PhaseSchedule
from .trainer import VATTrainer

__all__ = [
    "ModelArguments",
    "PhaseSchedule",
    "VATTrainer",
    "VATTrainingArguments",
    "claim_output_dir",
    "train_classifier",
]
