"""What the `evaluate` modules share: inputs are checked before `datasets` casts them, and every text is counted."""

import re
from inspect import signature
from pathlib import Path

import evaluate
from datasets import Features, Sequence, Value

from hf_vat.errors import InputError, check_list
from hf_vat.faithfulness import Overlap, is_constant

CLASS_ID = Value("int64")
NUMBERS = Sequence(Value("float64"))  # one for each class, or for each word
ENTRIES = Sequence(NUMBERS)  # one for each number, or share, of the top words
FLAGS = Sequence(Value("bool"))

# Of all modules; each name means the same in all of them.
INPUTS = {"predictions": NUMBERS, "perturbed": ENTRIES, "kept": ENTRIES, "references": CLASS_ID}

_SKIPPED = {
    "no words": lambda entry: not entry,
    "no marked words": lambda flags: not any(flags),
    "only marked words": all,
}


class TextMetric(evaluate.Metric):
    """A metric whose inputs hold one entry for each text: lists, arrays or tensors.

    They are the arguments of `_compute` that have a name in `inputs`. What the metric says of itself is in the card.
    """

    inputs = INPUTS

    def _info(self):
        name = type(self).__module__.rpartition(".")[2]  # that of its file and folder
        card = (Path(__file__).parent / name / "README.md").read_text(encoding="utf-8")
        sections = dict(re.findall(r"^## (.+?)\n\n(.+?)\n(?=^## |\Z)", card, re.MULTILINE | re.DOTALL))
        arguments = signature(self._compute).parameters
        return evaluate.MetricInfo(
            description=sections["Metric description"],
            citation=sections["Citation"].removeprefix("```bibtex\n").removesuffix("```"),
            inputs_description="\n".join(sections[title] for title in ("How to use", "Inputs", "Output")),
            features=Features({name: feature for name, feature in self.inputs.items() if name in arguments}),
        )

    def compute(self, *, predictions=None, references=None, **kwargs):
        """As in `evaluate`. Inputs that are another module's are left to it: `evaluate.combine` hands all to each."""
        mine = {name: value for name, value in kwargs.items() if name in self.features or name not in INPUTS}
        inputs = {"predictions": predictions, "references": references, **mine}
        if self.writer is None or any(inputs.get(name) is not None for name in self.features):  # else `add` was called
            self._check_given(inputs)
        return super().compute(predictions=predictions, references=references, **mine)

    def _check_given(self, inputs: dict) -> None:
        missing = [name for name in self.features if inputs.get(name) is None]
        if missing:
            raise InputError(f"Inputs are missing: {', '.join(missing)}; all of {', '.join(self.features)} are needed.")

    def add(self, *, prediction=None, reference=None, **kwargs):
        """Add one text."""
        inputs = {"predictions": prediction, "references": reference, **kwargs}
        self.add_batch(**{name: None if entry is None else [entry] for name, entry in inputs.items()})

    def add_batch(self, *, predictions=None, references=None, **kwargs):
        """Add several texts."""
        inputs = {"predictions": predictions, "references": references, **kwargs}
        self._check_given(inputs)
        sizes = {name: len(check_list(name, inputs[name])) for name in self.features}
        if len(set(sizes.values())) > 1:
            raise InputError(f"Numbers of texts differ: {sizes}; give one entry of each for every text.")
        if not sizes["predictions"]:
            raise InputError("There are no texts; give at least one.")
        columns = {
            name: [_check(_plain(entry), feature, f"{name}[{row}]") for row, entry in enumerate(inputs[name])]
            for name, feature in self.features.items()
        }
        self.check_texts(**columns)
        super().add_batch(**{**inputs, **columns})

    def check_texts(self, **columns):
        """Refuse entries of a text that do not fit together."""


class WordMetric(TextMetric):
    """A metric of `predictions` and `references` that hold one entry for each word of a text."""

    inputs = INPUTS | {"references": FLAGS}

    def check_texts(self, predictions, references):
        """Refuse a text whose entries are not of the same words."""
        for row, (numbers, others) in enumerate(zip(predictions, references, strict=True)):
            if len(numbers) != len(others):
                raise InputError(
                    f"predictions[{row}] has {len(numbers)} words and references[{row}] has {len(others)}; give one "
                    "entry for each word of the same text."
                )


def choose(definitions: dict, definition: str):
    """The function of a named definition."""
    if definition not in definitions:
        raise InputError(f"There is no definition {definition!r}; there are {', '.join(definitions)}.")
    return definitions[definition]


def averaged(overlap: Overlap, average: str, prefix: str = "") -> dict[str, float]:
    """Precision, recall and F1 of an [`Overlap`](hf_vat.faithfulness.Overlap) with one column."""
    if average not in ("macro", "micro"):
        raise InputError(f'There is no average {average!r}; give "macro" for texts or "micro" for pooled counts.')
    return {f"{prefix}{name}": float(value) for name, [value] in getattr(overlap, average)().items()}


def select(entries, *reasons: str) -> tuple[list[int], dict]:
    """Rows of the texts that can be scored, and the counts of texts for the result.

    Args:
        entries: what decides, one for each text.
        reasons: why a text is skipped; the first that holds is counted.
    """
    found = [next((reason for reason in reasons if _SKIPPED[reason](entry)), None) for entry in entries]
    rows = [row for row, reason in enumerate(found) if reason is None]
    skipped = {reason: found.count(reason) for reason in reasons}
    if not rows:
        raise InputError(f"None of the {len(found)} texts can be scored; skipped are {skipped}.")
    return rows, {"n_total": len(found), "n_scored": len(rows), "n_skipped": skipped}


def select_marked(predictions, references, *reasons: str) -> tuple[list, list, dict]:
    """Word scores and flags of the texts that have marked words, and the counts; see [`select`]."""
    rows, counts = select(references, "no words", "no marked words", *reasons)
    scores, flags = ([column[row] for row in rows] for column in (predictions, references))
    return scores, flags, {**counts, "n_tied": sum(map(is_constant, scores))}


def per_text(score, rows: list[int], *columns) -> list[float]:
    """`score` of the entries of each of these texts; an error names the text."""
    values = []
    for row in rows:
        try:
            values.append(score(*(column[row] for column in columns)))
        except InputError as error:
            raise InputError(f"Text {row}: {error}") from None
    return values


# What `datasets` would cast without a word: 0.9 to the integer 0, "1" to 1, None to NaN.
_ALLOWED = {
    "int64": (
        lambda value: isinstance(value, int),
        "which is no class id; give integers, for example references=[0, 1]. Names become ids by "
        "[model.config.label2id[name] for name in names].",
    ),
    "float64": (
        lambda value: isinstance(value, int | float) and value == value,
        "which is no number; give numbers, without text, None or NaN.",
    ),
    "bool": (
        lambda value: isinstance(value, int) and value in (0, 1),
        "which is no flag; give one for each word: 1 or True if it is marked, 0 or False if not.",
    ),
}


def _check(value, feature, place: str):
    if isinstance(feature, Value):
        allowed, message = _ALLOWED[feature.dtype]
        if not allowed(value):
            raise InputError(f"{place} is {value!r}, {message}")
        return bool(value) if feature.dtype == "bool" else value
    if not isinstance(value, list):
        raise InputError(f"{place} is {value!r}; give a list.")
    return [_check(entry, feature.feature, f"{place}[{position}]") for position, entry in enumerate(value)]


def _plain(values):
    """Arrays and tensors, also inside lists, as Python lists and numbers."""
    if hasattr(values, "tolist"):
        return values.tolist()
    return [_plain(value) for value in values] if isinstance(values, list | tuple) else values
