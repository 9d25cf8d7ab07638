"""Attention and polarity scores of words over all texts: how much attention a word asks for, and which class it speaks for.

    table = attention_scores(model, tokenizer, texts, labels)
    table.top(10), type_separation(table)

Sun and Lu, "Understanding Attention for Text Classification" (ACL 2020). Attention weights of a text share 1 among its words;
the scores before the softmax can be compared between texts. Counts and types are those of the texts that are given: give the
training texts.
"""

import csv
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import nan
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from hf_vat.errors import InputError, check_texts
from hf_vat.faithfulness.rationales import roc_auc
from hf_vat.inference import check_chooser, class_ids, encode_texts, forward_batches, progress_bar, whole_number
from hf_vat.models.classes import class_names
from hf_vat.models.words import EncodedText, maximum_length, special_tokens_around
from hf_vat.writing import written_beside

from .states import check_attention, check_finite

CONTEXTS = ("average", "alone")
FIELDS = ("attention_score", "polarity_score", "attention")


class ScoredWord(NamedTuple):
    """A word of a table of [`attention_scores`].

    Attributes:
        word: in lower case.
        count: how often it occurs.
        type: the class that it is a word of, "neutral" (see `type_names` of the table), or None if it is neither; see
            [`token_type`].
        attention_score: a, before the softmax; any real number.
        polarity_scores: for two classes one number, the log-odds of class 1 if all attention were on the word; for more the
            logit of each class.
        gamma: (f⁺ − f⁻) / (f⁺ + f⁻) of its counts in texts of class 1 and 0, in [−1, 1]; for more than two classes the
            largest share of a class, in [1 / C, 1].
        attention: mean attention weight α, in [0, 1]; None if it does not occur in the texts that this is a mean over.
        counts: how often it occurs in texts of each class.
    """

    word: str
    count: int  # type: ignore[assignment]  # in the place of tuple.count
    type: str | None
    attention_score: float
    polarity_scores: tuple[float, ...]
    gamma: float
    attention: float | None
    counts: tuple[int, ...]

    def polarity_score(self, label: int | None = None) -> float:
        """For two classes the polarity score, whatever the label; for more the logit of the class minus the mean of the
        others', or the largest of these if no class is given."""
        if len(self.polarity_scores) == 1:
            return self.polarity_scores[0]
        total, others = sum(self.polarity_scores), len(self.polarity_scores) - 1
        score = max(self.polarity_scores) if label is None else self.polarity_scores[label]
        return score - (total - score) / others


