"""Texts whose words people have labelled with sentiment: SST trees, and the expressions of SemEval-2013 task 2.

Both are read into columns `tokens` (list of strings), `token_labels` (one for each token) and `label`, all labels from 0,
very negative, over 2, neutral, to 4, very positive.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from datasets import Dataset, Features, Value
from datasets import Sequence as ListOf

from hf_vat.errors import InputError, check_path, parse_json
from hf_vat.models.words import split_words

logger = logging.getLogger(__name__)

_NEUTRAL = 2
_FEATURES = Features(
    {"tokens": ListOf(Value("string")), "token_labels": ListOf(Value("int64")), "label": Value("int64")}
)
_NODE = re.compile(r"\(([0-4]) (?:([^\s()]+)\))?|\)")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")"}
# SST's scale, on which SemEval has no extremes
_POLARITIES = {
    "negative": 1,
    "neutral": _NEUTRAL,
    "positive": 3,
    "objective": _NEUTRAL,
    "objective-OR-neutral": _NEUTRAL,
}
_CLASSES = {1: "negative", _NEUTRAL: "neutral", 3: "positive"}
_NOT_AVAILABLE = "Not Available"


@dataclass(frozen=True)
class SentimentWords:
    """Texts of one polarity with the words that people gave the same polarity.

    Attributes:
        texts: for each text its words, as `explain` and `Faithfulness` take them.
        label: class of all the texts, "positive" or "negative".
        rationales: for each text a 0/1 flag for each word, as the functions of `hf_vat.faithfulness.rationales` take
            them. Texts without a flagged word are among them: those functions leave them out and count them.
    """

    texts: list[list[str]]
    label: str
    rationales: list[list[int]]


def sentiment_words(split: Dataset, polarity: str) -> SentimentWords:
    """The texts of a polarity and their words of that polarity: labels above 2 if "positive", below 2 if "negative".

    Neutral texts are left out (Zhou et al. 2021, section 5.3).

    Raises:
        InputError: if the polarity is another one, or no text has it.
    """
    if polarity not in ("positive", "negative"):
        raise InputError(f'There is no polarity {polarity!r}; give "positive" or "negative".')
    sign = 1 if polarity == "positive" else -1
    texts, rationales = [], []
    for row in split:
        if sign * (row["label"] - _NEUTRAL) > 0:
            texts.append(row["tokens"])
            rationales.append([int(sign * (label - _NEUTRAL) > 0) for label in row["token_labels"]])
    if not texts:
        raise InputError(f"None of the {len(split)} texts is {polarity}.")
    return SentimentWords(texts, polarity, rationales)


def load_sst_words(path: str | Path) -> Dataset:
    """Sentences of the Stanford Sentiment Treebank, with the labels of their leaves.

    Args:
        path: JSON lines with `tokens`, `token_labels` and `label` (.json or .jsonl), or one bracketed tree in each line,
            such as `(3 (2 The) (4 Rock))`, as in the treebank's train.txt, dev.txt and test.txt. Escaped brackets, such
            as -LRB-, are read as the characters.

    Returns:
        Columns `tokens`, `token_labels` and `label`, one row for each line.

    Raises:
        InputError: if the file cannot be read, or a line is not of that form.
    """
    path = check_path(path)
    read = _read_record if path.suffix.lower() in (".json", ".jsonl") else _read_tree
    rows = []
    for number, line in _lines(path):
        tokens, token_labels, label = read(line) or ((), (), None)
        if not tokens:
            raise InputError(
                f"{path}, line {number}: {line[:60]!r} is neither a tree such as '(3 (2 The) (4 Rock))' nor, in a .jsonl "
                'file, an object such as {"tokens": ["The", "Rock"], "token_labels": [2, 4], "label": 3}; labels are 0 to '
                "4, one for each token."
            )
        rows.append({"tokens": tokens, "token_labels": token_labels, "label": label})
    return Dataset.from_list(rows, features=_FEATURES)


def load_semeval_words(path: str | Path, messages_path: str | Path | None = None) -> Dataset:
    r"""Tweets of SemEval-2013 task 2 with the words of the expressions that subtask A labels.

    Format: the organizers' after the download of the tweets, one expression in each line and no header:
    `tweet id \t user id \t first token \t last token \t polarity \t text`, where tokens are separated by white space,
    counted from 0, and the last one belongs to the expression. The expressions of a tweet (same ids and text) are merged.
    A word is positive (3) or negative (1) if it lies in such an expression; otherwise it is neutral (2).

    Polarities "objective" and "objective-OR-neutral" are read as neutral, quotation marks around them are ignored.
    Tweets that say "Not Available", and tweets shorter than an expression in them says, are left out and counted in the log.

    Args:
        path: file of subtask A.
        messages_path: file of subtask B with the polarity of whole tweets
            (`tweet id \t user id \t polarity \t text`; in the full version with a topic before the polarity). Tweets that
            it does not have are left out and counted in the log. If no file is given, a tweet's label is the one
            polarity of its expressions, neutral ones aside; tweets with both polarities, or none, are neutral.

    Returns:
        Columns `tokens`, `token_labels` and `label`, one row for each tweet. A word in expressions of both polarities
        has that of the tweet. Tokens without a visible character are not among the words.

    Raises:
        InputError: if a file cannot be read, a line is not of that form, or no tweet is left.
    """
    path = check_path(path)
    messages = () if messages_path is None else _messages(check_path(messages_path))
    labels = {ids: polarity for ids, polarity, _ in messages}
    tweets: dict[tuple[str, ...], list[tuple[int, int, int]]] = {}
    unavailable = set()
    for number, line in _lines(path):
        fields = line.split("\t")
        numbers = [len(one) < 10 and one.isdecimal() for one in fields[2:4]]
        if len(fields) != 6 or not all(numbers) or int(fields[2]) > int(fields[3]):
            raise InputError(
                f"{path}, line {number}: {line[:60]!r} has not the form 'tweet id, user id, first token, last token, "
                "polarity, text' with tabs between; give a file of subtask A with the tweets' texts."
            )
        *ids, first, last, polarity, text = fields
        if text.strip() == _NOT_AVAILABLE:
            unavailable.add(tuple(ids))
            continue
        expression = (int(first), int(last), _polarity(polarity, path, number))
        tweets.setdefault((*ids, text), []).append(expression)

    rows, too_short, without_label = [], 0, 0
    for (*ids, text), expressions in tweets.items():
        tokens = text.split()
        label = labels.get(tuple(ids))
        if messages_path is None:
            label = _one_polarity((polarity for _, _, polarity in expressions), if_both=_NEUTRAL)
        if max(last for _, last, _ in expressions) >= len(tokens):
            too_short += 1
        elif label is None:
            without_label += 1
        else:
            visible = [position for position, token in enumerate(tokens) if split_words(token)]
            rows.append(
                {
                    "tokens": [tokens[position] for position in visible],
                    "token_labels": [
                        _one_polarity((found for first, last, found in expressions if first <= position <= last), label)
                        for position in visible
                    ],
                    "label": label,
                }
            )
    logger.info(
        "%s: %d tweets; left out: %d not available, %d shorter than their expressions, %d without a label",
        *(path, len(rows), len(unavailable), too_short, without_label),
    )
    if not rows:
        raise InputError(
            f"{path}: no tweet is left: {len(unavailable)} are not available, {too_short} shorter than their expressions, "
            f"{without_label} without a label."
        )
    return Dataset.from_list(rows, features=_FEATURES)


def is_semeval_messages(path: Path) -> bool:
    """Whether a file has the organizers' form of subtask B: no header, but a tweet id at the beginning."""
    if path.suffix.lower() != ".tsv":
        return False
    first, *others = next((line for _, line in _lines(path)), "").split("\t")
    return first.isdecimal() and len(others) in (3, 4)


