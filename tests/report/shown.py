"""Explanations to be shown, and what a figure shows."""

from xml.etree import ElementTree

from hf_vat.explanations import Explanation
from hf_vat.models.words import Word, split_words

SVG = "{http://www.w3.org/2000/svg}"
# Names and words that a figure or page might take for markup, formulas or patterns.
NASTY = ["$x$ ^_{", "<script>&", "</svg>", "😀", "👩‍👩‍👧", "שלום", "نیم‌فاصله", "喜欢", "_hidden", "\"'", "%s{}"]


def explanation_of(given, scores=None, names=("negative", "positive"), **fields) -> Explanation:
    """An explanation of a text, or of words joined by single spaces; all scores are equal if none are given."""
    text, words = (given, split_words(given)) if isinstance(given, str) else (" ".join(given), [])
    for word in given if text != given else ():
        start = words[-1].end + 1 if words else 0
        words.append(Word(word, start, start + len(word)))
    defaults = {"method": "attention", "target": 0, "prediction": 0, "seen": [True] * len(words)}
    return Explanation(
        text,
        [word.text for word in words],
        [(word.start, word.end) for word in words],
        [1 / max(len(words), 1)] * len(words) if scores is None else scores,
        label_names=list(names),
        **defaults | {"probabilities": [1 / len(names)] * len(names)} | fields,
    )


def texts(svg: str) -> list[str]:
    """The texts of a figure in the file's order, without empty ones."""
    found = ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    return [text for text in found if text]
