"""Training and explaining from a streamed file: phases, resuming, errors, explanations that are written as they come."""

import json
import sys

import pytest
import torch
from datasets import ClassLabel, Dataset
from runs import WORDS, records
from transformers import AutoModelForSequenceClassification

from hf_vat.commands import explain as explain_command
from hf_vat.errors import InputError
from hf_vat.explanations import explain, explainers, load_explanations
from hf_vat.explanations.store import Store
from hf_vat.pretrained import load_classifier
from hf_vat.training import claim_output_dir, train_classifier

TEXTS = [
    (f"the {words[row % 4]} {noun}", label)
    for row in range(4)
    for noun in ("film", "movie", "plot", "scene", "actor")
    for label, words in WORDS.items()
]


@pytest.fixture
def files(tmp_path):
    lines = ["text,label", *(f"{text},{label}" for text, label in TEXTS)]
    (tmp_path / "train.csv").write_text("\n".join(lines), encoding="utf-8")
    return {"train_file": str(tmp_path / "train.csv"), "streaming": True}


@pytest.fixture
def run_settings():
    """12 steps of 4 rows in 4 epochs, so that 40 rows are read more than once."""
    return {
        **{"max_steps": 12, "num_train_epochs": 4, "start_epochs": 2, "per_device_train_batch_size": 4},
        "eval_strategy": "no",
    }


def weights(folder):
    return AutoModelForSequenceClassification.from_pretrained(folder).state_dict()


def test_the_steps_are_divided_into_epochs_and_these_into_phases(arguments, tmp_path):
    validation = {"validation_file": str(tmp_path / "train.csv"), "max_eval_samples": 8}
    trainer = train_classifier(
        *arguments(data=validation, eval_strategy="epoch", load_best_model_at_end=True, metric_for_best_model="loss")
    )
    steps = [(record["step"], record["phase"]) for record in records(trainer)]
    phases = ["joint"] * 6 + ["compress"] * 3 + ["learn"] * 3
    assert dict(steps) == dict(enumerate(phases, 1))
    evaluated = [record["step"] for record in records(trainer, "eval_loss")]
    assert evaluated == [3, 6, 9, 12]
    assert trainer.state.epoch == 4 and len(trainer.eval_dataset) == 8
    moved = [record["attention_jsd"] for record in records(trainer, "attention_jsd")]
    assert len(moved) >= 12 and max(moved) > 0


def test_steps_that_do_not_divide_evenly_and_plain_training(arguments):
    trainer = train_classifier(*arguments(max_steps=10))
    phases = {record["step"]: record["phase"] for record in records(trainer)}
    assert [phases[step] for step in (6, 7, 9, 10)] == ["joint", "compress", "compress", "learn"]
    plain = {"pooling": "first", "bottleneck": "none"}
    trainer = train_classifier(*arguments("plain", model=plain, gradient_accumulation_steps=2))
    assert trainer.state.global_step == 12
    assert {record["phase"] for record in records(trainer)} == {"finetune"}
    assert len(trainer.train_dataset) == 3 * 2 * 4


@pytest.mark.parametrize("stopped", [6, 8])  # between two epochs, and within one of the second pass
def test_a_resumed_run_gives_the_same_model(arguments, tmp_path, stopped):
    settings = {"save_strategy": "steps", "save_steps": 2, "seed": 3}
    whole = train_classifier(*arguments("whole", **settings))
    train_classifier(*arguments("run", **settings))
    for path in (tmp_path / "run").iterdir():
        if path.name.startswith("checkpoint-") and int(path.name[11:]) > stopped:
            path.rename(tmp_path / f"later-{path.name}")
        elif path.is_file() and path.name != "run.json":
            path.unlink()
    resumed = train_classifier(*arguments("run", **settings, resume_from_checkpoint="last"))
    expected, found = weights(tmp_path / "whole"), weights(tmp_path / "run")
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    for record, other in zip(whole.state.log_history, resumed.state.log_history, strict=True):
        assert record.get("attention_jsd") == other.get("attention_jsd")


def test_a_run_of_a_version_without_the_option_goes_on(arguments, tmp_path):
    loaded = {"data": {"streaming": False}, "max_steps": 2}
    train_classifier(*arguments(**loaded))
    path = tmp_path / "run" / "run.json"
    settings = json.loads(path.read_text())
    for name in ("streaming", "paper_dataset", "data_dir"):
        del settings["data"][name]
    path.write_text(json.dumps(settings))
    checkpoint = claim_output_dir(*arguments(**loaded, resume_from_checkpoint="last"))
    assert checkpoint == str(tmp_path / "run")  # which is finished
    with pytest.raises(InputError, match=r"holds another run \(data.streaming was False and is True\)"):
        claim_output_dir(*arguments(max_steps=2, resume_from_checkpoint="last"))


