"""What holds for every class, encoder, pooling, bottleneck and word mask."""

import copy
import os

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification, pipeline

from hf_vat import BertVATConfig, BertVMaskConfig, EncoderVATConfig, EncoderVMaskConfig, explain
from hf_vat.inference import model_inputs
from hf_vat.models.words import encode_words

TASK = "text-classification-explained"
LABELS = torch.tensor([1, 0, 0])
MASKS = ["vmask", "l2x", "iba"]
WORD_ENCODERS = ("lstm", "cnn")
VAT, BASE = {"pooling": "attention", "bottleneck": "gaussian"}, {"bottleneck": "none"}


def case(name: str, mask: str | None = None, **settings):
    """A tiny model: name, mask and settings."""
    return pytest.param(name, mask, settings, id="-".join(map(str, [name, mask or "plain", *settings.values()])))


SYSTEMS = [
    case("bert", **settings)
    for settings in (
        {"pooling": "first"} | BASE,
        {"pooling": "max"} | BASE,
        {"pooling": "mean"} | BASE,
        BASE,
        {},
        {"heads": "shared"},
        {"heads": "shared_mean"},
        {"prior": "learned", "kl_reduction": "mean"},
    )
]
NAMES = [
    *("bert_encoder", "distilbert", "roberta", "xlm_roberta", "deberta_v2", "deberta_v2_conv", "electra", "modernbert"),
    *("xlnet", "gpt2", "lstm", "cnn"),
]
PLAIN = [case(name) for name in NAMES]
MASKED_NAMES = ["bert", "roberta", "lstm", "cnn"]
MASKED = [case(name, mask) for name in MASKED_NAMES for mask in MASKS]
VMASK = [case(name, "vmask") for name in MASKED_NAMES]
POOLED = [case(name, pooling=pooling, **BASE) for name in NAMES for pooling in ("max", "mean")]
FIRST = [case(name, pooling="first", **BASE) for name in NAMES if name not in ("xlnet", "gpt2", *WORD_ENCODERS)]


def each(*cases):
    return pytest.mark.parametrize(("name", "mask", "settings"), [one for several in cases for one in several])


def parts_of(out) -> dict:
    """What the model says of each token."""
    parts = {part: getattr(out, part) for part in ("token_importance", "token_mask")}
    return {part: tensor for part, tensor in parts.items() if tensor is not None}


def close(found, expected, atol=1e-5) -> None:
    torch.testing.assert_close(found, expected, atol=atol, rtol=0)


# Words and padding


@each(SYSTEMS[3:], PLAIN, MASKED)
def test_c04_what_it_says_of_tokens_lies_on_the_words_alone(tiny, name, mask, settings):
    model, batch = tiny.model(name, mask, **settings).eval(), tiny.batch(name, return_special_tokens_mask=True)
    special = batch.pop("special_tokens_mask").bool()  # padding counts as special
    assert (~special).sum(1).tolist() == [2, 8, 3] and torch.equal(~special, tiny.content(name, **batch))
    out = model(**batch)
    assert parts_of(out).keys() == {"token_importance" if mask is None else "token_mask"}
    # A mask that is given replaces the counts: here it bars the first word, and no special token.
    barred = torch.zeros_like(special)
    barred[:, tiny.layout(name)[0]] = True
    with_barred = model(**batch, special_tokens_mask=barred)
    for one, where in ((out, ~special), (with_barred, batch["attention_mask"].bool() & ~barred)):
        for part, tensor in parts_of(one).items():
            assert (tensor[~where] == 0).all() and (tensor[where] > 0).all()
            if part == "token_importance":
                close(tensor.sum(1), torch.ones(3))
            else:
                assert tensor.dtype == torch.float32 and tensor.max() <= 1


