"""Peak memory of training and explaining from a streamed CSV file, for a small and a large one.

    python benchmarks/streaming.py --check

The files hold planted texts: 10,000 and 1,000,000 rows. A small BERT is trained on each for 100 steps by
`hf-vat train --streaming`, and explains the texts by `hf-vat explain --streaming`: all 10,000 of the small file, the first
100,000 of the large one. Each command runs in a process of its own, whose peak is read from /proc, so Linux is needed. It
runs with MALLOC_ARENA_MAX=1 and MALLOC_MMAP_THRESHOLD_=65536, so that what is counted is what is held, not how glibc's
heaps fragment. Exits 1 if the large file takes more memory than the target allows.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import Row, compared, quiet, tell
from transformers import BertConfig, BertModel, set_seed

from hf_vat.commands import explain, train
from hf_vat.data import planted_evidence, planted_tokenizer, planted_vocabulary

TARGET = 1.05  # peak of the large file / peak of the small one
SMALL, STEPS, CHUNK = 10_000, 100, 10_000
EXPLAINED = 100_000  # rows at most
ALLOCATOR = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}


def main():
    if sys.argv[1:2] == ["--child"]:
        return run_child(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if the target is missed")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the large file (default: 1,000,000)")
    args = parser.parse_args()

    quiet()
    tell(rows(args.rows), args.check)


def rows(large: int = 1_000_000) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_encoder(folder / "encoder")
        for size in (SMALL, large):
            write_rows(folder / f"{size}.csv", size)
        return [
            compared(
                f"peak memory: {what} of a stream of {large:,} rows",
                f"of {SMALL:,} rows",
                [peak_memory(command(folder, large))],
                [peak_memory(command(folder, SMALL))],
                TARGET,
                unit="MiB",
            )
            for what, command in (
                (f"train, {STEPS} steps", train_command),
                (f"explain, at most {EXPLAINED:,}", explain_command),
            )
        ]


def train_command(folder: Path, size: int) -> list[str]:
    return [
        *("train", "--model_name_or_path", f"{folder}/encoder", "--max_length", "32", "--use_cpu"),
        *("--train_file", f"{folder}/{size}.csv", "--streaming", "--max_steps", str(STEPS)),
        *("--per_device_train_batch_size", "16", "--eval_strategy", "no", "--load_best_model_at_end", "False"),
        *("--output_dir", f"{folder}/model-{size}", "--disable_tqdm"),
    ]


def explain_command(folder: Path, size: int) -> list[str]:
    return [
        *("explain", "--model", f"{folder}/model-{SMALL}", "--test_file", f"{folder}/{size}.csv", "--streaming"),
        *("--max_eval_samples", str(EXPLAINED), "--show", "0", "--save_to", f"{folder}/{size}.jsonl"),
    ]


def peak_memory(command: list[str]) -> float:
    """Peak MiB of a command."""
    env = {**os.environ, **ALLOCATOR}
    done = subprocess.run([sys.executable, __file__, "--child", *command], capture_output=True, text=True, env=env)
    if done.returncode:
        sys.exit(done.stderr)
    return int(done.stdout.splitlines()[-1]) / 1024


def run_child(command: str, *options: str) -> None:
    sys.argv = ["hf-vat", *options]
    {"train": train, "explain": explain}[command].main()
    # Not ru_maxrss: a child starts with its parent's.
    [peak] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    print(peak)


def make_encoder(folder: Path) -> None:
    tokenizer = planted_tokenizer(planted_vocabulary())
    sizes = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 128}
    set_seed(0)
    BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=32, **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_rows(path: Path, size: int) -> None:
    texts = planted_evidence(CHUNK, 1, 1)["train"]
    rows = list(zip(texts["text"], texts.features["label"].int2str(texts["label"]), strict=True))
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for start in range(0, size, CHUNK):
            # The last word is another one each time, so that no two rows are equal.
            writer.writerows(
                (f"{text} row{start + row}", label) for row, (text, label) in enumerate(rows[: size - start])
            )


if __name__ == "__main__":
    main()
