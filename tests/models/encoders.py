"""Encoders and decoders of transformers in tiny random configurations, and what becomes of each: the table of the documentation.

python tests/models/encoders.py        # writes docs/concepts/encoders.md
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast

from hf_vat import EncoderForVATClassification, EncoderWithVMask, explain
from hf_vat.errors import InputError
from hf_vat.models.configuration_vat import SEE_PADDING
from hf_vat.models.reading import sees_padding
from hf_vat.pretrained import reason

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "encoders.md"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
WORDS = [
    "a",
    "the",
    "film",
    "movie",
    "plot",
    "actor",
    "very",
    "scene",
    "and",
    "it",
    "is",
    "good",
    "great",
    "superb",
    "lovely",
    "bad",
    "awful",
    "boring",
    "dull",
]
TEXTS = ["the plot and the actor is very dull", "good film", "a bad movie is a bad movie"]
LONG = " ".join(WORDS * 4)

_IDS = {"vocab_size": len(SPECIAL) + len(WORDS), "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
_BERT = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "initializer_range": 0.2,
    "max_position_embeddings": 34, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, **_IDS,
}  # fmt: skip
_DEBERTA = {"relative_attention": True, "position_biased_input": False, "type_vocab_size": 0, "pos_att_type": "p2c|c2p"}
_T5 = {
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 32,
    "num_layers": 2,
    "num_heads": 2,
    "dropout_rate": 0.0,
    "decoder_start_token_id": 1,
} | _IDS
_DECODER = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 32,
    "max_position_embeddings": 34, "initializer_range": 0.2, "head_dim": 8, **_IDS,
}  # fmt: skip
_BART = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 34, "dropout": 0.0, **_IDS,
}  # fmt: skip
# Name to show, class of the configuration, its settings.
FAMILIES: dict[str, tuple[str, dict]] = {
    "ALBERT": ("AlbertConfig", {"embedding_size": 8, **_BERT}),
    "BART": ("BartConfig", _BART),
    "BERT": ("BertConfig", _BERT),
    "BigBird": ("BigBirdConfig", {"attention_type": "original_full", **_BERT}),
    "BLOOM": ("BloomConfig", {"hidden_size": 16, "n_layer": 2, "n_head": 2, "initializer_range": 0.2, **_IDS}),
    "CamemBERT": ("CamembertConfig", {"type_vocab_size": 1, **_BERT}),
    "ConvBERT": ("ConvBertConfig", {"embedding_size": 16, "conv_kernel_size": 3, "head_ratio": 1, **_BERT}),
    "DeBERTa": ("DebertaConfig", _DEBERTA | _BERT),
    "DeBERTa v2, v3": (
        "DebertaV2Config", {"position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True, **_DEBERTA, **_BERT}
    ),
    "DistilBERT": (
        "DistilBertConfig",
        {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 34, "dropout": 0.0,
         "attention_dropout": 0.0, "initializer_range": 0.2, **_IDS},
    ),
    "ELECTRA": ("ElectraConfig", {"embedding_size": 8, **_BERT}),
    "ERNIE": ("ErnieConfig", _BERT),
    "Falcon": (
        "FalconConfig",
        {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.2, **_IDS},
    ),
    "FNet": ("FNetConfig", {"tpu_short_seq_length": 34, **_BERT}),
    "Funnel": (
        "FunnelConfig",
        {"block_sizes": [1, 1], "d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 32, "hidden_dropout": 0.0,
         "attention_dropout": 0.0, "initializer_std": 0.2, **_IDS},
    ),
    "Gemma": ("GemmaConfig", _DECODER),
    "Gemma 2": ("Gemma2Config", {"query_pre_attn_scalar": 8, **_DECODER}),
    "Gemma 3": ("Gemma3TextConfig", {"query_pre_attn_scalar": 8, **_DECODER}),
    "GPT-2": (
        "GPT2Config",
        {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 34, "initializer_range": 0.2, "resid_pdrop": 0.0,
         "embd_pdrop": 0.0, "attn_pdrop": 0.0, **_IDS},
    ),
    "GPT-NeoX": ("GPTNeoXConfig", {k: v for k, v in _DECODER.items() if k not in ("num_key_value_heads", "head_dim")}),
    "I-BERT": ("IBertConfig", _BERT),
    "Llama": ("LlamaConfig", _DECODER),
    "Longformer": ("LongformerConfig", {"attention_window": 8, **_BERT}),
    "Mistral": ("MistralConfig", _DECODER),
    "MobileBERT": (
        "MobileBertConfig", {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16, **_BERT}
    ),
    "ModernBERT": (
        "ModernBertConfig",
        {k: v for k, v in _BERT.items() if "dropout" not in k}
        | {"global_attn_every_n_layers": 2, "local_attention": 16, "cls_token_id": 0, "sep_token_id": 2},
    ),
    "MPNet": ("MPNetConfig", _BERT),
    "mT5": ("MT5Config", _T5),
    "Nyströmformer": ("NystromformerConfig", {"num_landmarks": 4, "segment_means_seq_len": 4, **_BERT}),
    "OPT": (
        "OPTConfig",
        {"hidden_size": 16, "ffn_dim": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "word_embed_proj_dim": 16,
         "max_position_embeddings": 34, "dropout": 0.0, "init_std": 0.2, **_IDS},
    ),
    "Phi": ("PhiConfig", {k: v for k, v in _DECODER.items() if k != "head_dim"}),
    "Qwen 2": ("Qwen2Config", {k: v for k, v in _DECODER.items() if k != "head_dim"}),
    "Qwen 3": ("Qwen3Config", _DECODER),
    "RemBERT": ("RemBertConfig", {"input_embedding_size": 8, "output_embedding_size": 16, **_BERT}),
    "RoBERTa": ("RobertaConfig", {"type_vocab_size": 1, **_BERT}),
    "RoFormer": ("RoFormerConfig", _BERT),
    "SqueezeBERT": ("SqueezeBertConfig", {"embedding_size": 16, **_BERT}),
    "T5": ("T5Config", _T5),
    "UMT5": ("UMT5Config", _T5),
    "XLM-RoBERTa": ("XLMRobertaConfig", {"type_vocab_size": 1, **_BERT}),
    "XLNet": (
        "XLNetConfig",
        {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32, "initializer_range": 0.2, "dropout": 0.0, **_IDS},
    ),
}  # fmt: skip
COLUMNS = ("encoder", "`model_type`", "attention of VAT", "word mask", "windows", "another's classifier")


def config_of(family: str):
    name, settings = FAMILIES[family]
    return getattr(transformers, name)(**settings)


def tokenizer(special: bool = True) -> PreTrainedTokenizerFast:
    backend = Tokenizer(WordLevel({word: place for place, word in enumerate(SPECIAL + WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = Whitespace()
    if special:
        backend.post_processor = TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", pad_token="<pad>",
        unk_token="<unk>", mask_token="<mask>", model_max_length=32, model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


def make(family: str, cls=EncoderForVATClassification, **settings):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        given = {"prefix_tokens": 1, "suffix_tokens": 1, "special_token_ids": [0, 2], "initializer_range": 0.2}
        return cls(cls.config_class(encoder=config_of(family), **(given | settings))).eval()


def attention(family: str) -> None:
    """A text's result is the same alone and in a batch, padded on either side; attention explains, and gradients arrive."""
    model = make(family)
    for side in ("right", "left"):
        batch = tokenizer()(TEXTS, padding=True, return_tensors="pt", padding_side=side)
        together = model(**batch)
        for row, text in enumerate(TEXTS):
            alone = model(**tokenizer()([text], return_tensors="pt"))
            weights = together.token_importance[row][batch["attention_mask"][row].bool()]
            same = torch.allclose(together.logits[row], alone.logits[0], atol=1e-4, rtol=1e-3)
            same = same and torch.allclose(weights, alone.token_importance[0], atol=1e-4, rtol=1e-3)
            assert same or sees_padding(model), f"padding on the {side} changes the result"
    for one in (explain(model, tokenizer(), TEXTS), explain(model, tokenizer(), TEXTS, batch_size=1)):
        torch.testing.assert_close(
            one[1].scores, explain(model, tokenizer(), TEXTS[1:2])[0].scores, atol=1e-4, rtol=1e-3
        )
    for method in ("attention", "occlusion"):
        assert len(explain(model, tokenizer(), TEXTS, method=method)) == len(TEXTS)
    model.train()
    model(**batch, labels=torch.tensor([0, 1, 0])).loss.backward()
    assert any(one.grad is not None and one.grad.abs().sum() > 0 for one in model.encoder.parameters())


