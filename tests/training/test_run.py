"""A whole training run on a tiny plain BERT checkpoint and CSV files, and the folder that it leaves."""

import copy
import json
import logging
import re
from dataclasses import fields

import numpy as np
import pytest
import torch
from datasets import Dataset
from filelock import FileLock
from runs import SMALL, PressCtrlC, records
from test_trainer_features import FIELDS
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    ElectraConfig,
    ElectraModel,
)

from hf_vat.data.labels import features_of
from hf_vat.errors import InputError
from hf_vat.explanations import explain
from hf_vat.training import VATTrainingArguments, claim_output_dir, train_classifier
from hf_vat.training.folder import MAY_DIFFER, fingerprints, run_settings

SYSTEMS = {
    "base": {"pooling": "first", "bottleneck": "none"},
    "att": {"bottleneck": "none"},
    "vat": {},
}


def test_f10_a_run_stops_early_and_chooses_by_macro_f1(arguments, tmp_path):
    """The same model each epoch, as nothing is learnt: two rounds after the first are no better."""
    still = {"learning_rate": 0.0, "compressor_learning_rate": 0.0, "predict_from": "learner"}
    patience = {"metric_for_best_model": "macro_f1", "load_best_model_at_end": True, "early_stopping_patience": 2}
    trainer = train_classifier(*arguments(num_train_epochs=8, save_total_limit=1, **still, **patience))
    assert trainer.state.epoch == 6
    first = records(trainer, "eval_macro_f1")[0]
    assert trainer.state.best_metric == first["eval_macro_f1"] and first["epoch"] == 1
    results = json.loads((tmp_path / "run" / "all_results.json").read_text())
    assert {"test_accuracy", "test_macro_f1"} <= results.keys() and 0 < results["test_macro_f1"] <= 1
    with pytest.raises(InputError, match="--early_stopping_patience is 0; it must be at least 1"):
        train_classifier(*arguments("refused", **(patience | {"early_stopping_patience": 0})))


def contents(folder) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def weights(folder) -> dict[str, torch.Tensor]:
    return AutoModelForSequenceClassification.from_pretrained(folder).state_dict()


# Options that come from the Trainer


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("label_names", ["negative", "positive"], "give --class_names, for the column with the labels --label_column"),
        ("label_names", ["labels"], "--class_names"),
        ("remove_unused_columns", False, "the texts themselves are no model input"),
        ("length_column_name", "n", "Leave it out"),
        ("prediction_loss_only", True, "by which the epoch is chosen"),
        ("eval_do_concat_batches", False, "by which the epoch is chosen"),
        ("batch_eval_metrics", True, "by which the epoch is chosen"),
        ("include_for_metrics", ["inputs"], "need predictions and labels alone"),
        ("do_predict", True, "hf-vat explain --csv"),
        ("dataloader_drop_last", True, "leave out validation and test texts"),
        ("use_cache", True, "models that generate text"),
        ("debug", "underflow_overflow", "does not understand masks"),
    ],
)
def test_f24_inherited_options_without_use_are_refused_at_start(arguments, tmp_path, name, value, advice):
    with pytest.raises(InputError, match=f"--{name} is .*{advice}"):
        train_classifier(*arguments(data={"train_file": "/no/where"}, **{name: value}))
    assert not (tmp_path / "run").exists()


# The folder of a run


