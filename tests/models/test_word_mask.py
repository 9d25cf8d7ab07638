"""Word masks: numbers worked out by hand, distributions, gradients, and what never changes."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Bernoulli, Normal, kl_divergence

from hf_vat.models.word_mask import MASKS, WordMask, bernoulli_kl

VARIANTS = {
    "vmask": {"mask_type": "vmask"},
    "vmask_hard": {"mask_type": "vmask", "mask_sample": "hard_st", "mask_layers": 2, "mask_hidden_size": 3},
    "vmask_sum": {"mask_type": "vmask", "mask_reduction": "sum"},
    "l2x": {"mask_type": "l2x"},
    "l2x_sigmoid": {"mask_type": "l2x", "mask_normalization": "sigmoid"},
    "l2x_topk": {"mask_type": "l2x", "mask_normalization": "concrete_topk", "mask_k": 2, "mask_temperature": 0.5},
    "iba": {"mask_type": "iba"},
}
ALL = list(VARIANTS)
PER_WORD = [name for name in VARIANTS if name not in ("l2x", "l2x_topk")]  # those two compare the words of a text
SIZE = 4


def make_mask(name: str, **given) -> WordMask:
    """The same weights each time, large enough for masks far from their start."""
    chosen = {
        "mask_layers": 1, "mask_hidden_size": None, "mask_sample": "soft", "mask_temperature": 1.0,
        "mask_reduction": "token_mean", "mask_normalization": "softmax", "mask_k": 10,
    } | VARIANTS[name] | given  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        mask = MASKS[chosen["mask_type"]](SimpleNamespace(**chosen), SIZE)
        with torch.no_grad():
            for parameter in mask.parameters():
                parameter.normal_(0, 1.5)
    return mask


def make_texts(*lengths: int, width: int | None = None, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings [B, T, d] in which two special tokens stand around each text, and their content mask."""
    generator = torch.Generator().manual_seed(seed)
    width = width or max(lengths) + 2
    words = torch.randn(len(lengths), width, SIZE, generator=generator)
    columns = torch.arange(width)
    return words, (columns >= 1) & (columns <= torch.tensor(lengths).unsqueeze(1))


def fixed(mask: WordMask, logits) -> WordMask:
    """The mask with scores that are given instead of computed, whatever the words."""
    mask._logits = lambda words: torch.as_tensor(logits, dtype=torch.float32).expand(words.shape[:2])
    return mask


# The terms


def test_c14_divergence_from_fair_coins_by_hand():
    logits = torch.tensor([0.0, math.log(9), 50.0, -50.0])
    assert torch.equal(logits.sigmoid()[[0, 2]], torch.tensor([0.5, 1.0]))
    expected = [0.0, 0.368064, 0.693147, 0.693147]
    assert bernoulli_kl(logits).tolist() == pytest.approx(expected, abs=1e-6)


@given(st.floats(-1e30, 1e30))
def test_divergence_lies_between_0_and_log_2_and_agrees_with_torch(logit):
    value = bernoulli_kl(torch.tensor(logit)).item()
    assert 0 <= value <= math.log(2) + 1e-6
    if abs(logit) < 15:
        reference = kl_divergence(Bernoulli(logits=torch.tensor(logit).double()), Bernoulli(torch.tensor(0.5).double()))
        assert value == pytest.approx(reference.item(), abs=1e-6)


def test_divergence_pulls_towards_one_half_and_the_entropy_is_what_is_left():
    logits = torch.tensor([-3.0, 0.0, 3.0], requires_grad=True)
    divergence = bernoulli_kl(logits)
    [gradient] = torch.autograd.grad(divergence.sum(), logits)
    assert gradient[0] < 0 and gradient[1] == 0 and gradient[2] > 0  # a descent step goes towards 0, that is p = 1/2
    torch.testing.assert_close(divergence, math.log(2) - Bernoulli(logits=logits).entropy())


def test_term_is_the_mean_or_sum_over_content_tokens():
    words, content = make_texts(3, 1)
    logits = torch.tensor([[7.0, 0.0, math.log(9), 50.0, 7.0], [7.0, math.log(9), 7.0, 7.0, 7.0]])
    mean = fixed(make_mask("vmask"), logits).eval()(words, content).term
    assert mean.tolist() == pytest.approx([(0.368064 + 0.693147) / 3, 0.368064], abs=1e-6)
    total = fixed(make_mask("vmask_sum"), logits).eval()(words, content).term
    assert total.tolist() == pytest.approx([0.368064 + 0.693147, 0.368064], abs=1e-6)


