"""The experiments of the VMASK paper: "Learning Variational Word Masks" (Chen and Ji 2020)."""

from .cells import VMaskCell
from .report import rewrite_vmask, write_vmask
from .results import TABLES, VMaskResults
from .systems import BY_CODE, ENCODERS, RECIPES, SYSTEMS, with_recipe

__all__ = [
    "BY_CODE",
    "ENCODERS",
    "RECIPES",
    "SYSTEMS",
    "TABLES",
    "VMaskCell",
    "VMaskResults",
    "rewrite_vmask",
    "with_recipe",
    "write_vmask",
]
