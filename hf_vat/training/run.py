"""One training run: data, model, phases, test, and a folder that holds all of it."""

import json
import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset, DatasetDict, IterableDataset
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoTokenizer, DataCollatorWithPadding, EvalPrediction, TrainerCallback, set_seed
from transformers.trainer_utils import get_last_checkpoint

from hf_vat.data import (
    DataArguments,
    count_words,
    embedding_matrix,
    load_text_classification,
    load_vectors,
    read_words,
    train_word_tokenizer,
)
from hf_vat.errors import InputError
from hf_vat.hub import ModelCardCallback
from hf_vat.models import (
    BertForVATClassification,
    BertVATConfig,
    BertVMaskConfig,
    BertWithVMask,
    EncoderForVATClassification,
    EncoderVATConfig,
    EncoderVMaskConfig,
    EncoderWithVMask,
    WordEncoderConfig,
)
from hf_vat.models.words import maximum_length
from hf_vat.options import OF_MODEL, refuse_non_finite, refuse_without_effect, settings_of

from .arguments import VATTrainingArguments
from .progress import show_epochs
from .recipes import describe_recipe
from .trainer import VATTrainer

logger = logging.getLogger(__name__)

RUN_NAME = "run.json"
_METRICS = ("accuracy", "macro_f1", "loss", "cross_entropy")  # by which the best model can be chosen
_SHUFFLED_TOGETHER = 1000  # rows of a stream that are in memory to be drawn from

# Training arguments that decide about the result, so that a run can only be continued with the same.
_DECISIVE = (
    *("start", "start_epochs", "compress_epochs", "learn_epochs", "predict_from", "num_train_epochs", "max_steps"),
    *("learning_rate", "compressor_learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay", "optim"),
    *("per_device_train_batch_size", "gradient_accumulation_steps", "max_grad_norm", "label_smoothing_factor"),
    "class_weights",
    *("mask_beta_start", "mask_beta_end", "mask_beta_step_epochs"),
    *("early_stopping_patience", "early_stopping_threshold"),
    *("seed", "data_seed", "bf16", "fp16", "train_sampling_strategy", "metric_for_best_model"),
)

_MINIMA = {
    "seed": 0,
    "beta": 0,
    "mask_beta": 0,
    "mask_beta_start": 0,
    "mask_beta_end": 0,
    "learning_rate": 0,
    "compressor_learning_rate": 0,
    "weight_decay": 0,
    "max_grad_norm": 0,
    "dataloader_num_workers": 0,
    "per_device_train_batch_size": 1,
    "per_device_eval_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "attention_probe_size": 1,
    "mask_beta_step_epochs": 1,
    "early_stopping_patience": 1,
    "early_stopping_threshold": 0,
    "min_count": 1,
    "extra_words": 0,
    "embedding_size": 1,
    "encoder_size": 1,
    "word_dropout": 0,
    "save_total_limit": 1,
    "logging_steps": 0,
    "eval_steps": 0,
    "save_steps": 0,
    "eval_delay": 0,
}


_PREDICTIONS = "its measures, by which the epoch is chosen, need all predictions and labels together. Leave it out."
# Inherited training arguments that a run has no use for, with their defaults and what to do.
_WITHOUT_USE = {
    "label_names": (
        None,
        "there it means columns of labels. For the names of the classes 0, 1, … give --class_names, for the column with the "
        "labels --label_column.",
    ),
    "remove_unused_columns": (True, "the texts themselves are no model input. Leave it out."),
    "length_column_name": (
        "length",
        "the length of a text is counted, and no column of the data has it. Leave it out.",
    ),
    "prediction_loss_only": (False, _PREDICTIONS),
    "eval_do_concat_batches": (True, _PREDICTIONS),
    "batch_eval_metrics": (False, _PREDICTIONS),
    "include_for_metrics": ([], "its measures need predictions and labels alone. Leave it out."),
    "do_predict": (
        False,
        "it tests where there is test data, and hf-vat explain --csv writes predictions for a file. Leave it out.",
    ),
    "dataloader_drop_last": (False, "it would leave out validation and test texts as well. Leave it out."),
    "use_cache": (False, "that is for models that generate text. Leave it out."),
    "use_liger_kernel": (False, "its kernels are for models that generate text. Leave it out."),
    "debug": ([], "it does not understand masks, and a loss that is not finite ends the run anyway. Leave it out."),
}


