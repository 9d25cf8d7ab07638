"""Word-level objectives (Tutek & Šnajder, RepL4NLP 2020): what is pooled, and the terms of the loss."""

import math

import hypothesis
import pytest
import torch
from hypothesis import strategies as st
from transformers import set_seed

from hf_vat import (
    BertForVATClassification,
    BertVATConfig,
    EncoderForVATClassification,
    EncoderVATConfig,
    EncoderVMaskConfig,
    EncoderWithVMask,
    WordEncoderConfig,
)
from hf_vat.models.word_objective import conicity, distance_to_words

OBJECTIVES = ("none", "concat", "residual", "tying", "mlm", "conicity")
BERT = {
    "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 30,
    "max_position_embeddings": 16, "initializer_range": 0.3,
}  # fmt: skip
MASK = 4


def make(kind: str, objective: str, **settings):
    settings |= {"mask_token_id": MASK} if objective == "mlm" else {}
    with torch.random.fork_rng():
        set_seed(0)
        if kind == "bert":
            dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
            config = BertVATConfig(**BERT, **dropout, bottleneck="none", word_objective=objective, **settings)
            return BertForVATClassification(config)
        size = {"wide": 12, "lstm": 8}[kind]
        encoder = WordEncoderConfig(
            vocab_size=30, embedding_size=8, hidden_size=size, bidirectional=True, dropout=0.0, initializer_range=0.5
        )
        config = EncoderVATConfig(
            encoder=encoder, bottleneck="none", word_objective=objective, classifier_dropout=0.0, **settings
        )
        return EncoderForVATClassification(config)


@pytest.fixture
def batch():
    ids = torch.randint(5, 30, (4, 7), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    return {"input_ids": ids * mask, "attention_mask": mask, "labels": torch.tensor([0, 1, 1, -100])}


def test_terms_by_hand():
    states = torch.tensor([[[3.0, 4.0], [1.0, 0.0], [9.0, 9.0]]], requires_grad=True)
    words = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]])
    content = torch.tensor([[True, True, False]])
    distances = distance_to_words(states, words)
    assert distances[0, :2].tolist() == [5.0, 0.0]
    distances.sum().backward()
    assert states.grad[0, 0].tolist() == pytest.approx([0.6, 0.8]) and states.grad[0, 1].tolist() == [0, 0]
    # The mean of (3, 4) and (1, 0) is (2, 2): cosines 14 / (5 √8) and 2 / √8.
    expected = (14 / (5 * math.sqrt(8)) + 2 / math.sqrt(8)) / 2
    assert conicity(states, content).item() == pytest.approx(expected)
    assert conicity(torch.ones(1, 3, 2), content).item() == pytest.approx(1)
    assert conicity(torch.ones(1, 3, 2), torch.zeros(1, 3, dtype=torch.bool)).item() == 0


