"""Cells of a reproduction: one system on one data set with one seed, trained, explained and measured once.

A finished cell is a folder with a file `result.json`, and is never run again. What was interrupted goes on.
"""

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from datasets import DatasetDict
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from ..data import PAPER_DATASETS, load_paper_dataset, load_semeval_words, load_sst_words, sentiment_words
from ..errors import InputError
from ..explanations import explain
from ..faithfulness import Faithfulness
from ..faithfulness.rationales import precision_recall_f1_at_k
from ..inference import forward_batches, predict_probabilities, progress_bar
from .representations import separation
from .systems import ENCODERS, train_system

DATASETS = tuple(PAPER_DATASETS)
RESULT = "result.json"
EXPLANATIONS = "explanations.jsonl"
VECTORS = "vectors.npz"

KS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20)
SCORES = ("accuracy_drop", "prob_drop", "posthoc_gold", "posthoc_self")
# Data sets with labelled words: folder beside the data set's, file, and what reads it. SST's stand in for Twitter's.
WORD_LABELS = {
    "twitter": ("semeval_words", "test.tsv", load_semeval_words),
    "sst2": ("sst_words", "test.jsonl", load_sst_words),
}
WORD_KS = (1, 5)
_RUNS = {"base": "base", "ATT": "ATT", "ATT (matched)": "ATT", "VAT": "VAT"}  # systems that share a training run
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

    def word_labels(self, dataset: str) -> Path | None:
        """The file with labelled words that belongs to a data set, if there is one."""
        if self.data_dir is None or dataset not in WORD_LABELS:
            return None
        folder, name, _ = WORD_LABELS[dataset]
        path = Path(self.data_dir) / folder / name
        return path if path.is_file() else None


@dataclass(frozen=True)
class Cell:
    """One system on one data set with one seed."""

    dataset: str
    encoder: str
    system: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.dataset}-{self.encoder}-{self.system.replace(' ', '').strip(')').replace('(', '-')}-{self.seed}"

    @property
    def base(self) -> "Cell":
        """The cell whose model judges the rankings, by the paper's protocol."""
        return Cell(self.dataset, self.encoder, "base", self.seed)

    def folder(self, settings: CellSettings) -> Path:
        return Path(settings.work_dir) / self.name

    def models(self, settings: CellSettings) -> Path:
        """Folder of the training run; ATT and ATT (matched) are iterations of one."""
        return Path(settings.work_dir) / "models" / f"{self.dataset}-{self.encoder}-{_RUNS[self.system]}-{self.seed}"

    def result(self, settings: CellSettings) -> dict | None:
        """What was measured, if the cell is finished.

        Raises:
            InputError: if it was made with other settings.
        """
        path = self.folder(settings) / RESULT
        if not path.is_file():
            return None
        result = json.loads(path.read_text(encoding="utf-8"))
        if result["settings"] != _decisive(settings):
            raise InputError(
                f"{path} was made with other settings ({result['settings']} there, {_decisive(settings)} here); choose "
                "another --work_dir."
            )
        return result


def run_cells(cells: Sequence[Cell], settings: CellSettings, jobs: int = 1) -> dict[Cell, dict]:
    """Run what is missing, base models first, and return all results.

    Args:
        jobs: processes that run cells at the same time; they share the cores.

    Raises:
        InputError: if a cell was made with other settings, or data or encoder cannot be loaded.
    """
    missing = [cell for cell in cells if cell.result(settings) is None]
    # The base models judge all others, and ATT is an iteration of the run of ATT (matched).
    for stage in (("base",), ("ATT (matched)", "VAT"), ("ATT",)):
        tasks = [(cell, settings) for cell in missing if cell.system in stage]
        in_parallel(run_cell, tasks, jobs, ", ".join(stage))
    return {cell: cell.result(settings) for cell in cells}


