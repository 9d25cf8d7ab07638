"""The systems of the VMASK paper on its encoders: what they are made of, and how they are trained."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from hf_vat.reproduction.encoders import BERT, MINILM, Encoder, under_recipe, word_encoder

SYSTEMS = ("base", "l2", "L2X", "IBA", "VMASK")
_MASK_TYPES = {"base": "none", "l2": "none", "L2X": "l2x", "IBA": "iba", "VMASK": "vmask"}


@dataclass(frozen=True)
class MaskRecipe:
    """How VMASK is trained where paper and published code differ or are silent. The defaults are the recipe "paper".

    Attributes:
        layers, sample, hidden_size, reduction, site: see [`VATSettings`], where they begin with `mask_`.
        beta_start, beta_end, beta_step_epochs: weight of the entropy by epoch, see [`BetaSchedule`].
    """

    layers: int = 1
    sample: str = "soft"
    hidden_size: int | None = None
    reduction: str = "token_mean"
    site: str = "word"
    beta_start: float = 1.0  # close to the code's values, as the paper tells none
    beta_end: float = 0.01
    beta_step_epochs: int | None = None


@dataclass(frozen=True)
class VMaskEncoder(Encoder):
    """An encoder, and the training of all systems on it.

    Attributes:
        start_epochs: epochs of fine-tuning without mask that come first and that all systems share (the paper: "we
            fine-tune BERT-base on the task first"); 0 for encoders that start with a mask.
        epochs: epochs of each system after that, with frozen embeddings.
        weight_decay: of the system l2.
        lime_samples, shapley_samples: subsets of a text for LIME, and orders of its words for sampled Shapley values.
        recipe: of VMASK.
        paper_lengths: whether texts are cut to the words that the paper's table 7 has.
    """

    start_epochs: int
    epochs: int
    weight_decay: float
    lime_samples: int
    shapley_samples: int
    recipe: MaskRecipe = MaskRecipe()
    paper_lengths: bool = False

    def decisive(self, kind: str) -> dict:
        """Of "cost" too, that of all systems."""
        settled = asdict(self)
        del settled["model"]  # a function
        if kind not in ("VMASK", "cost"):
            del settled["recipe"]
        return settled

    def system(self, kind: str) -> tuple[dict, dict]:
        """Of "start" too, which systems on a pretrained encoder share."""
        if kind == "start":
            return {"pooling": "first", "bottleneck": "none"}, {"num_train_epochs": self.start_epochs}
        model: dict[str, Any] = {"mask_type": _MASK_TYPES[kind]}
        training: dict[str, Any] = {"num_train_epochs": self.epochs}
        if kind == "l2":
            training["weight_decay"] = self.weight_decay
        if kind == "VMASK":
            for name, value in asdict(self.recipe).items():
                (training if name.startswith("beta") else model)[f"mask_{name}"] = value
        return model, training


# docs/results/vmask.md was measured with a constant rate.
_CONSTANT = {"training": MINILM["training"] | {"lr_scheduler_type": "constant_with_warmup"}}
_GLOVE: dict[str, Any] = {"word_preset": "vmask", "word_dropout": 0.2}
_SCRATCH: dict[str, Any] = {
    "start_epochs": 0,
    "epochs": 40,
    "weight_decay": 0.1,
    "lime_samples": 500,
    "shapley_samples": 10,
}
_STARTED: dict[str, Any] = {
    "start_epochs": 3,
    "epochs": 3,
    "weight_decay": 0.1,
    "lime_samples": 100,
    "shapley_samples": 5,
}
ENCODERS = {
    "cnn": VMaskEncoder(**word_encoder("cnn", encoder_size=300, **_GLOVE), **_SCRATCH),
    "lstm": VMaskEncoder(**word_encoder("lstm", encoder_size=100, **_GLOVE), **_SCRATCH),
    "minilm": VMaskEncoder(**(MINILM | _CONSTANT), **_STARTED),
    "bert": VMaskEncoder(**(BERT | _CONSTANT), **_STARTED),
}
_CODE_HIDDEN = {"CNN": 500, "LSTM": 300, "BERT": 100}


def _by_code(usual: VMaskEncoder) -> VMaskEncoder:
    """The encoder and its systems as in the published code, but for learning rate, batches and, of CNN and LSTM, epochs.

    Two layers score a word, draws are 0 or 1, the term is the mean over all positions of batches in random order, padding
    included, and β goes down in ten steps. The head of CNN and LSTM is one linear layer (BERT's pooler makes it two, as ours
    are), their texts have the paper's lengths, and a CNN's embeddings have no dropout. BERT's mask lies on the whole embedding
    output.
    """
    pretrained = usual.pretrained
    epochs = 10 if pretrained else usual.epochs  # the code has 100
    recipe = MaskRecipe(
        layers=2,
        sample="hard_st",
        hidden_size=_CODE_HIDDEN[usual.paper],
        reduction="position_mean",
        site="embedding_output" if pretrained else "word",
        beta_step_epochs=epochs // 10,
    )
    differs: dict[str, Any] = {} if pretrained else {"head_layers": 1}
    if usual.paper == "CNN":
        differs["embedding_dropout"] = 0.0
    return replace(
        usual,
        model=lambda: usual.model() | differs,
        training=usual.training | {"train_sampling_strategy": "random"},
        epochs=epochs,
        recipe=recipe,
        paper_lengths=not pretrained,
    )


ENCODERS |= {under_recipe(name, "code"): _by_code(encoder) for name, encoder in ENCODERS.items()}
