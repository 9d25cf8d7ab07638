"""Ctrl-C stops training after the current step, with a checkpoint."""

import signal
import threading

from transformers import TrainerCallback


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