def read_semeval_messages(path: Path) -> dict[str, list[str]]:
    """The tweets of a file of subtask B of SemEval (see [`load_semeval_words`] for its form).

    Returns:
        Columns `text`, and `label`: "negative", "neutral" or "positive". Tweets that say "Not Available" are left out and
        counted in the log.

    Raises:
        InputError: if the file cannot be read, a line is not of that form, or no tweet is left.
    """
    found = [(text, _CLASSES[polarity]) for _, polarity, text in _messages(path)]
    rows = [(text, label) for text, label in found if text.strip() != _NOT_AVAILABLE]
    logger.info("%s: %d tweets; left out: %d not available", path, len(rows), len(found) - len(rows))
    if not rows:
        raise InputError(f"{path}: no tweet is left: {len(found)} are not available.")
    texts, labels = zip(*rows, strict=True)
    return {"text": list(texts), "label": list(labels)}


def _read_record(line: str) -> tuple[list[str], list[int], int] | None:
    try:
        record = parse_json(line)
        tokens, token_labels, label = record["tokens"], record["token_labels"], record["label"]
        fits = all(isinstance(token, str) for token in tokens) and len(tokens) == len(token_labels)
        return (tokens, token_labels, label) if fits and {*token_labels, label} <= set(range(5)) else None
    except (ValueError, KeyError, TypeError):
        return None


def _read_tree(line: str) -> tuple[list[str], list[int], int] | None:
    tokens, token_labels, depth, end = [], [], 0, 0
    for match in _NODE.finditer(line.strip()):
        if line.strip()[end : match.start()].strip() or (end and not depth):
            return None
        end = match.end()
        label, token = match.groups()
        if token is not None:
            tokens.append(_BRACKETS.get(token, token))
            token_labels.append(int(label))
        else:
            depth += 1 if label else -1
    complete = depth == 0 and end == len(line.strip())
    return (tokens, token_labels, int(line.strip()[1])) if complete and tokens else None


def _messages(path: Path) -> Iterator[tuple[tuple[str, ...], int, str]]:
    """Ids, polarity and text of each tweet in a file of subtask B."""
    for number, line in _lines(path):
        fields = line.split("\t")
        if len(fields) not in (4, 5):
            raise InputError(
                f"{path}, line {number}: {line[:60]!r} has not the form 'tweet id, user id, polarity, text' with tabs "
                "between; give a file of subtask B."
            )
        yield (fields[0], fields[1]), _polarity(fields[-2], path, number), fields[-1]


def _polarity(name: str, path: Path, number: int) -> int:
    name = name.strip().strip('"')
    if name not in _POLARITIES:
        raise InputError(
            f"{path}, line {number}: unknown polarity {name!r}; allowed are {', '.join(_POLARITIES)}. Files with "
            '"unknwn" are the task\'s input: give those with its gold labels.'
        )
    return _POLARITIES[name]


def _one_polarity(polarities: Iterable[int], if_both: int) -> int:
    """The one polarity, neutral ones aside."""
    found = set(polarities) - {_NEUTRAL}
    if not found:
        return _NEUTRAL
    return found.pop() if len(found) == 1 else if_both


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}. Give a text file in UTF-8.") from error
    # not splitlines: tweets hold other characters that it takes for line ends
    return [(number, line) for number, line in enumerate(content.split("\n"), 1) if line.strip()]
