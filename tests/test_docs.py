"""The README and the documentation: what they print runs, and the API pages leave no public name out.

A page is read from top to bottom in a folder of its own. Its Python blocks share one namespace and run as printed; names of
the Hub are toys in a cache, which HF_HUB_OFFLINE=1 finds as it finds what was downloaded. Commands run too, those that train
for two steps, and in the slow tests to the end; those that take hours read their options. What a block titled "Output" shows
is what the block before it prints.
"""

import contextlib
import importlib.util
import io
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import datasets
import pytest
import torch
import transformers
from accelerate.commands.launch import launch_command_parser
from datasets import Dataset
from datasets.packaged_modules.parquet.parquet import Parquet
from huggingface_hub import constants
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizerFast,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizerFast,
)

import hf_vat
from hf_vat import cli, commands
from hf_vat.data import PAPER_DATASETS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
WRITTEN_BY_COMMANDS = {"planted.md", "schedules.md", "benchmarks.md", "documents.md", "one_pass.md", "faithful.md"}
WRITTEN_BY_COMMANDS |= {"heads", "results", "teachers.md", "cost_of_truth.md"}
PAGES = [
    ROOT / "README.md",
    ROOT / "examples" / "space" / "README.md",
    *(path for path in sorted(DOCS.rglob("*.md")) if path.relative_to(DOCS).parts[0] not in WRITTEN_BY_COMMANDS),
]
SLOW = {DOCS / "how-to" / "compare.md", DOCS / "how-to" / "onnx.md"}
SHA = "0123456789abcdef0123456789abcdef01234567"
CLASSES = {"negative": ["bad", "awful", "boring", "dull"], "positive": ["good", "great", "warm", "funny"]}
NOUNS = ["film", "movie", "plot", "scene", "actor"]


def load_module(path: Path):
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hub_fixtures = load_module(ROOT / "tests" / "hub" / "conftest.py")
hub, online = hub_fixtures.hub, hub_fixtures.online  # a Hub on this machine, for pages that push


class Block(NamedTuple):
    """A fenced block: its language, its title if it has one, its text, and the line where the text begins."""

    language: str
    title: str
    code: str
    line: int


_FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]*)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2] or "", m[3], text[: m.start(3)].count("\n") + 1) for m in _FENCE.finditer(text)]


# Stand-ins for what the pages name


@pytest.fixture(scope="session")
def hub_names(tmp_path_factory) -> Path:
    """A cache of the Hub in which the names of the pages are toys."""
    home = tmp_path_factory.mktemp("hf")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        _save_models(home / "hub")
    _save_data(home / "datasets")
    return home


def _save_models(cache: Path) -> None:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    wide = {"initializer_range": 0.2}  # so that the outputs of an untrained model differ between texts
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,!?'-"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    words += [*CLASSES["negative"], *CLASSES["positive"], *NOUNS, "the", "is", "and"]
    tokenizer = BertTokenizerFast(vocab={word: place for place, word in enumerate(words)}, model_max_length=512)
    config = BertConfig(vocab_size=len(words), **sizes, **wide)
    _cache(cache, "google-bert/bert-base-uncased", BertModel(config), tokenizer)

    config = DistilBertConfig(vocab_size=len(words), dim=16, n_layers=1, n_heads=2, hidden_dim=32, **wide)
    config.id2label, config.label2id = {0: "NEGATIVE", 1: "POSITIVE"}, {"NEGATIVE": 0, "POSITIVE": 1}
    name = "distilbert/distilbert-base-uncased-finetuned-sst-2-english"
    _cache(cache, name, DistilBertForSequenceClassification(config), tokenizer)

    symbols = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(ByteLevel.alphabet())]
    vocabulary = {symbol: place for place, symbol in enumerate(symbols)}
    tokenizer = RobertaTokenizerFast(vocab=vocabulary, merges=[], model_max_length=512)
    config = RobertaConfig(vocab_size=len(symbols), max_position_embeddings=514, **sizes, **wide)
    _cache(cache, "FacebookAI/roberta-base", RobertaModel(config), tokenizer)


def _cache(cache: Path, name: str, *parts) -> None:
    folder = cache / f"models--{name.replace('/', '--')}"
    for part in parts:
        part.save_pretrained(folder / "snapshots" / SHA)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(SHA)


