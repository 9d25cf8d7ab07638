"""A tiny model whose token importance can be worked out by hand, and its tokenizer."""

from dataclasses import dataclass

import pytest
import torch
from transformers import BertConfig, BertTokenizerFast

VOCABULARY = """
[PAD] [UNK] [CLS] [SEP] [MASK] good bad film very not un ##believ ##able i don ' t like this well - made , at all ! .
cafe movie a plot
"""
WORDS = VOCABULARY.split()


@dataclass
class Output:
    logits: torch.Tensor
    token_importance: torch.Tensor | None = None


class PlantedModel(torch.nn.Module):
    """Weighs "good" 20 times and "bad" 4 times as much as any other token; dropout makes train mode noisy."""

    def __init__(self, importance: bool = True, positions: int = 32, num_labels: int = 3):
        super().__init__()
        self.config = BertConfig(max_position_embeddings=positions, num_labels=num_labels, name_or_path="planted")
        weights = torch.ones(len(WORDS))
        weights[WORDS.index("good")], weights[WORDS.index("bad")] = 20.0, 4.0
        weights[:1] = weights[2:4] = 0  # padding, [CLS], [SEP]
        self.weights = torch.nn.Parameter(weights)
        self.dropout = torch.nn.Dropout(0.5)
        self.device = torch.device("cpu")
        self.importance = importance

    def forward(self, input_ids, attention_mask, token_type_ids=None):
        weights = self.weights[input_ids] * attention_mask  # [B, T]
        weights = self.dropout(weights)
        alpha = weights / weights.sum(1, keepdim=True).clamp(min=1e-9)
        good = (alpha * (input_ids == WORDS.index("good"))).sum(1)
        bad = (alpha * (input_ids == WORDS.index("bad"))).sum(1)
        logits = torch.stack([2 * bad, 2 * good, 0.1 + 0 * good], dim=1)[:, : self.config.num_labels]
        return Output(logits, alpha if self.importance else None)


@pytest.fixture
def tokenizer():
    return BertTokenizerFast(vocab={word: position for position, word in enumerate(WORDS)})


@pytest.fixture
def model():
    return PlantedModel().eval()


@pytest.fixture
def model_without_importance():
    return PlantedModel(importance=False).eval()
