"""Whole runs on planted data of each kind: several labels, scores, pairs and documents, from a file to words."""

import json
from random import Random

import numpy as np
import pytest
import torch
from datasets import Dataset
from huggingface_hub.errors import StrictDataclassError
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertModel,
    BertTokenizerFast,
    EvalPrediction,
    set_seed,
)
from transformers import pipeline as make_pipeline

import hf_vat
from hf_vat import BertForVATClassification, BertVATConfig, VATTrainer, VATTrainingArguments
from hf_vat.commands import evaluate, train
from hf_vat.commands import explain as explain_command
from hf_vat.errors import InputError
from hf_vat.pretrained import load_classifier
from hf_vat.training.metrics import errors_of_scores, f1_of_labels

FILLERS = ["the", "a", "film", "plot", "scene", "and", "of", "with", "this", "that", "one", "very"]
LABELS = {"acting": "cast", "music": "score", "story": "tale"}
STARS = {"awful": -2.0, "dull": -1.0, "fine": 1.0, "superb": 2.0}
THINGS = ["dog", "cat", "car", "tree"]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """An encoder of random weights that knows the words."""
    folder = tmp_path_factory.mktemp("base")
    words = [*FILLERS, *LABELS.values(), *STARS, *THINGS]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    tokenizer = BertTokenizerFast(vocab={word: place for place, word in enumerate(vocabulary)}, model_max_length=24)
    set_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(vocabulary), max_position_embeddings=24, **sizes)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def fillers(draw: Random, number: int = 6) -> list[str]:
    return [draw.choice(FILLERS) for _ in range(number)]


def row_of_labels(draw: Random) -> tuple[dict, set[str]]:
    labels = [label for label in LABELS if draw.random() < 0.4]
    evidence = [LABELS[label] for label in labels]
    words = [*fillers(draw), *evidence]
    draw.shuffle(words)
    return {"text": " ".join(words), "label": labels}, set(evidence)


def row_of_scores(draw: Random) -> tuple[dict, set[str]]:
    evidence = draw.sample(sorted(STARS), 2)
    words = [*fillers(draw), *evidence]
    draw.shuffle(words)
    return {"text": " ".join(words), "label": sum(map(STARS.__getitem__, evidence))}, set(evidence)


def row_of_pairs(draw: Random) -> tuple[dict, set[str]]:
    """The second text decides, by a word that the first has as well and that is no evidence there."""
    word = draw.choice(["superb", "awful"])
    first = [*fillers(draw, 4), draw.choice(["superb", "awful"])]
    draw.shuffle(first)
    second = [*fillers(draw, 3), word]
    draw.shuffle(second)
    return {"question": " ".join(first), "passage": " ".join(second), "label": word}, {word}


def row_of_documents(draw: Random) -> tuple[dict, set[str]]:
    """The words that decide stand beyond what the encoder reads at once; in a third of the documents there is none."""
    evidence = draw.sample(sorted(STARS), draw.choice([0, 1, 2]))
    words = fillers(draw, 60)
    for place, word in zip(draw.sample(range(30, 60), len(evidence)), evidence, strict=True):
        words[place] = word
    return {"text": " ".join(words), "label": sum(map(STARS.__getitem__, evidence))}, set(evidence)


KINDS = {
    "labels": (row_of_labels, []),
    "scores": (row_of_scores, ["--problem_type", "regression"]),
    "pairs": (row_of_pairs, ["--text_column", "question", "--text_pair_column", "passage"]),
    "documents": (row_of_documents, ["--max_length", "64", "--problem_type", "regression"]),
}
SCORED = [kind for kind, (_, options) in KINDS.items() if "regression" in options]


def write(path, make, number: int, seed: int) -> list[set[str]]:
    draw = Random(seed)
    rows = [make(draw) for _ in range(number)]
    path.write_text("".join(json.dumps(row) + "\n" for row, _ in rows))
    return [evidence for _, evidence in rows]


@pytest.fixture(scope="module")
def run(base, tmp_path_factory):
    """For each kind once: the folder of a trained model, its test file and the words that decide there."""
    done = {}

    def of(kind: str):
        if kind not in done:
            make, options = KINDS[kind]
            folder = tmp_path_factory.mktemp(kind)
            write(folder / "train.jsonl", make, 800, 0)
            write(folder / "dev.jsonl", make, 60, 1)
            evidence = write(folder / "test.jsonl", make, 80, 2)
            arguments = [
                *("--model_name_or_path", str(base), "--train_file", str(folder / "train.jsonl")),
                *("--validation_file", str(folder / "dev.jsonl"), "--test_file", str(folder / "test.jsonl")),
                *("--output_dir", str(folder / "run"), "--use_cpu", "--disable_tqdm", "True", "--card_texts", "20"),
                *("--start", "finetune", "--start_epochs", "10", "--compress_epochs", "1", "--learn_epochs", "1"),
                *("--num_train_epochs", "12", "--learning_rate", "3e-3", "--per_device_train_batch_size", "16"),
                *("--card_examples", "2"),
            ]
            command(train, *arguments, *options)
            done[kind] = folder, evidence, options
        return done[kind]

    return of


