"""Texts that are longer than an encoder reads, in windows: which tokens are read where, and what comes of it."""

import numpy as np
import pytest
import torch
from checks import ALONE
from huggingface_hub.errors import StrictDataclassError
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification, set_seed

from hf_vat import BertForVATClassification, BertVATConfig, EncoderForVATClassification, EncoderVATConfig, explain
from hf_vat.inference import predict_outputs
from hf_vat.models import classifier
from hf_vat.models.windows import windows
from hf_vat.models.words import encode_words, maximum_length
from hf_vat.windowed import WindowedClassifier, in_windows

WORDS = ["good", "bad", "film", "very", "not", "a", "plot"]
LONG = " ".join(WORDS * 8)  # 56 words
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.fixture
def tokenizer():
    from transformers import BertTokenizerFast

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    return BertTokenizerFast(vocab={word: place for place, word in enumerate(vocabulary)}, model_max_length=16)


def config(tokenizer, **settings):
    return BertVATConfig(
        vocab_size=len(tokenizer), max_position_embeddings=16, initializer_range=0.3, special_token_ids=[2, 3],
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **SIZES, **settings
    )  # fmt: skip


@pytest.fixture
def model(tokenizer):
    set_seed(0)
    return BertForVATClassification(config(tokenizer, window_length=16, window_overlap=6)).eval()


def batch(tokenizer, texts, **options):
    return tokenizer(texts, padding=True, return_tensors="pt", **options)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.integers(4, 12),
    st.integers(0, 2),
    st.integers(0, 2),
    st.booleans(),
    st.data(),
)
def test_every_token_is_read_once_with_context_on_both_sides(sizes, length, prefix, suffix, left, data):
    room = length - prefix - suffix
    if room < 1:
        return
    overlap = data.draw(st.integers(0, room - 1))
    sizes = [max(size, 1) + prefix + suffix for size in sizes]
    columns = max(sizes)
    mask = torch.zeros(len(sizes), columns, dtype=torch.long)
    ids = torch.full_like(mask, -1)
    for row, size in enumerate(sizes):
        place = slice(columns - size, columns) if left else slice(size)
        mask[row, place], ids[row, place] = 1, torch.arange(size)
    cut = windows(mask, length, overlap, prefix, suffix)
    parts, seen = cut.cut(ids), mask.bool()
    assert torch.equal(cut.joined(parts)[seen], ids[seen])
    window = cut.place // length
    for row, size in enumerate(sizes):
        number = int(cut.needed[row].sum())
        assert window[row][seen[row]].max() < number and (number == 1) == (size <= length)
        of_tokens = dict(zip(ids[row][seen[row]].tolist(), window[row][seen[row]].tolist(), strict=True))
        for place in range(number):
            tokens = parts[row, place][cut.attended[row, place]].tolist()
            assert tokens[:prefix] == list(range(prefix)) and len(tokens) <= length
            assert tokens[len(tokens) - suffix :] == list(range(size - suffix, size))
            inner = tokens[prefix : len(tokens) - suffix]
            assert inner == list(range(inner[0], inner[-1] + 1))
            own = [token for token in inner if of_tokens[token] == place]
            if place:
                assert own[0] - inner[0] >= overlap // 2
            if place < number - 1:
                assert inner[-1] - own[-1] >= overlap - overlap // 2


def test_windows_worked_out_by_hand():
    # [CLS] 1 2 3 4 5 6 [SEP] in windows of 5, of which 3 are of the text, with 1 in common: 1 2 3, 3 4 5, 5 6.
    cut = windows(torch.ones(1, 8, dtype=torch.long), 5, 1, 1, 1)
    assert cut.columns[0].tolist() == [[0, 1, 2, 3, 7], [0, 3, 4, 5, 7], [0, 5, 6, 7, 0]]
    assert cut.attended[0].int().tolist() == [[1] * 5, [1] * 5, [1, 1, 1, 1, 0]]
    assert cut.needed.tolist() == [[True] * 3]
    assert cut.place[0].tolist() == [0, 1, 2, 6, 7, 11, 12, 13]


# Our models


