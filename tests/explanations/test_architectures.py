"""Every method on the architectures of the Hub: other tokenizers, other layouts, other ways to count positions."""

import numpy as np
import pytest
import torch
from checks import ALONE
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizerFast,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    LongformerConfig,
    LongformerForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
    XLNetConfig,
    XLNetForSequenceClassification,
    pipeline,
    set_seed,
)

from hf_vat import Faithfulness, explain
from hf_vat.inference import predict_outputs
from hf_vat.models.words import encode_words

TEXTS = [
    "A good film, well-made and funny!",
    "bad",
    "the actor's very dull plot didn't work 😀 at all, 这部电影很好看",
    "",
    "naïve café",
]
CORPUS = [*TEXTS, "the plot of the film was good and the actors were very good", "a dull and bad movie"] * 3
WORDPIECES = """
[PAD] [UNK] [CLS] [SEP] [MASK] a good film , well - made and fun ##ny ! bad the actor ' s very dull plot did ##n t work
at all 好 naive cafe
"""
ANY_MODEL = sorted(name for name, method in ALONE.items() if not method.reads)
FEW = {"lime": {"n_samples": 30}, "shapley": {"n_samples": 3}, "integrated_gradients": {"n_steps": 40}}


def byte_level(specials, template):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=specials, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if template:
        ids = [(token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>")]
        tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=ids)
    return tokenizer


def unigram(specials, template):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=specials, unk_token="<unk>")
    tokenizer.train_from_iterator(CORPUS, trainer)
    ids = [(token, tokenizer.token_to_id(token)) for token in specials]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=ids)
    return tokenizer


def roberta():
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], "<s> $A </s>"),
        bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", pad_token="<pad>", unk_token="<unk>",
        mask_token="<mask>", model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    config = RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=130, pad_token_id=1, type_vocab_size=1, initializer_range=0.3,
    )  # fmt: skip
    return RobertaForSequenceClassification(config), tokenizer


def gpt2():
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_level(["<end>", "<pad>"], None), eos_token="<end>", unk_token="<end>", pad_token="<pad>",
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=128,
        pad_token_id=1,
        initializer_range=0.3,
    )
    return GPT2ForSequenceClassification(config), tokenizer


def longformer():
    _, tokenizer = roberta()
    config = LongformerConfig(
        vocab_size=len(tokenizer), attention_window=4, max_position_embeddings=130, pad_token_id=1, type_vocab_size=1,
        sep_token_id=2, initializer_range=0.3, **SMALL,
    )  # fmt: skip
    return LongformerForSequenceClassification(config), tokenizer


def wordpiece():
    return BertTokenizerFast(vocab={word: position for position, word in enumerate(WORDPIECES.split())})


SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def bert():
    tokenizer = wordpiece()
    config = BertConfig(vocab_size=len(tokenizer), initializer_range=0.3, max_position_embeddings=128, **SMALL)
    return BertForSequenceClassification(config), tokenizer


def distilbert():
    tokenizer = wordpiece()
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    config = DistilBertConfig(
        vocab_size=len(tokenizer), dim=16, n_layers=2, n_heads=2, hidden_dim=32, initializer_range=0.3
    )
    return DistilBertForSequenceClassification(config), tokenizer


def deberta():
    specials = ["[PAD]", "[CLS]", "[SEP]", "<unk>", "[MASK]"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=unigram(specials, "[CLS] $A [SEP]"), cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]",
        unk_token="<unk>", mask_token="[MASK]",
    )  # fmt: skip
    config = DebertaV2Config(
        vocab_size=len(tokenizer), max_position_embeddings=128, relative_attention=True, position_buckets=16,
        norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type="p2c|c2p", position_biased_input=False,
        type_vocab_size=0, initializer_range=0.3, **SMALL,
    )  # fmt: skip
    return DebertaV2ForSequenceClassification(config), tokenizer


def xlnet():
    specials = ["<unk>", "<sep>", "<cls>", "<pad>", "<mask>"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=unigram(specials, "$A:0 <sep>:0 <cls>:2"), cls_token="<cls>", sep_token="<sep>",
        pad_token="<pad>", unk_token="<unk>", mask_token="<mask>", padding_side="left", pad_token_type_id=3,
    )  # fmt: skip
    config = XLNetConfig(
        vocab_size=len(tokenizer), d_model=16, n_layer=2, n_head=2, d_inner=32, pad_token_id=3, initializer_range=0.3
    )
    return XLNetForSequenceClassification(config), tokenizer


