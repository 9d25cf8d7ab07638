"""EncoderForVATClassification over the encoders of the Hub and over word encoders, at toy size."""

import copy
import os

import hypothesis
import pytest
import torch
from hypothesis import strategies as st
from transformers import (
    AlbertConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    BartConfig,
    CLIPConfig,
    DataCollatorWithPadding,
    DebertaConfig,
    DebertaV2Config,
    FunnelConfig,
    LongT5Config,
    LongT5Model,
    MPNetConfig,
    NystromformerConfig,
    PerceiverConfig,
    Trainer,
    TrainingArguments,
    TrOCRConfig,
    ViTConfig,
    pipeline,
)
from transformers import (
    initialization as init,
)

from hf_vat import EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig
from hf_vat.models.words import maximum_length
from hf_vat.training import VATTrainer, VATTrainingArguments

WORD_ENCODERS = ["cnn", "lstm"]


@pytest.mark.parametrize("name", ["gpt2", "distilbert", "albert", "electra", "deberta", "deberta_v2", "nystromformer"])
def test_f15_a_text_has_the_same_logits_in_every_batch(tiny, name):
    """Encoders with learned absolute positions; the last counts them from 2."""
    position_biased = {"position_biased_input": True, "relative_attention": True}
    encoder = {
        "albert": lambda: AlbertConfig(embedding_size=8, **tiny.bert),
        "deberta": lambda: DebertaConfig(pos_att_type="p2c|c2p", **position_biased, **tiny.bert),
        "deberta_v2": lambda: DebertaV2Config(**tiny.deberta | position_biased, **tiny.bert),
        "nystromformer": lambda: NystromformerConfig(
            num_landmarks=34, segment_means_seq_len=34, conv_kernel_size=1, **tiny.bert
        ),
    }.get(name, tiny.encoders.get(name))()
    model = tiny.model(name, encoder=encoder).eval()
    tokenizer = tiny.tokenizer(name)

    @hypothesis.settings(max_examples=20, derandomize=True)
    @hypothesis.given(
        texts=st.lists(
            st.lists(st.sampled_from(tiny.words), min_size=1, max_size=9).map(" ".join), min_size=2, max_size=4
        )
    )
    def check(texts):
        alone = torch.cat([model(**tokenizer(text, return_tensors="pt")).logits for text in texts])
        for side in ("left", "right"):
            batch = tokenizer(texts, padding=True, return_tensors="pt", padding_side=side)
            torch.testing.assert_close(model(**batch).logits, alone, atol=1e-5, rtol=0)

    with torch.no_grad():
        check()
        first, second = (model(**tokenizer(text, return_tensors="pt")).logits for text in ("good film", "film good"))
    assert (first - second).abs().max() > 1e-4, "positions say nothing"


@pytest.mark.parametrize("pooling", ["attention", "max", "mean"])
@pytest.mark.parametrize("name", WORD_ENCODERS)
def test_c54_a_batch_without_any_word(tiny, name, pooling):
    model = tiny.model(name, pooling=pooling, bottleneck="none").train()
    empty = torch.zeros(2, 0, dtype=torch.long)
    out = model(input_ids=empty, attention_mask=empty, labels=torch.tensor([0, 1]))
    out.loss.backward()
    padding = torch.zeros(2, 1, dtype=torch.long)
    torch.testing.assert_close(out.logits, model(input_ids=padding, attention_mask=padding).logits)


# Saving and loading


def test_half_precision_checkpoints_load_in_the_type_asked_for(tiny, tmp_path):
    tiny.model("bert_encoder").to(torch.bfloat16).save_pretrained(tmp_path / "half")
    half = EncoderForVATClassification.from_pretrained(tmp_path / "half")
    full = EncoderForVATClassification.from_pretrained(tmp_path / "half", dtype=torch.float32)
    full.save_pretrained(tmp_path / "full")
    again = EncoderForVATClassification.from_pretrained(tmp_path / "full")
    for model, dtype in ((half, torch.bfloat16), (full, torch.float32), (again, torch.float32)):
        assert {parameter.dtype for parameter in model.parameters()} == {dtype}


# Pretrained encoders


def test_arguments_of_the_encoder_and_of_the_classifier_arrive(tiny, tmp_path):
    tiny.save_encoder("bert_encoder", tmp_path / "bert", torch.bfloat16)
    load = EncoderForVATClassification.from_encoder_pretrained
    half = load(tmp_path / "bert", pooling="max", bottleneck="none")
    assert {parameter.dtype for parameter in half.parameters()} == {torch.bfloat16}
    assert half.attention is None and half.eval()(**tiny.batch("bert_encoder")).logits.dtype == torch.bfloat16
    settings = {"dtype": torch.float32, "attn_implementation": "eager"}
    full = load(tmp_path / "bert", tiny.tokenizer("xlnet"), encoder_kwargs=settings, prefix_tokens=1)
    assert {parameter.dtype for parameter in full.parameters()} == {torch.float32}
    assert full.encoder.config._attn_implementation == "eager"
    assert (full.config.prefix_tokens, full.config.suffix_tokens) == (1, 2)
    tiny.save_encoder("lstm", tmp_path / "nested" / "encoder")
    assert load(tmp_path / "nested", encoder_kwargs={"subfolder": "encoder"}).config.suffix_tokens == 0


