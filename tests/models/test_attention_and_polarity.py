"""The models of Sun & Lu (ACL 2020) as settings: attention scores, polarity scores, the penalty on VᵀW."""

import pytest
import torch

from hf_vat import EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig

LABELS = torch.tensor([1, 0, 1, 0])


def make(encoder_type="embedding", attention_type="scaled_dot", num_labels=2, scale=10, **settings):
    torch.manual_seed(0)
    encoder = WordEncoderConfig(
        vocab_size=30, embedding_size=6, hidden_size=6, encoder_type=encoder_type, initializer_range=1.0, dropout=0.0
    )
    settings = {"classifier_dropout": 0.0, "attention_scale": scale, "polarity_head": True} | settings
    config = EncoderVATConfig(
        encoder=encoder, bottleneck="none", head_layers=1, attention_type=attention_type, num_labels=num_labels,
        **settings,
    )  # fmt: skip
    return EncoderForVATClassification(config).eval().double()


@pytest.fixture
def batch():
    ids = torch.randint(1, 30, (4, 7), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    mask[3, :2] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}


@pytest.mark.parametrize("num_labels", [2, 3])
@pytest.mark.parametrize("system", ["DP", "DP-A", "DP-L", "AD"])
def test_the_models_are_their_formulas(system, num_labels, batch):
    encoder, attention = {
        "DP": ("embedding", "scaled_dot"),
        "DP-A": ("affine", "scaled_dot"),
        "DP-L": ("lstm", "scaled_dot"),
        "AD": ("embedding", "additive"),
    }[system]
    model = make(encoder, attention, num_labels, scale=3)
    out = model(**batch, output_hidden_states=True)
    states = out.hidden_states[-1]  # h
    v = model.attention.score.weight[0]
    keys = states if system != "AD" else torch.tanh(states @ model.attention.projection.weight.T)
    content = batch["attention_mask"].bool()
    a = (keys @ v / 3).masked_fill(~content, 0)
    torch.testing.assert_close(out.attention_scores, a.float())
    alpha = a.masked_fill(~content, -torch.inf).softmax(-1)
    torch.testing.assert_close(out.token_importance, alpha.float())
    w = model.learner_head.out_proj.weight  # [1, d] or [3, d], and no bias
    assert model.learner_head.out_proj.bias is None and len(w) == (1 if num_labels == 2 else 3)
    s = (alpha.unsqueeze(-1) * (states @ w.T)).sum(1)
    expected = s if num_labels == 3 else torch.cat([-s / 2, s / 2], -1)
    torch.testing.assert_close(out.logits, expected, atol=1e-6, rtol=1e-5)
    assert out.polarity_scores[~content].eq(0).all() and out.attention_scores[~content].eq(0).all()
    attended = (out.token_importance.unsqueeze(-1) * out.polarity_scores).sum(1)
    torch.testing.assert_close(attended, out.logits.float(), atol=1e-5, rtol=1e-5)
    if num_labels == 2:
        loss = -torch.nn.functional.logsigmoid((2 * LABELS - 1) * s[:, 0]).mean()
        torch.testing.assert_close(model(**batch, labels=LABELS).loss.double(), loss, atol=1e-6, rtol=1e-5)


def test_the_start_of_the_attention():
    wide = WordEncoderConfig(vocab_size=4, embedding_size=4000, encoder_type="embedding")
    common = {"encoder": wide, "bottleneck": "none"}

    def std(**settings):
        torch.manual_seed(0)
        return EncoderForVATClassification(EncoderVATConfig(**common, **settings)).attention.score.weight.std().item()

    assert std(attention_type="scaled_dot") == pytest.approx(1, abs=0.05)
    assert std(attention_size=4000) == pytest.approx(0.1 / 3**0.5, abs=0.003)
    assert std(attention_size=4000, attention_init_std=1.0) == pytest.approx(1, abs=0.05)
    assert std(attention_type="scaled_dot", attention_init_std=0.5) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("num_labels", [2, 3])
