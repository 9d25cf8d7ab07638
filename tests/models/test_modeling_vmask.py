"""BertWithVMask and EncoderWithVMask: the mask in its place, loss, phases, frozen embeddings, saving, explanations."""

import copy
import math
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    CanineConfig,
    DataCollatorWithPadding,
    EsmConfig,
    IBertConfig,
    Trainer,
    TrainingArguments,
    pipeline,
)

from hf_vat import (
    BertVMaskConfig,
    BertWithVMask,
    EncoderForVATClassification,
    EncoderVATConfig,
    EncoderVMaskConfig,
    EncoderWithVMask,
    WordEncoderConfig,
    explain,
)

LABELS = torch.tensor([1, 0, 0])

NAMES = ["bert", "roberta", "lstm", "cnn"]
MASKS = ["vmask", "l2x", "iba"]
VAT = {"pooling": "attention", "bottleneck": "gaussian"}


def set_scores(model, logit: float) -> None:
    """The same mask logit for every word."""
    with torch.no_grad():
        model.word_mask.scorer.weight.zero_()
        model.word_mask.scorer.bias.fill_(logit)


# The mask in its place


@pytest.mark.parametrize("site", ["word", "embedding_output"])
@pytest.mark.parametrize("name", NAMES)
def test_an_open_mask_changes_nothing_and_a_closed_one_hides_the_words(tiny, name, site):
    if site == "embedding_output" and name != "bert":
        return
    model, batch = tiny.model(name, "vmask", mask_site=site).eval(), tiny.batch(name)
    base = tiny.model(name, "none").eval()
    assert base.word_mask is None and base(**batch).token_mask is None
    base.load_state_dict({key: t for key, t in model.state_dict().items() if not key.startswith("word_mask")})
    expected = base(**batch).logits
    assert (model(**batch).logits - expected).abs().max() > 1e-3
    set_scores(model, 50.0)
    torch.testing.assert_close(model(**batch).logits, expected, atol=1e-6, rtol=0)
    set_scores(model, -50.0)
    one, other = (model(**tiny.batch(name, [text])).logits for text in ("good film", "bad plot"))
    torch.testing.assert_close(one, other, atol=1e-6, rtol=0)


@pytest.mark.parametrize("mask", ["vmask", "iba"])
@pytest.mark.parametrize("name", ["distilbert", "deberta_v2", "electra", "modernbert", "xlnet", "gpt2"])
def test_every_encoder_takes_a_mask(tiny, name, mask):
    batch = tiny.batch("roberta")
    encoder = tiny.encoders[name]()
    if name == "deberta_v2":  # with absolute positions, which it adds before its layer norm
        encoder.position_biased_input = True
    settings = {"encoder": encoder, "pooling": "max", "initializer_range": 0.2}
    torch.manual_seed(0)
    model = EncoderWithVMask(EncoderVMaskConfig(mask_type=mask, **settings))
    assert not any("word_embedding" in key or "wte" in key for key, _ in model.named_parameters())
    model.train()(**batch, labels=LABELS).loss.backward()
    assert model.word_mask.scorer.weight.grad.any()
    base = EncoderWithVMask(EncoderVMaskConfig(mask_type="none", **settings)).eval()
    base.load_state_dict({key: t for key, t in model.state_dict().items() if not key.startswith("word_mask")})
    expected = base(**batch).logits
    set_scores(model.eval(), 50.0)
    torch.testing.assert_close(model(**batch).logits, expected, atol=1e-6, rtol=0)
    set_scores(model, -2.0 if mask == "vmask" else -7.0)  # of IBA scores start 5 higher
    change = (model(**batch).logits - expected).abs().max()
    if name == "modernbert" and mask == "vmask":  # its layer norm takes out the factor, as documented
        assert change < 1e-2
    else:
        assert change > 1e-2


