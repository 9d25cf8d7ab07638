"""Model cards: true to the run, valid, safe whatever the data hold, and never at the cost of what a person wrote."""

import getpass
import json
import math
import os
import re
import runpy
import sys
from copy import copy
from functools import partial
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from datasets import ClassLabel, Dataset, DatasetDict
from huggingface_hub import EvalResult, HfApi, ModelCard
from hypothesis import given
from hypothesis import strategies as st
from loopback import TOKEN, assert_nothing_private
from markdown_it import MarkdownIt
from shown import explanation_of
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertModel

from hf_vat import BertVATConfig, VATTrainer, VATTrainingArguments, compare_explainers
from hf_vat.commands.train import main as train_main
from hf_vat.data import DataArguments
from hf_vat.errors import InputError
from hf_vat.explanations import Explanation
from hf_vat.faithfulness.statistics import Comparison
from hf_vat.hub import ModelCardCallback
from hf_vat.hub.card import CardFacts, card_data, escaped, model_card, write_card
from hf_vat.hub.eval_results import Measured, Result, logged_results
from hf_vat.hub.picture import explanations_svg
from hf_vat.hub.provenance import Origin, non_default
from hf_vat.training import ModelArguments, train_classifier

REPO = "reader/tiny"
EXPLANATIONS, CURVES = "model_card_explanations.svg", "model_card_curves.png"
MODEL_CARDS = Path(__file__).resolve().parents[2] / "examples" / "model_cards.py"
HOSTILE = [
    "<script>alert(1)</script>",
    "a | b",
    "{{ 7 * 7 }}{% raw %}",
    "two\nlines\n---\n# heading",
    "](javascript:alert(1)) ![x](https://evil.example/x.png)",
    "`code` *bold* _it_ ~~gone~~ $x$ &amp; <!-- -->",
    "https://evil.example www.evil.example me@evil.example",
    "\u202ereversed \x1b[31m \ud800",
]


@pytest.fixture(scope="module")
def base(tokenizer, tmp_path_factory):
    """A plain BERT encoder in a folder whose name is nobody's business."""
    folder = tmp_path_factory.mktemp("private") / "some where" / "base"
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=32, **sizes))
    encoder.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def splits():
    """Texts of six to eight words, in which a good or a bad word is the class."""
    words = {"neg": ["bad", "awful", "boring", "dull"], "pos": ["good", "great", "superb", "lovely"]}
    nouns = ["film", "movie", "plot", "scene", "actor"]
    rows = [
        (f"the {noun} is {word} and {other} .", label)
        for noun in nouns
        for label, own in words.items()
        for word in own
        for other in (*own[:2], "very very un")
    ]
    columns = {"text": [text for text, _ in rows], "label": [label for _, label in rows]}
    data = Dataset.from_dict(columns).cast_column("label", ClassLabel(names=list(words))).shuffle(seed=0)
    bounds = {"train": range(40), "validation": range(40, 64), "test": range(64, 96)}
    return DatasetDict({split: data.select(places) for split, places in bounds.items()})


def train(base, splits, folder, callback=None, model=None, data=None, **training) -> VATTrainer:
    """Train for two epochs, compress and learn, with a card."""
    arguments = {
        "num_train_epochs": 2,
        "start_epochs": 0,
        "compress_epochs": 1,
        "learn_epochs": 1,
        "per_device_train_batch_size": 8,
        "learning_rate": 2e-3,
        "compressor_learning_rate": 1e-2,
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "logging_steps": 5,
        "seed": 7,
        "use_cpu": True,
        "report_to": "none",
        "disable_tqdm": True,
    }
    return train_classifier(
        ModelArguments(**({"model_name_or_path": str(base), "max_length": 16} | (model or {}))),
        DataArguments(**(data or {"dataset_name": "reader/reviews", "dataset_revision": "abc123"})),
        VATTrainingArguments(str(folder), **(arguments | training)),
        splits,
        callbacks=[callback or ModelCardCallback()],
    )


@pytest.fixture
def curves():
    """For tests that need them."""


@pytest.fixture(autouse=True)
def no_curves(request, monkeypatch):
    """Curves take a second to draw."""
    if "curves" not in request.fixturenames:
        monkeypatch.setattr("hf_vat.hub.callback._draw_curves", lambda log, path: False)


@pytest.fixture
def run(base, splits, tmp_path):
    return partial(train, base, splits, tmp_path / "out")


@pytest.fixture(scope="module")
def finished(base, splits, tmp_path_factory):
    return train(base, splits, tmp_path_factory.mktemp("run") / "out", ModelCardCallback(texts=0))


@pytest.fixture
def trainer(finished, tmp_path, monkeypatch):
    """The trainer of a finished run, whose folder is empty."""
    card = copy(finished.card)
    card.texts = 500
    monkeypatch.setattr(finished, "card", card)
    monkeypatch.setattr(finished.args, "output_dir", str(tmp_path / "out"))
    monkeypatch.setattr(finished, "hub_model_id", None)
    return finished