@pytest.mark.parametrize("encoder", ["embedding", "affine", "lstm"])
@pytest.mark.parametrize("attention", ["scaled_dot", "additive"])
def test_the_penalty_on_vw(encoder, attention, num_labels, batch):
    found = {}
    for penalty in ("none", "abs", "square"):
        settings = {"vw_penalty": penalty} | ({"vw_weight": 0.5} if penalty != "none" else {})
        model = make(encoder, attention, num_labels, **settings)
        found[penalty] = model(**batch, labels=LABELS)
    v = model.attention.score.weight[0]
    if attention == "additive":
        v = v @ model.attention.projection.weight
    w = model.learner_head.out_proj.weight
    if encoder == "affine":
        matrix = model.base_model.encoder.weight
        v, w = v @ matrix, w @ matrix
    products = torch.stack([(one * v).sum() for one in w])
    torch.testing.assert_close(model.attention_polarity_product(), products)
    for penalty, value in (("abs", products.abs().sum()), ("square", products.square().sum())):
        torch.testing.assert_close(found[penalty].vw_product, value)
        difference = found[penalty].loss - found["none"].loss
        torch.testing.assert_close(difference.double(), 0.5 * value, atol=1e-5, rtol=1e-4)
    assert found["none"].vw_product is None
    found["square"].loss.backward()
    assert model.attention.score.weight.grad.abs().sum() > 0


def test_vw_of_two_classes_is_of_the_log_odds():
    model = make(num_labels=2, polarity_head=False)
    w, v = model.learner_head.out_proj.weight, model.attention.score.weight[0]
    torch.testing.assert_close(model.attention_polarity_product(), ((w[1] - w[0]) @ v).reshape(1))


def test_polarity_needs_a_linear_head_that_predicts(batch):
    model = make()
    assert model.has_polarity and model.train()(**batch).polarity_scores is None
    encoder = WordEncoderConfig(vocab_size=30, embedding_size=6, encoder_type="embedding")
    for settings in ({"head_layers": 2}, {"pooling": "mean"}):
        config = EncoderVATConfig(**{"encoder": encoder, "bottleneck": "none", "head_layers": 1} | settings)
        other = EncoderForVATClassification(config).eval()
        assert not other.has_polarity and other(**batch).polarity_scores is None
        with pytest.raises(ValueError, match='VᵀW needs pooling="attention" and head_layers=1'):
            other.attention_polarity_product()
    vat = EncoderForVATClassification(EncoderVATConfig(encoder=encoder, head_layers=1)).eval()
    assert vat(**batch).polarity_scores is not None
    vat.config.predict_from = "compressor"
    assert vat(**batch).polarity_scores is None


def test_states_with_another_attention_give_other_logits(batch):
    """`token_states` and `logits_of` together are `forward`."""
    for settings in ({}, {"num_labels": 3}):
        model = make("lstm", **settings)
        out, seen = model(**batch), model.token_states(**batch, words=True)
        torch.testing.assert_close(seen.attention, out.token_importance)
        torch.testing.assert_close(seen.scores, out.attention_scores)
        assert seen.words.shape == (4, 7, 6) and torch.equal(seen.content, batch["attention_mask"].bool())
        text = (seen.attention.unsqueeze(-1).double() * seen.states).sum(1)
        torch.testing.assert_close(model.logits_of(text), out.logits, atol=1e-6, rtol=1e-5)
    with pytest.raises(ValueError, match='pooling="mean" has no attention'):
        encoder = WordEncoderConfig(vocab_size=30, embedding_size=6)
        config = EncoderVATConfig(encoder=encoder, pooling="mean", bottleneck="none")
        EncoderForVATClassification(config).token_states(**batch)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attention_scale": 0}, "attention_scale=0 must be above 0"),
        ({"head_layers": 2, "polarity_head": True}, "polarity_head=True is for head_layers=1"),
        ({"attention_type": "scaled_dot", "attention_size": 3}, "attention_size=3 is for attention_type='additive'"),
        ({"vw_penalty": "abs"}, "vw_penalty='abs' is for head_layers=1"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(Exception, match=message):
        EncoderVATConfig(**settings)
