"""Write a classifier as ONNX, in float32 and in int8, and measure what int8 costs: accuracy and faithfulness.

    python examples/quantize.py --model runs/quickstart/VAT
    python examples/quantize.py --model runs/mine --test_file test.csv --output_dir runs/mine-onnx

Needs the extras onnx and explain. Without a data set it measures on the quickstart's test sentences. Weights become int8, and
what they are multiplied with is rounded to int8 text by text (onnxruntime's dynamic quantisation). Both models explain by
their own attention (or word mask), whose rankings are measured on themselves, beside random ones.
"""

import json
import logging
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from transformers import AutoTokenizer

from hf_vat.cli import output_folder, parse_arguments, run
from hf_vat.data import DataArguments, load_texts
from hf_vat.data.offline import rotten_tomatoes
from hf_vat.errors import InputError, import_extra
from hf_vat.explanations import explain
from hf_vat.export import MODEL_FILE, OnnxClassifier, export_onnx
from hf_vat.faithfulness import Faithfulness, kendall_tau, top_k_overlap
from hf_vat.pretrained import load_classifier
from hf_vat.report import table

K = 5
SCORES = (f"accuracy_drop@{K}", f"posthoc_gold@{K}")


@dataclass
class QuantizeArguments:
    model: str = field(metadata={"help": "Classifier with attention or a word mask: a folder or a Hub id."})
    output_dir: str = field(default="runs/onnx", metadata={"help": "Folder for float32/, int8/ and results.json."})
    seeds: int = field(default=5, metadata={"help": "Number of random rankings."})


def main():
    args, data_args = parse_arguments((QuantizeArguments, DataArguments), __doc__)
    folder = output_folder("--output_dir", args.output_dir)
    model, tokenizer = load_classifier(args.model)
    method = own_method(model)
    if data_args == DataArguments():
        test = rotten_tomatoes(1, 1, 500)["test"]
        texts, labels = test["text"][:], test["label"][:]
    else:
        texts, labels = load_texts(data_args, model)
    logging.getLogger().setLevel(logging.ERROR)  # exporter and quantiser log every node

    folders = {"float32": export_onnx(model, tokenizer, folder / "float32")}
    folders["int8"] = quantize(folders["float32"], folder / "int8")
    results, explanations = {}, {}
    for name, place in folders.items():
        classifier, tokenizer = OnnxClassifier(place), AutoTokenizer.from_pretrained(place)
        explanations[name] = explain(classifier, tokenizer, texts, method=method, labels=labels, progress=True)
        results[name] = measure(classifier, tokenizer, explanations[name], args.seeds)
        results[name]["megabytes"] = sum(file.stat().st_size for file in place.glob(f"{MODEL_FILE}*")) / 1e6
        results[name]["seconds per text"] = float(np.mean([made.seconds for made in explanations[name]]))
    results["agreement"] = agreement(explanations["float32"], explanations["int8"])
    (folder / "results.json").write_text(json.dumps(results, indent=2), encoding="utf-8")

    columns = ["", "accuracy", *SCORES, "MB", "ms / text"]
    rows = [[name, *cells(results[name])] for name in folders]
    print(f"\n{table(columns, rows)}\n")
    print(f"Percent, {len(texts)} texts; rankings by {method} / random ones, mean ± sd over {args.seeds} seeds.")
    alike = results["agreement"]
    print(
        f"int8 beside float32: the same class for {100 * alike['same class']:.1f} % of the texts; rankings of words: "
        f"Kendall τ-b {alike['kendall_tau']:.2f}, overlap of the top {K} {alike['top_k_overlap']:.2f} (means over texts)."
    )
    print(f"Models: {folders['float32']}, {folders['int8']}")


def own_method(model) -> str:
    """How a model explains itself."""
    for module, method in (("attention", "attention"), ("word_mask", "mask")):
        if getattr(model, module, None) is not None:
            return method
    raise InputError(f"{type(model).__name__} has neither attention nor a word mask, whose loss could be measured.")


def quantize(source: Path, target: Path) -> Path:
    """A folder like `source`, with the model's weights in int8."""
    quantization = import_extra("onnxruntime.quantization", "onnx")
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(f"{MODEL_FILE}*"), dirs_exist_ok=True)
    # A scale for each column of a weight. 7 of the 8 bits, as products of 8 overflow on processors without VNNI.
    quantization.quantize_dynamic(source / MODEL_FILE, target / MODEL_FILE, per_channel=True, reduce_range=True)
    return target


def measure(classifier, tokenizer, explanations: list, seeds: int) -> dict:
    """Accuracy, and faithfulness of a model's own rankings and of random ones under the model itself."""
    faithfulness = Faithfulness(classifier, tokenizer, explanations, ks=(K,), progress=True)
    own = faithfulness.measure(explanations, explainer=explanations[0].method)
    return {"own": own.to_dict(), "random": faithfulness.random(range(seeds)).to_dict()}


def agreement(floats: list, integers: list) -> dict[str, float]:
    """How alike two models predict, and rank the words of texts that have any."""
    pairs = [(a.scores, b.scores) for a, b in zip(floats, integers, strict=True) if a.words]
    same = [a.prediction == b.prediction for a, b in zip(floats, integers, strict=True)]
    return {
        "same class": float(np.mean(same)),
        "kendall_tau": float(np.mean([kendall_tau(*pair) for pair in pairs])),
        "top_k_overlap": float(np.mean([top_k_overlap(*pair, K) for pair in pairs])),
    }


def cells(result: dict) -> list[str]:
    scores = []
    for score in SCORES:
        random = result["random"][score]
        sd = "" if random["sd"] is None else f" ± {100 * random['sd']:.1f}"
        scores.append(f"{100 * result['own'][score]:.1f} / {100 * random['mean']:.1f}{sd}")
    size, time = f"{result['megabytes']:.1f}", f"{1000 * result['seconds per text']:.1f}"
    return [f"{100 * result['own']['accuracy']:.1f}", *scores, size, time]


if __name__ == "__main__":
    run(main)
