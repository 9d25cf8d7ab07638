"""Configurations of classifiers with word masks: VMASK (Chen and Ji, EMNLP 2020), L2X and IBA."""

from typing import ClassVar, Literal

from huggingface_hub.dataclasses import strict
from transformers import BertConfig

from .configuration_vat import BertVATConfig, EncoderVATConfig, VATSettings


@strict
class VMaskSettings(VATSettings):
    r"""
    What a word mask adds to [`VATSettings`]. Defaults are the paper's, but for `mask_reduction` and a `mask_beta` that
    stays as it is; what its published code does instead is named.

    Args:
        mask_type (`str`, *optional*, defaults to `"vmask"`):
            `"vmask"`, its competitors `"l2x"` and `"iba"`, or `"none"` (the paper's base and ℓ2 models).
        mask_layers (`int`, *optional*, defaults to 1):
            Layers of the network that scores a word by its embedding: 1 (the paper), or 2 with a tanh between (its
            code).
        mask_hidden_size (`int`, *optional*, defaults to the width of the embeddings):
            Width between two layers. The code has 300 for its LSTM, 500 for its CNN, 100 for BERT.
        mask_sample (`str`, *optional*, defaults to `"soft"`):
            What `"vmask"` multiplies a word with in training: a Gumbel-softmax draw in (0, 1), `"soft"` (the paper), or
            the draw rounded to 0 or 1 with the gradient of the soft one, `"hard_st"` (the code). In evaluation it is
            always the probability.
        mask_temperature (`float`, *optional*, defaults to 1.0):
            Temperature τ ≥ 0.1 of the draws of `"vmask"` and of `"l2x"` with `"concrete_topk"` (0.5 in L2X's own code).
        mask_beta (`float`, *optional*, defaults to 1.0):
            Weight β ≥ 0 of the mask's term in the loss. The paper anneals it without giving numbers; the code goes from
            1.0 down in ten steps, of which the last is at 0.109, see [`~hf_vat.training.BetaSchedule`].
        mask_reduction (`str`, *optional*, defaults to `"token_mean"`):
            Whether a text's term is the mean over its content tokens, or their `"sum"` (the paper's formula, which weighs
            a text by its length), or `"position_mean"`, the mean over all positions of a batch, special tokens and
            padding included (the code): then it depends on how much is padded, and the scores of padding are trained
            too.
        mask_normalization (`str`, *optional*, defaults to `"softmax"`):
            How `"l2x"` turns scores into weights: `"softmax"`, `"sigmoid"` or `"concrete_topk"`. The paper leaves it open.
        mask_k (`int`, *optional*, defaults to 10):
            How many words `"concrete_topk"` draws.
        mask_site (`str`, *optional*, defaults to `"word"`):
            What is masked: the `"word"` embeddings alone, so that positions and token types stay, or the
            `"embedding_output"`, their sum after its layer norm (the code for BERT; BERT only).
        freeze_embeddings (`bool`, *optional*, defaults to `True`):
            Whether the embedding layer stays as it was loaded, as in paper and code: for BERT and its kin the module of
            word, position and type embeddings with their layer norm, for other encoders the word embeddings. Frozen
            embeddings are buffers, no parameters; checkpoints fit either way.
    """

    keys_to_ignore_at_inference: ClassVar[list[str]] = [
        *VATSettings.keys_to_ignore_at_inference,
        "token_mask",
        "mask_compression",
    ]

    mask_type: Literal["none", "vmask", "l2x", "iba"] = "vmask"
    mask_layers: Literal[1, 2] = 1
    mask_hidden_size: int | None = None
    mask_sample: Literal["soft", "hard_st"] = "soft"
    mask_temperature: float | int = 1.0
    mask_beta: float | int = 1.0
    mask_reduction: Literal["token_mean", "sum", "position_mean"] = "token_mean"
    mask_normalization: Literal["softmax", "sigmoid", "concrete_topk"] = "softmax"
    mask_k: int = 10
    mask_site: Literal["word", "embedding_output"] = "word"
    freeze_embeddings: bool = True

    @classmethod
    def get_config_dict(cls, pretrained_model_name_or_path, **kwargs):
        config_dict, kwargs = super().get_config_dict(pretrained_model_name_or_path, **kwargs)
        # A saved configuration leaves out the defaults of its class, and ours are others.
        if config_dict.get("model_type") in (BertVATConfig.model_type, EncoderVATConfig.model_type):
            left_out = {"pooling": VATSettings.pooling, "bottleneck": VATSettings.bottleneck}
            config_dict = left_out | config_dict
        return config_dict, kwargs

    @classmethod
    def from_dict(cls, config_dict, **kwargs):
        """As in transformers, which loads checkpoints through it.

        Raises:
            ValueError: if a word mask is to become another one, as its scores would mean something else. With
                `mask_type="none"` it may be left out.
        """
        if config_dict.get("model_type") == cls.model_type:
            stored = {name: config_dict.get(name, getattr(cls, name)) for name in ("mask_type", "mask_site")}
            wanted = {name: kwargs.get(name, value) for name, value in stored.items()}
            if wanted != stored and "none" not in (stored["mask_type"], wanted["mask_type"]):
                was, would_be = (", ".join(f"{name}={value!r}" for name, value in s.items()) for s in (stored, wanted))
                raise ValueError(
                    f"The checkpoint has a word mask with {was}, whose scores mean something else with {would_be}. Leave "
                    "that out to go on with this mask, or begin with a checkpoint without a mask."
                )
        return super().from_dict(config_dict, **kwargs)

    def validate_vmask(self):
        """Class validator, run at construction.

        Raises:
            ValueError: naming the setting, its value and what is allowed.
        """
        if self.mask_hidden_size is not None and self.mask_hidden_size < 1:
            raise ValueError(
                f"mask_hidden_size={self.mask_hidden_size} must be at least 1, or None for the width of the embeddings."
            )
        if not self.mask_temperature >= 0.1:
            raise ValueError(
                f"mask_temperature={self.mask_temperature} must be at least 0.1: below, draws have no gradient left."
            )
        if not self.mask_beta >= 0:
            raise ValueError(
                f"mask_beta={self.mask_beta} must be at least 0: the term is a divergence, and is minimised."
            )
        if self.mask_k < 1:
            raise ValueError(f"mask_k={self.mask_k} must be at least 1.")


