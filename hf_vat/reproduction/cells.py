"""Cells of a reproduction: a training run on one data set with one seed, measured once, and what runs many of them.

A finished cell is a folder with a file `result.json`, and is never run again. What was interrupted goes on.
"""

import json
import multiprocessing
import os
import platform
import shutil
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, ClassVar

import torch
from datasets import DatasetDict
from transformers import TrainerCallback

from hf_vat.data import PAPER_DATASETS, DataArguments, load_paper_dataset
from hf_vat.errors import InputError
from hf_vat.inference import progress_bar
from hf_vat.pretrained import load_classifier
from hf_vat.training import ModelArguments, VATTrainingArguments, describe_recipe, is_finished, train_classifier
from hf_vat.writing import locked, write_text

from .encoders import Encoder

DATASETS = tuple(PAPER_DATASETS)
RESULT = "result.json"
_MODEL = {"max_length": 256}  # of all runs, where encoder and system say nothing else
_TRAINING = {"train_sampling_strategy": "group_by_length"}
_PACKAGES = ("torch", "transformers", "datasets")


@dataclass(frozen=True)
class CellSettings:
    """What all cells of a reproduction share.

    Attributes:
        data_dir: folder with one folder of files for each data set, or that of the only one; None for the Hub.
        work_dir: folder for the cells.
        max_train_samples, max_eval_samples: rows of training and of validation and test data; None for all.
        bf16: train pretrained encoders in bfloat16; word encoders stay in float32.
    """

    data_dir: str | None = None
    work_dir: str = "runs/reproduce"
    max_train_samples: int | None = None
    max_eval_samples: int | None = None
    bf16: bool = False

    def load(self, dataset: str) -> DatasetDict:
        """The data set's splits, cut to the numbers of rows.

        Raises:
            InputError: if it cannot be loaded.
        """
        return self.cut(load_paper_dataset(dataset, self.data_dir))

    def cut(self, data: DatasetDict) -> DatasetDict:
        """Splits with at most the numbers of rows."""
        for split in data:
            most = self.max_train_samples if split == "train" else self.max_eval_samples
            if most is not None and most < len(data[split]):
                data[split] = data[split].shuffle(seed=0).select(range(most))
        return data


@dataclass(frozen=True)
class Cell(ABC):
    """One training run, on one data set with one seed.

    Attributes:
        kind: which run; one of `kinds`. Those of `timed` measure time, and run with nothing beside them.
    """

    dataset: str
    encoder: str
    kind: str
    seed: int

    datasets: ClassVar[Collection[str]] = DATASETS
    encoders: ClassVar[Mapping[str, Encoder]]
    kinds: ClassVar[tuple[str, ...]]
    timed: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self):
        for name, allowed in (("dataset", self.datasets), ("encoder", self.encoders), ("kind", self.kinds)):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} is {getattr(self, name)!r}; there are {', '.join(allowed)}.")

    @property
    def name(self) -> str:
        kind = "".join(character if character.isalnum() else "-" for character in self.kind)
        return f"{self.dataset}-{self.encoder}-{kind}-{self.seed}"

    @property
    def settled(self) -> Any:
        """The encoder, with what is settled for the system on it: an [`Encoder`] of the paper's own class."""
        return self.encoders[self.encoder]

    @property
    @abstractmethod
    def needs(self) -> "Cell | None":
        """The cell that has to be finished before this one, if there is one."""

    def load(self, settings: CellSettings) -> DatasetDict:
        """The splits of its data set.

        Raises:
            InputError: if it cannot be loaded.
        """
        return settings.load(self.dataset)

    @property
    def trained_as(self) -> str:
        """The paper's system that is trained."""
        return self.kind

    @abstractmethod
    def measure(self, settings: CellSettings, data: DatasetDict) -> dict:
        """Train, explain and measure; what is found, for JSON."""

    def decisive(self, settings: CellSettings) -> dict:
        """What must agree before a finished cell, or its trained model, is used again."""
        return {
            "data": "Hub" if settings.data_dir is None else "files",
            "max_train_samples": settings.max_train_samples,
            "max_eval_samples": settings.max_eval_samples,
            "bf16": settings.bf16 and self.settled.pretrained,
            **self.settled.decisive(self.trained_as),
        }

    def arguments(self, settings: CellSettings) -> tuple[ModelArguments, dict]:
        """What makes the system: its model, and its part of [`VATTrainingArguments`]."""
        model, training = self.settled.system(self.trained_as)
        return ModelArguments(**(_MODEL | self.settled.model() | model)), _TRAINING | self.settled.training | training

    def describe(self, settings: CellSettings) -> str:
        """How the system is trained, as `hf-vat train` says it."""
        model, training = self.arguments(settings)
        defaults = {field.name: field.default for field in fields(VATTrainingArguments)}
        return describe_recipe(vars(model) | defaults | training)

    def train(
        self, settings: CellSettings, data: DatasetDict, callbacks: Sequence[TrainerCallback] = (), **training
    ) -> Path:
        """Train the system, unless that is done already; what was interrupted goes on.

        Args:
            training: further settings of [`VATTrainingArguments`]: when it is evaluated and kept.

        Returns:
            The folder with the model and its tokenizer.

        Raises:
            InputError: if the folder holds another run, or the encoder cannot be loaded.
        """
        folder = self.folder(settings) / "model"
        record = folder.with_suffix(".json")  # beside the folder, which has to be empty in the beginning
        decisive = self.decisive(settings)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if not record.is_file():
            write_text(record, json.dumps(decisive))
        elif json.loads(record.read_text(encoding="utf-8")) != json.loads(json.dumps(decisive)):
            raise InputError(f"{folder} was trained with other settings (see {record}); choose another folder.")
        if not is_finished(folder):
            model, of_system = self.arguments(settings)
            train_classifier(
                model,
                DataArguments(dataset_name=self.dataset),
                VATTrainingArguments(
                    str(folder),
                    logging_steps=10_000,  # once for each epoch, as VATTrainer does anyway
                    disable_tqdm=True,
                    report_to="none",
                    use_cpu=not torch.cuda.is_available(),
                    resume_from_checkpoint="last",
                    seed=self.seed,
                    bf16=decisive["bf16"],
                    **(of_system | training),
                ),
                data,
                callbacks,
            )
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):  # two thirds of the space, of no use any more
            for path in folder.glob(f"checkpoint-*/{name}"):
                path.unlink()
        return folder

    def best(self, settings: CellSettings, data: DatasetDict, **training):
        """Train the system, unless that is done already; model and tokenizer of the epoch that is best on validation data.

        Args:
            training: further settings of [`VATTrainingArguments`].

        Raises:
            InputError: if the folder holds another run, or the encoder cannot be loaded.
        """
        folder = self.train(
            settings,
            data,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=1,
            load_best_model_at_end=True,
            metric_for_best_model="accuracy",
            **training,
        )
        for checkpoint in folder.glob("checkpoint-*"):  # the best is what the folder itself holds
            shutil.rmtree(checkpoint)
        return load_classifier(str(folder))

    def folder(self, settings: CellSettings) -> Path:
        return Path(settings.work_dir) / self.name

    def explanations(self, settings: CellSettings, name: str) -> Path:
        """File of the explanations of test texts by a method, or for a row of the tables."""
        return self.folder(settings) / f"{name.replace(' ', '-').replace('(', '').replace(')', '')}.jsonl"

    def result(self, settings: CellSettings) -> dict | None:
        """What was measured, if the cell is finished.

        Raises:
            InputError: if it was made with other settings.
        """
        path = self.folder(settings) / RESULT
        if not path.is_file():
            return None
        result = json.loads(path.read_text(encoding="utf-8"))
        if told := self.differs(result, settings):
            raise InputError(f"{path} was made with other settings: {told}. Choose another --work_dir.")
        return result

    def differs(self, result: Mapping, settings: CellSettings) -> str:
        """Which settings a result was made with that are not these; empty if none."""
        theirs, ours = result.get("settings", {}), json.loads(json.dumps(self.decisive(settings)))
        return "; ".join(
            f"{name} was {theirs.get(name)!r} and is {ours[name]!r}" for name in ours if theirs.get(name) != ours[name]
        )


