"""The folder of a run: whose it is, and which checkpoint the run goes on from."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from transformers.trainer_utils import get_last_checkpoint

from hf_vat.data import DataArguments
from hf_vat.errors import InputError

from .arguments import VATTrainingArguments
from .model_arguments import ModelArguments

RUN_NAME = "run.json"

# Training arguments that decide about the result, so that a run can only be continued with the same.
_DECISIVE = (
    *("start", "start_epochs", "compress_epochs", "learn_epochs", "predict_from", "num_train_epochs", "max_steps"),
    *("learning_rate", "compressor_learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay", "optim"),
    *("weight_decay_on", "optim_args"),
    *("per_device_train_batch_size", "gradient_accumulation_steps", "max_grad_norm", "label_smoothing_factor"),
    "class_weights",
    *("mask_beta_start", "mask_beta_end", "mask_beta_step_epochs"),
    *("early_stopping_patience", "early_stopping_threshold"),
    *("seed", "data_seed", "bf16", "fp16", "train_sampling_strategy", "metric_for_best_model"),
)


def claim_output_dir(model_args: ModelArguments, data_args: DataArguments, args: VATTrainingArguments) -> str | None:
    """Check that the output folder is new, or holds this very run and `resume_from_checkpoint` asks to go on.

    Nothing is written: every process of a run checks for itself and comes to the same result.

    Returns:
        The checkpoint to go on from, if there is one.

    Raises:
        InputError: if the folder holds anything else.
    """
    folder, resume = Path(args.output_dir), args.resume_from_checkpoint
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output_dir {folder} is a file; give a folder.")
    if not folder.exists() or not any(folder.iterdir()):
        if resume and resume != "last":
            raise InputError(f"{resume} is not a checkpoint of the run in {folder}, which is empty.")
        return None
    try:
        found = json.loads((folder / RUN_NAME).read_text(encoding="utf-8"))
        defaults: dict[str, Any] = {"model": ModelArguments, "data": DataArguments, "training": VATTrainingArguments}
        different = []
        for group, values in run_settings(model_args, data_args, args).items():
            for name, value in values.items():
                # An option that came later had its default value before.
                before = found[group].get(name, defaults[group].__dataclass_fields__[name].default)
                if before != value:
                    different.append(f"{group}.{name} was {before!r} and is {value!r}")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"--output_dir {folder} holds other files and no run; choose an empty or new folder."
        ) from error
    if different:
        raise InputError(
            f"--output_dir {folder} holds another run ({'; '.join(different[:5])}); choose another folder, or the same "
            "settings."
        )
    if not resume:
        raise InputError(
            f"--output_dir {folder} holds this run already; go on with --resume_from_checkpoint last, or choose "
            "another folder."
        )
    if resume == "last":
        return get_last_checkpoint(folder)
    if not os.path.isdir(resume):
        raise InputError(f"--resume_from_checkpoint {resume} is not a folder; use 'last' or one of {folder}.")
    return resume


def run_settings(model_args: ModelArguments, data_args: DataArguments, args: VATTrainingArguments) -> dict:
    """What is stored as `run.json`, as it reads when loaded back."""
    training = args.to_dict()
    settings = {
        "model": asdict(model_args),
        "data": asdict(data_args),
        "training": {name: training[name] for name in _DECISIVE},
    }
    return json.loads(json.dumps(settings))
