"""Which phase an epoch belongs to, and how much a word mask's term weighs in it."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedConfig, TrainingArguments, get_scheduler

from hf_vat.errors import InputError
from hf_vat.models.phases import PHASE_OF_ALL, ROUND
from hf_vat.models.setting import declared_settings, unmet_need

from .arguments import VATTrainingArguments

logger = logging.getLogger(__name__)

MASK_BETA_SCHEDULE = ("mask_beta_start", "mask_beta_end", "mask_beta_step_epochs")  # the settings of its weight
STEPS = 10  # in which β gets from its start to its end; the published code of VMASK takes nine of them


@dataclass(frozen=True)
class PhaseSchedule:
    """Start phase, then compress and learn in turn: a pure function of the epoch, so that resuming needs no memory.

    Args:
        start: `"joint"` or `"finetune"` (the paper's reading, iteration 0); see
            [`~hf_vat.BertForVATClassification.phase_modules`].
        start_epochs: epochs of the start phase, at least 0.
        compress_epochs: epochs of each compressor phase, at least 1.
        learn_epochs: epochs of each learner phase, at least 1.
        alternates: false for models without a bottleneck, which stay in `finetune`.

    Raises:
        InputError: if a number of epochs is too small.
    """

    start: str
    start_epochs: int
    compress_epochs: int
    learn_epochs: int
    alternates: bool = True

    def __post_init__(self):
        for name, minimum in (("start_epochs", 0), ("compress_epochs", 1), ("learn_epochs", 1)):
            value = getattr(self, name)
            if value < minimum:
                raise InputError(f"{name}={value} must be at least {minimum}.")

    def phase(self, epoch: int) -> str:
        """The phase of an epoch, counted from 0."""
        return self._locate(epoch)[0]

    def begins(self, epoch: int) -> bool:
        """Whether a phase begins with this epoch."""
        return self._locate(epoch)[1] == 0

    def starts(self, epochs: int) -> list[int]:
        """The epochs, of so many, with which a phase begins."""
        return [epoch for epoch in range(epochs) if self.begins(epoch)]

    def rounds(self, epochs: float) -> int:
        """How many rounds, each of a compressor and a learner phase, are over after so many epochs."""
        return max(int((epochs - self.start_epochs) // (self.compress_epochs + self.learn_epochs)), 0)

    def _locate(self, epoch: int) -> tuple[str, int]:
        """The phase of an epoch, and the number of epochs of that phase before it."""
        if not self.alternates:
            return PHASE_OF_ALL[False], epoch
        if epoch < self.start_epochs:
            return self.start, epoch
        place = (epoch - self.start_epochs) % (self.compress_epochs + self.learn_epochs)
        first, second = ROUND
        return (first, place) if place < self.compress_epochs else (second, place - self.compress_epochs)


def phase_factor(
    args: TrainingArguments, optimizer: torch.optim.Optimizer, steps: int
) -> Callable[[int], float] | None:
    """By what the learning rates are multiplied at a step, counted from 0, of a phase of so many steps.

    Args:
        args: with the scheduler, its settings and its warm-up.
        optimizer: whose learning rates these are; a scheduler may ask for its default one.

    Returns:
        None if the scheduler's learning rates are no function of the step.
    """
    stand_in = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=optimizer.defaults["lr"])
    settings: Any = args.lr_scheduler_kwargs  # a string is parsed by now
    warmup = args.get_warmup_steps(steps)
    # One step more than the warm-up, by which polynomial decay would divide by 0, and which is not taken.
    scheduler = get_scheduler(args.lr_scheduler_type, stand_in, warmup, max(steps, warmup + 1), settings)
    return scheduler.lr_lambdas[0] if isinstance(scheduler, torch.optim.lr_scheduler.LambdaLR) else None


@dataclass(frozen=True)
class BetaSchedule:
    """Weight β of a word mask's term, from one value to another: a pure function of the epoch.

    Without `step_epochs` it is on a straight line from the first epoch to the last. The published code of VMASK goes down
    in steps instead, by 0.099 after each epoch of 10 for BERT, and after each ten of 100 for CNN and LSTM:
    `BetaSchedule(1.0, 0.01, step_epochs=epochs // 10)`. So its last tenth has β = 0.109: the tenth step, to 0.01, is taken when
    training is over. Trained for longer, rounding would let it take an eleventh, to -0.089, where β here stays at its end.
    KL annealing (Bowman et al., CoNLL 2016), which the paper names, goes up.

    Args:
        start: β ≥ 0 of the first epoch.
        end: β ≥ 0 of the last epoch.
        step_epochs: with it β moves by a tenth of the way after so many epochs, at least 1, until it is at its end; if
            training is shorter, it does not get there.

    Raises:
        InputError: if a β is negative or not finite, or `step_epochs` is below 1.
    """

    start: float
    end: float
    step_epochs: int | None = None

    def __post_init__(self):
        if self.step_epochs is not None and self.step_epochs < 1:
            raise InputError(f"mask_beta_step_epochs={self.step_epochs} must be at least 1.")
        for name in ("start", "end"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise InputError(f"mask_beta_{name}={value} must be a number of at least 0.")

    def beta(self, epoch: int, epochs: int) -> float:
        """β of an epoch, counted from 0, out of `epochs`; that of a single epoch is `start`."""
        if self.step_epochs is None:
            share = epoch / (epochs - 1) if epochs > 1 else 0.0
        else:
            share = min(epoch // self.step_epochs, STEPS) / STEPS  # whole steps are counted, so no rounding adds up
        return (1 - share) * self.start + share * self.end


# Terms of the loss beside the cross-entropy, by their names in the output, and the settings that weigh them.
TERMS = {"compression": "beta", "mask_compression": "mask_beta", "word_term": "word_weight", "vw_product": "vw_weight"}


def loss_weights(config: PreTrainedConfig) -> dict[str, float]:
    """Weights of the terms beside the cross-entropy that the model's loss has, as they are at this moment: `beta` of the
    compression, `mask_beta` of a word mask's term, `word_weight` of a word objective's, `vw_weight` of VᵀW."""
    settings = declared_settings(type(config))
    return {
        name: float(getattr(config, name))
        for name in TERMS.values()
        if unmet_need(settings[name], lambda other: getattr(config, other)) is None
    }


def mask_beta_schedule(args: VATTrainingArguments, config: PreTrainedConfig, name: str) -> BetaSchedule | None:
    """The schedule that the arguments ask for, if they do.

    Args:
        config: the model's.
        name: of the model's class, for the error.

    Raises:
        InputError: if it is half given, or the model's loss has no such term.
    """
    start, end, step_epochs = (getattr(args, setting) for setting in MASK_BETA_SCHEDULE)
    if start is end is step_epochs is None:
        return None
    if start is None or end is None:
        raise InputError(
            f"mask_beta_start is {start} and mask_beta_end is {end}; give both, or neither (and no mask_beta_step_epochs) "
            "for a constant mask_beta."
        )
    if "mask_beta" not in loss_weights(config):
        raise InputError(
            f"mask_beta_start={start} weighs the term of a word mask, and {name} with "
            f"mask_type={config.mask_type!r} has none; leave it out, or use mask_type "
            "'vmask' or 'iba'."
        )
    if args.load_best_model_at_end and (args.metric_for_best_model or "").removeprefix("eval_") == "loss":
        logger.warning(
            "The losses of two epochs cannot be compared while mask_beta goes from %s to %s; choose the best model by "
            "another metric_for_best_model, such as accuracy.",
            *(start, end),
        )
    return BetaSchedule(start, end, step_epochs)
