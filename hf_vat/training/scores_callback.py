"""How attention and polarity scores develop over a training: Sun & Lu (ACL 2020, §5.3)."""

from collections.abc import Sequence
from math import isfinite

import torch
from transformers import TrainerCallback

from hf_vat.analysis import attention_scores, type_separation
from hf_vat.errors import InputError
from hf_vat.models.classes import class_names

from .adapters import find_classifier


class AttentionScoresCallback(TrainerCallback):
    """
    Logs at the end of each epoch what [`attention_scores`](hf_vat.analysis.attention_scores) says of given texts, and how attention
    and polarity vectors lie to one another:

        trainer.add_callback(AttentionScoresCallback(trainer, texts, labels))

    The record has `attention_score_TYPE` and `polarity_score_TYPE`, the means of the words of each type that has any, and
    `attention_auc`, `polarity_auc` and `sign_agreement` of [`type_separation`](hf_vat.analysis.type_separation). With a linear head
    also VᵀW as `attention_polarity_product`, of more than two classes for each one as `attention_polarity_product_NAME`, and
    `attention_square` and `polarity_square`, ‖V‖² and ‖W‖².

    Args:
        trainer: a [`VATTrainer`] with a tokenizer (`processing_class`), whose model has attention pooling.
        texts, labels, context, batch_size: as in [`attention_scores`](hf_vat.analysis.attention_scores); the training texts, or some
            of them.

    Raises:
        InputError: if the trainer has no tokenizer; later, what [`attention_scores`](hf_vat.analysis.attention_scores) refuses.
    """

    def __init__(
        self,
        trainer,
        texts: Sequence[str | Sequence[str]],
        labels: Sequence[int | str],
        context: str = "average",
        batch_size: int = 32,
    ):
        if trainer.processing_class is None:
            raise InputError("The trainer has no tokenizer to read texts with; give it processing_class=tokenizer.")
        self.trainer, self.texts, self.labels = trainer, texts, labels
        self.context, self.batch_size = context, batch_size

    def on_epoch_end(self, args, state, control, **kwargs):
        wanted = control.should_log  # the record of the epoch itself, which logging another one would take for done
        self.trainer.log(self._measure())
        control.should_log = wanted
        return control

    def _measure(self) -> dict[str, float]:
        model = find_classifier(self.trainer.model)
        table = attention_scores(
            model,
            self.trainer.processing_class,
            self.texts,
            self.labels,
            context=self.context,
            batch_size=self.batch_size,
        )
        found = type_separation(table)
        numbers = {name: getattr(found, name) for name in ("attention_auc", "polarity_auc", "sign_agreement")}
        for name, means in found.means.items():
            numbers[f"attention_score_{name}"] = means.attention_score
            numbers[f"polarity_score_{name}"] = means.polarity_score
        if model.has_polarity:
            numbers |= _products(model)
        return {name: value for name, value in numbers.items() if isfinite(value)}


@torch.no_grad()
def _products(model) -> dict[str, float]:
    products = model.attention_polarity_product().tolist()
    name = "attention_polarity_product"
    names = [name] if len(products) == 1 else [f"{name}_{label}" for label in class_names(model.config)]
    squares = (model.attention.direction(), model.learner_head.directions())
    return {
        **dict(zip(names, products, strict=True)),
        **{
            f"{of}_square": float(one.square().sum())
            for of, one in zip(("attention", "polarity"), squares, strict=True)
        },
    }
