"""Arguments of a run that say which model is trained."""

from dataclasses import dataclass, field


@dataclass
class ModelArguments:
    """The encoder and what is put on top of it; see [`BertVATConfig`], [`EncoderVATConfig`], [`WordEncoderConfig`].

    With `mask_type` the model is a [`BertWithVMask`] or [`EncoderWithVMask`], see [`VMaskSettings`]. What is not given is then
    as in their configuration, or as in the checkpoint of ours that `model_name_or_path` names: the second stage of VMASK
    keeps encoder, pooling and head of the first. `mask_type="none"` is the paper's base model, whose embeddings are frozen
    too, and with `weight_decay` its ℓ2 baseline (AdamW, so the decay is decoupled; biases and layer norms have none).
    """

    model_name_or_path: str = field(
        default="google-bert/bert-base-uncased",
        metadata={"help": "Checkpoint of an encoder, such as BERT or RoBERTa: a Hub id or a local folder."},
    )
    model_revision: str = field(default="main", metadata={"help": "Branch, tag or commit of a Hub checkpoint."})
    pooling: str | None = field(
        default=None,
        metadata={
            "help": "How tokens become a text vector; by default attention, and with --mask_type first or max.",
            "choices": ["attention", "first", "max", "mean"],
        },
    )
    bottleneck: str | None = field(
        default=None,
        metadata={
            "help": "'gaussian' is VAT, the default without --mask_type; 'none' leaves the compressor out.",
            "choices": ["gaussian", "none"],
        },
    )
    heads: str | None = field(
        default=None,
        metadata={
            "help": "Heads of learner and compressor, separate by default.",
            "choices": ["separate", "shared", "shared_mean"],
        },
    )
    head_layers: int | None = field(
        default=None,
        metadata={"help": "Layers of a head: 2 by default, or 1, a linear layer.", "choices": [1, 2]},
    )
    beta: float | None = field(default=None, metadata={"help": "Weight of the compression term, 0.1 by default."})
    kl_reduction: str | None = field(
        default=None, metadata={"help": "KL over latent dimensions, mean by default.", "choices": ["mean", "sum"]}
    )
    prior: str | None = field(
        default=None, metadata={"help": "Prior of z, standard by default.", "choices": ["standard", "learned"]}
    )
    mask_type: str | None = field(
        default=None,
        metadata={
            "help": "Mask on the words: VMASK, its competitors L2X and IBA, or 'none', the base model they compare with.",
            "choices": ["vmask", "l2x", "iba", "none"],
        },
    )
    mask_beta: float | None = field(
        default=None, metadata={"help": "Weight of the mask's term, 1 by default; see also --mask_beta_start."}
    )
    mask_layers: int | None = field(
        default=None,
        metadata={"help": "Layers that score a word: 1, the paper and default, or 2, its code.", "choices": [1, 2]},
    )
    mask_sample: str | None = field(
        default=None,
        metadata={
            "help": "VMASK's draws in training: soft, the paper and default, or 0 and 1, its code.",
            "choices": ["soft", "hard_st"],
        },
    )
    mask_hidden_size: int | None = field(
        default=None, metadata={"help": "Width between two layers, that of the embeddings by default."}
    )
    mask_temperature: float | None = field(default=None, metadata={"help": "Temperature of the draws, 1 by default."})
    mask_reduction: str | None = field(
        default=None,
        metadata={
            "help": "The mask's term over the words of a text: their mean, the default, or their sum, as in the paper; or the "
            "mean over all positions of a batch, padding included, as in its code.",
            "choices": ["token_mean", "sum", "position_mean"],
        },
    )
    mask_k: int | None = field(default=None, metadata={"help": "Words that L2X's concrete_topk draws, 10 by default."})
    mask_site: str | None = field(
        default=None,
        metadata={
            "help": "What is masked: word embeddings, the default, or BERT's whole embedding output, as the code does.",
            "choices": ["word", "embedding_output"],
        },
    )
    mask_normalization: str | None = field(
        default=None,
        metadata={
            "help": "How L2X turns scores into weights; softmax by default.",
            "choices": ["softmax", "sigmoid", "concrete_topk"],
        },
    )
    freeze_embeddings: bool | None = field(
        default=None,
        metadata={
            "help": "With --mask_type: keep the embeddings as they were loaded. The default, but for word embeddings that "
            "begin at random."
        },
    )
    max_length: int = field(
        default=256,
        metadata={"help": "Tokens per text at most, special ones included; fewer where the checkpoint takes fewer."},
    )
    word_encoder: str | None = field(
        default=None,
        metadata={
            "help": "Train a word encoder from scratch instead of a checkpoint.",
            "choices": ["lstm", "cnn", "affine", "embedding"],
        },
    )
    word_preset: str = field(
        default="vat",
        metadata={"help": "How a word encoder's words are cut.", "choices": ["plain", "vat", "vmask", "jw"]},
    )
    min_count: int = field(
        default=1,
        metadata={
            "help": "How often a word must occur in the training data to be one of a word encoder's, unless it is among "
            "--extra_words. VMASK's threshold t is t + 1 here."
        },
    )
    vectors: str | None = field(
        default=None, metadata={"help": "Pretrained vectors of a word encoder: a file, a folder or a Hub id."}
    )
    extra_words: int = field(
        default=20_000,
        metadata={"help": "Frequent words of the vectors that a word encoder knows beside those of the training data."},
    )
    embedding_size: int = field(default=300, metadata={"help": "Width of word embeddings, without --vectors."})
    encoder_size: int | None = field(default=None, metadata={"help": "Width of a word encoder's output."})
    bidirectional: bool = field(default=False, metadata={"help": "Whether an LSTM reads in both directions."})
    word_dropout: float = field(default=0.5, metadata={"help": "Dropout of a word encoder and its heads."})
    embedding_dropout: float | None = field(
        default=None, metadata={"help": "Dropout on a word encoder's embeddings, --word_dropout by default."}
    )

    def __post_init__(self):
        if self.mask_type is None:
            self.pooling = self.pooling or "attention"
            self.bottleneck = self.bottleneck or "gaussian"
        if self.mask_type is None and self.bottleneck == "gaussian":
            self.heads, self.kl_reduction = self.heads or "separate", self.kl_reduction or "mean"
            self.prior, self.beta = self.prior or "standard", 0.1 if self.beta is None else self.beta
