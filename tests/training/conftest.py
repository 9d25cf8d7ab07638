"""A trainer on tiny models of whichever file asks for it, as its own `make_model` decides; and arguments of whole runs."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, DataCollatorWithPadding, set_seed

from hf_vat.data import DataArguments
from hf_vat.training import ModelArguments, VATTrainer, VATTrainingArguments

sys.path.append(str(Path(__file__).parent))
from runs import SMALL, WORDS


@pytest.fixture
def plain_accuracy():
    """The function of the Hugging Face course, as it is."""

    def compute_metrics(eval_pred):
        logits, labels = eval_pred
        return {"accuracy": (np.argmax(logits, axis=-1) == labels).mean()}

    return compute_metrics


@pytest.fixture
def make_trainer(make_model, make_dataset, tokenizer, plain_accuracy, tmp_path):
    """Four epochs of four steps, with a model or with that which `make_model` makes of the arguments in front; `others`
    are further arguments of the constructor."""

    def make(
        *which, size=32, rows=None, model=None, eval_dataset=None, compute_metrics=plain_accuracy, callbacks=None,
        folder="run", seed=0, cls=VATTrainer, others=(), **settings,
    ):  # fmt: skip
        settings = {
            "num_train_epochs": 4,
            "start_epochs": 1,
            **{"start": "joint", "compress_epochs": 1, "learn_epochs": 1},
            "per_device_train_batch_size": 8,
            "learning_rate": 1e-3,
            "compressor_learning_rate": 1e-2,
            "logging_steps": 1,
            "use_cpu": True,
            "report_to": "none",
            "disable_tqdm": True,
            "save_strategy": "no",
        } | settings
        set_seed(seed)
        others = dict(others)
        if model is None and "model_init" not in others:
            model = make_model(*which)
        return cls(
            model,
            VATTrainingArguments(str(tmp_path / folder), **settings),
            train_dataset=make_dataset(size) if rows is None else rows,
            eval_dataset=make_dataset(10, seed=1) if eval_dataset is None else eval_dataset,
            data_collator=DataCollatorWithPadding(tokenizer),
            processing_class=tokenizer,
            compute_metrics=compute_metrics,
            callbacks=callbacks,
            **others,
        )

    return make


@pytest.fixture
def train(make_trainer):
    """A trainer of `make_trainer` that has trained."""

    def train(*which, **settings):
        trainer = make_trainer(*which, **settings)
        trainer.train()
        return trainer

    return train


# Whole runs


@pytest.fixture(scope="session")
def base(tokenizer, tmp_path_factory):
    """A plain BERT encoder, in a folder whose name nothing that is saved may contain."""
    folder = tmp_path_factory.mktemp("private") / "some where"
    with torch.random.fork_rng():
        set_seed(0)
        BertModel(BertConfig(vocab_size=len(tokenizer), **SMALL)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def files(tmp_path):
    """Two files of labelled texts; a test file of one noun that the training file has not."""
    for name, nouns in {"train": ["film", "movie", "plot", "scene"], "test": ["actor"]}.items():
        rows = [f"the {word} {noun},{label}" for label, words in WORDS.items() for word in words for noun in nouns]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    return {"train_file": str(tmp_path / "train.csv"), "test_file": str(tmp_path / "test.csv")}


@pytest.fixture
def vectors(tmp_path):
    """A file of word vectors in GloVe's format."""
    path = tmp_path / "glove.txt"
    lines = [f"{word} {position} 1 -1" for position, word in enumerate(["good", "bad", "film", "actor"])]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


@pytest.fixture
def run_settings():
    """Training arguments of all runs of a file; it may have others."""
    return {}


@pytest.fixture
def arguments(base, files, run_settings, tmp_path):
    """Arguments of a run of two epochs: compress, then learn; a word encoder begins without a checkpoint."""

    def make(folder="run", model=None, data=None, **training):
        defaults = {
            "num_train_epochs": 2,
            "start_epochs": 0,
            **{"start": "joint", "compress_epochs": 1, "learn_epochs": 1},
            "per_device_train_batch_size": 6,
            "learning_rate": 1e-3,
            "eval_strategy": "epoch",
            "save_strategy": "epoch",
            "logging_steps": 1,
            "use_cpu": True,
            "report_to": "none",
            "disable_tqdm": True,
        }
        start = {} if model and "word_encoder" in model else {"model_name_or_path": str(base)}
        return (
            ModelArguments(**(start | {"max_length": 16} | (model or {}))),
            DataArguments(**(files | (data or {}))),
            VATTrainingArguments(str(tmp_path / folder), **(defaults | run_settings | training)),
        )

    return make
