"""Model folders with one thing wrong in them: the command says which file, in one sentence, and nothing in them is run."""

import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from datasets import ClassLabel, Dataset
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2ForSequenceClassification

from hf_vat import BertForVATClassification, BertVATConfig, explain
from hf_vat.errors import InputError
from hf_vat.faithfulness import Faithfulness
from hf_vat.pretrained import load_classifier, load_tokenizer
from hf_vat.training import ModelArguments
from hf_vat.training.loading import load_model

WEIGHTS, CONFIG, TOKENIZER, TOKENIZER_CONFIG = (
    "model.safetensors",
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)


@pytest.fixture(scope="module")
def whole(tokenizer, tmp_path_factory) -> Path:
    """A folder each with a classifier of ours, `vat`, and one of transformers, `plain`."""
    folder = tmp_path_factory.mktemp("whole")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    sizes |= {"vocab_size": len(tokenizer), "max_position_embeddings": 32}
    BertForVATClassification(BertVATConfig(**sizes)).save_pretrained(folder / "vat")
    BertForSequenceClassification(BertConfig(**sizes)).save_pretrained(folder / "plain")
    for name in ("vat", "plain"):
        tokenizer.save_pretrained(folder / name)
        load_classifier(str(folder / name))
    return folder


@pytest.fixture(params=["vat", "plain"])
def folder(request, whole, tmp_path) -> Path:
    return shutil.copytree(whole / request.param, tmp_path / "model")


@pytest.fixture
def labelled() -> Dataset:
    return Dataset.from_dict({"text": ["a", "b"], "label": [0, 1]}).cast_column(
        "label", ClassLabel(names=["no", "yes"])
    )


def changed(file: str, **entries):
    def change(folder: Path) -> None:
        path = folder / file
        path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))

    return change


def written(file: str, content: bytes):
    return lambda folder: (folder / file).write_bytes(content)


def cut(file: str, share: float):
    return lambda folder: (folder / file).write_bytes(
        (content := (folder / file).read_bytes())[: int(share * len(content))]
    )


def removed(*files: str):
    return lambda folder: [(folder / file).unlink() for file in files]


def a_folder(file: str):
    def change(folder: Path) -> None:
        (folder / file).unlink()
        (folder / file).mkdir()

    return change


class Bomb:
    def __reduce__(self):
        return Path.touch, (Path("executed"),)


def pickled(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))


def without(*parts: str):
    def change(folder: Path) -> None:
        weights = load_file(folder / WEIGHTS)
        save_file(
            {name: one for name, one in weights.items() if not any(part in name for part in parts)}, folder / WEIGHTS
        )

    return change


def with_code(folder: Path) -> None:
    changed(CONFIG, auto_map={"AutoConfig": "bomb.Config"}, model_type="bomb")(folder)
    (folder / "bomb.py").write_text("import pathlib\npathlib.Path('executed').touch()\n")


