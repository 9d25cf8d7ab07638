"""The experiments of the VMASK paper: "Learning Variational Word Masks" (Chen and Ji 2020)."""

from .cells import VMaskCell
from .report import write_vmask
from .results import TABLES, VMaskResults
from .systems import ENCODERS, SYSTEMS

__all__ = ["ENCODERS", "SYSTEMS", "TABLES", "VMaskCell", "VMaskResults", "write_vmask"]