@each(SYSTEMS, PLAIN, POOLED, FIRST, [case(name, predict_from="compressor") for name in NAMES], MASKED)
def test_c04_c19_padding_never_matters(tiny, name, mask, settings):
    model = tiny.model(name, mask, **settings).eval()
    batch, left_batch = tiny.batch(name), tiny.batch(name, padding_side="left")
    together, left = model(**batch, labels=LABELS), model(**left_batch)
    padded = model(**tiny.batch(name, padding="max_length", max_length=30))
    close(padded.logits, together.logits)
    close(left.logits, together.logits)
    assert together.logits.std(0).min() > 1e-4, "the texts cannot be told apart"
    for part, tensor in parts_of(together).items():
        words = left_batch["attention_mask"].bool()
        assert (left[part][~words] == 0).all()
        close(left[part][words], tensor[batch["attention_mask"].bool()])
    for row, text in enumerate(tiny.texts):
        alone = model(**tiny.batch(name, [text]), labels=LABELS[row : row + 1])
        close(alone.logits[0], together.logits[row])
        if alone.mask_compression is not None:
            torch.testing.assert_close(alone.mask_compression[0], together.mask_compression[row], atol=1e-5, rtol=1e-5)


@each(PLAIN, MASKED)
def test_embeddings_stand_for_ids_and_are_masked_too(tiny, name, mask, settings):
    model, batch = tiny.model(name, mask, **settings).eval(), tiny.batch(name, tiny.texts[1:2])
    expected = model(**batch)
    out = model(inputs_embeds=model.get_input_embeddings()(batch.pop("input_ids")), **batch)
    close(out.logits, expected.logits, atol=1e-6)
    assert parts_of(out).keys() == parts_of(expected).keys()
    for part, tensor in parts_of(out).items():
        close(tensor, expected[part], atol=1e-6)


@each(SYSTEMS, PLAIN, POOLED, MASKED)
def test_c06_empty_rows_are_finite_and_leave_others_alone(tiny, name, mask, settings):
    model, batch = tiny.model(name, mask, **settings).eval(), tiny.batch(name)
    before = model(**batch)
    batch["attention_mask"] = batch["attention_mask"].clone()
    batch["attention_mask"][1] = 0
    out = model(**batch, labels=LABELS)
    assert torch.isfinite(out.logits).all() and torch.isfinite(out.loss)
    close(out.logits[[0, 2]], before.logits[[0, 2]])
    assert all(torch.isfinite(tensor).all() and (tensor[1] == 0).all() for tensor in parts_of(out).values())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@each(SYSTEMS, PLAIN, MASKED)
def test_c06_half_precision_is_finite(tiny, name, mask, settings, dtype):
    model = tiny.model(name, mask, **settings).to(dtype)
    for mode in (False, True):
        out = model.train(mode)(**tiny.batch(name, [*tiny.texts, ""]), labels=torch.tensor([1, 0, 0, 1]))
        assert out.logits.dtype == dtype and torch.isfinite(out.logits).all() and torch.isfinite(out.loss)
        if out.token_importance is not None:
            close(out.token_importance.sum(1), torch.tensor([1.0, 1.0, 1.0, 0.0]), atol=1e-2)
        assert out.token_mask is None or out.token_mask.dtype == torch.float32
    out.loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@each(
    [case("bert", predict_from="compressor", hidden_dropout_prob=0.5)],
    [case(name, predict_from="compressor") for name in NAMES],
    MASKED,
)
def test_c16_evaluation_never_samples(tiny, name, mask, settings):
    model, batch = tiny.model(name, mask, **settings).eval(), tiny.batch(name)
    assert torch.equal(model(**batch).logits, model(**batch).logits)
    model.train()
    assert torch.equal(model(**batch).logits, model(**batch).logits) == (mask == "l2x")


# Loss and phases


