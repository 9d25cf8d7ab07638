"""One training run: data, model, phases, test, and a folder that holds all of it."""

import json
import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from datasets import Dataset, DatasetDict, IterableDataset
from transformers import DataCollatorWithPadding, TrainerCallback, set_seed

from hf_vat.data import DataArguments, load_text_classification
from hf_vat.errors import InputError
from hf_vat.hub import ModelCardCallback
from hf_vat.models.problems import MULTI_LABEL
from hf_vat.models.words import PAIR
from hf_vat.options import OF_MODEL, refuse_without_effect, settings_of
from hf_vat.writing import write_text

from .arguments import VATTrainingArguments
from .checkpoints import errors_of_the_system
from .checks import check_inherited, check_settings, check_splits, check_streaming
from .folder import (
    RUN_NAME,
    check_fingerprints,
    claim_output_dir,
    fingerprints,
    held_output_dir,
    run_settings,
)
from .loading import load_model
from .metrics import METRICS, check_metric
from .model_arguments import ModelArguments
from .progress import show_epochs
from .recipes import describe_recipe
from .trainer import VATTrainer

logger = logging.getLogger(__name__)

_SHUFFLED_TOGETHER = 1000  # rows of a stream that are in memory to be drawn from


def train_classifier(
    model_args: ModelArguments,
    data_args: DataArguments,
    args: VATTrainingArguments,
    data: DatasetDict | None = None,
    callbacks: Sequence[TrainerCallback] = (),
    given: Collection[str] | None = None,
) -> VATTrainer:
    """Fine-tune a classifier, test it and save it into `args.output_dir`.

    Each epoch prints a line; see [`~hf_vat.training.progress.EpochLines`]. The folder then holds the model and its
    tokenizer (loadable through the Auto classes), checkpoints, the log (`training_log.jsonl`, `trainer_state.json`), the
    metrics (`all_results.json`) and the settings (`run.json`).

    Args:
        data: splits with columns `text` and `label`, if they are loaded already; `data_args` then only describes them.
        callbacks: for the trainer. With a [`~hf_vat.hub.ModelCardCallback`] among them the folder also holds the model
            card, `README.md`, which measures the explanations; so it does after a push.
        given: names of the settings that were asked for, each of which must have an effect. By default the model's that
            differ from their defaults; those of `args` are not among these, as one may serve several models.

    Raises:
        InputError: if settings, data or output folder cannot be used.
    """
    check_settings(model_args, data_args, args)
    check_inherited(args)
    if args.fsdp or os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true":
        raise InputError(
            "Here one process measures the model and saves it, which under FSDP none has whole. Use DistributedDataParallel, or a "
            "script with a VATTrainer, such as examples/train_vat.py."
        )
    if given is None:
        given = [
            field.name for field in fields(model_args) if getattr(model_args, field.name) not in (None, field.default)
        ]
    if data_args.streaming:
        check_streaming(model_args, args)
    settings = settings_of(model_args, data_args, args)
    given = [name for name in given if name in settings]
    refuse_without_effect("train", given, settings)
    with held_output_dir(args):
        return _train(model_args, data_args, args, data, callbacks, given, settings)


