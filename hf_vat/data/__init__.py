"""Text classification data from the Hub or from local files, words as units, and data whose decisive words are known."""

from .arguments import DataArguments
from .loading import load_text_classification, load_texts, stream_texts
from .papers import load_paper_dataset
from .planted import PlantedVocabulary, planted_evidence, planted_tokenizer, planted_vocabulary
from .registry import PAPER_DATASETS, PaperDataset
from .streaming import StreamedEpochs
from .vectors import Coverage, Vectors, embedding_matrix, load_vectors, read_words
from .vocabulary import count_words, train_word_tokenizer
from .word_labels import SentimentWords, load_semeval_words, load_sst_words, sentiment_words

__all__ = [
    "PAPER_DATASETS",
    "Coverage",
    "DataArguments",
    "PaperDataset",
    "PlantedVocabulary",
    "SentimentWords",
    "StreamedEpochs",
    "Vectors",
    "count_words",
    "embedding_matrix",
    "load_paper_dataset",
    "load_semeval_words",
    "load_sst_words",
    "load_text_classification",
    "load_texts",
    "load_vectors",
    "planted_evidence",
    "planted_tokenizer",
    "planted_vocabulary",
    "read_words",
    "sentiment_words",
    "stream_texts",
    "train_word_tokenizer",
]