@pytest.mark.parametrize("name", NAMES)
def test_word_embeddings_are_multiplied_and_everything_else_stays(tiny, name):
    model, batch = tiny.model(name, "vmask").eval(), tiny.batch(name)
    out = model(**batch)
    embeddings = model.get_input_embeddings()(batch["input_ids"])
    factor = out.token_mask.masked_fill(~tiny.content(name, **batch), 1.0).unsqueeze(-1)
    expected = tiny.model(name, "none").eval()  # the same weights but for the mask's, which come last
    expected.load_state_dict({key: t for key, t in model.state_dict().items() if not key.startswith("word_mask")})
    given = {"inputs_embeds": embeddings * factor, "attention_mask": batch["attention_mask"]}
    torch.testing.assert_close(expected(**given).logits, out.logits, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["ibert", "canine", "esm"])
def test_an_encoder_that_a_mask_cannot_reach_is_refused_by_name(name):
    settings = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    further = {"canine": {}, "ibert": {"vocab_size": 18}, "esm": {"vocab_size": 18, "mask_token_id": 4}}[name]
    encoder = {"ibert": IBertConfig, "canine": CanineConfig, "esm": EsmConfig}[name](**settings, **further)
    with pytest.raises(
        Exception, match=f'encoder="{name}" cannot have a word mask: it .* Use another encoder, such as'
    ):
        EncoderVMaskConfig(encoder=encoder)
    model = EncoderForVATClassification(EncoderVATConfig(encoder=encoder))  # what the message offers instead
    assert model.base_model.config.model_type == name


def test_embedding_output_masks_the_sum_after_its_layer_norm(tiny, tmp_path):
    model, batch = tiny.model("bert", "vmask", mask_site="embedding_output").eval(), tiny.batch("bert")
    out = model(**batch, output_hidden_states=True)
    content = tiny.content("bert", **batch)
    plain = model.bert.embeddings(input_ids=batch["input_ids"])
    torch.testing.assert_close(out.hidden_states[0][content], plain[content] * out.token_mask[content].unsqueeze(-1))
    torch.testing.assert_close(out.hidden_states[0][~content], plain[~content])
    given = {"inputs_embeds": model.get_input_embeddings()(batch["input_ids"]), **batch, "input_ids": None}
    torch.testing.assert_close(model(**given).logits, out.logits)
    types = model(**batch | {"token_type_ids": torch.ones_like(batch["input_ids"])})
    assert (types.logits - out.logits).abs().max() > 1e-3
    model.save_pretrained(tmp_path)
    loaded, info = BertWithVMask.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and torch.equal(loaded.eval()(**batch).logits, out.logits)


@pytest.mark.parametrize("site", ["word", "embedding_output"])
def test_threads_that_share_a_model_do_not_mix_up_their_masks(tiny, site):
    """As in a web server; both are in the encoder at the same time."""
    model = tiny.model("bert", "vmask", mask_site=site).eval()
    batches = [tiny.batch("bert", [text]) for text in tiny.texts[:2]]
    expected = [model(**batch) for batch in batches]
    both = threading.Barrier(2, timeout=60)

    def meet(module, args) -> None:
        both.wait()

    model.bert.register_forward_pre_hook(meet)
    with ThreadPoolExecutor(2) as threads:
        for _ in range(3):
            for ours, theirs in zip(threads.map(lambda batch: model(**batch), batches), expected, strict=True):
                assert torch.equal(ours.logits, theirs.logits) and torch.equal(ours.token_mask, theirs.token_mask)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ["lstm", "cnn"])
def test_c07_c08_c54_texts_without_words_or_shorter_than_a_kernel(tiny, name, mask):
    model = tiny.model(name, mask).eval()
    batch = tiny.batch(name, ["", "good", "zzz qqq"])
    together = model(**batch)
    assert torch.isfinite(together.logits).all() and together.token_mask.count_nonzero(1).tolist() == [0, 1, 2]
    torch.testing.assert_close(model(**tiny.batch(name, ["good"])).logits[0], together.logits[1], atol=1e-5, rtol=0)
    empty = dict(tiny.tokenizer(name)(["", ""], return_tensors="pt", padding=True))
    assert empty["input_ids"].shape == (2, 0)
    out = model.train()(**empty, labels=torch.tensor([0, 1]))
    out.loss.backward()
    assert out.token_mask.shape == (2, 0)


