"""Training in phases."""

from .arguments import VATTrainingArguments
from .run import ModelArguments, train_classifier
from .schedule import PhaseSchedule
from .trainer import VATTrainer

__all__ = ["ModelArguments", "PhaseSchedule", "VATTrainer", "VATTrainingArguments", "train_classifier"]
