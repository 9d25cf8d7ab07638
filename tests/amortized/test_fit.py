"""Students of slow methods: what they learn, that they add up, that a killed run ends where it would have ended, where they live."""

import copy
import json
import shutil

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertConfig,
    BertForSequenceClassification,
    ConvBertConfig,
    ConvBertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    pipeline,
)

import hf_vat
from hf_vat import EncoderForVATClassification, InputError, WordEncoderConfig, explain, fit_amortized
from hf_vat.amortized import attach_explainer
from hf_vat.amortized import fit as fitting
from hf_vat.amortized import student as training
from hf_vat.amortized import teacher as teaching
from hf_vat.amortized.student import _errors, new_student
from hf_vat.amortized.teacher import no_word_ids, teach, teacher_settings
from hf_vat.data.vocabulary import train_word_tokenizer
from hf_vat.explanations import load_explanations
from hf_vat.explanations.removal import lime_subsets
from hf_vat.faithfulness import Faithfulness, precision_recall_f1_at_k
from hf_vat.faithfulness.agreement import kendall_tau
from hf_vat.faithfulness.perturb import Operator
from hf_vat.inference import encode_texts, predict_outputs, progress_bar

TASK = "text-classification-explained"
TEXTS = ["a good film", "it is very bad", "unbelievable , a dull plot !", "good and bad", "the actor is lovely", "film"]
QUICK = {"epochs": 2, "batch_size": 4, "teacher": "shapley", "n_samples": 4}


@pytest.fixture(scope="module")
def learned(planted_classifier):
    """The student of a classifier of planted words; the classifier, its tokenizer and its splits."""
    model, tokenizer, splits = planted_classifier
    student = fit_amortized(
        model, tokenizer, splits["train"]["text"][:600], epochs=8, head_learning_rate=3e-3, learning_rate=1e-3
    )
    return student, model, tokenizer, splits


def recall(explanations, rationales) -> float:
    """Of the words that decide, two of a text, among the first two."""
    return precision_recall_f1_at_k([one.scores for one in explanations], rationales, ks=[2]).macro()["recall"].item()


# What is learned


def test_the_student_finds_the_planted_words_of_texts_that_it_has_not_seen(learned):
    """As its teacher does with 12 orders, at about a hundredth of the inputs."""
    student, model, tokenizer, splits = learned
    texts, rationales = splits["test"]["text"][:], splits["test"]["rationale"][:]
    by_student = explain(model, tokenizer, texts, "amortized", labels=splits["test"]["label"][:], explainer=student)
    by_teacher = explain(model, tokenizer, texts, "shapley", n_samples=12)

    assert recall(by_student, rationales) > recall(by_teacher, rationales) - 0.05
    assert np.mean([kendall_tau(a.scores, b.scores) for a, b in zip(by_student, by_teacher, strict=True)]) > 0.5
    faithfulness = Faithfulness(model, tokenizer, by_student, ks=(2,))
    drop = {
        name: faithfulness.measure(some, name).scores["prob_drop@2"]
        for name, some in (("s", by_student), ("t", by_teacher))
    }
    assert drop["s"] > 0.9 * drop["t"] > 0.1


def test_scores_add_up_whatever_the_student_says(learned):
    student, model, tokenizer, _ = learned
    for target in (0, 1):
        for one in explain(
            model, tokenizer, ["pogake", "a b c d", "", "mulote mulote nope"], "amortized", target, explainer=student
        ):
            if one.words:
                assert sum(one.scores) + one.details["base_value"] == pytest.approx(one.probabilities[target], abs=1e-6)
    nothing = explain(model, tokenizer, ["pogake"], "shapley", 1, n_samples=1)[0].details["base_value"]
    assert student.config.no_word_outputs[1] == pytest.approx(nothing, abs=1e-6)


@pytest.mark.parametrize("teacher", ["occlusion", "lime"])
def test_other_teachers_are_learned_as_they_are(planted_classifier, teacher):
    """Their scores add up to nothing in particular."""
    model, tokenizer, splits = planted_classifier
    settings = {} if teacher == "occlusion" else {"n_samples": 60}
    texts = splits["train"]["text"][:200]
    student = fit_amortized(
        model, tokenizer, texts, teacher, epochs=30, head_learning_rate=3e-3, learning_rate=1e-3, **settings
    )
    assert not student.config.adds_up and student.config.teacher == teacher
    found, wanted = (
        explain(model, tokenizer, texts, method, **more)
        for method, more in (("amortized", {"explainer": student}), (teacher, settings))
    )
    assert all(one.details == {} for one in found)
    scores = [[score for one in some for score in one.scores] for some in (found, wanted)]
    assert np.corrcoef(scores)[0, 1] > 0.3


