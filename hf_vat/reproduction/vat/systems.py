"""The systems of the VAT paper on its encoders: what they are made of, and how they are trained."""

from dataclasses import dataclass

from hf_vat.reproduction.encoders import BERT, MINILM, Encoder, word_encoder
from hf_vat.training import Recipe, recipes

# Rows of the tables by the kind of training run that gives them. ATT is the run's iteration 0, as in the paper; ATT
# (matched) has as many updates of the encoder as VAT, and is not in the paper.
ROWS = {"base": ("base", "Random"), "ATT": ("ATT", "ATT (matched)"), "VAT": ("VAT",)}
KINDS = tuple(ROWS)
SYSTEMS = tuple(row for rows in ROWS.values() for row in rows if row != "Random")


@dataclass(frozen=True)
class VATEncoder(Encoder):
    """An encoder, and what is settled for the systems on it.

    Attributes:
        base_pooling: pooling of the base system (VAT paper, section 4.2).
        recipe: of VAT, found on validation data with the LSTM and with MiniLM (docs/heads).
    """

    base_pooling: str
    recipe: Recipe

    def system(self, kind: str) -> tuple[dict, dict]:
        pooling = self.base_pooling if kind == "base" else "attention"
        return {"pooling": pooling, **self.recipe.model(kind == "VAT")}, self.recipe.training(kind == "VAT")

    def decisive(self, kind: str) -> dict:
        return {"recipe": self.recipe.decisive(kind), "training": self.training}


ENCODERS = {
    "lstm": VATEncoder(**word_encoder("lstm", **recipes.LSTM), base_pooling="max", recipe=recipes.WORDS_RECIPE),
    "minilm": VATEncoder(**MINILM, base_pooling="first", recipe=recipes.PRETRAINED_RECIPE),
    "bert": VATEncoder(**BERT, base_pooling="first", recipe=recipes.PRETRAINED_RECIPE),
}