@pytest.mark.parametrize("system", list(SYSTEMS))
def test_the_folder_holds_all_of_the_run(arguments, base, tmp_path, system):
    trainer = train_classifier(*arguments(model=SYSTEMS[system], num_train_epochs=3, seed=5))
    folder = tmp_path / "run"
    names = {path.name for path in folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "run.json", "trainer_state.json"} <= names
    results = json.loads((folder / "all_results.json").read_text())
    assert {"train_loss", "test_accuracy", "test_loss"} <= results.keys()
    settings = json.loads((folder / "run.json").read_text())
    assert settings["model"]["model_name_or_path"] == str(base) and settings["training"]["seed"] == 5
    log = json.loads((folder / "trainer_state.json").read_text())["log_history"]
    phases = [record["phase"] for record in log if "eval_loss" in record]
    assert phases == (["compress", "learn", "compress"] if system == "vat" else ["finetune"] * 3)

    model, tokenizer = (cls.from_pretrained(folder) for cls in (AutoModelForSequenceClassification, AutoTokenizer))
    assert model.config.id2label == {0: "negative", 1: "positive"} and tokenizer.model_max_length == 16
    rows = trainer.eval_dataset
    batch = tokenizer(rows["text"][:], padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = model.eval()(**batch).logits.numpy()
    np.testing.assert_allclose(logits, trainer.predict(rows).predictions, atol=1e-6)


def test_a_word_encoder_begins_with_pretrained_vectors(arguments, vectors, tmp_path, caplog):
    """GloVe's format; the words of the file that the training texts lack are known too."""
    model = {"word_encoder": "lstm", "vectors": vectors, "encoder_size": 6, "kl_reduction": "sum"}
    caplog.set_level(logging.INFO)
    trainer = train_classifier(*arguments(model=model, learning_rate=1e-9, compressor_learning_rate=1e-9))
    words = " ".join(trainer.train_dataset["text"][:]).split()
    found = sum(word in ("good", "bad", "film", "actor") for word in words)
    assert f"vectors: {found} of {len(words)} words of the training texts" in caplog.text and 0 < found < len(words)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run")
    assert type(loaded.base_model).__name__ == "WordEncoderModel" and loaded.config.hidden_size == 6
    embeddings = loaded.get_input_embeddings().weight
    for word, expected in (("good", [0, 1, -1]), ("actor", [3, 1, -1])):
        found = embeddings[tokenizer.convert_tokens_to_ids(word)]
        torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float32), atol=1e-5, rtol=0)
    assert embeddings[tokenizer.convert_tokens_to_ids("superb")].abs().max() <= 0.1
    [explanation] = explain(loaded, tokenizer, ["The good actor!"])
    assert explanation.words == ["The", "good", "actor", "!"]
    assert sum(explanation.scores) == pytest.approx(1) and min(explanation.scores) > 0
    assert records(trainer)[-1]["phase"] == "learn"


def test_any_encoder_is_trained(arguments, tokenizer, tmp_path):
    folder = tmp_path / "private" / "electra"
    ElectraModel(ElectraConfig(vocab_size=len(tokenizer), embedding_size=8, **SMALL)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    train_classifier(*arguments(model={"model_name_or_path": str(folder)}))
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run")
    assert type(model).__name__ == "EncoderForVATClassification" and type(model.base_model) is ElectraModel
    private = [name for name, content in contents(tmp_path / "run").items() if str(folder).encode() in content]
    assert private == ["run.json"], "C78"
    # and what was trained can be trained on
    train_classifier(*arguments("again", model={"model_name_or_path": str(tmp_path / "run")}))


def test_c78_the_local_path_of_the_base_model_is_in_nothing_that_is_pushed(arguments, base, tmp_path):
    train_classifier(*arguments())
    private = [name for name, content in contents(tmp_path / "run").items() if str(base).encode() in content]
    assert private == ["run.json"]


def test_the_log_says_what_is_trained_on_how_much_and_where(arguments, caplog):
    with caplog.at_level(logging.INFO, "hf_vat.training"):
        train_classifier(*arguments(num_train_epochs=1, seed=7))
    # 16 texts of each class, of which a tenth is held out
    assert "bottleneck=gaussian; train 28, test 8, validation 4 texts; seed 7; world size 1 (cpu)" in caplog.text


def test_bf16_trains_on_the_cpu(arguments):
    trainer = train_classifier(*arguments(bf16=True))
    assert trainer.state.global_step == 10
    assert all(torch.isfinite(parameter).all() for parameter in trainer.model.parameters())


def test_without_test_and_validation_data(arguments, tmp_path):
    quiet = {"eval_strategy": "no", "num_train_epochs": 1}
    train_classifier(*arguments(data={"test_file": None, "validation_share": 0}, **quiet))
    assert not {"test_loss", "eval_loss"} & json.loads((tmp_path / "run" / "all_results.json").read_text()).keys()


# The output folder


def test_a_new_and_an_empty_folder_are_free(arguments, tmp_path):
    assert claim_output_dir(*arguments("new")) is None
    (tmp_path / "empty").mkdir()
    assert claim_output_dir(*arguments("empty")) is None
    assert claim_output_dir(*arguments("empty", resume_from_checkpoint="last")) is None
    with pytest.raises(InputError, match=r"checkpoint-5 is not a checkpoint of the run in .*empty"):
        claim_output_dir(*arguments("empty", resume_from_checkpoint=str(tmp_path / "checkpoint-5")))


@pytest.mark.parametrize("name", ["notes.txt", "run.json"])
@pytest.mark.parametrize("resume", [None, "last"])
def test_a_foreign_folder_is_refused_and_left_alone(arguments, tmp_path, name, resume):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / name).write_text('{"my": "notes"}')
    before = contents(folder)
    with pytest.raises(InputError, match="holds other files and no run; choose an empty or new folder"):
        train_classifier(*arguments(resume_from_checkpoint=resume))
    assert contents(folder) == before