def test_the_teachers_scores_are_those_of_explain_for_every_class(make_model, tokenizer):
    """The half of the texts that the first round is less sure of has the mean of two rounds."""
    model = make_model("vat", num_labels=3)
    encoded = encode_texts(tokenizer, TEXTS, model, None)
    settings = teacher_settings("shapley", {})
    with progress_bar("", 1, False) as bar:
        taught = teach(model, tokenizer, encoded, "shapley", settings, 32, 5, None, bar)
    rounds = [
        [explain(model, tokenizer, TEXTS, "shapley", target, seed=seed, n_samples=4) for target in range(3)]
        for seed in (5, 6)
    ]
    errors = [np.mean([of_class[place].details["standard_error"] for of_class in rounds[0]]) for place in range(6)]
    unsure = set(np.argsort(errors, kind="stable")[3:].tolist())
    for place, one in enumerate(taught):
        first, second = (np.array([of_class[place].scores for of_class in some]).T for some in rounds)
        wanted = (first + second) / 2 if place in unsure else first
        assert one.scores == pytest.approx(wanted, abs=1e-9)
        base = [of_class[place].details["base_value"] for of_class in rounds[0]]
        assert one.scores.sum(0) == pytest.approx(one.outputs - base, abs=1e-6)
    unknown = tokenizer.unk_token_id
    assert no_word_ids(model, tokenizer, encoded, "delete") == [2, unknown, 3]
    assert no_word_ids(model, tokenizer, encoded, "mask") is None


def test_squared_error_by_hand(stub, stub_tokenizer):
    """Two words of one token each; the tokens' scores are fixed, the rest is equal shares."""
    encoded = encode_texts(stub_tokenizer, ["good film"], stub, None)
    with progress_bar("", 1, False) as bar:
        taught = teach(
            stub,
            stub_tokenizer,
            encoded,
            "shapley",
            {"n_samples": 2, "exact": False, "operator": "delete"},
            4,
            0,
            None,
            bar,
        )

    class Fixed(torch.nn.Module):
        config, device = BertConfig(num_labels=2), torch.device("cpu")

        def forward(self, input_ids, attention_mask):
            return type("Output", (), {"logits": torch.tensor([[[9.0, 9.0], [0.1, 0.3], [0.0, 0.1], [9.0, 9.0]]])})

    half = 1 / (1 + np.exp(-2.0)) - 0.5  # what "good" adds to the probability of 1, and "film" adds nothing
    errors, squares = _errors(Fixed(), stub_tokenizer, taught, None)
    wanted = [[(0.1 + half) ** 2, (0.3 - half) ** 2], [0.0, 0.1**2]]
    assert errors[0].numpy() == pytest.approx(np.array(wanted), abs=1e-6)
    assert squares[0].numpy() == pytest.approx(np.array([[half**2] * 2, [0, 0]]), abs=1e-6)
    errors, _ = _errors(Fixed(), stub_tokenizer, taught, np.array([0.5, 0.5]))
    share = (half - 0.4) / 2  # of class 1
    wanted = [(0.3 + share - half) ** 2, (0.1 + share) ** 2]
    assert errors[0, :, 1].numpy() == pytest.approx(np.array(wanted), abs=1e-6)


@pytest.mark.parametrize("samples", [2, 7, 40])
def test_of_lime_the_subsets_are_learned_from(make_model, tokenizer, samples):
    """The error is that of linear models with the best intercept on all subsets of all texts, under LIME's weights."""
    model = make_model("vat", num_labels=3)
    encoded = encode_texts(tokenizer, TEXTS, model, None)
    with progress_bar("", 1, False) as bar:
        taught = teach(
            model, tokenizer, encoded, "lime", teacher_settings("lime", {"n_samples": samples}), 8, 5, None, bar
        )
    for one in taught:  # of long texts there is no room for what is as large as the square of their words
        regression, (words, classes) = one.regression, one.scores.shape
        sizes = {name: array.nbytes for name, array in vars(regression).items()}
        assert sizes == {
            "kept": samples * words,
            "weights": 8 * samples,
            "outputs": 8 * words * classes,
            "variance": 8 * classes,
        }
    student = new_student(model, None, 3).eval()
    with torch.no_grad():
        errors, totals = _errors(student, tokenizer, taught, None)
    assert errors.shape == totals.shape == (len(TEXTS), 3)
    by_words = explain(model, tokenizer, TEXTS, "random")  # for their words' places
    for place, text in enumerate(encoded):
        kept, weights = lime_subsets(text, samples, 5)
        weights = weights / weights.sum()
        inputs = Operator.of("delete", tokenizer, model).keep(text, kept)
        said = predict_outputs(model, tokenizer, inputs)  # [S, C]
        with torch.no_grad():
            tokens = student(torch.tensor([text.input_ids])).logits[0]  # [T, C]
        words = np.array([text.word_scores(row) for row in tokens.T.tolist()]).T  # [n, C]
        assert len(words) == len(by_words[place].words)
        for wanted, residual in ((errors, said - kept @ words), (totals, said)):
            mean = weights @ residual
            assert wanted[place].numpy() == pytest.approx(weights @ (residual - mean) ** 2, abs=1e-6)


def test_few_subsets_of_many_texts_tell_what_those_of_one_do_not(planted_classifier):
    """With 12 subsets for each text of about ten words, LIME itself says little."""
    model, tokenizer, splits = planted_classifier
    texts, rationales = splits["test"]["text"][:], splits["test"]["rationale"][:]
    student = fit_amortized(
        model,
        tokenizer,
        splits["train"]["text"][:600],
        "lime",
        epochs=8,
        head_learning_rate=3e-3,
        learning_rate=1e-3,
        n_samples=12,
    )
    by_student = recall(explain(model, tokenizer, texts, "amortized", explainer=student), rationales)
    few, many = (recall(explain(model, tokenizer, texts, "lime", n_samples=count), rationales) for count in (12, 300))
    assert few + 0.2 < many - 0.1 < by_student


