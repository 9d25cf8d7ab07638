"""The experiments of the VAT paper: "Attending via both Fine-tuning and Compressing" (Zhou et al. 2021)."""

from hf_vat.training import Recipe

from .cells import WORD_LABELS, VATCell, labelled_words
from .report import write_vat
from .results import TABLES, VATResults
from .systems import ENCODERS, KINDS, SYSTEMS, describe

__all__ = [
    "ENCODERS",
    "KINDS",
    "SYSTEMS",
    "TABLES",
    "WORD_LABELS",
    "Recipe",
    "VATCell",
    "VATResults",
    "describe",
    "labelled_words",
    "write_vat",
]
