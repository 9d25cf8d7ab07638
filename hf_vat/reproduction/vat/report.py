"""The reproduction of the VAT paper as files: its tables, claims and figures."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from hf_vat.explanations import Explanation, load_explanations
from hf_vat.report import attention_pairs, text_scatter, top_k_curves
from hf_vat.reproduction.claims import claims_tables
from hf_vat.reproduction.reporting import Figure, write_results
from hf_vat.reproduction.running import CellSettings

from .cells import VATCell
from .representations import tsne
from .results import VATResults
from .systems import ENCODERS, SYSTEMS

_LENGTHS = range(6, 26)  # words of a text that fits into a heatmap
_OWN = ' "own": each model judges its own ranking.'
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
    used = {encoder: ENCODERS[encoder] for _, encoder in results.settings()}
    introduction = [
        f"Written by `{command}`.",
        f"{results.made_on()} Percent, mean ± sd over seeds; in brackets of a heading the number of seeds, in brackets of a "
        "cell the number that the "
        "paper prints.",
        "`lstm` is an LSTM of 100 states in each direction on 50-dimensional GloVe vectors (the paper: 300, and it does not say "
        "whether it reads both ways); `minilm` has 6 layers of width 384 and stands in for BERT-base.",
        "ATT is iteration 0 of its run, as in the paper's table 6, or without a start iteration 1. ATT (matched) is the same run "
        "trained on, with as many updates of the encoder as VAT; it is not in the paper. Of base, ATT (matched) and VAT that "
        "iteration after the start is taken which is best on validation data.",
        "How VAT was trained, chosen on validation data among the recipes of docs/schedules.md and docs/heads, while there was one "
        f"recipe of ATT: {'; '.join(f'`{name}`: {_describe(encoder)}' for name, encoder in used.items())}.",
    ]
    dataset, encoder = results.settings()[0]
    cells = {system: _first(results, dataset, encoder, system) for system in SYSTEMS[1:]}
    return write_results(
        folder,
        "vat",
        "VAT again",
        introduction,
        [results.data_table(), *results.tables(numbers), *claims_tables(claims, _OWN)],
        vat_figures(results, settings),
        {"command": command, "cells": results.summaries(), "claims": claims},
        {
            f"{system} ({encoder}, {dataset}, seed {cell.seed})": load_explanations(
                cell.explanations(settings, system)
            )[:_ON_PAGE]
            for system, cell in cells.items()
        },
    )


def _first(results: VATResults, dataset: str, encoder: str, system: str) -> VATCell:
    """The cell of a system's first seed."""
    return VATCell(**results.runs(dataset, encoder, system)[0]["cell"])


def _describe(encoder) -> str:
    recipe = encoder.recipe
    start = f"{recipe.start_epochs} epochs of {recipe.start} start, then " if recipe.start_epochs else ""
    return (
        f"{start}{recipe.rounds} times {recipe.compress_epochs} compressor and {recipe.learn_epochs} learner epochs, heads "
        f"{recipe.heads}, β = {recipe.beta:g} with the {recipe.kl_reduction} of the KL over dimensions, learning rate "
        f"{encoder.training['learning_rate']:g} (on top of the encoder {recipe.compressor_learning_rate:g}), batches of "
        f"{encoder.training['per_device_train_batch_size']}"
    )


def vat_figures(results: VATResults, settings: CellSettings) -> list[Figure]:
    """Figures 3 to 7 for each data set and encoder; t-SNE and heatmaps are those of the first seed."""
    found = []
    for dataset, encoder in results.settings():
        cells = {system: _first(results, dataset, encoder, system) for system in SYSTEMS[1:]}
        stored = {system: np.load(cell.vectors(settings)) for system, cell in cells.items()}
        runs = {system: results.results[cell] for system, cell in cells.items()}
        explained = {system: load_explanations(cell.explanations(settings, system)) for system, cell in cells.items()}
        names, prefix, place = explained["VAT"][0].label_names, f"vat-{dataset}-{encoder}", f"{encoder}, {dataset}"
        panels = {
            system: (system, [one["iteration"] for one in run["iterations"]].index(run["rows"][system]["iteration"]))
            for system, run in runs.items()
        }
        by_iteration = {
            f"VAT, iteration {record['iteration']}": ("VAT", position)
            for position, record in enumerate(runs["VAT"]["iterations"])
        }
        pairs = heatmap_texts(explained["ATT"], explained["VAT"])
        found += [
            Figure(
                f"{prefix}-curves",
                f"Figures 4 and 5. Scores by number of words, {place}",
                partial(top_k_curves, results.curves(dataset, encoder)),
            ),
            Figure(
                f"{prefix}-vectors", f"Figure 3. Text vectors (t-SNE), {place}", _scatter(panels, stored, runs, names)
            ),
            Figure(
                f"{prefix}-iterations",
                f"Figure 6. Text vectors of VAT by iteration (t-SNE), {place}",
                _scatter(by_iteration, stored, runs, names),
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


def _scatter(panels: dict[str, tuple[str, int]], stored: dict, runs: dict, names: list[str]):
    """A function that draws text vectors, with a panel for each system and position of an iteration."""
    points: dict = {}
    notes = {}
    for title, (system, position) in panels.items():
        record = runs[system]["iterations"][position]
        notes[title] = f"silhouette {record['silhouette']:.2f}, kNN accuracy {100 * record['knn_accuracy']:.1f} %"

    def draw(path):
        if not points:  # once for both files
            for title, (system, position) in panels.items():
                points[title] = tsne(stored[system]["vectors"][position]), stored[system]["labels"]
        return text_scatter(points, names, notes, path)

    return draw