def test_in_bfloat16_the_student_learns_nearly_the_same(planted_classifier):
    """Its weights stay in float32, and what the classifier gives to others stays as it was."""
    model, tokenizer, splits = planted_classifier
    options = {"epochs": 3, "head_learning_rate": 3e-3, "learning_rate": 1e-3}
    one, other = (
        fit_amortized(model, tokenizer, splits["train"]["text"][:200], bf16=bf16, **options) for bf16 in (False, True)
    )
    assert {tensor.dtype for tensor in other.state_dict().values()} == {torch.float32}
    assert not torch.is_autocast_enabled("cpu")
    texts = splits["test"]["text"][:100]
    found = [explain(model, tokenizer, texts, "amortized", explainer=student) for student in (one, other)]
    a, b = ([score for explanation in some for score in explanation.scores] for some in found)
    assert a != b and np.corrcoef(a, b)[0, 1] > 0.95


# Any classifier


@pytest.mark.parametrize(
    "kind", ["bert", "distilbert", "gpt2", "vat", "masked", "over distilbert", "several labels", "scores"]
)
def test_every_kind_of_classifier_has_a_student(make_model, tokenizer, kind):
    tokenizer = copy.deepcopy(tokenizer)
    sizes = {"vocab_size": len(tokenizer), "num_labels": 3}
    bert = {
        **sizes,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
    }
    distilbert = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 32}
    model = {
        "bert": lambda: BertForSequenceClassification(BertConfig(**bert)),
        "distilbert": lambda: DistilBertForSequenceClassification(DistilBertConfig(**sizes, **distilbert)),
        "gpt2": lambda: GPT2ForSequenceClassification(GPT2Config(**sizes, n_embd=16, n_layer=2, n_head=2, n_positions=32, pad_token_id=0)),
        "vat": lambda: make_model("vat", num_labels=3),
        "masked": lambda: make_model("att", mask_type="vmask", mask_site="embedding_output"),
        "over distilbert": lambda: EncoderForVATClassification(
            EncoderForVATClassification.config_class(encoder=DistilBertConfig(vocab_size=len(tokenizer), **distilbert))
        ),
        "several labels": lambda: make_model("att", num_labels=3, problem_type="multi_label_classification"),
        "scores": lambda: make_model("att", num_labels=1, problem_type="regression"),
    }[kind]().eval()  # fmt: skip
    student = fit_amortized(model, tokenizer, TEXTS, **QUICK)
    assert student.config.id2label == model.config.id2label
    for one in explain(model, tokenizer, TEXTS, "amortized", explainer=student, batch_size=3):
        assert len(one.scores) == len(one.words) and any(one.scores)
        assert sum(one.scores) + one.details["base_value"] == pytest.approx(one.probabilities[one.target], abs=1e-5)


def test_a_word_encoder_has_one_too():
    tokenizer = train_word_tokenizer([" ".join(TEXTS)], model_max_length=32)
    encoder = WordEncoderConfig(
        vocab_size=len(tokenizer), embedding_size=8, hidden_size=16, pad_token_id=tokenizer.pad_token_id
    )
    model = EncoderForVATClassification(
        EncoderForVATClassification.config_class(encoder=encoder, prefix_tokens=0, suffix_tokens=0)
    ).eval()
    student = fit_amortized(model, tokenizer, TEXTS, **QUICK)
    assert type(student).__name__ == "WordEncoderForTokenClassification"
    assert any(explain(model, tokenizer, TEXTS, "amortized", explainer=student)[0].scores)


@pytest.mark.parametrize(
    "text", ["", " ", "\u200d", {"text": "a good film", "text_pair": "it is bad"}, {"text": "", "text_pair": "good"}]
)
def test_scores_add_up_for_texts_of_a_form_that_the_student_has_not_seen(make_model, tokenizer, tmp_path, text):
    """To f(text) - f(no word) of that very form, as of Shapley values."""
    model = make_model("vat", type_vocab_size=2, initializer_range=0.5)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    student = fit_amortized(model, tokenizer, TEXTS, **QUICK)
    attach_explainer(tmp_path, student)
    for target in (0, 1):
        [one] = explain(model, tokenizer, [text], "amortized", target, explainer=student)
        [wanted] = explain(model, tokenizer, [text], "shapley", target, n_samples=2)
        assert one.details["base_value"] == pytest.approx(wanted.details["base_value"], abs=1e-6)
        assert sum(one.scores) == pytest.approx(one.probabilities[target] - one.details["base_value"], abs=1e-6)
        classify = pipeline(TASK, model=str(tmp_path))
        for result in (
            classify(text, target=target),
            classify(["a good film", text], target=target, batch_size=2)[1],
        ):
            assert [word["score"] for word in result["words"]] == pytest.approx(one.scores, abs=1e-6)


def test_pairs_of_texts(make_model, tokenizer):
    model = make_model("vat", special_token_ids=[2, 3])
    pairs = [{"text": one, "text_pair": other} for one, other in zip(TEXTS, TEXTS[::-1], strict=True)]
    student = fit_amortized(model, tokenizer, pairs, **QUICK)
    for one in explain(model, tokenizer, pairs, "amortized", explainer=student):
        assert sum(one.scores) + one.details["base_value"] == pytest.approx(one.probabilities[one.target], abs=1e-5)


def test_the_student_begins_with_the_classifiers_encoder_or_its_first_layers(make_model):
    model = make_model("vat")
    student = new_student(model, None, 0)
    for name, tensor in model.base_model.state_dict().items():
        assert torch.equal(student.base_model.state_dict()[name], tensor)
    few = new_student(model, 1, 0)
    assert few.config.num_hidden_layers == 1 and len(few.base_model.encoder.layer) == 1
    with pytest.raises(InputError, match="layers is 3; the classifier's encoder has 1 to 2"):
        new_student(model, 3, 0)


