"""The papers' experiments again: trained cells, tables beside the papers' numbers, claims with their tests."""

from .cells import DATASETS, WORD_LABELS, Cell, CellSettings, run_cells
from .systems import ENCODERS, KINDS, SYSTEMS, Recipe
from .vat import TABLES, VATResults
from .vat_report import write_vat

__all__ = [
    "DATASETS",
    "ENCODERS",
    "KINDS",
    "SYSTEMS",
    "TABLES",
    "WORD_LABELS",
    "Cell",
    "CellSettings",
    "Recipe",
    "VATResults",
    "run_cells",
    "write_vat",
]
