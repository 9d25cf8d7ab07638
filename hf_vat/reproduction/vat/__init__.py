"""The experiments of the VAT paper: "Attending via both Fine-tuning and Compressing" (Zhou et al. 2021)."""

from .experiments import VATCell
from .page import VATPaper
from .systems import ENCODERS, KINDS, SYSTEMS
from .tables import TABLES, VATResults

__all__ = ["ENCODERS", "KINDS", "SYSTEMS", "TABLES", "VATCell", "VATPaper", "VATResults"]