def test_f66_term_is_the_mean_over_all_positions_as_in_the_published_code():
    """There it is the mean of a tensor of all positions, padding included, under which the scores of padding are trained."""
    words, content = make_texts(3, 1)
    logits = torch.tensor([[0.0, 0.0, math.log(9), 50.0, 0.0], [0.0, math.log(9), math.log(9), -50.0, 50.0]])
    logits.requires_grad_()
    term = fixed(make_mask("vmask", mask_reduction="position_mean"), logits).eval()(words, content).term
    assert term.tolist() == pytest.approx([(0.368064 + 0.693147) / 5, 2 * (0.368064 + 0.693147) / 5], abs=1e-6)
    assert term.mean().item() == pytest.approx(bernoulli_kl(logits).mean().item())
    [gradient] = torch.autograd.grad(term.sum(), logits)
    assert gradient[1, 2] == gradient[1, 1] > 0  # a position outside the text counts as one inside it
    mask = fixed(make_mask("iba", mask_reduction="position_mean"), -5.0).eval()  # λ = 1/2
    wide = torch.cat([words, torch.zeros(2, 5, SIZE)], 1)
    outside = torch.cat([content, torch.zeros(2, 5, dtype=torch.bool)], 1)
    # mean 0 and variance 1: -(1 + log 1/4 - x²/4 - 1/4)/2, of padding with x = 0
    padded = 5 * -(0.75 - math.log(4)) / 2
    expected = (mask(words, content).term * 5 + padded) / 10
    torch.testing.assert_close(mask(wide, outside).term, expected)
    empty = mask(torch.zeros(2, 0, SIZE), torch.zeros(2, 0, dtype=torch.bool)).term
    assert empty.tolist() == [0, 0]


def test_iba_term_by_hand_and_as_a_divergence_of_gaussians():
    mask = make_mask("iba").eval()
    with torch.no_grad():
        mask.mean.copy_(torch.tensor([1.0, 0.0, -1.0, 2.0]))
        mask.variance.copy_(torch.tensor([4.0, 1.0, 0.25, 1.0]))
    words = torch.tensor([[[3.0, 1.0, -1.0, 0.0]]])
    content = torch.ones(1, 1, dtype=torch.bool)
    fixed(mask, -5.0)  # lambda = 1/2, as scores start 5 higher
    masked, kept, term = mask(words, content)
    assert kept.item() == 0.5
    torch.testing.assert_close(masked[0, 0], torch.tensor([2.0, 0.5, -1.0, 1.0]))  # half way to the means
    # normalised words 1, 1, 0, -2 with squares 1, 1, 0, 4: -(1 + log 1/4 - squares/4 - 1/4)/2 each
    assert term.item() == pytest.approx(sum(-(0.75 - math.log(4) - square / 4) / 2 for square in (1, 1, 0, 4)) / 4)
    for score in (-12.0, -7.0, -4.0, 0.0, 3.0):
        term = fixed(mask, score)(words, content).term.item()
        kept = torch.tensor(score + 5).double().sigmoid()
        normalised = torch.tensor([1.0, 1.0, 0.0, -2.0]).double()
        prior = Normal(torch.zeros(4).double(), torch.ones(4).double())
        reference = kl_divergence(Normal(kept * normalised, 1 - kept), prior).mean()
        assert term == pytest.approx(reference.item(), rel=1e-4) and term >= 0


def test_l2x_has_no_term():
    for name in ("l2x", "l2x_sigmoid", "l2x_topk"):
        assert make_mask(name)(*make_texts(3)).term is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [-50.0, 50.0])
