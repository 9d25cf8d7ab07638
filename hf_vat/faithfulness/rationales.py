"""Agreement of word scores with rationales: the words that people marked, or that were planted in the text.

Every function takes `scores`, one list of numbers for each text, and `rationales`, one list of 0/1 flags of the same
length. Top words are those of [`rank_words`]: score descending, equal scores by position. All values are fractions in
[0, 1]; higher = closer to the rationale. Plausible is not faithful: nothing here asks the model.

Texts that say nothing about a ranking get NaN, so that the caller averages over the others and counts them: texts
without a marked word everywhere, and texts of marked words only in the areas.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hf_vat.errors import InputError, import_extra

from .perturb import check_ks, rank_words


def auprc(scores, rationales) -> np.ndarray:
    """Area under the precision-recall curve of each text by trapezoids, shape [N]; NaN for no or only marked words.

    "AUPRC" of DeYoung et al. (2020), "ERASER", section 4. Equal scores enter the curve together. If all are equal, the
    area is (1 + share of marked words) / 2, which flatters; [`average_precision`] is then the share.

    Raises:
        InputError: if there is no text or no marked word, lengths do not fit, a flag is not 0 or 1, or a score is NaN.
        MissingExtra: if scikit-learn is not installed.
    """
    metrics = import_extra("sklearn.metrics")

    def area(flags, levels):
        precision, recall, _ = metrics.precision_recall_curve(flags, levels)
        return metrics.auc(recall, precision)

    return _per_text(area, scores, rationales)


def average_precision(scores, rationales) -> np.ndarray:
    """Average precision of each text, shape [N]; NaN for no or only marked words. Their mean is MAP.

    Equal scores enter together. Raises as [`auprc`].
    """
    return _per_text(import_extra("sklearn.metrics").average_precision_score, scores, rationales)


def roc_auc(scores, rationales) -> np.ndarray:
    """Probability that a marked word outranks an unmarked one (ties count half), shape [N]; NaN for no or only marked.

    A random ranking is expected to give 0.5. Raises as [`auprc`].
    """
    return _per_text(import_extra("sklearn.metrics").roc_auc_score, scores, rationales)


@dataclass(frozen=True)
class Overlap:
    """How many of the selected items (words, or spans) are marked, for N texts and K selections of each.

    Attributes:
        hits: selected items that are marked, shape [N, K].
        selected: selected items, the denominator of precision, shape [N, K].
        marked: items of the rationale, shape [N, 1]. Texts with 0 have NaN in precision, recall and F1, and count
            neither in [`macro`] nor in [`micro`].
    """

    hits: np.ndarray
    selected: np.ndarray
    marked: np.ndarray

    @property
    def precision(self) -> np.ndarray:
        """hits / selected, shape [N, K]."""
        return self._of_marked(self.hits, self.selected)

    @property
    def recall(self) -> np.ndarray:
        """hits / marked, shape [N, K]."""
        return self._of_marked(self.hits, self.marked)

    @property
    def f1(self) -> np.ndarray:
        """Harmonic mean of precision and recall, 0 if both are 0: 2 hits / (selected + marked), shape [N, K]."""
        return self._of_marked(2 * self.hits, self.selected + self.marked)

    @property
    def n_unmarked(self) -> int:
        """Number of texts without a marked item."""
        return int((self.marked == 0).sum())

    def macro(self) -> dict[str, np.ndarray]:
        """Means over texts of `precision`, `recall` and `f1`, shape [K] each."""
        return {name: np.nanmean(getattr(self, name), 0) for name in ("precision", "recall", "f1")}

    def micro(self) -> dict[str, np.ndarray]:
        """`precision`, `recall` and `f1` of counts summed over texts, shape [K] each."""
        rows = self.marked[:, 0] > 0
        hits, selected, marked = (counts[rows].sum(0) for counts in (self.hits, self.selected, self.marked))
        return {"precision": hits / selected, "recall": hits / marked, "f1": 2 * hits / (selected + marked)}

    def _of_marked(self, counts, totals) -> np.ndarray:
        return np.divide(counts, totals, out=np.full(self.hits.shape, np.nan), where=self.marked > 0)


@dataclass(frozen=True)
class AtK(Overlap):
    """[`Overlap`] of the top words with the rationale.

    Attributes:
        words: words of each text, shape [N, 1].
    """

    words: np.ndarray

    def expected(self) -> "AtK":
        """What a uniformly random ranking gives on average: exact, as all three scores are linear in the hits.

        A top word is marked with probability marked / words, so precision is that share and recall min(K, n) / n.
        """
        drawn = np.minimum(self.selected, self.words)
        return replace(self, hits=drawn * self.marked / np.maximum(self.words, 1))


def precision_recall_f1_at_k(scores, rationales, ks: Sequence[int], denominator: str = "min") -> AtK:
    """Precision, recall and F1 of the top K words of each text, for each K.

    `macro()` is the convention of Zhou et al. (2021), "Attending via both Fine-tuning and Compressing", table 5;
    `micro()` that of Rei and Søgaard (2018), "Zero-Shot Sequence Labeling".

    Args:
        ks: different numbers of top words, from 1.
        denominator: of precision in a text of n words: "min" for min(K, n), or "k" for K.

    Raises:
        InputError: as [`auprc`], or if a K or the denominator is none of those allowed.
    """
    numbers = np.array(check_ks(ks))
    if denominator not in ("min", "k"):
        raise InputError(f'There is no denominator {denominator!r}; give "min" for min(K, n) or "k" for K.')
    texts = _check(scores, rationales)
    at_k = _at_k(texts, np.minimum(numbers, _words(texts)))
    return at_k if denominator == "min" else replace(at_k, selected=np.tile(numbers, (len(texts), 1)))


def token_f1(scores, rationales, k: int | None = None) -> AtK:
    """Precision, recall and F1 of a hard rationale of the top words of each text, with one column.

    `macro()` is ERASER's "instance macro", "Token F1" of DeYoung et al. (2020). Its evaluator counts a text without a
    marked word as 0; here such texts are left out and counted in `n_unmarked`.

    Args:
        k: words in the hard rationale; if not given, the mean share of marked words (over texts that have some) times
            the words of the text, rounded, at least 1.

    Raises:
        InputError: as [`auprc`], or if `k` is not a whole number from 1.
    """
    texts = _check(scores, rationales)
    return _at_k(texts, _hard_sizes(texts, k))


def iou_f1(scores, rationales, threshold: float = 0.5, k: int | None = None) -> Overlap:
    """The hard rationale of [`token_f1`] against the rationale, both as spans: maximal runs of words; one column.

    "IOU F1" of DeYoung et al. (2020): a selected span is a hit if its words in common with some marked span are at
    least `threshold` of the words of both. ERASER's evaluator reports the F1 of macro precision and macro recall.

    Args:
        threshold: from 0.5 to 1; below, two selected spans could hit the same marked one.
        k: as in [`token_f1`].

    Raises:
        InputError: as [`token_f1`], or if the threshold is not from 0.5 to 1.
    """
    if not 0.5 <= threshold <= 1:
        raise InputError(f"threshold is {threshold!r}; give a number from 0.5 to 1.")
    texts = _check(scores, rationales)
    counts = []
    for (_, flags, ranking), (size,) in zip(texts, _hard_sizes(texts, k), strict=True):
        selected, marked = _spans(np.isin(np.arange(len(flags)), ranking[:size])), _spans(flags)
        hits = sum(any(_iou(span, other) >= threshold for other in marked) for span in selected)
        counts.append((hits, len(selected), len(marked)))
    hits, selected, marked = np.array(counts).T[..., None]
    return Overlap(hits, selected, marked)


def _check(scores, rationales) -> list[tuple[np.ndarray, np.ndarray, list[int]]]:
    """For each text its scores, its flags as booleans, and its ranking."""
    if len(scores) != len(rationales):
        raise InputError(f"There are scores of {len(scores)} texts and rationales of {len(rationales)}; give the same.")
    texts = []
    for row, (numbers, flags) in enumerate(zip(scores, rationales, strict=True)):
        flags = np.asarray(flags)
        if flags.shape != (len(numbers),) or not np.isin(flags, (0, 1)).all():
            raise InputError(
                f"rationales[{row}] is {flags.tolist()}; give one flag, 0 or 1, for each of the {len(numbers)} scores."
            )
        try:
            ranking = rank_words(numbers, range(len(numbers)))
        except InputError as error:
            raise InputError(f"Text {row}: {error}") from None
        texts.append((np.asarray(numbers), flags.astype(bool), ranking))
    if not any(flags.any() for _, flags, _ in texts):
        raise InputError(f"None of the {len(texts)} texts has a marked word; there is nothing to compare with.")
    return texts


def _per_text(metric, scores, rationales) -> np.ndarray:
    values = []
    for numbers, flags, _ in _check(scores, rationales):
        # only the order matters, and scikit-learn refuses infinities
        _, levels = np.unique(numbers, return_inverse=True)
        values.append(metric(flags, levels) if 0 < flags.sum() < len(flags) else np.nan)
    return np.array(values, dtype=float)


def _words(texts) -> np.ndarray:
    return np.array([[len(flags)] for _, flags, _ in texts])  # [N, 1]


def _at_k(texts, sizes: np.ndarray) -> AtK:
    hits = [
        [flags[ranking[:size]].sum() for size in row] for (_, flags, ranking), row in zip(texts, sizes, strict=True)
    ]
    marked = [[flags.sum()] for _, flags, _ in texts]
    return AtK(np.array(hits), sizes, np.array(marked), _words(texts))


def _hard_sizes(texts, k: int | None) -> np.ndarray:
    if k is None:
        share = np.mean([flags.mean() for _, flags, _ in texts if flags.any()])
        sizes = np.maximum(np.rint(share * _words(texts)).astype(int), 1)
    elif isinstance(k, int | np.integer) and k >= 1:
        sizes = np.full((len(texts), 1), k)
    else:
        raise InputError(
            f"k is {k!r}; give a whole number of words from 1, or None for the mean share of marked words."
        )
    return np.minimum(sizes, _words(texts))


def _spans(flags: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags, [0]])))
    return [(start, end) for start, end in edges.reshape(-1, 2).tolist()]


def _iou(span: tuple[int, int], other: tuple[int, int]) -> float:
    common = max(0, min(span[1], other[1]) - max(span[0], other[0]))
    return common / (span[1] - span[0] + other[1] - other[0] - common)