@pytest.fixture
def config():
    return BertVATConfig(id2label={0: "neg", 1: "pos"})


def explanation(text: str, words=r"\S+", names=("neg", "pos")) -> Explanation:
    found = re.findall(words, text)
    scores = [1 / place for place, _ in enumerate(found, start=1)]
    fields = {"target": 1, "prediction": 1, "probabilities": [0.25, 0.75], "gold": 0}
    return explanation_of(text, scores, names, found, **fields)


def measured(*examples: Explanation, beyond: Comparison | None = None) -> Measured:
    """Measurements by hand: prob_drop is 30 % for attention and 10 % for random words."""

    def result(name, value):
        return Result(name, value, f"what {name} is", "test", 40, (value - 0.05, value + 0.05))

    rankings = {
        name: {"prob_drop@5": result("prob_drop@5", value)} for name, value in (("attention", 0.3), ("random", 0.1))
    }
    return Measured(
        "test",
        50,
        40,
        3,
        result("accuracy", 0.8),
        rankings,
        {"attention": beyond or Comparison(0.2, 0.1, 0.3, 0.002)},
        list(examples),
    )


def read(trainer: VATTrainer) -> str:
    return (Path(trainer.args.output_dir) / "README.md").read_text(encoding="utf-8")


def write(trainer: VATTrainer, **about) -> str:
    """The card that a trainer writes."""
    trainer.create_model_card(**about)
    return read(trainer)


def tables(card: str) -> dict[str, list[list[str]]]:
    """The tables of a card by the heading of their first column, without the line under the head."""
    found = {}
    for block in re.findall(r"(?:^\|.*\n)+", card, re.MULTILINE):
        rows = [[unescape(cell).strip(" `") for cell in line.strip("|").split("|")] for line in block.splitlines()]
        found[rows[0][0]] = [rows[0], *rows[2:]]
    return found


def snippets(card: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", card, re.DOTALL)


def rendered(markdown: str) -> str:
    """As GitHub's Markdown, with HTML where it is not escaped."""
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown)


class Page(HTMLParser):
    """A card as a browser has it, in which HTML that is not escaped would be HTML."""

    def __init__(self, card: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict]] = []
        self.comments: list[str] = []
        self.text = ""
        self.feed(rendered(card))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_comment(self, data):
        self.comments.append(data)

    def handle_data(self, data):
        self.text += data


# What a card says


def test_a_run_leaves_a_card_with_what_it_knows(run, splits):
    trainer = run()
    card = read(trainer)
    found = tables(card)
    metrics = json.loads((Path(trainer.args.output_dir) / "all_results.json").read_text())

    # accuracy, from the trainer
    rows = {(row[0], row[1]): row for row in found["metric"][1:]}
    assert rows["accuracy", "test"][2] == "32" and rows["accuracy", "validation"][2] == "24"
    assert rows["accuracy", "test"][3].startswith(f"{100 * metrics['test_accuracy']:.1f}")
    assert float(rows["macro_f1", "test"][3]) == pytest.approx(metrics["test_macro_f1"], abs=1e-4)

    # faithfulness, as hf-vat evaluate measures it on the saved model
    model, tokenizer = (
        cls.from_pretrained(trainer.args.output_dir) for cls in (AutoModelForSequenceClassification, AutoTokenizer)
    )
    drawn, signed = splits["test"].select(np.random.default_rng(7).permutation(32)), "attention_x_gradient"
    expected = compare_explainers(
        model, tokenizer, drawn["text"][:], drawn["label"][:], [signed, "attention"], ks=(5,), shares=()
    )
    head, one_pass, attention, random = found["words ranked by"]
    assert [one_pass[0], attention[0], random[0]] == [signed, "attention", "Random"]
    assert head[2:] == ["accuracy_drop@5", "prob_drop@5", "posthoc_gold@5", "posthoc_self@5"]
    for row in (one_pass, attention, random):
        for score, cell in zip(head[2:], row[2:], strict=True):
            mean, low, high = (round(100 * value, 1) + 0.0 for value in expected.intervals[row[0].lower()][score])
            assert cell.startswith(f"{mean:.1f}") and (cell == f"{mean:.1f} [{low:.1f}, {high:.1f}]" or low == high)
    assert attention[2:] != random[2:]
    assert attention[1] == random[1] == rows["accuracy", "test"][3].removesuffix(" %")
    assert "n = 32 of the 32 test texts, drawn with seed 7" in card and "5 random rankings" in card

    # the rest
    assert [row[:3] for row in found["epoch"]] == [
        ["epoch", "phase", "β"],
        ["1", "compress", "0.1"],
        ["2", "learn", "0.1"],
    ]
    settings = {row[1]: row[2] for row in found["group"][1:]}
    given = {"learning_rate": "0.002", "beta": "0.1", "seed": "7", "dataset_revision": "abc123", "max_length": "16"}
    assert given.items() <= settings.items()
    assert not {"weight_decay", "max_grad_norm", "output_dir"} & settings.keys()
    assert "[reader/reviews](https://huggingface.co/datasets/reader/reviews), revision abc123; train 40 texts" in card
    for part in ("β = 0.1 times", "**neg**, **pos**", "Zhou, Jie", "Chen, Hanjie", "first 16 tokens", "and limits"):
        assert part in card
    data = ModelCard(card).data
    assert (data.datasets, data.pipeline_tag, data.base_model) == (["reader/reviews"], "text-classification", None)