@pytest.mark.parametrize("name", ALL)
def test_c15_extreme_scores_stay_finite(name, bias, dtype):
    mask = make_mask(name).to(dtype).train()
    last = mask.scorer if isinstance(mask.scorer, torch.nn.Linear) else mask.scorer[-1]
    torch.nn.init.constant_(last.bias, bias)
    for factor in (1.0, 20.0):  # the latter gives scores of several hundred
        words, content = make_texts(3, 1, 0)
        words = (words * factor).to(dtype).requires_grad_()
        for mode in (True, False):
            masked, kept, term = mask.train(mode)(words, content)
            loss = masked.float().square().mean() + (0 if term is None else term.sum())
            loss.backward()
            assert masked.dtype == dtype and kept.dtype == torch.float32
            assert all(torch.isfinite(tensor).all() for tensor in (loss, masked, kept, words.grad))
            assert all(torch.isfinite(parameter.grad).all() for parameter in mask.parameters())


# What a mask does


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("name", ALL)
def test_special_tokens_and_padding_pass_and_have_no_score(name, mode):
    mask = getattr(make_mask(name), mode)()
    words, content = make_texts(3, 1, 0)
    masked, kept, _ = mask(words, content)
    assert torch.equal(masked[~content], words[~content]) and (kept[~content] == 0).all()
    assert (masked[content] != words[content]).any(-1).any() and (kept[content] > 0).any()
    assert (kept >= 0).all() and (kept <= 1).all()


@pytest.mark.parametrize("name", ALL)
def test_c16_evaluation_never_samples_and_multiplies_with_the_expectation(name):
    mask, (words, content) = make_mask(name).eval(), make_texts(5, 2)
    state = torch.random.get_rng_state()
    first, second = mask(words, content), mask(words, content)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(first.embeddings, second.embeddings) and torch.equal(first.probabilities, second.probabilities)
    if name != "iba":
        expected = words[content] * first.probabilities[content].unsqueeze(-1)
        torch.testing.assert_close(first.embeddings[content], expected)
    deterministic = name in ("l2x", "l2x_sigmoid")
    mask.train()
    words, content = make_texts(40, 30)  # of few words two draws may be the same
    assert torch.equal(mask(words, content).embeddings, mask(words, content).embeddings) == deterministic


@settings(max_examples=20)
@given(
    name=st.sampled_from(ALL),
    lengths=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    extra=st.integers(0, 6),
    seed=st.integers(0, 100),
)
def test_c04_padding_and_neighbours_never_matter(name, lengths, extra, seed):
    mask = make_mask(name).eval()
    words, content = make_texts(*lengths, seed=seed)
    together = mask(words, content)
    wider, wider_content = make_texts(*lengths, width=words.shape[1] + extra)
    wider[:, : words.shape[1]] = words
    padded = mask(wider, wider_content)
    torch.testing.assert_close(padded.probabilities[:, : words.shape[1]], together.probabilities, atol=1e-6, rtol=0)
    assert (padded.probabilities[:, words.shape[1] :] == 0).all()
    if together.term is not None:
        torch.testing.assert_close(padded.term, together.term, atol=1e-6, rtol=1e-5)
    for row in range(len(lengths)):
        alone = mask(words[row : row + 1], content[row : row + 1])
        torch.testing.assert_close(alone.embeddings[0], together.embeddings[row], atol=1e-6, rtol=1e-5)


@settings(max_examples=20)
@given(name=st.sampled_from(ALL), order=st.permutations(range(5)), seed=st.integers(0, 100))
def test_the_order_of_words_does_not_matter_nor_their_company(name, order, seed):
    mask = make_mask(name).eval()
    words, content = make_texts(5, width=7, seed=seed)
    kept = mask(words, content).probabilities[0, 1:6]
    moved = words.clone()
    moved[0, 1:6] = words[0, 1:6][list(order)]
    torch.testing.assert_close(mask(moved, content).probabilities[0, 1:6], kept[list(order)], atol=1e-6, rtol=0)
    if name in PER_WORD:  # a lookup in the vocabulary: the same for a word in any text
        alone = mask(words[:, 3:4], torch.ones(1, 1, dtype=torch.bool)).probabilities
        torch.testing.assert_close(alone[0, 0], kept[2], atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ALL)
def test_c06_texts_without_words(name):
    mask = make_mask(name).train()
    for shape in ((2, 3), (2, 0)):
        words = torch.randn(*shape, SIZE, requires_grad=True)
        masked, kept, term = mask(words, torch.zeros(shape, dtype=torch.bool))
        assert torch.equal(masked, words) and kept.shape == shape and not kept.any()
        assert term is None or term.tolist() == [0.0, 0.0]
        masked.sum().backward()
        assert all(parameter.grad is None or not parameter.grad.any() for parameter in mask.parameters())


