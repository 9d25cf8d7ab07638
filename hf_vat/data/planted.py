"""Classification data whose decisive words are known, to check explainers against the truth.

A label is drawn first, then words that speak for it ("polar" words) among neutral ones, which are drawn alike for both
classes (after the synthetic data of Sun & Lu, ACL 2020). The words are artificial, so that no pretrained knowledge decides.
"""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import Literal

import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict, Features, Sequence, Value
from transformers import BertTokenizer

from hf_vat.errors import InputError

# Share of the polar words that are of the opposite class.
_OPPOSITE_RATES = {"clean": 0.0, "noisy": 0.05, "negated": 0.25}

_SYLLABLES = ["".join(letters) for letters in product("bdfgklmnprtv", "aeiou")]
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@dataclass(frozen=True)
class PlantedVocabulary:
    """The word types of [`planted_evidence`] by group, each word of the letters a to z and in one group only.

    Attributes:
        positive, negative: polar words, which speak for their class.
        neutral: words that say nothing about the class.
        negators: words that turn a polar word right after them into one of the opposite class, and say nothing
            elsewhere; used by the variant "negated" alone.

    Raises:
        InputError: if a group is empty, a word holds other characters, or a word occurs twice.
    """

    positive: tuple[str, ...]
    negative: tuple[str, ...]
    neutral: tuple[str, ...]
    negators: tuple[str, ...] = ("not", "never")

    def __post_init__(self):
        for name, words in vars(self).items():
            if not words:
                raise InputError(f"The vocabulary has no {name} words; give at least one.")
        for word, count in Counter(self.words).items():
            if not isinstance(word, str) or not re.fullmatch("[a-z]+", word):
                raise InputError(f"The vocabulary has the word {word!r}; use the lower case letters a to z only.")
            if count > 1:
                raise InputError(f"The vocabulary has {word!r} {count} times; each word may occur once, in one group.")

    @property
    def words(self) -> list[str]:
        """All words: positive, negative, neutral, negators."""
        return [*self.positive, *self.negative, *self.neutral, *self.negators]


def planted_vocabulary(positive: int = 50, negative: int = 50, neutral: int = 1000) -> PlantedVocabulary:
    """Artificial words of three syllables, such as "pogake", always the same; the default numbers are the paper's.

    Raises:
        InputError: if a number is below 1, or all together exceed 216,000.
    """
    limit = len(_SYLLABLES) ** 3
    total = positive + negative + neutral
    if min(positive, negative, neutral) < 1 or total > limit:
        raise InputError(
            f"A vocabulary of {positive} positive, {negative} negative and {neutral} neutral words: each number must "
            f"be at least 1, and the sum at most {limit}."
        )
    words = [_word(number) for number in range(total)]
    return PlantedVocabulary(
        tuple(words[:positive]),
        tuple(words[positive : positive + negative]),
        tuple(words[positive + negative :]),
    )


def planted_tokenizer(vocabulary: PlantedVocabulary) -> BertTokenizer:
    """A tokenizer with one token for each word: the special tokens of BERT, then `vocabulary.words`."""
    return BertTokenizer(vocab={word: token_id for token_id, word in enumerate(_SPECIAL + vocabulary.words)})


