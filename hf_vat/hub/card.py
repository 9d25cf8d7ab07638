"""A model card: metadata and text from a run's facts, and a file that is never written over a person's work."""

import json
import logging
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from huggingface_hub import EvalResult, ModelCardData
from huggingface_hub.constants import REPOCARD_NAME
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hf_vat.explanations import Explanation
from hf_vat.models.classes import class_names
from hf_vat.models.configuration_vat import VATSettings
from hf_vat.models.problems import MULTI_LABEL, REGRESSION, SINGLE_LABEL, Problem
from hf_vat.report.figures import printable
from hf_vat.report.tables import Table, markdown
from hf_vat.writing import write_text

from .citations import CITED
from .eval_results import (
    ACCURACY,
    ALL_RIGHT,
    CONFIDENCE,
    DROP,
    RANDOM,
    RANDOM_SEEDS,
    K,
    Measured,
    Result,
    own_methods,
)
from .picture import headline
from .provenance import Origin

logger = logging.getLogger(__name__)

# The files that a card is made of, beside README.md.
EXPLANATIONS_NAME, CURVES_NAME = "model_card_explanations.svg", "model_card_curves.png"
SPARE_NAME = "model_card.md"  # for a card whose place is taken
TASK = "text-classification"

_CURVES = {
    "phase": "phase",
    "beta": "β",
    "mask_beta": "β of the mask",
    "loss": "loss",
    "cross_entropy": "cross-entropy (nats)",
    "compression": "compression (nats)",
    "mask_compression": "mask's term (nats)",
    "word_term": "word objective's term",
    "vw_product": "VᵀW",
    "attention_entropy": "attention entropy",
    "attention_jsd": "change of attention (nats)",
    "eval_loss": "validation loss",
    "eval_accuracy": "validation accuracy",
}
_PACKAGES = ("hf-vat", "transformers", "torch", "datasets")


@dataclass
class CardFacts:
    """What a card tells. Strings may be anything that users name or data hold; they are escaped here.

    Attributes:
        name: of the model.
        config: the model's configuration.
        seed: of the run.
        repo_id, revision: where the model is pushed to; None for a folder.
        base, data: the checkpoint that training began with, and the data set; None if the trainer was not told.
        splits: number of texts by split.
        settings: settings that differ from their defaults, by what they are of.
        log: the trainer's log.
        steps: training steps.
        best_step: the step whose weights were kept; None if those of the last.
        max_length: tokens that are read of a text.
        device: what it was trained on, such as "1 process on cpu".
        results: what the trainer measured.
        measured: faithfulness and examples; None if it was not measured.
        curves: whether there is an image of the training curves.
        pairs: whether its texts come in pairs.
        task, language, license, tags: for the metadata.
    """

    name: str
    config: VATSettings
    seed: int
    repo_id: str | None = None
    revision: str | None = None
    base: Origin | None = None
    data: Origin | None = None
    splits: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, Mapping] = field(default_factory=dict)
    log: Sequence[Mapping] = ()
    steps: int = 0
    best_step: int | None = None
    max_length: int | None = None
    device: str = ""
    results: Sequence[Result] = ()
    measured: Measured | None = None
    curves: bool = False
    pairs: bool = False
    task: str = TASK
    language: str | list[str] | None = None
    license: str | None = None
    tags: Sequence[str] = ()

    @property
    def classes(self) -> list[str]:
        return class_names(self.config)

    @property
    def kind(self) -> str:
        return Problem.of(self.config).kind

    @property
    def example(self) -> str:
        """An input of the model, as Python."""
        return '{"text": "Write a text here.", "text_pair": "And its pair."}' if self.pairs else '"Write a text here."'

    @property
    def methods(self) -> list[str]:
        return own_methods(self.config)

    @property
    def reported(self) -> list[Result]:
        """The trainer's results, and the accuracy on the measured texts where the trainer has none of that split."""
        known = {(result.metric, result.split) for result in self.results}
        own = [] if self.measured is None else [self.measured.accuracy]
        return [*self.results, *(result for result in own if (result.metric, result.split) not in known)]


