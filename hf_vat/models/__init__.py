"""Models and what travels with them to the Hub. Importing this module registers Auto classes and pipeline."""

from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoModelForTokenClassification
from transformers.pipelines import PIPELINE_REGISTRY

from .classifier import VATClassifierOutput
from .configuration_vat import BertVATConfig, EncoderVATConfig
from .configuration_vmask import BertVMaskConfig, EncoderVMaskConfig
from .configuration_word_encoder import WordEncoderConfig
from .explained_pipeline import TASK, ExplainedTextClassificationPipeline
from .modeling_vat import BertForVATClassification, EncoderForVATClassification
from .modeling_vmask import BertWithVMask, EncoderWithVMask
from .modeling_word_encoder import WordEncoderForTokenClassification, WordEncoderModel

# `register` makes the installed package win over code in a model folder; `register_for_auto_class` ships that code.
for model in (BertForVATClassification, EncoderForVATClassification, BertWithVMask, EncoderWithVMask):
    AutoConfig.register(model.config_class.model_type, model.config_class)
    AutoModelForSequenceClassification.register(model.config_class, model)
    model.config_class.register_for_auto_class()
    model.register_for_auto_class("AutoModelForSequenceClassification")
AutoConfig.register(WordEncoderConfig.model_type, WordEncoderConfig)
AutoModel.register(WordEncoderConfig, WordEncoderModel)
WordEncoderConfig.register_for_auto_class()
WordEncoderModel.register_for_auto_class("AutoModel")
AutoModelForTokenClassification.register(WordEncoderConfig, WordEncoderForTokenClassification)
WordEncoderForTokenClassification.register_for_auto_class("AutoModelForTokenClassification")
PIPELINE_REGISTRY.register_pipeline(
    TASK, ExplainedTextClassificationPipeline, pt_model=AutoModelForSequenceClassification, type="text"
)

__all__ = [
    "BertForVATClassification",
    "BertVATConfig",
    "BertVMaskConfig",
    "BertWithVMask",
    "EncoderForVATClassification",
    "EncoderVATConfig",
    "EncoderVMaskConfig",
    "EncoderWithVMask",
    "ExplainedTextClassificationPipeline",
    "VATClassifierOutput",
    "WordEncoderConfig",
    "WordEncoderForTokenClassification",
    "WordEncoderModel",
]
