"""Classifiers with attention whose numbers can be worked out by hand, and small ones that are drawn."""

import pytest
import torch

from hf_vat import EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig
from hf_vat.data.vocabulary import train_word_tokenizer

WORDS = ["good", "great", "bad", "awful", "a", "the", "film", "plot", "very", "and"]
OF_WORDS = {"prefix_tokens": 0, "suffix_tokens": 0, "pooling": "attention", "bottleneck": "none"}


@pytest.fixture(scope="session")
def word_tokenizer():
    return train_word_tokenizer([" ".join(WORDS)], model_max_length=32)


@pytest.fixture
def by_hand(word_tokenizer):
    """A model whose states are the vectors (attention score a, log-odds s of class 1) of the words, (0, 0) if not given:
    P(class 1) = σ(Σ α_t s_t) with α = softmax(a)."""

    def make(vectors: dict[str, tuple[float, float]]) -> EncoderForVATClassification:
        encoder = WordEncoderConfig(
            encoder_type="embedding", vocab_size=len(word_tokenizer), embedding_size=2, dropout=0.0
        )
        heads = {"attention_type": "scaled_dot", "head_layers": 1, "polarity_head": True, "classifier_dropout": 0.0}
        with torch.random.fork_rng():
            model = EncoderForVATClassification(EncoderVATConfig(encoder=encoder, **OF_WORDS, **heads))
        with torch.no_grad():
            model.get_input_embeddings().weight.zero_()
            for word, vector in vectors.items():
                place = word_tokenizer.convert_tokens_to_ids(word)
                model.get_input_embeddings().weight[place] = torch.tensor(vector)
            model.attention.score.weight.copy_(torch.tensor([[1.0, 0.0]]))
            model.learner_head.out_proj.weight.copy_(torch.tensor([[0.0, 1.0]]))
        return model.eval()

    return make


@pytest.fixture
def make_lstm(word_tokenizer):
    """An LSTM with attention and dropout, in training mode; the same weights each time."""

    def make(**settings) -> EncoderForVATClassification:
        encoder = WordEncoderConfig(
            vocab_size=len(word_tokenizer), embedding_size=8, hidden_size=16, bidirectional=True, dropout=0.5,
            initializer_range=0.7,
        )  # fmt: skip
        with torch.random.fork_rng():
            torch.manual_seed(0)
            config = EncoderVATConfig(encoder=encoder, num_labels=3, classifier_dropout=0.5, **(OF_WORDS | settings))
            return EncoderForVATClassification(config)

    return make
