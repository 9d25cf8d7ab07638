"""Whole runs with a word mask: on checkpoints, on word encoders, in two stages, on planted evidence; and their folders."""

import json
import sys

import numpy as np
import pytest
import torch
from runs import SMALL, records
from transformers import AutoModelForSequenceClassification, AutoTokenizer, ElectraConfig, ElectraModel

from hf_vat.cli import run
from hf_vat.commands import explain as explain_command
from hf_vat.commands import train as train_command
from hf_vat.data import DataArguments, load_text_classification, planted_evidence
from hf_vat.errors import InputError
from hf_vat.explanations import explain
from hf_vat.faithfulness import Faithfulness
from hf_vat.training import ModelArguments, VATTrainingArguments, train_classifier
from hf_vat.training.loading import load_model

CNN = {"word_encoder": "cnn", "embedding_size": 8, "encoder_size": 12}


@pytest.fixture
def run_settings():
    return {"start_epochs": 2, "logging_steps": 500}


def loaded(folder):
    return AutoModelForSequenceClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


# From data to explanations


def test_commands_train_and_explain_end_to_end(files, base, tmp_path, monkeypatch, capsys):
    def command(module, *argv) -> str:
        monkeypatch.setattr(sys, "argv", ["hf-vat", *map(str, argv)])
        with pytest.raises(SystemExit) as ended:
            run(module.main)
        assert ended.value.code == 0, capsys.readouterr().err
        return capsys.readouterr().out

    output = command(
        train_command,
        *("--model_name_or_path", base, "--mask_type", "vmask", "--mask_layers", 2, "--mask_sample", "hard_st"),
        *("--mask_site", "embedding_output", "--mask_beta_start", 1, "--mask_beta_end", 0.01, "--max_length", 16),
        *("--train_file", files["train_file"], "--test_file", files["test_file"], "--num_train_epochs", 2),
        *("--output_dir", tmp_path / "run", "--use_cpu", "--disable_tqdm"),
    )
    assert "\ntest accuracy " in output
    config = loaded(tmp_path / "run")[0].config
    assert (config.model_type, config.pooling, config.bottleneck) == ("bert_vmask", "first", "none")
    assert (config.mask_layers, config.mask_sample, config.mask_site) == (2, "hard_st", "embedding_output")
    results = json.loads((tmp_path / "run" / "all_results.json").read_text())
    assert results["test_mask_beta"] == config.mask_beta and 0 < results["test_mask_mean"] < 1
    shown = command(explain_command, "--model", tmp_path / "run", "--method", "mask", "--text", "the good film")
    assert "mask" in shown and "highest: " in shown


def test_the_log_names_the_mask_and_what_the_model_has(arguments, caplog):
    with caplog.at_level("INFO", "hf_vat.training"):
        train_classifier(*arguments(model={**CNN, "mask_type": "iba"}, num_train_epochs=1, seed=3))
    assert "cnn with pooling=max, bottleneck=none, mask_type=iba; train" in caplog.text


@pytest.mark.parametrize("mask", ["vmask", "l2x", "iba", "none"])
def test_a_word_encoder_keeps_its_pretrained_vectors(arguments, vectors, tmp_path, mask):
    sizes = {name: value for name, value in CNN.items() if name != "embedding_size"}  # that of the vectors
    model = {**sizes, "vectors": vectors, "mask_type": mask}
    train_classifier(*arguments(model=model, compressor_learning_rate=1e-2, weight_decay=0.1))
    trained, tokenizer = loaded(tmp_path / "run")
    assert type(trained).__name__ == "EncoderWithVMask" and trained.config.mask_type == mask
    assert trained.config.encoder.kernel_sizes == [3, 4, 5] and trained.config.freeze_embeddings
    embeddings = trained.get_input_embeddings().weight
    assert not any(embeddings is parameter for parameter in trained.parameters())
    for word, expected in (("good", [0, 1, -1]), ("actor", [3, 1, -1])):
        found = embeddings[tokenizer.convert_tokens_to_ids(word)]
        torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float32), atol=1e-5, rtol=0)
    assert embeddings[tokenizer.pad_token_id].abs().max() == 0
    if mask == "none":
        with pytest.raises(InputError, match="gives no token_mask"):
            explain(trained, tokenizer, ["good"], "mask")
    else:
        [explanation] = explain(trained, tokenizer, ["The good actor"], "mask")
        assert explanation.words == ["The", "good", "actor"] and min(explanation.scores) > 0
        with pytest.raises(InputError, match="use method='mask'"):
            explain(trained, tokenizer, ["good"])


