"""How VAT is trained on a pretrained encoder, and on a word encoder from scratch: the same for users and for the papers again.

Chosen on validation data: docs/schedules.md, docs/heads.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from hf_vat.options import has_effect


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

    def model(self, bottleneck: bool) -> dict:
        """The part of [`ModelArguments`]."""
        if not bottleneck:
            return {"bottleneck": "none"}
        return {"bottleneck": "gaussian", "heads": self.heads, "beta": self.beta, "kl_reduction": self.kl_reduction}

    def training(self, bottleneck: bool) -> dict:
        """The part of [`VATTrainingArguments`]."""
        settings = {
            "num_train_epochs": max(self.iterations(bottleneck).values()),
            "compressor_learning_rate": self.compressor_learning_rate,
        }
        if bottleneck:
            names = ("start", "start_epochs", "compress_epochs", "learn_epochs")
            settings |= {name: getattr(self, name) for name in names}
        return settings


# With a one-way LSTM, whose states sum up what came before, attention ranked the words of TREC no better than chance.
LSTM = {"bidirectional": True, "encoder_size": 200, "word_dropout": 0.3}
WORDS = {"learning_rate": 1e-3, "per_device_train_batch_size": 64, "lr_scheduler_type": "constant"}
WORDS_RECIPE = Recipe("joint", 6, 2, 2, 3, "separate", 0.01, "sum")
# What the published code of Sun & Lu (ACL 2020) does; its strength of ℓ2 is a guess, as the paper tells none.
ADAGRAD = {
    **{"optim": "adagrad", "optim_args": "lr_decay=0.001", "lr_scheduler_type": "constant", "max_grad_norm": 0.0},
    **{"learning_rate": 0.02, "compressor_learning_rate": 0.02, "per_device_train_batch_size": 100},
    "num_train_epochs": 40,
}
PRETRAINED = {
    **{"learning_rate": 5e-5, "per_device_train_batch_size": 32},
    **{"lr_scheduler_type": "linear", "warmup_steps": 0.1},  # in each phase
}
PRETRAINED_RECIPE = Recipe("finetune", 0, 1, 2, 4, "separate", 0.1, "mean")
# Settings of a model by the name of a preset, over those of the recipe; chosen on validation data: docs/one_pass.md.
PRESETS = {"faithful": {"word_objective": "residual"}}


_TOLD = (
    *("mask_type", "mask_layers", "mask_hidden_size", "mask_sample", "mask_reduction", "mask_site"),
    *("mask_beta", "mask_beta_start", "mask_beta_end", "mask_beta_step_epochs", "weight_decay", "weight_decay_on"),
    *("attention_type", "attention_scale", "vw_penalty", "vw_weight"),
    *("word_objective", "word_weight", "mlm_probability"),
    *("pooling", "bottleneck", "heads", "beta", "kl_reduction"),
    *("start", "start_epochs", "compress_epochs", "learn_epochs"),
    *("num_train_epochs", "learning_rate", "compressor_learning_rate", "optim_args"),
    *("lr_scheduler_type", "warmup_steps", "per_device_train_batch_size", "train_sampling_strategy"),
)


def recipe_defaults(model_args, streaming: bool = False) -> dict:
    """Defaults of a training command, by name of the option: the recipe of the encoder that its model arguments ask for.

    Args:
        model_args: [`ModelArguments`] with the options that were given.
        streaming: whether the rows are read as they come, so that none can be grouped by length.
    """
    words = model_args.word_encoder is not None
    training, recipe = (WORDS, WORDS_RECIPE) if words else (PRETRAINED, PRETRAINED_RECIPE)
    defaults = training | (LSTM if model_args.word_encoder == "lstm" else {})
    if not streaming:
        defaults["train_sampling_strategy"] = "group_by_length"
    if model_args.mask_type is None:
        bottleneck = model_args.bottleneck == "gaussian"
        defaults |= recipe.model(bottleneck) | recipe.training(bottleneck)
    return defaults


def describe_recipe(settings: Mapping[str, object]) -> str:
    """How a model is trained, in one line: the settings that are given and have an effect.

    Args:
        settings: those of [`ModelArguments`] and [`VATTrainingArguments`] together, by name.
    """
    known = defaultdict(lambda: None, settings)
    told = {name: getattr(known[name], "value", known[name]) for name in _TOLD if has_effect("train", name, known)}
    told["weight_decay"] = told["weight_decay"] or None
    return ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)
