"""What a run refuses before it begins."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from accelerate.utils import DynamoBackend
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import Trainer
from transformers.integrations import get_reporting_integration_callbacks
from transformers.trainer_utils import IntervalStrategy

from hf_vat.data import DataArguments
from hf_vat.errors import InputError
from hf_vat.pretrained import reason
from hf_vat.ranges import check_ranges

from .arguments import VATTrainingArguments
from .metrics import ALL_NAMES
from .model_arguments import ModelArguments
from .schedule import phase_factor

_METRICS = (*ALL_NAMES, "loss", "cross_entropy")  # by which the best model can be chosen
_PREDICTIONS = "its measures, by which the epoch is chosen, need all predictions and labels together. Leave it out."
# Inherited training arguments that a run has no use for, with their defaults and what to do.
_WITHOUT_USE: dict[str, tuple[object, str]] = {
    "label_names": (
        None,
        "there it means columns of labels. For the names of the classes 0, 1, … give --class_names, for the column with the "
        "labels --label_column.",
    ),
    "remove_unused_columns": (True, "the texts themselves are no model input. Leave it out."),
    "length_column_name": (
        "length",
        "the length of a text is counted, and no column of the data has it. Leave it out.",
    ),
    "prediction_loss_only": (False, _PREDICTIONS),
    "eval_do_concat_batches": (True, _PREDICTIONS),
    "batch_eval_metrics": (False, _PREDICTIONS),
    "include_for_metrics": ([], "its measures need predictions and labels alone. Leave it out."),
    "do_predict": (
        False,
        "it tests where there is test data, and hf-vat explain --csv writes predictions for a file. Leave it out.",
    ),
    "dataloader_drop_last": (False, "it would leave out validation and test texts as well. Leave it out."),
    "use_cache": (False, "that is for models that generate text. Leave it out."),
    "use_liger_kernel": (False, "its kernels are for models that generate text. Leave it out."),
    "debug": ([], "it does not understand masks, and a loss that is not finite ends the run anyway. Leave it out."),
}
_OBJECTS = ("lr_scheduler_kwargs", "gradient_checkpointing_kwargs", "activation_checkpointing_kwargs")


def check_settings(model_args: ModelArguments, data_args: DataArguments, args: VATTrainingArguments) -> None:
    """Refuse what torch and transformers refuse only after the run has begun, or not at all."""
    check_ranges(model_args, data_args, args)
    if not args.num_train_epochs > 0 and args.max_steps <= 0:
        raise InputError(f"--num_train_epochs is {args.num_train_epochs}; it must be above 0, or give --max_steps.")
    metric = args.metric_for_best_model
    if metric is not None and metric.removeprefix("eval_") not in _METRICS:
        raise InputError(f"--metric_for_best_model is {metric!r}; it must be one of {', '.join(_METRICS)}.")


def check_inherited(args: VATTrainingArguments) -> None:
    """Refuse options of the base class that cannot work in this run, or would have no effect on it."""
    for name, (usual, advice) in _WITHOUT_USE.items():
        value = getattr(args, name)
        if value != usual:
            raise InputError(f"--{name} is {value!r}, which this run cannot use: {advice}")
    for name in _OBJECTS:
        value = getattr(args, name)
        if value is not None and not isinstance(value, dict):
            raise InputError(f"--{name} is {value!r}; give a JSON object, such as '{{\"name\": 1}}'.")
    with _tried(args, "report_to"):
        get_reporting_integration_callbacks(args.report_to)
    with _tried(args, "torch_compile_backend", "torch_compile_mode"):
        if args.torch_compile:
            DynamoBackend((args.torch_compile_backend or "inductor").upper())
            if args.torch_compile_mode is not None:
                torch.compile(nn.Identity(), mode=args.torch_compile_mode)
    layer: Any = nn.Linear(1, 1)
    with _tried(args, "optim", "optim_args"):
        optimizer_class, settings = Trainer.get_optimizer_cls_and_kwargs(args, layer)
        if "params" not in settings and "model" not in settings and "optimizer_dict" not in settings:
            optimizer_class(layer.parameters(), **settings)
    with _tried(args, "lr_scheduler_type", "lr_scheduler_kwargs"):
        if args.lr_scheduler_type != "greedy":  # asks for more than an optimizer
            phase_factor(args, torch.optim.SGD(layer.parameters(), lr=1.0), steps=1000)
    with _tried(args, "gradient_checkpointing_kwargs", "activation_checkpointing_kwargs"):
        both: Any = (args.gradient_checkpointing_kwargs, args.activation_checkpointing_kwargs)  # parsed by now
        for given in both:
            checkpoint(layer, torch.ones(1, 1), **{"use_reentrant": False, **(given or {})})


@contextmanager
def _tried(args: VATTrainingArguments, *names: str) -> Iterator[None]:
    """Where options of the base class that are words or JSON are put to use for once, before the run.

    Raises:
        InputError: naming those of them that were given.
    """
    try:
        yield
    except Exception as error:  # torch, transformers and accelerate raise any kind
        defaults = VATTrainingArguments.__dataclass_fields__
        given = [name for name in names if getattr(args, name) != defaults[name].default] or names
        told = ", ".join(f"--{name} {getattr(value := getattr(args, name), 'value', value)}" for name in given)
        raise InputError(f"{told} cannot be used: {reason(error)}") from error


def check_streaming(model_args: ModelArguments, args: VATTrainingArguments) -> None:
    if args.max_steps <= 0:
        raise InputError("With --streaming the number of rows is not known; say how long to train with --max_steps.")
    if model_args.word_encoder is not None:
        raise InputError(
            "--word_encoder counts the words of all training texts, which --streaming does not hold. Leave --streaming "
            "out, or fine-tune a checkpoint with --model_name_or_path."
        )
    if args.train_sampling_strategy != "random":
        raise InputError(
            f"--train_sampling_strategy {args.train_sampling_strategy} needs all rows, which --streaming does not hold; leave "
            "one of them out."
        )


def check_splits(data: Mapping, args: VATTrainingArguments, streaming: bool) -> None:
    if "train" not in data:
        raise InputError(f"There is no training data, only {', '.join(data)}. Give a training split or --train_file.")
    if "validation" not in data and args.eval_strategy != "no":
        raise InputError(
            f"There is no validation data for --eval_strategy {IntervalStrategy(args.eval_strategy).value}. Give --validation_file"
            f"{'' if streaming else ' or a --validation_share above 0'}, or --eval_strategy no "
            "--load_best_model_at_end False."
        )
