"""Training arguments of VAT and of word masks."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from transformers import TrainingArguments

from hf_vat.arguments import argument
from hf_vat.errors import InputError
from hf_vat.models.phases import PHASES
from hf_vat.processes import process_count, refuse_lone_process, refuse_shares_on_cpus
from hf_vat.ranges import check_ranges


@dataclass
class VATTrainingArguments(TrainingArguments):
    r"""
    [`~transformers.TrainingArguments`] with the phases of VAT. Only what is new:

    Args:
        start (`str`, *optional*, defaults to `"finetune"`):
            First phase: `"finetune"` trains everything but the compressor (the paper's iteration 0, an ATT model),
            `"joint"` everything.
        start_epochs (`int`, *optional*, defaults to 0):
            Epochs of the first phase. After it compressor and learner phases alternate until `num_train_epochs`. There is
            no such phase by default: a pretrained encoder's rankings were best when the compressor came first
            (docs/schedules.md).
        compress_epochs (`int`, *optional*, defaults to 2):
            Epochs of a compressor phase.
        learn_epochs (`int`, *optional*, defaults to 4):
            Epochs of a learner phase.
        compressor_learning_rate (`float`, *optional*, defaults to 1e-3):
            Peak learning rate of everything on top of the encoder (attention, compressor, heads) and of a word mask.
            These are new parameters: at the encoder's `learning_rate` they would hardly move.
        predict_from (`str`, *optional*, defaults to `"auto"`):
            Head that evaluation and the saved model use: `"auto"` is the one that the current phase trains, as the
            other one is out of date; `"learner"` or `"compressor"` force one.
        attention_probe_size (`int`, *optional*, defaults to 32):
            Number of training texts on which each log record measures how far the phase has moved the attention.
        mask_beta_start (`float`, *optional*), mask_beta_end (`float`, *optional*):
            Weight of a word mask's term in the first epoch and in the last; between them it moves by the same amount
            from epoch to epoch, see [`BetaSchedule`]. Needs a model with `mask_type` "vmask" or "iba". By default the
            model's `mask_beta` stays as it is.
        mask_beta_step_epochs (`int`, *optional*):
            With it the weight moves by a tenth of the way after so many epochs, and stays when it is at its end. As in the
            published code of VMASK it is a tenth of `num_train_epochs`, with `mask_beta_start=1` and `mask_beta_end=0.01`:
            the last tenth of the epochs then has 0.109, and 0.01 is not reached.
        early_stopping_patience (`int`, *optional*):
            Stop when the best model's metric has not got better in so many evaluations; with phases, in so many rounds, see
            [`VATTrainer`]. Needs `metric_for_best_model`. By default training goes on to its end.
        early_stopping_threshold (`float`, *optional*, defaults to 0.0):
            By how much the metric must get better.
        class_weights (`"balanced"` or `list[float]`, *optional*):
            How much a text of each class counts in the cross-entropy, in every phase and head and in evaluation, as with
            `torch.nn.CrossEntropyLoss(weight=...)`: a batch's weighted sum is divided by the sum of its texts' weights.
            `"balanced"` is N / (C · N_c), with N_c of the N training texts in class c out of C. Terms of bottleneck and
            mask have no class weights.

        weight_decay_on (`str`, *optional*, defaults to `"all"`):
            What `weight_decay` is on: `"all"` weights, biases and layer norms aside; or `"layers"`, those between the word
            embeddings and the scores: the encoder's without its embeddings, and the matrix of additive attention (Sun & Lu,
            ACL 2020). An optimizer that scales gradients by their size, such as Adagrad, would else pull the embeddings of
            rare words to 0.

        cache_encoder_outputs (`str`, *optional*, defaults to `"auto"`):
            A compressor phase leaves the encoder as it is, so each text is encoded once, and its states are read again in the
            other epochs of the phase. `"memory"` and `"disk"`, a file in `output_dir` that is gone with the process, say where
            they are kept; `"auto"` takes memory where they need less than a quarter of what is free, else the disk. Texts for
            which there is no room are encoded in each epoch, as all are with `"off"`. The weights are the same, on a CPU to
            the bit. Nothing is kept, and the log says why, where inputs of a text differ each time, or the encoder's outputs do.

    With frozen embeddings, which are buffers, DistributedDataParallel sends these to all processes at each step. Where
    every process has loaded the same ones, `ddp_broadcast_buffers=False` saves that; leave it for `mask_type="iba"`, whose
    estimates are the first process's.

    Each phase has the schedule of the learning rate for itself, with its own warm-up and decay; with one over all phases the
    late ones had little, and worse rankings. Adam's moments last from phase to phase; fresh ones were no better
    (docs/schedules.md).

    Defaults that differ from the base class: `num_train_epochs` is 6, a compressor and a learner phase; `warmup_steps` is 0.1;
    `logging_nan_inf_filter` is off, since training stops at a loss that is not finite; `ddp_find_unused_parameters` is
    on, since phases leave parameters unused.
    """

    if TYPE_CHECKING:
        output_dir: str = ""  # __post_init__ of the base class always gives one

    num_train_epochs: float = argument(6.0, "Epochs of all phases together.")
    start: str = argument(
        "finetune",
        "First phase: the learner alone, or learner and compressor together.",
        choices=[name for name, phase in PHASES.items() if phase.starts],
    )
    start_epochs: int = argument(0, "Epochs of the first phase.")
    compress_epochs: int = argument(2, "Epochs of a compressor phase.")
    learn_epochs: int = argument(4, "Epochs of a learner phase.")
    compressor_learning_rate: float = argument(1e-3, "Peak learning rate of attention, compressor and heads.")
    predict_from: str = argument(
        "auto",
        "Head to predict with: the one trained last, or always the same.",
        choices=["auto", "learner", "compressor"],
    )
    attention_probe_size: int = argument(32, "Training texts on which the movement of the attention is measured.")
    mask_beta_start: float | None = argument(
        None, "Weight of a word mask's term in the first epoch; it moves linearly to the end's."
    )
    mask_beta_end: float | None = argument(None, "Weight of a word mask's term in the last epoch.")
    mask_beta_step_epochs: int | None = argument(
        None,
        "Move the weight by a tenth of the way after so many epochs. VMASK's code: from 1 towards 0.01, after each "
        "tenth of its epochs, so that it ends at 0.109.",
    )
    early_stopping_patience: int | None = argument(
        None, "Stop after so many evaluations, or rounds of phases, that are no better than those before."
    )
    early_stopping_threshold: float = argument(0.0, "By how much an evaluation must be better to be so.")
    class_weights: None | str | list[float] = argument(  # noqa: RUF036 - in this order HfArgumentParser reads words
        None, "Weight of each class in the loss: 'balanced' by frequency, or one number per class.", nargs="+"
    )
    weight_decay_on: str = argument(
        "all",
        "What weight_decay is on: all weights, or the layers between word embeddings and scores.",
        choices=["all", "layers"],
    )
    cache_encoder_outputs: str = argument(
        "auto",
        "Where the encoder's outputs are kept in a compressor phase, so that each text is encoded once.",
        choices=["auto", "memory", "disk", "off"],
    )
    warmup_steps: float = argument(
        0.1, "Steps of a phase in which the learning rate goes up from 0, or below 1 their share of it."
    )
    logging_nan_inf_filter: bool = argument(False, "Keep off: a loss that is not finite stops.")
    ddp_find_unused_parameters: bool | None = argument(True, "Keep on: phases leave parameters unused.")

    def __post_init__(self):
        if self.greater_is_better is None and (self.metric_for_best_model or "").endswith(("cross_entropy", "rmse")):
            self.greater_is_better = False  # the base class takes all but losses for the more the better
        check_ranges(self)  # the base class trips over some of them
        if process_count() > 1 and not torch.accelerator.is_available():
            self.use_cpu = True  # of itself each of several processes would look for a GPU, and then run alone
        if self.use_cpu:
            refuse_shares_on_cpus()
        super().__post_init__()
        refuse_lone_process(self.world_size)
        self.class_weights = _read_class_weights(self.class_weights)


def _read_class_weights(given) -> str | list[float] | None:
    """`"balanced"`, numbers or neither; from a command line as a list of words."""
    if given is None:
        return None
    if given in ("balanced", ["balanced"]):
        return "balanced"
    try:
        weights = [float(weight) for weight in given]
    except (TypeError, ValueError):
        weights = []
    if not weights or not all(0 < weight < math.inf for weight in weights):
        raise InputError(
            f"class_weights={given!r} must be 'balanced' or one number above 0 for each class, such as [1, 2.5]."
        )
    return weights