# VMASK's draws


@pytest.mark.parametrize("logit", [-2.0, 0.0, 1.0])
def test_hard_draws_are_0_or_1_with_the_probability_of_the_word(logit):
    mask = fixed(make_mask("vmask_hard").train(), logit)
    words, content = torch.ones(1, 20_000, SIZE), torch.ones(1, 20_000, dtype=torch.bool)
    torch.manual_seed(0)
    drawn = mask(words, content).embeddings[0, :, 0]
    assert set(drawn.tolist()) == {0.0, 1.0}
    probability = 1 / (1 + math.exp(-logit))
    assert drawn.mean().item() == pytest.approx(
        probability, abs=5 * math.sqrt(probability * (1 - probability) / 20_000)
    )


def test_soft_draws_are_those_of_the_gumbel_softmax():
    logits = torch.full((200_000, 2), 0.0)
    logits[:, 1] = 1.0  # log p/(1 - p)
    torch.manual_seed(0)
    theirs = torch.nn.functional.gumbel_softmax(logits, tau=0.5)[:, 1]
    mask = fixed(make_mask("vmask", mask_temperature=0.5).train(), 1.0)
    ones = torch.ones(1, 200_000, SIZE)
    ours = mask(ones, torch.ones(1, 200_000, dtype=torch.bool)).embeddings[0, :, 0]
    places = torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95])
    torch.testing.assert_close(ours.quantile(places), theirs.quantile(places), atol=0.01, rtol=0)


def test_straight_through_passes_the_gradient_of_the_soft_draw():
    words = make_texts(5, 3)[0]
    direction = torch.randn(words.shape, generator=torch.Generator().manual_seed(1))
    gradients = []
    for sample in ("soft", "hard_st"):
        mask = make_mask("vmask", mask_sample=sample).train()
        logits = mask._logits(words)
        torch.manual_seed(0)
        drawn = mask._draw(logits)
        # The loss is linear in the mask, so that its gradient does not depend on the value drawn.
        gradients.append(torch.autograd.grad((drawn.unsqueeze(-1) * direction).sum(), list(mask.parameters())))
    assert all(gradient.abs().max() > 0 for gradient in gradients[0])
    for soft, hard in zip(*gradients, strict=True):
        torch.testing.assert_close(hard, soft)


def test_a_temperature_near_0_rounds_the_soft_draw():
    logits = torch.zeros(1, 1000)
    torch.manual_seed(0)
    sharp = make_mask("vmask", mask_temperature=0.1)._draw(logits)
    torch.manual_seed(0)
    hard = make_mask("vmask", mask_sample="hard_st")._draw(logits)
    assert (sharp.round() == hard).all() and (sharp - hard).abs().mean() < 0.05


# L2X's weights


def test_l2x_weights_by_hand():
    words, content = make_texts(3)
    logits = torch.tensor([[9.0, 0.0, math.log(2), math.log(5), 9.0]])
    softmax = fixed(make_mask("l2x"), logits)(words, content)
    assert softmax.probabilities[0].tolist() == pytest.approx([0, 1 / 8, 2 / 8, 5 / 8, 0])
    torch.testing.assert_close(softmax.embeddings[0, 3], words[0, 3] * 5 / 8)
    sigmoid = fixed(make_mask("l2x_sigmoid"), logits)(words, content)
    assert sigmoid.probabilities[0].tolist() == pytest.approx([0, 1 / 2, 2 / 3, 5 / 6, 0])
    topk = fixed(make_mask("l2x_topk").eval(), logits)(words, content)  # two draws
    assert topk.probabilities[0].tolist() == pytest.approx([0, 1 - (7 / 8) ** 2, 1 - (6 / 8) ** 2, 1 - (3 / 8) ** 2, 0])


