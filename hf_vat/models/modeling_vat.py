"""Classifiers with the attention and the bottleneck of VAT (Zhou et al., Findings of ACL 2021)."""

from contextlib import nullcontext
from dataclasses import dataclass
from inspect import signature

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertModel, PreTrainedModel
from transformers import initialization as init
from transformers.models.bert.modeling_bert import BertPreTrainedModel
from transformers.processing_utils import Unpack
from transformers.utils import ModelOutput, TransformersKwargs, logging
from transformers.utils.generic import can_return_tuple

from .attention import AdditiveAttention, max_pool, mean_pool, weighted_sum
from .bottleneck import GaussianBottleneck
from .configuration_vat import BertVATConfig, EncoderVATConfig
from .configuration_word_encoder import WordEncoderConfig
from .modeling_word_encoder import WordEncoderModel
from .words import position_offset, special_tokens_around

logger = logging.get_logger(__name__)

_BETAS = ("beta", "mask_beta")  # settings that weigh a term of the loss, and may change from step to step
_PLACE = ("revision", "subfolder", "token", "cache_dir", "local_files_only")  # where a checkpoint is, of all its files


@dataclass
class VATClassifierOutput(ModelOutput):
    """
    Output of VAT classifiers.

    Args:
        loss (`torch.FloatTensor` of shape `(1,)`, returned when `labels` is given):
            mean(cross_entropy) + β · mean(compression) + mask_beta · mean(mask_compression) over the texts with a label,
            as far as the loss has these terms.
        logits (`torch.FloatTensor` of shape `(batch_size, num_labels)`):
            Scores before the softmax, of the head that `config.predict_from` names.
        cross_entropy (`torch.FloatTensor` of shape `(batch_size,)`, returned when `labels` is given):
            Cross-entropy in nats, summed over the heads that the phase trains; 0 for the label -100. With class weights
            times the weight of the text's class over the mean weight in the batch.
        compression (`torch.FloatTensor` of shape `(batch_size,)`, returned when the loss has the term):
            Divergence of q(z|R) from the prior in nats, reduced over latent dimensions as `config.kl_reduction` says; the
            mean over texts of the sum is an upper bound on I(Z; R). 0 for the label -100.
        mask_compression (`torch.FloatTensor` of shape `(batch_size,)`, returned when the loss has the term):
            What the word mask keeps of a text, in nats, at least 0, reduced over its tokens as
            `config.mask_reduction` says: for VMASK the divergence of the mask from fair coins, log 2 − entropy, so at most
            log 2 for a token; for IBA the divergence from pure noise. 0 for the label -100.
        token_importance (`torch.FloatTensor` of shape `(batch_size, sequence_length)`, with attention pooling):
            Attention α: sums to 1 over content tokens, exactly 0 on special tokens and padding.
        token_mask (`torch.FloatTensor` of shape `(batch_size, sequence_length)`, with a word mask):
            How much of each token gets through, float32 in [0, 1]: VMASK's probability, L2X's weight, IBA's λ. Exactly 0
            on special tokens and padding, which have no score, though the encoder sees them unmasked.
        pooler_output (`torch.FloatTensor` of shape `(batch_size, hidden_size)`):
            Text vector R, which the learner's head and the compressor read.
        hidden_states (`tuple(torch.FloatTensor)`, returned when `output_hidden_states=True`):
            Hidden states of the encoder's layers.
        attentions (`tuple(torch.FloatTensor)`, returned when `output_attentions=True`):
            Self-attention of the encoder's layers, each `(batch_size, heads, sequence_length, sequence_length)`.
    """

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    cross_entropy: torch.FloatTensor | None = None
    compression: torch.FloatTensor | None = None
    mask_compression: torch.FloatTensor | None = None
    token_importance: torch.FloatTensor | None = None
    token_mask: torch.FloatTensor | None = None
    pooler_output: torch.FloatTensor | None = None
    hidden_states: tuple[torch.FloatTensor, ...] | None = None
    attentions: tuple[torch.FloatTensor, ...] | None = None


class SizeMismatchError(ValueError, RuntimeError):
    """A checkpoint has layers of other sizes: a `ValueError` as all refusals here, a `RuntimeError` as in transformers."""


