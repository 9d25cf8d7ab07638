"""Pages, terminal output and plots of explanations, comparisons and training runs."""

from .attention_plot import attention_pairs
from .bar_plot import word_bars, word_cloud
from .frequency_plot import frequency_scatter
from .html import heatmap, page, write_report
from .predictions import write_predictions
from .scatter_plot import text_scatter
from .score_plot import score_boxes, score_histograms
from .tables import Table, table
from .terminal import side_by_side
from .top_k_plot import top_k_curves
from .training_plot import training_curves

__all__ = [
    "Table",
    "attention_pairs",
    "frequency_scatter",
    "heatmap",
    "page",
    "score_boxes",
    "score_histograms",
    "side_by_side",
    "table",
    "text_scatter",
    "top_k_curves",
    "training_curves",
    "word_bars",
    "word_cloud",
    "write_predictions",
    "write_report",
]
