"""The reproduction of the VMASK paper as files: its tables, claims and figures."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ...explanations import load_explanations
from ...report import frequency_scatter, top_k_curves, word_bars
from ..claims import claims_tables
from ..reporting import Figure, write_results
from ..running import CellSettings
from .cells import EXPLAINED, MASKS, VMaskCell
from .results import VMaskResults
from .systems import ENCODERS, Encoder

_DRAWS = {"soft": "soft", "hard_st": "hard"}
_ON_PAGE = 30  # texts whose explanations the page shows


def write_vmask(
    results: VMaskResults, settings: CellSettings, numbers: Sequence[int], folder: str | Path, command: str
) -> Path:
    """Write tables, claims and figures; see [`write_results`].

    Args:
        numbers: of the paper's tables.
        command: that makes these files again.

    Returns:
        The path of `vmask.md`.
    """
    claims = results.claims(numbers)
    used = {encoder: ENCODERS[encoder] for _, encoder in results.settings()}
    introduction = [
        f"Written by `{command}`.",
        f"{results.made_on()} Mean ± sd over seeds, shares in percent; in brackets of a heading the number of seeds, in brackets "
        "of a cell the number "
        "that the paper prints.",
        "`cnn` has kernels of 3, 4 and 5 words, 100 of each, and `lstm` 100 states and one direction, both on 50-dimensional GloVe "
        "vectors (the paper: 300-dimensional word2vec); `minilm` has 6 layers of width 384 and stands in for BERT-base.",
        "All systems of a row have the same start, number of epochs and frozen embeddings, and that epoch is taken which is best on "
        f"validation data. {'; '.join(f'`{name}`: {_describe(encoder)}' for name, encoder in used.items())}. l2 is decoupled "
        "weight decay. One layer scores each word by its embedding, as in the paper, where VMASK's entry does not say otherwise; "
        "the weight of IBA's term is 1. β of VMASK is the published code's, as the paper tells none.",
    ]
    dataset, encoder = results.settings()[0]
    return write_results(
        folder,
        "vmask",
        "VMASK again",
        introduction,
        [results.data_table(), *results.tables(numbers), *claims_tables(claims)],
        vmask_figures(results, settings),
        {"command": command, "cells": results.summaries(), "claims": claims},
        {
            f"{system} by LIME ({encoder}, {dataset}, seed 0)": load_explanations(
                VMaskCell(dataset, encoder, system, 0).explanations(settings, "lime")
            )[:_ON_PAGE]
            for system in EXPLAINED
        },
    )


def vmask_figures(results: VMaskResults, settings: CellSettings) -> list[Figure]:
    """Figures 1 to 3 for each data set and encoder; words are those of the first seed."""
    found = []
    for dataset, encoder in results.settings():
        words = {system: VMaskCell(dataset, encoder, system, 0).importance(settings) for system in MASKS}
        prefix, place = f"vmask-{dataset}-{encoder}", f"{encoder}, {dataset}"
        found += [
            Figure(
                f"{prefix}-curves",
                f"Figure 1. Same prediction on the top words alone, {place}",
                partial(top_k_curves, results.curves(dataset, encoder)),
            ),
            Figure(
                f"{prefix}-frequency",
                f"Figure 2. Importance by frequency, {place}",
                partial(frequency_scatter, words, 10),
            ),
            Figure(
                f"{prefix}-words",
                f"Figure 3. Most important words, {place}",
                partial(word_bars, {system: table.top(10) for system, table in words.items()}),
            ),
        ]
    return found


def _describe(encoder: Encoder) -> str:
    recipe = encoder.recipe
    start = f"{encoder.start_epochs} epochs of fine-tuning that all share, then " if encoder.start_epochs else ""
    return (
        f"{start}{encoder.epochs} epochs, learning rate {encoder.training['learning_rate']:g} (on top of the encoder 0.001), "
        f"batches of {encoder.training['per_device_train_batch_size']}, decay of l2 {encoder.weight_decay:g}; VMASK with "
        f"{recipe.layers} layer{'s' * (recipe.layers > 1)}, {_DRAWS[recipe.sample]} draws, β from {recipe.beta_start:g} to "
        f"{recipe.beta_end:g}"
    )
