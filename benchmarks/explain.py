"""Speed and memory of explanations, against Captum's own calls, the `lime` package and bare forward passes in the same run.

    make quickstart                       # fine-tunes the model that is explained
    pip install -e ".[bench]"             # lime
    python benchmarks/explain.py --check

The same model, texts, word lists and sample counts for all. Captum explains one text per call with its default
`perturbations_per_eval`; its forward function deletes the absent words and runs what is left, as ours does. `lime` gets a
predict function that tokenizes the perturbed strings and runs them in batches as they come; with its default `bow=True`
it deletes words too. Ours and the baseline run in turn, and of the rounds the median counts. Exits 1 if a target is missed.
"""

import argparse
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from measuring import ROUNDS, Row, compared, interleaved, quiet, tell
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import hf_vat
from hf_vat.amortized.student import new_student
from hf_vat.data.offline import rotten_tomatoes
from hf_vat.explanations.analysis import text_generator
from hf_vat.faithfulness import Faithfulness
from hf_vat.models.words import encode_words, split_words

MODEL = "runs/quickstart/VAT"
TEXTS, PREDICTED, MEASURED = 20, 1000, 100  # texts by LIME and Shapley values, by attention, and that are measured
SAMPLES, ORDERS, BATCH_SIZE = 100, 5, 32
MANY_SAMPLES = 2000  # whose memory is measured


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--model", default=MODEL, help="classifier (default: the quickstart's)")
    parser.add_argument("--texts", type=int, default=TEXTS, help=f"for LIME and Shapley values (default: {TEXTS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of both (default: {ROUNDS})")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)  # samples of a child process
    args = parser.parse_args()
    quiet()
    if args.memory:
        return explain_for_memory(args.model, args.memory)
    tell(rows(args.model, args.texts, args.rounds), args.check)


def rows(folder: str = MODEL, texts: int = TEXTS, rounds: int = ROUNDS, many_samples: int = MANY_SAMPLES) -> list[Row]:
    model, tokenizer = load(folder)
    test = rotten_tomatoes(1, 1, max(PREDICTED, texts))["test"]["text"][:]
    few = test[:texts]
    lime = {"method": "lime", "n_samples": SAMPLES, "batch_size": BATCH_SIZE}
    shapley = {"method": "shapley", "n_samples": ORDERS, "batch_size": BATCH_SIZE}
    explained = {"bound": "at least", "unit": "texts/s", "amount": texts}
    return [
        compared(
            f"LIME, {SAMPLES} samples",
            f"Captum {version('captum')}",
            *interleaved(
                lambda: hf_vat.explain(model, tokenizer, few, **lime),
                lambda: by_captum(model, tokenizer, few, run_lime),
                rounds,
            ),
            3.0,
            **explained,
        ),
        compared(
            f"Shapley values, {ORDERS} orders",
            f"Captum {version('captum')}",
            *interleaved(
                lambda: hf_vat.explain(model, tokenizer, few, **shapley),
                lambda: by_captum(model, tokenizer, few, run_shapley),
                rounds,
            ),
            3.0,
            **explained,
        ),
        compared(
            f"LIME, {SAMPLES} samples",
            f"`lime` {version('lime')}",
            *interleaved(
                lambda: hf_vat.explain(model, tokenizer, few, **lime), lambda: by_lime(model, tokenizer, few), rounds
            ),
            1.5,
            **explained,
        ),
        *(
            compared(
                f"{method} of {len(test):,} texts",
                "forward passes",
                *interleaved(
                    lambda method=method, given=given: hf_vat.explain(model, tokenizer, test, method, **given),
                    lambda: bare_forward(model, tokenizer, test),
                    rounds,
                ),
                target,
            )
            for method, given, target in (
                ("attention", {}, 1.10),
                ("attention_x_gradient", {}, 1.10),
                ("amortized", {"explainer": new_student(model, None, 0).eval()}, 2.20),
            )
        ),
        measured(model, tokenizer, rounds),
        compared(
            f"peak memory: LIME, {many_samples:,} samples",
            f"{SAMPLES} samples",
            [peak_memory(folder, many_samples)],
            [peak_memory(folder, SAMPLES)],
            1.05,
            unit="MiB",
        ),
    ]


def load(folder: str):
    if not Path(folder).is_dir():
        sys.exit(f"error: there is no folder {folder}; run `make quickstart` first, or name a classifier by --model")
    return AutoModelForSequenceClassification.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


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


@torch.inference_mode()
def bare_forward(model, tokenizer, texts: list[str]) -> None:
    """What any prediction costs: tokenize, sort by length, run in batches."""
    encoded = tokenizer(texts, truncation=True)["input_ids"]
    encoded.sort(key=len, reverse=True)
    for start in range(0, len(encoded), BATCH_SIZE):
        batch = tokenizer.pad({"input_ids": encoded[start : start + BATCH_SIZE]}, return_tensors="pt")
        model(**batch.to(model.device)).logits.softmax(-1).tolist()


def measured(model, tokenizer, rounds: int) -> Row:
    """Scoring a ranking at K = 1..10 with both kinds of scores, against its forward passes alone."""
    test = rotten_tomatoes(1, 1, MEASURED)["test"]
    explanations = hf_vat.explain(model, tokenizer, test["text"][:], "random", labels=test["label"][:])
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

    return compared("AOPC and post-hoc, K = 1 to 10", "forward passes", *interleaved(ours, bare, rounds), 1.15)


def explain_for_memory(folder: str, samples: int) -> None:
    """Explain 4 texts of 60 words by LIME, and print the peak of this process."""
    model, tokenizer = load(folder)
    sentence = " ".join(rotten_tomatoes(1, 1, 20)["test"]["text"][:]).split()[:60]
    hf_vat.explain(model, tokenizer, [" ".join(sentence)] * 4, "lime", n_samples=samples, batch_size=BATCH_SIZE)
    # Not ru_maxrss: a child starts with its parent's.
    [peak] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    print(peak)


def peak_memory(model: str, samples: int) -> float:
    """MiB of a process of its own; see `explain_for_memory`."""
    command = [sys.executable, __file__, "--model", model, "--memory", str(samples)]
    # One heap that gives large blocks back, so that what is counted is what is held, not how glibc's heaps fragment.
    env = {**os.environ, "MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return int(done.stdout.splitlines()[-1]) / 1024


if __name__ == "__main__":
    main()
