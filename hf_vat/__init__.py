"""Text classifiers whose explanations can be trusted, at home in Hugging Face.

Importing the package registers its models with the Auto classes and its pipeline, "text-classification-explained".
Everything else is loaded where it is first used, so that the import costs little more than those of torch and
transformers.
"""

from importlib import import_module

from .models import (
    BertForVATClassification,
    BertVATConfig,
    BertVMaskConfig,
    BertWithVMask,
    EncoderForVATClassification,
    EncoderVATConfig,
    EncoderVMaskConfig,
    EncoderWithVMask,
    VATClassifierOutput,
    WordEncoderConfig,
    WordEncoderModel,
)

__version__ = "0.1.0"

_LAZY = {
    "Explanation": ".explanations",
    "Faithfulness": ".faithfulness",
    "InputError": ".errors",
    "VATTrainer": ".training",
    "VATTrainingArguments": ".training",
    "compare_explainers": ".comparison",
    "explain": ".explanations",
    "load_explanations": ".explanations",
}

__all__ = [
    "BertForVATClassification",
    "BertVATConfig",
    "BertVMaskConfig",
    "BertWithVMask",
    "EncoderForVATClassification",
    "EncoderVATConfig",
    "EncoderVMaskConfig",
    "EncoderWithVMask",
    "VATClassifierOutput",
    "WordEncoderConfig",
    "WordEncoderModel",
    *_LAZY,
]


_SUBMODULES = ("data", "faithfulness", "metrics", "report")


def __getattr__(name: str):
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name], __name__), name)


def __dir__():
    return __all__
