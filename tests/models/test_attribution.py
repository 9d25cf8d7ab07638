"""`token_attribution`: what autograd gives through the attention of whole models, and sums that add up to logits."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers import pipeline
from transformers.utils import logging

from hf_vat import BertForVATClassification, BertVATConfig, InputError, explain
from hf_vat.models.attention import masked_softmax, weighted_sum
from hf_vat.models.attribution import CENTERS, of_log_odds, token_attribution
from hf_vat.training import modules_to_save

TEXTS = ["a good film", "it is very bad", "", "unbelievable , a dull plot and a lovely actor !"]
SYSTEMS = {
    "additive": ("att", {}),
    "scaled dot, divided": ("att", {"attention_type": "scaled_dot", "attention_scale": 3.0}),
    "linear head": ("att", {"head_layers": 1, "num_labels": 3}),
    "polarity head": ("att", {"head_layers": 1, "polarity_head": True}),
    "polarity head of three": ("att", {"head_layers": 1, "polarity_head": True, "num_labels": 3}),
    "learner beside a compressor": ("vat", {"num_labels": 4}),
    "compressor": ("vat", {"predict_from": "compressor", "latent_size": 7}),
    "compressor, linear": ("vat", {"predict_from": "compressor", "head_layers": 1}),
    "one head, of the compressor": ("vat", {"heads": "shared", "predict_from": "compressor"}),
    "one head, of the learner": ("vat", {"heads": "shared"}),
    "learner through the mean": ("vat", {"heads": "shared_mean", "num_labels": 3}),
    "compressor of a shared mean": ("vat", {"heads": "shared_mean", "predict_from": "compressor"}),
    "states beside embeddings": ("att", {"word_objective": "concat"}),
    "states and embeddings": ("att", {"word_objective": "residual"}),
    "under a word mask": ("att", {"mask_type": "vmask"}),
    "in windows": ("att", {"window_length": 6, "window_overlap": 2}),
    "several labels": ("vat", {"num_labels": 3, "problem_type": "multi_label_classification"}),
    "scores": ("vat", {"num_labels": 2, "problem_type": "regression"}),
    "one logit": ("att", {"num_labels": 1, "problem_type": "multi_label_classification"}),
}
every_system = pytest.mark.parametrize("system", SYSTEMS)


@pytest.fixture
def made(make_model):
    """A system in float64, with weights of a size at which a head is not linear."""

    def make(system: str):
        name, settings = SYSTEMS[system]
        model = make_model(name, **settings)
        with torch.no_grad():
            for head in (model.learner_head, model.compressor_head):
                for parameter in head.parameters() if head is not None else ():
                    parameter.normal_(generator=torch.Generator().manual_seed(1))
        return model.double().eval()

    return make


def gradients_of(logits: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """∂ logit_c / ∂ at, [B, T, C]."""
    columns = [torch.autograd.grad(logits[:, c].sum(), at, retain_graph=True)[0] for c in range(logits.shape[1])]
    return torch.stack(columns, -1)


@every_system
def test_attended_is_the_gradient_at_the_scores_of_the_whole_model(made, tokenizer, system):
    model, batch = made(system), tokenizer(TEXTS, padding=True, return_tensors="pt")
    added = torch.zeros(batch["input_ids"].shape, dtype=torch.float64, requires_grad=True)
    hook = model.attention.register_forward_hook(lambda module, inputs, scores: scores + added)
    wanted = gradients_of(model(**batch).logits, added)
    hook.remove()
    found = model(**batch, attribution_center="attended").token_attribution
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)
    assert wanted.abs().max() > 1e-3  # the comparison says something


@every_system
def test_each_center_is_attention_times_its_gradient(made, tokenizer, system):
    """Also in float32, in which models run."""
    model, batch = made(system), tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        seen = model.token_states(**batch)
    weights, content = seen.attention.double().requires_grad_(), seen.content.unsqueeze(-1)
    slopes = gradients_of(model.logits_of(weighted_sum(weights, seen.states)), weights).masked_fill(~content, 0.0)
    alpha = weights.detach().unsqueeze(-1)
    centers = {
        "none": torch.zeros_like(slopes[:, :1]),
        "attended": (alpha * slopes).sum(1, keepdim=True),
        "mean": slopes.sum(1, keepdim=True) / content.sum(1, keepdim=True).clamp(min=1),
    }
    single = copy.deepcopy(model).float()
    for center in CENTERS:
        wanted = alpha * (slopes - centers[center])
        found = model(**batch, attribution_center=center).token_attribution
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)
        assert (found[~seen.content] == 0).all()
        torch.testing.assert_close(
            single(**batch, attribution_center=center).token_attribution, wanted.float(), atol=1e-5, rtol=1e-5
        )


@pytest.mark.parametrize("system", [name for name in SYSTEMS if "linear head" in name or "polarity" in name])
def test_with_a_linear_head_words_and_bias_add_up_to_the_logits(made, tokenizer, system):
    model, batch = made(system), tokenizer(TEXTS, padding=True, return_tensors="pt")
    of_nothing = model.logits_of(torch.zeros(1, model.config.hidden_size, dtype=torch.float64))  # the bias
    output = model(**batch, attribution_center="none")
    torch.testing.assert_close(output.token_attribution.sum(1) + of_nothing, output.logits, atol=1e-6, rtol=0)
    states = model.token_states(**batch)
    mean = (states.states * states.content.unsqueeze(-1)).sum(1) / states.content.sum(1, keepdim=True).clamp(min=1)
    output = model(**batch, attribution_center="mean")
    torch.testing.assert_close(
        output.token_attribution.sum(1) + model.logits_of(mean), output.logits, atol=1e-6, rtol=0
    )
    tokens = copy.deepcopy(model).float()(**batch, attribution_center="none")
    torch.testing.assert_close(
        tokens.token_attribution.sum(1) + of_nothing.float(), tokens.logits, atol=1e-6, rtol=1e-6
    )


def test_by_hand():
    """Two tokens and one that is padding, of a linear head; α = ¾ and ¼."""
    states = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]]])
    attention, content = torch.tensor([[0.75, 0.25, 0.0]]), torch.tensor([[True, True, False]])
    head = torch.tensor([[[1.0, 1.0], [4.0, 0.0]]])
    of_logits = {  # h · g is (1, 4), (2, 0); its mean (1.5, 2), under the attention (1.25, 3)
        "none": [[0.75, 3.0], [0.5, 0.0], [0.0, 0.0]],
        "mean": [[-0.375, 1.5], [0.125, -0.5], [0.0, 0.0]],
        "attended": [[-0.1875, 0.75], [0.1875, -0.75], [0.0, 0.0]],
    }
    for center in CENTERS:
        assert token_attribution(states, attention, content, head, center).tolist() == [of_logits[center]]


@given(
    st.lists(st.floats(-20, 20), min_size=2, max_size=6),
    st.integers(0, 2**32 - 1),
)
def test_log_odds_of_classes_are_what_autograd_says(logits, seed):
    logits = torch.tensor([logits], dtype=torch.float64, requires_grad=True)
    tokens = torch.randn(1, 3, logits.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    found = of_log_odds(tokens, logits.detach())
    for target in range(logits.shape[1]):
        others = [one for one in range(logits.shape[1]) if one != target]
        odds = logits[0, target] - logits[0, others].logsumexp(0)
        [slope] = torch.autograd.grad(odds, logits)
        torch.testing.assert_close(found[0, :, target], tokens[0] @ slope[0])


def test_log_odds_stay_where_a_class_is_certain():
    """log p has no gradient left there, but words still speak for a class."""
    found = of_log_odds(torch.tensor([[[1.0, -1.0, 5.0]]], dtype=torch.float64), torch.tensor([[900.0, 0.0, -900.0]]))
    assert found[0, 0, 0] == pytest.approx(2.0)


@every_system
@pytest.mark.parametrize(("batch_size", "side"), [(1, "right"), (3, "left"), (3, "right")])
def test_neither_batch_nor_order_nor_padding_side_matter(make_model, tokenizer, system, batch_size, side):
    name, settings = SYSTEMS[system]
    model, tokenizer = make_model(name, **settings), copy.deepcopy(tokenizer)
    method = {"method": "attention_x_gradient", "target": 0}
    expected = [explain(model, tokenizer, [text], **method)[0].scores for text in reversed(TEXTS)]
    tokenizer.padding_side = side
    found = explain(model, tokenizer, TEXTS[::-1], batch_size=batch_size, **method)
    for one, scores in zip(found, expected, strict=True):
        assert one.scores == pytest.approx(scores, abs=1e-5)


def test_of_two_classes_and_a_linear_head_it_is_polarity(made, tokenizer):
    model = made("polarity head").float()
    by_gradient = explain(model, tokenizer, TEXTS, "attention_x_gradient", target=1, center="none")
    for one, other in zip(by_gradient, explain(model, tokenizer, TEXTS, "polarity", target=1), strict=True):
        assert one.scores == pytest.approx(other.scores, abs=1e-6)
        assert one.settings == {"center": "none"}


def test_a_classes_words_by_hand(made, tokenizer):
    """Of three classes: the target's logit less those of the others, weighted by their probabilities."""
    model = made("linear head").float()
    [found] = explain(model, tokenizer, ["good film"], "attention_x_gradient", target=2)
    batch = tokenizer(["good film"], return_tensors="pt")
    with torch.no_grad():
        output = model(**batch, attribution_center="mean")
    first, second = output.logits.softmax(-1)[0, :2].tolist()
    tokens = output.token_attribution[0, 1:3]
    wanted = tokens[:, 2] - (first * tokens[:, 0] + second * tokens[:, 1]) / (first + second)
    assert found.scores == pytest.approx(wanted.tolist(), abs=1e-6)


