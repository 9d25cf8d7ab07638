"""Command lines: strict parsing, and how a command ends."""

import io
import logging
import os
import subprocess
import sys
import unicodedata
import warnings
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_vat.cli import (
    given_options,
    output_file,
    output_folder,
    parse_arguments,
    run,
)
from hf_vat.data import DataArguments
from hf_vat.errors import InputError
from hf_vat.pretrained import load_classifier
from hf_vat.processes import is_main_process
from hf_vat.training import ModelArguments, VATTrainingArguments
from hf_vat.writing import RECORD_NAME, write_text


@dataclass
class Options:
    number: int = field(default=1, metadata={"help": "A number."})
    share: float = field(default=0.5, metadata={"help": "Between 0 and 1."})
    kind: str = field(default="a", metadata={"help": "A kind.", "choices": ["a", "b"]})
    flag: bool = field(default=False, metadata={"help": "Off unless given."})
    active: bool = field(default=True, metadata={"help": "On unless refused."})
    maybe: bool | None = field(default=None, metadata={"help": "On, off or unset."})
    ks: list[int] = field(default_factory=lambda: [1, 5], metadata={"help": "Numbers, e.g. 1 3."})


def parse(*argv, **defaults) -> Options:
    (options,) = parse_arguments((Options,), "For tests.", list(argv), **defaults)
    return options


@pytest.fixture
def refused(capsys):
    """Parse arguments that must be refused; returns the one line that says why."""

    def parse_refused(*argv, dataclasses=(Options,)) -> str:
        with pytest.raises(SystemExit) as ended:
            parse_arguments(dataclasses, "For tests.", list(argv))
        assert ended.value.code == 2
        output = capsys.readouterr()
        assert output.out == "" and "Traceback" not in output.err
        usage, *message = output.err.strip().splitlines()
        assert usage.startswith("usage: ") and "--help" in usage
        return "\n".join(message)

    return parse_refused


# Parsing


def test_defaults_given_values_and_defaults_of_the_command():
    assert parse() == Options()
    assert parse("--number", "3", "--kind", "b", "--share=0.25") == Options(number=3, kind="b", share=0.25)
    assert parse(number=7, kind="b") == Options(number=7, kind="b")
    assert parse("--number", "2", number=7).number == 2


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--nummer", "3"], "--nummer 3"),
        (["--num", "3"], "--num 3"),  # no abbreviations
        (["stray"], "stray"),
        (["--number", "three"], "--number: invalid int value: 'three'"),
        (["--share", "half"], "--share: invalid float value: 'half'"),
        (["--number"], "--number: expected one argument"),
        (["--kind", "c"], "--kind: invalid choice: 'c' (choose from"),
        (["--flag", "perhaps"], "--flag"),
        (["--maybe", "perhaps"], "--maybe"),
        (["--ks", "1,3"], "--ks: invalid int value: '1,3'"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_line(refused, argv, named):
    message = refused(*argv)
    assert named in message and "\n" not in message


@pytest.mark.parametrize(
    ("argv", "nearest"),
    [
        (["--nummer", "3"], "--number"),
        (["--shar=0.5"], "--share"),
        (["--max-bee", "--kindd", "a"], "--maybe, --kind"),
    ],
)
def test_f40_an_unknown_option_comes_with_the_nearest_one(refused, argv, nearest):
    assert f"(did you mean {nearest}?)" in refused(*argv)


def test_f40_an_option_like_none_comes_alone(refused):
    assert "did you mean" not in refused("--zzz", "1")
    assert "(did you mean --beta?)" in refused("--bta", "1", dataclasses=(ModelArguments,))


def test_options_that_are_given_are_known_also_with_default_values():
    assert given_options((Options,), ["--number", "1", "--no_active", "--ks", "3", "--maybe"]) == {
        *("number", "active", "ks", "maybe"),
    }
    assert given_options((Options,), []) == set()


@pytest.mark.parametrize("option", ["flag", "active", "maybe"])
@pytest.mark.parametrize(
    ("values", "expected"),
    [([], True), (["True"], True), (["1"], True), (["yes"], True), (["False"], False), (["0"], False), (["no"], False)],
)
def test_c81_booleans_are_booleans(option, values, expected):
    assert getattr(parse(f"--{option}", *values), option) is expected


def test_c81_a_bare_flag_leaves_the_next_option_alone_and_no_switches_off():
    assert parse("--maybe", "--number", "4") == Options(maybe=True, number=4)
    assert parse("--no_active").active is False


def test_c81_lists_are_separated_by_spaces():
    assert parse("--ks", "1", "3", "--number", "2") == Options(ks=[1, 3], number=2)


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--logging_steps", "0"], "logging_steps"),
        (["--warmup_steps", "-1"], "warmup_steps"),
        (["--lr_scheduler_type", "zigzag"], "lr_scheduler_type"),
        (
            ["--load_best_model_at_end", "--eval_strategy", "steps", "--save_strategy", "epoch"],
            "load_best_model_at_end",
        ),
    ],
)
def test_errors_of_training_arguments_end_with_2_and_name_the_setting(refused, argv, named):
    assert named in refused(*argv, "--output_dir", "unused", dataclasses=(VATTrainingArguments,))


