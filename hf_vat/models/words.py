"""Words of the user's text, and which sub-word tokens belong to them.

One rule for every method and metric. A word is

- a run of letters, digits, combining marks and underscores, with apostrophes and hyphens inside it
  ("don't", "well-made") and with a point or comma between two digits ("3.5", "1,000");
- each Han ideograph alone, as texts written with them have no spaces;
- any other visible symbol alone: punctuation marks, and emoji with all code points that form one picture.

Thai, Lao, Khmer, Burmese and Japanese (Han with kana beside it) have no spaces between words either. There ICU finds the
words by its dictionaries, if the package icu4py is installed; a run of katakana is one word. Without the package the rules
above hold here too, which take a whole sentence for one word, and a warning says so once.

White space and invisible characters (Unicode category C: control, zero-width and other format characters, private use,
unassigned) separate words and belong to none, except joiners after a letter and those that are part of an emoji. Words
keep the characters as typed; their spans are offsets in code points into the text, end exclusive.

A text that comes already split, as a list of words, keeps exactly those words; the text is then the words joined by
single spaces.
"""

import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache, cached_property
from threading import RLock
from typing import NamedTuple

import regex

try:
    from icu4py.breakers import WordBreaker
except ImportError:
    WordBreaker = None  # type: ignore[assignment, misc]  # where the extra is not installed

_WORD = regex.compile(
    r"""
      \p{Han}\p{M}*
    | [[\p{L}\p{N}\p{M}_]--\p{Han}]
      (?: [[\p{L}\p{N}\p{M}_\u200c\u200d]--\p{Han}]
        | ['’\-‐‑] (?=[[\p{L}\p{N}_]--\p{Han}])
        | (?<=\p{N}) [.,] (?=\p{N})
      )*
    | (?![\s\p{Z}\p{C}]) \X
    """,
    regex.VERBOSE | regex.VERSION1,
)
# Scripts that ICU has dictionaries for. Han is Japanese where kana stand beside it; the long vowel mark is of no script; kana
# of half width have their marks behind them, which ICU would split off.
_SOUTHEAST = r"[[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]&&\p{L}]"
_KANA = r"[[[\p{Hiragana}\p{Katakana}\u30fc]&&\p{L}]--[\uff66-\uff9f]]"
_UNSPACED = regex.compile(
    rf"{_SOUTHEAST}[{_SOUTHEAST}\p{{M}}\u200c\u200d]+ | (?P<japanese>[{_KANA}\p{{Han}}][{_KANA}\p{{Han}}\p{{M}}]+)",
    regex.VERBOSE | regex.VERSION1,
)
_HAS_KANA = regex.compile(_KANA, regex.VERSION1)
# A run of katakana is a loan word or a name, and ICU's dictionary lacks most of them.
_PARTS = regex.compile(r"(?P<katakana>\p{Katakana}[\p{Katakana}\u30fc\p{M}]*)|[^\p{Katakana}]+")
# Fast tokenizers keep their truncation as state, which another thread would change under a call.
_TOKENIZING = RLock()


