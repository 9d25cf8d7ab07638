"""Tiny models of every class, over the encoders of the Hub and over word encoders, with a tokenizer and a batch for each."""

from types import SimpleNamespace

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModel,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    GPT2Config,
    ModernBertConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    XLMRobertaConfig,
    XLNetConfig,
)

from hf_vat import (
    BertForVATClassification,
    BertWithVMask,
    EncoderForVATClassification,
    EncoderWithVMask,
    WordEncoderConfig,
)
from hf_vat.data.vocabulary import train_word_tokenizer

WORDS = [
    "a", "the", "film", "movie", "plot", "actor", "very", "scene", "and", "it", "is",
    "good", "great", "superb", "lovely", "bad", "awful", "boring", "dull",
]  # fmt: skip
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]  # padding has id 1, as in RoBERTa
TEXTS = ["good film", "the plot and the actor is very dull", "a bad movie"]
VOCABULARY = {"vocab_size": len(SPECIAL) + len(WORDS), "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
# Large weights, so that the outputs of an untrained model differ visibly between texts.
SIZES = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 34, "initializer_range": 0.2, **VOCABULARY,
}  # fmt: skip
BERT = SIZES | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
DEBERTA = {
    "relative_attention": True, "position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True,
    "pos_att_type": "p2c|c2p", "position_biased_input": False, "type_vocab_size": 0,
}  # fmt: skip
WORD_ENCODER = {"vocab_size": len(WORDS) + 3, "embedding_size": 8, "dropout": 0.0, "initializer_range": 0.5}
ENCODERS = {
    "bert_encoder": lambda: BertConfig(**BERT),
    "distilbert": lambda: DistilBertConfig(
        dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=34, initializer_range=0.2, dropout=0.0,
        attention_dropout=0.0, **VOCABULARY,
    ),
    "roberta": lambda: RobertaConfig(type_vocab_size=1, **BERT),
    "xlm_roberta": lambda: XLMRobertaConfig(type_vocab_size=1, **BERT),
    "deberta_v2": lambda: DebertaV2Config(**DEBERTA, **BERT),
    "deberta_v2_conv": lambda: DebertaV2Config(conv_kernel_size=3, conv_act="gelu", **DEBERTA, **BERT),
    "electra": lambda: ElectraConfig(embedding_size=8, **BERT),
    "modernbert": lambda: ModernBertConfig(
        global_attn_every_n_layers=2, local_attention=4, cls_token_id=0, sep_token_id=2, **SIZES
    ),
    "xlnet": lambda: XLNetConfig(
        d_model=16, n_layer=2, n_head=2, d_inner=32, initializer_range=0.2, dropout=0.0, **VOCABULARY
    ),
    "gpt2": lambda: GPT2Config(
        n_embd=16, n_layer=2, n_head=2, n_positions=34, initializer_range=0.2, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, **VOCABULARY,
    ),
    "lstm": lambda: WordEncoderConfig(hidden_size=16, bidirectional=True, **WORD_ENCODER),
    "cnn": lambda: WordEncoderConfig(encoder_type="cnn", hidden_size=18, **WORD_ENCODER),
}  # fmt: skip
LAYOUTS = {"xlnet": (0, 2), "gpt2": (0, 0), "lstm": (0, 0), "cnn": (0, 0)}  # (1, 1) for all others
TEMPLATES = {(1, 1): "<s> $A </s>", (0, 2): "$A:0 </s>:0 <s>:2", (0, 0): None}


def layout(name: str) -> tuple[int, int]:
    """How many special tokens there are before and after a text."""
    return LAYOUTS.get(name, (1, 1))


def make_tokenizer(name: str) -> PreTrainedTokenizerFast:
    if name in ("lstm", "cnn"):
        return train_word_tokenizer([" ".join(WORDS)], model_max_length=32)
    backend = Tokenizer(WordLevel({word: index for index, word in enumerate(SPECIAL + WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = Whitespace()
    if TEMPLATES[layout(name)]:
        special = [("<s>", 0), ("</s>", 2)]
        backend.post_processor = TemplateProcessing(single=TEMPLATES[layout(name)], special_tokens=special)
    types = ["token_type_ids"] if name in ("bert", "bert_encoder", "electra", "xlnet") else []
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>",
        pad_token="<pad>", unk_token="<unk>", mask_token="<mask>", model_max_length=32,
        model_input_names=["input_ids", "attention_mask", *types],
        padding_side="left" if name in ("xlnet", "gpt2") else "right",
    )  # fmt: skip


def model_class(name: str, mask: str | None = None) -> type:
    if name == "bert":
        return BertForVATClassification if mask is None else BertWithVMask
    return EncoderForVATClassification if mask is None else EncoderWithVMask


def make_model(name: str, mask: str | None = None, encoder=None, seed: int = 0, **settings):
    """The same weights each time: `"bert"` or an encoder, and a word mask, with `mask_type="none"` too, or none at all."""
    prefix, suffix = layout(name)
    given = {"classifier_dropout": 0.0} | ({} if mask is None else {"mask_type": mask})
    if mask in ("vmask", "iba"):
        given["mask_beta"] = 0.5
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if name == "bert":
            given |= BERT
        else:
            given |= {"encoder": encoder or ENCODERS[name](), "initializer_range": 0.2}
            given |= {"prefix_tokens": prefix, "suffix_tokens": suffix}
        made = model_class(name, mask)
        return made(made.config_class(**(given | settings)))


def make_batch(name: str, texts=TEXTS, padding_side="right", **kwargs) -> dict:
    kwargs = {"padding": True, "return_tensors": "pt", "padding_side": padding_side} | kwargs
    return dict(make_tokenizer(name)(texts, **kwargs))


def content_of(name: str, **batch) -> torch.Tensor:
    """Where the words are in a batch on the right, bool [B, T]: neither special tokens nor padding."""
    number, (prefix, suffix) = batch["attention_mask"].cumsum(1), layout(name)
    return batch["attention_mask"].bool() & (number > prefix) & (number <= number[:, -1:] - suffix)


def save_encoder(name: str, folder, dtype=torch.float32):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        encoder = AutoModel.from_config(ENCODERS[name]()).to(dtype)
    encoder.save_pretrained(folder)
    make_tokenizer(name).save_pretrained(folder)
    return encoder


@pytest.fixture(scope="session")
def tiny():
    """Functions of this file and what they use."""
    return SimpleNamespace(
        model=make_model, model_class=model_class, tokenizer=make_tokenizer, batch=make_batch, content=content_of,
        layout=layout, save_encoder=save_encoder, texts=TEXTS, words=WORDS, bert=BERT, deberta=DEBERTA, encoders=ENCODERS,
        vocabulary=VOCABULARY,
    )  # fmt: skip
