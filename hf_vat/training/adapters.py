"""Classifiers that are wrapped: by PEFT, whose adapters must hold what is new, or to be trained on several devices."""

from typing import cast

from torch import nn

from hf_vat.errors import InputError
from hf_vat.models.classifier import VATClassifier


def find_classifier(model: nn.Module) -> VATClassifier:
    """The classifier with phases that a model is, or wraps as PEFT, FSDP and torch.compile do.

    Raises:
        InputError: if there is none.
    """
    # By type: wrappers hand attributes of the wrapped model on.
    for module in model.modules():
        if hasattr(type(module), "phase_modules"):
            return cast(VATClassifier, module)
    raise InputError(
        f"{type(model).__name__} has no phases; VATTrainer trains hf_vat's models, for instance "
        "BertForVATClassification.from_pretrained(...)."
    )


def modules_to_save(model: VATClassifier) -> list[str]:
    """
    What an adapter must train and save beside the encoder's low-rank matrices: attention, bottleneck, heads and word mask.

    For PEFT's `LoraConfig(modules_to_save=...)`. PEFT takes every module whose name ends so, thus parts of the attention
    rather than `"attention"`, as the layers of BERT are named too.

    Args:
        model: a classifier of hf_vat, without an adapter.

    Returns:
        Names of modules, such as `["attention.projection", "attention.score", "learner_head"]`.
    """
    others = [name for name, _ in model.base_model.named_modules()]

    def names(name: str, module: nn.Module) -> list[str]:
        if not any(other.endswith(name) for other in others):
            return [name]
        return [found for child, inner in module.named_children() for found in names(f"{name}.{child}", inner)]

    return [
        found
        for name, module in model.named_children()
        if module is not model.base_model and next(module.parameters(), None) is not None
        for found in names(name, module)
    ]


def check_adapter(classifier: VATClassifier) -> None:
    """Refuse an adapter that would leave new layers at their random values, and not save them.

    Raises:
        InputError: naming the frozen parts, and what to give to PEFT.
    """
    in_encoder = set(classifier.base_model.parameters())
    frozen = {
        name.split(".")[0]
        for name, parameter in classifier.named_parameters()
        if parameter not in in_encoder and not parameter.requires_grad and "original_module" not in name.split(".")
    }
    if frozen:
        raise InputError(
            f"The adapter leaves {', '.join(sorted(frozen))} frozen or at random values, and would not save them. Give PEFT "
            "modules_to_save=modules_to_save(model), from hf_vat.training, for the model before get_peft_model."
        )