def in_parallel(function: Callable[..., None], tasks: Sequence[tuple], jobs: int, label: str) -> None:
    """Call a function with each tuple of arguments, in `jobs` processes if more than 1, which share the cores."""
    with progress_bar(label if tasks else None, len(tasks)) as bar:
        if jobs == 1:
            for task in tasks:
                function(*task)
                bar.update()
        elif tasks:
            threads = max(1, (os.cpu_count() or 1) // jobs)
            with ProcessPoolExecutor(
                jobs, multiprocessing.get_context("spawn"), torch.set_num_threads, (threads,)
            ) as pool:
                for _ in pool.map(function, *zip(*tasks, strict=True)):
                    bar.update()


def run_cell(cell: Cell, settings: CellSettings) -> None:
    """Train, explain and measure one cell.

    Its result holds the accuracy on validation and test data and the separation of the text vectors by iteration; which
    iteration was selected, the best on validation data; for each test text whether that one's model classifies it
    correctly; and for each score at each K its values per text: "base" under the base model (the paper's protocol), "self"
    under the cell's own model, "words" against labelled words, where there are some. A base model has no ranking: its
    result holds those of random rankings, means over five seeds, as "random", and what they are expected to give in "words".
    """
    started = time.perf_counter()
    folder = cell.folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    data = _load(cell.dataset, settings)
    encoder, kind = ENCODERS[cell.encoder], _RUNS[cell.system]
    models = train_system(
        kind, encoder, encoder.recipe, data, cell.dataset, cell.seed, cell.models(settings), settings.bf16
    )
    if cell.system == "ATT":
        models = dict([next(iter(models.items()))])
    iterations, vectors = _iterations(models, data)
    selected = _select(iterations)
    model, tokenizer = _loaded(models[selected])
    texts, labels = data["test"]["text"][:], data["test"]["label"][:]
    result = {"cell": asdict(cell), "settings": _decisive(settings), "test": len(texts)}
    result |= {
        "iterations": iterations,
        "selected": selected,
        "words": _against_words(cell, settings, model, tokenizer),
    }
    if cell.system == "base":
        measured = Faithfulness(model, tokenizer, texts, labels, ks=KS, batch_size=64)
        runs = measured.random(range(5)).results
        result["random"] = _wanted({name: np.mean([run.values[name] for run in runs], 0) for name in runs[0].values})
        correct = _probabilities(model, tokenizer, texts).argmax(1) == np.array(labels)
    else:
        explanations = explain(model, tokenizer, texts, gold=labels, batch_size=64, save_to=folder / EXPLANATIONS)
        correct = [explanation.correct for explanation in explanations]
        scores = [explanation.scores for explanation in explanations]
        seen = [explanation.seen for explanation in explanations]
        base = cell.base.result(settings)["selected"]
        base_models = train_system(
            "base", encoder, encoder.recipe, data, cell.dataset, cell.seed, cell.base.models(settings), settings.bf16
        )
        for name, scorer in (("base", _loaded(base_models[base])), ("self", (model, tokenizer))):
            measured = Faithfulness(*scorer, texts, labels, seen, ks=KS, batch_size=64)
            result[name] = _wanted(measured.measure(scores, cell.system).values)
    result |= {"correct": [int(flag) for flag in correct], "accuracy": float(np.mean(correct))}
    result["seconds"] = time.perf_counter() - started
    np.savez_compressed(folder / VECTORS, **vectors)
    partial = folder / f"{RESULT}.partial"
    partial.write_text(json.dumps(result, allow_nan=False), encoding="utf-8")
    os.replace(partial, folder / RESULT)


def _load(dataset: str, settings: CellSettings) -> DatasetDict:
    data = load_paper_dataset(dataset, None if settings.data_dir is None else Path(settings.data_dir) / dataset)
    for split in data:
        most = settings.max_train_samples if split == "train" else settings.max_eval_samples
        if most is not None and most < len(data[split]):
            data[split] = data[split].shuffle(seed=0).select(range(most))
    return data


def _loaded(folder: Path):
    return AutoModelForSequenceClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


def _iterations(models: dict[int, Path], data: DatasetDict) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Accuracies and separation by iteration, and the text vectors [iterations, texts, H] with their labels."""
    size = len(data["test"])
    shown = np.random.default_rng(0).permutation(size)[:_SHOWN_VECTORS]
    labels = np.array(data["test"]["label"][:])[shown]
    iterations, vectors = [], []
    for number, folder in models.items():
        model, tokenizer = _loaded(folder)
        record: dict = {"iteration": number}
        for split in ("validation", "test"):
            found = _probabilities(model, tokenizer, data[split]["text"][:]).argmax(1)
            record[split] = float((found == np.array(data[split]["label"][:])).mean())
        vectors.append(_text_vectors(model, tokenizer, [data["test"]["text"][int(place)] for place in shown]))
        iterations.append(record | separation(vectors[-1], labels)._asdict())
    return iterations, {"vectors": np.array(vectors, dtype=np.float32), "labels": labels}


def _select(iterations: list[dict]) -> int:
    """The first of the best on validation data; the start of a run with rounds is no VAT yet, and no choice."""
    later = [record for record in iterations if record["iteration"]] or iterations
    return max(later, key=lambda record: record["validation"])["iteration"]


def _against_words(cell: Cell, settings: CellSettings, model, tokenizer) -> dict[str, list[float]]:
    """Precision, recall and F1 at K per text with labelled words, by names such as "positive f1@5"."""
    path = settings.word_labels(cell.dataset)
    if path is None:
        return {}
    found = {}
    split = WORD_LABELS[cell.dataset][2](path)
    for polarity in ("positive", "negative"):
        wanted = sentiment_words(split, polarity)
        if cell.system == "base":
            scores = [[0.0] * len(words) for words in wanted.texts]
        else:
            texts = [tuple(words) for words in wanted.texts]
            scores = [explanation.scores for explanation in explain(model, tokenizer, texts, batch_size=64)]
        at_k = precision_recall_f1_at_k(scores, wanted.rationales, WORD_KS)
        at_k = at_k.expected() if cell.system == "base" else at_k
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


def _decisive(settings: CellSettings) -> dict:
    return {name: value for name, value in asdict(settings).items() if name not in ("work_dir", "data_dir")}


def _wanted(values: dict[str, np.ndarray]) -> dict[str, list[float]]:
    return {name: column.tolist() for name, column in values.items() if name.partition("@")[0] in SCORES}