class Word(NamedTuple):
    """A word of a text: the characters as typed, and their span `text[start:end]`."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[Word]:
    """Split a text into words by the rule at the top of this module."""
    words, end = [], 0
    if WordBreaker is not None:
        for run in _unspaced_runs(text):
            words += _words_between(text, end, run.start())
            end = run.start()
            for part in _PARTS.finditer(run.group()):
                for piece in [part.group()] if part["katakana"] else WordBreaker(part.group(), "root"):
                    words.append(Word(piece, end, end + len(piece)))
                    end += len(piece)
    return words + _words_between(text, end, len(text))


def _words_between(text: str, start: int, end: int) -> list[Word]:
    return [Word(match.group(), match.start(), match.end()) for match in _WORD.finditer(text, start, end)]


def _unspaced_runs(text: str) -> Iterator[regex.Match]:
    """The runs of two or more letters of scripts that are written without spaces."""
    for run in _UNSPACED.finditer(text):
        if run["japanese"] is None or _HAS_KANA.search(run.group()):
            yield run


@dataclass(frozen=True)
class EncodedText:
    """A text as a model sees it, aligned with its words.

    Attributes:
        text: the text as given; words given already split are joined by single spaces.
        words: all words of the text, also those that the model does not see.
        input_ids: token ids with special tokens, cut to the maximum length.
        token_words: for each token the positions in `words` that it covers; empty for special tokens and for tokens
            outside every word.
        special: for each token whether it is a special token.
        truncated: number of words that were cut off because the text is longer than the maximum length: the last
            ones, or the first ones if the tokenizer's `truncation_side` is "left". A word cut in the middle is seen;
            a word that the tokenizer drops at any length is neither seen nor cut off.
    """

    text: str
    words: list[Word]
    input_ids: list[int]
    token_words: list[tuple[int, ...]]
    special: list[bool]
    truncated: int = 0

    @cached_property
    def seen(self) -> list[bool]:
        """For each word whether at least one of its tokens reaches the model."""
        covered = {position for positions in self.token_words for position in positions}
        return [position in covered for position in range(len(self.words))]

    def word_scores(self, token_scores) -> list[float]:
        """Sum token scores over the tokens of each word.

        A token that covers several words gives each an equal share, so the total over words and over tokens that belong
        to no word is the total over tokens. Words that the model does not see get 0.

        Args:
            token_scores: one number for each of `input_ids`.
        """
        scores = [0.0] * len(self.words)
        for score, positions in zip(token_scores, self.token_words, strict=True):
            for position in positions:
                scores[position] += float(score) / len(positions)
        return scores

    def word_averages(self, token_scores) -> list[float]:
        """[`word_scores`], divided by the number of the word's tokens; 0 for words that the model does not see."""
        totals, tokens = self.word_scores(token_scores), self.word_scores([1.0] * len(self.input_ids))
        return [total / count if count else 0.0 for total, count in zip(totals, tokens, strict=True)]


def maximum_length(model, tokenizer) -> int:
    """Number of tokens, special ones included, that both the tokenizer and the model's positions allow.

    Without any limit it is 2**31 - 1.
    """
    positions = getattr(model.config, "max_position_embeddings", None) or 0
    if positions < 1:  # XLNet says -1
        # A tokenizer without a limit says 1e30, more than its own truncation can count.
        positions = 2**31 - 1
    module = _offset_positions(model)
    if module is not None:
        positions = module.num_embeddings - module.padding_idx - 1
    return min(tokenizer.model_max_length, positions)


def position_offset(model) -> int | None:
    """The id of the padding token after which RoBERTa and its kin count positions, and which they do not count; None for
    models that count from 0, or have no positions."""
    module = _offset_positions(model)
    return None if module is None else module.padding_idx


def _offset_positions(model):
    for name, module in model.named_modules():
        parts = (getattr(module, attribute, None) for attribute in ("padding_idx", "num_embeddings"))
        if name.rpartition(".")[2] == "position_embeddings" and None not in parts:
            return module
    return None


def special_tokens_around(tokenizer) -> tuple[int, int]:
    """How many special tokens a tokenizer puts before and after a text: BERT 1 and 1, XLNet 0 and 2."""
    with _TOKENIZING:
        flags = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
    content = flags.index(0) if 0 in flags else 0
    return content, flags[::-1].index(0) if 0 in flags else len(flags)


def special_token_types(tokenizer) -> dict[int, int]:
    """The token type of each special token that a single text gets, if any differs from 0 (XLNet: its last token)."""
    if "token_type_ids" not in tokenizer.model_input_names:
        return {}
    with _TOKENIZING:
        empty = tokenizer("")
    types = dict(zip(empty["input_ids"], empty.get("token_type_ids", ()), strict=False))
    return types if any(types.values()) else {}


