"""Fit a student to what a teacher says of texts, and put it into the folder of the classifier."""

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForTokenClassification, PreTrainedModel

from hf_vat.callers import TextFunction, as_classifier
from hf_vat.errors import InputError, check_path, check_texts, parse_json
from hf_vat.explanations.store import model_digest
from hf_vat.explanations.students import check_names, check_reads
from hf_vat.inference import check_classifier, encode_texts, predict_outputs, progress_bar, whole_number
from hf_vat.models.words import maximum_length
from hf_vat.pretrained import CONFIG, SAFE, load_explainer, read_from
from hf_vat.writing import locked, remove_partial, write_text

from .card import explainer_card
from .student import explained_variance, new_student, reduced_precision, train_student
from .teacher import ADDS_UP, TEACHERS, no_word_ids, teach, teacher_settings, teaching_cost

RUN_NAME = "distillation.json"
STATE_NAME = "student_state.safetensors"  # what a run goes on from between epochs
INSIDE = ("explainer", "explainer-2")  # folders in that of the classifier, of which its configuration names one
_HALF_WRITTEN = ".hf_vat-explainer-"
_HELD_OUT, _MOST_HELD_OUT = 0.1, 200


def fit_amortized(
    model,
    tokenizer=None,
    texts: Sequence[str | Sequence[str] | Mapping[str, Any]] = (),
    teacher: str = "shapley",
    student: str | None = None,
    layers: int | None = None,
    output_dir: str | PathLike | None = None,
    epochs: int = 6,
    batch_size: int = 16,
    learning_rate: float = 5e-5,
    head_learning_rate: float = 1e-3,
    max_length: int | None = None,
    seed: int = 0,
    bf16: bool = False,
    progress: bool = False,
    **settings,
) -> PreTrainedModel:
    """Train a student that says in one forward pass what a slow method says of the words of a text.

    Works with every classifier that [`explain`](hf_vat.explain) works with. The teacher explains the texts for every class, which
    asks the classifier no more than for one; in `output_dir` each class of a text has a line. Shapley values come in two rounds, of
    which the second is for the half of the texts that the first is less sure of. The student, the classifier's encoder with one
    score for each token and class, learns them by squared error on the sums over words. Of LIME it learns the random subsets of
    words that LIME asks for and what the classifier said of them, by LIME's own weighted squared error: all texts share what a
    linear model of one text would need hundreds of samples for. It then is what `explain(method="amortized", explainer=student)`
    reads (after FastSHAP, Jethani et al., ICLR 2022, and Yang et al., ACL 2023).

    Args:
        model, tokenizer: the classifier, as for [`explain`](hf_vat.explain).
        texts: to learn from, without labels, such as the training texts; a thousand or more.
        teacher: "shapley", "lime" or "occlusion".
        student: a folder or Hub id of a model that the student begins with, of the same vocabulary; by default the classifier's encoder.
        layers: of the classifier's encoder that the student has, from the first; all by default.
        output_dir: a folder for the teacher's scores as they are made, the student, its tokenizer and its model card. The same call
            finds it and goes on from there; of a finished run it returns the student.
        epochs: passes over the texts.
        batch_size: texts of a training step, and the largest batch that the models are given.
        learning_rate: of the student's encoder.
        head_learning_rate: of its scores' layer.
        max_length: tokens of a text that are read, special ones included; by default what classifier, tokenizer and student allow.
        seed: of all that is random. The global random state is left as it was.
        bf16: let teacher and training compute in bfloat16, which is faster on hardware that can.
        progress: show a progress bar.
        settings: of the teacher, such as `n_samples`: 4 orders of shapley in each round, 32 samples of lime.

    Returns:
        The student, a model for token classification, in eval mode; its configuration has the teacher and its settings.

    Raises:
        InputError: if an argument cannot be used, or the folder holds another run.
    """
    if teacher not in TEACHERS:
        raise InputError(f"teacher is {teacher!r}; choose one of {', '.join(map(repr, TEACHERS))}.")
    if student is not None and layers is not None:
        raise InputError("layers are those of the classifier's encoder; leave them out beside a student.")
    model, tokenizer = as_classifier(model, tokenizer)
    check_classifier(model)
    if isinstance(model, TextFunction):
        raise InputError(
            "A function has no tokens that a student could read: their ids are those of this process alone. Give a model."
        )
    if tokenizer.pad_token_id is None:
        raise InputError(
            f"{type(tokenizer).__name__} has no padding token, which training needs; set tokenizer.pad_token and "
            "model.config.pad_token_id."
        )
    numbers: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size}
    numbers = {name: whole_number(name, number, 1) for name, number in numbers.items()}
    layers = None if layers is None else whole_number("layers", layers, 1)
    seed = whole_number("seed", seed, 0, 2**32 - 1)
    for name, rate in (("learning_rate", learning_rate), ("head_learning_rate", head_learning_rate)):
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < float("inf"):
            raise InputError(f"{name} is {rate!r}; it must be a number from 0.")
    if not isinstance(bf16, bool):
        raise InputError(f"bf16 is {bf16!r}; it must be True or False.")
    settings = teacher_settings(teacher, settings)
    begun = new_student(model, layers, seed) if student is None else _student_from(student, model, seed)
    longest = min(maximum_length(model, tokenizer), maximum_length(begun, tokenizer))
    encoded = encode_texts(tokenizer, check_texts(texts), model, longest if max_length is None else max_length)
    encoded = [text for text in encoded if any(text.seen)]
    check_reads(begun, [text.typed_ids for text in encoded])
    if len(encoded) < 2:
        raise InputError("There are fewer than two texts with words to learn from; give a thousand or more.")
    run = {
        "teacher": teacher,
        "settings": settings,
        "student": student,
        "layers": layers,
        **numbers,
        "learning_rate": learning_rate,
        "head_learning_rate": head_learning_rate,
        "seed": seed,
        "bf16": bf16,
        "texts": len(encoded),
        "inputs": sha256(json.dumps([text.typed_ids for text in encoded]).encode()).hexdigest(),
        "classifier": model_digest(model),
    } | ({} if student is None else {"student_weights": model_digest(begun)})
    cost = teaching_cost(encoded, teacher, settings)  # before anything is written
    folder = None if output_dir is None else check_path(output_dir)
    with ExitStack() as stack:
        if folder is not None:
            if folder.exists() and not folder.is_dir():
                raise InputError(f"output_dir is {folder}, a file; give a folder.")
            _begin(folder, run)  # nothing is written into a folder that is not this run's, and no lock
            stack.enter_context(locked(folder, "wait until it has ended, or choose another output_dir"))
            made = _begin(folder, run)  # of another process, until just now
            if made is not None:
                return made.to(model.device)
            remove_partial(folder)
        held_out = min(int(len(encoded) * _HELD_OUT) or 1, _MOST_HELD_OUT)
        total = cost + len(encoded) + numbers["epochs"] * (len(encoded) - held_out)
        bar = stack.enter_context(progress_bar(f"amortized {teacher}", total, progress))
        with reduced_precision(model.device, bf16):
            taught = teach(model, tokenizer, encoded, teacher, settings, numbers["batch_size"], seed, folder, bar)
        order = np.random.default_rng(seed).permutation(len(taught))
        unseen, learned = ([taught[place] for place in some] for some in (order[:held_out], order[held_out:]))
        without = no_word_ids(model, tokenizer, encoded, settings["operator"])
        base = None if without is None else predict_outputs(model, tokenizer, [without])[0]
        adds_up = base is not None and teacher in ADDS_UP and settings["operator"] == "delete"
        bases = base if adds_up else None
        train_student(
            begun,
            tokenizer,
            learned,
            bases,
            numbers["epochs"],
            numbers["batch_size"],
            learning_rate,
            head_learning_rate,
            seed,
            bf16,
            None if folder is None else folder / STATE_NAME,
            bar,
        )
        run["held_out"] = held_out
        run["explained_variance"] = explained_variance(begun, tokenizer, unseen, bases, numbers["batch_size"])
        begun.config.teacher, begun.config.teacher_settings = teacher, settings
        begun.config.no_word_ids, begun.config.adds_up = without, adds_up
        begun.config.no_word_outputs = None if base is None else base.tolist()
        if folder is not None:
            _finish(folder, begun, tokenizer, run)
            begun.config.name_or_path = str(folder)
    return begun


