"""What the studies of recipes share: their options, validation data, and cells that are finished once."""

import json
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from datasets import DatasetDict

from hf_vat.data import load_paper_dataset
from hf_vat.errors import InputError
from hf_vat.reproduction.running import RESULT


@dataclass
class StudyArguments:
    data_dir: str = field(default="../shared/data", metadata={"help": "Folder with a folder for each data set."})
    datasets: str = field(default="trec,sst2", metadata={"help": "Data sets, with commas between them."})
    encoders: str = field(default="lstm", metadata={"help": "Encoders, with commas between them."})
    seeds: int = field(default=3, metadata={"help": "Number of seeds."})
    only: str | None = field(
        default=None, metadata={"help": "Rows to run, with semicolons between them; all if left out."}
    )
    work_dir: str = field(default="runs/study", metadata={"help": "Folder for finished cells."})
    output: str = field(default="runs/study.md", metadata={"help": "Markdown file to write."})
    bf16: bool = field(default=False, metadata={"help": "Train MiniLM in bfloat16."})
    jobs: int = field(default=1, metadata={"help": "Cells that run at the same time."})


def load_validation(args: StudyArguments, dataset: str) -> DatasetDict:
    """A data set without its test split, which no choice may depend on."""
    data = load_paper_dataset(dataset, args.data_dir)
    data.pop("test")
    return data


def cell_folder(args: StudyArguments, dataset: str, encoder: str, name: str, seed: int) -> Path:
    folder = "".join(character if character.isalnum() else "-" for character in name)
    return Path(args.work_dir) / f"{dataset}-{encoder}-{seed}" / folder


def finished(folder: Path, settings: dict) -> dict | None:
    """The result in a cell's folder, if there is one.

    Raises:
        InputError: if it was made with other settings.
    """
    path = folder / RESULT
    if not path.is_file():
        return None
    result = json.loads(path.read_text(encoding="utf-8"))
    if result["settings"] != settings:
        raise InputError(f"{path} was made with other settings; choose another --work_dir.")
    return result


def beside_control(values: np.ndarray, control: np.ndarray | None, column: str) -> str:
    """A cell of a table: mean ± sd over seeds in percent, and against the control, if there is one, in brackets. Entropy is no
    percentage."""
    if np.isnan(values).any():
        return ""
    if column == "entropy":
        return f"{values.mean():.2f}"
    spread = f" ± {100 * values.std(ddof=1):.1f}" if len(values) > 1 else ""
    against = ""
    if control is not None:
        against = f" ({100 * (values - control).mean():+.1f}; {(values > control).sum()} of {len(values)})"
    return f"{100 * values.mean():.1f}{spread}{against}"


def written_by(script: str) -> str:
    """The line of a page that names the command which made it."""
    return f"Written by `{shlex.join(['python', f'benchmarks/{script}', *sys.argv[1:]])}`."


def write(args: StudyArguments, text: str) -> None:
    Path(args.output).write_text(text, encoding="utf-8")
    print(text)
