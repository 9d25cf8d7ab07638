"""BertForVATClassification: loss, masking, saving, labels."""

import copy
import math
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification, pipeline

from hf_vat import BertForVATClassification, BertVATConfig

ALL_SYSTEMS = ["base", "max", "mean", "att", "vat", "vat_shared", "vat_shared_mean", "vat_learned_prior"]


def batch_of(tokenizer, texts, **kwargs):
    return tokenizer(texts, padding=True, return_tensors="pt", **kwargs)


def run_python(code: str, *arguments: str) -> str:
    """Run code in a fresh process with standard input closed; returns what it printed."""
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout


# Loss and heads


@pytest.mark.parametrize("system", ALL_SYSTEMS)
def test_loss_is_cross_entropy_plus_beta_times_compression(make_model, tokenizer, system):
    model = make_model(system, **({"beta": 0.5} if "vat" in system else {})).train()
    out = model(**batch_of(tokenizer, ["good film", "a dull plot", "it is"]), labels=torch.tensor([1, 0, 1]))
    expected = out.cross_entropy.mean()
    if model.config.bottleneck == "gaussian":
        assert (out.compression >= 0).all()
        expected = expected + 0.5 * out.compression.mean()
    else:
        assert out.compression is None
    torch.testing.assert_close(out.loss, expected)


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


def test_plain_bert_checkpoint_loads_bit_equal_with_new_layers(tmp_path, tokenizer):
    plain = BertConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    plain.intermediate_size = 32
    source = BertForSequenceClassification(plain)
    source.save_pretrained(tmp_path)
    model, info = BertForVATClassification.from_pretrained(tmp_path, num_labels=3, output_loading_info=True)
    assert model.config.model_type == "bert_vat" and model.num_labels == 3
    encoder = source.bert.state_dict()
    for name, tensor in model.bert.state_dict().items():
        assert torch.equal(tensor, encoder[name]), name
    assert all(not name.startswith("bert.") for name in info["missing_keys"])
    for name, parameter in model.named_parameters():
        assert parameter.abs().max() < 10, f"{name} is raw memory"


def test_configuration_refuses_what_does_not_fit():
    for settings, mentions in [
        ({"pooling": "first"}, "pooling"),
        ({"pooling": "nearest"}, "nearest"),
        ({"bottleneck": "none", "predict_from": "compressor"}, "predict_from"),
        ({"beta": -0.1}, "beta"),
        ({"beta": "x"}, "beta"),
        ({"heads": "shared", "latent_size": 5}, "latent_size"),
        ({"latent_size": 0}, "latent_size"),
        ({"kl_reduction": "max"}, "kl_reduction"),
    ]:
        with pytest.raises(Exception, match=mentions):
            BertVATConfig(**settings)
    assert BertVATConfig(beta=1).beta == 1


# Cases


@pytest.mark.parametrize("system", ALL_SYSTEMS)
def test_c01_saved_weights_come_back_bitwise(make_model, tmp_path, tokenizer, system):
    model = make_model(system).eval()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.add_(number / 1000)
    model.save_pretrained(tmp_path)
    loaded, info = AutoModelForSequenceClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert type(loaded) is BertForVATClassification
    assert not info["missing_keys"] and not info["unexpected_keys"]
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name]), name
    batch = batch_of(tokenizer, ["good film", "a dull plot", "it is un"])
    ours, theirs = model(**batch), loaded(**batch)
    torch.testing.assert_close(ours.logits, theirs.logits, atol=1e-6, rtol=0)
    if ours.token_importance is not None:
        torch.testing.assert_close(ours.token_importance, theirs.token_importance, atol=1e-6, rtol=0)


def test_c01_c75_c76_folder_alone_works_in_a_process_without_hf_vat(make_model, tmp_path, tokenizer):
    folder = tmp_path / "a model"
    model = make_model("vat", id2label={0: "neg", 1: "pos"}).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    texts = ["good film", "a dull plot"]
    expected = model(**batch_of(tokenizer, texts)).logits.softmax(-1)[:, 1].tolist()
    code = """
import sys
sys.modules["hf_vat"] = None  # makes "import hf_vat" fail
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, pipeline
folder = sys.argv[1]
try:
    AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=False)
    raise SystemExit("loaded without trust_remote_code")
except ValueError as error:
    assert "trust_remote_code" in str(error), error
config = AutoConfig.from_pretrained(folder, trust_remote_code=True)
assert config.predict_from == "learner"
model = AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
classify = pipeline("text-classification", model=model, tokenizer=tokenizer)
for scores in classify(["good film", "a dull plot"], top_k=None):
    print({score["label"]: score["score"] for score in scores}["pos"])
model.save_pretrained(folder + " again")
AutoModelForSequenceClassification.from_pretrained(folder + " again", trust_remote_code=True)
"""
    printed = [float(line) for line in run_python(code, str(folder)).split()]
    assert printed == pytest.approx(expected, abs=1e-6)


