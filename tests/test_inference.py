"""Batched forward passes: modes, batches, order, and nothing left behind."""

import random
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import deepcopy

import numpy as np
import pytest
import torch

from hf_vat import explain
from hf_vat.embeddings import embedded_as
from hf_vat.errors import InputError
from hf_vat.inference import absent, evaluation_mode, forward_batches, predict_outputs, progress_bar

TEXTS = [
    "good film",
    "a very bad plot and the actor",
    "dull",
    "it is superb , and",
    "awful scene",
    "",
    "the movie is great",
]


@pytest.fixture
def input_ids(tokenizer):
    return tokenizer(TEXTS)["input_ids"]


@pytest.fixture
def model(make_model):
    """In training mode, with dropout."""
    return make_model("vat", hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5).train()


@pytest.fixture
def batches(model):
    """The input_ids and attention_mask of every batch that the model is given."""
    given = []

    def record(module, args, kwargs):
        given.append({name: kwargs[name].clone() for name in ("input_ids", "attention_mask")})

    model.register_forward_pre_hook(record, with_kwargs=True)
    return given


def modes(model) -> dict[str, bool]:
    return {name: module.training for name, module in model.named_modules()}


def partly_training(model):
    model.train()
    model.bert.eval()
    model.bert.encoder.layer[1].train()
    return modes(model)


# Modes


def test_c16_every_module_returns_to_its_own_mode(model):
    before = partly_training(model)
    assert set(before.values()) == {True, False}
    with evaluation_mode(model):
        assert not any(modes(model).values())
    assert modes(model) == before


def test_f36_a_thread_that_ends_leaves_the_model_in_eval_mode_for_the_others(model):
    before = partly_training(model)
    inside, outside = threading.Event(), threading.Event()

    def other():
        with evaluation_mode(model):
            inside.set()
            outside.wait(30)

    thread = threading.Thread(target=other)
    with evaluation_mode(model):
        thread.start()
        inside.wait(30)
    assert not any(modes(model).values())  # the other thread is still inside
    outside.set()
    thread.join()
    assert modes(model) == before


def test_f36_threads_that_explain_at_once(make_model, tokenizer):
    """Dropout would change every score, and a tokenizer cut to another thread's length every word."""
    model = make_model("att", hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5).train()
    methods = ("gradient", "input_x_gradient", "occlusion", "attention", "random")
    calls = [(method, length) for method in methods for length in (4, 6, None)]

    def explained(call):
        method, length = call
        explanations = explain(model, tokenizer, TEXTS, method, max_length=length, batch_size=2)
        return np.concatenate([explanation.scores for explanation in explanations])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # texts are cut
        expected = [explained(call) for call in calls]
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(explained, calls * 3))
    for scores, wanted in zip(found, expected * 3, strict=True):
        np.testing.assert_allclose(scores, wanted, atol=1e-6)
    assert all(modes(model).values())
    assert torch.backends.cudnn.enabled and not model.get_input_embeddings()._forward_hooks


def test_f36_another_thread_sees_a_hook_that_is_only_half_registered(make_model, input_ids):
    """Torch enters a hook, and only then that it takes keyword arguments; a call may come between."""
    model = make_model("att").eval()
    layer = model.get_input_embeddings()
    ids = torch.tensor(input_ids[:1])
    expected = layer(ids)
    with embedded_as(model, ids, torch.zeros_like(expected)):
        layer._forward_hooks_with_kwargs.clear()
        with ThreadPoolExecutor(1) as pool:
            assert torch.equal(pool.submit(layer, ids).result(), expected)
        layer._forward_hooks_with_kwargs.update(dict.fromkeys(layer._forward_hooks, True))
        assert not layer(ids).any()


def test_c16_modes_return_after_an_exception(model, tokenizer, input_ids):
    before = partly_training(model)
    with pytest.raises(KeyError), evaluation_mode(model):
        raise KeyError("inside")
    assert modes(model) == before

    handle = model.bert.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        predict_outputs(model, tokenizer, input_ids)
    handle.remove()
    assert modes(model) == before

    with pytest.raises(KeyError), closing(forward_batches(model, tokenizer, input_ids, 2)) as batches:
        for _ in batches:
            raise KeyError("in the caller's loop")
    assert modes(model) == before

    model.config.num_labels = 5  # not what the model gives: fails between two batches
    with pytest.raises(InputError, match=r"shape \(7, 2\).*\[batch, 5\]") as held:
        predict_outputs(model, tokenizer, input_ids)
    assert held.value.__traceback__ is not None, "held, so that its frames are not yet freed"
    assert modes(model) == before


def test_c16_a_model_in_training_mode_gives_the_same_numbers_twice(model, tokenizer, input_ids):
    first = predict_outputs(model, tokenizer, input_ids)
    assert model.training
    np.testing.assert_array_equal(predict_outputs(model, tokenizer, input_ids), first)
    np.testing.assert_array_equal(predict_outputs(model.eval(), tokenizer, input_ids), first)


def test_no_gradients_in_the_model_and_as_usual_in_the_callers_loop(model, tokenizer, input_ids):
    with closing(forward_batches(model, tokenizer, input_ids, 4)) as batches:
        for _, output in batches:
            assert not output.logits.requires_grad
            assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    assert all(parameter.grad is None for parameter in model.parameters())


def test_random_states_are_left_as_found(model, tokenizer, input_ids):
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    predict_outputs(model, tokenizer, input_ids, batch_size=2)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]
    assert random.getstate() == before[2]


# Batches


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 100])
def test_c52_no_batch_is_larger_than_asked(model, batches, tokenizer, input_ids, batch_size):
    predict_outputs(model, tokenizer, input_ids, batch_size)
    sizes = [len(batch["input_ids"]) for batch in batches]
    full, rest = divmod(len(TEXTS), batch_size)
    assert sizes == [batch_size] * full + [rest] * (rest > 0)


