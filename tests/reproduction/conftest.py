"""A tiny BERT in place of the pretrained encoders, and data sets whose label is one word of the text."""

import sys

import pytest
import torch
from transformers import BertConfig, BertModel, set_seed

from hf_vat.commands import reproduce
from hf_vat.reproduction import CellSettings


@pytest.fixture
def bert(tokenizer, tmp_path):
    """The part of `ModelArguments` that names the tiny BERT."""
    with torch.random.fork_rng():
        set_seed(0)
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        encoder = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=256, **sizes))
    for part in (encoder, tokenizer):
        part.save_pretrained(tmp_path / "encoder")
    return {"model_name_or_path": str(tmp_path / "encoder")}


@pytest.fixture
def settings_of(tmp_path):
    """Settings of cells on a data set that has these rows, "text,label", in each of its splits."""

    def write(dataset, rows):
        folder = tmp_path / "data" / dataset
        folder.mkdir(parents=True)
        for split in ("train", "validation", "test"):
            (folder / f"{split}.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
        return CellSettings(str(tmp_path / "data"), str(tmp_path / "work"))

    return write


@pytest.fixture
def run_command(monkeypatch):
    """Run `hf-vat reproduce` with arguments."""

    def run(*argv):
        monkeypatch.setattr(sys, "argv", ["hf-vat reproduce", *map(str, argv)])
        reproduce.main()

    return run


@pytest.fixture
def reproduced(run_command, tmp_path):
    """Run the command with the settings of cells; the text of its page, and that of its JSON file.

    Args:
        name: of the files.
        figures: names of the figures, each drawn twice; only files of these names are there.
    """

    def run(settings, name, options, figures):
        folder = tmp_path / "results"
        folders = ["--data_dir", settings.data_dir, "--work_dir", settings.work_dir, "--output_dir", folder]
        run_command(name.partition("-")[0].replace("_", "-"), *options.split(), *folders)
        assert {file.name for file in folder.iterdir()} == {
            *(f"{name}{suffix}" for suffix in (".md", ".json", ".html")),
            *(f"{name}-{figure}{suffix}" for figure in figures for suffix in (".svg", ".png")),
        }
        return [(folder / f"{name}{suffix}").read_text(encoding="utf-8") for suffix in (".md", ".json")]

    return run