@dataclass(frozen=True)
class AttentionScores:
    """A table of words, those with the highest attention score first; of two as high the more frequent, then by code points.

    Its length is the number of words, and iteration gives them in this order.

    Attributes:
        words: the rows.
        label_names: of the classes.
    """

    words: Sequence[ScoredWord]
    label_names: Sequence[str]

    def __post_init__(self) -> None:
        ordered = sorted(self.words, key=lambda row: (-row.attention_score, -row.count, row.word))
        object.__setattr__(self, "words", tuple(ordered))

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[ScoredWord]:
        return iter(self.words)

    @property
    def type_names(self) -> list[str]:
        """The names of types: of polar words those of their classes, of two classes class 1 first, and then "neutral"; or
        "no class", if a class is called "neutral", or "no class 2" and so on, if one is called that too."""
        return _type_names(self.label_names)

    def top(self, n: int) -> list[ScoredWord]:
        """The n words with the highest attention scores, or all if there are fewer.

        Raises:
            InputError: if n is no whole number from 1.
        """
        return list(self.words[: whole_number("n", n, 1)])

    def by_type(self, field: str) -> dict[str, list[float]]:
        """A number of the words of each type that has any, by the name of the type: what the figures of the paper show.

        Args:
            field: "attention_score", "polarity_score" or "attention", the mean weight. Of more than two classes the
                polarity score is that of [`ScoredWord.polarity_score`] for the word's class, and for neutral words the
                largest.

        Raises:
            InputError: if there is no such field.
        """
        if field not in FIELDS:
            raise InputError(f"field is {field!r}; choose one of {', '.join(map(repr, FIELDS))}.")
        found: dict[str, list[float]] = {name: [] for name in self.type_names}
        for row in self.words:
            if row.type is None:
                continue
            value = row.polarity_score(self.label_of(row)) if field == "polarity_score" else getattr(row, field)
            if value is not None:
                found[row.type].append(value)
        return {name: values for name, values in found.items() if values}

    def label_of(self, row: ScoredWord) -> int | None:
        """The id of the class that a word is polar for; None for other words."""
        return None if row.type in (None, self.type_names[-1]) else list(self.label_names).index(row.type)

    def to_csv(self, path: str | PathLike) -> None:
        """Write a row for each word, quoted as RFC 4180 says, as UTF-8; missing folders are made.

        Columns: word, count, type, attention_score, polarity_score (of more than two classes one for each,
        `polarity_score_NAME`), gamma, attention, and for each class `count_NAME`. Numbers keep all their digits; a word
        without a type, or without attention, has an empty cell. Halves of characters are written as \\ud800.
        """
        path, names = Path(path), list(self.label_names)
        of_class = [f"polarity_score_{name}" for name in names] if len(names) > 2 else ["polarity_score"]
        header = ["word", "count", "type", "attention_score", *of_class, "gamma", "attention"]
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            written_beside(path) as partial,
            open(partial, "w", encoding="utf-8", errors="backslashreplace", newline="") as file,
        ):
            writer = csv.writer(file)
            writer.writerow([*header, *(f"count_{name}" for name in names)])
            for word, count, kind, score, polarity, gamma, attention, counts in self.words:
                writer.writerow([word, count, kind, score, *polarity, gamma, attention, *counts])


class TypeMeans(NamedTuple):
    """Words of a type: how many, and of their scores mean and standard deviation (of a sample; NaN for a single word)."""

    words: int
    attention_score: float
    attention_score_sd: float
    polarity_score: float
    polarity_score_sd: float


@dataclass(frozen=True)
class TypeSeparation:
    """How well the scores tell types of words apart; a number is NaN where a type that it needs has no word.

    Attributes:
        attention_auc: probability that a polar word has a higher attention score than a neutral one, in [0, 1]; ties count
            half. 0.5 for scores that say nothing.
        polarity_auc: the same of polarity scores of words of class 1 and of class 0; of more than two classes of the
            words of a class and of all other classes, as a mean over classes.
        sign_agreement: share of polar words whose polarity score has the sign of γ; of more than two classes whose largest
            logit is that of their class.
        means: of each type that has a word.
    """

    attention_auc: float
    polarity_auc: float
    sign_agreement: float
    means: dict[str, TypeMeans]


def token_type(counts: Sequence[int]) -> int | None:
    """The type of a word by its counts in the training texts of each class: the id of a class, the number of classes for
    neutral words, or None for all others.

    A word is of a class if that has more than 3/4 of its occurrences, and more than 5; of two classes this is
    |γ| > 0.5 of Sun & Lu (ACL 2020, §5.2), without an upper limit as in their code: their open interval would leave out
    words of a single class, γ = ±1. A word is neutral if the largest share is less than 0.05 above 1 / C, for two classes
    |γ| < 0.1, and its largest and smallest count differ by less than 5. The paper gives no rule for more than two classes.
    """
    total, most = sum(counts), max(counts)
    if 4 * most > 3 * total and most > 5:
        return list(counts).index(most)
    even = 20 * (len(counts) * most - total) < len(counts) * total  # in whole numbers, so exact
    return len(counts) if even and most - min(counts) < 5 else None


