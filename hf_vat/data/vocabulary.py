"""Words as the units of a model: a word-level tokenizer whose vocabulary is counted on the training texts.

It is an ordinary fast tokenizer, saved by `save_pretrained` and loaded by `AutoTokenizer`, and reports the span of each
token in the text as typed. Nothing is put around a text: no [CLS], no [SEP].
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Integral

from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from hf_vat.errors import InputError, check_texts

# In this order, so that padding has id 0.
_SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}

# The rule of hf_vat.models.words in the dialect of the tokenizers library.
_HAN = r"\p{Han}\p{M}*"
_FIRST = r"[\p{L}\p{N}\p{M}_&&[^\p{Han}]]"
_LATER = r"[\p{L}\p{N}\p{M}_\u200c\u200d&&[^\p{Han}]]"
_APOSTROPHE = "['’]"
_IN_NUMBER = r"(?<=\p{N})[.,](?=\p{N})"
_SYMBOL = r"(?![\s\p{Z}\p{C}])\X"
_WORD = f"{_FIRST}(?:{_LATER}|['’\\-‐‑](?={_FIRST})|{_IN_NUMBER})*"

_TAG = rf"(?<!{_LATER})[#@][\p{{L}}_&&[^\p{{Han}}]]{_LATER}*"

_BARE_FIRST = r"[\p{L}\p{N}\p{M}&&[^\p{Han}]]"
_BARE_LATER = r"[\p{L}\p{N}\p{M}\u200c\u200d&&[^\p{Han}]]"
_BARE_SYMBOL = r"(?=[(),!?'`])\X"
_DROPPED = r"(?![\s\p{Z}\p{C}\p{L}\p{N}\p{M}(),!?'`])\X"
_BARE_WORD = f"{_BARE_FIRST}(?:{_BARE_LATER}|{_APOSTROPHE}(?={_BARE_FIRST}))*"

_NOT = f"n{_APOSTROPHE}t(?!{_LATER})"
_CLITIC = f"{_APOSTROPHE}(?:s|re|ve|ll|d|m)(?!{_LATER})"
_STEM = f"{_FIRST}(?:(?!{_NOT}){_LATER}|{_IN_NUMBER})*"
_WITH_DIGIT = rf"(?<!{_LATER})[\p{{L}}\p{{M}}_\u200c\u200d&&[^\p{{Han}}]]*\p{{Nd}}(?:{_LATER}|{_IN_NUMBER})*"

# For each preset the tokens, and what is done to the text before they are cut.
_PRESETS: dict[str, tuple[list[str], list[normalizers.Normalizer]]] = {
    "plain": ([_HAN, _WORD, _SYMBOL], []),
    "vat": ([_HAN, _TAG, _WORD, _SYMBOL], [normalizers.Lowercase()]),
    # A symbol goes with the marks on it, which would begin the next word.
    "vmask": ([_HAN, _BARE_WORD, _BARE_SYMBOL], [normalizers.Lowercase(), normalizers.Replace(Regex(_DROPPED), " ")]),
    "jw": (
        [_HAN, _NOT, _CLITIC, _STEM, _SYMBOL],
        [normalizers.Lowercase(), normalizers.Replace(Regex(_WITH_DIGIT), "qqq")],
    ),
}


def train_word_tokenizer(
    texts: Iterable[str],
    preset: str = "plain",
    min_count: int = 1,
    max_size: int | None = None,
    model_max_length: int = 256,
    extra_words: Iterable[str] = (),
) -> PreTrainedTokenizerFast:
    """A tokenizer whose tokens are the words of `texts`; every other word becomes [UNK] and keeps its place and span.

    The presets cut and change a text thus:

    - "plain": the words of [`split_words`], as typed;
    - "vat": the same in lower case, but a hashtag or mention is one token (Zhou et al., 2021, say only that words are
      the units);
    - "vmask": lower case; of the characters that are no letters or digits only ( ) , ! ? ' and ` are kept, and hyphens
      and points separate. Counted on all splits of SST, this comes within 7 words of the sizes that Chen and Ji (EMNLP
      2020, Table 7) print. Their threshold t is `min_count=t + 1`: only so is their size for Subj within reach;
    - "jw": lower case, contractions and hyphenated words in pieces ("do", "n't"; "well", "-", "made"), and each word
      with a digit becomes "qqq" (Jain and Wallace, NAACL 2019, without their tokens around the text). The span of a
      "qqq" is the last character or characters of what it stands for.

    In all but "vmask" each word of [`split_words`] has at least one token. A text without words has no tokens.

    Args:
        texts: the texts of the training split alone, or the model is told about words of the others.
        preset: "plain", "vat", "vmask" or "jw".
        min_count: how often a word must occur.
        max_size: keep this many words at most, the most frequent ones.
        model_max_length: number of tokens after which texts are cut off.
        extra_words: words that the vocabulary has besides, such as those of pretrained vectors
            ([`hf_vat.data.vectors.read_words`]); those that no text of this preset can yield are left out.

    Returns:
        The tokenizer. Its ids are [PAD] 0, [UNK] 1, [MASK] 2, then the words by falling count, equal ones by alphabet,
        then the extra words in their order. Special tokens typed in a text are ordinary words.

    Raises:
        InputError: if the preset is unknown, a number is out of range, an entry of `texts` is not a text, or no word
            occurs often enough.
    """
    if preset not in _PRESETS:
        raise InputError(f"preset is {preset!r}; allowed are {', '.join(map(repr, _PRESETS))}.")
    for name, number in (("min_count", min_count), ("max_size", max_size), ("model_max_length", model_max_length)):
        if not (name == "max_size" and number is None) and (not isinstance(number, Integral) or number < 1):
            raise InputError(f"{name} is {number!r}; give a whole number of at least 1.")
    tokens, changes = _PRESETS[preset]
    backend = Tokenizer(WordLevel(unk_token=_SPECIAL["unk_token"]))
    backend.normalizer = normalizers.Sequence(changes)
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("|".join(tokens)), "removed", invert=True)

    counts = _count(backend, texts)
    frequent = [word for word in sorted(counts, key=lambda word: (-counts[word], word)) if counts[word] >= min_count]
    if not frequent:
        raise InputError(
            f"No word occurs at least {min_count} times in the texts ({len(counts)} different words in all); give more "
            "texts or a smaller min_count."
        )
    extra = [word for word in check_texts(extra_words) if isinstance(word, str) and _split(backend, word) == [word]]
    vocabulary = list(dict.fromkeys([*_SPECIAL.values(), *frequent[:max_size], *extra]))
    backend.model = WordLevel({word: index for index, word in enumerate(vocabulary)}, unk_token=_SPECIAL["unk_token"])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, model_max_length=model_max_length, split_special_tokens=True, **_SPECIAL
    )
    if len(tokenizer) != len(vocabulary) or tokenizer.convert_ids_to_tokens(len(_SPECIAL)) != frequent[0]:
        # Some releases of transformers have put a vocabulary of their own in the place of the given one.
        raise RuntimeError(f"transformers made {len(tokenizer)} tokens out of a vocabulary of {len(vocabulary)}.")
    return tokenizer


def count_words(tokenizer: PreTrainedTokenizerFast, texts: Iterable[str]) -> Counter[str]:
    """How often each word occurs in the texts, words outside the vocabulary included, as the tokenizer writes them.

    Args:
        tokenizer: one of [`train_word_tokenizer`].
        texts: any texts, such as those of the test split.

    Raises:
        InputError: if an entry of `texts` is not a text.
    """
    return _count(tokenizer.backend_tokenizer, texts)


def _count(backend: Tokenizer, texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in check_texts(texts) for word in _split(backend, text))


def _split(backend: Tokenizer, text: str | Sequence[str]) -> list[str]:
    text = text if isinstance(text, str) else " ".join(text)
    return [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text))]
