"""Every class as ONNX file and as program of torch.export, at toy size: the same numbers as the model, whatever the batch."""

import copy
import json
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from checks import without_time
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    GPT2Config,
    ModernBertConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    XLNetConfig,
)

from hf_vat import (
    BertForVATClassification,
    BertWithVMask,
    EncoderForVATClassification,
    EncoderWithVMask,
    Faithfulness,
    InputError,
    WordEncoderConfig,
    explain,
    export,
)
from hf_vat.data.vocabulary import train_word_tokenizer
from hf_vat.errors import MissingExtra
from hf_vat.export import OnnxClassifier, export_onnx, export_program

ROOT = str(Path(__file__).resolve().parents[2]).encode()
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]  # padding has id 1, as in RoBERTa
WORDS = ["a", "the", "film", "movie", "plot", "actor", "very", "and", "is", "good", "great", "bad", "dull"]
BATCHES = [
    ["good film"],
    ["dull"],
    ["good film", "the plot and the actor is very dull and the film is a bad film", ""],
    ["a", "a bad movie", "good", "great plot and very good actor", "the film"],
    [" ".join(WORDS * 3), "very good"],  # cut to the 32 tokens that the model takes
]

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
VOCABULARY = {"vocab_size": len(SPECIAL) + len(WORDS), "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
# Large weights, so that the outputs of an untrained model differ visibly between texts.
SMALL = SIZES | VOCABULARY | {"max_position_embeddings": 34, "initializer_range": 0.2}
DEBERTA = {
    "relative_attention": True, "position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True,
    "pos_att_type": "p2c|c2p", "position_biased_input": False, "type_vocab_size": 0,
}  # fmt: skip
WORD_ENCODER = {"vocab_size": len(WORDS) + 3, "embedding_size": 8, "initializer_range": 0.5}
ENCODERS = {
    "bert": lambda: BertConfig(**SMALL),
    "distilbert": lambda: DistilBertConfig(
        dim=16, n_layers=1, n_heads=2, hidden_dim=32, max_position_embeddings=34, initializer_range=0.2, **VOCABULARY
    ),
    "roberta": lambda: RobertaConfig(type_vocab_size=1, **SMALL),
    "deberta_v2": lambda: DebertaV2Config(**DEBERTA, **SMALL),
    "deberta_v2_conv": lambda: DebertaV2Config(conv_kernel_size=3, conv_act="gelu", **DEBERTA, **SMALL),
    "electra": lambda: ElectraConfig(embedding_size=8, **SMALL),
    "modernbert": lambda: ModernBertConfig(
        global_attn_every_n_layers=2, local_attention=4, cls_token_id=0, sep_token_id=2, **SMALL | {"num_hidden_layers": 2}
    ),
    "gpt2": lambda: GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=34, initializer_range=0.2, **VOCABULARY),
    "xlnet": lambda: XLNetConfig(d_model=16, n_layer=1, n_head=2, d_inner=32, initializer_range=0.2, **VOCABULARY),
    "lstm": lambda: WordEncoderConfig(encoder_type="lstm", hidden_size=16, bidirectional=True, **WORD_ENCODER),
    "lstm_two_layers": lambda: WordEncoderConfig(encoder_type="lstm", hidden_size=16, num_layers=2, **WORD_ENCODER),
    "cnn": lambda: WordEncoderConfig(encoder_type="cnn", hidden_size=18, **WORD_ENCODER),
    "affine": lambda: WordEncoderConfig(encoder_type="affine", hidden_size=16, **WORD_ENCODER),
}  # fmt: skip
LAYOUTS = {"xlnet": (0, 2), "gpt2": (0, 0)}  # special tokens around a text; none around words, else one on either side
TEMPLATES = {(1, 1): "<s> $A </s>", (0, 2): "$A:0 </s>:0 <s>:2", (0, 0): None}
VAT = {"pooling": "attention", "bottleneck": "gaussian"}
ATTENTION, MASK = ("token_importance", "token_attribution"), ("token_mask",)


def bert(cls=BertForVATClassification, **settings):
    return cls(cls.config_class(**(SMALL | settings))), "bert"


def encoder(name: str, cls=EncoderForVATClassification, **settings):
    prefix, suffix = LAYOUTS.get(name, (None, None))
    config = cls.config_class(
        encoder=ENCODERS[name](), prefix_tokens=prefix, suffix_tokens=suffix, initializer_range=0.2, **settings
    )
    return cls(config), name


