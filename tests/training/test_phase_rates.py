"""Learning rates and moments of the optimizer, from phase to phase."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import StopAt
from transformers import SchedulerType, TrainerCallback, TrainingArguments, get_scheduler

from hf_vat.training.schedule import phase_factor

KINDS = {
    "linear": {},
    "cosine": {},
    "cosine_with_restarts": {"num_cycles": 2},
    "polynomial": {"power": 2.0, "lr_end": 1e-4},
    "constant": {},
    "constant_with_warmup": {},
    "inverse_sqrt": {},
    "cosine_with_min_lr": {"min_lr": 1e-3},
    "cosine_warmup_with_min_lr": {"min_lr": 1e-3},
    "warmup_stable_decay": {"num_decay_steps": 2},
}
OVER_ALL_PHASES = {"reduce_lr_on_plateau", "greedy"}  # they follow a metric, not the step


class Rates(TrainerCallback):
    """Learning rate of the first group, and steps that Adam has counted of the attention, at each step."""

    def __init__(self):
        self.rates, self.counted = [], []

    def on_pre_optimizer_step(self, args, state, control, optimizer=None, **kwargs):
        self.rates.append(optimizer.param_groups[0]["lr"])

    def on_step_end(self, args, state, control, model=None, optimizer=None, **kwargs):
        weight = next(model.attention.parameters())
        self.counted.append(int(optimizer.state[weight]["step"]) if weight in optimizer.state else None)


def test_f11_each_phase_has_its_own_warm_up_and_decay(make_trainer):
    """Four steps of each phase, a quarter of them warm-up: 0, then 1, 2/3 and 1/3 of the rate."""
    watch = Rates()
    make_trainer(callbacks=[watch], lr_scheduler_type="linear", warmup_steps=0.25, learning_rate=0.3).train()
    assert watch.rates == pytest.approx([0, 0.3, 0.2, 0.1] * 4)


def test_f11_one_phase_of_several_epochs_is_one_schedule(make_trainer):
    watch = Rates()
    make_trainer(callbacks=[watch], warmup_steps=0, learning_rate=0.8, start_epochs=2, num_train_epochs=2).train()
    assert watch.rates == pytest.approx([0.8 - 0.1 * step for step in range(8)])


def test_f11_a_last_phase_that_is_cut_short_still_comes_to_its_end(make_trainer):
    watch = Rates()
    make_trainer(callbacks=[watch], warmup_steps=0, learning_rate=0.4, max_steps=6).train()
    assert watch.rates == pytest.approx([0.4, 0.3, 0.2, 0.1, 0.4, 0.2])


def test_f11_without_a_bottleneck_the_schedule_is_the_trainers_own(make_trainer):
    watch = Rates()
    make_trainer("att", callbacks=[watch], warmup_steps=0, learning_rate=1.6).train()
    assert watch.rates == pytest.approx([1.6 - 0.1 * step for step in range(16)])


def test_every_scheduler_of_transformers_has_been_thought_of():
    assert set(KINDS) | OVER_ALL_PHASES == {kind.value for kind in SchedulerType}


@pytest.mark.parametrize("kind", KINDS)
@given(steps=st.integers(3, 30), share=st.sampled_from([0, 0.1, 0.5, 2]))
@settings(max_examples=10)
def test_f11_the_factor_of_a_phase_is_that_of_a_run_of_its_length(tmp_path_factory, kind, steps, share):
    args = TrainingArguments(
        str(tmp_path_factory.getbasetemp()),
        lr_scheduler_type=kind,
        lr_scheduler_kwargs=KINDS[kind],
        warmup_steps=share,
        use_cpu=True,
    )
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=0.5)
    factor = phase_factor(args, optimizer, steps)
    alone = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=0.5)
    scheduler = get_scheduler(kind, alone, args.get_warmup_steps(steps), steps, KINDS[kind])
    for step in range(steps):
        assert 0.5 * factor(step) == pytest.approx(scheduler.get_last_lr()[0], abs=1e-12)
        alone.step()
        scheduler.step()


@pytest.mark.parametrize("kind", sorted(OVER_ALL_PHASES))
def test_a_scheduler_that_follows_a_metric_goes_over_all_phases(train, kind):
    trainer = train(lr_scheduler_type=kind, eval_strategy="epoch", metric_for_best_model="loss")
    assert type(trainer.lr_scheduler).__name__ in ("ReduceLROnPlateau", "GreedyLR")


def test_f16_moments_last_from_phase_to_phase(make_trainer):
    """Joint, compress, learn, compress: the attention is trained in all but learn, and its steps are counted on."""
    watch = Rates()
    make_trainer(callbacks=[watch]).train()
    assert watch.counted == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8, 9, 10, 11, 12]


def test_f11_a_resumed_run_has_the_rates_of_the_unbroken_one(make_trainer):
    whole, parts = Rates(), Rates()
    make_trainer(callbacks=[whole], folder="whole").train()
    make_trainer(callbacks=[parts, StopAt(6)], folder="parts").train()
    make_trainer(callbacks=[parts], folder="parts").train(resume_from_checkpoint=True)
    assert parts.rates == pytest.approx(whole.rates, abs=0)


def test_phases_begin_where_the_schedule_says(make_trainer):
    schedule = make_trainer().schedule
    starts = schedule.starts(4)
    assert starts == [0, 1, 2, 3]
    assert all(schedule.phase(a) != schedule.phase(b) for a, b in pairwise(starts))