def attention_scores(
    model,
    tokenizer,
    texts: Sequence[str | Sequence[str]],
    labels: Sequence[int | str],
    *,
    context: str = "average",
    attention_texts: Sequence[str | Sequence[str]] | None = None,
    min_count: int = 1,
    batch_size: int = 32,
    max_length: int | None = None,
    progress: bool = False,
    bar: tqdm | None = None,
) -> AttentionScores:
    """Attention and polarity scores of the words of texts, for any classifier of hf_vat with attention pooling.

    The attention score a of a token is what the softmax is taken of; that of a word in several pieces is log Σ exp a, so that
    exp(a) is its share of the attention, as of any word. The polarity score is what the head says of the token's state: the
    prediction if all attention were on it; that of a word in pieces is their mean, weighted by attention. With a linear head
    the logits of a text are Σ α · s over its words, otherwise not. Words are those of [`hf_vat.models.words`], in lower case;
    those that the model does not see, as a text is cut, do not count.

    Args:
        model: a classifier with `pooling="attention"`.
        tokenizer: its tokenizer.
        texts: the training texts, from which words, counts and types are; a text that is split into words already is a list
            of words.
        labels: the class of each text, by id or name.
        context: "average" for the mean over a word's occurrences ("local" in the paper's appendix), or "alone" for the word by
            itself as a text ("global"). Where the encoder sees each token for itself ("embedding", "affine") both are the
            same.
        attention_texts: texts that the attention weight is a mean over, such as test texts; by default `texts`.
        min_count: how often a word must occur in `texts`.
        batch_size: the largest batch that the model is given.
        max_length: tokens to keep, special ones included; by default what tokenizer and model allow.
        progress: show a progress bar.
        bar: for jobs that this is a part of, their open progress bar, which is moved by one for each model input.

    Raises:
        InputError: if an argument cannot be used, the model has no attention or gives numbers that are not finite, or no word occurs
            often enough.
    """
    texts = check_texts(texts)
    check_attention(model)
    if context not in CONTEXTS:
        raise InputError(f"context is {context!r}; choose one of {', '.join(map(repr, CONTEXTS))}.")
    batch_size, min_count = whole_number("batch_size", batch_size, 1), whole_number("min_count", min_count, 1)
    if len(labels) != len(texts):
        raise InputError(f"labels has {len(labels)} entries for {len(texts)} texts; give one for each text.")
    if any(label is None for label in labels):
        raise InputError("Some labels are None; types are counted by class, so leave out texts without one.")
    check_chooser(model)
    names = class_names(model.config)
    of_texts = np.array(class_ids("labels", labels, names), dtype=np.int64)
    others = [] if attention_texts is None else check_texts(attention_texts)
    if not texts or (attention_texts is not None and not others):
        raise InputError("There are no texts; give one or more.")
    encoded = encode_texts(tokenizer, texts, model, max_length)
    also_encoded = encode_texts(tokenizer, others, model, max_length)

    run = _Run(model, tokenizer, batch_size)
    with progress_bar("attention scores", len(encoded) + len(also_encoded), progress, bar) as run.bar:
        found = run.occurrences(encoded)
        if not len(found.words):
            raise InputError(f"None of the {len(texts)} texts has a word that the model sees; give others.")
        if context == "alone":
            found = run.alone(found)
        weighted = run.occurrences(also_encoded) if also_encoded else found

    vocabulary, word = np.unique(found.words, return_inverse=True)
    total = np.bincount(word)
    counts = np.zeros((len(vocabulary), len(names)), dtype=np.int64)
    np.add.at(counts, (word, of_texts[found.texts]), 1)
    scores = np.bincount(word, found.scores) / total
    polarity = np.stack([np.bincount(word, column) / total for column in found.polarity.T], 1)
    attention = _means(vocabulary, weighted)
    rows = [
        ScoredWord(
            vocabulary[place],
            int(total[place]),
            _type_name(token_type(counts[place].tolist()), names),
            float(scores[place]),
            tuple(polarity[place].tolist()),
            _gamma(counts[place].tolist()),
            attention[place],
            tuple(counts[place].tolist()),
        )
        for place in range(len(vocabulary))
        if total[place] >= min_count
    ]
    if not rows:
        raise InputError(
            f"No word occurs at least {min_count} times in the texts ({len(vocabulary)} different words in all); give more "
            "texts or a smaller min_count."
        )
    return AttentionScores(rows, names)