def test_a_model_with_a_mask_and_one_that_does_not_explain_itself(run):
    card = read(run(model={"mask_type": "vmask"}, mask_beta_start=1.0, mask_beta_end=0.5))
    assert [row[0] for row in tables(card)["words ranked by"][1:]] == ["mask", "Random"]
    assert [row[2] for row in tables(card)["epoch"]] == ["β of the mask", "1", "0.5"]
    assert "vmask" in ModelCard(card).data.tags and "0.5 when these weights were made" in card


@pytest.mark.parametrize(
    ("settings", "said", "unsaid"),
    [
        ({}, "trained by the classification loss alone", "pooled of a token"),
        ({"word_objective": "tying", "word_weight": 0.5}, "0.5 times the mean distance between", "loss alone"),
        ({"word_objective": "mlm", "mask_token_id": 4}, "1 times the cross-entropy of hidden words", "loss alone"),
        ({"word_objective": "conicity"}, "1 times the mean cosine", "loss alone"),
        ({"vw_penalty": "square", "vw_weight": 0.1, "head_layers": 1}, "0.1 times VᵀW", "loss alone"),
        ({"word_objective": "concat"}, "its state beside its embedding", "plus its embedding"),
        ({"word_objective": "residual"}, "its state plus its embedding", "beside its embedding"),
    ],
)
def test_a_card_tells_what_the_loss_and_the_states_have(settings, said, unsaid):
    card = unescape(model_card(CardFacts("tiny", BertVATConfig(bottleneck="none", **settings), 0)))
    assert said in card and unsaid not in card


def test_an_eval_result_by_hand(config):
    accuracy = Result("accuracy", 0.75, "share", "test", 200, (0.6954, 0.80496))
    facts = CardFacts("tiny", config, 3, data=Origin("SST-2", "SetFit/sst2", "x", "f00"), results=[accuracy])
    common = {
        "task_type": "text-classification",
        "task_name": "Text classification",
        "dataset_type": "SetFit/sst2",
        "dataset_name": "SST-2",
        "dataset_config": "x",
        "dataset_split": "test",
        "dataset_revision": "f00",
    }
    interval = {"interval": [0.6954, 0.805], "confidence": 0.95}
    expected = EvalResult(
        **common,
        metric_type="accuracy",
        metric_name="accuracy",
        metric_value=0.75,
        metric_args={"n": 200, "seed": 3, "definition": "share", **interval},
    )
    assert card_data(facts).eval_results == [expected]
    facts.measured = measured()
    assert card_data(facts).eval_results[1:] == [  # the trainer's accuracy of that split stands
        EvalResult(
            **common,
            metric_type="prob_drop",
            metric_name="prob_drop@5 of attention",
            metric_value=0.3,
            metric_args={
                "n": 40,
                "seed": 3,
                "definition": "what prob_drop@5 is",
                "ranking": "attention",
                "random": 0.1,
                "interval": [0.25, 0.35],
                "confidence": 0.95,
            },
        )
    ]


def test_metadata_parse_back_to_equal_eval_results(config):
    facts = CardFacts(HOSTILE[3], config, 3, data=Origin(HOSTILE[0]), measured=measured(), tags=["a"])
    loaded = ModelCard(model_card(facts)).data
    assert loaded.eval_results == card_data(facts).eval_results and len(loaded.eval_results) == 2
    assert loaded.model_name == "two lines --- # heading"
    assert loaded.to_dict() == card_data(facts).to_dict()


def test_a_card_is_valid_for_the_hub(online, trainer):
    written = write(trainer)
    card = ModelCard.load(Path(trainer.args.output_dir) / "README.md")
    card.validate()
    [request] = online.sent("POST", "/api/validate-yaml")
    assert json.loads(request.body)["content"] == written
    for result in card.data.eval_results:
        assert math.isfinite(result.metric_value) and result.metric_args["definition"]
        assert result.metric_args["n"] == {"test": 32, "validation": 24}[result.dataset_split]
    assert not re.search(r"\bnan\b", written, re.IGNORECASE)