def test_longest_texts_come_first_with_the_padding_of_their_own_batch(model, batches, tokenizer, input_ids):
    assert [len(ids) for ids in input_ids] == [4, 9, 3, 7, 4, 2, 6]
    with closing(forward_batches(model, tokenizer, input_ids, 2)) as found:
        positions = [batch for batch, _ in found]
    assert positions == [[1, 3], [6, 0], [4, 2], [5]]  # of texts 0 and 4, equally long, the smaller ids come first
    assert [batch["attention_mask"].sum(1).tolist() for batch in batches] == [[9, 7], [6, 4], [4, 3], [2]]
    assert [batch["input_ids"].shape[1] for batch in batches] == [9, 6, 4, 2]


def test_equal_inputs_are_run_once(model, batches, tokenizer):
    good, bad = tokenizer(["good film", "bad film"])["input_ids"]
    probabilities = predict_outputs(model, tokenizer, [good, bad, good, good, bad], batch_size=2)
    assert [batch["input_ids"].tolist() for batch in batches] == [[good, bad]]
    np.testing.assert_array_equal(probabilities, probabilities[[0, 1, 0, 0, 1]])
    assert abs(probabilities[0] - probabilities[1]).max() > 1e-3


# Results


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("system", ["base", "max", "mean", "att", "vat"])
def test_c04_results_in_order_whatever_the_batch(make_model, tokenizer, input_ids, system, side, monkeypatch):
    model = make_model(system).eval()
    with torch.no_grad():
        alone = torch.cat([model(input_ids=torch.tensor([ids])).logits for ids in input_ids])
    expected = alone.double().softmax(-1).numpy()
    assert len(np.unique(expected[:, 0].round(4))) == len(TEXTS), "the texts must differ, or order shows nothing"
    monkeypatch.setattr(tokenizer, "padding_side", side)
    for batch_size in (1, 2, 5, 100):
        found = predict_outputs(model, tokenizer, input_ids, batch_size)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_padding_on_the_right_and_none_where_the_tokenizer_pads_on_the_left(model, batches, tokenizer, monkeypatch):
    short, long, other = tokenizer(["good", "a good film", "bad"])["input_ids"]
    predict_outputs(model, tokenizer, [short, long, other])
    assert batches[0]["input_ids"].tolist() == [long, [*short, 0, 0], [*other, 0, 0]]
    assert batches[0]["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0]]
    monkeypatch.setattr(tokenizer, "padding_side", "left")
    predict_outputs(model, tokenizer, [short, long, other])
    assert [batch["input_ids"].tolist() for batch in batches[1:]] == [[long], [short, other]]


def test_probabilities_are_the_softmax_in_float64(make_model, tokenizer, input_ids):
    model = make_model("att", num_labels=3)
    probabilities = predict_outputs(model, tokenizer, [tuple(ids) for ids in input_ids])
    assert probabilities.shape == (len(TEXTS), 3) and probabilities.dtype == np.float64
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=0, atol=1e-12)


def test_no_texts_give_no_rows(make_model, tokenizer):
    assert predict_outputs(make_model(num_labels=3), tokenizer, []).shape == (0, 3)


def test_c51_bit_equal_whatever_the_order(model, tokenizer, input_ids):
    forwards = predict_outputs(model, tokenizer, input_ids, batch_size=3)
    backwards = predict_outputs(model, tokenizer, input_ids[::-1], batch_size=3)
    np.testing.assert_array_equal(forwards, backwards[::-1])


def test_progress_bar_counts_inputs_also_equal_ones(model, tokenizer, input_ids, capsys):
    with progress_bar("scoring", 14, False) as bar:
        predict_outputs(model, tokenizer, input_ids * 2, batch_size=2, bar=bar)
    assert capsys.readouterr() == ("", "")
    with progress_bar("scoring", 14, True) as bar:
        predict_outputs(model, tokenizer, input_ids * 2, batch_size=2, bar=bar)
    printed = capsys.readouterr().err
    assert "scoring" in printed and "14/14" in printed


# Inputs


def test_absent_positions_are_outside_the_mask_and_keep_the_others_in_place(model, batches, tokenizer):
    [ids] = tokenizer(["a good film"])["input_ids"]
    predict_outputs(model, tokenizer, [[*ids[:2], absent(7), *ids[3:]]])
    assert batches[0]["attention_mask"].tolist() == [[1, 1, 0, 1, 1]]
    assert batches[0]["input_ids"].tolist() == [[*ids[:2], 7, *ids[3:]]]


def test_c15_a_diverged_model_is_named(model, tokenizer, input_ids):
    torch.nn.init.constant_(model.learner_head.out_proj.bias, float("nan"))
    with pytest.raises(InputError, match="BertForVATClassification gives logits that are not finite"):
        predict_outputs(model, tokenizer, input_ids)


def test_a_configuration_that_asks_for_tuples(model, tokenizer, input_ids):
    expected = predict_outputs(model, tokenizer, input_ids)
    model.config.return_dict = False
    np.testing.assert_array_equal(predict_outputs(model, tokenizer, input_ids), expected)


def test_a_tokenizer_without_a_padding_token(model, tokenizer, input_ids):
    tokenizer = deepcopy(tokenizer)
    tokenizer.pad_token = None
    assert len(predict_outputs(model, tokenizer, [input_ids[0], input_ids[4]])) == 2  # equally long
    with pytest.raises(InputError, match=r"no padding token; set tokenizer\.pad_token"):
        predict_outputs(model, tokenizer, input_ids)
