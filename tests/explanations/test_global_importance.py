"""Global importance: tables by hand, masks of single entries, the pick of texts, CSV."""

import csv
import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from checks import refuses
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import ByteLevel
from transformers import BertConfig, PreTrainedTokenizerFast

from hf_vat import BertVMaskConfig, BertWithVMask, EncoderVMaskConfig, EncoderWithVMask, WordEncoderConfig
from hf_vat.data.vocabulary import train_word_tokenizer
from hf_vat.errors import InputError
from hf_vat.explanations import (
    Explanation,
    GlobalImportance,
    WordImportance,
    explain,
    mask_importance,
    submodular_pick,
    vocabulary_importance,
    word_importance,
)


def explained(*words: tuple[str, float], method: str = "lime", seen: list[bool] | None = None) -> Explanation:
    text = " ".join(word for word, _ in words)
    ends = list(itertools.accumulate(len(word) + 1 for word, _ in words))
    spans = [(end - 1 - len(word), end - 1) for (word, _), end in zip(words, ends, strict=True)]
    seen = [True] * len(words) if seen is None else seen
    names, scores = [word for word, _ in words], [score for _, score in words]
    return Explanation(text, names, spans, scores, seen, method, 0, 0, [0.5, 0.5], ["neg", "pos"])


THREE = [
    explained(("Good", 0.5), ("film", -0.25)),
    explained(("good", -0.25), ("GOOD", 0.75), ("plot", 0.125)),
    explained(("film", 0.5), ("plot", 0.0)),
]


# From explanations


def test_f35_the_mask_of_a_model_without_input_embeddings():
    """As OnnxClassifier is one."""
    tokenizer = train_word_tokenizer(["good film", "bad"])
    model = vmask("cnn", len(tokenizer)).eval()
    expected = list(mask_importance(model, tokenizer, ["good film", "bad"]))

    class Wrapped(torch.nn.Module):
        config, device = model.config, model.device

        def forward(self, **batch):
            return model(**batch)

    assert list(mask_importance(Wrapped(), tokenizer, ["good film", "bad"])) == expected
    model.bfloat16()
    assert len(mask_importance(model, tokenizer, ["good film", "bad"])) == 3


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("sum", {"good": 1.0, "film": 0.25, "plot": 0.125}),
        ("abs_sum", {"good": 1.5, "film": 0.75, "plot": 0.125}),
        ("sqrt_abs", {"good": math.sqrt(1.5), "film": math.sqrt(0.75), "plot": math.sqrt(0.125)}),
        ("mean", {"good": 1 / 3, "film": 0.125, "plot": 0.0625}),
    ],
)
def test_three_texts_by_hand(aggregate, expected):
    table = word_importance(THREE, aggregate)
    assert {row.word: row.importance for row in table} == pytest.approx(expected)
    assert [row.word for row in table] == ["good", "film", "plot"]
    assert [(row.count, row.texts) for row in table] == [(3, 2), (2, 2), (2, 2)]


def test_magnitudes_are_summed_by_default():
    assert word_importance(THREE) == word_importance(THREE, "abs_sum") != word_importance(THREE, "sum")


def test_words_that_the_model_did_not_see_do_not_count():
    table = word_importance([explained(("good", 0.5), ("film", 0.0), seen=[True, False])])
    assert table.top(5) == [("good", 0.5, 1, 1)]


def test_rare_words_are_left_out():
    assert [row.word for row in word_importance(THREE, min_count=3)] == ["good"]
    with pytest.raises(InputError, match=r"No word occurs at least 4 times in the texts \(3 different"):
        word_importance(THREE, min_count=4)


WORDS = st.sampled_from(["a", "A", "b", "ß", "喜", "!", '"'])
SCORES = st.floats(-1e6, 1e6, allow_nan=False)
EXPLANATIONS = st.lists(
    st.lists(st.tuples(WORDS, SCORES), max_size=5).map(lambda words: explained(*words)), min_size=1, max_size=6
)


@given(EXPLANATIONS, st.randoms(use_true_random=False))
def test_invariants_of_the_table(explanations, random):
    if not any(explanation.words for explanation in explanations):
        return
    tables = {
        aggregate: word_importance(explanations, aggregate) for aggregate in ("sum", "abs_sum", "sqrt_abs", "mean")
    }
    values = {name: {row.word: row.importance for row in table} for name, table in tables.items()}
    for row in tables["sum"]:
        assert values["abs_sum"][row.word] >= abs(row.importance)
        assert values["sqrt_abs"][row.word] ** 2 == pytest.approx(values["abs_sum"][row.word])
        assert values["mean"][row.word] * row.count == pytest.approx(row.importance)
        assert 1 <= row.texts <= row.count
    assert sum(row.count for row in tables["sum"]) == sum(len(explanation.words) for explanation in explanations)
    shuffled = random.sample(explanations, len(explanations))
    for aggregate, table in tables.items():
        assert word_importance(shuffled, aggregate) == table


