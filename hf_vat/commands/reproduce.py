"""Reproduce tables and curves of a paper, beside its numbers, with claims and their tests.

    hf-vat reproduce vat --table 2,3,4,5,6 --datasets trec,sst2 --encoders lstm,minilm --seeds 3 --data_dir data
    hf-vat reproduce vmask --table 3,4,9 --datasets trec,sst2 --encoders cnn,lstm --seeds 3 --data_dir data
    hf-vat reproduce attention-scores --datasets sst2,20news_1 --encoders dp,dp-l --seeds 3 --data_dir data
    hf-vat reproduce word-objectives --datasets trec,sst2 --seeds 3 --max_train_samples 3000 --data_dir data

Every system is trained, explained and measured for every data set and seed; finished cells are kept in --work_dir and not
run again, so an interrupted reproduction goes on where it stopped.

    hf-vat reproduce vmask --recipe paper,code --systems base,VMASK --datasets trec --encoders cnn --seeds 5 --data_dir data

trains VMASK also as its published code does, and writes vmask-code.md.

    hf-vat reproduce vmask --results docs/results/vmask.json --output_dir docs/results

writes the tables again from what such a command has written, without training anything, and

    hf-vat reproduce vmask --extend docs/results/vmask.json --datasets imdb --encoders cnn --data_dir data

adds to them what it trains.
"""

import shlex
import sys
from collections.abc import Collection
from dataclasses import dataclass

from hf_vat.arguments import argument
from hf_vat.cli import given_options, output_folder, parse_arguments
from hf_vat.errors import InputError, import_extra
from hf_vat.options import refuse_without_effect, settings_of
from hf_vat.processes import is_main_process
from hf_vat.reproduction import DATASETS, PAPERS, CellSettings, Paper, run_cells
from hf_vat.reproduction.attention_scores import SYNTHETIC
from hf_vat.reproduction.encoders import under_recipe
from hf_vat.reproduction.pages import refuse_foreign


def _of_each(what: str) -> str:
    return "; ".join(f"of {name} {','.join(map(str, getattr(paper, what)))}" for name, paper in PAPERS.items())


def _by_default(what: str) -> str:
    return f"By default {'; '.join(f'of {name} ' + ','.join(getattr(paper, f'default_{what}')) for name, paper in PAPERS.items())}."


@dataclass
class ReproduceArguments:
    table: str | None = argument(
        None, "Tables of the paper, with commas between them; all that need no further files by default."
    )
    datasets: str | None = argument(
        None,
        f"One or more of {','.join(DATASETS)}; of attention-scores also {','.join(SYNTHETIC)}. {_by_default('datasets')}",
    )
    encoders: str | None = argument(None, f"One or more: {_of_each('encoders')}. {_by_default('encoders')}")
    seeds: int = argument(3, "Number of seeds.")
    add: str | None = argument(
        None, "Further settings with their own number of seeds, such as trec/minilm/2,sst2/minilm/1."
    )
    recipe: str = argument(
        "paper", "'paper', or of VMASK also 'code', what the published code does, or both with a comma between them."
    )
    systems: str | None = argument(None, f"Some of the systems: {_of_each('systems')}; all by default.")
    results: str | None = argument(
        None, "A JSON file of such a command, to write its tables again; nothing is run, and pictures stay."
    )
    extend: str | None = argument(
        None,
        "A JSON file of such a command with other data sets or encoders, which then are on the page too; nothing of it is "
        "run again.",
    )
    data_dir: str | None = argument(
        None, "Folder with a folder of files for each data set, or that of the only one; the Hub by default."
    )
    work_dir: str = argument("runs/reproduce", "Folder for the cells of one paper.")
    output_dir: str = argument("runs/results", "Folder for tables and curves.")
    max_train_samples: int | None = argument(None, "Rows of training data; all by default.")
    max_eval_samples: int | None = argument(None, "Rows of validation and of test data; all by default.")
    bf16: bool = argument(False, "Train pretrained encoders in bfloat16.")
    jobs: int = argument(1, "Cells that run at the same time.")


