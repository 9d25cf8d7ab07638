"""Configuration of word encoders: the embedding, affine, LSTM and CNN encoders of the papers."""

from typing import Literal

from huggingface_hub.dataclasses import strict

from .setting import ConfigWithSettings, setting

_LSTM = {"encoder_type": ("lstm",)}


@strict
class WordEncoderConfig(ConfigWithSettings):
    r"""
    Configuration of [`WordEncoderModel`], an encoder for word-level tokenizers.

    | `encoder_type` | vector of word t | `hidden_size` by default | source |
    |---|---|---|---|
    | `"embedding"` | its embedding e_t | `embedding_size` | DP and AD of Sun & Lu (ACL 2020) |
    | `"affine"` | M e_t, without bias | `embedding_size` | DP-A of Sun & Lu (ACL 2020) |
    | `"lstm"` | LSTM state at t | 100 | Zhou et al. (Findings of ACL 2021); DP-L; Tutek & Šnajder (RepL4NLP 2020) |
    | `"cnn"` | ReLU of the kernels centred on t | 100 for each of `kernel_sizes` | Chen & Ji (EMNLP 2020) |

    Args:
        vocab_size (`int`, *optional*, defaults to 10000):
            Number of words, special ones included.
        encoder_type (`str`, *optional*, defaults to `"lstm"`):
            `"embedding"`, `"affine"`, `"lstm"` or `"cnn"`.
        embedding_size (`int`, *optional*, defaults to 300):
            Width of the word embeddings.
        hidden_size (`int`, *optional*):
            Width of `last_hidden_state`, whatever the type. In a bidirectional LSTM each direction has half of it, and
            in a CNN each kernel width an equal share: `hidden_size=300` with `kernel_sizes=(3, 4, 5)` is 100 kernels of
            each. The default depends on the type, see the table.
        num_layers (`int`, *optional*, defaults to 1):
            Layers of the LSTM.
        bidirectional (`bool`, *optional*, defaults to `False`):
            Whether the LSTM reads in both directions.
        kernel_sizes (`list[int]`, *optional*, defaults to `(3, 4, 5)`):
            Kernel widths of the CNN, in words.
        dropout (`float`, *optional*, defaults to 0.5):
            Dropout between the layers of the LSTM, and on the embeddings where `embedding_dropout` says nothing.
        embedding_dropout (`float`, *optional*, defaults to `dropout`):
            Dropout on the embeddings alone. VMASK's code for its CNN has none there.
        freeze_embeddings (`bool`, *optional*, defaults to `False`):
            Whether the embeddings stay as they are, as VMASK wants its pretrained vectors: they are a buffer then, no
            parameter. Checkpoints fit either way.
        initializer_range (`float`, *optional*, defaults to 0.1):
            All weights and biases start from U(-initializer_range, initializer_range); the row of the padding token
            is zero.
        pad_token_id (`int`, *optional*, defaults to 0):
            Id of the padding token, whose embedding is not trained; None if there is none.
    """

    model_type = "word_encoder"

    vocab_size: int = 10_000
    encoder_type: Literal["embedding", "affine", "lstm", "cnn"] = setting(
        "lstm", "Type of the encoder", option="word_encoder"
    )
    embedding_size: int = setting(300, "Width of word embeddings, without --vectors", minimum=1, maximum=2**14)
    hidden_size: int | None = setting(
        None, "Width of a word encoder's output", minimum=1, maximum=2**14, option="encoder_size"
    )
    num_layers: int = setting(1, "Layers of an LSTM", needs=(_LSTM,), minimum=1, maximum=64, option=False)
    bidirectional: bool = setting(False, "Whether an LSTM reads in both directions", needs=(_LSTM,))
    kernel_sizes: list[int] | tuple[int, ...] = setting(
        (3, 4, 5), "Kernel widths of a CNN", needs=({"encoder_type": ("cnn",)},), option=False
    )
    dropout: float | int = setting(0.5, "Dropout of a word encoder and its heads", minimum=0, option="word_dropout")
    embedding_dropout: float | int | None = setting(
        None, "Dropout on a word encoder's embeddings, --word_dropout by default", minimum=0
    )
    freeze_embeddings: bool = False
    initializer_range: float | int = 0.1
    pad_token_id: int | None = 0

    def __post_init__(self, **kwargs):
        if not self.kernel_sizes or min(self.kernel_sizes) < 1:
            raise ValueError(f"kernel_sizes={self.kernel_sizes} must be one or more widths of at least 1.")
        if self.hidden_size is None:
            self.hidden_size = {"lstm": 100, "cnn": 100 * len(self.kernel_sizes)}.get(
                self.encoder_type, self.embedding_size
            )
        super().__post_init__(**kwargs)

    def validate_word_encoder(self):
        """Class validator, run at construction.

        Raises:
            ValueError: naming the setting, its value and what is allowed.
        """
        if self.vocab_size < 1:
            raise ValueError(f"vocab_size={self.vocab_size} must be at least 1.")
        for name in ("dropout", "embedding_dropout"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise ValueError(f"{name}={value} must be at least 0 and below 1.")
        if self.initializer_range <= 0:
            raise ValueError(f"initializer_range={self.initializer_range} must be above 0.")
        if self.pad_token_id is not None and not 0 <= self.pad_token_id < self.vocab_size:
            raise ValueError(
                f"pad_token_id={self.pad_token_id} must be an id below vocab_size={self.vocab_size}, or None."
            )
        if self.encoder_type == "embedding" and self.hidden_size != self.embedding_size:
            raise ValueError(
                f"hidden_size={self.hidden_size} must equal embedding_size={self.embedding_size} with "
                'encoder_type="embedding"; leave it out, or use encoder_type="affine".'
            )
        if self.encoder_type == "lstm" and self.bidirectional and self.hidden_size % 2:
            raise ValueError(
                f"hidden_size={self.hidden_size} must be even with bidirectional=True: each direction has half of it."
            )
        if self.encoder_type == "cnn" and self.hidden_size % len(self.kernel_sizes):
            raise ValueError(
                f"hidden_size={self.hidden_size} must be a multiple of {len(self.kernel_sizes)}, the number of "
                "kernel_sizes: each width has an equal share of it."
            )


__all__ = ["WordEncoderConfig"]
