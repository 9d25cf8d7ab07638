"""The command line: `hf-vat train`, `explain`, `words`, `evaluate`, `distill`, `probe`, `reproduce`."""

import sys
from difflib import get_close_matches
from importlib import import_module

from hf_vat.cli import run

COMMANDS = {
    "train": "fine-tune a classifier whose attention is trained to explain",
    "explain": "show which words decided",
    "words": "which words decide over all texts of a corpus",
    "evaluate": "compare explanation methods: how faithful, how sure, how fast",
    "distill": "train a model that explains a classifier in one forward pass",
    "probe": "may a classifier's attention be read as an explanation?",
    "reproduce": "a paper's tables again, beside its numbers",
}


def main() -> None:
    """Run the command that the first argument names; the process ends with 2 if there is no such command."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name not in COMMANDS:
        listed = "\n".join(f"  {command:10}{text}" for command, text in COMMANDS.items())
        usage = f"usage: hf-vat COMMAND [--option value ...]\n\n{listed}\n\nhf-vat COMMAND --help lists its options."
        if name in ("--help", "-h"):
            print(usage)
            return
        nearest = "".join(f"; did you mean {found}?" for found in get_close_matches(name, COMMANDS, 1))
        print(f"{usage}\n\nerror: there is no command {name!r}{nearest}", file=sys.stderr)
        sys.exit(2)
    sys.argv = [f"hf-vat {name}", *sys.argv[2:]]
    run(import_module(f"hf_vat.commands.{name}").main)