def test_c75_installed_package_needs_no_remote_code(make_model, tmp_path):
    make_model("vat").save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path, trust_remote_code=False)
    assert type(loaded) is BertForVATClassification
    assert {"attention.py", "bottleneck.py", "configuration_vat.py", "modeling_vat.py"} <= set(os.listdir(tmp_path))


def test_c03_no_tensor_is_saved_twice(make_model, tmp_path):
    for system in ALL_SYSTEMS:
        model = make_model(system)
        model.save_pretrained(tmp_path / system)
        saved = load_file(tmp_path / system / "model.safetensors")
        assert sum(tensor.numel() for tensor in saved.values()) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("system", ALL_SYSTEMS)
def test_c04_padding_never_matters(make_model, tokenizer, system):
    model = make_model(system).eval()
    text, long = "good film", "the plot and the actor and the scene is very dull and boring and a bad film it is"
    alone = model(**batch_of(tokenizer, [text]))
    together = model(**batch_of(tokenizer, [text, long]))
    padded = model(**tokenizer([text], padding="max_length", max_length=32, return_tensors="pt"))
    for other in (together, padded):
        torch.testing.assert_close(other.logits[:1], alone.logits, atol=1e-5, rtol=0)
    if alone.token_importance is not None:
        # [CLS] good film [SEP] and padding: exactly 0 outside the two words
        attention = together.token_importance[0]
        assert attention[0] == 0 and attention[3:].abs().max() == 0
        torch.testing.assert_close(together.token_importance.sum(1), torch.ones(2), atol=1e-5, rtol=0)


@pytest.mark.parametrize("system", ALL_SYSTEMS)
def test_c06_empty_rows_are_finite_and_leave_others_alone(make_model, tokenizer, system):
    model = make_model(system).eval()
    batch = batch_of(tokenizer, ["good film", "bad film"])
    before = model(**batch)
    batch["attention_mask"][1] = 0
    out = model(**batch)
    assert torch.isfinite(out.logits).all()
    torch.testing.assert_close(out.logits[0], before.logits[0], atol=1e-6, rtol=0)
    if out.token_importance is not None:
        assert torch.isfinite(out.token_importance).all()
        assert out.token_importance[1].abs().max() == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("system", ALL_SYSTEMS)
def test_c06_half_precision_is_finite(make_model, tokenizer, dtype, system):
    model = make_model(system).to(dtype).eval()
    out = model(**batch_of(tokenizer, ["good film", "", "a very dull plot"]), labels=torch.tensor([1, 0, 0]))
    assert torch.isfinite(out.logits).all() and torch.isfinite(out.loss)
    if out.token_importance is not None:
        torch.testing.assert_close(out.token_importance.sum(1), torch.tensor([1.0, 0.0, 1.0]), atol=1e-2, rtol=0)


def test_c09_pooling_attention_is_always_returned(make_model, tokenizer):
    batch = batch_of(tokenizer, ["good film"])
    for implementation in ("sdpa", "eager"):
        model = make_model("vat", attn_implementation=implementation).eval()
        assert model(**batch).token_importance.shape == (1, 4)
    attentions = model(**batch, output_attentions=True).attentions
    assert [attention.shape for attention in attentions] == [(1, 2, 4, 4)] * 2
    with pytest.raises(ValueError, match="eager"):
        make_model("vat", attn_implementation="sdpa")(**batch, output_attentions=True)


def test_c10_wrong_problem_types_are_refused(make_model, tokenizer):
    for settings in ({"num_labels": 1}, {"problem_type": "regression"}, {"problem_type": "multi_label_classification"}):
        with pytest.raises(Exception, match=r"num_labels=.*problem_type="):
            BertVATConfig(**settings)
    with pytest.raises(ValueError, match="float"):
        make_model("att")(**batch_of(tokenizer, ["good film"]), labels=torch.tensor([1.0]))