def begin_elsewhere(tokenizer, tmp_path, seed: int = 0) -> str:
    """The folder of a model whose layer of scores does not fit any classifier here."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        start = AutoModelForTokenClassification.from_config(
            BertConfig(vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,
                       max_position_embeddings=32, num_labels=5)
        )  # fmt: skip
    start.save_pretrained(tmp_path / "start")
    return str(tmp_path / "start")


def test_the_student_may_begin_elsewhere(make_model, tokenizer, tmp_path):
    folder = begin_elsewhere(tokenizer, tmp_path)
    start = AutoModelForTokenClassification.from_pretrained(folder)
    student = fit_amortized(make_model("vat", num_labels=3), tokenizer, TEXTS, student=folder, **QUICK)
    assert student.config.hidden_size == 8 and student.config.num_labels == 3
    state = torch.get_rng_state()
    one, other = (fitting._student_from(folder, make_model("vat"), seed) for seed in (0, 1))
    assert torch.equal(torch.get_rng_state(), state) and not torch.equal(one.classifier.weight, other.classifier.weight)
    for name, tensor in start.base_model.state_dict().items():
        assert torch.equal(one.base_model.state_dict()[name], tensor)


@pytest.mark.parametrize("teacher", ["shapley", "lime"])
def test_a_classifier_that_returns_tuples_has_a_student(make_model, tokenizer, tmp_path, teacher):
    model, tuples = make_model("vat"), make_model("vat")
    tuples.config.return_dict = False
    one, other = (fit_amortized(of, tokenizer, TEXTS, **{**QUICK, "teacher": teacher}) for of in (model, tuples))
    assert all(torch.equal(one.state_dict()[name], tensor) for name, tensor in other.state_dict().items())
    found = []
    for place, classifier in (("a", model), ("b", tuples)):
        classifier.save_pretrained(tmp_path / place)
        tokenizer.save_pretrained(tmp_path / place)
        one.config.return_dict = place == "a"
        attach_explainer(tmp_path / place, one)
        found.append(pipeline(TASK, model=str(tmp_path / place))(TEXTS))
    assert found[0] == found[1]


def test_a_student_that_sees_padding_reads_none(tokenizer, monkeypatch):
    """It learns from texts as it reads them later, and so is measured."""
    model = ConvBertForSequenceClassification(
        ConvBertConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
                       embedding_size=16, max_position_embeddings=32, conv_kernel_size=3, initializer_range=0.5)
    )  # fmt: skip
    read, texts = [], [*TEXTS, "a good plot", "it is good", "bad actor"]

    def reading(tokenizer, rows, kept=training.model_inputs):
        read.append({len(row) for row in rows})
        return kept(tokenizer, rows)

    monkeypatch.setattr(training, "model_inputs", reading)
    fit_amortized(model, tokenizer, texts, **QUICK)
    assert {len(lengths) for lengths in read} == {1} and len(read) > 2 * QUICK["epochs"]
    bert = BertForSequenceClassification(BertConfig(vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8))  # fmt: skip
    read.clear()
    fit_amortized(bert, tokenizer, texts, **QUICK)
    assert max(len(lengths) for lengths in read) > 1


# Runs


@pytest.mark.parametrize("elsewhere", [False, True])
def test_nothing_of_the_caller_changes(make_model, tokenizer, tmp_path, elsewhere):
    model = make_model("vat").train()
    start = begin_elsewhere(tokenizer, tmp_path) if elsewhere else None
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    with torch.no_grad():  # as in a caller's loop over classifiers
        students = [fit_amortized(model, tokenizer, TEXTS, student=start, **QUICK) for _ in range(2)]
    assert model.training and torch.equal(torch.get_rng_state(), state)
    assert (np.random.get_state()[1] == numpy_state).all()
    assert all(torch.equal(weights[name], tensor) for name, tensor in model.state_dict().items())
    one, other = (student.state_dict() for student in students)
    assert all(torch.equal(one[name], other[name]) for name in one)


class Killed(Exception):
    pass


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("place", ["first round", "second round", "first epoch", "second epoch", "saving", "card"])
def test_a_killed_run_goes_on_and_ends_where_it_would_have_ended(
    make_model, tokenizer, tmp_path, monkeypatch, place, elsewhere
):
    model, options = make_model("vat"), QUICK
    if elsewhere:
        options = QUICK | {"student": begin_elsewhere(tokenizer, tmp_path)}
    whole = fit_amortized(model, tokenizer, TEXTS, output_dir=tmp_path / "whole", **options)

    calls = {"explain": 0, "batches": 0}
    stop = {
        "first round": ("explain", 1),
        "second round": ("explain", 2),
        "first epoch": ("batches", 1),
        "second epoch": ("batches", 2),
    }

    def counting(name, function):
        def called(*args, **kwargs):
            calls[name] += 1
            if (name, calls[name]) == stop.get(place):
                raise Killed
            return function(*args, **kwargs)

        return called

    with monkeypatch.context() as patched:
        patched.setattr(teaching, "explain", counting("explain", explain))
        patched.setattr(training, "_batches", counting("batches", training._batches))
        if place in ("saving", "card"):

            def killed(*args):
                raise Killed

            patched.setattr(
                fitting,
                "write_text" if place == "saving" else "explainer_card",
                killed
                if place == "card"
                else (
                    lambda path, text, write=fitting.write_text: (
                        killed() if path.name == "README.md" else write(path, text)
                    )
                ),
            )
        with pytest.raises(Killed):
            fit_amortized(model, tokenizer, TEXTS, output_dir=tmp_path / "killed", **options)
    with monkeypatch.context() as patched:
        calls["batches"] = 0
        patched.setattr(training, "_batches", counting("batches", training._batches))
        stop.clear()
        found = fit_amortized(model, tokenizer, TEXTS, output_dir=tmp_path / "killed", **options)
    assert calls["batches"] == (1 if place in ("second epoch", "saving", "card") else 2)  # no epoch is run twice
    assert all(torch.equal(found.state_dict()[name], tensor) for name, tensor in whole.state_dict().items())
    names = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("whole", "killed")]
    assert names[0] == names[1] and "student_state.safetensors" not in names[0]


def test_a_finished_run_is_loaded_and_another_one_refused(make_model, tokenizer, tmp_path, monkeypatch):
    model, folder = make_model("vat"), tmp_path / "student"
    first = fit_amortized(model, tokenizer, TEXTS, output_dir=folder, **QUICK)
    with monkeypatch.context() as patched:
        patched.setattr(fitting, "teach", None)  # is not asked again
        again = fit_amortized(model, tokenizer, TEXTS, output_dir=folder, **QUICK)
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in first.state_dict().items())
    with pytest.raises(InputError, match=r"another run \(epochs was 2 and is 3"):
        fit_amortized(model, tokenizer, TEXTS, output_dir=folder, **{**QUICK, "epochs": 3})
    with pytest.raises(InputError, match=r"another run \(texts was 6 and is 5"):
        fit_amortized(model, tokenizer, TEXTS[1:], output_dir=folder, **QUICK)
    with pytest.raises(InputError, match=r"another run \(classifier was"):
        fit_amortized(make_model("att"), tokenizer, TEXTS, output_dir=folder, **QUICK)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files and no run"):
        fit_amortized(model, tokenizer, TEXTS, output_dir=other, **QUICK)
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]


def test_a_run_that_begins_with_other_weights_is_another_one(make_model, tokenizer, tmp_path):
    model, start, folder = make_model("vat"), begin_elsewhere(tokenizer, tmp_path), tmp_path / "student"
    fit_amortized(model, tokenizer, TEXTS, student=start, output_dir=folder, **QUICK)
    begin_elsewhere(tokenizer, tmp_path, seed=1)
    with pytest.raises(InputError, match=r"another run \(student_weights was"):
        fit_amortized(model, tokenizer, TEXTS, student=start, output_dir=folder, **QUICK)


@pytest.mark.parametrize("same", [True, False])
def test_what_another_process_finishes_at_the_last_moment_is_kept(make_model, tokenizer, tmp_path, monkeypatch, same):
    """Between the first look at the folder and its lock; whatever it is."""
    model, folder = make_model("vat"), tmp_path / "student"
    locked, others = fitting.locked, []

    def late(*args):
        monkeypatch.setattr(fitting, "locked", locked)
        if not same:
            (folder / fitting.RUN_NAME).unlink()  # both saw an empty folder, and the other one was the last to claim it
        options = QUICK if same else {**QUICK, "epochs": 1}
        others.append(fit_amortized(model, tokenizer, TEXTS, output_dir=folder, **options))
        monkeypatch.setattr(fitting, "train_student", None)  # is not called again
        return locked(*args)

    monkeypatch.setattr(fitting, "locked", late)
    if same:
        found = fit_amortized(model, tokenizer, TEXTS, output_dir=folder, **QUICK)
        assert all(torch.equal(found.state_dict()[name], tensor) for name, tensor in others[0].state_dict().items())
    else:
        with pytest.raises(InputError, match="another run"):
            fit_amortized(model, tokenizer, TEXTS, output_dir=folder, **QUICK)
    assert "explained_variance" in json.loads((folder / fitting.RUN_NAME).read_text())


def test_a_student_that_diverges_is_not_finished(make_model, tokenizer, tmp_path):
    model, folder = make_model("vat"), tmp_path / "student"
    with pytest.raises(InputError, match=r"no longer finite after 1 of 2 epochs.* Lower learning_rate \(1e\+30\)"):
        fit_amortized(model, tokenizer, TEXTS, output_dir=folder, learning_rate=1e30, **QUICK)
    assert sorted(path.name for path in folder.iterdir()) == ["distillation.json", "teacher-1.jsonl", "teacher-2.jsonl"]
    assert "explained_variance" not in json.loads((folder / "distillation.json").read_text())
    student = fit_amortized(model, tokenizer, TEXTS, **QUICK)
    with torch.no_grad():
        student.classifier.bias[0] = float("nan")
    with pytest.raises(InputError, match="logits that are not finite; its training has diverged"):
        explain(model, tokenizer, TEXTS, "amortized", explainer=student)


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("change", "named"),
    [({"texts": [*TEXTS[:5], "dull film"]}, "inputs"), ({"max_length": 4}, "inputs"), ({"layers": 1}, "layers")],
)
def test_other_inputs_and_sizes_are_refused_also_where_the_numbers_are_the_same(
    make_model, tokenizer, tmp_path, finished, change, named
):
    model, folder = make_model("vat"), tmp_path / "student"
    fit_amortized(model, tokenizer, TEXTS, output_dir=folder, **QUICK)
    if not finished:
        run = json.loads((folder / "distillation.json").read_text())
        del run["explained_variance"]
        (folder / "distillation.json").write_text(json.dumps(run))
    with pytest.raises(InputError, match=rf"another run .*{named} was"):
        fit_amortized(model, tokenizer, **{"texts": TEXTS} | change, output_dir=folder, **QUICK)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"teacher": "attention"}, "teacher is 'attention'; choose one of 'occlusion', 'lime', 'shapley'"),
        ({"texts": ["good"]}, "fewer than two texts"),
        ({"texts": ["", " ", "good"]}, "fewer than two texts"),
        ({"epochs": 0}, "epochs is 0"),
        ({"layers": 1, "student": "there"}, "layers are those of the classifier's encoder"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"head_learning_rate": True}, "head_learning_rate is True"),
        ({"bf16": "no"}, "bf16 is 'no'; it must be True or False"),
        ({"n_steps": 5}, "no setting 'n_steps'"),
        ({"max_length": 1}, "max_length"),
    ],
)  # fmt: skip
def test_wrong_arguments_say_what_is_allowed(make_model, tokenizer, arguments, message):
    with pytest.raises(InputError, match=message):
        fit_amortized(make_model("vat"), tokenizer, **{"texts": TEXTS} | arguments)


# The explainer in explain


def test_what_is_no_explainer_is_refused(make_model, tokenizer, tmp_path):
    model = make_model("vat")
    with pytest.raises(InputError, match="the model has none in its folder"):
        explain(model, tokenizer, ["good"], "amortized")
    with pytest.raises(InputError, match="explainer is int"):
        explain(model, tokenizer, ["good"], "amortized", explainer=3)
    with pytest.raises(InputError, match="BertForVATClassification is no explainer"):
        explain(model, tokenizer, ["good"], "amortized", explainer=model)
    for nowhere in (tmp_path / "nowhere", str(tmp_path / "nowhere")):
        with pytest.raises(InputError, match="cannot be loaded as an explainer"):
            explain(model, tokenizer, ["good"], "amortized", explainer=nowhere)
    model.config.name_or_path, model.config.explainer = str(tmp_path), 5
    with pytest.raises(InputError, match="the model has none in its folder"):
        explain(model, tokenizer, ["good"], "amortized")
    three = fit_amortized(make_model("vat", num_labels=3), tokenizer, TEXTS, **QUICK)
    with pytest.raises(InputError, match="scores for LABEL_0, LABEL_1, LABEL_2, and the model has LABEL_0, LABEL_1"):
        explain(model, tokenizer, ["good"], "amortized", explainer=three)


def test_a_text_that_the_explainer_cannot_read_is_refused(make_model, tokenizer):
    student = fit_amortized(make_model("vat"), tokenizer, TEXTS, **QUICK)
    model = make_model("vat", window_length=32)
    with pytest.raises(
        InputError, match=r"The explainer reads 32 tokens of a text, and one has 42; give max_length=32"
    ):
        explain(model, tokenizer, ["film " * 40], "amortized", explainer=student)


def test_what_has_no_student_is_refused_before_the_teacher_is_asked(tokenizer, make_model, tmp_path):
    def likes(texts):
        return np.full((len(texts), 2), 0.5)

    with pytest.raises(InputError, match="A function has no tokens that a student could read"):
        fit_amortized(likes, texts=TEXTS)
    bare = copy.deepcopy(tokenizer)
    bare.pad_token = None
    with pytest.raises(InputError, match="has no padding token"):
        fit_amortized(make_model("vat"), bare, TEXTS)
    with pytest.raises(InputError, match="cannot be loaded as the beginning of a student"):
        fit_amortized(make_model("vat"), tokenizer, TEXTS, student=str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="limit is 12 words"):
        fit_amortized(make_model("vat"), tokenizer, ["film " * 20, "good"], exact=True, output_dir=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_stored_explanations_know_their_explainer(make_model, tokenizer, tmp_path):
    model, path = make_model("vat"), tmp_path / "amortized.jsonl"
    student = fit_amortized(model, tokenizer, TEXTS, **QUICK)
    found = explain(model, tokenizer, TEXTS, "amortized", explainer=student, save_to=path)
    assert [one.scores for one in load_explanations(path)] == [one.scores for one in found]
    other = fit_amortized(model, tokenizer, TEXTS, **{**QUICK, "epochs": 1})
    with pytest.raises(InputError, match="explainer state"):
        explain(model, tokenizer, TEXTS, "amortized", explainer=other, save_to=path)


def test_no_weights_are_read_where_nothing_is_stored(make_model, tokenizer, monkeypatch):
    """It takes longer than the forward passes of a few texts."""
    model = make_model("vat")
    student = fit_amortized(model, tokenizer, TEXTS, **QUICK)
    monkeypatch.setattr("hf_vat.explanations.store.model_digest", lambda model: pytest.fail("the weights were read"))
    explain(model, tokenizer, TEXTS, "amortized", explainer=student)


def test_methods_compared(make_model, tokenizer):
    model = make_model("vat")
    student = fit_amortized(model, tokenizer, TEXTS, **QUICK)
    comparison = hf_vat.compare_explainers(
        model, tokenizer, TEXTS, [0, 1] * 3, methods={"amortized": {"explainer": student}, "attention": {}}, ks=(1,)
    )
    assert set(comparison.methods) >= {"amortized", "attention"}
    json.dumps(comparison.to_dict())


# Beside the classifier


@pytest.mark.parametrize("kind", ["vat", "bert"])
def test_a_student_inside_the_classifiers_folder_is_found_by_explain_and_pipeline(
    make_model, tokenizer, tmp_path, kind
):
    if kind == "vat":
        model = make_model("vat", id2label={0: "neg", 1: "pos"})
    else:
        model = BertForSequenceClassification(
            BertConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                       max_position_embeddings=32, initializer_range=0.5, id2label={0: "neg", 1: "pos"})
        )  # fmt: skip
    folder = tmp_path / "classifier"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    student = fit_amortized(model, tokenizer, TEXTS, **QUICK)
    assert attach_explainer(folder, student) == folder / "explainer"
    moved = tmp_path / "moved"
    shutil.move(folder, moved)

    expected = [one.scores for one in explain(model, tokenizer, TEXTS, "amortized", explainer=student)]
    found = explain(str(moved), texts=TEXTS, method="amortized")
    assert [one.scores for one in found] == [pytest.approx(scores, abs=1e-6) for scores in expected]
    classify = pipeline(TASK, model=str(moved))
    for batch_size in (1, 4):
        for result, scores, text in zip(classify(TEXTS, batch_size=batch_size), expected, TEXTS, strict=True):
            assert [word["score"] for word in result["words"]] == pytest.approx(scores, abs=1e-6)
            assert [word["word"] for word in result["words"]] == text.split()
            assert ("attention" in result["words"][0]) == (kind == "vat")
    [other] = [one for one in classify("a good film", top_k=None) if one["label"] != result["label"]][:1]
    [wanted] = explain(model, tokenizer, ["a good film"], "amortized", other["label"], explainer=student)
    assert [word["score"] for word in other["words"]] == pytest.approx(wanted.scores, abs=1e-6)
    stock = AutoModelForSequenceClassification.from_pretrained(moved)  # all else is as it was
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    assert torch.equal(stock(**batch).logits, model.eval()(**batch).logits)


@pytest.fixture
def attached(make_model, tokenizer, tmp_path):
    """A classifier's folder with an explainer in it, its model and the explainer."""
    model, folder = make_model("vat", initializer_range=0.5), tmp_path / "classifier"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    student = fit_amortized(model, tokenizer, TEXTS, **QUICK)
    attach_explainer(folder, student)
    return folder, model, student