def run_cells(cells: Sequence[Cell], settings: CellSettings, jobs: int = 1) -> dict[Cell, dict]:
    """Run what is missing, first what others need, and return all results.

    Args:
        cells: with the cell that each needs.
        jobs: processes that run cells at the same time; they share the cores.

    Raises:
        InputError: if a cell was made with other settings, one that others need is missing, or data or encoder cannot
            be loaded.
    """
    for cell in cells:
        if cell.needs is not None and cell.needs not in cells:
            raise InputError(f"{cell.name} needs {cell.needs.name}, which is not among the cells; add it.")
    missing = [cell for cell in cells if cell.result(settings) is None]
    timed = [cell for cell in missing if cell.kind in cell.timed]
    first = [cell for cell in missing if cell.needs is None and cell not in timed]
    then = [cell for cell in missing if cell not in (*first, *timed)]
    for label, group in (("cells", first), ("cells that build on them", then), ("timed cells", timed)):
        in_parallel(run_cell, [(cell, settings) for cell in group], 1 if group is timed else jobs, label)
    results = {cell: cell.result(settings) for cell in cells}
    return {cell: result for cell, result in results.items() if result is not None}


def run_cell(cell: Cell, settings: CellSettings) -> None:
    """Measure a cell and keep its result, with its settings, the data's sizes, machine and time.

    Raises:
        InputError: if another process runs the cell in the same folder, or data or encoder cannot be loaded.
    """
    started, folder = time.perf_counter(), cell.folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, "wait until it has ended, or choose another --work_dir"):
        data = cell.load(settings)
        result = {
            "cell": asdict(cell),
            "settings": cell.decisive(settings),
            "data": {"sizes": dict(data.num_rows), "note": data["train"].info.description},
            **cell.measure(settings, data),
            "machine": machine(),
            "seconds": time.perf_counter() - started,
        }
        write_text(folder / RESULT, json.dumps(result, allow_nan=False))


def in_parallel(function: Callable[..., None], tasks: Sequence[tuple], jobs: int, label: str) -> None:
    """Call a function with each tuple of arguments, in `jobs` processes if more than 1, which share the cores.

    Processes end with their parent. An interruption lets the calls that run see it, and starts no other.
    """
    with progress_bar(label, len(tasks), len(tasks) > 0) as bar:
        if jobs == 1:
            for task in tasks:
                function(*task)
                bar.update()
            return
        threads = max(1, torch.get_num_threads() // jobs)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, context, _begin_worker, (threads,)) as pool:
            waiting = list(tasks)
            running: set[Future] = set()
            while waiting or running:
                while waiting and len(running) < jobs:  # no more: the pool would not give them back
                    running.add(pool.submit(function, *waiting.pop(0)))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    bar.update()


def _begin_worker(threads: int) -> None:
    torch.set_num_threads(threads)
    parent: Any = multiprocessing.parent_process()

    def end_with_parent() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def machine() -> str:
    """What this runs on: processor, cores, GPU, versions."""
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"{platform.machine()}, {os.cpu_count()} cores{gpu}; {packages}"
