"""A file of texts explained by attention, against a bare script that predicts them.

    python benchmarks/many_texts.py --check
    python benchmarks/many_texts.py --check --texts 100000 --tiny_texts 100000 --rounds 1

Ours is `hf-vat explain --streaming --save_to`, in this process. The bare script loads the same model, reads the same CSV file,
tokenizes the texts, and runs them in batches as large, sorted by length; it writes nothing. Once with the quickstart's MiniLM
and once with a BERT of 2 layers of 64 numbers, whose forward pass costs less than what is around it. The texts are sentences
of Rotten Tomatoes, again and again, each with its row. Exits 1 if the target is missed.
"""

import argparse
import csv
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from explain import MODEL, bare_forward, load
from measuring import ROUNDS, Row, compared, interleaved, quiet, tell
from transformers import set_seed

from hf_vat import BertForVATClassification, BertVATConfig
from hf_vat.commands import explain
from hf_vat.data.offline import rotten_tomatoes

TARGET = 0.9  # ours / the bare script's, in texts per second
TEXTS, TINY_TEXTS = 2_000, 20_000
SENTENCES = 2_000  # that differ
TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if the target is missed")
    parser.add_argument("--model", default=MODEL, help="classifier (default: the quickstart's)")
    parser.add_argument("--texts", type=int, default=TEXTS, help=f"for the classifier (default: {TEXTS:,})")
    parser.add_argument(
        "--tiny_texts", type=int, default=TINY_TEXTS, help=f"for the small BERT (default: {TINY_TEXTS:,})"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of both (default: {ROUNDS})")
    args = parser.parse_args()
    quiet()
    tell(rows(args.model, args.texts, args.tiny_texts, args.rounds), args.check)


def rows(model: str = MODEL, texts: int = TEXTS, tiny_texts: int = TINY_TEXTS, rounds: int = ROUNDS) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_tiny(folder / "tiny", model)
        found = []
        for what, path, size, target in (
            ("MiniLM", model, texts, TARGET),
            ("BERT of 2 layers of 64", folder / "tiny", tiny_texts, None),
        ):
            file = folder / f"{size}.csv"
            write_texts(file, size)
            ours, baseline = interleaved(
                lambda path=path, file=file: explain_file(path, file),
                lambda path=path, file=file: bare(path, file),
                rounds,
            )
            told = f"file of {size:,} texts by attention: {what}"
            found.append(compared(told, "bare script", ours, baseline, target, "at least", "texts/s", size))
        return found


def explain_file(model: str | Path, file: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = ["--model", str(model), "--test_file", str(file), "--streaming", "--show", "0"]
        argv = ["hf-vat explain", *options, "--save_to", f"{folder}/explanations.jsonl"]
        with patch.object(sys, "argv", argv), redirect_stdout(StringIO()):
            explain.main()


def bare(folder: str | Path, file: Path) -> None:
    model, tokenizer = load(str(folder))
    with open(file, encoding="utf-8", newline="") as rows:
        bare_forward(model, tokenizer, [row["text"] for row in csv.DictReader(rows)])


def make_tiny(folder: Path, tokenizer_of: str) -> None:
    _, tokenizer = load(tokenizer_of)
    set_seed(0)
    BertForVATClassification(BertVATConfig(vocab_size=len(tokenizer), **TINY)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_texts(path: Path, size: int) -> None:
    sentences = rotten_tomatoes(1, 1, SENTENCES)["test"]["text"][:]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text"])
        # The last word is another one each time, so that no two rows are equal.
        writer.writerows([f"{sentences[row % SENTENCES]} {row}"] for row in range(size))


if __name__ == "__main__":
    main()