def planted_evidence(
    train_size: int = 12_000,
    validation_size: int = 1_000,
    test_size: int = 1_000,
    variant: Literal["clean", "noisy", "negated"] = "clean",
    *,
    vocabulary: PlantedVocabulary | None = None,
    polar_words: int = 2,
    neutral_words: int = 10,
    opposite_rate: float | None = None,
    positive_share: float = 0.5,
    seed: int = 0,
) -> DatasetDict:
    """Texts with known decisive words (Sun & Lu, ACL 2020; the defaults are those of their synthetic data).

    All words are drawn uniformly with repetition and put in random order.

    - "clean" (their Data I): the polar words are of the label's class, and are the rationale.
    - "noisy" (their Data II): each polar word is replaced by one of the opposite class with probability
      `opposite_rate`. The rationale is the polar words of the label's class. It is empty where all were replaced (1 text
      in 400 with the defaults): nothing there speaks for the label, and recall is undefined.
    - "negated": as "noisy", but a negator stands right before each polar word of the opposite class, so that the two
      together speak for the label. The rationale is all polar words and these negators. Each text has as many negators
      as polar words; those left over are distractors, each before two neutral words. What holds: neutral words and
      negators are as frequent in one class as in the other; the rationale alone has the same label; deleting any one
      other word puts no negator before a polar word. With two polar words and balanced classes a model that does not
      see the order of words has an expected accuracy of at most 1 - `opposite_rate`; with 0.5 it has to guess.

    Each split has its own random generator, so it stays the same when the sizes of the others change.

    Args:
        train_size, validation_size, test_size: number of texts.
        vocabulary: the word types; [`planted_vocabulary`] if not given.
        polar_words, neutral_words: words of a text.
        opposite_rate: 0 to 0.5; by default 0.05 for "noisy" (our choice: the paper says "a few times") and 0.25 for
            "negated".
        positive_share: share of positive texts in each split (rounded), e.g. 1/3 for 1 positive to 2 negative.

    Returns:
        Splits "train", "validation" and "test" with the columns `text` (words and single spaces), `label` (`ClassLabel`
        negative, positive) and `rationale` (one 0 or 1 for each word, 1 on the decisive ones).

    Raises:
        InputError: if the variant is unknown or a number is out of range.
    """
    if variant not in _OPPOSITE_RATES:
        raise InputError(f"variant is {variant!r}; allowed are {', '.join(map(repr, _OPPOSITE_RATES))}.")
    sizes = {"train": train_size, "validation": validation_size, "test": test_size}
    least_neutral = 2 * polar_words if variant == "negated" else 0
    for name, number, least in (
        *((f"{split}_size", size, 1) for split, size in sizes.items()),
        ("polar_words", polar_words, 1),
        ("neutral_words", neutral_words, least_neutral),
        ("seed", seed, 0),
    ):
        if not isinstance(number, Integral) or number < least:
            raise InputError(
                f"{name} is {number!r}; for the variant {variant!r} it must be a whole number of at least {least}."
            )
    rate = _OPPOSITE_RATES[variant] if opposite_rate is None else opposite_rate
    highest = 0 if variant == "clean" else 0.5
    if not 0 <= rate <= highest:
        raise InputError(f"opposite_rate is {rate}; for the variant {variant!r} it may be 0 to {highest}.")
    if not 0 < positive_share < 1:
        raise InputError(f"positive_share is {positive_share}; it must be above 0 and below 1.")

    planter = _Planter(vocabulary or planted_vocabulary(), variant == "negated", polar_words, neutral_words, rate)
    return DatasetDict(
        {
            split: planter.plant(size, round(positive_share * size), np.random.default_rng((seed, number)))
            for number, (split, size) in enumerate(sizes.items())
        }
    )


@dataclass(frozen=True)
class _Planter:
    vocabulary: PlantedVocabulary
    negated: bool
    polar_words: int
    neutral_words: int
    opposite_rate: float

    def plant(self, size: int, positives: int, generator: np.random.Generator) -> Dataset:
        labels = generator.permutation(np.arange(size) < positives)
        rows = [self._text(label, generator) for label in labels]
        return Dataset.from_dict(
            {
                "text": [" ".join(word for word, _ in row) for row in rows],
                "label": labels.astype(int),
                "rationale": [[decisive for _, decisive in row] for row in rows],
            },
            features=Features(
                {
                    "text": Value("string"),
                    "label": ClassLabel(names=["negative", "positive"]),
                    "rationale": Sequence(Value("int8")),
                }
            ),
        )

    def _text(self, positive: bool, generator: np.random.Generator) -> list[tuple[str, int]]:
        """Words and whether they are decisive, from phrases whose words stay together."""
        vocabulary = self.vocabulary
        neutral = [(word, 0) for word in _draw(vocabulary.neutral, self.neutral_words, generator)]
        negators = _draw(vocabulary.negators, self.polar_words if self.negated else 0, generator)
        phrases = []
        for opposite in generator.random(self.polar_words) < self.opposite_rate:
            [polar] = _draw(vocabulary.positive if positive != opposite else vocabulary.negative, 1, generator)
            if opposite and self.negated:
                phrases.append([(negators.pop(), 1), (polar, 1)])
            else:
                phrases.append([(polar, int(not opposite))])
        # Two neutral words, since one alone could be deleted and leave the negator before a polar word.
        phrases += [[(negator, 0), neutral.pop(), neutral.pop()] for negator in negators]
        phrases += [[word] for word in neutral]
        return [word for number in generator.permutation(len(phrases)) for word in phrases[number]]


def _draw(words: tuple[str, ...], count: int, generator: np.random.Generator) -> list[str]:
    return [words[number] for number in generator.integers(len(words), size=count)]


def _word(number: int) -> str:
    # The stride is coprime to the number of words: all differ, and each group has all letters.
    syllables = len(_SYLLABLES)
    number = (number + 1) * 76_543 % syllables**3
    return "".join(_SYLLABLES[number // syllables**place % syllables] for place in range(3))