def test_f66_the_published_code_as_settings_of_a_run(arguments):
    code = {
        **CNN, "mask_type": "vmask", "mask_layers": 2, "mask_hidden_size": 5, "mask_sample": "hard_st",
        "mask_reduction": "position_mean", "head_layers": 1, "word_dropout": 0.2, "embedding_dropout": 0.0,
    }  # fmt: skip
    trainer = train_classifier(
        *arguments(model=code, num_train_epochs=3, mask_beta_start=1, mask_beta_end=0.01, mask_beta_step_epochs=1)
    )
    model = trainer.model
    assert [layer.out_features for layer in model.word_mask.scorer if hasattr(layer, "out_features")] == [5, 1]
    assert (model.word_mask.sample, model.word_mask.reduction) == ("hard_st", "position_mean")
    assert model.learner_head.dense is None and model.learner_head.dropout.p == 0.2 and model.encoder.dropout.p == 0.0
    betas = [record["mask_beta"] for record in records(trainer)]
    assert betas == pytest.approx([1.0, 0.901, 0.802])


def test_word_vectors_that_begin_at_random_are_trained(arguments):
    model_args = arguments(model={**CNN, "mask_type": "vmask"})[0]
    train = planted_evidence(20, 1, 1)["train"]
    _, model = load_model(model_args, train)
    assert not model.config.freeze_embeddings
    assert "encoder.word_embeddings.weight" in dict(model.named_parameters())
    _, model = load_model(arguments(model={**CNN, "mask_type": "vmask", "freeze_embeddings": True})[0], train)
    assert "encoder.word_embeddings.weight" not in dict(model.named_parameters())


def test_rare_words_are_left_out_of_a_word_encoder_as_in_the_paper(arguments, tmp_path):
    """Each polar word stands in at most four texts, each noun in four to eight, "the" in all."""
    with pytest.raises(InputError, match="--min_count is 0; it must be at least 1"):
        train_classifier(*arguments(model={**CNN, "min_count": 0}))
    train = load_text_classification(arguments()[1])["train"]

    def tokenizer_of(**settings):
        tokenizer, model = load_model(arguments(model={**CNN, "mask_type": "vmask", **settings})[0], train)
        assert len(tokenizer) == model.config.vocab_size
        return tokenizer

    assert [len(tokenizer_of(min_count=count)) - 3 for count in (1, 5, 9)] == [8 + 4 + 1, 4 + 1, 1]
    assert tokenizer_of(min_count=5).tokenize("the good film") == ["the", "[UNK]", "film"]
    vectors = tmp_path / "glove.txt"
    vectors.write_text("good 1 2\nlovely 2 1", encoding="utf-8")
    tokenizer = tokenizer_of(min_count=5, vectors=str(vectors), extra_words=1)
    assert tokenizer.tokenize("the good lovely film") == ["the", "good", "[UNK]", "film"]


