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

A pair of texts, such as a question and a passage, is a dictionary of `text` and `text_pair`, as in transformers' pipeline. Its
words are those of both, one after the other; the special tokens between them belong to no word.
"""

import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache, cached_property
from itertools import chain, repeat
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
PAIR = ("text", "text_pair")  # the keys of a pair of texts
_NO_LIMIT = 2**31 - 1
TYPE_BITS = 32  # below which stands the id of a typed token
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
            a word that the tokenizer drops at any length is neither seen nor cut off. Of a pair it is the longer text that
            is cut, as long as it is the longer one.
        text_pair: the second text of a pair.
        pair_start: of a pair the position in `words` of the first word of its second text.
        token_types: for each token its type, where one of them differs from 0 (BERT: 1 in the second text of a pair; XLNet:
            2 at its last token).
    """

    text: str
    words: list[Word]
    input_ids: list[int]
    token_words: list[tuple[int, ...]]
    special: list[bool]
    truncated: int = 0
    text_pair: str | None = None
    pair_start: int | None = None
    token_types: tuple[int, ...] = ()

    @cached_property
    def typed_ids(self) -> list[int]:
        """The token ids as [`hf_vat.inference`] takes them: above the lowest 32 bits of each stands the token's type."""
        if not self.token_types:
            return self.input_ids
        return [token | kind << TYPE_BITS for token, kind in zip(self.input_ids, self.token_types, strict=True)]

    @property
    def texts(self) -> list[str]:
        """The text, or both of a pair."""
        return [self.text] if self.text_pair is None else [self.text, self.text_pair]

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

    def without_words(self, token_id: int) -> list[int]:
        """The typed ids of its special tokens, and of one token that stands where the words were, as a model needs something to read;
        of a text without words all its ids.

        Args:
            token_id: of the token that stands for the words.
        """
        first = next((place for place, words in enumerate(self.token_words) if words), None)
        if first is None:
            return self.typed_ids
        left = [ids for ids, special in zip(self.typed_ids, self.special, strict=True) if special]
        kind = self.typed_ids[first] >> TYPE_BITS << TYPE_BITS
        left.insert(sum(self.special[:first]), kind + token_id)
        return left

    def adding_up_to(self, total: float, scores: list[float]) -> list[float]:
        """Scores of words, each word that is seen with an equal share of what they lack of a total."""
        share = (total - sum(scores)) / max(sum(self.seen), 1)
        return [score + share * seen for score, seen in zip(scores, self.seen, strict=True)]

    def word_averages(self, token_scores) -> list[float]:
        """[`word_scores`], divided by the number of the word's tokens; 0 for words that the model does not see."""
        totals, tokens = self.word_scores(token_scores), self.word_scores([1.0] * len(self.input_ids))
        return [total / count if count else 0.0 for total, count in zip(totals, tokens, strict=True)]


def maximum_length(model, tokenizer) -> int:
    """Number of tokens, special ones included, that both the tokenizer and the model's positions allow; where the model reads
    texts in windows, the tokenizer alone.

    Without any limit it is 2**31 - 1.
    """
    # A tokenizer without a limit says 1e30, more than its own truncation can count.
    in_windows = getattr(model.config, "window_length", None) is not None
    return min(tokenizer.model_max_length, _NO_LIMIT if in_windows else positions_of(model))


def positions_of(model) -> int:
    """Number of tokens, special ones included, that a model's positions allow at once; 2**31 - 1 where they allow any."""
    offset, rows = _offset_positions(model)
    if offset is not None:
        return rows - offset - 1
    positions = getattr(model.config, "max_position_embeddings", None) or 0
    return _NO_LIMIT if positions < 1 else positions  # XLNet says -1


def position_offset(model) -> int | None:
    """The id of the padding token after which RoBERTa and its kin count positions, and which they do not count; None for
    models that count from 0, or have no positions."""
    return _offset_positions(model)[0]


def _offset_positions(model) -> tuple[int | None, int]:
    """The offset, and the number of rows of the table that is read from there on."""
    for name, module in model.named_modules():
        if name.rpartition(".")[2] != "position_embeddings":
            continue
        rows = getattr(module, "num_embeddings", getattr(module, "num_", None))  # the second of I-BERT
        if rows is not None and getattr(module, "padding_idx", None) is not None:
            return module.padding_idx, rows
    return None, 0


