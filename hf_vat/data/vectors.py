"""Pretrained word vectors: read those of the words that a model needs, and start its embeddings with them."""

import gzip
import mmap
import re
import textwrap
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from huggingface_hub import snapshot_download
from safetensors import SafetensorError, safe_open
from transformers import PreTrainedTokenizerBase

from hf_vat.errors import InputError, check_path, parse_json
from hf_vat.inference import whole_number

# Where sentence-transformers keeps the word vectors of its models, and in which files.
_MODULE = "0_WordEmbeddings"
_WEIGHTS, _WORDS = "model.safetensors", "whitespacetokenizer_config.json"

_READABLE = (
    "a text file of GloVe or word2vec (.txt, .vec, or .gz), a binary file of word2vec (.bin), a folder with one .npy "
    f"and one .parquet file, or a folder or Hub model with {_MODULE}/{_WEIGHTS}"
)

# A word, and how to read its vector: most words of a file are not wanted.
_Rows = Iterator[tuple[str, Callable[[], np.ndarray]]]


@dataclass(frozen=True)
class Coverage:
    """How much of some texts has a pretrained vector.

    Attributes:
        types, types_found: number of different words, and of those with a vector.
        tokens, tokens_found: the same, each word counted as often as it occurs.
    """

    types: int
    types_found: int
    tokens: int
    tokens_found: int


@dataclass(frozen=True)
class Vectors:
    """Pretrained vectors of given words.

    Attributes:
        words: the words, in the order given.
        matrix: float32 of shape (words, dimension); zeros where there is no vector.
        found: for each word whether it has a vector.
        lowered: number of words that have the vector of their lower-case form, having none of their own.
    """

    words: list[str]
    matrix: np.ndarray
    found: np.ndarray
    lowered: int

    def coverage(self, counts: Mapping[str, int]) -> Coverage:
        """Coverage of texts by these vectors.

        Args:
            counts: how often each word occurs in the texts ([`hf_vat.data.vocabulary.count_words`]); a word that is
                not among `words` counts as one without a vector.
        """
        known = {word for word, found in zip(self.words, self.found, strict=True) if found}
        covered = [count for word, count in counts.items() if word in known]
        return Coverage(len(counts), len(covered), sum(counts.values()), sum(covered))


def load_vectors(source: str | Path, words: Iterable[str], lower_case: bool = False) -> Vectors:
    """Read the vectors of `words`; the rest of the source is passed over and never held in memory.

    Nothing is unpickled. Where a word has several vectors, the first one counts.

    Args:
        source: a text file as GloVe or word2vec write it (`.txt`, `.vec`, or either of them as `.gz`); word2vec's
            binary format (`.bin`); a folder with the vectors in one `.npy` file and the words in the only column of
            one `.parquet` file, such as [`hf_vat.data.offline.glove_folder`]; or a model of sentence-transformers made
            of word vectors, as a folder or by its Hub id, if its weights are in safetensors.
        words: the words, such as `tokenizer.get_vocab()`.
        lower_case: whether a word without a vector takes that of its lower-case form.

    Raises:
        InputError: if the source is not one of these or is damaged, naming the line or entry, or if it has no vector
            for any of the words. The numbers of words that are not wanted are not checked.
    """
    words = [] if isinstance(words, str) else list(words)
    if not words:
        raise InputError("words is empty or one string; give the words to read, such as tokenizer.get_vocab().")
    wanted = {*words, *(word.lower() for word in words if lower_case)}
    vectors = {}
    for word, read in _rows(source):
        if word in wanted and word not in vectors:
            vectors[word] = read()
    names = [word if word in vectors or not lower_case else word.lower() for word in words]
    found = np.array([name in vectors for name in names])
    if not found.any():
        raise InputError(
            f"{source} has no vector for any of the {len(words)} words ({', '.join(words[:5])}, …); give vectors of "
            "the language of the texts, or lower_case=True if the source has lower-case words only."
        )
    matrix = np.zeros((len(words), len(next(iter(vectors.values())))), dtype=np.float32)
    matrix[found] = [vectors[name] for name in names if name in vectors]
    lowered = sum(name != word and name in vectors for name, word in zip(names, words, strict=True))
    return Vectors(words, matrix, found, lowered)