def test_results_are_those_of_the_weights_that_were_kept():
    log = [
        {"step": 10, "epoch": 1, "eval_accuracy": 0.9, "eval_f1": 0.8, "eval_samples": 10, "eval_loss": 0.5},
        {"step": 20, "epoch": 2, "eval_accuracy": 0.5, "eval_f1": math.nan, "eval_samples": 10, "eval_beta": 0.1},
        {"step": 25, "epoch": 2.5, "test_accuracy": 0.8, "test_samples": 5, "test_runtime": 1.0},
    ]

    def values(best_step):
        return {(found.metric, found.split): (found.value, found.n) for found in logged_results(log, 25, best_step)}

    test = {("accuracy", "test"): (0.8, 5)}
    assert values(10) == {("accuracy", "validation"): (0.9, 10), ("f1", "validation"): (0.8, 10)} | test
    assert values(20) == {("accuracy", "validation"): (0.5, 10)} | test
    assert values(None) == test  # no evaluation is of the last step


def test_the_best_step_is_the_one_that_is_told(run):
    trainer = run(load_best_model_at_end=True, metric_for_best_model="loss", greater_is_better=True)
    best = trainer.state.best_global_step
    [logged] = [record for record in trainer.state.log_history if record["step"] == best and "eval_accuracy" in record]
    [row] = [row for row in tables(read(trainer))["metric"] if row[:2] == ["accuracy", "validation"]]
    assert best == 5 and f"10 steps, of which step {best} gave the best validation" in read(trainer)
    assert row[3].startswith(f"{100 * logged['eval_accuracy']:.1f}")


def test_intervals_are_left_out_where_they_say_nothing():
    def interval(accuracy, n):
        [found] = logged_results([{"step": 1, "test_accuracy": accuracy, "test_samples": n}], 1, None)
        return found.interval

    low, high = interval(0.8, 100)
    assert low < 0.8 < high and high - low == pytest.approx(2 * 1.96 * (0.8 * 0.2 / 100) ** 0.5, rel=0.15)
    assert interval(1.0, 100) is None and interval(0.5, 18) is None


def test_without_scipy_there_are_the_same_numbers_without_intervals(trainer, monkeypatch, caplog):
    full = tables(write(trainer))["words ranked by"]
    for module in ("eval_results", "callback"):
        monkeypatch.setattr(f"hf_vat.hub.{module}.has_intervals", lambda: False)
    card = write(trainer)
    assert any("[" in cell for row in full for cell in row)
    assert tables(card)["words ranked by"] == [[cell.split(" [")[0] for cell in row] for row in full]
    assert "In brackets" not in card and "scipy" in caplog.text


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.1, 0.3, "more than"), (-0.3, -0.1, "less than"), (-0.1, 0.3, "cannot be told from random")],
)
def test_the_card_says_whether_the_ranking_beats_random(config, low, high, said):
    found = measured(beyond=Comparison((low + high) / 2, low, high, 0.5))
    [line] = [
        line
        for line in model_card(CardFacts("tiny", config, 0, measured=found)).splitlines()
        if "beyond Random" in line
    ]
    assert said in line and f"{100 * (low + high) / 2:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]" in line


def test_numbers_that_are_none_are_dashes(config):
    log = [
        {"step": 5, "epoch": 1.0, "loss": math.nan, "phase": "learn", "beta": 0.1},
        {"step": 5, "epoch": 1.0, "eval_loss": math.inf, "eval_accuracy": 0.5},
        {"step": 9, "epoch": 1.8, "loss": -0.0, "phase": "compress"},
    ]
    card = model_card(CardFacts("tiny", config, 0, log=log))
    assert tables(card)["epoch"][1:] == [["1", "learn", "0.1", "—", "—", "0.5"], ["2", "compress", "—", "-0", "—", "—"]]
    assert not re.search(r"\b(nan|inf)\b", card)


def test_what_the_trainer_does_not_know_is_not_claimed(make_model, make_dataset, tokenizer, tmp_path):
    args = VATTrainingArguments(str(tmp_path / "out"), max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True)
    data = make_dataset(8).remove_columns("text")
    trainer = VATTrainer(make_model("base"), args, train_dataset=data, eval_dataset=data, processing_class=tokenizer)
    card = write(trainer)
    assert "Not measured" in card and "no data" in card and card.count("not known to the trainer") == 2
    assert ModelCard(card).data.eval_results is None and 'pipeline("text-classification",' in card
    # with texts it can measure, and explains a model without attention by the gradient
    trainer.eval_dataset = make_dataset(8)
    card = write(trainer)
    assert [row[0] for row in tables(card)["words ranked by"][1:]] == ["gradient", "Random"]
    [accuracy] = [row for row in ModelCard(card).data.eval_results if row.metric_type == "accuracy"]
    assert (accuracy.dataset_split, accuracy.metric_args["n"]) == ("validation", 8)
    assert not (tmp_path / "out" / EXPLANATIONS).exists()  # nobody said that these texts are public


