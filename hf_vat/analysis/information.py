"""How much the state of a token still says of the token: mutual information, and distances in the space of embeddings.

    found = mutual_information(model, tokenizer, texts)
    found.value, found.difference

"Words" are the tokens that the encoder reads: words for word encoders, pieces of words for BERT and its kin. Special tokens
and padding take no part.
"""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from hf_vat.errors import InputError, check_texts, import_extra
from hf_vat.inference import check_chooser, encode_texts, forward_batches, progress_bar, whole_number
from hf_vat.models.word_objective import conicity, distance_to_words, mean_over

from .states import check_attention, check_finite

LAYERS = ("states", "words")


@dataclass(frozen=True)
class MutualInformation:
    """What clusters of token vectors tell of the words, in nats; estimated from counts, which gives too much where pairs are
    few: compare `difference`, of models with the same numbers of pairs, words and clusters.

    Attributes:
        value: I(w; q) of word w and cluster q.
        share: I(w; q) / H(w), in [0, 1]; 0 if only one word occurs.
        shuffled: I(w; q) where words and vectors are paired at random: what the estimate gives for nothing.
        difference: value − shuffled.
        entropy: H(w) of the words.
        by_text: each text's part of `value`, shape [N]: the sum of log p(w, q) / (p(w) p(q)) over its pairs times texts per
            pair, so that the mean over texts is `value`.
        n_pairs, n_words, n_clusters: pairs of word and vector that were counted, kinds of words among them, clusters that
            they were put into.
    """

    value: float
    share: float
    shuffled: float
    difference: float
    entropy: float
    by_text: np.ndarray
    n_pairs: int
    n_words: int
    n_clusters: int


@dataclass(frozen=True)
class StateDistances:
    """How far states h_t are from the embeddings x_t of their tokens and from one another, per text.

    Attributes:
        conicity: mean cosine of a state and the mean state of the text, shape [N], from −1 to 1 (Mohankumar et al., ACL 2020,
            §3.2).
        distance: mean ‖h_t − x_t‖, shape [N]; None where states are not as wide as embeddings.
        cosine: mean cosine of h_t and x_t, shape [N], from −1 to 1; None as `distance`.
    """

    conicity: np.ndarray
    distance: np.ndarray | None
    cosine: np.ndarray | None


def mutual_information(
    model,
    tokenizer,
    texts,
    n_words: int = 1000,
    n_clusters: int = 1000,
    n_pairs: int = 200_000,
    layer: str = "states",
    *,
    seed: int = 0,
    batch_size: int = 32,
    max_length: int | None = None,
    progress: bool = False,
    bar: tqdm | None = None,
) -> MutualInformation:
    """Mutual information of words and the states that attention reads, by k-means: of the pairs (w, h_t) of the most frequent
    words, h_t is put into one of Q clusters q, and I(w; q) = Σ p(w, q) log p(w, q) / (p(w) p(q)) is taken of the counts.

    Tutek & Šnajder (RepL4NLP 2020) report such information; how they estimate it is not known. Clusters are as in Voita et
    al. (EMNLP 2019), "The Bottom-up Evolution of Representations in the Transformer", §4, there with more of both.

    Args:
        model, tokenizer: a classifier with pooling attention.
        texts: texts as the user wrote them, or as lists of words.
        n_words: most frequent kinds of words; of two as frequent the one with the lower id.
        n_clusters: Q; where there are no more different vectors, each of them is a cluster.
        n_pairs: pairs at most; of more so many are drawn.
        layer: "states", what attention reads of a token (with word_objective="concat" the embedding is in it), or "words", the
            embeddings that the encoder begins with, as a reference.
        seed: of draws, of k-means and of the shuffling.
        max_length: tokens that the model reads; as many as it can, if not given.
        progress: show a progress bar.
        bar: for a job that this is a part of, its open bar, which is moved by one for each text.

    Returns:
        The same for the same model, texts and seed on one machine, in whatever order the texts are.

    Raises:
        InputError: if the model has no attention, there is no text or no token, or an argument is out of range.
        MissingExtra: if scikit-learn is not installed.
    """
    if layer not in LAYERS:
        raise InputError(f"layer is {layer!r}; it must be one of {', '.join(LAYERS)}.")
    for name, number in (("n_words", n_words), ("n_clusters", n_clusters), ("n_pairs", n_pairs)):
        whole_number(name, number, 1)
    seed = whole_number("seed", seed, 0, 2**32 - 1)
    texts = check_texts(texts)
    ids, vectors, places = [], [], []
    wanted = layer == "words"
    with closing(_token_states(model, tokenizer, texts, wanted, batch_size, max_length, progress, bar)) as batches:
        for positions, of_batch, found in batches:
            ids.append(of_batch[found.content].numpy(force=True))
            vectors.append((found.words if wanted else found.states)[found.content].float().numpy(force=True))
            places.append(np.repeat(positions, found.content.sum(1).numpy(force=True)))
    words, states, rows = np.concatenate(ids), np.concatenate(vectors), np.concatenate(places)
    if not len(words):
        raise InputError(f"None of the {len(texts)} texts has a token that is not special; nothing to count.")
    _, of_pair, counts = np.unique(words, return_inverse=True, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:n_words]
    chosen = np.flatnonzero(np.isin(of_pair, frequent))
    generator = np.random.default_rng(seed)
    if len(chosen) > n_pairs:
        chosen = np.sort(generator.choice(chosen, n_pairs, replace=False))
    words, states, rows = words[chosen], states[chosen], rows[chosen]
    clusters = _clusters(states, n_clusters, seed)
    entropy, value, parts = plug_in_information(words, clusters)
    shuffled = plug_in_information(generator.permutation(words), clusters)[1]
    return MutualInformation(
        value=value,
        share=value / entropy if entropy else 0.0,
        shuffled=shuffled,
        difference=value - shuffled,
        entropy=entropy,
        by_text=np.bincount(rows, parts, len(texts)) * (len(texts) / len(words)),
        n_pairs=len(words),
        n_words=len(np.unique(words)),
        n_clusters=len(np.unique(clusters)),
    )


