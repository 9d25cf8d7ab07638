"""Cells of a reproduction: one system on one data set with one seed, trained, explained and measured once.

A finished cell is a folder with a file `result.json`, and is never run again. What was interrupted goes on.
"""

import json
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from ..data import PAPER_DATASETS, DataArguments, load_paper_dataset
from ..data.offline import glove_folder, minilm_folder
from ..errors import InputError
from ..explanations import explain
from ..faithfulness import Faithfulness
from ..inference import predict_probabilities
from ..training import ModelArguments, VATTrainingArguments, train_classifier

DATASETS = tuple(PAPER_DATASETS)
RESULT = "result.json"

# What the encoders have in common with the paper's, and how they are trained.
_WORDS = {"learning_rate": 1e-3, "per_device_train_batch_size": 32, "lr_scheduler_type": "constant"}
_PRETRAINED = {"learning_rate": 5e-5, "per_device_train_batch_size": 32, "warmup_steps": 0.1}
# With a one-way LSTM, whose states sum up what came before, attention ranked the words of TREC no better than chance.
_LSTM = {"word_encoder": "lstm", "bidirectional": True, "encoder_size": 200, "word_dropout": 0.3}
ENCODERS = {
    "lstm": ("LSTM", lambda: {**_LSTM, "vectors": glove_folder()}, _WORDS),
    "minilm": ("BERT", lambda: {"model_name_or_path": minilm_folder()}, _PRETRAINED),
    "bert": ("BERT", lambda: {"model_name_or_path": "google-bert/bert-base-uncased"}, _PRETRAINED),
}
# ATT (matched) has as many updates of the encoder as VAT; the paper has no such row.
SYSTEMS = ("base", "ATT", "ATT (matched)", "VAT")
_PHASES = {
    "LSTM": {"start": "joint", "start_epochs": 12, "compress_epochs": 3, "learn_epochs": 4, "rounds": 2},
    "BERT": {"start": "joint", "start_epochs": 0, "compress_epochs": 2, "learn_epochs": 3, "rounds": 1},
}
_COMPRESSION = {"LSTM": {"beta": 0.1, "kl_reduction": "sum"}, "BERT": {"beta": 0.1, "kl_reduction": "mean"}}
KS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20)
SCORES = ("accuracy_drop", "prob_drop", "posthoc_gold", "posthoc_self")


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
    for stage in (True, False):  # the base models judge all others
        todo = [cell for cell in missing if (cell.system == "base") == stage]
        if jobs == 1:
            for cell in todo:
                run_cell(cell, settings)
        elif todo:
            threads = max(1, (os.cpu_count() or 1) // jobs)
            with ProcessPoolExecutor(
                jobs, multiprocessing.get_context("spawn"), torch.set_num_threads, (threads,)
            ) as pool:
                list(pool.map(run_cell, todo, [settings] * len(todo)))
    return {cell: cell.result(settings) for cell in cells}


def run_cell(cell: Cell, settings: CellSettings) -> None:
    """Train, explain and measure one cell.

    Its result holds the accuracy, for each test text whether it is classified correctly, and for each score at each K
    its values per text: "base" under the base model (the paper's protocol), "self" under the cell's own model. A base
    model has no ranking; its result holds those of random rankings, means over five seeds, under "random".
    """
    folder = cell.folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{cell.name}", flush=True)
    data_dir = None if settings.data_dir is None else Path(settings.data_dir) / cell.dataset
    data = load_paper_dataset(cell.dataset, data_dir)
    for split in data:
        most = settings.max_train_samples if split == "train" else settings.max_eval_samples
        if most is not None and most < len(data[split]):
            data[split] = data[split].shuffle(seed=0).select(range(most))
    model, tokenizer = _trained(cell, settings, data, folder / "model")
    texts, labels = data["test"]["text"][:], data["test"]["label"][:]
    result = {"cell": asdict(cell), "settings": _decisive(settings), "test": len(texts)}
    if cell.system == "base":
        own = Faithfulness(model, tokenizer, texts, labels, ks=KS, batch_size=64)
        random = own.random(range(5))
        names = random.results[0].values
        values = {name: np.mean([run.values[name] for run in random.results], 0).tolist() for name in names}
        result["random"] = _wanted(values)
        input_ids = tokenizer(texts, truncation=True)["input_ids"]
        found = predict_probabilities(model, tokenizer, [ids or [tokenizer.unk_token_id] for ids in input_ids], 64)
        correct = (found.argmax(1) == np.array(labels)).tolist()
    else:
        explanations = explain(model, tokenizer, texts, gold=labels, batch_size=64)
        correct = [explanation.correct for explanation in explanations]
        scores = [explanation.scores for explanation in explanations]
        seen = [explanation.seen for explanation in explanations]
        folder_of_base = cell.base.folder(settings) / "model"
        base = AutoModelForSequenceClassification.from_pretrained(folder_of_base)
        base_tokenizer = AutoTokenizer.from_pretrained(folder_of_base)
        for name, scorer, scorer_tokenizer in (("base", base, base_tokenizer), ("self", model, tokenizer)):
            measured = Faithfulness(scorer, scorer_tokenizer, texts, labels, seen, ks=KS, batch_size=64)
            result[name] = _wanted(
                {key: values.tolist() for key, values in measured.measure(scores, cell.system).values.items()}
            )
    result |= {"correct": [int(flag) for flag in correct], "accuracy": float(np.mean(correct))}
    partial = folder / f"{RESULT}.partial"
    partial.write_text(json.dumps(result, allow_nan=False), encoding="utf-8")
    os.replace(partial, folder / RESULT)


def _trained(cell: Cell, settings: CellSettings, data, folder: Path):
    family, encoder, training = ENCODERS[cell.encoder]
    phases = dict(_PHASES[family])
    rounds = phases.pop("rounds")
    compress, learn = phases["compress_epochs"], phases["learn_epochs"]
    model = {"max_length": 256, "pooling": "attention", **_COMPRESSION[family]}
    model["bottleneck"] = "gaussian" if cell.system == "VAT" else "none"
    if cell.system == "base":
        model["pooling"] = "max" if family == "LSTM" else "first"
    matched = phases["start_epochs"] + rounds * learn
    epochs = {"VAT": matched + rounds * compress, "ATT": phases["start_epochs"] or 2}.get(cell.system, matched)
    args = VATTrainingArguments(
        str(folder),
        num_train_epochs=epochs,
        train_sampling_strategy="group_by_length",
        save_strategy="no",
        eval_strategy="epoch",
        logging_steps=100,
        disable_tqdm=True,
        report_to="none",
        seed=cell.seed,
        bf16=settings.bf16,
        use_cpu=not torch.cuda.is_available(),
        resume_from_checkpoint="last",
        predict_from="learner",
        **phases,
        **training,
    )
    if not (folder / "all_results.json").is_file():
        train_classifier(
            ModelArguments(**model, **encoder()),
            DataArguments(dataset_name=cell.dataset, max_train_samples=settings.max_train_samples),
            args,
            data,
        )
    return AutoModelForSequenceClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


def _decisive(settings: CellSettings) -> dict:
    return {name: value for name, value in asdict(settings).items() if name not in ("work_dir", "data_dir")}


def _wanted(values: dict[str, list[float]]) -> dict[str, list[float]]:
    return {name: column for name, column in values.items() if name.partition("@")[0] in SCORES}