def test_the_arguments_of_transformers_are_for_the_metadata(make_model, make_dataset, tokenizer, tmp_path):
    args = VATTrainingArguments(str(tmp_path / "out"), report_to="none", use_cpu=True, disable_tqdm=True)
    trainer = VATTrainer(make_model(), args, train_dataset=make_dataset(8), processing_class=tokenizer)
    card = write(
        trainer,
        language="en",
        license="mit",
        tags="film",
        model_name="Tiny",
        finetuned_from="google-bert/bert-base-uncased",
        dataset_tags=["SetFit/sst2"],
        dataset=["SST-2"],
    )
    data = ModelCard(card).data
    assert (data.language, data.license, data.base_model) == ("en", "mit", "google-bert/bert-base-uncased")
    assert data.datasets == ["SetFit/sst2"] and "film" in data.tags
    assert "# Tiny\n" in card and "[SST-2](https://huggingface.co/datasets/SetFit/sst2)" in card
    assert "No license" not in card
    card = write(trainer, dataset=str(tmp_path), finetuned_from=str(tmp_path))
    assert str(tmp_path) not in card and "Data: local files" in card


def test_the_base_model_of_the_hub_is_named_with_its_commit(online, run, base, tokenizer):
    BertModel.from_pretrained(base).push_to_hub("reader/base")
    tokenizer.push_to_hub("reader/base")
    card = read(run(model={"model_name_or_path": "reader/base"}))
    assert ModelCard(card).data.base_model == "reader/base"
    assert f"(https://huggingface.co/reader/base), revision {online.repos['models/reader/base'].at().sha}" in card


# The snippets


def test_c75_the_snippets_run_as_printed(online, run_python, run, trainer):
    plain = run(model={"bottleneck": "none", "pooling": "first"})
    folder, local = plain.args.output_dir, snippets(read(plain))
    trainer.push_to_hub()  # as reader/out
    pushed = snippets(online.files("reader/out")["README.md"].decode())
    assert snippets(read(trainer)) == pushed and '"reader/out"' in pushed[0] and '"."' in local[0]
    result = run_python(
        """
import contextlib, io
local, pushed, folder = arguments
os.chdir(folder)
def printed(code):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, {})
    return out.getvalue()
sys.modules["hf_vat"] = None  # for the first, transformers alone must do
result = [printed(local[0]), printed(pushed[0])]
del sys.modules["hf_vat"]
result += [printed(local[1]), printed(pushed[1])]
""",
        local,
        pushed,
        folder,
    )
    assert "'score'" in result[0] and "'words'" in result[1]
    assert "gradient" in result[2] and "attention" in result[3]


def test_the_snippet_loads_the_branch_that_was_pushed(online, trainer, capsys):
    HfApi().create_repo("reader/out")
    HfApi().create_branch("reader/out", branch="trial")
    trainer.push_to_hub(revision="trial")
    [alone, _] = snippets(online.files("reader/out", "trial")["README.md"].decode())
    exec(alone, {})
    assert "'words'" in capsys.readouterr().out and 'revision="trial"' in alone
    assert "README.md" not in online.files("reader/out")


# Pictures


def test_three_examples_are_shown_and_told(trainer, splits, curves):
    card, folder = write(trainer), Path(trainer.args.output_dir)
    images = {tag["src"]: tag["alt"] for name, tag in Page(card).tags if name == "img"}
    assert images.keys() == {EXPLANATIONS, CURVES} and all(images.values())
    assert (folder / CURVES).read_bytes().startswith(b"\x89PNG")
    shown = "".join(ElementTree.parse(folder / EXPLANATIONS).getroot().itertext())
    lines = re.findall(r"^1\. predicted .*", card, re.MULTILINE)
    assert len(lines) == 3 and shown.count("predicted") == 3
    for line in lines:
        listed = [word.rpartition(" ")[0] for word in line.rpartition(": ")[2].split(", ")]
        assert 1 < len(listed) <= 5 and all(word in shown for word in listed)
        assert any(set(listed) <= set(text.split()) for text in splits["test"]["text"])


