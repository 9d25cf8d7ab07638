"""What classifiers put on an encoder: word mask, pooling, heads, the compressor of VAT, and the phases they are trained in."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput
from transformers.processing_utils import Unpack
from transformers.utils import ModelOutput, TransformersKwargs, logging
from transformers.utils.generic import can_return_tuple

from .attention import AdditiveAttention, ScaledDotAttention, masked_softmax, max_pool, mean_pool, weighted_sum
from .attribution import CENTERS, gradients_of, token_attribution
from .bottleneck import GaussianBottleneck
from .modeling_word_encoder import WordEncoderModel
from .phases import PHASE_OF_ALL, PHASES
from .problems import REGRESSION, Problem
from .windows import windows
from .word_mask import MASKS, InformationBottleneckMask, MaskableEmbeddings, WordMask
from .word_objective import WordObjective
from .words import position_offset

logger = logging.get_logger(__name__)

if TYPE_CHECKING:  # what the classifier is mixed into
    _Base = PreTrainedModel
else:
    _Base = object

_WINDOWS = 32  # that go through the encoder together
_BETAS = ("beta", "mask_beta")  # settings that weigh a term of the loss, and may change from step to step


@dataclass
class VATClassifierOutput(ModelOutput):
    """
    Output of VAT classifiers.

    Args:
        loss (`torch.FloatTensor` of shape `(1,)`, returned when `labels` is given):
            mean(cross_entropy) + β · mean(compression) + mask_beta · mean(mask_compression) + word_weight · mean(word_term) +
            vw_weight · vw_product over the texts with a label, as far as the loss has these terms.
        logits (`torch.FloatTensor` of shape `(batch_size, num_labels)`):
            Scores before the softmax, of the head that `config.predict_from` names.
        cross_entropy (`torch.FloatTensor` of shape `(batch_size,)`, returned when `labels` is given):
            Cross-entropy in nats, summed over the heads that the phase trains; 0 for the label -100. With class weights
            times the weight of the text's class over the mean weight in the batch. Of several labels the mean of their binary
            cross-entropies; of a regression the mean squared error of its scores.
        compression (`torch.FloatTensor` of shape `(batch_size,)`, returned when the loss has the term):
            Divergence of q(z|R) from the prior in nats, reduced over latent dimensions as `config.kl_reduction` says; the
            mean over texts of the sum is an upper bound on I(Z; R). 0 for the label -100.
        mask_compression (`torch.FloatTensor` of shape `(batch_size,)`, returned when the loss has the term):
            What the word mask keeps of a text, in nats, at least 0, reduced over its tokens as
            `config.mask_reduction` says: for VMASK the divergence of the mask from fair coins, log 2 − entropy, so at most
            log 2 for a token; for IBA the divergence from pure noise. 0 for the label -100.
        word_term (`torch.FloatTensor` of shape `(batch_size,)`, returned when the loss has the term):
            The term of `config.word_objective`: for tying the mean over tokens of ‖h_t − x_t‖, for conicity a mean cosine, for
            mlm the mean cross-entropy of hidden words in nats. 0 for the label -100.
        vw_product (`torch.FloatTensor` of shape `(1,)`, returned when the loss has the term):
            |VᵀW| or its square, as `config.vw_penalty` says.
        attention_scores (`torch.FloatTensor` of shape `(batch_size, sequence_length)`, with attention pooling):
            Scores a before the softmax, float32; 0 on special tokens and padding.
        polarity_scores (`torch.FloatTensor` of shape `(batch_size, sequence_length, num_labels)`, in evaluation):
            Logits that a linear learner head makes of each token's state, float32; 0 on special tokens and padding. Their mean
            weighted by the attention is `logits`. For two classes the polarity score of Sun & Lu is that of class 1 minus that of
            class 0. None without attention pooling, and where another head predicts.
        token_importance (`torch.FloatTensor` of shape `(batch_size, sequence_length)`, with attention pooling):
            Attention α: sums to 1 over content tokens, exactly 0 on special tokens and padding.
        token_attribution (`torch.FloatTensor` of shape `(batch_size, sequence_length, num_labels)`, if asked for in evaluation):
            With `attribution_center` what each token adds to each logit, signed: attention times the gradient of the logit at it, centred as asked; see
            [`~hf_vat.models.attribution`]. Exactly 0 on special tokens and padding. None without attention pooling, and where an adapter or a
            quantisation has put a layer of another kind into the predicting head.
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

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    cross_entropy: torch.Tensor | None = None
    compression: torch.Tensor | None = None
    mask_compression: torch.Tensor | None = None
    word_term: torch.Tensor | None = None
    vw_product: torch.Tensor | None = None
    attention_scores: torch.Tensor | None = None
    polarity_scores: torch.Tensor | None = None
    token_importance: torch.Tensor | None = None
    token_attribution: torch.Tensor | None = None
    token_mask: torch.Tensor | None = None
    pooler_output: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


