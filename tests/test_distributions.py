"""Entropy and divergence of batches of distributions."""

import math

import torch

from hf_vat.distributions import jensen_shannon, normalized_entropy


def test_entropy_and_divergence_by_hand():
    attention = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.25, 0.75, 0.0]])
    sizes = torch.tensor([2, 1, 0, 2])
    expected = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75)) / math.log(2)
    torch.testing.assert_close(normalized_entropy(attention, sizes), torch.tensor([1.0, 0.0, 0.0, expected]))
    first, second = torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([[0.0, 1.0], [0.5, 0.5]])
    torch.testing.assert_close(jensen_shannon(first, second), torch.tensor([math.log(2), 0.0]))


def test_gradient_of_the_divergence_is_finite_and_right_where_weights_are_0():
    p = torch.tensor([[0.25, 0.75, 0.0]], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([[0.0, 0.5, 0.5]], dtype=torch.float64)
    jensen_shannon(p, q).sum().backward()
    by_hand = [0.5 * math.log(a / ((a + b) / 2)) for a, b in ((0.25, 0.0), (0.75, 0.5))]
    torch.testing.assert_close(p.grad[0, :2], torch.tensor(by_hand, dtype=torch.float64))
    assert p.grad.isfinite().all()
