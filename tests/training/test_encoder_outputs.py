"""In a compressor phase each text is encoded once: the weights are the same, and nothing is left behind."""

import logging
import random
import shutil
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from runs import StopAt, assert_same_weights, broken_and_unbroken, records
from torch.nn.functional import pad
from transformers import (
    BertModel,
    DataCollatorWithPadding,
    GPT2Config,
    RobertaConfig,
    set_seed,
)

from hf_vat import BertVMaskConfig, BertWithVMask, EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig
from hf_vat.errors import InputError
from hf_vat.training import encoder_outputs
from hf_vat.training.encoder_outputs import EncoderOutputs, _Disk, _Memory

SMALL = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
PHASES = {"start_epochs": 0, "compress_epochs": 3, "learn_epochs": 1, "num_train_epochs": 7}


def on_encoder(encoder_config, **settings):
    with torch.random.fork_rng():
        set_seed(0)
        return EncoderForVATClassification(EncoderVATConfig(encoder=encoder_config, num_labels=2, **settings))


def masked(mask_type):
    with torch.random.fork_rng():
        set_seed(0)
        settings = {
            "mask_type": mask_type,
            "bottleneck": "gaussian",
            "pooling": "attention",
            "freeze_embeddings": False,
        }
        return BertWithVMask(BertVMaskConfig(**SMALL, max_position_embeddings=32, **settings))


def words(kind, **settings):
    return on_encoder(
        WordEncoderConfig(vocab_size=60, encoder_type=kind, embedding_size=12, hidden_size=12),
        bottleneck="gaussian",
        **settings,
    )


MODELS = {
    "bert": lambda make_model: make_model("vat", hidden_dropout_prob=0.3),
    "bert, shared mean": lambda make_model: make_model("vat_shared_mean"),
    "bert, concat": lambda make_model: make_model("vat", word_objective="concat"),
    "roberta": lambda _: on_encoder(
        RobertaConfig(**SMALL, max_position_embeddings=40, pad_token_id=1), bottleneck="gaussian"
    ),
    "gpt2": lambda _: on_encoder(
        GPT2Config(vocab_size=60, n_positions=30, n_embd=16, n_layer=1, n_head=2, pad_token_id=0),
        bottleneck="gaussian",
        prefix_tokens=0,
        suffix_tokens=0,
    ),
    "vmask": lambda _: masked("vmask"),
    "iba": lambda _: masked("iba"),
    "lstm": lambda _: words("lstm"),
    "cnn": lambda _: words("cnn"),
    "affine": lambda _: words("affine"),
}


@pytest.mark.parametrize("model", MODELS)
def test_weights_and_records_are_those_without(make_trainer, make_model, caplog, model):
    trained = {}
    for how in ("off", "memory", "disk"):
        trainer = make_trainer(model=MODELS[model](make_model), cache_encoder_outputs=how, **PHASES)
        with caplog.at_level(logging.INFO, "hf_vat"):
            trainer.train()
        trained[how] = trainer
    kept = [record.getMessage() for record in caplog.records if "are kept in" in record.getMessage()]
    assert len(kept) == 4 and "a file in" in kept[-1]  # two phases, in memory and on disk
    for how in ("memory", "disk"):
        assert_same_weights(trained["off"].model, trained[how].model)
        numbers = [
            [{name: value for name, value in one.items() if "runtime" not in name} for one in records(trained[which])]
            for which in ("off", how)
        ]
        assert numbers[0] == numbers[1]


def count_texts(trainer) -> list[int]:
    """Of each call of the encoder the epoch, and how many texts it has."""
    seen, encode = [], trainer.classifier.encode_texts

    def counted(**inputs):
        seen.append((int(trainer.state.epoch + 1e-6), len(inputs["attention_mask"])))
        return encode(**inputs)

    trainer.classifier.encode_texts = counted
    return seen


@pytest.mark.parametrize(
    ("how", "epochs"), [("auto", [1, 5]), ("memory", [1, 5]), ("disk", [1, 5]), ("off", [1, 2, 3, 5, 6])]
)
def test_each_text_is_encoded_once_in_a_phase(make_trainer, monkeypatch, how, epochs):
    monkeypatch.setattr(encoder_outputs, "_why_not", lambda *_: None)  # which encodes some texts too
    trainer = make_trainer(cache_encoder_outputs=how, **(PHASES | {"start_epochs": 1, "num_train_epochs": 7}))
    seen = count_texts(trainer)
    trainer.train()
    texts = {epoch: sum(size for at, size in seen if at == epoch) for epoch in range(7)}
    assert texts == {epoch: 32 if epoch in epochs else 0 for epoch in range(7)}
    assert trainer._encoder_outputs is None  # and its memory is free again