@pytest.mark.parametrize("kind", ["bert", "lstm"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_is_pooled_and_what_is_in_the_loss(kind, objective, batch):
    model = make(kind, objective, **({"word_weight": 0.25} if objective in ("tying", "conicity", "mlm") else {})).eval()
    out = model(**batch, output_hidden_states=True)
    plain = make(kind, "none").eval()(**batch, output_hidden_states=True)
    words, states = out.hidden_states[0], out.hidden_states[-1]
    torch.testing.assert_close(states, plain.hidden_states[-1])  # the encoder is the same
    pooled = {"concat": torch.cat([states, words], -1), "residual": states + words}.get(objective, states)
    weights = out.token_importance.unsqueeze(-1)
    torch.testing.assert_close(out.pooler_output, (weights * pooled).sum(1))
    content = out.token_importance > 0
    means = {
        "tying": lambda row: (states - words)[row][content[row]].norm(dim=-1).mean(),
        "conicity": lambda row: torch.cosine_similarity(
            states[row][content[row]], states[row][content[row]].mean(0), dim=-1
        ).mean(),
    }
    if objective in means:
        expected = torch.stack([means[objective](row) for row in range(3)])
        torch.testing.assert_close(out.word_term, torch.cat([expected, torch.zeros(1)]))
        torch.testing.assert_close(out.loss, out.cross_entropy.sum() / 3 + 0.25 * expected.mean())
    else:
        assert out.word_term is None
    assert model(**{**batch, "labels": None}).word_term is None
    with torch.no_grad():
        again = model(**batch)
    assert torch.equal(again.logits, out.logits) and again.hidden_states is None


@pytest.mark.parametrize("kind", ["bert", "lstm", "wide"])
def test_mlm_predicts_the_words_that_it_hides(kind, batch):
    model = make(kind, "mlm", mlm_probability=0.3).train()
    seen, heads = [], []

    def watch(module, args, kwargs, output):
        seen.append(kwargs["input_ids"])
        heads.append(output.last_hidden_state)

    model.base_model.register_forward_hook(watch, with_kwargs=True)
    set_seed(0)
    out = model(**batch)
    first, second = seen
    assert torch.equal(first, batch["input_ids"]), "what is classified is not masked"
    hidden = first != second
    content = model.content_tokens(batch["attention_mask"])
    assert second[hidden].eq(MASK).all() and not (hidden & ~content).any() and hidden.any(1).all()
    embeddings = model.get_input_embeddings().weight
    states = heads[1] if kind != "wide" else heads[1] @ model.word_objective.decoder.weight.T
    losses = torch.nn.functional.cross_entropy(
        (states @ embeddings.T).flatten(0, 1), first.flatten(), reduction="none"
    ).view_as(first)
    expected = torch.stack([losses[row][hidden[row]].mean() for row in range(3)])
    torch.testing.assert_close(out.word_term, torch.cat([expected, torch.zeros(1)]))
    torch.testing.assert_close(out.loss, out.cross_entropy.sum() / 3 + expected.mean())
    out.loss.backward()
    assert embeddings.grad is not None and embeddings.grad.abs().sum() > 0
    assert model.eval()(**batch).word_term is None  # evaluation never samples


@hypothesis.settings(max_examples=25)
@hypothesis.given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=5), share=st.sampled_from([0.0, 0.15, 1.0]))
def test_mlm_hides_of_each_text_the_share_and_at_least_one(lengths, share):
    objective = make("lstm", "mlm", mlm_probability=share).word_objective
    content = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    hidden = objective._draw(content)
    assert not (hidden & ~content).any()
    for length, number in zip(lengths, hidden.sum(1).tolist(), strict=True):
        assert (number == length) if share == 1 else (min(length, 1) <= number <= length)
        assert share > 0 or number == min(length, 1)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_padding_changes_nothing(objective, batch):
    model = make("lstm", objective).eval()
    padded = {
        "input_ids": torch.nn.functional.pad(batch["input_ids"], (2, 3)),
        "attention_mask": torch.nn.functional.pad(batch["attention_mask"], (2, 3)),
        "labels": batch["labels"],
    }
    one, other = model(**batch), model(**padded)
    torch.testing.assert_close(one.logits, other.logits)
    torch.testing.assert_close(one.loss, other.loss)


@pytest.mark.parametrize("objective", OBJECTIVES[1:])
def test_a_saved_model_is_the_same(objective, batch, tmp_path):
    for kind, model_class in (("bert", BertForVATClassification), ("lstm", EncoderForVATClassification)):
        model = make(kind, objective).eval()
        model.save_pretrained(tmp_path / kind)
        again = model_class.from_pretrained(tmp_path / kind).eval()
        assert torch.equal(model(**batch).logits, again(**batch).logits)
        assert again.config.word_objective == objective


@pytest.mark.parametrize("objective", ["tying", "mlm", "conicity"])
def test_the_term_is_in_the_phases_that_train_the_encoder(objective, batch):
    hides = {"mask_token_id": MASK} if objective == "mlm" else {}
    model = BertForVATClassification(BertVATConfig(**BERT, word_objective=objective, **hides)).train()
    for phase, there in {"joint": True, "finetune": True, "compress": False, "learn": True}.items():
        model.set_phase(phase)
        assert (model(**batch).word_term is not None) == there, phase


def test_a_word_mask_and_a_word_objective_together(batch):
    encoder = WordEncoderConfig(vocab_size=30, embedding_size=8, hidden_size=8)
    settings = {"pooling": "attention", "word_objective": "mlm", "mask_token_id": MASK}
    model = EncoderWithVMask(EncoderVMaskConfig(encoder=encoder, **settings)).train()
    out = model(**batch)
    expected = out.cross_entropy.sum() / 3 + out.mask_compression.sum() / 3 + out.word_term.sum() / 3
    torch.testing.assert_close(out.loss, expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"word_objective": "tying"}, "hidden_size=6 must equal its embedding_size=4"),
        ({"word_objective": "residual"}, "hidden_size=6 must equal its embedding_size=4"),
        ({"word_objective": "mlm"}, "give mask_token_id=tokenizer.mask_token_id"),
        (
            {"word_objective": "mlm", "mask_token_id": 4, "mlm_probability": 1.5},
            "mlm_probability=1.5 must be at least 0 and at most 1",
        ),
        ({"word_weight": 2.0}, "word_weight=2.0 is for word_objective='tying'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(Exception, match=message):
        EncoderVATConfig(encoder=WordEncoderConfig(vocab_size=9, embedding_size=4, hidden_size=6), **settings)


def test_embeddings_in_place_of_ids_cannot_be_predicted(batch):
    model = make("lstm", "mlm").train()
    words = model.get_input_embeddings()(batch.pop("input_ids"))
    with pytest.raises(ValueError, match="give input_ids, not inputs_embeds"):
        model(**batch, inputs_embeds=words)