# Model arguments that go to the configuration of a word mask.
_MASK_ARGUMENTS = (
    *("mask_beta", "mask_layers", "mask_hidden_size", "mask_temperature", "mask_reduction", "mask_k", "mask_sample"),
    *("mask_site", "mask_normalization", "freeze_embeddings"),
)


@dataclass
class ModelArguments:
    """The encoder and what is put on top of it; see [`BertVATConfig`], [`EncoderVATConfig`], [`WordEncoderConfig`].

    With `mask_type` the model is a [`BertWithVMask`] or [`EncoderWithVMask`], see [`VMaskSettings`]. What is not given is then
    as in their configuration, or as in the checkpoint of ours that `model_name_or_path` names: the second stage of VMASK
    keeps encoder, pooling and head of the first. `mask_type="none"` is the paper's base model, whose embeddings are frozen
    too, and with `weight_decay` its ℓ2 baseline (AdamW, so the decay is decoupled; biases and layer norms have none).
    """

    model_name_or_path: str = field(
        default="google-bert/bert-base-uncased",
        metadata={"help": "Checkpoint of an encoder, such as BERT or RoBERTa: a Hub id or a local folder."},
    )
    model_revision: str = field(default="main", metadata={"help": "Branch, tag or commit of a Hub checkpoint."})
    pooling: str | None = field(
        default=None,
        metadata={
            "help": "How tokens become a text vector; by default attention, and with --mask_type first or max.",
            "choices": ["attention", "first", "max", "mean"],
        },
    )
    bottleneck: str | None = field(
        default=None,
        metadata={
            "help": "'gaussian' is VAT, the default without --mask_type; 'none' leaves the compressor out.",
            "choices": ["gaussian", "none"],
        },
    )
    heads: str | None = field(
        default=None,
        metadata={
            "help": "Heads of learner and compressor, separate by default.",
            "choices": ["separate", "shared", "shared_mean"],
        },
    )
    head_layers: int | None = field(
        default=None,
        metadata={"help": "Layers of a head: 2 by default, or 1, a linear layer.", "choices": [1, 2]},
    )
    beta: float | None = field(default=None, metadata={"help": "Weight of the compression term, 0.1 by default."})
    kl_reduction: str | None = field(
        default=None, metadata={"help": "KL over latent dimensions, mean by default.", "choices": ["mean", "sum"]}
    )
    prior: str | None = field(
        default=None, metadata={"help": "Prior of z, standard by default.", "choices": ["standard", "learned"]}
    )
    mask_type: str | None = field(
        default=None,
        metadata={
            "help": "Mask on the words: VMASK, its competitors L2X and IBA, or 'none', the base model they compare with.",
            "choices": ["vmask", "l2x", "iba", "none"],
        },
    )
    mask_beta: float | None = field(
        default=None, metadata={"help": "Weight of the mask's term, 1 by default; see also --mask_beta_start."}
    )
    mask_layers: int | None = field(
        default=None,
        metadata={"help": "Layers that score a word: 1, the paper and default, or 2, its code.", "choices": [1, 2]},
    )
    mask_sample: str | None = field(
        default=None,
        metadata={
            "help": "VMASK's draws in training: soft, the paper and default, or 0 and 1, its code.",
            "choices": ["soft", "hard_st"],
        },
    )
    mask_hidden_size: int | None = field(
        default=None, metadata={"help": "Width between two layers, that of the embeddings by default."}
    )
    mask_temperature: float | None = field(default=None, metadata={"help": "Temperature of the draws, 1 by default."})
    mask_reduction: str | None = field(
        default=None,
        metadata={
            "help": "The mask's term over the words of a text: their mean, the default, or their sum, as in the paper; or the "
            "mean over all positions of a batch, padding included, as in its code.",
            "choices": ["token_mean", "sum", "position_mean"],
        },
    )
    mask_k: int | None = field(default=None, metadata={"help": "Words that L2X's concrete_topk draws, 10 by default."})
    mask_site: str | None = field(
        default=None,
        metadata={
            "help": "What is masked: word embeddings, the default, or BERT's whole embedding output, as the code does.",
            "choices": ["word", "embedding_output"],
        },
    )
    mask_normalization: str | None = field(
        default=None,
        metadata={
            "help": "How L2X turns scores into weights; softmax by default.",
            "choices": ["softmax", "sigmoid", "concrete_topk"],
        },
    )
    freeze_embeddings: bool | None = field(
        default=None,
        metadata={
            "help": "With --mask_type: keep the embeddings as they were loaded. The default, but for word embeddings that "
            "begin at random."
        },
    )
    max_length: int = field(
        default=256,
        metadata={"help": "Tokens per text at most, special ones included; fewer where the checkpoint takes fewer."},
    )
    word_encoder: str | None = field(
        default=None,
        metadata={
            "help": "Train a word encoder from scratch instead of a checkpoint.",
            "choices": ["lstm", "cnn", "affine", "embedding"],
        },
    )
    word_preset: str = field(
        default="vat",
        metadata={"help": "How a word encoder's words are cut.", "choices": ["plain", "vat", "vmask", "jw"]},
    )
    min_count: int = field(
        default=1,
        metadata={
            "help": "How often a word must occur in the training data to be one of a word encoder's, unless it is among "
            "--extra_words. VMASK's threshold t is t + 1 here."
        },
    )
    vectors: str | None = field(
        default=None, metadata={"help": "Pretrained vectors of a word encoder: a file, a folder or a Hub id."}
    )
    extra_words: int = field(
        default=20_000,
        metadata={"help": "Frequent words of the vectors that a word encoder knows beside those of the training data."},
    )
    embedding_size: int = field(default=300, metadata={"help": "Width of word embeddings, without --vectors."})
    encoder_size: int | None = field(default=None, metadata={"help": "Width of a word encoder's output."})
    bidirectional: bool = field(default=False, metadata={"help": "Whether an LSTM reads in both directions."})
    word_dropout: float = field(default=0.5, metadata={"help": "Dropout of a word encoder and its heads."})
    embedding_dropout: float | None = field(
        default=None, metadata={"help": "Dropout on a word encoder's embeddings, --word_dropout by default."}
    )

    def __post_init__(self):
        if self.mask_type is None:
            self.pooling = self.pooling or "attention"
            self.bottleneck = self.bottleneck or "gaussian"
        if self.mask_type is None and self.bottleneck == "gaussian":
            self.heads, self.kl_reduction = self.heads or "separate", self.kl_reduction or "mean"
            self.prior, self.beta = self.prior or "standard", 0.1 if self.beta is None else self.beta


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
    _check_settings(model_args, data_args, args)
    _check_inherited(args)
    if given is None:
        given = [
            field.name for field in fields(model_args) if getattr(model_args, field.name) not in (None, field.default)
        ]
    if data_args.streaming:
        _check_streaming(model_args, args)
    settings = settings_of(model_args, data_args, args)
    given = [name for name in given if name in settings]
    refuse_without_effect("train", given, settings)
    checkpoint = claim_output_dir(model_args, data_args, args)
    set_seed(args.seed)
    with args.main_process_first(desc="preparing the run"):
        if data is None:
            data = load_text_classification(data_args)
        _check_splits(data, args, data_args.streaming)
        tokenizer, model = load_model(model_args, data["train"], args.seed)
        of_model = {name: getattr(model.config, name, None) for name in OF_MODEL}
        refuse_without_effect("train", given, settings | of_model)

        def encode(rows: dict) -> dict:
            return tokenizer(rows["text"], truncation=True, max_length=tokenizer.model_max_length)

        sizes = [len(rows) for rows in data.values() if not isinstance(rows, IterableDataset)]
        logger.info("Tokenizing %s texts", f"{sum(sizes):,}")
        encoded = {}
        for split, rows in data.items():
            if isinstance(rows, IterableDataset):
                shuffled = rows.shuffle(seed=args.seed, buffer_size=_SHUFFLED_TOGETHER)
                encoded[split] = shuffled.map(encode, batched=True, batch_size=64)
            else:
                encoded[split] = rows.map(encode, batched=True, desc="Tokenizing")
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
        compute_metrics=accuracy_and_macro_f1,
        callbacks=[*callbacks, *([] if cards else [card])],
    )
    show_epochs(trainer)
    if checkpoint is None and args.should_save:  # only now, so that a run refused above leaves the folder to the next
        settings = _settings(model_args, data_args, args)
        (Path(args.output_dir) / RUN_NAME).write_text(json.dumps(settings, indent=2, ensure_ascii=False), "utf-8")
    result = trainer.train(resume_from_checkpoint=checkpoint)
    if not (Path(args.output_dir) / "train_results.json").is_file():  # resuming a finished run trains no further step
        trainer.save_metrics("train", result.metrics)
    if "test" in encoded:
        trainer.save_metrics("test", trainer.evaluate(encoded["test"], metric_key_prefix="test"))
    trainer.save_state()
    if trainer.is_world_process_zero():
        model.save_pretrained(args.output_dir)
        tokenizer.save_pretrained(args.output_dir)
    if args.push_to_hub:
        trainer.push_to_hub()
    elif cards:
        trainer.create_model_card()
    trainer.accelerator.wait_for_everyone()  # whoever loads the folder next finds all of it
    return trainer


