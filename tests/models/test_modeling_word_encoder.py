import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModel

from hf_vat.models.configuration_word_encoder import WordEncoderConfig
from hf_vat.models.modeling_word_encoder import WordEncoderModel
from hf_vat.models.words import maximum_length

KINDS = {
    "embedding": {"encoder_type": "embedding", "hidden_size": 6},
    "affine": {"encoder_type": "affine"},
    "lstm": {"encoder_type": "lstm"},
    "bilstm": {"encoder_type": "lstm", "bidirectional": True},
    "deep_lstm": {"encoder_type": "lstm", "num_layers": 2},
    "deep_bilstm": {"encoder_type": "lstm", "bidirectional": True, "num_layers": 2},
    "cnn": {"encoder_type": "cnn", "kernel_sizes": [3, 4, 5]},
}
# "good", "I feel bad", and a text longer than every kernel; 0 is padding, 1 unknown
TEXTS = [[4], [2, 5, 6], [7, 8, 9, 10, 1, 4, 3, 3, 2]]


@pytest.fixture(scope="module", autouse=True)
def registered():
    AutoConfig.register("word_encoder", WordEncoderConfig, exist_ok=True)
    AutoModel.register(WordEncoderConfig, WordEncoderModel, exist_ok=True)
    WordEncoderConfig.register_for_auto_class()
    WordEncoderModel.register_for_auto_class("AutoModel")


def build(kind: str, **given) -> WordEncoderModel:
    """A tiny encoder in eval mode, the same weights each time; large ones, so that texts differ visibly."""
    sizes = {"vocab_size": 12, "embedding_size": 6, "hidden_size": 12, "dropout": 0.0, "initializer_range": 0.5}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return WordEncoderModel(WordEncoderConfig(**(sizes | KINDS[kind] | given))).eval()


def batch_of(texts, side: str = "right", length: int = 0) -> dict:
    length = max(length, *map(len, texts))
    pads = [[0] * (length - len(text)) for text in texts]
    ids = [text + pad if side == "right" else pad + text for text, pad in zip(texts, pads, strict=True)]
    ones = [[1] * len(text) for text in texts]
    mask = [one + pad if side == "right" else pad + one for one, pad in zip(ones, pads, strict=True)]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


@torch.no_grad()
def set_weights(model: WordEncoderModel, values: dict) -> None:
    state = model.state_dict()
    for name, value in values.items():
        state[name].copy_(torch.as_tensor(value, dtype=torch.float32))


# What each kind computes


def test_embedding_and_affine_by_hand():
    tiny = {"vocab_size": 4, "embedding_size": 2, "hidden_size": 2}
    table = [[0, 0], [1, 2], [3, -1], [0.5, 0]]
    batch = {"input_ids": torch.tensor([[2, 1, 0]]), "attention_mask": torch.tensor([[1, 1, 0]])}
    model = build("embedding", **tiny)
    set_weights(model, {"word_embeddings.weight": table})
    assert model(**batch).last_hidden_state.tolist() == [[[3, -1], [1, 2], [0, 0]]]
    model = build("affine", **tiny)
    set_weights(model, {"word_embeddings.weight": table, "encoder.weight": [[1, 1], [0, 2]]})
    # M e for e = (3, -1) and (1, 2)
    assert model(**batch).last_hidden_state.tolist() == [[[2, -2], [3, 4], [0, 0]]]


def test_cnn_by_hand():
    model = build("cnn", vocab_size=5, embedding_size=1, hidden_size=3, kernel_sizes=[1, 2, 3])
    weights = {
        "word_embeddings.weight": [[0], [1], [2], [4], [-9]],
        "encoder.convolutions.0.weight": [[[-1]]],
        "encoder.convolutions.0.bias": [3],
        "encoder.convolutions.1.weight": [[[1, 10]]],
        "encoder.convolutions.1.bias": [0],
        "encoder.convolutions.2.weight": [[[100, 10, 1]]],
        "encoder.convolutions.2.bias": [0.5],
    }
    set_weights(model, weights)
    # Embeddings 1 2 4, then a position outside the mask whose -9 must not be seen. Width 1: 3 - x, cut at 0;
    # width 2: this word and the next; width 3: the word in the middle.
    output = model(input_ids=torch.tensor([[1, 2, 3, 4]]), attention_mask=torch.tensor([[1, 1, 1, 0]]))
    assert output.last_hidden_state.tolist() == [[[2, 21, 12.5], [1, 42, 124.5], [0, 4, 240.5], [0, 0, 0]]]