def test_a_picture_has_words_in_their_places_and_no_styles():
    svg = explanations_svg(
        [explanation(text, r"\w+|\.") for text in ("good film. " + "x" * 100, "פילם טוב", "w " * 150)]
    )
    root = ElementTree.fromstring(svg)
    elements = list(root.iter())
    assert {element.tag.rpartition("}")[2] for element in elements} == {"svg", "rect", "text"}
    assert not any("style" in element.attrib or "class" in element.attrib for element in elements)
    placed = {element.text: element for element in elements if element.get("textLength")}
    good, film = placed["good"], placed["film"]
    assert float(good.get("x")) == 12 and float(film.get("x")) == pytest.approx(12 + 5 * 8.4)
    assert float(film.get("textLength")) == pytest.approx(4 * 8.4)
    assert float(placed["."].get("x")) == pytest.approx(12 + 9 * 8.4)  # no space before it
    assert good.get("y") == film.get("y") != placed["x" * 80].get("y") != placed["x" * 20].get("y")
    assert float(placed["פילם"].get("x")) > float(placed["טוב"].get("x"))
    assert "… 30 more words" in placed
    height, width = float(root.get("height")), float(root.get("width"))
    assert all(float(element.get("y")) < height for element in placed.values())
    assert all(float(each.get("x")) + float(each.get("textLength")) < width for each in placed.values())


def test_pictures_of_texts_that_shall_not_be_shown_are_taken_away(trainer, splits):
    picture = Path(trainer.args.output_dir, EXPLANATIONS)
    trainer.card.examples = 2
    trainer.create_model_card()
    assert picture.read_text().count("predicted") == 2
    trainer.card.examples = 0
    card = write(trainer)
    assert not picture.exists() and "![Texts" not in card and "Examples" not in card and "prob_drop" in card
    assert not any(text in Page(card).text for text in splits["test"]["text"])


def test_texts_of_local_files_are_shown_only_if_someone_says_so(trainer):
    trainer.card.data = Origin.of_data(DataArguments(train_file="train.csv"))
    assert "Examples" not in write(trainer) and not Path(trainer.args.output_dir, EXPLANATIONS).exists()
    trainer.card.examples = 3
    trainer.create_model_card()
    assert Path(trainer.args.output_dir, EXPLANATIONS).exists()


# What a card does not say


def test_c78_the_card_says_that_the_base_was_local_and_no_path(online, run, tmp_path):
    (tmp_path / "train.csv").write_text("text,label\n")
    trainer = run(
        ModelCardCallback(examples=3),
        data={"train_file": str(tmp_path / "train.csv"), "validation_share": 0.25},
        hub_token=TOKEN,
        run_name="my secret run",
    )
    card = read(trainer)
    assert "Base model: a checkpoint in a local folder" in card and "Data: local files" in card
    settings = {row[1]: row[2] for row in tables(card)["group"][1:]}
    assert settings["train_file"] == settings["model_name_or_path"] == "(local)"
    assert settings["validation_share"] == "0.25"
    trainer.push_to_hub()
    assert {"README.md", EXPLANATIONS} <= online.files("reader/out").keys()
    assert_nothing_private(online, str(tmp_path), "some where", "train.csv", "my secret run")
    assert f"/{getpass.getuser()}/" not in card and os.uname().nodename not in card


def test_settings_are_those_that_differ_and_tell_no_place(tmp_path):
    (tmp_path / "vectors.txt").write_text("")
    model_args = ModelArguments("FacebookAI/roberta-base", vectors=str(tmp_path / "vectors.txt"), mask_type="none")
    assert non_default(model_args) == {
        "model_name_or_path": "FacebookAI/roberta-base",
        "vectors": "(local)",
        "mask_type": "none",
    }
    data_args = DataArguments(test_file="test.csv", text_column="review", drop_empty=True)
    assert non_default(data_args) == {"test_file": "(local)", "text_column": "review", "drop_empty": True}
    args = VATTrainingArguments(
        str(tmp_path),
        hub_token="hf_secret",
        hub_model_id="me/model",
        run_name="me",
        lr_scheduler_type="polynomial",
        lr_scheduler_kwargs={"power": 2.0, "file": "/home/me/x"},
        optim="sgd",
        weight_decay=0.1,
        report_to="none",
        use_cpu=True,
    )
    found = non_default(args)
    assert {
        name: found.pop(name) for name in ("lr_scheduler_type", "lr_scheduler_kwargs", "optim", "weight_decay")
    } == {
        "lr_scheduler_type": "polynomial",
        "lr_scheduler_kwargs": {"power": 2.0, "file": "(local)"},
        "optim": "sgd",
        "weight_decay": 0.1,
    }
    assert found.keys() <= {"report_to", "use_cpu", "dataloader_pin_memory"}


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("SetFit/sst2", Origin("SetFit/sst2", "SetFit/sst2")),
        ("imdb", Origin("imdb", "imdb")),
        ("Rotten Tomatoes (2005)", Origin("Rotten Tomatoes (2005)")),
        ("/home/me/data", Origin("local files", local=True)),
        ("data/of/mine", Origin("local files", local=True)),
        ("~/data", Origin("local files", local=True)),
        ("C:\\data", Origin("local files", local=True)),
        ("here/is", Origin("local files", local=True)),
    ],
)
def test_a_name_is_one_of_the_hub_or_of_this_machine(tmp_path, monkeypatch, name, origin):
    (tmp_path / "here" / "is").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert Origin.of(name) == origin