def test_what_is_no_option_is_named_in_one_line(capsys):
    with pytest.raises(SystemExit):
        parse("a\nb")
    assert capsys.readouterr().err.splitlines()[-1].endswith("unknown arguments: 'a\\nb'; --help lists what is allowed")


def test_the_argument_classes_of_a_training_run_go_together():
    """Two classes with the same option cannot be parsed together."""
    model, data, training = parse_arguments(
        (ModelArguments, DataArguments, VATTrainingArguments),
        "For tests.",
        ["--beta", "0", "--train_file", "a.csv", "--drop_empty", "--start_epochs", "0", "--disable_tqdm", "--use_cpu"],
    )
    assert (model.beta, data.train_file, data.drop_empty) == (0, "a.csv", True)
    assert (training.start_epochs, training.disable_tqdm) == (0, True)


def test_help_ends_with_0(capsys):
    with pytest.raises(SystemExit) as ended:
        parse("--help")
    output = capsys.readouterr().out
    assert ended.value.code == 0 and "For tests." in output and "Between 0 and 1. (default: 0.5)" in output


# How a command ends


def raising(error: BaseException):
    def main():
        raise error

    return main


@pytest.mark.parametrize(
    ("main", "code", "message"),
    [
        (lambda: print("done"), 0, ""),
        (raising(InputError("no such column")), 2, "error: no such column"),
        (raising(FloatingPointError("not finite at step 3")), 1, "error: not finite at step 3"),
        (raising(KeyboardInterrupt("stopped at step 3")), 130, "stopped at step 3"),
        (raising(KeyboardInterrupt()), 130, "stopped"),
    ],
)
def test_run_ends_with_a_code_and_the_message_alone(main, code, message, capsys):
    with pytest.raises(SystemExit) as ended:
        run(main)
    assert ended.value.code == code
    assert capsys.readouterr().err.strip() == message