@each(
    [case("bert", **one.values[2], **({} if "none" in one.values[2].values() else {"beta": 0.25})) for one in SYSTEMS],
    MASKED,
    [case(*one.values[:2], beta=0.25, **VAT) for one in MASKED],
)
def test_loss_is_the_weighted_sum_of_its_parts(tiny, name, mask, settings):
    model = tiny.model(name, mask, **settings)
    for labels in (LABELS, torch.tensor([1, -100, 0])):
        labelled = labels != -100
        for mode in (True, False):
            out = model.train(mode)(**tiny.batch(name), labels=labels)
            expected = out.cross_entropy.sum() / labelled.sum()
            # In evaluation it is the learner's loss.
            assert (out.compression is not None) == (model.config.bottleneck == "gaussian" and mode)
            assert (out.mask_compression is not None) == (mask in ("vmask", "iba"))
            for term, beta in ((out.compression, 0.25), (out.mask_compression, 0.5)):
                if term is not None:
                    assert term.shape == (3,) and (term[labelled] >= 0).all() and not term[~labelled].any()
                    expected = expected + beta * term.sum() / labelled.sum()
            if out.mask_compression is not None:
                assert (out.mask_compression[labelled] > 0).all()
            torch.testing.assert_close(out.loss, expected)
    assert model(**tiny.batch(name)).mask_compression is None


@each([case("bert")], [case("lstm", mask) for mask in MASKS])
def test_c11_a_batch_without_labels_contributes_zero(tiny, name, mask, settings):
    model = tiny.model(name, mask).train()
    out = model(**tiny.batch(name), labels=torch.full((3,), -100))
    assert out.loss.item() == 0
    out.loss.backward()
    assert all(not p.grad.any() for p in model.parameters() if p.grad is not None)


@each([case("bert")], [case("lstm", mask) for mask in MASKS])
def test_c18_loss_parts_are_in_the_output_not_on_the_module(tiny, name, mask, settings):
    model = tiny.model(name, mask).train()
    attributes = set(vars(model)) | set(vars(model.word_mask) if mask else ())
    out = model(**tiny.batch(name), labels=LABELS)
    assert out.cross_entropy.shape == (3,)
    assert (None if out.compression is None else out.compression.shape) == (None if mask else (3,))
    assert mask is None or (out.token_mask.shape == (3, 8) and (mask == "l2x" or out.mask_compression.shape == (3,)))
    assert set(vars(model)) | set(vars(model.word_mask) if mask else ()) == attributes
    assert copy.deepcopy(model).phase == model.phase


@each(PLAIN, MASKED)
def test_c20_a_step_moves_the_phase_and_nothing_else(tiny, name, mask, settings):
    encoder = {"bert" if name == "bert" else "encoder", *(() if mask is None else ["word_mask"])}
    for phase, groups in [
        ("compress", {"attention", "bottleneck", "compressor_head"}),
        ("learn", {*encoder, "learner_head"}),
        ("finetune", {*encoder, "attention", "learner_head"}),
        ("joint", {*encoder, "attention", "bottleneck", "learner_head", "compressor_head"}),
    ]:
        model = tiny.model(name, mask, **VAT).train()
        seen = []
        model.base_model.register_forward_hook(lambda module, args, out, seen=seen: seen.append(out.last_hidden_state))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        model.set_phase(phase)
        assert model.training and model.base_model.training == (phase != "compress")
        before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
        out = model(**tiny.batch(name), labels=LABELS)
        assert seen[0].requires_grad == (phase != "compress")
        if mask is not None:
            assert model.word_mask.training == out.token_mask.requires_grad == (phase != "compress")
        assert (out.mask_compression is not None) == (mask in ("vmask", "iba") and phase != "compress")
        out.loss.backward()
        optimizer.step()
        moved = {key for key, tensor in model.state_dict().items() if not torch.equal(before[key], tensor)}
        assert {key.partition(".")[0] for key in moved} == groups, phase
        assert moved >= {key for key in before if key.partition(".")[0] in groups - encoder}
        assert mask is None or not any("embeddings" in key for key in moved)
    with pytest.raises(ValueError, match="'learn' needs a model with bottleneck"):
        tiny.model(name, mask, bottleneck="none").set_phase("learn")