def test_data_sets_of_the_papers_are_named_as_they_are_known():
    assert Origin.of_data(DataArguments(paper_dataset="trec")) == Origin("TREC", "SetFit/TREC-QC")
    assert Origin.of_data(DataArguments(paper_dataset="trec", data_dir="x")) == Origin("TREC", local=True)
    assert Origin.of_data(DataArguments(paper_dataset="twitter")).name == "TweetEval subset"
    assert Origin.of_data(DataArguments(test_file="x.csv")).local


def test_f69_a_card_is_measured_under_one_progress_bar(trainer, monkeypatch, capsys):
    monkeypatch.setattr(trainer.args, "disable_tqdm", False)
    capsys.readouterr()
    trainer.create_model_card()
    printed = capsys.readouterr().err
    assert set(re.findall(r"([^\r\n]+): +\d+%", printed)) == {"model card"}
    # 32 texts, explained by the attention without and with a sign; the scorer reads each, then both and 5 random rankings, 5
    # words deleted or kept
    inputs = 2 * 32 + 32 * (1 + 7 * 2)
    assert re.findall(r"(\d+)/(\d+) ", printed)[-1] == (str(inputs), str(inputs))


@pytest.mark.parametrize(
    ("about", "message"),
    [
        (
            {"license": "unknown-licence"},
            r"license is 'unknown-licence', which the Hub does not know; .* mit, ",
        ),
        ({"license": "Apache-2.0"}, r"license is 'Apache-2.0'.*Did you mean apache-2.0\?"),
        ({"language": "xx yy"}, "language is 'xx yy'; give codes of ISO 639, such as en or fr"),
        ({"language": ["en", "xx"]}, "language is 'xx'"),
        ({"language": "fr-BE"}, "language is 'fr-BE'"),
        ({"language": "English"}, "language is 'English'"),
    ],
)
def test_f41_a_license_or_language_that_the_hub_refuses_is_refused_before_training_and_measuring(
    trainer, about, message
):
    with pytest.raises(InputError, match=message):
        ModelCardCallback(**about)
    with pytest.raises(InputError, match=message):
        trainer.create_model_card(**about)
    with pytest.raises(InputError, match=message):
        trainer.push_to_hub(**about)
    assert not (Path(trainer.args.output_dir) / "README.md").exists()


@pytest.mark.parametrize(
    "license", ["apache-2.0", "mit", "cc-by-nc-sa-4.0", "openrail++", "llama3.1", "other", "unknown"]
)
@pytest.mark.parametrize("language", ["en", ["en", "fr"], "nds", "multilingual"])
def test_f41_what_the_hub_takes_is_in_the_metadata(trainer, license, language):
    trainer.card = ModelCardCallback(texts=0, license=license, language=language)
    data = ModelCard(write(trainer)).data
    assert (data.license, data.language) == (license, language)


# Whatever the data hold


@pytest.mark.parametrize("hostile", HOSTILE)
def test_c82_no_name_and_no_text_is_more_than_text(config, hostile):
    shown = " ".join(hostile.replace("\ud800", "\ufffd").replace("\x1b", "\ufffd").replace("\u202e", "").split())
    config.id2label = {0: hostile, 1: f"other {hostile}"}
    example = explanation(hostile.replace("\ud800", ""), names=config.id2label.values())
    facts = CardFacts(
        hostile,
        config,
        0,
        base=Origin(hostile, revision=hostile),
        data=Origin(hostile),
        splits={hostile: 4},
        settings={"model": {"vectors": hostile, "options": {hostile: [hostile]}}},
        log=[{"step": 1, "epoch": 1, "loss": 1.0, "phase": hostile}],
        results=[Result(hostile, 0.5, "as it is", hostile, 4)],
        measured=measured(example),
        license=hostile,
    )
    card = model_card(facts)
    page = Page(ModelCard(card).text)
    plain = Page(ModelCard(model_card(CardFacts("x", BertVATConfig(), 0))).text)
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in plain.tags} | {
        *("table", "thead", "tbody", "tr", "th", "td", "img", "ol", "strong")
    }
    assert not [attributes for _, attributes in page.tags if "evil" in json.dumps(attributes)]
    assert not re.search(
        r"https?://evil|www\.evil|@evil", ModelCard(card).text
    )  # GitHub's Markdown makes links of these
    assert [comment.split(".")[0] for comment in page.comments] == [" Written by hf_vat 0"]
    assert page.text.count(shown) >= 8 and "49" not in page.text.replace(hostile, "")
    assert all(len({len(row) for row in rows}) == 1 for rows in tables(card).values())
    assert ModelCard(card).data.eval_results == card_data(facts).eval_results
    root = ElementTree.fromstring(explanations_svg([example]))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {"svg", "rect", "text"}
    words = [element.text for element in root.iter() if element.get("textLength")]
    assert words == [word.replace("\x1b", "\ufffd") for word in example.words]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_c82_escaped_text_is_read_as_it_was(text):
    expected = " ".join(["x", *re.sub("[\u202a-\u202e\u2066-\u2069]", "", text).split(), "x"])
    found = unescape(re.fullmatch(r"<p>(.*)</p>\n", rendered(f"x {escaped(text)} x"), re.DOTALL)[1])
    assert re.sub("[\x00-\x1f\x7f-\x9f\ufffe\uffff]", "\ufffd", " ".join(found.split())) == re.sub(
        "[\x00-\x1f\x7f-\x9f\ufffe\uffff]", "\ufffd", " ".join(expected.split())
    )


