"""Configurations of VAT classifiers (Zhou et al., Findings of ACL 2021)."""

from typing import ClassVar, Literal

from huggingface_hub.dataclasses import strict
from transformers import AutoConfig, BertConfig, PreTrainedConfig
from transformers.pipelines import PIPELINE_REGISTRY

from .configuration_word_encoder import WordEncoderConfig


class _SavedPipelines(dict):
    """The pipelines whose code lies beside the model. `pipeline` looks here first, and would run that code, so it asks for
    trust_remote_code; a pipeline that is registered, as hf_vat does, is used instead."""

    def __contains__(self, task):
        return super().__contains__(task) and task not in PIPELINE_REGISTRY.get_supported_tasks()


@strict
class VATSettings(PreTrainedConfig):
    r"""
    What VAT adds to an encoder's configuration, whichever the encoder.

    Args:
        pooling (`str`, *optional*, defaults to `"attention"`):
            How token vectors become one text vector R: `"attention"` (additive attention over the content tokens),
            `"first"` (the vector of the first token, [CLS]), `"max"` or `"mean"` (over the content tokens).
        bottleneck (`str`, *optional*, defaults to `"gaussian"`):
            `"gaussian"` adds the compressor, z = μ(R) + σ(R) ⊙ ε and a head on z; `"none"` leaves it out.
            `"gaussian"` needs `pooling="attention"`, since the attention is what the compressor learns.
        attention_size (`int`, *optional*, defaults to `hidden_size`):
            Width d_a of the additive attention.
        latent_size (`int`, *optional*, defaults to `hidden_size`):
            Width d_z of z.
        heads (`str`, *optional*, defaults to `"separate"`):
            The paper leaves open whether learner and compressor share their MLP. `"separate"`: one head on R, one on
            z. `"shared"`: one head for both (needs `latent_size == hidden_size`). `"shared_mean"`: the learner
            predicts through μ(R) and the head on z.
        head_layers (`int`, *optional*, defaults to 2):
            Layers of a head: 2, with a tanh between, or 1, a linear layer (VMASK's code for its CNN and LSTM). Dropout
            comes before the last.
        predict_from (`str`, *optional*, defaults to `"learner"`):
            The head whose logits the model returns: `"learner"` (on R) or `"compressor"` (on z = μ). The trainer
            records here the head that was trained last, as the other one is out of date.
        beta (`float`, *optional*, defaults to 0.1):
            Weight β ≥ 0 of the compression term.
        kl_reduction (`str`, *optional*, defaults to `"mean"`):
            Whether the KL divergence of a text is the `"mean"` over latent dimensions, or their `"sum"`, the
            divergence of the joint Gaussian, which weighs d_z times as much. With `"sum"` and β ≥ 1 a constant z is
            optimal.
        prior (`str`, *optional*, defaults to `"standard"`):
            Prior r(z): `"standard"` is N(0, I), `"learned"` a diagonal Gaussian whose parameters are trained.
    """

    keys_to_ignore_at_inference: ClassVar[list[str]] = [
        "cross_entropy",
        "compression",
        "token_importance",
        "pooler_output",
        "hidden_states",
        "attentions",
    ]

    pooling: Literal["attention", "first", "max", "mean"] = "attention"
    bottleneck: Literal["none", "gaussian"] = "gaussian"
    attention_size: int | None = None
    latent_size: int | None = None
    heads: Literal["separate", "shared", "shared_mean"] = "separate"
    head_layers: Literal[1, 2] = 2
    predict_from: Literal["learner", "compressor"] = "learner"
    beta: float | int = 0.1
    kl_reduction: Literal["mean", "sum"] = "mean"
    prior: Literal["standard", "learned"] = "standard"

    @classmethod
    def from_dict(cls, config_dict, **kwargs):
        # What the caller says about labels replaces a checkpoint's names and their inverse together.
        number = len(config_dict.get("id2label") or ())
        if "id2label" in kwargs or "label2id" in kwargs or kwargs.get("num_labels", number) != number:
            settings = ("num_labels", "id2label", "label2id")
            given = {name: kwargs.pop(name) for name in settings if name in kwargs}
            config_dict = {key: value for key, value in config_dict.items() if key not in settings} | given
        return super().from_dict(config_dict, **kwargs)

    def __post_init__(self, **kwargs):
        num_labels = kwargs.get("num_labels")
        if self.id2label is None and self.label2id is not None:
            self.id2label = {position: name for name, position in self.label2id.items()}
        if self.id2label is not None:
            names = {int(key): str(name) for key, name in self.id2label.items()}
            if num_labels is not None and num_labels != len(names):
                raise ValueError(f"num_labels={num_labels} disagrees with the {len(names)} names in id2label={names}.")
            inverse = {name: key for key, name in names.items()}
            if sorted(names) != list(range(len(names))) or len(inverse) != len(names):
                raise ValueError(f"id2label={names} must give each class from 0 to {len(names) - 1} a name of its own.")
            if self.label2id is not None and self.label2id != inverse:
                raise ValueError(f"label2id={self.label2id} is not the inverse of id2label={names}.")
            self.label2id = inverse
        if "custom_pipelines" in kwargs:
            kwargs["custom_pipelines"] = _SavedPipelines(kwargs["custom_pipelines"])
        super().__post_init__(**kwargs)

    def validate_vat(self):
        """Class validator, run at construction.

        Raises:
            ValueError: naming the setting, its value and what is allowed.
        """
        if self.bottleneck == "gaussian" and self.pooling != "attention":
            raise ValueError(
                f'bottleneck="gaussian" learns the attention, but pooling="{self.pooling}" has none; '
                'use pooling="attention" or bottleneck="none".'
            )
        if self.bottleneck == "none" and self.predict_from == "compressor":
            raise ValueError('predict_from="compressor" needs bottleneck="gaussian".')
        if self.beta < 0:
            raise ValueError(f"beta={self.beta} must be at least 0.")
        for name in ("attention_size", "latent_size"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"{name}={size} must be at least 1, or None for hidden_size ({self.hidden_size}).")
        if self.heads == "shared" and self.latent_size not in (None, self.hidden_size):
            raise ValueError(
                f'heads="shared" reads R and z alike, so latent_size={self.latent_size} must equal '
                f"hidden_size={self.hidden_size}."
            )
        if self.problem_type not in (None, "single_label_classification") or self.num_labels < 2:
            raise ValueError(
                f"num_labels={self.num_labels} with problem_type={self.problem_type!r} is not supported: VAT "
                "classifies each text into one of num_labels >= 2 classes "
                '(problem_type None or "single_label_classification").'
            )