ARGUMENTS = (ReproduceArguments,)


def main():
    argv = sys.argv[1:]
    name = argv.pop(0) if argv and not argv[0].startswith("-") else None
    if name not in PAPERS and not {"-h", "--help"} & set(argv):
        raise InputError(
            f"The paper is {name!r}; it must be one of {', '.join(PAPERS)}, as in: hf-vat reproduce vat --table 2."
        )
    (args,) = parse_arguments(ARGUMENTS, __doc__, argv)
    if not is_main_process():
        return
    refuse_without_effect("reproduce", given_options(ARGUMENTS, argv), settings_of(args))
    paper = PAPERS[name]
    tables = [int(number) for number in _listed("table", args.table, paper.tables, paper.by_default)]
    datasets = _listed("datasets", args.datasets, paper.cell.datasets, paper.default_datasets)
    encoders = _listed("encoders", args.encoders, paper.encoders, paper.default_encoders)
    recipes = _listed("recipe", args.recipe, paper.titles)
    systems = _listed("systems", args.systems, paper.systems, paper.systems)
    for option in ("max_train_samples", "max_eval_samples"):
        rows = getattr(args, option)
        if rows is not None and rows < 20:
            raise InputError(f"--{option} is {rows}; it must be at least 20, or left out for all rows.")
    if args.results is not None:
        output = output_folder("--output_dir", args.output_dir)
        path = paper.rewrite(args.results, output, tables if args.table else None)
        print(f"Written to {path}")
        return
    wanted = {(dataset, encoder): args.seeds for encoder in encoders for dataset in datasets}
    wanted |= _added(args.add, paper)
    settings = CellSettings(args.data_dir, args.work_dir, args.max_train_samples, args.max_eval_samples, args.bf16)
    paper.check(settings, [dataset for dataset, _ in wanted], tables, systems)
    import_extra("matplotlib", "viz")
    import_extra("scipy.stats")
    import_extra("sklearn")
    output = output_folder("--output_dir", args.output_dir)
    refuse_foreign(output, under_recipe(paper.file, [one for one in paper.titles if one in recipes][-1]))
    output_folder("--work_dir", args.work_dir)
    cells = [
        cell
        for recipe in recipes
        for (dataset, encoder), seeds in wanted.items()
        for cell in paper.cells(dataset, under_recipe(encoder, recipe), seeds, tables, systems)
    ]
    earlier = None if args.extend is None else paper.earlier(args.extend, settings, cells)
    lines = [f"{one.encoder}, {one.kind}: {one.describe(settings)}" for one in cells if one.kind not in one.timed]
    print("\n".join(dict.fromkeys(lines)), flush=True)
    results = paper.results(run_cells(cells, settings, args.jobs))
    command = shlex.join(["hf-vat", "reproduce", *sys.argv[1:]])
    path = paper.write(results, settings, tables, output, command, earlier)
    print(f"\n{path.read_text(encoding='utf-8')}\nWritten to {path}")


def _listed(option: str, given: str | None, allowed: Collection, by_default: Collection = ()) -> list[str]:
    allowed = list(map(str, allowed))
    values = list(map(str, by_default)) if given is None else given.split(",")
    for value in values:
        if value not in allowed:
            raise InputError(f"--{option} has {value!r}; there are {','.join(allowed)}.")
    return list(dict.fromkeys(values))


def _added(given: str | None, paper: Paper) -> dict[tuple[str, str], int]:
    """Numbers of seeds by data set and encoder."""
    found = {}
    for setting in given.split(",") if given else []:
        dataset, encoder, seeds = [*setting.split("/"), "", ""][:3]
        if (
            dataset not in paper.cell.datasets
            or encoder not in paper.encoders
            or not (seeds.isdecimal() and len(seeds) < 10)
            or int(seeds) < 1
        ):
            raise InputError(f"--add has {setting!r}; write data set, encoder and seeds, such as trec/minilm/2.")
        found[dataset, encoder] = int(seeds)
    return found
