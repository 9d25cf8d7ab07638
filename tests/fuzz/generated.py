"""Generators: command lines, model folders, tables and arguments of functions, most of them a little wrong."""

import csv
import io
import json
import shutil
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from hf_vat.commands import COMMANDS
from hf_vat.explanations import METHODS

ARGUMENTS = {name: import_module(f"hf_vat.commands.{name}").ARGUMENTS for name in COMMANDS}

# Options that reach out of the process, or that ask for long work when they are right.
_LEFT_OUT = {
    *("push_to_hub", "report_to", "torch_compile", "torch_compile_backend", "torch_compile_mode", "full_determinism"),
    *("fsdp", "fsdp_config", "deepspeed", "ddp_backend", "local_rank", "parallelism_config", "use_cpu", "disable_tqdm"),
    *("enable_jit_checkpoint", "output_dir", "work_dir", "bf16", "jobs", "eval_on_start", "skip_memory_metrics"),
    *("optim", "log_level", "log_level_replica", "ddp_timeout", "dataloader_multiprocessing_context"),
}
_PATHS = ("model", "scorer", "other", "model_name_or_path", "dataset_name", "vectors", "results", "extend")
_NUMBERS = [
    "-1",
    "0",
    "1",
    "2",
    "3",
    "0.5",
    "1.5",
    "1e3",
    "-0.0",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "9" * 20,
    "9" * 5000,
    "0x10",
]
_NUMBERS += ["１", "1_0", " 1", "", "x", "None", "true", "-2147483649", "4294967296", "[1]"]
_WORDS = [
    "",
    " ",
    "x",
    "attention",
    "lime",
    "positive",
    "text",
    "label",
    "a b",
    "a,b",
    "=",
    "--",
    "-",
    "💥",
    "\x1b[31m",
    "\x00",
]
_WORDS += [
    "‮x",
    "../..",
    "/",
    ".",
    "~",
    "~nobody/x",
    "x" * 300,
    "a\nb",
    "{}",
    '{"a": 1}',
    "[[[",
    "None",
    "0",
    "é",
    "\udcff",
]
_ENCODINGS = [
    "utf-8",
    "utf-16",
    "latin-1",
    "cp1252",
    "base64",
    "rot13",
    "hex",
    "zip",
    "idna",
    "utf-7",
    "undefined",
    "utf-8-sig",
]
_SETTINGS = [
    "n_samples=3",
    "n_samples=0",
    "n_samples=1e3",
    f"n_samples={10**12}",
    "n_steps=3",
    "operator=mask",
    "operator=x",
]
_SETTINGS += [
    "exact=true",
    "exact=7",
    "baseline=zero",
    "seed=1",
    "model=x",
    "method=",
    "batch_size=2",
    "labels=1",
    "save_to=x",
]
_SETTINGS += [
    "lime.n_samples=5",
    "shapley.n_samples=2",
    "=",
    "x",
    "texts=[]",
    "target=positive",
    "operator=[1]",
    "n_samples=[[[",
]


def paths(inputs: Path) -> st.SearchStrategy[str]:
    there = sorted(str(path) for path in inputs.iterdir())
    odd = ["/proc/self/status", "/dev/null", "/dev/zero", "/nowhere/x.csv", "x.csv", "x.parquet", "a.csv/b.csv", "/etc"]
    return st.sampled_from([*there, *there, *odd, *_WORDS])


