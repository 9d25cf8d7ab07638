"""Text classification data from the Hub or from local files."""

from .loading import DataArguments, load_text_classification, load_texts
from .planted import PlantedVocabulary, planted_evidence, planted_tokenizer, planted_vocabulary

__all__ = [
    "DataArguments",
    "PlantedVocabulary",
    "load_text_classification",
    "load_texts",
    "planted_evidence",
    "planted_tokenizer",
    "planted_vocabulary",
]