def attach_explainer(folder: str | PathLike, explainer: PreTrainedModel | str | PathLike) -> Path:
    """Put an explainer into the folder of its classifier, where `explain(method="amortized")` and the pipeline
    `text-classification-explained` find it by `explainer` in the classifier's configuration.

    The configuration changes last, and names a folder that is whole, whenever the process is killed.

    Args:
        folder: what `save_pretrained` has written of the classifier.
        explainer: what [`fit_amortized`] has trained, or its folder.

    Returns:
        The explainer's folder. One that was there before is replaced.

    Raises:
        InputError: if the folder has no classifier, or one of other classes, or holds something else by that name.
    """
    folder = check_path(folder)
    config_file = folder / CONFIG
    if not config_file.is_file():
        raise InputError(f"{folder} has no {CONFIG}; give a folder that save_pretrained has written.")
    student: Any = load_explainer(str(explainer)) if isinstance(explainer, str | PathLike) else explainer
    with locked(folder, "wait until it has ended"):
        with read_from(str(folder), CONFIG, " as a classifier"):
            fields = parse_json(config_file.read_text(encoding="utf-8"))
            config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        check_names(student, _Holder(config))
        before = fields.get("explainer")
        place = next(folder / name for name in INSIDE if name != before)
        for path in folder.glob(f"{_HALF_WRITTEN}*"):  # of a process that was killed
            shutil.rmtree(path)
        if place.exists():
            if not _is_explainer(place):
                raise InputError(f"{place} is there already, and is no explainer; move it away.")
            shutil.rmtree(place)
        written = folder / f"{_HALF_WRITTEN}{uuid4().hex}"
        try:
            student.save_pretrained(written)
            written.rename(place)
        finally:
            shutil.rmtree(written, ignore_errors=True)
        write_text(config_file, json.dumps(fields | {"explainer": place.name}, indent=2, sort_keys=True) + "\n")
        if before in INSIDE and _is_explainer(folder / before):
            shutil.rmtree(folder / before)
    return place


