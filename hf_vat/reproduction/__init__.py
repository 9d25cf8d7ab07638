"""The papers' experiments again: trained cells, tables beside the papers' numbers, claims with their tests."""

from .attention_scores import AttentionScoresPaper
from .cells import DATASETS, Cell, CellSettings, run_cells
from .paper import Paper, Results
from .vat import VATPaper
from .vmask import VMaskPaper
from .word_objectives import WordObjectivesPaper

PAPERS: dict[str, Paper] = {
    paper.name: paper for paper in (VATPaper(), VMaskPaper(), AttentionScoresPaper(), WordObjectivesPaper())
}

__all__ = ["DATASETS", "PAPERS", "Cell", "CellSettings", "Paper", "Results", "run_cells"]
