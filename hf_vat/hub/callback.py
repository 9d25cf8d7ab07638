"""What a training run leaves for its model card, and the card at its end."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from datasets import ClassLabel, Dataset, IterableDataset, List
from transformers import PreTrainedTokenizerBase, TrainerCallback

from hf_vat.arguments import argument
from hf_vat.data import DataArguments
from hf_vat.errors import InputError, MissingExtra
from hf_vat.inference import whole_number
from hf_vat.models.problems import Problem
from hf_vat.models.words import PAIR
from hf_vat.report import training_curves
from hf_vat.writing import write_text

from .card import CURVES_NAME, EXPLANATIONS_NAME, CardFacts, model_card, write_card
from .eval_results import Measured, has_intervals, logged_results, measure
from .metadata import check_languages, check_license
from .picture import explanations_svg
from .provenance import Origin, loaded_commit, non_default

logger = logging.getLogger(__name__)


@dataclass
class CardArguments:
    """What the model card of a run measures and shows. For `HfArgumentParser`."""

    card_texts: int = argument(
        500,
        "Texts of the test or validation split, drawn at random, on which the faithfulness in the model card is "
        "measured; 0: not measured.",
    )
    card_examples: int | None = argument(
        None,
        "How many of these texts the model card shows, word by word; 0: none. By default 3, and none where the "
        "data are local files, which may be private.",
    )
    card_license: str | None = argument(
        None, "License of the model, as the Hub calls it: apache-2.0, mit, cc-by-4.0, other, ..."
    )
    card_language: list[str] = argument([], "Languages of the texts, as codes of ISO 639: en, or en fr.")


class ModelCardCallback(TrainerCallback):
    """
    Keeps what a run knows about its model for the card that `trainer.create_model_card()` writes: [`VATTrainer`] has one by
    itself, and `callbacks=[ModelCardCallback(...)]` is one with other settings.

    The card is README.md in the output folder, with its images beside it. It measures, on texts that the model was not
    trained on, how faithful its explanations are: those of the test split if there is one, else of the validation split,
    which must have a column `text`. A README.md that is not a card of ours, or was edited, is kept, and the card becomes
    model_card.md. Nothing is sent anywhere.

    Args:
        texts: how many texts are measured, drawn with the run's seed; 0 for none.
        examples: how many of these the card shows; by default 3 of a data set with a name, and none of local files or of
            data that the run knows no name of, which may be private.
        base_model, dataset: names for the card, for checkpoints and data that have none on the Hub.
        license, language: for the card's metadata, as the Hub calls them.

    Raises:
        InputError: if a number is negative, or the Hub knows no such licence or language.
    """

    def __init__(
        self,
        texts: int = 500,
        examples: int | None = None,
        base_model: str | None = None,
        dataset: str | None = None,
        license: str | None = None,
        language: str | Sequence[str] | None = None,
    ):
        check_license(license)
        check_languages(language)
        self.license, self.language = license, language or None
        self.texts = whole_number("card_texts", texts, 0)
        self.examples = None if examples is None else whole_number("card_examples", examples, 0)
        self.named = tuple(None if name is None else Origin.of(name) for name in (base_model, dataset))
        self.base, self.data = self.named
        self.settings: dict[str, dict] = {}
        self.splits: Mapping[str, Dataset | IterableDataset] = {}

    def describe(self, model_args, data_args: DataArguments, data: Mapping[str, Dataset | IterableDataset]) -> None:
        """Take over what [`train_classifier`] was asked for, and its splits."""
        if model_args.word_encoder is not None:
            base = Origin(f"none; a word encoder ({model_args.word_encoder}) trained from scratch")
        else:
            base = Origin.of(model_args.model_name_or_path, model_args.model_revision)
        named_base, named_data = self.named
        self.base, self.data = named_base or base, named_data or Origin.of_data(data_args)
        self.settings = {"model": non_default(model_args), "data": non_default(data_args)}
        self.splits = data

    def on_init_end(self, args, state, control, model=None, **kwargs):
        # Now, as a folder that is there at the start may be gone at the end, and its name then passes for a Hub id.
        name = model.config.name_or_path
        if self.base is None and name:
            self.base = Origin.of(name)
        if self.base is not None and self.base.hub_id:
            commit = loaded_commit(self.base.hub_id, self.base.revision)
            self.base = replace(self.base, revision=commit or self.base.revision)

    def write(self, trainer, **about) -> Path | None:
        """Measure the trainer's model and write its card into the output folder.

        Args:
            about: fields of [`CardFacts`] that the caller knows better.

        Returns:
            The card; None if its place is taken.

        Raises:
            InputError: if the Hub knows no such licence or language.
        """
        check_license(about.get("license"))
        check_languages(about.get("language"))
        folder = Path(trainer.args.output_dir)
        facts = self._facts(trainer, about)
        folder.mkdir(parents=True, exist_ok=True)
        picture = folder / EXPLANATIONS_NAME
        picture.unlink(missing_ok=True)  # texts that shall no longer be shown
        if facts.measured is not None and facts.measured.examples:
            write_text(picture, explanations_svg(facts.measured.examples), newline="\n")
        facts.curves = _draw_curves(facts.log, folder / CURVES_NAME)
        return write_card(folder, model_card(facts))

    def _facts(self, trainer, about: dict) -> CardFacts:
        args, state, model = trainer.args, trainer.state, trainer.model
        best_step = state.best_global_step if args.load_best_model_at_end else None
        splits = self.splits or _splits_of(trainer)
        max_length = getattr(trainer.processing_class, "model_max_length", None)
        known = {
            "name": Path(args.output_dir).name or "model",
            "config": model.config,
            "seed": args.seed,
            "base": self.base,
            "data": self.data,
            "license": self.license,
            "language": self.language,
            "pairs": any("text_pair" in (getattr(rows, "column_names", None) or ()) for rows in splits.values()),
            "splits": {split: None if _is_stream(rows) else len(rows) for split, rows in splits.items()},
            "settings": {**self.settings, "training": non_default(args)},
            "log": state.log_history,
            "steps": state.global_step,
            "best_step": best_step,
            "max_length": max_length if max_length is not None and max_length < 1e9 else None,
            "device": f"{args.world_size} process{'es' if args.world_size > 1 else ''} on {args.device.type}",
            "results": logged_results(state.log_history, state.global_step, best_step, Problem.of(model.config).kind),
        }
        facts = CardFacts(**known | {name: value for name, value in about.items() if value is not None})
        facts.measured = self._measure(trainer, splits, facts.data)
        return facts

    def _measure(self, trainer, splits: Mapping, data: Origin | None) -> Measured | None:
        split = next((split for split in ("test", "validation") if _has_texts(splits.get(split))), None)
        if split is None or not self.texts or not isinstance(trainer.processing_class, PreTrainedTokenizerBase):
            return None
        public = data is not None and not data.local
        label = "label" if "label" in splits[split].column_names else "labels"
        try:
            measured = measure(
                trainer.model,
                trainer.processing_class,
                _texts(splits[split]),
                _labels(splits[split], label),
                split,
                limit=self.texts,
                n_examples=(3 if public else 0) if self.examples is None else self.examples,
                batch_size=trainer.args.per_device_eval_batch_size,
                seed=trainer.args.seed,
                progress=not trainer.args.disable_tqdm,
            )
        except InputError as error:
            logger.warning("The explanations are not measured for the model card: %s", error)
            return None
        if not has_intervals():
            logger.warning("The model card has no intervals; they need scipy: pip install 'hf-vat[explain]'")
        return measured


def _splits_of(trainer) -> dict:
    evaluated = trainer.eval_dataset
    if isinstance(evaluated, Mapping):
        evaluated = {f"validation {name}": rows for name, rows in evaluated.items()}
    else:
        evaluated = {"validation": evaluated}
    return {split: rows for split, rows in {"train": trainer.train_dataset, **evaluated}.items() if rows is not None}


def _texts(rows: Dataset) -> list:
    texts = rows["text"][:]
    if "text_pair" not in rows.column_names:
        return texts
    pairs = zip(texts, rows["text_pair"][:], strict=True)
    return [dict(zip(PAIR, pair, strict=True)) for pair in pairs]


def _labels(rows: Dataset, column: str) -> list:
    """Labels as `explain` takes them: lists of label ids become lists of names."""
    feature = rows.features[column]
    if isinstance(feature, List) and isinstance(feature.feature, ClassLabel):
        return [feature.feature.int2str(ids) for ids in rows[column][:]]
    return rows[column][:]


def _is_stream(rows) -> bool:
    return isinstance(rows, torch.utils.data.IterableDataset | IterableDataset)


def _has_texts(rows) -> bool:
    return isinstance(rows, Dataset) and "text" in rows.column_names


def _draw_curves(log: Sequence[Mapping], path: Path) -> bool:
    path.unlink(missing_ok=True)
    try:
        training_curves({"training": log}, path)
    except (InputError, MissingExtra):  # nothing was trained, or no matplotlib: the table has the numbers
        return False
    return True
