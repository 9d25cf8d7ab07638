"""Which numbers each argument takes, in every command and in Python: one table, and the check that reads it."""

from dataclasses import fields
from math import inf
from typing import Any

from .errors import InputError, Range, shown
from .models import WordEncoderConfig
from .models.configuration_vat import VATSettings
from .models.setting import declared_settings

SEED = Range(0, 2**32 - 1, whole=True)  # what NumPy and torch take alike
_COUNT, _SHARE, _SIZE = Range(1, 10**9, whole=True), Range(0, 1, below=True), Range(1, 2**20, whole=True)
_WEIGHT, _FROM_0 = Range(0), Range(0, 10**9, whole=True)

# By the name of the argument, which means the same in every command. A test holds that each argument of a number is here.
RANGES: dict[str, Range] = {
    **{
        one.option: Range(-inf if one.minimum is None else one.minimum, one.maximum)
        for config in (VATSettings, WordEncoderConfig)
        for one in declared_settings(config).values()
        if one.option is not None and one.value_type in (int, float) and one.choices is None
    },
    "attention_scale": Range(0, above=True),
    "head_layers": Range(1, 2, whole=True),
    "mask_layers": Range(1, 2, whole=True),
    "mlm_probability": Range(0, 1),
    "word_dropout": _SHARE,
    "embedding_dropout": _SHARE,
    # data
    "validation_share": _SHARE,
    **dict.fromkeys(("seed", "split_seed", "data_seed"), SEED),
    **dict.fromkeys(("max_train_samples", "max_eval_samples", "min_count", "top"), _COUNT),
    **dict.fromkeys(("extra_words", "card_texts", "card_examples", "show", "train_texts"), _FROM_0),
    # models and their inputs
    **dict.fromkeys(("max_length", "batch_size", "per_device_train_batch_size", "per_device_eval_batch_size"), _SIZE),
    # measurements
    "ks": Range(1, 10**4, whole=True),
    "shares": Range(0, 1, above=True),
    "confidence": Range(0, 1, above=True, below=True),
    "seeds": Range(1, 1000, whole=True),
    "jobs": Range(1, 1024, whole=True),
    "merge": Range(1, 99_999, whole=True),  # shards, whose file names have so many digits
    # explainers
    "epochs": Range(1, 10**4, whole=True),
    "layers": Range(1, 10**4, whole=True),
    # training
    "num_train_epochs": Range(0, 10**5),
    **dict.fromkeys(("start_epochs", "compress_epochs", "learn_epochs"), Range(0, 10**5, whole=True)),
    **dict.fromkeys(("mask_beta_step_epochs", "early_stopping_patience"), Range(1, 10**5, whole=True)),
    "max_steps": Range(1, 10**7, whole=True, beside=-1),
    **dict.fromkeys(
        ("learning_rate", "compressor_learning_rate", "head_learning_rate", "weight_decay", "max_grad_norm"), _WEIGHT
    ),
    **dict.fromkeys(("mask_beta_start", "mask_beta_end", "early_stopping_threshold", "neftune_noise_alpha"), _WEIGHT),
    **dict.fromkeys(("label_smoothing_factor", "adam_beta1", "adam_beta2"), _SHARE),
    "adam_epsilon": _WEIGHT,
    **dict.fromkeys(("warmup_steps", "logging_steps", "eval_steps", "save_steps", "eval_delay"), Range(0, 10**9)),
    **dict.fromkeys(("save_total_limit", "eval_accumulation_steps", "torch_empty_cache_steps"), _COUNT),
    **dict.fromkeys(("attention_probe_size", "gradient_accumulation_steps"), _SIZE),
    "dataloader_num_workers": Range(0, 1024, whole=True),
    "dataloader_prefetch_factor": Range(1, 10**4, whole=True),
    "ddp_bucket_cap_mb": Range(1, 10**5, whole=True),
    "ddp_timeout": Range(1, 10**7, whole=True),
    "local_rank": Range(-1, 10**6, whole=True),
}


def check_ranges(*arguments: Any) -> None:
    """Refuse numbers out of range, fractions where whole ones are needed, NaN and infinity, and words that are no choice.

    Args:
        arguments: dataclasses of arguments.

    Raises:
        InputError: naming the first.
    """
    for of_one in arguments:
        for one in fields(of_one):
            value, kind = getattr(of_one, one.name), str(one.type)
            choices = one.metadata.get("choices")
            if value is None:
                continue
            if choices is not None and value not in choices:
                raise InputError(f"--{one.name} is {shown(value)}; choose one of {', '.join(map(str, choices))}.")
            if one.name in RANGES:
                allowed = RANGES[one.name]
                allowed = allowed._replace(whole=allowed.whole or ("int" in kind and "float" not in kind))
                for number in value if "list" in kind and isinstance(value, list | tuple | range) else [value]:
                    allowed.checked(f"--{one.name}", number)