def test_any_encoder_takes_a_mask_and_trains_on(arguments, tokenizer, tmp_path):
    folder = tmp_path / "electra"
    ElectraModel(ElectraConfig(vocab_size=len(tokenizer), embedding_size=8, **SMALL)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    vmask = {"model_name_or_path": str(folder), "mask_type": "vmask", "mask_beta": 0.3}
    train_classifier(*arguments(model=vmask, num_train_epochs=1))
    model, _ = loaded(tmp_path / "run")
    assert type(model).__name__ == "EncoderWithVMask" and type(model.base_model) is ElectraModel
    assert (model.config.pooling, model.config.mask_beta) == ("first", 0.3)
    again = {"model_name_or_path": str(tmp_path / "run")}
    with pytest.raises(InputError, match="is a model with a word mask; give --mask_type"):
        train_classifier(*arguments("again", model=again))
    _, further = load_model(arguments(model=again | {"mask_type": "vmask"})[0], planted_evidence(4, 1, 1)["train"])
    assert torch.equal(further.word_mask.scorer.weight, model.word_mask.scorer.weight)
    assert further.config.mask_beta == 0.3


# Two stages


@pytest.mark.parametrize("encoder", ["bert", "cnn"])
def test_the_second_stage_keeps_encoder_and_head_of_the_first(arguments, tmp_path, encoder):
    pooling = "first" if encoder == "bert" else "max"
    first = {"pooling": pooling, "bottleneck": "none"} | ({} if encoder == "bert" else CNN)
    trainer = train_classifier(*arguments("base", model=first))
    second = {"model_name_or_path": str(tmp_path / "base"), "mask_type": "vmask", "max_length": 12}
    tokenizer, model = load_model(arguments(model=second)[0], trainer.train_dataset)
    assert type(model).__name__ == {"bert": "BertWithVMask", "cnn": "EncoderWithVMask"}[encoder]
    assert (model.config.pooling, model.config.id2label) == (pooling, {0: "negative", 1: "positive"})
    kept = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("word_mask")}
    expected = trainer.model.state_dict()
    assert kept.keys() == expected.keys()
    assert all(torch.equal(kept[name], expected[name]) for name in kept)
    assert "learner_head.out_proj.weight" in kept and tokenizer.model_max_length == 12

    train_classifier(*arguments("vmask", model=second, mask_beta_start=1, mask_beta_end=0.01))
    trained, tokenizer = loaded(tmp_path / "vmask")
    for name, tensor in trained.state_dict().items():
        if "embeddings" in name:
            assert torch.equal(tensor, expected[name]), name
    assert not torch.equal(trained.learner_head.dense.weight, expected["learner_head.dense.weight"])
    assert trained.config.mask_beta == 0.01
    assert len(explain(trained, tokenizer, ["a good film"], "mask")[0].scores) == 3


def test_a_mask_under_a_bottleneck(arguments, tmp_path):
    first = {"heads": "shared", "beta": 0.5, "kl_reduction": "sum", "prior": "learned", "max_length": 12}
    train_classifier(*arguments("vat", model=first, num_train_epochs=1))
    second = {"model_name_or_path": str(tmp_path / "vat"), "mask_type": "vmask", "max_length": 256}
    trainer = train_classifier(*arguments(model=second, start_epochs=1))
    assert {record["phase"] for record in records(trainer, "phase")} == {"joint", "compress"}
    kept = trainer.model.config
    assert (kept.pooling, kept.bottleneck) == ("attention", "gaussian")
    assert {name: getattr(kept, name) for name in first if name != "max_length"} == {
        name: value for name, value in first.items() if name != "max_length"
    }
    assert trainer.processing_class.model_max_length == 12  # the first stage's: its models know no longer texts


# Bad input


