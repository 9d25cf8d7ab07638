import json
import math

import pytest

from hf_vat.explanations import Explanation, explain, submodular_pick, word_importance
from hf_vat.explanations.store import Store
from hf_vat.report import attention_pairs, page, side_by_side, write_predictions


def example(**changes):
    fields = {
        "text": "a bad  film\n",
        "words": ["a", "bad", "film"],
        "spans": [(0, 1), (2, 5), (7, 11)],
        "scores": [0.1, 0.8, 0.1],
        "seen": [True, True, True],
        "method": "attention",
        "target": 0,
        "prediction": 0,
        "probabilities": [0.75, 0.25],
        "label_names": ["negative", "positive"],
    }
    return Explanation(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": [0.1, 0.2, 0.3, 0.4]}, "3 words but 4 scores"),
        ({"spans": [(0, 1)]}, "3 words but 1 spans"),
        ({"seen": []}, "3 words but 0 seen"),
        ({"probabilities": [1.0]}, "1 probabilities but 2 label_names"),
        ({"gold": 2}, "gold is 2.*0 to 1"),
        ({"target": -1}, "target is -1"),
        ({"scores": [0.1, math.nan, 0.3]}, "'bad' is nan"),
        ({"words": ["a", "good", "film"]}, "'bad', not the word 'good'"),
    ],
)
def test_c86_parts_that_do_not_fit_name_both(changes, message):
    with pytest.raises(ValueError, match=message):
        example(**changes)


def test_p3_json_round_trip_gives_plain_values(model, tokenizer):
    for explanation in explain(model, tokenizer, ["good 😀 film", ""], labels=[1, 0]):
        fields = explanation.to_dict()
        assert all(type(word) is str for word in fields["words"])
        assert all(type(score) is float for score in fields["scores"] + fields["probabilities"])
        assert Explanation.from_dict(json.loads(json.dumps(fields))) == explanation


def test_segments_hold_the_text_and_the_relative_scores():
    segments = list(example(scores=[0.1, -0.8, 0.4]).segments())
    assert "".join(before + word for before, word, *_ in segments) == "a bad  film"
    assert [segment.strength for segment in segments] == pytest.approx([0.125, -1, 0.5])
    assert [segment.strength for segment in example(scores=[0.0] * 3).segments()] == [0, 0, 0]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_f34_scores_that_are_set_later_are_refused_wherever_they_come_out(score, tmp_path):
    explanation = example()
    explanation.scores[1] = score
    outlets = {
        "to_html": explanation.to_html,
        "to_html(path)": lambda: explanation.to_html(tmp_path / "page.html"),
        "notebook": explanation._repr_html_,
        "to_terminal": explanation.to_terminal,
        "print": lambda: str(explanation),
        "side_by_side": lambda: side_by_side([example(), explanation], color=False),
        "page": lambda: page("", {"a": [example()], "b": [explanation]}),
        "to_dict": explanation.to_dict,
        "tied": lambda: explanation.tied,
        "attention_pairs": lambda: attention_pairs({"a": [explanation]}),
        "csv": lambda: write_predictions([explanation], explanation.label_names, csv_path=tmp_path / "table.csv"),
        "parquet": lambda: write_predictions([explanation], ["a", "b"], parquet_path=tmp_path / "table.parquet"),
        "word_importance": lambda: word_importance([explanation], "sum"),
        "submodular_pick": lambda: submodular_pick([explanation], 1),
    }
    for name, outlet in outlets.items():
        with pytest.raises(ValueError, match=f"The score of 'bad' is {score}"):
            print(name, outlet())
    assert not list(tmp_path.iterdir())
    explanation.scores = [0.1, 0.2]
    with pytest.raises(ValueError, match="3 words but 2 scores"):
        explanation.to_html()


def test_f34_a_store_takes_all_or_nothing(make_model, tokenizer, tmp_path):
    run = {"model": "m", "method": "attention", "settings": {}}
    store = Store(tmp_path / "stored.jsonl", make_model(), None, run)
    store.append([example()])
    before = (tmp_path / "stored.jsonl").read_bytes()
    wrong = example()
    wrong.scores[2] = math.nan
    with pytest.raises(ValueError, match="The score of 'film' is nan"):
        store.append([example(), wrong])
    assert (tmp_path / "stored.jsonl").read_bytes() == before and store.finished == 1


def test_tie_looks_at_words_that_the_model_saw():
    assert example(scores=[0.5, 0.5, 0.0], seen=[True, True, False]).tied
    assert not example(scores=[0.5, 0.5, 0.0]).tied
    assert not example(scores=[1.0, 0.0, 0.0], seen=[True, False, False]).tied


def test_correct():
    assert [example(gold=gold).correct for gold in (None, 0, 1)] == [None, True, False]


def test_c85_a_plain_script_gets_strings(tmp_path):
    explanation = example()
    page = explanation.to_html(tmp_path / "page.html")
    assert type(page) is str and page.startswith("<!DOCTYPE html>")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page == explanation.to_html()
    assert isinstance(explanation._repr_html_(), str) and "<html" not in explanation._repr_html_()
    assert str(explanation) == explanation.to_terminal(color=False)
