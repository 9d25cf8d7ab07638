"""The systems that are compared: what they are made of, and how they are trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hf_vat.reproduction.encoders import MINILM, Encoder, word_encoder
from hf_vat.training import Recipe, recipes

OBJECTIVES = ("tying", "mlm", "concat")
EXTRAS = ("conicity", "residual")  # not of the paper
WEIGHED = ("tying", "mlm", "conicity")
CONTROLS = ("frozen", "uniform")
SYSTEMS = ("ATT", *OBJECTIVES, "VAT", "VMASK", *EXTRAS, *CONTROLS)


@dataclass(frozen=True)
class WordObjectiveEncoder(Encoder):
    """An encoder, and what is settled for the systems on it. All train the encoder for as many epochs as VAT does.

    Attributes:
        recipe: of VAT, and the number of epochs of all others.
        weights: of the word objectives that have one, chosen on validation data (docs/heads/word_objectives.md, of
            MiniLM docs/heads/word_objectives_minilm.md).
        mask_betas: weight of VMASK's term in the first epoch and in the last.
        systems: that are trained on it by default.
        adversary: what [`adversary_curve`](hf_vat.analysis.adversary_curve) is told.
    """

    recipe: Recipe
    weights: Mapping[str, float]
    adversary: Mapping[str, Any]
    systems: tuple[str, ...] = SYSTEMS
    mask_betas: Sequence[float] = (1.0, 0.01)

    def system(self, kind: str) -> tuple[dict, dict]:
        vat = kind == "VAT"
        model: dict[str, Any] = {"pooling": "mean" if kind == "uniform" else "attention", **self.recipe.model(vat)}
        training: dict[str, Any] = self.recipe.training(vat)
        if kind in OBJECTIVES + EXTRAS:
            model["word_objective"] = kind
        if kind in WEIGHED:
            model["word_weight"] = self.weights[kind]
        if kind == "VMASK":
            model |= {"mask_type": "vmask", "freeze_embeddings": False}  # trained as in the others
            training |= dict(zip(("mask_beta_start", "mask_beta_end"), self.mask_betas, strict=True))
        return model, training

    def decisive(self, kind: str) -> dict:
        return {
            "recipe": self.recipe.decisive(kind),
            "training": self.training,
            "adversary": dict(self.adversary),
            **({"weight": self.weights[kind]} if kind in WEIGHED else {}),
            **({"mask_betas": list(self.mask_betas)} if kind == "VMASK" else {}),
        }


# States as wide as the embeddings, which tying needs: 25 in each direction on 50-dimensional GloVe vectors.
_LSTM = recipes.LSTM | {"encoder_size": 50}
_ADVERSARY = {"weights": [0.0, 0.002, 0.003, 0.004, 0.006, 0.02], "epochs": 6, "batch_size": 64, "learning_rate": 2e-3}
ENCODERS = {
    "lstm": WordObjectiveEncoder(
        **word_encoder("lstm", **_LSTM),
        recipe=recipes.WORDS_RECIPE,
        weights={"tying": 1.0, "mlm": 0.1, "conicity": 0.1},
        adversary=_ADVERSARY | {"trains": "model"},
    ),
    "minilm": WordObjectiveEncoder(
        **MINILM,
        recipe=replace(recipes.PRETRAINED_RECIPE, compress_epochs=1, learn_epochs=2),
        weights={"tying": 0.1, "mlm": 0.1, "conicity": 0.1},
        adversary=_ADVERSARY | {"trains": "attention"},
        systems=SYSTEMS[:6],
    ),
}
