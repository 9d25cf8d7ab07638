"""Checkpoints that are there whole or not at all, and which of a folder's a run can go on from."""

import errno
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, rotate_checkpoints

from hf_vat.errors import parse_json
from hf_vat.writing import digest, flush_to_disk, locked, remove_partial, write_text, written_beside

from .arguments import VATTrainingArguments
from .pushing import PushingTrainer

logger = logging.getLogger(__name__)

MANIFEST_NAME = "hf_vat_manifest.json"
UNFINISHED_NAME = ".hf_vat-unfinished"  # in a run's folder; no checkpoint's name begins so


class CheckpointingTrainer(PushingTrainer):
    """
    [`~transformers.Trainer`] whose checkpoints are written beside their place, flushed to the disk and moved there when
    they are whole, with a manifest of their files that is written last. Only then old ones are removed and a push begins, so
    that a process that is killed, or finds no space, leaves all that was there.
    """

    args: VATTrainingArguments

    _is_beside = False  # whether a checkpoint is being written

    def train(self, resume_from_checkpoint: str | bool | None = None, trial=None, ignore_keys_for_eval=None):
        run = Path(self._get_output_dir(trial))
        if not self.is_world_process_zero():
            return super().train(resume_from_checkpoint, trial, ignore_keys_for_eval)
        run.mkdir(parents=True, exist_ok=True)
        with alone_in(run):
            return super().train(resume_from_checkpoint, trial, ignore_keys_for_eval)

    @contextmanager
    def checkpoint_beside(self, trial) -> Iterator[Path]:
        """The folder that the base class writes a checkpoint to, which takes its place in the end; by every process.

        Raises:
            OSError: if it cannot be written, naming its place.
        """
        run = Path(self._get_output_dir(trial))
        name = f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        written, place = run / UNFINISHED_NAME / name, run / name
        self._is_beside = True
        try:
            with errors_of_the_system(place):
                yield written
                self._name_best(run)
                self.accelerator.wait_for_everyone()  # each process adds its random state
                if self.args.should_save:
                    self.state.save_to_json(str(written / TRAINER_STATE_NAME))
                    write_manifest(written)
                    _move(written, place)
        finally:
            self._is_beside = False
            if self.args.should_save:
                shutil.rmtree(run / UNFINISHED_NAME, ignore_errors=True)
        self.accelerator.wait_for_everyone()
        if self.args.push_to_hub:
            self._push_from_checkpoint(str(place))
        if self.args.should_save:
            best = self.state.best_model_checkpoint
            rotate_checkpoints(str(run), self.args.save_total_limit, best, use_mtime=True)

    def save_metrics(self, split: str, metrics: dict[str, float], combined: bool = True) -> None:
        """As in transformers."""
        if not self.is_world_process_zero():
            return
        _write_json(Path(self.args.output_dir, f"{split}_results.json"), metrics)
        if combined:
            path = Path(self.args.output_dir, "all_results.json")
            known = parse_json(path.read_text(encoding="utf-8")) if path.is_file() else {}
            _write_json(path, known | metrics)

    def save_state(self) -> None:
        """As in transformers."""
        if self.is_world_process_zero():
            with written_beside(Path(self.args.output_dir, TRAINER_STATE_NAME)) as partial:
                self.state.save_to_json(str(partial))

    def _get_output_dir(self, trial) -> str:
        run = super()._get_output_dir(trial)
        return os.path.join(run, UNFINISHED_NAME) if self._is_beside else run

    def _push_from_checkpoint(self, checkpoint_folder):
        if not self._is_beside:
            super()._push_from_checkpoint(checkpoint_folder)

    def _init_training_state(
        self, max_steps, num_update_steps_per_epoch, num_train_epochs, resume_from_checkpoint, trial
    ):
        begun = super()._init_training_state(
            max_steps, num_update_steps_per_epoch, num_train_epochs, resume_from_checkpoint, trial
        )
        if resume_from_checkpoint is not None:
            self._name_best(Path(resume_from_checkpoint).parent)  # which may have been moved, or copied
        return begun

    def _name_best(self, run: Path) -> None:
        """Have the state name the best checkpoint where it is, or will be in a moment."""
        best = self.state.best_global_step
        if best:
            place = run / f"{PREFIX_CHECKPOINT_DIR}-{best}"
            if best == self.state.global_step or place.is_dir():
                self.state.best_model_checkpoint = str(place)


