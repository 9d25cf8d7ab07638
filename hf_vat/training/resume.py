"""What a run that resumes must have in common with its checkpoint, and what it takes over from it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from transformers import PreTrainedConfig

from hf_vat.errors import InputError, parse_json
from hf_vat.models.setting import declared_settings

from .arguments import VATTrainingArguments
from .schedule import MASK_BETA_SCHEDULE, PhaseSchedule, loss_weights

STATE_NAME = "vat_state.json"


def resumed_settings(
    config: PreTrainedConfig,
    schedule: PhaseSchedule,
    args: VATTrainingArguments,
    class_weights: torch.Tensor | None,
) -> dict:
    """What must agree between a checkpoint and the run that resumes it, beside what training writes into the model."""
    fixed = [name for name, one in declared_settings(type(config)).items() if not one.moves]
    settings = {name: getattr(config, name) for name in ("model_type", "num_labels", *fixed)}
    if schedule.alternates:
        names = ("start", "start_epochs", "compress_epochs", "learn_epochs")
        settings |= {name: getattr(schedule, name) for name in names}
    if "mask_beta" in loss_weights(config):
        settings |= {name: getattr(args, name) for name in MASK_BETA_SCHEDULE}
    return settings | {"class_weights": None if class_weights is None else class_weights.tolist()}


class Progress(NamedTuple):
    """What a training has come to beside weights and optimizer.

    Attributes:
        attention_probe: attention on the probe's texts when the phase began, float64 [texts, T], if there is any.
        loss_sum: of the losses of all steps.
        patience: of early stopping; see [`RoundPatience`].
    """

    attention_probe: torch.Tensor | None = None
    loss_sum: float = 0.0
    patience: Sequence[list] = ()


def write_state(folder: Path, settings: dict, progress: Progress) -> None:
    """Write what a checkpoint says of its run."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = None if progress.attention_probe is None else progress.attention_probe.tolist()
    state = {"settings": settings, **progress._asdict(), "attention_probe": probe}
    path = folder / STATE_NAME
    path.write_text(json.dumps(state), encoding="utf-8")


def read_state(checkpoint: str, settings: dict) -> Progress:
    """Check a checkpoint's settings against those of the run that resumes it, and read how far it has come.

    Raises:
        InputError: if this is no such checkpoint, or a setting differs.
    """
    path = Path(checkpoint, STATE_NAME)
    if not path.is_file():
        raise InputError(f"{checkpoint} is not a checkpoint of VATTrainer: it has no {STATE_NAME}.")
    state = parse_json(path.read_text(encoding="utf-8"))
    different = [
        f"{name} was {value!r} and is {settings[name]!r}"
        for name, value in sorted({"class_weights": None, **state["settings"]}.items())
        if name in settings and value != settings[name]
    ]
    if different:
        raise InputError(
            f"{checkpoint} cannot be resumed with other settings: {'; '.join(different)}. Use the settings it was "
            "made with, or start a new run in another output_dir."
        )
    probe = state["attention_probe"]
    probe = None if probe is None else torch.tensor(probe, dtype=torch.float64)
    return Progress(probe, state["loss_sum"], state["patience"])


def take_over(config: PreTrainedConfig, checkpoint: str) -> None:
    """Set what training writes into the configuration to what it was at a checkpoint."""
    saved = type(config).from_pretrained(checkpoint)
    for name, one in declared_settings(type(config)).items():
        if one.moves:
            setattr(config, name, getattr(saved, name))