class SizeMismatchError(ValueError, RuntimeError):
    """A checkpoint has layers of other sizes: a `ValueError` as all refusals here, a `RuntimeError` as in transformers."""


@dataclass
class TokenStates:
    """Texts as the attention of a classifier sees them.

    Attributes:
        states: what attention and heads read of each token, [B, T, H].
        words: the embeddings that the encoder begins with, [B, T, d]; None where they were not asked for.
        content: bool [B, T], true on tokens that are neither special nor padding.
        scores: of the attention before the softmax, float32 [B, T]; 0 outside `content`.
        attention: α, float32 [B, T].
    """

    states: torch.Tensor
    words: torch.Tensor | None
    content: torch.Tensor
    scores: torch.Tensor
    attention: torch.Tensor


class EncodedTexts(NamedTuple):
    """What a classifier's encoder makes of texts.

    Attributes:
        states: what attention and heads read of each token, [B, T, H].
        token_mask: the word mask, float32 [B, T]; None of a model without.
    """

    states: torch.Tensor
    token_mask: torch.Tensor | None


def has_label(labels: torch.Tensor) -> torch.Tensor:
    """Whether each text has a label, bool [B]; of class ids those other than -100."""
    return labels != -100 if labels.dim() == 1 else torch.ones_like(labels[:, 0], dtype=torch.bool)


def _is_plain(module: nn.Module) -> bool:
    """Whether the weights of the linear layers are all that there is of them."""
    return all(type(one) in _PLAIN for one in module.modules())


def _is_quantised(module: nn.Module) -> bool:
    """Whether it has layers of PyTorch without gradients, which warn and give none when they are asked for one."""
    return any(type(one).__module__.startswith("torch.ao.") for one in module.modules())