def type_separation(table: AttentionScores) -> TypeSeparation:
    """How well attention scores tell polar words from neutral ones, and polarity scores the classes of polar words apart.

    What Sun & Lu (ACL 2020, §5.2) show in figures, as numbers.
    """
    attention = table.by_type("attention_score")
    neutral = table.type_names[-1]
    polar = [(label, row) for row in table if (label := table.label_of(row)) is not None]
    of_polar = [row.attention_score for _, row in polar]
    labels = range(1, 2) if len(table.label_names) == 2 else range(len(table.label_names))
    areas = [
        _auc(
            [row.polarity_score(label) for own, row in polar if own == label],
            [row.polarity_score(label) for own, row in polar if own != label],
        )
        for label in labels
    ]
    agree = [_largest(row) == label for label, row in polar]
    means = {}
    for name, polarity in table.by_type("polarity_score").items():
        moments = [number for values in (attention[name], polarity) for number in _mean_and_sd(values)]
        means[name] = TypeMeans(len(polarity), *moments)
    return TypeSeparation(
        attention_auc=_auc(of_polar, attention.get(neutral, [])),
        polarity_auc=float(np.mean(areas)),
        sign_agreement=float(np.mean(agree)) if agree else nan,
        means=means,
    )


# Types


def _type_names(label_names: Sequence[str]) -> list[str]:
    names = reversed(label_names) if len(label_names) == 2 else label_names
    free = ("neutral", "no class", *(f"no class {number}" for number in range(2, len(label_names) + 1)))
    return [*names, next(name for name in free if name not in label_names)]


def _type_name(kind: int | None, label_names: Sequence[str]) -> str | None:
    return None if kind is None else [*label_names, _type_names(label_names)[-1]][kind]


def _gamma(counts: list[int]) -> float:
    return (counts[1] - counts[0]) / sum(counts) if len(counts) == 2 else max(counts) / sum(counts)


def _largest(row: ScoredWord) -> int:
    scores = row.polarity_scores
    return int(scores[0] > 0) if len(scores) == 1 else scores.index(max(scores))


def _auc(higher: list[float], lower: list[float]) -> float:
    if not higher or not lower:
        return nan
    return float(roc_auc([[*higher, *lower]], [[1] * len(higher) + [0] * len(lower)])[0])


