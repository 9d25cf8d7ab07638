"""Show which words decided, for texts on the command line or in a file.

hf-vat explain --model runs/quickstart/VAT --text "A warm, funny and beautifully acted film."
hf-vat explain --model runs/mine --method lime --test_file reviews.csv --html explanations.html --save_to lime.jsonl
hf-vat explain --model runs/mine --test_file reviews.csv --csv predictions.csv

The texts of a file need no labels. --csv and --parquet write a row for each text: the predicted class, its probability, and
the words.

With --save_to each explanation is written as soon as it is made, and after an interruption the same command goes on.
With --streaming a file of any length is read, explained and written in constant memory, its first --max_eval_samples rows
or all of it; the same command goes on as well, and writes --csv and --parquet from that file in the end:

hf-vat explain --model runs/mine --test_file reviews.csv --streaming --save_to attention.jsonl

The jobs of a cluster share the texts: each runs the command with another --shard, and when all are done, it is run with --merge
in its place. Under torchrun or accelerate launch the processes do so by themselves:

hf-vat explain --model runs/mine --test_file reviews.csv --method lime --save_to lime.jsonl --shard 3/8
hf-vat explain --model runs/mine --test_file reviews.csv --method lime --save_to lime.jsonl --merge 8
torchrun --nproc_per_node 2 -m hf_vat.commands explain --model runs/mine --test_file reviews.csv --save_to attention.jsonl
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from hf_vat.arguments import argument
from hf_vat.cli import (
    given_options,
    in_colour,
    output_file,
    parse_arguments,
    settings_of_method,
)
from hf_vat.data import DataArguments, load_texts, stream_texts
from hf_vat.data.formats import listed
from hf_vat.errors import InputError, check_texts
from hf_vat.explanations import METHODS, Explanation, explain
from hf_vat.explanations.methods import check_settings
from hf_vat.explanations.store import Store, model_states, recorded_settings, split
from hf_vat.inference import encode_texts, model_name
from hf_vat.models.classes import class_id, class_names
from hf_vat.models.problems import MULTI_LABEL, REGRESSION, Problem
from hf_vat.models.words import EncodedText
from hf_vat.options import refuse_without_effect, settings_of
from hf_vat.pretrained import load_classifier
from hf_vat.processes import is_main_process
from hf_vat.report import write_predictions, write_report
from hf_vat.windowed import in_windows
from hf_vat.writing import write_text

from .sharing import ShardArguments, Turn, turns

logger = logging.getLogger(__name__)

# Streamed texts that are in memory at a time. Of a slow method a tenth, since shards are cut between them.
_TOGETHER = 1000
_FAST = ("attention", "attention_x_gradient", "amortized", "mask", "random")  # one or two model inputs for each text


@dataclass
class ExplainArguments:
    model: str = argument(help="Classifier: a folder or a Hub id.")
    text: list[str] = argument([], "One or more texts, each in quotation marks.")
    method: str = argument("attention", f"How words are scored: {', '.join(METHODS)}.")
    settings: list[str] = argument([], "Settings of the method, e.g. n_samples=500 operator=mask.")
    target: str | None = argument(
        None,
        "Class, label or score to explain, by name or id; by default the predicted class, each predicted label, each score.",
    )
    max_length: int | None = argument(
        None, "Tokens per text; as many as the model takes. If more, texts are read in windows that overlap."
    )
    batch_size: int = argument(32, "Model inputs per forward pass.")
    seed: int = argument(0, "Seed of methods that draw random numbers.")
    show: int = argument(10, "Number of texts to show in the terminal.")
    html: str | None = argument(None, "Also write a page with all texts to this file.")
    json: str | None = argument(None, "Also write all scores to this file.")
    csv: str | None = argument(None, "Also write predictions, probabilities and words as a table to this file.")
    parquet: str | None = argument(None, "The same table, with types, in a Parquet file.")
    save_to: str | None = argument(None, "Write explanations as they are made to this file, and go on from it.")


ARGUMENTS = (ExplainArguments, DataArguments, ShardArguments)


def main():
    args, data_args, shard_args = parse_arguments(ARGUMENTS, __doc__)
    if bool(args.text) == (data_args != DataArguments()):
        raise InputError(
            "Give either texts with --text, or a data set with --test_file, --dataset_name or --paper_dataset."
        )
    if data_args.streaming and (args.html or args.json or not args.save_to):
        raise InputError(
            "--streaming keeps no explanations in memory, as --html and --json need them: name the file to write them to, "
            "a line of JSON each, with --save_to. --csv and --parquet can be written from it."
        )
    refuse_without_effect("explain", given_options(ARGUMENTS), settings_of(args, data_args, shard_args))
    work = turns(shard_args, args.save_to, "save_to")
    settings = settings_of_method(args.method, args.settings)
    files = {
        name: output_file(f"--{name}", value, goes_on=name == "save_to")
        for name in ("html", "json", "csv", "parquet", "save_to")
        if (value := getattr(args, name)) is not None
    }
    html, scores, save_to = map(files.get, ("html", "json", "save_to"))
    tables = {name: files[name] for name in ("csv", "parquet") if name in files}
    model, tokenizer = load_classifier(args.model)
    model = in_windows(model, tokenizer, args.max_length)
    settings = METHODS[args.method].prepare(check_settings(args.method, **settings), model, tokenizer)
    target = None if args.target is None else _target(args.target, class_names(model.config))
    if data_args.streaming and target is None:
        _refuse_several(Problem.of(model.config))
    explained = partial(
        explain,
        model,
        tokenizer,
        method=args.method,
        target=target,
        batch_size=args.batch_size,
        seed=args.seed,
        max_length=args.max_length,
        **settings,
    )
    for turn in work:
        if data_args.streaming:
            store = _open_store(args, model, settings, target, save_to)
            encoded = partial(_encode_next, model, tokenizer, args.max_length)
            _explain_stream(args, explained, encoded, store, partial(stream_texts, data_args, model), turn)
            if turn.shard is None:
                _write_tables(tables, store.explanations(), class_names(model.config))
            continue
        texts, labels = (args.text, None) if args.text else load_texts(data_args, model, labelled=False)
        progress = is_main_process() and (len(texts) > args.batch_size or args.method not in _FAST)
        explanations = explained(
            texts, labels=labels, progress=progress, save_to=save_to, shard=turn.shard, merge=turn.merge
        )
        if turn.shard is not None:
            turn.tell(len(explanations), len(texts), save_to)
            continue
        for explanation in explanations[: args.show]:
            print(explanation.to_terminal(color=in_colour()), end="\n\n")
        if html:
            write_report(html, f"Explanations by {args.method}", {Path(args.model).name: explanations})
            print(f"Page: {html}")
        if scores:
            fields = [explanation.to_dict() for explanation in explanations]
            write_text(scores, json.dumps(fields, ensure_ascii=False, indent=1, allow_nan=False))
            print(f"Scores: {scores}")
        _write_tables(tables, explanations, class_names(model.config))


def _write_tables(tables: dict[str, Path], explanations: Iterable[Explanation], label_names: list[str]) -> None:
    if tables:
        write_predictions(explanations, label_names, tables.get("csv"), tables.get("parquet"))
        print(f"Table: {', '.join(map(str, tables.values()))}")


def _refuse_several(problem: Problem) -> None:
    if problem.kind == MULTI_LABEL or (problem.kind == REGRESSION and len(problem.names) > 1):
        raise InputError(
            f"--streaming writes a line for each row, and the model may say several things of a text; give --target with one of "
            f"{listed(problem.names)}, or leave --streaming out."
        )


def _target(given: str, names: list[str]) -> int:
    """A class by its name, or else by its id."""
    label = int(given) if given not in names and given.isdecimal() and len(given) < 10 else given
    try:
        return class_id(label, names)
    except ValueError as error:
        raise InputError(f"--target {error}") from None


def _open_store(args: ExplainArguments, model, settings: dict, target: int | None, save_to: Path) -> Store:
    settings = check_settings(args.method, **settings)
    if args.max_length is not None:
        settings["max_length"] = args.max_length
    if METHODS[args.method].draws:
        settings["seed"] = args.seed
    if target is not None:
        settings["target"] = target
    header = {"model": model_name(model), "method": args.method, "settings": recorded_settings(settings)}
    return Store(save_to, model, None, header | model_states(settings))


def _encode_next(
    model, tokenizer, max_length: int | None, rows: Iterator, count: int
) -> tuple[list[EncodedText], tuple]:
    """The next texts of a stream, as the model reads them, and their class ids; both empty at its end."""
    texts, labels = tuple(zip(*islice(rows, count), strict=True)) or ((), ())
    return encode_texts(tokenizer, check_texts(texts), model, max_length), labels


def _explain_stream(
    args: ExplainArguments, explained: Callable, encoded: Callable, store: Store, stream: Callable, turn: Turn
) -> None:
    """Explain the rows of `stream()`, or those of a shard, or put shards together.

    The stream is cut after the same rows in each case, and after an interruption, so that the explanations are the same to
    the bit.
    """
    together = _TOGETHER if args.method in _FAST else _TOGETHER // 10
    rows, total = stream(), 0
    if turn.shard or turn.merge:
        total = sum(1 for _ in stream())
        ends = [*range(together, total, together), *([total] if total else [])]
    if turn.shard:
        number, count = turn.shard
        part = split(ends, count)[number - 1]
        if store.count() >= part.stop:  # the shards have been put together, or there is nothing in this one
            turn.tell(len(part), total, args.save_to)
            return
        rows, store = islice(rows, part.start, part.stop), store.shard(number, count)
    shown = 0
    with store:
        store.skip_finished(rows)
        try:
            if turn.merge:
                for explanation in store.take_shards(split(ends, turn.merge), rows):
                    if shown < args.show:
                        print(explanation.to_terminal(color=in_colour()), end="\n\n")
                        shown += 1
            # A thread reads and tokenizes the next texts while the model has these, and the store's writes those before.
            with ThreadPoolExecutor(1) as reader:
                coming = reader.submit(encoded, rows, together - store.finished % together)
                while (chunk := coming.result())[0]:
                    coming = reader.submit(encoded, rows, together)
                    texts, labels = chunk
                    progress = is_main_process() and args.method not in _FAST
                    explanations = explained(texts, labels=labels, progress=progress, save_to=store)
                    if turn.shard is None:
                        for explanation in explanations[: args.show - shown]:
                            print(explanation.to_terminal(color=in_colour()), end="\n\n")
                        shown = min(args.show, shown + len(texts))
                    logger.info("%d explained", store.finished)
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(
                f"Stopped: {store.finished} explanations are in {store.path}; the same call goes on."
            ) from interrupt
    if turn.shard:
        turn.tell(store.finished, total, args.save_to)
    else:
        print(f"Explanations: {store.finished} in {store.path}")