@pytest.mark.parametrize(
    ("model", "training", "message"),
    [
        ({"mask_beta": 0.5}, {}, "--mask_beta is 0.5, which is for --mask_type vmask or iba, but none is given"),
        ({"mask_type": "l2x", "mask_beta": 0.5}, {}, "--mask_beta is 0.5, .* but that is l2x; leave it out"),
        (
            {"mask_type": "vmask", "mask_normalization": "sigmoid"},
            {},
            "--mask_normalization is sigmoid.*--mask_type l2x",
        ),
        ({"mask_type": "iba", "mask_sample": "hard_st"}, {}, "--mask_sample is hard_st.*--mask_type vmask"),
        ({"mask_type": "none", "mask_layers": 2}, {}, "--mask_layers is 2.*but that is none"),
        ({"freeze_embeddings": False}, {}, "--freeze_embeddings is False.*vmask or l2x or iba or none"),
        ({"mask_type": "vmask", "mask_beta": -1.0}, {}, "--mask_beta is -1.0; it must be at least 0"),
        ({"mask_type": "vmask", "mask_layers": 3}, {}, "--mask_layers is 3"),
        ({"mask_type": "topk"}, {}, "--mask_type is .topk.; choose one of none, vmask"),
        (
            {"mask_type": "vmask", "mask_site": "embedding_output", **CNN},
            {},
            'mask_site="embedding_output" is for BERT',
        ),
        ({"mask_type": "vmask", "pooling": "first", **CNN}, {}, 'pooling="first" reads the special token'),
        ({"mask_type": "vmask", "bottleneck": "gaussian"}, {}, 'bottleneck="gaussian" learns the attention'),
        ({"mask_type": "vmask", **CNN, "encoder_size": 10}, {}, "hidden_size=10 must be a multiple of 3"),
        (
            {"mask_type": "vmask", "beta": 0.5},
            {},
            "--beta is 0.5, which is for --bottleneck gaussian, but that is none",
        ),
        ({"mask_type": "vmask", "mask_hidden_size": 8}, {}, "--mask_hidden_size is 8, which is for --mask_layers 2"),
        ({"mask_type": "vmask"}, {"mask_beta_start": 1.0}, "mask_beta_end is None; give both"),
        ({"mask_type": "vmask"}, {"mask_beta_start": -1.0, "mask_beta_end": 1.0}, "--mask_beta_start is -1.0"),
        ({"mask_type": "vmask"}, {"mask_beta_step_epochs": 0}, "--mask_beta_step_epochs is 0; it must be at least 1"),
        ({}, {"mask_beta_start": 1.0, "mask_beta_end": 0.1}, "mask_beta_start=1.0 weighs the term of a word mask"),
    ],
)
def test_settings_that_do_not_fit_are_named_and_the_folder_stays_free(arguments, tmp_path, model, training, message):
    with pytest.raises(InputError, match=f"(?s){message}") as refused:
        train_classifier(*arguments(model=model, **training))
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists() or not any((tmp_path / "run").iterdir())


def test_a_run_with_another_schedule_is_another_run(arguments):
    settings = {"model": {"mask_type": "vmask"}, "mask_beta_start": 1.0, "num_train_epochs": 1}
    train_classifier(*arguments(**settings, mask_beta_end=0.1))
    with pytest.raises(InputError, match=r"training\.mask_beta_end was 0\.1 and is 0\.2"):
        train_classifier(*arguments(**settings, mask_beta_end=0.2, resume_from_checkpoint="last"))


# Planted evidence


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("encoder", ["cnn", "lstm"])
def test_the_mask_finds_planted_evidence(tmp_path, encoder, seed):
    """Issue 5: decisive words stand out by more than 0.2, and the two top words alone give the class nearly always."""
    data = planted_evidence(2000, 1, 200)
    trainer = train_classifier(
        ModelArguments(word_encoder=encoder, mask_type="vmask", embedding_size=32, encoder_size=48, word_dropout=0.2),
        DataArguments(dataset_name="planted"),
        VATTrainingArguments(
            str(tmp_path / "run"),
            num_train_epochs=16,
            per_device_train_batch_size=50,
            learning_rate=5e-3,
            compressor_learning_rate=5e-3,
            lr_scheduler_type="constant",
            mask_beta_start=0.3,
            mask_beta_end=0.01,
            seed=seed,
            eval_strategy="no",
            save_strategy="no",
            use_cpu=True,
            report_to="none",
            disable_tqdm=True,
        ),
        data,
    )
    texts, labels = data["test"]["text"][:], data["test"]["label"][:]
    explanations = explain(trainer.model, trainer.processing_class, texts, "mask", labels=labels)
    masks = np.concatenate([explanation.scores for explanation in explanations])
    decisive = np.concatenate(data["test"]["rationale"][:]) == 1
    assert masks[decisive].mean() - masks[~decisive].mean() > 0.2
    faithfulness = Faithfulness(trainer.model, trainer.processing_class, explanations, ks=(2,))
    scores = faithfulness.measure(explanations).scores
    assert scores["posthoc_self@2"] > 0.95
