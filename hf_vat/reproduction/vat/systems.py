"""The systems of the VAT paper on its encoders: what they are made of, and how they are trained."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from datasets import DatasetDict
from transformers import TrainerCallback

from ...data.offline import glove_folder, minilm_folder
from ...training import ModelArguments
from ..running import train_once

# Rows of the tables by the kind of training run that gives them. ATT is the run's iteration 0, as in the paper; ATT
# (matched) has as many updates of the encoder as VAT, and is not in the paper.
ROWS = {"base": ("base", "Random"), "ATT": ("ATT", "ATT (matched)"), "VAT": ("VAT",)}
KINDS = tuple(ROWS)
SYSTEMS = tuple(row for rows in ROWS.values() for row in rows if row != "Random")


@dataclass(frozen=True)
class Recipe:
    """Phases and compression of VAT; base and ATT are trained for as many epochs as VAT trains the encoder.

    Without a start there is no iteration 0; ATT is then that of iteration 1.

    Attributes:
        start, start_epochs: first phase, iteration 0.
        rounds, compress_epochs, learn_epochs: iterations 1 to `rounds`, each a compressor and a learner phase.
        heads, beta, kl_reduction: see [`~hf_vat.EncoderVATConfig`].
        compressor_learning_rate: peak learning rate of all that is not the encoder's.
    """

    start: str
    start_epochs: int
    rounds: int
    compress_epochs: int
    learn_epochs: int
    heads: str
    beta: float
    kl_reduction: str
    compressor_learning_rate: float = 1e-3

    def iterations(self, bottleneck: bool) -> dict[int, int]:
        """Epochs after which an iteration is finished, by iteration; without a bottleneck there is no compressor phase."""
        per_round = self.learn_epochs + (self.compress_epochs if bottleneck else 0)
        ends = {number: self.start_epochs + number * per_round for number in range(self.rounds + 1)}
        return ends if self.start_epochs else {number: end for number, end in ends.items() if number}

    def decisive(self, kind: str) -> dict:
        """The settings that matter to a training run of a kind; without a bottleneck those of the compressor do not."""
        settings = asdict(self)
        if kind != "VAT":
            for name in ("start", "compress_epochs", "heads", "beta", "kl_reduction"):
                del settings[name]
        return settings


@dataclass(frozen=True)
class Encoder:
    """An encoder of the reproduction.

    Attributes:
        paper: name of the paper's encoder that it stands for.
        model: its part of `ModelArguments`, made when it is needed, as packages are looked up.
        training: its part of `VATTrainingArguments`.
        base_pooling: pooling of the base system (VAT paper, section 4.2).
        recipe: of VAT, found on validation data with the LSTM and with MiniLM (docs/heads).
    """

    paper: str
    model: Callable[[], dict]
    training: dict
    base_pooling: str
    recipe: Recipe

    @property
    def pretrained(self) -> bool:
        return self.paper == "BERT"


# With a one-way LSTM, whose states sum up what came before, attention ranked the words of TREC no better than chance.
_LSTM = {"word_encoder": "lstm", "bidirectional": True, "encoder_size": 200, "word_dropout": 0.3}
_WORDS = {"learning_rate": 1e-3, "per_device_train_batch_size": 64, "lr_scheduler_type": "constant"}
_PRETRAINED = {
    **{"learning_rate": 5e-5, "per_device_train_batch_size": 32},
    # Phases that come late need their learning rate as well.
    **{"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 0.1},
}
_BERT_RECIPE = Recipe("joint", 0, 2, 2, 2, "separate", 0.1, "sum")
ENCODERS = {
    "lstm": Encoder(
        "LSTM",
        lambda: {**_LSTM, "vectors": glove_folder()},
        _WORDS,
        "max",
        Recipe("joint", 6, 2, 2, 3, "separate", 0.01, "sum"),
    ),
    "minilm": Encoder("BERT", lambda: {"model_name_or_path": minilm_folder()}, _PRETRAINED, "first", _BERT_RECIPE),
    "bert": Encoder(
        "BERT", lambda: {"model_name_or_path": "google-bert/bert-base-uncased"}, _PRETRAINED, "first", _BERT_RECIPE
    ),
}


class _KeepIterations(TrainerCallback):
    """A checkpoint at the end of each iteration."""

    def __init__(self, ends):
        self.ends = set(ends)

    def on_epoch_end(self, args, state, control, **kwargs):
        control.should_save = round(state.epoch) in self.ends
        return control


def train_system(
    kind: str,
    encoder: Encoder,
    recipe: Recipe,
    data: DatasetDict,
    name: str,
    seed: int,
    folder: Path,
    decisive: dict,
    bf16: bool = False,
) -> dict[int, Path]:
    """Train a system, unless it is trained already, and keep the model of every iteration.

    Args:
        kind: "base", "ATT" or "VAT".
        name: of the data set, for the run's settings.
        folder, decisive: see [`train_once`].

    Returns:
        Folder of the model and its tokenizer, by iteration, in order.

    Raises:
        InputError: if the folder holds another run, or the encoder cannot be loaded.
    """
    compresses = kind == "VAT"
    ends = recipe.iterations(compresses)
    train_once(
        folder,
        decisive,
        ModelArguments(
            pooling=encoder.base_pooling if kind == "base" else "attention",
            bottleneck="gaussian" if compresses else "none",
            heads=recipe.heads,
            beta=recipe.beta,
            kl_reduction=recipe.kl_reduction,
            max_length=256,
            **encoder.model(),
        ),
        name,
        data,
        [_KeepIterations(ends.values())],
        num_train_epochs=max(ends.values()),
        start=recipe.start,
        start_epochs=recipe.start_epochs,
        compress_epochs=recipe.compress_epochs,
        learn_epochs=recipe.learn_epochs,
        compressor_learning_rate=recipe.compressor_learning_rate,
        predict_from="learner",
        save_strategy="no",
        eval_strategy="no",
        seed=seed,
        bf16=bf16,
        **encoder.training,
    )
    found = {}
    for checkpoint in folder.glob("checkpoint-*"):
        epoch = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))["epoch"]
        # An interrupted run has another checkpoint, where it stopped.
        found |= {number: checkpoint for number, end in ends.items() if abs(epoch - end) < 1e-6}
    return dict(sorted(found.items()))
