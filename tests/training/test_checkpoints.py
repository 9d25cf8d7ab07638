"""Checkpoints are there whole or not at all, and a run goes on from the newest that is whole."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from runs import PressCtrlC, StopAt, assert_same_weights, records
from safetensors import SafetensorError
from torture import DAMAGES
from transformers import EarlyStoppingCallback

import hf_vat
from hf_vat.errors import InputError
from hf_vat.training import checkpoints
from hf_vat.training.checkpoints import MANIFEST_NAME, UNFINISHED_NAME, find_fault, find_whole

SAVED = {"save_strategy": "steps", "save_steps": 2, "max_steps": 8}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_f44_f45_a_run_is_killed_and_its_last_checkpoint_damaged():
    """A few of what `make torture` does: two of the kills are aimed at a checkpoint that is being written."""
    script = Path(__file__).with_name("torture.py")
    environment = os.environ | {"PYTHONPATH": str(Path(hf_vat.__file__).parents[1])}
    finished = subprocess.run(
        [sys.executable, script, "--kills", "4", "--damages", "2"],
        capture_output=True, text=True, timeout=400, env=environment,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "4 kills, 2 of them aimed" in finished.stdout and "; 0 did not" in finished.stdout


def test_f44_a_manifest_has_all_files_and_is_written_last(make_trainer, tmp_path):
    make_trainer(**SAVED).train()
    checkpoint = tmp_path / "run" / "checkpoint-8"
    known = json.loads((checkpoint / MANIFEST_NAME).read_text())["files"]
    assert known.keys() == names(checkpoint) - {MANIFEST_NAME}
    assert {"model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json"} <= known.keys()
    times = {path.name: path.stat().st_mtime_ns for path in checkpoint.iterdir()}
    assert max(times, key=times.get) == MANIFEST_NAME
    assert find_fault(checkpoint) is None
    assert not [name for name in names(tmp_path / "run") if name.startswith(".hf_vat")]


def test_f44_paths_are_those_after_the_move_and_rotation_keeps_the_best(make_trainer, tmp_path):
    class First:
        calls = 0

        def __call__(self, prediction):
            First.calls += 1
            return {"accuracy": -First.calls}

    settings = {"eval_strategy": "steps", "eval_steps": 2, "metric_for_best_model": "accuracy"}
    settings |= {"load_best_model_at_end": True, "save_total_limit": 2}
    trainer = make_trainer(compute_metrics=First(), **SAVED, **settings)
    trainer.train()
    run = tmp_path / "run"
    assert names(run) == {"checkpoint-2", "checkpoint-8"}
    for checkpoint in run.iterdir():
        state = json.loads((checkpoint / "trainer_state.json").read_text())
        assert state["best_model_checkpoint"] == str(run / "checkpoint-2")
    # and where the folder is called otherwise later, the best is found there
    run.rename(tmp_path / "moved")
    moved = make_trainer(compute_metrics=First(), folder="moved", **SAVED, **settings)
    moved.train(resume_from_checkpoint=True)
    assert moved.state.best_model_checkpoint == str(tmp_path / "moved" / "checkpoint-2")
    assert_same_weights(moved.model, trainer.model)


def test_f45_every_damage_is_named_and_the_checkpoint_before_is_taken(make_trainer, tmp_path, caplog):
    """Those of the model's code, which lies there too, are in `make torture`."""
    trainer = make_trainer(**(SAVED | {"max_steps": 4}))
    trainer.train()
    last = tmp_path / "run" / "checkpoint-4"
    shutil.copytree(last, tmp_path / "whole")
    for file in sorted(name for name in names(last) if not name.endswith(".py")):
        for name, damage in DAMAGES.items():
            damage(last / file)
            caplog.clear()
            assert find_whole(tmp_path / "run", with_best=True) == tmp_path / "run" / "checkpoint-2", (file, name)
            [said] = caplog.messages
            assert f"checkpoint-4 is left out: its {file}" in said or file == MANIFEST_NAME
            with pytest.raises(InputError, match=r"checkpoint-4 cannot be resumed: it"):
                trainer.train(resume_from_checkpoint=str(last))
            shutil.copy2(tmp_path / "whole" / file, last / file)
    assert find_fault(last) is None


def test_f45_where_the_best_is_damaged_training_goes_on_from_before_it(make_trainer, tmp_path):
    best = {
        "eval_strategy": "steps",
        "eval_steps": 2,
        "load_best_model_at_end": True,
        "metric_for_best_model": "accuracy",
    }
    unbroken = make_trainer(folder="unbroken", **SAVED, **best)
    unbroken.train()
    shutil.copytree(tmp_path / "unbroken", tmp_path / "run")
    step = unbroken.state.best_global_step
    (tmp_path / "run" / f"checkpoint-{step}" / "model.safetensors").write_bytes(b"")
    found = find_whole(tmp_path / "run", with_best=True)
    assert found == (None if step == 2 else tmp_path / "run" / f"checkpoint-{step - 2}")
    assert find_whole(tmp_path / "run", with_best=False) == tmp_path / "run" / f"checkpoint-{6 if step == 8 else 8}"
    if found is not None:
        resumed = make_trainer(folder="run", **SAVED, **best)
        resumed.train(resume_from_checkpoint=True)
        assert_same_weights(resumed.model, unbroken.model)