def _train(model_args, data_args, args, data, callbacks, given, settings) -> VATTrainer:
    folder, checkpoint = Path(args.output_dir), claim_output_dir(model_args, data_args, args)
    described = run_settings(model_args, data_args, args)  # now, as the trainer changes some for itself
    set_seed(args.seed)
    with args.main_process_first(desc="preparing the run"):
        if data is None:
            data = load_text_classification(data_args)
        check_splits(data, args, data_args.streaming)
        tokenizer, model = load_model(model_args, data["train"], args.seed)
        prints = fingerprints(data, data_args, tokenizer)
        check_fingerprints(folder, prints)
        of_model = {name: getattr(model.config, name, None) for name in OF_MODEL}
        refuse_without_effect("train", given, settings | of_model)
        check_metric(args, model.problem.kind)

        count = model.num_labels if model.problem.kind == MULTI_LABEL else 0

        def encode(rows: dict) -> dict:
            texts = [rows[name] for name in PAIR if name in rows]
            made = tokenizer(*texts, truncation=True, max_length=tokenizer.model_max_length)
            if count:
                made["labels"] = [[float(label in some) for label in range(count)] for some in rows["label"]]
            return made

        sizes = [len(rows) for rows in data.values() if not isinstance(rows, IterableDataset)]
        logger.info("Tokenizing %s texts", f"{sum(sizes):,}")
        encoded = {}
        for split, rows in data.items():
            if isinstance(rows, IterableDataset):
                shuffled = rows.shuffle(seed=args.seed, buffer_size=_SHUFFLED_TOGETHER)
                encoded[split] = shuffled.map(encode, batched=True, batch_size=64)
            else:
                encoded[split] = rows.map(
                    encode, batched=True, desc="Tokenizing", remove_columns=["label"] if count else None
                )
    logger.info("%s", describe_run(model_args, args, encoded, model.config))
    logger.info("Settings: %s", describe_recipe(settings))
    cards = [callback for callback in callbacks if isinstance(callback, ModelCardCallback)]
    card = cards[0] if cards else ModelCardCallback()
    card.describe(model_args, data_args, data)
    trainer = VATTrainer(
        model,
        args,
        train_dataset=encoded["train"],
        eval_dataset=encoded.get("validation"),
        data_collator=DataCollatorWithPadding(tokenizer),
        processing_class=tokenizer,
        compute_metrics=METRICS[model.problem.kind],
        callbacks=[*callbacks, *([] if cards else [card])],
    )
    show_epochs(trainer)
    if checkpoint == str(folder):
        logger.info("%s holds all of the finished run; nothing is left to train.", folder)
        trainer.load_finished(checkpoint)
    else:
        if (
            checkpoint is None and args.should_save
        ):  # only now, so that a run refused above leaves the folder to the next
            described["fingerprints"] = prints
            write_text(folder / RUN_NAME, json.dumps(described, indent=2, ensure_ascii=False))
        _train_and_save(trainer, tokenizer, checkpoint, encoded.get("test"), bool(cards) and not args.push_to_hub)
    if args.push_to_hub:
        trainer.push_to_hub()
    trainer.accelerator.wait_for_everyone()  # whoever loads the folder next finds all of it
    return trainer


def _train_and_save(
    trainer: VATTrainer, tokenizer, checkpoint: str | None, test: Dataset | None, with_card: bool
) -> None:
    """Train, and fill the folder; the trainer's state, by which a run is finished, comes last."""
    folder = trainer.args.output_dir
    result = trainer.train(resume_from_checkpoint=checkpoint)
    if not Path(folder, "train_results.json").is_file():  # the run may have ended before it was killed
        trainer.save_metrics("train", result.metrics)
    if test is not None:
        trainer.save_metrics("test", trainer.evaluate(test, metric_key_prefix="test"))
    if trainer.is_world_process_zero():
        with errors_of_the_system(Path(folder)):
            trainer.model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    if with_card:
        trainer.create_model_card()
    trainer.save_state()


def describe_run(model_args: ModelArguments, args: VATTrainingArguments, data: Mapping, config) -> str:
    """One line for the log: what is trained, on how much, by how many processes."""
    sizes = ", ".join(
        f"{split} {'streamed' if isinstance(rows, IterableDataset) else len(rows)}" for split, rows in data.items()
    )
    mask = "" if model_args.mask_type is None else f", mask_type={config.mask_type}"
    return (
        f"{model_args.word_encoder or model_args.model_name_or_path} with pooling={config.pooling}, "
        f"bottleneck={config.bottleneck}{mask}; {sizes} texts; seed {args.seed}; world size {args.world_size} ({args.device})"
    )
