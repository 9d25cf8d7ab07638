"""Models and what travels with them to the Hub. Importing this module registers Auto classes and pipeline."""

from transformers import AutoConfig, AutoModelForSequenceClassification
from transformers.pipelines import PIPELINE_REGISTRY

from .configuration_vat import BertVATConfig
from .explained_pipeline import TASK, ExplainedTextClassificationPipeline
from .modeling_vat import BertForVATClassification, VATClassifierOutput

# `register` makes the installed package win over code in a model folder; `register_for_auto_class` ships that code.
AutoConfig.register(BertVATConfig.model_type, BertVATConfig)
AutoModelForSequenceClassification.register(BertVATConfig, BertForVATClassification)
BertVATConfig.register_for_auto_class()
BertForVATClassification.register_for_auto_class("AutoModelForSequenceClassification")
PIPELINE_REGISTRY.register_pipeline(
    TASK, ExplainedTextClassificationPipeline, pt_model=AutoModelForSequenceClassification, type="text"
)

__all__ = ["BertForVATClassification", "BertVATConfig", "ExplainedTextClassificationPipeline", "VATClassifierOutput"]
