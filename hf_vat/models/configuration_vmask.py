"""Configurations of classifiers with a word mask by default: VMASK (Chen and Ji, EMNLP 2020)."""

from typing import Literal

from huggingface_hub.dataclasses import strict

from .configuration_vat import BertVATConfig, EncoderVATConfig


@strict
class BertVMaskConfig(BertVATConfig):
    r"""
    Configuration of [`BertWithVMask`]: a [`BertVATConfig`] with other defaults.

    They are the paper's: the mask of VMASK over frozen embeddings, the vector of [CLS] and no bottleneck
    (`mask_type="vmask"`, `freeze_embeddings=True`, `pooling="first"`, `bottleneck="none"`). With `mask_type="none"` it is the
    paper's base model; with `pooling="attention"` and `bottleneck="gaussian"` it is VAT over masked words.
    """

    model_type = "bert_vmask"

    pooling: Literal["attention", "first", "max", "mean"] = "first"
    bottleneck: Literal["none", "gaussian"] = "none"
    mask_type: Literal["none", "vmask", "l2x", "iba"] = "vmask"
    freeze_embeddings: bool = True


@strict
class EncoderVMaskConfig(EncoderVATConfig):
    r"""
    Configuration of [`EncoderWithVMask`]: an [`EncoderVATConfig`] with the defaults of [`BertVMaskConfig`].

    But `pooling` is by default `"first"` only where the tokenizer puts a special token before a text, and `"max"` elsewhere,
    as in the paper's CNN and LSTM.
    """

    model_type = "encoder_vmask"

    pooling: Literal["attention", "first", "max", "mean"] | None = None  # type: ignore[assignment]  # until it is made
    bottleneck: Literal["none", "gaussian"] = "none"
    mask_type: Literal["none", "vmask", "l2x", "iba"] = "vmask"
    freeze_embeddings: bool = True


__all__ = ["BertVMaskConfig", "EncoderVMaskConfig"]
