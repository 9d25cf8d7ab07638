"""What must work where nothing but the installed package is there; `make release` runs it outside the source tree.

A classifier is trained from a CSV file, explained, measured, saved, described and opened again, with a toy encoder that is made
here.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertModel, BertTokenizerFast

import hf_vat
from hf_vat import metrics

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "good", "great", "bad", "awful", "film", "plot"]
LABELS = {"good": "positive", "great": "positive", "bad": "negative", "awful": "negative"}


def main():
    source = Path(hf_vat.__file__).resolve()
    assert "site-packages" in source.parts, f"{source} is not the installed package"
    with TemporaryDirectory() as folder:
        check(Path(folder))
    print(f"hf_vat {hf_vat.__version__} works from {source.parent}")


def check(folder: Path) -> None:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(ENTRIES), **sizes)).save_pretrained(folder / "encoder")
    vocabulary = {entry: position for position, entry in enumerate(ENTRIES)}
    BertTokenizerFast(vocab=vocabulary).save_pretrained(folder / "encoder")
    rows = [f"the {word} {noun},{label}" for word, label in LABELS.items() for noun in ("film", "plot")]
    (folder / "rows.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")

    command(
        "train",
        "--model_name_or_path",
        "encoder",
        "--train_file",
        "rows.csv",
        "--validation_file",
        "rows.csv",
        "--test_file",
        "rows.csv",
        "--output_dir",
        "run",
        "--max_length",
        "16",
        "--use_cpu",
        folder=folder,
    )
    card = (folder / "run" / "README.md").read_text(encoding="utf-8")  # from a template in the package
    assert "model-index" in card and str(folder) not in card
    command("explain", "--model", "run", "--text", "the good film", "--html", "page.html", folder=folder)
    assert "good" in (folder / "page.html").read_text(encoding="utf-8")  # from a template as well
    command("reproduce", "--help", folder=folder)

    model = AutoModelForSequenceClassification.from_pretrained(folder / "run")
    tokenizer = AutoTokenizer.from_pretrained(folder / "run")
    [explanation] = hf_vat.explain(model, tokenizer, ["the good film"])
    assert explanation.words == ["the", "good", "film"] and abs(sum(explanation.scores) - 1) < 1e-5
    for name in metrics.NAMES:  # their folders are in the package
        assert metrics.load(name).features
    found = metrics.load("post_hoc_accuracy").compute(predictions=[[0.2, 0.8]], kept=[[[0.4, 0.6]]], references=[1])
    assert json.loads(json.dumps(found))


def command(*arguments: str, folder: Path) -> None:
    subprocess.run(
        [Path(sys.executable).with_name("hf-vat"), *arguments], cwd=folder, check=True, stdin=subprocess.DEVNULL
    )


if __name__ == "__main__":
    main()
