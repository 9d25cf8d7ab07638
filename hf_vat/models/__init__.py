"""Models and what travels with them to the Hub. Importing this module registers Auto classes and pipeline."""

from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification
from transformers.pipelines import PIPELINE_REGISTRY

from .configuration_vat import BertVATConfig, EncoderVATConfig
from .configuration_word_encoder import WordEncoderConfig
from .explained_pipeline import TASK, ExplainedTextClassificationPipeline
from .modeling_vat import BertForVATClassification, EncoderForVATClassification, VATClassifierOutput
from .modeling_word_encoder import WordEncoderModel

# `register` makes the installed package win over code in a model folder; `register_for_auto_class` ships that code.
AutoConfig.register(BertVATConfig.model_type, BertVATConfig)
AutoConfig.register(EncoderVATConfig.model_type, EncoderVATConfig)
AutoConfig.register(WordEncoderConfig.model_type, WordEncoderConfig)
AutoModelForSequenceClassification.register(BertVATConfig, BertForVATClassification)
AutoModelForSequenceClassification.register(EncoderVATConfig, EncoderForVATClassification)
AutoModel.register(WordEncoderConfig, WordEncoderModel)
for config in (BertVATConfig, EncoderVATConfig, WordEncoderConfig):
    config.register_for_auto_class()
for model in (BertForVATClassification, EncoderForVATClassification):
    model.register_for_auto_class("AutoModelForSequenceClassification")
WordEncoderModel.register_for_auto_class("AutoModel")
PIPELINE_REGISTRY.register_pipeline(
    TASK, ExplainedTextClassificationPipeline, pt_model=AutoModelForSequenceClassification, type="text"
)

__all__ = [
    "BertForVATClassification",
    "BertVATConfig",
    "EncoderForVATClassification",
    "EncoderVATConfig",
    "ExplainedTextClassificationPipeline",
    "VATClassifierOutput",
    "WordEncoderConfig",
    "WordEncoderModel",
]
