"""The arena of generated input, made once."""

import json
import logging
import sys
from pathlib import Path

import pytest
from transformers import BertConfig, BertForSequenceClassification, set_seed

sys.path.append(str(Path(__file__).parent))  # for arena.py and generated.py
from arena import TRIED, Arena

from hf_vat import BertForVATClassification, BertVATConfig, BertWithVMask

ROWS = [("a good film", "positive"), ("the plot is dull", "negative"), ("a lovely scene !", "positive")]
ROWS += [("very boring", "negative"), ("great", "positive"), ("it is un believable", "negative")]


@pytest.fixture(scope="session")
def arena(tokenizer, tmp_path_factory) -> Arena:
    arena = Arena(tmp_path_factory.mktemp("arena"))
    set_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    sizes |= {"vocab_size": len(tokenizer), "max_position_embeddings": 32}
    sizes |= {"id2label": {0: "negative", 1: "positive"}, "label2id": {"negative": 0, "positive": 1}}
    models = {
        "vat": BertForVATClassification(BertVATConfig(**sizes)),
        "plain": BertForSequenceClassification(BertConfig(**sizes)),
        "masked": BertWithVMask(BertWithVMask.config_class(**sizes, pooling="attention", head_layers=1)),
    }
    for name, model in models.items():
        for part in (model, tokenizer):
            part.save_pretrained(arena.inputs / name)
    lines = [f"{text},{label}" for text, label in ROWS * 3]
    (arena.inputs / "table.csv").write_text("\n".join(["text,label", *lines]), "utf-8")
    (arena.inputs / "table.tsv").write_text("\n".join(["text\tlabel", *lines]).replace(",", "\t"), "utf-8")
    objects = [json.dumps({"text": text, "label": label}) for text, label in ROWS]
    (arena.inputs / "table.jsonl").write_text("\n".join(objects), "utf-8")
    (arena.inputs / "windows.csv").write_bytes("text,label\ncafé “good”,positive\nbad,negative\n".encode("cp1252"))
    (arena.inputs / "empty.csv").touch()
    (arena.inputs / "loop.csv").symlink_to(arena.inputs / "loop.csv")
    (arena.inputs / "nested.jsonl").write_text('{"text": ' + "[" * 100_000, "utf-8")
    return arena.sealed()


@pytest.fixture(autouse=True)
def root_logger():
    """A command sets the root logger up for a process of its own."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # a process of pytest-xdist
        session.config.workeroutput["tried"] = dict(TRIED)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    TRIED.update(getattr(node, "workeroutput", {}).get("tried", {}))


def pytest_terminal_summary(terminalreporter):
    if TRIED:
        told = ", ".join(f"{number} {name}" for name, number in sorted(TRIED.items()))
        terminalreporter.write_line(f"Generated inputs: {sum(TRIED.values())} ({told})")
