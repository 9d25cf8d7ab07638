"""One training run: data, model, phases, test, and a folder that holds all of it."""

import json
import logging
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from datasets import DatasetDict
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoTokenizer, DataCollatorWithPadding, EvalPrediction, set_seed
from transformers.trainer_utils import get_last_checkpoint

from ..data import DataArguments, load_text_classification
from ..errors import InputError
from ..models import BertForVATClassification
from .arguments import VATTrainingArguments
from .trainer import VATTrainer

logger = logging.getLogger(__name__)

RUN_NAME = "run.json"

# Training arguments that decide about the result, so that a run can only be continued with the same.
_DECISIVE = (
    *("start", "start_epochs", "compress_epochs", "learn_epochs", "predict_from", "num_train_epochs", "max_steps"),
    *("learning_rate", "compressor_learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay", "optim"),
    *("per_device_train_batch_size", "gradient_accumulation_steps", "max_grad_norm", "label_smoothing_factor"),
    *("seed", "data_seed", "bf16", "fp16", "train_sampling_strategy", "metric_for_best_model"),
)


@dataclass
class ModelArguments:
    """The encoder and what is put on top of it; see [`BertVATConfig`]."""

    model_name_or_path: str = field(
        default="google-bert/bert-base-uncased", metadata={"help": "BERT checkpoint: a Hub id or a local folder."}
    )
    model_revision: str = field(default="main", metadata={"help": "Branch, tag or commit of a Hub checkpoint."})
    pooling: str = field(
        default="attention",
        metadata={"help": "How tokens become a text vector.", "choices": ["attention", "first", "max", "mean"]},
    )
    bottleneck: str = field(
        default="gaussian",
        metadata={"help": "'gaussian' is VAT, 'none' leaves the compressor out.", "choices": ["gaussian", "none"]},
    )
    heads: str = field(
        default="separate",
        metadata={
            "help": "Heads of learner and compressor.",
            "choices": ["separate", "shared", "shared_mean"],
        },
    )
    beta: float = field(default=0.1, metadata={"help": "Weight of the compression term."})
    kl_reduction: str = field(
        default="mean", metadata={"help": "KL over latent dimensions.", "choices": ["mean", "sum"]}
    )
    prior: str = field(default="standard", metadata={"help": "Prior of z.", "choices": ["standard", "learned"]})
    max_length: int = field(default=256, metadata={"help": "Tokens per text, special ones included."})


def train_classifier(
    model_args: ModelArguments, data_args: DataArguments, args: VATTrainingArguments, data: DatasetDict | None = None
) -> VATTrainer:
    """Fine-tune a classifier, test it and save it into `args.output_dir`.

    The folder then holds the model and its tokenizer (loadable through the Auto classes), checkpoints, the log
    (`trainer_state.json`), the metrics (`all_results.json`) and the settings (`run.json`).

    Args:
        data: splits with columns `text` and `label`, if they are loaded already; `data_args` then only describes them.

    Raises:
        InputError: if settings, data or output folder cannot be used.
    """
    set_seed(args.seed)
    with args.main_process_first(desc="preparing the run"):
        checkpoint = claim_output_dir(model_args, data_args, args)
        if data is None:
            data = load_text_classification(data_args)
        tokenizer, model = load_model(model_args, data["train"].features["label"].names)
        encoded = data.map(
            lambda rows: tokenizer(rows["text"], truncation=True, max_length=model_args.max_length),
            batched=True,
            desc="Tokenizing",
        )
    logger.info("%s", describe_run(model_args, args, encoded))
    trainer = VATTrainer(
        model,
        args,
        train_dataset=encoded["train"],
        eval_dataset=encoded.get("validation"),
        data_collator=DataCollatorWithPadding(tokenizer),
        processing_class=tokenizer,
        compute_metrics=accuracy,
    )
    result = trainer.train(resume_from_checkpoint=checkpoint)
    trainer.save_metrics("train", result.metrics)
    if "test" in encoded:
        trainer.save_metrics("test", trainer.evaluate(encoded["test"], metric_key_prefix="test"))
    trainer.save_state()
    if trainer.is_world_process_zero():
        model.save_pretrained(args.output_dir)
        tokenizer.save_pretrained(args.output_dir)
    return trainer