def test_the_seed_decides_the_order(arguments, tmp_path):
    orders = []
    for seed in (1, 1, 2):
        trainer = train_classifier(*arguments(f"run {len(orders)}", seed=seed, max_steps=1, num_train_epochs=1))
        orders.append([row["text"] for row in trainer.train_dataset])
    assert orders[0] == orders[1] != orders[2]


def test_a_row_that_cannot_be_used_is_named_while_training(arguments, tmp_path):
    rows = Dataset.from_dict({"text": ["fine", "bad", ""], "label": [0, 1, 0]})
    rows.cast_column("label", ClassLabel(names=["no", "yes"])).to_parquet(tmp_path / "train.parquet")
    with pytest.raises(InputError, match=r"no text or no label in row 3 \(column 'text'\)"):
        train_classifier(*arguments(data={"train_file": str(tmp_path / "train.parquet")}))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_steps": -1}, "--max_steps"),
        ({"model": {"word_encoder": "lstm"}}, "--word_encoder counts the words of all training texts"),
        ({"dataloader_num_workers": 2}, "dataloader_num_workers is 2"),
        ({"train_sampling_strategy": "group_by_length"}, "--train_sampling_strategy group_by_length needs all rows"),
        ({"eval_strategy": "epoch"}, r"no validation data .*Give --validation_file, or --eval_strategy no"),
    ],
)
def test_what_does_not_go_with_a_stream_is_refused(arguments, tmp_path, changed, message):
    with pytest.raises(InputError, match=message):
        train_classifier(*arguments(**changed))
    assert not (tmp_path / "run").exists() or not any((tmp_path / "run").iterdir())


def test_the_trainer_takes_any_stream(make_trainer, make_dataset):
    stream = make_dataset(10).to_iterable_dataset()
    trainer = make_trainer(rows=stream, max_steps=6, num_train_epochs=3, per_device_train_batch_size=4)
    for _ in range(2):
        trainer.train()
        phases = {record["step"]: record["phase"] for record in records(trainer)}
        assert [phases[step] for step in range(1, 7)] == ["joint"] * 2 + ["compress"] * 2 + ["learn"] * 2


@pytest.mark.parametrize(("steps", "epochs", "warned"), [(9, 4, True), (2, 4, True), (10, 4, False), (10, 2.5, False)])
def test_epochs_that_get_no_steps_are_named(make_trainer, make_dataset, caplog, steps, epochs, warned):
    make_trainer(rows=make_dataset(10).to_iterable_dataset(), max_steps=steps, num_train_epochs=epochs)
    assert ("leave none to the other" in caplog.text) == warned
    if steps == 9:
        assert "9 steps make 3 epochs of 3 steps and leave none to the other 1 of num_train_epochs" in caplog.text
        assert "12 steps would do for all" in caplog.text


