"""Arguments that are absurd in one place: each public function takes them, or says in a sentence what it was given."""

from functools import partial

import pytest
import torch
from arena import TRIED, at_most, examples
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertConfig, BertModel

from hf_vat import Faithfulness, compare_explainers, explain
from hf_vat.errors import InputError, MissingExtra
from hf_vat.explanations import mask_importance, word_importance
from hf_vat.faithfulness import bootstrap_interval
from hf_vat.pretrained import load_classifier

_TEXTS = ["a good film", "the plot is dull"]
_ABSURD = st.one_of(
    st.sampled_from(
        [None, True, -1, 0, 1.5, 10**400, float("nan"), float("inf"), "", "x", b"x", (), [], {}, [None], [[]]]
    ),
    st.sampled_from(
        [["x", None], [1, 2], [[1.0], ["x"]], object(), torch.zeros(()), torch.zeros(2, 2), "a\x00b", {"x": 1}]
    ),
    st.integers(-(10**6), 10**6),
    st.text(max_size=3),
    st.lists(st.one_of(st.integers(-2, 2), st.floats(), st.text(max_size=2), st.none()), max_size=3),
)
# The bar is of tqdm, the store of ours, and the rest not looked at.
_LEFT = ("progress",)


@pytest.fixture(scope="module")
def calls(arena):
    model, tokenizer = load_classifier(str(arena.inputs / "vat"))
    masked, _ = load_classifier(str(arena.inputs / "masked"))
    asked = {"model": model, "tokenizer": tokenizer, "texts": _TEXTS}
    explained = explain(**asked, labels=[1, 0])
    faithfulness = Faithfulness(model, tokenizer, explained, ks=(1,))
    return {
        "explain": (
            explain,
            {
                **asked,
                "method": "occlusion",
                "target": 1,
                "batch_size": 2,
                "seed": 0,
                "labels": [1, 0],
                "max_length": 8,
            },
        ),
        "Faithfulness": (
            Faithfulness,
            {
                **{
                    "scorer": model,
                    "tokenizer": tokenizer,
                    "texts": _TEXTS,
                    "labels": [1, 0],
                    "seen": None,
                    "ks": (1,),
                },
                **{"shares": (0.5,), "operator": "delete", "batch_size": 2, "max_length": 8},
            },
        ),
        "measure": (faithfulness.measure, {"explanations": [[0.1, 0.2, 0.3], [1, 2, 3, 4]], "explainer": "mine"}),
        "random": (faithfulness.random, {"seeds": [0]}),
        "compare_explainers": (
            partial(compare_explainers, model, tokenizer, _TEXTS, [1, 0]),
            {
                **{
                    "methods": ["attention"],
                    "scorer": None,
                    "ks": (1,),
                    "shares": (0.5,),
                    "operator": "delete",
                    "seeds": [0],
                },
                **{"confidence": 0.9, "batch_size": 2, "seed": 0, "max_length": 8},
            },
        ),
        "word_importance": (word_importance, {"explanations": explained, "aggregate": "sum", "min_count": 1}),
        "mask_importance": (
            mask_importance,
            {"model": masked, "tokenizer": tokenizer, "texts": _TEXTS, "min_count": 1, "batch_size": 2},
        ),
        "bootstrap_interval": (
            bootstrap_interval,
            {"values": [0.0, 1.0], "confidence": 0.9, "n_resamples": 20, "seed": 0},
        ),
    }


_NAMES = "explain Faithfulness measure random compare_explainers word_importance mask_importance bootstrap_interval"


@pytest.mark.parametrize("name", _NAMES.split())
def test_f56_absurd_arguments(calls, name):
    function, arguments = calls[name]

    @examples(6)
    @given(st.data())
    def try_arguments(data):
        changed = data.draw(st.lists(st.sampled_from(sorted(arguments)), min_size=1, max_size=2, unique=True))
        given_ = {**arguments, **{key: data.draw(_ABSURD) for key in changed}}
        TRIED["calls"] += 1
        try:
            with at_most(60):
                function(**given_)
        except (InputError, MissingExtra) as error:
            assert len(str(error)) < 2000
        except TypeError as error:
            assert str(error)

    try_arguments()


def test_f56_what_is_no_classifier_and_no_tokenizer(calls):
    _, asked = calls["explain"]
    model, tokenizer, texts = (asked[name] for name in ("model", "tokenizer", "texts"))
    bare = BertModel(BertConfig(vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=2))
    for call, named in (
        (lambda: explain(model, tokenizer, None), "texts is None"),
        (lambda: explain(model, tokenizer, texts, labels=1), "labels is 1; give a list"),
        (lambda: explain(model, None, texts), "give its tokenizer too"),
        (lambda: explain(bare, tokenizer, texts, "occlusion"), "gives no logits"),
        (lambda: explain(model, tokenizer, texts, "lime", n_samples=10**12), "n_samples is .* at most 1000000"),
        (lambda: Faithfulness(torch.nn.DataParallel(model), tokenizer, texts, [0, 1]), "DataParallel"),
        (lambda: bootstrap_interval([0.0, 1.0], None), "confidence is None"),
    ):
        with pytest.raises(InputError, match=named):
            call()


@pytest.mark.parametrize("problem", ["multi_label_classification", "regression"])
def test_f53_faithfulness_takes_the_models_that_explain_takes(calls, problem, monkeypatch):
    _, asked = calls["explain"]
    monkeypatch.setattr(asked["model"].config, "problem_type", problem)
    arguments = asked["model"], asked["tokenizer"], asked["texts"]
    explained = explain(*arguments)
    assert Faithfulness(*arguments[:2], explained, ks=(1,)).measure(explained).scores
    with pytest.raises(InputError, match=r"labels\[0\]"):
        Faithfulness(*arguments, labels=[0, 1])