@pytest.mark.parametrize("step", [3, 6])
def test_c23_a_run_that_stops_within_the_phase_goes_on_to_the_bit(make_trainer, make_model, step):
    def make(**settings):
        model = make_model("vat", hidden_dropout_prob=0.3)
        return make_trainer(model=model, **(PHASES | {"num_train_epochs": 4}), **settings)

    resumed, unbroken = broken_and_unbroken(make, StopAt(step))
    assert_same_weights(unbroken.model, resumed.model)


# When nothing can be kept


class RandomWords:
    """A collator that hides a word now and then, drawn by whichever generator."""

    def __init__(self, tokenizer, draw):
        self.collate, self.draw = DataCollatorWithPadding(tokenizer), draw

    def __call__(self, rows):
        batch = self.collate(rows)
        batch["input_ids"][:, 1] = torch.tensor([4 if self.draw() < 0.5 else 1 for _ in rows])
        return batch


def told(caplog) -> list[str]:
    return [one.getMessage() for one in caplog.records if "encoder's outputs" in one.getMessage()]


@pytest.mark.parametrize("draw", [random.random, np.random.rand, lambda: torch.rand(()).item()])
def test_random_inputs_are_not_kept_and_the_generators_stay_as_they_are(make_trainer, tokenizer, caplog, draw):
    trained = []
    for how in ("auto", "off"):
        trainer = make_trainer(cache_encoder_outputs=how, **PHASES)
        trainer.data_collator = RandomWords(tokenizer, draw)
        with caplog.at_level(logging.INFO, "hf_vat"):
            trainer.train()
        trained.append(trainer)
    assert len(told(caplog)) == 2 and all("the inputs of a text are others each time" in line for line in told(caplog))
    assert_same_weights(trained[0].model, trained[1].model)


def test_an_encoder_that_draws_is_not_kept(make_trainer, make_model, caplog):
    class Noisy(BertModel):
        def forward(self, *args, **kwargs):
            encoded = super().forward(*args, **kwargs)
            encoded.last_hidden_state = encoded.last_hidden_state + 0.01 * torch.randn_like(encoded.last_hidden_state)
            return encoded

    model = make_model("vat")
    model.bert.__class__ = Noisy
    with caplog.at_level(logging.INFO, "hf_vat"):
        make_trainer(model=model, **PHASES).train()
    assert len(told(caplog)) == 2 and all(
        "are others each time, or beside other texts" in line for line in told(caplog)
    )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"compress_epochs": 1, "num_train_epochs": 2, "start_epochs": 0}, "no text is read twice"),
        ({**PHASES, "num_train_epochs": 2, "output_hidden_states": True}, "asks for hidden states"),
    ],
)
def test_it_says_why_nothing_is_kept(make_trainer, make_model, caplog, settings, reason):
    settings = dict(settings)
    model = make_model("vat", **{name: settings.pop(name) for name in ("output_hidden_states",) if name in settings})
    trainer = make_trainer(model=model, **settings)
    with caplog.at_level(logging.INFO, "hf_vat"):
        trainer.train()
    assert [reason in line for line in told(caplog)] == [True]


# Where they are kept


@pytest.mark.parametrize(
    ("memory", "disk", "where"),
    [(10**9, 10**9, "in memory for"), (1000, 10**9, "a file in"), (1000, 1000, "as far as 0 MiB go")],
)
def test_auto_takes_memory_then_the_disk_then_what_there_is(make_trainer, monkeypatch, caplog, memory, disk, where):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=memory))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=disk))
    trained = []
    for how in ("auto", "off"):
        trainer = make_trainer(cache_encoder_outputs=how, **PHASES)
        with caplog.at_level(logging.INFO, "hf_vat"):
            trainer.train()
        trained.append(trainer)
    assert len(told(caplog)) == 2 and all(where in line for line in told(caplog))
    assert_same_weights(trained[0].model, trained[1].model)