@each(PLAIN, MASKED)
def test_gradient_checkpointing_changes_no_gradient(tiny, name, mask, settings):
    gradients = []
    for checkpointing in (False, True):
        model = tiny.model(name, mask).train()
        model.set_phase("finetune")
        if checkpointing and name == "xlnet":  # transformers has none for it
            with pytest.raises(ValueError, match="does not support activation checkpointing"):
                model.gradient_checkpointing_enable()
            return
        if checkpointing:
            model.gradient_checkpointing_enable()
            assert model.is_gradient_checkpointing
        torch.manual_seed(0)
        model(**tiny.batch(name), labels=LABELS).loss.backward()
        gradients.append({key: p.grad for key, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys() >= ({"word_mask.scorer.weight"} if mask else set())
    tolerance = {"atol": 1e-6, "rtol": 1e-4} if mask else {"atol": 1e-7, "rtol": 1e-5}
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][key], gradient, **tolerance, msg=key)


# Settings


def test_c10_wrong_problem_types_are_refused(tiny):
    for config in (BertVATConfig, EncoderVATConfig, BertVMaskConfig, EncoderVMaskConfig):
        for settings in (
            {"num_labels": 1},
            {"num_labels": 1, "problem_type": "single_label_classification"},
            {"problem_type": "ordinal"},
        ):
            with pytest.raises(Exception, match="problem_type"):
                config(**settings)
    for name, mask in (("bert", None), ("cnn", "vmask")):
        with pytest.raises(ValueError, match="float"):
            tiny.model(name, mask, bottleneck="none")(**tiny.batch(name), labels=torch.tensor([1.0, 0.0, 1.0]))


OF_BERT = [
    ({"pooling": "first"}, "pooling"),
    ({"pooling": "nearest"}, "nearest"),
    ({"bottleneck": "none", "predict_from": "compressor"}, "predict_from"),
    ({"beta": -0.1}, "beta"),
    ({"beta": "x"}, "beta"),
    ({"beta": float("nan")}, "beta=nan"),
    ({"heads": "shared", "latent_size": 5}, "latent_size"),
    ({"latent_size": 0}, "latent_size"),
    ({"kl_reduction": "max"}, "kl_reduction"),
]
OF_MASKS = [
    ({"mask_type": "lime"}, "lime"),
    ({"mask_layers": 3}, "mask_layers"),
    ({"mask_layers": 2, "mask_hidden_size": 0}, "mask_hidden_size=0"),
    ({"mask_sample": "hard"}, "mask_sample"),
    ({"mask_temperature": 0.05}, "mask_temperature=0.05"),
    ({"mask_temperature": float("nan")}, "mask_temperature=nan"),
    ({"mask_beta": -0.1}, "mask_beta=-0.1"),
    ({"mask_reduction": "mean"}, "mask_reduction"),
    ({"mask_type": "l2x", "mask_normalization": "concrete_topk", "mask_k": 0}, "mask_k=0"),
    ({"head_layers": 3}, "head_layers"),
    ({"mask_site": "sentence"}, "mask_site"),
    ({"bottleneck": "gaussian"}, "pooling"),
]


@pytest.mark.parametrize(
    ("config", "settings", "mentions"),
    [(BertVATConfig, *one) for one in OF_BERT]
    + [(config, *one) for one in OF_MASKS for config in (BertVMaskConfig, EncoderVMaskConfig)]
    + [
        (EncoderVMaskConfig, {"mask_site": "embedding_output"}, 'mask_site="embedding_output" is for BERT'),
        (EncoderVATConfig, {"prefix_tokens": -1}, "prefix_tokens=-1"),
        (EncoderVATConfig, {"suffix_tokens": -1}, "suffix_tokens=-1"),
        (EncoderVATConfig, {"pooling": "first", "prefix_tokens": 0, "bottleneck": "none"}, "prefix_tokens=0"),
        (EncoderVATConfig, {"heads": "shared", "latent_size": 5}, "hidden_size=768"),
        (EncoderVATConfig, {"encoder": "bert"}, "encoder"),
    ],
)
def test_configuration_refuses_what_does_not_fit(config, settings, mentions):
    with pytest.raises(Exception, match=mentions):
        config(**settings)


# Saving and loading


