"""Text classification data from the Hub or from local files."""

from .loading import DataArguments, load_labelled_texts, load_text_classification
from .planted import PlantedVocabulary, planted_evidence, planted_tokenizer, planted_vocabulary

__all__ = [
    "DataArguments",
    "PlantedVocabulary",
    "load_labelled_texts",
    "load_text_classification",
    "planted_evidence",
    "planted_tokenizer",
    "planted_vocabulary",
]
