"""Streams: a training set that is read as it comes, in epochs of a known length."""

import logging
import math
from itertools import islice

import torch
from datasets import IterableDataset
from transformers.trainer_utils import has_length

from hf_vat.data import StreamedEpochs
from hf_vat.errors import InputError
from hf_vat.models.problems import Problem

from .arguments import VATTrainingArguments
from .labels import CheckedRows

logger = logging.getLogger(__name__)


def is_stream(dataset) -> bool:
    """Whether this is an `IterableDataset`, of datasets or torch."""
    return isinstance(dataset, torch.utils.data.IterableDataset | IterableDataset)


def refuse_stream(dataset) -> None:
    """Refuse to evaluate on a stream.

    Raises:
        InputError: if it is one.
    """
    if is_stream(dataset):
        raise InputError(
            "The evaluation set is a stream, but all of it is evaluated each time; give rows that are in memory, such as "
            "Dataset.from_list(list(stream.take(1000)))."
        )


class TrainingStream:
    """
    A stream to train on, whose labels are checked while it is read.

    Args:
        rows: the stream.
        problem: what the model is asked.
        args: with the number of steps, epochs and processes, and of the texts to keep.

    Attributes:
        first: its first `attention_probe_size` rows.

    Raises:
        InputError: if it cannot be read so, or a label of the first rows is not of that kind.
    """

    def __init__(self, rows, problem: Problem, args: VATTrainingArguments):
        if args.dataloader_num_workers:
            raise InputError(
                f"dataloader_num_workers is {args.dataloader_num_workers}, but each worker would read the whole stream; "
                "leave it at 0."
            )
        self.rows = CheckedRows(rows, problem)
        # Read here, and not when they are needed, which in a resumed run is a later pass in another order.
        self.first = list(islice(self.rows, args.attention_probe_size))
        if not has_length(rows):
            steps = _steps_of_epoch(args)
            epochs, wanted = math.ceil(args.max_steps / steps), math.ceil(args.num_train_epochs)
            if epochs < wanted:
                logger.warning(
                    "%d steps make %d epochs of %d steps and leave none to the other %d of num_train_epochs, nor to their "
                    "phases; %d steps would do for all.",
                    *(args.max_steps, epochs, steps, wanted - epochs, steps * wanted),
                )

    def epochs(self, args: VATTrainingArguments, batch_size: int) -> StreamedEpochs:
        """The stream from its beginning, cut into epochs; `batch_size` is that of one process."""
        if has_length(self.rows.rows):
            size = len(self.rows.rows)
        else:
            size = _steps_of_epoch(args) * args.gradient_accumulation_steps * batch_size * args.world_size
        return StreamedEpochs(self.rows, size)


def _steps_of_epoch(args: VATTrainingArguments) -> int:
    """Steps of an epoch of a stream without a length."""
    return math.ceil(args.max_steps / args.num_train_epochs) if args.num_train_epochs > 0 else args.max_steps
