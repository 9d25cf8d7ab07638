"""Callbacks that take part in a training, and how to find those of a kind."""

import signal
import threading
from typing import TypeVar

from transformers import Trainer, TrainerCallback

Callback = TypeVar("Callback", bound=TrainerCallback)


def callbacks_of(trainer: Trainer, kind: type[Callback]) -> list[Callback]:
    """The callbacks of a trainer that are of this class, in their order."""
    return [callback for callback in trainer.callback_handler.callbacks if isinstance(callback, kind)]


class PhaseCallback(TrainerCallback):
    """Enters the phase of each epoch, and logs at its end so that no record mixes two phases.

    Args:
        trainer: a [`VATTrainer`].
    """

    def __init__(self, trainer):
        self.trainer = trainer

    def on_train_begin(self, args, state, control, **kwargs):
        self.trainer.begin_training()

    def on_epoch_begin(self, args, state, control, **kwargs):
        self.trainer.enter_epoch(int(state.epoch + 1e-6))

    def on_epoch_end(self, args, state, control, **kwargs):
        self.trainer.refuse_divergence()
        if args.logging_strategy != "no":
            control.should_log = True
        return control


class StopOnInterrupt(TrainerCallback):
    """Turns the first SIGINT during training into "save a checkpoint and stop"; a second one interrupts at once.

    Only in the main thread of a single process: among several processes each would stop at another step, and those
    that go on would wait for the others for ever.
    """

    def __init__(self):
        self.interrupted = False
        self._previous = None

    def on_train_begin(self, args, state, control, **kwargs):
        self.interrupted = False
        if args.world_size == 1 and threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_signal)

    def on_step_end(self, args, state, control, **kwargs):
        if self.interrupted:
            control.should_save = True
            control.should_training_stop = True

    def on_epoch_end(self, args, state, control, **kwargs):
        if self.interrupted and abs(state.epoch - round(state.epoch)) > 1e-6:
            # The unbroken run does not evaluate here, and has no other best model, nor less patience, for it.
            control.should_evaluate = control.should_save = False
        return control

    def restore(self):
        """Give SIGINT back to whoever had it."""
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None

    def _on_signal(self, signum, frame):
        if self.interrupted:
            self.restore()
            raise KeyboardInterrupt
        self.interrupted = True
        print("\nStopping after this step; what is done will be saved (Ctrl-C again stops at once).", flush=True)
