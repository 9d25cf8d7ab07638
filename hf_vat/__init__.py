"""Text classifiers whose explanations can be trusted, at home in Hugging Face."""

from .models import BertForVATClassification, BertVATConfig, VATClassifierOutput

__all__ = ["BertForVATClassification", "BertVATConfig", "VATClassifierOutput"]