def encode_words(tokenizer, texts: Sequence[str | Sequence[str]], max_length: int) -> list[EncodedText]:
    """Tokenize texts and align the tokens with the words of each text by character offsets.

    A tokenizer without offsets (one in pure Python) is asked word by word instead. Where a text's tokens are others than
    those of its words one by one, such as a typed "[SEP]", they cover all words of the place that differs.

    Args:
        tokenizer: a tokenizer of transformers, fast or not.
        texts: texts exactly as the user wrote them; a list of words stands for a text that is already split.
        max_length: tokens to keep, special ones included; see [`maximum_length`].
    """
    if not texts:
        return []
    if WordBreaker is None and any(isinstance(text, str) and any(_unspaced_runs(text)) for text in texts):
        _warn_unspaced()
    split = [(text, split_words(text)) if isinstance(text, str) else _join_words(text) for text in texts]
    if not tokenizer.is_fast:
        encoded = [_encode_by_words(tokenizer, text, words, max_length) for text, words in split]
    else:
        with _TOKENIZING:
            encodings = tokenizer([text for text, _ in split], truncation=True, max_length=max_length).encodings
        encoded = [_align(text, words, encoding) for (text, words), encoding in zip(split, encodings, strict=True)]
    # A model needs something to read, and some tokenizers give an empty text no token at all.
    stand_ins = (tokenizer.unk_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id, tokenizer.pad_token_id)
    stand_in = [token for token in stand_ins if token is not None][:1]
    return [
        text if text.input_ids else replace(text, input_ids=stand_in, token_words=[()], special=[True])
        for text in encoded
    ]


def _join_words(given: Sequence[str]) -> tuple[str, list[Word]]:
    words, start = [], 0
    for text in given:
        words.append(Word(text, start, start + len(text)))
        start += len(text) + 1
    return " ".join(given), words


@cache
def _warn_unspaced() -> None:
    """Once in a process."""
    warnings.warn(
        "Some texts are in a script without spaces (Thai, Lao, Khmer, Burmese or Japanese), where a whole sentence counts as "
        "one word. To have their words, run: pip install icu4py. Or give each text as a list of its words.",
        stacklevel=4,
    )


def _align(text: str, words: list[Word], encoding) -> EncodedText:
    starts, ends = [word.start for word in words], [word.end for word in words]

    def words_of_tokens(part) -> list[tuple[int, ...]]:
        # Special tokens have the span (0, 0), which meets no word.
        return [tuple(range(bisect_right(ends, start), bisect_left(starts, end))) for start, end in part.offsets]

    token_words = words_of_tokens(encoding)
    overflow = [positions for rest in encoding.overflowing for positions in words_of_tokens(rest)]
    special = [bool(flag) for flag in encoding.special_tokens_mask]
    return EncodedText(text, words, encoding.ids, token_words, special, _count_lost(overflow, token_words))


def _encode_by_words(tokenizer, text: str, words: list[Word], max_length: int) -> EncodedText:
    """[`_align`] without offsets: a token belongs to the part of the text that it is the token of."""

    def ids_of(part: str) -> list[int]:
        return tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"]

    ids, end = [], 0
    owners: list[tuple[int, ...]] = []
    for position, word in enumerate([*words, Word("", len(text), len(text))]):
        # What stands between words has tokens too if the tokenizer splits into characters.
        for part, owner in ((text[end : word.start], ()), (word.text, (position,))):
            part_ids = ids_of(part) if part else []
            ids += part_ids
            owners += [owner] * len(part_ids)
        end = word.end
    whole = ids_of(text)
    owners = _owners_in(whole, ids, owners)
    ids = whole
    encoding = tokenizer.prepare_for_model(
        ids, truncation=True, max_length=max_length, return_special_tokens_mask=True, verbose=False
    )
    special = [bool(flag) for flag in encoding["special_tokens_mask"]]
    lost = len(ids) - special.count(False)
    first = lost if tokenizer.truncation_side == "left" else 0
    kept = iter(owners[first : first + special.count(False)])
    token_words = [() if flag else next(kept) for flag in special]
    return EncodedText(text, words, encoding["input_ids"], token_words, special, _count_lost(owners, token_words))


def _owners_in(whole: list[int], ids: list[int], owners: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The words of the tokens of a whole text, from those of its words one by one: at a place where the tokens differ, each
    has all words of the place, or of the tokens on both sides where there are none."""
    found: list[tuple[int, ...]] = []
    for kind, start, end, new_start, new_end in SequenceMatcher(None, ids, whole).get_opcodes():
        if kind == "equal":
            found += owners[start:end]
            continue
        if start == end:
            start, end = max(start - 1, 0), end + 1
        place = {position for positions in owners[start:end] for position in positions}
        found += [tuple(sorted(place))] * (new_end - new_start)
    return found


def _count_lost(before: list[tuple[int, ...]], after: list[tuple[int, ...]]) -> int:
    return len({position for positions in before for position in positions}.difference(*after))
