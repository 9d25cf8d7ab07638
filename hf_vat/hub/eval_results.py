"""The numbers of a model card: what the trainer has logged, and how faithful the words are that the model itself names."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hf_vat.errors import MissingExtra, import_extra
from hf_vat.explanations import Explanation, explain
from hf_vat.faithfulness import Comparison, Faithfulness, bootstrap_interval, paired_bootstrap
from hf_vat.faithfulness.kinds import BY_KIND
from hf_vat.inference import progress_bar
from hf_vat.models.problems import MULTI_LABEL, REGRESSION, SINGLE_LABEL, Problem

CONFIDENCE, K, RANDOM_SEEDS = 0.95, 5, range(5)
RANDOM = "random"
_LEAST = 20  # texts for an interval
ACCURACY = "share of texts whose predicted class is the gold one"
ALL_RIGHT = "share of texts with all labels right"
SQUARED_ERROR = "squared error of the score, mean over texts"
MACRO_F1 = "mean over classes of F1, the harmonic mean of precision and recall"
DROP = {
    SINGLE_LABEL: f"prob_drop@{K}",
    MULTI_LABEL: f"prob_drop@{K}",
    REGRESSION: f"output_change@{K}",
}  # by which a ranking is compared with random ones
_SPLITS = {"eval": "validation"}
# What the trainer logs beside the metrics of a run.
_NOT_METRICS = (
    *("loss", "samples", "runtime", "samples_per_second", "steps_per_second", "model_preparation_time"),
    *("cross_entropy", "compression", "attention_entropy", "beta"),
    *("mask_compression", "mask_mean", "mask_open", "mask_sd", "mask_beta"),
    *("word_term", "word_weight", "vw_product", "vw_weight"),
)


@dataclass(frozen=True)
class Result:
    """A mean over texts, as a fraction unless it is one of scores, and what it takes to read it.

    Attributes:
        metric: its name, such as `"accuracy"` or `"prob_drop@5"`.
        value: the mean.
        definition: what it is.
        split, n: the split, and how many of its texts.
        interval: of the mean, by bootstrap over texts; None if this is not a mean over texts, if it says nothing (fewer than
            20 texts, or all alike), or if scipy is missing.
        is_share: whether the value is a fraction of 1, and not on the scale of a regression's scores.
    """

    metric: str
    value: float
    definition: str
    split: str
    n: int
    interval: tuple[float, float] | None = None
    is_share: bool = True


@dataclass(frozen=True)
class Measured:
    """How faithful a model's own word scores are to the model, beside random rankings and its accuracy.

    Attributes:
        split, n_split: the split, and how many texts it has.
        n: texts that were measured; a text without words is not.
        n_short: those of fewer than K words.
        accuracy: on these texts; the mean squared error of a regression.
        kind: the model's `problem_type`.
        rankings: results by method and score, those of random rankings (mean over seeds) last.
        beyond_random: for each method the difference of its `prob_drop` to that of random rankings, by paired bootstrap;
            empty where there are no intervals.
        examples: explanations of some of the texts, by the first method.
    """

    split: str
    n_split: int
    n: int
    n_short: int
    accuracy: Result
    rankings: dict[str, dict[str, Result]]
    beyond_random: dict[str, Comparison]
    examples: list[Explanation]
    kind: str = SINGLE_LABEL


def logged_results(
    log: Sequence[Mapping], last_step: int, best_step: int | None, kind: str = SINGLE_LABEL
) -> list[Result]:
    """Metrics of the model as it is, from the records of a trainer's log.

    Args:
        log: `trainer.state.log_history`.
        last_step: the last training step.
        best_step: the step whose weights were loaded after it; None if the model is as it was trained last.
        kind: the model's `problem_type`.
    """
    found: dict[str, Mapping] = {}
    for record in log:
        for key in record:
            prefix = key.removesuffix("_samples")
            # During training, evaluations are of the weights of their step.
            step = best_step if prefix.startswith("eval") and best_step is not None else last_step
            if prefix != key and record["step"] == step:
                found[prefix] = record
    return [
        _logged(name, value, _SPLITS.get(prefix, prefix), record[f"{prefix}_samples"], kind)
        for prefix, record in found.items()
        for name, value in _metrics(record, f"{prefix}_").items()
    ]


def measure(
    model,
    tokenizer,
    texts: Sequence,
    labels: Sequence,
    split: str,
    *,
    limit: int,
    n_examples: int,
    batch_size: int,
    seed: int,
    progress: bool,
) -> Measured:
    """Explain texts by what the model itself says of its words, and measure how much it depends on these.

    The words are those of its attention, with and without a sign, and of its word mask; a model that has neither is explained by
    the gradient. The scorer is the model.

    Args:
        texts, labels: of a split that the model was not trained on, as in [`explain`]; class ids below 0 are left out.
        limit: texts that are drawn, with `seed`.
        n_examples: explanations to keep, of the first drawn texts that have words.

    Raises:
        InputError: if the texts cannot be explained.
    """
    problem = Problem.of(model.config)
    labelled = [row for row, label in enumerate(labels) if not problem.is_single_label or label >= 0]
    drawn = [labelled[place] for place in np.random.default_rng(seed).permutation(len(labelled))[:limit]]
    texts, labels = [texts[row] for row in drawn], [labels[row] for row in drawn]
    methods, ks = own_methods(model.config), (K,)
    total = len(texts) * sum(2 if method == "gradient" else 1 for method in methods)
    total += Faithfulness.count_inputs(len(texts), len(methods) + len(RANDOM_SEEDS), ks)
    with progress_bar("model card", total, progress) as bar:
        explanations = {
            method: explain(model, tokenizer, texts, method, batch_size=batch_size, labels=labels, bar=bar)
            for method in methods
        }
        first = next(iter(explanations.values()))
        faithfulness = Faithfulness(model, tokenizer, first, ks=ks, batch_size=batch_size, bar=bar)
        values = {method: faithfulness.measure(own).values for method, own in explanations.items()}
        by_seed = [result.values for result in faithfulness.random(RANDOM_SEEDS).results]
        bar.update(bar.total - bar.n)  # texts without words
    values[RANDOM] = {score: np.mean([own[score] for own in by_seed], 0) for score in by_seed[0]}
    drop = DROP[problem.kind]
    quality = _quality(faithfulness, problem, split)
    return Measured(
        split=split,
        n_split=len(labelled),
        n=len(faithfulness.rows),
        n_short=sum(len(positions) < K for positions in faithfulness.candidates),
        accuracy=quality,
        rankings={
            ranking: {
                score: _mean(score, own[score], _definition(score, problem), split, problem.kind != REGRESSION)
                for score in own
            }
            for ranking, own in values.items()
        },
        beyond_random={
            method: paired_bootstrap(values[method][drop], values[RANDOM][drop], CONFIDENCE)
            for method in explanations
            if quality.n >= _LEAST and has_intervals()
        },
        examples=[explanation for explanation in first if any(explanation.seen)][:n_examples],
        kind=problem.kind,
    )


def _quality(faithfulness: Faithfulness, problem: Problem, split: str) -> Result:
    full, labels = faithfulness.full, faithfulness.labels
    assert labels is not None  # they are known of every text
    if problem.kind == REGRESSION:
        return _mean("mse", np.square(full - labels).mean(-1), SQUARED_ERROR, split, is_share=False)
    if problem.is_single_label:
        return _mean("accuracy", full.argmax(-1) == labels, ACCURACY, split)
    right = ((full >= np.array(problem.thresholds)) == labels.astype(bool)).all(-1)
    return _mean("accuracy", right, ALL_RIGHT, split)


def own_methods(config) -> list[str]:
    """The methods of [`explain`] that read what a model itself says of its words, or else the gradient."""
    own = ["attention_x_gradient", "attention"] if config.pooling == "attention" else []
    own += ["mask"] if config.mask_type != "none" else []
    return own or ["gradient"]


def _metrics(record: Mapping, prefix: str) -> dict[str, float]:
    named = {key.removeprefix(prefix): value for key, value in record.items() if key.startswith(prefix)}
    return {
        name: float(value)
        for name, value in named.items()
        if name not in _NOT_METRICS and isinstance(value, int | float) and math.isfinite(value)
    }


def _logged(name: str, value: float, split: str, n: int, kind: str) -> Result:
    if name == "accuracy":
        definition = ACCURACY if kind == SINGLE_LABEL else ALL_RIGHT
        return _mean(name, np.arange(n) < round(value * n), definition, split)
    definition = MACRO_F1 if name == "macro_f1" else "as the run's own compute_metrics gives it"
    return Result(name, value, definition, split, n)


def _mean(name: str, values: np.ndarray, definition: str, split: str, is_share: bool = True) -> Result:
    interval: tuple[float, float] | None = None
    if len(values) >= _LEAST and np.ptp(values.astype(float)) > 0 and has_intervals():
        _, low, high = bootstrap_interval(values, CONFIDENCE)
        interval = low, high
    return Result(name, float(np.mean(values)), definition, split, len(values), interval, is_share)


def has_intervals() -> bool:
    """Whether scipy is installed, which they need."""
    try:
        import_extra("scipy.stats")
    except MissingExtra:
        return False
    return True


def _definition(score: str, problem: Problem) -> str:
    name, _, k = score.partition("@")
    return BY_KIND[problem.kind][name].replace("top K", f"top {k}")
