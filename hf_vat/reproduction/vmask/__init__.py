"""The experiments of the VMASK paper: "Learning Variational Word Masks" (Chen and Ji 2020)."""

from .experiments import VMaskCell
from .page import VMaskPaper
from .systems import ENCODERS, SYSTEMS
from .tables import TABLES, VMaskResults

__all__ = ["ENCODERS", "SYSTEMS", "TABLES", "VMaskCell", "VMaskPaper", "VMaskResults"]