# From a word mask


class Masked(torch.nn.Module):
    """The mask of a token is its entry in a table; `drift` is added for each place to the right."""

    def __init__(self, table, has_mask: bool = True, drift: float = 0.0):
        super().__init__()
        self.config = BertConfig(max_position_embeddings=32, num_labels=2, name_or_path="masked")
        self.embeddings = torch.nn.Embedding.from_pretrained(torch.tensor(table)[:, None])
        self.device, self.has_mask, self.drift, self.rows = torch.device("cpu"), has_mask, drift, 0

    def get_input_embeddings(self):
        return self.embeddings

    def forward(self, input_ids, attention_mask, token_type_ids=None):
        self.rows += len(input_ids)
        mask = (self.embeddings(input_ids)[..., 0] + self.drift * torch.arange(input_ids.shape[1])) * attention_mask
        return SimpleNamespace(logits=torch.zeros(len(input_ids), 2), token_mask=mask if self.has_mask else None)


KEPT = {"good": 0.75, "film": 0.5, "un": 0.25, "##believ": 0.5, "##able": 1.0, "[UNK]": 0.125, "[CLS]": 0.9}


@pytest.fixture
def masked(tokenizer):
    def make(**settings):
        return Masked(
            [KEPT.get(token, 0.0) for token in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))], **settings
        )

    return make


TEXTS = ["Good film", "unbelievable film , good", "zzz 😀 good"]


def test_masks_of_words_by_hand(masked, tokenizer):
    # the mean of (0.25, 0.5, 1), and the two words that the vocabulary lacks are not there
    assert mask_importance(masked(), tokenizer, TEXTS).top(9) == [
        ("good", 0.75, 3, 3),
        ("unbelievable", pytest.approx(1.75 / 3), 1, 1),
        ("film", 0.5, 2, 2),
        (",", 0.0, 1, 1),
    ]
    assert mask_importance(masked(), tokenizer, TEXTS, subwords="max").top(1) == [("unbelievable", 1.0, 1, 1)]
    assert [row.word for row in mask_importance(masked(), tokenizer, TEXTS, min_count=2)] == ["good", "film"]


def test_each_entry_runs_once_and_texts_of_any_length_are_read_whole(masked, tokenizer):
    model = masked()
    table = mask_importance(model, tokenizer, ["good " * 100 + "film", ["good", "film"]])
    assert table.top(2) == [("good", 0.75, 101, 2), ("film", 0.5, 2, 2)]
    assert model.rows == 3  # both side by side, and each alone


def test_masks_of_the_vocabulary_by_hand(masked, tokenizer):
    table = vocabulary_importance(masked(), tokenizer)
    assert len(table) == len(tokenizer) - 5
    assert table.top(4) == [("##able", 1.0, 0, 0), ("good", 0.75, 0, 0), ("##believ", 0.5, 0, 0), ("film", 0.5, 0, 0)]
    counted = vocabulary_importance(masked(), tokenizer, TEXTS, min_count=2)
    assert list(counted) == [("good", 0.75, 3, 3), ("film", 0.5, 2, 2)]
    frequent_first = vocabulary_importance(masked(), tokenizer, ["film"]).top(4)
    assert [row.word for row in frequent_first[2:]] == ["film", "##believ"]


def test_a_word_has_the_tokens_that_it_has_in_its_text():
    """Byte-level tokenizers have two entries for a word, at the beginning of a text and after a space."""
    vocabulary = {"<pad>": 0, "<unk>": 1, "good": 2, "Ġgood": 3, "film": 4, "Ġfilm": 5}
    backend = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", unk_token="<unk>")
    model = Masked([0.0, 0.0, 1.0, 0.25, 0.5, 0.5])
    table = mask_importance(model, tokenizer, ["good film", "film good", "a good film"])
    # "good" once at the beginning and twice after a space; the vocabulary lacks "a"
    assert table.top(9) == [("film", 0.5, 3, 3), ("good", 0.5, 3, 3)]


def vmask(name: str, vocabulary_size: int, **settings):
    settings = {"initializer_range": 0.3, "classifier_dropout": 0.0} | settings
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if name == "bert":
            sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
            settings |= sizes | {"vocab_size": vocabulary_size, "max_position_embeddings": 32}
            return BertWithVMask(BertVMaskConfig(cls_token_id=2, sep_token_id=3, **settings))
        encoder = WordEncoderConfig(
            vocab_size=vocabulary_size, encoder_type=name, embedding_size=8, initializer_range=0.5
        )
        return EncoderWithVMask(EncoderVMaskConfig(encoder=encoder, **settings))