def llama_like():
    """GPT-2 as decoders often are: padded on the left, absolute positions."""
    model, tokenizer = gpt2()
    tokenizer.padding_side = "left"
    return model, tokenizer


def seeded(make):
    """A model and its tokenizer, the same weights each time."""
    with torch.random.fork_rng():
        set_seed(1)
        model, tokenizer = make()
    return model.eval(), tokenizer


@pytest.fixture(
    scope="module",
    params=[bert, distilbert, roberta, deberta, xlnet, gpt2, llama_like],
    ids=lambda make: make.__name__,
)
def pair(request):
    return seeded(request.param)


def test_probabilities_are_those_of_the_pipeline(pair):
    model, tokenizer = pair
    texts = [text for text in TEXTS if text or model.config.model_type != "gpt2"]  # it has no token for an empty text
    stock = pipeline("text-classification", model=model, tokenizer=tokenizer, top_k=None)
    for explanation, expected in zip(explain(model, tokenizer, texts, "random"), stock(texts), strict=True):
        by_label = {entry["label"]: entry["score"] for entry in expected}
        for name, probability in zip(explanation.label_names, explanation.probabilities, strict=True):
            assert probability == pytest.approx(by_label[name], abs=1e-6)


@pytest.mark.parametrize("method", ANY_MODEL)
def test_every_method(pair, method):
    model, tokenizer = pair
    texts = TEXTS
    explanations = explain(model, tokenizer, texts, method, batch_size=4, **FEW.get(method, {}))
    for explanation in explanations:
        assert len(explanation.scores) == len(explanation.words)
        assert len(explanation.words) < 2 or len(set(explanation.scores)) > 1
        [alone] = explain(model, tokenizer, [explanation.text], method, batch_size=1, **FEW.get(method, {}))
        assert explanation.scores == pytest.approx(alone.scores, abs=2e-5), explanation.text
    [words] = {tuple(e.words) for e in explain(model, tokenizer, texts[:1], method, **FEW.get(method, {}))}
    assert words == ("A", "good", "film", ",", "well-made", "and", "funny", "!")


def test_inputs_embeds_are_read_as_ids_are(pair):
    """Gradients go through inputs_embeds: both ends of the path must be what the model says of these ids."""
    model, tokenizer = pair
    baseline = "mask" if tokenizer.mask_token else "unk"  # DeBERTa's norm has no slope at the padding token's zeros
    stand_in = tokenizer.mask_token_id if tokenizer.mask_token else tokenizer.unk_token_id
    texts = TEXTS[:3]
    for explanation in explain(model, tokenizer, texts, "integrated_gradients", n_steps=300, baseline=baseline):
        start = explanation.details["baseline_probability"]
        assert abs(explanation.details["convergence_gap"]) < 1e-3
        encoded = tokenizer(explanation.text, return_special_tokens_mask=True)
        flags = zip(encoded["input_ids"], encoded["special_tokens_mask"], strict=True)
        [expected] = predict_outputs(model, tokenizer, [[token if flag else stand_in for token, flag in flags]])
        assert start == pytest.approx(expected[explanation.target], abs=1e-5)


pytestmark = pytest.mark.filterwarnings("ignore:The integrated gradients")  # of few steps
GRADIENTS = pytest.mark.parametrize("method", ["gradient", "input_x_gradient", "integrated_gradients"])


def check_the_explained_function(model, tokenizer, text, method):
    """The first call of the model asks for its prediction, the last one, for a gradient or a gap, about the same text."""
    logits = []
    hook = model.register_forward_hook(lambda module, inputs, output: logits.append(output.logits[0].detach()))
    try:
        explain(model, tokenizer, [text], method, **({"n_steps": 2} if method == "integrated_gradients" else {}))
    finally:
        hook.remove()
    assert len(logits) > 1
    torch.testing.assert_close(logits[-1], logits[0], atol=1e-5, rtol=1e-5)


@GRADIENTS
def test_f28_gradient_methods_explain_what_the_model_says_of_typed_special_tokens(pair, method):
    model, tokenizer = pair
    pieces = ["A", "good", "film", ",", "bad", *tokenizer.all_special_tokens]

    @given(st.lists(st.sampled_from(pieces), min_size=1, max_size=6).map(" ".join))
    @example(f"good {tokenizer.pad_token} film")
    @example(f"good film {tokenizer.pad_token}")
    @settings(max_examples=10)
    def check(text):
        check_the_explained_function(model, tokenizer, text, method)

    check()


