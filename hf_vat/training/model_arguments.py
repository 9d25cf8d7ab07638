"""Arguments of a run that say which model is trained."""

from dataclasses import dataclass, field, make_dataclass
from typing import Any

from hf_vat.arguments import argument
from hf_vat.errors import InputError
from hf_vat.models import BertVMaskConfig, EncoderVMaskConfig
from hf_vat.models.setting import Setting, unmet_need
from hf_vat.options import MODEL_OPTIONS, WORD_OPTIONS

from .recipes import PRESETS


def _option(name: str, one: Setting, default: Any) -> tuple[str, Any, Any]:
    """The field of a setting for [`HfArgumentParser`]."""
    metadata = {"help": f"{one.help}{_by_default(one)}."} | ({} if one.choices is None else {"choices": one.choices})
    kind = one.value_type
    return name, kind if default is not None else kind | None, field(default=default, metadata=metadata)


def _by_default(one: Setting) -> str:
    if one.default is None or one.option in WORD_OPTIONS:
        return ""
    masked = [getattr(config, one.name) or "max" for config in (BertVMaskConfig, EncoderVMaskConfig)]
    others = " or ".join(map(str, dict.fromkeys(masked))) if set(masked) != {one.default} else ""
    return f"; by default {one.default}{others and f', with --mask_type {others}'}"


@dataclass
class _Checkpoint:
    model_name_or_path: str = argument(
        "google-bert/bert-base-uncased",
        "Checkpoint of an encoder, such as BERT or RoBERTa: a Hub id or a local folder.",
    )
    model_revision: str = argument("main", "Branch, tag or commit of a Hub checkpoint.")


# What is not given of a model may be decided by a checkpoint; a word encoder always begins anew.
_Settings: Any = make_dataclass(
    "_Settings",
    [_option(name, one, None) for name, one in MODEL_OPTIONS.items()]
    + [_option(name, one, one.default) for name, one in WORD_OPTIONS.items()],
    bases=(_Checkpoint,),
)


@dataclass
class ModelArguments(_Settings):
    """The encoder and what is put on top of it; see [`BertVATConfig`], [`EncoderVATConfig`], [`WordEncoderConfig`].

    With `mask_type` the model is a [`BertWithVMask`] or [`EncoderWithVMask`], see [`VATSettings`]. What is not given is then
    as in their configuration, or as in the checkpoint of ours that `model_name_or_path` names: the second stage of VMASK
    keeps encoder, pooling and head of the first. `mask_type="none"` is the paper's base model, whose embeddings are frozen
    too, and with `weight_decay` its ℓ2 baseline (AdamW, so the decay is decoupled; biases and layer norms have none).

    What a `preset` settles is in `hf_vat.training.recipes.PRESETS`.

    Raises:
        InputError: if there is no such preset.
    """

    mask_type: str | None = argument(
        None,
        "Mask on the words: VMASK, its competitors L2X and IBA, or 'none', the base model they compare with.",
        choices=MODEL_OPTIONS["mask_type"].choices,
    )
    preset: str | None = argument(
        None,
        "Settings of the model by name: 'faithful' is VAT whose signed scores of its attention are more faithful "
        "(docs/faithful.md). Options that are given beside it win.",
        choices=list(PRESETS),
    )
    max_length: int = argument(
        256, "Tokens per text at most, special ones included; fewer where the checkpoint takes fewer."
    )
    word_encoder: str | None = argument(
        None, "Train a word encoder from scratch instead of a checkpoint.", choices=WORD_OPTIONS["word_encoder"].choices
    )
    word_preset: str = argument("vat", "How a word encoder's words are cut.", choices=["plain", "vat", "vmask", "jw"])
    min_count: int = argument(
        1,
        "How often a word must occur in the training data to be one of a word encoder's, unless it is among "
        "--extra_words. VMASK's threshold t is t + 1 here.",
    )
    vectors: str | None = argument(None, "Pretrained vectors of a word encoder: a file, a folder or a Hub id.")
    extra_words: int = argument(
        20_000, "Frequent words of the vectors that a word encoder knows beside those of the training data."
    )

    def __post_init__(self):
        if self.preset is not None:
            if self.preset not in PRESETS:
                raise InputError(f"preset is {self.preset!r}; there is {', '.join(map(repr, PRESETS))}, or None.")
            for name, value in PRESETS[self.preset].items():
                if getattr(self, name) is None:
                    setattr(self, name, value)
        names = ("pooling", "bottleneck", "heads", "kl_reduction", "prior", "beta")
        for name in names if self.mask_type is None else ():
            one = MODEL_OPTIONS[name]
            if getattr(self, name) is None and unmet_need(one, lambda other: getattr(self, other)) is None:
                setattr(self, name, one.default)