def _mean_and_sd(values: list[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else nan


# What the model says


@dataclass
class _Occurrences:
    """Words of texts with what the model says of each.

    Attributes:
        words: in lower case, [N].
        texts: positions of their texts, [N].
        forms: the tokens that each is written with, N tuples.
        scores: attention scores a, [N].
        polarity: polarity scores, [N, 1] for two classes, else [N, C].
        attention: weights α, [N].
    """

    words: np.ndarray
    texts: np.ndarray
    forms: list[tuple[int, ...]]
    scores: np.ndarray
    polarity: np.ndarray
    attention: np.ndarray


class _Pooled(NamedTuple):
    scores: np.ndarray
    polarity: np.ndarray
    attention: np.ndarray


class _Run:
    """Asks a model about texts, in batches."""

    bar: tqdm

    def __init__(self, model, tokenizer, batch_size: int):
        self.model, self.tokenizer, self.batch_size = model, tokenizer, batch_size

    def occurrences(self, texts: list[EncodedText]) -> _Occurrences:
        """Every word that the model sees, in an order that does not depend on that of the texts."""
        words: list[str] = []
        places: list[int] = []
        forms: list[tuple[int, ...]] = []
        pooled = []
        owners = [text.token_words for text in texts]
        for positions, of_batch in self._pool([text.typed_ids for text in texts], owners):
            pooled.append(of_batch)
            for position in positions:
                text = texts[position]
                tokens: dict[int, list[int]] = {}
                for token, covered in zip(text.input_ids, text.token_words, strict=True):
                    for word in covered:
                        tokens.setdefault(word, []).append(token)
                words += [text.words[word].text.lower() for word in tokens]
                forms += map(tuple, tokens.values())
                places += [position] * len(tokens)
        return _Occurrences(np.array(words, dtype=object), np.array(places, dtype=np.int64), forms, *_joined(pooled))

    def alone(self, found: _Occurrences) -> _Occurrences:
        """The same words, each with the scores of its tokens as a text."""
        prefix, suffix = special_tokens_around(self.tokenizer)
        room = maximum_length(self.model, self.tokenizer) - len(prefix) - len(suffix)
        forms = sorted(set(found.forms))
        rows = [[*prefix, *form[:room], *suffix] for form in forms]
        outside: list[tuple[int, ...]] = [()]
        owners = [[*outside * len(prefix), *[(0,)] * min(len(form), room), *outside * len(suffix)] for form in forms]
        self.bar.total = (self.bar.total or 0) + len(rows)
        order, pooled = [], []
        for positions, of_batch in self._pool(rows, owners):
            order += positions
            pooled.append(of_batch)
        scores, polarity, _ = _joined(pooled)
        place = {forms[position]: number for number, position in enumerate(order)}
        picked = np.array([place[form] for form in found.forms])
        return _Occurrences(found.words, found.texts, found.forms, scores[picked], polarity[picked], found.attention)

    def _pool(self, rows: list[list[int]], owners: list[list[tuple[int, ...]]]):
        """For each batch the positions of its texts, and the scores of their words in the order of their first tokens.

        Args:
            rows: token ids.
            owners: for each token the words that it is a part of.
        """
        with closing(
            forward_batches(self.model, self.tokenizer, rows, self.batch_size, self.model.token_states)
        ) as batches:
            for positions, found in batches:
                with torch.inference_mode():
                    logits = self.model.logits_of(found.states).double()  # [B, T, C]
                check_finite(self.model, logits[found.content], found.scores)
                polarity = logits[..., 1:] - logits[..., :1] if logits.shape[-1] == 2 else logits
                of_tokens = (found.scores.double(), polarity, found.attention.double())
                yield positions, _of_words([owners[position] for position in positions], *of_tokens)
                self.bar.update(len(positions))


def _of_words(
    owners: list[list[tuple[int, ...]]], scores: torch.Tensor, polarity: torch.Tensor, attention: torch.Tensor
) -> _Pooled:
    """Scores of words from those of their tokens; a token of several words gives each an equal share of its attention."""
    slots: dict[tuple[int, int], int] = {}
    rows, tokens, places, sharing = [], [], [], []
    for row, of_text in enumerate(owners):
        for token, covered in enumerate(of_text):
            for number in covered:
                rows.append(row)
                tokens.append(token)
                places.append(slots.setdefault((row, number), len(slots)))
                sharing.append(len(covered))
    word = np.array(places, dtype=np.int64)
    share = np.array(sharing, dtype=np.float64)
    a, s, alpha = (values.cpu().numpy()[rows, tokens] for values in (scores, polarity, attention))  # [N], [N, K], [N]
    a = a - np.log(share)
    peaks = np.full(len(slots), -np.inf)
    np.maximum.at(peaks, word, a)
    mass = np.bincount(word, np.exp(a - peaks[word]), len(slots))
    a_of_words = peaks + np.log(mass)
    weights = np.exp(a - a_of_words[word])
    return _Pooled(
        a_of_words,
        np.stack([np.bincount(word, weights * column, len(slots)) for column in s.T], 1),
        np.bincount(word, alpha / share, len(slots)),
    )


def _joined(pooled: list[_Pooled]) -> _Pooled:
    return _Pooled(*(np.concatenate(parts) for parts in zip(*pooled, strict=True)))


def _means(vocabulary: np.ndarray, found: _Occurrences) -> list[float | None]:
    """Mean attention of each word of the vocabulary; None for those that do not occur."""
    place = {word: number for number, word in enumerate(vocabulary)}
    known = np.array([place.get(word, -1) for word in found.words], dtype=np.int64)
    kept = known >= 0
    total = np.bincount(known[kept], minlength=len(vocabulary))
    sums = np.bincount(known[kept], found.attention[kept], len(vocabulary))
    return [float(one / number) if number else None for one, number in zip(sums, total, strict=True)]
