"""Configurations of classifiers with VAT (Zhou et al., Findings of ACL 2021) and with word masks (VMASK, L2X, IBA)."""

from math import inf
from typing import ClassVar, Literal

from huggingface_hub.dataclasses import strict
from transformers import AutoConfig, BertConfig, PreTrainedConfig
from transformers.pipelines import PIPELINE_REGISTRY

from .configuration_word_encoder import WordEncoderConfig
from .problems import MULTI_LABEL, REGRESSION, SINGLE_LABEL, Problem
from .setting import ConfigWithSettings, declared_settings, setting


class _SavedPipelines(dict):
    """The pipelines whose code lies beside the model. `pipeline` looks here first, and would run that code, so it asks for
    trust_remote_code; a pipeline that is registered, as hf_vat does, is used instead."""

    def __contains__(self, task):
        return super().__contains__(task) and task not in PIPELINE_REGISTRY.get_supported_tasks()


# What settings need before they have an effect.
_ATTENTION = {"pooling": ("attention",)}
_ADDITIVE = {"attention_type": ("additive",)}
_LINEAR_HEAD = {"head_layers": (1,)}
_VAT = {"bottleneck": ("gaussian",)}
_VMASK = {"mask_type": ("vmask",)}
_MASK = {"mask_type": ("vmask", "l2x", "iba")}
_MASK_TERM = {"mask_type": ("vmask", "iba")}
_VW = (_ATTENTION, _LINEAR_HEAD, {"bottleneck": ("none",)})
_WORD_TERM = {"word_objective": ("tying", "mlm", "conicity")}
_MLM = {"word_objective": ("mlm",)}

# Encoders that see padding, whatever the attention mask says: they have no mask (FNet), or convolve, pool or average over what
# stands beside a text. The same text gives other numbers in another batch.
SEE_PADDING = ("canine", "convbert", "fnet", "funnel", "mobilebert", "nystromformer")

# Encoder-decoders whose encoders are models of their own in transformers, which AutoModelForTextEncoding loads.
ENCODER_HALVES = ("t5", "mt5", "umt5")

# Encoders of transformers that a mask on word embeddings cannot reach, and why.
_OUT_OF_REACH = {
    "canine": "hashes characters and has no word embeddings",
    "esm": "leaves out its embedding layer if it is given word embeddings",
    "ibert": "has quantised word embeddings with a scale, which a mask would change",
}


