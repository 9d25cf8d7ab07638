"""The folder of a run: whose it is, and which checkpoint the run goes on from."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from hashlib import sha256
from pathlib import Path

from datasets import Dataset, IterableDataset
from transformers.trainer import TRAINER_STATE_NAME

from hf_vat.data import DataArguments
from hf_vat.data.files import local_files
from hf_vat.errors import InputError, parse_json
from hf_vat.models.words import PAIR

from .arguments import VATTrainingArguments
from .checkpoints import alone_in, find_whole
from .model_arguments import ModelArguments

RUN_NAME = "run.json"

# Training arguments that move no weight, so that a run may be continued with others. All others have to be the same.
MAY_DIFFER = frozenset(
    (
        *("output_dir", "resume_from_checkpoint", "do_train", "do_eval", "do_predict", "local_rank"),
        *("logging_strategy", "logging_steps", "logging_first_step", "logging_nan_inf_filter", "log_on_each_node"),
        *("log_level", "log_level_replica", "disable_tqdm", "include_num_input_tokens_seen", "skip_memory_metrics"),
        *("report_to", "run_name", "project", "trackio_space_id", "trackio_bucket_id", "trackio_static_space_id"),
        *("push_to_hub", "hub_token", "hub_private_repo", "hub_model_id", "hub_strategy", "hub_always_push"),
        *("hub_revision", "save_only_model", "save_on_each_node", "save_total_limit", "enable_jit_checkpoint"),
        *("per_device_eval_batch_size", "eval_accumulation_steps", "eval_use_gather_object"),
        # The machine, and its memory
        *("use_cpu", "cache_encoder_outputs", "torch_empty_cache_steps", "ddp_timeout"),
        *("activation_checkpointing", "activation_checkpointing_kwargs"),
        *("gradient_checkpointing", "gradient_checkpointing_kwargs"),
        *("dataloader_num_workers", "dataloader_pin_memory", "dataloader_persistent_workers"),
        *("dataloader_prefetch_factor", "dataloader_multiprocessing_context"),
    )
)
_TOGETHER = 10_000  # rows that are hashed at a time
_BLOCKS, _BLOCK = 64, 64 * 1024  # bytes of a file that are hashed


def claim_output_dir(model_args: ModelArguments, data_args: DataArguments, args: VATTrainingArguments) -> str | None:
    """Check that the output folder is new, or holds this very run and `resume_from_checkpoint` asks to go on.

    Nothing is written: every process of a run checks for itself and comes to the same result.

    Returns:
        The checkpoint to go on from, if there is one; the folder itself if the run is finished.

    Raises:
        InputError: if the folder holds anything else.
    """
    folder, resume = Path(args.output_dir), args.resume_from_checkpoint
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output_dir {folder} is a file; give a folder.")
    # Locks, and what was torn, do not count.
    if not folder.exists() or all(path.name.startswith(".hf_vat") for path in folder.iterdir()):
        if resume and resume != "last":
            raise InputError(f"{resume} is not a checkpoint of the run in {folder}, which is empty.")
        return None
    try:
        found = parse_json((folder / RUN_NAME).read_text(encoding="utf-8"))
        given = run_settings(model_args, data_args, args)
        different = []
        for group, made in {"model": ModelArguments, "data": DataArguments, "training": VATTrainingArguments}.items():
            # An option that came later had its default value before.
            before = {field.name: field.default for field in fields(made)} | found[group]
            for name, value in given[group].items():
                if before[name] != value:
                    different.append(f"{group}.{name} was {before[name]!r} and is {value!r}")
        if (processes := found.get("processes", 1)) != args.world_size:
            different.append(f"the number of processes was {processes} and is {args.world_size}")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"--output_dir {folder} holds other files and no run; choose an empty or new folder."
        ) from error
    if different:
        raise InputError(
            f"--output_dir {folder} holds another run ({'; '.join(different[:5])}); choose another folder, or the same "
            "settings."
        )
    if not resume:
        raise InputError(
            f"--output_dir {folder} holds this run already; go on with --resume_from_checkpoint last, or choose "
            "another folder."
        )
    if resume == "last":
        if is_finished(folder):
            return str(folder)
        whole = find_whole(folder, args.load_best_model_at_end)
        return None if whole is None else str(whole)
    if not os.path.isdir(resume):
        raise InputError(f"--resume_from_checkpoint {resume} is not a folder; use 'last' or one of {folder}.")
    return resume


@contextmanager
def held_output_dir(args: VATTrainingArguments) -> Iterator[None]:
    """Keep other runs out of the output folder until the end, and clear it of what killed ones had half written.

    The first process does so for all. A folder that is made for it, and still empty in the end, is taken away again.

    Raises:
        InputError: if another process trains there.
    """
    folder = Path(args.output_dir)
    if args.process_index or (folder.exists() and not folder.is_dir()):
        yield
        return
    missing = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with alone_in(folder):
            yield
    finally:
        if missing:
            with suppress(OSError):  # it holds something
                folder.rmdir()


def is_finished(folder: Path) -> bool:
    """Whether a run has come to its end: the state of its trainer is the last that it writes."""
    return (folder / TRAINER_STATE_NAME).is_file()


def run_settings(model_args: ModelArguments, data_args: DataArguments, args: VATTrainingArguments) -> dict:
    """What is stored as `run.json`, beside the data's fingerprints, as it reads when loaded back."""
    training = args.to_dict()
    settings = {
        "model": asdict(model_args),
        "data": asdict(data_args),
        "training": {name: value for name, value in training.items() if name not in MAY_DIFFER},
        "processes": args.world_size,
    }
    return json.loads(json.dumps(settings, default=str))