# Loss


def test_term_is_reduced_as_configured_and_weighted_by_what_the_configuration_says_now(tiny):
    batch = tiny.batch("cnn")
    mean, total = (tiny.model("cnn", "vmask", mask_reduction=reduction).eval() for reduction in ("token_mean", "sum"))
    terms = mean(**batch, labels=LABELS).mask_compression
    lengths = batch["attention_mask"].sum(1)
    torch.testing.assert_close(total(**batch, labels=LABELS).mask_compression, terms * lengths)
    mean.config.mask_beta = 0.0
    out = mean(**batch, labels=LABELS)
    assert out.loss == out.cross_entropy.mean()


def test_f66_the_mean_over_all_positions_is_that_of_the_published_code(tiny):
    model = tiny.model("cnn", "vmask", mask_reduction="position_mean", mask_layers=2, mask_hidden_size=5).train()
    batch = tiny.batch("cnn")
    logits = model.word_mask.scorer(model.get_input_embeddings()(batch["input_ids"])).squeeze(-1)
    kept = logits.sigmoid()
    assert not batch["attention_mask"].all()
    negative_entropy = (kept * kept.log() + (1 - kept) * (1 - kept).log()).mean()  # there a mean of the whole tensor
    out = model(**batch, labels=LABELS)
    assert out.mask_compression.mean().item() == pytest.approx(math.log(2) + negative_entropy.item(), abs=1e-6)
    assert out.loss.item() == pytest.approx((out.cross_entropy + 0.5 * out.mask_compression).mean().item())


