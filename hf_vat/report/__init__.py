"""Pages, terminal output and plots of explanations, comparisons and training runs."""

from .html import heatmap, page, write_report
from .tables import Table, table
from .terminal import side_by_side
from .top_k_plot import top_k_curves
from .training_plot import training_curves

__all__ = ["Table", "heatmap", "page", "side_by_side", "table", "top_k_curves", "training_curves", "write_report"]
