"""The reproduction of the VAT paper as files: its tables, claims and figures."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ..explanations import Explanation, load_explanations
from ..report import attention_pairs, text_scatter, top_k_curves
from .cells import EXPLANATIONS, VECTORS, Cell, CellSettings
from .reporting import Figure, machine, write_results
from .representations import tsne
from .systems import ENCODERS, SYSTEMS
from .vat import VATResults, claims_table

_LENGTHS = range(6, 26)  # words of a text that fits into a heatmap
_ON_PAGE = 30  # texts whose heatmaps the page shows


def write_vat(
    results: VATResults, settings: CellSettings, numbers: Sequence[int], folder: str | Path, command: str
) -> Path:
    """Write tables, claims and figures; see [`write_results`].

    Args:
        numbers: of the paper's tables.
        command: that makes these files again.

    Returns:
        The path of `vat.md`.
    """
    claims = results.claims(numbers)
    minutes = sum(result["seconds"] for result in results.results.values()) / 60
    recipes = [
        f"`{encoder}`: {_describe(ENCODERS[encoder])}"
        for encoder in dict.fromkeys(pair[1] for pair in results.settings())
    ]
    introduction = [
        f"Written by `{command}`.",
        f"{machine()}; {minutes:.0f} minutes of cells, one after the other. Percent, mean ± sd over seeds; in brackets of a "
        "heading the number of seeds, in brackets of a cell the number that the paper prints.",
        "`lstm` is an LSTM of 100 states in each direction on 50-dimensional GloVe vectors (the paper: 300, and it does not say "
        "whether it reads both ways); `minilm` has 6 layers of width 384 and stands in for BERT-base.",
        "ATT is iteration 0 as in the paper's table 6; ATT (matched) trains on, with as many updates of the encoder as VAT, and "
        "is not in the paper. Of base, ATT (matched) and VAT the iteration with the best validation accuracy is taken.",
        f"How VAT was trained, chosen on validation data ([docs/heads.md](../heads.md)): {'; '.join(recipes)}.",
    ]
    cell = next(cell for cell in results.results if cell.system == "VAT")
    runs = {
        system: load_explanations(Cell(cell.dataset, cell.encoder, system, cell.seed).folder(settings) / EXPLANATIONS)
        for system in SYSTEMS[1:]
    }
    return write_results(
        folder,
        "vat",
        "VAT again",
        introduction,
        [*results.tables(numbers), claims_table(claims)],
        vat_figures(results, settings),
        {"command": command, "cells": [_summary(result) for result in results.results.values()], "claims": claims},
        {system: explanations[:_ON_PAGE] for system, explanations in runs.items()},
    )


def _describe(encoder) -> str:
    recipe = encoder.recipe
    start = f"{recipe.start_epochs} epochs of {recipe.start} start, then " if recipe.start_epochs else ""
    return (
        f"{start}{recipe.rounds} times {recipe.compress_epochs} compressor and {recipe.learn_epochs} learner epochs, heads "
        f"{recipe.heads}, β = {recipe.beta:g} with the {recipe.kl_reduction} of the KL over dimensions, learning rate "
        f"{encoder.training['learning_rate']:g} (on top of the encoder {recipe.compressor_learning_rate:g}), batches of "
        f"{encoder.training['per_device_train_batch_size']}"
    )


def _summary(result: dict) -> dict:
    """A cell without the values of single texts."""
    means = {
        place: {name: float(np.mean(values)) for name, values in result[place].items()}
        for place in ("base", "self", "random", "words")
        if result.get(place)
    }
    return {name: result[name] for name in ("cell", "test", "accuracy", "iterations", "selected", "seconds")} | means


def vat_figures(results: VATResults, settings: CellSettings) -> list[Figure]:
    """Figures 3 to 7 for each data set and encoder; t-SNE and heatmaps are those of the first seed."""
    found = []
    for dataset, encoder in results.settings():
        seed = results.seeds(dataset, encoder)[0]
        cells = {system: Cell(dataset, encoder, system, seed) for system in SYSTEMS[1:]}
        records = {system: results.results[cell] for system, cell in cells.items()}
        stored = {system: np.load(cell.folder(settings) / VECTORS) for system, cell in cells.items()}
        explained = {system: load_explanations(cell.folder(settings) / EXPLANATIONS) for system, cell in cells.items()}
        names, prefix, place = explained["VAT"][0].label_names, f"vat-{dataset}-{encoder}", f"{encoder}, {dataset}"
        chosen = {system: (stored[system], _position(record, record["selected"])) for system, record in records.items()}
        rounds = {
            f"VAT, iteration {record['iteration']}": (stored["VAT"], position)
            for position, record in enumerate(records["VAT"]["iterations"])
        }
        notes = {
            **{system: _note(records[system]["iterations"][position]) for system, (_, position) in chosen.items()},
            **{title: _note(records["VAT"]["iterations"][position]) for title, (_, position) in rounds.items()},
        }
        pairs = heatmap_texts(explained["ATT"], explained["VAT"])
        found += [
            Figure(
                f"{prefix}-curves",
                f"Figures 4 and 5. Scores by number of words, {place}",
                partial(top_k_curves, results.curves(dataset, encoder)),
            ),
            Figure(f"{prefix}-vectors", f"Figure 3. Text vectors (t-SNE), {place}", _scatter(chosen, names, notes)),
            Figure(
                f"{prefix}-iterations",
                f"Figure 6. Text vectors of VAT by iteration (t-SNE), {place}",
                _scatter(rounds, names, notes),
            ),
            Figure(
                f"{prefix}-attention",
                f"Figure 7. Attention of ATT and VAT, {place}",
                partial(attention_pairs, dict(zip(("ATT", "VAT"), pairs, strict=True))),
                shows_texts=True,
            ),
        ]
    return found


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


def _position(record: dict, iteration: int) -> int:
    return [found["iteration"] for found in record["iterations"]].index(iteration)


def _note(record: dict) -> str:
    return f"silhouette {record['silhouette']:.2f}, kNN accuracy {100 * record['knn_accuracy']:.1f} %"


def _scatter(vectors: dict, names, notes: dict):
    points: dict = {}

    def draw(path):
        if not points:  # once for both files
            for title, (stored, position) in vectors.items():
                points[title] = tsne(stored["vectors"][position]), stored["labels"]
        return text_scatter(points, names, {title: notes[title] for title in vectors}, path)

    return draw