class _Holder:
    """Something with a configuration."""

    def __init__(self, config):
        self.config = config


def _is_explainer(folder: Path) -> bool:
    """Whether a folder has what [`attach_explainer`] writes, and not a run with its teacher's scores."""
    try:
        own = "teacher" in parse_json((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return own and not (folder / RUN_NAME).exists()


def _student_from(name: str, model, seed: int) -> PreTrainedModel:
    check_path(name)
    with read_from(name, CONFIG, " as the beginning of a student"), torch.random.fork_rng():
        torch.manual_seed(seed)  # of the layer that gives the scores
        student: Any = AutoModelForTokenClassification.from_pretrained(
            name,
            id2label=dict(model.config.id2label),
            label2id={name: label for label, name in model.config.id2label.items()},
            ignore_mismatched_sizes=True,
            dtype=torch.float32,
            **SAFE,
        )
    student.config.return_dict = True
    return student.to(model.device)


def _begin(folder: Path, run: dict) -> PreTrainedModel | None:
    """Claim a folder for a run; the student if it is finished.

    Raises:
        InputError: if it holds anything else.
    """
    file = folder / RUN_NAME
    if not file.is_file():
        if folder.is_dir() and any(not path.name.startswith(".hf_vat") for path in folder.iterdir()):
            raise InputError(f"output_dir {folder} holds other files and no run; choose an empty or new folder.")
        folder.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(run, indent=2))
        return None
    try:
        found = parse_json(file.read_text(encoding="utf-8"))
        given = json.loads(json.dumps(run))
        different = [name for name, value in given.items() if name not in found or found[name] != value]
    except (ValueError, AttributeError) as error:
        raise InputError(f"output_dir {folder} holds other files and no run; choose an empty or new folder.") from error
    if different:
        told = "; ".join(f"{name} was {found.get(name)!r} and is {run[name]!r}" for name in different[:3])
        raise InputError(
            f"output_dir {folder} holds another run ({told}); choose another folder, or the same settings."
        )
    return load_explainer(str(folder)) if "explained_variance" in found else None


def _finish(folder: Path, student: PreTrainedModel, tokenizer, run: dict) -> None:
    """The note that the run has ended comes last."""
    student.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_text(folder / "README.md", explainer_card(student, run))
    write_text(folder / RUN_NAME, json.dumps(run, indent=2))
    (folder / STATE_NAME).unlink(missing_ok=True)