def test_what_cannot_be_asked_for_is_named(make_model, tokenizer):
    batch = tokenizer(["good"], return_tensors="pt")
    with pytest.raises(ValueError, match="attribution_center='median' must be one of 'mean', 'attended', 'none'"):
        make_model("att").eval()(**batch, attribution_center="median")
    with pytest.raises(InputError, match="center is 'median'; choose one of"):
        explain(make_model("att"), tokenizer, ["good"], "attention_x_gradient", center="median")
    with pytest.raises(InputError, match=r'gives no token_attribution.*pooling="attention"'):
        explain(make_model("mean"), tokenizer, ["good"], "attention_x_gradient")
    model = make_model("att")
    assert model.train()(**batch, attribution_center="mean").token_attribution is None
    assert model.eval()(**batch).token_attribution is None


@pytest.mark.parametrize(
    ("module", "name", "settings"),
    [
        ("learner_head", "out_proj", {}),
        ("learner_head", "out_proj", {"head_layers": 1}),
        ("compressor_head", "dense", {"predict_from": "compressor"}),
        ("bottleneck.mean", "0", {"predict_from": "compressor"}),
        ("bottleneck.mean", "0", {"heads": "shared_mean"}),
    ],
)
@pytest.mark.parametrize("classes", [1, 3])
def test_a_head_that_an_adapter_has_changed_is_not_taken_for_a_linear_one(
    make_model, tokenizer, module, name, settings, classes
):
    """Its gradient is that of autograd through the whole model's attention scores; also where nothing else has one."""

    class Adapted(nn.Linear):
        def forward(self, vector):
            return super().forward(vector) + vector.square().sum(-1, keepdim=True)

    problem = "regression" if classes == 1 else None
    model = make_model("vat", num_labels=classes, problem_type=problem, **settings).eval()
    layer = model.get_submodule(f"{module}.{name}")
    setattr(model.get_submodule(module), name, Adapted(layer.in_features, layer.out_features))
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    states = model.token_states(**batch)
    scores = states.scores.detach().requires_grad_()
    logits = model.logits_of(weighted_sum(masked_softmax(scores, states.content), states.states.detach()))
    wanted = gradients_of(logits, scores)
    with torch.inference_mode():
        found = model(**batch, attribution_center="attended")
    torch.testing.assert_close(found.logits, logits.detach())
    torch.testing.assert_close(found.token_attribution, wanted, atol=1e-5, rtol=1e-5)
    assert not any(one.grad is not None for one in model.parameters())


