"""The `hf-vat` command: it finds its commands and hands them the rest of the line."""

import subprocess
import sys
from pathlib import Path

import pytest

from hf_vat import commands


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


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_each_command_has_its_own_help(monkeypatch, capsys, name):
    code, out, _ = run_main(monkeypatch, capsys, name, "--help")
    assert code == 0 and f"hf-vat {name} [--option value ...]" in out and ("--test_file" in out or "--data_dir" in out)


def test_the_console_script_is_installed():
    script = Path(sys.executable).with_name("hf-vat")
    done = subprocess.run([script, "evaluate"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--model" in done.stderr
