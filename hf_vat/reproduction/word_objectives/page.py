"""The study of word objectives as something to reproduce: what its page tells, and its figure."""

from collections.abc import Sequence
from typing import ClassVar

from hf_vat.report import top_k_curves
from hf_vat.reproduction.cells import Cell, CellSettings
from hf_vat.reproduction.pages import Figure
from hf_vat.reproduction.paper import Paper

from .experiments import WordObjectiveCell
from .systems import SYSTEMS, WEIGHED, WordObjectiveEncoder
from .tables import TABLES, WordObjectiveResults


class WordObjectivesPaper(Paper):
    """Tutek and Šnajder (2020), "Staying True to Your Word: (How) Can Attention Become Explanation?"."""

    name = "word-objectives"
    titles: ClassVar = {"paper": "Word objectives, and whether attention can be replaced"}
    tables = tuple(TABLES)
    by_default = tables
    default_datasets = ("trec", "sst2")
    systems = SYSTEMS
    required = ("ATT", "mlm")
    mixed = True
    cell = WordObjectiveCell
    results = WordObjectiveResults
    shown: ClassVar = {f"attention of {system}": (system, "attention") for system in ("ATT", "mlm")}
    note = (
        " tvd@J and area are one number for each seed, so seeds alone are resampled, and such a claim is held or failed if all "
        "seeds agree: of two systems that do not differ, with 3 seeds that happens in a quarter of the cases. information in percent "
        "of H(w), adversarial in hundredths of a nat; where ATT > another, less is better. "
        "accuracy + 1: not lower by a point."
    )

    def cells(
        self, dataset: str, encoder: str, seeds: int, numbers: Sequence[int], systems: Sequence[str]
    ) -> list[Cell]:
        """On a pretrained encoder without extras and controls."""
        measured = [system for system in systems if system in self.cell.encoders[encoder].systems]
        return super().cells(dataset, encoder, seeds, numbers, measured)

    def introduction(self, results: WordObjectiveResults) -> list[str]:
        return [
            f"{results.made_on()} In brackets of a heading the number of seeds. The paper's own text and numbers could not be read "
            "(methods as far as they are known: attention over an LSTM with a word-level objective), so there are none beside ours.",
            "ATT is attention without an objective, trained for as many epochs of the encoder as all others. tying adds "
            "‖h − x‖ of a state and its embedding to the loss, mlm the cross-entropy of hidden words, which a second pass of the "
            "encoder reads as the mask token, and concat pools [h; x]. Beyond that paper: conicity adds the mean cosine of states and "
            "their mean, residual pools h + x. VAT and VMASK are those of their papers, VMASK with attention in the place of the maximum, "
            "and with embeddings that are trained as in all others. Controls: the attention of frozen stays as it was drawn, and uniform "
            "has the mean of the states in its place.",
            "`lstm` has 25 states in each direction on 50-dimensional GloVe vectors, so that states are as wide as embeddings, which "
            "tying needs (follow-up code of the authors: 150 and 300); `minilm` has 6 layers of width 384, where the embedding of a token "
            "is that before the first layer. The model of the last epoch is measured. Weights of objectives were chosen on validation "
            "data (docs/heads/word_objectives.md, of `minilm` docs/heads/word_objectives_minilm.md), as the largest that costs at most one point of accuracy: "
            f"{results.each_encoder(_describe)}.",
        ]

    def figures(
        self, results: WordObjectiveResults, settings: CellSettings | None, dataset: str, encoder: str
    ) -> list[Figure]:
        return [
            Figure(
                "adversary",
                "What another attention costs",
                lambda path: top_k_curves(results.curves(dataset, encoder), path),
            )
        ]


def _describe(encoder: WordObjectiveEncoder) -> str:
    recipe, adversary = encoder.recipe, encoder.adversary
    epochs, of_vat = (recipe.training(vat)["num_train_epochs"] for vat in (False, True))
    weights = ", ".join(f"{kind} {encoder.weights[kind]:g}" for kind in WEIGHED if kind in encoder.systems)
    trained = "a whole model, its embeddings aside" if adversary["trains"] == "model" else "attention and heads alone"
    return (
        f"{weights}; {epochs} epochs (VAT {of_vat}, of which {of_vat - epochs} leave the encoder as it is), learning rate "
        f"{encoder.training['learning_rate']:g} (on top of the encoder {recipe.compressor_learning_rate:g}), batches of "
        f"{encoder.training['per_device_train_batch_size']}; the adversary trains {trained}, "
        f"{adversary['epochs']} epochs"
    )
