"""Encoders for word-level tokenizers: embeddings alone, an affine layer, an LSTM or a CNN."""

from typing import ClassVar

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput, TokenClassifierOutput
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs
from transformers.utils.generic import can_return_tuple

from .configuration_word_encoder import WordEncoderConfig


class WordEncoderPreTrainedModel(PreTrainedModel):
    config_class = WordEncoderConfig
    base_model_prefix = "word_encoder"
    _no_split_modules: ClassVar[list[str]] = []  # type: ignore[misc]  # there not said to be of the class
    # There is neither self-attention nor a stack worth recomputing: every setting of these is accepted, and idle.
    _supports_sdpa = True
    _supports_flash_attn = True
    supports_gradient_checkpointing = True

    @torch.no_grad()
    def _init_weights(self, module):
        for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
            init.uniform_(tensor, -self.config.initializer_range, self.config.initializer_range)
        # A slice does not carry the flag by which transformers.initialization spares loaded weights.
        loaded = getattr(getattr(module, "weight", None), "_is_hf_initialized", False)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None and not loaded:
            init.zeros_(module.weight[module.padding_idx])


class WordEncoderModel(WordEncoderPreTrainedModel):
    """
    Words to vectors, one for each position, as an encoder of transformers.

    A text is the positions that `attention_mask` admits, in their order: padding on either side, and words masked out
    in the middle, change nothing but their own vectors, which are exactly 0. There are no position embeddings, so no
    text is too long.
    """

    _input_embed_layer = "word_embeddings"

    def __init__(self, config: WordEncoderConfig):
        super().__init__(config)
        assert config.hidden_size is not None  # by now, see WordEncoderConfig
        embeddings = FrozenEmbedding if config.freeze_embeddings else nn.Embedding
        self.word_embeddings = embeddings(config.vocab_size, config.embedding_size, config.pad_token_id)
        self.dropout = nn.Dropout(config.dropout if config.embedding_dropout is None else config.embedding_dropout)
        if config.encoder_type == "affine":
            self.encoder: nn.Module = nn.Linear(config.embedding_size, config.hidden_size, bias=False)
        elif config.encoder_type == "lstm":
            self.encoder = LSTMEncoder(config)
        elif config.encoder_type == "cnn":
            self.encoder = CNNEncoder(config)
        else:
            self.encoder = nn.Identity()
        self.gradient_checkpointing = False
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> tuple | BaseModelOutput:
        r"""
        Args:
            input_ids (`torch.LongTensor` of shape `(batch_size, sequence_length)`, *optional*):
                Word ids; either these or `inputs_embeds`.
            attention_mask (`torch.Tensor` of shape `(batch_size, sequence_length)`, *optional*):
                1 on the words of the text, 0 elsewhere; by default every position is a word.
            inputs_embeds (`torch.FloatTensor` of shape `(batch_size, sequence_length, embedding_size)`, *optional*):
                Embeddings in place of `input_ids`.

        Returns:
            `last_hidden_state` `(batch_size, sequence_length, hidden_size)`, exactly 0 outside the mask; with
            `output_hidden_states=True` also `hidden_states`, the embeddings and `last_hidden_state`. Token types and
            positions mean nothing here and are ignored.

        Raises:
            ValueError: for both or neither of `input_ids` and `inputs_embeds`, a mask of another shape, or
                `output_attentions=True`.
        """
        inputs = input_ids if input_ids is not None else inputs_embeds
        if inputs is None or (input_ids is not None and inputs_embeds is not None):
            raise ValueError("Give either input_ids or inputs_embeds, and not both.")
        if kwargs.get("output_attentions") or self.config.output_attentions:
            raise ValueError("output_attentions=True asks for self-attention, of which a word encoder has none.")
        if input_ids is not None and not input_ids.numel():
            # No text has a word; tokenizers then return floats, which cannot be looked up.
            inputs_embeds = self.word_embeddings.weight.new_zeros(*input_ids.shape, self.config.embedding_size)
            input_ids = None
        if attention_mask is None:
            if input_ids is not None:
                self.warn_if_padding_and_no_attention_mask(input_ids, attention_mask)
            attention_mask = torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device)
        if attention_mask.shape != inputs.shape[:2]:
            raise ValueError(
                f"attention_mask has the shape {tuple(attention_mask.shape)}, the texts {tuple(inputs.shape[:2])}; "
                "give one 0 or 1 for each position."
            )
        mask = attention_mask.bool()  # [B, T]
        words = inputs_embeds if inputs_embeds is not None else self.word_embeddings(input_ids)  # [B, T, E]
        hidden = self._encode(self.dropout(words), mask).masked_fill(~mask.unsqueeze(-1), 0.0)  # [B, T, H]
        wanted = kwargs.get("output_hidden_states", self.config.output_hidden_states)
        return BaseModelOutput(last_hidden_state=hidden, hidden_states=(words, hidden) if wanted else None)

    def _encode(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if self.config.encoder_type in ("embedding", "affine"):
            return self.encoder(words)
        if not words.shape[1]:
            return words.new_zeros(*words.shape[:2], self.config.hidden_size)
        lengths = mask.sum(1, keepdim=True)  # [B, 1]
        # As batches mostly are; what is traced is for all of them, and a GPU would have to wait for the answer.
        asks = mask.device.type == "cpu" and not torch.compiler.is_compiling()
        if asks and bool((mask[:, 1:] <= mask[:, :-1]).all()):
            return self.encoder(words, lengths)
        # LSTM and CNN look at neighbours, so the words of a text are brought together at its start, and back after.
        rows = torch.arange(mask.shape[0], device=mask.device).unsqueeze(1)  # [B, 1]
        places = torch.where(mask, mask.cumsum(1), lengths + (~mask).cumsum(1)) - 1  # [B, T]
        columns = torch.arange(mask.shape[1], device=mask.device).expand_as(places)
        order = torch.zeros_like(places).scatter(1, places, columns)  # [B, T]; a stable sort cannot be written as ONNX
        return self.encoder(words[rows, order], lengths)[rows, places]


class WordEncoderForTokenClassification(WordEncoderPreTrainedModel):
    """A word encoder with a linear layer on each word's vector, such as an explainer of [`hf_vat.amortized`]."""

    def __init__(self, config: WordEncoderConfig):
        super().__init__(config)
        assert config.hidden_size is not None and config.num_labels is not None  # by now, see WordEncoderConfig
        self.num_labels = config.num_labels
        self.word_encoder = WordEncoderModel(config)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.LongTensor | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> tuple | TokenClassifierOutput:
        r"""
        Args:
            labels (`torch.LongTensor` of shape `(batch_size, sequence_length)`, *optional*):
                Class of each word; -100 leaves it out of the loss, a mean cross-entropy.

        Other arguments are those of [`WordEncoderModel`]; logits are `(batch_size, sequence_length, num_labels)`.
        """
        encoded = self.word_encoder(input_ids, attention_mask, inputs_embeds, return_dict=True, **kwargs)
        logits = self.classifier(self.dropout(encoded.last_hidden_state))
        loss = None if labels is None else nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return TokenClassifierOutput(loss=loss, logits=logits, hidden_states=encoded.hidden_states)


class FrozenEmbedding(nn.Embedding):
    """Embeddings that are saved and loaded like others, and no parameter.

    `requires_grad=False` would not last: `from_pretrained` forgets it.
    """

    def __init__(self, *args):
        super().__init__(*args)
        weight = self.weight.detach()
        del self.weight
        self.register_buffer("weight", weight)


class LSTMEncoder(nn.Module):
    """Layers of LSTM over texts padded on the right: [B, T, E], lengths [B, 1] -> [B, T, H].

    Without `pack_padded_sequence`, which trains slower on a CPU (`benchmarks/word_encoder.py`): reading to the right, a
    state does not depend on the padding that follows; to read to the left, each text is reversed within its length.
    """

    def __init__(self, config: WordEncoderConfig):
        super().__init__()
        assert config.hidden_size is not None  # by now, see WordEncoderConfig
        width = config.hidden_size // 2 if config.bidirectional else config.hidden_size
        sizes = [config.embedding_size] + [config.hidden_size] * (config.num_layers - 1)
        self.to_right = nn.ModuleList(nn.LSTM(size, width, batch_first=True) for size in sizes)
        self.to_left = (
            nn.ModuleList(nn.LSTM(size, width, batch_first=True) for size in sizes) if config.bidirectional else None
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(hidden.shape[0], device=hidden.device).unsqueeze(1)  # [B, 1]
        columns = torch.arange(hidden.shape[1], device=hidden.device)  # [T]
        reverse = torch.where(columns < lengths, lengths - 1 - columns, columns)  # [B, T], its own inverse
        for layer, to_right in enumerate(self.to_right):
            if layer:
                hidden = self.dropout(hidden)
            states = to_right(hidden)[0]
            if self.to_left is not None:
                states = torch.cat([states, self.to_left[layer](hidden[rows, reverse])[0][rows, reverse]], -1)
            hidden = states
        return hidden


class CNNEncoder(nn.Module):
    """ReLU of kernels of several widths over texts padded on the right: [B, T, E], lengths [B, 1] -> [B, T, H].

    Zeros stand around each text, (k - 1) // 2 of them before and k // 2 behind for width k, so that every position has
    a vector and no text is too short. Position t's block of width k sees the words t - (k - 1) // 2 to t + k // 2.
    """

    def __init__(self, config: WordEncoderConfig):
        super().__init__()
        assert config.hidden_size is not None  # by now, see WordEncoderConfig
        kernels = config.hidden_size // len(config.kernel_sizes)
        self.sizes = config.kernel_sizes
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.embedding_size, kernels, size) for size in config.kernel_sizes
        )

    def forward(self, words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        outside = torch.arange(words.shape[1], device=words.device) >= lengths  # [B, T]
        words = words.masked_fill(outside.unsqueeze(-1), 0.0).transpose(1, 2)  # [B, E, T]
        blocks = []
        for size, convolution in zip(self.sizes, self.convolutions, strict=True):
            blocks.append(convolution(nn.functional.pad(words, ((size - 1) // 2, size // 2))))  # [B, N, T]
        return torch.cat(blocks, 1).relu().transpose(1, 2)


__all__ = ["WordEncoderForTokenClassification", "WordEncoderModel"]
