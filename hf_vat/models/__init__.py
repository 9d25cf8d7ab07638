"""Models and what travels with them to the Hub. Importing this module registers the Auto classes."""

from transformers import AutoConfig, AutoModelForSequenceClassification

from .configuration_vat import BertVATConfig
from .modeling_vat import BertForVATClassification, VATClassifierOutput

# `register` makes the installed package win over code in a model folder; `register_for_auto_class` ships that code.
AutoConfig.register(BertVATConfig.model_type, BertVATConfig)
AutoModelForSequenceClassification.register(BertVATConfig, BertForVATClassification)
BertVATConfig.register_for_auto_class()
BertForVATClassification.register_for_auto_class("AutoModelForSequenceClassification")

__all__ = ["BertForVATClassification", "BertVATConfig", "VATClassifierOutput"]
