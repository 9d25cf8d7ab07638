"""Pages, terminal output and plots of explanations and training runs."""

from .html import heatmap, page, write_report
from .plots import training_curves
from .terminal import table

__all__ = ["heatmap", "page", "table", "training_curves", "write_report"]