def plug_in_information(words: np.ndarray, clusters: np.ndarray) -> tuple[float, float, np.ndarray]:
    """H(w) and I(w; q) in nats by the counts of pairs, and log p(w, q) / (p(w) p(q)) of each pair, whose mean is I(w; q).

    Args:
        words, clusters: of each pair, integers, shape [N].
    """
    _, words, of_words = np.unique(words, return_inverse=True, return_counts=True)
    _, clusters, of_clusters = np.unique(clusters, return_inverse=True, return_counts=True)
    _, pairs, of_pairs = np.unique(words * len(of_clusters) + clusters, return_inverse=True, return_counts=True)
    size = len(words)
    parts = np.log(of_pairs[pairs] * size / (of_words[words] * of_clusters[clusters]))
    share = of_words / size
    return float((share * -np.log(share)).sum()), max(0.0, float(parts.mean())), parts


def state_distances(
    model,
    tokenizer,
    texts,
    *,
    batch_size: int = 32,
    max_length: int | None = None,
    progress: bool = False,
    bar: tqdm | None = None,
) -> StateDistances:
    """How far the states that attention reads are from one another, and from the embeddings of their tokens.

    Args:
        model, tokenizer, texts, batch_size, max_length, progress, bar: as in [`mutual_information`]. A text without tokens has
            0 everywhere.

    Raises:
        InputError: if the model has no attention, or there is no text.
    """
    texts = check_texts(texts)
    found = np.zeros((3, len(texts)))
    same_width = False
    with closing(_token_states(model, tokenizer, texts, True, batch_size, max_length, progress, bar)) as batches:
        for positions, _, tokens in batches:
            found[0, positions] = conicity(tokens.states, tokens.content).numpy(force=True)
            same_width = tokens.states.shape == tokens.words.shape
            if same_width:
                away = distance_to_words(tokens.states, tokens.words)
                cosine = torch.nn.functional.cosine_similarity(tokens.states.float(), tokens.words.float(), dim=-1)
                found[1, positions] = mean_over(away, tokens.content).numpy(force=True)
                found[2, positions] = mean_over(cosine, tokens.content).numpy(force=True)
    return StateDistances(found[0], *(found[1:] if same_width else (None, None)))


def _token_states(
    model, tokenizer, texts, words: bool, batch_size: int, max_length: int | None, progress: bool, bar: tqdm | None
) -> Generator[tuple[list[int], torch.Tensor, Any], None, None]:
    """Positions of texts, their input ids [B, T] and their [`TokenStates`], batch by batch."""
    check_chooser(model)
    check_attention(model)
    batch_size = whole_number("batch_size", batch_size, 1)
    if not texts:
        raise InputError("There are no texts; give a list of one or more, for example ['a good film'].")
    encoded = [text.typed_ids for text in encode_texts(tokenizer, texts, model, max_length)]

    def states(input_ids, **inputs):
        return input_ids, model.token_states(input_ids, **inputs, words=words)

    with progress_bar("token states", len(texts), progress, bar) as shown:
        for positions, (input_ids, found) in forward_batches(model, tokenizer, encoded, batch_size, states):
            check_finite(model, found.states[found.content])
            yield positions, input_ids, found
            shown.update(len(positions))


def _clusters(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """The cluster of each vector [N, H] by mini-batch k-means; where there are clusters enough, each vector has its own."""
    different, which = np.unique(vectors, axis=0, return_inverse=True)
    if len(different) <= n_clusters:
        return which
    method = import_extra("sklearn.cluster").MiniBatchKMeans(n_clusters, random_state=seed, n_init=3, batch_size=4096)
    # Several threads add in an order of their own, and a last digit can change a cluster.
    with import_extra("threadpoolctl").threadpool_limits(1):
        return method.fit_predict(vectors)