def test_a_file_is_refused_and_left_alone(arguments, tmp_path):
    (tmp_path / "run").write_text("precious")
    with pytest.raises(InputError, match="run is a file; give a folder"):
        train_classifier(*arguments())
    assert (tmp_path / "run").read_text() == "precious"


def test_a_finished_run_is_kept(arguments, tmp_path):
    """Without resume, with other settings, and resumed: nothing that was there is lost."""
    train_classifier(*arguments(num_train_epochs=1))
    folder = tmp_path / "run"
    before = contents(folder)

    with pytest.raises(InputError, match="holds this run already; go on with --resume_from_checkpoint last"):
        train_classifier(*arguments(num_train_epochs=1))
    other = {"model": {"beta": 0.2}, "data": {"text_column": "text"}, "learning_rate": 1e-4, "num_train_epochs": 1}
    with pytest.raises(InputError) as refused:
        train_classifier(*arguments(**other, resume_from_checkpoint="last"))
    for change in (
        "model.beta was 0.1 and is 0.2",
        "data.text_column was None",
        "learning_rate was 0.001 and is 0.0001",
    ):
        assert change in str(refused.value)
    with pytest.raises(InputError, match=r"checkpoint-99 is not a folder"):
        train_classifier(*arguments(num_train_epochs=1, resume_from_checkpoint=str(folder / "checkpoint-99")))
    assert contents(folder) == before

    train_classifier(*arguments(num_train_epochs=1, resume_from_checkpoint="last"))
    after = contents(folder)
    for name in ("model.safetensors", "config.json", "run.json", "train_results.json"):
        assert after[name] == before[name], name


def test_a_run_resumed_from_its_last_or_a_named_checkpoint_gives_the_same_model(arguments, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 3}
    train_classifier(*arguments("unbroken", **settings))
    expected = weights(tmp_path / "unbroken")
    for folder, resume in (("last", "last"), ("named", str(tmp_path / "named" / "checkpoint-3"))):
        trainer = train_classifier(*arguments(folder, **settings))
        for path in (tmp_path / folder).iterdir():  # as if stopped after step 3
            if path.name in ("checkpoint-6", "checkpoint-9", "checkpoint-10"):
                path.rename(tmp_path / f"{folder}-{path.name}")
            elif path.is_file() and path.name != "run.json":
                path.unlink()
        trainer = train_classifier(*arguments(folder, **settings, resume_from_checkpoint=resume))
        assert trainer.state.global_step == 10
        resumed = weights(tmp_path / folder)
        assert all(torch.equal(resumed[name], expected[name]) for name in expected)


