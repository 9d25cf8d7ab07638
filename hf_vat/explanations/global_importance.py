"""Which words matter to a classifier over all texts: from its word mask, or from the explanations of many texts.

One rule for what counts as the same word: the words of [`hf_vat.models.words`], in lower case. Sums are exactly rounded,
so the order of the texts does not matter.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import fsum, sqrt
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import torch

from hf_vat.errors import InputError, check_texts
from hf_vat.faithfulness.perturb import rank_words
from hf_vat.inference import check_classifier, check_tokenizer, forward_batches, whole_number
from hf_vat.models.words import encode_words, maximum_length, special_tokens_around
from hf_vat.writing import written_beside

from .explanation import Explanation

AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "mean": lambda scores: fsum(scores) / len(scores),
    "sum": fsum,
    "abs_sum": lambda scores: fsum(map(abs, scores)),
    "sqrt_abs": lambda scores: sqrt(fsum(map(abs, scores))),
}
_SUBWORDS: dict[str, Callable[[list[float]], float]] = {"mean": AGGREGATES["mean"], "max": max}
_TEXTS = 1024  # texts that are tokenized at a time; bounds what is in memory
_JOINT = 16  # vocabulary entries that are also read side by side, to see whether they influence each other


class WordImportance(NamedTuple):
    """A word, how much it matters, how often it occurs, and in how many texts."""

    word: str
    importance: float
    count: int  # type: ignore[assignment]  # in the place of tuple.count
    texts: int


@dataclass(frozen=True)
class GlobalImportance:
    """A table of words, most important first; of two as important the more frequent, then by code points.

    Its length is the number of words, and iteration gives them in this order.
    """

    words: Sequence[WordImportance]

    def __post_init__(self) -> None:
        ordered = sorted(self.words, key=lambda row: (-row.importance, -row.count, row.word))
        object.__setattr__(self, "words", tuple(ordered))

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[WordImportance]:
        return iter(self.words)

    def top(self, n: int) -> list[WordImportance]:
        """The n most important words, or all if there are fewer.

        Raises:
            InputError: if n is no whole number from 1.
        """
        return list(self.words[: whole_number("n", n, 1)])

    def to_csv(self, path: str | PathLike) -> None:
        """Write columns word, importance, count and texts, quoted as RFC 4180 says, as UTF-8; missing folders are made.

        Numbers keep all their digits. Halves of characters, which UTF-8 does not have, are written as \\ud800.
        """
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with (
            written_beside(path) as partial,
            open(partial, "w", encoding="utf-8", errors="backslashreplace", newline="") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(WordImportance._fields)
            writer.writerows(self.words)


class SubmodularPick(NamedTuple):
    """Positions of the picked texts, in the order of picking, and after each pick the share of the importance of all
    words that is covered, in [0, 1]; it never falls."""

    positions: list[int]
    coverage: list[float]


def word_importance(
    explanations: Iterable[Explanation], aggregate: str = "abs_sum", min_count: int = 1
) -> GlobalImportance:
    """Global importance of words from explanations of single texts: "post-hoc global importance" in the VMASK paper.

    Chen and Ji (EMNLP 2020, section 5.2 and table 6) sum a word's LIME scores and leave open what becomes of their signs.

    Words that the model did not see are left out.

    Args:
        explanations: of one method, such as those of [`explain`] or [`load_explanations`].
        aggregate: what becomes of a word's scores at all its occurrences:

            - "abs_sum": the sum of their magnitudes, at least 0;
            - "sqrt_abs": its square root, the importance in SP-LIME (Ribeiro et al. 2016, section 4);
            - "sum": their sum, signed. Scores speak for the class that each text explains, by default the predicted one;
            - "mean": their mean, which does not grow with the word's frequency; for scores of masks the mean probability.
        min_count: how often a word must occur.

    Raises:
        InputError: if there are no explanations, they are of several methods, an argument cannot be used, or no word
            occurs often enough.
    """
    if aggregate not in AGGREGATES:
        raise InputError(f"aggregate is {aggregate!r}; choose one of {', '.join(map(repr, AGGREGATES))}.")
    scores: dict[str, list[float]] = defaultdict(list)
    texts: Counter[str] = Counter()
    for explanation in _check_explanations(explanations):
        found = _seen_scores(explanation)
        for word, score in found:
            scores[word].append(score)
        texts.update({word for word, _ in found})
    rows = (
        WordImportance(word, AGGREGATES[aggregate](values), len(values), texts[word]) for word, values in scores.items()
    )
    return _table(rows, min_count, least=1)


def mask_importance(
    model,
    tokenizer,
    texts: Sequence[str | Sequence[str]],
    subwords: str = "mean",
    min_count: int = 1,
    batch_size: int = 256,
) -> GlobalImportance:
    """Global importance of the words of texts from a model's word mask: the mean over a word's occurrences.

    The importance is the probability that the word is kept, in [0, 1] (VMASK: Chen and Ji, EMNLP 2020, section 5.1.2; for
    IBA it is λ). The mask looks at each vocabulary entry for itself, so only the entries go through the model, and no
    text is cut. A word as written, "Good" or "good", has the mean or the largest value of its sub-words. Words without a
    token, or with nothing but special ones such as [UNK], are left out.

    Args:
        model: a model whose output has `token_mask`, such as [`BertWithVMask`](hf_vat.BertWithVMask).
        tokenizer: its tokenizer.
        texts: where words and their counts come from, such as the training texts; a text that is split into words
            already is a list of words.
        subwords: "mean" or "max".
        min_count: how often a word must occur. 1 as in the paper; from 5 on, the table lacks words whose mask has hardly
            been trained.
        batch_size: the largest batch that the model is given, of single vocabulary entries.

    Raises:
        InputError: if an argument cannot be used, the model has no word mask, its mask depends on the context (then
            average over occurrences: `word_importance(explain(model, tokenizer, texts, "mask"), "mean")`), or no word
            occurs often enough.
    """
    if subwords not in _SUBWORDS:
        raise InputError(f"subwords is {subwords!r}; choose one of {', '.join(map(repr, _SUBWORDS))}.")
    check_tokenizer(tokenizer)
    check_classifier(model)
    special = set(tokenizer.all_special_ids)
    forms: dict[str, Counter[tuple[int, ...]]] = defaultdict(Counter)  # for each word the tokens it is written with
    held: Counter[str] = Counter()
    for text in _tokenized(tokenizer, texts):
        pieces: list[list[int]] = [[] for _ in text.words]
        for token, positions in zip(text.input_ids, text.token_words, strict=True):
            for position in positions:
                pieces[position].append(token)
        found = [
            (word.text.lower(), tuple(ids))
            for word, ids in zip(text.words, pieces, strict=True)
            if not special.issuperset(ids)
        ]
        for word, ids in found:
            forms[word][ids] += 1
        held.update({word for word, _ in found})
    entries = sorted({token for tokens in forms.values() for ids in tokens for token in ids})
    kept = dict(zip(entries, _entry_masks(model, tokenizer, entries, batch_size), strict=True))
    rows = []
    for word, tokens in forms.items():
        count = tokens.total()
        parts = [number * _SUBWORDS[subwords]([kept[token] for token in ids]) for ids, number in tokens.items()]
        rows.append(WordImportance(word, fsum(parts) / count, count, held[word]))
    return _table(rows, min_count, least=1)


def vocabulary_importance(
    model, tokenizer, texts: Sequence[str | Sequence[str]] = (), min_count: int = 0, batch_size: int = 256
) -> GlobalImportance:
    """Global importance of each entry of the vocabulary but special tokens, from a model's word mask.

    As [`mask_importance`], but the rows are tokens as the vocabulary writes them ("##able"), also those that no text has.
    For a word-level tokenizer these are its words.

    Args:
        texts: where entries are counted, such as the training texts; without any, all counts are 0.
        min_count: how often an entry must occur there.

    Raises:
        InputError: as [`mask_importance`].
    """
    special = set(tokenizer.all_special_ids)
    names = enumerate(tokenizer.convert_ids_to_tokens(range(len(tokenizer))))
    entries = {token: name for token, name in names if name is not None and token not in special}
    counts: Counter[int] = Counter()
    held: Counter[int] = Counter()
    for text in _tokenized(tokenizer, texts):
        counts.update(text.input_ids)
        held.update(set(text.input_ids))
    masks = _entry_masks(model, tokenizer, list(entries), batch_size)
    rows = (
        WordImportance(name, mask, counts[token], held[token])
        for (token, name), mask in zip(entries.items(), masks, strict=True)
    )
    return _table(rows, min_count, least=0)


def submodular_pick(explanations: Sequence[Explanation], n: int, top_k: int = 10) -> SubmodularPick:
    """Pick n texts whose explanations show the important words between them: SP-LIME (Ribeiro et al. 2016, algorithm 2).

    A text covers the words among its `top_k` largest magnitudes, and a word weighs the square root of the sum of these
    magnitudes. Each step takes the text that adds most weight to what is covered; of equal ones the first, also if none
    adds anything. The result covers at least 1 - 1/e as much as the best n texts.

    Args:
        explanations: of one method.
        n: how many texts to pick.
        top_k: words that count as a text's explanation; 10 in the authors' code.

    Raises:
        InputError: if there are no explanations, they are of several methods, or a number is out of range.
    """
    explanations = list(_check_explanations(explanations))
    n, top_k = whole_number("n", n, 1, len(explanations)), whole_number("top_k", top_k, 1)
    covers, magnitudes = [], defaultdict(list)
    for explanation in explanations:
        found = [(word, abs(score)) for word, score in _seen_scores(explanation)]
        best = rank_words([magnitude for _, magnitude in found], range(len(found)))[:top_k]
        shown = [found[place] for place in best if found[place][1] > 0]
        for word, magnitude in shown:
            magnitudes[word].append(magnitude)
        covers.append({word for word, _ in shown})
    weights = {word: AGGREGATES["sqrt_abs"](values) for word, values in magnitudes.items()}
    total = fsum(weights.values())

    positions, coverage = [], []
    covered: set[str] = set()
    for _ in range(n):
        gains = [fsum(weights[word] for word in words - covered) for words in covers]
        left = [position for position in range(len(covers)) if position not in positions]
        positions.append(max(left, key=gains.__getitem__))
        covered |= covers[positions[-1]]
        coverage.append(fsum(weights[word] for word in covered) / total if total else 1.0)
    return SubmodularPick(positions, coverage)


def _check_explanations(explanations: Iterable[Explanation]) -> Iterator[Explanation]:
    method = None
    for position, explanation in enumerate(explanations):
        if not isinstance(explanation, Explanation):
            raise InputError(
                f"explanations[{position}] is of type {type(explanation).__name__}; give a list of what explain or "
                "load_explanations returns."
            )
        method = explanation.method if method is None else method
        if explanation.method != method:
            raise InputError(
                f"explanations[{position}] is of the method {explanation.method!r}, others are of {method!r}, whose "
                "scores have another unit; give those of one method."
            )
        yield explanation
    if method is None:
        raise InputError("There are no explanations; give those of one text or more.")


def _seen_scores(explanation: Explanation) -> list[tuple[str, float]]:
    return [
        (word.lower(), score)
        for word, score, seen in zip(explanation.words, explanation.check_scores(), explanation.seen, strict=True)
        if seen
    ]


def _table(rows: Iterable[WordImportance], min_count: int, least: int) -> GlobalImportance:
    min_count = whole_number("min_count", min_count, least)
    rows = list(rows)
    frequent = [row for row in rows if row.count >= min_count]
    if not frequent:
        raise InputError(
            f"No word occurs at least {min_count} times in the texts ({len(rows)} different words in all); give more "
            "texts or a smaller min_count."
        )
    return GlobalImportance(frequent)


def _tokenized(tokenizer, texts):
    """Texts of any length as [`EncodedText`], some at a time."""
    texts = check_texts(texts)
    for start in range(0, len(texts), _TEXTS):
        yield from encode_words(tokenizer, texts[start : start + _TEXTS], 2**31 - 1)


def _entry_masks(model, tokenizer, entries: list[int], batch_size: int) -> list[float]:
    """The mask of each vocabulary entry, read as a text of this one token.

    Raises:
        InputError: if the model has no mask, or that of an entry depends on the entries beside it.
    """
    batch_size = whole_number("batch_size", batch_size, 1)
    if not entries:
        return []
    prefix, suffix = special_tokens_around(tokenizer)
    joint = (entries * 2)[: min(_JOINT, maximum_length(model, tokenizer) - len(prefix) - len(suffix))]
    rows = [[*prefix, *tokens, *suffix] for tokens in [joint, *([entry] for entry in entries)]]
    masks: list[list[float]] = [[]] * len(rows)
    # Closed explicitly: an exception below would otherwise leave the generator, and with it eval mode, open.
    with closing(forward_batches(model, tokenizer, rows, batch_size)) as batches:
        for positions, output in batches:
            values = getattr(output, "token_mask", None)
            if values is None:
                raise InputError(
                    f"{type(model).__name__} gives no token_mask; use a model with a word mask, or explanations: "
                    "word_importance(explain(...))."
                )
            for position, row in zip(positions, values.float().tolist(), strict=True):
                masks[position] = row[len(prefix) : len(rows[position]) - len(suffix)]
    together, alone = masks[0], [row[0] for row in masks[1:]]
    differences = [abs(one - other) for one, other in zip(together, alone * 2, strict=False)]
    # What rounding may do to a score; 0.0001 in float32, 0.03 in bfloat16.
    types = {torch.float32, *(weight.dtype for weight in model.parameters() if weight.is_floating_point())}
    precision = max(torch.finfo(one).eps for one in types)
    if max(differences) > 1e-4 + 4 * precision:
        raise InputError(
            f"The word mask of {type(model).__name__} depends on a word's context or place (its values differ by "
            f"{max(differences):.2g}), so a word has none of its own; average over occurrences: "
            'word_importance(explain(model, tokenizer, texts, "mask"), "mean").'
        )
    return alone