def test_concrete_top_k_draws_about_k_words_and_as_often_as_evaluation_says():
    words, content = make_texts(3)
    logits = torch.tensor([[9.0, 0.0, math.log(2), math.log(5), 9.0]])
    mask = fixed(make_mask("l2x_topk", mask_temperature=0.1), logits)
    ones = torch.ones_like(words)
    torch.manual_seed(0)
    draws = torch.stack([mask.train()(ones, content).embeddings[0, :, 0] for _ in range(4000)])
    assert draws[:, 1:4].sum(1).max() <= 2 + 1e-4
    expected = mask.eval()(ones, content).probabilities[0, 1:4]
    torch.testing.assert_close(draws[:, 1:4].round().mean(0), expected, atol=0.03, rtol=0)


# IBA's statistics


@settings(max_examples=20)
@given(batches=st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=4))
def test_statistics_are_those_of_all_words_seen_however_batched(batches):
    mask = make_mask("iba").train()
    seen = []
    for number, lengths in enumerate(batches):
        words, content = make_texts(*lengths, seed=number)
        words = words * 3 + number
        mask(words, content)
        seen.append(words[content])
    seen = torch.cat(seen).double()
    assert mask.count == len(seen)
    if len(seen):
        torch.testing.assert_close(mask.mean.double(), seen.mean(0), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(mask.variance.double(), seen.var(0, correction=0), atol=1e-4, rtol=1e-4)
    else:
        assert mask.mean.tolist() == [0.0] * SIZE and mask.variance.tolist() == [1.0] * SIZE


def test_statistics_rest_in_evaluation_and_travel_with_the_weights():
    mask, (words, content) = make_mask("iba"), make_texts(5)
    mask.train()(words, content)
    before = {name: tensor.clone() for name, tensor in mask.state_dict().items()}
    mask.eval()(words + 1, content)
    assert before.keys() > {"mean", "variance", "count"}
    assert all(torch.equal(tensor, before[name]) for name, tensor in mask.state_dict().items())
    assert mask.to(torch.bfloat16).count.dtype == torch.long  # a half-precision count would stop at 256


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_statistics_are_float32_whatever_the_type_of_the_mask(dtype):
    """Of 4,000 words a batch has a share of 1 in 400 at last, less than bfloat16 tells apart."""
    mask, seen = make_mask("iba").train(), []
    mask(*make_texts(5))
    before = mask.mean.clone(), mask.variance.clone()
    assert before[0].abs().min() > 0.01
    assert mask.to(dtype).scorer.weight.dtype == dtype
    assert torch.equal(mask.mean, before[0]) and torch.equal(mask.variance, before[1])  # all digits
    seen.append(make_texts(5)[0][0, 1:6])
    for number in range(400):
        words, content = make_texts(10, seed=number)
        words = (words * 2 + number / 100).to(dtype)
        mask(words, content)
        seen.append(words[content].float())
    seen = torch.cat(seen).double()
    assert mask.mean.dtype == mask.variance.dtype == torch.float32 and mask.count == len(seen) == 4005
    torch.testing.assert_close(mask.mean.double(), seen.mean(0), atol=1e-4, rtol=0)
    torch.testing.assert_close(mask.variance.double(), seen.var(0, correction=0), atol=1e-3, rtol=0)


def test_noise_has_the_statistics_of_the_words_and_at_least_the_minimum_scale():
    mask = fixed(make_mask("iba"), -50.0).train()  # lambda = 0: noise alone
    words = torch.randn(1, 20_000, SIZE, generator=torch.Generator().manual_seed(0)) * torch.tensor(
        [2.0, 1.0, 0.5, 0.0]
    )
    words = words + torch.tensor([1.0, 0.0, -1.0, 3.0])
    torch.manual_seed(0)
    noise = mask(words, torch.ones(1, 20_000, dtype=torch.bool)).embeddings[0]
    torch.testing.assert_close(noise.mean(0), torch.tensor([1.0, 0.0, -1.0, 3.0]), atol=0.05, rtol=0)
    torch.testing.assert_close(noise.std(0), torch.tensor([2.0, 1.0, 0.5, 0.01]), atol=0.03, rtol=0)
    assert noise[:, 3].std().item() == pytest.approx(0.01, rel=0.05)


def test_iba_starts_open():
    mask = make_mask("iba")
    torch.nn.init.zeros_(mask.scorer.weight)
    torch.nn.init.zeros_(mask.scorer.bias)
    words, content = make_texts(2)
    assert mask.eval()(words, content).probabilities[0, 1].item() == pytest.approx(1 / (1 + math.exp(-5)))
