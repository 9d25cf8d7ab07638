"""Texts in the languages of the world: their words, scores on them, and how page and terminal show them."""

import re

import numpy as np
import pytest

from hf_vat import explain
from hf_vat.callers import TextFunction
from hf_vat.models.words import WordBreaker, split_words

# Language, text, its words; None where only a dictionary finds them.
TEXTS = {
    "English": (
        "I don't like well-made films, at $3.50!",
        ["I", "don't", "like", "well-made", "films", ",", "at", "$", "3.50", "!"],
    ),
    "German": ("Der Film war großartig – wirklich.", ["Der", "Film", "war", "großartig", "–", "wirklich", "."]),
    "French": ("L’histoire n'est pas drôle…", ["L’histoire", "n'est", "pas", "drôle", "…"]),
    "Turkish": ("İyi bir film değil.", ["İyi", "bir", "film", "değil", "."]),
    "Vietnamese": ("Bộ phim rất hay!", ["Bộ", "phim", "rất", "hay", "!"]),
    "Russian": ("Очень хороший фильм.", ["Очень", "хороший", "фильм", "."]),
    "Greek": ("Πολύ καλή ταινία;", ["Πολύ", "καλή", "ταινία", ";"]),
    "Armenian": ("Շատ լավ ֆիլմ։", ["Շատ", "լավ", "ֆիլմ", "։"]),
    "Georgian": ("ძალიან კარგი ფილმი.", ["ძალიან", "კარგი", "ფილმი", "."]),
    "Amharic": ("በጣም ጥሩ ፊልም።", ["በጣም", "ጥሩ", "ፊልም", "።"]),
    "Hindi": ("यह फ़िल्म बहुत अच्छी है।", ["यह", "फ़िल्म", "बहुत", "अच्छी", "है", "।"]),
    "Bengali": ("ছবিটি খুব ভালো।", ["ছবিটি", "খুব", "ভালো", "।"]),
    "Tamil": ("படம் மிகவும் நன்று.", ["படம்", "மிகவும்", "நன்று", "."]),
    "Korean": ("영화가 정말 좋았다.", ["영화가", "정말", "좋았다", "."]),
    "Arabic": ("الفيلم رائع جدًا، حقًا!", ["الفيلم", "رائع", "جدًا", "،", "حقًا", "!"]),
    "Hebrew": ("הסרט היה מצוין.", ["הסרט", "היה", "מצוין", "."]),
    "Persian": ("نمی‌خواهم این فیلم را ببینم.", ["نمی‌خواهم", "این", "فیلم", "را", "ببینم", "."]),
    "Urdu": ("فلم بہت اچھی تھی۔", ["فلم", "بہت", "اچھی", "تھی", "۔"]),
    "Chinese": ("这部电影很好看。", list("这部电影很好看。")),
    "Japanese": ("この映画はとても面白い。", None),
    "Thai": ("หนังเรื่องนี้ดีมาก", None),
    "Lao": ("ຮູບເງົາເລື່ອງນີ້ດີຫຼາຍ", None),
    "Khmer": ("ខ្សែភាពយន្តនេះល្អណាស់", None),
    "Burmese": ("ဒီရုပ်ရှင်အရမ်းကောင်းတယ်", None),
    "emoji": ("Nice 👩‍👩‍👧 film 👍🏽", ["Nice", "👩‍👩‍👧", "film", "👍🏽"]),
}
RIGHT_TO_LEFT = ("Arabic", "Hebrew", "Persian", "Urdu")


def of_length(texts):
    """A score that every word changes: the number of its letters."""
    return [float(len(text)) for text in texts]


@pytest.mark.parametrize("language", TEXTS)
def test_words_are_those_of_the_language_and_each_has_its_score(language):
    text, words = TEXTS[language]
    if words is None and WordBreaker is None:
        pytest.skip("its words are found by icu4py, which is not installed")
    found = [word.text for word in split_words(text)]
    assert found == words if words else len(found) > 2 and "".join(found) == text
    [explanation] = explain(TextFunction(of_length, ["length"], "regression"), texts=[text], method="occlusion")
    assert explanation.words == found
    assert all(text[start:end] == word for word, (start, end) in zip(explanation.words, explanation.spans, strict=True))
    np.testing.assert_allclose(explanation.scores, [len(word) for word in found])


@pytest.mark.parametrize("language", TEXTS)
def test_page_and_terminal_show_the_whole_text(language):
    text, _ = TEXTS[language]
    [explanation] = explain(TextFunction(of_length, ["length"], "regression"), texts=[text], method="occlusion")
    page = explanation.to_html()
    [paragraph] = re.findall(r'<p class="hfv-text" dir="auto">(.*?)</p>', page, re.DOTALL)
    shown = re.sub(r"<[^>]*>", "", paragraph).replace("&#39;", "'")
    assert shown == text[: explanation.spans[-1][1]]
    plain = explanation.to_terminal(color=False).splitlines()
    assert text in plain
    coloured = re.sub(r"\x1b\[[0-9;]*m", "", explanation.to_terminal(color=True))
    assert text in coloured.splitlines()


@pytest.mark.parametrize("language", RIGHT_TO_LEFT)
def test_texts_from_right_to_left_keep_their_order_in_a_pair(language):
    text, _ = TEXTS[language]

    def of_first(texts):
        return [float(len(one["text"])) if isinstance(one, dict) else 0.0 for one in texts]

    pair = {"text": text, "text_pair": "A film."}
    [explanation] = explain(TextFunction(of_first, ["length"], "regression"), texts=[pair], method="occlusion")
    page = explanation.to_html()
    assert page.count('<p class="hfv-text" dir="auto">') == 2  # each text has its own direction
    assert explanation.scores[explanation.pair_start :] == [0, 0, 0]
