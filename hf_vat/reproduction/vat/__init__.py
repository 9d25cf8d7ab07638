"""The experiments of the VAT paper: "Attending via both Fine-tuning and Compressing" (Zhou et al. 2021)."""

from .cells import WORD_LABELS, VATCell, labelled_words
from .report import write_vat
from .results import TABLES, VATResults
from .systems import ENCODERS, KINDS, SYSTEMS, Recipe

__all__ = [
    "ENCODERS",
    "KINDS",
    "SYSTEMS",
    "TABLES",
    "WORD_LABELS",
    "Recipe",
    "VATCell",
    "VATResults",
    "labelled_words",
    "write_vat",
]