@each(
    SYSTEMS, [case(name, prior="learned") for name in NAMES], [case(*one.values[:2], mask_layers=2) for one in MASKED]
)
def test_c01_c03_c75_saved_weights_come_back_bitwise(tiny, name, mask, settings, tmp_path):
    model, batch = tiny.model(name, mask, **settings), tiny.batch(name)
    model.train()(**batch)  # statistics of IBA
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.add_(number / 1000)
    model.eval().save_pretrained(tmp_path)
    loaded, info = AutoModelForSequenceClassification.from_pretrained(
        tmp_path, output_loading_info=True, trust_remote_code=False
    )
    assert type(loaded) is type(model) and type(loaded.base_model) is type(model.base_model)
    for setting in ("pooling", "bottleneck", "mask_type", "mask_layers"):
        assert getattr(loaded.config, setting) == getattr(model.config, setting)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    for key, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[key]), key
    ours, theirs = model(**batch), loaded.eval()(**batch)
    assert torch.equal(ours.logits, theirs.logits)
    assert all(torch.equal(tensor, theirs[part]) for part, tensor in parts_of(ours).items())
    saved = load_file(tmp_path / "model.safetensors")
    assert sum(tensor.numel() for tensor in saved.values()) == sum(t.numel() for t in model.state_dict().values())
    code = {"attention.py", "bottleneck.py", "configuration_vat.py", "configuration_word_encoder.py", "modeling_vat.py"}
    code |= {"explained_pipeline.py", "modeling_word_encoder.py", "word_mask.py", "words.py"}
    code |= set() if mask is None else {"configuration_vmask.py", "modeling_vmask.py"}
    assert set(os.listdir(tmp_path)) >= code


@each([case("bert"), case("distilbert"), case("lstm", "vmask")])
def test_c12_other_number_of_classes_names_the_layers(tiny, name, mask, settings, tmp_path):
    three = tiny.model(name, mask, num_labels=3, id2label={0: "neg", 1: "neutral", 2: "pos"})
    three.save_pretrained(tmp_path)
    for load in (AutoModelForSequenceClassification.from_pretrained, type(three).from_pretrained):
        with pytest.raises(
            ValueError, match=r"learner_head.out_proj.weight is \(3, 16\).*\(2, 16\).*ignore_mismatched"
        ):
            load(tmp_path, num_labels=2)
        two = load(tmp_path, num_labels=2, ignore_mismatched_sizes=True)
        assert two.config.id2label == {0: "LABEL_0", 1: "LABEL_1"}
        for key, tensor in three.state_dict().items():
            assert torch.equal(tensor, two.state_dict()[key]) or "out_proj" in key, key


@each([case("bert", **BASE), case("lstm"), case("bert", "vmask"), case("cnn", "vmask")])
def test_c13_label_names_survive_and_never_disagree(tiny, name, mask, settings, tmp_path):
    model = tiny.model(name, mask, id2label={"0": "neg", "1": "pos"}, **settings)
    model.save_pretrained(tmp_path)
    tiny.tokenizer(name).save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert loaded.config.id2label == {0: "neg", 1: "pos"} and loaded.config.label2id == {"neg": 0, "pos": 1}
    [scores] = pipeline("text-classification", model=str(tmp_path))(["good"], top_k=None)
    assert {score["label"] for score in scores} == {"neg", "pos"}
    config = type(model.config)
    wider = config.from_pretrained(tmp_path, num_labels=3)
    assert len(wider.id2label) == wider.num_labels == 3
    assert config.from_pretrained(tmp_path, id2label={0: "no", 1: "yes"}).label2id == {"no": 0, "yes": 1}
    assert config(label2id={"neg": 0, "neutral": 1, "pos": 2}).num_labels == 3
    with pytest.raises(ValueError, match="num_labels=3 disagrees"):
        config(num_labels=3, id2label={0: "neg", 1: "pos"})
    with pytest.raises(ValueError, match="not the inverse"):
        config(id2label={0: "neg", 1: "pos"}, label2id={"neg": 1, "pos": 0})


