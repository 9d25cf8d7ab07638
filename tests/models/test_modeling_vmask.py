"""BertWithVMask and EncoderWithVMask: the mask in its place, loss, phases, frozen embeddings, saving, explanations."""

import copy
import json
import math
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    CanineConfig,
    DataCollatorWithPadding,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    EsmConfig,
    GPT2Config,
    IBertConfig,
    ModernBertConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    Trainer,
    TrainingArguments,
    XLNetConfig,
    pipeline,
)

from hf_vat import (
    BertForVATClassification,
    BertVATConfig,
    BertVMaskConfig,
    BertWithVMask,
    EncoderForVATClassification,
    EncoderVATConfig,
    EncoderVMaskConfig,
    EncoderWithVMask,
    WordEncoderConfig,
    explain,
)
from hf_vat.data.vocabulary import train_word_tokenizer

TASK = "text-classification-explained"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]  # padding has id 1, as in RoBERTa
WORDS = ["a", "the", "film", "movie", "plot", "actor", "very", "and", "is", "good", "great", "bad", "dull"]
TEXTS = ["good film", "the plot and the actor is very dull", "a bad movie"]
LABELS = torch.tensor([1, 0, 0])

SMALL = {
    "vocab_size": len(SPECIAL) + len(WORDS), "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 34, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    # Large weights, so that the outputs of an untrained model differ visibly between texts.
    "initializer_range": 0.2,
}  # fmt: skip
WORD_ENCODER = {"vocab_size": len(WORDS) + 3, "embedding_size": 8, "dropout": 0.0, "initializer_range": 0.5}
ENCODERS = {
    "roberta": lambda: RobertaConfig(type_vocab_size=1, **SMALL),
    "lstm": lambda: WordEncoderConfig(encoder_type="lstm", hidden_size=16, **WORD_ENCODER),
    "cnn": lambda: WordEncoderConfig(encoder_type="cnn", hidden_size=18, **WORD_ENCODER),
}
NAMES = ["bert", *ENCODERS]
MASKS = ["vmask", "l2x", "iba"]
VAT = {"pooling": "attention", "bottleneck": "gaussian"}