def special_tokens_around(tokenizer) -> tuple[list[int], list[int]]:
    """The special tokens that a tokenizer puts before and after a text, see [`EncodedText.typed_ids`]: BERT [CLS] and [SEP],
    XLNet none and two."""
    with _TOKENIZING:
        encoded = tokenizer("a", return_special_tokens_mask=True)
    flags = encoded["special_tokens_mask"]
    types = encoded.get("token_type_ids") if "token_type_ids" in tokenizer.model_input_names else None
    ids = [
        token | kind << TYPE_BITS for token, kind in zip(encoded["input_ids"], types or [0] * len(flags), strict=True)
    ]
    before = flags.index(0) if 0 in flags else 0
    return ids[:before], ids[len(flags) - flags[::-1].index(0) if 0 in flags else 0 :]


def special_token_ids(tokenizer) -> list[int]:
    """The ids of the tokens that a tokenizer puts around a text and between two: BERT [CLS] and [SEP], GPT-2 none."""
    found = set()
    for texts in (["a"], ["a", "a"]):  # not every tokenizer says what stands between two
        with _TOKENIZING:
            encoded = tokenizer(*texts, return_special_tokens_mask=True)
        flagged = zip(encoded["input_ids"], encoded["special_tokens_mask"], strict=True)
        found |= {token for token, special in flagged if special}
    return sorted(found)


def encode_words(
    tokenizer, texts: Sequence[str | Sequence[str] | Mapping[str, str | Sequence[str]]], max_length: int
) -> list[EncodedText]:
    """Tokenize texts and align the tokens with the words of each text by character offsets.

    A tokenizer without offsets (one in pure Python) is asked word by word instead. Where a text's tokens are others than
    those of its words one by one, such as a typed "[SEP]", they cover all words of the place that differs.

    Args:
        tokenizer: a tokenizer of transformers, fast or not.
        texts: texts exactly as the user wrote them; a list of words stands for a text that is already split, a dictionary of
            `text` and `text_pair` for a pair.
        max_length: tokens to keep, special ones included; see [`maximum_length`].
    """
    if not texts:
        return []
    parts = [[text[key] for key in PAIR] if isinstance(text, Mapping) else [text] for text in texts]
    if WordBreaker is None and any(
        isinstance(part, str) and any(_unspaced_runs(part)) for some in parts for part in some
    ):
        _warn_unspaced()
    split = [[_as_words(part) for part in some] for some in parts]
    if tokenizer.is_fast:
        encoded = _encode_by_offsets(tokenizer, split, max_length)
    else:
        encoded = [_encode_by_words(tokenizer, some, max_length) for some in split]
    # A model needs something to read, and some tokenizers give an empty text no token at all.
    stand_ins = (tokenizer.unk_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id, tokenizer.pad_token_id)
    stand_in = [token for token in stand_ins if token is not None][:1]
    return [
        text if text.input_ids else replace(text, input_ids=stand_in, token_words=[()], special=[True])
        for text in encoded
    ]


def _as_words(given: str | Sequence[str]) -> "_Part":
    if isinstance(given, str):
        return _Part(given, split_words(given))
    words, start = [], 0
    for text in given:
        words.append(Word(text, start, start + len(text)))
        start += len(text) + 1
    return _Part(" ".join(given), words)


class _Part(NamedTuple):
    """A text, or one of a pair."""

    text: str
    words: list[Word]


@cache
def _warn_unspaced() -> None:
    """Once in a process."""
    warnings.warn(
        "Some texts are in a script without spaces (Thai, Lao, Khmer, Burmese or Japanese), where a whole sentence counts as "
        "one word. To have their words, run: pip install icu4py. Or give each text as a list of its words.",
        stacklevel=4,
    )


def _encode_by_offsets(tokenizer, texts: list[list[_Part]], max_length: int) -> list[EncodedText]:
    found: dict[int, EncodedText] = {}
    for size in {len(parts) for parts in texts}:
        places = [place for place, parts in enumerate(texts) if len(parts) == size]
        columns = zip(*([part.text for part in texts[place]] for place in places), strict=True)
        with _TOKENIZING:
            batch = tokenizer(*map(list, columns), truncation=True, max_length=max_length)
        for place, encoding in zip(places, batch.encodings, strict=True):
            rest = encoding.overflowing
            if size == 2 and len(encoding.ids) >= max_length:  # of a pair these are all ways to cut it
                with _TOKENIZING:
                    rest = tokenizer(*(part.text for part in texts[place]), verbose=False).encodings
            types = encoding.type_ids if "token_type_ids" in tokenizer.model_input_names else ()
            found[place] = _align(texts[place], encoding, rest, types)
    return [found[place] for place in range(len(texts))]


