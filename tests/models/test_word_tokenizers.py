"""Tokenizers of every kind against texts of every kind: what must hold between their tokens and the words."""

import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertTokenizerFast,
    ByT5Tokenizer,
    CanineTokenizer,
    PreTrainedTokenizer,
    PreTrainedTokenizerFast,
)

from hf_vat.models.words import encode_words

NO_LIMIT = 2**31 - 1

NASTY = [
    "I don't, y’all can't've; rock 'n' roll",
    "two  spaces\ta tab\nand\r\nlines ",
    "这部电影很好看。",
    "ภาพยนตร์เรื่องนี้ดีมาก",
    "映画はとても良いカタカナー人々 iPhone最高!",
    "הסרט טוב מאוד, צה״ל",
    "كِتَابٌ جَمِيلٌ جدّاً،",
    "हिन्दी फ़िल्म क्षत्रिय",
    "good👍🏽👍 👨\u200d👩\u200d👧\u200d👦!🤷🏽\u200d♂\ufe0f",
    "🇫🇷🇩🇪🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 1\ufe0f\u20e3",
    "cafe\u0301 nai\u0308ve e\u0301\u0323 Z\u0351\u036b a\u030alesund",
    "good\u200bfilm co\u00adoperate \ufeffx \u200e",
    "https://a.org/b?c=1&d=%20 me@x.org",
    "#great_film @some_one RT @x: #1",
    "3.5 1,000.00 1/2 ½ x² 10-12 ٣.٥ Ⅷ",
    "$5 €3,50 ₹100 5% £",
    "∀x∈ℝ: x²≥0 ⇒ √(x²)=|x| ∑ᵢ 𝒳",
    "<b class='x'>&amp;&nbsp;</b><br/>",
    "[CLS] good [MASK] </s> <s> [SEP]",
    "ﬁne ＦＵＬＬ ｗｉｄｔｈ ㎏ ﷺ İstanbul STRASSE straße",
    "Москва́ кириллица",
    "한국어 영화 \u1112\u1161\u11ab",
    "می\u200cخواهم ക്\u200d",
    "",
    " \t\n",
    "\u200b\u00ad",
    '?!... -- \u2014 ""',
    "\u0301 a \ufffd \ue000 \x00\x07",
]
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
ANY_TEXT = st.one_of(st.text(), st.lists(st.sampled_from(NASTY)).map("".join))


def visible(text: str) -> bool:
    return any(unicodedata.category(character)[0] not in "ZC" for character in text)


# Tokenizers


def fast(tokenizer: Tokenizer, template: str, **settings) -> PreTrainedTokenizerFast:
    if template:
        used = [piece.partition(":")[0] for piece in template.split() if not piece.startswith("$")]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=[(token, tokenizer.token_to_id(token)) for token in used]
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", **settings)


def roberta(add_prefix_space: bool) -> PreTrainedTokenizerFast:
    """Byte-level BPE: an emoji is several tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(NASTY * 2, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 3), ("<s>", 2), add_prefix_space=add_prefix_space)
    return fast(tokenizer, "")


def one_token_per_byte() -> PreTrainedTokenizerFast:
    """ByT5's tokens, from a fast tokenizer."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: position for position, token in enumerate([*SPECIAL, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return fast(tokenizer, "$A </s>")


