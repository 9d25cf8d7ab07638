"""The `evaluate` modules of word scores: values by another library, texts that are skipped, and refused inputs."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import average_precision_score, precision_recall_fscore_support, roc_auc_score

from hf_vat import metrics
from hf_vat.errors import InputError

MARKED = ("auprc", "iou_f1", "token_f1", "word_f1_at_k")


def random_texts(sizes=(2, 5, 9, 30)):
    generator = np.random.default_rng(0)
    scores = [generator.permutation(n) / n for n in sizes]
    flags = [generator.permutation([1, 0, *generator.integers(0, 2, n - 2)]) for n in sizes]
    return scores, flags


@pytest.mark.parametrize(
    ("definition", "theirs"), [("average_precision", average_precision_score), ("roc_auc", roc_auc_score)]
)
def test_areas_equal_scikit_learn(definition, theirs):
    scores, flags = random_texts()
    result = metrics.load("auprc").compute(predictions=scores, references=flags, definition=definition)
    assert result[definition] == pytest.approx(np.mean([theirs(y, s) for y, s in zip(flags, scores, strict=True)]))


def test_f1_equals_scikit_learn():
    scores, flags = random_texts()
    top = [(-row).argsort().argsort() < 2 for row in scores]
    pooled = precision_recall_fscore_support(np.concatenate(flags), np.concatenate(top), average="binary")[:3]
    each = np.mean(
        [
            precision_recall_fscore_support(y, p, average="binary", zero_division=0)[:3]
            for y, p in zip(flags, top, strict=True)
        ],
        0,
    )
    at_k = metrics.load("word_f1_at_k").compute(predictions=scores, references=flags, ks=[2])
    for average, expected in (("micro", pooled), ("macro", each)):
        hard = metrics.load("token_f1").compute(predictions=scores, references=flags, average=average, k=2)
        for name, value in zip(("precision", "recall", "f1"), expected, strict=True):
            assert hard[name] == at_k[f"{average}_{name}@2"] == pytest.approx(value)


def test_jsd_equals_scipy():
    a, b = [[1.0, 3.0], [0.2, -0.2, 0.6]], [[3.0, 1.0], [0.0, 0.0, 0.0]]
    result = metrics.load("explanation_agreement").compute(predictions=a, references=b, definition="jsd")
    expected = [jensenshannon([1, 3], [3, 1]) ** 2, jensenshannon([1, 1, 3], [1, 1, 1]) ** 2]
    assert result["jsd"] == pytest.approx(np.mean(expected))
    assert result["n_tied"] == 1


def test_iou_threshold():
    # the selected words 1 to 4 hold the marked words 2 and 3: half of them
    inputs = {"predictions": [[0, 4, 3, 2, 1]], "references": [[0, 0, 1, 1, 0]], "k": 4}
    module = metrics.load("iou_f1")
    assert module.compute(**inputs)["f1"] == 1
    assert module.compute(**inputs, threshold=0.6)["f1"] == 0


def test_precision_over_k_in_short_texts():
    inputs = {"predictions": [[2, 1]], "references": [[1, 0]], "ks": [5]}
    module = metrics.load("word_f1_at_k")
    assert module.compute(**inputs)["macro_precision@5"] == 1 / 2
    assert module.compute(**inputs, denominator="k")["macro_precision@5"] == 1 / 5


def test_attention_by_hand():
    result = metrics.load("attention_entropy").compute(predictions=[[0.5, 0.5, 0, 0], [1.0]])
    assert (result["normalized_entropy"], result["max_weight"]) == (pytest.approx((0.5 + 0) / 2), (0.5 + 1) / 2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [*MARKED, "explanation_agreement"])
def test_c39_scores_that_rank_nothing_are_counted(name):
    predictions, references = [[0, 0], [0, 0, 0], [0, 0], [0]], [[1, 0], [0, 1, 1], [0, 1], [1]]
    module = metrics.load(name)
    result = module.compute(predictions=predictions, references=references)
    assert all(math.isfinite(value) for value in result.values() if isinstance(value, float))
    assert result["n_tied"] == result["n_scored"] == (3 if name == "auprc" else 4)
    assert module.compute(predictions=predictions, references=references) == result


@pytest.mark.parametrize("name", MARKED)
def test_c46_reasons_for_which_texts_are_skipped(name):
    # empty, one word, no word marked, every word marked, and one that every module can use
    texts = {"predictions": [[], [1], [1, 2], [1, 2], [2, 1]], "references": [[], [1], [0, 0], [1, 1], [1, 0]]}
    result = metrics.load(name).compute(**texts)
    skipped = {"no words": 1, "no marked words": 1} | ({"only marked words": 2} if name == "auprc" else {})
    assert (result["n_total"], result["n_scored"], result["n_skipped"]) == (5, 5 - sum(skipped.values()), skipped)
    without = {key: [column[row] for row in (1, 3, 4)] for key, column in texts.items()}
    values = {key: value for key, value in result.items() if isinstance(value, float)}
    assert values == {key: metrics.load(name).compute(**without)[key] for key in values}
    with pytest.raises(InputError, match=r"None of the 2 texts.*'no marked words': 2"):
        metrics.load(name).compute(predictions=[[1], [2]], references=[[0], [0]])


@pytest.mark.parametrize("name", MARKED)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"references": [[1, 0], [0.0, 1.0]]}, r"references\[1\]\[0\] is 0\.0, which is no flag.*1 or True"),
        ({"references": [[1, 0], np.array([0.0, 1.0])]}, r"references\[1\]\[0\] is 0\.0"),
        ({"references": [["1", "0"], [0, 1]]}, r"references\[0\]\[0\] is '1'"),
        ({"references": [[1, 0], [0, 2]]}, r"references\[1\]\[1\] is 2"),
        ({"references": [[1, None], [0, 1]]}, r"references\[0\]\[1\] is None"),
        ({"references": [1, 0]}, r"references\[0\] is 1; give a list"),
        ({"predictions": [[1, 2], [1, "2"]]}, r"predictions\[1\]\[1\] is '2', which is no number"),
        ({"predictions": [[1, 2], [None, 1]]}, r"predictions\[1\]\[0\] is None"),
        ({"predictions": [[1, 2], [1, math.nan]]}, r"predictions\[1\]\[1\] is nan"),
        ({"predictions": ["ab", "cd"]}, r"predictions\[0\] is 'ab'; give a list"),
        ({"predictions": [[1, 2], [1, 2, 3]]}, r"predictions\[1\] has 3 words and references\[1\] has 2"),
        ({"predictions": [[1, 2]]}, "'predictions': 1, 'references': 2"),
        ({"predictions": None}, "missing: predictions"),
    ],
)
def test_c44_bad_input_is_named(name, change, message):
    inputs = {"predictions": [[1, 2], [2, 1]], "references": [[1, 0], [0, 1]]}
    with pytest.raises(InputError, match=message):
        metrics.load(name).compute(**{**inputs, **change})


@pytest.mark.parametrize("name", MARKED)
def test_c44_flags_may_be_booleans(name):
    module, predictions = metrics.load(name), [[3, 1, 2], [1, 2]]
    expected = module.compute(predictions=predictions, references=[[1, 0, 0], [0, 1]])
    for flags in ([[True, False, False], [False, True]], [torch.tensor([1, 0, 0]) > 0, np.array([0, 1], dtype=bool)]):
        assert module.compute(predictions=predictions, references=flags) == expected


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("auprc", {"definition": "auc"}, "'auc'; there are auprc, average_precision, roc_auc"),
        ("token_f1", {"average": "weighted"}, "no average 'weighted'.*macro"),
        ("token_f1", {"k": 0}, "k is 0"),
        ("iou_f1", {"average": "samples"}, "no average 'samples'"),
        ("iou_f1", {"threshold": 0.3}, "threshold is 0.3"),
        ("word_f1_at_k", {"ks": [2, 2]}, "different whole numbers"),
        ("word_f1_at_k", {"ks": 5}, "ks is 5"),
        ("word_f1_at_k", {"denominator": "n"}, "no denominator 'n'"),
        ("explanation_agreement", {"definition": "spearman"}, "'spearman'; there are kendall_tau, tvd"),
        ("explanation_agreement", {"definition": "top_k_overlap"}, "k is None; top_k_overlap needs"),
        ("explanation_agreement", {"definition": "top_k_overlap", "k": 2.5}, "k is 2.5"),
        ("explanation_agreement", {"k": 5}, "kendall_tau compares all words"),
    ],
)
def test_bad_options_are_named(name, options, message):
    module, inputs = metrics.load(name), {"predictions": [[1, 2]], "references": [[1, 0]]}
    with pytest.raises(InputError, match=message):
        module.compute(**inputs, **options)
    assert module.compute(**inputs)["n_total"] == 1


def test_errors_about_one_text_name_it():
    with pytest.raises(InputError, match=r"Text 2: Scores must be.*finite"):
        metrics.load("explanation_agreement").compute(
            predictions=[[1, 2], [], [1, -math.inf]], references=[[1, 2], [], [2, 1]], definition="tvd"
        )
    with pytest.raises(InputError, match=r"Text 1: p is \[0.5, 0.7\].*no distribution"):
        metrics.load("attention_entropy").compute(predictions=[[], [0.5, 0.7]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shares": [0.2]}, r"{0}\[0\] has 2 entries for 1 shares"),
        ({"shares": [0.2, 1.5]}, "above 0 and at most 1"),
        ({"shares": 0.2}, "shares is 0.2"),
        ({"shares": ["a", "b"]}, "shares is"),
        ({"shares": [0.2, 0.2]}, "different"),
        ({"{0}": [[[0.5, 0.5]] * 2, [[0.5, 0.5]]]}, r"{0}\[1\] has 1 entries for 2 shares"),
        ({"{0}": None}, "missing: {0}"),
        ({"{0}": [[[5.0, 4.0]] * 2, []]}, "no probability distribution"),
    ],
)
@pytest.mark.parametrize(("name", "entry"), [("comprehensiveness", "perturbed"), ("sufficiency", "kept")])
def test_shares_fit_the_entries(name, entry, change, message):
    inputs = {"predictions": [[0.5, 0.5], [0.1, 0.9]], entry: [[[0.5, 0.5]] * 2, []], "shares": [0.2, 0.5]}
    with pytest.raises(InputError, match=message.replace("{0}", entry)):
        metrics.load(name).compute(**{**inputs, **{key.replace("{0}", entry): v for key, v in change.items()}})
