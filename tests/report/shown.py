"""Explanations to be shown, and what a figure shows."""

from xml.etree import ElementTree

from hf_vat.explanations import Explanation
from hf_vat.models.words import split_words

# Names and words that a figure or page might take for markup, formulas or patterns.
NASTY = ["$x$ ^_{", "<script>&", "</svg>", "😀", "👩‍👩‍👧", "שלום", "نیم‌فاصله", "喜欢", "_hidden", "\"'", "%s{}"]


def explanation_of(given, scores=None, names=("negative", "positive"), words=None, **fields) -> Explanation:
    """An explanation of a text, or of words joined by single spaces; all scores are equal if none are given."""
    text = given if isinstance(given, str) else " ".join(given)
    if words is None:
        words = [word.text for word in split_words(text)] if text == given else list(given)
    spans, end = [], 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        spans.append((start, end))
    known = {
        "scores": [1 / len(words) for _ in words] if scores is None else scores,
        "seen": [True] * len(words),
        "method": "attention",
        "target": 0,
        "prediction": 0,
        "probabilities": [1 / len(names)] * len(names),
    }
    return Explanation(text, words, spans, label_names=list(names), **known | fields)


def elements(svg: str, tag: str) -> list[ElementTree.Element]:
    """The elements of a kind in the file's order."""
    return list(ElementTree.fromstring(svg).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def content(element: ElementTree.Element) -> str:
    return "".join(element.itertext())


def texts(svg: str) -> list[str]:
    """The texts of a figure in the file's order, without empty ones."""
    return [text for text in map(content, elements(svg, "text")) if text]
