"""Training in phases, and of word masks."""

from .adapters import modules_to_save
from .arguments import VATTrainingArguments
from .folder import claim_output_dir, is_finished
from .model_arguments import ModelArguments
from .progress import show_epochs
from .recipes import Recipe, describe_recipe, recipe_defaults
from .run import train_classifier
from .schedule import BetaSchedule, PhaseSchedule
from .scores_callback import AttentionScoresCallback
from .trainer import VATTrainer

__all__ = [
    "AttentionScoresCallback",
    "BetaSchedule",
    "ModelArguments",
    "PhaseSchedule",
    "Recipe",
    "VATTrainer",
    "VATTrainingArguments",
    "claim_output_dir",
    "describe_recipe",
    "is_finished",
    "modules_to_save",
    "recipe_defaults",
    "show_epochs",
    "train_classifier",
]