def load_model(model_args: ModelArguments, train: Dataset | IterableDataset, seed: int = 0):
    """Tokenizer and model for a task.

    Args:
        train: training data with columns `text` and `label`: class names, and the words of a word encoder.
        seed: for the vectors of words that have no pretrained one.

    Raises:
        InputError: if the checkpoint or the vectors cannot be loaded, or settings do not fit together.
    """
    names = ("pooling", "bottleneck", "heads", "head_layers", "kl_reduction", "prior", "beta", "mask_type")
    names = (*names, *_MASK_ARGUMENTS)
    settings = {name: getattr(model_args, name) for name in names if getattr(model_args, name) is not None}
    settings["id2label"] = dict(enumerate(train.features["label"].names))
    name = model_args.model_name_or_path
    try:
        if model_args.word_encoder is not None:
            tokenizer, model = _new_word_model(model_args, train["text"][:], settings, seed)
        else:
            tokenizer, model = _pretrained_model(model_args, settings)
        model.config.validate()  # from_pretrained sets what differs from the checkpoint unchecked
    except StrictDataclassError as error:
        raise InputError(f"The model settings do not fit: {str(error).strip().splitlines()[-1].strip()}") from error
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(
            f"{name} cannot be loaded: {' '.join(str(error).split())} Give --model_name_or_path the checkpoint of an "
            "encoder: a folder, or a Hub id if the Hub can be reached."
        ) from error
    allowed = maximum_length(model, tokenizer)
    if model_args.max_length < 3:
        raise InputError(f"--max_length is {model_args.max_length}; {name} takes 3 to {allowed} tokens.")
    if allowed < model_args.max_length:
        logger.warning("%s takes %d tokens, so longer texts are cut there.", name, allowed)
    # What is saved says how long the texts were in training; explanations truncate alike.
    tokenizer.model_max_length = min(model_args.max_length, allowed)
    return tokenizer, model