def test_a_copy_without_the_explainer_is_as_before(attached, tokenizer, tmp_path, caplog):
    """By save_pretrained the configuration does not name what is not there; where it does, a warning says so."""
    folder, model, _ = attached
    loaded = AutoModelForSequenceClassification.from_pretrained(folder)
    assert loaded.config.explainer == "explainer"
    loaded.save_pretrained(tmp_path / "copy")
    tokenizer.save_pretrained(tmp_path / "copy")
    assert "explainer" not in json.loads((tmp_path / "copy" / "config.json").read_text())
    assert loaded.config.explainer == "explainer"  # of the model in memory
    assert explain(loaded, tokenizer, TEXTS, "amortized")
    expected = [one.scores for one in explain(model, tokenizer, TEXTS, "attention_x_gradient")]
    shutil.rmtree(folder / "explainer")
    for place, warned in ((tmp_path / "copy", False), (folder, True)):
        caplog.clear()
        for result, scores in zip(pipeline(TASK, model=str(place))(TEXTS), expected, strict=True):
            assert [word["score"] for word in result["words"]] == pytest.approx(scores, abs=1e-6)
        assert sum("is left out" in record.getMessage() for record in caplog.records) == warned


def test_an_explainer_of_another_model_is_not_used(attached, tokenizer, caplog):
    """Nor of the same one before it was trained further."""
    folder, model, student = attached
    with torch.no_grad():
        model.learner_head.out_proj.bias += torch.tensor([1.0, -1.0])
    with pytest.raises(InputError, match="made for another classifier, or for this one before it was trained further"):
        explain(model, tokenizer, TEXTS, "amortized", explainer=student)
    model.save_pretrained(folder)
    changed = AutoModelForSequenceClassification.from_pretrained(folder)
    changed.config.explainer = "explainer"
    words = pipeline(TASK, model=changed, tokenizer=tokenizer)("a good film")["words"]
    assert any("before it was trained further" in record.getMessage() for record in caplog.records)
    [expected] = explain(model, tokenizer, ["a good film"], "attention_x_gradient")
    assert [word["score"] for word in words] == pytest.approx(expected.scores, abs=1e-6)


