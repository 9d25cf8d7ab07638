"""Reproduce tables and curves of the VAT paper, beside its numbers, with claims and their tests.

    hf-vat reproduce --paper vat --tables 2 3 4 --datasets trec subj --encoders lstm minilm --seeds 3 \
        --data_dir ../shared/data --output_dir docs/results

Every system is trained, explained and measured for every data set and seed; finished cells are kept in --work_dir and not
run again, so an interrupted reproduction goes on where it stopped.
"""

import shlex
import sys
from dataclasses import dataclass, field

from hf_vat.cli import is_main_process, output_folder, parse_arguments
from hf_vat.errors import InputError, import_extra
from hf_vat.reproduction import DATASETS, ENCODERS, SYSTEMS, TABLES, Cell, CellSettings, VATResults, run_cells


@dataclass
class ReproduceArguments:
    paper: str = field(default="vat", metadata={"help": "The paper.", "choices": ["vat"]})
    tables: list[int] = field(default_factory=lambda: list(TABLES), metadata={"help": "Tables of the paper: 2, 3, 4."})
    datasets: list[str] = field(
        default_factory=lambda: ["trec"], metadata={"help": f"One or more of {', '.join(DATASETS)}."}
    )
    encoders: list[str] = field(
        default_factory=lambda: ["lstm"], metadata={"help": f"One or more of {', '.join(ENCODERS)}."}
    )
    seeds: int = field(default=3, metadata={"help": "Number of seeds."})
    data_dir: str | None = field(
        default=None, metadata={"help": "Folder with a folder of files for each data set; the Hub by default."}
    )
    work_dir: str = field(default="runs/reproduce", metadata={"help": "Folder for the cells."})
    output_dir: str = field(default="runs/results", metadata={"help": "Folder for tables and curves."})
    max_train_samples: int | None = field(default=None, metadata={"help": "Rows of training data; all by default."})
    max_eval_samples: int | None = field(default=None, metadata={"help": "Rows of test data; all by default."})
    bf16: bool = field(default=False, metadata={"help": "Train in bfloat16."})
    jobs: int = field(default=1, metadata={"help": "Cells that run at the same time."})


def main():
    (args,) = parse_arguments((ReproduceArguments,), __doc__)
    if not is_main_process():
        return
    for option, allowed in (("datasets", DATASETS), ("encoders", ENCODERS), ("tables", TABLES)):
        unknown = [value for value in getattr(args, option) if value not in allowed]
        if unknown:
            raise InputError(f"--{option} has {unknown[0]}; there are {', '.join(map(str, allowed))}.")
    for option in ("seeds", "jobs"):
        if getattr(args, option) < 1:
            raise InputError(f"--{option} is {getattr(args, option)}; it must be at least 1.")
    import_extra("matplotlib", "viz")
    import_extra("scipy.stats")
    output = output_folder("--output_dir", args.output_dir)
    output_folder("--work_dir", args.work_dir)
    cells = [
        Cell(dataset, encoder, system, seed)
        for encoder in args.encoders
        for dataset in args.datasets
        for seed in range(args.seeds)
        for system in SYSTEMS
    ]
    settings = CellSettings(args.data_dir, args.work_dir, args.max_train_samples, args.max_eval_samples, args.bf16)
    results = VATResults(run_cells(cells, settings, args.jobs))
    path = results.write(output, args.tables, shlex.join(["hf-vat", "reproduce", *sys.argv[1:]]))
    print(f"\n{path.read_text(encoding='utf-8')}\nWritten to {path}")