@strict
class BertVATConfig(VATSettings, BertConfig):
    r"""
    Configuration of [`BertForVATClassification`]: a [`~transformers.BertConfig`] with [`VATSettings`].

    The three systems of the paper are settings:

    | system | `pooling` | `bottleneck` |
    |---|---|---|
    | BERT-base | `"first"` | `"none"` |
    | BERT-ATT | `"attention"` | `"none"` |
    | BERT-VAT | `"attention"` | `"gaussian"` |
    """

    model_type = "bert_vat"
    builds_on: ClassVar[tuple[str, ...]] = (BertConfig.model_type,)

    @classmethod
    def get_config_dict(cls, pretrained_model_name_or_path, **kwargs):
        config_dict, kwargs = super().get_config_dict(pretrained_model_name_or_path, **kwargs)
        # A checkpoint that we build on, such as a plain BERT, has a model_type that would hide ours.
        if config_dict.get("model_type") in cls.builds_on:
            config_dict.pop("model_type")
        return config_dict, kwargs


@strict
class EncoderVATConfig(VATSettings):
    r"""
    Configuration of [`EncoderForVATClassification`]: the configuration of any encoder with [`VATSettings`].

    Args:
        encoder (`PreTrainedConfig` or `dict`, *optional*):
            Configuration of the encoder that `AutoModel` builds; BERT by default.
        prefix_tokens (`int`, *optional*), suffix_tokens (`int`, *optional*):
            How many special tokens the tokenizer puts before and after a text. They take no part in attention and
            pooling. BERT and RoBERTa: 1 and 1; XLNet: 0 and 2; word-level tokenizers and GPT-2: 0 and 0. By default 0
            for a [`WordEncoderConfig`] and 1 for every other encoder.
        classifier_dropout (`float`, *optional*, defaults to 0.1):
            Dropout in the heads.
        initializer_range (`float`, *optional*):
            Standard deviation of the new weights. By default 0.02; on a [`WordEncoderConfig`], whose weights start from
            U(-r, r), the same deviation, r / √3 (the VAT paper starts all weights of its LSTM models from U(-0.1, 0.1)).
            From 0.02 attention over an LSTM hardly leaves the uniform distribution.
        hidden_size, max_position_embeddings, pad_token_id, vocab_size (`int`, *optional*):
            Read from the encoder's configuration.
    """

    model_type = "encoder_vat"
    builds_on: ClassVar[tuple[str, ...]] = ()
    sub_configs: ClassVar[dict] = {"encoder": AutoConfig}

    encoder: PreTrainedConfig | dict | None = None
    prefix_tokens: int | None = None
    suffix_tokens: int | None = None
    classifier_dropout: float | int = 0.1
    initializer_range: float | int | None = None
    hidden_size: int | None = None
    max_position_embeddings: int | None = None
    pad_token_id: int | None = None
    vocab_size: int | None = None

    @classmethod
    def get_config_dict(cls, pretrained_model_name_or_path, **kwargs):
        config_dict, kwargs = super().get_config_dict(pretrained_model_name_or_path, **kwargs)
        if config_dict.get("model_type") in cls.builds_on:
            config_dict.pop("model_type")
        # transformers would only warn, and then build a new BERT with random weights.
        if config_dict.get("model_type", cls.model_type) != cls.model_type:
            raise ValueError(
                f"{pretrained_model_name_or_path} holds a model of type {config_dict['model_type']!r}, not "
                f"{cls.model_type!r}; to begin with an encoder use from_encoder_pretrained of the model's class."
            )
        return config_dict, kwargs

    def __post_init__(self, **kwargs):
        if self.encoder is None:
            self.encoder = BertConfig()
        elif isinstance(self.encoder, dict):
            settings = dict(self.encoder)
            model_type = settings.pop("model_type")
            if model_type == WordEncoderConfig.model_type:  # not registered where this file came with a model
                self.encoder = WordEncoderConfig(**settings)
            else:
                self.encoder = AutoConfig.for_model(model_type, **settings)
        if self.encoder.is_encoder_decoder:
            raise ValueError(
                f"encoder={self.encoder.model_type!r} is an encoder-decoder; use a model with an encoder only."
            )
        if not isinstance(getattr(self.encoder, "hidden_size", None), int):
            raise ValueError(
                f"encoder={self.encoder.model_type!r} has no single hidden_size, the width of a token's vector; use an "
                "encoder of texts, such as BERT."
            )
        for name in ("prefix_tokens", "suffix_tokens"):
            if getattr(self, name) is None:
                setattr(self, name, 0 if self.encoder.model_type == WordEncoderConfig.model_type else 1)
        if self.initializer_range is None:
            words = self.encoder.model_type == WordEncoderConfig.model_type
            self.initializer_range = self.encoder.initializer_range / 3**0.5 if words else 0.02
        self.hidden_size = self.encoder.hidden_size
        for name in ("max_position_embeddings", "pad_token_id", "vocab_size"):
            setattr(self, name, getattr(self.encoder, name, None))
        super().__post_init__(**kwargs)

    def validate_encoder_vat(self):
        """Class validator, run at construction.

        Raises:
            ValueError: naming the setting, its value and what is allowed.
        """
        for name in ("prefix_tokens", "suffix_tokens"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 0.")
        if self.pooling == "first" and self.prefix_tokens == 0:
            raise ValueError(
                'pooling="first" reads the special token before the text, but prefix_tokens=0; use "max", "mean" or '
                '"attention".'
            )


__all__ = ["BertVATConfig", "EncoderVATConfig"]