def make_tokenizer(name: str) -> PreTrainedTokenizerFast:
    if name in ("lstm", "cnn"):
        return train_word_tokenizer([" ".join(WORDS)], model_max_length=32)
    backend = Tokenizer(WordLevel({word: index for index, word in enumerate(SPECIAL + WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = Whitespace()
    backend.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>",
        pad_token="<pad>", unk_token="<unk>", mask_token="<mask>", model_max_length=32,
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


def make_model(name: str, mask: str = "vmask", **settings):
    """The same weights each time; mask probabilities far from the 1/2 that they start with."""
    beta = {"mask_beta": 0.5} if mask in ("vmask", "iba") else {}
    settings = {"mask_type": mask, "classifier_dropout": 0.0} | beta | settings
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if name == "bert":
            return BertWithVMask(BertVMaskConfig(**(SMALL | settings)))
        settings = {"initializer_range": 0.2} | settings
        return EncoderWithVMask(EncoderVMaskConfig(encoder=ENCODERS[name](), **settings))


def make_base(name: str, **settings):
    """The VAT class of the same encoder."""
    settings = {"classifier_dropout": 0.0} | settings
    with torch.random.fork_rng():
        torch.manual_seed(1)
        if name == "bert":
            return BertForVATClassification(BertVATConfig(**(SMALL | settings)))
        return EncoderForVATClassification(EncoderVATConfig(encoder=ENCODERS[name](), **settings))


def batch_of(name: str, texts=TEXTS, padding_side="right", **kwargs) -> dict:
    kwargs = {"padding": True, "return_tensors": "pt", "padding_side": padding_side} | kwargs
    return dict(make_tokenizer(name)(texts, **kwargs))


def content_of(name: str, batch: dict) -> torch.Tensor:
    content = batch["attention_mask"].bool()
    if name in ("bert", "roberta"):
        content = content & (batch["input_ids"] != 0) & (batch["input_ids"] != 2)
    return content


def set_scores(model, logit: float) -> None:
    """The same mask logit for every word."""
    with torch.no_grad():
        model.word_mask.scorer.weight.zero_()
        model.word_mask.scorer.bias.fill_(logit)


def run_python(code: str, *arguments: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout


# The mask in its place


@pytest.mark.parametrize("site", ["word", "embedding_output"])
@pytest.mark.parametrize("name", NAMES)
def test_an_open_mask_changes_nothing_and_a_closed_one_hides_the_words(name, site):
    if site == "embedding_output" and name != "bert":
        return
    model, batch = make_model(name, mask_site=site).eval(), batch_of(name)
    base = make_model(name, "none").eval()
    assert base.word_mask is None and base(**batch).token_mask is None
    base.load_state_dict({key: t for key, t in model.state_dict().items() if not key.startswith("word_mask")})
    expected = base(**batch).logits
    assert (model(**batch).logits - expected).abs().max() > 1e-3
    set_scores(model, 50.0)
    torch.testing.assert_close(model(**batch).logits, expected, atol=1e-6, rtol=0)
    set_scores(model, -50.0)
    one, other = (model(**batch_of(name, [text])).logits for text in ("good film", "bad plot"))
    torch.testing.assert_close(one, other, atol=1e-6, rtol=0)


FURTHER = {
    "distilbert": DistilBertConfig(
        dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=34, initializer_range=0.2, vocab_size=18
    ),
    "deberta_v2": DebertaV2Config(relative_attention=True, pos_att_type="p2c|c2p", type_vocab_size=0, **SMALL),
    "electra": ElectraConfig(embedding_size=8, **SMALL),
    "modernbert": ModernBertConfig(
        global_attn_every_n_layers=2, local_attention=4, cls_token_id=0, sep_token_id=2, **SMALL
    ),
    "xlnet": XLNetConfig(d_model=16, n_layer=2, n_head=2, d_inner=32, initializer_range=0.2, vocab_size=18),
    "gpt2": GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=34, initializer_range=0.2, vocab_size=18),
}


@pytest.mark.parametrize("mask", ["vmask", "iba"])
@pytest.mark.parametrize("name", list(FURTHER))
def test_every_encoder_takes_a_mask(name, mask):
    batch = batch_of("roberta")
    settings = {"encoder": FURTHER[name], "pooling": "max", "initializer_range": 0.2}
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
def test_word_embeddings_are_multiplied_and_everything_else_stays(name):
    model, batch = make_model(name).eval(), batch_of(name)
    out = model(**batch)
    embeddings = model.get_input_embeddings()(batch["input_ids"])
    factor = out.token_mask.masked_fill(~content_of(name, batch), 1.0).unsqueeze(-1)
    expected = make_model(name, "none").eval()  # the same weights but for the mask's, which come last
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


def test_embedding_output_masks_the_sum_after_its_layer_norm(tmp_path):
    model, batch = make_model("bert", mask_site="embedding_output").eval(), batch_of("bert")
    out = model(**batch, output_hidden_states=True)
    content = content_of("bert", batch)
    plain = model.bert.embeddings(input_ids=batch["input_ids"])
    torch.testing.assert_close(out.hidden_states[0][content], plain[content] * out.token_mask[content].unsqueeze(-1))
    torch.testing.assert_close(out.hidden_states[0][~content], plain[~content])
    given = {"inputs_embeds": model.get_input_embeddings()(batch["input_ids"]), **batch, "input_ids": None}
    torch.testing.assert_close(model(**given).logits, out.logits)
    types = model(**batch, token_type_ids=torch.ones_like(batch["input_ids"]))
    assert (types.logits - out.logits).abs().max() > 1e-3
    model.save_pretrained(tmp_path)
    loaded, info = BertWithVMask.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and torch.equal(loaded.eval()(**batch).logits, out.logits)


@pytest.mark.parametrize("site", ["word", "embedding_output"])
def test_threads_that_share_a_model_do_not_mix_up_their_masks(site):
    """As in a web server; both are in the encoder at the same time."""
    model = make_model("bert", mask_site=site).eval()
    batches = [batch_of("bert", [text]) for text in TEXTS[:2]]
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
@pytest.mark.parametrize("name", NAMES)
def test_c04_the_mask_lies_on_the_words_alone(name, mask):
    model, batch = make_model(name, mask).eval(), batch_of(name)
    content = content_of(name, batch)
    token_mask = model(**batch).token_mask
    assert token_mask.dtype == torch.float32 and content.sum(1).tolist() == [2, 8, 3]
    assert (token_mask[~content] == 0).all() and (token_mask[content] > 0).all() and token_mask.max() <= 1
    barred = torch.zeros_like(batch["input_ids"])
    barred[:, 1] = 1
    token_mask = model(**batch, special_tokens_mask=barred).token_mask
    allowed = batch["attention_mask"].bool() & ~barred.bool()
    assert (token_mask[~allowed] == 0).all() and (token_mask[allowed] > 0).all()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_c04_c19_padding_never_matters(name, mask):
    model, batch = make_model(name, mask).eval(), batch_of(name)
    together, padded = model(**batch), model(**batch_of(name, padding="max_length", max_length=30))
    left_batch = batch_of(name, padding_side="left")
    left = model(**left_batch)
    torch.testing.assert_close(padded.logits, together.logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(left.logits, together.logits, atol=1e-5, rtol=0)
    assert together.logits.std(0).min() > 1e-4, "the texts cannot be told apart"
    kept = together.token_mask[batch["attention_mask"].bool()]
    torch.testing.assert_close(left.token_mask[left_batch["attention_mask"].bool()], kept, atol=1e-6, rtol=0)
    for row, text in enumerate(TEXTS):
        alone = model(**batch_of(name, [text]), labels=LABELS[row : row + 1])
        torch.testing.assert_close(together.logits[row], alone.logits[0], atol=1e-5, rtol=0)
        if alone.mask_compression is not None:
            terms = model(**batch, labels=LABELS).mask_compression
            torch.testing.assert_close(alone.mask_compression[0], terms[row], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_embeddings_stand_for_ids_and_are_masked_too(name, mask):
    model, batch = make_model(name, mask).eval(), batch_of(name, TEXTS[1:2])
    expected = model(**batch)
    embeddings = model.get_input_embeddings()(batch.pop("input_ids"))
    out = model(inputs_embeds=embeddings, **batch)
    torch.testing.assert_close(out.logits, expected.logits, atol=1e-6, rtol=0)
    torch.testing.assert_close(out.token_mask, expected.token_mask, atol=1e-6, rtol=0)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_c06_empty_rows_are_finite_and_leave_others_alone(name, mask):
    model, batch = make_model(name, mask).eval(), batch_of(name)
    before = model(**batch)
    batch["attention_mask"] = batch["attention_mask"].clone()
    batch["attention_mask"][1] = 0
    out = model(**batch, labels=LABELS)
    assert torch.isfinite(out.logits).all() and torch.isfinite(out.loss) and (out.token_mask[1] == 0).all()
    torch.testing.assert_close(out.logits[[0, 2]], before.logits[[0, 2]], atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_c06_half_precision_is_finite(name, mask, dtype):
    model = make_model(name, mask).to(dtype).train()
    out = model(**batch_of(name, [*TEXTS, ""]), labels=torch.tensor([1, 0, 0, 1]))
    out.loss.backward()
    assert out.logits.dtype == dtype and torch.isfinite(out.logits).all() and torch.isfinite(out.loss)
    assert out.token_mask.dtype == torch.float32
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ["lstm", "cnn"])
def test_c07_c08_c54_texts_without_words_or_shorter_than_a_kernel(name, mask):
    model = make_model(name, mask).eval()
    batch = batch_of(name, ["", "good", "zzz qqq"])
    together = model(**batch)
    assert torch.isfinite(together.logits).all() and together.token_mask.count_nonzero(1).tolist() == [0, 1, 2]
    torch.testing.assert_close(model(**batch_of(name, ["good"])).logits[0], together.logits[1], atol=1e-5, rtol=0)
    empty = dict(make_tokenizer(name)(["", ""], return_tensors="pt", padding=True))
    assert empty["input_ids"].shape == (2, 0)
    out = model.train()(**empty, labels=torch.tensor([0, 1]))
    out.loss.backward()
    assert out.token_mask.shape == (2, 0)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_c16_evaluation_never_samples(name, mask):
    model, batch = make_model(name, mask).eval(), batch_of(name)
    assert torch.equal(model(**batch).logits, model(**batch).logits)
    model.train()
    sampled = not torch.equal(model(**batch).logits, model(**batch).logits)
    assert sampled == (mask != "l2x")


def test_c09_attention_kernels_and_what_the_configuration_asks_for():
    batch = batch_of("roberta")
    model = EncoderWithVMask(
        EncoderVMaskConfig(encoder=ENCODERS["roberta"](), attn_implementation="eager", output_attentions=True)
    ).eval()
    length = batch["input_ids"].shape[1]
    assert [a.shape for a in model(**batch).attentions] == [(3, 2, length, length)] * 2
    with pytest.raises(ValueError, match='attn_implementation="eager"'):
        make_model("bert", attn_implementation="sdpa")(**batch_of("bert"), output_attentions=True)


# Loss


@pytest.mark.parametrize("settings", [{}, {**VAT, "beta": 0.25}], ids=["alone", "under_vat"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_loss_is_the_weighted_sum_of_its_parts(name, mask, settings):
    model = make_model(name, mask, **settings).train()
    labels = torch.tensor([1, -100, 0])
    for mode in (True, False):
        out = model.train(mode)(**batch_of(name), labels=labels)
        expected = out.cross_entropy.sum() / 2
        if mask == "l2x":
            assert out.mask_compression is None
        else:
            assert out.mask_compression.shape == (3,) and out.mask_compression[1] == 0
            assert (out.mask_compression[[0, 2]] > 0).all()
            expected = expected + 0.5 * out.mask_compression.sum() / 2
        assert (out.compression is not None) == (bool(settings) and mode)  # evaluation: the learner's loss
        if out.compression is not None:
            expected = expected + 0.25 * out.compression.sum() / 2
        torch.testing.assert_close(out.loss, expected)
    assert model(**batch_of(name)).mask_compression is None


def test_term_is_reduced_as_configured_and_weighted_by_what_the_configuration_says_now():
    batch = batch_of("cnn")
    mean, total = (make_model("cnn", mask_reduction=reduction).eval() for reduction in ("token_mean", "sum"))
    terms = mean(**batch, labels=LABELS).mask_compression
    lengths = batch["attention_mask"].sum(1)
    torch.testing.assert_close(total(**batch, labels=LABELS).mask_compression, terms * lengths)
    mean.config.mask_beta = 0.0
    out = mean(**batch, labels=LABELS)
    assert out.loss == out.cross_entropy.mean()


def test_f66_the_mean_over_all_positions_is_that_of_the_published_code():
    model = make_model("cnn", mask_reduction="position_mean", mask_layers=2, mask_hidden_size=5).train()
    batch = batch_of("cnn")
    logits = model.word_mask.scorer(model.get_input_embeddings()(batch["input_ids"])).squeeze(-1)
    kept = logits.sigmoid()
    assert not batch["attention_mask"].all()
    negative_entropy = (kept * kept.log() + (1 - kept) * (1 - kept).log()).mean()  # there a mean of the whole tensor
    out = model(**batch, labels=LABELS)
    assert out.mask_compression.mean().item() == pytest.approx(math.log(2) + negative_entropy.item(), abs=1e-6)
    assert out.loss.item() == pytest.approx((out.cross_entropy + 0.5 * out.mask_compression).mean().item())


@pytest.mark.parametrize("settings", [{}, VAT, {**VAT, "heads": "shared"}, {**VAT, "heads": "shared_mean"}])
def test_f66_a_head_of_one_layer_is_linear(settings, tmp_path):
    model = make_model("cnn", head_layers=1, **settings).eval()
    name = "compressor_head" if settings.get("heads") == "shared_mean" else "learner_head"
    assert not any("_head.dense" in key for key in model.state_dict())
    out = model(**batch_of("cnn"))
    head = getattr(model, name).out_proj
    text = model.bottleneck.mean(out.pooler_output) if name == "compressor_head" else out.pooler_output
    torch.testing.assert_close(out.logits, text @ head.weight.T + head.bias)
    model.save_pretrained(tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    assert again.config.head_layers == 1 and torch.equal(again(**batch_of("cnn")).logits, out.logits)


def test_f66_dropout_of_a_head_of_one_layer_is_on_the_text_vector():
    model = make_model("cnn", head_layers=1, classifier_dropout=0.75).train()
    with torch.no_grad():
        model.learner_head.out_proj.weight.fill_(1.0)
        model.learner_head.out_proj.bias.zero_()
    ones = torch.ones(200, 18)
    sums = model.learner_head(ones)[:, 0] / 4  # of those that are left, each four times as large
    assert torch.equal(sums, sums.round()) and 0.2 < sums.mean() / 18 < 0.3


def test_f66_folders_of_before_load_as_they_were(tmp_path):
    model = make_model("cnn").eval()
    model.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    for settings, name in ((saved, "head_layers"), (saved["encoder"], "embedding_dropout")):
        settings.pop(name, None)  # as an earlier version, which had none, wrote them
    (tmp_path / "config.json").write_text(json.dumps(saved), encoding="utf-8")
    loaded, info = AutoModelForSequenceClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert loaded.config.head_layers == 2 and loaded.learner_head.dense is not None
    assert loaded.config.encoder.embedding_dropout is None and loaded.encoder.dropout.p == 0.0
    assert torch.equal(loaded.eval()(**batch_of("cnn")).logits, model(**batch_of("cnn")).logits)


@pytest.mark.parametrize("name", ["bert", "lstm"])
def test_c14_a_strong_term_draws_the_mask_to_one_half(name):
    spread = []
    for beta in (0.0, 100.0):
        model = make_model(name, mask_beta=beta).train()
        with torch.no_grad():
            model.word_mask.scorer.weight.mul_(3)
        optimizer = torch.optim.Adam(model.word_mask.parameters(), lr=0.1)
        batch = batch_of(name)
        for _ in range(20):
            out = model(**batch, labels=LABELS)
            if beta == 0:
                torch.testing.assert_close(out.loss, out.cross_entropy.mean())
            assert (out.mask_compression >= 0).all()
            out.loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        kept = model.eval()(**batch).token_mask[content_of(name, batch)]
        spread.append((kept - 0.5).abs().mean())
    assert spread[1] < spread[0] / 2


def test_c11_a_batch_without_labels_contributes_zero():
    for mask in MASKS:
        model = make_model("lstm", mask).train()
        out = model(**batch_of("lstm"), labels=torch.full((3,), -100))
        assert out.loss.item() == 0
        out.loss.backward()
        assert all(not p.grad.any() for p in model.parameters() if p.grad is not None)


def test_c10_wrong_problem_types_are_refused():
    for config in (BertVMaskConfig, EncoderVMaskConfig):
        for settings in ({"num_labels": 1}, {"problem_type": "regression"}):
            with pytest.raises(Exception, match=r"num_labels=.*problem_type="):
                config(**settings)
    with pytest.raises(ValueError, match="float"):
        make_model("cnn")(**batch_of("cnn"), labels=torch.tensor([1.0, 0.0, 1.0]))


def test_configuration_refuses_what_does_not_fit():
    for settings, mentions in [
        ({"mask_type": "lime"}, "lime"),
        ({"mask_layers": 3}, "mask_layers"),
        ({"mask_hidden_size": 0}, "mask_hidden_size=0"),
        ({"mask_sample": "hard"}, "mask_sample"),
        ({"mask_temperature": 0.05}, "mask_temperature=0.05"),
        ({"mask_temperature": float("nan")}, "mask_temperature=nan"),
        ({"mask_beta": -0.1}, "mask_beta=-0.1"),
        ({"mask_reduction": "mean"}, "mask_reduction"),
        ({"mask_k": 0}, "mask_k=0"),
        ({"head_layers": 3}, "head_layers"),
        ({"mask_site": "sentence"}, "mask_site"),
        ({"bottleneck": "gaussian"}, "pooling"),
    ]:
        for config in (BertVMaskConfig, EncoderVMaskConfig):
            with pytest.raises(Exception, match=mentions):
                config(**settings)
    with pytest.raises(Exception, match='mask_site="embedding_output" is for BertWithVMask'):
        EncoderVMaskConfig(mask_site="embedding_output")


def test_defaults_are_the_papers():
    for config in (BertVMaskConfig(), EncoderVMaskConfig()):
        assert (config.pooling, config.bottleneck, config.mask_type) == ("first", "none", "vmask")
        assert (config.mask_layers, config.mask_sample, config.freeze_embeddings) == (1, "soft", True)
        assert {"token_mask", "mask_compression", "cross_entropy"} <= set(config.keys_to_ignore_at_inference)
    assert EncoderVMaskConfig(encoder=WordEncoderConfig()).pooling == "max"
    assert EncoderVMaskConfig(encoder=ENCODERS["roberta"](), prefix_tokens=0).pooling == "max"


# Phases and frozen embeddings


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_c20_a_step_moves_the_phase_and_nothing_else(name, mask):
    prefix = make_model(name).base_model_prefix
    for phase, groups in [
        ("compress", {"attention", "bottleneck", "compressor_head"}),
        ("learn", {"word_mask", prefix, "learner_head"}),
        ("finetune", {"word_mask", prefix, "attention", "learner_head"}),
        ("joint", {"word_mask", prefix, "attention", "bottleneck", "learner_head", "compressor_head"}),
    ]:
        model = make_model(name, mask, **VAT).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        model.set_phase(phase)
        assert model.training and model.word_mask.training == (phase != "compress")
        before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
        out = model(**batch_of(name), labels=LABELS)
        assert (out.mask_compression is not None) == (mask != "l2x" and phase != "compress")
        assert out.token_mask.requires_grad == (phase != "compress")
        out.loss.backward()
        optimizer.step()
        moved = {key for key, tensor in model.state_dict().items() if not torch.equal(before[key], tensor)}
        assert {key.partition(".")[0] for key in moved} == groups, phase
        assert not any("embeddings" in key for key in moved)
    with pytest.raises(ValueError, match="'learn' needs a model with bottleneck"):
        make_model(name, mask).set_phase("learn")


@pytest.mark.parametrize("name", NAMES)
def test_frozen_embeddings_are_no_parameters_and_stay_so(name, tmp_path):
    model = make_model(name)
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
    thawed(**batch_of(name), labels=LABELS).loss.backward()
    assert thawed.get_input_embeddings().weight.grad.any()
    assert torch.equal(thawed.eval()(**batch_of(name)).logits, model.eval()(**batch_of(name)).logits)


@pytest.mark.parametrize("name", NAMES)
def test_a_vocabulary_that_has_grown_travels_and_stays_frozen(name, tmp_path):
    model = make_model(name)
    expected = model.eval()(**batch_of(name)).logits
    model.resize_token_embeddings(40)
    assert not any("word_embeddings" in key for key, _ in model.named_parameters())
    torch.testing.assert_close(model(**batch_of(name)).logits, expected)
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path)
    assert loaded.get_input_embeddings().num_embeddings == loaded.config.vocab_size == 40
    assert torch.equal(loaded.get_input_embeddings().weight, model.get_input_embeddings().weight)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_gradient_checkpointing_changes_no_gradient(name, mask):
    gradients = []
    for checkpointing in (False, True):
        model = make_model(name, mask).train()
        if checkpointing:
            model.gradient_checkpointing_enable()
        torch.manual_seed(0)
        model(**batch_of(name), labels=LABELS).loss.backward()
        gradients.append({key: p.grad for key, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys() >= {"word_mask.scorer.weight"}
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][key], gradient, atol=1e-6, rtol=1e-4, msg=key)


def test_gradient_accumulation_gives_the_gradients_of_the_whole_batch(tmp_path):
    tokenizer = make_tokenizer("cnn")
    rows = [{"labels": 1, **tokenizer("good film")}, {"labels": 0, **tokenizer("a bad movie and the plot")}] * 2
    trained = []
    for size, steps in ((4, 1), (2, 2)):
        model = make_model("cnn", "l2x")
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


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_c01_c03_saved_weights_come_back_bitwise(name, mask, tmp_path):
    model = make_model(name, mask, mask_layers=2)
    model.train()(**batch_of(name))  # statistics of IBA
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.add_(number / 1000)
    model.eval().save_pretrained(tmp_path)
    loaded, info = AutoModelForSequenceClassification.from_pretrained(
        tmp_path, output_loading_info=True, trust_remote_code=False
    )
    assert type(loaded) is type(model)
    assert (loaded.config.pooling, loaded.config.mask_type, loaded.config.mask_layers) == (
        model.config.pooling,
        mask,
        2,
    )
    assert not info["missing_keys"] and not info["unexpected_keys"]
    for key, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[key]), key
    ours, theirs = model(**batch_of(name)), loaded.eval()(**batch_of(name))
    assert torch.equal(ours.logits, theirs.logits) and torch.equal(ours.token_mask, theirs.token_mask)
    saved = load_file(tmp_path / "model.safetensors")
    assert sum(t.numel() for t in saved.values()) == sum(t.numel() for t in model.state_dict().values())
    assert set(os.listdir(tmp_path)) >= {
        "configuration_vmask.py",
        "modeling_vmask.py",
        "word_mask.py",
        "modeling_vat.py",
    }


@pytest.mark.parametrize(
    "base", [{"pooling": "max", "bottleneck": "none"}, {"bottleneck": "none"}, {}], ids=["max", "attention", "vat"]
)
@pytest.mark.parametrize("name", NAMES)
def test_two_stages_keep_encoder_and_heads_of_the_first(name, base, tmp_path):
    first = make_base(name, id2label={0: "neg", 1: "pos"}, **base)
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
def test_a_mask_does_not_become_another_one(name, tmp_path):
    for mask in MASKS:
        make_model(name, mask).save_pretrained(tmp_path / mask)
    auto, own = AutoModelForSequenceClassification, BertWithVMask if name == "bert" else EncoderWithVMask
    for stored, wanted in (("vmask", "l2x"), ("vmask", "iba"), ("iba", "vmask"), ("l2x", "iba")):
        for model_class in (auto, own, own.config_class):
            with pytest.raises(ValueError, match=f"has a word mask with mask_type='{stored}', .*mask_type='{wanted}'"):
                model_class.from_pretrained(tmp_path / stored, mask_type=wanted)
    with pytest.raises(ValueError, match=r"mask_site='word', whose .* mask_site='embedding_output'\. Leave that out"):
        own.from_pretrained(tmp_path / "vmask", mask_site="embedding_output")
    same = own.from_pretrained(tmp_path / "vmask", mask_type="vmask", mask_beta=0.1)
    assert torch.equal(same.word_mask.scorer.weight, make_model(name).word_mask.scorer.weight)
    bare = own.from_pretrained(tmp_path / "vmask", mask_type="none")
    assert bare.word_mask is None
    bare.save_pretrained(tmp_path / "bare")
    fresh, info = own.from_pretrained(tmp_path / "bare", mask_type="l2x", output_loading_info=True)
    assert fresh.config.mask_type == "l2x"
    assert set(info["missing_keys"]) == {"word_mask.scorer.weight", "word_mask.scorer.bias"}


def test_statistics_of_iba_are_loaded_in_float32_into_a_model_of_another_type(tmp_path):
    model = make_model("lstm", "iba").train()
    model(**batch_of("lstm"))
    model.save_pretrained(tmp_path / "float32")
    half = EncoderWithVMask.from_pretrained(tmp_path / "float32", dtype=torch.bfloat16)
    half.save_pretrained(tmp_path / "bfloat16")
    for loaded in (half, EncoderWithVMask.from_pretrained(tmp_path / "bfloat16")):
        assert loaded.dtype == loaded.word_mask.scorer.weight.dtype == torch.bfloat16
        for name in ("mean", "variance"):
            found, expected = getattr(loaded.word_mask, name), getattr(model.word_mask, name)
            assert found.dtype == torch.float32 and torch.equal(found, expected)


def test_a_plain_bert_checkpoint_loads_bit_equal(tmp_path):
    source = BertForSequenceClassification(BertConfig(**SMALL))
    source.save_pretrained(tmp_path)
    model, info = BertWithVMask.from_pretrained(tmp_path, num_labels=3, output_loading_info=True)
    assert (model.config.model_type, model.config.pooling, model.num_labels) == ("bert_vmask", "first", 3)
    encoder = source.bert.state_dict()
    assert all(torch.equal(tensor, encoder[key]) for key, tensor in model.bert.state_dict().items())
    assert not any(key.startswith("bert.") for key in info["missing_keys"])


@pytest.mark.parametrize("name", list(ENCODERS))
def test_a_pretrained_encoder_is_loaded_and_frozen(name, tmp_path):
    source = AutoModel.from_config(ENCODERS[name]())
    source.save_pretrained(tmp_path)
    make_tokenizer(name).save_pretrained(tmp_path)
    model = EncoderWithVMask.from_encoder_pretrained(tmp_path, mask_type="iba", num_labels=3)
    assert type(model.config) is EncoderVMaskConfig and model.config.pooling == (
        "first" if name == "roberta" else "max"
    )
    assert all(torch.equal(tensor, source.state_dict()[key]) for key, tensor in model.encoder.state_dict().items())
    assert not any("embeddings" in key for key, _ in model.named_parameters())
    assert model.eval()(**batch_of(name)).logits.shape == (3, 3)
    with pytest.raises(ValueError, match=r"not 'encoder_vmask'.*from_encoder_pretrained"):
        EncoderWithVMask.from_pretrained(tmp_path)


def test_c12_other_number_of_classes_names_the_layers(tmp_path):
    three = make_model("lstm", num_labels=3, id2label={0: "neg", 1: "neutral", 2: "pos"})
    three.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"learner_head.out_proj.weight is \(3, 16\).*\(2, 16\).*ignore_mismatched"):
        EncoderWithVMask.from_pretrained(tmp_path, num_labels=2)
    two = EncoderWithVMask.from_pretrained(tmp_path, num_labels=2, ignore_mismatched_sizes=True)
    for key, tensor in three.state_dict().items():
        assert torch.equal(tensor, two.state_dict()[key]) or "out_proj" in key, key


@pytest.mark.parametrize("name", ["bert", "cnn"])
def test_c13_label_names_survive_and_never_disagree(name, tmp_path):
    make_model(name, id2label={"0": "neg", "1": "pos"}).save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert loaded.config.id2label == {0: "neg", 1: "pos"} and loaded.config.label2id == {"neg": 0, "pos": 1}
    with pytest.raises(ValueError, match="num_labels=3 disagrees"):
        type(loaded.config)(num_labels=3, id2label={0: "neg", 1: "pos"})


def test_c01_c75_c76_folders_alone_work_in_a_process_without_hf_vat(tmp_path):
    expected = []
    for name in ("bert", "lstm"):
        model, folder = make_model(name, id2label={0: "neg", 1: "pos"}).eval(), tmp_path / name
        model.save_pretrained(folder)
        make_tokenizer(name).save_pretrained(folder)
        expected.append(pipeline(TASK, model=model, tokenizer=make_tokenizer(name))(TEXTS))
    code = """
import json, sys
sys.modules["hf_vat"] = None  # makes "import hf_vat" fail
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline
results = []
for folder in sys.argv[2:]:
    try:
        AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=False)
        raise SystemExit("loaded without trust_remote_code")
    except ValueError as error:
        assert "trust_remote_code" in str(error), error
    model = AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)
    AutoTokenizer.from_pretrained(folder, trust_remote_code=True).save_pretrained(folder + " again")
    model.save_pretrained(folder + " again")
    results.append(pipeline(model=folder + " again", trust_remote_code=True)(json.loads(sys.argv[1])))
print(json.dumps(results))
"""
    printed = run_python(code, json.dumps(TEXTS), *(str(tmp_path / name) for name in ("bert", "lstm")))
    for theirs, ours in zip(json.loads(printed), expected, strict=True):
        for result, our in zip(theirs, ours, strict=True):
            assert result["label"] == our["label"] and result["score"] == pytest.approx(our["score"], abs=1e-6)
            numbers = [word["score"] for word in our["words"]]
            assert [word["score"] for word in result["words"]] == pytest.approx(numbers, abs=1e-6)


def test_c76_stock_pipeline_agrees_with_a_forward_pass():
    for name in NAMES:
        model, tokenizer = make_model(name, id2label={0: "neg", 1: "pos"}).eval(), make_tokenizer(name)
        direct = model(**batch_of(name)).logits.softmax(-1)[:, 1].tolist()
        results = pipeline("text-classification", model=model, tokenizer=tokenizer)(TEXTS, top_k=None)
        found = [{score["label"]: score["score"] for score in scores}["pos"] for scores in results]
        assert found == pytest.approx(direct, abs=1e-6)


# Explanations


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_explain_and_pipeline_give_the_mask_of_each_word(name, mask):
    model, tokenizer = make_model(name, mask, id2label={0: "neg", 1: "pos"}).eval(), make_tokenizer(name)
    explanations = explain(model, tokenizer, TEXTS, method="mask", batch_size=2)
    classify = pipeline(TASK, model=model, tokenizer=tokenizer)
    alone, together = classify(TEXTS), classify(TEXTS, batch_size=3)
    for text, explanation, one, same in zip(TEXTS, explanations, alone, together, strict=True):
        batch = batch_of(name, [text])
        kept = model(**batch).token_mask[content_of(name, batch)].tolist()
        assert explanation.words == [word["word"] for word in one["words"]] == text.split()
        assert explanation.scores == pytest.approx(kept, abs=1e-6)
        for result in (one, same):
            assert [word["score"] for word in result["words"]] == pytest.approx(kept, abs=1e-5)
    with pytest.raises(ValueError, match="no token_importance"):
        explain(model, tokenizer, TEXTS, method="attention")


def test_a_word_of_several_tokens_has_their_mean(tokenizer):
    settings = {"vocab_size": len(tokenizer), "pad_token_id": 0}
    model = make_model("bert", **settings).eval()
    [result] = pipeline(TASK, model=model, tokenizer=copy.deepcopy(tokenizer))(["unbelievable good"])
    pieces = model(**tokenizer("unbelievable good", return_tensors="pt")).token_mask[0].tolist()
    expected = [sum(pieces[1:4]) / 3, pieces[4]]
    assert [word["score"] for word in result["words"]] == pytest.approx(expected, abs=1e-6)
    [explanation] = explain(model, tokenizer, ["unbelievable good"], method="mask")
    assert explanation.scores == pytest.approx(expected, abs=1e-6)


def test_with_attention_above_the_mask_the_pipeline_shows_the_attention():
    model, tokenizer = make_model("lstm", **VAT).eval(), make_tokenizer("lstm")
    [result] = pipeline(TASK, model=model, tokenizer=tokenizer)(TEXTS[:1])
    out = model(**batch_of("lstm", TEXTS[:1]))
    assert [word["score"] for word in result["words"]] == pytest.approx(out.token_importance[0].tolist(), abs=1e-6)


@pytest.mark.parametrize("method", ["gradient", "input_x_gradient", "occlusion"])
def test_other_methods_explain_through_the_mask(method):
    for name, mask in (("roberta", "vmask"), ("cnn", "iba"), ("lstm", "l2x")):
        model, tokenizer = make_model(name, mask).train(), make_tokenizer(name)
        first, second = (explain(model, tokenizer, TEXTS, method=method) for _ in range(2))
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
def test_c18_c88_loss_parts_are_in_the_output_in_two_processes(tmp_path):
    for mask in MASKS:
        make_model("cnn", mask).save_pretrained(tmp_path / mask)
    port = str(29500 + os.getpid() % 1000)
    processes = [
        subprocess.Popen([sys.executable, "-c", TWO_PROCESSES, str(tmp_path), port, str(rank)], stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors.decode()[-3000:]


def test_c18_loss_parts_are_in_the_output_not_on_the_module():
    for mask in MASKS:
        model = make_model("lstm", mask).train()
        attributes = set(vars(model)) | set(vars(model.word_mask))
        out = model(**batch_of("lstm"), labels=LABELS)
        assert out.token_mask.shape == (3, 8) and (mask == "l2x" or out.mask_compression.shape == (3,))
        assert set(vars(model)) | set(vars(model.word_mask)) == attributes