# Bad input: a clear error, and the folder stays free for the corrected run


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": {"max_length": 2}}, "--max_length is 2; give 3 tokens or more"),
        ({"model": {"model_name_or_path": "/no/such/model"}}, "/no/such/model cannot be loaded.*--model_name_or_path"),
        (
            {"model": {"model_name_or_path": "no-one/no-model"}},
            "no-one/no-model cannot be loaded.*--model_name_or_path",
        ),
        ({"model": {"pooling": "first"}}, 'pooling="first".*bottleneck="none"'),
        ({"model": {"beta": -1}}, "--beta is -1; it must be at least 0"),
        ({"model": {"beta": float("nan")}}, "--beta is nan"),
        ({"model": {"bottleneck": "none"}, "predict_from": "compressor"}, "predict_from"),
        ({"learning_rate": -1.0}, "--learning_rate is -1.0; it must be at least 0"),
        ({"compressor_learning_rate": -1.0}, "--compressor_learning_rate is -1.0"),
        ({"learning_rate": float("nan")}, "--learning_rate is nan"),
        ({"weight_decay": float("inf")}, "--weight_decay is inf; it must be a finite number"),
        ({"max_steps": -5}, "--max_steps is -5; it must be at least 1, or -1"),
        (
            {"model": {"vectors": "nothere.txt"}},
            "--vectors is nothere.txt, which is for --word_encoder, but none is given",
        ),
        (
            {"model": {"bottleneck": "none", "prior": "learned"}},
            "--prior is learned, which is for --bottleneck gaussian",
        ),
        ({"per_device_train_batch_size": 0}, "--per_device_train_batch_size is 0; it must be at least 1"),
        ({"per_device_eval_batch_size": 0}, "--per_device_eval_batch_size is 0"),
        ({"gradient_accumulation_steps": 0}, "--gradient_accumulation_steps is 0"),
        ({"attention_probe_size": 0}, "--attention_probe_size is 0"),
        ({"dataloader_num_workers": -1}, "--dataloader_num_workers is -1"),
        ({"seed": -1}, "--seed is -1"),
        ({"label_smoothing_factor": 1.5}, "--label_smoothing_factor is 1.5"),
        ({"num_train_epochs": 0}, "--num_train_epochs is 0; it must be above 0"),
        ({"start_epochs": -1}, "--start_epochs is -1; it must be at least 0"),
        ({"compress_epochs": 0}, "compress_epochs=0 must be at least 1"),
        ({"data": {"validation_share": 0}}, "no validation data for --eval_strategy epoch"),
        ({"data": {"train_file": None}}, "training split"),
        ({"data": {"train_file": "/no/such/train.csv"}}, "no folder /no/such"),
    ],
)
def test_what_cannot_be_used_is_named_and_the_folder_stays_free(arguments, tmp_path, changed, message):
    with pytest.raises(InputError, match=f"(?s){message}") as refused:
        train_classifier(*arguments(**changed))
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists() or contents(tmp_path / "run") == {}


def test_c30_a_metric_that_evaluation_does_not_give_is_refused_before_the_first_step(arguments):
    best = {"load_best_model_at_end": True}
    with pytest.raises(InputError, match="--metric_for_best_model is 'aopc'; it must be one of accuracy, macro_f1"):
        train_classifier(*arguments(metric_for_best_model="aopc", **best))
    trainer = train_classifier(*arguments(metric_for_best_model="accuracy", **best))
    accuracies = [record["eval_accuracy"] for record in records(trainer, "eval_accuracy")]
    assert trainer.state.best_metric == max(accuracies)


def test_c12_a_checkpoint_with_other_classes_is_refused(arguments, tmp_path):
    train_classifier(*arguments(num_train_epochs=1))
    three = tmp_path / "three.csv"
    three.write_text("text,label\n" + "a film,x\na plot,y\na scene,z\n" * 4)
    changed = {
        "model": {"model_name_or_path": str(tmp_path / "run")},
        "data": {"train_file": str(three), "test_file": None},
    }
    with pytest.raises(InputError, match=r"out_proj.weight is \(2, 16\) in the checkpoint and \(3, 16\) in the model"):
        train_classifier(*arguments("other", **changed))


def test_c15_a_diverged_run_says_where_and_keeps_its_checkpoints(arguments, tmp_path):
    with pytest.raises(FloatingPointError, match=r"not finite at step \d+ in phase 'joint': .*cross_entropy"):
        train_classifier(*arguments(learning_rate=1e20, start_epochs=2, save_strategy="steps", save_steps=1))
    assert (tmp_path / "run" / "checkpoint-1" / "model.safetensors").is_file()


# What a person sees


def test_f69_a_run_prints_a_line_for_each_epoch_and_keeps_all_records(arguments, tmp_path, capsys):
    """A resumed run goes on with the epochs that are left, and its file holds the records of both parts."""
    settings = {"save_strategy": "epoch", "num_train_epochs": 3, "seed": 3}
    with pytest.raises(KeyboardInterrupt):
        train_classifier(*arguments(**settings), callbacks=[PressCtrlC(7)])
    first = capsys.readouterr().out
    assert "{" not in first
    train_classifier(*arguments(**settings, resume_from_checkpoint="last"))
    printed = capsys.readouterr().out
    assert "{" not in printed
    epoch = r"epoch (\d) of 3 \| (\w+) \| training loss \d\.\d{3} \| validation accuracy [\d.]+ % \| [\d.]+ min left"
    assert re.findall(epoch, first)[0] == ("1", "compress")
    assert re.findall(epoch, printed) == [("2", "learn"), ("3", "compress")]
    records = [json.loads(line) for line in (tmp_path / "run" / "training_log.jsonl").read_text().splitlines()]
    history = json.loads((tmp_path / "run" / "trainer_state.json").read_text())["log_history"]
    assert records == history and {"eval_accuracy", "test_accuracy"} <= {name for record in records for name in record}
    assert f"all records of the training: {tmp_path / 'run' / 'training_log.jsonl'}" in printed