class ClassificationHead(nn.Module):
    """MLP with one hidden layer, or with `layers=1` a linear layer: vectors [..., N] -> logits [..., C].

    Args:
        polarity: whether the linear layer has no bias, and of two classes a single vector W: the logits are −s/2 and s/2
            with s = RᵀW.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_labels: int,
        dropout: float,
        layers: int = 2,
        polarity: bool = False,
    ):
        super().__init__()
        self.dense = nn.Linear(input_size, hidden_size) if layers == 2 else None
        self.dropout = nn.Dropout(dropout)
        self.one_vector = polarity and num_labels == 2
        self.out_proj = nn.Linear(
            hidden_size if layers == 2 else input_size, 1 if self.one_vector else num_labels, bias=not polarity
        )

    def forward(self, vector: torch.Tensor) -> torch.Tensor:
        hidden = vector if self.dense is None else torch.tanh(self.dense(vector))
        logits = self.out_proj(self.dropout(hidden))
        return torch.cat([-logits / 2, logits / 2], -1) if self.one_vector else logits

    def gradients(self, vector: torch.Tensor) -> torch.Tensor:
        """Of each logit, in evaluation, at the vectors: [..., N] -> [..., C, N]."""
        weight = self.out_proj.weight
        if self.one_vector:
            weight = torch.cat([-weight / 2, weight / 2])
        if self.dense is None:
            return weight.expand(*vector.shape[:-1], *weight.shape)
        slope = 1 - torch.tanh(self.dense(vector)).square()
        return (weight * slope.unsqueeze(-2)) @ self.dense.weight

    def directions(self) -> torch.Tensor:
        """Of a linear head the vectors [C, N] whose products with R are the logits but for the bias; of two classes, or of a
        single vector, the one [1, N] that gives the log-odds of class 1."""
        weight = self.out_proj.weight
        return weight[1:] - weight[:1] if len(weight) == 2 else weight


_PLAIN = (ClassificationHead, nn.Sequential, nn.Linear, nn.Tanh, nn.Dropout)


class VATClassifier(_Base):
    """
    What is put on an encoder: word mask, pooling, heads, compressor, phases. To be mixed into a `PreTrainedModel` whose
    `base_model` is the encoder and whose configuration holds [`VATSettings`].

    A word mask lies on the content tokens, between the word embeddings and the rest of the encoder: special tokens and
    padding reach the encoder as they are. The output then has `token_mask`, and the loss has β · mean(mask_compression)
    with β = `config.mask_beta`, which may be changed between steps.
    """

    base_model: Any  # the encoder
    accepts_loss_kwargs = False  # the loss is a batch mean; see transformers.Trainer

    def _add_heads(self, config, dropout: float) -> None:
        self.num_labels, self.problem = config.num_labels, Problem.of(config)
        self.word_objective = WordObjective(config, self.base_model) if config.word_objective != "none" else None
        hidden = config.hidden_size if self.word_objective is None else self.word_objective.output_size
        labels, head = config.num_labels, (config.head_layers, config.polarity_head)
        compresses = config.bottleneck == "gaussian"
        latent = config.latent_size or hidden
        self.word_mask = None
        self.attention: AdditiveAttention | ScaledDotAttention | None = None
        if config.pooling == "attention" and config.attention_type == "scaled_dot":
            self.attention = ScaledDotAttention(hidden, config.attention_scale)
        elif config.pooling == "attention":
            self.attention = AdditiveAttention(hidden, config.attention_size or hidden, config.attention_scale)
        self.bottleneck = (
            GaussianBottleneck(hidden, latent, config.kl_reduction, config.prior == "learned") if compresses else None
        )
        self.learner_head = (
            None
            if compresses and config.heads == "shared_mean"
            else ClassificationHead(hidden, hidden, labels, dropout, *head)
        )
        self.compressor_head = (
            ClassificationHead(latent, hidden, labels, dropout, *head)
            if compresses and config.heads != "shared"
            else None
        )
        if compresses and config.kl_reduction == "sum" and config.beta >= 1:
            logger.warning(
                'beta=%s with kl_reduction="sum": a constant z is optimal then, so expect accuracy to collapse; use a '
                'smaller beta, or kl_reduction="mean".',
                config.beta,
            )
        if config.mask_type != "none":
            words: Any = self.get_input_embeddings()
            size = words.embedding_dim if config.mask_site == "word" else hidden
            self.word_mask = MASKS[config.mask_type](config, size)
            if config.mask_site == "embedding_output":
                self.base_model.embeddings = MaskableEmbeddings(config)
        self._position_offset = position_offset(self.base_model)
        if config.freeze_embeddings:
            self._freeze_embeddings()
        self.phase = PHASE_OF_ALL[self.bottleneck is not None]
        self._closed: set[str] = set()  # parameters that the phase keeps from training
        self.label_smoothing = 0.0
        self.class_weights: torch.Tensor | None = None  # [C], how much a text of each class counts
        # Neither buffers, which would be raw memory after loading, nor on the device, as a number has no place.
        self._betas = {name: torch.tensor(0.0, dtype=torch.float64, device="cpu") for name in _BETAS}
        self.update_betas()

    def _freeze_embeddings(self) -> None:
        """Turn the parameters of the embedding layer into buffers.

        `requires_grad=False` would not last: `from_pretrained` forgets it.
        """
        layer = getattr(self.base_model, "embeddings", self.get_input_embeddings())
        for module in layer.modules():
            for name, parameter in list(module.named_parameters(recurse=False)):
                delattr(module, name)
                module.register_buffer(name, parameter.detach())

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args, ignore_mismatched_sizes: bool = False, **kwargs):
        """As in transformers; a checkpoint with other classes or sizes is refused by naming its layers.

        Raises:
            SizeMismatchError: naming each layer that does not fit, its size in the checkpoint and in the model.
        """
        # Loaded leniently first, since the base class's error names neither layers nor sizes.
        wants_info = kwargs.pop("output_loading_info", False)
        loaded: Any = super().from_pretrained(
            pretrained_model_name_or_path, *args, ignore_mismatched_sizes=True, output_loading_info=True, **kwargs
        )
        model, info = loaded
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
        explainer = getattr(self.config, "explainer", None)  # which lies beside this very model, see hf_vat.amortized
        if explainer is not None and not Path(save_directory, explainer).is_dir():
            del self.config.explainer
        # FSDP2 puts a class of its own in the place of the model's, whose code would be saved in the place of this one's.
        of_fsdp, own = type(self), next(cls for cls in type(self).__mro__ if not cls.__name__.startswith("FSDP"))
        try:
            self.__class__ = own
            return super().save_pretrained(save_directory, *args, **kwargs)
        finally:
            self.__class__ = of_fsdp
            if explainer is not None:  # the model in memory has it still
                self.config.explainer = explainer

    @classmethod
    def is_custom_code(cls) -> bool:
        """No, since everything here is initialised by `transformers.initialization`: of custom code, transformers takes a
        module without weights of its own for initialised, and the encoder's class could not scale those inside (GPT-2)."""
        return False

    @torch.no_grad()
    def _init_weights(self, module):
        super()._init_weights(module)
        std = self.config.attention_init_std
        if isinstance(module, AdditiveAttention | ScaledDotAttention) and (
            std is not None or isinstance(module, ScaledDotAttention)
        ):
            init.normal_(module.score.weight, std=1.0 if std is None else std)
        if isinstance(module, GaussianBottleneck) and module.prior_mean is not None:
            init.zeros_(module.prior_mean)
            init.zeros_(module.prior_log_scale)
        if isinstance(module, InformationBottleneckMask):
            init.zeros_(module.mean)
            init.ones_(module.variance)
            init.zeros_(module.count)

    # Phases

    def phase_modules(self, phase: str) -> dict[str, list[nn.Module]]:
        """Modules that a phase trains, by group: mask, encoder, attention, learner, compressor; see [`PHASES`].

        A word mask belongs to the encoder's input: it is trained where the encoder is.

        Raises:
            ValueError: for an unknown phase, or one that needs a compressor where there is none.
        """
        if phase not in PHASES:
            raise ValueError(f"phase={phase!r} is unknown; it must be one of {', '.join(map(repr, PHASES))}.")
        if PHASES[phase].compressor and self.bottleneck is None:
            raise ValueError(f'phase={phase!r} needs a model with bottleneck="gaussian"; this one has "none".')
        learner: list[nn.Module | None] = [self.learner_head]
        compressor: list[nn.Module | None] = [self.bottleneck, self.compressor_head]
        if self.bottleneck is not None and self.config.heads == "shared":
            compressor = [self.bottleneck, self.learner_head]
        elif self.bottleneck is not None and self.config.heads == "shared_mean":
            learner = [self.bottleneck.mean, self.compressor_head]
        groups: dict[str, list[nn.Module | None]] = {
            "mask": [self.word_mask],
            "encoder": [self.base_model, self.word_objective],
            "attention": [self.attention],
            "learner": learner,
            "compressor": compressor,
        }
        return {group: [module for module in groups[group] if module is not None] for group in PHASES[phase].trained}

    def set_phase(self, phase: str) -> None:
        """Choose what is trained: parameters outside the phase get `requires_grad=False`, so no gradient and no step.

        Parameters that the caller has frozen stay frozen in all phases. An encoder that is not trained, with its word mask,
        also stays in eval mode and builds no graph.
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
        self.phase = PHASE_OF_ALL[self.bottleneck is not None]
        self.eval()

    @property
    def _encoder_is_fixed(self) -> bool:
        return "encoder" not in PHASES[self.phase].trained

    def train(self, mode: bool = True):
        super().train(mode)
        if self._encoder_is_fixed:
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
        self,
        attention_mask: torch.Tensor,
        special_tokens_mask: torch.Tensor | None = None,
        input_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Where the tokens of the texts are, bool [B, T]: neither special tokens nor padding. Arguments as in `forward`."""
        attended = attention_mask.bool()
        if special_tokens_mask is not None:
            special = special_tokens_mask.bool()
        elif input_ids is not None and self.config.special_token_ids is not None:
            special = torch.zeros_like(attended)
            for token in self.config.special_token_ids:  # isin has no ONNX operation
                special = special | (input_ids == token)
        else:
            number = attended.cumsum(1)  # of the attended positions, from 1
            prefix, suffix = self._special_tokens_around
            special = (number <= prefix) | (number > number[:, -1:] - suffix)
        return attended & ~special

    @property
    def _special_tokens_around(self) -> tuple[int, int]:
        """How many special tokens there are before and after a text."""
        return getattr(self.config, "prefix_tokens", 1), getattr(self.config, "suffix_tokens", 1)

    def _positions(self, attention_mask: torch.Tensor) -> torch.Tensor | None:
        """Position of each token in its text [B, T], from 0: padding on the left does not shift the text."""
        first = attention_mask.int().argmax(1, keepdim=True)
        return (torch.arange(attention_mask.shape[1], device=first.device) - first).clamp(min=0)

    @can_return_tuple
    def forward(  # type: ignore[misc]  # position_ids is in TransformersKwargs too
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.LongTensor | None = None,
        position_ids: torch.LongTensor | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        special_tokens_mask: torch.Tensor | None = None,
        labels: torch.LongTensor | None = None,
        encoded_texts: EncodedTexts | None = None,
        attribution_center: str | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> tuple | VATClassifierOutput:
        r"""
        Args:
            special_tokens_mask (`torch.Tensor` of shape `(batch_size, sequence_length)`, *optional*):
                1 on special tokens. By default the tokens with `special_token_ids` of the configuration. Where it has none, the
                first and the last token that `attention_mask` admits, which is where a BERT tokenizer puts [CLS] and [SEP]
                around a text; of other encoders as many as `prefix_tokens` and `suffix_tokens` say.
            labels (`torch.LongTensor` of shape `(batch_size,)`, *optional*):
                Class ids; -100 leaves a text out of the loss. With `problem_type="multi_label_classification"` floats of shape
                `(batch_size, num_labels)`, 1 for the labels that a text has and 0 for others; with `"regression"` floats of
                shape `(batch_size, num_labels)`; of one label or score also `(batch_size,)`.
            encoded_texts (`EncodedTexts`, *optional*):
                What [`encode_texts`] has made of the same texts, in place of running the encoder; neither `hidden_states` nor
                `attentions` are in the output then.
            attribution_center (`str`, *optional*):
                Asks for `token_attribution`, and says what states are compared with: `"mean"`, the mean of the text's states,
                `"attended"`, their mean weighted by the attention, or `"none"`. Has no effect without attention pooling, or in
                training.

        Raises:
            ValueError: for `encoded_texts` in the training of the encoder, which then would have no gradient, and for an
                unknown `attribution_center`.

        In training mode the loss is that of the phase; in evaluation that of the head that predicts, without sampling.
        """
        given = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
            "inputs_embeds": inputs_embeds,
        }
        if attribution_center not in (None, *CENTERS):
            raise ValueError(
                f"attribution_center={attribution_center!r} must be one of {', '.join(map(repr, CENTERS))}."
            )
        constant = self.training and self._encoder_is_fixed  # no graph through it
        inputs, content = self._inputs(given, special_tokens_mask)
        encoded, mask_term, words = None, None, None
        if encoded_texts is None:
            with torch.no_grad() if constant else nullcontext():
                encoded, token_mask, mask_term = self._encode(inputs, content, **self._wanted(kwargs))
            states, words = self._states(encoded)  # [B, T, H]
        elif self.training and not constant:
            raise ValueError(
                f"encoded_texts has no gradient, and phase={self.phase!r} trains the encoder; leave it out."
            )
        else:
            states, token_mask = encoded_texts
        scores, importance, attribution = None, None, None
        if self.attention is not None:
            scores = self.attention(states)  # [B, T]
            importance = masked_softmax(scores, content)
            text = weighted_sum(importance, states)  # [B, H]
            if attribution_center is not None and not self.training:
                gradients = self.logit_gradients(text)
                if gradients is not None:
                    attribution = token_attribution(states, importance, content, gradients, attribution_center)
        elif self.config.pooling == "first":
            first = inputs["attention_mask"].bool().int().argmax(1)[:, None, None]
            text = states.gather(1, first.expand(-1, 1, states.shape[-1])).squeeze(1)
        else:
            text = (max_pool if self.config.pooling == "max" else mean_pool)(states, content)

        logits, cross_entropy, compression, loss = self._heads(text, labels)
        mask_compression, word_term, vw_product = None, None, None
        if labels is not None and not constant:
            labelled = has_label(labels)
            count = labelled.sum().clamp(min=1)
            if mask_term is not None:
                mask_compression = mask_term * labelled
                loss = loss + self._beta("mask_beta") * mask_compression.sum() / count
            if self.word_objective is not None and words is not None and encoded is not None:
                word_term = self._word_term(encoded.last_hidden_state, words, inputs, content)
            if word_term is not None:
                word_term = word_term * labelled
                loss = loss + self.config.word_weight * word_term.sum() / count
            if self.config.vw_penalty != "none":
                vw_product = self.attention_polarity_product()
                vw_product = (vw_product.abs() if self.config.vw_penalty == "abs" else vw_product.square()).sum()
                loss = loss + self.config.vw_weight * vw_product
        wanted = kwargs.get("output_hidden_states") or self.config.output_hidden_states
        return VATClassifierOutput(
            loss=loss,
            logits=logits,
            cross_entropy=cross_entropy,
            compression=compression,
            mask_compression=mask_compression,
            word_term=word_term,
            vw_product=vw_product,
            attention_scores=None if scores is None else scores.float().masked_fill(~content, 0.0),
            polarity_scores=self._polarity(states, content),
            token_importance=importance,
            token_attribution=attribution,
            token_mask=token_mask,
            pooler_output=text,
            hidden_states=encoded.hidden_states if wanted and encoded is not None else None,
            attentions=getattr(encoded, "attentions", None),
        )

    def encode_texts(self, special_tokens_mask: torch.Tensor | None = None, **inputs) -> EncodedTexts:
        """What the encoder makes of texts, for `forward` to go on from, as often as the encoder stays as it is.

        Args:
            special_tokens_mask, inputs: as in `forward`.
        """
        inputs, content = self._inputs(inputs, special_tokens_mask)
        encoded, token_mask, _ = self._encode(inputs, content, **self._wanted({}))
        return EncodedTexts(self._states(encoded)[0], token_mask)

    def token_states(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        special_tokens_mask: torch.Tensor | None = None,
        words: bool = False,
    ) -> TokenStates:
        """What the attention reads and makes of texts, so that it can be replaced: `logits_of` of Σ α_t h_t with its own α are
        the logits of `forward`.

        Args:
            input_ids, attention_mask, token_type_ids, special_tokens_mask: as in `forward`.
            words: whether the embeddings are wanted too.

        Raises:
            ValueError: if the model has no attention pooling.
        """
        if self.attention is None:
            raise ValueError(f'pooling="{self.config.pooling}" has no attention; use a model with pooling="attention".')
        given = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        inputs, content = self._inputs(given, special_tokens_mask)
        encoded, _, _ = self._encode(inputs, content, **self._wanted({}, words))
        states, embedded = self._states(encoded, words)
        scores = self.attention(states)
        return TokenStates(
            states, embedded, content, scores.float().masked_fill(~content, 0.0), masked_softmax(scores, content)
        )

    def logits_of(self, text: torch.Tensor) -> torch.Tensor:
        """Logits [..., C] that the predicting head makes of text vectors R, [..., H]."""
        head = self.compressor_head or self.learner_head
        if self.config.predict_from == "learner" or self.bottleneck is None or head is None:
            return self._learner_logits(text)
        return head(self.bottleneck.mean(text))

    def logit_gradients(self, text: torch.Tensor) -> torch.Tensor | None:
        """Gradients at text vectors R, [..., H], of each logit that `logits_of` makes of them in evaluation: [..., C, H]. In closed form;
        where an adapter has put a layer of another kind into the head, by a graph through the head. None where a quantised head has no
        gradient, and of such an adapter in an exported program."""
        of_learner = self.config.predict_from == "learner" or self.bottleneck is None
        head, mean = self.compressor_head or self.learner_head, None
        if of_learner and self.learner_head is not None:
            head = self.learner_head
        else:
            assert self.bottleneck is not None
            mean = self.bottleneck.mean
        assert head is not None
        parts = [head] if mean is None else [head, mean]
        if not all(map(_is_plain, parts)):
            none = torch.compiler.is_exporting() or any(map(_is_quantised, parts))
            return None if none else gradients_of(self.logits_of, text)
        if mean is None:
            return head.gradients(text)
        assert self.bottleneck is not None
        return self.bottleneck.pulled_back(text, head.gradients(mean(text)))

    def _learner_logits(self, text: torch.Tensor) -> torch.Tensor:
        if self.learner_head is not None:
            return self.learner_head(text)
        assert self.bottleneck is not None and self.compressor_head is not None  # heads="shared_mean"
        return self.compressor_head(self.bottleneck.mean(text))

    def attention_polarity_product(self) -> torch.Tensor:
        """VᵀW of the attention's direction and the vectors of a linear learner head, [C] or for two classes [1]; with an affine
        encoder M it is VᵀMMᵀW, that of the directions in the space of embeddings (Sun & Lu, ACL 2020, appendix).

        Raises:
            ValueError: if the model has no attention, or no linear head on R.
        """
        if self.attention is None or self.learner_head is None or self.learner_head.dense is not None:
            raise ValueError('VᵀW needs pooling="attention" and head_layers=1, a linear head on the text vector.')
        attention, polarity = self.attention.direction(), self.learner_head.directions()  # [H], [C, H]
        affine = getattr(self.base_model, "encoder", None)
        if isinstance(affine, nn.Linear) and affine.out_features == len(attention):
            attention, polarity = attention @ affine.weight, polarity @ affine.weight
        return polarity @ attention

    @property
    def has_polarity(self) -> bool:
        """Whether a token has a polarity score: a linear head on R predicts, and attention pools."""
        linear = self.learner_head is not None and self.learner_head.dense is None
        return self.attention is not None and linear and self.config.predict_from == "learner"

    def _polarity(self, states: torch.Tensor, content: torch.Tensor) -> torch.Tensor | None:
        if self.training or not self.has_polarity:
            return None
        return self.logits_of(states).float().masked_fill(~content.unsqueeze(-1), 0.0)

    def _inputs(self, given: dict, special_tokens_mask: torch.Tensor | None) -> tuple[dict, torch.Tensor]:
        """What the encoder is given, and where content tokens are, bool [B, T]."""
        inputs = {name: value for name, value in given.items() if value is not None}
        if "attention_mask" not in inputs:
            texts = inputs["input_ids"] if "input_ids" in inputs else inputs["inputs_embeds"]
            inputs["attention_mask"] = torch.ones(texts.shape[:2], dtype=torch.long, device=texts.device)
        length = self.config.window_length
        if "position_ids" not in inputs and (length is None or inputs["attention_mask"].shape[1] <= length):
            positions = self._positions(inputs["attention_mask"])  # in windows each has its own
            inputs |= {} if positions is None else {"position_ids": positions}
        content = self.content_tokens(inputs["attention_mask"], special_tokens_mask, inputs.get("input_ids"))
        return inputs, content

    def _wanted(self, kwargs: dict, words: bool = False) -> dict:
        """What the encoder is asked for.

        Raises:
            ValueError: if that is self-attention, and its implementation keeps none.
        """
        kwargs = {**kwargs, "return_dict": True}
        # An encoder with a configuration of its own would not see what ours asks for.
        for name in ("output_attentions", "output_hidden_states"):
            if kwargs.get(name) is None and getattr(self.config, name):
                kwargs[name] = True
        if words or self.word_objective is not None:
            kwargs["output_hidden_states"] = True
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
        return kwargs

    def _states(self, encoded, words: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
        """What is pooled, [B, T, H], and the embeddings that the encoder began with, where there is use for them."""
        states = encoded.last_hidden_state
        if self.word_objective is None:
            return states, encoded.hidden_states[0] if words else None
        embedded = encoded.hidden_states[0][:, : states.shape[1]]  # BigBird pads texts to whole blocks inside
        return self.word_objective.pooled(states, embedded), embedded

    def _word_term(
        self, states: torch.Tensor, words: torch.Tensor, inputs: dict, content: torch.Tensor
    ) -> torch.Tensor | None:
        def encode(input_ids: torch.Tensor) -> torch.Tensor:
            return self._encode({**inputs, "input_ids": input_ids}, content, return_dict=True)[0].last_hidden_state

        assert self.word_objective is not None
        embeddings: Any = self.get_input_embeddings()
        return self.word_objective.term(states, words, content, inputs.get("input_ids"), embeddings.weight, encode)

    def _encode(self, inputs: dict, content: torch.Tensor, **kwargs):
        """The encoder's output; then the word mask [B, T] and its term [B], both None where there is none."""
        if self.word_mask is None:
            return self._run_encoder(inputs, **kwargs), None, None
        if self.config.mask_site == "embedding_output":
            return self._encode_masking_output(self.word_mask, inputs, content, **kwargs)
        inputs = dict(inputs)
        if "input_ids" in inputs:
            input_ids = inputs.pop("input_ids").long()  # tokenizers give floats if no text has a token
            inputs["inputs_embeds"] = self.get_input_embeddings()(input_ids)  # [B, T, d]
            offset = self._position_offset
            if offset is not None and "position_ids" not in inputs:
                # From embeddings such encoders cannot tell the padding, which they leave out when they count.
                words = input_ids != offset
                inputs["position_ids"] = words.cumsum(1) * words + offset
        masked = self.word_mask(inputs["inputs_embeds"], content)
        encoded = self._run_encoder({**inputs, "inputs_embeds": masked.embeddings}, **kwargs)
        return encoded, masked.probabilities, masked.term

    def _run_encoder(self, inputs: dict, **kwargs):
        """The encoder's output for texts of any length, of which those are read in windows that are longer than one.

        Windows go through the encoder `_WINDOWS` at a time, and in training are computed again for their gradients, so that
        memory grows with these and not with the texts.
        """
        length = self.config.window_length
        if length is None or inputs["attention_mask"].shape[1] <= length:
            return self.base_model(**inputs, **kwargs)
        if kwargs.get("output_attentions"):
            raise ValueError("output_attentions=True has no meaning for texts that are read in windows; leave it out.")
        around = self._special_tokens_around
        overlap = length // 4 if self.config.window_overlap is None else self.config.window_overlap
        overlap = min(overlap, length - sum(around) - 1)
        cut = windows(inputs["attention_mask"], length, overlap, *around)
        if "inputs_embeds" not in inputs:
            # Looked up as the text that they are of, for whoever asks for gradients there.
            inputs = {**inputs, "inputs_embeds": self.get_input_embeddings()(inputs["input_ids"].long())}
        attended = cut.attended.long()
        parts = {"inputs_embeds": cut.cut(inputs["inputs_embeds"]), "attention_mask": attended}
        if "token_type_ids" in inputs:
            parts["token_type_ids"] = cut.cut(inputs["token_type_ids"])
        rows: dict[str, torch.Tensor] = {name: part.flatten(0, 1) for name, part in parts.items()}  # [B · W, L, …]
        offset = self._position_offset
        if offset is not None:
            rows["position_ids"] = rows["attention_mask"].cumsum(1) * rows["attention_mask"] + offset
        else:
            positions = self._positions(rows["attention_mask"])
            rows |= {} if positions is None else {"position_ids": positions}
        needed = cut.needed.flatten().nonzero().squeeze(1)
        keeps = torch.is_grad_enabled() and any(value.requires_grad for value in self.base_model.parameters())

        def run(part: torch.Tensor) -> tuple[torch.Tensor, ...]:
            encoded = self.base_model(**{name: values[part] for name, values in rows.items()}, **kwargs)
            return (encoded.last_hidden_state, *(encoded.hidden_states or ()))

        some = needed.split(_WINDOWS)
        found = [checkpoint(run, part, use_reentrant=False) if keeps and len(some) > 1 else run(part) for part in some]
        layers = []
        for layer in zip(*found, strict=True):
            states = torch.cat(layer)
            whole = states.new_zeros(attended.shape[0] * attended.shape[1], *states.shape[1:])
            whole = whole.index_copy(0, needed, states).unflatten(0, attended.shape[:2])
            layers.append(cut.joined(whole))
        last, *hidden = layers
        return BaseModelOutput(last_hidden_state=last, hidden_states=tuple(hidden) or None)

    def _encode_masking_output(self, mask: WordMask, inputs: dict, content: torch.Tensor, **kwargs):
        of_words = {name: tensor for name, tensor in inputs.items() if name != "attention_mask"}
        masked = mask(self.base_model.embeddings(**of_words, of_words=True), content)
        inputs = {**inputs, "input_ids": None, "inputs_embeds": masked.embeddings}
        return self.base_model(**inputs, **kwargs), masked.probabilities, masked.term

    def _heads(self, text: torch.Tensor, labels: torch.Tensor | None):
        """Logits [B, C] of the predicting head, cross-entropy [B], compression [B] and loss of the phase."""
        predicting = self.config.predict_from
        in_loss = PHASES[self.phase].loss if self.training else (predicting,)
        by_head, divergence = {}, None
        if predicting == "learner" or "learner" in in_loss:
            by_head["learner"] = self._learner_logits(text)
        head = self.compressor_head or self.learner_head
        if self.bottleneck is not None and head is not None and "compressor" in (predicting, *in_loss):
            z, divergence = self.bottleneck(text)
            by_head["compressor"] = head(z)
        if labels is None:
            return by_head[predicting], None, None, None

        labels = self._check_labels(labels)
        labelled = has_label(labels)
        count = labelled.sum().clamp(min=1)
        losses, by_text = zip(*(self._task_loss(by_head[head], labels) for head in in_loss), strict=True)
        loss, cross_entropy = sum(losses), sum(by_text)
        compression = None
        if divergence is not None and "compressor" in in_loss:
            compression = divergence * labelled
            loss = loss + self._beta("beta") * compression.sum() / count
        return by_head[predicting], cross_entropy, compression, loss

    def _check_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """
        Raises:
            ValueError: if they are not those of the kind of problem.
        """
        given = f"labels of type {labels.dtype} and shape {tuple(labels.shape)}"
        if self.problem.is_single_label:
            if labels.is_floating_point() or labels.dim() != 1:
                raise ValueError(
                    f"{given} are not class ids: pass integers of shape (batch_size,) from 0 to {self.num_labels - 1}, or "
                    "-100 to leave a text out. Several labels and scores need "
                    'problem_type="multi_label_classification" or "regression" in the configuration.'
                )
            return labels
        if self.num_labels == 1 and labels.dim() == 1:
            labels = labels.unsqueeze(1)
        if labels.dim() != 2 or labels.shape[1] != self.num_labels:
            raise ValueError(
                f"{given} do not fit problem_type={self.problem.kind!r}: pass floats of shape (batch_size, {self.num_labels})."
            )
        return labels.float()

    def _task_loss(self, logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """A head's mean loss, and that of each text, [B], whose mean it is: cross-entropy between classes; binary
        cross-entropy or the squared error, as means over labels or scores."""
        if self.problem.is_single_label:
            return self._cross_entropy(logits, labels)
        if self.problem.kind == REGRESSION:
            by_text = nn.functional.mse_loss(logits.float(), labels, reduction="none").mean(1)
        else:
            by_text = nn.functional.binary_cross_entropy_with_logits(logits.float(), labels, reduction="none").mean(1)
        return by_text.mean(), by_text

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


__all__ = ["VATClassifier", "VATClassifierOutput"]
