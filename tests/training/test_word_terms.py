"""VATTrainer on models with a word objective or a penalty on VᵀW: what the records say, and runs from the command line."""

import json
import math
import sys

import pytest
import torch
from runs import SMALL, StopAt, assert_same_weights, broken_and_unbroken, records
from transformers import AutoTokenizer, GPT2Config, GPT2Model, PreTrainedTokenizerFast, set_seed

from hf_vat import BertForVATClassification, BertVATConfig, EncoderForVATClassification
from hf_vat.commands.train import main
from hf_vat.errors import InputError

TERMS = {
    "tying": {"word_objective": "tying", "word_weight": 0.5},
    "mlm": {"word_objective": "mlm", "word_weight": 0.5, "mask_token_id": 4},
    "conicity": {"word_objective": "conicity"},
    "vw": {"vw_penalty": "square", "vw_weight": 0.1, "head_layers": 1, "bottleneck": "none"},
}


@pytest.fixture
def make_model(tokenizer):
    def make(term, **settings):
        with torch.random.fork_rng():
            set_seed(0)
            config = BertVATConfig(vocab_size=len(tokenizer), initializer_range=0.2, **SMALL, **TERMS[term], **settings)
            return BertForVATClassification(config)

    return make


@pytest.mark.parametrize("term", TERMS)
def test_the_parts_add_up_to_the_loss(train, make_model, term):
    trainer = train(model=make_model(term), gradient_accumulation_steps=2, logging_steps=3, eval_strategy="epoch")
    name, weight = ("vw_product", "vw_weight") if term == "vw" else ("word_term", "word_weight")
    found = [(record, "") for record in records(trainer)]
    found += [(record, "eval_") for record in records(trainer, "eval_loss")]
    assert len(found) >= 8
    for record, prefix in found:
        measured = record["phase"] != "compress" if not prefix else term != "mlm"
        assert (prefix + name in record) == measured  # mlm hides words in training alone
        total = record[f"{prefix}cross_entropy"]
        total += record[prefix + weight] * record.get(prefix + name, 0)
        total += record.get(f"{prefix}beta", 0) * record.get(f"{prefix}compression", 0)
        assert record[f"{prefix}loss"] == pytest.approx(total, abs=1e-5)
    first, *_, last = (record[name] for record in records(trainer) if name in record)
    assert last < first or term in ("mlm", "vw")  # of a dozen steps; these go up and down


@pytest.mark.parametrize("term", TERMS)
def test_a_resumed_run_is_the_same(make_trainer, make_model, term):
    def make(folder, **settings):
        return make_trainer(model=make_model(term), folder=folder, **settings)

    unbroken, resumed = broken_and_unbroken(make, StopAt(6))
    assert_same_weights(unbroken.model, resumed.model)


@pytest.fixture
def train_on(tmp_path, monkeypatch):
    return lambda *words: _train_on(tmp_path, monkeypatch, *words)


def _train_on(tmp_path, monkeypatch, *words):
    rows = [("a good film", "good"), ("a bad plot", "bad"), ("good and great", "good"), ("dull and bad", "bad")] * 6
    (tmp_path / "t.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    common = ["--train_file", str(tmp_path / "t.csv"), "--validation_file", str(tmp_path / "t.csv"), "--output_dir"]
    common += [str(tmp_path / "out"), "--num_train_epochs", "2", "--word_encoder", "lstm", "--bottleneck", "none"]
    words = ["--use_cpu", "true", "--embedding_size", "8", "--encoder_size", "8", *words]
    monkeypatch.setattr(sys, "argv", ["hf-vat train", *common, *words])
    main()
    folder = tmp_path / "out"
    return EncoderForVATClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder), folder


@pytest.mark.parametrize("objective", ["concat", "tying", "mlm"])
def test_the_command_trains_it(train_on, objective):
    model, tokenizer, folder = train_on("--word_objective", objective)
    assert model.config.word_objective == objective
    assert model.config.mask_token_id == (tokenizer.mask_token_id if objective == "mlm" else None)
    history = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))["log_history"]
    assert any("word_term" in record for record in history) == (objective != "concat")
    assert all(math.isfinite(record["loss"]) for record in history if "loss" in record)
    assert "the encoder predicts" in (folder / "README.md").read_text(encoding="utf-8") if objective == "mlm" else True


def test_the_command_trains_dp(train_on):
    model, tokenizer, _ = train_on(
        "--attention_type", "scaled_dot", "--attention_scale", "10", "--head_layers", "1",
        "--polarity_head", "true", "--vw_penalty", "abs",
    )  # fmt: skip
    out = model(**tokenizer("a good film", return_tensors="pt"))
    torch.testing.assert_close((out.token_importance.unsqueeze(-1) * out.polarity_scores).sum(1), out.logits)


def test_a_tokenizer_without_a_mask_token_has_nothing_to_hide_words_behind(tokenizer, tmp_path, monkeypatch, capsys):
    without = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer, pad_token="[PAD]", unk_token="[UNK]"
    )
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 32, "vocab_size": len(tokenizer), "pad_token_id": 0}
    GPT2Model(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).save_pretrained(tmp_path / "gpt2")
    without.save_pretrained(tmp_path / "gpt2")
    (tmp_path / "t.csv").write_text("text,label\n" + "a good film,good\na bad plot,bad\n" * 4)
    line = f"--model_name_or_path {tmp_path}/gpt2 --train_file {tmp_path}/t.csv --output_dir {tmp_path}/out"
    monkeypatch.setattr(sys, "argv", ["hf-vat train", *line.split(), "--word_objective", "mlm"])
    with pytest.raises(InputError, match=r"hides words behind a mask token, and the .* has none; choose"):
        main()