# A run that goes on is the same run


def test_f46_a_finished_run_that_is_resumed_keeps_all_of_its_files(arguments, tmp_path, caplog):
    expected = weights_of(train_classifier(*arguments(load_best_model_at_end=True)))
    before = contents(tmp_path / "run")
    caplog.set_level(logging.INFO)
    again = train_classifier(*arguments(load_best_model_at_end=True, resume_from_checkpoint="last"))
    assert contents(tmp_path / "run") == before and "nothing is left to train" in caplog.text
    found = weights_of(again)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert again.state.log_history == json.loads(before["trainer_state.json"])["log_history"]


def test_f46_a_run_that_was_killed_after_its_last_step_has_the_true_records(arguments, tmp_path):
    train_classifier(*arguments())
    folder = tmp_path / "run"
    before = json.loads((folder / "train_results.json").read_text())
    for name in ("trainer_state.json", "train_results.json", "all_results.json", "model.safetensors"):
        (folder / name).unlink()
    train_classifier(*arguments(resume_from_checkpoint="last"))
    after = json.loads((folder / "train_results.json").read_text())
    assert after["train_loss"] == pytest.approx(before["train_loss"]) and after["phase"] == before["phase"] == "learn"
    assert weights(folder).keys()


def weights_of(trainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


# What has to be the same in a run that goes on, of those that `MAY_DIFFER` does not name
MUST_AGREE = {
    *("per_device_train_batch_size", "num_train_epochs", "max_steps", "learning_rate", "lr_scheduler_type"),
    *("lr_scheduler_kwargs", "warmup_steps", "optim", "optim_args", "weight_decay", "adam_beta1", "adam_beta2"),
    *("adam_epsilon", "optim_target_modules", "gradient_accumulation_steps", "average_tokens_across_devices"),
    *("max_grad_norm", "label_smoothing_factor", "bf16", "fp16", "bf16_full_eval", "fp16_full_eval", "tf32"),
    *("torch_compile", "torch_compile_backend", "torch_compile_mode", "use_liger_kernel", "liger_kernel_config"),
    *("use_cache", "neftune_noise_alpha", "auto_find_batch_size", "eval_strategy", "eval_steps", "eval_delay"),
    *("prediction_loss_only", "eval_on_start", "eval_do_concat_batches", "include_for_metrics", "batch_eval_metrics"),
    *("save_strategy", "save_steps", "load_best_model_at_end", "metric_for_best_model", "greater_is_better"),
    *("ignore_data_skip", "restore_callback_states_from_checkpoint", "full_determinism", "seed", "data_seed"),
    *("accelerator_config", "parallelism_config", "dataloader_drop_last", "dataloader_in_order"),
    *("remove_unused_columns", "label_names", "train_sampling_strategy", "length_column_name"),
    *("ddp_find_unused_parameters", "ddp_bucket_cap_mb", "ddp_broadcast_buffers", "ddp_static_graph", "ddp_backend"),
    *("fsdp", "fsdp_config", "deepspeed", "debug", "start", "start_epochs", "compress_epochs", "learn_epochs"),
    *("compressor_learning_rate", "predict_from", "attention_probe_size", "mask_beta_start", "mask_beta_end"),
    *("mask_beta_step_epochs", "early_stopping_patience", "early_stopping_threshold", "class_weights"),
    "weight_decay_on",
}


def test_f48_every_training_argument_is_decided_about(arguments):
    names = {field.name for field in fields(VATTrainingArguments)}
    undecided = names - MAY_DIFFER - MUST_AGREE
    assert not undecided, (
        f"May {', '.join(sorted(undecided))} differ in a run that goes on? If it moves no weight, enter it in MAY_DIFFER, else here."
    )
    assert not MAY_DIFFER & MUST_AGREE and names == MAY_DIFFER | MUST_AGREE
    moving = {name for name, decision in FIELDS.items() if decision.moves}
    assert moving and not moving & MAY_DIFFER  # by the tests of the Trainer's features
    assert set(run_settings(*arguments())["training"]) == MUST_AGREE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("adam_beta1", 0.8), ("adam_epsilon", 1e-3), ("neftune_noise_alpha", 1.0), ("load_best_model_at_end", True)),
        *(("eval_strategy", "no"), ("save_strategy", "steps"), ("dataloader_in_order", False), ("torch_compile", True)),
    ],
)
def test_f48_another_setting_that_moves_a_weight_is_refused_by_name(arguments, claimed, name, value):
    before, now = (getattr(args[2], name) for args in (arguments(), arguments(**{name: value})))
    assert before != now
    with pytest.raises(InputError, match=rf"training\.{name} was .* and is "):
        claim_output_dir(*arguments(**{name: value}, resume_from_checkpoint="last"))


