"""How well text vectors tell the classes apart, as numbers and as points to draw: figures 3 and 6 of the VAT paper.

scikit-learn is needed. Global random state is not touched.
"""

from typing import NamedTuple

import numpy as np

from hf_vat.errors import InputError, import_extra
from hf_vat.inference import whole_number

_NEIGHBOURS = 10


class Separation(NamedTuple):
    """How far apart the classes lie among N text vectors; higher is better for both.

    Attributes:
        silhouette: mean silhouette of the texts, in [-1, 1]: near 1 if each text is much closer to its own class than
            to the next one, 0 if they overlap, below 0 if texts lie closer to another class. A text that is alone in
            its class counts 0.
        knn_accuracy: share, in [0, 1], of texts whose class is the most frequent one among their nearest other texts (of
            two as frequent, the lower id). A text that is alone in its class counts as wrong.
        neighbours: how many were asked: 10, with fewer than 11 texts per class on average one less than these, at
            least 1.
    """

    silhouette: float
    knn_accuracy: float
    neighbours: int


def separation(vectors, labels) -> Separation:
    """Silhouette and leave-one-out nearest-neighbour accuracy of text vectors, by Euclidean distance in their own space.

    Numbers for what t-SNE plots only show. Silhouette: Rousseeuw (1987), "Silhouettes: a graphical aid", section 2.
    Nothing is random.

    Args:
        vectors: one vector for each text, shape [N, H].
        labels: class id of each text, shape [N]; at least two classes, and one of them with two texts.

    Raises:
        InputError: if shapes do not fit, a number is not finite, or there are too few classes or texts.
        MissingExtra: if scikit-learn is not installed.
    """
    vectors = _check(vectors)
    labels = np.asarray(labels)
    if labels.shape != vectors.shape[:1]:
        raise InputError(f"labels have shape {labels.shape} for {len(vectors)} vectors; give one class id per vector.")
    classes = len(np.unique(labels))
    if not 2 <= classes < len(labels):
        raise InputError(
            f"{len(labels)} texts are of {classes} classes; the classes' distance needs at least two classes, one of them "
            "with two texts. Give more texts."
        )
    silhouette = import_extra("sklearn.metrics").silhouette_score(vectors, labels)
    neighbours = max(1, min(_NEIGHBOURS, len(labels) // classes - 1))
    knn = import_extra("sklearn.neighbors").KNeighborsClassifier(neighbours).fit(vectors, labels)
    # Without vectors to predict, each text is predicted from the others.
    return Separation(float(silhouette), float(knn.score(None, labels)), neighbours)


def tsne(vectors, seed: int = 0, perplexity: float = 30) -> np.ndarray:
    """Points in the plane, shape [N, 2], that are close where text vectors are; axes have no unit, nor has distance.

    t-SNE: van der Maaten and Hinton (2008), started from the first two principal components. The same vectors and seed
    give the same points on one machine.

    Args:
        vectors: one vector for each text, shape [N, H], N of at least 3 and H of at least 2.
        seed: of the generator, from 0 to 2**32 - 1.
        perplexity: about how many neighbours each text keeps; lowered to (N - 1) / 3 for fewer texts.

    Raises:
        InputError: if there are fewer vectors or numbers in them, one is not finite, all vectors are equal, or the
            perplexity is not above 0.
        MissingExtra: if scikit-learn is not installed.
    """
    vectors = _check(vectors)
    if vectors.shape[1] < 2 or not np.ptp(vectors, axis=0).any():
        raise InputError(
            f"The {len(vectors)} vectors of {vectors.shape[1]} numbers do not span a plane; give at least two numbers "
            "each, and vectors that differ."
        )
    seed = whole_number("seed", seed, 0, 2**32 - 1)
    if not perplexity > 0:
        raise InputError(f"perplexity is {perplexity}; give a number above 0, such as 30.")
    method = import_extra("sklearn.manifold").TSNE(
        init="pca", random_state=seed, perplexity=min(perplexity, (len(vectors) - 1) / 3)
    )
    # Several threads add in an order of their own, and t-SNE turns a last digit into another picture.
    with import_extra("threadpoolctl").threadpool_limits(1):
        return method.fit_transform(vectors)


def _check(vectors) -> np.ndarray:
    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) < 3 or not vectors.shape[1]:
        raise InputError(
            f"vectors have shape {vectors.shape}; give one vector per text, shape [N, H], for at least 3 texts."
        )
    if not np.isfinite(vectors).all():
        raise InputError("vectors hold numbers that are not finite; correct the model or leave out the texts.")
    return vectors