@each([case("bert_encoder"), case("gpt2"), case("lstm")], VMASK)
def test_a_vocabulary_that_has_grown_travels_and_stays_frozen(tiny, name, mask, settings, tmp_path):
    model, batch = tiny.model(name, mask).eval(), tiny.batch(name)
    expected = model(**batch).logits
    model.resize_token_embeddings(40)
    assert any("word_embeddings" in key or "wte" in key for key, _ in model.named_parameters()) == (mask is None)
    torch.testing.assert_close(model(**batch).logits, expected)
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path)
    assert loaded.get_input_embeddings().num_embeddings == loaded.config.vocab_size == 40
    assert torch.equal(loaded.get_input_embeddings().weight, model.get_input_embeddings().weight)


@each([case("bert")], VMASK[:1])
def test_a_plain_bert_checkpoint_loads_bit_equal_with_new_layers(tiny, name, mask, settings, tmp_path):
    source = BertForSequenceClassification(BertConfig(**tiny.bert))
    source.save_pretrained(tmp_path)
    made = tiny.model_class(name, mask)
    model, info = made.from_pretrained(tmp_path, num_labels=3, output_loading_info=True)
    expected = ("bert_vat", "attention", 3) if mask is None else ("bert_vmask", "first", 3)
    assert (model.config.model_type, model.config.pooling, model.num_labels) == expected
    encoder = source.bert.state_dict()
    for key, tensor in model.bert.state_dict().items():
        assert torch.equal(tensor, encoder[key]), key
    assert not any(key.startswith("bert.") for key in info["missing_keys"])
    for key, parameter in model.named_parameters():
        assert parameter.abs().max() < 10, f"{key} is raw memory"


@each(PLAIN, [case(name, "iba") for name in MASKED_NAMES[1:]])
def test_a_pretrained_encoder_is_loaded_bitwise_with_its_layout_and_without_pooler(
    tiny, name, mask, settings, tmp_path
):
    source, made = tiny.save_encoder(name, tmp_path).state_dict(), tiny.model_class(name, mask)
    model = made.from_encoder_pretrained(tmp_path, num_labels=3, **({"mask_type": mask} if mask else {}))
    encoder = model.encoder.state_dict()
    assert type(model.config) is made.config_class
    assert model.config.pooling == ("attention" if mask is None else "first" if name == "roberta" else "max")
    assert not any("pooler" in key for key in model.state_dict())
    assert {key for key in source if "pooler" not in key} == encoder.keys()
    assert all(torch.equal(tensor, source[key]) for key, tensor in encoder.items())
    assert mask is None or not any("embeddings" in key for key, _ in model.named_parameters())
    assert (model.config.prefix_tokens, model.config.suffix_tokens) == tiny.layout(name)
    assert all(parameter.abs().max() < 10 for parameter in model.parameters()), "raw memory"
    assert model.eval()(**tiny.batch(name)).logits.shape == (3, 3)
    model.save_pretrained(tmp_path / "ours")
    again = made.from_pretrained(tmp_path / "ours").eval()
    assert torch.equal(again(**tiny.batch(name)).logits, model(**tiny.batch(name)).logits)
    with pytest.raises(ValueError, match=rf"not '{made.config_class.model_type}'.*from_encoder_pretrained"):
        made.from_pretrained(tmp_path)


# Attention kernels and further outputs


@each([case("bert")], PLAIN, VMASK[:2])
def test_c09_self_attention_is_given_in_full_or_refused(tiny, name, mask, settings, tmp_path):
    model = tiny.model(name, mask)
    model.save_pretrained(tmp_path)
    batch, logits = tiny.batch(name), []
    for kernel in ("sdpa", "eager"):
        if kernel == "sdpa" and name in ("deberta_v2", "deberta_v2_conv", "xlnet"):
            with pytest.raises(ValueError, match="does not support"):
                type(model).from_pretrained(tmp_path, attn_implementation=kernel)
            continue
        loaded = type(model).from_pretrained(tmp_path, attn_implementation=kernel).eval()
        assert loaded.base_model.config._attn_implementation == kernel
        out = loaded(**batch)
        logits.append(out.logits)
        assert all(tensor.shape == batch["input_ids"].shape for tensor in parts_of(out).values()) and parts_of(out)
        if name in WORD_ENCODERS:
            with pytest.raises(ValueError, match="of which a word encoder has none"):
                loaded(**batch, output_attentions=True)
        elif kernel == "sdpa":
            with pytest.raises(ValueError, match='attn_implementation="eager"'):
                loaded(**batch, output_attentions=True)
        else:
            length = batch["input_ids"].shape[1]
            attentions = loaded(**batch, output_attentions=True).attentions
            assert [attention.shape for attention in attentions] == [(3, 2, length, length)] * 2
    close(logits[-1], logits[0])