def test_f43_a_pretrained_encoder_is_built_once(tiny, tmp_path, monkeypatch):
    stored = tiny.save_encoder("roberta", tmp_path)
    monkeypatch.setattr(AutoModel, "from_config", lambda *args, **kwargs: pytest.fail("a second encoder is built"))
    model = EncoderForVATClassification.from_encoder_pretrained(tmp_path, initializer_range=0.5)
    missing = dict(stored.named_parameters())
    for name, parameter in model.encoder.named_parameters():
        assert torch.equal(parameter, missing.pop(name)), name
    assert all(name.startswith("pooler.") for name in missing)
    assert model.learner_head.dense.weight.std().item() == pytest.approx(0.5, rel=0.2)  # new, by our rule


@pytest.mark.parametrize(
    "name",
    [
        *(
            "bert_encoder",
            "distilbert",
            "roberta",
            "xlm_roberta",
            "deberta_v2",
            "deberta_v2_conv",
            "electra",
            "modernbert",
        ),
        *("xlnet", "gpt2", "lstm", "cnn"),
    ],
)
def test_f63_missing_weights_are_drawn_as_the_encoder_s_own_class_does(tiny, name, monkeypatch):
    """As transformers tests its own classes (`test_can_init_all_missing_weights`)."""
    for kind in ("normal_", "trunc_normal_", "uniform_", "xavier_uniform_", "kaiming_uniform_"):

        def seeded(*args, draw=init.TORCH_INIT_FUNCTIONS[kind], **kwargs):
            torch.manual_seed(0)
            return draw(*args, **kwargs)

        monkeypatch.setitem(init.TORCH_INIT_FUNCTIONS, kind, seeded)
    drawn = tiny.model(name)
    loaded = EncoderForVATClassification.from_pretrained(None, config=copy.deepcopy(drawn.config), state_dict={})
    own = AutoModel.from_config(tiny.encoders[name]()).state_dict()
    for key, value in loaded.state_dict().items():
        torch.testing.assert_close(value, drawn.state_dict()[key], msg=key)
        if key.startswith("encoder."):
            torch.testing.assert_close(value, own[key.removeprefix("encoder.")], msg=key)


def test_f61_what_does_not_turn_tokens_into_vectors_is_refused_by_name():
    small = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
    funnel = FunnelConfig(vocab_size=24, block_sizes=[1, 1], d_model=16, n_head=2, d_head=8, d_inner=32)
    funnel.architectures = ["FunnelBaseModel"]
    for encoder, mentions in [
        (LongT5Config(d_model=16, is_encoder_decoder=False), "encoder='longt5' is an encoder-decoder"),
        (BartConfig(**small, is_encoder_decoder=False), "encoder='bart' is an encoder-decoder"),
        (PerceiverConfig(), "encoder='perceiver' has no single hidden_size"),
        (CLIPConfig(), "encoder='clip' has no single hidden_size"),
        (
            ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2),
            "encoder='vit' reads pixel_values, not the token ids of a text",
        ),
        (TrOCRConfig(d_model=16), "encoder='trocr' is no model that AutoModel builds"),
        (funnel, "FunnelBaseModel has fewer vectors than tokens"),
    ]:
        with pytest.raises(ValueError, match=mentions):
            EncoderForVATClassification(EncoderVATConfig(encoder=encoder))


@pytest.mark.parametrize("name", ["albert", "mpnet", "xlnet", "bert_encoder", "lstm"])
def test_f61_gradient_checkpointing_is_supported_where_the_encoder_does(tiny, name):
    encoder = {
        "albert": lambda: AlbertConfig(embedding_size=8, **tiny.bert),
        "mpnet": lambda: MPNetConfig(**tiny.bert),
    }.get(name, tiny.encoders.get(name))()
    model, supports = tiny.model("bert_encoder", encoder=encoder), name in ("bert_encoder", "lstm")
    assert model.supports_gradient_checkpointing == model.encoder.supports_gradient_checkpointing == supports
    if supports:
        model.gradient_checkpointing_enable()
    else:
        with pytest.raises(ValueError, match="does not support activation checkpointing"):
            model.gradient_checkpointing_enable()