@pytest.mark.parametrize("lines", [1, 100_000])
def test_output_that_nobody_reads_ends_the_command_without_a_word(lines):
    """One line is still in the buffer when the command ends; of many the printing fails."""
    script = f"import sys; from hf_vat.cli import run; sys.stdin.read(); run(lambda: print('line\\n' * {lines}))"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipes = {"env": env, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as process:
        process.stdout.close()  # as `head` does when it has enough
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize(
    "error", [ValueError("a defect"), BrokenPipeError("of a socket"), KeyError("a defect"), RuntimeError("a defect")]
)
def test_defects_keep_their_traceback(error):
    with pytest.raises(type(error)) as raised:
        run(raising(error))
    assert raised.value is error


def test_f69_a_warning_is_one_sentence_and_comes_once(capsys):
    def main():
        for number in (1, 1, 2):
            warnings.warn(f"{number} of 3 texts are longer than the model takes.", stacklevel=1)

    before = warnings.showwarning
    with pytest.raises(SystemExit):
        run(main)
    assert capsys.readouterr().err.splitlines() == [
        "warning: 1 of 3 texts are longer than the model takes.",
        "warning: 2 of 3 texts are longer than the model takes.",
    ]
    assert warnings.showwarning is before


def test_f39_a_refused_command_leaves_no_empty_folder(tmp_path, capsys):
    (tmp_path / "there").mkdir()

    def main(error: type | None, fill: bool = False):
        output_folder("--output_dir", str(tmp_path / "new" / "folder"))
        output_folder("--work_dir", str(tmp_path / "there"))
        path = output_file("--html", str(tmp_path / "there" / "pages" / "page.html"))
        if fill:
            write_text(path, "a page")
        if error is not None:
            raise error("at last")

    def left() -> set[str]:
        return {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.name != RECORD_NAME}

    for error, fill, expected in (
        (InputError, False, {"there"}),
        (InputError, True, {"there", "there/pages", "there/pages/page.html"}),
        (None, False, {"there", "there/pages", "there/pages/page.html", "new", "new/folder"}),
        (InputError, False, {"there", "there/pages", "there/pages/page.html", "new", "new/folder"}),  # made before
    ):
        with pytest.raises(SystemExit):
            run(partial(main, error, fill))
        assert left() == expected


# Helpers


def test_only_the_first_process_is_the_main_one(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert is_main_process()
    monkeypatch.setenv("RANK", "0")
    assert is_main_process()
    monkeypatch.setenv("RANK", "1")
    assert not is_main_process()


def test_output_file_makes_the_folder_and_not_the_file(tmp_path):
    path = output_file("--html", str(tmp_path / "new" / "page.html"))
    assert path == tmp_path / "new" / "page.html" and path.parent.is_dir() and not path.exists()
    with pytest.raises(InputError, match=r"--html .*new is a folder; give a file"):
        output_file("--html", str(tmp_path / "new"))
    path.write_text("a file")
    with pytest.raises(InputError, match="the folder cannot be made"):
        output_file("--html", str(path / "below"))


def test_load_classifier_takes_ours_and_refuses_what_is_none(make_model, tokenizer, tmp_path):
    model = make_model("vat")
    model.save_pretrained(tmp_path / "vat")
    tokenizer.save_pretrained(tmp_path / "vat")
    loaded, loaded_tokenizer = load_classifier(str(tmp_path / "vat"))
    assert type(loaded) is type(model) and loaded_tokenizer("good")["input_ids"] == tokenizer("good")["input_ids"]

    with pytest.raises(InputError, match=r"nowhere cannot be loaded as a classifier: [^\n]*$"):
        load_classifier(str(tmp_path / "nowhere"))
    model.bert.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    with pytest.raises(InputError, match="is no trained classifier: it lacks"):
        load_classifier(str(tmp_path / "encoder"))


@given(text=st.text(st.sampled_from([*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"a ؜‎‏\u2028\u2029‪‫‬‭‮⁦⁧⁨⁩"])))
def test_f57_what_is_said_of_data_cannot_steer_the_terminal(text):
    def main():
        logging.getLogger("hf_vat").warning("the label %s", text)
        warnings.warn(text, stacklevel=1)
        raise InputError(f"the class {text}")

    root, err = logging.getLogger(), io.StringIO()
    handlers, root.handlers = root.handlers, []
    try:
        with redirect_stderr(err), warnings.catch_warnings(), pytest.raises(SystemExit):
            run(main)
    finally:
        root.handlers = handlers
    assert not any(
        unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp")
        for letter in err.getvalue().replace("\n", "").replace("\t", "")
    )