# A person's work


def test_a_card_that_was_edited_is_kept(trainer, caplog):
    trainer.card.texts = 0
    folder, first = Path(trainer.args.output_dir), write(trainer)
    assert "# again\n" in write(trainer, model_name="again") and not (folder / "model_card.md").exists()

    mine = first.replace("# out\n", "# My model\n")
    for text in (mine, first + "\nMy notes.\n", "# Mine\n", ""):
        (folder / "README.md").write_text(text, encoding="utf-8")
        caplog.clear()
        assert write(trainer, model_name="new") == text
        assert "# new\n" in (folder / "model_card.md").read_text(encoding="utf-8")
        assert "README.md was written or edited by someone" in caplog.text

    (folder / "model_card.md").write_text("mine too", encoding="utf-8")
    assert write(trainer) == "" and (folder / "model_card.md").read_text() == "mine too"


def test_line_breaks_are_no_edit(tmp_path, config):
    card = model_card(CardFacts("one", config, 0))
    (tmp_path / "README.md").write_bytes(card.replace("\n", "\r\n").encode())
    assert write_card(tmp_path, model_card(CardFacts("two", config, 0))) == tmp_path / "README.md"
    assert "# two\n" in (tmp_path / "README.md").read_text()


def test_a_push_sends_the_card_that_a_person_wrote(online, trainer):
    folder = Path(trainer.args.output_dir)
    folder.mkdir()
    (folder / "README.md").write_text("---\nlicense: mit\n---\n\n# Mine\n", encoding="utf-8")
    (folder / "private.svg").write_text("<svg/>")
    trainer.push_to_hub()
    files = online.files("reader/out")
    assert files["README.md"] == (folder / "README.md").read_bytes() and b"# Mine" in files["README.md"]
    assert EXPLANATIONS in files and not {"model_card.md", "private.svg"} & files.keys()


def test_a_push_sends_the_card_and_its_pictures(online, run, curves):
    trainer = run(push_to_hub=True, hub_model_id=REPO)
    files, folder = online.files(REPO), Path(trainer.args.output_dir)
    for name in ("README.md", EXPLANATIONS, CURVES):
        assert files[name] == (folder / name).read_bytes()
    assert f'model="{REPO}"' in files["README.md"].decode() and "# tiny\n" in files["README.md"].decode()


# Commands


def test_hf_vat_train_writes_a_card(base, tmp_path, monkeypatch):
    rows = "text,label\n" + "good film,pos\nbad film,neg\n" * 8
    (tmp_path / "train.csv").write_text(rows)
    (tmp_path / "test.csv").write_text(rows)
    command = """--train_file train.csv --test_file test.csv --output_dir out --max_steps 2 --max_length 16
        --per_device_train_batch_size 4 --use_cpu True --disable_tqdm --card_texts 6 --card_examples 1"""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["hf-vat train", *command.split(), "--model_name_or_path", str(base)])
    train_main()
    card = (tmp_path / "out" / "README.md").read_text()
    assert "n = 6 of the 16 test texts" in card and len(re.findall(r"^1\. predicted", card, re.MULTILINE)) == 1


def test_counts_below_zero_are_refused():
    for name in ("texts", "examples"):
        with pytest.raises(InputError, match=f"card_{name} is -1"):
            ModelCardCallback(**{name: -1})


def test_cards_are_collected_as_runs_wrote_them(trainer, tmp_path, monkeypatch):
    trainer.create_model_card()
    source, kept = Path(trainer.args.output_dir), tmp_path / "model_cards"
    collect = runpy.run_path(str(MODEL_CARDS))["main"]
    monkeypatch.setattr(sys, "argv", ["model_cards.py", "--runs", str(source), "--output_dir", str(kept)])
    collect()
    [folder] = kept.iterdir()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        name: (source / name).read_bytes() for name in ("README.md", EXPLANATIONS)
    }
    (source / "README.md").write_text("edited")
    with pytest.raises(InputError, match=r"README\.md"):
        collect()
