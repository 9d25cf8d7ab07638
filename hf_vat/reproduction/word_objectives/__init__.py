"""Word-level objectives, and whether attention over them can be trusted: "Staying True to Your Word" (Tutek & Šnajder 2020)."""

from .experiments import WordObjectiveCell
from .page import WordObjectivesPaper
from .systems import ENCODERS, SYSTEMS
from .tables import TABLES, WordObjectiveResults

__all__ = ["ENCODERS", "SYSTEMS", "TABLES", "WordObjectiveCell", "WordObjectiveResults", "WordObjectivesPaper"]
