"""EncoderForVATClassification over the encoders of the Hub and over word encoders, at toy size."""

import copy
import json
import os
import subprocess
import sys

import hypothesis
import pytest
import torch
from hypothesis import strategies as st
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    AlbertConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    BartConfig,
    BertConfig,
    CLIPConfig,
    DataCollatorWithPadding,
    DebertaConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    FunnelConfig,
    GPT2Config,
    ModernBertConfig,
    MPNetConfig,
    NystromformerConfig,
    PerceiverConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    T5Config,
    T5Model,
    Trainer,
    TrainingArguments,
    TrOCRConfig,
    ViTConfig,
    XLMRobertaConfig,
    XLNetConfig,
    pipeline,
)
from transformers import (
    initialization as init,
)

from hf_vat import EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig, explain
from hf_vat.data.vocabulary import train_word_tokenizer
from hf_vat.inference import model_inputs
from hf_vat.models.words import maximum_length
from hf_vat.training import VATTrainer, VATTrainingArguments

WORDS = [
    "a", "the", "film", "movie", "plot", "actor", "very", "scene", "and", "it", "is",
    "good", "great", "superb", "lovely", "bad", "awful", "boring", "dull",
]  # fmt: skip
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]  # padding has id 1, as in RoBERTa
TASK = "text-classification-explained"

SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
VOCABULARY = {"vocab_size": len(SPECIAL) + len(WORDS), "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
# Large weights, so that the outputs of an untrained model differ visibly between texts.
BERT = SMALL | VOCABULARY | {"max_position_embeddings": 34, "initializer_range": 0.2}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
DEBERTA = {
    "relative_attention": True, "position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True,
    "pos_att_type": "p2c|c2p", "position_biased_input": False, "type_vocab_size": 0,
}  # fmt: skip

CONFIGURATIONS = {
    "bert": lambda: BertConfig(**BERT, **NO_DROPOUT),
    "distilbert": lambda: DistilBertConfig(
        dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=34, initializer_range=0.2, dropout=0.0,
        attention_dropout=0.0, **VOCABULARY,
    ),
    "roberta": lambda: RobertaConfig(type_vocab_size=1, **BERT, **NO_DROPOUT),
    "xlm_roberta": lambda: XLMRobertaConfig(type_vocab_size=1, **BERT, **NO_DROPOUT),
    "deberta_v2": lambda: DebertaV2Config(**DEBERTA, **BERT, **NO_DROPOUT),
    "deberta_v2_conv": lambda: DebertaV2Config(conv_kernel_size=3, conv_act="gelu", **DEBERTA, **BERT, **NO_DROPOUT),
    "electra": lambda: ElectraConfig(embedding_size=8, **BERT, **NO_DROPOUT),
    "modernbert": lambda: ModernBertConfig(
        global_attn_every_n_layers=2, local_attention=4, cls_token_id=0, sep_token_id=2, **BERT
    ),
    "xlnet": lambda: XLNetConfig(
        d_model=16, n_layer=2, n_head=2, d_inner=32, initializer_range=0.2, dropout=0.0, **VOCABULARY
    ),
    "gpt2": lambda: GPT2Config(
        n_embd=16, n_layer=2, n_head=2, n_positions=34, initializer_range=0.2, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, **VOCABULARY,
    ),
    "lstm": lambda: WordEncoderConfig(
        vocab_size=len(WORDS) + 3, embedding_size=8, hidden_size=16, bidirectional=True, dropout=0.0,
        initializer_range=0.5,
    ),
    "cnn": lambda: WordEncoderConfig(
        vocab_size=len(WORDS) + 3, encoder_type="cnn", embedding_size=8, hidden_size=18, dropout=0.0,
        initializer_range=0.5,
    ),
}  # fmt: skip
NAMES = list(CONFIGURATIONS)
WORD_ENCODERS = {"lstm", "cnn"}
LAYOUTS = {"xlnet": (0, 2), "gpt2": (0, 0), "lstm": (0, 0), "cnn": (0, 0)}  # (1, 1) for all others
TEMPLATES = {(1, 1): "<s> $A </s>", (0, 2): "$A:0 </s>:0 <s>:2", (0, 0): None}
SDPA = set(NAMES) - {"deberta_v2", "deberta_v2_conv", "xlnet"}
ATT = {"bottleneck": "none"}
TEXTS = ["good film", "the plot and the actor is very dull", "a bad movie"]


def make_tokenizer(name: str) -> PreTrainedTokenizerFast:
    if name in WORD_ENCODERS:
        return train_word_tokenizer([" ".join(WORDS)], model_max_length=32)
    backend = Tokenizer(WordLevel({word: index for index, word in enumerate(SPECIAL + WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = Whitespace()
    template = TEMPLATES[LAYOUTS.get(name, (1, 1))]
    if template:
        backend.post_processor = TemplateProcessing(single=template, special_tokens=[("<s>", 0), ("</s>", 2)])
    inputs = ["input_ids", "attention_mask"] + (["token_type_ids"] if name in ("bert", "electra", "xlnet") else [])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>",
        pad_token="<pad>", unk_token="<unk>", mask_token="<mask>", model_max_length=32, model_input_names=inputs,
        padding_side="left" if name in ("xlnet", "gpt2") else "right",
    )  # fmt: skip


def make_model(name: str, encoder=None, **settings) -> EncoderForVATClassification:
    """The same weights each time."""
    prefix, suffix = LAYOUTS.get(name, (1, 1))
    defaults = {"prefix_tokens": prefix, "suffix_tokens": suffix, "initializer_range": 0.2, "classifier_dropout": 0.0}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = encoder or CONFIGURATIONS[name]()
        return EncoderForVATClassification(EncoderVATConfig(encoder=encoder, **(defaults | settings)))


def batch_of(name: str, texts=TEXTS, padding_side="right", **kwargs) -> dict:
    kwargs = {"padding": True, "return_tensors": "pt", "padding_side": padding_side} | kwargs
    return dict(make_tokenizer(name)(texts, **kwargs))


def save_encoder(name: str, folder, dtype=torch.float32) -> AutoModel:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        encoder = AutoModel.from_config(CONFIGURATIONS[name]()).to(dtype)
    encoder.save_pretrained(folder)
    make_tokenizer(name).save_pretrained(folder)
    return encoder


def numbers(result: dict) -> list[float]:
    return [result["score"], *(word["score"] for word in result["words"])]


# Attention and pooling


@pytest.mark.parametrize("name", NAMES)
def test_c04_attention_lies_on_the_words_alone(name):
    model, batch = make_model(name).eval(), batch_of(name, return_special_tokens_mask=True)
    special = batch.pop("special_tokens_mask").bool()  # padding counts as special
    importance = model(**batch).token_importance
    assert (importance[special] == 0).all() and (importance[~special] > 0).all()
    assert (~special).sum(1).tolist() == [2, 8, 3]
    torch.testing.assert_close(importance.sum(1), torch.ones(3), atol=1e-5, rtol=0)
    # A mask that is given replaces the counts: here it bars the first word, and no special token.
    barred = torch.zeros_like(special)
    barred[:, LAYOUTS.get(name, (1, 1))[0]] = True
    importance = model(**batch, special_tokens_mask=barred).token_importance
    allowed = batch["attention_mask"].bool() & ~barred
    assert (importance[~allowed] == 0).all() and (importance[allowed] > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_c04_padding_on_the_right_never_matters(name):
    systems = [{}, {"predict_from": "compressor"}, {"pooling": "max"} | ATT, {"pooling": "mean"} | ATT]
    if LAYOUTS.get(name, (1, 1))[0]:
        systems.append({"pooling": "first"} | ATT)
    for settings in systems:
        model = make_model(name, **settings).eval()
        together, padded = model(**batch_of(name)), model(**batch_of(name, padding="max_length", max_length=30))
        torch.testing.assert_close(padded.logits, together.logits, atol=1e-5, rtol=0)
        assert together.logits.std(0).min() > 1e-4, "the texts cannot be told apart"
        for row, text in enumerate(TEXTS):
            alone = model(**batch_of(name, [text]))
            torch.testing.assert_close(together.logits[row], alone.logits[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_c19_padding_on_the_left_never_matters(name):
    model = make_model(name).eval()
    right, batch = model(**batch_of(name)), batch_of(name, padding_side="left")
    left = model(**batch)
    mask = batch["attention_mask"].bool()
    assert (left.token_importance[~mask] == 0).all()
    torch.testing.assert_close(left.logits, right.logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        left.token_importance[mask], right.token_importance[batch_of(name)["attention_mask"].bool()], atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("name", ["gpt2", "distilbert", "albert", "electra", "deberta", "deberta_v2", "nystromformer"])
def test_f15_a_text_has_the_same_logits_in_every_batch(name):
    """Encoders with learned absolute positions; the last counts them from 2."""
    position_biased = {"position_biased_input": True, "relative_attention": True}
    encoder = {
        "albert": lambda: AlbertConfig(embedding_size=8, **BERT, **NO_DROPOUT),
        "deberta": lambda: DebertaConfig(pos_att_type="p2c|c2p", **position_biased, **BERT, **NO_DROPOUT),
        "deberta_v2": lambda: DebertaV2Config(**DEBERTA | position_biased, **BERT, **NO_DROPOUT),
        "nystromformer": lambda: NystromformerConfig(
            num_landmarks=34, segment_means_seq_len=34, conv_kernel_size=1, **BERT, **NO_DROPOUT
        ),
    }.get(name, CONFIGURATIONS.get(name))()
    model = make_model(name, encoder).eval()
    tokenizer = make_tokenizer(name)

    @hypothesis.settings(max_examples=20, deadline=None, derandomize=True)
    @hypothesis.given(
        texts=st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), min_size=2, max_size=4)
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


@pytest.mark.parametrize("name", NAMES)
def test_embeddings_stand_for_ids(name):
    model, batch = make_model(name).eval(), batch_of(name, TEXTS[:1])
    expected = model(**batch).logits
    embeddings = model.get_input_embeddings()(batch.pop("input_ids"))
    torch.testing.assert_close(model(inputs_embeds=embeddings, **batch).logits, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_c06_empty_rows_are_finite_and_leave_others_alone(name):
    for settings in ({}, {"pooling": "max"} | ATT, {"pooling": "mean"} | ATT):
        model, batch = make_model(name, **settings).eval(), batch_of(name)
        before = model(**batch)
        batch["attention_mask"] = batch["attention_mask"].clone()
        batch["attention_mask"][1] = 0
        out = model(**batch)
        assert torch.isfinite(out.logits).all()
        torch.testing.assert_close(out.logits[[0, 2]], before.logits[[0, 2]], atol=1e-5, rtol=0)
        if out.token_importance is not None:
            assert (out.token_importance[1] == 0).all()


@pytest.mark.parametrize("pooling", ["attention", "max", "mean"])
@pytest.mark.parametrize("name", sorted(WORD_ENCODERS))
def test_c54_a_batch_without_any_word(name, pooling):
    model = make_model(name, pooling=pooling, **ATT).train()
    empty = torch.zeros(2, 0, dtype=torch.long)
    out = model(input_ids=empty, attention_mask=empty, labels=torch.tensor([0, 1]))
    out.loss.backward()
    padding = torch.zeros(2, 1, dtype=torch.long)
    torch.testing.assert_close(out.logits, model(input_ids=padding, attention_mask=padding).logits)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NAMES)
def test_c06_half_precision_is_finite(name, dtype):
    model = make_model(name).to(dtype).train()
    out = model(**batch_of(name), labels=torch.tensor([1, 0, 0]))
    out.loss.backward()
    assert out.logits.dtype == dtype and torch.isfinite(out.logits).all() and torch.isfinite(out.loss)
    torch.testing.assert_close(out.token_importance.sum(1), torch.ones(3), atol=1e-2, rtol=0)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", NAMES)
def test_c16_evaluation_never_samples(name):
    model = make_model(name, predict_from="compressor").eval()
    batch = batch_of(name)
    assert torch.equal(model(**batch).logits, model(**batch).logits)
    model.train()
    assert not torch.equal(model(**batch).logits, model(**batch).logits)


# Phases


@pytest.mark.parametrize("name", NAMES)
def test_c20_a_step_moves_the_phase_and_nothing_else(name):
    for phase, groups in [
        ("compress", {"attention", "bottleneck", "compressor_head"}),
        ("learn", {"encoder", "learner_head"}),
        ("finetune", {"encoder", "attention", "learner_head"}),
        ("joint", {"encoder", "attention", "bottleneck", "learner_head", "compressor_head"}),
    ]:
        model = make_model(name).train()
        seen = []
        model.encoder.register_forward_hook(lambda module, args, out, seen=seen: seen.append(out.last_hidden_state))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        model.set_phase(phase)
        before = {parameter: tensor.detach().clone() for parameter, tensor in model.named_parameters()}
        model(**batch_of(name), labels=torch.tensor([1, 0, 0])).loss.backward()
        optimizer.step()
        moved = {
            parameter for parameter, tensor in model.named_parameters() if not torch.equal(before[parameter], tensor)
        }
        assert {parameter.partition(".")[0] for parameter in moved} == groups, phase
        assert moved >= {parameter for parameter in before if parameter.partition(".")[0] in groups - {"encoder"}}
        assert model.training and model.encoder.training == (phase != "compress")
        assert seen[0].requires_grad == (phase != "compress")


@pytest.mark.parametrize("name", NAMES)
def test_gradient_checkpointing_changes_no_gradient(name):
    labels, gradients = torch.tensor([1, 0, 0]), []
    for checkpointing in (False, True):
        model = make_model(name).train()
        model.set_phase("finetune")  # the others sample
        if checkpointing and name == "xlnet":  # transformers has none for it
            with pytest.raises(ValueError, match="does not support activation checkpointing"):
                model.gradient_checkpointing_enable()
            return
        if checkpointing:
            model.gradient_checkpointing_enable()
            assert model.is_gradient_checkpointing
        model(**batch_of(name), labels=labels).loss.backward()
        gradients.append({key: p.grad for key, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][key], gradient, atol=1e-7, rtol=1e-5, msg=key)


# Saving and loading


@pytest.mark.parametrize("name", NAMES)
def test_c01_c03_saved_weights_come_back_bitwise(name, tmp_path):
    model = make_model(name, prior="learned").eval()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.add_(number / 1000)
    model.save_pretrained(tmp_path)
    loaded, info = AutoModelForSequenceClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert type(loaded) is EncoderForVATClassification and type(loaded.encoder) is type(model.encoder)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    for key, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[key]), key
    ours, theirs = model(**batch_of(name)), loaded.eval()(**batch_of(name))
    assert torch.equal(ours.logits, theirs.logits) and torch.equal(ours.token_importance, theirs.token_importance)
    saved = load_file(tmp_path / "model.safetensors")
    assert sum(tensor.numel() for tensor in saved.values()) == sum(p.numel() for p in model.parameters())


def test_c01_c75_c76_folders_alone_work_in_a_process_without_hf_vat(tmp_path):
    expected = []
    for name in ("lstm", "roberta"):
        model, folder = make_model(name, id2label={0: "neg", 1: "pos"}).eval(), tmp_path / name
        model.save_pretrained(folder)
        make_tokenizer(name).save_pretrained(folder)
        assert set(os.listdir(folder)) >= {
            "attention.py", "bottleneck.py", "configuration_vat.py", "configuration_word_encoder.py",
            "explained_pipeline.py", "modeling_vat.py", "modeling_word_encoder.py", "words.py",
        }  # fmt: skip
        expected.append([model(**batch_of(name)).logits.tolist(), explained(model, name)(TEXTS)])
    code = """
import json, sys
sys.modules["hf_vat"] = None  # makes "import hf_vat" fail
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline
folders, texts, results = sys.argv[2:], json.loads(sys.argv[1]), []
for folder in folders:
    try:
        AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=False)
        raise SystemExit("loaded without trust_remote_code")
    except ValueError as error:
        assert "trust_remote_code" in str(error), error
    model = AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    model.save_pretrained(folder + " again")
    tokenizer.save_pretrained(folder + " again")
    again = AutoModelForSequenceClassification.from_pretrained(folder + " again", trust_remote_code=True).eval()
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    logits = model(**batch).logits.tolist()
    assert again(**batch).logits.tolist() == logits
    explain = pipeline(model=folder + " again", trust_remote_code=True)
    results.append([logits, explain(texts)])
print(json.dumps(results))
"""
    finished = subprocess.run(
        [sys.executable, "-c", code, json.dumps(TEXTS), *(str(tmp_path / name) for name in ("lstm", "roberta"))],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=240,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    for (logits, results), (our_logits, ours) in zip(json.loads(finished.stdout), expected, strict=True):
        assert logits == our_logits
        for result, our in zip(results, ours, strict=True):
            assert result["label"] == our["label"] and numbers(result) == pytest.approx(numbers(our), abs=1e-6)


def test_half_precision_checkpoints_load_in_the_type_asked_for(tmp_path):
    make_model("bert").to(torch.bfloat16).save_pretrained(tmp_path / "half")
    half = EncoderForVATClassification.from_pretrained(tmp_path / "half")
    full = EncoderForVATClassification.from_pretrained(tmp_path / "half", dtype=torch.float32)
    full.save_pretrained(tmp_path / "full")
    again = EncoderForVATClassification.from_pretrained(tmp_path / "full")
    for model, dtype in ((half, torch.bfloat16), (full, torch.float32), (again, torch.float32)):
        assert {parameter.dtype for parameter in model.parameters()} == {dtype}


@pytest.mark.parametrize("name", ["bert", "gpt2", "lstm"])
def test_a_vocabulary_that_has_grown_travels(name, tmp_path):
    model = make_model(name)
    model.resize_token_embeddings(40)
    model.save_pretrained(tmp_path)
    loaded = EncoderForVATClassification.from_pretrained(tmp_path)
    assert loaded.get_input_embeddings().num_embeddings == loaded.config.vocab_size == 40
    assert torch.equal(loaded.get_input_embeddings().weight, model.get_input_embeddings().weight)


def test_c12_other_number_of_classes_names_the_layers(tmp_path):
    three = make_model("distilbert", num_labels=3, id2label={0: "neg", 1: "neutral", 2: "pos"})
    three.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"learner_head.out_proj.weight is \(3, 16\).*\(2, 16\).*ignore_mismatched"):
        EncoderForVATClassification.from_pretrained(tmp_path, num_labels=2)
    two = EncoderForVATClassification.from_pretrained(tmp_path, num_labels=2, ignore_mismatched_sizes=True)
    assert two.config.id2label == {0: "LABEL_0", 1: "LABEL_1"}
    for key, tensor in three.state_dict().items():
        assert torch.equal(tensor, two.state_dict()[key]) or "out_proj" in key, key


def test_c13_label_names_survive_and_never_disagree(tmp_path):
    make_model("lstm", id2label={"0": "neg", "1": "pos"}).save_pretrained(tmp_path)
    loaded = EncoderForVATClassification.from_pretrained(tmp_path)
    assert loaded.config.id2label == {0: "neg", 1: "pos"} and loaded.config.label2id == {"neg": 0, "pos": 1}
    wider = EncoderVATConfig.from_pretrained(tmp_path, num_labels=3)
    assert len(wider.id2label) == wider.num_labels == 3
    assert EncoderVATConfig.from_pretrained(tmp_path, id2label={0: "no", 1: "yes"}).label2id == {"no": 0, "yes": 1}
    assert EncoderVATConfig(label2id={"neg": 0, "neutral": 1, "pos": 2}).num_labels == 3
    with pytest.raises(ValueError, match="num_labels=3 disagrees"):
        EncoderVATConfig(num_labels=3, id2label={0: "neg", 1: "pos"})
    with pytest.raises(ValueError, match="not the inverse"):
        EncoderVATConfig(id2label={0: "neg", 1: "pos"}, label2id={"neg": 1, "pos": 0})


# Pretrained encoders


@pytest.mark.parametrize("name", NAMES)
def test_a_pretrained_encoder_is_loaded_bitwise_with_its_layout_and_without_pooler(name, tmp_path):
    source = save_encoder(name, tmp_path).state_dict()
    model = EncoderForVATClassification.from_encoder_pretrained(tmp_path, num_labels=3)
    encoder = model.encoder.state_dict()
    assert not any("pooler" in key for key in model.state_dict())
    assert {key for key in source if "pooler" not in key} == encoder.keys()
    assert all(torch.equal(tensor, source[key]) for key, tensor in encoder.items())
    assert (model.config.prefix_tokens, model.config.suffix_tokens) == LAYOUTS.get(name, (1, 1))
    assert all(parameter.abs().max() < 10 for parameter in model.parameters()), "raw memory"
    assert model.eval()(**batch_of(name)).logits.shape == (3, 3)
    model.save_pretrained(tmp_path / "vat")
    again = EncoderForVATClassification.from_pretrained(tmp_path / "vat").eval()
    assert torch.equal(again(**batch_of(name)).logits, model(**batch_of(name)).logits)


def test_arguments_of_the_encoder_and_of_the_classifier_arrive(tmp_path):
    save_encoder("bert", tmp_path / "bert", torch.bfloat16)
    load = EncoderForVATClassification.from_encoder_pretrained
    half = load(tmp_path / "bert", pooling="max", bottleneck="none")
    assert {parameter.dtype for parameter in half.parameters()} == {torch.bfloat16}
    assert half.attention is None and half.eval()(**batch_of("bert")).logits.dtype == torch.bfloat16
    settings = {"dtype": torch.float32, "attn_implementation": "eager"}
    full = load(tmp_path / "bert", make_tokenizer("xlnet"), encoder_kwargs=settings, prefix_tokens=1)
    assert {parameter.dtype for parameter in full.parameters()} == {torch.float32}
    assert full.encoder.config._attn_implementation == "eager"
    assert (full.config.prefix_tokens, full.config.suffix_tokens) == (1, 2)
    save_encoder("lstm", tmp_path / "nested" / "encoder")
    assert load(tmp_path / "nested", encoder_kwargs={"subfolder": "encoder"}).config.suffix_tokens == 0


def test_f43_a_pretrained_encoder_is_built_once(tmp_path, monkeypatch):
    stored = save_encoder("roberta", tmp_path)
    monkeypatch.setattr(AutoModel, "from_config", lambda *args, **kwargs: pytest.fail("a second encoder is built"))
    model = EncoderForVATClassification.from_encoder_pretrained(tmp_path, initializer_range=0.5)
    missing = dict(stored.named_parameters())
    for name, parameter in model.encoder.named_parameters():
        assert torch.equal(parameter, missing.pop(name)), name
    assert all(name.startswith("pooler.") for name in missing)
    assert model.learner_head.dense.weight.std().item() == pytest.approx(0.5, rel=0.2)  # new, by our rule


@pytest.mark.parametrize("name", NAMES)
def test_f63_missing_weights_are_drawn_as_the_encoder_s_own_class_does(name, monkeypatch):
    """As transformers tests its own classes (`test_can_init_all_missing_weights`)."""
    for kind in ("normal_", "trunc_normal_", "uniform_", "xavier_uniform_", "kaiming_uniform_"):

        def seeded(*args, draw=init.TORCH_INIT_FUNCTIONS[kind], **kwargs):
            torch.manual_seed(0)
            return draw(*args, **kwargs)

        monkeypatch.setitem(init.TORCH_INIT_FUNCTIONS, kind, seeded)
    drawn = make_model(name)
    loaded = EncoderForVATClassification.from_pretrained(None, config=copy.deepcopy(drawn.config), state_dict={})
    own = AutoModel.from_config(CONFIGURATIONS[name]()).state_dict()
    for key, value in loaded.state_dict().items():
        torch.testing.assert_close(value, drawn.state_dict()[key], msg=key)
        if key.startswith("encoder."):
            torch.testing.assert_close(value, own[key.removeprefix("encoder.")], msg=key)


def test_f61_what_does_not_turn_tokens_into_vectors_is_refused_by_name():
    small = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
    funnel = FunnelConfig(vocab_size=24, block_sizes=[1, 1], d_model=16, n_head=2, d_head=8, d_inner=32)
    funnel.architectures = ["FunnelBaseModel"]
    for encoder, mentions in [
        (T5Config(d_model=16, is_encoder_decoder=False), "encoder='t5' is an encoder-decoder"),
        (BartConfig(**small, is_encoder_decoder=False), "encoder='bart' is an encoder-decoder"),
        (PerceiverConfig(), "encoder='perceiver' has no single hidden_size"),
        (CLIPConfig(), "encoder='clip' has no single hidden_size"),
        (ViTConfig(**SMALL), "encoder='vit' reads pixel_values, not the token ids of a text"),
        (TrOCRConfig(d_model=16), "encoder='trocr' is no model that AutoModel builds"),
        (funnel, "FunnelBaseModel has fewer vectors than tokens"),
    ]:
        with pytest.raises(ValueError, match=mentions):
            EncoderForVATClassification(EncoderVATConfig(encoder=encoder))


@pytest.mark.parametrize(
    ("encoder", "supports"),
    [
        (AlbertConfig(embedding_size=8, **BERT), False),
        (MPNetConfig(**BERT), False),
        (XLNetConfig(d_model=16, n_layer=1, n_head=2, d_inner=32, **VOCABULARY), False),
        (BertConfig(**BERT), True),
        (WordEncoderConfig(vocab_size=10), True),
    ],
    ids=lambda value: getattr(value, "model_type", None),
)
def test_f61_gradient_checkpointing_is_supported_where_the_encoder_does(encoder, supports):
    model = make_model("bert", encoder)
    assert model.supports_gradient_checkpointing == model.encoder.supports_gradient_checkpointing == supports
    if supports:
        model.gradient_checkpointing_enable()
    else:
        with pytest.raises(ValueError, match="does not support activation checkpointing"):
            model.gradient_checkpointing_enable()


def test_what_cannot_be_an_encoder_is_named(tmp_path):
    small = T5Config(vocab_size=24, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    T5Model(small).save_pretrained(tmp_path / "t5")
    make_tokenizer("bert").save_pretrained(tmp_path / "t5")
    os.remove(tmp_path / "t5" / "model.safetensors")  # refused before it is read
    for attempt in (
        lambda: EncoderForVATClassification.from_encoder_pretrained(tmp_path / "t5"),
        lambda: EncoderVATConfig(encoder=small),
    ):
        with pytest.raises(ValueError, match="'t5' is an encoder-decoder"):
            attempt()
    save_encoder("bert", tmp_path / "bert")
    with pytest.raises(ValueError, match=r"'bert', not 'encoder_vat'.*from_encoder_pretrained"):
        EncoderForVATClassification.from_pretrained(tmp_path / "bert")
    for settings, mentions in [
        ({"prefix_tokens": -1}, "prefix_tokens=-1"),
        ({"suffix_tokens": -1}, "suffix_tokens=-1"),
        ({"pooling": "first", "prefix_tokens": 0, "bottleneck": "none"}, "prefix_tokens=0"),
        ({"heads": "shared", "latent_size": 5}, "hidden_size=768"),
        ({"encoder": "bert"}, "encoder"),
    ]:
        with pytest.raises(Exception, match=mentions):
            EncoderVATConfig(**settings)


def test_word_encoders_have_no_special_tokens_by_default():
    for encoder in (WordEncoderConfig(), WordEncoderConfig().to_dict()):
        config = EncoderVATConfig(encoder=encoder)
        assert (config.prefix_tokens, config.suffix_tokens) == (0, 0)
    config = EncoderVATConfig()
    assert (config.prefix_tokens, config.suffix_tokens) == (1, 1) and config.encoder.model_type == "bert"


def test_funnel_has_two_classes_behind_one_configuration():
    config = FunnelConfig(vocab_size=24, block_sizes=[1, 1], d_model=16, n_head=2, d_head=8, d_inner=32)
    for architectures in (["FunnelModel"], None):  # None: as it is built by hand (F61)
        config.architectures = architectures
        assert make_model("bert", encoder=config).eval()(**batch_of("bert")).logits.shape == (3, 2)


# Attention kernels and further outputs


@pytest.mark.parametrize("name", NAMES)
def test_c09_self_attention_is_given_in_full_or_refused(name, tmp_path):
    make_model(name).save_pretrained(tmp_path)
    batch, logits = batch_of(name), []
    for kernel in ("sdpa", "eager"):
        if kernel == "sdpa" and name not in SDPA:
            with pytest.raises(ValueError, match="does not support"):
                EncoderForVATClassification.from_pretrained(tmp_path, attn_implementation=kernel)
            continue
        model = EncoderForVATClassification.from_pretrained(tmp_path, attn_implementation=kernel).eval()
        assert model.encoder.config._attn_implementation == kernel
        logits.append(model(**batch).logits)
        if kernel == "sdpa" and name not in WORD_ENCODERS:
            with pytest.raises(ValueError, match='attn_implementation="eager"'):
                model(**batch, output_attentions=True)
        elif name in WORD_ENCODERS:
            with pytest.raises(ValueError, match="of which a word encoder has none"):
                model(**batch, output_attentions=True)
        else:
            length = batch["input_ids"].shape[1]
            attentions = model(**batch, output_attentions=True).attentions
            assert [attention.shape for attention in attentions] == [(3, 2, length, length)] * 2
    torch.testing.assert_close(logits[-1], logits[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_c09_what_the_configuration_asks_for_is_returned(name, tmp_path):
    make_model(name).save_pretrained(tmp_path)
    asked = {"output_hidden_states": True, "output_attentions": name not in WORD_ENCODERS}
    model = EncoderForVATClassification.from_pretrained(tmp_path, attn_implementation="eager", **asked).eval()
    out = model(**batch_of(name))
    assert (len(out.attentions) == 2) if asked["output_attentions"] else (out.attentions is None)
    assert len(out.hidden_states) == 2 + (name not in WORD_ENCODERS)
    out = model(**batch_of(name), output_attentions=False, output_hidden_states=False)
    assert out.attentions is None and out.hidden_states is None


# Training


@pytest.mark.parametrize("stock", [False, True])
@pytest.mark.parametrize("name", ["lstm", "distilbert"])
def test_both_trainers_train(name, stock, make_dataset, tmp_path):
    tokenizer = make_tokenizer(name)
    dataset = make_dataset(32).remove_columns(["input_ids", "attention_mask"])
    dataset = dataset.map(lambda rows: tokenizer(rows["text"]), batched=True).remove_columns("text")
    settings = {
        "output_dir": str(tmp_path), "num_train_epochs": 2, "per_device_train_batch_size": 8, "learning_rate": 1e-2,
        "logging_strategy": "epoch", "use_cpu": True, "report_to": "none", "disable_tqdm": True,
        "gradient_accumulation_steps": 2,
    }  # fmt: skip
    model = make_model(name)
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


def explained(model, name: str):
    return pipeline(TASK, model=model, tokenizer=make_tokenizer(name))


@pytest.mark.parametrize("name", NAMES)
def test_explain_and_pipeline_give_the_attention_of_each_word(name):
    model, tokenizer = make_model(name, id2label={0: "neg", 1: "pos"}).eval(), make_tokenizer(name)
    texts = [*TEXTS, "the unheard of plot"]
    explanations = explain(model, tokenizer, texts, method="attention", batch_size=3)
    alone, together = explained(model, name)(texts), explained(model, name)(texts, batch_size=4)
    prefix = LAYOUTS.get(name, (1, 1))[0]
    for text, explanation, one, same in zip(texts, explanations, alone, together, strict=True):
        [row] = [tokenizer(text)["input_ids"]]
        direct = model(**model_inputs(tokenizer, [row]))
        words = text.split()
        importance = direct.token_importance[0, prefix : prefix + len(words)].tolist()
        assert explanation.words == [word["word"] for word in one["words"]] == words
        assert explanation.scores == pytest.approx(importance, abs=1e-6)
        assert sum(explanation.scores) == pytest.approx(1, abs=1e-5)
        assert explanation.probabilities == pytest.approx(direct.logits[0].softmax(-1).tolist(), abs=1e-6)
        expected = pytest.approx([max(explanation.probabilities), *explanation.scores], abs=1e-5)
        assert numbers(one) == expected and numbers(same) == expected
        assert one["label"] == same["label"] == explanation.label_names[explanation.target]


def test_the_pipeline_passes_the_type_of_xlnets_last_token():
    model, seen = make_model("xlnet").eval(), []
    model.encoder.register_forward_pre_hook(
        lambda module, args, given: seen.append(given["token_type_ids"].tolist()), with_kwargs=True
    )
    explained(model, "xlnet")("good film")
    assert seen == [[[0, 0, 0, 2]]]


@pytest.mark.parametrize(
    ("name", "positions"), [("bert", 34), ("roberta", 32), ("xlm_roberta", 32), ("gpt2", 34), ("xlnet", 2**31 - 1)]
)
def test_maximum_length_counts_the_positions_a_text_can_have(name, positions):
    tokenizer, model = make_tokenizer(name), make_model(name).eval()
    tokenizer.model_max_length = 10**30
    assert maximum_length(model, tokenizer) == positions
    if positions < 100:
        ids = torch.full((1, positions), 5)
        assert torch.isfinite(model(input_ids=ids).logits).all()
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=torch.full((1, positions + 1), 5))
    for encoder in WORD_ENCODERS:
        assert maximum_length(make_model(encoder), tokenizer) == 2**31 - 1


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