def check_fingerprints(folder: Path, found: dict[str, str]) -> None:
    """Refuse to go on with other data than those that a run began with.

    Args:
        found: what [`fingerprints`] has told of the data at hand.

    Raises:
        InputError: naming what has changed.
    """
    try:
        before = parse_json((folder / RUN_NAME).read_text(encoding="utf-8")).get("fingerprints", {})
    except FileNotFoundError:  # a new run
        return
    different = [name for name in {**before, **found} if before.get(name) != found.get(name)]
    if different:
        told = ", ".join(
            f"{name} was {before.get(name, 'none')} and is {found.get(name, 'none')}" for name in different
        )
        raise InputError(
            f"--output_dir {folder} holds a run on other data, by their fingerprints: {told}. Give the rows that it began "
            "with, or choose another folder."
        )


def fingerprints(data: Mapping[str, Dataset | IterableDataset], args: DataArguments, tokenizer) -> dict[str, str]:
    """What tells the content of data and tokenizer from others: the first digits of SHA-256.

    Of rows in memory texts, labels and class names are hashed; of a stream the size of its file and 65 pieces of it, 4 MB
    together; of one without a file its first rows.
    """
    found = {f"{split} data": _of_rows(rows, args, split) for split, rows in data.items()}
    return found | {"vocabulary": _digest([json.dumps(sorted(tokenizer.get_vocab().items())).encode()])}


def _of_rows(rows: Dataset | IterableDataset, args: DataArguments, split: str) -> str:
    label = rows.features["label"]
    names = json.dumps(getattr(getattr(label, "feature", label), "names", None)).encode()
    if isinstance(rows, Dataset):
        columns = [name for name in (*PAIR, "label") if name in rows.column_names]
        tables = rows.select_columns(columns).iter(_TOGETHER)
    elif args.paper_dataset is None and (path := local_files(args).get(split)):
        return _digest([names, *_of_file(path)])
    else:
        tables = [list(rows.take(_TOGETHER))]
    return _digest([names, *(json.dumps(table).encode() for table in tables)])


def _of_file(path: Path) -> Iterator[bytes]:
    size = path.stat().st_size
    yield str(size).encode()
    with open(path, "rb") as file:
        for place in (*range(0, size, max(_BLOCK, size // _BLOCKS)), max(0, size - _BLOCK)):
            file.seek(place)
            yield file.read(_BLOCK)


def _digest(parts: Iterable[bytes]) -> str:
    found = sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:16]
