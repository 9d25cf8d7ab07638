"""What the benchmarks share: interleaved rounds, a row for each promised ratio, the machine, and files of results."""

import platform
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import torch
from transformers.utils import logging

from hf_vat.report import Table, table
from hf_vat.reproduction.cells import machine as versions

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5
_COLUMNS = ("what", "against", "unit", "ours", "baseline", "ratio", "quartiles", "target")


@dataclass(frozen=True)
class Row:
    """A measured ratio, ours to that of the baseline, and what was promised of it.

    Attributes:
        what, against: what is measured, and the baseline.
        unit: of both numbers, such as "s" or "texts/s".
        ours, baseline: medians over rounds.
        bound: whether the ratio is to be "at most" or "at least" the target.
        target: None, where nothing was promised.
        rounds: in which both were measured, in turn.
        low, high: quartiles of the rounds' ratios.
    """

    what: str
    against: str
    unit: str
    ours: float
    baseline: float
    bound: str
    target: float | None
    rounds: int
    low: float
    high: float

    @property
    def ratio(self) -> float:
        return self.ours / self.baseline

    @property
    def met(self) -> bool:
        if self.target is None:
            return True
        return self.ratio <= self.target if self.bound == "at most" else self.ratio >= self.target

    def to_dict(self) -> dict:
        return asdict(self) | {"ratio": self.ratio, "met": self.met}

    @classmethod
    def from_dict(cls, given: dict) -> "Row":
        return cls(**{field.name: given[field.name] for field in fields(cls)})


def compared(
    what: str,
    against: str,
    ours: Sequence,
    baseline: Sequence,
    target: float | None,
    bound: str = "at most",
    unit: str = "s",
    amount: float | None = None,
) -> Row:
    """The row of two measurements.

    Args:
        ours, baseline: what each round measured, shape [rounds], or of each of its steps, shape [rounds, steps]: the median over
            rounds counts, of steps the mean of these.
        amount: what was done in a round or step, for seconds that are to be shown as a rate; `unit` is then that of the rate.
    """
    rounds = [np.asarray(one, dtype=float).reshape(len(one), -1) for one in (ours, baseline)]  # [rounds, steps]
    totals = [np.median(one, 0).mean() for one in rounds]
    ratios = rounds[0].mean(1) / rounds[1].mean(1)
    if amount is not None:
        totals, ratios = [amount / total for total in totals], 1 / ratios
    low, high = np.quantile(ratios, (0.25, 0.75)).tolist()
    return Row(what, against, unit, float(totals[0]), float(totals[1]), bound, target, len(ratios), low, high)


def interleaved(ours: Callable, baseline: Callable, rounds: int = ROUNDS) -> tuple[list[float], list[float]]:
    """Seconds of both in each round; which of them is first changes from round to round."""
    seconds: dict[Callable, list[float]] = {ours: [], baseline: []}
    for number in range(rounds):
        for call in (ours, baseline) if number % 2 == 0 else (baseline, ours):
            seconds[call].append(timed(call))
    return seconds[ours], seconds[baseline]


def timed(call: Callable) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def rows_table(rows: Sequence[Row]) -> Table:
    return Table("", _COLUMNS, [_cells(row) for row in rows])


def _cells(row: Row) -> list[str]:
    target = "–"
    if row.target is not None:
        target = f"{'≤' if row.bound == 'at most' else '≥'} {row.target:.2f}{'' if row.met else ', missed'}"
    quartiles = f"{row.low:.3f} to {row.high:.3f}" if row.rounds > 1 else "–"
    return [
        row.what,
        row.against,
        row.unit,
        number(row.ours),
        number(row.baseline),
        f"{row.ratio:.3f}",
        quartiles,
        target,
    ]


def number(value: float) -> str:
    """A number with three digits, or all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def tell(rows: Sequence[Row], check: bool) -> None:
    """Print the rows and leave, with 1 if a target is missed and that is checked."""
    shown = rows_table(rows)
    print(machine())
    print(table(shown.columns, shown.rows))
    sys.exit(int(check and not all(row.met for row in rows)))


def machine() -> str:
    """Processor, its instructions and threads that torch uses, cores, GPU, versions."""
    cpu = platform.processor()
    if Path("/proc/cpuinfo").is_file():
        named = [
            line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
        ]
        cpu = named[0] if named else cpu
    capability = torch.backends.cpu.get_cpu_capability()
    return f"{cpu} ({capability}, {torch.get_num_threads()} threads), {versions()}"


def quiet() -> None:
    """Leave the terminal to the table."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    warnings.filterwarnings("ignore")