@each(PLAIN, VMASK[1:2])
def test_c09_what_the_configuration_asks_for_is_returned(tiny, name, mask, settings, tmp_path):
    model = tiny.model(name, mask)
    model.save_pretrained(tmp_path)
    asked = {"output_hidden_states": True, "output_attentions": name not in WORD_ENCODERS}
    model = type(model).from_pretrained(tmp_path, attn_implementation="eager", **asked).eval()
    out = model(**tiny.batch(name))
    assert (len(out.attentions) == 2) if asked["output_attentions"] else (out.attentions is None)
    assert len(out.hidden_states) == 2 + (name not in WORD_ENCODERS)
    out = model(**tiny.batch(name), output_attentions=False, output_hidden_states=False)
    assert out.attentions is None and out.hidden_states is None


# Explanations


@each([case("bert")], VMASK)
def test_c76_stock_pipeline_agrees_with_a_forward_pass(tiny, name, mask, settings, tmp_path):
    texts = [*tiny.texts, " ".join(["very"] * 200)]
    model, tokenizer = tiny.model(name, mask, id2label={0: "neg", 1: "pos"}).eval(), tiny.tokenizer(name)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    cut = {"truncation": True, "max_length": 32}
    direct = model(**tiny.batch(name, texts, **cut)).logits.softmax(-1).tolist()
    for given in ({"model": str(tmp_path)}, {"model": model, "tokenizer": tokenizer}):
        for scores, (neg, pos) in zip(
            pipeline("text-classification", **given)(texts, top_k=None, **cut), direct, strict=True
        ):
            found = {score["label"]: score["score"] for score in scores}
            assert found == pytest.approx({"neg": neg, "pos": pos}, abs=1e-6)


@each(PLAIN, MASKED)
def test_explain_and_pipeline_give_what_it_says_of_each_word(tiny, name, mask, settings):
    model, tokenizer = tiny.model(name, mask, id2label={0: "neg", 1: "pos"}).eval(), tiny.tokenizer(name)
    texts, method = [*tiny.texts, "the unheard of plot"], "attention" if mask is None else "mask"
    explanations = explain(model, tokenizer, texts, method=method, batch_size=3)
    classify = pipeline(TASK, model=model, tokenizer=tokenizer)
    for text, explanation, *results in zip(
        texts, explanations, classify(texts), classify(texts, batch_size=4), strict=True
    ):
        batch = model_inputs(tokenizer, [encode_words(tokenizer, [text], 32)[0].typed_ids])
        direct = model(**batch)
        [said] = parts_of(direct).values()
        assert explanation.scores == pytest.approx(said[tiny.content(name, **batch)].tolist(), abs=1e-6)
        assert mask is not None or sum(explanation.scores) == pytest.approx(1, abs=1e-5)
        assert explanation.probabilities == pytest.approx(direct.logits[0].softmax(-1).tolist(), abs=1e-6)
        shown = "score" if mask else "attention"
        expected = pytest.approx([max(explanation.probabilities), *explanation.scores], abs=1e-5)
        for result in results:
            assert explanation.words == [word["word"] for word in result["words"]] == text.split()
            assert [result["score"], *(word[shown] for word in result["words"])] == expected
            assert result["label"] == explanation.label_names[explanation.target]
    if mask is not None:
        with pytest.raises(ValueError, match="no token_importance"):
            explain(model, tokenizer, texts, method="attention")