@pytest.mark.parametrize("settings", [{}, VAT, {**VAT, "heads": "shared"}, {**VAT, "heads": "shared_mean"}])
def test_f66_a_head_of_one_layer_is_linear(tiny, settings, tmp_path):
    model = tiny.model("cnn", "vmask", head_layers=1, **settings).eval()
    name = "compressor_head" if settings.get("heads") == "shared_mean" else "learner_head"
    assert not any("_head.dense" in key for key in model.state_dict())
    out = model(**tiny.batch("cnn"))
    head = getattr(model, name).out_proj
    text = model.bottleneck.mean(out.pooler_output) if name == "compressor_head" else out.pooler_output
    torch.testing.assert_close(out.logits, text @ head.weight.T + head.bias)
    model.save_pretrained(tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    assert again.config.head_layers == 1 and torch.equal(again(**tiny.batch("cnn")).logits, out.logits)


def test_f66_dropout_of_a_head_of_one_layer_is_on_the_text_vector(tiny):
    model = tiny.model("cnn", "vmask", head_layers=1, classifier_dropout=0.75).train()
    with torch.no_grad():
        model.learner_head.out_proj.weight.fill_(1.0)
        model.learner_head.out_proj.bias.zero_()
    ones = torch.ones(200, 18)
    sums = model.learner_head(ones)[:, 0] / 4  # of those that are left, each four times as large
    assert torch.equal(sums, sums.round()) and 0.2 < sums.mean() / 18 < 0.3


@pytest.mark.parametrize("name", ["bert", "lstm"])
def test_c14_a_strong_term_draws_the_mask_to_one_half(tiny, name):
    spread = []
    for beta in (0.0, 100.0):
        model = tiny.model(name, "vmask", mask_beta=beta).train()
        with torch.no_grad():
            model.word_mask.scorer.weight.mul_(3)
        optimizer = torch.optim.Adam(model.word_mask.parameters(), lr=0.1)
        batch = tiny.batch(name)
        for _ in range(20):
            out = model(**batch, labels=LABELS)
            if beta == 0:
                torch.testing.assert_close(out.loss, out.cross_entropy.mean())
            assert (out.mask_compression >= 0).all()
            out.loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        kept = model.eval()(**batch).token_mask[tiny.content(name, **batch)]
        spread.append((kept - 0.5).abs().mean())
    assert spread[1] < spread[0] / 2


def test_defaults_are_the_papers(tiny):
    for config in (BertVMaskConfig(), EncoderVMaskConfig()):
        assert (config.pooling, config.bottleneck, config.mask_type) == ("first", "none", "vmask")
        assert (config.mask_layers, config.mask_sample, config.freeze_embeddings) == (1, "soft", True)
        assert {"token_mask", "mask_compression", "cross_entropy"} <= set(config.keys_to_ignore_at_inference)
    assert EncoderVMaskConfig(encoder=WordEncoderConfig()).pooling == "max"
    assert EncoderVMaskConfig(encoder=tiny.encoders["roberta"](), prefix_tokens=0).pooling == "max"


# Phases and frozen embeddings


@pytest.mark.parametrize("name", NAMES)
def test_frozen_embeddings_are_no_parameters_and_stay_so(tiny, name, tmp_path):
    model = tiny.model(name, "vmask")
    model.save_pretrained(tmp_path)
    thawed = type(model).from_pretrained(tmp_path, freeze_embeddings=False)
    frozen_again = type(model).from_pretrained(tmp_path)
    model.requires_grad_(True)
    model.set_phase("finetune")
    for one in (model, frozen_again):
        assert not any("embeddings" in key for key, _ in one.named_parameters())
        assert not one.get_input_embeddings().weight.requires_grad
    names = {key for key, _ in thawed.named_parameters() if "embeddings" in key}
    assert len(names) == (5 if name in ("bert", "roberta") else 1)
    assert thawed.state_dict().keys() == model.state_dict().keys()
    for key, tensor in model.state_dict().items():
        assert torch.equal(tensor, thawed.state_dict()[key]) and torch.equal(tensor, frozen_again.state_dict()[key])
    thawed(**tiny.batch(name), labels=LABELS).loss.backward()
    assert thawed.get_input_embeddings().weight.grad.any()
    assert torch.equal(thawed.eval()(**tiny.batch(name)).logits, model.eval()(**tiny.batch(name)).logits)


def test_gradient_accumulation_gives_the_gradients_of_the_whole_batch(tiny, tmp_path):
    tokenizer = tiny.tokenizer("cnn")
    rows = [{"labels": 1, **tokenizer("good film")}, {"labels": 0, **tokenizer("a bad movie and the plot")}] * 2
    trained = []
    for size, steps in ((4, 1), (2, 2)):
        model = tiny.model("cnn", "l2x")
        arguments = TrainingArguments(
            output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=size, gradient_accumulation_steps=steps,
            learning_rate=0.1, optim="sgd", max_grad_norm=0, train_sampling_strategy="sequential", use_cpu=True,
            report_to="none", disable_tqdm=True, save_strategy="no",
        )  # fmt: skip
        trainer = Trainer(model, arguments, DataCollatorWithPadding(tokenizer), train_dataset=rows)
        trainer.train()
        trained.append(model.state_dict())
        prediction = trainer.predict(rows)
        assert prediction.predictions.shape == (4, 2)  # the logits alone
    for key, tensor in trained[0].items():
        torch.testing.assert_close(trained[1][key], tensor, atol=1e-6, rtol=1e-4)


# Saving, loading, beginning from other checkpoints


@pytest.mark.parametrize(
    "base", [{"pooling": "max", "bottleneck": "none"}, {"bottleneck": "none"}, {}], ids=["max", "attention", "vat"]
)
@pytest.mark.parametrize("name", NAMES)
def test_two_stages_keep_encoder_and_heads_of_the_first(tiny, name, base, tmp_path):
    first = tiny.model(name, seed=1, id2label={0: "neg", 1: "pos"}, **base)
    first.save_pretrained(tmp_path / "base")
    masked = BertWithVMask if name == "bert" else EncoderWithVMask
    for mask in MASKS:
        model, info = masked.from_pretrained(tmp_path / "base", mask_type=mask, output_loading_info=True)
        assert model.config.model_type == ("bert_vmask" if name == "bert" else "encoder_vmask")
        assert (model.config.pooling, model.config.bottleneck) == (first.config.pooling, first.config.bottleneck)
        assert model.config.id2label == {0: "neg", 1: "pos"}
        assert info["missing_keys"] and all(key.startswith("word_mask.") for key in info["missing_keys"])
        assert not info["unexpected_keys"]
        for key, tensor in first.state_dict().items():
            assert torch.equal(tensor, model.state_dict()[key]), key
        for key, tensor in model.word_mask.state_dict().items():
            assert tensor.abs().max() < 10, f"{key} is raw memory"
        if mask == "iba":
            assert model.word_mask.count == 0 and model.word_mask.variance.tolist() == [1.0] * len(
                model.word_mask.variance
            )
    model.save_pretrained(tmp_path / "masked")
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "masked")
    assert type(again) is masked and again.config.architectures == [masked.__name__]


