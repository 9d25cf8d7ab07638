"""Cells of a reproduction: one training run on one data set with one seed, whose rankings are explained and measured once.

A finished cell is a folder with a file `result.json`, and is never run again. What was interrupted goes on.
"""

import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from multiprocessing.connection import wait as wait_for
from pathlib import Path

import numpy as np
import torch
from datasets import DatasetDict

from ..cli import load_classifier
from ..data import PAPER_DATASETS, load_paper_dataset, load_semeval_words, load_sst_words, sentiment_words
from ..errors import InputError
from ..explanations import explain
from ..faithfulness import Faithfulness
from ..faithfulness.rationales import precision_recall_f1_at_k
from ..inference import forward_batches, predict_probabilities, progress_bar
from .reporting import machine
from .representations import separation
from .systems import ENCODERS, KINDS, ROWS, train_system

DATASETS = tuple(PAPER_DATASETS)
RESULT = "result.json"

KS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20)
SCORES = ("accuracy_drop", "prob_drop", "posthoc_gold", "posthoc_self")
# Data sets with labelled words: folder beside the data set's, file, and what reads it. SST's stand in for Twitter's.
WORD_LABELS = {
    "twitter": ("semeval_words", "test.tsv", load_semeval_words),
    "sst2": ("sst_words", "test.jsonl", load_sst_words),
}
WORD_KS = (1, 5)
_SHOWN_VECTORS = 1000  # as many texts as in the paper's figures 3 and 6


@dataclass(frozen=True)
class CellSettings:
    """What all cells of a reproduction share.

    Attributes:
        data_dir: folder with one folder of files for each data set; None for the Hub.
        work_dir: folder for the cells.
        max_train_samples, max_eval_samples: rows of training and of validation and test data; None for all.
        bf16: train in bfloat16.
    """

    data_dir: str | None = None
    work_dir: str = "runs/vat"
    max_train_samples: int | None = None
    max_eval_samples: int | None = None
    bf16: bool = False

    def load(self, dataset: str) -> DatasetDict:
        """The data set's splits, cut to the numbers of rows.

        Raises:
            InputError: if it cannot be loaded.
        """
        data = load_paper_dataset(dataset, None if self.data_dir is None else Path(self.data_dir) / dataset)
        for split in data:
            most = self.max_train_samples if split == "train" else self.max_eval_samples
            if most is not None and most < len(data[split]):
                data[split] = data[split].shuffle(seed=0).select(range(most))
        return data

    def words_file(self, dataset: str) -> Path | None:
        """The file with labelled words that belongs to a data set, if there is one."""
        if self.data_dir is None or dataset not in WORD_LABELS:
            return None
        folder, name, _ = WORD_LABELS[dataset]
        path = Path(self.data_dir) / folder / name
        return path if path.is_file() else None

    def labelled_words(self, dataset: str) -> dict:
        """The positive and negative texts with labelled words that belong to a data set, by polarity; empty without.

        Raises:
            InputError: if the file cannot be read, or has no text of a polarity.
        """
        path = self.words_file(dataset)
        if path is None:
            return {}
        split = WORD_LABELS[dataset][2](path)
        return {polarity: sentiment_words(split, polarity) for polarity in ("positive", "negative")}


@dataclass(frozen=True)
class Cell:
    """One training run: "base", "ATT" or "VAT", on one data set with one seed."""

    dataset: str
    encoder: str
    kind: str
    seed: int

    def __post_init__(self):
        for name, allowed in (("dataset", DATASETS), ("encoder", ENCODERS), ("kind", KINDS)):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} is {getattr(self, name)!r}; there are {', '.join(allowed)}.")

    @property
    def name(self) -> str:
        return f"{self.dataset}-{self.encoder}-{self.kind}-{self.seed}"

    @property
    def base(self) -> "Cell":
        """The cell whose model judges the rankings, by the paper's protocol."""
        return Cell(self.dataset, self.encoder, "base", self.seed)

    def folder(self, settings: CellSettings) -> Path:
        return Path(settings.work_dir) / self.name

    def explanations(self, settings: CellSettings, row: str) -> Path:
        """File of the explanations of the test texts for a row of the tables."""
        return self.folder(settings) / f"{row.replace(' ', '-').replace('(', '').replace(')', '')}.jsonl"

    def vectors(self, settings: CellSettings) -> Path:
        """File with the text vectors [iterations, texts, H] of random test texts, and their labels."""
        return self.folder(settings) / "vectors.npz"

    def decisive(self, settings: CellSettings) -> dict:
        """What must agree before a finished cell is used again."""
        encoder = ENCODERS[self.encoder]
        return {
            "data": "Hub" if settings.data_dir is None else "files",
            "max_train_samples": settings.max_train_samples,
            "max_eval_samples": settings.max_eval_samples,
            "bf16": settings.bf16,
            "recipe": asdict(encoder.recipe),
            "training": encoder.training,
            "words": settings.words_file(self.dataset) is not None,
        }

    def result(self, settings: CellSettings) -> dict | None:
        """What was measured, if the cell is finished.

        Raises:
            InputError: if it was made with other settings.
        """
        path = self.folder(settings) / RESULT
        if not path.is_file():
            return None
        result, ours = json.loads(path.read_text(encoding="utf-8")), self.decisive(settings)
        theirs = result.get("settings", {})
        different = [
            f"{name} was {theirs.get(name)!r} and is {ours[name]!r}" for name in ours if theirs.get(name) != ours[name]
        ]
        if different:
            raise InputError(f"{path} was made with other settings: {'; '.join(different)}. Choose another --work_dir.")
        return result