masked_bert, masked_encoder = partial(bert, BertWithVMask), partial(encoder, cls=EncoderWithVMask)


# For each a model with the encoder's name, and its outputs beside the logits.
MODELS = {
    "BertForVATClassification": (lambda: bert(), ATTENTION),
    "over bert": (lambda: encoder("bert"), ATTENTION),
    "over distilbert": (lambda: encoder("distilbert"), ATTENTION),
    "over roberta": (lambda: encoder("roberta"), ATTENTION),
    "over deberta_v2": (lambda: encoder("deberta_v2"), ATTENTION),
    "over electra": (lambda: encoder("electra"), ATTENTION),
    "over modernbert": (lambda: encoder("modernbert"), ATTENTION),
    "over lstm": (lambda: encoder("lstm"), ATTENTION),
    "over cnn": (lambda: encoder("cnn"), ATTENTION),
    "BertWithVMask": (lambda: masked_bert(), MASK),
    "EncoderWithVMask over roberta": (lambda: masked_encoder("roberta"), MASK),
}
SLOW = {
    "VMASK under VAT": (lambda: masked_bert(**VAT), ATTENTION + MASK),  # also below
    "EncoderWithVMask over lstm": (lambda: masked_encoder("lstm"), MASK),
    "first": (lambda: bert(pooling="first", bottleneck="none"), ()),
    "max": (lambda: bert(pooling="max", bottleneck="none"), ()),
    "mean": (lambda: bert(pooling="mean", bottleneck="none"), ()),
    "shared mean": (lambda: bert(heads="shared_mean"), ATTENTION),
    "compressor": (lambda: bert(predict_from="compressor", prior="learned"), ATTENTION),
    "eager": (lambda: bert(attn_implementation="eager"), ATTENTION),
    "over deberta_v2_conv": (lambda: encoder("deberta_v2_conv"), ATTENTION),
    "over gpt2": (lambda: encoder("gpt2"), ATTENTION),
    "over lstm_two_layers": (lambda: encoder("lstm_two_layers"), ATTENTION),
    "over affine": (lambda: encoder("affine"), ATTENTION),
    "mask at the embedding output": (lambda: masked_bert(mask_site="embedding_output"), MASK),
    "l2x": (lambda: masked_bert(mask_type="l2x", mask_layers=2), MASK),
    "l2x concrete_topk": (lambda: masked_bert(mask_type="l2x", mask_normalization="concrete_topk", mask_k=3), MASK),
    "iba": (lambda: masked_bert(mask_type="iba"), MASK),
    "EncoderWithVMask over cnn": (lambda: masked_encoder("cnn"), MASK),
    "EncoderWithVMask over deberta_v2": (lambda: masked_encoder("deberta_v2"), MASK),
    "EncoderWithVMask over modernbert": (lambda: masked_encoder("modernbert", mask_type="iba"), MASK),
    "VMASK under VAT over lstm": (lambda: masked_encoder("lstm", **VAT), ATTENTION + MASK),
}


