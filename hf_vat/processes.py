"""The processes that do one job together, as torchrun and `accelerate launch` start them: which one this is, and of how many."""

import os
from datetime import timedelta

import torch

from .errors import InputError

_PATIENCE = timedelta(days=30)  # a shard may take that much longer than another


def process_rank() -> int:
    """The number of this process, from 0."""
    return int(os.environ.get("RANK", 0))


def process_count() -> int:
    """How many processes were started together."""
    return int(os.environ.get("WORLD_SIZE", 1))


def is_main_process() -> bool:
    """Whether this process is the only one, or the first of several."""
    return process_rank() == 0


def refuse_lone_process(working_together: int) -> None:
    """Refuse to go on in fewer processes than a launcher was asked for: each would do all of the work, and write the same
    files.

    Args:
        working_together: how many processes this one has found, itself included.

    Raises:
        InputError: if it was asked for more.
    """
    if working_together < process_count():
        raise InputError(
            f"{process_count()} processes were started, but each is about to run alone, since there is no way for them to "
            "meet on this device; add --use_cpu, or start one process."
        )
    # On CPUs `accelerate launch --num_processes 2` starts one process. It tells it where several would meet, not how many.
    by_accelerate = {"ACCELERATE_MIXED_PRECISION", "MASTER_ADDR"} <= os.environ.keys()
    if working_together == 1 and by_accelerate and "WORLD_SIZE" not in os.environ:
        raise InputError(
            "accelerate launch was asked for several processes and has started one, as it does on CPUs. Add --multi_gpu, "
            "which starts them on CPUs too, or use torchrun --nproc_per_node; for one process leave --num_processes out, and "
            "MASTER_ADDR out of the environment."
        )


def refuse_shares_on_cpus() -> None:
    """Refuse parameters in shares where accelerate would leave them out, and not say so.

    Raises:
        InputError: if accelerate was asked for FSDP or DeepSpeed.
    """
    for name in ("FSDP", "DeepSpeed"):
        if os.environ.get(f"ACCELERATE_USE_{name.upper()}", "").lower() == "true":
            raise InputError(
                f"accelerate launch was asked for {name}, which accelerate leaves out on CPUs: every process would hold all "
                "parameters. Start the processes without it, with --multi_gpu or torchrun."
            )


def own_device() -> torch.device:
    """The accelerator of this process, another one for each process of a machine while there are enough; else the CPU."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if accelerator is None:
        return torch.device("cpu")
    place = int(os.environ.get("LOCAL_RANK", 0)) % torch.accelerator.device_count()
    return torch.device(accelerator.type, place)


def join_processes() -> None:
    """Let processes that were started together find each other, before the first [`wait_for_processes`]."""
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", timeout=_PATIENCE)


def wait_for_processes() -> None:
    """Wait until every process has come to this place.

    Raises:
        InputError: if one has ended.
    """
    try:
        torch.distributed.barrier()
    except RuntimeError as error:
        raise InputError(
            "Another process has ended before its part was done, and has said why; the same command goes on."
        ) from error
