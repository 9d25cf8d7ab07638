"""The systems of Sun and Lu: four models, each with attention scores divided by several λ, and DP with their term on VᵀW."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from hf_vat.reproduction.encoders import Encoder
from hf_vat.training import recipes

PATIENCE = (
    10  # epochs without a better accuracy on validation data, after which training stops; the paper goes on to 40
)


class Scaling(NamedTuple):
    """What a system divides attention scores by, and the weight η of |VᵀW| in its loss."""

    scale: float
    weight: float = 0.0

    @property
    def row(self) -> str:
        """Its row in the tables."""
        return f"λ = {self.scale:g}" + (f", η = {self.weight:g}" if self.weight else "")


LAMBDAS = ("0.001", "1", "10", "20", "50", "100", "10000")
PENALIZED = {f"{scale}-vw-{weight}": (scale, weight) for scale in ("10", "100") for weight in ("0.0001", "0.001")}
SYSTEMS = {name: Scaling(float(name)) for name in LAMBDAS} | {
    name: Scaling(*map(float, numbers)) for name, numbers in PENALIZED.items()
}
ROWS = {name: (system.row,) for name, system in SYSTEMS.items()}


@dataclass(frozen=True)
class AttentionEncoder(Encoder):
    """A model of the paper, whose systems differ in λ.

    Attributes:
        weight_decay: ℓ2 on the layers between word embeddings and scores.
    """

    weight_decay: float = 0.0

    def system(self, kind: str) -> tuple[dict, dict]:
        scaling = SYSTEMS[kind]
        model: dict[str, Any] = {"attention_scale": scaling.scale}
        if scaling.weight:
            model |= {"vw_penalty": "abs", "vw_weight": scaling.weight}
        decay = {"weight_decay": self.weight_decay, "weight_decay_on": "layers"} if self.weight_decay else {}
        return model, decay

    def decisive(self, kind: str) -> dict:
        model, training = self.system(kind)
        return {"model": self.model() | model, "training": self.training | training, "patience": PATIENCE}


def _encoder(name: str, word_encoder: str, attention: str = "scaled_dot", decay: float = 1e-3) -> AttentionEncoder:
    """A model of 100-dimensional embeddings from U(-0.1, 0.1), the vector V of its attention from N(0, 1)."""
    model = {
        **{"word_encoder": word_encoder, "embedding_size": 100, "word_dropout": 0.5, "word_preset": "vat"},
        **{"attention_type": attention, "attention_init_std": 1.0, "pooling": "attention", "bottleneck": "none"},
        **{"head_layers": 1, "polarity_head": True},
    }
    return AttentionEncoder(name, lambda: dict(model), recipes.ADAGRAD, decay)


ENCODERS = {
    "dp": _encoder("DP", "embedding", decay=0.0),
    "dp-l": _encoder("DP-L", "lstm"),
    "dp-a": _encoder("DP-A", "affine"),
    "ad": _encoder("AD", "embedding", "additive"),
}
