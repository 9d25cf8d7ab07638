"""A tiny model whose token importance can be worked out by hand, and its tokenizer."""

from types import SimpleNamespace

import pytest
import torch
from transformers import BertConfig, BertTokenizerFast

from hf_vat.models.attribution import token_attribution

VOCABULARY = """
[PAD] [UNK] [CLS] [SEP] [MASK] good bad film very not un ##believ ##able i don ' t like this well - made , at all ! .
cafe movie a plot
"""
WORDS = VOCABULARY.split()


class PlantedModel(torch.nn.Module):
    """Weighs "good" 20 times and "bad" 4 times as much as any other token; dropout makes train mode noisy.

    A token's embedding is (its weight, is it "good", is it "bad").
    """

    def __init__(self, importance: bool = True, positions: int = 32, num_labels: int = 3):
        super().__init__()
        self.config = BertConfig(max_position_embeddings=positions, num_labels=num_labels, name_or_path="planted")
        self.embeddings = torch.nn.Embedding(len(WORDS), 3)
        with torch.no_grad():
            self.embeddings.weight.zero_()
            self.embeddings.weight[:, 0] = 1
            self.embeddings.weight[WORDS.index("good")] = torch.tensor([20.0, 1.0, 0.0])
            self.embeddings.weight[WORDS.index("bad")] = torch.tensor([4.0, 0.0, 1.0])
            for position in (0, 2, 3):  # padding, [CLS], [SEP]
                self.embeddings.weight[position] = 0
        self.dropout = torch.nn.Dropout(0.5)
        self.device = torch.device("cpu")
        self.importance = importance
        bias = torch.tensor([0.0, 0.0, 0.1])[:num_labels]
        self.learner_head = SimpleNamespace(out_proj=SimpleNamespace(bias=bias))
        self.batches = []

    def get_input_embeddings(self):
        return self.embeddings

    def forward(
        self, input_ids=None, attention_mask=None, inputs_embeds=None, token_type_ids=None, attribution_center=None
    ):
        embeddings = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds  # [B, T, 3]
        self.batches.append(tuple(embeddings.shape[:2]))
        weights = self.dropout(embeddings[..., 0] * attention_mask)  # [B, T]
        alpha = weights / weights.sum(1, keepdim=True).clamp(min=1e-9)
        good, bad = (alpha * embeddings[..., 1]).sum(1), (alpha * embeddings[..., 2]).sum(1)
        read = {"token_importance": alpha, "token_mask": weights / 20} if self.importance else {}
        if self.importance:
            read["polarity_scores"] = self.logits(embeddings[..., 1], embeddings[..., 2])
        if self.importance and attribution_center is not None:
            gradients = torch.tensor([[0.0, 2.0], [2.0, 0.0], [0.0, 0.0]])[: self.config.num_labels]
            read["token_attribution"] = token_attribution(
                embeddings[..., 1:],
                alpha,
                attention_mask.bool(),
                gradients.expand(len(alpha), -1, -1),
                attribution_center,
            )
        return SimpleNamespace(logits=self.logits(good, bad), **read)

    def logits(self, good, bad):
        return torch.stack([2 * bad, 2 * good, 0.1 + 0 * good], dim=-1)[..., : self.config.num_labels]


@pytest.fixture
def tokenizer():
    return BertTokenizerFast(vocab={word: position for position, word in enumerate(WORDS)})


@pytest.fixture
def model():
    return PlantedModel().eval()


@pytest.fixture
def model_without_importance():
    return PlantedModel(importance=False).eval()
