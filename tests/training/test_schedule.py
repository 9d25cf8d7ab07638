"""Phase, and weight of a word mask's term, as functions of the epoch."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_vat.errors import InputError
from hf_vat.training import BetaSchedule, PhaseSchedule, VATTrainingArguments


def test_phases_by_hand():
    schedule = PhaseSchedule("joint", start_epochs=2, compress_epochs=1, learn_epochs=2)
    phases = [schedule.phase(epoch) for epoch in range(9)]
    assert phases == ["joint"] * 2 + ["compress", "learn", "learn"] * 2 + ["compress"]
    assert [epoch for epoch in range(9) if schedule.begins(epoch)] == [0, 2, 3, 5, 6, 8]


def test_f10_rounds_that_are_over():
    schedule = PhaseSchedule("joint", start_epochs=2, compress_epochs=1, learn_epochs=2)
    assert [schedule.rounds(epochs) for epochs in (0, 2, 4.9, 5, 7.99, 8, 11)] == [0, 0, 0, 1, 1, 2, 3]


def test_without_a_bottleneck_everything_is_finetuning():
    schedule = PhaseSchedule("joint", 1, 1, 1, alternates=False)
    assert {schedule.phase(epoch) for epoch in range(5)} == {"finetune"}
    assert [epoch for epoch in range(5) if schedule.begins(epoch)] == [0]


@pytest.mark.parametrize("setting", ["start_epochs", "compress_epochs", "learn_epochs"])
def test_too_few_epochs_are_refused_by_name(setting):
    settings = {"start_epochs": 1, "compress_epochs": 1, "learn_epochs": 1, setting: -1}
    with pytest.raises(InputError, match=setting):
        PhaseSchedule("joint", **settings)


@given(
    st.integers(0, 4), st.integers(1, 4), st.integers(1, 4), st.integers(0, 40), st.sampled_from(["joint", "finetune"])
)
def test_a_phase_begins_exactly_where_it_differs_from_the_epoch_before(start, compress, learn, epoch, name):
    schedule = PhaseSchedule(name, start, compress, learn)
    changes = epoch == 0 or schedule.phase(epoch) != schedule.phase(epoch - 1)
    assert schedule.begins(epoch) == changes


DOWN = [1.0, 0.901, 0.802, 0.703, 0.604, 0.505, 0.406, 0.307, 0.208, 0.109, 0.01]


def test_c14_beta_goes_down_as_in_the_published_code_and_never_below_its_end():
    """There β = 1.0 loses 0.099 while it is above 0.01; after ten times it is still, by rounding, and then -0.089."""
    bert = BetaSchedule(1.0, 0.01, step_epochs=1)
    assert [bert.beta(epoch, 10) for epoch in range(10)] == pytest.approx(DOWN[:-1], abs=1e-12)
    assert [bert.beta(epoch, 30) for epoch in range(11)] == pytest.approx(DOWN, abs=1e-12)
    assert {bert.beta(epoch, 30) for epoch in range(10, 30)} == {0.01}
    cnn = BetaSchedule(1.0, 0.01, step_epochs=10)
    assert [cnn.beta(epoch, 100) for epoch in range(100)] == pytest.approx(
        [beta for beta in DOWN[:-1] for _ in range(10)], abs=1e-12
    )
    assert [cnn.beta(epoch, 130) for epoch in (99, 100, 109, 110, 129)] == [pytest.approx(0.109), *[0.01] * 4]
    published, taken = 1.0, 0
    while published > 0.01:
        published, taken = published - 0.099, taken + 1
    assert taken == 11 and published == pytest.approx(-0.089)


def test_f64_the_published_code_ends_at_0_109():
    """Worked by hand: after ten epochs 1.0 - 0.099, after ninety 1.0 - 9 · 0.099; the tenth step comes after the last epoch."""
    by_hand = {0: 1.0, 9: 1.0, 10: 0.901, 89: 0.208, 90: 0.109, 99: 0.109}
    schedule = BetaSchedule(1.0, 0.01, step_epochs=100 // 10)
    assert {epoch: schedule.beta(epoch, 100) for epoch in by_hand} == pytest.approx(by_hand)
    short = BetaSchedule(1.0, 0.01, step_epochs=40 // 10)
    assert {epoch: short.beta(epoch, 40) for epoch in (0, 3, 4, 35, 36, 39)} == pytest.approx(
        {0: 1.0, 3: 1.0, 4: 0.901, 35: 0.208, 36: 0.109, 39: 0.109}
    )
    said = {text: " ".join((text or "").split()) for text in (BetaSchedule.__doc__, VATTrainingArguments.__doc__)}
    assert all("0.109" in text for text in said.values())


def test_c14_a_straight_line_of_eleven_epochs_has_the_same_steps():
    assert [BetaSchedule(1.0, 0.01).beta(epoch, 11) for epoch in range(11)] == pytest.approx(DOWN)


def test_beta_goes_up_stays_and_has_one_epoch():
    assert [BetaSchedule(0, 1).beta(epoch, 5) for epoch in range(5)] == [0, 0.25, 0.5, 0.75, 1]
    assert {BetaSchedule(0.25, 0.25).beta(epoch, 3) for epoch in range(3)} == {0.25}
    assert BetaSchedule(0.5, 0.01).beta(0, 1) == 0.5


@given(st.floats(0, 10), st.floats(0, 10), st.integers(2, 50), st.none() | st.integers(1, 60))
def test_beta_is_between_its_ends_and_moves_one_way(start, end, epochs, step_epochs):
    betas = [BetaSchedule(start, end, step_epochs).beta(epoch, epochs) for epoch in range(epochs)]
    assert betas[0] == start
    if step_epochs is None or epochs > 10 * step_epochs:
        assert betas[-1] == end
    assert min(start, end) - 1e-12 <= min(betas) and max(betas) <= max(start, end) + 1e-12
    for before, after in pairwise(betas):
        assert (after - before) * (end - start) >= -1e-12


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((-0.1, 1), "mask_beta_start=-0.1 must be a number of at least 0"),
        ((1, math.nan), "mask_beta_end=nan must be a number of at least 0"),
        ((1, 0.01, 0), "mask_beta_step_epochs=0 must be at least 1"),
    ],
)
def test_beta_out_of_range_is_refused_by_name(settings, message):
    with pytest.raises(InputError, match=message):
        BetaSchedule(*settings)
