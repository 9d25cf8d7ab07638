"""What the `evaluate` modules share: checking inputs before they are cast, ragged texts, and what the result says."""

from operator import index

import evaluate
import numpy as np
from datasets import Features, Sequence, Value

from hf_vat.errors import InputError

FEATURES = Features(
    {
        "predictions": Sequence(Value("float64")),
        "perturbed": Sequence(Sequence(Value("float64"))),
        "references": Value("int64"),
    }
)


class PerturbationMetric(evaluate.Metric):
    """A metric of class probabilities on full texts (`predictions`) and on perturbed ones (`perturbed`)."""

    def add(self, *, prediction=None, reference=None, **kwargs):
        """Add one text."""
        super().add(prediction=prediction, reference=_class_ids([reference])[0], **kwargs)

    def add_batch(self, *, predictions=None, references=None, **kwargs):
        """Add several texts."""
        inputs = {"predictions": predictions, "references": references, **kwargs}
        missing = [name for name in FEATURES if inputs.get(name) is None]
        if missing:
            raise InputError(f"Inputs are missing: {', '.join(missing)}; all of {', '.join(FEATURES)} are needed.")
        sizes = {name: len(inputs[name]) for name in FEATURES}
        if len(set(sizes.values())) > 1:
            raise InputError(f"Numbers of texts differ: {sizes}; give one entry of each for every text.")
        if not sizes["references"]:
            raise InputError("There are no texts; give at least one.")
        super().add_batch(predictions=predictions, references=_class_ids(references), **kwargs)

    def choose(self, definitions: dict, definition: str):
        """The function of a named definition."""
        if definition not in definitions:
            raise InputError(f"There is no definition {definition!r}; there are {', '.join(definitions)}.")
        return definitions[definition]

    def average(self, score, predictions, perturbed, references, ks) -> tuple[np.ndarray, dict]:
        """Mean over the texts that have words, and what the result says about them.

        Args:
            score: function of `full` [N, C], `perturbed` [N, K, C] and `labels` [N] with one row for each text.
        """
        longest = max(len(entries) for entries in perturbed)
        numbers = np.asarray(range(1, longest + 1) if ks is None else ks)
        ks = numbers.tolist()
        if (
            numbers.ndim != 1
            or longest > len(ks)
            or any(not isinstance(k, int) or k < 1 for k in ks)
            or sorted(set(ks)) != ks
        ):
            raise InputError(
                f"ks is {ks}, and a text has {longest} entries in perturbed; give one number of words from 1 for each "
                "entry, in ascending order."
            )
        sizes = np.array([len(entries) for entries in perturbed])
        scored = sizes > 0
        if not scored.any():
            raise InputError(f"None of the {len(sizes)} texts has entries in perturbed; there is nothing to score.")
        # a text without words stands in with its full prediction, so that errors name the user's rows
        filled = [
            [*entries, *[(entries or [full])[-1]] * (len(ks) - len(entries))]
            for full, entries in zip(predictions, perturbed, strict=True)
        ]
        classes = {len(row) for full, entries in zip(predictions, filled, strict=True) for row in [full, *entries]}
        if len(classes) > 1:
            raise InputError(f"Numbers of classes differ: {sorted(classes)}; give one probability for each class.")
        values = score(np.array(predictions, dtype=float), np.array(filled, dtype=float), references)
        counts = {
            "scale": "probability",
            "ks": ks,
            "n_total": len(sizes),
            "n_scored": int(scored.sum()),
            "n_skipped": {"no words": int((~scored).sum())},
            **{f"n_clamped@{k}": int((sizes[scored] <= place).sum()) for place, k in enumerate(ks)},
        }
        return values[scored].mean(0), counts


def _class_ids(references) -> list[int]:
    """Refuse what `datasets` would cast to an integer without a word: 0.9 becomes 0, and "1" becomes 1."""
    ids = []
    for row, reference in enumerate(references):
        try:
            ids.append(index(reference))
        except TypeError:
            raise InputError(
                f"Reference {reference!r} in row {row} is no class id; give integers, for example references=[0, 1]. "
                "Names become ids by [model.config.label2id[name] for name in names]."
            ) from None
    return ids
