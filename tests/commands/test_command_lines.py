"""The commands as a user runs them, on a tiny BERT and CSV files, with good and with bad input."""

import csv
import json
import os
import resource
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertModel, set_seed
from transformers.utils import logging as transformers_logging

from hf_vat import BertWithVMask, commands
from hf_vat.analysis import attention_scores
from hf_vat.explanations import load_explanations, mask_importance, word_importance
from hf_vat.training.checkpoints import MANIFEST_NAME, find_fault
from hf_vat.writing import RECORD_NAME, locked

COMMANDS = ("-m", "hf_vat.commands")
CONFIGS = Path(__file__).parents[2] / "examples" / "accelerate_configs"
ACCELERATE = ("-m", "accelerate.commands.launch", "--config_file", CONFIGS / "multi_cpu.yaml")
WORDS = {"positive": ["good", "great", "superb", "lovely"], "negative": ["bad", "awful", "boring", "dull"]}
GOOD_BAD = "text,label\na good film,positive\na bad film,negative\n"


def launch(*command, **options) -> subprocess.CompletedProcess:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=240,
        env=environment,
        **options,
    )


@pytest.fixture
def command(monkeypatch, capsys):
    """Run a command in this process; returns exit code, output and errors. A defect's exception comes out."""
    verbosity = transformers_logging.get_verbosity()

    def run_command(*argv) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["hf-vat", *map(str, argv)])
        with pytest.raises(SystemExit) as ended:
            commands.main()
        output = capsys.readouterr()
        return ended.value.code, output.out, output.err

    with warnings.catch_warnings():
        yield run_command
    transformers_logging.set_verbosity(verbosity)
    transformers_logging.enable_progress_bar()


