"""A second model with another attention for the same predictions."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from checks import refuses
from hypothesis import given
from hypothesis import strategies as st

from hf_vat.analysis import AdversaryCurve, CurvePoint, adversary_curve, measure_adversary, train_adversary
from hf_vat.analysis.adversary import _ask, _compare
from hf_vat.models.words import encode_words

TEXTS = [
    "good film", "the plot and the film", "bad", "very very bad and a film the plot good", "awful film", "a great plot",
    "the film and the plot good", "a very awful plot and film",
]  # fmt: skip
QUICK = {"epochs": 40, "batch_size": 4, "learning_rate": 1e-2}


def means(distances):
    return np.mean([one.tvd for one in distances]), np.mean([one.jsd for one in distances])


@pytest.mark.parametrize("trains", ["model", "attention"])
def test_a_weight_drives_attention_away_and_none_copies_the_model(make_lstm, word_tokenizer, trains):
    model = make_lstm()
    found = []
    for weight in (0.0, 1.0):
        adversary = train_adversary(model, word_tokenizer, TEXTS, weight, trains=trains, **QUICK)
        distances = measure_adversary(model, adversary, word_tokenizer, TEXTS)
        assert measure_adversary(model, adversary, word_tokenizer, []) == []
        assert distances[2].jsd == pytest.approx(0, abs=1e-6) and distances[2].n_tokens == 1
        found.append(means(distances))
    assert found[0][0] < 0.03 and found[1][1] > found[0][1] + 0.1, found


@pytest.mark.parametrize("trains", ["model", "attention"])
@pytest.mark.parametrize("system", ["att", "vat", "vat_shared", "vat_shared_mean"])
def test_what_stays_of_an_encoder_of_transformers(make_model, tokenizer, system, trains):
    """Its weights to begin with; with attention alone, they do not move."""
    model = make_model(system)
    adversary = train_adversary(model, tokenizer, ["a dull film", "the plot is good"], 0.1, trains=trains, epochs=1)
    assert type(adversary) is type(model) and not adversary.training
    for (name, theirs), ours in zip(
        model.base_model.named_parameters(), adversary.base_model.parameters(), strict=True
    ):
        assert torch.equal(theirs, ours) == (
            trains == "attention" or theirs.grad is not None or ("position" in name and False)
        ), name
    assert not torch.allclose(model.attention.score.weight, adversary.attention.score.weight)


def test_what_stays_of_an_encoder_of_words(make_lstm, word_tokenizer):
    model = make_lstm()
    adversary = train_adversary(model, word_tokenizer, TEXTS, 0.0, epochs=1, learning_rate=1e-9)
    same = {
        name
        for (name, theirs), ours in zip(model.named_parameters(), adversary.parameters(), strict=True)
        if theirs.any() and torch.allclose(theirs, ours, atol=1e-6)
    }
    assert same == {"encoder.word_embeddings.weight"}


@pytest.mark.parametrize("objective", ["concat", "residual", "mlm"])
def test_models_with_an_objective_for_words(make_model, tokenizer, objective):
    given = {"word_objective": objective, "mask_token_id": 4} if objective == "mlm" else {"word_objective": objective}
    model = make_model("att", **given)
    for trains in ("model", "attention"):
        adversary = train_adversary(model, tokenizer, ["a dull film", "the plot is good"], 0.0, trains=trains, epochs=1)
        [one] = measure_adversary(model, adversary, tokenizer, ["a good film"])
        assert 0 < one.tvd < 1 and 0 < one.jsd < math.log(2)


def test_a_mask_stays_as_it_is(make_model, tokenizer):
    model = make_model("att", mask_type="vmask", mask_beta=0.5)
    adversary = train_adversary(model, tokenizer, ["a dull film", "the plot is good"], 0.1, epochs=2)
    for theirs, ours in zip(model.word_mask.parameters(), adversary.word_mask.parameters(), strict=True):
        assert torch.equal(theirs, ours)


def test_loss_by_hand(by_hand, word_tokenizer):
    """α = (¾, ¼) and P(1) = σ(1.25); the other has α′ = (½, ½) and P(1) = σ(0.5): padding beside a longer text counts for
    nothing."""
    vectors = {"good": (math.log(3), 2.0), "film": (0.0, -1.0)}
    model, other = by_hand(vectors), by_hand({word: (0.0, s) for word, (_, s) in vectors.items()})
    texts = encode_words(word_tokenizer, ["good film", "good good film film film"], 32)
    for keep in (False, True):
        if keep:
            other = by_hand(vectors)
            with torch.no_grad():
                other.attention.score.weight.zero_()
        found = _compare(other, _ask(model, word_tokenizer, texts, 2, keep), [0, 1])
        sigmoid = [1 / (1 + math.exp(-s)) for s in (1.25, 0.5)]
        assert found.tvd[0].item() == pytest.approx(sigmoid[0] - sigmoid[1], abs=1e-6)
        assert found.kl[0].item() == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5), abs=1e-6)
        mixed = -0.625 * math.log(0.625) - 0.375 * math.log(0.375)
        entropy = -0.75 * math.log(0.75) - 0.25 * math.log(0.25)
        assert found.jsd[0].item() == pytest.approx(mixed - (entropy + math.log(2)) / 2, abs=1e-6)


def test_the_same_call_gives_the_same_adversary_and_leaves_all_as_found(make_lstm, word_tokenizer):
    model = make_lstm().train()
    before, random = {key: value.clone() for key, value in model.state_dict().items()}, torch.get_rng_state()
    first, second = (train_adversary(model, word_tokenizer, TEXTS, 0.1, epochs=2, seed=3) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first.parameters(), second.parameters(), strict=True))
    other = train_adversary(model, word_tokenizer, TEXTS, 0.1, epochs=2, seed=4)
    assert not torch.equal(first.attention.score.weight, other.attention.score.weight)
    assert torch.equal(torch.get_rng_state(), random) and all(module.training for module in model.modules())
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in [*model.parameters(), *first.parameters()])


def test_an_interrupted_curve_goes_on(make_lstm, word_tokenizer, tmp_path, capsys):
    model, path = make_lstm(), tmp_path / "curve.jsonl"
    call = {"weights": (0.0, 0.5, 1.0), "epochs": 2, "trains": "attention"}
    expected = adversary_curve(model, word_tokenizer, TEXTS[:5], TEXTS[5:], progress=True, save_to=path, **call)
    assert "30/30" in capsys.readouterr().err and [point.weight for point in expected.points] == [0.0, 0.5, 1.0]
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert adversary_curve(model, word_tokenizer, TEXTS[:5], TEXTS[5:], save_to=path, **call) == expected
    assert path.read_bytes() == whole
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hf_vat.analysis.adversary._ask", None)  # nothing is asked again
        assert adversary_curve(model, word_tokenizer, TEXTS[:5], TEXTS[5:], save_to=path, **call) == expected
    for change in ({"epochs": 3}, {"weights": (0.0, 0.5, 2.0)}, {"trains": "model"}):
        with pytest.raises(ValueError, match="adversary's points of another call, with other settings"):
            adversary_curve(model, word_tokenizer, TEXTS[:5], TEXTS[5:], save_to=path, **(call | change))
    with pytest.raises(ValueError, match="other settings"):
        adversary_curve(model, word_tokenizer, TEXTS[:4], TEXTS[4:], save_to=path, **call)


def test_curve_by_hand():
    """(JSD, TVD): the model (0, 0), then (0.1, 0.02), (0.3, 0.1), (0.5, 0.4); (0.2, 0.3) is beaten by the second."""
    points = [
        CurvePoint(0.0, 0.02, 0.1),
        CurvePoint(1e-3, 0.3, 0.2),
        CurvePoint(0.1, 0.4, 0.5),
        CurvePoint(0.01, 0.1, 0.3),
    ]
    curve = AdversaryCurve(points, "model")
    assert (
        curve.tvd_at(0) == 0 and curve.tvd_at(0.05) == pytest.approx(0.01) and curve.tvd_at(0.1) == pytest.approx(0.02)
    )
    assert curve.tvd_at(0.2) == pytest.approx(0.06) and curve.tvd_at(0.4) == pytest.approx(0.25)
    assert curve.tvd_at(0.5) == pytest.approx(0.4) and math.isnan(curve.tvd_at(0.51)) and math.isnan(curve.tvd_at(-0.1))
    area = 0.1 * 0.01 + 0.2 * 0.06 + 0.2 * 0.25 + (math.log(2) - 0.5) * 0.4
    assert curve.area == pytest.approx(area / math.log(2))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, math.log(2), allow_subnormal=False)), min_size=1, max_size=8))
def test_a_curve_rises_and_no_adversary_lies_below_it(points):
    curve = AdversaryCurve([CurvePoint(0.1, tvd, jsd) for tvd, jsd in points], "model")
    furthest = max(jsd for _, jsd in points)
    along = [curve.tvd_at(share * furthest) for share in np.linspace(0, 1, 20)]
    assert all(one <= other + 1e-9 for one, other in pairwise(along))
    assert all(curve.tvd_at(jsd) <= tvd + 1e-9 for tvd, jsd in points)
    assert 0 <= curve.area <= 1 + 1e-9


test_refusals = refuses(
    (lambda stub, stub_tokenizer: train_adversary(stub, stub_tokenizer, ["good"], 0.1), "Stub has no attention pooling"),
    (lambda make_model, tokenizer: train_adversary(make_model(), tokenizer, [], 0.1), "texts is empty"),
    (lambda make_model, tokenizer: train_adversary(make_model(), tokenizer, ["a"], -0.1), r"weights are \[-0.1\]"),
    (lambda make_model, tokenizer: train_adversary(make_model(), tokenizer, ["a"], 0, trains="all"), "trains is 'all'; choose"),
    (lambda make_model, tokenizer: train_adversary(make_model(), tokenizer, ["a"], 0, epochs=0), "epochs is 0"),
    (lambda make_model, tokenizer: train_adversary(make_model(), tokenizer, ["a"], 0, learning_rate=0), "learning_rate is 0"),
    (lambda make_model, tokenizer: adversary_curve(make_model(), tokenizer, ["a"], ["a"], []), r"weights are \[\]"),
    (lambda make_model, tokenizer: adversary_curve(make_model(), tokenizer, ["a"], ["a"], 0.1), r"weights are 0.1; give"),
    (lambda make_model, tokenizer: adversary_curve(make_model(), tokenizer, ["a"], ["a"], ["x"]), r"weights are \['x'\]"),
    (lambda make_model, tokenizer: train_adversary(make_model(), tokenizer, ["a"], 0, learning_rate="x"), "learning_rate is 'x'"),
    (lambda make_model, tokenizer: train_adversary(make_model(), tokenizer, ["a"], 0, seed=2**70), "seed is"),
    (lambda make_model, tokenizer: adversary_curve(make_model(), tokenizer, ["a"], []), "test_texts is empty"),
    (
        lambda make_model, tokenizer: measure_adversary(make_model(), make_model("vat", num_labels=3), tokenizer, ["a"]),
        "adversary has 3 classes",
    ),
    (lambda make_model, tokenizer: measure_adversary(make_model(), make_model("max"), tokenizer, ["a"]), 'pooling="max"'),
)  # fmt: skip