def test_f45_no_checkpoint_that_is_whole_and_one_without_the_optimizer(make_trainer, tmp_path):
    make_trainer(**(SAVED | {"max_steps": 2})).train()
    (tmp_path / "run" / "checkpoint-2" / MANIFEST_NAME).unlink()
    with pytest.raises(InputError, match=r"no checkpoint to resume from in .*run that is whole"):
        make_trainer().train(resume_from_checkpoint=True)
    make_trainer(folder="alone", save_only_model=True, **(SAVED | {"max_steps": 2})).train()
    with pytest.raises(InputError, match="it holds the model alone"):
        make_trainer(folder="alone").train(resume_from_checkpoint=str(tmp_path / "alone" / "checkpoint-2"))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "full"), errno.ENOSPC),
        (SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"), errno.ENOSPC),
        (RuntimeError("[enforce fail at inline_container.cc:664] . unexpected pos 64 vs 0"), errno.EIO),
    ],
)
def test_f47_a_checkpoint_for_which_there_is_no_space_leaves_those_before(
    make_trainer, tmp_path, monkeypatch, error, code
):
    def write(checkpoint):
        if checkpoint.name == "checkpoint-4":
            raise error
        really(checkpoint)

    really = checkpoints.write_manifest
    monkeypatch.setattr(checkpoints, "write_manifest", write)
    with pytest.raises(OSError, match=r"checkpoint-4") as raised:
        make_trainer(**SAVED).train()
    assert raised.value.errno == code
    assert names(tmp_path / "run") == {"checkpoint-2"}
    monkeypatch.undo()
    trainer = make_trainer(**SAVED)
    trainer.train(resume_from_checkpoint=True)
    assert trainer.state.global_step == 8


def test_f44_leftovers_of_a_kill_are_removed_and_nothing_else(make_trainer, tmp_path):
    run = tmp_path / "run"
    for name in (UNFINISHED_NAME, "mine"):
        (run / name / "checkpoint-2").mkdir(parents=True)
        (run / name / "checkpoint-2" / "model.safetensors").write_text("half")
    for name in (".hf_vat-abc.partial", "mine.partial"):
        (run / name).write_text("half")
    make_trainer(max_steps=1).train()
    assert names(run) == {"mine", "mine.partial"}


def test_f49_two_trainings_in_a_folder(make_trainer, tmp_path):
    """The second one is refused while the first runs, and not after."""
    second = make_trainer(max_steps=1)

    class Other(StopAt):
        def on_step_end(self, args, state, control, **kwargs):
            thread = threading.Thread(target=self.run)
            thread.start()
            thread.join()

        def run(self):
            with pytest.raises(InputError, match="run is being written by another process; wait until it has ended"):
                second.train()
            self.refused = True

    other = Other()
    make_trainer(max_steps=1, callbacks=[other]).train()
    assert other.refused
    second.train()


def test_f46_the_loss_of_a_run_that_went_on_is_the_mean_over_all_its_steps(make_trainer):
    unbroken = make_trainer(folder="unbroken")
    unbroken.train()
    make_trainer(folder="run", callbacks=[StopAt(6)]).train()
    for step in (16, 16):  # the second time nothing is left to train
        resumed = make_trainer(folder="run", callbacks=[StopAt(step)])
        resumed.train(resume_from_checkpoint=True)
        [found], [expected] = records(resumed, "train_loss")[-1:], records(unbroken, "train_loss")
        assert found["train_loss"] == pytest.approx(expected["train_loss"], rel=1e-6)
        assert found["phase"] == expected["phase"] == "compress"


@pytest.mark.parametrize(("which", "step"), [("att", 9), ("vat", 14)])
def test_f48_patience_goes_on_where_it_was(make_trainer, which, step):
    """Nothing is learnt, so no evaluation is better than the first: it stops as the unbroken run does."""
    still = {
        "learning_rate": 0.0,
        "compressor_learning_rate": 0.0,
        "predict_from": "auto" if which == "att" else "learner",
    }
    settings = {"num_train_epochs": 8, "eval_strategy": "epoch", "metric_for_best_model": "accuracy", **still}

    def make(folder, *callbacks, **others):
        callbacks = [EarlyStoppingCallback(2), *callbacks]
        return make_trainer(which, folder=folder, callbacks=callbacks, save_strategy="epoch", **settings, **others)

    unbroken = make("unbroken")
    unbroken.train()
    with pytest.raises(KeyboardInterrupt):
        make("run", PressCtrlC(step)).train()
    resumed = make("run")
    resumed.train(resume_from_checkpoint=True)
    assert resumed.state.global_step == unbroken.state.global_step < 32
    assert [r["epoch"] for r in records(resumed, "eval_loss")] == [r["epoch"] for r in records(unbroken, "eval_loss")]
    resumed = make("run")  # and one that had stopped stays so
    resumed.train(resume_from_checkpoint=True)
    assert resumed.state.global_step == unbroken.state.global_step


def test_f44_a_run_that_goes_on_from_an_earlier_checkpoint_writes_later_ones_anew(make_trainer, tmp_path):
    unbroken = make_trainer(**SAVED)
    unbroken.train()
    (tmp_path / "run" / "checkpoint-8" / "optimizer.pt").unlink()
    resumed = make_trainer(**SAVED)
    resumed.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-4"))
    assert_same_weights(resumed.model, unbroken.model)
    assert [find_fault(path) for path in (tmp_path / "run").iterdir()] == [None] * 4