class Sized(torch.utils.data.IterableDataset):
    """A stream of torch that knows its length."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)


def test_a_stream_with_a_length_has_epochs_of_that_length(train, make_dataset):
    rows = list(make_dataset(10).remove_columns("text"))
    trainer = train(rows=Sized(rows), num_train_epochs=3, per_device_train_batch_size=4)
    phases = [record["phase"] for record in records(trainer)]
    assert [phases[step] for step in (0, 2, 3, 5, 6, 8)] == ["joint"] * 2 + ["compress"] * 2 + ["learn"] * 2
    assert trainer.state.global_step == 9


def test_each_process_reads_a_stream_for_itself(make_trainer, make_dataset):
    """Batches that one process collects for the others cannot be put together: their lengths differ."""
    trainer = make_trainer(rows=make_dataset(10).to_iterable_dataset(), max_steps=3)
    assert trainer.accelerator.dispatch_batches is False
    assert make_trainer(size=10).accelerator.dispatch_batches is None


@pytest.mark.parametrize("position", [0, 39])  # among the rows of the attention probe, and after them
@pytest.mark.parametrize("label", [2, -1, "good"])
def test_c11_a_label_outside_the_classes_is_named_when_it_is_read(make_trainer, make_dataset, position, label):
    rows = list(make_dataset(40).remove_columns("text"))
    rows[position]["label"] = label
    with pytest.raises(
        InputError, match=rf"the label {label!r} in row {position} of the stream, column 'label'; .* 0 to 1"
    ):
        make_trainer(rows=Sized(rows), num_train_epochs=1, per_device_train_batch_size=4).train()


def test_a_stream_without_labels_is_refused(make_trainer, make_dataset):
    stream = make_dataset(10).remove_columns(["text", "label"]).to_iterable_dataset()
    with pytest.raises(
        InputError, match=r"training set has no column 'labels' or 'label'; its columns are \['input_ids'"
    ):
        make_trainer(rows=stream, max_steps=3)


def test_a_stream_is_no_evaluation_set(make_trainer, make_dataset):
    rows, stream = make_dataset(10), make_dataset(10).to_iterable_dataset()
    for evaluated in (stream, {"dev": stream}, Sized(list(rows))):
        with pytest.raises(InputError, match=r"evaluation set is a stream.* Dataset\.from_list"):
            make_trainer(rows=rows, eval_dataset=evaluated)
    with pytest.raises(InputError, match="evaluation set is a stream"):
        make_trainer(rows=rows).evaluate(stream)


# Explaining


@pytest.fixture
def explained(arguments, tmp_path, monkeypatch, capsys):
    """`hf-vat explain` on the training file, 16 texts at a time."""
    train_classifier(*arguments(max_steps=2))
    monkeypatch.setattr(explain_command, "_TOGETHER", 160)  # a tenth for a slow method

    def run(*options, file="train.csv"):
        sizes = ("--test_file", str(tmp_path / file), "--streaming", "--save_to", str(tmp_path / "out.jsonl"))
        monkeypatch.setattr(sys, "argv", ["hf-vat explain", "--model", str(tmp_path / "run"), *sizes, *options])
        explain_command.main()
        return capsys.readouterr().out

    return run


def without_time(explanations):
    return [{**explanation.to_dict(), "seconds": 0} for explanation in explanations]


def test_streamed_explanations_are_those_of_one_call_and_go_on(explained, tmp_path, monkeypatch):
    path, settings = tmp_path / "out.jsonl", ("--method", "occlusion")
    output = explained(*settings, "--show", "2")
    assert f"Explanations: 40 in {path}" in output and output.count("occlusion") <= 2
    model, tokenizer = load_classifier(str(tmp_path / "run"))
    gold = [model.config.label2id[label] for _, label in TEXTS]
    expected = without_time(explain(model, tokenizer, [text for text, _ in TEXTS], "occlusion", labels=gold))
    found = without_time(load_explanations(path))
    for one, other in zip(found, expected, strict=True):  # other batches round differently
        assert one.pop("scores") == pytest.approx(other.pop("scores"), abs=1e-5)
        assert one.pop("probabilities") == pytest.approx(other.pop("probabilities"), abs=1e-5)
        assert one == other

    content, calls = path.read_bytes(), []
    lines = content.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20]) + lines[20][:30])  # header, 19 explanations, and a torn one
    monkeypatch.setattr(
        explain_command, "explain", lambda *args, **kwargs: calls.append(args[2]) or explain(*args, **kwargs)
    )
    explained(*settings)
    assert [len(texts) for texts in calls] == [13, 8]  # 19 are there; the stream is cut after 16 and 32
    assert [json.loads(line)["text"] for line in path.read_bytes().splitlines()[1:]] == [text for text, _ in TEXTS]
    assert path.read_bytes().startswith(b"".join(lines[:20]))


def test_an_interruption_loses_what_is_in_the_making_only(explained, tmp_path, monkeypatch, capsys):
    """A costly method writes several times in each call of `explain`; here 4 texts of 3 words, 5 inputs each, at a time."""
    monkeypatch.setattr(explainers, "_WINDOW", 20)
    append, times = Store.append, []

    def interrupted(store, explanations):
        append(store, explanations)
        times.append(len(explanations))
        if len(times) == 6:
            raise KeyboardInterrupt

    path = tmp_path / "out.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", interrupted)
        with pytest.raises(KeyboardInterrupt) as stopped:
            explained("--method", "occlusion")
    assert str(stopped.value) == f"Stopped: 24 explanations are in {path}; the same call goes on."
    assert times == [4] * 6 and len(load_explanations(path)) == 24
    assert "occlusion: 100%" in capsys.readouterr().err, "a slow method shows how far it is"
    assert "Explanations: 40 in" in explained("--method", "occlusion")
    assert [explanation.text for explanation in load_explanations(path)] == [text for text, _ in TEXTS]


def test_a_file_of_another_call_or_of_other_texts_is_left_alone(explained, tmp_path):
    explained("--max_eval_samples", "20")
    content = (tmp_path / "out.jsonl").read_bytes()
    assert len(content.splitlines()) == 21
    with pytest.raises(InputError, match="explanations of another call, with other method"):
        explained("--method", "random")
    other = (tmp_path / "train.csv").read_text().replace("the great film", "the worse film", 1)
    (tmp_path / "other.csv").write_text(other)
    with pytest.raises(InputError, match=r"other texts, .* in row 11\b"):
        explained(file="other.csv")
    with pytest.raises(InputError, match="more explanations than there are rows to explain, 12"):
        explained("--max_eval_samples", "12")
    assert (tmp_path / "out.jsonl").read_bytes() == content
    (tmp_path / "out.jsonl").write_text("my notes\n")
    with pytest.raises(InputError, match="no file of explanations"):
        explained()
    assert (tmp_path / "out.jsonl").read_text() == "my notes\n"


def test_pages_of_a_stream_are_refused(explained, tmp_path):
    for option in ("--html", "--json"):
        with pytest.raises(InputError, match="keeps no explanations in memory"):
            explained(option, str(tmp_path / "page"))