def word_mask(family: str) -> None:
    """A mask that is closed changes the result, and gradients arrive at it."""
    model = make(family, EncoderWithVMask, pooling="mean", freeze_embeddings=False)
    batch = tokenizer()(TEXTS, padding=True, return_tensors="pt")
    open_mask = model(**batch)
    with torch.no_grad():
        for parameter in model.word_mask.parameters():
            parameter.mul_(0).sub_(20 if parameter.dim() == 1 else 0)
    changed = (model(**batch).logits - open_mask.logits).abs().max()
    assert changed > 1e-6, "the mask changes nothing"


def in_windows(family: str) -> None:
    """A text of one window is read as ever, a longer one whole."""
    plain, model = make(family), make(family, window_length=16)
    model.load_state_dict(plain.state_dict())
    short = tokenizer()([TEXTS[1]], return_tensors="pt")
    both = tokenizer()([LONG, TEXTS[1]], padding=True, return_tensors="pt")
    found = model(**both)
    same = torch.allclose(found.logits[1], plain(**short).logits[0], atol=1e-4, rtol=1e-3)
    assert same or sees_padding(model), "a text beside a longer one has another result"
    assert (found.token_importance[0] > 0).sum() == len(LONG.split())


def of_others(family: str) -> str:
    """A classifier of transformers on the encoder is explained, by occlusion and by its gradient."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_config(config_of(family)).eval()
    own = tokenizer()
    own.padding_side = "left" if family == "XLNet" else "right"  # as its tokenizer's is: it reads the last token
    for method in ("occlusion", "input_x_gradient"):
        try:
            together = explain(model, own, TEXTS, method=method)
        except InputError:
            if method == "occlusion":
                raise
            return "yes, without gradients"
        [alone] = explain(model, own, TEXTS[1:2], method=method)
        same = torch.allclose(torch.tensor(together[1].scores), torch.tensor(alone.scores), atol=1e-4, rtol=1e-2)
        assert same, "the scores of a text depend on its batch"
    return "yes"


CHECKS: tuple[Callable[[str], str | None], ...] = (attention, word_mask, in_windows, of_others)


def cell(check: Callable[[str], str | None], family: str) -> str:
    """Yes, or why not: what a refusal says up to its first stop, or what a check found."""
    try:
        found = check(family) or "yes"
    except (ValueError, StrictDataclassError) as error:
        return f"refused: {_short(error)}"
    except (AssertionError, IndexError, RuntimeError) as error:
        return f"no: {_short(error)}"
    in_batches = ", in batches of equal lengths" * (config_of(family).model_type in SEE_PADDING)
    return f"{found}{in_batches}" if check in (attention, of_others) else found


def _short(error: Exception) -> str:
    text = reason(error)
    text = text.replace("`", "").replace("|", "/")
    return text.partition(";")[0].partition(". ")[0].rstrip(".")[:110]


def row(family: str) -> str:
    cells = [cell(check, family) for check in CHECKS]
    return f"| {family} | `{config_of(family).model_type}` | {' | '.join(cells)} |"


def page(rows: list[str]) -> str:
    text = PAGE.read_text(encoding="utf-8")
    before, begin, rest = text.partition("<!-- table -->\n")
    _, end, after = rest.partition("<!-- end of table -->\n")
    table = "\n".join([f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", *rows])
    return f"{before}{begin}\n{table}\n\n{end}{after}"


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    rows = []
    for family in FAMILIES:
        rows.append(row(family))
        print(rows[-1], flush=True)
    shown = page(rows)
    PAGE.write_text(shown, encoding="utf-8")
    sys.exit()
