"""All that asks a model about its attention leaves it as found, and goes on from where it stopped."""

import json

import numpy as np
import pytest
import torch

from hf_vat.analysis import adversarial as adversarial_module
from hf_vat.analysis import adversarial_attention, controls, permute_attention, states, uniform_attention
from hf_vat.analysis import permutation as permutation_module
from hf_vat.errors import InputError
from hf_vat.inference import forward_batches

TEXTS = ["good film", "the plot and the film", "bad", "", "a very bad film", "awful film"]
CALLS = {
    "permutation": (permute_attention, {"n_permutations": 5}),
    "adversarial": (adversarial_attention, {"n_steps": 3}),
    "uniform": (uniform_attention, {}),
}
same = pytest.mark.parametrize("name", sorted(CALLS))


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    for module in (permutation_module, adversarial_module, controls):
        monkeypatch.setattr(module, "_TOGETHER", 2)


@same
def test_model_and_random_state_are_left_as_found(make_lstm, word_tokenizer, name):
    call, settings = CALLS[name]
    model = make_lstm().train()
    model.learner_head.eval()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    random = torch.get_rng_state(), np.random.get_state()[1].tolist()
    first = call(model, word_tokenizer, TEXTS, **settings)
    assert repr(call(model, word_tokenizer, TEXTS, **settings)) == repr(first)  # no dropout
    assert torch.equal(torch.get_rng_state(), random[0]) and np.random.get_state()[1].tolist() == random[1]
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    with pytest.raises(RuntimeError), pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "logits_of", lambda text: (_ for _ in ()).throw(RuntimeError()))
        call(model, word_tokenizer, TEXTS, **settings)
    assert [module.training for module in model.modules()] == modes


@same
def test_an_interrupted_call_goes_on(make_lstm, word_tokenizer, tmp_path, monkeypatch, name):
    call, settings = CALLS[name]
    path, model = tmp_path / "new" / "results.jsonl", make_lstm()
    expected = call(model, word_tokenizer, TEXTS, **settings)
    append = states.LineStore.append

    def interrupted(store, results):
        append(store, results)
        if store.finished == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt, match=r"Stopped: 2 of 6 .*goes on"):
        patch.setattr(states.LineStore, "append", interrupted)
        call(model, word_tokenizer, TEXTS, save_to=path, **settings)
    path.write_bytes(path.read_bytes()[:-3])  # the last line is torn
    asked = []
    with monkeypatch.context() as patch:
        patch.setattr(states, "forward_batches", lambda *given: asked.append(len(given[2])) or forward_batches(*given))
        assert repr(call(model, word_tokenizer, TEXTS, save_to=path, **settings)) == repr(expected)
    assert asked == [2, 2], "what was done is not done again"
    header, *lines = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
    assert header["texts"] == len(lines) == 6 and settings.items() <= header["settings"].items()
    written = path.read_bytes()
    assert repr(call(model, word_tokenizer, TEXTS, save_to=path, **settings)) == repr(expected)
    assert path.read_bytes() == written


@same
def test_a_file_of_another_call_is_refused(make_lstm, word_tokenizer, tmp_path, name):
    call, settings = CALLS[name]
    path = tmp_path / "results.jsonl"
    call(make_lstm(), word_tokenizer, TEXTS, save_to=path, **settings)
    changes = [({"max_length": 2}, "other inputs"), *([({"seed": 1}, "other settings")] if settings else [])]
    for given, message in changes:
        with pytest.raises(InputError, match=rf"s of another call, with {message}"):
            call(make_lstm(), word_tokenizer, TEXTS, save_to=path, **(settings | given))
    with pytest.raises(InputError, match="other model state"):
        call(make_lstm(attention_scale=2.0), word_tokenizer, TEXTS, save_to=path, **settings)
    with pytest.raises(InputError, match="a folder"):
        call(make_lstm(), word_tokenizer, TEXTS, save_to=tmp_path, **settings)
    other, _ = CALLS[next(one for one in CALLS if one != name)]
    with pytest.raises(InputError, match="no file of"):
        other(make_lstm(), word_tokenizer, TEXTS, save_to=path)


def test_progress_counts_texts(make_lstm, word_tokenizer, capsys):
    permute_attention(make_lstm(), word_tokenizer, TEXTS, progress=True)
    assert "6/6" in capsys.readouterr().err