def make_tokenizer(name: str) -> PreTrainedTokenizerFast:
    if name in ("cnn", "affine") or name.startswith("lstm"):
        return train_word_tokenizer([" ".join(WORDS)], model_max_length=32)
    backend = Tokenizer(WordLevel({word: index for index, word in enumerate(SPECIAL + WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = Whitespace()
    template = TEMPLATES[LAYOUTS.get(name, (1, 1))]
    if template:
        backend.post_processor = TemplateProcessing(single=template, special_tokens=[("<s>", 0), ("</s>", 2)])
    types = ["token_type_ids"] if name in ("bert", "electra", "xlnet") else []
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>",
        pad_token="<pad>", unk_token="<unk>", mask_token="<mask>", model_max_length=32,
        model_input_names=["input_ids", "attention_mask", *types],
        padding_side="left" if name in ("xlnet", "gpt2") else "right",
    )  # fmt: skip


def make(name: str):
    """A model of MODELS or SLOW in training mode, the same weights each time; its tokenizer and its outputs."""
    build, outputs = (MODELS | SLOW)[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, encoder_name = build()
    return model.train(), make_tokenizer(encoder_name), ["logits", *outputs]


def batch_of(tokenizer, texts, **kwargs) -> dict:
    return dict(tokenizer(texts, padding=True, truncation=True, return_tensors="pt", **kwargs))


@torch.no_grad()
def outputs_of(model, batch: dict, names) -> dict[str, torch.Tensor]:
    found = copy.deepcopy(model).eval()(**batch, attribution_center="mean")
    return {name: found[name] for name in names}


def run(folder, batch: dict) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    arrays = session.run(None, {name: tensor.numpy() for name, tensor in batch.items()})
    return dict(zip([node.name for node in session.get_outputs()], arrays, strict=True))


def equal(found, wanted: dict, tolerance: float = 1e-5) -> None:
    assert list(found) == list(wanted)
    for name in wanted:
        np.testing.assert_allclose(np.asarray(found[name]), wanted[name].numpy(), rtol=0, atol=tolerance, err_msg=name)


@pytest.fixture(scope="module")
def vmask_under_vat(tmp_path_factory):
    model, tokenizer, _ = make("VMASK under VAT")
    folder = export_onnx(model, tokenizer, tmp_path_factory.mktemp("vmask under vat"))
    return model, folder, export_program(model, tokenizer)


# Every class


@pytest.mark.parametrize("name", [*MODELS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_exports_give_the_numbers_of_the_model(name, tmp_path, monkeypatch):
    model, tokenizer, names = make(name)
    programs, write = [], torch.onnx.export
    monkeypatch.setattr(
        torch.onnx, "export", lambda program, **kwargs: programs.append(program) or write(program, **kwargs)
    )
    folder = export_onnx(model, tokenizer, tmp_path / "out")
    assert model.training and all(parameter.requires_grad for parameter in model.parameters())

    [program] = programs
    module = program.module()
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    assert {node.name: node.shape for node in session.get_inputs()} == {
        name: ["batch", "sequence"] for name in tokenizer("a")
    }
    spread = []
    for texts in BATCHES:
        batch = batch_of(tokenizer, texts)
        wanted = outputs_of(model, batch, names)
        equal(module(**batch), wanted)
        equal(run(folder, batch), wanted)
        for output in names[1:]:
            assert (wanted[output][batch["attention_mask"] == 0] == 0).all()
        spread.append(wanted["logits"])
    assert torch.cat(spread).std(0).min() > 1e-3  # far above the tolerance: the texts matter


@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=6), seed=st.integers(0, 1000), left=st.booleans())
@settings(max_examples=25)
def test_any_batch_size_length_and_padding(lengths, seed, left, vmask_under_vat):
    model, folder, program = vmask_under_vat
    words = torch.randint(
        3, len(SPECIAL) + len(WORDS), (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(seed)
    )
    attended = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    attended = attended.flip(1) if left else attended
    batch = {
        "input_ids": words.masked_fill(~attended, 1),
        "attention_mask": attended.long(),
        "token_type_ids": torch.zeros_like(words),
    }
    wanted = outputs_of(model, batch, ["logits", *ATTENTION, *MASK])
    equal(run(folder, batch), wanted)
    equal(program.module()(**batch), wanted)


# The folder


def test_a_process_without_hf_vat_runs_both_files(vmask_under_vat, tmp_path):
    model, folder, program = vmask_under_vat
    torch.export.save(program, tmp_path / "model.pt2")
    assert ROOT not in (tmp_path / "model.pt2").read_bytes()
    code = """
import json, sys
sys.modules["hf_vat"] = None
import onnxruntime, torch
from transformers import AutoTokenizer
folder, program, *texts = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
arrays = onnxruntime.InferenceSession(folder + "/model.onnx").run(None, dict(tokenizer(texts, padding=True, return_tensors="np")))
tensors = torch.export.load(program).module()(**tokenizer(texts, padding=True, return_tensors="pt"))
print(json.dumps([[array.tolist() for array in arrays], [tensor.tolist() for tensor in tensors.values()]]))
"""
    texts = ["good film", "the plot is very dull"]
    arguments = [str(folder), str(tmp_path / "model.pt2"), *texts]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
    names = ["logits", *ATTENTION, *MASK]
    wanted = outputs_of(model, batch_of(make_tokenizer("bert"), texts), names)
    for values in json.loads(done.stdout.splitlines()[-1]):
        equal(dict(zip(names, values, strict=True)), wanted)


def test_the_folder_names_no_local_path_and_asks_for_no_code(tmp_path):
    model, tokenizer, _ = make("BertForVATClassification")
    model.save_pretrained(tmp_path / "private")
    tokenizer.model_max_length = 10**30
    tokenizer.save_pretrained(tmp_path / "private")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "private")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "private")
    folder = export_onnx(model, tokenizer, tmp_path / "out")
    names = {"config.json", "model.onnx", "tokenizer.json", "tokenizer_config.json"}
    assert {file.name for file in folder.iterdir()} == names
    for file in folder.iterdir():
        written = file.read_bytes()
        assert str(tmp_path).encode() not in written and ROOT not in written
    config = json.loads((folder / "config.json").read_text())
    assert not {"auto_map", "custom_pipelines"} & set(config) and {"auto_map", "custom_pipelines"} <= set(
        vars(model.config)
    )
    assert AutoTokenizer.from_pretrained(folder).model_max_length == 34  # what the positions allow
    assert tokenizer.model_max_length > 34


# In the place of the model


def test_explanations_and_faithfulness_of_the_file_are_those_of_the_model(vmask_under_vat):
    model, folder, _ = vmask_under_vat
    classifier, tokenizer = OnnxClassifier(folder), AutoTokenizer.from_pretrained(folder)
    texts, labels = ["good film", "the plot and the actor is very dull", "", "a bad movie"], [1, 0, 0, 1]
    for method in ("attention", "mask", "occlusion"):
        own, exported = (explain(each, tokenizer, texts, method=method) for each in (model, classifier))
        for a, b in zip(own, exported, strict=True):
            assert a.words == b.words and a.prediction == b.prediction
            assert b.scores == pytest.approx(a.scores, abs=1e-5)
            assert b.probabilities == pytest.approx(a.probabilities, abs=1e-5)
    first, second = (
        Faithfulness(each, tokenizer, own, labels, ks=(1, 2)).measure(own).scores for each in (model, classifier)
    )
    assert second == pytest.approx(first, abs=1e-5)
    with pytest.raises(InputError, match="OnnxClassifier has no word embeddings to take a gradient at"):
        explain(classifier, tokenizer, texts, method="gradient")


def test_stored_explanations_know_which_file_they_are_of(vmask_under_vat, tmp_path):
    folder, kept = shutil.copytree(vmask_under_vat[1], tmp_path / "out"), tmp_path / "kept.jsonl"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    first = explain(OnnxClassifier(folder), tokenizer, ["good film"], save_to=kept)
    again = explain(OnnxClassifier(folder), tokenizer, ["good film"], save_to=kept)
    assert without_time(again) == without_time(first)
    other = onnx.load(folder / "model.onnx")
    other.producer_name = "somebody else"
    onnx.save(other, folder / "model.onnx")
    with pytest.raises(InputError, match="another call, with other model state"):
        explain(OnnxClassifier(folder), tokenizer, ["good film"], save_to=kept)


# Refusals


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(tmp_path):
    model, tokenizer, _ = make("over cnn")
    with pytest.raises(InputError, match=r"torch\.bfloat16; load it with dtype=torch\.float32"):
        export_onnx(copy.deepcopy(model).bfloat16(), tokenizer, tmp_path / "out")
    without = copy.deepcopy(tokenizer)
    without.pad_token = None
    with pytest.raises(InputError, match="no padding token"):
        export_onnx(model, without, tmp_path / "out")
    with pytest.raises(InputError, match=r"no model\.onnx; give a folder that export_onnx wrote"):
        OnnxClassifier(tmp_path)
    model.register_forward_hook(lambda module, args, output: {**output, "logits": output.logits + torch.rand(2)})
    with pytest.raises(
        InputError, match=r"over WordEncoderModel cannot be exported: .* logits differs .* more than 1e-05"
    ):
        export_onnx(model, tokenizer, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_with_other_numbers_does_not_take_the_place_of_a_good_one(tmp_path, monkeypatch):
    model, tokenizer, _ = make("over cnn")
    for name in ("model.onnx", "config.json", "tokenizer.json"):
        (tmp_path / name).write_text("of an earlier export")
    right = export._run
    monkeypatch.setattr(export, "_run", lambda *args: {name: array + 3e-5 for name, array in right(*args).items()})
    with pytest.raises(InputError, match=r"differs from the model's by 3\.\de-05"):
        export_onnx(model, tokenizer, tmp_path)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["of an earlier export"] * 3


def test_a_model_that_reads_windows_is_exported_for_one(tmp_path):
    """The file's tokenizer cuts there, so that no text is read whole which the model reads in windows."""
    model, name = bert(window_length=8)
    tokenizer, model = make_tokenizer(name), model.eval()
    text = " ".join(WORDS)  # of more than a window, and less than the encoder's positions
    folder = export_onnx(model, tokenizer, tmp_path / "out")
    of_file = AutoTokenizer.from_pretrained(folder)
    assert of_file.model_max_length == 8 and tokenizer.model_max_length != 8 and model.config.window_length == 8
    with pytest.warns(UserWarning, match="longer than the model takes"):
        [found] = explain(OnnxClassifier(folder), of_file, [text])
    assert found.truncated == len(WORDS) - 6
    [wanted] = explain(model, tokenizer, [" ".join(WORDS[:6])])
    assert found.probabilities == pytest.approx(wanted.probabilities, abs=1e-5)
    assert found.scores[:6] == pytest.approx(wanted.scores, abs=1e-5)


@pytest.mark.parametrize("place", ["tokenizer", "configuration", "last"])
def test_an_export_that_is_interrupted_leaves_the_earlier_one_or_none_that_loads(tmp_path, monkeypatch, place):
    """Never a file with the configuration of another."""
    model, tokenizer, _ = make("over cnn")
    folder = export_onnx(model, tokenizer, tmp_path / "out")
    before = (folder / "model.onnx").read_bytes()
    model.config.id2label = {0: "no", 1: "yes"}
    with torch.no_grad():
        model.learner_head.out_proj.bias += 1

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        if place == "tokenizer":
            patched.setattr(type(tokenizer), "save_pretrained", full)
        elif place == "configuration":
            patched.setattr(type(model.config), "to_json_file", full)
        else:
            replace = Path.replace
            patched.setattr(
                Path, "replace", lambda path, to: full() if path.name == "model.onnx" else replace(path, to)
            )
        with pytest.raises(OSError, match="No space left"):
            export_onnx(model, tokenizer, folder)
    if place == "last":
        with pytest.raises(InputError, match=r"no model\.onnx"):
            OnnxClassifier(folder)
    else:
        assert (folder / "model.onnx").read_bytes() == before
        assert OnnxClassifier(folder).config.id2label == {0: "LABEL_0", 1: "LABEL_1"}
    (folder / "model.onnx.data").write_text("of an earlier export")
    export_onnx(model, tokenizer, folder)
    assert OnnxClassifier(folder).config.id2label == {0: "no", 1: "yes"}
    names = {path.name for path in folder.iterdir()}
    assert "model.onnx.data" not in names and not any(name.startswith(".hf_vat") for name in names)


def test_what_is_no_export_is_refused_with_a_sentence(tmp_path):
    model, tokenizer, _ = make("over cnn")
    folder = export_onnx(model, tokenizer, tmp_path / "out")
    classifier = OnnxClassifier(folder)
    with pytest.raises(InputError, match=r"The model is the export in .*; give the model that it was made of"):
        export_onnx(classifier, tokenizer, tmp_path / "again")
    with pytest.raises(InputError, match=r"a token of the id 99, but the model knows 0 to \d+; give its own tokenizer"):
        classifier(torch.tensor([[99]]))
    whole = onnx.load(folder / "model.onnx")
    for kind, nodes in (("takes", whole.graph.input), ("gives", whole.graph.output)):
        name = nodes[0].name
        other = onnx.ModelProto()
        other.CopyFrom(whole)
        part = other.graph.input if kind == "takes" else other.graph.output
        part[0].name = "x"
        for node in other.graph.node:
            for names in (node.input, node.output):
                for place, one in enumerate(names):
                    names[place] = "x" if one == name else one
        onnx.save(other, folder / "model.onnx")
        with pytest.raises(InputError, match=f"{kind} x.*, and not {name} with or without"):
            OnnxClassifier(folder)
    onnx.save(whole, folder / "model.onnx")
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=f"{re.escape(str(folder))} cannot be loaded"):
        OnnxClassifier(folder)


@pytest.mark.slow
def test_an_operation_that_onnx_has_not_is_named(tmp_path):
    model, name = encoder("xlnet")
    program = export_program(model, make_tokenizer(name))
    batch = batch_of(make_tokenizer(name), BATCHES[2])
    equal(
        program.module()(**batch),
        outputs_of(model, batch, ["logits", *ATTENTION]),
    )
    with pytest.raises(
        InputError,
        match=r"over XLNetModel cannot be exported: writing ONNX fails with RuntimeError: .*aten\.sub .* \(PyTorch",
    ):
        export_onnx(model, make_tokenizer(name), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    model, tokenizer, _ = make("over cnn")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"pip install 'hf-vat\[onnx\]'"):
        export_onnx(model, tokenizer, tmp_path)