def test_a_text_that_fits_is_read_as_ever(tokenizer, model):
    plain = BertForVATClassification(config(tokenizer)).eval()
    plain.load_state_dict(model.state_dict())
    given = batch(tokenizer, [LONG, " ".join(WORDS), "good"])
    found = model(**given)
    for row, text in enumerate([" ".join(WORDS), "good"], 1):
        expected = plain(**batch(tokenizer, [text]))
        torch.testing.assert_close(found.logits[row], expected.logits[0], atol=1e-5, rtol=1e-4)
        length = expected.token_importance.shape[1]
        torch.testing.assert_close(
            found.token_importance[row, :length], expected.token_importance[0], atol=1e-6, rtol=1e-4
        )


def test_one_attention_lies_on_all_windows(tokenizer, model):
    importance = model(**batch(tokenizer, [LONG])).token_importance[0]
    assert importance.sum().item() == pytest.approx(1, abs=1e-6)
    assert (importance > 0).sum() == 56 and importance[0] == importance[-1] == 0


@pytest.mark.parametrize("side", ["left", "right"])
def test_neither_batch_nor_padding_matters(tokenizer, model, side):
    texts = [LONG, "good film", LONG[: len(LONG) // 2]]
    tokenizer.padding_side = side
    together = model(**batch(tokenizer, texts))
    for row, text in enumerate(texts):
        alone = model(**batch(tokenizer, [text]))
        torch.testing.assert_close(together.logits[row], alone.logits[0], atol=1e-5, rtol=1e-4)


def test_a_states_window_is_an_ordinary_text(tokenizer, model):
    """The states of a token are those of its window, read alone."""
    given = batch(tokenizer, [LONG])
    states = model.token_states(given["input_ids"], given["attention_mask"]).states[0]
    cut = windows(given["attention_mask"], 16, 6, 1, 1)
    for place in range(cut.columns.shape[1]):
        ids = cut.cut(given["input_ids"])[0, place][cut.attended[0, place]]
        alone = model.bert(ids[None]).last_hidden_state[0]
        own = cut.place[0] // 16 == place
        torch.testing.assert_close(states[own], alone[cut.place[0][own] % 16], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("phase", ["finetune", "learn", "compress"])
def test_gradients_do_not_depend_on_how_many_windows_go_together(tokenizer, model, monkeypatch, phase):
    given, gradients, largest = batch(tokenizer, [LONG, "bad plot"]), [], []
    model.set_phase(phase)
    run = model.bert.forward
    monkeypatch.setattr(
        model.bert, "forward", lambda **inputs: largest.append(len(inputs["attention_mask"])) or run(**inputs)
    )
    for together in (100, 2):
        monkeypatch.setattr(classifier, "_WINDOWS", together)
        largest.clear()
        model.zero_grad()
        model.train()
        torch.manual_seed(0)
        model(**given, labels=torch.tensor([0, 1])).loss.backward()
        assert max(largest) <= together
        gradients.append({name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None})
    assert gradients[0].keys() == gradients[1].keys() and gradients[0]
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, atol=1e-5, rtol=1e-3)


def test_a_masked_model_reads_windows_too(tokenizer):
    set_seed(0)
    masked = BertForVATClassification(config(tokenizer, mask_type="vmask", window_length=16)).eval()
    given = batch(tokenizer, [LONG, "good"])
    found, alone = masked(**given), masked(**batch(tokenizer, ["good"]))
    assert (found.token_mask[0] > 0).sum() == 56
    torch.testing.assert_close(found.logits[1], alone.logits[0], atol=1e-5, rtol=1e-4)


def test_word_objectives_read_windows_too(tokenizer):
    for objective in ("concat", "tying"):
        own = BertForVATClassification(config(tokenizer, word_objective=objective, window_length=16))
        loss = own(**batch(tokenizer, [LONG]), labels=torch.tensor([1])).loss
        loss.backward()
        assert torch.isfinite(loss)


def test_it_is_saved_and_loaded(tokenizer, model, tmp_path):
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    given = batch(tokenizer, [LONG])
    torch.testing.assert_close(loaded(**given).logits, model(**given).logits)
    assert maximum_length(loaded, tokenizer) == tokenizer.model_max_length


@pytest.mark.parametrize(
    ("settings", "mentions"),
    [
        ({"window_length": 32}, "more than the encoder's 16 positions"),
        ({"window_length": 16, "window_overlap": 14}, "must be below 14"),
        ({"window_overlap": 4}, "give window_length too"),
        ({"window_length": 16, "mask_type": "vmask", "mask_site": "embedding_output"}, "cannot be read in windows"),
    ],
)
def test_settings_that_cannot_be_are_refused(tokenizer, settings, mentions):
    with pytest.raises(StrictDataclassError, match=mentions):
        config(tokenizer, **settings)


@pytest.mark.parametrize("encoder", ["roberta", "gpt2"])
def test_other_encoders_count_positions_in_each_window(encoder):
    from transformers import GPT2Config, RobertaConfig

    set_seed(0)
    small = {
        "roberta": lambda: RobertaConfig(vocab_size=20, max_position_embeddings=18, pad_token_id=1, **SIZES),
        "gpt2": lambda: GPT2Config(vocab_size=20, n_positions=16, n_embd=16, n_layer=1, n_head=2, pad_token_id=1),
    }[encoder]()
    around = (
        {"prefix_tokens": 1, "suffix_tokens": 1} if encoder == "roberta" else {"prefix_tokens": 0, "suffix_tokens": 0}
    )
    own = EncoderForVATClassification(EncoderVATConfig(encoder=small, window_length=16, num_labels=2, **around)).eval()
    ids = torch.arange(3, 53).remainder(17)[None] + 3
    short = ids[:, :9]
    padded = torch.cat([short, torch.ones(1, 41, dtype=torch.long)], 1)
    both = own(
        input_ids=torch.cat([ids, padded]), attention_mask=torch.cat([torch.ones_like(ids), (padded != 1).long()])
    )
    alone = own(input_ids=short, attention_mask=torch.ones_like(short))
    torch.testing.assert_close(both.logits[1], alone.logits[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("method", sorted(ALONE))
def test_every_method_explains_a_document_as_one(tokenizer, method):
    set_seed(0)
    own = BertForVATClassification(config(tokenizer, window_length=16, bottleneck="none", head_layers=1)).eval()
    if method == "mask":
        own = BertForVATClassification(config(tokenizer, window_length=16, mask_type="vmask")).eval()
    few = {"lime": {"n_samples": 20}, "shapley": {"n_samples": 1}, "integrated_gradients": {"n_steps": 64}}
    document = " ".join(WORDS * 3)
    together = explain(own, tokenizer, [document, "good"], method=method, max_length=200, **few.get(method, {}))
    [alone] = explain(own, tokenizer, ["good"], method=method, **few.get(method, {}))
    np.testing.assert_allclose(together[1].scores, alone.scores, atol=1e-5)
    assert together[0].truncated == 0 and len(together[0].scores) == 21
    if method == "integrated_gradients":
        assert abs(together[0].details["convergence_gap"]) < 1e-3


# Other models


def test_what_any_model_says_of_a_document_is_the_mean_over_its_windows(tokenizer):
    set_seed(0)
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 16, "initializer_range": 0.3, **SIZES}
    for kind, count in [(None, 3), ("multi_label_classification", 2), ("regression", 1), (None, 1)]:
        plain = BertForSequenceClassification(BertConfig(num_labels=count, problem_type=kind, **sizes)).eval()
        windowed = in_windows(plain, tokenizer, 200)
        assert isinstance(windowed, WindowedClassifier) and in_windows(plain, tokenizer, 16) is plain
        [encoded] = encode_words(tokenizer, [LONG], 200)
        [found] = predict_outputs(windowed, tokenizer, [encoded.input_ids])
        ids = encoded.input_ids[1:-1]
        parts = [ids[start : start + 14] for start in range(0, 51, 10)]  # 14 of 16, 4 in common
        expected = predict_outputs(plain, tokenizer, [[2, *part, 3] for part in parts]).mean(0)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_its_shapley_values_and_gradients_add_up(tokenizer):
    set_seed(0)
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 16, "initializer_range": 0.2, **SIZES}
    plain = BertForSequenceClassification(BertConfig(num_labels=2, **sizes)).eval()
    document = " ".join(WORDS * 3)
    [shapley] = explain(plain, tokenizer, [document], method="shapley", n_samples=2, max_length=64)
    total = shapley.probabilities[shapley.target] - shapley.details["base_value"]
    assert sum(shapley.scores) == pytest.approx(total, abs=1e-6) and shapley.truncated == 0
    [gradients] = explain(plain, tokenizer, [document], method="integrated_gradients", n_steps=100, max_length=64)
    assert abs(gradients.details["convergence_gap"]) < 1e-4
