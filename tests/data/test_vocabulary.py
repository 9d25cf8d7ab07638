"""Words as units: what the word-level tokenizer cuts, keeps and reports, checked against the word rule of the package."""

import csv
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, DataCollatorWithPadding

import hf_vat.data.vocabulary as vocabulary
from hf_vat.data.vocabulary import count_words, train_word_tokenizer
from hf_vat.errors import InputError
from hf_vat.models.words import _unspaced_runs, encode_words, split_words

PRESETS = ["plain", "vat", "vmask", "jw"]
# On unassigned characters (Cn) the word rules of the package and of the tokenizers library differ.
# In runs of scripts without spaces the package has ICU's words, and a word-level tokenizer one token.
TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=["Cs", "Cn"]), st.sampled_from("aZß1٣.,'’-_#@ \t\u200d"))
).filter(lambda text: not any(_unspaced_runs(text)))

NASTY = [
    "I don't like this well-made film, at all!",
    "Café good 😀 film 👨\u200d👩\u200d👧\u200d👦 🇫🇷",
    "кириллица хорошо 这部电影很好看",
    "naïve café nai\u0308ve cafe\u0301",
    "good\u200bfilm הסרט טוב İstanbul",
    "two  spaces\ta tab\nand\r\nlines ",
    "3.5 1,000 1930s #tag @me c#9 [MASK]",
]


def read(folder, split: str) -> list[str]:
    with open(folder / f"{split}.csv", encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def spans(tokenizer, text: str) -> list[tuple[int, int]]:
    return tokenizer(text, truncation=False, return_offsets_mapping=True)["offset_mapping"]


def lowered(text: str) -> str:
    """Each character alone, as tokenizers does it: "ΑΣ" ends in σ, not ς."""
    return "".join(character.lower() for character in text)


@pytest.fixture(scope="module", params=PRESETS)
def preset_tokenizer(request):
    return train_word_tokenizer(NASTY, request.param), request.param


# The vocabulary


def test_ids_by_count_then_alphabet_after_the_special_tokens():
    tokenizer = train_word_tokenizer(["b a b", "c a", "d"], model_max_length=7)
    assert tokenizer.convert_ids_to_tokens(range(len(tokenizer))) == ["[PAD]", "[UNK]", "[MASK]", "a", "b", "c", "d"]
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.mask_token_id) == (0, 1, 2)
    assert tokenizer.model_max_length == 7


def test_the_order_of_the_texts_does_not_matter():
    assert train_word_tokenizer(NASTY).get_vocab() == train_word_tokenizer(NASTY[::-1]).get_vocab()


def test_rare_words_and_words_beyond_the_size_are_unknown():
    texts = ["a a a b b c"]
    assert train_word_tokenizer(texts, min_count=2)("a b c")["input_ids"] == [3, 4, 1]
    assert train_word_tokenizer(texts, max_size=1)("a b c")["input_ids"] == [3, 1, 1]


def test_extra_words_follow_and_those_out_of_reach_are_left_out():
    extra = ["b", "zebra", "Upper", "two words", "u.s.", "[PAD]", "n't", ""]
    tokenizer = train_word_tokenizer(["a b"], "vat", extra_words=extra)
    assert tokenizer.convert_ids_to_tokens(range(3, len(tokenizer))) == ["a", "b", "zebra", "n't"]


def test_p01_a_vocabulary_that_transformers_replaces_is_noticed(monkeypatch):
    tokenizer = train_word_tokenizer(["good film"])
    assert len(tokenizer) == 5
    assert tokenizer.convert_tokens_to_ids("good") != tokenizer.unk_token_id
    other = train_word_tokenizer(["good"])
    monkeypatch.setattr(vocabulary, "PreTrainedTokenizerFast", lambda **settings: other)
    with pytest.raises(RuntimeError, match="4 tokens out of a vocabulary of 5"):
        train_word_tokenizer(["good film"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"texts": ["a"], "preset": "bert"}, "'bert'; allowed are 'plain', 'vat', 'vmask', 'jw'"),
        ({"texts": ["a"], "min_count": 0}, "min_count is 0"),
        ({"texts": ["a"], "max_size": 0}, "max_size is 0"),
        ({"texts": ["a"], "model_max_length": 2.5}, "model_max_length is 2.5"),
        ({"texts": ["a", None]}, "Text 1 is None"),
        ({"texts": "a text"}, "one string"),
        ({"texts": ["a"], "extra_words": "the"}, "one string"),
        ({"texts": ["a b", "c"], "min_count": 2}, r"at least 2 times in the texts \(3 different"),
        ({"texts": ["", " \n"]}, r"at least 1 times in the texts \(0 different"),
    ],
)
def test_wrong_input_is_named(settings, message):
    with pytest.raises(InputError, match=message):
        train_word_tokenizer(**settings)


# The presets