def model_card(facts: CardFacts) -> str:
    """The text of a README.md, with its metadata, and a last line by which [`write_card`] knows it again."""
    measured = facts.measured
    text = _templates.get_template("model_card.md.jinja").render(
        facts=facts,
        metadata=Markup(card_data(facts).to_yaml()),
        task=TASK if facts.methods == ["gradient"] else f"{TASK}-explained",
        place=Markup(_place(facts)),
        system=_system(facts),
        base=_base(facts),
        data=_data(facts),
        objective=_objective(facts),
        results=_table(("metric", "split", "texts", "value"), map(_result_row, facts.reported)),
        intervals=_intervals(facts),
        measured=measured,
        faithfulness=measured and _faithfulness_table(measured),
        verdicts=measured and _verdicts(measured),
        settings=_table(
            ("group", "setting", "value"),
            [
                (of, _code(name), _setting(value))
                for of, group in facts.settings.items()
                for name, value in group.items()
            ],
        ),
        curve=_curve_table(facts.log),
        versions=", ".join(f"{package} {version(package)}" for package in _PACKAGES),
        citations=CITED[facts.config.mask_type],
        explanations_name=EXPLANATIONS_NAME,
        curves_name=CURVES_NAME,
        k=K,
        seeds=len(RANDOM_SEEDS),
    )
    return f"{text.rstrip()}\n\n{_signature(text)}\n"


def card_data(facts: CardFacts) -> ModelCardData:
    """The metadata, with all results as `EvalResult`s."""
    data = facts.data or Origin("unknown")
    results = [_eval_result(facts, data, result) for result in facts.reported]
    if facts.measured is not None:
        by_chance = facts.measured.rankings[RANDOM]
        results += [
            _eval_result(facts, data, result, ranking=method, random=round(by_chance[score].value, 4))
            for method, scores in facts.measured.rankings.items()
            if method != RANDOM
            for score, result in scores.items()
        ]
    systems = ["vat"] if facts.config.bottleneck != "none" else []
    masks = [facts.config.mask_type] if facts.config.mask_type != "none" else []
    return ModelCardData(
        base_model=facts.base.hub_id if facts.base else None,
        datasets=[data.hub_id] if data.hub_id else None,
        eval_results=results or None,
        language=facts.language,
        library_name="transformers",
        license=facts.license,
        metrics=["accuracy"] if any(result.metric == "accuracy" for result in facts.reported) else None,
        model_name=_line(facts.name),
        pipeline_tag=TASK,
        tags=[
            "hf_vat",
            "explainability",
            *systems,
            *masks,
            *facts.tags,
        ],
    )


def write_card(folder: str | os.PathLike, card: str) -> Path | None:
    """Write a card as README.md, or beside it if that file is not a card of ours as it was written.

    Returns:
        The file; None if there is no place for it either.
    """
    for name in (REPOCARD_NAME, SPARE_NAME):
        path = Path(folder, name)
        if not path.exists() or is_unedited(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, card, newline="\n")
            return path
        logger.warning("%s was written or edited by someone and is kept as it is%s.", path, _AFTER[name])
    return None


_AFTER = {REPOCARD_NAME: f"; the new model card is {SPARE_NAME}", SPARE_NAME: "; there is no new model card"}
_SIGNATURE = re.compile(r"\n<!-- Written by hf_vat\b[^\n]* sha256 of the text above: ([0-9a-f]{64}) -->\s*\Z")


def _signature(text: str) -> str:
    return (
        f"<!-- Written by hf_vat {version('hf-vat')}. A card that was edited is not written over; "
        f"sha256 of the text above: {_digest(text)} -->"
    )


def _digest(text: str) -> str:
    return sha256(text.strip().encode()).hexdigest()


def is_unedited(path: Path) -> bool:
    """Whether a file is a card as [`write_card`] wrote it."""
    try:
        text = path.read_text(encoding="utf-8")  # with \n for every line break
    except (OSError, UnicodeDecodeError):
        return False
    signature = _SIGNATURE.search(text)
    return signature is not None and signature[1] == _digest(text[: signature.start()])


# Metadata


def _eval_result(facts: CardFacts, data: Origin, result: Result, **about) -> EvalResult:
    arguments = {"n": result.n, "seed": facts.seed, "definition": result.definition, **about}
    if result.interval is not None:
        arguments |= {"interval": [round(bound, 4) for bound in result.interval], "confidence": CONFIDENCE}
    ranking = about.get("ranking")
    return EvalResult(
        task_type=facts.task,
        task_name="Text classification" if facts.task == TASK else None,
        dataset_type=data.hub_id or "unknown",
        dataset_name=_line(data.name),
        dataset_config=data.config,
        dataset_split=result.split,
        dataset_revision=data.revision,
        metric_type=result.metric.partition("@")[0],
        metric_name=f"{result.metric} of {ranking}" if ranking else result.metric,
        metric_value=round(result.value, 4) + 0.0,  # never -0.0
        metric_args=arguments,
    )


