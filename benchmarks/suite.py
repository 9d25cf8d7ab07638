"""All promised ratios in one table, and how costs grow.

    python benchmarks/suite.py --check        # or make bench
    python benchmarks/suite.py --quick --output runs/bench        # few rounds and small sizes: does it run?
    python benchmarks/suite.py --render       # docs/benchmarks.md again, from the files of results

Runs the scripts beside it one after the other, and writes what they found to benchmarks/results: `cpu.json` has the table,
`costs.json` the costs. With `--render`, and after a run into that folder, the page of the documentation is written from these
files, and from `gpu.json`, where there is one. The suite takes about 35 minutes on two cores with nothing beside it. Exits 1 if a
target is missed.
"""

import argparse
import json
import time
from pathlib import Path

import adversarial
import costs
import explain
import many_texts
import measuring
import streaming
import train_step
import word_encoder
from measuring import RESULTS, Row, quiet, rows_table, tell

from hf_vat.report.tables import markdown
from hf_vat.writing import write_text

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
SCRIPTS = {
    "train_step": (train_step.rows, {"rounds": 1}),
    "word_encoder": (word_encoder.rows, {"rounds": 3}),
    "streaming": (streaming.rows, {"large": 20_000}),
    "explain": (explain.rows, {"texts": 2, "rounds": 1, "many_samples": 200}),
    "many_texts": (many_texts.rows, {"texts": 100, "tiny_texts": 1000, "rounds": 1}),
    "adversarial": (adversarial.rows, {"epochs": 1, "train_size": 500, "texts": 20}),
}  # what measures, and the arguments of a quick run
NO_GPU = "No machine with a CUDA device has run `python benchmarks/gpu.py` yet."


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--quick", action="store_true", help="few rounds and small sizes, to see that everything runs")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--render", action="store_true", help="only write the page and its pictures from the results")
    args = parser.parse_args()
    if args.render:
        return render()
    quiet()
    explain.load(explain.MODEL)  # what is missing is told now, not after minutes
    started, rows = time.perf_counter(), []
    for name, (measure, quick) in SCRIPTS.items():
        print(f"{name} …", flush=True)
        rows += measure(**(quick if args.quick else {}))
    write(args.output / "cpu.json", rows, time.perf_counter() - started)
    print("costs …", flush=True)
    grown = costs.measure(**({"rounds": 1, "longest": 32} if args.quick else {}))
    write_text(args.output / "costs.json", json.dumps(grown, indent=1, allow_nan=False))
    if args.output == RESULTS:
        render()
    tell(rows, args.check)


def write(path: Path, rows: list[Row], seconds: float) -> None:
    """Write rows to a file of results, in place of the earlier one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {"machine": measuring.machine(), "date": time.strftime("%Y-%m-%d"), "seconds": round(seconds)}
    found["rows"] = [row.to_dict() for row in rows]
    write_text(path, json.dumps(found, indent=1, allow_nan=False))


def render() -> None:
    """Write the page, and the pictures of the costs."""
    write_text(PAGE, rendered(PAGE.read_text(encoding="utf-8"), RESULTS))
    costs.draw(json.loads((RESULTS / "costs.json").read_text(encoding="utf-8")), costs.PICTURES)


def rendered(page: str, results: Path) -> str:
    """The page with what its files of results say between its marks."""
    grown = json.loads((results / "costs.json").read_text(encoding="utf-8"))
    gpu = results / "gpu.json"
    parts = {
        "ratios": of_rows(results / "cpu.json"),
        "costs": f"{grown['machine']}; medians of {grown['rounds']} rounds.\n\n{costs.page(grown)}",
        "gpu": of_rows(gpu) if gpu.is_file() else NO_GPU,
    }
    for name, text in parts.items():
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->\n")
        page = f"{before}{begin}\n{text}\n\n{end}{after}"
    return page


def of_rows(path: Path) -> str:
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [Row.from_dict(row) for row in found["rows"]]
    *_, shown = markdown(rows_table(rows)).partition("\n\n")
    return f"{found['date']}, {found['seconds'] / 60:.0f} minutes, {found['machine']}.\n\n{shown}"


if __name__ == "__main__":
    main()