def test_c11_a_batch_without_labels_contributes_zero(make_model, tokenizer):
    model = make_model("vat").train()
    out = model(**batch_of(tokenizer, ["good film", "bad film"]), labels=torch.tensor([-100, -100]))
    assert out.loss.item() == 0
    out.loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_c12_other_number_of_classes_names_the_layers(make_model, tmp_path):
    three = make_model("vat", num_labels=3, id2label={0: "neg", 1: "neutral", 2: "pos"})
    three.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"learner_head.out_proj.weight is \(3, 16\).*\(2, 16\).*ignore_mismatched"):
        AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=2)
    two = AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=2, ignore_mismatched_sizes=True)
    assert two.config.id2label == {0: "LABEL_0", 1: "LABEL_1"}
    for name, tensor in three.state_dict().items():
        assert torch.equal(tensor, two.state_dict()[name]) or "out_proj" in name, name


def test_c13_label_names_survive_and_never_disagree(make_model, tmp_path, tokenizer):
    model = make_model("att", id2label={0: "neg", 1: "pos"})
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert loaded.config.id2label == {0: "neg", 1: "pos"} and loaded.config.label2id == {"neg": 0, "pos": 1}
    [scores] = pipeline("text-classification", model=str(tmp_path))(["good"], top_k=None)
    labels = {score["label"] for score in scores}
    assert labels == {"neg", "pos"}
    wider = BertVATConfig.from_pretrained(tmp_path, num_labels=3)
    assert len(wider.id2label) == wider.num_labels == 3
    renamed = BertVATConfig.from_pretrained(tmp_path, id2label={0: "no", 1: "yes"})
    assert renamed.label2id == {"no": 0, "yes": 1}
    with pytest.raises(ValueError, match="num_labels=3 disagrees"):
        BertVATConfig(num_labels=3, id2label={0: "neg", 1: "pos"})


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


def test_c16_evaluation_never_samples(make_model, tokenizer):
    model = make_model("vat", predict_from="compressor", hidden_dropout_prob=0.5).eval()
    batch = batch_of(tokenizer, ["a very good film"])
    assert torch.equal(model(**batch).logits, model(**batch).logits)
    model.train()
    assert not torch.equal(model(**batch).logits, model(**batch).logits)


def test_c18_loss_parts_are_in_the_output_not_on_the_module(make_model, tokenizer):
    model = make_model("vat").train()
    attributes = set(vars(model))
    out = model(**batch_of(tokenizer, ["good film"]), labels=torch.tensor([1]))
    assert out.cross_entropy.shape == out.compression.shape == (1,)
    assert set(vars(model)) == attributes
    assert copy.deepcopy(model).phase == model.phase


@pytest.mark.parametrize("system", ALL_SYSTEMS)
def test_c19_left_padding_gives_the_same_result(make_model, tokenizer, system):
    model = make_model(system).eval()
    texts = ["good film", "the plot is very dull"]
    right = model(**batch_of(tokenizer, texts, padding_side="right"))
    left = model(**batch_of(tokenizer, texts, padding_side="left"))
    torch.testing.assert_close(left.logits, right.logits, atol=1e-5, rtol=0)
    if right.token_importance is not None:
        torch.testing.assert_close(left.token_importance[0, -3:-1], right.token_importance[0, 1:3])


def test_c76_stock_pipeline_agrees_with_a_forward_pass(make_model, tmp_path, tokenizer):
    texts = ["good film", "a dull plot", " ".join(["very"] * 200)]
    model = make_model("vat", id2label={0: "neg", 1: "pos"}).eval()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    direct = model(**batch_of(tokenizer, texts, truncation=True, max_length=32)).logits.softmax(-1)
    for classify in (
        pipeline("text-classification", model=str(tmp_path)),
        pipeline("text-classification", model=model, tokenizer=tokenizer),
    ):
        for scores, expected in zip(
            classify(texts, top_k=None, truncation=True, max_length=32), direct.tolist(), strict=True
        ):
            by_label = {score["label"]: score["score"] for score in scores}
            assert by_label == pytest.approx({"neg": expected[0], "pos": expected[1]}, abs=1e-6)


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
