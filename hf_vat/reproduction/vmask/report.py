"""The reproduction of the VMASK paper as files: its tables, claims and figures."""

import json
from collections.abc import Sequence
from pathlib import Path

from hf_vat.errors import InputError
from hf_vat.explanations import GlobalImportance, load_explanations
from hf_vat.report import Table, frequency_scatter, top_k_curves, word_bars
from hf_vat.reproduction.claims import claims_tables
from hf_vat.reproduction.reporting import Figure, write_results, write_tables
from hf_vat.reproduction.running import CellSettings
from hf_vat.training import BetaSchedule

from .cells import EXPLAINED, MASKS, VMaskCell
from .results import TABLES, VMaskResults, recipes_tables
from .systems import BY_CODE, ENCODERS, Encoder

_DRAWS = {"soft": "soft", "hard_st": "hard"}
_TERMS = {
    "token_mean": "mean over words",
    "sum": "sum over words",
    "position_mean": "mean over all positions of batches in random order, padding included",
}
_ON_PAGE = 30  # texts whose explanations the page shows


def write_vmask(
    results: VMaskResults, settings: CellSettings, numbers: Sequence[int], folder: str | Path, command: str
) -> Path:
    """Write tables, claims and figures; see [`write_results`].

    Args:
        numbers: of the paper's tables.
        command: that makes these files again.

    Returns:
        The path of `vmask.md`, or of `vmask-code.md` if there are cells by the recipe "code".
    """
    compared = {"recipes": results.recipes(numbers), "claims": results.claims(numbers)}
    dataset, encoder = results.settings()[0]
    return write_results(
        folder,
        *_page(results, numbers, command, compared),
        vmask_figures(results, settings),
        {"command": command, "tables": list(numbers), "cells": results.summaries(), **compared},
        {
            f"{system} by LIME ({encoder}, {dataset}, seed 0)": load_explanations(
                VMaskCell(dataset, encoder, system, 0).explanations(settings, "lime")
            )[:_ON_PAGE]
            for system in results.systems(EXPLAINED)
        },
    )


def rewrite_vmask(summary: str | Path, folder: str | Path, numbers: Sequence[int] | None = None) -> Path:
    """Write the tables again from the JSON file of [`write_vmask`], without any cell; pictures stay as they are.

    What these cells had not measured is shown as a dash.

    Args:
        numbers: of the paper's tables; by default those that the file names.

    Raises:
        InputError: if the file is none of [`write_vmask`].
    """
    try:
        found = json.loads(Path(summary).read_text(encoding="utf-8"))
        results = VMaskResults({VMaskCell(**one["cell"]): one for one in found["cells"]})
        command, claims = found["command"], found["claims"]
        # Earlier files name no tables and compare no recipes, and have the paper's AOPC as if it were on our scale.
        numbers, recipes = list(numbers or found.get("tables", TABLES)), found.get("recipes", [])
        claims = [claim | {"paper": None} if claim["score"].startswith("prob_drop") else claim for claim in claims]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{summary} is no vmask.json that hf-vat reproduce vmask has written.") from error
    compared = {"recipes": recipes, "claims": claims}
    return write_tables(
        folder,
        *_page(results, numbers, command, compared),
        vmask_figures(results, None),
        {"command": command, "tables": numbers, "cells": found["cells"], **compared},
    )


def _page(
    results: VMaskResults, numbers: Sequence[int], command: str, compared: dict[str, list[dict]]
) -> tuple[str, str, list[str], list[Table]]:
    """Name, title, introduction and tables of the page.

    Args:
        compared: "recipes" and "claims".
    """
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
        "the weight of IBA's term is 1. The paper tells no β; its code goes from 1 down by 0.099 after each tenth of its epochs, so "
        "the last tenth has 0.109.",
    ]
    name, title = _name(results), "VMASK again"
    if name != "vmask":
        title = "VMASK by its published code"
        introduction.append(
            "A name with `-code` has the recipe of the published code in all systems: CNN and LSTM have a head of one linear layer "
            "and texts of the paper's lengths (TREC: 15 words), and a CNN has dropout before its head alone. Ours are the learning "
            "rate (the code's CNN has 0.01), batches, clipping (there of the last layer's gradient alone) and, of CNN and LSTM, "
            "the number of epochs (there 100)."
        )
    tables = [results.data_table(), *recipes_tables(compared["recipes"]), *results.tables(numbers)]
    tables += claims_tables(compared["claims"])
    return name, title, introduction, tables


def _name(results: VMaskResults) -> str:
    return "vmask-code" if any(encoder in BY_CODE for _, encoder in results.settings()) else "vmask"


def vmask_figures(results: VMaskResults, settings: CellSettings | None) -> list[Figure]:
    """Figures 1 to 3 for each data set and encoder; words are those of the first seed.

    Args:
        settings: of the cells; None if the figures shall only be named.
    """
    return [figure for setting in results.settings() for figure in _figures_of(results, settings, *setting)]


def _figures_of(results: VMaskResults, settings: CellSettings | None, dataset: str, encoder: str) -> list[Figure]:
    prefix, place = f"{_name(results)}-{dataset}-{encoder}", f"{encoder}, {dataset}"

    def words() -> dict[str, GlobalImportance]:
        return {
            system: VMaskCell(dataset, encoder, system, 0).importance(settings) for system in results.systems(MASKS)
        }

    return [
        Figure(
            f"{prefix}-curves",
            f"Figure 1. Same prediction on the top words alone, {place}",
            lambda path: top_k_curves(results.curves(dataset, encoder), path),
        ),
        Figure(
            f"{prefix}-frequency",
            f"Figure 2. Importance by frequency, {place}",
            lambda path: frequency_scatter(words(), 10, path),
        ),
        Figure(
            f"{prefix}-words",
            f"Figure 3. Most important words, {place}",
            lambda path: word_bars({system: table.top(10) for system, table in words().items()}, path),
        ),
    ]


def _describe(encoder: Encoder) -> str:
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
