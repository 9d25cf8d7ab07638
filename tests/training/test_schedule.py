"""Phase as a function of the epoch."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_vat.errors import InputError
from hf_vat.training import PhaseSchedule
from hf_vat.training.attention_shift import jensen_shannon, normalised_entropy


def test_phases_by_hand():
    schedule = PhaseSchedule("joint", start_epochs=2, compress_epochs=1, learn_epochs=2)
    phases = [schedule.phase(epoch) for epoch in range(9)]
    assert phases == ["joint"] * 2 + ["compress", "learn", "learn"] * 2 + ["compress"]
    assert [epoch for epoch in range(9) if schedule.begins(epoch)] == [0, 2, 3, 5, 6, 8]


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


def test_entropy_and_divergence_by_hand():
    attention = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.25, 0.75, 0.0]])
    expected = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75)) / math.log(2)
    torch.testing.assert_close(normalised_entropy(attention), torch.tensor([1.0, 0.0, 0.0, expected]))
    first, second = torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([[0.0, 1.0], [0.5, 0.5]])
    torch.testing.assert_close(jensen_shannon(first, second), torch.tensor([math.log(2), 0.0]))