@pytest.mark.parametrize(
    ("preset", "tokens"),
    [
        ("plain", ["I", "don't", "like", "2", "well-made", "films", ":", "#", "bad", "@", "me", "'", "s", "3.5"]),
        ("vat", ["i", "don't", "like", "2", "well-made", "films", ":", "#bad", "@me", "'", "s", "3.5"]),
        ("vmask", ["i", "don't", "like", "2", "well", "made", "films", "bad", "me", "'", "s", "3", "5"]),
        (
            "jw",
            ["i", "do", "n't", "like", "qqq", "well", "-", "made", "films", ":", "#", "bad", "@", "me", "'s", "qqq"],
        ),
    ],
)
def test_presets_by_hand(preset, tokens):
    tokenizer = train_word_tokenizer(["x"], preset)
    assert count_words(tokenizer, ["I don't like 2 well-made films: #bad @me 's 3.5"]) == Counter(tokens)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("can't cannot isn’t n't", ["ca", "n't", "cannot", "is", "n’t", "n't"]),
        ("it's they're I'd o'clock 'tis", ["it", "'s", "they", "'re", "i", "'d", "o", "'", "clock", "'", "tis"]),
        ("co2 1,000 1930s 15-year a1b_2 x² ٣", ["qqq", "qqq", "qqq", "qqq", "-", "year", "qqq", "x²", "qqq"]),
    ],
)
def test_contractions_and_numbers_of_jw(text, tokens):
    tokenizer = train_word_tokenizer([text], "jw")
    assert tokenizer.tokenize(text) == tokens


def test_a_number_is_no_hashtag_and_an_address_keeps_its_name():
    tokenizer = train_word_tokenizer(["#39;s c#x me@x.org ##tag"], "vat")
    assert tokenizer.tokenize("#39;s c#x ##tag") == ["#", "39", ";", "s", "c", "#", "x", "#", "#tag"]


# Tokens and words


@given(text=TEXTS)
def test_c49_plain_tokens_are_the_words_of_the_package(text):
    tokenizer = train_word_tokenizer(["x"])
    assert spans(tokenizer, text) == [(word.start, word.end) for word in split_words(text)]


def test_f26_the_words_of_a_script_without_spaces_share_their_token():
    pytest.importorskip("icu4py")
    tokenizer = train_word_tokenizer(["ภาพยนตร์นี้สนุก"])
    [encoded] = encode_words(tokenizer, ["ภาพยนตร์นี้สนุก"], 16)
    assert [word.text for word in encoded.words] == ["ภาพยนตร์", "นี้", "สนุก"]
    assert encoded.token_words == [(0, 1, 2)] and encoded.word_scores([0.75]) == [0.25] * 3


@pytest.mark.parametrize("preset", PRESETS)
def test_every_span_is_what_its_token_says(preset):
    # Trained on the very text, no word is unknown, so that tokens can be read.
    @settings(max_examples=50)
    @given(text=TEXTS.filter(split_words))
    def check(text):
        try:
            tokenizer = train_word_tokenizer([text], preset)
        except InputError:
            assert preset == "vmask"  # symbols alone
            return
        change = (lambda part: part) if preset == "plain" else lowered
        for token, (start, end) in zip(tokenizer.tokenize(text), spans(tokenizer, text), strict=True):
            if token == "qqq" and text[start:end].lower() != "qqq":
                continue  # stands for a word with a digit
            assert change(text[start:end]) == token

    check()


@pytest.mark.parametrize("symbol", [":", "(", "'", "_", "😀", "-"])
@pytest.mark.parametrize("marks", ["\U000e0100", "\u0301\u200d\u0301", "\ufe0f"])
def test_marks_on_a_symbol_are_not_of_the_word_that_follows(symbol, marks):
    tokenizer = train_word_tokenizer(["a"], "vmask")
    [encoded] = encode_words(tokenizer, [f"0 {symbol}{marks}0"], 100)
    assert all(len(positions) == 1 for positions in encoded.token_words)


@pytest.mark.parametrize("preset", PRESETS)
def test_each_word_has_a_token_that_lies_in_it(preset):
    tokenizer = train_word_tokenizer(["x"], preset)

    @given(text=TEXTS)
    def check(text):
        [encoded] = encode_words(tokenizer, [text], 10_000)
        for word, seen in zip(encoded.words, encoded.seen, strict=True):
            letters = any(unicodedata.category(character)[0] in "LN" for character in word.text)
            assert seen or (preset == "vmask" and not letters)
        if not tokenizer(text)["input_ids"]:
            return  # encode_words puts a token of its own there
        assert not any(encoded.special)
        # Only a hashtag, a mention and a part such as "'s" are a symbol and what follows it.
        for positions in encoded.token_words:
            assert len(positions) == 1 or (preset in ("vat", "jw") and len(positions) == 2)

    check()


def test_c48_words_as_typed_and_scores_summed_over_their_tokens():
    texts = ["Unbelievable film", "good 😀 film", "Café good", "I don't, a #tag"]
    tokenizer = train_word_tokenizer(texts, "jw")
    for encoded in encode_words(tokenizer, texts, 100):
        assert [encoded.text[word.start : word.end] for word in encoded.words] == [word.text for word in encoded.words]
        assert sum(encoded.word_scores([1.0] * len(encoded.input_ids))) == pytest.approx(len(encoded.input_ids))
    assert [word.text for word in encoded.words] == ["I", "don't", ",", "a", "#", "tag"]
    assert encoded.word_scores([1, 2, 4, 8, 16, 32, 64]) == [1, 6, 8, 16, 32, 64]


