"""The papers' experiments again: trained cells, tables beside the papers' numbers, claims with their tests."""

from . import vat, vmask
from .running import DATASETS, CellSettings, run_cells

__all__ = ["DATASETS", "CellSettings", "run_cells", "vat", "vmask"]
