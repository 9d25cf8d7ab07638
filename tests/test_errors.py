"""The one check of texts."""

import pytest

from hf_vat.errors import InputError, check_texts


def test_texts_are_a_list_of_strings_that_can_be_encoded():
    assert check_texts(("good", "", "😀")) == ["good", "", "😀"]
    for texts, message in [
        ("good film", "one string 'good film'"),
        (["good", None], "Text 1 is None of type NoneType"),
        ([3], "Text 0 is 3 of type int"),
        (["good", "half \ud83d"], "Text 1 contains half a character"),
    ]:
        with pytest.raises(InputError, match=message):
            check_texts(texts)


def test_a_text_may_be_a_list_of_words():
    assert check_texts([["do", "n't"], "a film", ("New York", "😀", "e\u0301"), []]) == [
        ("do", "n't"),
        "a film",
        ("New York", "😀", "e\u0301"),
        (),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["good", ""], "word 1 is ''; a word must hold a visible character"),
        (["good", " film"], "word 1 is ' film'.*no white space at either end"),
        (["good\n"], "word 0 is"),
        (["film\u3000"], "word 0 is"),
        (["\u200b"], "word 0 is '\\\\u200b'; a word must hold a visible character"),
        (["\x00\u00ad"], "word 0 is"),
        (["good", 3], "word 1 is 3 of type int"),
        (["good", ["film"]], "word 1 is .'film'. of type list"),
        (["a", "\ud83d"], "word 1 contains half a character"),
    ],
)
def test_words_that_cannot_be_used_are_named_with_their_text(words, message):
    with pytest.raises(InputError, match=f"Text 1, {message}"):
        check_texts(["good", words])