def read_words(source: str | Path) -> list[str]:
    """All words of a source of [`load_vectors`], in its order, without their vectors.

    Raises:
        InputError: as [`load_vectors`].
    """
    return [word for word, _ in _rows(source)]


def embedding_matrix(tokenizer: PreTrainedTokenizerBase, vectors: Vectors, seed: int = 0) -> torch.Tensor:
    """What the input embeddings of a model start from: pretrained vectors where there are some, else small numbers.

    Words without a vector, and special tokens, are drawn from U(-0.1, 0.1) (Zhou et al., Findings of ACL 2021); the
    padding token is zero.

    Args:
        tokenizer: its tokens are the words that `vectors` are looked up by.
        seed: for a generator of its own. What a token gets depends on it and on the token's id only.

    Returns:
        float32 of shape (len(tokenizer), dimension), row by token id.

    Raises:
        InputError: if the seed is no whole number from 0.
    """
    size, seed = (len(tokenizer), vectors.matrix.shape[1]), whole_number("seed", seed, 0)
    matrix = torch.empty(size).uniform_(-0.1, 0.1, generator=torch.Generator().manual_seed(seed))
    ids = tokenizer.get_vocab()
    rows = {ids[word]: row for row, word in enumerate(vectors.words) if vectors.found[row] and word in ids}
    matrix[list(rows)] = torch.from_numpy(vectors.matrix[list(rows.values())])
    if tokenizer.pad_token_id is not None:
        matrix[tokenizer.pad_token_id] = 0
    return matrix


def _rows(source: str | Path) -> _Rows:
    path = check_path(source)
    if path.is_dir():
        return _folder_rows(path)
    reader = _READERS.get(path.suffix.lower())
    if path.is_file():
        if reader is None:
            raise InputError(f"{path}: files of type {path.suffix!r} cannot be read; give {_READABLE}.")
        return reader(path)
    if reader is not None or not re.fullmatch(r"[\w.-]+/[\w.-]+", str(source)):
        raise InputError(f"{source}: no such file or folder; give {_READABLE}.")
    return _folder_rows(_download(str(source)))


def _download(name: str) -> Path:
    try:
        return Path(snapshot_download(name, allow_patterns=[f"{_MODULE}/{_WEIGHTS}", f"{_MODULE}/{_WORDS}"]))
    except (OSError, ValueError) as error:
        reason = textwrap.shorten(str(error), 300).rstrip(".")
        raise InputError(
            f"{name!r} is no file or folder, and cannot be loaded from the Hub: {reason}. Check the name and the "
            f"connection, or give {_READABLE}."
        ) from error


def _text_rows(path: Path) -> _Rows:
    try:
        # Words may hold any character but the line feed, other line ends included, and some are broken in the middle.
        opened = gzip.open if path.suffix.lower() == ".gz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as file:
            first = file.readline()
            header = re.fullmatch(r"(\d{1,12}) (\d{1,9})\s*", first)
            dimension = int(header[2]) if header else first.rstrip(" \r\n").count(" ")
            rows = 0
            for number, line in enumerate(file if header else chain([first], file), 2 if header else 1):
                if not line.strip(" \r\n"):
                    continue
                rows += 1
                yield _text_row(f"{path}, line {number}", line, dimension)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}. Download or unpack it again.") from error
    if header and rows != int(header[1]):
        raise InputError(f"{path}: its first line promises {header[1]} vectors, but it has {rows}. Download it again.")