def test_a_hashtag_gives_half_to_each_of_its_two_words():
    tokenizer = train_word_tokenizer(["a #tag"], "vat")
    [encoded] = encode_words(tokenizer, ["a #tag"], 100)
    assert encoded.word_scores([1.0, 3.0]) == [1.0, 1.5, 1.5]


@pytest.mark.parametrize("text", NASTY)
def test_c64_no_word_is_lost_and_spans_give_back_the_text(preset_tokenizer, text):
    tokenizer, preset = preset_tokenizer
    [encoded] = encode_words(tokenizer, [text], 10_000)
    assert encoded.truncated == 0
    if preset != "vmask":
        assert all(encoded.seen)
    assert tokenizer.unk_token_id not in encoded.input_ids
    gaps, end = [], 0
    for word in encoded.words:
        gaps.append(text[end : word.start])
        end = word.end
    assert "".join(gap + word.text for gap, word in zip(gaps, encoded.words, strict=True)) + text[end:] == text


def test_unknown_words_keep_their_place_and_span():
    tokenizer = train_word_tokenizer(["good film"])
    encoding = tokenizer("zzz good  qqq", return_offsets_mapping=True)
    assert encoding["input_ids"] == [1, 4, 1]
    assert encoding["offset_mapping"] == [(0, 3), (4, 8), (10, 13)]


def test_special_tokens_typed_in_a_text_are_words():
    tokenizer = train_word_tokenizer(["[ PAD ] good"])
    assert tokenizer.tokenize("[PAD] good") == ["[", "PAD", "]", "good"]
    assert tokenizer.pad_token_id not in tokenizer("[PAD] good")["input_ids"]


def test_texts_without_words_have_no_tokens_and_can_be_batched():
    tokenizer = train_word_tokenizer(["good film"])
    collate = DataCollatorWithPadding(tokenizer)
    batch = collate([tokenizer(text) for text in ["", " \n\u200b", "good film"]])
    assert batch["input_ids"].tolist() == [[0, 0], [0, 0], [4, 3]]
    assert batch["attention_mask"].tolist() == [[0, 0], [0, 0], [1, 1]]
    alone = collate([tokenizer("")])
    assert alone["input_ids"].shape == (1, 0)
    assert not alone["input_ids"].is_floating_point()


def test_long_texts_are_cut_at_the_maximum_length():
    tokenizer = train_word_tokenizer(["a b c d"], model_max_length=2)
    assert tokenizer("a b c d", truncation=True)["input_ids"] == [3, 4]
    [encoded] = encode_words(tokenizer, ["a b c d"], 2)
    assert encoded.truncated == 2


def test_auto_tokenizer_loads_the_same(preset_tokenizer, tmp_path):
    tokenizer, _ = preset_tokenizer
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.is_fast
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert (loaded.pad_token_id, loaded.unk_token_id, loaded.mask_token_id) == (0, 1, 2)
    assert loaded.model_max_length == 256
    texts = [*NASTY, "don't [PAD] 7 unheard", ""]
    settings = {"return_offsets_mapping": True, "return_special_tokens_mask": True}
    assert dict(loaded(texts, **settings)) == dict(tokenizer(texts, **settings))
    assert count_words(loaded, texts) == count_words(tokenizer, texts)


def test_words_are_counted_as_the_tokenizer_writes_them_known_or_not():
    tokenizer = train_word_tokenizer(["good"], "vat")
    assert count_words(tokenizer, ["Good GOOD film", ["already", "split"]]) == {
        "good": 2,
        "film": 1,
        "already": 1,
        "split": 1,
    }


# Real texts


@pytest.mark.parametrize("name", ["sst2", "trec"])
def test_real_texts_one_token_for_each_word(shared_data, name):
    tokenizer = train_word_tokenizer(read(shared_data / name, "train"), "vat")
    texts = read(shared_data / name, "test")
    for encoded in encode_words(tokenizer, texts, 10_000):
        assert encoded.token_words == [(position,) for position in range(len(encoded.words))]
    known = tokenizer.get_vocab()
    unknown = sum(count for word, count in count_words(tokenizer, texts).items() if word not in known)
    assert unknown == sum(ids.count(1) for ids in tokenizer(texts)["input_ids"]) > 0


@pytest.mark.parametrize(("name", "printed"), [("sst1", 17838), ("sst2", 16190)])
def test_vmask_vocabulary_has_the_size_of_the_paper(shared_data, name, printed):
    texts = [text for split in ("train", "validation", "test") for text in read(shared_data / name, split)]
    words = len(train_word_tokenizer(texts, "vmask")) - 3
    assert abs(words + 2 - printed) <= 7  # the paper's sizes hold a padding and an unknown token