def joined_words() -> PreTrainedTokenizerFast:
    """Byte-level BPE that never splits before it merges: one token can cover the end of a word and the next one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*NASTY, "a good film", "good film!", "d fi"] * 3, trainer)
    return fast(tokenizer, "<s> $A </s>")


def sentencepiece(*steps, template: str, **settings) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=250,
        special_tokens=[*SPECIAL, "<sep>", "<cls>"],
        unk_token="<unk>",
        show_progress=False,
    )
    tokenizer.train_from_iterator(NASTY[:20], trainer)
    return fast(tokenizer, template, **settings)


def wordpiece(lowercase: bool) -> BertTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(NASTY[:18], trainer)
    return BertTokenizerFast(vocab=tokenizer.get_vocab(), do_lower_case=lowercase)


LOSSLESS = {
    "roberta": roberta(add_prefix_space=False),
    "roberta_prefix_space": roberta(add_prefix_space=True),
    "joined_words": joined_words(),
    "bytes": one_token_per_byte(),
    "byt5": ByT5Tokenizer(),
    "canine": CanineTokenizer(),
}
TOKENIZERS = LOSSLESS | {
    "xlnet": sentencepiece(
        normalizers.Replace("``", '"'),
        normalizers.Replace("''", '"'),
        normalizers.NFKD(),
        normalizers.StripAccents(),
        template="$A:0 <sep>:0 <cls>:2",
        padding_side="left",
    ),
    "deberta_v3": sentencepiece(normalizers.NFKC(), normalizers.Strip(), template="<s> $A </s>"),
    "bert_uncased": wordpiece(lowercase=True),
    "bert_cased": wordpiece(lowercase=False),
}


# What must hold


def check(name: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]
    [encoded] = encode_words(tokenizer, [text], NO_LIMIT)
    assert encoded.input_ids == tokenizer(text)["input_ids"]

    covered = Counter(index for word in encoded.words for index in range(word.start, word.end))
    assert all(text[word.start : word.end] == word.text for word in encoded.words)
    assert all(count == 1 for count in covered.values())
    assert all(covered[index] == 1 for index, character in enumerate(text) if visible(character))

    for token, positions, special in zip(encoded.input_ids, encoded.token_words, encoded.special, strict=True):
        shown = tokenizer.decode([token])  # half a character is shown as U+FFFD, or not at all
        if special:
            assert positions == ()
        elif token != tokenizer.unk_token_id and "\ufffd" not in shown and visible(shown):
            assert positions, f"{shown!r} belongs to no word"

    values = [float(position + 1) for position in range(len(encoded.input_ids))]
    inside = sum(value for value, positions in zip(values, encoded.token_words, strict=True) if positions)
    assert sum(encoded.word_scores(values)) == pytest.approx(inside)

    for position, word in enumerate(encoded.words):
        ids = [token for token, words in zip(encoded.input_ids, encoded.token_words, strict=True) if position in words]
        shown = tokenizer.decode(ids)
        assert encoded.seen[position] == bool(ids)
        if name in LOSSLESS:
            assert word.text in shown
        elif visible(tokenizer.decode(tokenizer.encode(word.text, add_special_tokens=False))):
            assert ids, f"{word.text!r} has tokens, and none in the text"


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_c64_each_tokenizer_with_each_text(name, text):
    check(name, text)


@pytest.mark.parametrize("name", ["roberta", "deberta_v3"])
@given(text=ANY_TEXT)
def test_c64_any_text(name, text):
    check(name, text)


def test_all_tokens_of_an_emoji_belong_to_it():
    [encoded] = encode_words(TOKENIZERS["bytes"], ["a 👩🏽b"], NO_LIMIT)
    assert encoded.token_words == [(0,), (), *[(1,)] * 8, (2,), ()]


def test_a_token_over_the_end_of_one_word_and_the_next_belongs_to_both():
    tokenizer = TOKENIZERS["joined_words"]
    [encoded] = encode_words(tokenizer, ["a good film"], NO_LIMIT)
    shown = [tokenizer.decode([token]) for token in encoded.input_ids]
    assert encoded.token_words[shown.index("good film")] == (1, 2)
    one, two = encode_words(tokenizer, [["a", "good film"], ["a good", "film"]], NO_LIMIT)
    assert one.input_ids == two.input_ids == encoded.input_ids
    assert one.token_words[shown.index("good film")] == (1,)
    assert two.token_words[shown.index("good film")] == (0, 1)
    assert two.word_scores([float(text == "good film") for text in shown]) == [0.5, 0.5]


def test_of_two_marks_that_are_read_as_one_the_tokenizer_reports_one():
    [encoded] = encode_words(TOKENIZERS["xlnet"], ["a '' b"], NO_LIMIT)
    assert [word.text for word in encoded.words] == ["a", "'", "'", "b"]
    assert encoded.seen == [True, False, True, True] and encoded.truncated == 0


# Tokenizers in pure Python, without offsets


class Syllables(PreTrainedTokenizer):
    """Cuts at white space and around marks, then every two letters; knows each piece that it has met."""

    def __init__(self, **settings):
        self.pieces = {piece: position for position, piece in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])}
        names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        super().__init__(**names, special_tokens_pattern="cls_sep", **settings)

    vocab_size = property(lambda self: len(self.pieces))

    def get_vocab(self):
        return dict(self.pieces)

    def _tokenize(self, text):
        return [piece for run in re.findall(r"\w+|[^\w\s]", text) for piece in re.findall("..?", run)]

    def _convert_token_to_id(self, token):
        return self.pieces.setdefault(token, len(self.pieces))

    def _convert_id_to_token(self, index):
        return list(self.pieces)[index]


def test_c65_without_offsets_the_tokens_are_those_of_each_word():
    tokenizer = Syllables()
    assert not tokenizer.is_fast
    [encoded] = encode_words(tokenizer, ["a very\tgood film, don't!"], NO_LIMIT)
    assert [word.text for word in encoded.words] == ["a", "very", "good", "film", ",", "don't", "!"]
    assert tokenizer.convert_ids_to_tokens(encoded.input_ids) == (
        ["[CLS]", "a", "ve", "ry", "go", "od", "fi", "lm", ",", "do", "n", "'", "t", "!", "[SEP]"]
    )
    owners = [0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 5, 5, 6]
    assert encoded.token_words == [(), *[(owner,) for owner in owners], ()]
    assert encoded.special == [True] + [False] * 13 + [True]
    assert encoded.truncated == 0 and all(encoded.seen)


@pytest.mark.parametrize(
    ("side", "pieces", "seen", "truncated"),
    [
        ("right", ["a", "ve"], [True, True, False, False], 2),
        ("left", ["fi", "lm"], [False, False, False, True], 3),
    ],
)
def test_c65_without_offsets_words_are_cut_off_too(side, pieces, seen, truncated):
    tokenizer = Syllables(truncation_side=side)
    [encoded] = encode_words(tokenizer, ["a very good film"], 4)
    assert tokenizer.convert_ids_to_tokens(encoded.input_ids) == ["[CLS]", *pieces, "[SEP]"]
    assert encoded.input_ids == tokenizer("a very good film", truncation=True, max_length=4)["input_ids"]
    assert encoded.seen == seen and encoded.truncated == truncated
    [nothing] = encode_words(tokenizer, ["a very good film"], 2)
    assert nothing.special == [True, True] and nothing.truncated == 4


def test_c65_without_offsets_the_same_words_already_split():
    tokenizer = Syllables()
    [encoded] = encode_words(tokenizer, [["don", "'t", "stop"]], NO_LIMIT)
    assert encoded.text == "don 't stop" and encoded.input_ids == tokenizer("don 't stop")["input_ids"]
    assert encoded.token_words == [(), (0,), (0,), (1,), (1,), (2,), (2,), ()]


def test_f29_tokens_that_no_word_has_alone_belong_to_the_words_around_them():
    """ "film𐐀" ends a pair of characters where "film" alone would, so the pieces of the two runs differ from those of the words."""
    tokenizer = Syllables()
    [encoded] = encode_words(tokenizer, ["the film𐐀映画"], 32)
    assert encoded.input_ids == tokenizer("the film𐐀映画")["input_ids"]
    assert [word.text for word in encoded.words] == ["the", "film𐐀", "映", "画"]
    pieces = tokenizer.convert_ids_to_tokens(encoded.input_ids)
    assert pieces == ["[CLS]", "th", "e", "fi", "lm", "𐐀映", "画", "[SEP]"]
    assert encoded.token_words == [(), (0,), (0,), (1,), (1,), (1, 2), (3,), ()]


@pytest.mark.parametrize(
    ("typed", "owners"),
    [
        ("good [SEP] film", [(0,), (0,), (1, 2, 3), (4,), (4,)]),
        ("[CLS][CLS] good", [(0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5), (6,), (6,)]),
        ("good[SEP]", [(0,), (0,), (1, 2, 3)]),
        ("[SEP]", [(0, 1, 2)]),
    ],
)
def test_f29_special_tokens_typed_into_a_text_without_offsets(typed, owners):
    tokenizer = Syllables()
    [before, encoded, after] = encode_words(tokenizer, ["a film", typed, "very"], NO_LIMIT)
    assert encoded.input_ids == tokenizer(typed)["input_ids"]
    assert encoded.token_words == [(), *owners, ()]
    assert before.token_words[1:-1] == [(0,), (1,), (1,)] and after.token_words[1:-1] == [(0,), (0,)]
    assert sum(encoded.word_scores([1.0] * len(encoded.input_ids))) == pytest.approx(len(owners))


@given(text=st.lists(st.sampled_from([*"ab .𐐀映", "[SEP]", "[CLS]", "</s>"]), max_size=12).map("".join))
def test_f29_no_text_is_refused(text):
    for tokenizer in (Syllables(), TOKENIZERS["byt5"]):
        [encoded] = encode_words(tokenizer, [text], NO_LIMIT)
        assert encoded.input_ids == tokenizer(text)["input_ids"]
        for positions in encoded.token_words:
            assert all(0 <= position < len(encoded.words) for position in positions)


def test_c65_special_tokens_in_the_text():
    for name in ("byt5", "roberta", "deberta_v3"):
        [encoded] = encode_words(TOKENIZERS[name], ["good</s>"], 32)
        content = encoded.special[1:-1] if name != "byt5" else encoded.special[:-1]
        assert not any(content) and encoded.special[-1] and all(encoded.seen)