def _text_row(place: str, line: str, dimension: int) -> tuple[str, Callable[[], np.ndarray]]:
    # From the right, as a few words of GloVe 840B hold spaces. None of them ends in a number: then there is one too many.
    word, *numbers = line.rstrip(" \r\n").rsplit(" ", max(dimension, 1))
    if not numbers or len(numbers) != dimension or (" " in word and _is_number(word.rpartition(" ")[2])):
        raise InputError(
            f"{place} is not a word and {dimension or 'some'} numbers, separated by single spaces: "
            f"{textwrap.shorten(line, 80)!r}. Correct the file, or give {_READABLE}."
        )
    return word, partial(_vector, place, numbers)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _binary_rows(path: Path) -> _Rows:
    with open(path, "rb") as file:
        header = re.fullmatch(rb"(\d{1,9}) (\d{1,5})\n", file.readline(20))
        if not header:
            raise InputError(
                f"{path} does not begin as word2vec's binary format, with two numbers: of words and of dimensions. "
                f"Pickled weights such as pytorch_model.bin are never read. Give {_READABLE}."
            )
        count, size = int(header[1]), 4 * int(header[2])
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            start = file.tell()
            for number in range(1, count + 1):
                blank = data.find(b" ", start)
                end = blank + 1 + size
                if blank < 0 or end > len(data):
                    raise InputError(f"{path} ends in entry {number} of {count}. Download it again.")
                word = data[start:blank].lstrip(b"\n").decode("utf-8", errors="replace")
                yield word, partial(_binary_vector, f"{path}, entry {number}", data, slice(blank + 1, end))
                start = end


def _binary_vector(place: str, data: mmap.mmap, where: slice) -> np.ndarray:
    return _vector(place, np.frombuffer(data[where], "<f4"))


def _folder_rows(folder: Path) -> _Rows:
    arrays, tables = sorted(folder.glob("*.npy")), sorted(folder.glob("*.parquet"))
    module = folder / _MODULE
    try:
        if len(arrays) == len(tables) == 1:
            matrix, words = np.load(arrays[0], mmap_mode="r", allow_pickle=False), _only_column(tables[0])
        elif (module / _WEIGHTS).is_file() and (module / _WORDS).is_file():
            words = parse_json((module / _WORDS).read_text(encoding="utf-8"))["vocab"]
            matrix = safe_open(module / _WEIGHTS, framework="np").get_slice("emb_layer.weight")
        else:
            raise InputError(
                f"{folder} holds no word vectors that can be read; give {_READABLE}. Pickled weights "
                "(pytorch_model.bin) are never read."
            )
    except InputError:
        raise
    except (OSError, ValueError, KeyError, pa.ArrowException, SafetensorError) as error:
        raise InputError(f"{folder}: its word vectors cannot be read: {error}. Download them again.") from error
    shape = tuple(matrix.shape if isinstance(matrix, np.ndarray) else matrix.get_shape())
    if len(shape) != 2 or shape[0] != len(words):
        raise InputError(f"{folder} has {len(words)} words for vectors of shape {shape}; give one row for each word.")
    for row, word in enumerate(words):
        yield word, partial(_matrix_vector, f"{folder}, row {row}", matrix, row)


def _only_column(path: Path) -> list[str]:
    table = pq.read_table(path)
    if table.num_columns != 1:
        raise InputError(f"{path} has the columns {', '.join(table.column_names)}; it must have one, the words.")
    return table.column(0).to_pylist()


def _matrix_vector(place: str, matrix, row: int) -> np.ndarray:
    return _vector(place, matrix[row])


def _vector(place: str, numbers) -> np.ndarray:
    try:
        vector = np.array(numbers, dtype=np.float32)
    except ValueError as error:
        raise InputError(f"{place}: {error}. Correct the number.") from error
    if not np.isfinite(vector).all():
        raise InputError(f"{place} has a number that is not finite. Correct or remove it.")
    return vector


_READERS = {".txt": _text_rows, ".vec": _text_rows, ".gz": _text_rows, ".bin": _binary_rows}
