"""The VMASK paper as something to reproduce: what its page tells, and its figures."""

from collections.abc import Sequence
from typing import Any, ClassVar

from hf_vat.report import frequency_scatter, top_k_curves, word_bars
from hf_vat.reproduction.cells import Cell, CellSettings
from hf_vat.reproduction.pages import Figure
from hf_vat.reproduction.paper import Paper
from hf_vat.training import BetaSchedule

from .experiments import EXPLAINED, MASKS, VMaskCell
from .systems import SYSTEMS, VMaskEncoder
from .tables import TABLES, VMaskResults

_DRAWS = {"soft": "soft", "hard_st": "hard"}
_TERMS = {
    "token_mean": "mean over words",
    "sum": "sum over words",
    "position_mean": "mean over all positions of batches in random order, padding included",
}


class VMaskPaper(Paper):
    """Chen and Ji (2020), "Learning Variational Word Masks"."""

    name = "vmask"
    titles: ClassVar = {"paper": "VMASK again", "code": "VMASK by its published code"}
    tables = tuple(TABLES)
    by_default = tables
    systems = SYSTEMS
    required = ("base", "VMASK")
    cell = VMaskCell
    results = VMaskResults
    shown: ClassVar = {f"{system} by LIME": (system, "lime") for system in EXPLAINED}

    def cells(
        self, dataset: str, encoder: str, seeds: int, numbers: Sequence[int], systems: Sequence[str]
    ) -> list[Cell]:
        found = super().cells(dataset, encoder, seeds, numbers, systems)
        return found + [VMaskCell(dataset, encoder, "cost", 0)] * (9 in numbers)

    def introduction(self, results: VMaskResults) -> list[str]:
        found = [
            f"{results.made_on()} Mean ± sd over seeds, shares in percent; in brackets of a heading the number of seeds, in brackets "
            "of a cell the number "
            "that the paper prints.",
            "`cnn` has kernels of 3, 4 and 5 words, 100 of each, and `lstm` 100 states and one direction, both on 50-dimensional GloVe "
            "vectors (the paper: 300-dimensional word2vec); `minilm` has 6 layers of width 384 and stands in for BERT-base.",
            "All systems of a row have the same start, number of epochs and frozen embeddings, and that epoch is taken which is best on "
            f"validation data. {results.each_encoder(_describe)}. l2 is decoupled "
            "weight decay. One layer scores each word by its embedding, as in the paper, where VMASK's entry does not say otherwise; "
            "the weight of IBA's term is 1. The paper tells no β; its code goes from 1 down by 0.099 after each tenth of its epochs, so "
            "the last tenth has 0.109.",
        ]
        if self.recipe(results) == "code":
            found.append(
                "A name with `-code` has the recipe of the published code in all systems: CNN and LSTM have a head of one linear layer "
                "and texts of the paper's lengths (TREC: 15 words), and a CNN has dropout before its head alone. Ours are the learning "
                "rate (the code's CNN has 0.01), batches, clipping (there of the last layer's gradient alone) and, of CNN and LSTM, "
                "the number of epochs (there 100)."
            )
        return found

    def figures(self, results: VMaskResults, settings: CellSettings | None, dataset: str, encoder: str) -> list[Figure]:
        """Figures 1 to 3; words are those of the first seed."""

        def words() -> dict[str, Any]:
            return {
                system: results.cells(dataset, encoder, system)[0].importance(settings)
                for system in results.there(MASKS)
            }

        return [
            Figure(
                "curves",
                "Figure 1. Same prediction on the top words alone",
                lambda path: top_k_curves(results.curves(dataset, encoder), path),
            ),
            Figure(
                "frequency",
                "Figure 2. Importance by frequency",
                lambda path: frequency_scatter(words(), 10, path),
            ),
            Figure(
                "words",
                "Figure 3. Most important words",
                lambda path: word_bars({system: table.top(10) for system, table in words().items()}, path),
            ),
        ]


def _describe(encoder: VMaskEncoder) -> str:
    recipe = encoder.recipe
    start = f"{encoder.start_epochs} epochs of fine-tuning that all share, then " if encoder.start_epochs else ""
    hidden = f" ({recipe.hidden_size} wide between)" if recipe.hidden_size else ""
    site = " over the whole embedding output" if recipe.site == "embedding_output" else ""
    steps = f" in steps of {recipe.beta_step_epochs} epochs" if recipe.beta_step_epochs else ""
    schedule = BetaSchedule(recipe.beta_start, recipe.beta_end, recipe.beta_step_epochs)
    last = schedule.beta(encoder.epochs - 1, encoder.epochs)
    return (
        f"{start}{encoder.epochs} epochs, learning rate {encoder.training['learning_rate']:g} (on top of the encoder 0.001), "
        f"batches of {encoder.training['per_device_train_batch_size']}, decay of l2 {encoder.weight_decay:g}; VMASK with "
        f"{recipe.layers} layer{'s' * (recipe.layers > 1)}{hidden}{site}, {_DRAWS[recipe.sample]} draws, its term the "
        f"{_TERMS[recipe.reduction]}, β from {recipe.beta_start:g} to {last:g}{steps}"
    )