def _pretrained_model(model_args: ModelArguments, settings: dict):
    name, revision = model_args.model_name_or_path, {"revision": model_args.model_revision}
    tokenizer = AutoTokenizer.from_pretrained(name, **revision)
    model_type = AutoConfig.from_pretrained(name, **revision).model_type
    masked = (BertVMaskConfig.model_type, EncoderVMaskConfig.model_type)
    if model_type in masked and model_args.mask_type is None:
        raise InputError(f"{name} is a model with a word mask; give --mask_type to train it further.")
    if model_args.mask_type is None:
        bert, encoder = BertForVATClassification, EncoderForVATClassification
    else:
        bert, encoder = BertWithVMask, EncoderWithVMask
    if model_type in ("bert", BertVATConfig.model_type, BertVMaskConfig.model_type):
        return tokenizer, bert.from_pretrained(name, **revision, **settings)
    if model_type in (EncoderVATConfig.model_type, EncoderVMaskConfig.model_type):
        return tokenizer, encoder.from_pretrained(name, **revision, **settings)
    return tokenizer, encoder.from_encoder_pretrained(name, tokenizer, revision, **settings)


def _new_word_model(model_args: ModelArguments, texts: list[str], settings: dict, seed: int):
    extra: list[str] = []
    if model_args.vectors is not None:
        extra = list(islice(read_words(model_args.vectors), model_args.extra_words))
    tokenizer = train_word_tokenizer(texts, model_args.word_preset, model_args.min_count, extra_words=extra)
    weights, size = None, model_args.embedding_size
    if model_args.vectors is not None:
        vectors = load_vectors(model_args.vectors, list(tokenizer.get_vocab()), lower_case=True)
        weights = embedding_matrix(tokenizer, vectors, seed)
        size = weights.shape[1]
        coverage = vectors.coverage(count_words(tokenizer, texts))
        logger.info("vectors: %d of %d words of the training texts", coverage.tokens_found, coverage.tokens)
    encoder = WordEncoderConfig(
        vocab_size=len(tokenizer),
        encoder_type=model_args.word_encoder,
        embedding_size=size,
        hidden_size=model_args.encoder_size,
        bidirectional=model_args.bidirectional,
        dropout=model_args.word_dropout,
        embedding_dropout=model_args.embedding_dropout,
        pad_token_id=tokenizer.pad_token_id,
    )
    settings |= {"prefix_tokens": 0, "suffix_tokens": 0, "classifier_dropout": model_args.word_dropout}
    if model_args.mask_type is None:
        model = EncoderForVATClassification(EncoderVATConfig(encoder=encoder, **settings))
    else:
        settings.setdefault("freeze_embeddings", weights is not None)
        model = EncoderWithVMask(EncoderVMaskConfig(encoder=encoder, **settings))
    if weights is not None:
        with torch.no_grad():
            model.get_input_embeddings().weight.copy_(weights)
    return tokenizer, model