def test_a_model_in_train_mode_keeps_its_explainer(attached, tokenizer):
    """What it says of a text without words is asked in eval mode, and nothing is drawn."""
    folder, *_ = attached
    dropout = {"hidden_dropout_prob": 0.5, "attention_probs_dropout_prob": 0.5, "classifier_dropout": 0.5}
    loaded = AutoModelForSequenceClassification.from_pretrained(folder, **dropout)
    expected = [one.scores for one in explain(loaded, tokenizer, TEXTS, "amortized")]
    classify, state = pipeline(TASK, model=loaded.train(), tokenizer=tokenizer), torch.get_rng_state()
    for text, scores in zip(TEXTS, expected, strict=True):  # a list would draw a seed for transformers' loader of data
        assert [word["score"] for word in classify(text)["words"]] == pytest.approx(scores, abs=1e-6)
    assert torch.equal(torch.get_rng_state(), state)


def test_in_half_precision_the_explainer_is_still_its_own(attached, tokenizer):
    _, model, student = attached
    explain(copy.deepcopy(model).bfloat16(), tokenizer, TEXTS, "amortized", explainer=student)


def test_attaching_changes_nothing_for_files_of_the_classifier(attached, tokenizer, tmp_path):
    """A run of the same classifier goes on, and so do its explanations."""
    folder, model, student = attached
    run, stored = tmp_path / "run", tmp_path / "attention.jsonl"
    fit_amortized(model, tokenizer, TEXTS, output_dir=run, **QUICK)
    explain(model, tokenizer, TEXTS, save_to=stored)
    loaded = AutoModelForSequenceClassification.from_pretrained(folder)
    loaded.config.name_or_path = model.config.name_or_path
    fit_amortized(loaded, tokenizer, TEXTS, output_dir=run, **QUICK)
    explain(loaded, tokenizer, TEXTS, save_to=stored)
    shutil.move(run, folder / "explainer-2")
    with pytest.raises(InputError, match="is there already, and is no explainer"):
        attach_explainer(folder, student)
    assert (folder / "explainer-2" / "teacher-1.jsonl").is_file()