def reviews(size: int) -> dict[str, list]:
    """Texts whose class two words decide; `review` and `stars` are `text` and `label_text` by other names."""
    texts, labels = [], []
    for row in range(size):
        labels.append(list(CLASSES)[row % 2])
        first, second = (CLASSES[labels[-1]][row // step % 4] for step in (2, 8))
        texts.append(f"The {NOUNS[row % 5]} is {first} and {second}, and a {NOUNS[row % 3]}.")
    ids = [list(CLASSES).index(label) for label in labels]
    return {"text": texts, "review": texts, "label": ids, "label_text": labels, "stars": labels}


def questions(counts) -> dict[str, list]:
    """A split of TREC as the Hub has it, with as many rows of each class."""
    names = [name for name, count in zip(PAPER_DATASETS["trec"].label_names, counts, strict=True) for _ in range(count)]
    texts = [f"Who is the {NOUNS[row % 5]} of {name} {row % 7} ?" for row, name in enumerate(names)]
    return {"text": texts, "label": [0] * len(texts), "label_coarse_text": names}


def _save_data(cache: Path) -> None:
    cache.mkdir()
    sizes = {"train": 48, "validation": 24, "test": 24}
    counts = {"train": (86, 1250, 1162, 1223, 835, 896), "test": PAPER_DATASETS["trec"].label_counts["test"]}
    data = {
        "sst2": {
            split: {name: reviews(size)[name] for name in ("text", "label", "label_text")}
            for split, size in sizes.items()
        },
        "trec-qc": {split: questions(rows) for split, rows in counts.items()},
    }
    for name, splits in data.items():
        files = {split: str(cache / f"{name}-{split}.parquet") for split in splits}
        for split, rows in splits.items():
            Dataset.from_dict(rows).to_parquet(files[split])
        prepared = cache / f"SetFit___{name}" / "default" / "0.0.0" / SHA  # as `datasets` leaves a download
        Parquet(str(cache), dataset_name=name, data_files=files).download_and_prepare(str(prepared))


@pytest.fixture
def desk(hub_names, tmp_path, monkeypatch) -> Path:
    """The folder in which a page is read, with files of the names that pages give theirs."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(hub_names / "hub"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", hub_names / "datasets")
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    for name, size in {"train": 48, "dev": 24, "test": 24, "huge": 96}.items():
        Dataset.from_dict(reviews(size)).to_csv(folder / f"{name}.csv")
    vectors = [f"{word} 0.1 -0.2 0.3" for word in (*NOUNS, *CLASSES["positive"])]
    (folder / "glove.6B.300d.txt").write_text("\n".join(vectors) + "\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def go_online(request, hub_names) -> Callable[[], None]:
    """From the call on, names are on a Hub that takes pushes and holds the same toys."""

    def start() -> None:
        hub = request.getfixturevalue("online")
        loopback = sys.modules["loopback"]
        for folder in (hub_names / "hub").iterdir():
            name = folder.name.removeprefix("models--").replace("--", "/")
            files = {path.name: loopback.File(path.read_bytes()) for path in (folder / "snapshots" / SHA).iterdir()}
            if f"models/{name}" not in hub.repos:
                hub.repos[f"models/{name}"] = loopback.Repo("models", name, False)
                hub.repos[f"models/{name}"].add("main", files, "toy")

    return start


# Reading a page


class Reader:
    """Runs the blocks of a page in order.

    Args:
        go_online: called before the first block that names a repository of the reader's own.
        whole: train to the end.
    """

    def __init__(self, monkeypatch, go_online: Callable[[], None], whole: bool = False):
        self.monkeypatch, self.go_online, self.whole = monkeypatch, go_online, whole
        self.namespace = {"__name__": "__main__"}
        self.place, self.output = "", ""
        if not whole:  # curves take a second to draw
            monkeypatch.setattr("hf_vat.hub.callback._draw_curves", lambda log, path: False)

    def read(self, page: Path) -> None:
        for block in blocks(page):
            self.place = f"{page.name}, line {block.line}"
            if "your-name/" in block.code:
                self.go_online()
            if block.language == "python" and block.title.startswith("Without "):
                self.output = self._python_without(block.title.removeprefix("Without ").split(" and "), block.code)
            elif block.language == "python":
                code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(code, self.namespace)
                self.output = out.getvalue()
            elif block.language == "bash":
                for words in command_lines(block.code):
                    self._run(words)
            elif block.title == "Output":
                assert self.output.strip() == block.code.strip(), self.place

    def _python_without(self, packages: list[str], code: str) -> str:
        """Run code in a fresh process in which packages cannot be imported."""
        modules = [{"PyTorch": "torch"}.get(package, package) for package in packages]
        hidden = f"import sys\nsys.modules.update(dict.fromkeys({modules}))\n"
        environment = os.environ | {"HF_HOME": "home", "HF_HUB_OFFLINE": "1"}
        done = subprocess.run([sys.executable, "-c", hidden + code], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{self.place}: {done.stderr[-3000:]}"
        return done.stdout

    def _run(self, words: list[str]) -> None:
        program, *rest = words
        if words == ["make", "quickstart"]:  # which takes minutes
            self._command(["train", "--dataset_name", "SetFit/sst2", "--output_dir", "runs/quickstart/VAT"])
        elif program == "make":
            targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert set(rest) <= set(targets), self.place
        elif program == "pip":
            extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
            [asked] = re.findall(r"\.\[([\w,]+)\]$", rest[-1])
            assert rest[:-1] == ["install", "-c", "constraints.txt", "-e"] and {*asked.split(",")} <= {*extras}, (
                self.place
            )
        elif program == "hf-vat":
            self._command(rest)
        elif program == "python" and re.fullmatch(r"examples/[\w/]+\.py", rest[0]):
            self._options(load_module(ROOT / rest[0]), rest[1:])
        elif program == "accelerate":
            self._accelerate(rest[1:])
        elif program == "torchrun":
            self._torchrun(rest)
        else:
            assert words == ["hf", "auth", "login"], f"{self.place}: no test knows how to check {shlex.join(words)}"

    def _command(self, argv: list[str]) -> None:
        """Run a command of `hf-vat`, or let it read its options if it would run for hours."""
        assert argv[0] in commands.COMMANDS, f"{self.place}: {argv[0]}"
        if argv[0] == "reproduce":
            self._options(import_module("hf_vat.commands.reproduce"), argv[1:])
            return
        if argv[0] == "train":
            argv = [*argv, "--use_cpu", *([] if self.whole else ["--max_steps", "2", "--card_texts", "20"])]
        self.monkeypatch.setattr(sys, "argv", ["hf-vat", *argv])
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
            commands.main()
        assert not ended.value.code, f"{self.place}: {err.getvalue()[-2000:]}"
        self.output = out.getvalue()

    def _torchrun(self, argv: list[str]) -> None:
        if self.whole:
            self._launch("torch.distributed.run", argv)
            return
        assert [argv[0], *argv[2:4]] == ["--nproc_per_node", "-m", "hf_vat.commands"], self.place
        self._command(argv[4:])

    def _accelerate(self, argv: list[str]) -> None:
        args = launch_command_parser().parse_args(argv)  # which ends the process at a wrong option
        assert args.config_file is None or Path(args.config_file).is_file(), self.place
        if self.whole and Path(args.config_file or "").stem == "multi_cpu":
            self._launch("accelerate.commands.launch", argv)
        elif args.module:
            command, *options = args.training_script_args
            assert args.training_script == "hf_vat.commands", self.place
            self._options(import_module(f"hf_vat.commands.{command}"), options)
        else:
            self._options(load_module(ROOT / args.training_script), args.training_script_args)

    def _launch(self, launcher: str, argv: list[str]) -> None:
        home = {"HF_HOME": str(Path(constants.HF_HUB_CACHE).parent), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        line = [sys.executable, "-m", launcher, *argv]
        done = subprocess.run(line, env=os.environ | home, capture_output=True, text=True)
        assert done.returncode == 0, f"{self.place}: {done.stderr[-3000:]}"
        assert "world size 2" in done.stderr or "Shard 2/2 of " in done.stdout, self.place

    def _options(self, module, argv: list[str]) -> None:
        """Let a command read its options, and no more."""

        class Read(Exception):
            pass

        def parse_and_stop(*args, **kwargs):
            cli.parse_arguments(*args, **kwargs)
            raise Read

        with self.monkeypatch.context() as patched, contextlib.redirect_stderr(io.StringIO()) as err:
            patched.setattr(module, "parse_arguments", parse_and_stop)
            patched.setattr(sys, "argv", [module.__name__, *argv])
            with pytest.raises((Read, SystemExit)) as ended:
                module.main()
        assert ended.type is Read, f"{self.place}: {err.getvalue()[-2000:]}"


@pytest.fixture
def reader(desk, monkeypatch, go_online) -> Iterator[Callable[..., Reader]]:
    yield partial(Reader, monkeypatch, go_online)
    transformers.logging.enable_progress_bar()  # which commands turn off


def command_lines(code: str) -> Iterator[list[str]]:
    """The words of each command of a block, which must be shell."""
    subprocess.run(["bash", "-n"], input=code, text=True, check=True, capture_output=True)
    for line in code.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


# Tests


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page in SLOW else page for page in PAGES if blocks(page)],
    ids=name_of,
)
def test_a_page_runs_as_printed(page, reader):
    reader().read(page)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if re.search(r"^(hf-vat train|torchrun)", page.read_text(), re.M)],
    ids=name_of,
)
def test_a_page_runs_as_printed_to_the_end(page, reader):
    reader(whole=True).read(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_block_escapes(page):
    """Every fence is one that is read, and of a language that is run or shown as it is."""
    found = blocks(page)
    fences = [
        line for line in page.read_text(encoding="utf-8").splitlines() if line.lstrip().startswith(("```", "~~~"))
    ]
    assert len(fences) == 2 * len(found)
    for before, block in zip([None, *found], found, strict=False):
        assert block.language in {"python", "bash", "text", "csv"}, block
        assert block.title != "Output" or before.language == "python", block


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('```python\nprint(1)\n```\n\n```text title="Output"\n2\n```\n', AssertionError),
        ("```python\nimport hf_vat\nhf_vat.explain_it\n```\n", AttributeError),
        ('```python title="Without hf_vat"\nimport hf_vat\n```\n', AssertionError),
        ("```bash\nhf-vat explain --model distilbert/no-such --text a\n```\n", AssertionError),
        ("```bash\nhf-vat reproduce vat --tables 2\n```\n", AssertionError),
        ("```bash\nhf-vat explian --text a\n```\n", AssertionError),
        ("```bash\ntorchrun --nproc_per_node 2 -m hf_vat.commands train --output_dirs a\n```\n", AssertionError),
        ("```bash\naccelerate launch examples/train_vat.py --output_dirs a\n```\n", AssertionError),
        ("```bash\naccelerate launch --config_file examples/no.yaml examples/train_vat.py\n```\n", AssertionError),
        ("```bash\naccelerate launch -m hf_vat.commands train --output_dirs a\n```\n", AssertionError),
        ("```bash\npython examples/explain.py --texts a\n```\n", AssertionError),
        ("```bash\npython examples/quantize.py --models a\n```\n", AssertionError),
        ('```bash\npip install -c constraints.txt -e ".[explains]"\n```\n', AssertionError),
        ("```bash\nmake quickstarts\n```\n", AssertionError),
        ("```bash\nrm -rf runs\n```\n", AssertionError),
        ('```bash\necho "a\n```\n', subprocess.CalledProcessError),
    ],
)
def test_what_does_not_run_is_found(text, wrong, desk, reader):
    page = desk / "page.md"
    page.write_text(text)
    with pytest.raises(wrong):
        reader().read(page)


API = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
DOCUMENTED = set(re.findall(r"^::: ([\w.]+)$", API, re.MULTILINE))
PACKAGES = [info.name for info in pkgutil.walk_packages(hf_vat.__path__, "hf_vat.") if info.ispkg]


@pytest.mark.parametrize("package", [name for name in PACKAGES if hasattr(import_module(name), "__all__")])
def test_the_api_has_every_public_name(package):
    """The page of a package shows what has a docstring; a constant, which has none, is named beside it."""
    assert package in DOCUMENTED
    if package.startswith("hf_vat.reproduction"):  # shown with its constants
        return
    module = import_module(package)
    constants = {name for name in module.__all__ if not callable(getattr(module, name))}
    assert {f"{package}.{name}" for name in constants} <= DOCUMENTED
    assert all(getattr(module, name).__doc__ for name in module.__all__)


def test_the_first_api_page_has_the_names_of_hf_vat():
    index = (DOCS / "api" / "index.md").read_text(encoding="utf-8")
    named = re.findall(r"\[`(\w+)`\]\[hf_vat\.[\w.]+\.(\w+)\]", index)
    packages = re.findall(r"\[`hf_vat\.(\w+)`\]\(\1\.md\)", index)
    assert sorted(hf_vat.__all__) == sorted([*packages, *(name for name, target in named if name == target)])


def test_what_the_api_documents_is_there():
    for name in DOCUMENTED:
        pkgutil.resolve_name(name)
