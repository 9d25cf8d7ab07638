"""Several processes explain the texts of one command: those that a launcher started together, or the jobs of a cluster."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hf_vat.arguments import argument
from hf_vat.errors import InputError
from hf_vat.processes import (
    is_main_process,
    join_processes,
    process_count,
    process_rank,
    refuse_lone_process,
    wait_for_processes,
)


@dataclass
class ShardArguments:
    shard: str | None = argument(
        None, "Explain a part of the texts only, such as 3/8, the third of eight; --merge then finishes the command."
    )
    merge: int | None = argument(None, "Put the explanations of so many shards together, and go on with them.")


@dataclass(frozen=True)
class Turn:
    """What a process does of a command: all of it, or explain one shard, or put the shards together and do the rest.

    Attributes:
        shard: the number of the shard, from 1, and of how many.
        merge: how many shards to put together.
    """

    shard: tuple[int, int] | None = None
    merge: int | None = None

    def tell(self, explained: int, total: int, file: object) -> None:
        """Say what a shard is: its explanations, of so many of the command, and its file, or the one that all go into."""
        if self.shard is not None:
            number, count = self.shard
            print(f"Shard {number}/{count} of {file}: {explained:,} of {total:,} texts explained", flush=True)


def turns(args: ShardArguments, file: str | None, option: str) -> Iterator[Turn]:
    """What this process has to do, one after the other: of several processes each explains a shard, and then the first one
    does the rest.

    Args:
        file: what the command was given to write explanations to.
        option: the option that names it.

    Raises:
        InputError: if the arguments cannot be used, or are not for several processes, or these have no file to share.
    """
    shard, merge = _read_shard(args.shard), args.merge
    together = process_count()
    refuse_lone_process(together)
    if together == 1:
        return iter([Turn(shard, merge)])
    if shard or merge:
        raise InputError(
            f"{together} processes were started, which share the texts by themselves; leave --shard and --merge out."
        )
    if not file:
        raise InputError(f"{together} processes share the texts through files; name a place for them with --{option}.")
    return _turns_of_one_of(together)


def _turns_of_one_of(together: int) -> Iterator[Turn]:
    join_processes()
    yield Turn(shard=(process_rank() + 1, together))
    wait_for_processes()
    if is_main_process():
        yield Turn(merge=together)


def _read_shard(given: str | None) -> tuple[int, int] | None:
    if given is None:
        return None
    found = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", given)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise InputError(
            f"--shard is {given!r}; it must be the number of a shard and how many there are, from 1/8 to 8/8."
        )
    return number, count