@strict
class BertVMaskConfig(BertVATConfig, VMaskSettings):
    r"""
    Configuration of [`BertWithVMask`]: a [`BertVATConfig`] with [`VMaskSettings`].

    By default the text vector is that of [CLS] and there is no bottleneck, as in the paper (`pooling="first"`,
    `bottleneck="none"`); with `pooling="attention"` and `bottleneck="gaussian"` it is VAT over masked words.
    """

    model_type = "bert_vmask"
    builds_on: ClassVar[tuple[str, ...]] = (BertConfig.model_type, BertVATConfig.model_type)

    pooling: Literal["attention", "first", "max", "mean"] = "first"
    bottleneck: Literal["none", "gaussian"] = "none"


# Encoders of transformers that a mask on word embeddings cannot reach, and why.
_OUT_OF_REACH = {
    "canine": "hashes characters and has no word embeddings",
    "esm": "leaves out its embedding layer if it is given word embeddings",
    "ibert": "has quantised word embeddings with a scale, which a mask would change",
}


@strict
class EncoderVMaskConfig(EncoderVATConfig, VMaskSettings):
    r"""
    Configuration of [`EncoderWithVMask`]: an [`EncoderVATConfig`] with [`VMaskSettings`].

    There is no bottleneck by default. `pooling` is by default `"first"` where the tokenizer puts a special token before
    a text, and `"max"` elsewhere, as in the paper's CNN and LSTM.
    """

    model_type = "encoder_vmask"
    builds_on: ClassVar[tuple[str, ...]] = (EncoderVATConfig.model_type,)

    pooling: Literal["attention", "first", "max", "mean"] | None = None
    bottleneck: Literal["none", "gaussian"] = "none"

    def __post_init__(self, **kwargs):
        super().__post_init__(**kwargs)
        if self.pooling is None:
            self.pooling = "first" if self.prefix_tokens else "max"

    def validate_encoder_vmask(self):
        """Class validator, run at construction.

        Raises:
            ValueError: naming the setting, its value and what is allowed.
        """
        if self.encoder.model_type in _OUT_OF_REACH:
            raise ValueError(
                f'encoder="{self.encoder.model_type}" cannot have a word mask: it {_OUT_OF_REACH[self.encoder.model_type]}. '
                "Use another encoder, such as BERT, RoBERTa or DeBERTa, or EncoderForVATClassification, which has no mask."
            )
        if self.mask_site != "word":
            raise ValueError(
                f'mask_site="{self.mask_site}" is for BertWithVMask; with other encoders use mask_site="word".'
            )


__all__ = ["BertVMaskConfig", "EncoderVMaskConfig"]