@pytest.mark.parametrize("name", ["bert", "cnn"])
def test_a_mask_is_a_setting_of_every_class_and_travels_between_them(tiny, name, tmp_path):
    base = {"mask_type": "l2x", "pooling": "max", "bottleneck": "none", "freeze_embeddings": True}
    one, same = tiny.model(name, **base).eval(), tiny.model(name, "l2x", pooling="max").eval()
    expected = one(**tiny.batch(name)).logits
    assert torch.equal(same(**tiny.batch(name)).logits, expected)
    for number, (model, other) in enumerate([(one, type(same)), (same, type(one))]):
        model.save_pretrained(tmp_path / str(number))
        loaded, info = other.from_pretrained(tmp_path / str(number), output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"]
        assert loaded.config.mask_type == "l2x" and loaded.config.model_type == other.config_class.model_type
        assert torch.equal(loaded.eval()(**tiny.batch(name)).logits, expected)


@pytest.mark.parametrize("name", ["bert", "cnn"])
def test_a_mask_does_not_become_another_one(tiny, name, tmp_path):
    for mask in MASKS:
        tiny.model(name, mask).save_pretrained(tmp_path / mask)
    auto, own = AutoModelForSequenceClassification, BertWithVMask if name == "bert" else EncoderWithVMask
    for stored, wanted in (("vmask", "l2x"), ("vmask", "iba"), ("iba", "vmask"), ("l2x", "iba")):
        for model_class in (auto, own, own.config_class):
            with pytest.raises(ValueError, match=f"has a word mask with mask_type='{stored}', .*mask_type='{wanted}'"):
                model_class.from_pretrained(tmp_path / stored, mask_type=wanted)
    with pytest.raises(ValueError, match=r"mask_site='word', whose .* mask_site='embedding_output'\. Leave that out"):
        own.from_pretrained(tmp_path / "vmask", mask_site="embedding_output")
    same = own.from_pretrained(tmp_path / "vmask", mask_type="vmask", mask_beta=0.1)
    assert torch.equal(same.word_mask.scorer.weight, tiny.model(name, "vmask").word_mask.scorer.weight)
    bare = own.from_pretrained(tmp_path / "vmask", mask_type="none")
    assert bare.word_mask is None
    bare.save_pretrained(tmp_path / "bare")
    fresh, info = own.from_pretrained(tmp_path / "bare", mask_type="l2x", output_loading_info=True)
    assert fresh.config.mask_type == "l2x"
    assert set(info["missing_keys"]) == {"word_mask.scorer.weight", "word_mask.scorer.bias"}


def test_statistics_of_iba_are_loaded_in_float32_into_a_model_of_another_type(tiny, tmp_path):
    model = tiny.model("lstm", "iba").train()
    model(**tiny.batch("lstm"))
    model.save_pretrained(tmp_path / "float32")
    half = EncoderWithVMask.from_pretrained(tmp_path / "float32", dtype=torch.bfloat16)
    half.save_pretrained(tmp_path / "bfloat16")
    for loaded in (half, EncoderWithVMask.from_pretrained(tmp_path / "bfloat16")):
        assert loaded.dtype == loaded.word_mask.scorer.weight.dtype == torch.bfloat16
        for name in ("mean", "variance"):
            found, expected = getattr(loaded.word_mask, name), getattr(model.word_mask, name)
            assert found.dtype == torch.float32 and torch.equal(found, expected)


# Explanations


def test_a_word_of_several_tokens_has_their_mean(tiny, tokenizer):
    settings = {"vocab_size": len(tokenizer), "pad_token_id": 0}
    model = tiny.model("bert", "vmask", **settings).eval()
    [result] = pipeline("text-classification-explained", model=model, tokenizer=copy.deepcopy(tokenizer))(
        ["unbelievable good"]
    )
    pieces = model(**tokenizer("unbelievable good", return_tensors="pt")).token_mask[0].tolist()
    expected = [sum(pieces[1:4]) / 3, pieces[4]]
    assert [word["score"] for word in result["words"]] == pytest.approx(expected, abs=1e-6)
    [explanation] = explain(model, tokenizer, ["unbelievable good"], method="mask")
    assert explanation.scores == pytest.approx(expected, abs=1e-6)


def test_with_attention_above_the_mask_the_pipeline_shows_the_attention(tiny):
    model, tokenizer = tiny.model("lstm", "vmask", **VAT).eval(), tiny.tokenizer("lstm")
    [result] = pipeline("text-classification-explained", model=model, tokenizer=tokenizer)(tiny.texts[:1])
    out = model(**tiny.batch("lstm", tiny.texts[:1]))
    assert [word["attention"] for word in result["words"]] == pytest.approx(out.token_importance[0].tolist(), abs=1e-6)


@pytest.mark.parametrize("method", ["gradient", "input_x_gradient", "occlusion"])
def test_other_methods_explain_through_the_mask(tiny, method):
    for name, mask in (("roberta", "vmask"), ("cnn", "iba"), ("lstm", "l2x")):
        model, tokenizer = tiny.model(name, mask).train(), tiny.tokenizer(name)
        first, second = (explain(model, tokenizer, tiny.texts, method=method) for _ in range(2))
        assert [e.scores for e in first] == [e.scores for e in second] and any(any(e.scores) for e in first)
        assert model.training


# Several processes

TWO_PROCESSES = """
import os, sys
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2], RANK=sys.argv[3], WORLD_SIZE="2")
import torch, torch.distributed as dist
from hf_vat.models import EncoderWithVMask
dist.init_process_group("gloo")
for mask in ("vmask", "l2x", "iba"):
    model = EncoderWithVMask.from_pretrained(f"{sys.argv[1]}/{mask}").train()
    wrapped = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = {"input_ids": torch.tensor([[3, 4, 5], [6, 7, 0]]) + dist.get_rank(),
             "attention_mask": torch.tensor([[1, 1, 1], [1, 1, 0]]), "labels": torch.tensor([0, 1])}
    for _ in range(3):
        attributes = set(vars(model))
        torch.manual_seed(0)
        out = wrapped(**batch)
        torch.manual_seed(0)
        copied = EncoderWithVMask(model.config)
        copied.load_state_dict(model.state_dict())
        if mask != "iba":  # its statistics have already moved on
            torch.manual_seed(0)
            same = copied.train()(**batch)
            for field in ("cross_entropy", "mask_compression", "token_mask"):
                ours, theirs = out[field] if field in out else None, same[field] if field in same else None
                assert (ours is None) == (theirs is None) and (ours is None or torch.allclose(ours, theirs, atol=1e-6))
        assert set(vars(model)) == attributes
        out.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    for parameter in model.parameters():
        both = [torch.empty_like(parameter) for _ in range(2)]
        dist.all_gather(both, parameter.detach())
        assert torch.equal(*both)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_c18_c88_loss_parts_are_in_the_output_in_two_processes(tiny, tmp_path):
    for mask in MASKS:
        tiny.model("cnn", mask).save_pretrained(tmp_path / mask)
    port = str(29500 + os.getpid() % 1000)
    processes = [
        subprocess.Popen([sys.executable, "-c", TWO_PROCESSES, str(tmp_path), port, str(rank)], stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors.decode()[-3000:]