def test_what_cannot_be_an_encoder_is_named(tiny, tmp_path):
    small = LongT5Config(vocab_size=24, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    LongT5Model(small).save_pretrained(tmp_path / "t5")
    tiny.tokenizer("bert_encoder").save_pretrained(tmp_path / "t5")
    os.remove(tmp_path / "t5" / "model.safetensors")  # refused before it is read
    for attempt in (
        lambda: EncoderForVATClassification.from_encoder_pretrained(tmp_path / "t5"),
        lambda: EncoderVATConfig(encoder=small),
    ):
        with pytest.raises(ValueError, match="'longt5' is an encoder-decoder"):
            attempt()
    tiny.save_encoder("bert_encoder", tmp_path / "bert")
    with pytest.raises(ValueError, match=r"'bert', not 'encoder_vat'.*from_encoder_pretrained"):
        EncoderForVATClassification.from_pretrained(tmp_path / "bert")


def test_word_encoders_have_no_special_tokens_by_default():
    for encoder in (WordEncoderConfig(), WordEncoderConfig().to_dict()):
        config = EncoderVATConfig(encoder=encoder)
        assert (config.prefix_tokens, config.suffix_tokens) == (0, 0)
    config = EncoderVATConfig()
    assert (config.prefix_tokens, config.suffix_tokens) == (1, 1) and config.encoder.model_type == "bert"


def test_funnel_has_two_classes_behind_one_configuration(tiny):
    config = FunnelConfig(vocab_size=24, block_sizes=[1, 1], d_model=16, n_head=2, d_head=8, d_inner=32)
    for architectures in (["FunnelModel"], None):  # None: as it is built by hand (F61)
        config.architectures = architectures
        assert tiny.model("bert_encoder", encoder=config).eval()(**tiny.batch("bert_encoder")).logits.shape == (3, 2)


# Training


@pytest.mark.parametrize("stock", [False, True])
@pytest.mark.parametrize("name", ["lstm", "distilbert"])
def test_both_trainers_train(tiny, name, stock, make_dataset, tmp_path):
    tokenizer = tiny.tokenizer(name)
    dataset = make_dataset(32).remove_columns(["input_ids", "attention_mask"])
    dataset = dataset.map(lambda rows: tokenizer(rows["text"]), batched=True).remove_columns("text")
    settings = {
        "output_dir": str(tmp_path), "num_train_epochs": 2, "per_device_train_batch_size": 8, "learning_rate": 1e-2,
        "logging_strategy": "epoch", "use_cpu": True, "report_to": "none", "disable_tqdm": True,
        "gradient_accumulation_steps": 2,
    }  # fmt: skip
    model = tiny.model(name)
    before = copy.deepcopy(model.state_dict())
    collator = DataCollatorWithPadding(tokenizer)
    if stock:
        trainer = Trainer(
            model, TrainingArguments(save_steps=1, **settings), collator, train_dataset=dataset, eval_dataset=dataset
        )
    else:
        arguments = VATTrainingArguments(compress_epochs=1, learn_epochs=1, save_strategy="epoch", **settings)
        trainer = VATTrainer(
            model, arguments, train_dataset=dataset, eval_dataset=dataset, data_collator=collator,
            processing_class=tokenizer,
        )  # fmt: skip
    trainer.train()
    if not stock:
        assert [log["phase"] for log in trainer.state.log_history if "loss" in log] == ["compress", "learn"]
    for group in ("encoder", "attention", "bottleneck", "learner_head", "compressor_head"):
        moved = [not torch.equal(before[key], t) for key, t in model.state_dict().items() if key.startswith(group)]
        assert any(moved), group
    prediction = trainer.predict(dataset)
    assert prediction.predictions.shape == (32, 2)
    trainer.save_model(tmp_path / "best")
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / "best").eval()
    batch = collator([{key: row[key] for key in ("input_ids", "attention_mask")} for row in dataset.select(range(8))])
    torch.testing.assert_close(loaded(**batch).logits, torch.tensor(prediction.predictions[:8]), atol=1e-5, rtol=0)


# Explanations


def test_the_pipeline_passes_the_type_of_xlnets_last_token(tiny):
    model, seen = tiny.model("xlnet").eval(), []
    model.encoder.register_forward_pre_hook(
        lambda module, args, given: seen.append(given["token_type_ids"].tolist()), with_kwargs=True
    )
    pipeline("text-classification-explained", model=model, tokenizer=tiny.tokenizer("xlnet"))("good film")
    assert seen == [[[0, 0, 0, 2]]]


@pytest.mark.parametrize(
    ("name", "positions"), [("bert", 34), ("roberta", 32), ("xlm_roberta", 32), ("gpt2", 34), ("xlnet", 2**31 - 1)]
)
def test_maximum_length_counts_the_positions_a_text_can_have(tiny, name, positions):
    tokenizer, model = tiny.tokenizer(name), tiny.model(name).eval()
    tokenizer.model_max_length = 10**30
    assert maximum_length(model, tokenizer) == positions
    if positions < 100:
        ids = torch.full((1, positions), 5)
        assert torch.isfinite(model(input_ids=ids).logits).all()
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=torch.full((1, positions + 1), 5))
    for encoder in WORD_ENCODERS:
        assert maximum_length(tiny.model(encoder), tokenizer) == 2**31 - 1


def test_new_weights_on_a_word_encoder_are_as_wide_as_its_own():
    encoder = WordEncoderConfig(vocab_size=30, encoder_type="lstm", embedding_size=64, hidden_size=256)
    config = EncoderVATConfig(encoder=encoder)
    assert config.initializer_range == pytest.approx(0.1 / 3**0.5)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = EncoderForVATClassification(config)
    assert model.attention.projection.weight.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.05)
    assert EncoderVATConfig().initializer_range == 0.02
    assert EncoderVATConfig(encoder=encoder, initializer_range=0.5).initializer_range == 0.5
