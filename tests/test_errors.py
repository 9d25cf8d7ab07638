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