@pytest.mark.parametrize(
    "mask", [{"mask_type": "vmask"}, {"mask_type": "iba"}, {"mask_type": "l2x", "mask_normalization": "sigmoid"}]
)
@pytest.mark.parametrize("name", ["bert", "lstm", "cnn"])
def test_masks_of_words_are_the_mean_of_local_masks(name, mask, tokenizer):
    texts = ["Good film , very good", "this is not a bad plot", "unbelievable"]
    if name != "bert":
        tokenizer = train_word_tokenizer(texts, preset="vat", model_max_length=32)
    texts = texts[:2] if name == "bert" else texts  # its vocabulary has no "is"
    texts[1] = texts[1].replace(" is", "") if name == "bert" else texts[1]
    model = vmask(name, len(tokenizer), **mask).train()
    fast = mask_importance(model, tokenizer, texts)
    slow = word_importance(explain(model, tokenizer, texts, "mask"), "mean")
    assert {row.word: row.importance for row in fast} == pytest.approx(
        {row.word: row.importance for row in slow}, abs=1e-6
    )
    assert {row.word: row[2:] for row in fast} == {row.word: row[2:] for row in slow}
    assert len({round(row.importance, 4) for row in fast}) > 4 and all(0 <= row.importance <= 1 for row in fast)
    assert model.training
    if name != "bert":
        entries = vocabulary_importance(model, tokenizer, texts)
        assert [(row.word, row.count, row.texts) for row in entries] == [(row.word, *row[2:]) for row in fast]


@pytest.mark.parametrize(
    "settings",
    [
        {"mask_type": "l2x"},
        {"mask_type": "l2x", "mask_normalization": "concrete_topk"},
        {"mask_site": "embedding_output"},
    ],
)
def test_masks_that_depend_on_the_context_are_refused(settings, tokenizer):
    model = vmask("bert", len(tokenizer), **settings)
    for texts in (["good film"], ["good"]):
        with pytest.raises(InputError, match=r"depends on a word's context or place .*\"mask\"\), \"mean\""):
            mask_importance(model, tokenizer, texts)
    assert len(word_importance(explain(model, tokenizer, ["good film"], "mask"), "mean")) == 2


def test_what_rounding_does_is_no_context(masked, tokenizer):
    assert mask_importance(masked(drift=1e-6), tokenizer, ["good film"]).top(1)[0].word == "good"
    with pytest.raises(InputError, match=r"differ by 0\.03\)"):
        mask_importance(masked(drift=1e-2), tokenizer, ["good film"])


# The pick

FOUR = [
    explained(("a", 0.04), ("b", -0.09)),
    explained(("b", 0.07), ("c", 0.09)),
    explained(("d", -0.25)),
    explained(("c", 0.0)),
]


def test_the_pick_by_hand():
    # weights: a 0.2, b 0.4, c 0.3, d 0.5. Text 1 covers 0.7 of 1.4, then text 2 adds 0.5 and text 0 only 0.2.
    pick = submodular_pick(FOUR, 4)
    assert pick.positions == [1, 2, 0, 3]
    assert pick.coverage == pytest.approx([0.5, 1.2 / 1.4, 1, 1])
    assert submodular_pick(FOUR, 1).positions == [1]


def test_only_the_top_words_of_a_text_explain_it():
    # weights: b sqrt(0.09) = 0.3, c 0.3, d 0.5
    assert submodular_pick(FOUR, 3, top_k=1) == ([2, 0, 1], pytest.approx([5 / 11, 8 / 11, 1]))


def test_ties_go_to_the_first_text():
    assert submodular_pick([explained(("a", 1.0))] * 3, 3) == ([0, 1, 2], [1, 1, 1])
    assert submodular_pick([explained(("a", 0.0)), explained()], 2) == ([0, 1], [1, 1])


@given(EXPLANATIONS, st.integers(1, 6), st.integers(1, 3))
def test_the_pick_grows_and_repeats_no_text(explanations, n, top_k):
    n = min(n, len(explanations))
    positions, coverage = submodular_pick(explanations, n, top_k)
    assert len(set(positions)) == len(positions) == len(coverage) == n
    assert coverage == sorted(coverage) and min(coverage) >= 0 and max(coverage) <= 1
    gains = [after - before for before, after in itertools.pairwise([0, *coverage])]
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(gains))
    assert submodular_pick(explanations, len(explanations), top_k).coverage[-1] == 1