def load_model(model_args: ModelArguments, label_names: list[str]):
    """Tokenizer and model for a task.

    Raises:
        InputError: if the checkpoint cannot be loaded, or settings do not fit together.
    """
    name = model_args.model_name_or_path
    settings = {key: getattr(model_args, key) for key in ("pooling", "bottleneck", "heads", "kl_reduction", "prior")}
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, revision=model_args.model_revision)
        model = BertForVATClassification.from_pretrained(
            name,
            revision=model_args.model_revision,
            id2label=dict(enumerate(label_names)),
            beta=model_args.beta,
            **settings,
        )
    except (OSError, ValueError, StrictDataclassError) as error:
        reason = str(error).strip().splitlines()[-1].strip() if isinstance(error, StrictDataclassError) else error
        raise InputError(
            f"{name} cannot be loaded with these settings: {reason} Give --model_name_or_path a BERT checkpoint: a "
            "folder, or a Hub id if the Hub can be reached."
        ) from error
    allowed = model.config.max_position_embeddings
    if not 3 <= model_args.max_length <= allowed:
        raise InputError(f"--max_length is {model_args.max_length}; {name} takes 3 to {allowed} tokens.")
    # What is saved says how long the texts were in training; explanations truncate alike.
    tokenizer.model_max_length = model_args.max_length
    return tokenizer, model


def claim_output_dir(model_args: ModelArguments, data_args: DataArguments, args: VATTrainingArguments) -> str | None:
    """Make sure that the output folder is new, or holds this very run and `resume_from_checkpoint` asks to go on.

    Returns:
        The checkpoint to go on from, if there is one.

    Raises:
        InputError: if the folder holds anything else; nothing in it is touched.
    """
    folder, resume = Path(args.output_dir), args.resume_from_checkpoint
    settings = {
        "model": asdict(model_args),
        "data": asdict(data_args),
        "training": {name: args.to_dict()[name] for name in _DECISIVE},
    }
    path = folder / RUN_NAME
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output_dir {folder} is a file; give a folder.")
    if not folder.exists() or not any(folder.iterdir()):
        if resume and resume != "last":
            raise InputError(f"{resume} is not a checkpoint of the run in {folder}, which is empty.")
        if args.should_save:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings, indent=2, ensure_ascii=False), encoding="utf-8")
        return None
    if not args.should_save:
        return resume if resume != "last" else get_last_checkpoint(folder)  # checked by the process that writes
    if not path.is_file():
        raise InputError(f"--output_dir {folder} holds other files and no run; choose an empty or new folder.")
    found = json.loads(path.read_text(encoding="utf-8"))
    ours = json.loads(json.dumps(settings))
    different = [
        f"{group}.{name} was {found.get(group, {}).get(name)!r} and is {value!r}"
        for group, values in ours.items()
        for name, value in values.items()
        if found.get(group, {}).get(name) != value
    ]
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


def accuracy(prediction: EvalPrediction) -> dict[str, float]:
    """Share of texts whose class is right, for `compute_metrics`."""
    return {"accuracy": float((np.argmax(prediction.predictions, -1) == prediction.label_ids).mean())}


def describe_run(model_args: ModelArguments, args: VATTrainingArguments, data: DatasetDict) -> str:
    """One line for the log: what is trained, on how much, by how many processes."""
    sizes = ", ".join(f"{split} {len(rows)}" for split, rows in data.items())
    return (
        f"{model_args.model_name_or_path} with pooling={model_args.pooling}, bottleneck={model_args.bottleneck}; "
        f"{sizes} texts; seed {args.seed}; world size {args.world_size} ({args.device})"
    )