class ClassificationHead(nn.Module):
    """MLP with one hidden layer, or with `layers=1` a linear layer: vector [B, N] -> logits [B, C]."""

    def __init__(self, input_size: int, hidden_size: int, num_labels: int, dropout: float, layers: int = 2):
        super().__init__()
        self.dense = nn.Linear(input_size, hidden_size) if layers == 2 else None
        self.dropout = nn.Dropout(dropout)
        self.out_proj = nn.Linear(hidden_size if layers == 2 else input_size, num_labels)

    def forward(self, vector: torch.Tensor) -> torch.Tensor:
        hidden = vector if self.dense is None else torch.tanh(self.dense(vector))
        return self.out_proj(self.dropout(hidden))


class VATClassifier:
    """
    What VAT puts on top of an encoder: pooling, heads, compressor, phases. To be mixed into a `PreTrainedModel` whose
    `base_model` is the encoder and whose configuration holds [`VATSettings`].
    """

    accepts_loss_kwargs = False  # the loss is a batch mean; see transformers.Trainer

    def _add_heads(self, config, dropout: float) -> None:
        self.num_labels = config.num_labels
        hidden, labels = config.hidden_size, config.num_labels
        compresses = config.bottleneck == "gaussian"
        latent = config.latent_size or hidden
        self.word_mask = None  # see modeling_vmask.py
        self.attention = (
            AdditiveAttention(hidden, config.attention_size or hidden) if config.pooling == "attention" else None
        )
        self.bottleneck = (
            GaussianBottleneck(hidden, latent, config.kl_reduction, config.prior == "learned") if compresses else None
        )
        self.learner_head = (
            None
            if compresses and config.heads == "shared_mean"
            else ClassificationHead(hidden, hidden, labels, dropout, config.head_layers)
        )
        self.compressor_head = (
            ClassificationHead(latent, hidden, labels, dropout, config.head_layers)
            if compresses and config.heads != "shared"
            else None
        )
        if compresses and config.kl_reduction == "sum" and config.beta >= 1:
            logger.warning(
                'beta=%s with kl_reduction="sum": a constant z is optimal then, so expect accuracy to collapse; use a '
                'smaller beta, or kl_reduction="mean".',
                config.beta,
            )
        self.phase = "joint" if compresses else "finetune"
        self._closed: set[str] = set()  # parameters that the phase keeps from training
        self.label_smoothing = 0.0
        self.class_weights: torch.Tensor | None = None  # [C], how much a text of each class counts
        # Neither buffers, which would be raw memory after loading, nor on the device, as a number has no place.
        self._betas = {
            name: torch.tensor(0.0, dtype=torch.float64, device="cpu") for name in _BETAS if hasattr(config, name)
        }
        self.update_betas()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args, ignore_mismatched_sizes: bool = False, **kwargs):
        """As in transformers; a checkpoint with other classes or sizes is refused by naming its layers.

        Raises:
            SizeMismatchError: naming each layer that does not fit, its size in the checkpoint and in the model.
        """
        # Loaded leniently first, since the base class's error names neither layers nor sizes.
        wants_info = kwargs.pop("output_loading_info", False)
        model, info = super().from_pretrained(
            pretrained_model_name_or_path, *args, ignore_mismatched_sizes=True, output_loading_info=True, **kwargs
        )
        if info["mismatched_keys"] and not ignore_mismatched_sizes:
            layers = "; ".join(
                f"{name} is {tuple(stored)} in the checkpoint and {tuple(wanted)} in the model"
                for name, stored, wanted in sorted(info["mismatched_keys"])
            )
            raise SizeMismatchError(
                f"{pretrained_model_name_or_path} does not fit the configuration (num_labels={model.num_labels}): "
                f"{layers}. Pass ignore_mismatched_sizes=True to initialise these layers anew."
            )
        return (model, info) if wants_info else model

    def save_pretrained(self, save_directory, *args, **kwargs):
        """As in transformers; where there is attention or a word mask, the pipeline that explains with it is named in
        the config."""
        # transformers copies the files that this one imports, so the pipeline's travels too.
        from .explained_pipeline import TASK, ExplainedTextClassificationPipeline

        pipelines = dict(getattr(self.config, "custom_pipelines", {}))
        pipelines.pop(TASK, None)
        if self.attention is not None or self.word_mask is not None:
            pipelines[TASK] = {
                "impl": f"explained_pipeline.{ExplainedTextClassificationPipeline.__name__}",
                "pt": ["AutoModelForSequenceClassification"],
                "type": "text",
            }
        self.config.custom_pipelines = pipelines
        return super().save_pretrained(save_directory, *args, **kwargs)

    @classmethod
    def is_custom_code(cls) -> bool:
        """No, since everything here is initialised by `transformers.initialization`: of custom code, transformers takes a
        module without weights of its own for initialised, and the encoder's class could not scale those inside (GPT-2)."""
        return False

    @torch.no_grad()
    def _init_weights(self, module):
        super()._init_weights(module)
        if isinstance(module, GaussianBottleneck) and module.prior_mean is not None:
            init.zeros_(module.prior_mean)
            init.zeros_(module.prior_log_scale)

    # Phases

    def phase_modules(self, phase: str) -> dict[str, list[nn.Module]]:
        """Modules that a phase trains, by group: mask, encoder, attention, learner, compressor.

        The phases (the paper's §3; methods of training are in `hf_vat.training`):

        - `finetune`: everything but the compressor, by the learner's cross-entropy (the ATT and base systems);
        - `joint`: everything, by both cross-entropies and the compression term;
        - `compress`: attention and compressor, by the compressor's cross-entropy and the compression term;
        - `learn`: encoder and learner, by the learner's cross-entropy.

        A word mask belongs to the encoder's input: it is trained where the encoder is, then with its own term in the
        loss, and frozen in `compress`.

        Raises:
            ValueError: for an unknown phase, or one that needs a compressor where there is none.
        """
        if phase not in ("finetune", "joint", "compress", "learn"):
            raise ValueError(f"phase={phase!r} is unknown; it must be 'finetune', 'joint', 'compress' or 'learn'.")
        if phase != "finetune" and self.bottleneck is None:
            raise ValueError(f'phase={phase!r} needs a model with bottleneck="gaussian"; this one has "none".')
        learner = [self.learner_head]
        compressor = [self.bottleneck, self.compressor_head]
        if self.bottleneck is not None and self.config.heads == "shared":
            compressor = [self.bottleneck, self.learner_head]
        elif self.bottleneck is not None and self.config.heads == "shared_mean":
            learner = [self.bottleneck.mean, self.compressor_head]
        groups = {
            "mask": [self.word_mask],
            "encoder": [self.base_model],
            "attention": [self.attention],
            "learner": learner,
            "compressor": compressor,
        }
        trained = {
            "finetune": ("mask", "encoder", "attention", "learner"),
            "joint": ("mask", "encoder", "attention", "learner", "compressor"),
            "compress": ("attention", "compressor"),
            "learn": ("mask", "encoder", "learner"),
        }[phase]
        return {group: [module for module in groups[group] if module is not None] for group in trained}

    def set_phase(self, phase: str) -> None:
        """Choose what is trained: parameters outside the phase get `requires_grad=False`, so no gradient and no step.

        Parameters that the caller has frozen stay frozen in all phases. In `compress` the encoder, with its word mask, also
        stays in eval mode and builds no graph.
        """
        trained = {
            parameter
            for modules in self.phase_modules(phase).values()
            for module in modules
            for parameter in module.parameters()
        }
        self.open_phases()
        for name, parameter in self.named_parameters():
            if parameter.requires_grad and parameter not in trained:
                parameter.requires_grad_(False)
                self._closed.add(name)
        self.phase = phase
        self.train(self.training)

    def open_phases(self) -> None:
        """Let gradients reach again what the current phase has closed; the phase itself stays."""
        for name, parameter in self.named_parameters():
            if name in self._closed:
                parameter.requires_grad_(True)
        self._closed.clear()

    def leave_phases(self) -> None:
        """Be as a model that was just loaded: nothing closed, in no phase's mode, in eval mode."""
        self.open_phases()
        self.phase = "finetune" if self.bottleneck is None else "joint"
        self.eval()

    def train(self, mode: bool = True):
        super().train(mode)
        if self.phase == "compress":
            self.base_model.eval()
            if self.word_mask is not None:
                self.word_mask.eval()
        return self

    # Forward

    def update_betas(self) -> None:
        """Let a compiled model see β and mask_beta as the configuration has them now; without compilation it always does.

        Compiled, a Python number is a constant: each other value is another compilation. [`~hf_vat.training.VATTrainer`]
        calls this at each step.
        """
        for name, beta in self._betas.items():
            beta.fill_(getattr(self.config, name))

    def _beta(self, name: str) -> float | torch.Tensor:
        return self._betas[name] if torch.compiler.is_compiling() else getattr(self.config, name)

    def content_tokens(
        self, attention_mask: torch.Tensor, special_tokens_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Where the tokens of the texts are, bool [B, T]: neither special tokens nor padding. Arguments as in `forward`."""
        attended = attention_mask.bool()
        if special_tokens_mask is None:
            number = attended.cumsum(1)  # of the attended positions, from 1
            prefix, suffix = (getattr(self.config, f"{name}_tokens", 1) for name in ("prefix", "suffix"))
            special = (number <= prefix) | (number > number[:, -1:] - suffix)
        else:
            special = special_tokens_mask.bool()
        return attended & ~special

    def _classify(
        self, inputs: dict, special_tokens_mask: torch.Tensor | None, labels: torch.Tensor | None, **kwargs
    ) -> VATClassifierOutput:
        """Encode, pool and classify.

        Args:
            inputs: arguments of the encoder, with `attention_mask` and either `input_ids` or `inputs_embeds`.
            special_tokens_mask, labels: as in `forward`.
            kwargs: further arguments of the encoder.
        """
        # An encoder with a configuration of its own would not see what ours asks for.
        for name in ("output_attentions", "output_hidden_states"):
            if kwargs.get(name) is None and getattr(self.config, name):
                kwargs[name] = True
        if (
            kwargs.get("output_attentions")
            and self.base_model.config._attn_implementation != "eager"
            and not isinstance(self.base_model, WordEncoderModel)  # says itself that it has none
        ):
            raise ValueError(
                "output_attentions=True gives nothing with "
                f"attn_implementation={self.base_model.config._attn_implementation!r}; load the model with "
                'attn_implementation="eager". (The pooling attention is always in token_importance.)'
            )
        content = self.content_tokens(inputs["attention_mask"], special_tokens_mask)  # [B, T]

        # In `compress` the encoder is a constant: no graph through it.
        with torch.no_grad() if self.training and self.phase == "compress" else nullcontext():
            given = {name: value for name, value in inputs.items() if value is not None}
            encoded, token_mask, mask_term = self._encode(given, content, **{**kwargs, "return_dict": True})
        hidden = encoded.last_hidden_state  # [B, T, H]
        importance = None
        if self.attention is not None:
            importance = self.attention(hidden, content)  # [B, T]
            text = weighted_sum(importance, hidden)  # [B, H]
        elif self.config.pooling == "first":
            first = inputs["attention_mask"].bool().int().argmax(1)[:, None, None]
            text = hidden.gather(1, first.expand(-1, 1, hidden.shape[-1])).squeeze(1)
        else:
            text = (max_pool if self.config.pooling == "max" else mean_pool)(hidden, content)

        logits, cross_entropy, compression, loss = self._heads(text, labels)
        mask_compression = None
        if loss is not None and mask_term is not None and not (self.training and self.phase == "compress"):
            labelled = labels != -100
            mask_compression = mask_term * labelled
            loss = loss + self._beta("mask_beta") * mask_compression.sum() / labelled.sum().clamp(min=1)
        return VATClassifierOutput(
            loss=loss,
            logits=logits,
            cross_entropy=cross_entropy,
            compression=compression,
            mask_compression=mask_compression,
            token_importance=importance,
            token_mask=token_mask,
            pooler_output=text,
            hidden_states=getattr(encoded, "hidden_states", None),
            attentions=getattr(encoded, "attentions", None),
        )

    def _encode(self, inputs: dict, content: torch.Tensor, **kwargs):
        """The encoder's output; then the word mask [B, T] and its term [B], both None where there is none."""
        return self.base_model(**inputs, **kwargs), None, None

    def _heads(self, text: torch.Tensor, labels: torch.Tensor | None):
        """Logits [B, C] of the predicting head, cross-entropy [B], compression [B] and loss of the phase."""
        predicting = self.config.predict_from
        in_loss = {"finetune": {"learner"}, "learn": {"learner"}, "compress": {"compressor"}}.get(
            self.phase, {"learner", "compressor"}
        )
        if not self.training:
            in_loss = {predicting}
        by_head, divergence = {}, None
        if predicting == "learner" or "learner" in in_loss:
            if self.learner_head is not None:
                by_head["learner"] = self.learner_head(text)
            else:
                by_head["learner"] = self.compressor_head(self.bottleneck.mean(text))
        if predicting == "compressor" or "compressor" in in_loss:
            z, divergence = self.bottleneck(text)
            by_head["compressor"] = (self.compressor_head or self.learner_head)(z)
        if labels is None:
            return by_head[predicting], None, None, None

        if labels.is_floating_point() or labels.dim() != 1:
            raise ValueError(
                f"labels of type {labels.dtype} and shape {tuple(labels.shape)} are not class ids: pass integers of "
                f"shape (batch_size,) from 0 to {self.num_labels - 1}, or -100 to leave a text out."
            )
        labelled = labels != -100
        count = labelled.sum().clamp(min=1)
        losses, by_text = zip(*(self._cross_entropy(by_head[head], labels) for head in sorted(in_loss)), strict=True)
        loss, cross_entropy = sum(losses), sum(by_text)
        compression = None
        if "compressor" in in_loss:
            compression = divergence * labelled
            loss = loss + self._beta("beta") * compression.sum() / count
        return by_head[predicting], cross_entropy, compression, loss

    def _cross_entropy(self, logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """A head's mean cross-entropy over the texts with a label, and that of each text, [B], whose mean it is.

        With class weights it is the weighted mean of `torch.nn.CrossEntropyLoss(weight=...)`: divided by the sum of the
        texts' weights. Gradients are to the bit those of torch, and with label smoothing those of transformers' smoother.
        """
        log_probabilities = logits.float().log_softmax(-1)  # [B, C]
        labelled = labels != -100
        weights, count = self.class_weights, labelled.sum().clamp(min=1)
        if weights is not None:
            weights = weights.to(log_probabilities)
        cross_entropy = nn.functional.nll_loss(log_probabilities, labels, weight=weights, reduction="none")
        total = count
        if weights is not None:  # summed as torch sums it, in the same order
            ones = torch.full_like(log_probabilities, -1.0)
            total = nn.functional.nll_loss(ones, labels, weight=weights, reduction="sum").clamp(min=weights.min())
        mean = cross_entropy.sum() / total
        if self.label_smoothing:
            every = log_probabilities if weights is None else log_probabilities * weights
            uniform = -every.sum(-1) * labelled
            mean = (1 - self.label_smoothing) * mean
            mean = mean + self.label_smoothing * (uniform.sum() / (total * self.num_labels))
            cross_entropy = (
                1 - self.label_smoothing
            ) * cross_entropy + self.label_smoothing * uniform / self.num_labels
        return mean, cross_entropy if weights is None else cross_entropy * (count / total)


class BertForVATClassification(VATClassifier, BertPreTrainedModel):
    """
    BERT with attention pooling, a learner head on the text vector R and a compressor that predicts from z.

    `from_pretrained` takes checkpoints of this class and plain BERT checkpoints, whose encoder is loaded and whose
    new layers are initialised. What a training step trains and which loss it gets is the *phase*, see [`set_phase`].
    """

    config_class = BertVATConfig
    _keys_to_ignore_on_load_unexpected = (r"^(bert\.)?pooler\.", r"^cls\.")  # other heads of plain BERT checkpoints

    def __init__(self, config: BertVATConfig):
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self._add_heads(
            config, config.hidden_dropout_prob if config.classifier_dropout is None else config.classifier_dropout
        )
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.LongTensor | None = None,
        position_ids: torch.LongTensor | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        special_tokens_mask: torch.Tensor | None = None,
        labels: torch.LongTensor | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> tuple | VATClassifierOutput:
        r"""
        Args:
            special_tokens_mask (`torch.Tensor` of shape `(batch_size, sequence_length)`, *optional*):
                1 on special tokens. By default the first and the last token that `attention_mask` admits, which is
                where a BERT tokenizer puts [CLS] and [SEP] around a text.
            labels (`torch.LongTensor` of shape `(batch_size,)`, *optional*):
                Class ids; -100 leaves a text out of the loss.

        In training mode the loss is that of the phase; in evaluation that of the head that predicts, without sampling.
        """
        attention_mask = _all_ones(input_ids, inputs_embeds) if attention_mask is None else attention_mask
        if position_ids is None:
            position_ids = _positions(attention_mask)
        inputs = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
            "inputs_embeds": inputs_embeds,
        }
        return self._classify(inputs, special_tokens_mask, labels, **kwargs)


class EncoderForVATClassification(VATClassifier, PreTrainedModel):
    """
    Any encoder of `AutoModel` with the attention, heads and bottleneck of [`BertForVATClassification`].

    [`from_encoder_pretrained`] begins with a pretrained encoder; `from_pretrained` loads checkpoints of this class. The
    special tokens around a text are told by the configuration's `prefix_tokens` and `suffix_tokens`.
    """

    config_class = EncoderVATConfig
    base_model_prefix = "encoder"
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True

    def __init__(self, config: EncoderVATConfig, encoder: PreTrainedModel | None = None):
        super().__init__(config)
        if encoder is not None:  # loaded, with this configuration
            self.encoder = encoder
        # By type name: in a folder that brings this code along, configuration and model are loaded as modules apart.
        elif config.encoder.model_type == WordEncoderConfig.model_type:
            self.encoder = WordEncoderModel(config.encoder)
        else:
            self.encoder = AutoModel.from_config(config.encoder, **_encoder_arguments(config.encoder))
        self.supports_gradient_checkpointing = self.encoder.supports_gradient_checkpointing
        # Encoders that are given no positions number the columns, padding included; RoBERTa and its kin do not.
        takes_positions = "position_ids" in signature(type(self.encoder).forward).parameters
        self._counts_columns = takes_positions and position_offset(self.encoder) is None
        tables = (name for name, module in self.named_modules() if hasattr(module, "position_ids"))
        self._position_table = next(tables, None)
        self._add_heads(config, config.classifier_dropout)
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
        prefix, suffix = special_tokens_around(tokenizer)
        config = cls.config_class(
            **{"encoder": encoder_config, "prefix_tokens": prefix, "suffix_tokens": suffix, **settings}
        )
        encoder = AutoModel.from_pretrained(
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

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.LongTensor | None = None,
        position_ids: torch.LongTensor | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        special_tokens_mask: torch.Tensor | None = None,
        labels: torch.LongTensor | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> tuple | VATClassifierOutput:
        r"""
        Args:
            special_tokens_mask (`torch.Tensor` of shape `(batch_size, sequence_length)`, *optional*):
                1 on special tokens. By default the first `prefix_tokens` and the last `suffix_tokens` of the tokens that
                `attention_mask` admits.
            labels (`torch.LongTensor` of shape `(batch_size,)`, *optional*):
                Class ids; -100 leaves a text out of the loss.

        In training mode the loss is that of the phase; in evaluation that of the head that predicts, without sampling.
        """
        attention_mask = _all_ones(input_ids, inputs_embeds) if attention_mask is None else attention_mask
        if position_ids is None and self._counts_columns:
            position_ids = _positions(attention_mask)
            if self._position_table is not None:  # Nyströmformer counts from 2
                position_ids = self.get_submodule(self._position_table).position_ids[0][position_ids]
        inputs = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
            "inputs_embeds": inputs_embeds,
        }
        return self._classify(inputs, special_tokens_mask, labels, **kwargs)


def _all_ones(input_ids, inputs_embeds) -> torch.Tensor:
    inputs = input_ids if input_ids is not None else inputs_embeds
    return torch.ones(inputs.shape[:2], dtype=torch.long, device=inputs.device)


def _positions(attention_mask: torch.Tensor) -> torch.Tensor:
    """Position of each token in its text [B, T], from 0: padding on the left does not shift the text."""
    first = attention_mask.int().argmax(1, keepdim=True)
    return (torch.arange(attention_mask.shape[1], device=first.device) - first).clamp(min=0)


def _encoder_arguments(config) -> dict:
    """What `AutoModel` is to be told of an encoder: no pooler where its class can do without, as nothing would train it.

    Raises:
        ValueError: if the class that `AutoModel` builds does not turn each token of a text into a vector.
    """
    if type(config) not in AutoModel._model_mapping:
        raise ValueError(
            f"encoder={config.model_type!r} is no model that AutoModel builds; use an encoder such as BERT."
        )
    encoder_class = AutoModel._model_mapping[type(config)]
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


__all__ = ["BertForVATClassification", "EncoderForVATClassification", "VATClassifierOutput"]