@pytest.fixture
def claimed(arguments, tmp_path):
    """A folder that says of itself to be such a run's."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(json.dumps(run_settings(*arguments())))
    return tmp_path / "run"


def test_f48_what_moves_no_weight_may_differ(arguments, claimed):
    others = {"logging_steps": 7, "save_total_limit": 1, "report_to": [], "dataloader_num_workers": 1, "run_name": "x"}
    assert claim_output_dir(*arguments(**others, resume_from_checkpoint="last")) is None
    settings = json.loads((claimed / "run.json").read_text()) | {"processes": 2}
    (claimed / "run.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match="the number of processes was 2 and is 1"):
        claim_output_dir(*arguments(resume_from_checkpoint="last"))


def other_row(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(path.read_text().replace("the good film", "the good actor"))


def other_label(tmp_path):
    path = tmp_path / "test.csv"
    path.write_text(path.read_text().replace("the good actor,positive", "the good actor,negative"))


@pytest.mark.parametrize(("change", "named"), [(other_row, "train data"), (other_label, "test data")])
def test_f48_other_rows_in_the_same_files_are_refused(arguments, tmp_path, change, named):
    with pytest.raises(KeyboardInterrupt):
        train_classifier(*arguments(), callbacks=[PressCtrlC(2)])
    before = contents(tmp_path / "run")
    (tmp_path / "train.csv").touch()  # the time of a file does not count
    change(tmp_path)
    with pytest.raises(InputError, match=rf"on other data, by their fingerprints: .*{named} was \w+ and is \w+"):
        train_classifier(*arguments(resume_from_checkpoint="last"))
    assert contents(tmp_path / "run") == before


def test_f48_fingerprints_tell_content_and_nothing_else(arguments, tokenizer, tmp_path):
    rows = Dataset.from_dict({"text": ["a", "b"], "label": [0, 1]}, features_of(["no", "yes"]))
    _, args, _ = arguments()

    def prints(rows, tokenizer=tokenizer, args=args):
        return fingerprints({"train": rows}, args, tokenizer)

    assert prints(rows) == prints(rows.map(lambda row: row)) == prints(rows.add_column("more", [1, 2]))
    others = [
        rows.select([1, 0]),
        rows.select([0]),
        Dataset.from_dict({"text": ["a", "c"], "label": [0, 1]}, features_of(["no", "yes"])),
        Dataset.from_dict({"text": ["a", "b"], "label": [1, 1]}, features_of(["no", "yes"])),
        Dataset.from_dict({"text": ["a", "b"], "label": [0, 1]}, features_of(["yes", "no"])),
    ]
    assert len({prints(one)["train data"] for one in [rows, *others]}) == 6
    larger = copy.deepcopy(tokenizer)
    larger.add_tokens(["new"])
    assert prints(rows, larger)["vocabulary"] != prints(rows)["vocabulary"]
    # a stream is known by its file, of which a change at either end is seen, whatever its length
    stream, path = rows.to_iterable_dataset(), tmp_path / "train.csv"
    path.write_bytes(b"x" * 20_000_000)
    found = {prints(stream)["train data"]}
    for place in (0, 19_999_999):
        with open(path, "r+b") as file:
            file.seek(place)
            file.write(b"y")
        found.add(prints(stream)["train data"])
    assert len(found) == 3


def test_f49_two_runs_in_a_folder(arguments, tmp_path):
    (tmp_path / "run").mkdir()
    with FileLock(tmp_path / "run" / ".hf_vat.lock"):
        with pytest.raises(InputError, match="run is being written by another process; wait until it has ended"):
            train_classifier(*arguments())
        assert set(contents(tmp_path / "run")) <= {".hf_vat.lock"}
    train_classifier(*arguments(num_train_epochs=1))  # its file alone is no lock, and no other run's folder
    assert not [name for name in contents(tmp_path / "run") if name.startswith(".hf_vat")]