def test_an_adapter_on_the_head_is_explained_by_the_pipeline_too(make_model, tokenizer):
    """As docs/how-to/lora.md makes it."""
    peft = pytest.importorskip("peft", reason="needs the extra lora")
    model = make_model("vat", num_labels=3)
    config = peft.LoraConfig(
        target_modules="all-linear", init_lora_weights=False, modules_to_save=modules_to_save(model)
    )
    adapted = peft.get_peft_model(model, config).eval()
    for one in (adapted, adapted.base_model.model):
        classify = pipeline("text-classification-explained", model=one, tokenizer=tokenizer)
        results = classify("good film", top_k=None)
        assert len({tuple(word["score"] for word in result["words"]) for result in results}) == 3
        for result in results:
            [found] = explain(one, tokenizer, ["good film"], "attention_x_gradient", target=result["label"])
            assert [word["score"] for word in result["words"]] == pytest.approx(found.scores, abs=1e-5)


def test_a_quantised_head_has_no_gradient_and_says_so(make_model, tokenizer, caplog):
    quantised = torch.ao.quantization.quantize_dynamic(make_model("att"), {nn.Linear}, dtype=torch.qint8)
    with pytest.raises(InputError, match=r"no token_attribution.*which quantised ones have not"):
        explain(quantised, tokenizer, ["good"], "attention_x_gradient")
    logging.get_logger("transformers").propagate = True
    [word] = pipeline("text-classification-explained", model=quantised, tokenizer=tokenizer)("good")["words"]
    assert word["score"] == word["attention"] == pytest.approx(1)
    assert any("has no sign and is the same for every class" in record.getMessage() for record in caplog.records)


