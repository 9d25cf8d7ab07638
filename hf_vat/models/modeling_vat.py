"""Classifiers with VAT (Zhou et al., Findings of ACL 2021) and with word masks, on BERT and on any other encoder."""

from inspect import signature
from typing import Any

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTextEncoding,
    AutoTokenizer,
    BertModel,
    PreTrainedModel,
)
from transformers.models.bert.modeling_bert import BertPreTrainedModel

from .classifier import VATClassifier
from .configuration_vat import ENCODER_HALVES, BertVATConfig, EncoderVATConfig
from .configuration_word_encoder import WordEncoderConfig
from .modeling_word_encoder import WordEncoderModel
from .words import special_token_ids, special_tokens_around

_PLACE = ("revision", "subfolder", "token", "cache_dir", "local_files_only")  # where a checkpoint is, of all its files


class BertForVATClassification(VATClassifier, BertPreTrainedModel):
    """
    BERT with attention pooling, a learner head on the text vector R and a compressor that predicts from z.

    `from_pretrained` takes checkpoints of this class and of [`BertWithVMask`], and plain BERT checkpoints, whose encoder is
    loaded and whose new layers are initialised. What a training step trains and which loss it gets is the *phase*, see
    [`set_phase`]. With `mask_type` its words pass a mask that is trained with it.
    """

    config_class = BertVATConfig
    _keys_to_ignore_on_load_unexpected = (r"^(bert\.)?pooler\.", r"^cls\.")  # type: ignore[assignment]  # other heads of BERT; a list there

    def __init__(self, config: BertVATConfig):
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self._add_heads(
            config, config.hidden_dropout_prob if config.classifier_dropout is None else config.classifier_dropout
        )
        self.post_init()


class EncoderForVATClassification(VATClassifier, PreTrainedModel):
    """
    Any encoder of `AutoModel` with the attention, heads and bottleneck of [`BertForVATClassification`].

    [`from_encoder_pretrained`] begins with a pretrained encoder; `from_pretrained` loads checkpoints of this class and of
    [`EncoderWithVMask`]. The special tokens around a text, and between two, are told by the configuration's
    `special_token_ids`. An encoder whose first layer normalises each word embedding alone, such as ModernBERT, takes a factor
    out again: the masks of VMASK and L2X then change nothing, while that of IBA does. BERT and its kin add positions first.
    """

    config_class = EncoderVATConfig
    base_model_prefix = "encoder"
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True

    def __init__(self, config: EncoderVATConfig, encoder: PreTrainedModel | None = None):
        super().__init__(config)
        own: Any = config.encoder  # a configuration by now
        if encoder is not None:  # loaded, with this configuration
            self.encoder = encoder
        # By type name: in a folder that brings this code along, configuration and model are loaded as modules apart.
        elif own.model_type == WordEncoderConfig.model_type:
            self.encoder = WordEncoderModel(own)
        else:
            self.encoder = _auto_class(own).from_config(own, **_encoder_arguments(own))
        self.supports_gradient_checkpointing = self.encoder.supports_gradient_checkpointing
        tables = (name for name, module in self.named_modules() if hasattr(module, "position_ids"))
        self._position_table = next(tables, None)
        self._add_heads(config, config.classifier_dropout)
        # Encoders that are given no positions number the columns, padding included; RoBERTa and its kin do not.
        takes_positions = "position_ids" in signature(type(self.encoder).forward).parameters
        self._counts_columns = takes_positions and self._position_offset is None
        self.post_init()

    @classmethod
    def from_encoder_pretrained(
        cls, pretrained_model_name_or_path, tokenizer=None, encoder_kwargs: dict | None = None, **settings
    ) -> "EncoderForVATClassification":
        """A classifier on a pretrained encoder, with new attention, heads and bottleneck.

        Args:
            pretrained_model_name_or_path: a Hub id or folder that `AutoModel` loads.
            tokenizer: the encoder's tokenizer, which tells how many special tokens there are around a text; loaded from
                the same place if not given.
            encoder_kwargs: arguments of `AutoModel.from_pretrained`, such as `revision` or `attn_implementation`.
            settings: of the class's configuration, such as `num_labels` or `pooling`.

        Raises:
            ValueError: if the model is an encoder-decoder or does not read texts, before any weight is loaded.
        """
        encoder_kwargs = encoder_kwargs or {}
        place = {name: encoder_kwargs[name] for name in _PLACE if name in encoder_kwargs}
        encoder_config = AutoConfig.from_pretrained(pretrained_model_name_or_path, **place)
        if tokenizer is None:
            tokenizer = AutoTokenizer.from_pretrained(pretrained_model_name_or_path, **place)
        around = dict(zip(("prefix_tokens", "suffix_tokens"), map(len, special_tokens_around(tokenizer)), strict=True))
        special = {"special_token_ids": special_token_ids(tokenizer)}
        config = cls.config_class(**{"encoder": encoder_config, **around, **special, **settings})
        encoder = _auto_class(encoder_config).from_pretrained(
            pretrained_model_name_or_path, **_encoder_arguments(encoder_config), **encoder_kwargs
        )
        encoder.config.name_or_path = ""  # it would be saved, and a local path is nobody's business
        config.encoder = encoder.config
        return cls(config, encoder).to(encoder.dtype)

    def resize_token_embeddings(self, *args, **kwargs):
        """As in transformers; the encoder's own configuration follows, from which a saved model is built again."""
        embeddings = super().resize_token_embeddings(*args, **kwargs)
        self.config.encoder.vocab_size = self.config.vocab_size
        return embeddings

    def _positions(self, attention_mask):
        if not self._counts_columns:
            return None
        positions = super()._positions(attention_mask)
        if self._position_table is not None:  # Nyströmformer counts from 2
            positions = self.get_submodule(self._position_table).position_ids[0][positions]
        return positions


def _auto_class(config) -> Any:
    """The class of transformers that builds an encoder; of encoder-decoders the encoder alone."""
    return AutoModelForTextEncoding if config.model_type in ENCODER_HALVES else AutoModel


def _encoder_arguments(config) -> dict:
    """What `AutoModel` is to be told of an encoder: no pooler where its class can do without, as nothing would train it.

    Raises:
        ValueError: if the class that `AutoModel` builds does not turn each token of a text into a vector.
    """
    mapping = _auto_class(config)._model_mapping
    if type(config) not in mapping:
        raise ValueError(
            f"encoder={config.model_type!r} is no model that AutoModel builds; use an encoder such as BERT."
        )
    encoder_class: Any = mapping[type(config)]
    if isinstance(encoder_class, tuple):  # Funnel has two, and AutoModel needs to know which
        config.architectures = config.architectures or [encoder_class[0].__name__]
        encoder_class = next((one for one in encoder_class if one.__name__ in config.architectures), encoder_class[0])
    parameters = signature(encoder_class.forward).parameters
    if "decoder_input_ids" in parameters:
        raise ValueError(f"encoder={config.model_type!r} is an encoder-decoder; use a model with an encoder only.")
    if encoder_class.main_input_name != "input_ids":
        raise ValueError(
            f"encoder={config.model_type!r} reads {encoder_class.main_input_name}, not the token ids of a text; use an "
            "encoder of texts, such as BERT."
        )
    if encoder_class.__name__ == "FunnelBaseModel":
        raise ValueError(
            "encoder='funnel' as a FunnelBaseModel has fewer vectors than tokens; use a FunnelModel, such as "
            "funnel-transformer/small."
        )
    return {"add_pooling_layer": False} if "add_pooling_layer" in signature(encoder_class).parameters else {}


__all__ = ["BertForVATClassification", "EncoderForVATClassification"]
