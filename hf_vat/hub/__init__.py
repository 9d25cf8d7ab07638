"""Model cards: what a run knows about its model, as a README.md that the Hub shows."""

from .callback import CardArguments, ModelCardCallback

__all__ = ["CardArguments", "ModelCardCallback"]
