"""Word-level sentiment: SST leaves from both file forms, SemEval-2013 expressions with token offsets."""

import json
import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_vat.data.word_labels import load_semeval_words, load_sst_words, sentiment_words
from hf_vat.errors import InputError
from hf_vat.faithfulness.rationales import precision_recall_f1_at_k


@pytest.fixture
def write(write):
    """Write a file of lines."""
    return lambda name, *lines: write(name, "".join(line + "\n" for line in lines))


# SST


@pytest.mark.parametrize(
    "polarity, sentences, with_words, density", [("positive", 909, 847, 11.9), ("negative", 912, 692, 7.5)]
)
def test_sst_test_split_has_the_measured_counts(shared_data, polarity, sentences, with_words, density):
    words = sentiment_words(load_sst_words(shared_data / "sst_words" / "test.jsonl"), polarity)
    assert words.label == polarity and len(words.texts) == sentences
    assert [len(text) for text in words.texts] == [len(flags) for flags in words.rationales]
    assert sum(any(flags) for flags in words.rationales) == with_words
    flags = np.concatenate(words.rationales)
    assert round(100 * flags.mean(), 1) == density


def test_a_tree_and_its_json_line_are_the_same(write):
    tree = "(3 (2 (2 The) (2 Rock)) (4 (2 is) (3 (4 great) (2 .))))"
    record = {"tokens": ["The", "Rock", "is", "great", "."], "token_labels": [2, 2, 2, 4, 2], "label": 3}
    trees = load_sst_words(write("train.txt", tree, "", "(0 bad)"))
    lines = load_sst_words(
        write("train.jsonl", json.dumps(record), json.dumps({"tokens": ["bad"], "token_labels": [0], "label": 0}))
    )
    assert trees.features == lines.features
    assert trees[:] == lines[:]
    assert trees[0] == record


def test_escaped_brackets_are_read_as_characters(write):
    assert load_sst_words(write("dev.txt", "(2 (2 -LRB-) (2 (2 so-so) (2 -RRB-)))"))[0]["tokens"] == ["(", "so-so", ")"]


def as_tree(node) -> str:
    label, children = node
    return f"({label} {children if isinstance(children, str) else ' '.join(map(as_tree, children))})"


def leaves(node) -> list[tuple[int, str]]:
    label, children = node
    return [(label, children)] if isinstance(children, str) else [leaf for child in children for leaf in leaves(child)]


labels = st.integers(0, 4)
nodes = st.recursive(
    st.tuples(labels, st.text("aé.'-&", min_size=1)),
    lambda node: st.tuples(labels, st.lists(node, min_size=1)),
    max_leaves=9,
)


@given(nodes)
def test_any_tree_gives_its_leaves_in_order(tmp_path_factory, node):
    path = tmp_path_factory.getbasetemp() / "tree.txt"
    path.write_text(as_tree(node), encoding="utf-8")
    row = load_sst_words(path)[0]
    assert list(zip(row["token_labels"], row["tokens"], strict=True)) == leaves(node)
    assert row["label"] == node[0]


@pytest.mark.parametrize(
    "name, line",
    [
        ("a.txt", "(3 (2 The) (4 Rock)"),  # a bracket is missing
        ("a.txt", "(3 (2 The) (4 Rock)))"),
        ("a.txt", "(3 (2 The) (4 Rock)) (2 again)"),
        ("a.txt", "(3 (2 The) (5 Rock))"),
        ("a.txt", "(3 (2 The) Rock)"),
        ("a.txt", "(3 )"),
        ("a.txt", "The Rock"),
        ("a.jsonl", '{"tokens": ["The"], "token_labels": [2, 2], "label": 2}'),
        ("a.jsonl", '{"tokens": ["The"], "token_labels": [7], "label": 2}'),
        ("a.jsonl", '{"tokens": ["The"], "label": 2}'),
        ("a.jsonl", '{"tokens": [], "token_labels": [], "label": 2}'),
        ("a.jsonl", "(2 The)"),
    ],
)
def test_a_broken_line_is_named(write, name, line):
    good = "(2 fine)" if name == "a.txt" else '{"tokens": ["fine"], "token_labels": [2], "label": 2}'
    with pytest.raises(InputError, match=r"line 2: .*is neither a tree"):
        load_sst_words(write(name, good, line))


def test_missing_file_and_wrong_polarity(write, tmp_path):
    with pytest.raises(InputError, match=r"none\.txt cannot be read"):
        load_sst_words(tmp_path / "none.txt")
    split = load_sst_words(write("dev.txt", "(3 (2 a) (4 gem))"))
    with pytest.raises(InputError, match=r'"positive" or "negative"'):
        sentiment_words(split, "neutral")
    with pytest.raises(InputError, match="None of the 1 texts is negative"):
        sentiment_words(split, "negative")