def values(name: str, kind: str, inputs: Path, choices) -> st.SearchStrategy[list[str]]:
    """Words after an option."""
    if choices:
        one = st.sampled_from([*map(str, choices), *_WORDS[:4]])
    elif name in ("settings",):
        one = st.sampled_from(_SETTINGS)
    elif name in ("method", "methods"):
        one = st.sampled_from([*METHODS, "x", ""])
    elif name == "encoding":
        one = st.sampled_from([*_ENCODINGS, *_WORDS])
    elif name in _PATHS or name.endswith(("_file", "_dir")):
        one = paths(inputs)
    elif name in ("html", "json", "csv", "parquet", "save_to"):  # files of the user, or one beside them, must stay
        of_others = [str(path) for path in sorted(inputs.iterdir()) if path.name != "empty.csv"]  # which holds nothing
        one = st.sampled_from(["new/a", "a", ".", *of_others, str(inputs / "table.csv" / "a")])
    elif "int" in kind or "float" in kind:
        one = st.sampled_from(_NUMBERS)
    elif kind.startswith("<class 'bool'") or kind.startswith("bool"):
        return st.sampled_from([[], ["true"], ["no"], ["x"], ["7"]])
    else:
        one = st.sampled_from(_WORDS)
    return st.lists(one, min_size=1, max_size=3) if "list" in kind else one.map(lambda word: [word])


def command_lines(command: str, inputs: Path) -> st.SearchStrategy[list[str]]:
    """A line that works, with one to three options changed or added."""
    table = str(inputs / "table.csv")
    base: dict[str, list[str]] = {
        "train": {
            **{"model_name_or_path": [str(inputs / "vat")], "train_file": [table], "max_steps": ["1"], "use_cpu": []},
            **{"card_texts": ["0"], "eval_strategy": ["no"], "save_strategy": ["no"], "load_best_model_at_end": ["no"]},
            **{"disable_tqdm": [], "output_dir": ["run"], "max_length": ["8"]},
        },
        "explain": {"model": [str(inputs / "vat")], "test_file": [table], "show": ["1"]},
        "words": {"model": [str(inputs / "masked")], "test_file": [table], "top": ["2"]},
        "evaluate": {
            **{"model": [str(inputs / "vat")], "methods": ["attention"], "test_file": [table], "ks": ["1"]},
            **{"shares": ["0.5"], "seeds": ["1"]},
        },
        "distill": {
            **{
                "model": [str(inputs / "vat")],
                "train_file": [table],
                "output_dir": ["student"],
                "max_eval_samples": ["4"],
            },
            **{"epochs": ["1"], "settings": ["n_samples=2"]},
        },
        "probe": {
            "model": [str(inputs / "plain")],
            "output_dir": ["probe"],
            "test_file": [table],
            "max_eval_samples": ["2"],
        },
        "reproduce": {"table": ["1"], "results": [str(inputs / "nested.jsonl")], "output_dir": ["results"]},
    }[command]
    known = {
        one.name: one for arguments in ARGUMENTS[command] for one in fields(arguments) if one.name not in _LEFT_OUT
    }
    if command == "distill":  # what makes a run longer when it is right, or writes into the classifier's folder
        known = {name: one for name, one in known.items() if name not in ("epochs", "attach")}
    if command == "train":  # what makes a run longer when it is right
        known = {name: one for name, one in known.items() if name not in ("max_steps", "dataloader_num_workers")}

    @st.composite
    def line(draw) -> list[str]:
        options = dict(base)
        for name in draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=3, unique=True)):
            one = known[name]
            options[name] = draw(values(name, str(one.type), inputs, one.metadata.get("choices")))
        if draw(st.integers(0, 9)) == 0:
            options.pop(draw(st.sampled_from(sorted(options))))
        paper = [draw(st.sampled_from(["vat", "vmask", "x", ""]))] if command == "reproduce" else []
        words = [command, *paper, *(word for name, given in options.items() for word in (f"--{name}", *given))]
        if draw(st.integers(0, 19)) == 0:
            words.insert(draw(st.integers(1, len(words))), draw(st.sampled_from(_WORDS)))
        return words

    return line()


# Model folders

_JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([10**6, 10**12, -(10**9), 1e300, float("nan"), float("inf")]),
    st.text(max_size=5), st.lists(st.integers(0, 3), max_size=3), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip


def damage(whole: Path, folder: Path):
    """Copy a whole model folder and damage one to three places of it."""
    names = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")

    @st.composite
    def damaged(draw) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        for _ in range(draw(st.integers(1, 3))):
            path = folder / draw(st.sampled_from(names))
            kind = draw(
                st.sampled_from(["key", "key", "key", "key", "cut", "flip", "bytes", "gone", "folder", "pickle"])
            )
            if not path.is_file():
                continue
            content = path.read_bytes()
            if kind == "key":
                _change_json(draw, path, content)
            elif kind == "cut":
                path.write_bytes(content[: draw(st.integers(0, len(content)))])
            elif kind == "flip" and content:
                place = draw(st.integers(0, min(len(content), 4000) - 1))
                path.write_bytes(content[:place] + bytes([draw(st.integers(0, 255))]) + content[place + 1 :])
            elif kind == "bytes":
                path.write_bytes(draw(st.binary(max_size=40)))
            elif kind in ("gone", "folder"):
                path.unlink()
                if kind == "folder":
                    path.mkdir()
            elif kind == "pickle":
                path.write_bytes(b"\x80\x04\x95\x18\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x8c\x05print\x93.")

    return damaged()


def _change_json(draw, path: Path, content: bytes) -> None:
    try:
        place = whole = json.loads(content)
    except ValueError:
        return
    while isinstance(place, dict) and place:
        key = draw(st.sampled_from(sorted(place)))
        if isinstance(place[key], dict) and place[key] and draw(st.booleans()):
            place = place[key]
            continue
        if draw(st.integers(0, 5)) == 0:
            del place[key]
        else:
            place[key] = draw(_JUNK)
        break
    path.write_text(json.dumps(whole), "utf-8")


# Tables

_CELL = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.sampled_from(
        ["positive", "negative", "0", "1", "1.0", "nan", "", " ", "-1", "a good film", "9" * 5000, "\x1b[2Jx", "['a']"]
    ),
)
_LABEL = st.one_of(st.sampled_from(["positive", "negative"]), _CELL)
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), _CELL),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)


def tables(folder: Path) -> st.SearchStrategy[Path]:
    """A file with texts and labels: quoted, delimited and encoded in some way, or damaged."""
    names = st.sampled_from(
        [["text", "label"], ["text"], ["sentence", "label"], ["label", "text", "x"], ["text", "text"], []]
    )

    @st.composite
    def table(draw) -> Path:
        folder.mkdir(exist_ok=True)
        kind = draw(st.sampled_from(["csv", "csv", "tsv", "jsonl", "json", "parquet", "csv.gz"]))
        path, header = folder / f"table.{kind}", draw(names)
        if kind in ("csv", "tsv", "csv.gz"):
            text = io.StringIO()
            writer = csv.writer(text, delimiter=draw(st.sampled_from([",", ";", "\t", "|"])))
            writer.writerow(header)
            writer.writerows(draw(st.lists(st.tuples(_CELL, _LABEL), max_size=5)))
            encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-16", "utf-8-sig", "cp1252"]))
            content = text.getvalue().encode(encoding, "replace")
        elif kind in ("jsonl", "json"):
            records = draw(
                st.lists(st.one_of(st.fixed_dictionaries({"text": _JSON, "label": _JSON}), _JSON), max_size=4)
            )
            content = (json.dumps(records) if kind == "json" else "\n".join(map(json.dumps, records))).encode()
        else:
            column = st.one_of(
                st.lists(_CELL, min_size=2, max_size=2), st.lists(st.integers(0, 3), min_size=2, max_size=2),
                st.lists(st.floats(), min_size=2, max_size=2), st.just([["a", "film"], ["x"]]), st.just([None, None]),
            )  # fmt: skip
            sink = io.BytesIO()
            pq.write_table(pa.table({name: draw(column) for name in dict.fromkeys(header)}), sink)
            content = sink.getvalue()
        if draw(st.integers(0, 4)) == 0:
            content = content[: draw(st.integers(0, len(content)))] + draw(st.binary(max_size=5))
        path.write_bytes(content)
        return path

    return table()
