"""HTML pages that stand alone: no script, no network, light and dark, readable in print.

Every string goes through autoescape (Jinja's in the templates, MarkupSafe's here), so texts and names appear as typed.
"""

from collections.abc import Mapping, Sequence
from itertools import repeat
from math import isclose
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hf_vat.errors import InputError
from hf_vat.explained import (
    Explained,
    explains_another,
    gold_text,
    is_regression,
    parts_of,
    predicted_names,
    texts_of,
)
from hf_vat.writing import write_text

from .tables import Table


def heatmap(explanation: Explained) -> Markup:
    """An HTML fragment of one explanation with its style, for notebooks and other people's pages."""
    return Markup(_templates.get_template("fragment.html").render(explanation=explanation))


def page(
    title: str,
    runs: Mapping[str, Sequence[Explained]],
    *,
    lead: Sequence[str] = (),
    settings: Mapping[str, object] | None = None,
    tables: Sequence[Table] = (),
    figures: Mapping[str, str] | None = None,
    rationales: Sequence[Sequence[int]] | None = None,
) -> str:
    """A page with the heatmaps of one or several models, or methods, for the same texts.

    Explanations of one text by several methods stand under each other, word under word, below one prediction; those of
    other models below their own. With gold labels, readers can show only the texts that were classified right or wrong.

    Args:
        title: heading of the page.
        runs: for each model or method, by the name to show, its explanations; all of the same texts in the same order.
        lead: what the page comes to, below the heading: a sentence, and what there is to say to it.
        settings: names and values for the head of the page.
        tables: tables of results.
        figures: for each heading an SVG element such as [`top_k_curves`] returns. It is inserted as it is: don't pass
            SVG of others.
        rationales: for each text a flag, 0 or 1, for each of its words: evidence that people marked, or that was
            planted. These words are underlined.

    Raises:
        InputError: if the explanations of the runs are not of the same texts, or the rationales do not have a flag for
            each word.
    """
    names = {
        signed: [name for name, run in runs.items() if _signed(run) == signed and any(own.words for own in run)]
        for signed in (False, True)
    }
    return _templates.get_template("page.html").render(
        title=title,
        lead=lead,
        runs=len(runs),
        cards=_cards(runs, rationales),
        names=names,
        scored=any(is_regression(explanation) for run in runs.values() for explanation in run),
        unseen=any(not all(explanation.seen) for run in runs.values() for explanation in run),
        marked=rationales is not None,
        settings=settings or {},
        tables=tables,
        figures={heading: Markup(svg) for heading, svg in (figures or {}).items()},
    )


def write_report(path: str | PathLike, title: str, runs: Mapping[str, Sequence[Explained]], **parts) -> Path:
    """Write a [`page`] (same arguments) to a file and return its path."""
    return write(path, page(title, runs, **parts))


def write(path: str | PathLike, text: str) -> Path:
    """Write a page as UTF-8 whatever the system's encoding, making missing folders, and return its path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path


class _Card(NamedTuple):
    """One text: its explanations by run, grouped by the prediction they explain; "right" if every model is."""

    verdict: str
    groups: list[dict[str, Explained]]
    rationale: Sequence[int] | None


def _cards(runs: Mapping[str, Sequence[Explained]], rationales: Sequence[Sequence[int]] | None) -> list[_Card]:
    count = check_same_texts(runs)
    if rationales is not None and len(rationales) != count:
        raise InputError(f"{len(rationales)} rationales for {count} texts; give one per text.")
    cards = []
    for position, explanations in enumerate(zip(*runs.values(), strict=True)):
        rationale = None if rationales is None else _check_rationale(rationales[position], explanations, position)
        groups: list[dict[str, Explained]] = []
        for name, explanation in zip(runs, explanations, strict=True):
            for group in groups:
                if _same_headline(explanation, next(iter(group.values()))):
                    group[name] = explanation
                    break
            else:
                groups.append({name: explanation})
        verdicts = {explanation.correct for explanation in explanations}
        verdict = "wrong" if False in verdicts else "right" if verdicts == {True} else "unknown"
        cards.append(_Card(verdict, groups, rationale))
    return cards


def check_same_texts(runs: Mapping[str, Sequence[Explained]]) -> int:
    """The number of texts that all runs explain.

    Raises:
        InputError: if the texts differ, or their order.
    """
    texts = {name: [texts_of(explanation) for explanation in explanations] for name, explanations in runs.items()}
    first = next(iter(texts), "")
    for name in texts:
        if texts[name] != texts[first]:
            raise InputError(
                f"{name!r} and {first!r} explain different texts ({len(texts[name])} and {len(texts[first])}); "
                "explain the same list of texts, in the same order, with every model and method."
            )
    return len(texts[first]) if texts else 0


def _check_rationale(rationale: Sequence[int], explanations: Sequence[Explained], text: int) -> Sequence[int]:
    for explanation in explanations:
        if len(rationale) != len(explanation.words):
            raise InputError(
                f"The rationale of text {text} has {len(rationale)} flags for {len(explanation.words)} words; give one "
                "per word."
            )
    for flag in rationale:
        if flag not in (0, 1):
            raise InputError(f"The rationale of text {text} has the flag {flag!r}; flags are 0 or 1.")
    return rationale


def _same_headline(one: Explained, other: Explained) -> bool:
    # The last digits of a probability depend on the batch that a text was in, which differs by method.
    return (
        (one.model, one.label_names, one.prediction, one.target, one.gold, one.truncated)
        == (other.model, other.label_names, other.prediction, other.target, other.gold, other.truncated)
    ) and all(isclose(*pair, abs_tol=1e-3) for pair in zip(one.probabilities, other.probabilities, strict=True))


def _signed(explanations: Sequence[Explained]) -> bool:
    return any(score < 0 for explanation in explanations for score in explanation.check_scores())


_WORD = Markup('{}<{}{}{} title="{}">{}</{}>')


def _words(explanation: Explained, rationale: Sequence[int] | None) -> list[Markup]:
    """The text, or both of a pair, with each word in an element: `u` for evidence, else `b`. A page has 100,000s of them, so
    they are short."""
    texts, flags = [], iter(repeat(0) if rationale is None else rationale)
    for segments in parts_of(explanation):
        parts = []
        for segment, marked in zip(segments, flags, strict=False):
            tag = "u" if marked else "b"
            kind = " class=hfv-unseen" if not segment.seen else " class=hfv-low" if segment.strength < 0 else ""
            shade = f"{abs(segment.strength):.2f}"
            style = "" if shade == "0.00" else Markup(f' style="--s:{shade}"')
            score = f"{segment.score:.3g}" if segment.seen else "not seen by the model"
            parts.append(_WORD.format(segment.before, tag, Markup(kind), style, score, segment.word, tag))
        texts.append(Markup("").join(parts))
    return texts


def _said(explanation: Explained) -> list[tuple[str, str]]:
    """Name and output of what the model says of the text; of its only score the output alone."""
    names = predicted_names(explanation)
    if is_regression(explanation):
        return [(name if len(names) > 1 else "", f"{output:.3f}") for name, output in names]
    return [(name, f"{100 * output:.1f} %") for name, output in names] or [("no label", "")]


_templates = Environment(
    loader=PackageLoader("hf_vat.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters |= {"words": _words, "said": _said, "gold": gold_text, "explains_another": explains_another}
_templates.tests["regression"] = is_regression
