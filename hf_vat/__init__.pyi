# ruff: noqa: I001 - it would give each name an import of its own
# What the package offers, for type checkers; __init__.py reads it to find where a name is loaded from.
from . import (
    amortized as amortized,
    callers as callers,
    comparison as comparison,
    data as data,
    errors as errors,
    explanations as explanations,
    export as export,
    faithfulness as faithfulness,
    hub as hub,
    metrics as metrics,
    models as models,
    pretrained as pretrained,
    report as report,
    reproduction as reproduction,
    training as training,
)
from .amortized import fit_amortized as fit_amortized
from .comparison import compare_explainers as compare_explainers
from .errors import InputError as InputError
from .explanations import Explanation as Explanation, explain as explain, load_explanations as load_explanations
from .faithfulness import Faithfulness as Faithfulness
from .models import (
    BertForVATClassification as BertForVATClassification,
    BertVATConfig as BertVATConfig,
    BertVMaskConfig as BertVMaskConfig,
    BertWithVMask as BertWithVMask,
    EncoderForVATClassification as EncoderForVATClassification,
    EncoderVATConfig as EncoderVATConfig,
    EncoderVMaskConfig as EncoderVMaskConfig,
    EncoderWithVMask as EncoderWithVMask,
    VATClassifierOutput as VATClassifierOutput,
    WordEncoderConfig as WordEncoderConfig,
    WordEncoderModel as WordEncoderModel,
)
from .training import VATTrainer as VATTrainer, VATTrainingArguments as VATTrainingArguments

__version__: str
