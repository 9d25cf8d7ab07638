"""The model and the tokenizer that a run begins with."""

import logging
from itertools import islice

import torch
from datasets import ClassLabel, Dataset, IterableDataset, List
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoModelForTextEncoding

from hf_vat.data import count_words, embedding_matrix, load_vectors, read_words, train_word_tokenizer
from hf_vat.errors import InputError
from hf_vat.inference import embedding_rows
from hf_vat.models import (
    BertForVATClassification,
    BertVMaskConfig,
    BertWithVMask,
    EncoderForVATClassification,
    EncoderVMaskConfig,
    EncoderWithVMask,
    WordEncoderConfig,
)
from hf_vat.models.configuration_vat import ENCODER_HALVES
from hf_vat.models.problems import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from hf_vat.models.setting import WithoutEffect
from hf_vat.models.words import maximum_length, positions_of, special_token_ids
from hf_vat.options import MODEL_OPTIONS, WORD_OPTIONS, as_option
from hf_vat.pretrained import CONFIG, SAFE, check_weights, load_tokenizer, read_from, reason

from .model_arguments import ModelArguments

logger = logging.getLogger(__name__)

_MASKED_TYPES = (BertVMaskConfig.model_type, EncoderVMaskConfig.model_type)


def load_model(model_args: ModelArguments, train: Dataset | IterableDataset, seed: int = 0):
    """Tokenizer and model for a task.

    Args:
        train: training data with columns `text` and `label`: class names, and the words of a word encoder.
        seed: for the vectors of words that have no pretrained one.

    Raises:
        InputError: if the checkpoint or the vectors cannot be loaded, or settings do not fit together.
    """
    settings = {name: getattr(model_args, name) for name in MODEL_OPTIONS if getattr(model_args, name) is not None}
    settings |= _of_labels(train.features["label"])
    name = model_args.model_name_or_path
    if model_args.max_length < 3:
        raise InputError(f"--max_length is {model_args.max_length}; give 3 tokens or more.")
    try:
        if model_args.word_encoder is not None:
            tokenizer, model = _new_word_model(model_args, train["text"][:], settings, seed)
        else:
            tokenizer, model = _pretrained_model(model_args, settings)
        positions = positions_of(model)
        # Of a model that was trained before, the tokenizer says how long its texts were.
        if positions < model_args.max_length and positions <= tokenizer.model_max_length:
            if model.config.window_length is None:
                logger.info("%s takes %d tokens; longer texts are read in windows of so many.", name, positions)
                model.config.window_length = positions
            tokenizer.model_max_length = model_args.max_length
        model.config.validate()  # from_pretrained sets what differs from the checkpoint unchecked
    except StrictDataclassError as error:
        raise InputError(f"The model settings do not fit: {reason(error)}") from error
    except WithoutEffect as error:
        raise as_option(error) from error
    if len(tokenizer) > embedding_rows(model):
        raise InputError(
            f"The tokenizer of {name} has {len(tokenizer)} tokens, but the model has embeddings for {embedding_rows(model)}; give a "
            "folder whose tokenizer is the model's own."
        )
    allowed = maximum_length(model, tokenizer)
    if allowed < model_args.max_length:
        logger.warning("%s takes %d tokens, so longer texts are cut there.", name, allowed)
    # What is saved says how long the texts were in training; explanations truncate alike.
    tokenizer.model_max_length = min(model_args.max_length, allowed)
    return tokenizer, model


def _of_labels(feature) -> dict:
    """What a model is asked, by the column of the labels: one class, a list of labels, or a number."""
    if isinstance(feature, List):
        return {"id2label": dict(enumerate(feature.feature.names)), "problem_type": MULTI_LABEL}
    if isinstance(feature, ClassLabel):
        return {"id2label": dict(enumerate(feature.names))}
    return {"id2label": {0: "score"}, "problem_type": REGRESSION}


def _mask_token(tokenizer, settings: dict) -> dict:
    """What `word_objective="mlm"` has to know of the tokenizer.

    Raises:
        InputError: if the tokenizer has no mask token.
    """
    if settings.get("word_objective") != "mlm":
        return {}
    if tokenizer.mask_token_id is None:
        raise InputError(
            f"--word_objective mlm hides words behind a mask token, and the {type(tokenizer).__name__} of "
            f"{tokenizer.name_or_path} has none; choose another word objective, or another encoder."
        )
    return {"mask_token_id": tokenizer.mask_token_id}


def _pretrained_model(model_args: ModelArguments, settings: dict):
    name, revision = model_args.model_name_or_path, {"revision": model_args.model_revision}
    advice = " Give --model_name_or_path the checkpoint of an encoder: a folder, or a Hub id if the Hub can be reached."
    bert, encoder = _classes(model_args)
    with read_from(name, CONFIG, advice=advice):
        config = AutoConfig.from_pretrained(name, trust_remote_code=False, **revision)
        ours = config.model_type in (*bert.config_class.builds_on[1:], *encoder.config_class.builds_on)
        auto_class = AutoModelForTextEncoding if config.model_type in ENCODER_HALVES else AutoModel
        check_weights(name, config, AutoModelForSequenceClassification if ours else auto_class)
    masked = config.model_type in _MASKED_TYPES or getattr(config, "mask_type", "none") != "none"
    if masked and model_args.mask_type is None:
        raise InputError(f"{name} is a model with a word mask; give --mask_type to train it further.")
    tokenizer = load_tokenizer(name, **revision)
    settings = settings | _mask_token(tokenizer, settings) | {"special_token_ids": special_token_ids(tokenizer)}
    if getattr(config, "problem_type", None) not in (None, SINGLE_LABEL):  # the data decide
        settings.setdefault("problem_type", SINGLE_LABEL)
    with read_from(name, CONFIG, advice=advice):
        for model_class in (bert, encoder):
            if config.model_type in model_class.config_class.builds_on:
                return tokenizer, model_class.from_pretrained(name, **revision, **SAFE, **settings)
        return tokenizer, encoder.from_encoder_pretrained(name, tokenizer, revision | SAFE, **settings)


def _classes(model_args: ModelArguments) -> tuple:
    """The class over BERT and that over any other encoder."""
    if model_args.mask_type is None:
        return BertForVATClassification, EncoderForVATClassification
    return BertWithVMask, EncoderWithVMask


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
    words = {one.name: getattr(model_args, option) for option, one in WORD_OPTIONS.items()}
    vocabulary = {"vocab_size": len(tokenizer), "embedding_size": size, "pad_token_id": tokenizer.pad_token_id}
    encoder = WordEncoderConfig(**words | vocabulary)
    settings |= {"prefix_tokens": 0, "suffix_tokens": 0, "classifier_dropout": model_args.word_dropout}
    settings |= _mask_token(tokenizer, settings) | {"special_token_ids": special_token_ids(tokenizer)}
    if model_args.mask_type is not None:
        settings.setdefault("freeze_embeddings", weights is not None)
    _, model_class = _classes(model_args)
    model = model_class(model_class.config_class(encoder=encoder, **settings))
    if weights is not None:
        with torch.no_grad():
            model.get_input_embeddings().weight.copy_(weights)
    return tokenizer, model
