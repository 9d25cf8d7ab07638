"""Explanations as lines of text, with or without ANSI colours."""

import re
from collections.abc import Sequence

from hf_vat.errors import InputError
from hf_vat.explained import Explained, explains_another, gold_text, parts_of, predicted_names, texts_of
from hf_vat.models.problems import SINGLE_LABEL

# Colour codes of the 256-colour palette, which all terminals have, from weak to strong.
_POSITIVE = (230, 229, 222, 221, 214)
_NEGATIVE = (195, 153, 117, 111, 75)
_BLACK = 16
# A text must not be able to send control codes to the terminal, nor to turn what stands beside it around.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def heatmap(explanation: Explained, color: bool = True, top: int = 5) -> str:
    """The prediction, the text with its words shaded by score, and the `top` words with their scores."""
    segments = list(explanation.segments())
    lines = [_headline(explanation, (explanation.method, explanation.model))]
    lines += _shaded(explanation, color).strip().splitlines()
    if not segments:
        lines.append("(the text has no words)")
    if explanation.tied:
        lines.append("All words tie: the scores rank none of them above another.")
    elif segments:
        ranked = sorted(segments, key=lambda segment: -segment.score)  # stable: the earlier of two equal words first
        against = [segment for segment in ranked if segment.score < 0]
        if len(against) < len(ranked):
            lines.append(f"highest: {_list(ranked[: len(ranked) - len(against)][:top])}")
        if against:
            lines.append(f"lowest: {_list(against[: -top - 1 : -1])}")
    if explanation.truncated:
        lines.append(f"Cut off, not seen by the model: {explanation.truncated} words.")
    return "\n".join(lines)


def side_by_side(explanations: Sequence[Explained], color: bool = True, top: int = 5) -> str:
    """One text explained by several methods: the prediction, then a line for each method.

    The line shows the text with its words shaded by score; without colour the `top` words with their scores, and the
    text once above them.

    Args:
        explanations: of one text and one model.
        color: shade each word by its score with ANSI codes.
        top: number of words to list without colour.

    Raises:
        InputError: if there is no explanation, or they are of different texts.
    """
    if not explanations:
        raise InputError("There is no explanation to show; give one or more of the same text.")
    first = explanations[0]
    for explanation in explanations:
        if texts_of(explanation) != texts_of(first):
            raise InputError(
                f"The explanations are of different texts, {first.text[:40]!r} and {explanation.text[:40]!r}; "
                "give explanations of one text."
            )
    lines = [_headline(first, (first.model,))]
    if not color:
        lines += clean("\n".join(texts_of(first))).strip().splitlines()
    names = [clean(explanation.method) for explanation in explanations]
    width = max(map(len, names))
    for name, explanation in zip(names, explanations, strict=True):
        lines.append(f"{name.ljust(width)}  {_line(explanation, color, top)}")
    return "\n".join(lines)


def _headline(explanation: Explained, sources: Sequence[str]) -> str:
    parts = [", ".join(f"{name} ({output:.3f})" for name, output in predicted_names(explanation)) or "no label"]
    if explanation.correct is not None:
        parts.append("right" if explanation.correct else f"WRONG, gold is {gold_text(explanation)}")
    elif explanation.gold is not None:
        parts.append(f"gold is {gold_text(explanation)}")
    if explains_another(explanation):
        kind = "class" if explanation.problem_type == SINGLE_LABEL else "output"
        parts.append(f"explained {kind} {explanation.label_names[explanation.target]}")
    return clean(" | ".join(part for part in (*parts, *sources) if part))


def _line(explanation: Explained, color: bool, top: int) -> str:
    if not explanation.words:
        return "(the text has no words)"
    if explanation.tied:
        return "(all words tie)"
    if color:
        return " ".join(_shaded(explanation, color).split("\n")).strip()
    return _list(sorted(explanation.segments(), key=lambda segment: -segment.score)[:top])


def _shaded(explanation: Explained, color: bool) -> str:
    """The text; a pair in two lines."""
    return "\n".join(
        "".join(clean(before) + _draw(word, strength, color) for before, word, _, strength, _ in segments)
        for segments in parts_of(explanation)
    )


def _draw(word: str, strength: float, color: bool) -> str:
    level = round(abs(strength) * len(_POSITIVE))
    if not color or level == 0:
        return clean(word)
    shade = (_POSITIVE if strength > 0 else _NEGATIVE)[level - 1]
    return f"\x1b[38;5;{_BLACK};48;5;{shade}m{clean(word)}\x1b[0m"


def _list(segments) -> str:
    return ", ".join(f"{clean(segment.word)} {segment.score:.3f}" for segment in segments)


def clean(text: str) -> str:
    """A text as a terminal can show it: � for control characters, which could steer it, also those of writing direction."""
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))
