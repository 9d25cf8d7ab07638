"""Classifiers with a mask on their words by default: VMASK (Chen and Ji, EMNLP 2020), L2X and IBA."""

from .configuration_vmask import BertVMaskConfig, EncoderVMaskConfig
from .modeling_vat import BertForVATClassification, EncoderForVATClassification


class BertWithVMask(BertForVATClassification):
    """
    [`BertForVATClassification`] with the defaults of [`BertVMaskConfig`]: a mask on the words, [CLS], no bottleneck.

    `from_pretrained` also takes checkpoints of [`BertForVATClassification`], of which the heads are kept: the paper
    fine-tunes BERT on the task first and then trains it with the mask. What is not in the checkpoint is initialised.
    """

    config_class = BertVMaskConfig


class EncoderWithVMask(EncoderForVATClassification):
    """
    [`EncoderForVATClassification`] with the defaults of [`EncoderVMaskConfig`]; word encoders are the paper's CNN and LSTM.

    `from_pretrained` also takes checkpoints of [`EncoderForVATClassification`], of which the heads are kept.
    """

    config_class = EncoderVMaskConfig


__all__ = ["BertWithVMask", "EncoderWithVMask"]
