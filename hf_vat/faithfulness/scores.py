"""Faithfulness scores as pure functions on arrays of class probabilities.

N texts, K perturbations of each (one for every number of words k, or for every share of words q), C classes:

- `full` [N, C]: the scorer's probabilities on the full texts;
- `deleted` [N, K, C]: after the top words were deleted;
- `kept` [N, K, C]: on the top words alone;
- `labels` [N]: gold class ids.

Every score comes back per example, shape [N, K], or [N] if it is a mean over perturbations; as fractions (percent is a
matter of display). The score of a data set is the mean over axis 0. A text with fewer than k words keeps its last
value. The predicted class is the argmax, the smaller id if two are equal. Negative values are kept.

There are two pieces of arithmetic, [`probability_drop`] and [`predicts`]; every score is one of them under the name and
with the perturbations of a paper, or a mean of it. All raise `InputError` if a row is no probability distribution, shapes
do not fit, or a label is not a class id.
"""

import numpy as np

from hf_vat.errors import InputError


def probability_drop(full, perturbed, name: str = "perturbed") -> np.ndarray:
    """f_c(full) - f_c(perturbed) for the class c predicted on the full text, shape [N, K], in [-1, 1].

    Args:
        perturbed: class probabilities of each text's perturbations, shape [N, K, C].
        name: of `perturbed` in errors.
    """
    full, perturbed = _pair(full, perturbed, name)
    predicted = full.argmax(-1)[:, None]
    return np.take_along_axis(full, predicted, 1) - np.take_along_axis(perturbed, predicted[:, None], 2)[..., 0]


def predicts(perturbed, labels, name: str = "perturbed") -> np.ndarray:
    """1[argmax perturbed = label], shape [N, K], in {0, 1}.

    Args:
        perturbed, name: as in [`probability_drop`].
        labels: a class id for each text, shape [N].
    """
    perturbed = _probabilities(perturbed, name, "[N, K, C]")
    return (perturbed.argmax(-1) == _class_ids(labels, perturbed)[:, None]).astype(float)


def accuracy_drop(full, deleted, labels) -> np.ndarray:
    """1[argmax full = label] - 1[argmax deleted = label], in {-1, 0, 1}; higher = the deleted words mattered more.

    The mean is Acc(full) - Acc(deleted): "AOPC" of Zhou et al. (2021), "Attending via both Fine-tuning and
    Compressing", there with k = 5 and times 100.
    """
    full, deleted = _pair(full, deleted, "deleted")
    return predicts(full[:, None], labels) - predicts(deleted, labels)


def prob_drop(full, deleted) -> np.ndarray:
    """f_c(full) - f_c(deleted) for the class c predicted on the full text, in [-1, 1]; higher = mattered more.

    "AOPC" of Chen and Ji (2020), "Learning Variational Word Masks", there with k = 5 and times 100.
    """
    return probability_drop(full, deleted, "deleted")


def posthoc_gold(kept, labels) -> np.ndarray:
    """1[argmax kept = label], in {0, 1}; higher = the kept words carry the gold label.

    The mean is the "post-hoc accuracy" of Zhou et al. (2021), there with k = 5 and times 100.
    """
    return predicts(kept, labels, "kept")


def posthoc_self(full, kept) -> np.ndarray:
    """1[argmax kept = argmax full], in {0, 1}; higher = the kept words carry the scorer's own prediction.

    The mean is the "post-hoc accuracy" of Chen and Ji (2020), there times 100. It is 1 once every word is kept.
    """
    full, kept = _pair(full, kept, "kept")
    return predicts(kept, full.argmax(-1))


def area_acc(full, deleted, labels, from_zero: bool = False) -> np.ndarray:
    """Mean over k of [`accuracy_drop`], shape [N], in [-1, 1]; higher = mattered more.

    Args:
        deleted: one entry for each k = 1..K.
        from_zero: also count k = 0; see [`area_prob`].
    """
    return _mean_over_k(accuracy_drop(full, deleted, labels), from_zero)


def area_prob(full, deleted, from_zero: bool = False) -> np.ndarray:
    """Mean over k of [`prob_drop`], shape [N], in [-1, 1]; higher = mattered more.

    Args:
        deleted: one entry for each k = 1..K.
        from_zero: also count k = 0, where nothing is deleted and the drop is 0, so divide by K + 1 instead of K: the
            area over the perturbation curve of Samek et al. (2017), "Evaluating the Visualization of What a Deep
            Neural Network Has Learned", eq. 12.
    """
    return _mean_over_k(prob_drop(full, deleted), from_zero)