# Text


def escaped(value: object) -> Markup:
    """A value of data or users as one line of Markdown that shows it as it is: nothing in it is markup or HTML."""
    if isinstance(value, Markup):
        return value
    return Markup(_SPECIAL.sub(lambda found: f"&#{ord(found[0])};", _line(value)))


def _line(value: object) -> str:
    return _DIRECTIONS.sub("", printable(" ".join(str(value).split())))


_SPECIAL = re.compile(r"""[&<>`*_\[\]|\\~$@{}#!^]|:(?=\S)|(?<=www)\.""", re.IGNORECASE)
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")  # they would turn round the text behind them


def _system(facts: CardFacts) -> str:
    config, parts = facts.config, []
    if config.mask_type != "none":
        parts.append(f"A learned mask on its words ({config.mask_type}) says how much of each word it lets through.")
    if config.pooling != "attention":
        parts.append(
            f"Its text vector is {_POOLING[config.pooling]}; it has no attention that would say what each word weighs."
        )
    elif config.bottleneck == "none":
        other = config.vw_penalty != "none" or config.word_objective in _WORD_TERMS
        by = "by the loss below" if other else "by the classification loss alone"
        parts.append(f"Its attention, trained {by}, says what each word weighs.")
    else:
        parts.append(
            "Its attention, trained in turn with the encoder through a variational information bottleneck (VAT), says what "
            "each word weighs."
        )
    if config.word_objective in _POOLED:
        parts.append(f"What is pooled of a token is its state {_POOLED[config.word_objective]} its embedding.")
    return " ".join(parts)


_POOLED = {"concat": "beside", "residual": "plus"}
_POOLING = {
    "first": "that of the first token",
    "max": "the maximum over those of its tokens",
    "mean": "the mean of those of its tokens",
}


_WORD_TERMS = {
    "tying": "the mean distance between a token's state and its embedding",
    "mlm": "the cross-entropy of hidden words that the encoder predicts",
    "conicity": "the mean cosine between the states of a text and their mean",
}


_LOSSES = {
    SINGLE_LABEL: "cross-entropy",
    MULTI_LABEL: "binary cross-entropy, as the mean over labels",
    REGRESSION: "mean squared error",
}


def _objective(facts: CardFacts) -> str:
    config, parts = facts.config, [_LOSSES[Problem.of(facts.config).kind]]
    if config.bottleneck != "none":
        parts.append(
            f"β = {config.beta:g} times the KL divergence of the text vector's Gaussian from a {config.prior} prior "
            f"({config.kl_reduction} over its dimensions), in the phases that train the compressor"
        )
    if config.mask_type in ("vmask", "iba"):
        parts.append(
            f"β of the mask, {config.mask_beta:g} when these weights were made, times the mask's divergence from its prior"
        )
    if config.word_objective in _WORD_TERMS:
        parts.append(f"{config.word_weight:g} times {_WORD_TERMS[config.word_objective]}")
    if config.vw_penalty != "none":
        power = "its absolute value" if config.vw_penalty == "abs" else "its square"
        parts.append(f"{config.vw_weight:g} times VᵀW of attention and head, {power}")
    return "; plus ".join(parts)


def _base(facts: CardFacts) -> Markup:
    if facts.base is None or facts.base.local:
        return escaped("not known to the trainer" if facts.base is None else "a checkpoint in a local folder")
    return _linked(facts.base, "https://huggingface.co/")


def _data(facts: CardFacts) -> Markup:
    told = escaped("not known to the trainer") if facts.data is None else _linked(facts.data, _DATASETS)
    sizes = [f"{split} {'a stream' if size is None else f'{size} texts'}" for split, size in facts.splits.items()]
    return Markup("; ").join([told, *map(escaped, sizes)])


_DATASETS = "https://huggingface.co/datasets/"


def _linked(origin: Origin, place: str) -> Markup:
    if origin.hub_id is None:
        return Markup(", ").join(map(escaped, filter(None, (origin.name, origin.revision))))
    link = Markup(f"[{escaped(origin.name)}]({place}{origin.hub_id})")
    config = [escaped(f"configuration {origin.config}")] if origin.config else []
    revision = f"revision {origin.revision}" if origin.revision else "no revision pinned: as it was at the time"
    return Markup(", ").join([link, *config, escaped(revision)])


