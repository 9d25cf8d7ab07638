"""Sun and Lu as something to reproduce: what the page tells, and its figures."""

from collections.abc import Sequence
from typing import ClassVar

from hf_vat.report import score_boxes, score_histograms
from hf_vat.reproduction.cells import Cell, CellSettings
from hf_vat.reproduction.pages import Figure
from hf_vat.reproduction.paper import Paper
from hf_vat.training import recipes

from .data import IMDB_SIZES, SYNTHETIC
from .experiments import AttentionScoresCell
from .systems import PATIENCE, PENALIZED, SYSTEMS
from .tables import SHOWN, TABLES, AttentionScoresResults

PENALIZED_ON = ("sst2", "dp")  # where the paper tells of its term on VᵀW


class AttentionScoresPaper(Paper):
    """Sun and Lu (ACL 2020), "Understanding Attention for Text Classification"."""

    name = "attention-scores"
    titles: ClassVar = {"paper": "Attention and polarity scores again"}
    tables = tuple(TABLES)
    by_default = tables
    default_datasets = ("sst2",)
    default_encoders = ("dp",)
    systems = tuple(SYSTEMS)
    required = ("0.001", "10")
    mixed = True
    cell = AttentionScoresCell
    results = AttentionScoresResults
    shown: ClassVar = {}
    note = (
        ' "Highest" and "lowest" are the λ that are so by mean test accuracy. Claims about words are about the probabilities of the '
        "table of figures 2 to 4, or about mean weights, in points; their intervals and p come from resampling seeds alone."
    )

    def cells(
        self, dataset: str, encoder: str, seeds: int, numbers: Sequence[int], systems: Sequence[str]
    ) -> list[Cell]:
        """Synthetic texts are for λ = 10, the term on VᵀW is for DP on SST."""
        if dataset in SYNTHETIC:
            systems = ["10"]
        elif (dataset, encoder) != PENALIZED_ON:
            systems = [system for system in systems if system not in PENALIZED]
        return super().cells(dataset, encoder, seeds, numbers, systems)

    def introduction(self, results: AttentionScoresResults) -> list[str]:
        recipe = recipes.ADAGRAD
        return [
            f"{results.made_on()} Mean ± sd over seeds, shares in percent; in brackets of a heading the number of seeds, in brackets "
            "of a cell the number that the paper prints.",
            "`dp` pools word embeddings e by attention with scores eᵀV / λ; `dp-a` and `dp-l` do so with the states of an affine layer "
            "and of a one-way LSTM of 100 states; `ad` has additive attention. A linear head without bias makes the prediction, "
            "so every word has a polarity score: what the head would say of that word alone. Embeddings are 100 wide and begin in "
            "U(-0.1, 0.1), V in N(0, 1).",
            f"Adagrad with rate {recipe['learning_rate']:g} and decay 0.001, batches of {recipe['per_device_train_batch_size']}, "
            f"{recipe['num_train_epochs']} epochs, dropout 0.5 on embeddings and on the pooled vector; ℓ2 of 0.001 (our choice, the paper "
            "tells no strength) on the layers between embeddings and scores of `dp-l`, `dp-a` and `ad`. That epoch is taken "
            f"which is best on validation data, and training stops when {PATIENCE} epochs were no better, which the paper does not "
            "do. The vocabulary is that of the training texts.",
            f"`imdb` without files is drawn from a package: {IMDB_SIZES[0]:,} training, {IMDB_SIZES[1]:,} validation and "
            f"{IMDB_SIZES[2]:,} test texts, as the paper's 17,212 take too long here. `synthetic_1` and `synthetic_2` are the paper's "
            "Data I and II, and `synthetic_1_to_5` Data I with five negative texts for a positive one: 12,000 texts, no dropout, "
            "SGD, the paper's batches of 200, its 500 epochs of rate 0.015 as 30 of rate 0.25, and the last epoch is taken.",
        ]

    def figures(
        self, results: AttentionScoresResults, settings: CellSettings | None, dataset: str, encoder: str
    ) -> list[Figure]:
        """Those of DP, and of AD on SST; of the first seed."""
        if (encoder != "dp" and (dataset, encoder) != ("sst2", "ad")) or "_to_" in dataset:
            return []
        cells = {row: results.cells(dataset, encoder, row)[0] for row in results.rows_of(dataset, encoder, SHOWN)}

        def scores(path) -> str:
            """Polarity above, attention below, a column for each λ."""
            types = {row: cell.types(settings) for row, cell in cells.items()}
            shown = {
                f"{told}, {row}": types[row][field]
                for field, told in (("polarity_score", "polarity score"), ("attention_score", "attention score"))
                for row in types
            }
            return score_histograms(shown, len(types), path)

        def weights(path) -> str:
            return score_boxes(
                {row: cell.types(settings)["attention"] for row, cell in cells.items()}, len(cells), path
            )

        found = [Figure("scores", "Figures 2 to 4. Polarity and attention scores of words by type", scores)]
        if dataset not in SYNTHETIC:
            found.append(Figure("weights", "Figure 5. Mean attention weight of words by type", weights))
        return found
