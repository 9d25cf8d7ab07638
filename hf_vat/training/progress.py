"""What a run of [`train_classifier`] shows of its training: a line for each epoch, and on a terminal a bar."""

import json
import sys
import time
from collections import defaultdict
from pathlib import Path

from tqdm.auto import tqdm
from transformers import PrinterCallback, TrainerCallback
from transformers.trainer import DEFAULT_PROGRESS_CALLBACK

from hf_vat.models.phases import PHASES
from hf_vat.writing import write_text

LOG_NAME = "training_log.jsonl"


def show_epochs(trainer) -> None:
    """Let a [`VATTrainer`] print a line for each epoch instead of its records; see [`EpochLines`]."""
    for shown in (PrinterCallback, DEFAULT_PROGRESS_CALLBACK):
        trainer.remove_callback(shown)
    if trainer.is_world_process_zero():
        trainer.add_callback(EpochLines(trainer))


class EpochLines(TrainerCallback):
    """
    Prints a line for each epoch (phase, training loss, validation accuracy, minutes left) in place of the Trainer's records,
    and one for the test. The records go to `training_log.jsonl` in the output folder, one a line, as soon as they come. Where the standard error is a
    terminal and `disable_tqdm` is off, a bar shows the steps.

    Args:
        trainer: a [`VATTrainer`]; the loss of an epoch is the mean over the steps that its records cover.
    """

    def __init__(self, trainer):
        self.trainer = trainer
        self.bar: tqdm | None = None
        self.accuracy: float | None = None

    def on_train_begin(self, args, state, control, **kwargs):
        Path(args.output_dir).mkdir(parents=True, exist_ok=True)
        write_text(self._log(args), "".join(map(_line, state.log_history)))
        self.epoch, self.logged, self.seconds = None, state.global_step, defaultdict(list)
        epochs = range(state.num_train_epochs)
        phases = dict.fromkeys(self.trainer.schedule.phase(epoch) for epoch in epochs)
        if self.trainer.schedule.alternates:
            print(f"Phases: {'; '.join(f'{phase} {PHASES[phase].told}' for phase in phases)}.", flush=True)
        if not args.disable_tqdm and sys.stderr.isatty():
            self.bar = tqdm(
                total=state.max_steps,
                initial=state.global_step,
                desc="training",
                unit="step",
                dynamic_ncols=True,
                leave=False,
            )

    def on_epoch_begin(self, args, state, control, **kwargs):
        self._tell(state)  # only now the epoch before has been evaluated
        self.epoch, self.began = int(state.epoch + 1e-6), time.perf_counter()
        self.losses, self.accuracy = [], None

    def on_log(self, args, state, control, logs=None, **kwargs):
        with open(self._log(args), "a", encoding="utf-8") as file:
            file.write(_line(state.log_history[-1]))
        if "loss" in logs:
            steps = state.global_step - self.logged
            self.losses.append((logs["loss"] * steps, steps))
            self.logged = state.global_step
        self.accuracy = logs.get("eval_accuracy", self.accuracy)
        if "test_accuracy" in logs:
            print(f"test accuracy {100 * logs['test_accuracy']:.1f} % of {logs['test_samples']} texts", flush=True)

    def on_step_end(self, args, state, control, **kwargs):
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)

    def on_train_end(self, args, state, control, **kwargs):
        self._tell(state)
        if self.bar is not None:
            self.bar.close()
            self.bar = None
        print(f"all records of the training: {self._log(args)}", flush=True)

    def _tell(self, state) -> None:
        if self.epoch is None:
            return
        schedule, epochs = self.trainer.schedule, state.num_train_epochs
        phase = schedule.phase(self.epoch)
        self.seconds[phase].append(time.perf_counter() - self.began)
        parts = [f"epoch {self.epoch + 1} of {epochs}", phase]
        steps = sum(steps for _, steps in self.losses)
        if steps:
            parts.append(f"training loss {sum(loss for loss, _ in self.losses) / steps:.3f}")
        if self.accuracy is not None:
            parts.append(f"validation accuracy {100 * self.accuracy:.1f} %")
        left = [schedule.phase(epoch) for epoch in range(self.epoch + 1, epochs)]
        parts.append(f"{sum(map(self._expected, left)) / 60:.1f} min left")
        tqdm.write(" | ".join(parts))  # above the bar, if there is one
        sys.stdout.flush()
        self.epoch = None

    def _expected(self, phase: str) -> float:
        """Seconds of an epoch: as those of its phase, or by what those of others cost."""
        seen = self.seconds[phase] or [
            seconds / PHASES[other].cost * PHASES[phase].cost
            for other, many in self.seconds.items()
            for seconds in many
        ]
        return sum(seen) / len(seen)

    def _log(self, args) -> Path:
        return Path(args.output_dir, LOG_NAME)


def _line(record: dict) -> str:
    return json.dumps(record) + "\n"