@strict
class VATSettings(ConfigWithSettings):
    r"""
    What VAT and word masks add to an encoder's configuration, whichever the encoder. A mask, an encoder, a pooling and a
    bottleneck are four independent choices. A setting without effect beside the others is refused, see
    [`ConfigWithSettings`].

    Args:
        pooling (`str`, *optional*, defaults to `"attention"`):
            How token vectors become one text vector R: `"attention"` (additive attention over the content tokens),
            `"first"` (the vector of the first token, [CLS]), `"max"` or `"mean"` (over the content tokens).
        bottleneck (`str`, *optional*, defaults to `"gaussian"`):
            `"gaussian"` adds the compressor, z = μ(R) + σ(R) ⊙ ε and a head on z; `"none"` leaves it out.
            `"gaussian"` needs `pooling="attention"`, since the attention is what the compressor learns.
        attention_type (`str`, *optional*, defaults to `"additive"`):
            How the attention scores a token x_t: `"additive"`, vᵀ tanh(W x_t) / λ (VAT; AD of Sun & Lu, ACL 2020), or
            `"scaled_dot"`, x_tᵀ V / λ (their DP).
        attention_size (`int`, *optional*, defaults to `hidden_size`):
            Width d_a of the additive attention.
        attention_scale (`float`, *optional*, defaults to 1.0):
            λ > 0, by which scores are divided before the softmax: small ones choose a single token, large ones average over
            all.
        attention_init_std (`float`, *optional*):
            Standard deviation of the vector v or V at the start: by default 1 for V, as in Sun & Lu's code, and that of the
            other new weights for v.
        latent_size (`int`, *optional*, defaults to `hidden_size`):
            Width d_z of z.
        heads (`str`, *optional*, defaults to `"separate"`):
            The paper leaves open whether learner and compressor share their MLP. `"separate"`: one head on R, one on
            z. `"shared"`: one head for both (needs `latent_size == hidden_size`). `"shared_mean"`: the learner
            predicts through μ(R) and the head on z.
        head_layers (`int`, *optional*, defaults to 2):
            Layers of a head: 2, with a tanh between, or 1, a linear layer (VMASK's code for its CNN and LSTM). Dropout
            comes before the last.
        polarity_head (`bool`, *optional*, defaults to `False`):
            Whether the linear head has no bias, and for two classes a single vector W: s = RᵀW is the log-odds of class 1
            (Sun & Lu, ACL 2020).
        vw_penalty (`str`, *optional*, defaults to `"none"`):
            Whether the loss has the term of Sun & Lu that keeps attention and polarity apart: `"abs"`, |VᵀW|, or
            `"square"`, its square, summed over the vectors of a head of several classes. With an affine encoder M it is
            VᵀMMᵀW, with additive attention V is its direction where tanh is linear.
        vw_weight (`float`, *optional*, defaults to 0.001):
            Weight η ≥ 0 of that term.
        word_objective (`str`, *optional*, defaults to `"none"`):
            What keeps the encoder's state h_t of a token about that token, whose embedding is x_t (Tutek & Šnajder, RepL4NLP
            2020): `"concat"` pools [h_t; x_t]; `"tying"` adds the mean over tokens of ‖h_t − x_t‖ to the loss; `"mlm"`
            the cross-entropy of words that a second pass of the encoder reads as the mask token, decoded with the word embeddings.
            Beyond that paper: `"residual"` pools h_t + x_t, and `"conicity"` adds the mean cosine between a state and their
            mean (Mohankumar et al., ACL 2020). Tying and residual need states as wide as embeddings. `"mlm"` draws words in
            training alone, so an evaluation's loss lacks it.
        word_weight (`float`, *optional*, defaults to 1.0):
            Weight ≥ 0 of that objective's term in the loss.
        mlm_probability (`float`, *optional*, defaults to 0.15):
            Share of a text's tokens that `"mlm"` hides, and at least one.
        mask_token_id (`int`, *optional*):
            Id of the tokenizer's mask token, which `"mlm"` needs.
        label_thresholds (`list[float]`, *optional*):
            With `problem_type="multi_label_classification"`, for each label the probability from which a text has it; ½ by
            default.
        special_token_ids (`list[int]`, *optional*):
            Ids of the tokens that the tokenizer puts around a text and between two. They take no part in attention and pooling.
            Where they are not known, the first and the last token that are attended to are taken for them, or as many as
            `prefix_tokens` and `suffix_tokens` say, which does not do for pairs of texts.
            [`~hf_vat.training.VATTrainer`] asks its tokenizer.
        window_length (`int`, *optional*):
            Tokens of a window, special ones included. A text that is longer is read in windows of so many tokens, which overlap;
            of each token there is one state, and attention and pooling are over all of them. By default there are no windows, and
            a text is as long as the encoder allows.
        window_overlap (`int`, *optional*, defaults to `window_length // 4`):
            Tokens that neighbouring windows share: each token's state comes from the window in which it has half as many on
            both sides, or more.
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
        mask_type (`str`, *optional*, defaults to `"none"`):
            Mask on the words: `"vmask"`, its competitors `"l2x"` and `"iba"`, or `"none"`. Defaults of the mask's settings are
            the paper's, but for `mask_reduction` and a `mask_beta` that stays as it is; what its published code does instead
            is named.
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
        freeze_embeddings (`bool`, *optional*, defaults to `False`):
            Whether the embedding layer stays as it was loaded, as in VMASK's paper and code: for BERT and its kin the module of
            word, position and type embeddings with their layer norm, for other encoders the word embeddings. Frozen
            embeddings are buffers, no parameters; checkpoints fit either way.
    """

    keys_to_ignore_at_inference: ClassVar[list[str]] = [
        "cross_entropy",
        "compression",
        "mask_compression",
        "token_importance",
        "token_attribution",
        "token_mask",
        "word_term",
        "vw_product",
        "attention_scores",
        "polarity_scores",
        "pooler_output",
        "hidden_states",
        "attentions",
    ]

    pooling: Literal["attention", "first", "max", "mean"] = setting("attention", "How tokens become a text vector")
    bottleneck: Literal["none", "gaussian"] = setting("gaussian", "'gaussian' is VAT, 'none' leaves the compressor out")
    attention_type: Literal["additive", "scaled_dot"] = setting(
        "additive", "How attention scores a token", needs=(_ATTENTION,)
    )
    attention_size: int | None = setting(
        None,
        "Width of the attention, that of the encoder by default",
        needs=(_ATTENTION, _ADDITIVE),
        minimum=1,
        maximum=2**14,
    )
    attention_scale: float | int = setting(1.0, "Number that attention scores are divided by", needs=(_ATTENTION,))
    attention_init_std: float | int | None = setting(
        None, "Standard deviation of the attention's vector at the start", needs=(_ATTENTION,), minimum=0
    )
    latent_size: int | None = setting(
        None, "Width of the compressor's z, that of the encoder by default", needs=(_VAT,), minimum=1, maximum=2**14
    )
    heads: Literal["separate", "shared", "shared_mean"] = setting(
        "separate", "Heads of learner and compressor", needs=(_VAT,)
    )
    head_layers: Literal[1, 2] = setting(2, "Layers of a head; 1 is a linear layer")
    polarity_head: bool = setting(
        False, "Whether the linear head has no bias, and for two classes a single vector", needs=(_LINEAR_HEAD,)
    )
    vw_penalty: Literal["none", "abs", "square"] = setting(
        "none",
        "Term of the loss that keeps the vectors of attention and polarity apart",
        needs=_VW,
    )
    vw_weight: float | int = setting(
        0.001, "Weight of that term", needs=(*_VW, {"vw_penalty": ("abs", "square")}), minimum=0
    )
    word_objective: Literal["none", "concat", "residual", "tying", "mlm", "conicity"] = setting(
        "none", "What keeps the state of a token about that token"
    )
    word_weight: float | int = setting(1.0, "Weight of the word objective's term", needs=(_WORD_TERM,), minimum=0)
    mlm_probability: float | int = setting(
        0.15, "Share of the tokens that mlm hides", needs=(_MLM,), minimum=0, maximum=1
    )
    mask_token_id: int | None = setting(None, "Id of the mask token", needs=(_MLM,), option=False)
    label_thresholds: list[float] | None = None
    special_token_ids: list[int] | None = None
    window_length: int | None = setting(
        None, "Tokens of a window, in which longer texts are read", minimum=3, maximum=2**20
    )
    window_overlap: int | None = setting(
        None, "Tokens that windows share, a quarter of a window by default", minimum=0, maximum=2**20
    )
    predict_from: Literal["learner", "compressor"] = setting(
        "learner", "Head whose logits the model returns", needs=(_VAT,), moves=True, option=False
    )
    beta: float | int = setting(0.1, "Weight of the compression term", needs=(_VAT,), minimum=0, moves=True)
    kl_reduction: Literal["mean", "sum"] = setting("mean", "KL over latent dimensions", needs=(_VAT,))
    prior: Literal["standard", "learned"] = setting("standard", "Prior of z", needs=(_VAT,))
    mask_type: Literal["none", "vmask", "l2x", "iba"] = setting(
        "none", "Mask on the words: VMASK, its competitors L2X and IBA, or none"
    )
    mask_layers: Literal[1, 2] = setting(
        1, "Layers that score a word: 1, as in VMASK's paper, or 2, as in its code", needs=(_MASK,)
    )
    mask_hidden_size: int | None = setting(
        None,
        "Width between two layers that score a word, that of the embeddings by default",
        needs=(_MASK, {"mask_layers": (2,)}),
        minimum=1,
        maximum=2**14,
    )
    mask_sample: Literal["soft", "hard_st"] = setting(
        "soft", "VMASK's draws in training: soft, as in its paper, or 0 and 1, as in its code", needs=(_VMASK,)
    )
    mask_temperature: float | int = setting(
        1.0,
        "Temperature of the draws",
        needs=({"mask_type": ("vmask", "l2x")}, {**_VMASK, "mask_normalization": ("concrete_topk",)}),
        minimum=0.1,  # below, draws have no gradient left
    )
    mask_beta: float | int = setting(1.0, "Weight of the mask's term", needs=(_MASK_TERM,), minimum=0, moves=True)
    mask_reduction: Literal["token_mean", "sum", "position_mean"] = setting(
        "token_mean",
        "The mask's term over the words of a text: their mean, or their sum, as in the paper; or the mean over all positions "
        "of a batch, padding included, as in its code",
        needs=(_MASK_TERM,),
    )
    mask_normalization: Literal["softmax", "sigmoid", "concrete_topk"] = setting(
        "softmax", "How L2X turns scores into weights", needs=({"mask_type": ("l2x",)},)
    )
    mask_k: int = setting(
        10,
        "Words that L2X's concrete_topk draws",
        needs=({"mask_type": ("l2x",)}, {"mask_normalization": ("concrete_topk",)}),
        minimum=1,
        maximum=2**14,
    )
    mask_site: Literal["word", "embedding_output"] = setting(
        "word", "What is masked: word embeddings, or BERT's whole embedding output, as in VMASK's code", needs=(_MASK,)
    )
    freeze_embeddings: bool = setting(
        False,
        "Keep the embeddings as they were loaded; word embeddings that begin at random are trained if it is not given",
    )

    builds_on: ClassVar[tuple[str, ...]] = ()  # types of models whose checkpoints it takes beside its own

    @classmethod
    def get_config_dict(cls, pretrained_model_name_or_path, **kwargs):
        config_dict, kwargs = super().get_config_dict(pretrained_model_name_or_path, **kwargs)
        if config_dict.get("model_type") != cls.model_type and config_dict.get("model_type") in cls.builds_on:
            config_dict.pop("model_type")  # it would hide ours
            if config_dict.get("mask_type") == "none":  # then the class's own mask is put on it
                masked = {name for name in declared_settings(cls) if name.startswith("mask_")} | {"freeze_embeddings"}
                config_dict = {name: value for name, value in config_dict.items() if name not in masked}
        return config_dict, kwargs

    @classmethod
    def from_dict(cls, config_dict, **kwargs):
        """As in transformers, which loads checkpoints through it.

        Raises:
            ValueError: if a word mask is to become another one, as its scores would mean something else. With
                `mask_type="none"` it may be left out.
        """
        if config_dict.get("model_type") == cls.model_type or "mask_type" in config_dict:
            stored = {name: config_dict.get(name, getattr(cls, name)) for name in ("mask_type", "mask_site")}
            wanted = {name: kwargs.get(name, value) for name, value in stored.items()}
            if wanted != stored and "none" not in (stored["mask_type"], wanted["mask_type"]):
                was, would_be = (", ".join(f"{name}={value!r}" for name, value in s.items()) for s in (stored, wanted))
                raise ValueError(
                    f"The checkpoint has a word mask with {was}, whose scores mean something else with {would_be}. Leave "
                    "that out to go on with this mask, or begin with a checkpoint without a mask."
                )
        # What the caller says about labels replaces a checkpoint's names and their inverse together.
        number = len(config_dict.get("id2label") or ())
        if "id2label" in kwargs or "label2id" in kwargs or kwargs.get("num_labels", number) != number:
            settings = ("num_labels", "id2label", "label2id")
            given = {name: kwargs.pop(name) for name in settings if name in kwargs}
            config_dict = {key: value for key, value in config_dict.items() if key not in settings} | given
        # Together with the labels, of which a score may be the only one.
        config_dict = config_dict | {name: kwargs.pop(name) for name in ("problem_type",) if name in kwargs}
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
        if not 0 < self.attention_scale < inf:
            raise ValueError(f"attention_scale={self.attention_scale} must be above 0 and finite.")
        if self.word_objective == "mlm" and self.mask_token_id is None:
            raise ValueError(
                'word_objective="mlm" hides words behind the mask token; give mask_token_id=tokenizer.mask_token_id.'
            )
        if self.heads == "shared" and self.latent_size not in (None, self.hidden_size):
            raise ValueError(
                f'heads="shared" reads R and z alike, so latent_size={self.latent_size} must equal '
                f"hidden_size={self.hidden_size}."
            )
        problem = Problem.of(self)
        if self.num_labels < 2 and self.problem_type in (None, SINGLE_LABEL):
            raise ValueError(
                f"num_labels={self.num_labels} with problem_type={self.problem_type!r}: a text has one of two classes or more. "
                f'For a score give problem_type="{REGRESSION}", for a single label that a text has or not '
                f'"{MULTI_LABEL}".'
            )
        if self.label_thresholds is not None and problem.kind != MULTI_LABEL:
            raise ValueError(f'label_thresholds are for problem_type="{MULTI_LABEL}", not {self.problem_type!r}.')
        if self.window_length is not None:
            room = self.window_length - getattr(self, "prefix_tokens", 1) - getattr(self, "suffix_tokens", 1)
            positions = getattr(self, "max_position_embeddings", None) or 0
            if self.mask_site != "word":
                raise ValueError(f'mask_site="{self.mask_site}" masks a whole text, so it cannot be read in windows.')
            if 0 < positions < self.window_length:
                raise ValueError(
                    f"window_length={self.window_length} is more than the encoder's {positions} positions."
                )
            if self.window_overlap is not None and self.window_overlap >= room:
                raise ValueError(
                    f"window_overlap={self.window_overlap} must be below {room}, the tokens of a text that a window has."
                )
        elif self.window_overlap is not None:
            raise ValueError("window_overlap is of windows; give window_length too.")
        if self.polarity_head and not problem.is_single_label:
            raise ValueError(
                f"polarity_head=True makes log-odds between classes; with problem_type={self.problem_type!r} leave it out."
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
    builds_on: ClassVar[tuple[str, ...]] = (BertConfig.model_type, "bert_vat", "bert_vmask")


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
    builds_on: ClassVar[tuple[str, ...]] = ("encoder_vat", "encoder_vmask")
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
                self.encoder = WordEncoderConfig.from_dict(settings)
            else:
                self.encoder = AutoConfig.for_model(model_type, **settings)
        if self.encoder.is_encoder_decoder and self.encoder.model_type not in ENCODER_HALVES:
            raise ValueError(
                f"encoder={self.encoder.model_type!r} is an encoder-decoder; use a model with an encoder only, or one of "
                f"{', '.join(ENCODER_HALVES)}, whose encoder transformers loads alone."
            )
        if not isinstance(getattr(self.encoder, "hidden_size", None), int):
            raise ValueError(
                f"encoder={self.encoder.model_type!r} has no single hidden_size, the width of a token's vector; use an "
                "encoder of texts, such as BERT."
            )
        projected = getattr(self.encoder, "word_embed_proj_dim", None)  # of OPT
        if projected not in (None, self.encoder.hidden_size):
            raise ValueError(
                f"encoder={self.encoder.model_type!r} gives states of word_embed_proj_dim={projected}, and not of its "
                f"hidden_size={self.encoder.hidden_size}; use one whose two are equal, such as facebook/opt-125m."
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
        if self.pooling is None:
            self.pooling = "first" if self.prefix_tokens else "max"
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
        if self.mask_type != "none" and self.encoder.model_type in _OUT_OF_REACH:
            raise ValueError(
                f'encoder="{self.encoder.model_type}" cannot have a word mask: it {_OUT_OF_REACH[self.encoder.model_type]}. '
                'Use another encoder, such as BERT, RoBERTa or DeBERTa, or mask_type="none".'
            )
        if self.window_length is not None and self.encoder.model_type in _OUT_OF_REACH:
            raise ValueError(
                f'encoder="{self.encoder.model_type}" cannot read windows: it {_OUT_OF_REACH[self.encoder.model_type]}. Leave '
                "window_length out."
            )
        of_words = self.encoder.model_type == WordEncoderConfig.model_type
        words = self.encoder.embedding_size if of_words else self.hidden_size  # elsewhere mapped to that width
        if self.word_objective in ("tying", "residual") and words != self.hidden_size:
            raise ValueError(
                f'word_objective="{self.word_objective}" compares states with embeddings, so the encoder\'s hidden_size='
                f'{self.hidden_size} must equal its embedding_size={words}; or use "concat" or "mlm".'
            )
        if self.mask_site != "word":
            raise ValueError(f'mask_site="{self.mask_site}" is for BERT; with other encoders use mask_site="word".')


__all__ = ["BertVATConfig", "EncoderVATConfig"]
