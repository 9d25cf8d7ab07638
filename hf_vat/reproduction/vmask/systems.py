"""The systems of the VMASK paper on its encoders: what they are made of, and how they are trained."""

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from datasets import DatasetDict

from hf_vat.data.offline import glove_folder, minilm_folder
from hf_vat.reproduction.running import train_once
from hf_vat.training import ModelArguments, recipes

from .paper import VMASK_LENGTHS

SYSTEMS = ("base", "l2", "L2X", "IBA", "VMASK")
_MASK_TYPES = {"base": "none", "l2": "none", "L2X": "l2x", "IBA": "iba", "VMASK": "vmask"}


@dataclass(frozen=True)
class Recipe:
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
class Encoder:
    """An encoder of the reproduction, and the training of all systems on it.

    Attributes:
        paper: name of the paper's encoder that it stands for.
        model: its part of `ModelArguments`, made when it is needed, as packages are looked up.
        training: its part of `VATTrainingArguments`.
        start_epochs: epochs of fine-tuning without mask that come first and that all systems share (the paper: "we
            fine-tune BERT-base on the task first"); 0 for encoders that start with a mask.
        epochs: epochs of each system after that, with frozen embeddings.
        weight_decay: of the system l2.
        lime_samples, shapley_samples: subsets of a text for LIME, and orders of its words for sampled Shapley values.
        recipe: of VMASK.
        paper_lengths: whether texts are cut to the words that the paper's table 7 has.
    """

    paper: str
    model: Callable[[], dict]
    training: dict
    start_epochs: int
    epochs: int
    weight_decay: float
    lime_samples: int
    shapley_samples: int
    recipe: Recipe = Recipe()
    paper_lengths: bool = False

    @property
    def pretrained(self) -> bool:
        return self.paper == "BERT"

    def decisive(self, kind: str) -> dict:
        """What must agree before a trained system, or the cost of all, is used again."""
        settled = asdict(self)
        del settled["model"]  # a function
        if kind not in ("VMASK", "cost"):
            del settled["recipe"]
        return settled

    def system(self, kind: str) -> dict:
        """What makes a system, as model arguments and training arguments."""
        model, training = {"mask_type": _MASK_TYPES[kind]}, {"num_train_epochs": self.epochs}
        if kind == "l2":
            training["weight_decay"] = self.weight_decay
        if kind == "VMASK":
            for name, value in asdict(self.recipe).items():
                (training if name.startswith("beta") else model)[f"mask_{name}"] = value
        return {"model": model, "training": training}


def _glove() -> dict:
    return {"vectors": glove_folder(), "word_preset": "vmask", "word_dropout": 0.2}


# docs/results/vmask.md was measured with a constant rate.
_PRETRAINED = recipes.PRETRAINED | {"lr_scheduler_type": "constant_with_warmup"}
ENCODERS = {
    "cnn": Encoder(
        "CNN", lambda: {"word_encoder": "cnn", "encoder_size": 300, **_glove()}, recipes.WORDS, 0, 40, 0.1, 500, 10
    ),
    "lstm": Encoder(
        "LSTM", lambda: {"word_encoder": "lstm", "encoder_size": 100, **_glove()}, recipes.WORDS, 0, 40, 0.1, 500, 10
    ),
    "minilm": Encoder("BERT", lambda: {"model_name_or_path": minilm_folder()}, _PRETRAINED, 3, 3, 0.1, 100, 5),
    "bert": Encoder(
        "BERT", lambda: {"model_name_or_path": "google-bert/bert-base-uncased"}, _PRETRAINED, 3, 3, 0.1, 100, 5
    ),
}
RECIPES = ("paper", "code")
_CODE_HIDDEN = {"CNN": 500, "LSTM": 300, "BERT": 100}


def with_recipe(encoder: str, recipe: str) -> str:
    """The name of an encoder of [`ENCODERS`] under a recipe."""
    return encoder if recipe == "paper" else f"{encoder}-{recipe}"


def _by_code(usual: Encoder) -> Encoder:
    """The encoder and its systems as in the published code, but for learning rate, batches and, of CNN and LSTM, epochs.

    Two layers score a word, draws are 0 or 1, the term is the mean over all positions of batches in random order, padding
    included, and β goes down in ten steps. The head of CNN and LSTM is one linear layer (BERT's pooler makes it two, as ours
    are), their texts have the paper's lengths, and a CNN's embeddings have no dropout. BERT's mask lies on the whole embedding
    output.
    """
    pretrained = usual.pretrained
    epochs = 10 if pretrained else usual.epochs  # the code has 100
    recipe = Recipe(
        layers=2,
        sample="hard_st",
        hidden_size=_CODE_HIDDEN[usual.paper],
        reduction="position_mean",
        site="embedding_output" if pretrained else "word",
        beta_step_epochs=epochs // 10,
    )
    differs = {} if pretrained else {"head_layers": 1}
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


BY_CODE = {with_recipe(name, "code"): _by_code(encoder) for name, encoder in ENCODERS.items()}
ENCODERS |= BY_CODE


def _length(encoder: Encoder, dataset: str) -> int:
    return VMASK_LENGTHS.get(dataset, 256) if encoder.paper_lengths else 256


def train_system(
    kind: str,
    encoder: Encoder,
    data: DatasetDict,
    name: str,
    seed: int,
    folder: Path,
    decisive: dict,
    start: Path | None = None,
    bf16: bool = False,
) -> Path:
    """Train a system, unless it is trained already, and keep the model of the epoch that is best on validation data.

    Args:
        kind: a system, or "start": what systems on a pretrained encoder share.
        name: of the data set, for the run's settings.
        folder, decisive: see [`train_once`].
        start: folder of the model of "start"; None for encoders without.

    Returns:
        The folder, with the model and its tokenizer.

    Raises:
        InputError: if the folder holds another run, or the encoder cannot be loaded.
    """
    model = encoder.model() if start is None else {"model_name_or_path": str(start)}
    if kind == "start":
        made = {
            "model": {"pooling": "first", "bottleneck": "none"},
            "training": {"num_train_epochs": encoder.start_epochs},
        }
    else:
        made = encoder.system(kind)
    train_once(
        folder,
        decisive,
        ModelArguments(max_length=_length(encoder, name), **made["model"], **model),
        name,
        data,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="accuracy",
        seed=seed,
        bf16=bf16,
        **made["training"],
        **encoder.training,
    )
    for checkpoint in folder.glob("checkpoint-*"):  # the best is what the folder itself holds
        shutil.rmtree(checkpoint)
    return folder