@pytest.mark.parametrize("place", ["saving", "renaming", "configuration", "removing"])
def test_a_kill_while_attaching_leaves_the_earlier_explainer_or_the_new_one(attached, tokenizer, monkeypatch, place):
    folder, model, student = attached
    other = fit_amortized(model, tokenizer, TEXTS, **{**QUICK, "epochs": 1})

    def killed(*args, **kwargs):
        raise Killed

    with monkeypatch.context() as patched:
        if place == "saving":
            patched.setattr(type(other), "save_pretrained", killed)
        elif place == "renaming":
            patched.setattr(fitting.Path, "rename", killed)
        elif place == "configuration":
            patched.setattr(fitting, "write_text", killed)
        else:
            kept = shutil.rmtree
            patched.setattr(
                shutil, "rmtree", lambda path, **more: killed() if path.name == "explainer" else kept(path, **more)
            )
        with pytest.raises(Killed):
            attach_explainer(folder, other)
    loaded = AutoModelForSequenceClassification.from_pretrained(folder)
    wanted = other if place == "removing" else student
    found = explain(loaded, tokenizer, TEXTS, "amortized")
    for one, expected in zip(found, explain(model, tokenizer, TEXTS, "amortized", explainer=wanted), strict=True):
        assert one.scores == pytest.approx(expected.scores, abs=1e-6)
    attach_explainer(folder, other)
    assert not list(folder.glob(".hf_vat-explainer-*"))


