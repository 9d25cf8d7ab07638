"""Explain many texts on the workers of a Ray cluster, each of which holds the model; the result is that of `hf-vat explain`.

    python examples/explain_with_ray.py --model runs/mine --test_file reviews.csv --output_file attention.jsonl --workers 2
    RAY_ADDRESS=auto python examples/explain_with_ray.py --model runs/mine --test_file reviews.csv --method lime \
        --output_file lime.jsonl --workers 16

Without RAY_ADDRESS a cluster is started on this machine. `load_explanations` reads the file. Ray does a worker's part again if it
is lost; a run that ends early begins again, while the jobs of `hf-vat explain --shard` go on where they stopped.
"""

import json
import os
from dataclasses import dataclass
from math import ceil

import torch

from hf_vat.arguments import argument
from hf_vat.cli import method_settings, output_file, parse_arguments, run
from hf_vat.data import DataArguments, load_texts
from hf_vat.errors import InputError, import_extra
from hf_vat.explanations import METHODS, Explanation, explain
from hf_vat.explanations.methods import check_settings
from hf_vat.explanations.store import Store
from hf_vat.inference import model_name, whole_number
from hf_vat.pretrained import load_classifier


@dataclass
class Arguments:
    model: str = argument(help="Classifier: a folder that all workers see, or a Hub id.")
    output_file: str = argument(help="Write explanations to this file, a line of JSON each.")
    method: str = argument("attention", "How words are scored.", choices=list(METHODS))
    settings: list[str] = argument([], "Settings of the method, e.g. n_samples=500 operator=mask.")
    seed: int = argument(0, "Seed of methods that draw random numbers.")
    batch_size: int = argument(32, "Model inputs per forward pass.")
    workers: int = argument(2, "Workers, each with the model, and with a GPU if there are any.")
    together: int = argument(256, "Texts that a worker is given at a time.")


class Explainer:
    """One worker: the model is loaded once, and then explains as many texts as come."""

    def __init__(self, model: str, options: dict):
        self.model, self.tokenizer = load_classifier(model)
        self.options = options

    def __call__(self, batch: dict) -> dict:
        texts, labels = zip(*map(json.loads, batch["row"]), strict=True)
        explanations = explain(self.model, self.tokenizer, texts, labels=labels, **self.options)
        return {"explanation": [json.dumps(one.to_dict()) for one in explanations]}


def main():
    args, data_args = parse_arguments((Arguments, DataArguments), __doc__)
    ray_data = import_extra("ray.data", "ray")
    ray = import_extra("ray", "ray")
    for name in ("workers", "together"):
        whole_number(f"--{name}", getattr(args, name), 1)
    prefix = f"{args.method}."
    given = [prefix + setting.removeprefix(prefix) for setting in args.settings]
    settings = check_settings(args.method, **method_settings([args.method], given)[args.method])
    path = output_file("--output_file", args.output_file)
    if path.exists():
        raise InputError(f"--output_file {path} is there already; choose another, or delete it.")
    model, _ = load_classifier(args.model)  # to check what is there, and to name it in the file
    texts, labels = load_texts(data_args, model, labelled=False)
    rows = [{"row": json.dumps(row)} for row in zip(texts, labels or [None] * len(texts), strict=True)]

    ray.init(**({} if "RAY_ADDRESS" in os.environ else {"num_cpus": args.workers, "include_dashboard": False}))
    options = {"method": args.method, "seed": args.seed, "batch_size": args.batch_size, **settings}
    ray_data.DataContext.get_current().execution_options.preserve_order = True
    explained = ray_data.from_items(rows, override_num_blocks=ceil(len(rows) / args.together)).map_batches(
        Explainer,
        fn_constructor_args=(args.model, options),
        batch_size=None,  # a block
        num_gpus=1 if torch.cuda.is_available() else 0,
        compute=ray_data.ActorPoolStrategy(size=args.workers),
    )
    run_settings = settings | ({"seed": args.seed} if METHODS[args.method].draws else {})
    store = Store(path, model, None, {"model": model_name(model), "method": args.method, "settings": run_settings})
    for batch in explained.iter_batches(batch_size=1000):
        store.append([Explanation.from_dict(json.loads(line)) for line in batch["explanation"]])
    print(f"{store.finished} explanations by {args.workers} workers: {path}")
    ray.shutdown()


if __name__ == "__main__":
    run(main)
