"""The papers' experiments again: trained cells, tables beside the papers' numbers, claims with their tests."""

from .cells import DATASETS, ENCODERS, SYSTEMS, Cell, CellSettings, run_cells
from .vat import TABLES, VATResults

__all__ = ["DATASETS", "ENCODERS", "SYSTEMS", "TABLES", "Cell", "CellSettings", "VATResults", "run_cells"]
