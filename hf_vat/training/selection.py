"""Which evaluation is the best, and how long a training waits for a better one."""

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from transformers import EarlyStoppingCallback, PreTrainedConfig
from transformers.trainer_utils import IntervalStrategy

from hf_vat.errors import InputError

from .arguments import VATTrainingArguments

logger = logging.getLogger(__name__)


def early_stopping(patience: int, args: VATTrainingArguments) -> EarlyStoppingCallback:
    """The callback that `early_stopping_patience` asks for.

    Raises:
        InputError: if there is nothing that could get better, or its settings are out of range.
    """
    if args.metric_for_best_model is None or args.eval_strategy == "no":
        raise InputError(
            f"early_stopping_patience={patience} stops when evaluations get no better; give "
            f"metric_for_best_model (now {args.metric_for_best_model}), such as 'accuracy', and an eval_strategy (now "
            f"{IntervalStrategy(args.eval_strategy).value!r}), such as 'epoch'."
        )
    if not patience >= 1 or not args.early_stopping_threshold >= 0:
        raise InputError(
            f"early_stopping_patience={patience} must be at least 1, and early_stopping_threshold="
            f"{args.early_stopping_threshold} at least 0."
        )
    return EarlyStoppingCallback(patience, args.early_stopping_threshold)


class RoundPatience:
    """Patience of early stopping in rounds, each of a compressor and a learner phase, instead of evaluations."""

    def __init__(self):
        self._rounds = 0  # that are over
        self._improved: set[EarlyStoppingCallback] = set()  # those that saw the present round get better

    def begin(self, rounds: int) -> None:
        """Count from here on, where so many rounds are over."""
        self._rounds, self._improved = rounds, set()

    def state(self, callbacks: Iterable[EarlyStoppingCallback]) -> list[list]:
        """How long each callback has waited, and whether it saw the present round get better, for JSON."""
        return [[callback.early_stopping_patience_counter, callback in self._improved] for callback in callbacks]

    def restore(self, state: Iterable[list], callbacks: Iterable[EarlyStoppingCallback]) -> None:
        """Take up what [`state`] has said of the same callbacks, after [`begin`]."""
        for (waited, improved), callback in zip(state, callbacks, strict=False):
            callback.early_stopping_patience_counter = waited
            if improved:
                self._improved.add(callback)

    @contextmanager
    def held_back(self, callbacks: Iterable[EarlyStoppingCallback]) -> Iterator[dict[EarlyStoppingCallback, int]]:
        """Let no callback stop in the middle of a round; gives how long each has waited so far."""
        patience = {callback: callback.early_stopping_patience for callback in callbacks}
        for callback in patience:
            callback.early_stopping_patience = sys.maxsize
        try:
            yield {callback: callback.early_stopping_patience_counter for callback in patience}
        finally:
            for callback, given in patience.items():
                callback.early_stopping_patience = given

    def is_over(self, waited: dict[EarlyStoppingCallback, int], rounds: int) -> bool:
        """Whether the patience of a callback has come to its end with an evaluation.

        Args:
            waited: rounds that each callback had waited before it.
            rounds: that are over.
        """
        for callback, count in waited.items():
            if callback.early_stopping_patience_counter == 0:
                self._improved.add(callback)
            better = callback in self._improved
            callback.early_stopping_patience_counter = 0 if better else count + (rounds > self._rounds)
        if rounds > self._rounds:
            self.begin(rounds)
        return any(callback.early_stopping_patience_counter >= callback.early_stopping_patience for callback in waited)


def warn_of_two_losses(args: VATTrainingArguments, config: PreTrainedConfig) -> None:
    """Say that the best model of a training with phases is chosen by losses of two kinds, if it is."""
    metric = (args.metric_for_best_model or "").removeprefix("eval_")
    if metric == "loss" and args.predict_from == "auto" and config.beta:
        logger.warning(
            "The losses of compressor and learner phases cannot be compared: only the first have the compression term, "
            "weighed by beta=%s. Choose the best model by metric_for_best_model='cross_entropy', or by accuracy.",
            config.beta,
        )
