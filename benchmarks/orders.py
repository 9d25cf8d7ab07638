"""Shapley values of words by random orders: how far from exact values, of independent orders and of orthogonal pairs.

    make quickstart && python benchmarks/orders.py

The quickstart's BERT-VAT on its test sentences of 6 to 10 words, whose exact values need at most 1,024 inputs. For each number
of orders the mean squared error over words, sentences and draws: of independent orders (Castro et al. 2009), of orders with
their reverses, and of `random_orders`, whose pairs are orthogonal; with their ratios to the first.
"""

import argparse

import numpy as np
import torch
from explain import MODEL, load

from hf_vat import explain
from hf_vat.data.offline import rotten_tomatoes
from hf_vat.explanations.removal import random_orders
from hf_vat.faithfulness.perturb import Operator
from hf_vat.inference import encode_texts, predict_outputs
from hf_vat.report import table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--draws", type=int, default=40, help="estimates of each text for each number of orders")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, tokenizer = load(args.model)
    texts = [text for text in rotten_tomatoes(900, 200, 400, 0)["test"]["text"] if 6 <= len(text.split()) <= 10]
    games = [played(model, tokenizer, text) for text in texts[: args.texts]]
    generator, rows = np.random.default_rng(0), []
    for count in (2, 4, 6, 8, 12, 16, 24):
        errors: dict[str, list[float]] = {"independent": [], "with reverses": [], "orthogonal pairs": []}
        for values, exact in games:
            n = len(exact)
            for _ in range(args.draws):
                single = generator.random((count, n)).argsort(1).argsort(1)
                paired = np.concatenate([single[: count // 2], n - 1 - single[: count // 2]])
                drawn = (single, paired, random_orders(generator, count, n))
                for found, ranks in zip(errors.values(), drawn, strict=True):
                    found.append(float(np.mean((estimate(values, ranks) - exact) ** 2)))
        means = [np.mean(found) for found in errors.values()]
        rows.append([str(count), f"{means[0]:.2e}", *(f"{mean / means[0]:.2f}" for mean in means[1:])])
    print(table(["orders", *errors], rows))


def played(model, tokenizer, text: str) -> tuple[np.ndarray, np.ndarray]:
    """What the model says of each subset of a text's words, [2^n], and the exact Shapley values, [n]."""
    [encoded] = encode_texts(tokenizer, [text], model, None)
    [explanation] = explain(model, tokenizer, [text], "shapley", exact=True)
    n = len(encoded.words)
    subsets = np.arange(2**n)[:, None] >> np.arange(n) & 1 == 1
    inputs = Operator.of("delete", tokenizer, model).keep(encoded, subsets)
    return predict_outputs(model, tokenizer, inputs, 64)[:, explanation.target], np.array(explanation.scores)


def estimate(values: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Mean gain of each word, [n], over orders, [P, n]."""
    powers = 1 << np.arange(ranks.shape[1])
    before = ((ranks[:, None] < ranks[..., None]) * powers).sum(-1)  # [P, n], the subset that each word joins
    return (values[before | powers] - values[before]).mean(0)


if __name__ == "__main__":
    main()
