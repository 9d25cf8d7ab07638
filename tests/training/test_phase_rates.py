"""Learning rates and moments of the optimizer, from phase to phase."""

import pytest
from transformers import TrainerCallback

from hf_vat.training import VATTrainingArguments


class Rates(TrainerCallback):
    """Phase and learning rate of the first group, and steps that Adam has counted of the attention, at each step."""

    def __init__(self):
        self.rates, self.counted = [], []

    def on_pre_optimizer_step(self, args, state, control, model=None, optimizer=None, **kwargs):
        self.rates.append((model.phase, optimizer.param_groups[0]["lr"]))

    def on_step_end(self, args, state, control, model=None, optimizer=None, **kwargs):
        weight = next(model.attention.parameters())
        self.counted.append(int(optimizer.state[weight]["step"]) if weight in optimizer.state else None)


def test_f11_a_phase_that_comes_late_has_its_learning_rate_by_default(make_trainer):
    """Sixteen steps, of which two are warm-up; the first learner step is the ninth."""
    default = VATTrainingArguments("unused", use_cpu=True)
    watch = Rates()
    make_trainer(
        callbacks=[watch],
        learning_rate=0.3,
        lr_scheduler_type=default.lr_scheduler_type,
        warmup_steps=default.warmup_steps,
    ).train()
    assert [rate for _, rate in watch.rates] == pytest.approx([0, 0.15] + [0.3] * 14)
    assert {rate for phase, rate in watch.rates if phase == "learn"} == {0.3}


def test_f11_another_scheduler_goes_over_all_phases_as_in_the_trainer(make_trainer):
    watch = Rates()
    make_trainer(callbacks=[watch], lr_scheduler_type="linear", warmup_steps=0, learning_rate=1.6).train()
    assert [rate for _, rate in watch.rates] == pytest.approx([1.6 - 0.1 * step for step in range(16)])


def test_f16_moments_last_from_phase_to_phase(make_trainer):
    """Joint, compress, learn, compress: the attention is trained in all but learn, and its steps are counted on."""
    watch = Rates()
    make_trainer(callbacks=[watch]).train()
    assert watch.counted == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8, 9, 10, 11, 12]
