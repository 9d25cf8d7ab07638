"""Speed and memory of explanations, against Captum's own calls, the `lime` package and bare forward passes in the same run.

    make quickstart                       # fine-tunes the model that is explained
    pip install -e ".[bench]"             # lime
    python benchmarks/explain.py --check

The same model, texts, word lists and sample counts for all. Captum explains one text per call with its default
`perturbations_per_eval`; its forward function deletes the absent words and runs what is left, as ours does. `lime` gets a
predict function that tokenizes the perturbed strings and runs them in batches as they come; with its default `bow=True`
it deletes words too. Ours runs before and after each baseline, and the mean counts. Exits 1 if a target is missed.
"""

import argparse
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging

import hf_vat
from hf_vat.data.offline import rotten_tomatoes
from hf_vat.explanations.analysis import text_generator
from hf_vat.faithfulness import Faithfulness
from hf_vat.models.words import encode_words, split_words

TEXTS, SAMPLES, ORDERS, BATCH_SIZE = 100, 100, 5, 32
# name: (ratio as printed, the least or the most that it may be)
TARGETS = {
    "lime, captum / ours": ("at least", 3.0),
    "shapley, captum / ours": ("at least", 3.0),
    "lime, lime package / ours": ("at least", 1.5),
    "attention, ours / forward pass": ("at most", 1.10),
    "AOPC and post-hoc, ours / forward passes": ("at most", 1.15),
    "peak memory, 2000 samples / 100": ("at most", 1.05),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--model", default="runs/quickstart/VAT", help="classifier (default: the quickstart's)")
    parser.add_argument("--texts", type=int, default=TEXTS, help=f"number of texts (default: {TEXTS})")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)  # samples of a child process
    args = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    warnings.filterwarnings("ignore")
    if not Path(args.model).is_dir():
        sys.exit(
            f"error: there is no folder {args.model}; run `make quickstart` first, or name a classifier by --model"
        )
    model = AutoModelForSequenceClassification.from_pretrained(args.model).eval()
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    if args.memory:
        sentence = " ".join(rotten_tomatoes(1, 1, 20)["test"]["text"][:]).split()[:60]
        hf_vat.explain(model, tokenizer, [" ".join(sentence)] * 4, "lime", n_samples=args.memory, batch_size=BATCH_SIZE)
        # Not ru_maxrss: a child starts with its parent's.
        [peak] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
        print(peak)
        return
    test = rotten_tomatoes(1, 1, args.texts)["test"]
    texts, labels = test["text"][:], test["label"][:]

    results = {}
    lime = {"method": "lime", "n_samples": SAMPLES, "batch_size": BATCH_SIZE}
    shapley = {"method": "shapley", "n_samples": ORDERS, "batch_size": BATCH_SIZE}
    ours_lime, captum_lime = interleaved(
        lambda: hf_vat.explain(model, tokenizer, texts, **lime), lambda: by_captum(model, tokenizer, texts, run_lime)
    )
    results["lime, captum / ours"] = (captum_lime, ours_lime)
    results["shapley, captum / ours"] = interleaved(
        lambda: hf_vat.explain(model, tokenizer, texts, **shapley),
        lambda: by_captum(model, tokenizer, texts, run_shapley),
    )[::-1]
    results["lime, lime package / ours"] = interleaved(
        lambda: hf_vat.explain(model, tokenizer, texts, **lime), lambda: by_lime(model, tokenizer, texts)
    )[::-1]
    results["attention, ours / forward pass"] = by_attention(model, tokenizer)
    results["AOPC and post-hoc, ours / forward passes"] = measured(model, tokenizer, texts, labels)
    results["peak memory, 2000 samples / 100"] = (peak_memory(args.model, 2000), peak_memory(args.model, 100))

    missed = False
    print(f"{args.texts} texts, {SAMPLES} LIME samples, {ORDERS} Shapley orders, {torch.get_num_threads()} threads")
    print(f"{'what (seconds; memory in MiB)':42}{'first':>9}{'second':>9}{'ratio':>8}  target")
    for name, (bound, target) in TARGETS.items():
        first, second = results[name]
        ratio = first / second
        bad = ratio < target if bound == "at least" else ratio > target
        missed |= bad
        print(f"{name:42}{first:9.2f}{second:9.2f}{ratio:8.2f}  {bound} {target}{'  MISSED' if bad else ''}")
    sys.exit(int(args.check and missed))


def interleaved(ours, baseline) -> tuple[float, float]:
    """Seconds of ours, as the mean of a run before and one after the baseline, and of the baseline."""
    before, between, after = timed(ours), timed(baseline), timed(ours)
    return (before + after) / 2, between


def timed(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def by_captum(model, tokenizer, texts, method) -> None:
    for text in encode_words(tokenizer, texts, tokenizer.model_max_length):
        ids, special = torch.tensor(text.input_ids), torch.tensor(text.special)
        word = torch.tensor([words[0] if words else -1 for words in text.token_words])

        def probabilities(kept, ids=ids, special=special, word=word):
            kept = kept.bool()
            rows = [ids[special | (word >= 0) & row[word.clamp(min=0)]] for row in kept]
            with torch.no_grad():
                return torch.cat([model(input_ids=row[None]).logits.softmax(-1) for row in rows])

        n = len(text.words)
        target = int(probabilities(torch.ones(1, n)).argmax())
        method(lambda kept, target=target, ask=probabilities: ask(kept)[:, target], text, n)


def run_lime(forward, text, n) -> None:
    from captum._utils.models.linear_model import SkLearnRidge
    from captum.attr import LimeBase

    generator = text_generator(0, text)
    lacking = np.concatenate([[0], generator.integers(1, n + 1, SAMPLES - 1)])
    kept = torch.from_numpy(generator.random((SAMPLES, n)).argsort(1).argsort(1) >= lacking[:, None]).float()

    def perturb(original, **kwargs):
        yield from (row[None] for row in kept)

    def similarity(original, perturbed, interpretable, **kwargs):
        distance = 100 * (1 - torch.nn.functional.cosine_similarity(original, interpretable, eps=1e-12))
        return torch.exp(-(distance**2) / 25**2).sqrt()

    LimeBase(
        forward,
        SkLearnRidge(alpha=1.0),
        similarity_func=similarity,
        perturb_func=perturb,
        perturb_interpretable_space=True,
        from_interp_rep_transform=lambda sample, original, **kwargs: sample,
        to_interp_rep_transform=None,
    ).attribute(torch.ones(1, n), n_samples=SAMPLES)


def run_shapley(forward, text, n) -> None:
    from captum.attr import ShapleyValueSampling

    ShapleyValueSampling(forward).attribute(torch.ones(1, n), baselines=0, n_samples=ORDERS)


def by_lime(model, tokenizer, texts) -> None:
    from lime.lime_text import LimeTextExplainer

    @torch.no_grad()
    def predict(strings):
        rows = []
        for start in range(0, len(strings), BATCH_SIZE):
            batch = tokenizer(strings[start : start + BATCH_SIZE], padding=True, truncation=True, return_tensors="pt")
            rows.append(model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits.softmax(-1))
        return torch.cat(rows).numpy()

    explainer = LimeTextExplainer(
        split_expression=lambda text: [word.text for word in split_words(text)], random_state=0
    )
    for text in texts:
        words = len(split_words(text))
        explainer.explain_instance(text, predict, labels=(1,), num_features=words, num_samples=SAMPLES)


def by_attention(model, tokenizer) -> tuple[float, float]:
    """Seconds to explain 1,000 texts by attention, and to predict them; the fastest of five rounds each."""
    texts = rotten_tomatoes(1, 1, 1000)["test"]["text"][:]
    rounds = [
        (timed(lambda: hf_vat.explain(model, tokenizer, texts)), timed(lambda: bare_forward(model, tokenizer, texts)))
        for _ in range(5)
    ]
    return tuple(np.min(rounds, 0).tolist())


@torch.inference_mode()
def bare_forward(model, tokenizer, texts: list[str]) -> None:
    """What any prediction costs: tokenize, sort by length, run in batches."""
    encoded = tokenizer(texts, truncation=True)["input_ids"]
    encoded.sort(key=len, reverse=True)
    for start in range(0, len(encoded), BATCH_SIZE):
        batch = tokenizer.pad({"input_ids": encoded[start : start + BATCH_SIZE]}, return_tensors="pt")
        model(**batch).logits.softmax(-1).tolist()


def measured(model, tokenizer, texts, labels) -> tuple[float, float]:
    """Seconds to score a ranking at K = 1..10 with both kinds of scores, and of its forward passes alone."""
    explanations = hf_vat.explain(model, tokenizer, texts, "random", labels=labels)
    batches = []

    def ours():
        faithfulness = Faithfulness(model, tokenizer, explanations, ks=range(1, 11), batch_size=BATCH_SIZE)
        faithfulness.measure(explanations)

    handle = model.register_forward_pre_hook(lambda module, args, batch: batches.append(batch), with_kwargs=True)
    ours()
    handle.remove()

    def bare():
        with torch.inference_mode():
            for batch in batches:
                model(**batch)

    rounds = [interleaved(ours, bare) for _ in range(3)]
    return tuple(np.min(rounds, 0).tolist())


def peak_memory(model: str, samples: int) -> float:
    """MiB of a process of its own that explains 4 texts of 60 words by LIME."""
    command = [sys.executable, __file__, "--model", model, "--memory", str(samples)]
    # One heap that gives large blocks back, so that what is counted is what is held, not how glibc's heaps fragment.
    env = {**os.environ, "MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return int(done.stdout.splitlines()[-1]) / 1024


if __name__ == "__main__":
    main()