@pytest.fixture(scope="session")
def workspace(tokenizer, tmp_path_factory) -> Path:
    """A folder with a plain BERT encoder `encoder`, `train.csv` and `test.csv`."""
    folder = tmp_path_factory.mktemp("workspace")
    with torch.random.fork_rng():
        set_seed(0)
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        encoder = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=32, **sizes))
    encoder.save_pretrained(folder / "encoder")
    tokenizer.save_pretrained(folder / "encoder")
    for name, nouns in {"train": ["film", "movie", "plot", "scene"], "test": ["actor"]}.items():
        rows = [f"the {word} {noun},{label}" for label, words in WORDS.items() for word in words for noun in nouns]
        (folder / f"{name}.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    return folder


@pytest.fixture
def training(workspace, tmp_path) -> list:
    """Options of a short training run into `tmp_path / "run"`."""
    return [
        *("--model_name_or_path", workspace / "encoder", "--max_length", 16, "--train_file", workspace / "train.csv"),
        *("--test_file", workspace / "test.csv", "--output_dir", tmp_path / "run", "--num_train_epochs", 2),
        *("--compress_epochs", 1, "--learn_epochs", 1, "--per_device_train_batch_size", 8, "--use_cpu"),
        *("--disable_tqdm", "--logging_steps", 1),
    ]


@pytest.fixture(scope="session")
def trained(workspace) -> Path:
    """A classifier that `hf-vat train` has trained, and what the command printed beside it."""
    finished = launch(
        *(*COMMANDS, "train", "--model_name_or_path", workspace / "encoder", "--max_length", 16),
        *("--train_file", workspace / "train.csv", "--test_file", workspace / "test.csv", "--use_cpu"),
        *("--output_dir", workspace / "model", "--num_train_epochs", 2, "--compress_epochs", 1, "--learn_epochs", 1),
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    (workspace / "output.txt").write_text(finished.stdout + finished.stderr, encoding="utf-8")
    return workspace / "model"


def refused(result, *named: str) -> None:
    """The command has ended with 2 and one line that names all of `named`."""
    code, out, err = result
    [message] = [line for line in err.splitlines() if "error: " in line]
    assert code == 2 and "Traceback" not in out + err
    assert err.rstrip().endswith(message)  # no further line after it
    for name in named:
        assert name in message


# train


def test_train_saves_a_classifier_and_prints_its_accuracy(trained, workspace):
    output = (workspace / "output.txt").read_text(encoding="utf-8")
    accuracy = json.loads((trained / "all_results.json").read_text())["test_accuracy"]
    assert f"\ntest accuracy {100 * accuracy:.1f} % of 8 texts\n" in output and f"\nSaved in {trained}\n" in output
    assert "world size 1 (cpu)" in output and "LOAD REPORT" not in output
    model = AutoModelForSequenceClassification.from_pretrained(trained)
    assert model.config.bottleneck == "gaussian" and model.config.label2id == {"negative": 0, "positive": 1}


def test_c87_accelerate_gives_the_two_processes_that_its_file_says(training, tmp_path):
    at = training.index("--use_cpu")
    finished = launch(*ACCELERATE, *COMMANDS, "train", *training[:at], *training[at + 1 :])
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert "world size 2 (cpu" in finished.stderr
    assert finished.stdout.count("Saved in") == 1
    # 28 texts, in global batches of 16
    assert json.loads((tmp_path / "run" / "trainer_state.json").read_text())["global_step"] == 4
    # the random states of both are in the checkpoint (F44)
    checkpoint = tmp_path / "run" / "checkpoint-4"
    known = json.loads((checkpoint / MANIFEST_NAME).read_text())["files"]
    assert {"rng_state_0.pth", "rng_state_1.pth"} <= known.keys() and find_fault(checkpoint) is None
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith(".hf_vat")]


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_keeps_what_is_done_and_the_run_goes_on(training, command, tmp_path):
    long = [*training, "--max_steps", 300, "--eval_strategy", "no", "--load_best_model_at_end", "no"]
    long += ["--save_strategy", "no"]
    line = [sys.executable, "-u", *COMMANDS, "train", *map(str, long)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("epoch 1 of "):
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopping after this step" in out and "a checkpoint is saved" in err and "Traceback" not in err
    [checkpoint] = (tmp_path / "run").glob("checkpoint-*")
    step = int(checkpoint.name.removeprefix("checkpoint-"))
    assert 1 <= step < 300

    code, _, _ = command("train", *long, "--resume_from_checkpoint", "last")
    log = json.loads((tmp_path / "run" / "trainer_state.json").read_text())["log_history"]
    steps = [record["step"] for record in log if "loss" in record]
    assert code == 0 and steps[-1] == 300 and len(steps) == len(set(steps))


# explain


def test_explain_prints_words_and_writes_page_and_scores(trained, tmp_path):
    finished = launch(
        *(*COMMANDS, "explain", "--model", trained, "--text", "A good film!", "the <b> plot"),
        *("--html", tmp_path / "new" / "page.html", "--json", tmp_path / "scores.json"),
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert finished.stdout.count("highest: ") == 2 and "Page: " in finished.stdout
    first, second = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert first["words"] == ["A", "good", "film", "!"] and sum(first["scores"]) == pytest.approx(1, abs=1e-5)
    assert second["words"] == ["the", "<", "b", ">", "plot"]
    page = (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert "good" in page and "<b>" not in page and "&lt;" in page


def test_explain_reads_the_test_split_of_a_file_with_its_labels(trained, workspace, command):
    code, out, _ = command("explain", "--model", trained, "--test_file", workspace / "test.csv", "--show", 3)
    assert code == 0 and out.count("highest: ") == 3
    assert out.count("| right |") + out.count("| WRONG, gold is ") == 3


def test_explain_needs_no_labels(trained, command, tmp_path):
    file, scores = tmp_path / "reviews.csv", tmp_path / "scores.json"
    file.write_text("review\nA good film!\nthe plot is dull\n")
    code, _, _ = command("explain", "--model", trained, "--test_file", file, "--json", scores)
    fields = json.loads(scores.read_text())
    assert code == 0 and [entry["gold"] for entry in fields] == [None, None]
    assert fields[0]["text"] == "A good film!"


def test_a_missing_extra_is_named_before_anything_runs(trained, workspace, command, tmp_path, monkeypatch):
    options = ("--model", trained, "--test_file", workspace / "test.csv", "--output_dir", tmp_path / "new")
    for module, method in (
        ("matplotlib", "random"),
        ("scipy.stats", "occlusion"),
        ("captum.attr", "integrated_gradients"),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            package = module.split(".")[0]
            result = command("evaluate", *options, "--methods", "gradient", method)
            refused(result, f"This needs {package}", "pip install 'hf-vat[")
            assert not (tmp_path / "new").exists()


def test_c73_texts_that_are_numbers_are_explained_as_written(trained, command, tmp_path):
    file, scores = tmp_path / "numbers.csv", tmp_path / "scores.json"
    file.write_text("text,label\n12,positive\n007,negative\n")
    code, _, _ = command("explain", "--model", trained, "--test_file", file, "--json", scores)
    assert code == 0
    assert [fields["words"] for fields in json.loads(scores.read_text())] == [["12"], ["007"]]


def test_explain_saves_as_it_goes_and_goes_on(trained, workspace, command, tmp_path):
    options = ("--model", trained, "--test_file", workspace / "test.csv", "--method", "lime", "--settings")
    options += ("n_samples=20", "operator=mask", "--save_to", tmp_path / "lime.jsonl")
    code, out, err = command("explain", *options)
    assert code == 0 and "lime" in err  # a progress bar
    explanations = load_explanations(tmp_path / "lime.jsonl")
    assert explanations[0].settings == {"n_samples": 20, "operator": "mask", "seed": 0} and len(explanations) == 8
    code, again, _ = command("explain", *options)
    assert code == 0 and again == out
    refused(command("explain", *options, "--seed", 1), "lime.jsonl", "another call")


def test_predictions_are_written_as_tables(trained, command, tmp_path):
    file = tmp_path / "reviews.csv"
    file.write_text('text,label\n"the good, good film",positive\nthe plot,mixed\n\n,\n')
    tables = ("--csv", tmp_path / "new" / "out.csv", "--parquet", tmp_path / "new" / "out.parquet")
    code, out, _ = command("explain", "--model", trained, "--test_file", file, *tables, "--json", tmp_path / "out.json")
    assert code == 0 and f"Table: {tables[1]}, {tables[3]}" in out
    with open(tables[1], encoding="utf-8", newline="") as rows:
        header, first, second, third = csv.reader(rows)
    assert header[:5] == ["text", "prediction", "probability", "gold", "target"]
    assert header[5:] == ["probability_negative", "probability_positive", "words"]
    assert [first[0], second[0], third[0]] == ["the good, good film", "the plot", ""]
    assert [first[3], second[3], third[3]] == ["positive", "", ""]
    explained = json.loads((tmp_path / "out.json").read_text())[0]
    assert [float(cell) for cell in first[5:7]] == explained["probabilities"]
    assert first[1] == first[4] == ["negative", "positive"][explained["prediction"]]
    assert float(first[2]) == max(explained["probabilities"])
    best = max(range(len(explained["words"])), key=explained["scores"].__getitem__)
    assert first[7].startswith(f"{explained['words'][best]} {explained['scores'][best]:.3g}; ")
    assert first[7].count(";") == 4 and third[7] == ""
    typed = pq.read_table(tables[3]).to_pylist()
    assert [row["text"] for row in typed] == [first[0], second[0], third[0]]
    assert typed[0]["words"] == explained["words"] and typed[0]["scores"] == explained["scores"]
    assert typed[1]["gold"] is None and typed[0]["probability_positive"] == float(first[6])
    assert {path.name for path in (tmp_path / "new").glob("[!.]*")} == {"out.csv", "out.parquet"}  # none half written


def test_tables_of_a_stream_are_whole_after_an_interruption(trained, command, tmp_path):
    file, table, typed = tmp_path / "reviews.csv", tmp_path / "out.csv", tmp_path / "out.parquet"
    file.write_text("text\n" + "".join(f"the good film {row}\n" for row in range(5)))
    options = ("--model", trained, "--test_file", file, "--streaming", "--csv", table, "--parquet", typed)
    refused(command("explain", *options), "--streaming", "--save_to")
    options += ("--save_to", tmp_path / "out.jsonl")
    code, _, _ = command("explain", *options, "--max_eval_samples", 2)
    assert code == 0 and len(table.read_text().splitlines()) == 3
    code, _, _ = command("explain", *options)
    assert code == 0 and pq.read_table(typed)["text"].to_pylist() == [f"the good film {row}" for row in range(5)]
    again = tmp_path / "again.csv"
    code, _, _ = command("explain", "--model", trained, "--test_file", file, "--csv", again)
    rows, in_memory = ([line.split(",")[:2] for line in path.read_text().splitlines()] for path in (table, again))
    assert code == 0 and rows == in_memory


def test_f20_explain_and_words_need_no_labels(trained, masked, command, tmp_path):
    file, scores = tmp_path / "reviews.csv", tmp_path / "scores.json"
    file.write_text("text,label\nA good film!,\nthe plot is dull,mixed\n\n")
    code, _, _ = command("explain", "--model", trained, "--test_file", file, "--json", scores)
    assert code == 0 and [entry["gold"] for entry in json.loads(scores.read_text())] == [None, None]
    code, out, _ = command("words", "--model", masked, "--test_file", file)
    assert code == 0 and "plot" in out
    refused(
        command("evaluate", "--model", trained, "--test_file", file, "--methods", "attention"),
        "row 1 (column 'label')",
    )


def test_f26_texts_that_are_split_are_explained_word_by_word(trained, masked, command, tmp_path):
    file, scores = tmp_path / "reviews.jsonl", tmp_path / "scores.json"
    rows = [{"text": ["good", "film!"], "label": "positive"}, {"text": ["the plot", "is"], "label": "negative"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("--model", trained, "--test_file", file)
    code, _, _ = command("explain", *options, "--json", scores, "--csv", tmp_path / "out.csv")
    assert code == 0 and [entry["words"] for entry in json.loads(scores.read_text())] == [row["text"] for row in rows]
    stream = ("--streaming", "--save_to", tmp_path / "out.jsonl")
    for _ in range(2):  # the second goes on where the first ended
        code, _, _ = command("explain", *options, *stream)
        explained = load_explanations(tmp_path / "out.jsonl")
        assert code == 0 and [one.words for one in explained] == [row["text"] for row in rows]
    code, out, _ = command("words", "--model", masked, "--test_file", file)
    assert code == 0 and "the plot" in out
    code, _, _ = command("evaluate", *options, "--methods", "attention", "--ks", 1, "--seeds", 1)
    assert code == 0


# words


@pytest.fixture(scope="session")
def masked(workspace) -> Path:
    """A classifier with a word mask, untrained."""
    folder = workspace / "masked"
    if not folder.exists():
        with torch.random.fork_rng():
            set_seed(0)
            names = {"id2label": {0: "negative", 1: "positive"}, "label2id": {"negative": 0, "positive": 1}}
            BertWithVMask.from_pretrained(workspace / "encoder", **names).save_pretrained(folder)
        AutoTokenizer.from_pretrained(workspace / "encoder").save_pretrained(folder)
    return folder


def test_words_writes_what_a_mask_keeps(masked, workspace, command, tmp_path):
    folder = tmp_path / "words"
    files = ("--train_file", workspace / "train.csv", "--test_file", workspace / "test.csv")
    code, out, _ = command("words", "--model", masked, *files, "--split", "train", "--top", 3, "--output_dir", folder)
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(masked), AutoTokenizer.from_pretrained(masked)
    texts = [line.split(",")[0] for line in (workspace / "train.csv").read_text().splitlines()[1:]]
    best = mask_importance(model, tokenizer, texts).top(3)
    assert code == 0
    assert [line.split() for line in out.splitlines()[2:5]] == [
        [row.word, f"{row.importance:.3f}", str(row.count), str(row.texts)] for row in best
    ]
    assert "Importance and frequency over 13 words: Pearson " in out  # "the", four nouns, eight adjectives
    assert {path.name for path in folder.glob("[!.]*")} == {"words.csv", "words.png", "frequency.png", "cloud.png"}
    assert (folder / "words.csv").read_text().splitlines()[0] == "word,importance,count,texts"


def test_words_adds_up_the_scores_of_explanations(trained, workspace, command, tmp_path):
    options = ("words", "--model", trained, "--test_file", workspace / "test.csv", "--method", "occlusion")
    options += ("--settings", "operator=mask", "--aggregate", "sum", "--min_count", 2, "--output_dir", tmp_path / "sum")
    code, out, _ = command(*options)
    words = word_importance(load_explanations(tmp_path / "sum" / "occlusion.jsonl"), "sum", 2)
    assert code == 0 and [row.word for row in words] == [line.split()[0] for line in out.splitlines()[2:4]]
    assert {row.word for row in words} == {"the", "actor"} and "too few for a correlation" in out
    assert command(*options)[:2] == (0, out)  # from the finished explanations
    refused(command(*options, "--seed", "x"), "--seed")


def test_words_shows_attention_and_polarity_scores(trained, workspace, command, tmp_path):
    file, folder = tmp_path / "train.csv", tmp_path / "words"
    file.write_text("text,label\n" + "The good film,positive\nthe bad film,negative\n" * 6 + "a plot,positive\n")
    options = ("words", "--model", trained, "--method", "polarity", "--train_file", file, "--split", "train")
    code, out, _ = command(*options, "--context", "alone", "--top", 2, "--output_dir", folder)
    lines = [line.split() for line in out.splitlines()]
    assert code == 0 and lines[0] == [
        "word",
        "count",
        "type",
        "attention",
        "score",
        "polarity",
        "score",
        "gamma",
        "attention",
        "weight",
    ]
    model, tokenizer = (
        AutoModelForSequenceClassification.from_pretrained(trained),
        AutoTokenizer.from_pretrained(trained),
    )
    texts = ["The good film", "the bad film"] * 6 + ["a plot"]
    expected = attention_scores(model, tokenizer, texts, [1, 0] * 6 + [1], context="alone", batch_size=32)
    assert [line[:4] for line in lines[2:4]] == [
        [row.word, str(row.count), row.type or "-", f"{row.attention_score:.3f}"] for row in expected.top(2)
    ]
    assert {"positive", "negative", "neutral"} <= {line[0] for line in lines if line}
    assert "AUC of attention scores, polar against neutral words " in out and "AUC of polarity scores between" in out
    assert {path.name for path in folder.glob("[!.]*")} == {"words.csv", "scores.png", "attention.png"}
    assert (
        (folder / "words.csv").read_text().startswith("word,count,type,attention_score,polarity_score,gamma,attention,")
    )
    file.write_text("text,label\na film,positive\n")
    code, out, _ = command(*options)
    assert code == 0 and "None of the 2 words is polar or neutral" in out


def test_words_of_more_types_than_a_picture_can_show(make_model, tokenizer, command, tmp_path):
    words = ["good", "great", "superb", "lovely", "bad", "awful", "boring", "dull", "film", "movie", "plot"]
    model = make_model("att", num_labels=11, id2label={place: f"{word} <b>" for place, word in enumerate(words)})
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "model")
    (tmp_path / "train.csv").write_text("text,label\n" + "".join(f"{word},{word} <b>\n" * 6 for word in words))
    rows = ("--train_file", tmp_path / "train.csv", "--split", "train", "--output_dir", tmp_path / "out")
    code, out, _ = command("words", "--model", tmp_path / "model", "--method", "polarity", *rows)
    assert code == 0 and "No pictures: 11 types of words" in out
    assert [path.name for path in (tmp_path / "out").glob("[!.]*")] == ["words.csv"]


def test_words_says_what_cannot_be(trained, masked, workspace, command):
    rows = ("--test_file", workspace / "test.csv")
    refused(command("words", "--model", trained, *rows), "no token_mask")
    refused(command("words", "--model", masked, *rows, "--aggregate", "sum"), "--aggregate")
    refused(command("words", "--model", masked, *rows, "--context", "alone"), "--context", "--method polarity")
    refused(command("words", "--model", masked, *rows, "--method", "polarity"), "no attention")
    refused(command("words", "--model", masked, *rows, "--min_count", 0), "--min_count is 0")
    refused(command("words", "--model", masked, *rows, "--min_count", 99), "at least 99 times")
    refused(command("words", "--model", masked, *rows, "--split", "train"), "no train split, only test")


# evaluate


def test_evaluate_prints_a_table_and_writes_the_report(trained, workspace, tmp_path):
    folder = tmp_path / "new" / "comparison"
    finished = launch(
        *(*COMMANDS, "evaluate", "--model", trained, "--test_file", workspace / "test.csv"),
        *("--methods", "attention", "lime", "--settings", "lime.n_samples=30", "--ks", 1, 3, "--seeds", 2),
        *("--output_dir", folder),
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    report = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    assert report["n_scored"] == 8 and report["random_seeds"] == [0, 1]
    assert report["methods"]["lime"]["settings"]["n_samples"] == 30
    assert f"accuracy {100 * report['accuracy']:.1f}" in finished.stdout
    rows = {line.split("  ")[0]: line for line in finished.stdout.splitlines()}
    for score in ("prob_drop@3", "aopc_comprehensiveness"):
        for method in ("attention", "lime", "random"):
            assert f"{100 * report['methods'][method]['scores'][score]['mean']:.1f} [" in rows[score]
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
    assert {"report.html", "curves.png", "texts.csv", "explanations/lime.jsonl"} <= files


def test_a_scorer_with_other_classes_is_refused(trained, command, make_model, tokenizer, workspace, tmp_path):
    make_model("vat", num_labels=3).save_pretrained(tmp_path / "three")
    tokenizer.save_pretrained(tmp_path / "three")
    options = ("--model", trained, "--methods", "attention", "--scorer", tmp_path / "three")
    options += ("--test_file", workspace / "test.csv")
    refused(command("evaluate", *options), "different classes", "LABEL_2")


# Several processes

# Of each text more model inputs than are cut together.
SLOW = ("--method", "lime", "--settings", "n_samples=1200")


def test_a_job_array_explains_as_one_process_does(trained, workspace, command, tmp_path):
    rows = ("explain", "--model", trained, "--test_file", workspace / "test.csv", *SLOW)
    one, out = tmp_path / "one", tmp_path / "out"
    code, shown, _ = command(*rows, "--save_to", one / "lime.jsonl", "--csv", one / "lime.csv")
    assert code == 0
    line = (*rows, "--save_to", out / "lime.jsonl", "--csv", out / "lime.csv")
    for shard in (2, 4, 1):
        code, told, _ = command(*line, "--shard", f"{shard}/4")
        assert code == 0 and told == f"Shard {shard}/4 of {out / 'lime.jsonl'}: 2 of 8 texts explained\n"
    refused(command(*line, "--merge", 4), "lime.jsonl cannot be put together", "3/4 (0 of 2 explanations)")
    assert command(*line, "--shard", "3/4")[0] == 0
    code, merged, _ = command(*line, "--merge", 4)
    assert code == 0 and merged == shown.replace(str(one), str(out))
    assert {path.name for path in out.glob("[!.]*")} == {"lime.jsonl", "lime.csv"}
    for name in ("lime.jsonl", "lime.csv"):
        assert (out / name).read_bytes() == (one / name).read_bytes()


@pytest.mark.parametrize("method", ["attention", "occlusion"])
def test_a_job_array_shares_a_stream(trained, command, tmp_path, monkeypatch, method):
    monkeypatch.setattr("hf_vat.commands.explain._TOGETHER", 20 if method == "occlusion" else 2)
    file = tmp_path / "reviews.csv"
    words = [word for many in WORDS.values() for word in many]
    file.write_text("text\n" + "".join(f"the {word} film{' and plot' * place}\n" for place, word in enumerate(words)))
    line = (
        "explain",
        "--model",
        trained,
        "--test_file",
        file,
        "--method",
        method,
        "--streaming",
        "--max_eval_samples",
        7,
    )
    code, shown, _ = command(*line, "--save_to", tmp_path / "one.jsonl")
    assert code == 0
    out = tmp_path / "out.jsonl"
    for shard in range(1, 6):  # the 4 pieces are fewer
        code, told, _ = command(*line, "--save_to", out, "--shard", f"{shard}/5")
        size = (0, 2, 2, 2, 1)[shard - 1]
        assert code == 0 and told == f"Shard {shard}/5 of {out}: {size} of 7 texts explained\n"
    code, merged, _ = command(*line, "--save_to", out, "--merge", 5)
    assert code == 0 and merged == shown.replace("one.jsonl", "out.jsonl")
    code, told, _ = command(*line, "--save_to", out, "--shard", "2/5")  # from what is there
    assert code == 0 and told == f"Shard 2/5 of {out}: 2 of 7 texts explained\n"
    assert out.read_bytes() == (tmp_path / "one.jsonl").read_bytes() and not list(tmp_path.glob("out-*"))

    assert command(*line, "--save_to", tmp_path / "again.jsonl", "--shard", "1/1")[0] == 0
    file.write_text(file.read_text().replace("dull", "bad"))  # a row that is not among the first 7
    assert command(*line, "--save_to", tmp_path / "again.jsonl", "--merge", 1)[0] == 0
    assert command(*line, "--save_to", tmp_path / "other.jsonl", "--shard", "1/1")[0] == 0
    file.write_text(file.read_text().replace("superb", "lovely"))
    refused(command(*line, "--save_to", tmp_path / "other.jsonl", "--merge", 1), "other.jsonl", "in row 3")


def test_measures_of_a_job_array_are_those_of_one_process(trained, workspace, command, tmp_path):
    rows = ("--model", trained, "--test_file", workspace / "test.csv")
    words = ("words", *rows, *SLOW, "--aggregate", "sum", "--output_dir")
    measure = ("evaluate", *rows, "--methods", "attention", "lime", "--settings", "lime.n_samples=1200", "--ks", 1, 2)
    measure = (*measure, "--seeds", 1, "--output_dir")
    for line, files in ((words, ["words.csv"]), (measure, ["scores.csv", "texts.csv"])):
        one, out = tmp_path / f"{line[0]}-one", tmp_path / f"{line[0]}-out"
        assert command(*line, one)[0] == 0
        for shard in (1, 2, 3):
            assert command(*line, out, "--shard", f"{shard}/3")[0] == 0
        code, told, _ = command(*line, out, "--merge", 3)
        assert code == 0 and ("s / text" in told) == (line is measure)
        for name in files:
            assert (out / name).read_bytes() == (one / name).read_bytes()
    report, expected = (
        json.loads((tmp_path / f"evaluate-{name}" / "comparison.json").read_text()) for name in ("out", "one")
    )
    for found in (report, expected):
        for method in ("attention", "lime"):
            assert found["methods"][method].pop("seconds_per_text") > 0
    assert report == expected
    code, told, _ = command(*measure, tmp_path / "evaluate-out")  # from the finished files, which have no seconds
    assert code == 0 and "—" not in next(line for line in told.splitlines() if line.startswith("s / text"))[:40]


def test_c87_processes_that_were_started_together_share_the_texts(trained, workspace, command, tmp_path):
    line = ("explain", "--model", trained, "--test_file", workspace / "test.csv", *SLOW, "--save_to")
    finished = launch(*ACCELERATE, *COMMANDS, *line, tmp_path / "two.jsonl", "--csv", tmp_path / "two.csv")
    assert finished.returncode == 0, finished.stderr[-3000:]
    for shard in (1, 2):
        assert f"Shard {shard}/2 of {tmp_path / 'two.jsonl'}: 4 of 8 texts explained" in finished.stdout
    assert finished.stdout.count("highest: ") == 8 and finished.stdout.count("Table: ") == 1
    assert command(*line, tmp_path / "one.jsonl", "--csv", tmp_path / "one.csv")[0] == 0
    for name in ("jsonl", "csv"):
        assert (tmp_path / f"two.{name}").read_bytes() == (tmp_path / f"one.{name}").read_bytes()


def test_shards_that_cannot_be(trained, workspace, command, tmp_path, monkeypatch):
    line = ("explain", "--model", trained, "--test_file", workspace / "test.csv")
    save = ("--save_to", tmp_path / "out.jsonl")
    for shard in ("0/8", "9/8", "3", "3 of 8", "-1/8", "1.5/2", "1/999999", "1/0"):
        refused(command(*line, *save, f"--shard={shard}"), "--shard is", "from 1/8 to 8/8")
    refused(command(*line, *save, "--merge", 0), "--merge is 0")
    refused(command(*line, "--shard", "1/8"), "--shard is 1/8, which is for --save_to")
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    with monkeypatch.context() as patch:
        patch.setenv("MASTER_ADDR", "127.0.0.1")
        refused(command(*line), "asked for several processes and has started one", "--multi_gpu")
    monkeypatch.setenv("WORLD_SIZE", "2")
    refused(command(*line, *save, "--shard", "1/8"), "leave --shard and --merge out")
    refused(command(*line), "name a place for them with --save_to")


@pytest.mark.slow
def test_c87_accelerate_that_starts_one_process_of_two_is_refused(training, tmp_path):
    finished = launch("-m", "accelerate.commands.launch", "--cpu", "--num_processes", 2, *COMMANDS, "train", *training)
    assert finished.returncode != 0 and not (tmp_path / "run" / "config.json").exists()
    assert "error: accelerate launch was asked for several processes and has started one" in finished.stderr


# Bad input


@pytest.mark.parametrize("name", ["train", "explain", "evaluate"])
def test_help(command, name):
    code, out, err = command(name, "--help")
    assert code == 0 and err == ""
    assert "--test_file" in out and "--text_column" in out


@pytest.mark.parametrize("name", ["train", "explain", "evaluate"])
def test_a_misspelt_option_is_named(command, name):
    refused(
        command(name, "--model", "m", *(("--methods", "lime") if name == "evaluate" else ()), "--tset_file", "t"),
        "--tset_file",
    )


def test_bad_input_in_a_process_of_its_own(training, tmp_path):
    finished = launch(*COMMANDS, "train", *training, "--train_file", tmp_path / "trian.csv")
    refused((finished.returncode, finished.stdout, finished.stderr), "trian.csv: no such file")
    assert finished.stderr.strip().count("\n") == 0


@pytest.mark.parametrize(
    ("content", "options", "named"),
    [
        pytest.param("sentence,klass\na,b\n", (), ["no column", "sentence, klass", "_column"], id="c72-column"),
        pytest.param(
            GOOD_BAD, ("--text_column", "txt"), ["no column 'txt'", "text, label", "--text_column"], id="c72-option"
        ),
        pytest.param(GOOD_BAD + ",positive\n", (), ["row 3", "'text'", "--drop_empty"], id="c68-text"),
        pytest.param(GOOD_BAD + "the plot,\n", (), ["row 3", "'label'", "--drop_empty"], id="c71-label"),
        pytest.param("text,label\na,1\nb,0\nc,0.5\n", (), ["row 3", "0.5"], id="c71-fraction"),
        pytest.param("text,label\na café,x\nb,y\n".encode("latin-1"), (), ["byte 16", "--encoding"], id="c74-latin-1"),
        pytest.param("text,label\n", (), ["no rows"], id="c74-header-only"),
        pytest.param("text,label\na,1\nb,0\n", (), ["row 1", "'positive'", "known are 0, 1"], id="c70-c69-test-label"),
    ],
)
def test_training_data_that_cannot_be_used(training, command, tmp_path, content, options, named):
    file = tmp_path / "train.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(command("train", *training, "--train_file", file, *options), *named)
    assert not (tmp_path / "run").exists()


def test_c66_a_name_on_the_hub_offline_names_the_local_files(command, tmp_path):
    refused(command("train", "--dataset_name", "trec", "--output_dir", tmp_path / "run"), "'trec'", "--train_file")


def test_c68_incomplete_rows_are_dropped_if_asked_and_counted(training, command, workspace, tmp_path, caplog):
    file = tmp_path / "train.csv"
    file.write_text((workspace / "train.csv").read_text() + "\n ,positive\nthe plot,\n")
    code, _, _ = command("train", *training, "--train_file", file, "--drop_empty")
    assert code == 0 and "left out: 2" in caplog.text


def test_c69_a_label_unseen_in_training_names_row_value_and_classes(trained, training, command, tmp_path):
    file = tmp_path / "test.csv"
    file.write_text(GOOD_BAD + "a plot,mixed\n")
    named = ("row 3", "'mixed'", "known are negative, positive")
    refused(command("train", *training, "--test_file", file), *named)
    refused(command("evaluate", "--model", trained, "--methods", "attention", "--test_file", file), *named)


def test_c30_settings_out_of_range_and_unknown_metrics(training, command, tmp_path):
    refused(
        command("train", *training, "--metric_for_best_model", "aopc"),
        "'aopc'",
        "one of accuracy, macro_f1, micro_f1, rmse, pearson, loss",
    )
    refused(command("train", *training, "--learning_rate", -1), "--learning_rate")
    refused(command("train", *training, "--pooling", "median"), "--pooling", "'attention'")
    assert not (tmp_path / "run").exists()


def test_f24_class_names_for_ids_and_inherited_options_without_use(training, command, tmp_path):
    file, run = tmp_path / "train.csv", tmp_path / "run"
    file.write_text("text,label\n" + "a good film,1\na bad film,0\n" * 8)
    files = ("--train_file", file, "--test_file", file)
    named = ("--class_names", "negative", "positive")
    refused(
        command("train", *training, *files, "--label_names", "negative", "positive"),
        "--label_names",
        "--class_names",
    )
    refused(command("train", *training, *files, "--do_predict"), "--do_predict", "hf-vat explain --csv")
    refused(
        command("explain", "--model", tmp_path, *files[2:], *named),
        "--class_names is negative positive, which is for hf-vat train",
    )
    assert not run.exists()
    code, _, _ = command("train", *training, *files, *named)
    assert code == 0 and json.loads((run / "config.json").read_text())["label2id"] == {"negative": 0, "positive": 1}
    code, _, _ = command("train", *training, *files, *named, "--resume_from_checkpoint", "last")
    assert code == 0


def test_an_output_folder_with_another_run_is_refused(training, trained, command):
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*")}
    refused(command("train", *training, "--output_dir", trained, "--seed", 9), "holds another run", "seed was 42")
    assert {path: path.stat().st_mtime_ns for path in trained.rglob("*")} == before


def test_c15_a_diverged_loss_ends_with_1(training, command):
    code, out, err = command("train", *training, "--learning_rate", 1e20, "--start", "joint", "--start_epochs", 2)
    assert code == 1 and "Traceback" not in out + err
    assert "not finite at step" in err and "phase 'joint'" in err and "cross_entropy" in err


@pytest.mark.parametrize(
    ("name", "options", "named"),
    [
        ("explain", ("--text", "a", "--method", "guess"), ["'guess'", "'attention', 'mask'"]),
        ("explain", ("--text", "a", "--batch_size", 0), ["batch_size is 0"]),
        ("explain", ("--text", "a", "--test_file", "b.csv"), ["--text", "--test_file", "--dataset_name"]),
        ("explain", ("--text", "a", "--html", "."), ["--html . is a folder"]),
        ("explain", ("--text", "a", "--json", "/dev/null/a.json"), ["--json", "cannot be made"]),
        ("explain", (), ["--dataset_name", "--test_file", "--text"]),
        ("evaluate", ("--ks", 0), ["--ks is 0", "from 1 to 10000"]),
        ("evaluate", ("--ks", "1,3"), ["--ks", "1,3"]),
        ("evaluate", ("--seeds", 0), ["--seeds is 0"]),
        ("evaluate", ("--batch_size", 0), ["batch_size is 0"]),
        ("evaluate", ("--scorer", "nowhere"), ["nowhere cannot be loaded"]),
        ("evaluate", ("--output_dir", "/dev/null/a"), ["--output_dir", "cannot be made"]),
        ("evaluate", ("--methods", "lime", "lime"), ["named twice"]),
        ("evaluate", ("--settings", "lime.n_samples=3"), ["'lime.n_samples=3'", "METHOD.NAME=VALUE"]),
        ("evaluate", ("--settings", "attention.n=3"), ["'attention' has no setting 'n'"]),
        (
            "explain",
            ("--text", "a", "--method", "lime", "--settings", "n_samples=x"),
            ["n_samples is 'x'", "whole number"],
        ),
    ],
)
def test_settings_of_the_other_commands(trained, workspace, command, name, options, named):
    data = ("--model", trained)
    if name != "explain":
        data += ("--test_file", workspace / "test.csv", "--methods", "attention")
    refused(command(name, *data, *options), *named)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--settings", "seed=1"), ["'lime' has no setting 'seed'"]),
        (("--settings", "model=x"), ["'lime' has no setting 'model'"]),
        (("--settings", "labels=1"), ["'lime' has no setting 'labels'"]),
        (("--settings", "method="), ["'lime.method='", "METHOD.NAME=VALUE"]),
        (("--settings", f"n_samples={10**12}"), ["n_samples is 1000000000000", "at most 1000000"]),
        (("--seed", "-1"), ["--seed is -1; it must be at least 0"]),
        (("--batch_size", "-1"), ["--batch_size is -1"]),
    ],
)
def test_f53_f54_f55_no_setting_is_swallowed(trained, command, options, named):
    refused(command("explain", "--model", trained, "--text", "a film", "--method", "lime", *options), *named)


@pytest.mark.parametrize(
    ("name", "options", "named"),
    [
        ("loop.csv", (), ["loop.csv", "no path that can be read", "symbolic links"]),
        ("a\x00.csv", (), ["a\\x00.csv", "NUL character"]),
        ("x" * 300 + ".csv", (), ["no path that can be read"]),
        ("nested.jsonl", (), ["nested.jsonl, line 1", "nested too deeply"]),
        ("nested_label.jsonl", (), ["nested_label.jsonl, line 1", "nested too deeply"]),
        ("texts.csv", ("--encoding", "base64"), ["'base64' is unknown"]),
        ("texts.csv", ("--encoding", "rot13"), ["'rot13' is unknown"]),
        ("texts.csv", ("--encoding", "utf-16"), ["is not utf-16"]),
        ("texts.csv", ("--encoding", "a\x00"), ["'a\\x00' has a NUL character"]),
    ],
)
def test_f54_files_that_cannot_be_read(trained, command, tmp_path, name, options, named):
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    (tmp_path / "nested.jsonl").write_text('{"text": ' + "[" * 100_000)
    (tmp_path / "nested_label.jsonl").write_text('{"text": "a", "label": ' + '{"a":' * 3000 + "1" + "}" * 3000 + "}")
    (tmp_path / "texts.csv").write_text(GOOD_BAD, encoding="utf-8")
    refused(command("explain", "--model", trained, "--test_file", f"{tmp_path}/{name}", *options), *named)


def test_f54_a_label_of_more_digits_than_a_number_of_python_has(command, tmp_path):
    file = tmp_path / "train.csv"
    file.write_text("text,label\n" + f"a good film,{'1' * 6000}\na bad film,2\n" * 4)
    result = command(
        "train", "--train_file", file, "--model_name_or_path", tmp_path / "no", "--output_dir", tmp_path / "run"
    )
    refused(result, "no cannot be loaded")


def test_f55_a_folder_of_thousands_of_files_is_not_searched(trained, command, tmp_path, monkeypatch):
    monkeypatch.setattr("hf_vat.data.files._MOST_ENTRIES", 5)
    for number in range(6):
        (tmp_path / f"{number}.txt").touch()
    refused(command("explain", "--model", trained, "--dataset_name", tmp_path), "more than 5 files", "--train_file")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--split_seed", "-1"), "--split_seed is -1"),
        (("--warmup_steps", "nan"), "'nan' is no finite number"),
        (("--logging_steps", "inf"), "'inf' is no finite number"),
        (("--adam_beta1", "-1"), "--adam_beta1 is -1.0; it must be at least 0"),
        (("--report_to", "zzz"), "--report_to ['zzz'] cannot be used"),
        (("--optim_args", "zzz"), "--optim_args zzz cannot be used"),
        (("--optim", "galore_adamw"), "--optim galore_adamw cannot be used"),
        (("--lr_scheduler_kwargs", "zzz"), "--lr_scheduler_kwargs is 'zzz'; give a JSON object"),
        (("--lr_scheduler_kwargs", '{"zzz": 1}'), "unexpected keyword argument 'zzz'"),
        (("--lr_scheduler_type", "warmup_stable_decay"), "--lr_scheduler_type warmup_stable_decay cannot be used"),
        (("--accelerator_config", "zzz"), "No such file or directory: 'zzz'"),
        (("--accelerator_config", '{"zzz": 1}'), "unexpected keyword argument 'zzz'"),
        (("--torch_compile_backend", "zzz"), "--torch_compile_backend zzz cannot be used"),
        (("--gradient_checkpointing", "--gradient_checkpointing_kwargs", "zzz"), "give a JSON object"),
    ],
)
def test_f54_options_of_the_trainer_that_are_words(training, command, tmp_path, options, named):
    refused(command("train", *training, *options), named)
    assert not (tmp_path / "run").exists()


def test_polynomial_decay_takes_phases_as_short_as_the_warm_up(training, command):
    code, _, _ = command("train", *training, "--lr_scheduler_type", "polynomial", "--max_steps", 1, "--card_texts", 0)
    assert code == 0


def test_an_encoder_without_classifier_is_not_explained(workspace, command):
    refused(command("explain", "--model", workspace / "encoder", "--text", "a film"), "no trained classifier")


# What a command writes, and what it leaves alone

OUTPUTS = {
    "train": ["output_dir"],
    "explain": ["html", "json", "csv", "parquet", "save_to"],
    "words": ["output_dir"],
    "evaluate": ["output_dir"],
    "probe": ["output_dir"],
}


@pytest.fixture
def options(trained, workspace, training):
    """Options of a command without those that say where its outputs go."""
    data = ("--test_file", workspace / "test.csv", "--max_eval_samples", 8)
    model = ("--model", trained)
    return {
        "train": [
            word for place, word in enumerate(training) if "--output_dir" not in training[max(place - 1, 0) : place + 1]
        ],
        "explain": [*model, "--text", "a good film"],
        "words": [*model, "--method", "attention", *data],
        "evaluate": [*model, "--methods", "attention", "--ks", 1, "--seeds", 1, *data],
        "probe": [*model, *data],
    }


@pytest.mark.parametrize(("name", "option"), [(name, one) for name, many in OUTPUTS.items() for one in many])
def test_f47_f51_paths_that_cannot_be_written(options, command, tmp_path, monkeypatch, name, option):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("precious")
    for value, named in (
        ("file/x", "file"),
        ("n" * 300, "File name too long"),
        ("n" * 300 + "/x", "File name too long"),
        ("", f"--{option} is empty"),
        ("a\0b", "NUL"),
    ):
        refused(command(name, *options[name], f"--{option}", value), named)
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("train.csv", "test.csv")] == ["file"]
    assert Path("file").read_text() == "precious"


@contextmanager
def files_of_at_most(size: int):
    """As if the disk were full: the system lets no file become longer."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("option", OUTPUTS["explain"])
def test_f47_a_result_that_cannot_be_written_leaves_the_earlier_one(options, command, tmp_path, option):
    path, explain = tmp_path / "result", ["explain", *options["explain"], "--show", 0]
    with files_of_at_most(10):
        refused(command(*explain, f"--{option}", path), f"{path}: File too large")
    assert left_in(tmp_path) == set()
    assert command(*explain, f"--{option}", path)[0] == 0
    before = path.read_bytes()
    if option != "save_to":  # which goes on from what is there
        with files_of_at_most(10):
            refused(command(*explain, "--text", "a bad film", f"--{option}", path), f"{path.parent}")
        assert path.read_bytes() == before
        assert command(*explain, "--text", "a bad film", f"--{option}", path)[0] == 0  # it is this command's own
        assert path.read_bytes() != before


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {RECORD_NAME}


@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("words", "evaluate")), "probe"]
)
def test_f47_files_of_a_folder_that_cannot_be_written_leave_the_earlier_ones(options, command, tmp_path, name):
    line = [name, *options[name], "--output_dir", tmp_path / "out"]
    assert command(*line)[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert len(before) > 2
    with files_of_at_most(10):
        refused(command(*line), f"{tmp_path / 'out'}", "File too large")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before
    assert command(*line)[0] == 0


def test_f47_a_full_disk_while_a_run_is_trained_keeps_its_checkpoints(training, command, tmp_path):
    run = tmp_path / "run"
    with files_of_at_most(20_000):  # settings and log fit in, weights do not
        refused(command("train", *training, "--card_texts", 0), f"{run / 'checkpoint-4'}: File too large", "is kept")
    assert {path.name for path in run.iterdir()} == {"run.json", "training_log.jsonl"}
    code, out, _ = command("train", *training, "--card_texts", 0, "--resume_from_checkpoint", "last")
    assert code == 0 and "test accuracy" in out


@pytest.mark.parametrize(
    ("name", "file"),
    [("evaluate", "texts.csv"), ("evaluate", "report.html"), ("words", "words.csv"), ("probe", "probe.json")],
)
def test_f50_files_of_a_user_in_the_output_folder_are_left_alone(options, command, tmp_path, name, file):
    path = tmp_path / file
    path.write_text(GOOD_BAD)
    line = options[name]
    refused(command(name, *line, "--output_dir", tmp_path), f"{path} is there already", "is left as it is")
    if file.endswith(".csv"):  # and where it is the input
        line = [path if word == line[line.index("--test_file") + 1] else word for word in line]
        refused(command(name, *line, "--output_dir", tmp_path), f"would write {path}, which is --test_file {path}")
    assert path.read_text() == GOOD_BAD and left_in(tmp_path) - {"train.csv", "test.csv"} == {file}


def test_f50_no_output_is_an_input_or_another_output(trained, command, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text(GOOD_BAD)
    explain = ["explain", "--model", trained, "--test_file", rows, "--show", 0]
    for option in OUTPUTS["explain"]:
        refused(command(*explain, f"--{option}", rows), f"would write {rows}, which is --test_file")
        refused(command(*explain[:3], "--text", "a", f"--{option}", rows), f"{rows}")
    (tmp_path / "link.csv").symlink_to(rows)
    refused(command(*explain, "--csv", tmp_path / "link.csv"), "which is --test_file")
    refused(command(*explain, "--html", tmp_path / "a", "--json", tmp_path / "a"), "which is --json")
    # also where the input is a table of our own
    assert command(*explain, "--csv", tmp_path / "predictions.csv")[0] == 0
    again = [*explain[:3], "--test_file", tmp_path / "predictions.csv"]
    refused(command(*again, "--csv", tmp_path / "predictions.csv"), "which is --test_file")
    assert rows.read_text() == GOOD_BAD


@pytest.mark.parametrize("option", OUTPUTS["explain"])
def test_f51_a_device_is_left_alone(options, command, tmp_path, option):
    os.mkfifo(tmp_path / "pipe")
    refused(command("explain", *options["explain"], f"--{option}", tmp_path / "pipe"), "no regular file")
    assert (tmp_path / "pipe").is_fifo() and len(list(tmp_path.iterdir())) == 1


def test_f49_two_that_explain_into_a_file(options, command, tmp_path):
    path, held = tmp_path / "attention.jsonl", locked(tmp_path / "attention.jsonl", "wait")
    line = ["explain", *options["explain"], "--save_to", path]
    with ThreadPoolExecutor(1) as other:
        other.submit(held.__enter__).result()
        refused(command(*line), f"{path} is being written by another process; wait until it has ended")
        other.submit(held.__exit__, None, None, None).result()
    assert command(*line)[0] == 0 and len(load_explanations(path)) == 1
    assert left_in(tmp_path) == {"attention.jsonl"}
