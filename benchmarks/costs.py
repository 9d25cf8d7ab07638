"""How the cost of training, of each explainer and of each metric grows with text length, number of texts and number of words.

    python benchmarks/costs.py                # measures, writes benchmarks/results/costs.json and the pictures of the page
    python benchmarks/costs.py --rounds 1 --longest 64 --output runs/costs.json

A BERT of 2 layers of 128 numbers, which is small so that what is around its forward passes shows. One of the three numbers
grows, and the others stay as they are: longer texts have words of more tokens, and more words have fewer each. Methods draw few
samples. Of each size the median over rounds counts, and rounds go through all sizes. Seconds are those of one CPU core that this
process had, so that other work on the machine hardly counts.

A cost grows as a power of the number: the slope of the logarithms, over the upper half of the sizes, since what is paid once
hides it in the lower half. Beside it stands the slope of the work: that of a bare forward pass of the same texts, measured too,
which is more than 1 in the length, as self-attention compares each token with each; times the number of model inputs. Of a metric
that asks no model the work is the number of words. Marked is what grows faster than its work by more than 0.25.
"""

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from measuring import RESULTS, ROUNDS, machine, number, quiet
from train_step import settings
from transformers import BertTokenizerFast, DataCollatorWithPadding, PrinterCallback, TrainerCallback, set_seed

import hf_vat
from hf_vat import BertForVATClassification, BertVATConfig, VATTrainer, VATTrainingArguments
from hf_vat.amortized.student import new_student
from hf_vat.explanations import METHODS
from hf_vat.explanations.methods import check_settings
from hf_vat.faithfulness import ERASER_SHARES, Faithfulness
from hf_vat.inference import encode_texts
from hf_vat.report import Table, table
from hf_vat.report.figures import INK, LINE_STYLES, MUTED, add_legend, panels, render
from hf_vat.report.tables import markdown
from hf_vat.writing import write_text

PICTURES = Path(__file__).parents[1] / "docs" / "assets"
TEXTS = BATCH = 4  # texts where their number does not grow; all batches are as large, so that caches take them alike
# What grows: its sizes, and (texts, tokens of a text, words of a text) at a size.
AXES: dict[str, tuple[tuple[int, ...], Callable[[int], tuple[int, int, int]]]] = {
    "tokens per text": ((16, 32, 64, 128, 256, 512), lambda size: (TEXTS, size, 8)),
    "texts": ((4, 8, 16, 32, 64, 128), lambda size: (size, 32, 8)),
    "words per text": ((2, 4, 8, 16, 32, 63, 126), lambda size: (TEXTS, 128, size)),
}
GROUPS = ("training", "explainers", "metrics")
FORWARD = "bare forward pass"
FASTER = 0.25  # of the slope above that of the work
SAMPLES = {"integrated_gradients": {"n_steps": 8}, "lime": {"n_samples": 16}, "shapley": {"n_samples": 2}}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIZES = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512}
EXPLAINED = {"mask_type": "vmask", "bottleneck": "none", "head_layers": 1}  # so that all methods have what they read
# Scores of Faithfulness by what it is asked for, and modules that need no model.
FAITHFULNESS = {
    "AOPC and post-hoc, K = 5": {"ks": (5,)},
    "areas, K = 1 to 10": {"ks": range(1, 11)},
    "K = 5, comprehensiveness, sufficiency": {"shares": ERASER_SHARES},
}
MODULES = ("attention_entropy", "auprc", "explanation_agreement", "iou_f1", "token_f1", "word_f1_at_k")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of each size (default: {ROUNDS})")
    parser.add_argument("--longest", type=int, default=512, help="largest size of all three numbers (default: 512)")
    parser.add_argument("--output", type=Path, default=RESULTS / "costs.json", help="file of the results")
    args = parser.parse_args()
    quiet()
    results = measure(args.rounds, args.longest)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    write_text(args.output, json.dumps(results, indent=1, allow_nan=False))
    print(results["machine"])
    for shown in slope_tables(results):
        print(shown.heading, table(shown.columns, shown.rows), sep="\n", end="\n\n")
    draw(results, PICTURES if args.output.parent == RESULTS else args.output.parent)


