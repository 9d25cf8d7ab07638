"""The `hf-vat` command: it finds its commands and hands them the rest of the line."""

import subprocess
import sys
from pathlib import Path

import pytest

from hf_vat import commands, load_explanations


def run_main(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["hf-vat", *arguments])
    try:
        commands.main()
        code = 0
    except SystemExit as ended:
        code = ended.code
    return code, *capsys.readouterr()


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_lists_the_commands(monkeypatch, capsys, arguments):
    code, out, err = run_main(monkeypatch, capsys, *arguments)
    assert (code, err) == (0, "")
    for name, text in commands.COMMANDS.items():
        assert f"{name} " in out and text in out


def test_unknown_command(monkeypatch, capsys):
    code, out, err = run_main(monkeypatch, capsys, "exlpain")
    assert code == 2 and out == "" and "no command 'exlpain'" in err and "evaluate" in err


def test_f40_an_unknown_command_comes_with_the_nearest_one(monkeypatch, capsys):
    assert "no command 'exlpain'; did you mean explain?" in run_main(monkeypatch, capsys, "exlpain")[2]
    assert "did you mean" not in run_main(monkeypatch, capsys, "zzz")[2]


@pytest.fixture
def model(make_model, tokenizer, tmp_path):
    folder = tmp_path / "model"
    make_model("vat", id2label={0: "negative", 1: "positive"}).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize(
    "line",
    [
        "train --train_file DATA --model_name_or_path MODEL --start_epochs -1 --output_dir OUT",
        "train --train_file DATA --model_name_or_path MODEL --max_steps -5 --output_dir OUT",
        "train --train_file DATA --model_name_or_path MODEL --vectors nothere.txt --output_dir OUT",
        "train --train_file nothere.csv --model_name_or_path MODEL --output_dir OUT",
        "train --train_file DATA --model_name_or_path MODEL --mask_beta_start 1 --mask_beta_end 0 --output_dir OUT",
        "evaluate --model MODEL --methods attention --test_file DATA --ks 0 --output_dir OUT",
        "evaluate --model MODEL --methods attention --test_file nothere.csv --output_dir OUT",
        "words --model MODEL --method attention --settings n_samples=5 --test_file DATA --output_dir OUT",
        "words --model MODEL --test_file DATA --output_dir OUT",
        "explain --model MODEL --method lime --settings steps=5 --test_file DATA --html OUT/page.html",
        "explain --model MODEL --test_file nothere.csv --save_to OUT/all.jsonl --json OUT/scores.json",
        "reproduce vat --add trec/zzz/2 --data_dir . --output_dir OUT/results --work_dir OUT/work",
    ],
)
def test_f39_no_output_folder_is_made_by_a_command_that_ends_with_2(monkeypatch, capsys, tmp_path, model, line):
    data, out = tmp_path / "data.csv", tmp_path / "out"
    data.write_text("text,label\n" + "a good film,positive\na bad film,negative\n" * 10)
    words = line.replace("DATA", str(data)).replace("MODEL", model).replace("OUT", str(out)).split()
    code, _, err = run_main(monkeypatch, capsys, *words)
    assert code == 2 and "error: " in err and "Traceback" not in err
    assert not out.exists()


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_each_command_has_its_own_help(monkeypatch, capsys, name):
    code, out, _ = run_main(monkeypatch, capsys, name, "--help")
    assert code == 0 and f"hf-vat {name} [--option value ...]" in out and ("--test_file" in out or "--data_dir" in out)


def test_the_console_script_is_installed():
    script = Path(sys.executable).with_name("hf-vat")
    done = subprocess.run([script, "evaluate"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--model" in done.stderr


@pytest.fixture
def explained(make_model, tokenizer, tmp_path, monkeypatch, capsys):
    """Run `hf-vat explain` on a small classifier: exit code, the classes that were explained, output, errors."""
    model = make_model(id2label={0: "negative", 1: "positive"})
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")

    def run_explain(*arguments):
        stored = tmp_path / "stored.jsonl"
        given = ("--model", tmp_path / "model", "--method", "occlusion", "--save_to", stored, *arguments)
        code, out, err = run_main(monkeypatch, capsys, "explain", *map(str, given))
        return code, [one.target for one in load_explanations(stored)] if stored.exists() else [], out, err

    return run_explain


@pytest.mark.parametrize(("given", "target"), [("positive", 1), ("negative", 0), ("1", 1), ("0", 0)])
def test_f31_a_class_by_name_or_id(explained, given, target):
    code, targets, _, err = explained("--target", given, "--text", "a good film", "bad")
    assert code == 0, err
    assert targets == [target] * 2


@pytest.mark.parametrize("given", ["good", "2", "-1", "Positive"])
def test_f31_a_class_that_the_model_has_not(explained, given):
    code, targets, _, err = explained(f"--target={given}", "--text", "a good film")
    assert code == 2 and not targets
    assert f"--target is {int(given) if given == '2' else given!r}; give a class" in err.replace("\n", " ")
    assert "0 (negative), 1 (positive)" in err


def test_f31_a_streamed_file_goes_on_with_the_same_class_only(explained, tmp_path):
    (tmp_path / "texts.csv").write_text("text\na good film\nbad\n", encoding="utf-8")
    arguments = ("--streaming", "--test_file", tmp_path / "texts.csv", "--target")
    for _ in range(2):
        code, targets, _, err = explained(*arguments, "positive")
        assert (code, targets) == (0, [1, 1]), err
    code, targets, _, err = explained(*arguments, "negative")
    assert code == 2 and targets == [1, 1] and "of another call, with other settings" in err