def _align(parts: list[_Part], encoding, rest: list, types: Sequence[int]) -> EncodedText:
    """
    Args:
        rest: encodings of tokens that may have been cut off.
        types: of the tokens, as far as the model reads them.
    """
    offsets = [0, len(parts[0].words)]
    starts = [[word.start for word in part.words] for part in parts]
    ends = [[word.end for word in part.words] for part in parts]

    def words_of_tokens(part) -> list[tuple[int, ...]]:
        # Special tokens have the span (0, 0), which meets no word; in a pair they are of neither text.
        sides = part.sequence_ids if len(parts) == 2 else repeat(0, len(part.ids))
        return [
            ()
            if side is None
            else tuple(
                range(offsets[side] + bisect_right(ends[side], start), offsets[side] + bisect_left(starts[side], end))
            )
            for side, (start, end) in zip(sides, part.offsets, strict=True)
        ]

    token_words = words_of_tokens(encoding)
    overflow = [positions for one in rest for positions in words_of_tokens(one)]
    special = [bool(flag) for flag in encoding.special_tokens_mask]
    return _as_encoded(parts, encoding.ids, token_words, special, _count_lost(overflow, token_words), types)


def _as_encoded(
    parts: list[_Part],
    ids: list[int],
    token_words: list[tuple[int, ...]],
    special: list[bool],
    lost: int,
    types: Sequence[int],
) -> EncodedText:
    types = tuple(types) if any(types) else ()
    if len(parts) == 1:
        return EncodedText(*parts[0], ids, token_words, special, lost, token_types=types)
    first, second = parts
    words = [*first.words, *second.words]
    return EncodedText(first.text, words, ids, token_words, special, lost, second.text, len(first.words), types)


def _encode_by_words(tokenizer, parts: list[_Part], max_length: int) -> EncodedText:
    """[`_align`] without offsets: a token belongs to the part of the text that it is the token of."""
    whole, owners, first = [], [], 0
    for part in parts:
        ids, own = _tokens_by_words(tokenizer, part, first)
        whole.append(ids)
        owners.append(own)
        first += len(part.words)
    surplus = sum(map(len, whole)) + tokenizer.num_special_tokens_to_add(len(parts) == 2) - max_length
    if surplus > 0:
        cut = tokenizer.truncate_sequences(
            whole[0], whole[1] if len(parts) == 2 else None, surplus, truncation_strategy="longest_first"
        )
        whole = list(cut[: len(parts)])
    encoding = tokenizer.prepare_for_model(*whole, return_special_tokens_mask=True, verbose=False)
    special = [bool(flag) for flag in encoding["special_tokens_mask"]]
    from_the_left = tokenizer.truncation_side == "left"
    kept = chain.from_iterable(
        own[len(own) - len(ids) :] if from_the_left else own[: len(ids)] for own, ids in zip(owners, whole, strict=True)
    )
    token_words = [() if flag else next(kept) for flag in special]
    lost = _count_lost([own for some in owners for own in some], token_words)
    types = encoding.get("token_type_ids", ()) if "token_type_ids" in tokenizer.model_input_names else ()
    return _as_encoded(parts, encoding["input_ids"], token_words, special, lost, types)


def _tokens_by_words(tokenizer, part: _Part, first: int) -> tuple[list[int], list[tuple[int, ...]]]:
    """The tokens of a text, and the words of each, whose positions begin with `first`."""

    def ids_of(piece: str) -> list[int]:
        return tokenizer(piece, add_special_tokens=False, verbose=False)["input_ids"]

    text, words = part
    ids, end = [], 0
    owners: list[tuple[int, ...]] = []
    for position, word in enumerate([*words, Word("", len(text), len(text))], first):
        # What stands between words has tokens too if the tokenizer splits into characters.
        for piece, owner in ((text[end : word.start], ()), (word.text, (position,))):
            piece_ids = ids_of(piece) if piece else []
            ids += piece_ids
            owners += [owner] * len(piece_ids)
        end = word.end
    whole = ids_of(text)
    return whole, _owners_in(whole, ids, owners)


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
