"""A scorer whose probabilities are known in closed form: P(positive) = sigmoid(sum of word weights)."""

from types import SimpleNamespace

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

WEIGHTS = {"good": 2.0, "bad": -3.0, "very": 0.5, "not": -1.0, "a": 0.0, "film": 0.0, "but": 0.0, "movie": 0.0}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


class Stub(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(num_labels=2, name_or_path="stub", max_position_embeddings=32)
        weights = [0.0] * len(SPECIAL) + list(WEIGHTS.values())
        self.weights = torch.nn.Parameter(torch.tensor(weights, dtype=torch.float64))
        self.batches = []

    @property
    def device(self):
        return self.weights.device

    def forward(self, input_ids, attention_mask, **kwargs):
        self.batches.append(tuple(input_ids.shape))
        positive = (self.weights[input_ids] * attention_mask).sum(1)
        return SimpleNamespace(logits=torch.stack([torch.zeros_like(positive), positive], 1))


@pytest.fixture
def stub():
    return Stub()


@pytest.fixture(scope="session")
def stub_tokenizer():
    vocabulary = {word: index for index, word in enumerate([*SPECIAL, *WEIGHTS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=32,
    )