def test_attaching_replaces_an_explainer_and_nothing_else(make_model, tokenizer, tmp_path):
    model, folder = make_model("vat"), tmp_path / "classifier"
    one, other = (fit_amortized(model, tokenizer, TEXTS, **{**QUICK, "epochs": epochs}) for epochs in (1, 2))
    with pytest.raises(InputError, match=r"has no config\.json"):
        attach_explainer(folder, one)
    model.save_pretrained(folder)
    whole = (folder / "config.json").read_text()
    for damaged in ("{", "[]", '{"model_type": "nothing of the kind"}'):
        (folder / "config.json").write_text(damaged)
        with pytest.raises(InputError, match="cannot be loaded as a classifier"):
            attach_explainer(folder, one)
    (folder / "config.json").write_text(whole)
    one.save_pretrained(tmp_path / "one")
    attach_explainer(folder, tmp_path / "one")
    place = attach_explainer(folder, other)
    assert [path.name for path in folder.iterdir() if path.is_dir()] == [place.name] == ["explainer-2"]
    kept = AutoModelForTokenClassification.from_pretrained(place)
    assert all(torch.equal(kept.state_dict()[name], tensor) for name, tensor in other.state_dict().items())
    assert not [path for path in folder.rglob("*") if path.name.startswith(".hf_vat") or path.name == "replaced"]
    three = fit_amortized(make_model("vat", num_labels=3), tokenizer, TEXTS, **QUICK)
    with pytest.raises(InputError, match="made for this model"):
        attach_explainer(folder, three)
    (folder / "explainer").mkdir()
    (folder / "explainer" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is no explainer; move it away"):
        attach_explainer(folder, one)
    assert (folder / "explainer" / "notes.txt").read_text() == "mine"


def test_a_student_is_an_ordinary_model(learned, tmp_path):
    """Saved, loaded by the Auto class, exported to ONNX; each time it says the same."""
    pytest.importorskip("onnxruntime")
    from hf_vat.export import OnnxClassifier, export_onnx

    student, model, tokenizer, splits = learned
    texts = splits["test"]["text"][:8]
    expected = [one.scores for one in explain(model, tokenizer, texts, "amortized", explainer=student)]
    student.save_pretrained(tmp_path / "saved")
    loaded = AutoModelForTokenClassification.from_pretrained(tmp_path / "saved").eval()
    exported = OnnxClassifier(export_onnx(student, tokenizer, tmp_path / "onnx"))
    for explainer in (loaded, str(tmp_path / "saved"), exported):
        found = explain(model, tokenizer, texts, "amortized", explainer=explainer)
        assert [one.scores for one in found] == [pytest.approx(scores, abs=1e-5) for scores in expected]