def test_too_small_a_disk_is_refused_before_a_step(make_trainer, monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    trainer = make_trainer(cache_encoder_outputs="disk", **PHASES)
    with pytest.raises(InputError, match=r"cache_encoder_outputs='disk' needs about 0\.0 GiB .* has left are"):
        trainer.train()
    assert trainer.state.global_step == 0


@pytest.mark.parametrize("how", ["auto", "disk"])
def test_the_output_folder_need_not_be_there(make_trainer, tmp_path, how):
    settings = PHASES | {"num_train_epochs": 2}
    make_trainer(folder="not/yet", cache_encoder_outputs=how, logging_strategy="no", **settings).train()


def test_nothing_is_left_on_the_disk(make_trainer, tmp_path):
    files = []

    class Look(StopAt):
        def on_epoch_end(self, args, state, control, **kwargs):
            files.extend(path.name for path in (tmp_path / "run").iterdir())

    make_trainer(cache_encoder_outputs="disk", callbacks=[Look(100)], **PHASES).train()
    assert files and not [name for name in files if not name.startswith(("checkpoint", ".hf_vat.lock"))], files


def test_a_disk_that_gets_full_costs_time_and_no_run(make_trainer, monkeypatch, caplog):
    class Full(_Disk):
        def __init__(self, folder, capacity):
            super().__init__(folder, capacity)
            self._file = FullFile(self._file)

    class FullFile:
        def __init__(self, file):
            self.file, self.writes = file, 0

        def write(self, data):
            self.writes += 1
            if self.writes > 5:
                raise OSError(28, "No space left on device")
            return self.file.write(data)

        def __getattr__(self, name):
            return getattr(self.file, name)

    monkeypatch.setattr(encoder_outputs, "_Disk", Full)
    trained = []
    for how in ("disk", "off"):
        trainer = make_trainer(cache_encoder_outputs=how, **PHASES)
        trainer.train()
        trained.append(trainer)
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert sum("No more of the encoder's outputs are kept: [Errno 28]" in line for line in warnings) == 2
    assert_same_weights(trained[0].model, trained[1].model)


# One batch


@pytest.fixture(scope="module")
def encoders():
    """Models by name, in the phase; their encoders do not know each other's padding."""
    built = {}
    for name in ("roberta", "gpt2", "vmask", "lstm"):
        built[name] = MODELS[name](None)
        built[name].train().set_phase("compress")
    return built


TEXT = st.lists(st.integers(5, 59), min_size=2, max_size=14)


@given(
    st.sampled_from(["roberta", "gpt2", "vmask", "lstm"]),
    st.lists(TEXT, min_size=1, max_size=5, unique_by=tuple),
    st.data(),
)
def test_a_text_has_the_same_states_in_any_batch_on_any_side(encoders, tmp_path_factory, name, texts, data):
    """Whatever it is beside, however it is padded, and wherever it comes from."""
    model = encoders[name]
    kept = data.draw(st.sampled_from([_Memory(10**6), _Memory(500), None, "disk"]))
    kept = _Disk(str(tmp_path_factory.getbasetemp()), 10**6) if kept == "disk" else kept
    outputs, seen = EncoderOutputs(model, kept), {}
    for _ in range(3):
        rows = data.draw(st.lists(st.sampled_from(texts), min_size=1, max_size=5))
        length = max(map(len, rows)) + data.draw(st.integers(0, 3))
        # An LSTM's tokenizer pads on the right.
        before = [data.draw(st.integers(0, length - len(row))) if name == "gpt2" else 0 for row in rows]
        padding = 1 if name == "roberta" else 0
        batch = {
            "input_ids": torch.stack(
                [
                    pad(torch.tensor(row), (first, length - len(row) - first), value=padding)
                    for row, first in zip(rows, before, strict=True)
                ]
            ),
            "attention_mask": torch.stack(
                [
                    pad(torch.ones(len(row)), (first, length - len(row) - first)).long()
                    for row, first in zip(rows, before, strict=True)
                ]
            ),
        }
        found = outputs.of(batch)
        assert found.states.shape[:2] == (len(rows), length)
        assert not found.states[~batch["attention_mask"].bool()].any()
        for row, first, states in zip(rows, before, found.states, strict=True):
            own = states[first : first + len(row)]
            assert torch.equal(own, seen.setdefault(tuple(row), own))


def test_the_model_goes_on_from_what_was_encoded(make_model, tokenizer):
    model, batch = make_model("vat").eval(), tokenizer(["a good film", "bad"], padding=True, return_tensors="pt")
    labels = torch.tensor([1, 0])
    plain = model(**batch, labels=labels)
    again = model(**batch, labels=labels, encoded_texts=model.encode_texts(**batch))
    for name in ("loss", "logits", "token_importance", "pooler_output"):
        assert torch.equal(plain[name], again[name]), name
    model.train().set_phase("learn")
    with pytest.raises(ValueError, match="phase='learn' trains the encoder"):
        model(**batch, labels=labels, encoded_texts=model.encode_texts(**batch))