@pytest.mark.parametrize("kind", ["lstm", "bilstm", "deep_lstm", "deep_bilstm"])
def test_lstm_is_torch_lstm(kind):
    model = build(kind)
    config = model.config
    width = config.hidden_size // (1 + config.bidirectional)
    stock = torch.nn.LSTM(6, width, config.num_layers, batch_first=True, bidirectional=config.bidirectional)
    with torch.no_grad():
        for name, parameter in stock.named_parameters():
            direction = model.encoder.to_left if name.endswith("_reverse") else model.encoder.to_right
            weight, layer = name.removesuffix("_reverse").rsplit("_l", 1)
            parameter.copy_(getattr(direction[int(layer)], f"{weight}_l0"))
    batched = model(**batch_of(TEXTS)).last_hidden_state
    for row, text in enumerate(TEXTS):
        expected = stock(model.word_embeddings(torch.tensor([text])))[0][0]
        torch.testing.assert_close(batched[row, : len(text)], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_have_the_width_the_configuration_names(kind):
    model = build(kind)
    hidden = model(**batch_of(TEXTS)).last_hidden_state
    assert hidden.shape == (3, 9, model.config.hidden_size)
    assert hidden[:, 0].abs().max() > 0.01


def test_default_widths_are_the_papers():
    widths = {kind: WordEncoderConfig(encoder_type=kind).hidden_size for kind in ("embedding", "affine", "lstm", "cnn")}
    assert widths == {"embedding": 300, "affine": 300, "lstm": 100, "cnn": 300}
    assert WordEncoderConfig(encoder_type="embedding", embedding_size=50).hidden_size == 50
    assert WordEncoderConfig(encoder_type="cnn", kernel_sizes=[2, 3]).hidden_size == 200


def test_in_training_dropout_stands_on_the_embeddings_and_between_layers():
    class Record(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = []

        def forward(self, hidden):
            self.seen.append(hidden.shape[-1])
            return hidden

    for kind, expected in {"embedding": [6], "affine": [6], "cnn": [6], "lstm": [6], "deep_bilstm": [6, 12]}.items():
        model, record = build(kind), Record()
        model.dropout = record
        if hasattr(model.encoder, "dropout"):
            model.encoder.dropout = record
        model(**batch_of(TEXTS))
        assert record.seen == expected
    model = build("embedding", dropout=0.75).train()
    zeros = (model(input_ids=torch.full((40, 40), 3)).last_hidden_state == 0).float().mean()
    assert 0.7 < zeros < 0.8


def test_f66_dropout_of_the_embeddings_may_be_another():
    rates = {(0.2, None): (0.2, 0.2), (0.2, 0.0): (0.0, 0.2), (0.0, 0.5): (0.5, 0.0)}
    for (dropout, embeddings), expected in rates.items():
        model = build("deep_lstm", dropout=dropout, embedding_dropout=embeddings)
        assert (model.dropout.p, model.encoder.dropout.p) == expected
    model = build("cnn", dropout=0.75, embedding_dropout=0.0)
    quiet = model(**batch_of(TEXTS)).last_hidden_state
    assert torch.equal(model.train()(**batch_of(TEXTS)).last_hidden_state, quiet)


# Padding


@pytest.mark.parametrize("kind", KINDS)
@given(
    texts=st.lists(st.lists(st.integers(1, 11), max_size=7), min_size=1, max_size=4),
    side=st.sampled_from(["left", "right"]),
    length=st.integers(1, 12),
)
@settings(max_examples=15)
def test_c04_padding_never_matters(kind, texts, side, length):
    model = build(kind)
    batch = batch_of([*texts, []], side, length)  # the last row has no word
    hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].bool()
    assert (hidden[~mask] == 0).all()
    for row, text in enumerate(texts):
        if text:
            alone = model(input_ids=torch.tensor([text])).last_hidden_state[0]
            torch.testing.assert_close(hidden[row, mask[row]], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_words_masked_out_in_the_middle_are_as_if_deleted(kind):
    model = build(kind)
    ids, mask = torch.tensor([[2, 5, 6, 7, 8]]), torch.tensor([[1, 0, 1, 1, 0]])
    hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
    deleted = model(input_ids=torch.tensor([[2, 6, 7]])).last_hidden_state
    torch.testing.assert_close(hidden[:, [0, 2, 3]], deleted, atol=1e-6, rtol=0)
    assert (hidden[:, [1, 4]] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_padding_leaves_gradients_alone(kind):
    def gradients(texts_by_call):
        model = build(kind)
        for texts, side in texts_by_call:
            model(**batch_of(texts, side)).last_hidden_state.square().sum().backward()
        return {name: parameter.grad for name, parameter in model.named_parameters()}

    alone = gradients([([text], "right") for text in TEXTS])
    for side in ("left", "right"):
        batched = gradients([(TEXTS, side)])
        for name, gradient in alone.items():
            torch.testing.assert_close(batched[name], gradient, atol=1e-4, rtol=1e-4, msg=f"{name}, {side}")


@pytest.mark.parametrize("kind", KINDS)
def test_c06_c07_rows_without_a_word_and_unknown_words(kind):
    model = build(kind)
    batch = batch_of([[], [4, 2], [1, 1]])
    hidden = model(**batch).last_hidden_state
    assert hidden.isfinite().all() and (hidden[0] == 0).all()
    torch.testing.assert_close(hidden[1:2], model(input_ids=torch.tensor([[4, 2]])).last_hidden_state)
    assert (hidden[2].abs().sum(-1) > 0).all()
    hidden.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    nothing = model(**batch_of([[], []], length=3)).last_hidden_state
    assert (nothing == 0).all()
    # tokenizer([""], return_tensors="pt") has no position, and floats
    assert model(input_ids=torch.zeros(2, 0)).last_hidden_state.shape == (2, 0, model.config.hidden_size)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", KINDS)
def test_c06_half_precision(kind, dtype):
    exact = build(kind)(**batch_of(TEXTS)).last_hidden_state
    hidden = build(kind).to(dtype)(**batch_of([*TEXTS, []])).last_hidden_state
    assert hidden.dtype == dtype and (hidden[3] == 0).all()
    torch.testing.assert_close(hidden[:3].float(), exact, atol=0.05, rtol=0.05)


def test_c08_texts_shorter_than_the_widest_kernel():
    model = build("cnn")
    batched = model(**batch_of(TEXTS)).last_hidden_state
    for row, text in enumerate(TEXTS):
        alone = model(input_ids=torch.tensor([text])).last_hidden_state[0]
        torch.testing.assert_close(batched[row, : len(text)], alone, atol=1e-5, rtol=0)


# An ordinary encoder of transformers


@pytest.mark.parametrize("kind", KINDS)
def test_embeddings_stand_for_ids(kind):
    model = build(kind)
    batch = batch_of(TEXTS, "left")
    embeddings = model.get_input_embeddings()(batch["input_ids"])
    by_ids = model(**batch).last_hidden_state
    by_embeddings = model(inputs_embeds=embeddings, attention_mask=batch["attention_mask"]).last_hidden_state
    assert torch.equal(by_ids, by_embeddings)


def test_outputs_on_request():
    model, batch = build("lstm"), batch_of(TEXTS)
    hidden = model(**batch).last_hidden_state
    assert torch.equal(model(**batch, return_dict=False)[0], hidden)
    assert torch.equal(model(**batch, token_type_ids=torch.zeros(3, 9)).last_hidden_state, hidden)
    embeddings, last = model(**batch, output_hidden_states=True).hidden_states
    assert torch.equal(embeddings, model.word_embeddings(batch["input_ids"])) and torch.equal(last, hidden)
    with pytest.raises(ValueError, match="output_attentions"):
        model(**batch, output_attentions=True)
    with pytest.raises(ValueError, match="not both"):
        model(**batch, inputs_embeds=embeddings)
    with pytest.raises(ValueError, match="not both"):
        model(attention_mask=batch["attention_mask"])
    with pytest.raises(ValueError, match=r"\(3, 1, 9, 9\)"):
        model(input_ids=batch["input_ids"], attention_mask=torch.ones(3, 1, 9, 9))


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_moves_every_parameter(kind):
    model = build(kind).train()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model(**batch_of(TEXTS)).last_hidden_state.square().sum().backward()
    optimizer.step()
    for name, parameter in model.named_parameters():
        assert not torch.equal(parameter, before[name]), name
    assert (model.word_embeddings.weight[0] == 0).all()


def test_frozen_embeddings_are_no_parameter_and_travel(tmp_path):
    model = build("lstm", freeze_embeddings=True)
    assert 0.4 < model.word_embeddings.weight.abs().max() <= 0.5 and (model.word_embeddings.weight[0] == 0).all()
    model.word_embeddings.weight += 1
    model.save_pretrained(tmp_path)
    loaded, info = WordEncoderModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert torch.equal(loaded.word_embeddings.weight, model.word_embeddings.weight)
    for frozen in (model, loaded):
        frozen.requires_grad_(True)
        frozen.resize_token_embeddings(15)
        before = frozen.word_embeddings.weight.clone()
        optimizer = torch.optim.Adam(frozen.parameters(), lr=0.1)
        frozen(**batch_of(TEXTS)).last_hidden_state.sum().backward()
        optimizer.step()
        assert {name.split(".")[0] for name, _ in frozen.named_parameters()} == {"encoder"}
        assert torch.equal(frozen.word_embeddings.weight, before)
    opened, info = WordEncoderModel.from_pretrained(tmp_path, freeze_embeddings=False, output_loading_info=True)
    assert not info["missing_keys"] and "word_embeddings.weight" in dict(opened.named_parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_all_weights_start_uniform_and_padding_at_zero(kind):
    model = build(kind, vocab_size=200, embedding_size=48, hidden_size=48, initializer_range=0.1)
    for name, parameter in model.named_parameters():
        values = parameter[1:] if name == "word_embeddings.weight" else parameter
        assert 0.08 < values.abs().max() <= 0.1, name
        # mean and standard deviation of U(-0.1, 0.1) are 0 and 0.1 / √3 = 0.0577
        error = 6 * 0.0577 / values.numel() ** 0.5
        assert abs(values.mean()) < error and abs(values.std() - 0.0577) < error, name
    assert (model.word_embeddings.weight[0] == 0).all()
    assert (build(kind, pad_token_id=None).word_embeddings.weight.abs().sum(1) > 0).all()


def test_vocabulary_can_grow_and_be_replaced():
    model = build("lstm")
    before = model(**batch_of(TEXTS)).last_hidden_state
    model.resize_token_embeddings(20)
    assert model.config.vocab_size == 20 and model.word_embeddings.padding_idx == 0
    assert torch.equal(model(**batch_of(TEXTS)).last_hidden_state, before)
    assert model(input_ids=torch.tensor([[19]])).last_hidden_state.isfinite().all()
    other = torch.nn.Embedding(7, 6)
    model.set_input_embeddings(other)
    assert model.get_input_embeddings() is other


@pytest.mark.parametrize("kind", ["embedding", "deep_bilstm", "cnn"])
def test_gradient_checkpointing_and_attention_kernels_are_accepted(kind, tmp_path):
    model = build(kind).train()
    model.save_pretrained(tmp_path)
    expected = model(**batch_of(TEXTS)).last_hidden_state
    expected.sum().backward()
    for kernel in ("eager", "sdpa"):
        other = AutoModel.from_pretrained(tmp_path, attn_implementation=kernel).train()
        other.activation_checkpointing_enable()
        hidden = other(**batch_of(TEXTS)).last_hidden_state
        hidden.sum().backward()
        assert torch.equal(hidden, expected)
        assert torch.equal(other.word_embeddings.weight.grad, model.word_embeddings.weight.grad)


def test_no_text_is_too_long(stub_tokenizer):
    assert maximum_length(build("lstm"), stub_tokenizer) == stub_tokenizer.model_max_length


@pytest.mark.parametrize(
    ("given", "mentions"),
    [
        ({"encoder_type": "gru"}, "gru"),
        ({"encoder_type": "embedding", "hidden_size": 100}, "embedding_size=300"),
        ({"bidirectional": True, "hidden_size": 75}, "even"),
        ({"encoder_type": "cnn", "hidden_size": 100}, "multiple of 3"),
        ({"encoder_type": "cnn", "kernel_sizes": []}, "kernel_sizes"),
        ({"encoder_type": "cnn", "kernel_sizes": [0, 3]}, "kernel_sizes"),
        ({"num_layers": 0}, "num_layers"),
        ({"dropout": 1.0}, "dropout"),
        ({"embedding_dropout": 1.0}, "embedding_dropout=1.0"),
        ({"embedding_dropout": float("nan")}, "embedding_dropout=nan"),
        ({"initializer_range": 0}, "initializer_range"),
        ({"pad_token_id": 10_000}, "pad_token_id"),
        ({"vocab_size": 0}, "vocab_size"),
    ],
)
def test_configuration_refuses_what_does_not_fit(given, mentions):
    with pytest.raises(Exception, match=mentions):
        WordEncoderConfig(**given)


# Saving


@torch.no_grad()
def fill(model: WordEncoderModel) -> None:
    """A constant of its own in every parameter, none of which an initialisation would give."""
    for number, parameter in enumerate(model.parameters(), start=1):
        parameter.fill_(1 + number / 64)


@pytest.mark.parametrize("kind", KINDS)
def test_c01_c03_saved_weights_come_back_bitwise(kind, tmp_path):
    model = build(kind)
    fill(model)
    model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_size < 4 * model.num_parameters() + 4000  # nothing twice
    assert not list(tmp_path.glob("*.bin"))
    loaded, info = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert type(loaded) is WordEncoderModel and loaded.config.to_diff_dict() == model.config.to_diff_dict()
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert {*loaded.state_dict()} == {*model.state_dict()}
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name]), name
    expected = model(**batch_of(TEXTS)).last_hidden_state
    assert torch.equal(loaded(**batch_of(TEXTS)).last_hidden_state, expected)


@pytest.mark.parametrize("kind", ["deep_bilstm", "cnn"])
def test_weights_that_a_checkpoint_lacks_are_initialised(kind, tmp_path):
    model = build(kind)
    fill(model)  # the row of the padding token too
    names = [name for name in model.state_dict() if name.startswith("encoder.")]
    kept = {name: tensor for name, tensor in model.state_dict().items() if name not in names}
    model.save_pretrained(tmp_path, state_dict=kept)
    loaded, info = WordEncoderModel.from_pretrained(tmp_path, output_loading_info=True)
    assert {*info["missing_keys"]} == {*names}
    for name in names:
        assert loaded.get_parameter(name).abs().max() <= 0.5, f"{name} is raw memory"
    assert torch.equal(loaded.word_embeddings.weight, model.word_embeddings.weight)


def test_c01_initialising_spares_weights_marked_as_loaded():
    for model in (build("deep_bilstm"), build("cnn"), build("embedding", freeze_embeddings=True)):
        for tensor in model.state_dict(keep_vars=True).values():
            tensor.data.fill_(7)
            tensor._is_hf_initialized = True
        for module in model.modules():
            model._init_weights(module)
        assert all((tensor == 7).all() for tensor in model.state_dict().values())