def test_a_wrapper_that_takes_no_center_is_refused_with_a_sentence(make_model, tokenizer):
    class Wrapper(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model, self.config, self.device = model, model.config, model.device

        def forward(self, input_ids, attention_mask, token_type_ids=None):
            return self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)

    model = Wrapper(make_model("att").eval())
    assert explain(model, tokenizer, ["good film"], "attention")
    with pytest.raises(InputError, match="Wrapper gives no token_attribution"):
        explain(model, tokenizer, ["good film"], "attention_x_gradient")


@every_system
def test_padding_on_either_side_changes_nothing(make_model, tokenizer, system):
    """Of the model itself; `explain` pads on the right."""
    name, settings = SYSTEMS[system]
    model = make_model(name, **settings).eval()
    found = []
    for side in ("left", "right"):
        batch = tokenizer(TEXTS, padding=True, padding_side=side, return_tensors="pt")
        with torch.no_grad():
            tokens = model(**batch, attribution_center="mean").token_attribution
        found.append([row[mask.bool()] for row, mask in zip(tokens, batch["attention_mask"], strict=True)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_no_graph_goes_through_the_encoder(make_model, tokenizer):
    """It runs without gradients, and in half precision."""
    model = make_model("vat").eval()
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.inference_mode():
        expected = model(**batch, attribution_center="mean").token_attribution
        found = copy.deepcopy(model).bfloat16()(**batch, attribution_center="mean").token_attribution
    assert found.dtype == torch.float32
    assert (found - expected).abs().max() < 0.1 * expected.abs().max()


def test_a_wrapped_model_is_asked_too(make_model, tokenizer):
    model = make_model("att").eval()
    expected = [one.scores for one in explain(model, tokenizer, TEXTS, "attention_x_gradient")]
    compiled = torch.compile(model, backend="eager")
    found = explain(compiled, tokenizer, TEXTS, "attention_x_gradient")
    for one, scores in zip(found, expected, strict=True):
        assert one.scores == pytest.approx(scores, abs=1e-6)


def test_a_text_of_no_token(tokenizer):
    config = BertVATConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    [found] = explain(BertForVATClassification(config), tokenizer, [""], "attention_x_gradient")
    assert found.words == [] and found.scores == []