def command(module, *arguments: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.argv", ["hf-vat", *arguments])
        module.main()


def read(folder, options) -> tuple[list, list]:
    rows = [json.loads(line) for line in (folder / "test.jsonl").read_text().splitlines()]
    pairs = "question" in rows[0]
    texts = [{"text": row["question"], "text_pair": row["passage"]} if pairs else row["text"] for row in rows]
    return texts, [row["label"] for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_trained_to_better_than_the_majority_and_its_words_are_the_planted_ones(run, kind):
    folder, evidence, options = run(kind)
    results = json.loads((folder / "run" / "all_results.json").read_text())
    texts, labels = read(folder, options)
    if kind in SCORED:
        assert results["test_rmse"] < 0.5 * np.std(labels) and results["test_pearson"] > 0.8
    else:
        values = [json.dumps(label) for label in labels]
        majority = max(values.count(value) for value in values) / len(values)
        assert results["test_accuracy"] > max(majority + 0.2, 0.85)
    made = hf_vat.explain(str(folder / "run"), texts=texts, method="integrated_gradients", n_steps=100, labels=labels)
    by_text = {json.dumps(text): words for text, words in zip(texts, evidence, strict=True)}
    hits = []
    for one in made:
        text = one.text if one.text_pair is None else {"text": one.text, "text_pair": one.text_pair}
        planted = by_text[json.dumps(text)]
        if not planted or one.correct is False:
            continue
        magnitudes = np.abs(one.scores) if kind in SCORED else np.array(one.scores)
        best = int(magnitudes.argmax())
        in_place = kind != "pairs" or best >= one.pair_start
        wanted = {LABELS[one.label_names[one.target]]} if kind == "labels" else planted
        hits.append(one.words[best] in wanted and in_place)
    assert len(hits) >= 50 and np.mean(hits) > 0.9, np.mean(hits)


@pytest.mark.parametrize("kind", KINDS)
def test_its_card_and_commands_are_of_its_kind(run, kind, tmp_path, capsys):
    folder, _, options = run(kind)
    card = (folder / "run" / "README.md").read_text(encoding="utf-8")
    assert {
        "labels": "each of which may have any of the labels **acting**",
        "scores": "A model that gives texts the score **score**",
        "pairs": '{"text": "Write a text here.", "text_pair": "And its pair."}',
        "documents": "in windows of 24",
    }[kind] in card
    assert "Not measured" not in card and ("output_change@5" if kind in SCORED else "prob_drop@5") in card
    data = ["--test_file", str(folder / "test.jsonl")]
    columns = [option for option in options if option.startswith("--text")]
    if columns:
        data += options
    model = ["--model", str(folder / "run")]
    command(
        explain_command, *model, *data, "--method", "occlusion", "--max_eval_samples", "12", "--show", "1",
        "--html", str(tmp_path / "page.html"), "--csv", str(tmp_path / "table.csv"),
        "--parquet", str(tmp_path / "table.parquet"), "--save_to", str(tmp_path / "lines.jsonl"),
    )  # fmt: skip
    stored = hf_vat.load_explanations(tmp_path / "lines.jsonl")
    table = Dataset.from_csv(str(tmp_path / "table.csv"), cache_dir=str(tmp_path))
    assert len(stored) == len(table) >= 12
    assert ("score" in table.column_names) == (kind in SCORED)
    assert ("text_pair" in table.column_names) == (kind == "pairs")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count("hfv-text") >= len(stored)
    capsys.readouterr()
    command(
        evaluate, *model, *data, "--methods", "occlusion", "attention", "--ks", "1", "2", "--seeds", "2",
        "--max_eval_samples", "20", "--output_dir", str(tmp_path / "report"),
    )  # fmt: skip
    told = capsys.readouterr().out
    assert ("root mean squared error" in told) == (kind in SCORED)
    found = json.loads((tmp_path / "report" / "comparison.json").read_text())
    score = "output_change@1" if kind in SCORED else "prob_drop@1"
    ours, random = (found["methods"][name]["scores"][score]["mean"] for name in ("occlusion", "random"))
    assert ours > random


@pytest.mark.parametrize("kind", KINDS)
def test_the_pipeline_says_what_the_stock_pipeline_does(run, kind):
    folder, _, options = run(kind)
    texts, _ = read(folder, options)
    model, tokenizer = load_classifier(str(folder / "run"))
    ours = make_pipeline("text-classification-explained", model=model, tokenizer=tokenizer)
    stock = make_pipeline("text-classification", model=model, tokenizer=tokenizer)
    for text in texts[:4]:
        [expected] = stock([text])
        [found] = ours([text])
        assert found["label"] == expected["label"] and found["score"] == pytest.approx(expected["score"], abs=1e-5)
        places = {word.get("in") for word in found["words"]}
        assert places == ({"text", "text_pair"} if kind == "pairs" else {None})
        assert sum(word["attention"] for word in found["words"]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kind", ["labels", "scores", "pairs"])
def test_it_is_exported(run, kind, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from hf_vat.export import OnnxClassifier, export_onnx

    folder, _, options = run(kind)
    texts, _ = read(folder, options)
    model, tokenizer = load_classifier(str(folder / "run"))
    classifier = OnnxClassifier(export_onnx(model, tokenizer, tmp_path / "onnx"))
    for method in ("attention", "attention_x_gradient", "occlusion"):
        expected = hf_vat.explain(model, tokenizer, texts[:5], method=method)
        found = hf_vat.explain(classifier, texts=texts[:5], method=method)
        for one, other in zip(found, expected, strict=True):
            assert one.target == other.target
            np.testing.assert_allclose(one.scores, other.scores, atol=1e-5)
            np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-5)


def test_the_three_ways_to_write_labels_are_one(base, tmp_path):
    from hf_vat.data import DataArguments, load_text_classification

    rows = [
        {"text": f"film {number}", "label": [["acting"], [], ["music", "acting"]][number % 3]} for number in range(30)
    ]
    (tmp_path / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cells = ["; ".join(row["label"]) for row in rows]
    (tmp_path / "cells.csv").write_text(
        "text,label\n" + "".join(f"{row['text']},{cell}\n" for row, cell in zip(rows, cells, strict=True))
    )
    flags = [f"{row['text']},{int('acting' in row['label'])},{int('music' in row['label'])}\n" for row in rows]
    (tmp_path / "flags.csv").write_text("text,acting,music\n" + "".join(flags))
    hot = [{"text": row["text"], "label": [int(name in row["label"]) for name in ("acting", "music")]} for row in rows]
    (tmp_path / "hot.jsonl").write_text("".join(json.dumps(row) + "\n" for row in hot))
    given = {
        "lists.jsonl": {},
        "cells.csv": {"label_separator": ";"},
        "flags.csv": {"label_columns": ["acting", "music"]},
        "hot.jsonl": {"class_names": ["acting", "music"]},
    }
    found = []
    for name, options in given.items():
        splits = load_text_classification(DataArguments(train_file=str(tmp_path / name), **options))
        assert splits["train"].features["label"].feature.names == ["acting", "music"]
        found.append({split: rows.to_list() for split, rows in splits.items()})
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize(
    ("lines", "options", "mentions"),
    [
        (["text,label", "a film,3 stars"], {"problem_type": "regression"}, "row 1 has the label '3 stars'; with regression"),
        (["text,label", "a film,inf"], {"problem_type": "regression"}, "must be a finite number"),
        (["text,rude", "a film,2"], {"label_columns": ["rude"]}, "row 1 has '2' in column 'rude'"),
        (["text,label", "a film,"], {"problem_type": "regression"}, "no text or no label in row 1"),
        (["text,label", "a film,x"], {"label_separator": ";", "label_columns": ["a"]}, "Give --label_columns or --label_separator"),
        (["text,label", "a film,x"], {"label_separator": ";", "problem_type": "regression"}, "is for several labels"),
        (["text,label", "a film,x"], {"text_pair_column": "passage"}, "no column 'passage'"),
        (["text,label", "a film,x"], {"label_separator": ";", "streaming": True}, "--streaming reads single texts"),
        (["text,label", "a film,0.5", "a plot,1.5"], {}, "for scores give --problem_type regression"),
    ],
)  # fmt: skip
def test_labels_of_another_kind_are_refused(tmp_path, lines, options, mentions):
    from hf_vat.data import DataArguments, load_text_classification

    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=mentions):
        load_text_classification(DataArguments(train_file=str(tmp_path / "train.csv"), **options))


# The Trainer


def make_model(kind: str, count: int, **settings):
    set_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertVATConfig(vocab_size=20, problem_type=kind, num_labels=count, **sizes, **settings)
    return BertForVATClassification(config)


@pytest.mark.parametrize("kind", ["multi_label_classification", "regression"])
def test_the_loss_is_that_of_transformers(kind):
    from transformers import BertForSequenceClassification

    model = make_model(kind, 3, pooling="first", bottleneck="none", head_layers=1).eval()
    ids = torch.randint(5, 20, (4, 7))
    labels = torch.randint(0, 2, (4, 3)).float() if kind.startswith("multi") else torch.randn(4, 3)
    output = model(input_ids=ids, labels=labels)
    stock = BertForSequenceClassification(
        BertConfig(vocab_size=20, problem_type=kind, num_labels=3, hidden_size=16, num_hidden_layers=1,
                   num_attention_heads=2, intermediate_size=32)
    )  # fmt: skip
    expected = {
        "multi_label_classification": torch.nn.BCEWithLogitsLoss(),
        "regression": torch.nn.MSELoss(),
    }[kind](output.logits, labels)
    torch.testing.assert_close(output.loss, expected)
    stock_output = stock(input_ids=ids, labels=labels)
    torch.testing.assert_close(
        stock_output.loss,
        {"multi_label_classification": torch.nn.BCEWithLogitsLoss(), "regression": torch.nn.MSELoss()}[kind](
            stock_output.logits, labels
        ),
    )
    torch.testing.assert_close(output.cross_entropy.mean(), output.loss)


@pytest.mark.parametrize(
    ("kind", "count", "label", "mentions"),
    [
        ("multi_label_classification", 2, [1, 2], "2 numbers, from 0 to 1"),
        ("multi_label_classification", 2, 1, "2 numbers, from 0 to 1"),
        ("regression", 1, float("nan"), "1 number, that are finite"),
        ("regression", 2, [0.5], "2 numbers, that are finite"),
        ("regression", 2, [[0.5], [1.0, 2.0]], "2 numbers, that are finite"),
    ],
)
def test_labels_that_do_not_fit_are_refused_before_the_first_step(tmp_path, kind, count, label, mentions):
    rows = Dataset.from_dict({"input_ids": [[2, 6, 3]] * 2, "labels": [label] * 2})
    with pytest.raises(InputError, match=mentions):
        VATTrainer(make_model(kind, count), VATTrainingArguments(str(tmp_path), report_to="none"), train_dataset=rows)


def test_settings_of_classes_are_refused(tmp_path):
    for settings in ({"class_weights": "balanced"}, {"label_smoothing_factor": 0.1}):
        with pytest.raises(InputError, match="for models that choose one of several classes"):
            VATTrainer(
                make_model("regression", 1), VATTrainingArguments(str(tmp_path), report_to="none", **settings),
                train_dataset=Dataset.from_dict({"input_ids": [[2, 6, 3]], "labels": [0.5]}),
            )  # fmt: skip
    with pytest.raises(StrictDataclassError, match="log-odds between classes"):
        make_model("regression", 2, polarity_head=True, head_layers=1)
    with pytest.raises(StrictDataclassError, match="label_thresholds"):
        make_model("multi_label_classification", 2, label_thresholds=[0.5])
    with pytest.raises(StrictDataclassError, match='give problem_type="regression"'):
        make_model(None, 1)


def test_metrics_are_those_of_scikit_learn():
    from sklearn.metrics import accuracy_score, f1_score, root_mean_squared_error

    generator = np.random.default_rng(0)
    logits, gold = generator.normal(size=(50, 4)), (generator.random((50, 4)) < 0.3).astype(float)
    found = f1_of_labels(EvalPrediction(predictions=logits, label_ids=gold))
    predicted = logits > 0
    assert found["accuracy"] == accuracy_score(gold, predicted)
    for average in ("micro", "macro"):
        assert found[f"{average}_f1"] == pytest.approx(f1_score(gold, predicted, average=average))
    scores = EvalPrediction(predictions=logits[:, :1], label_ids=gold[:, 0])
    assert errors_of_scores(scores)["rmse"] == pytest.approx(root_mean_squared_error(gold[:, 0], logits[:, 0]))
    assert errors_of_scores(scores)["pearson"] == pytest.approx(np.corrcoef(logits[:, 0], gold[:, 0])[0, 1])


def test_a_saved_model_of_each_kind_is_loaded_by_the_auto_classes(run):
    for kind, expected in {"labels": "multi_label_classification", "scores": "regression", "pairs": None}.items():
        folder, _, _ = run(kind)
        model = AutoModelForSequenceClassification.from_pretrained(folder / "run")
        assert model.config.problem_type == expected and model.config.special_token_ids == [2, 3]