def claim_output_dir(model_args: ModelArguments, data_args: DataArguments, args: VATTrainingArguments) -> str | None:
    """Check that the output folder is new, or holds this very run and `resume_from_checkpoint` asks to go on.

    Nothing is written: every process of a run checks for itself and comes to the same result.

    Returns:
        The checkpoint to go on from, if there is one.

    Raises:
        InputError: if the folder holds anything else.
    """
    folder, resume = Path(args.output_dir), args.resume_from_checkpoint
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output_dir {folder} is a file; give a folder.")
    if not folder.exists() or not any(folder.iterdir()):
        if resume and resume != "last":
            raise InputError(f"{resume} is not a checkpoint of the run in {folder}, which is empty.")
        return None
    try:
        found = json.loads((folder / RUN_NAME).read_text(encoding="utf-8"))
        defaults = {"model": ModelArguments, "data": DataArguments, "training": VATTrainingArguments}
        different = []
        for group, values in _settings(model_args, data_args, args).items():
            for name, value in values.items():
                # An option that came later had its default value before.
                before = found[group].get(name, defaults[group].__dataclass_fields__[name].default)
                if before != value:
                    different.append(f"{group}.{name} was {before!r} and is {value!r}")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"--output_dir {folder} holds other files and no run; choose an empty or new folder."
        ) from error
    if different:
        raise InputError(
            f"--output_dir {folder} holds another run ({'; '.join(different[:5])}); choose another folder, or the same "
            "settings."
        )
    if not resume:
        raise InputError(
            f"--output_dir {folder} holds this run already; go on with --resume_from_checkpoint last, or choose "
            "another folder."
        )
    if resume == "last":
        return get_last_checkpoint(folder)
    if not os.path.isdir(resume):
        raise InputError(f"--resume_from_checkpoint {resume} is not a folder; use 'last' or one of {folder}.")
    return resume