DAMAGE = {
    "torn weights": (cut(WEIGHTS, 0.5), WEIGHTS),
    "empty weights": (cut(WEIGHTS, 0), WEIGHTS),
    "other weights": (written(WEIGHTS, b"x" * 1000), WEIGHTS),
    "no weights": (removed(WEIGHTS), WEIGHTS),
    "weights a folder": (a_folder(WEIGHTS), WEIGHTS),
    "pickle": (pickled, "pickle"),
    "index": (lambda folder: (removed(WEIGHTS)(folder), written(f"{WEIGHTS}.index.json", b"[1")(folder)), "index.json"),
    "shape": (changed(CONFIG, hidden_size=24), WEIGHTS),
    "huge": (changed(CONFIG, vocab_size=10**12), WEIGHTS),
    "no heads": (changed(CONFIG, num_attention_heads=0), CONFIG),
    "vocabulary": (changed(CONFIG, vocab_size=-1), CONFIG),
    "activation": (changed(CONFIG, hidden_act="zzz"), CONFIG),
    "padding": (changed(CONFIG, pad_token_id=999), CONFIG),
    "chunks": (changed(CONFIG, chunk_size_feed_forward=7), CONFIG),
    "type": (changed(CONFIG, model_type=None), CONFIG),
    "number as text": (changed(CONFIG, layer_norm_eps="x"), CONFIG),
    "names a list": (changed(CONFIG, id2label=["a", "b"]), CONFIG),
    "names with gaps": (changed(CONFIG, id2label={"0": "a", "2": "b"}), CONFIG),
    "names alike": (changed(CONFIG, id2label={"0": "a", "1": "a"}, label2id={"a": 1}), CONFIG),
    "quantized": (changed(CONFIG, quantization_config={"load_in_4bit": True}), CONFIG),
    "quantized by a word": (changed(CONFIG, quantization_config="many"), CONFIG),
    "code": (with_code, CONFIG),
    "no object": (written(CONFIG, b"[]"), CONFIG),
    "no text": (written(CONFIG, b"\xff\xfe\x00"), CONFIG),
    "nested": (written(CONFIG, b'{"a":' + b"[" * 100_000), CONFIG),
    "a layer less": (changed(CONFIG, num_hidden_layers=1), CONFIG),
    "a layer more": (changed(CONFIG, num_hidden_layers=3), CONFIG),
    "empty tokenizer": (written(TOKENIZER, b"{}"), TOKENIZER),
    "torn tokenizer": (cut(TOKENIZER, 0.3), TOKENIZER),
    "no tokenizer": (removed(TOKENIZER), TOKENIZER),
    "neither": (removed(TOKENIZER, TOKENIZER_CONFIG), TOKENIZER),
    "length": (changed(TOKENIZER_CONFIG, model_max_length="many"), TOKENIZER_CONFIG),
    "no length": (changed(TOKENIZER_CONFIG, model_max_length=0), TOKENIZER_CONFIG),
    "special token": (changed(TOKENIZER_CONFIG, pad_token=3), TOKENIZER),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_f52_f53_damage_is_told_in_one_sentence_that_names_folder_and_file(folder, kind, monkeypatch):
    monkeypatch.chdir(folder.parent)
    change, file = DAMAGE[kind]
    change(folder)
    with pytest.raises(InputError) as error:
        load_classifier(str(folder))
    told = str(error.value)
    assert str(folder) in told and file in told and "\n" not in told and len(told) < 700
    assert not Path("executed").exists()


def test_f53_a_trained_classifier_has_all_its_weights(folder):
    without("learner_head", "classifier")(folder)
    with pytest.raises(InputError, match="no trained classifier: it lacks"):
        load_classifier(str(folder))


@pytest.mark.parametrize("folder", ["vat"], indirect=True)
def test_f53_and_ours_no_others(folder):
    changed(CONFIG, bottleneck="none")(folder)
    with pytest.raises(InputError, match=r"config\.json: the model that it describes has no place for .*bottleneck"):
        load_classifier(str(folder))


@pytest.mark.parametrize("folder", ["plain"], indirect=True)
def test_weights_that_nothing_reads_are_no_damage_where_others_save_them(folder):
    """RoBERTa's classifiers on the Hub come with a pooler that the class leaves out."""
    weights = load_file(folder / WEIGHTS)
    save_file(weights | {"bert.other.dense.weight": torch.zeros(3)}, folder / WEIGHTS, {"format": "pt"})
    load_classifier(str(folder))


@pytest.mark.parametrize("folder", ["vat"], indirect=True)
def test_f52_self_attention_that_is_asked_for_in_the_configuration(folder):
    changed(CONFIG, output_attentions=True)(folder)
    with pytest.raises(InputError, match=r"config\.json: output_attentions=True"):
        load_classifier(str(folder))


@pytest.mark.parametrize(
    "kind",
    ["torn weights", "pickle", "shape", "no heads", "a layer less", "a layer more", "no tokenizer", "length", "code"],
)
def test_f52_training_begins_with_no_damaged_folder_either(folder, kind, labelled, monkeypatch):
    monkeypatch.chdir(folder.parent)
    change, file = DAMAGE[kind]
    change(folder)
    with pytest.raises(InputError) as error:
        load_model(ModelArguments(str(folder), max_length=16), labelled)
    assert str(folder) in str(error.value) and file in str(error.value) and "\n" not in str(error.value)
    assert not Path("executed").exists()


def test_f53_a_tokenizer_without_words_is_refused_alone_too(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    assert len(load_tokenizer(str(tmp_path))) == len(tokenizer)
    (tmp_path / TOKENIZER).unlink()
    with pytest.raises(InputError, match=r"tokenizer\.json: the tokenizer has 5 special tokens and no words"):
        load_tokenizer(str(tmp_path))


def test_f53_f56_tokens_that_the_model_does_not_know(make_model, tokenizer, labelled, tmp_path):
    model, small = make_model("vat"), make_model("vat", vocab_size=9)
    named = "token id .* embeddings for 0 to 8"
    with pytest.raises(InputError, match=named):
        explain(small, tokenizer, ["a lovely film"], "occlusion")
    with pytest.raises(InputError, match=named):
        Faithfulness(small, tokenizer, ["a lovely film"], [0])
    for part in (small, tokenizer):
        part.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"has \d+ tokens, but the model has embeddings for 9"):
        load_model(ModelArguments(str(tmp_path), max_length=16), labelled)
    gpt = GPT2ForSequenceClassification(GPT2Config(vocab_size=5, n_embd=8, n_layer=1, n_head=2, pad_token_id=0))
    with pytest.raises(InputError, match="token id"):
        explain(gpt, tokenizer, ["a", "a film"], "occlusion")
    assert model.config.vocab_size == len(tokenizer)


def test_shards_are_read_and_their_damage_named(make_model, tokenizer, tmp_path):
    model = make_model("vat")
    model.save_pretrained(tmp_path, max_shard_size="5KB")
    tokenizer.save_pretrained(tmp_path)
    load_classifier(str(tmp_path))
    shard = sorted(tmp_path.glob("model-*.safetensors"))[1]
    content = shard.read_bytes()
    shard.write_bytes(content[:50])
    with pytest.raises(InputError, match=shard.name):
        load_classifier(str(tmp_path))
    shard.unlink()
    with pytest.raises(InputError, match=f"{shard.name}: there is no such file"):
        load_classifier(str(tmp_path))
    shutil.rmtree(tmp_path)
    with pytest.raises(InputError, match="cannot be loaded"):
        load_classifier(str(tmp_path))
