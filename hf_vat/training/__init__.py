"""Training in phases."""

from .arguments import VATTrainingArguments
from .schedule import PhaseSchedule
from .trainer import VATTrainer

__all__ = ["PhaseSchedule", "VATTrainer", "VATTrainingArguments"]
