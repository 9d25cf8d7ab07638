"""What a person sees of a training run, and the file that holds the rest."""

import json
from types import SimpleNamespace

import pytest

from hf_vat.training import progress
from hf_vat.training.progress import LOG_NAME, EpochLines
from hf_vat.training.schedule import PhaseSchedule


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


@pytest.fixture
def training(clock, tmp_path):
    """The events of a run: for each epoch its seconds, its records of the loss as (steps, loss), and its accuracy."""

    def run(schedule: PhaseSchedule, epochs: list[tuple[float, list, float | None]], number: int | None = None):
        lines = EpochLines(SimpleNamespace(schedule=schedule))
        args = SimpleNamespace(output_dir=str(tmp_path), disable_tqdm=True)
        state = SimpleNamespace(
            log_history=[], global_step=0, max_steps=100, epoch=0.0, num_train_epochs=number or len(epochs)
        )

        def log(record: dict) -> None:
            state.log_history.append({**record, "step": state.global_step})
            lines.on_log(args, state, None, logs=record)

        lines.on_train_begin(args, state, None)
        for epoch, (seconds, losses, accuracy) in enumerate(epochs):
            state.epoch = float(epoch)
            lines.on_epoch_begin(args, state, None)
            clock[0] += seconds
            for steps, loss in losses:
                state.global_step += steps
                log({"loss": loss, "phase": schedule.phase(epoch)})
            if accuracy is not None:
                log({"eval_loss": 1.0, "eval_accuracy": accuracy})
        lines.on_train_end(args, state, None)
        log({"test_accuracy": 0.875, "test_samples": 8})
        return state.log_history

    return run


def test_f69_a_line_for_each_epoch_with_hand_worked_numbers(training, capsys, tmp_path):
    """Compressor epochs of 12 and 24 s; a learner epoch costs five times their mean until one has taken 60 s."""
    schedule = PhaseSchedule("finetune", 0, 2, 2)
    history = training(
        schedule,
        [
            (12.0, [(30, 2.0), (10, 1.0)], 0.5),  # (30 · 2 + 10 · 1) / 40; left: 12 + 2 · 5 · 12 s
            (24.0, [(40, 0.5)], 0.625),  # left: 2 · 5 · 18 s
            (60.0, [], None),  # left: 60 s
            (60.0, [(40, 0.25)], 1.0),
        ],
    )
    begin, *lines, records, test = capsys.readouterr().out.splitlines()
    assert begin.startswith("Phases: compress trains attention and compressor") and "joint" not in begin
    assert lines == [
        "epoch 1 of 4 | compress | training loss 1.750 | validation accuracy 50.0 % | 2.2 min left",
        "epoch 2 of 4 | compress | training loss 0.500 | validation accuracy 62.5 % | 3.0 min left",
        "epoch 3 of 4 | learn | 1.0 min left",
        "epoch 4 of 4 | learn | training loss 0.250 | validation accuracy 100.0 % | 0.0 min left",
    ]
    assert records == f"all records of the training: {tmp_path / LOG_NAME}"
    assert test == "test accuracy 87.5 % of 8 texts"
    assert [json.loads(line) for line in (tmp_path / LOG_NAME).read_text().splitlines()] == history


def test_f69_a_run_that_stops_early_tells_its_last_epoch(training, capsys):
    training(PhaseSchedule("finetune", 0, 1, 1, alternates=False), [(30.0, [(5, 1.0)], None)], number=3)
    assert capsys.readouterr().out.splitlines()[0] == "epoch 1 of 3 | finetune | training loss 1.000 | 1.0 min left"