@pytest.mark.parametrize("method", ["gradient", "input_x_gradient"])
def test_f28_typed_special_tokens_in_a_batch(pair, method):
    """Texts of one length share a batch, whose rows differ in positions and token types."""
    model, tokenizer = pair
    specials = dict.fromkeys([tokenizer.pad_token, tokenizer.unk_token, tokenizer.sep_token, tokenizer.cls_token])
    texts = [f"bad {token} bad" for token in specials if token] + ["bad bad bad", "good film good"]
    for explanation in explain(model, tokenizer, texts, method):
        [alone] = explain(model, tokenizer, [explanation.text], method)
        assert explanation.scores == pytest.approx(alone.scores, abs=2e-5, rel=1e-4), explanation.text


@pytest.mark.parametrize("method", ["gradient", "input_x_gradient"])
def test_f28_rows_of_a_batch_have_their_own_token_types(method):
    """XLNet's real tokenizer gives <cls> a type of its own, also a typed one."""
    model, tokenizer = seeded(xlnet)
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    texts = ["bad <sep> bad", "bad <cls> bad"]
    first, second = tokenizer(texts)["input_ids"]
    assert len(first) == len(second)
    for explanation in explain(model, tokenizer, texts, method):
        [alone] = explain(model, tokenizer, [explanation.text], method)
        assert explanation.scores == pytest.approx(alone.scores, abs=2e-5, rel=1e-4), explanation.text


@GRADIENTS
def test_f28_a_model_that_pads_within_to_its_window(method):
    model, tokenizer = seeded(longformer)
    for text in ("good film", "good <pad> film", "bad film <pad>"):
        check_the_explained_function(model, tokenizer, text, method)


def test_f28_integrated_gradients_begin_where_the_model_is_asked():
    """As reported: of a text with a typed <pad> the scores were those of another function, with a gap of 0."""
    model, tokenizer = seeded(roberta)
    text, pad = "good <pad> film <pad> bad", 1
    [explanation] = explain(model, tokenizer, [text], "integrated_gradients", n_steps=300, baseline="unk")
    [encoded] = encode_words(tokenizer, [text], 128)
    ids, special = torch.tensor([encoded.input_ids]), torch.tensor([encoded.special])
    inside = torch.where(special, ids, tokenizer.unk_token_id)
    attended = ids != pad
    positions = torch.where(attended, attended.cumsum(1) + pad, pad)  # those of the text
    with torch.no_grad():
        start = model(input_ids=inside, position_ids=positions).logits.softmax(-1)[0, explanation.target]
    assert explanation.details["baseline_probability"] == pytest.approx(float(start), abs=1e-4)
    assert abs(explanation.details["convergence_gap"]) < 1e-3


def test_occlusion_is_what_the_model_says_of_the_ids_that_are_left(pair):
    """The model is asked here about the ids without the words' tokens, one by one and without padding."""
    model, tokenizer = pair
    [explanation] = explain(model, tokenizer, [TEXTS[0]], "occlusion")
    ids = tokenizer(TEXTS[0])["input_ids"]
    offsets = tokenizer(TEXTS[0], return_offsets_mapping=True)["offset_mapping"]
    for (start, end), score in zip(explanation.spans, explanation.scores, strict=True):
        left = [token for token, (a, b) in zip(ids, offsets, strict=True) if not (a < end and b > start)]
        [without] = predict_outputs(model, tokenizer, [left])
        assert score == pytest.approx(
            explanation.probabilities[explanation.target] - without[explanation.target], abs=1e-6
        )


@pytest.mark.parametrize("operator", ["delete", "mask", "pad"])
def test_faithfulness(pair, operator):
    model, tokenizer = pair
    texts = TEXTS[:3]
    explanations = explain(model, tokenizer, texts, "occlusion", labels=[0, 1, 0], operator=operator)
    faithfulness = Faithfulness(model, tokenizer, explanations, ks=(1,), shares=(0.5,), operator=operator)
    result = faithfulness.measure(explanations)
    best = [max(explanation.scores) for explanation in explanations]
    np.testing.assert_allclose(result.values["prob_drop@1"], best, atol=1e-6)
