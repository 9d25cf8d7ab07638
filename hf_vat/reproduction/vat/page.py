"""The VAT paper as something to reproduce: what its page tells, and its figures."""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

from hf_vat.errors import InputError
from hf_vat.explanations import Explanation, load_explanations
from hf_vat.report import attention_pairs, text_scatter, top_k_curves
from hf_vat.reproduction.cells import CellSettings
from hf_vat.reproduction.pages import Figure
from hf_vat.reproduction.paper import Paper

from .experiments import WORD_LABELS, VATCell, labelled_words
from .representations import tsne
from .systems import KINDS, SYSTEMS, VATEncoder
from .tables import TABLES, VATResults

_LENGTHS = range(6, 26)  # words of a text that fits into a heatmap


class VATPaper(Paper):
    """Zhou et al. (2021), "Attending via both Fine-tuning and Compressing"."""

    name = "vat"
    titles: ClassVar = {"paper": "VAT again"}
    tables = tuple(TABLES)
    by_default = (2, 3, 4, 6)
    systems = KINDS
    required = ("base", "VAT")
    cell = VATCell
    results = VATResults
    shown: ClassVar = {row: (row, row) for row in SYSTEMS[1:]}
    note = ' "own": each model judges its own ranking.'

    def check(
        self, settings: CellSettings, datasets: Sequence[str], numbers: Sequence[int], systems: Sequence[str]
    ) -> None:
        super().check(settings, datasets, numbers, systems)
        if 5 in numbers and not any(labelled_words(settings, dataset) for dataset in datasets):
            places = ", ".join(f"{folder}/{name} for {dataset}" for dataset, (folder, name, _) in WORD_LABELS.items())
            raise InputError(f"--table 5 needs texts with labelled words in --data_dir: {places}.")

    def introduction(self, results: VATResults) -> list[str]:
        return [
            f"{results.made_on()} Percent, mean ± sd over seeds; in brackets of a heading the number of seeds, in brackets of a "
            "cell the number that the "
            "paper prints.",
            "`lstm` is an LSTM of 100 states in each direction on 50-dimensional GloVe vectors (the paper: 300, and it does not say "
            "whether it reads both ways); `minilm` has 6 layers of width 384 and stands in for BERT-base.",
            "ATT is iteration 0 of its run, as in the paper's table 6, or without a start iteration 1. ATT (matched) is the same run "
            "trained on, with as many updates of the encoder as VAT; it is not in the paper. Of base, ATT (matched) and VAT that "
            "iteration after the start is taken which is best on validation data.",
            "How VAT was trained, chosen on validation data among the recipes of docs/schedules.md and docs/heads, while there was one "
            f"recipe of ATT: {results.each_encoder(_describe)}.",
        ]

    def figures(self, results: VATResults, settings: CellSettings | None, dataset: str, encoder: str) -> list[Figure]:
        """Figures 3 to 7; t-SNE and heatmaps are those of the first seed."""
        cells = {system: results.cells(dataset, encoder, system)[0] for system in results.there(SYSTEMS[1:])}
        runs = {system: results.results[cell] for system, cell in cells.items()}
        selected = {
            system: (system, [one["iteration"] for one in run["iterations"]].index(run["rows"][system]["iteration"]))
            for system, run in runs.items()
        }
        by_iteration = {
            f"VAT, iteration {record['iteration']}": ("VAT", position)
            for position, record in enumerate(runs["VAT"]["iterations"])
        }

        @cache
        def explained(system: str) -> list[Explanation]:
            return load_explanations(cells[system].explanations(settings, system))

        @cache
        def points(system: str, position: int) -> tuple[Any, Any]:
            stored = np.load(cells[system].vectors(settings))
            return tsne(stored["vectors"][position]), stored["labels"]

        def vectors(panels: dict[str, tuple[str, int]], path) -> str:
            """Text vectors, a panel for each system and position of an iteration."""
            notes = {}
            for title, (system, position) in panels.items():
                record = runs[system]["iterations"][position]
                notes[title] = (
                    f"silhouette {record['silhouette']:.2f}, kNN accuracy {100 * record['knn_accuracy']:.1f} %"
                )
            names = explained("VAT")[0].label_names
            return text_scatter({title: points(*panel) for title, panel in panels.items()}, names, notes, path)

        def attention(path) -> str:
            pairs = heatmap_texts(explained("ATT"), explained("VAT"))
            return attention_pairs(dict(zip(("ATT", "VAT"), pairs, strict=True)), path)

        found = [
            Figure(
                "curves",
                "Figures 4 and 5. Scores by number of words",
                lambda path: top_k_curves(results.curves(dataset, encoder), path),
            ),
            Figure("vectors", "Figure 3. Text vectors (t-SNE)", partial(vectors, selected)),
            Figure(
                "iterations",
                "Figure 6. Text vectors of VAT by iteration (t-SNE)",
                partial(vectors, by_iteration),
            ),
        ]
        if "ATT" in cells:
            found.append(Figure("attention", "Figure 7. Attention of ATT and VAT", attention, shows_texts=True))
        return found


def _describe(encoder: VATEncoder) -> str:
    recipe = encoder.recipe
    start = f"{recipe.start_epochs} epochs of {recipe.start} start, then " if recipe.start_epochs else ""
    return (
        f"{start}{recipe.rounds} times {recipe.compress_epochs} compressor and {recipe.learn_epochs} learner epochs, heads "
        f"{recipe.heads}, β = {recipe.beta:g} with the {recipe.kl_reduction} of the KL over dimensions, learning rate "
        f"{encoder.training['learning_rate']:g} (on top of the encoder {recipe.compressor_learning_rate:g}), batches of "
        f"{encoder.training['per_device_train_batch_size']}"
    )


def heatmap_texts(att: list[Explanation], vat: list[Explanation]) -> tuple[list[Explanation], list[Explanation]]:
    """Texts of 6 to 25 words for heatmaps, as explained by ATT and by VAT.

    Where the two attend most differently (half the sum of absolute differences): a text that both classify right, one that
    only VAT does, and one that only ATT does, as far as there are such texts.
    """
    best: dict[tuple, tuple[float, int]] = {}
    for place, (one, other) in enumerate(zip(att, vat, strict=True)):
        kind = (one.correct, other.correct)
        if len(one.words) in _LENGTHS and any(kind):
            distance = float(np.abs(np.subtract(one.scores, other.scores)).sum() / 2)
            best[kind] = max(best.get(kind, (-1.0, 0)), (distance, place))
    places = [best[kind][1] for kind in ((True, True), (False, True), (True, False)) if kind in best] or [0]
    return [att[place] for place in places], [vat[place] for place in places]