def comprehensiveness(full, deleted) -> np.ndarray:
    """f_c(full) - f_c(deleted) for the class c predicted on the full text, in [-1, 1]; higher = more faithful.

    DeYoung et al. (2020), "ERASER", eq. 1. Each entry of `deleted` stands for a share q of the words: the top
    ceil(q * n) of n words are deleted, at least one.
    """
    return probability_drop(full, deleted, "deleted")


def sufficiency(full, kept) -> np.ndarray:
    """f_c(full) - f_c(kept) for the class c predicted on the full text, in [-1, 1]; lower = more faithful.

    DeYoung et al. (2020), eq. 2. Each entry of `kept` stands for a share q of the words: the top ceil(q * n) of n words
    are kept, at least one.
    """
    return probability_drop(full, kept, "kept")


def aopc_comprehensiveness(full, deleted) -> np.ndarray:
    """Mean over the shares q of [`comprehensiveness`], shape [N], in [-1, 1]; higher = more faithful.

    "AOPC" of DeYoung et al. (2020), section 4, for q = 0.01, 0.05, 0.1, 0.2, 0.5, averaged as their evaluator does:
    every share counts, also where a text is so short that two of them give the same words.
    """
    return _mean_over_k(comprehensiveness(full, deleted))


def aopc_sufficiency(full, kept) -> np.ndarray:
    """Mean over the shares q of [`sufficiency`], shape [N], in [-1, 1]; lower = more faithful.

    As [`aopc_comprehensiveness`].
    """
    return _mean_over_k(sufficiency(full, kept))


def _mean_over_k(drops: np.ndarray, from_zero: bool = False) -> np.ndarray:
    return drops.sum(1) / (drops.shape[1] + from_zero)


def _pair(full, perturbed, name: str) -> tuple[np.ndarray, np.ndarray]:
    full = _probabilities(full, "full", "[N, C]")
    perturbed = _probabilities(perturbed, name, "[N, K, C]")
    if (len(perturbed), perturbed.shape[2]) != full.shape:
        raise InputError(
            f"full has shape {full.shape} and {name} has shape {perturbed.shape}; they must be [N, C] and [N, K, C] "
            "with the same texts and classes."
        )
    return full, perturbed


def _probabilities(values, name: str, shape: str) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != shape.count(",") + 1 or 0 in values.shape:
        raise InputError(f"{name} has shape {values.shape}; it must be a non-empty array of shape {shape}.")
    # half precision leaves row sums up to about 1e-3 away from 1
    wrong = ~((values >= 0).all(-1) & (np.abs(values.sum(-1) - 1) < 2e-3))
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        raise InputError(
            f"{name}{list(place)} is {values[place].tolist()}, which is no probability distribution; give softmax "
            "probabilities, not logits or percent: every row non-negative with sum 1."
        )
    return values


def _class_ids(labels, probabilities: np.ndarray) -> np.ndarray:
    labels = np.asarray(labels)
    texts, classes = len(probabilities), probabilities.shape[-1]
    if labels.shape != (texts,) or labels.dtype.kind not in "iu":
        raise InputError(
            f"labels have shape {labels.shape} and type {labels.dtype} for {texts} texts; give one integer class id "
            "for each text."
        )
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        raise InputError(f"Label {labels[wrong[0]]} in row {wrong[0]} is no class id; allowed are 0 to {classes - 1}.")
    return labels


# Of models that say of each label whether a text has it, or give scores. Each text has a target, the label or score that is
# explained: `targets` [N].


def target_change(full, perturbed, targets) -> np.ndarray:
    """f_t(full) - f_t(perturbed) of each text's target t, shape [N, K]: in [-1, 1] for the probability of a label, any number
    for a score.

    Args:
        full: outputs on the full texts, shape [N, C]; probabilities of labels or scores.
        perturbed: those on each text's perturbations, shape [N, K, C].
        targets: ids, shape [N].
    """
    full, perturbed = np.asarray(full, dtype=float), np.asarray(perturbed, dtype=float)
    rows = np.arange(len(full))
    return (full[rows, targets][:, None] - perturbed[rows, :, targets]).astype(float)


def same_labels(labels, others) -> np.ndarray:
    """1 where a text has the same labels twice, [N, K] in {0, 1}, from flags [N, C] and [N, K, C]."""
    return (np.asarray(labels, dtype=bool)[:, None] == np.asarray(others, dtype=bool)).all(-1).astype(float)