def accuracy_and_macro_f1(prediction: EvalPrediction) -> dict[str, float]:
    """Share of texts whose class is right, and the mean of F1 over classes, for `compute_metrics`.

    F1 of a class is 2 TP / (2 TP + FP + FN); the mean is over the classes that are gold or predicted, as in scikit-learn.
    Texts with the label -100 are left out; where all are, there is nothing to tell.
    """
    labelled = prediction.label_ids != -100
    if not labelled.any():
        return {}
    predicted, gold = np.argmax(prediction.predictions, -1)[labelled], prediction.label_ids[labelled]
    f1 = [
        2 * np.sum((predicted == label) & (gold == label)) / (np.sum(predicted == label) + np.sum(gold == label))
        for label in np.union1d(predicted, gold)
    ]
    return {"accuracy": float(np.mean(predicted == gold)), "macro_f1": float(np.mean(f1))}


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


def _settings(model_args: ModelArguments, data_args: DataArguments, args: VATTrainingArguments) -> dict:
    """What is stored as `run.json`, as it reads when loaded back."""
    training = args.to_dict()
    settings = {
        "model": asdict(model_args),
        "data": asdict(data_args),
        "training": {name: training[name] for name in _DECISIVE},
    }
    return json.loads(json.dumps(settings))


def _check_settings(model_args: ModelArguments, data_args: DataArguments, args: VATTrainingArguments) -> None:
    """Refuse what torch and transformers refuse only after the run has begun, or not at all."""
    refuse_non_finite(model_args, data_args, args)
    for name, minimum in _MINIMA.items():
        value = getattr(model_args if hasattr(model_args, name) else args, name)
        if value is not None and value < minimum:
            raise InputError(f"--{name} is {value}; it must be at least {minimum}.")
    if args.max_steps != -1 and args.max_steps < 1:
        raise InputError(
            f"--max_steps is {args.max_steps}; it must be at least 1, or left out to train for --num_train_epochs."
        )
    if not 0 <= args.label_smoothing_factor < 1:
        raise InputError(
            f"--label_smoothing_factor is {args.label_smoothing_factor}; it must be at least 0 and below 1."
        )
    if not args.num_train_epochs > 0 and args.max_steps <= 0:
        raise InputError(f"--num_train_epochs is {args.num_train_epochs}; it must be above 0, or give --max_steps.")
    metric = args.metric_for_best_model
    if metric is not None and metric.removeprefix("eval_") not in _METRICS:
        raise InputError(f"--metric_for_best_model is {metric!r}; it must be one of {', '.join(_METRICS)}.")


def _check_inherited(args: VATTrainingArguments) -> None:
    """Refuse options of the base class that cannot work in this run, or would have no effect on it."""
    for name, (usual, advice) in _WITHOUT_USE.items():
        value = getattr(args, name)
        if value != usual:
            raise InputError(f"--{name} is {value!r}, which this run cannot use: {advice}")


def _check_streaming(model_args: ModelArguments, args: VATTrainingArguments) -> None:
    if args.max_steps <= 0:
        raise InputError("With --streaming the number of rows is not known; say how long to train with --max_steps.")
    if model_args.word_encoder is not None:
        raise InputError(
            "--word_encoder counts the words of all training texts, which --streaming does not hold. Leave --streaming "
            "out, or fine-tune a checkpoint with --model_name_or_path."
        )
    if args.train_sampling_strategy != "random":
        raise InputError(
            f"--train_sampling_strategy {args.train_sampling_strategy} needs all rows, which --streaming does not hold; leave "
            "one of them out."
        )


def _check_splits(data: Mapping, args: VATTrainingArguments, streaming: bool) -> None:
    if "train" not in data:
        raise InputError(f"There is no training data, only {', '.join(data)}. Give a training split or --train_file.")
    if "validation" not in data and args.eval_strategy != "no":
        raise InputError(
            f"There is no validation data for --eval_strategy {args.eval_strategy.value}. Give --validation_file"
            f"{'' if streaming else ' or a --validation_share above 0'}, or --eval_strategy no "
            "--load_best_model_at_end False."
        )
