"""Tiny models, tokenizers and data sets that every test can build in milliseconds, without network."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import sys
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest
import torch
import transformers
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertTokenizerFast, PreTrainedTokenizerFast, set_seed

from hf_vat import BertForVATClassification, BertVATConfig
from hf_vat.data import planted_evidence, planted_tokenizer, planted_vocabulary

sys.path.append(str(Path(__file__).parent))  # for checks.py and threads.py
from threads import addresses

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
POSITIVE = ["good", "great", "superb", "lovely"]
NEGATIVE = ["bad", "awful", "boring", "dull"]
NEUTRAL = ["a", "the", "film", "movie", "plot", "actor", "very", "scene", "and", "it", "is", "un", "##believ", "##able"]
VOCABULARY = SPECIAL + POSITIVE + NEGATIVE + NEUTRAL + list(".,!?'-")

SYSTEMS = {
    "base": {"pooling": "first", "bottleneck": "none"},
    "max": {"pooling": "max", "bottleneck": "none"},
    "mean": {"pooling": "mean", "bottleneck": "none"},
    "att": {"pooling": "attention", "bottleneck": "none"},
    "vat": {"pooling": "attention", "bottleneck": "gaussian"},
    "vat_shared": {"bottleneck": "gaussian", "heads": "shared"},
    "vat_shared_mean": {"bottleneck": "gaussian", "heads": "shared_mean"},
    "vat_learned_prior": {"bottleneck": "gaussian", "prior": "learned", "kl_reduction": "mean"},
}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """A test that has the number of a public report shows its address when it fails."""
    report = yield
    if threads := addresses(item.name):
        report.sections.append(("Public threads", "\n".join(threads)))
    return report


@pytest.fixture(autouse=True)
def transformers_logging():
    """A command that ran in this process has set up logging for a process of its own; other tests must not see it."""
    verbosity = transformers.logging.get_verbosity()
    yield
    transformers.logging.set_verbosity(verbosity)
    transformers.logging.enable_progress_bar()


@pytest.fixture(scope="session")
def tokenizer():
    tokenizer = BertTokenizerFast(vocab={word: position for position, word in enumerate(VOCABULARY)})
    assert len(tokenizer) == len(VOCABULARY)
    assert tokenizer.convert_tokens_to_ids("good") != tokenizer.unk_token_id
    return tokenizer


def tiny_config(**settings) -> BertVATConfig:
    defaults = {
        "vocab_size": len(VOCABULARY),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "num_labels": 2,
    }
    return BertVATConfig(**(defaults | settings))


@pytest.fixture
def make_model():
    """Build a tiny model of a system, e.g. make_model("vat", beta=1.0); the same weights each time."""

    def make(system: str = "vat", **settings) -> BertForVATClassification:
        with torch.random.fork_rng():
            set_seed(0)
            # Weights ten times the usual, so that the outputs of an untrained model differ visibly between texts.
            config = tiny_config(**(SYSTEMS[system] | {"initializer_range": 0.2} | settings))
            return BertForVATClassification(config)

    return make


@pytest.fixture
def make_dataset(tokenizer):
    """Tokenized texts in which one polar word decides the label: columns text, label, input_ids, attention_mask."""

    def make(size: int, seed: int = 0, length: int = 8) -> Dataset:
        generator = torch.Generator().manual_seed(seed)

        def pick(words):
            return words[int(torch.randint(len(words), (), generator=generator))]

        texts, labels = [], []
        for row in range(size):
            label = row % 2
            words = [pick(NEUTRAL[:11]) for _ in range(int(torch.randint(3, length, (), generator=generator)))]
            words.insert(
                int(torch.randint(len(words) + 1, (), generator=generator)), pick(POSITIVE if label else NEGATIVE)
            )
            texts.append(" ".join(words))
            labels.append(label)
        encoded = tokenizer(texts)
        return Dataset.from_dict(
            {
                "text": texts,
                "label": labels,
                "input_ids": encoded["input_ids"],
                "attention_mask": encoded["attention_mask"],
            }
        )

    return make


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip(f"needs the data sets in {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture(scope="session")
def planted_classifier():
    """A BERT with attention pooling that was trained from scratch on clean texts; its tokenizer and its data."""
    vocabulary = planted_vocabulary()
    tokenizer = planted_tokenizer(vocabulary)
    splits = planted_evidence(2000, 1, 200)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForVATClassification(
            BertVATConfig(
                vocab_size=len(tokenizer),
                hidden_size=64,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=128,
                max_position_embeddings=32,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                bottleneck="none",
                initializer_range=0.1,
            )
        )
        input_ids = torch.tensor(tokenizer(splits["train"]["text"][:])["input_ids"])
        labels = torch.tensor(splits["train"]["label"][:])
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        model.train()
        for _ in range(4):
            for rows in torch.randperm(len(labels)).split(64):
                model(input_ids=input_ids[rows], labels=labels[rows]).loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
    return model.eval(), tokenizer, splits


# The stub of the hand-worked cases: P(pos) = sigmoid(sum of word weights)

STUB_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
STUB_WEIGHTS = {"good": 2.0, "bad": -3.0, "very": 0.5, "not": -1.0, "a": 0.0, "film": 0.0, "but": 0.0, "movie": 0.0}


class Stub(torch.nn.Module):
    """Counts a token's weight wherever it stands; records the shapes of its batches."""

    def __init__(self):
        super().__init__()
        self.config = BertConfig(
            num_labels=2, id2label={0: "neg", 1: "pos"}, max_position_embeddings=32, name_or_path="stub"
        )
        weights = [0.0] * len(STUB_SPECIAL) + list(STUB_WEIGHTS.values())
        self.embeddings = torch.nn.Embedding.from_pretrained(torch.tensor(weights, dtype=torch.float64)[:, None])
        self.device = torch.device("cpu")
        self.batches = []

    def get_input_embeddings(self):
        return self.embeddings

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None):
        embeddings = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds  # [B, T, 1]
        self.batches.append(tuple(embeddings.shape[:2]))
        positive = (embeddings[..., 0] * attention_mask).sum(1)
        return SimpleNamespace(logits=torch.stack([torch.zeros_like(positive), positive], 1))


@pytest.fixture
def stub():
    return Stub()


@pytest.fixture(scope="session")
def stub_tokenizer():
    vocabulary = {word: index for index, word in enumerate([*STUB_SPECIAL, *STUB_WEIGHTS])}
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