@given(EXPLANATIONS, st.integers(1, 3))
def test_the_pick_is_the_best_text_and_near_the_best_texts(explanations, n):
    n = min(n, len(explanations))
    coverage = submodular_pick(explanations, n).coverage
    if not any(any(explanation.scores) for explanation in explanations):
        return
    weights = {row.word: row.importance for row in word_importance(explanations, "sqrt_abs")}
    covers = [
        {word.lower() for word, score in zip(own.words, own.scores, strict=True) if score} for own in explanations
    ]

    def best(n):
        unions = [set().union(*some) for some in itertools.combinations(covers, n)]
        return max(sum(weights[word] for word in words) for words in unions) / sum(weights.values())

    assert coverage[0] == pytest.approx(best(1))
    assert (1 - 1 / math.e) * best(n) <= coverage[-1] + 1e-9 <= best(n) + 2e-9


# The table


def test_order_of_rows_and_top():
    rows = [("b", 0.5, 1, 1), ("a", 0.5, 1, 1), ("c", 0.5, 2, 1), ("d", 0.75, 1, 1), ("e", -1.0, 9, 9)]
    table = GlobalImportance([WordImportance(*row) for row in rows])
    assert [row.word for row in table] == ["d", "c", "a", "b", "e"] and len(table) == 5
    assert table.top(2) == [("d", 0.75, 1, 1), ("c", 0.5, 2, 1)]
    assert table.top(99) == list(table)


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["word", "importance", "count", "texts"]
    return [WordImportance(word, float(importance), int(count), int(texts)) for word, importance, count, texts in rows]


@given(
    st.lists(
        st.builds(
            WordImportance,
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            st.floats(allow_nan=False, allow_infinity=False),
            st.integers(0, 10**9),
            st.integers(0, 10**9),
        )
    )
)
def test_csv_holds_every_word_and_digit(tmp_path_factory, rows):
    table = GlobalImportance(rows)
    path = tmp_path_factory.mktemp("csv") / "missing folder" / "table.csv"
    table.to_csv(path)
    assert read(path) == list(table)


def test_csv_of_nasty_words(tmp_path):
    words = [
        '"',
        '""',
        ",",
        ";",
        "\n",
        "\r\n",
        "\t",
        "'",
        "=1+1",
        "שלום",
        "👩‍👩‍👧",
        "$x$",
        "<b>",
        " a ",
        "",
        "\ufeff",
        "\u2028",
    ]
    table = GlobalImportance([WordImportance(word, 0.1, 1, 1) for word in words])
    table.to_csv(tmp_path / "table.csv")
    assert sorted(row.word for row in read(tmp_path / "table.csv")) == sorted(words)
    assert b'\r\n"""",0.1,1,1\r\n' in (tmp_path / "table.csv").read_bytes()
    GlobalImportance([WordImportance("\ud800", 0.1, 1, 1)]).to_csv(tmp_path / "half.csv")
    assert read(tmp_path / "half.csv")[0].word == r"\ud800"


# Errors


test_what_cannot_be_used_is_said = refuses(
    (lambda: word_importance([]), "There are no explanations"),
    (lambda: word_importance(["good"]), r"explanations\[0\] is of type str"),
    (
        lambda: word_importance([THREE[0], explained(("a", 1.0), method="attention")]),
        r"explanations\[1\] is of the method 'attention', others are of 'lime'",
    ),
    (lambda: word_importance(THREE, "max"), "aggregate is 'max'; choose one of 'mean', 'sum'"),
    (lambda: word_importance(THREE, min_count=0), "min_count is 0; it must be at least 1"),
    (lambda: word_importance([explained()]), "0 different words in all"),
    (lambda: submodular_pick(THREE, 4), "n is 4; it must be from 1 to 3"),
    (lambda: submodular_pick(THREE, 1, top_k=0), "top_k is 0"),
    (lambda: submodular_pick([], 1), "There are no explanations"),
    (lambda: word_importance(THREE).top(0), "n is 0"),
    (lambda masked, tokenizer: mask_importance(masked(), tokenizer, "good film"), "give a list of texts"),
    (lambda masked, tokenizer: mask_importance(masked(), tokenizer, [""]), "0 different words in all"),
    (
        lambda masked, tokenizer: mask_importance(masked(), tokenizer, ["good"], "sum"),
        "subwords is 'sum'; choose one of",
    ),
    (lambda masked, tokenizer: mask_importance(masked(), tokenizer, ["good"], batch_size=0), "batch_size is 0"),
    (
        lambda masked, tokenizer: vocabulary_importance(masked(), tokenizer, min_count=1),
        "No word occurs at least 1 times",
    ),
)


def test_a_model_without_a_mask_is_refused_and_left_as_it_was(masked, tokenizer):
    model = masked(has_mask=False).train()
    with pytest.raises(InputError, match="Masked gives no token_mask; use a model with a word mask"):
        vocabulary_importance(model, tokenizer)
    assert model.training
