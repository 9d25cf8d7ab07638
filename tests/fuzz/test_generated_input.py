"""Whatever is typed, lies in a folder or is in a table: a command ends well, or with a sentence and 2, and leaves files alone.

A few hundred examples, the same each time; `make fuzz` tries thousands.
"""

import pytest
from arena import at_most, check, examples, run
from generated import command_lines, damage, tables
from hypothesis import given
from hypothesis import strategies as st

from hf_vat.commands import COMMANDS

_LINES = {"train": 12, "explain": 40, "words": 25, "evaluate": 20, "distill": 15, "probe": 12, "reproduce": 15}


@pytest.mark.parametrize("command", COMMANDS)
def test_command_lines(arena, command):
    @examples(_LINES[command])
    @given(command_lines(command, arena.inputs))
    def try_lines(words):
        with arena.round():
            check(run(*words))

    try_lines()


@pytest.mark.parametrize("name", ["vat", "plain", "masked"])
def test_model_folders(arena, tmp_path, name):
    folder = tmp_path / "model"
    table = str(arena.inputs / "table.csv")

    @examples(25)
    @given(damage(arena.inputs / name, folder), st.sampled_from(["explain", "explain", "explain", "train"]))
    def try_folders(_, command):
        with arena.round():
            if command == "explain":
                check(run("explain", "--model", str(folder), "--text", "a good film", "--method", "occlusion"))
            else:  # refused after the model is read
                check(run("train", "--model_name_or_path", str(folder), "--train_file", table, "--output_dir", "run",
                          "--class_weights", "1", "2", "3", "--use_cpu", "--mask_type", "vmask"))  # fmt: skip

    try_folders()


@pytest.mark.parametrize("command", ["explain", "evaluate", "words", "train"])
def test_tables(arena, tmp_path, command):
    ours = {name: str(arena.inputs / name) for name in ("vat", "masked")}
    lines = {
        "explain": ["explain", "--model", ours["vat"], "--show", "1", "--csv", "out.csv", "--html", "out.html"],
        "evaluate": ["evaluate", "--model", ours["vat"], "--methods", "attention", "--ks", "1", "--seeds", "1"],
        "words": ["words", "--model", ours["masked"], "--top", "2"],
        # refused once the data are read
        "train": ["train", "--model_name_or_path", str(tmp_path / "none"), "--output_dir", "run", "--use_cpu"],
    }

    @examples(20)
    @given(
        tables(tmp_path / "data"), st.sampled_from([[], [], ["--drop_empty"], ["--streaming", "--save_to", "a.jsonl"]])
    )
    def try_tables(path, options):
        if "--streaming" in options and command != "explain":
            options = []
        with arena.round():
            line = lines[command][:4] if "--streaming" in options else lines[command]
            file = "--train_file" if command == "train" else "--test_file"
            check(run(*line, file, str(path), *options))

    try_tables()


def test_an_example_that_computes_for_too_long_fails():
    def forever():
        while True:
            pass

    with pytest.raises(TimeoutError), at_most(1):
        forever()