def _intervals(facts: CardFacts) -> str:
    measured = [facts.measured.accuracy] if facts.measured else []
    if not any(result.interval for result in [*facts.results, *measured]):
        return ""
    return f"In brackets: {CONFIDENCE:.0%} bootstrap interval over texts."


def _verdicts(measured: Measured) -> list[Markup]:
    lines = []
    for method, test in measured.beyond_random.items():
        if test.low > 0:
            found = "deleting them changes the prediction more than deleting random words"
        elif test.high < 0:
            found = "deleting them changes the prediction less than deleting random words, so they do not explain it"
        else:
            found = "they cannot be told from random words"
        of_scores = measured.kind == REGRESSION
        written = "{:+.3g}".format if of_scores else partial(_tenths, sign="+")
        unit = "" if of_scores else " points"
        points = f"{written(test.difference)}{unit} {_bracket((test.low, test.high), written)}"
        drop = _code(DROP[measured.kind])
        lines.append(Markup(f"The {K} words that {method} ranks first, beyond Random: {points} of {drop}; {found}."))
    return lines


def _curve_table(log: Iterable[Mapping]) -> Markup | None:
    """The last record of each epoch: phase, β, losses, attention, and the validation."""
    epochs: dict[int, dict] = {}
    for record in log:
        if "loss" in record or "eval_loss" in record:
            epoch = max(1, math.ceil(record["epoch"] - 1e-6))
            epochs.setdefault(epoch, {}).update({key: record[key] for key in _CURVES if key in record})
    columns = [key for key in _CURVES if any(key in record for record in epochs.values())]
    rows = [(epoch, *(_cell(record.get(key)) for key in columns)) for epoch, record in epochs.items()]
    return _table(("epoch", *(_CURVES[key] for key in columns)), rows)


def _setting(value) -> object:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_setting(item)}" for name, item in value.items())
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else value


def _cell(value) -> str:
    if isinstance(value, str):
        return value
    return "—" if value is None or not math.isfinite(value) else f"{value:.4g}"


def _result_row(result: Result) -> tuple:
    value = _value(result) + Markup(" %") if result.definition in (ACCURACY, ALL_RIGHT) else f"{result.value:.4g}"
    return result.metric, result.split, result.n, value


def _value(result: Result) -> Markup:
    """In percent if it is a share, with its interval."""
    written = _tenths if result.is_share else _as_it_is
    return Markup(" ".join([written(result.value), *([_bracket(result.interval, written)] if result.interval else [])]))


def _bracket(bounds: Sequence[float], written: Callable[[float], str]) -> str:
    return f"[{', '.join(map(written, bounds))}]"


def _as_it_is(score: float) -> str:
    return f"{score:.3g}"


def _tenths(share: float, sign: str = "") -> str:
    return f"{round(100 * share, 1) + 0.0:{sign}.1f}"  # + 0.0: never -0.0


def _faithfulness_table(measured: Measured) -> Markup | None:
    names = list(measured.rankings[RANDOM])
    quality = _value(measured.accuracy)
    rows = [
        (ranking.capitalize() if ranking == RANDOM else ranking, quality, *(_value(scores[name]) for name in names))
        for ranking, scores in measured.rankings.items()
    ]
    return _table(("words ranked by", measured.accuracy.metric, *map(_code, names)), rows)


def _table(columns: Sequence[str], rows: Iterable[Sequence]) -> Markup | None:
    cells = [[escaped(cell) for cell in row] for row in rows]
    if not cells:
        return None
    lines = markdown(Table("", [escaped(column) for column in columns], cells)).splitlines()
    return Markup("\n".join(lines[2:]))  # without the heading


def _place(facts: CardFacts) -> str:
    """Where a snippet finds the model, as Python: on the Hub, or in the folder that it is run in."""
    if facts.repo_id is None:
        return '"."'
    revision = "" if facts.revision is None else f", revision={json.dumps(facts.revision)}"
    return json.dumps(facts.repo_id) + revision


def _top_words(explanation: Explanation) -> str:
    best = sorted(explanation.segments(), key=lambda segment: -segment.score)[:K]
    return ", ".join(f"{segment.word} {segment.score:.3g}" for segment in best if segment.seen)


def _code(name: str) -> Markup:
    """A name of ours; nothing in a code span can be escaped."""
    return Markup(f"`{name}`")


_templates = Environment(
    loader=PackageLoader("hf_vat.hub"),
    finalize=escaped,  # what a template does not mark as Markdown is escaped
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters |= {"own": Markup, "headline": headline, "top_words": _top_words}