class Bench:
    """A model, its tokenizer, and what is timed with them."""

    def __init__(self):
        self.tokenizer = letter_tokenizer()
        self.model = self.new_model(**EXPLAINED).eval()
        self.given = SAMPLES | {"amortized": {"explainer": new_student(self.model, None, 0).eval()}}
        self.modules = {name: hf_vat.metrics.load(name) for name in MODULES}

    def new_model(self, **given) -> BertForVATClassification:
        set_seed(0)
        return BertForVATClassification(BertVATConfig(vocab_size=len(self.tokenizer), **SIZES, **given))

    def seconds(self, texts: int, tokens: int, words: int) -> dict[str, dict[str, tuple[float, float]]]:
        """For each group and what is in it the seconds, and the work.

        The work is in forward passes of the texts where it is of a model, else in numbers of words or tokens: only how it grows
        counts.
        """
        written = make_texts(texts, tokens, words)
        encoded = self.tokenizer(written)["input_ids"]
        forward = timed(lambda: self.forward(encoded))
        explained = self.explainer_seconds(written)
        return {
            "training": self.training_seconds(encoded, forward) | {FORWARD: (forward, forward)},
            "explainers": {name: (seconds, forward * self.inputs(name, written)) for name, seconds in explained.items()}
            | {FORWARD: (forward, forward)},
            "metrics": self.metric_seconds(written, forward) | {FORWARD: (forward, forward)},
        }

    @torch.inference_mode()
    def forward(self, encoded: list[list[int]]) -> None:
        for start in range(0, len(encoded), BATCH):
            batch = self.tokenizer.pad({"input_ids": encoded[start : start + BATCH]}, return_tensors="pt")
            self.model(**batch).logits.softmax(-1).tolist()

    def training_seconds(self, encoded: list[list[int]], forward: float) -> dict[str, tuple[float, float]]:
        rows = Dataset.from_dict({"input_ids": encoded, "label": [row % 2 for row in range(len(encoded))]})
        compressed, again, learned = self.epochs(self.new_model(), rows, 3, compress_epochs=2, learn_epochs=1)
        [masked] = self.epochs(self.new_model(**EXPLAINED, pooling="first"), rows, 1)
        return {
            "learner": (learned, forward),
            "compressor, first epoch": (compressed, forward),
            "compressor, later epochs": (again, sum(map(len, encoded))),
            "VMASK": (masked, forward),
        }

    def epochs(self, model, rows: Dataset, number: int, **phases) -> list[float]:
        watch = EpochWatch()
        with tempfile.TemporaryDirectory() as folder:
            common = settings(folder) | {
                "num_train_epochs": number,
                "per_device_train_batch_size": BATCH,
                "use_cpu": True,
            }
            trainer = VATTrainer(
                model,
                VATTrainingArguments(**common, **phases),
                train_dataset=rows,
                data_collator=DataCollatorWithPadding(self.tokenizer),
                callbacks=[watch],
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        return watch.seconds

    def explainer_seconds(self, texts: list[str]) -> dict[str, float]:
        def explain(method):
            given = self.given.get(method, {})
            return timed(lambda: hf_vat.explain(self.model, self.tokenizer, texts, method, batch_size=BATCH, **given))

        return {method: explain(method) for method in METHODS}

    def inputs(self, method: str, texts: list[str]) -> float:
        """Model inputs of a method for each text."""
        given = check_settings(method, **self.given.get(method, {}))
        [text] = encode_texts(self.tokenizer, texts[:1], self.model, None)
        return 1 + METHODS[method].cost(text, given)

    def metric_seconds(self, texts: list[str], forward: float) -> dict[str, tuple[float, float]]:
        labels = [row % 2 for row in range(len(texts))]
        explanations = hf_vat.explain(self.model, self.tokenizer, texts, "random", labels=labels)
        found = {}
        for name, given in FAITHFULNESS.items():

            def ask(given=given):
                Faithfulness(self.model, self.tokenizer, explanations, batch_size=BATCH, **given).measure(explanations)

            found[name] = (timed(ask), forward * Faithfulness.count_inputs(1, 1, **given))
        scores = [explanation.scores for explanation in explanations]
        marked = [[place % 2 == 0 for place in range(len(row))] for row in scores]
        references = {"attention_entropy": {}, "explanation_agreement": {"references": [row[::-1] for row in scores]}}
        predictions = [np.divide(row, sum(row)).tolist() for row in scores]  # entropy is of a distribution
        for name, module in self.modules.items():
            given = references.get(name, {"references": marked})
            seconds = timed(lambda module=module, given=given: module.compute(predictions=predictions, **given))
            found[name] = (seconds, sum(map(len, scores)))
        return found


class EpochWatch(TrainerCallback):
    """Seconds of each epoch."""

    def __init__(self):
        self.seconds = []

    def on_epoch_begin(self, args, state, control, **kwargs):
        self.started = time.process_time()

    def on_epoch_end(self, args, state, control, **kwargs):
        self.seconds.append(time.process_time() - self.started)


def timed(call: Callable) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def letter_tokenizer() -> BertTokenizerFast:
    """A tokenizer whose tokens are letters."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    return BertTokenizerFast(vocab={piece: place for place, piece in enumerate(pieces)}, model_max_length=512)


def make_texts(texts: int, tokens: int, words: int) -> list[str]:
    """Texts of so many tokens, [CLS] and [SEP] included, in so many words; each letter is a token."""
    generator = np.random.default_rng(0)
    lengths = [len(part) for part in np.array_split(range(tokens - 2), words)]
    return [" ".join("".join(generator.choice(list(LETTERS), length)) for length in lengths) for _ in range(texts)]


def measure(rounds: int = ROUNDS, longest: int = 512) -> dict:
    """Curves of seconds and work, for JSON."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    bench = Bench()
    bench.seconds(*AXES["texts"][1](TEXTS))  # the first calls import and allocate
    sizes = {axis: [size for size in given if size <= longest] for axis, (given, _) in AXES.items()}
    found = defaultdict(list)
    for _ in range(rounds):
        for axis, (_, at) in AXES.items():
            for size in sizes[axis]:
                for group, members in bench.seconds(*at(size)).items():
                    for name, pair in members.items():
                        found[axis, group, name, size].append(pair)
    curves = []
    for axis, group, name in dict.fromkeys(key[:3] for key in found):
        pairs = [np.median(found[axis, group, name, size], 0).tolist() for size in sizes[axis]]
        seconds, work = map(list, zip(*pairs, strict=True))
        slopes = {"slope": slope(sizes[axis], seconds), "work_slope": slope(sizes[axis], work)}
        curves.append(
            {
                "axis": axis,
                "group": group,
                "name": name,
                "sizes": sizes[axis],
                "seconds": seconds,
                "work": work,
                **slopes,
            }
        )
    results = {"machine": machine(), "rounds": rounds, "curves": curves}
    torch.set_num_threads(threads)
    return results


def slope(sizes: list[int], values: list[float]) -> float:
    """The power of the size by which values grow over the upper half of the sizes: the least-squares slope of logarithms."""
    x, y = np.log(sizes), np.log(values)
    upper = x >= (x[0] + x[-1]) / 2
    return float(np.polyfit(x[upper], y[upper], 1)[0])


def grows_faster(curve: dict) -> bool:
    return curve["slope"] - curve["work_slope"] > FASTER


def slope_tables(results: dict) -> list[Table]:
    """For each group a table of the slopes, and of those of the work."""
    tables = []
    for group in GROUPS:
        curves = [curve for curve in results["curves"] if curve["group"] == group]
        rows = []
        for name in dict.fromkeys(curve["name"] for curve in curves):
            mine = {curve["axis"]: curve for curve in curves if curve["name"] == name}
            cells = [
                f"{_power(curve['slope'])} ({_power(curve['work_slope'])}){' faster' if grows_faster(curve) else ''}"
                for curve in mine.values()
            ]
            seconds = number(1000 * mine["tokens per text"]["seconds"][-1])
            rows.append([name, *cells, seconds])
        longest = curves[0]["sizes"][-1]
        tables.append(Table(group.capitalize(), ["what", *AXES, f"ms, {TEXTS} texts of {longest} tokens"], rows))
    return tables


def _power(value: float) -> str:
    return f"{round(value, 2) + 0:.2f}"  # no -0.00


def draw(results: dict, folder: Path) -> None:
    """Write a picture for each group, with a panel for each number that grows."""
    for group in GROUPS:
        curves = [curve for curve in results["curves"] if curve["group"] == group]
        render(lambda curves=curves: _draw(curves), folder / f"costs-{group}.png")


def _draw(curves: list[dict]):
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, NullFormatter

    names = [name for name in dict.fromkeys(curve["name"] for curve in curves) if name != FORWARD]
    more = [
        (color, dashes, "x") for color, dashes, _ in LINE_STYLES
    ]  # of the same colours, told apart by their markers
    styles = dict(zip(names, [*LINE_STYLES, *more], strict=False)) | {FORWARD: (MUTED, (0, (4, 2)), ".")}
    figure, axes = panels(list(AXES))
    figure.set_figheight(figure.get_figheight() * 1.4)
    for title, axis in zip(AXES, axes, strict=True):
        for curve in curves:
            if curve["axis"] != title:
                continue
            color, dashes, marker = styles[curve["name"]]
            axis.plot(
                curve["sizes"],
                curve["seconds"],
                color=color,
                linestyle=dashes,
                marker=marker,
                markersize=3.5,
                linewidth=1.3,
            )
            if grows_faster(curve):
                axis.plot(curve["sizes"][-1], curve["seconds"][-1], "o", color=INK, markersize=10, fillstyle="none")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks(curve_sizes(curves, title))
        for ticks in (axis.xaxis, axis.yaxis):
            ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ticks.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel("seconds of a core", color=INK)
    keys = {
        name: Line2D([], [], color=color, linestyle=dashes, marker=marker, markersize=3.5, linewidth=1.3)
        for name, (color, dashes, marker) in styles.items()
    }
    ring = Line2D([], [], color=INK, linestyle="", marker="o", markersize=10, fillstyle="none")
    add_legend(figure, keys | {"grows faster than its work": ring})
    return figure


def curve_sizes(curves: list[dict], axis: str) -> list[int]:
    return next(curve["sizes"] for curve in curves if curve["axis"] == axis)


def page(results: dict) -> str:
    """What docs/benchmarks.md says of the costs."""
    parts = []
    for group, shown in zip(GROUPS, slope_tables(results), strict=True):
        parts += [markdown(shown), f"![Seconds of {group} by tokens, texts and words](assets/costs-{group}.png)"]
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