@contextmanager
def alone_in(run: Path) -> Iterator[None]:
    """Keep other processes from a run's folder, and clear it of what killed ones had half written.

    Raises:
        InputError: if another one trains there.
    """
    with locked(run, "wait until it has ended, or choose another output_dir"):
        shutil.rmtree(run / UNFINISHED_NAME, ignore_errors=True)
        remove_partial(run)
        yield


def write_manifest(checkpoint: Path) -> None:
    """Write down names, sizes and SHA-256 of a checkpoint's files, once they are on the disk."""
    files = {}
    for path in sorted(checkpoint.rglob("*")):
        if path.is_file():
            flush_to_disk(path)
            files[path.relative_to(checkpoint).as_posix()] = {"size": path.stat().st_size, "sha256": digest(path)}
    manifest = checkpoint / MANIFEST_NAME
    manifest.write_text(json.dumps({"files": files}, indent=1), encoding="utf-8")
    flush_to_disk(manifest)


def find_fault(checkpoint: Path, with_best: bool = False) -> str | None:
    """What keeps a run from going on from a checkpoint, as the end of a sentence; None if it is whole.

    Args:
        with_best: whether the run needs the best checkpoint until then as well, so that it has to be whole too.
    """
    fault = _fault_of_files(checkpoint)
    if fault is not None:
        return fault
    if not any(path.name.startswith("rng_state") for path in checkpoint.iterdir()):
        return "it holds the model alone (save_only_model)"
    best = parse_json((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))["best_model_checkpoint"]
    if with_best and best is not None:
        fault = _fault_of_files(checkpoint.with_name(Path(best).name))
        return fault and f"the best checkpoint until then, {Path(best).name}, cannot be used, as {fault}"
    return None


def _fault_of_files(checkpoint: Path) -> str | None:
    if not checkpoint.is_dir():
        return "it is missing"
    try:
        manifest = parse_json((checkpoint / MANIFEST_NAME).read_text(encoding="utf-8"))
        files = [(checkpoint / name, known["size"], known["sha256"]) for name, known in manifest["files"].items()]
    except FileNotFoundError:
        return f"it has no {MANIFEST_NAME}, which is written last"
    except (ValueError, LookupError, TypeError, AttributeError):
        return f"its {MANIFEST_NAME} is damaged"
    for path, size, _ in files:
        if not path.is_file():
            return f"its {path.name} is missing"
        if path.stat().st_size != size:
            return f"its {path.name} has {path.stat().st_size} bytes in place of {size}"
    changed = next((path.name for path, _, sha256 in files if digest(path) != sha256), None)
    return changed and f"its {changed} has changed since it was written"


def find_whole(folder: Path, with_best: bool) -> Path | None:
    """The newest checkpoint of a run that it can go on from; each after it is named with its fault.

    Args:
        with_best: see [`find_fault`]. If the best one is not whole, training goes on from before it, and makes it again.
    """
    found = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        if (name := re.fullmatch(rf"{PREFIX_CHECKPOINT_DIR}-(\d+)", path.name)) and path.is_dir():
            found[int(name[1])] = path
    for _, checkpoint in sorted(found.items(), reverse=True):
        fault = find_fault(checkpoint, with_best)
        if fault is None:
            return checkpoint
        logger.warning("%s is left out: %s.", checkpoint, fault)
    return None


def _write_json(path: Path, metrics: dict) -> None:
    write_text(path, json.dumps(metrics, indent=4, sort_keys=True))


def _move(written: Path, place: Path) -> None:
    if place.exists():  # the run goes on from an earlier one
        place.rename(written.with_name("replaced"))
    written.rename(place)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(place.parent, os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)


@contextmanager
def errors_of_the_system(place: Path) -> Iterator[None]:
    """Errors of writing as those of the system, naming the place; safetensors and torch have words of their own for them."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(place)) from error
    except (SafetensorError, RuntimeError) as error:
        number = re.search(r"os error (\d+)", str(error))
        if not number and "PytorchStreamWriter" not in str(error) and "inline_container" not in str(error):
            raise
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, os.strerror(code), str(place)) from error
