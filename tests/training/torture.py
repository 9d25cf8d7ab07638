"""Kill a short run again and again, and damage its last checkpoint in every way: it goes on, and ends with the same weights.

    python tests/training/torture.py --kills 60 --damages 1000        or     make torture

A run of a tiny BERT (with dropout, phases, a best model and checkpoints that are rotated) is forked off this process. Half
of the kills come at any time; the other half is aimed at the writing of checkpoints, before the n-th time that a file is
opened, moved or removed there. Each folder is killed up to three times and then finishes. Prints what happened, and ends with 1
if a run could not go on, or ended with other weights than one that was left alone.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if __name__ == "__main__":  # a test takes the damages from here
    os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
sys.path.append(str(Path(__file__).parent))

import torch
from runs import SMALL, WORDS, tiny_data
from transformers import BertConfig, BertModel, set_seed

from hf_vat.data import DataArguments
from hf_vat.training import ModelArguments, VATTrainingArguments, train_classifier
from hf_vat.training.checkpoints import UNFINISHED_NAME
from hf_vat.training.folder import find_whole

_EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "shutil.rmtree")
DAMAGES = {
    "deleted": lambda path: path.unlink(),
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: os.truncate(path, 0),
    "flipped": lambda path: path.write_bytes(flip(path.read_bytes())),
}


def flip(content: bytes) -> bytes:
    """With another byte in the middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def prepare(work: Path) -> None:
    """An encoder, and files of training and test texts."""
    tokenizer, _ = tiny_data()
    set_seed(0)
    BertModel(BertConfig(vocab_size=len(tokenizer), **SMALL)).save_pretrained(work / "encoder")
    tokenizer.save_pretrained(work / "encoder")
    for name, nouns in {"train": ["film", "movie", "plot", "scene"], "test": ["actor"]}.items():
        rows = [f"the {word} {noun},{label}" for label, words in WORDS.items() for word in words for noun in nouns]
        (work / f"{name}.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")


def train(work: Path, folder: Path) -> None:
    """The run, from where it was."""
    train_classifier(
        ModelArguments(model_name_or_path=str(work / "encoder"), max_length=16),
        DataArguments(train_file=str(work / "train.csv"), test_file=str(work / "test.csv")),
        VATTrainingArguments(
            str(folder), resume_from_checkpoint="last", use_cpu=True, report_to="none", disable_tqdm=True, logging_steps=1,
            num_train_epochs=3, compress_epochs=1, learn_epochs=1, per_device_train_batch_size=6, learning_rate=1e-3,
            eval_strategy="steps", eval_steps=2, save_strategy="steps", save_steps=2, save_total_limit=2,
            load_best_model_at_end=True, metric_for_best_model="cross_entropy",
        ),
    )  # fmt: skip


class Runs:
    """Runs of the same training in folders of their own.

    Attributes:
        seconds, events: how long one that is left alone takes, and how often it touches a checkpoint that it writes.
        expected: its weights.
    """

    def __init__(self, work: Path):
        self.work, self.log = work, work / "log.txt"
        prepare(work)
        started = time.monotonic()
        code = self.wait(self.start(work / "alone"))
        self.seconds = time.monotonic() - started
        assert code == 0, self.log.read_text(encoding="utf-8")
        self.events = int((work / "events").read_text())
        self.expected = self.weights(work / "alone")

    @staticmethod
    def weights(folder: Path) -> bytes:
        return (folder / "model.safetensors").read_bytes()

    def start(self, folder: Path, kill_at: int | None = None) -> int:
        """Fork a process that trains; it kills itself before that touch of a checkpoint."""
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1), os.dup2(log, 2)
            count = 0

            def see(event: str, arguments: tuple) -> None:
                nonlocal count
                if event in _EVENTS and any(UNFINISHED_NAME in str(one) for one in arguments):
                    count += 1
                    if count == kill_at:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(see)
            train(self.work, folder)
            (self.work / "events").write_text(str(count))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def wait(self, pid: int, seconds: float | None = None) -> int:
        """The exit code of a run, which is killed after so many seconds; negative for a signal."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            ended, status = os.waitpid(pid, 0 if deadline is None else os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                deadline = None
            time.sleep(0.002)

    def fault(self, folder: Path) -> str | None:
        """What is wrong with a run that has gone on to its end."""
        if code := self.wait(self.start(folder)):
            return f"it ended with {code}: {self.log.read_text(encoding='utf-8')[-2000:]}"
        if self.weights(folder) != self.expected:
            return "it has other weights"
        return "it left what it had half written" if list(folder.glob(".hf_vat-*")) else None


@contextmanager
def folder_of(work: Path) -> Iterator[Path]:
    folder = work / "run"
    yield folder
    shutil.rmtree(folder)


def kill(runs: Runs, kills: int, seed: int) -> Iterator[str | None]:
    """For each folder what is wrong, after up to three kills; one of two is aimed at a checkpoint."""
    draw, timed, aimed = random.Random(seed), 0, 0
    while timed + aimed < kills:
        with folder_of(runs.work) as folder:
            for _ in range(min(3, kills - timed - aimed)):
                if aimed <= timed:
                    aims = True
                    code = runs.wait(runs.start(folder, kill_at=draw.randint(1, runs.events // 2)))
                else:
                    aims = False
                    code = runs.wait(runs.start(folder), draw.uniform(0, runs.seconds))
                if code == 0:  # it was faster
                    break
                if code != -signal.SIGKILL:
                    yield f"it ended with {code}: {runs.log.read_text(encoding='utf-8')[-2000:]}"
                aimed, timed = aimed + aims, timed + (not aims)
            yield runs.fault(folder)
    print(f"{timed + aimed} kills, {aimed} of them aimed at a checkpoint that is written")


def damage(runs: Runs, most: int, seed: int) -> Iterator[str | None]:
    """For each damage of a file of the last checkpoint what is wrong."""
    stopped = runs.work / "stopped"
    code = runs.wait(runs.start(stopped, kill_at=runs.events))  # the last checkpoint is in its place
    assert code == -signal.SIGKILL, runs.log.read_text(encoding="utf-8")
    last = find_whole(stopped, with_best=True)
    assert last is not None and not (stopped / "trainer_state.json").exists()
    every = [(path.name, name) for path in sorted(last.iterdir()) for name in DAMAGES]
    random.Random(seed).shuffle(every)
    for file, name in every[:most]:
        with folder_of(runs.work) as folder:
            shutil.copytree(stopped, folder)
            DAMAGES[name](folder / last.name / file)
            fault = runs.fault(folder)
            if fault is None and f"{last.name} is left out" not in runs.log.read_text(encoding="utf-8"):
                fault = "nothing was said of it"
            yield fault and f"{file} {name}: {fault}"
    print(f"{min(most, len(every))} damages of {last.name} ({len(every)} there are)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--damages", type=int, default=1000, help="at most so many, drawn by chance")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        runs = Runs(Path(work))
        print(f"a run takes {runs.seconds:.1f} s and touches its checkpoints {runs.events} times", flush=True)
        found = [*kill(runs, args.kills, args.seed), *damage(runs, args.damages, args.seed)]
    faults = [fault for fault in found if fault is not None]
    print(f"{len(found)} runs went on; {len(faults)} did not, or not to the same weights")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