def run_cells(cells: Sequence[Cell], settings: CellSettings, jobs: int = 1) -> dict[Cell, dict]:
    """Run what is missing, base models first, and return all results.

    Args:
        cells: with the base cell of each.
        jobs: processes that run cells at the same time; they share the cores.

    Raises:
        InputError: if a cell was made with other settings, a base cell is missing, or data or encoder cannot be loaded.
    """
    for cell in cells:
        if cell.base not in cells:
            raise InputError(f"{cell.name} is judged by {cell.base.name}, which is not among the cells; add it.")
    missing = [cell for cell in cells if cell.result(settings) is None]
    for bases in (True, False):  # the base models judge all others
        tasks = [(cell, settings) for cell in missing if (cell.kind == "base") == bases]
        in_parallel(run_cell, tasks, jobs, "base models" if bases else "ATT and VAT")
    return {cell: cell.result(settings) for cell in cells}


def in_parallel(function: Callable[..., None], tasks: Sequence[tuple], jobs: int, label: str) -> None:
    """Call a function with each tuple of arguments, in `jobs` processes if more than 1, which share the cores.

    Processes end with their parent. An interruption lets the calls that run see it, and starts no other.
    """
    with progress_bar(label if tasks else None, len(tasks)) as bar:
        if jobs == 1:
            for task in tasks:
                function(*task)
                bar.update()
            return
        threads = max(1, torch.get_num_threads() // jobs)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, context, _begin_worker, (threads,)) as pool:
            waiting, running = list(tasks), set()
            while waiting or running:
                while waiting and len(running) < jobs:  # no more: the pool would not give them back
                    running.add(pool.submit(function, *waiting.pop(0)))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    bar.update()


def _begin_worker(threads: int) -> None:
    torch.set_num_threads(threads)
    parent = multiprocessing.parent_process().sentinel

    def end_with_parent() -> None:
        wait_for([parent])
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def run_cell(cell: Cell, settings: CellSettings) -> None:
    """Train, explain and measure one cell.

    Its result holds, by iteration, the accuracy on validation and test data and the separation of the text vectors; and
    for each row of the tables that the run gives (ATT is iteration 0 of its run; all others the best on validation data,
    iteration 0 aside): the iteration, for each test text whether it is classified correctly, and for each score at each K
    its values per text: "base" under the base model (the paper's protocol), "self" under the model itself, "words" against
    labelled words, where there are some. The run of a base model gives the rows "base", without scores, and "Random": means
    over five random rankings, and in "words" what a random ranking is expected to give.
    """
    started = time.perf_counter()
    folder = cell.folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    data, words = settings.load(cell.dataset), settings.labelled_words(cell.dataset)
    models = _models(cell, settings, data)
    iterations, correct, vectors = _iterations(models, data)
    rows = {}
    for row in ROWS[cell.kind]:
        number = next(iter(models)) if row == "ATT" else _select(iterations)
        model, tokenizer = load_classifier(str(models[number]))
        texts, labels = data["test"]["text"][:], data["test"]["label"][:]
        found: dict = {} if row == "Random" else {"correct": correct[number]}
        if row == "Random":
            runs = Faithfulness(model, tokenizer, texts, labels, ks=KS, batch_size=64).random(range(5)).results
            found["base"] = _wanted({name: np.mean([run.values[name] for run in runs], 0) for name in runs[0].values})
            found["words"] = _against_words(words, None)
        elif row != "base":
            save_to = cell.explanations(settings, row)
            explanations = explain(model, tokenizer, texts, gold=labels, batch_size=64, save_to=save_to)
            scores = [explanation.scores for explanation in explanations]
            seen = [explanation.seen for explanation in explanations]
            for name, scorer in (("base", _base_model(cell, settings, data)), ("self", (model, tokenizer))):
                measured = Faithfulness(*scorer, texts, labels, seen, ks=KS, batch_size=64)
                found[name] = _wanted(measured.measure(scores, row).values)
            found["words"] = _against_words(
                words, lambda texts, model=model, tokenizer=tokenizer: explain(model, tokenizer, texts, batch_size=64)
            )
        rows[row] = {"iteration": number, **found}
    np.savez_compressed(cell.vectors(settings), **vectors)
    note = data["train"].info.description
    result = {
        "cell": asdict(cell),
        "settings": cell.decisive(settings),
        "data": {"sizes": dict(data.num_rows), "note": note},
        "iterations": iterations,
        "rows": rows,
        "machine": machine(),
        "seconds": time.perf_counter() - started,
    }
    save_result(folder / RESULT, result)


def save_result(path: Path, result: dict) -> None:
    """Write a result whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(result, allow_nan=False), encoding="utf-8")
    os.replace(partial, path)


def _models(cell: Cell, settings: CellSettings, data: DatasetDict) -> dict[int, Path]:
    encoder = ENCODERS[cell.encoder]
    folder = cell.folder(settings) / "model"
    decisive = cell.decisive(settings)
    return train_system(
        cell.kind, encoder, encoder.recipe, data, cell.dataset, cell.seed, folder, decisive, settings.bf16
    )


def _base_model(cell: Cell, settings: CellSettings, data: DatasetDict):
    number = cell.base.result(settings)["rows"]["base"]["iteration"]
    return load_classifier(str(_models(cell.base, settings, data)[number]))


def _iterations(
    models: dict[int, Path], data: DatasetDict
) -> tuple[list[dict], dict[int, list[int]], dict[str, np.ndarray]]:
    """Accuracies and separation by iteration; for each test text whether an iteration classifies it correctly; and the text
    vectors [iterations, texts, H] with their labels."""
    size = len(data["test"])
    shown = np.random.default_rng(0).permutation(size)[:_SHOWN_VECTORS]
    texts = data["test"]["text"][:]
    labels = np.array(data["test"]["label"][:])[shown]
    iterations, correct, vectors = [], {}, []
    for number, folder in models.items():
        model, tokenizer = load_classifier(str(folder))
        right = {
            split: _probabilities(model, tokenizer, rows["text"][:]).argmax(1) == np.array(rows["label"][:])
            for split, rows in data.items()
            if split != "train"
        }
        correct[number] = right["test"].astype(int).tolist()
        vectors.append(_text_vectors(model, tokenizer, [texts[place] for place in shown]))
        accuracies = {split: float(right[split].mean()) for split in ("validation", "test")}
        iterations.append({"iteration": number} | accuracies | separation(vectors[-1], labels)._asdict())
    return iterations, correct, {"vectors": np.array(vectors, dtype=np.float32), "labels": labels}


def _select(iterations: list[dict]) -> int:
    """The first of the best on validation data; the start of a run with rounds is no VAT yet, and no choice."""
    later = [record for record in iterations if record["iteration"]] or iterations
    return max(later, key=lambda record: record["validation"])["iteration"]


def _against_words(words: dict, explained: Callable | None) -> dict[str, list[float]]:
    """Precision, recall and F1 at K per text with labelled words, by names such as "positive f1@5"; expected at random
    without a function that explains texts."""
    found = {}
    for polarity, wanted in words.items():
        if explained is None:
            scores = [[0.0] * len(text) for text in wanted.texts]
        else:
            scores = [explanation.scores for explanation in explained([tuple(text) for text in wanted.texts])]
        at_k = precision_recall_f1_at_k(scores, wanted.rationales, WORD_KS)
        at_k = at_k.expected() if explained is None else at_k
        for place, k in enumerate(WORD_KS):
            for name in ("precision", "recall", "f1"):
                values = getattr(at_k, name)[:, place]
                found[f"{polarity} {name}@{k}"] = values[~np.isnan(values)].tolist()  # NaN: no word of the polarity
    return found


def _token_ids(tokenizer, texts: list[str]) -> list[list[int]]:
    return [ids or [tokenizer.unk_token_id] for ids in tokenizer(texts, truncation=True)["input_ids"]]


def _probabilities(model, tokenizer, texts: list[str]) -> np.ndarray:
    return predict_probabilities(model, tokenizer, _token_ids(tokenizer, texts), 64)


def _text_vectors(model, tokenizer, texts: list[str]) -> np.ndarray:
    vectors = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
    for places, output in forward_batches(model, tokenizer, _token_ids(tokenizer, texts), 64):
        vectors[places] = output.pooler_output.float().numpy(force=True)
    return vectors


def _wanted(values: dict[str, np.ndarray]) -> dict[str, list[float]]:
    return {name: column.tolist() for name, column in values.items() if name.partition("@")[0] in SCORES}