def test_words_go_into_precision_recall_and_f1(write):
    split = load_sst_words(
        write("dev.txt", "(4 (2 a) (4 gem))", "(3 (2 so) (2 (3 good) (3 fun)))", "(2 meh)", "(1 bad)")
    )
    words = sentiment_words(split, "positive")
    assert words.texts == [["a", "gem"], ["so", "good", "fun"]]
    assert words.rationales == [[0, 1], [0, 1, 1]]
    at_1 = precision_recall_f1_at_k([[0.1, 0.9], [0.7, 0.2, 0.1]], words.rationales, [1]).macro()
    assert at_1["precision"] == [0.5] and at_1["recall"] == [0.5]
    assert sentiment_words(split, "negative").rationales == [[1]]


# SemEval-2013


def expression(tweet, first, last, polarity, text) -> str:
    return f"{tweet}\t7{tweet}\t{first}\t{last}\t{polarity}\t{text}"


def test_semeval_expressions_of_a_tweet_are_merged(write, caplog):
    path = write(
        "A.tsv",
        expression(1, 0, 1, "positive", "so good but the end , meh"),
        expression(2, 0, 0, "negative", "Not Available"),
        expression(1, 1, 1, "positive", "so good but the end , meh"),
        expression(1, 6, 6, "neutral", "so good but the end , meh"),
        expression(2, 3, 4, "positive", "Not Available"),
        expression(3, 2, 3, '"negative"', "#nope @you are bad"),
    )
    with caplog.at_level(logging.INFO, "hf_vat"):
        tweets = load_semeval_words(path)
    assert tweets[:] == {
        "tokens": [["so", "good", "but", "the", "end", ",", "meh"], ["#nope", "@you", "are", "bad"]],
        "token_labels": [[3, 3, 2, 2, 2, 2, 2], [2, 2, 1, 1]],
        "label": [3, 1],
    }
    assert "2 tweets; left out: 1 not available, 0 shorter" in caplog.text
    assert sentiment_words(tweets, "negative").rationales == [[0, 0, 1, 1]]


def test_semeval_tweets_with_both_polarities_or_none_are_neutral(write):
    path = write(
        "A.tsv",
        expression(1, 0, 0, "positive", "good but bad"),
        expression(1, 2, 2, "negative", "good but bad"),
        expression(2, 0, 0, "objective", "today it rains"),
        expression(3, 0, 0, "positive", "yay"),
    )
    tweets = load_semeval_words(path)
    assert tweets["label"][:] == [2, 2, 3]
    assert tweets["token_labels"][:2] == [[3, 2, 1], [2, 2, 2]]
    assert sentiment_words(tweets, "positive").texts == [["yay"]]


def test_semeval_messages_give_the_polarity_of_tweets(write):
    path = write(
        "A.tsv",
        expression(1, 0, 2, "positive", "good but bad"),
        expression(1, 2, 2, "negative", "good but bad"),
        expression(2, 0, 0, "positive", "good ?"),
        expression(3, 0, 0, "positive", "not in B"),
    )
    messages = write("B.tsv", '1\t71\t"negative"\tgood but bad', '2\t72\tsome topic\t"objective-OR-neutral"\tgood ?')
    tweets = load_semeval_words(path, messages)
    assert tweets["label"][:] == [1, 2]
    # the last word of the first tweet lies in expressions of both polarities: the tweet's decides
    assert tweets["token_labels"][:] == [[3, 3, 1], [3, 2]]


def test_semeval_last_token_beyond_the_text_and_invisible_tokens(write, caplog):
    path = write(
        "A.tsv",
        expression(1, 1, 2, "positive", "two words"),
        expression(2, 1, 2, "positive", "a \u200b gem \u2028here\x85 too"),
    )
    with caplog.at_level(logging.INFO, "hf_vat"):
        tweets = load_semeval_words(path)
    assert tweets[0] == {"tokens": ["a", "gem", "here", "too"], "token_labels": [2, 3, 2, 2], "label": 3}
    assert "1 shorter than their expressions" in caplog.text


@pytest.mark.parametrize(
    "line, message",
    [
        ("1\t71\tpositive\ta message of subtask B", "has not the form"),
        (expression(1, 2, 1, "positive", "a b c"), "has not the form"),
        (expression(1, "x", 1, "positive", "a b c"), "has not the form"),
        (expression(1, 0, 0, "unknwn", "a b c"), "gold labels"),
    ],
)
def test_semeval_wrong_line_is_named(write, line, message):
    with pytest.raises(InputError, match=rf"A\.tsv, line 2: .*{message}"):
        load_semeval_words(write("A.tsv", expression(0, 0, 0, "positive", "fine"), line))


def test_semeval_without_any_available_tweet(write):
    with pytest.raises(InputError, match="no tweet is left: 1 are not available"):
        load_semeval_words(write("A.tsv", expression(1, 0, 0, "positive", "Not Available")))
    with pytest.raises(InputError, match="give a file of subtask B"):
        path = write("A.tsv", expression(1, 0, 0, "positive", "yay"))
        load_semeval_words(path, path)
