"""BertForVATClassification: loss, masking, saving, labels."""

import math

import pytest
import torch

ALL_SYSTEMS = ["base", "max", "mean", "att", "vat", "vat_shared", "vat_shared_mean", "vat_learned_prior"]


def batch_of(tokenizer, texts, **kwargs):
    return tokenizer(texts, padding=True, return_tensors="pt", **kwargs)


# Loss and heads


def test_learner_and_compressor_logits_follow_predict_from(make_model, tokenizer):
    model = make_model("vat").eval()
    batch = batch_of(tokenizer, ["good film"])
    text = torch.bmm(
        model(**batch).token_importance.unsqueeze(1),
        model.bert(**batch).last_hidden_state,
    ).squeeze(1)
    torch.testing.assert_close(model(**batch).logits, model.learner_head(text))
    model.config.predict_from = "compressor"
    torch.testing.assert_close(model(**batch).logits, model.compressor_head(model.bottleneck.mean(text)))


def test_c21_a_phase_without_anything_to_train_is_named(make_model):
    for system in ("base", "att"):
        for phase in ("joint", "compress", "learn"):
            with pytest.raises(ValueError, match=f"phase='{phase}' needs a model with bottleneck"):
                make_model(system).set_phase(phase)
    with pytest.raises(ValueError, match="'warm-up' is unknown"):
        make_model("vat").set_phase("warm-up")


@pytest.mark.parametrize("system", ALL_SYSTEMS)
def test_set_phase_opens_exactly_the_phase_and_keeps_the_mode(make_model, system):
    model = make_model(system).eval()
    for phase in ("finetune",) if model.bottleneck is None else ("joint", "compress", "learn", "finetune"):
        model.set_phase(phase)
        trained = {
            id(p) for modules in model.phase_modules(phase).values() for module in modules for p in module.parameters()
        }
        assert {id(p) for p in model.parameters() if p.requires_grad} == trained != set()
        assert not model.training
        model.train()
        assert model.bert.training == (phase != "compress") and model.training
        model.eval()


def test_what_the_user_froze_stays_frozen_in_all_phases(make_model):
    model = make_model("vat")
    model.bert.embeddings.requires_grad_(False)
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    for phase in ("compress", "learn", "joint", "finetune"):
        model.set_phase(phase)
        assert not any(parameter.requires_grad for parameter in model.bert.embeddings.parameters())
        assert model.bert.encoder.layer[0].output.dense.weight.requires_grad == (phase != "compress")
    model.open_phases()
    assert {name for name, parameter in model.named_parameters() if not parameter.requires_grad} == frozen != set()


def test_shared_heads_have_one_mlp(make_model):
    shared, mean = make_model("vat_shared"), make_model("vat_shared_mean")
    assert shared.compressor_head is None and mean.learner_head is None
    trained = mean.phase_modules("learn")
    assert mean.bottleneck.mean in trained["learner"] and mean.compressor_head in trained["learner"]
    assert shared.learner_head in shared.phase_modules("compress")["compressor"]


def test_evaluation_loss_is_that_of_the_predicting_head(make_model, tokenizer):
    model = make_model("vat", beta=2.0).eval()
    batch, labels = batch_of(tokenizer, ["good film", "bad film"]), torch.tensor([1, 0])
    learner = model(**batch, labels=labels)
    assert learner.compression is None
    torch.testing.assert_close(learner.loss, torch.nn.functional.cross_entropy(learner.logits, labels))
    model.config.predict_from = "compressor"
    compressor = model(**batch, labels=labels)
    expected = torch.nn.functional.cross_entropy(compressor.logits, labels) + 2 * compressor.compression.mean()
    torch.testing.assert_close(compressor.loss, expected)


def test_label_smoothing_matches_the_stock_smoother(make_model, tokenizer):
    from transformers.trainer_pt_utils import LabelSmoother

    model = make_model("att").eval()
    model.label_smoothing = 0.2
    labels = torch.tensor([1, 0])
    out = model(**batch_of(tokenizer, ["good film", "a dull plot"]), labels=labels)
    torch.testing.assert_close(out.loss, LabelSmoother(0.2)({"logits": out.logits}, labels))


# Cases


def test_c15_extreme_bottleneck_values_stay_finite(make_model, tokenizer):
    for dtype in (torch.float32, torch.bfloat16):
        for bias in (-100.0, 100.0):
            model = make_model("vat").to(dtype).train()
            torch.nn.init.constant_(model.bottleneck.scale[2].bias, bias)
            torch.nn.init.constant_(model.bottleneck.mean[2].bias, bias)
            out = model(**batch_of(tokenizer, ["good film", "bad film"]), labels=torch.tensor([1, 0]))
            out.loss.backward()
            assert torch.isfinite(out.loss)
            assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


# The compression term, with numbers worked out by hand


def test_c14_divergence_of_a_gaussian_by_hand():
    from hf_vat.models.bottleneck import gaussian_kl

    zero, one = torch.zeros(1), torch.ones(1)
    assert gaussian_kl(zero, one, zero, one).item() == 0
    assert gaussian_kl(one, one, zero, one).item() == pytest.approx(0.5)
    # scale 2: (4 - 1)/2 - ln 2
    assert gaussian_kl(zero, 2 * one, zero, one).item() == pytest.approx(1.5 - math.log(2))
    # prior N(1, 2²): ln 2 + (1 + 1)/8 - 1/2
    assert gaussian_kl(zero, one, one, 2 * one).item() == pytest.approx(math.log(2) + 0.25 - 0.5)


def test_kl_is_summed_or_averaged_over_latent_dimensions(make_model, tokenizer):
    batch, labels = batch_of(tokenizer, ["good film"]), torch.tensor([1])
    outputs = []
    for reduction in ("sum", "mean"):
        model = make_model("vat", kl_reduction=reduction, latent_size=5, predict_from="compressor").eval()
        outputs.append(model(**batch, labels=labels).compression)
    torch.testing.assert_close(outputs[0], 5 * outputs[1])
