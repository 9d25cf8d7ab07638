"""How costs grow: slopes of curves that are known, texts of the sizes asked for, and what is marked."""

import costs
import pytest
from costs import AXES, FORWARD, GROUPS, MODULES, Bench, letter_tokenizer, make_texts, slope

from hf_vat.explanations import METHODS
from hf_vat.models.words import split_words


def test_the_slope_is_the_power_of_the_upper_half():
    assert slope([1, 2, 4, 8, 16], [7, 7, 4, 16, 64]) == pytest.approx(2)  # what is paid once is in the lower half
    assert slope([2, 4, 8], [3, 3, 3]) == pytest.approx(0)


@pytest.mark.parametrize(("size", "tokens", "words"), [(3, 16, 8), (1, 512, 8), (2, 128, 126), (2, 128, 63)])
def test_texts_have_the_tokens_and_words_asked_for(size, tokens, words):
    texts = make_texts(size, tokens, words)
    assert [len(ids) for ids in letter_tokenizer()(texts)["input_ids"]] == [tokens] * size
    assert [len(split_words(text)) for text in texts] == [words] * size
    assert len(set(texts)) == size


def test_every_axis_changes_one_number():
    for name, (sizes, at) in AXES.items():
        place = ("texts", "tokens per text", "words per text").index(name)
        points = [at(size) for size in sizes]
        assert [point[place] for point in points] == list(sizes)
        assert len({point[:place] + point[place + 1 :] for point in points}) == 1


def curve(group, name, slope, work_slope):
    one = {
        "group": group,
        "name": name,
        "sizes": [2, 4],
        "seconds": [0.1, 0.2],
        "slope": slope,
        "work_slope": work_slope,
    }
    return [one | {"axis": axis} for axis in AXES]


def test_what_grows_faster_than_its_work_is_marked(tmp_path):
    lines = [(group, FORWARD, 1.2, 1.2) for group in GROUPS]
    lines += [("training", "learner", 1.5, 1.2), ("metrics", "auprc", 1.3, 1.0)]
    curves = [one for line in lines for one in curve(*line)]
    training, _, metrics = costs.slope_tables({"curves": curves})
    assert training.rows == [[FORWARD, *["1.20 (1.20)"] * 3, "200"], ["learner", *["1.50 (1.20) faster"] * 3, "200"]]
    assert metrics.rows[1] == ["auprc", *["1.30 (1.00) faster"] * 3, "200"]
    costs.draw({"curves": curves}, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"costs-{group}.png" for group in GROUPS}


def test_all_methods_and_phases_are_timed():
    found = Bench().seconds(4, 16, 4)
    assert set(found["training"]) == {
        "learner",
        "compressor, first epoch",
        "compressor, later epochs",
        "VMASK",
        FORWARD,
    }
    assert set(found["explainers"]) == {*METHODS, FORWARD}
    assert set(found["metrics"]) == {*costs.FAITHFULNESS, *MODULES, FORWARD}
    forward = found["explainers"][FORWARD][1]
    assert found["explainers"]["occlusion"][1] == pytest.approx(
        forward * 6
    )  # the text, 4 without a word, one without any
    assert found["metrics"]["AOPC and post-hoc, K = 5"][1] == pytest.approx(forward * 3)
    assert found["metrics"]["auprc"][1] == 16  # words
