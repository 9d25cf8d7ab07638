"""Models and tokenizers from a folder or the Hub: what is damaged there is told in one sentence that names folder and file.

Nothing in a folder is executed: no code that came with a model, and no pickle; weights are read from safetensors alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, WEIGHTS_INDEX_NAME, WEIGHTS_NAME

from .errors import InputError, MissingExtra, check_path, parse_json, shown
from .inference import predict_outputs
from .models.classifier import VATClassifier
from .models.setting import WithoutEffect
from .models.words import maximum_length
from .processes import own_device

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
SAFE: dict[str, Any] = {"trust_remote_code": False, "use_safetensors": True}  # no code, and no pickle


def load_classifier(name: str):
    """Model and tokenizer of a trained classifier, ours or any other, on the accelerator if there is one.

    Args:
        name: a folder or a Hub id.

    Raises:
        InputError: if there is none by that name, a file of it is damaged or does not fit the others, or it is an encoder
            without a trained classifier. The model has then not read more than one word.
    """
    as_what = " as a classifier"
    check_path(name)
    with read_from(name, CONFIG, as_what):
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
        check_class_names(config)
        check_weights(name, config, AutoModelForSequenceClassification, as_what)
        model, info = AutoModelForSequenceClassification.from_pretrained(name, output_loading_info=True, **SAFE)
    if info["missing_keys"]:  # they would be drawn at random
        raise InputError(
            f"{name} is no trained classifier: it lacks {_some(info['missing_keys'])}. Fine-tune it first."
        )
    if isinstance(model, VATClassifier) and info["unexpected_keys"]:  # others may come with a pooler that nothing reads
        raise InputError(
            f"{name} cannot be loaded{as_what}: {_file(name, CONFIG)}the model that it describes has no place for the weights "
            f"{_some(info['unexpected_keys'])}. Give the configuration that they were saved with."
        )
    tokenizer = load_tokenizer(name, model)
    model.to(own_device())
    with read_from(name, CONFIG, as_what):  # some settings only show in a forward pass
        predict_outputs(model, tokenizer, [tokenizer("a")["input_ids"] or [0]])
    return model, tokenizer


def load_explainer(name: str, subfolder: str = "", revision: str | None = None):
    """A model that scores the tokens of texts for a classifier, see [`hf_vat.amortized`].

    Args:
        name: a folder or a Hub id.
        subfolder: where in it the explainer is.
        revision: of a Hub id.

    Raises:
        InputError: if there is none by that name, or a file of it is damaged.
    """
    as_what = " as an explainer"
    check_path(name)
    folder = name if not subfolder else str(check_path(name) / subfolder)
    local = check_path(folder).is_dir()
    place: dict[str, Any] = {} if local else {"subfolder": subfolder, "revision": revision}
    found = folder if local else name
    with read_from(found, CONFIG, as_what):
        config = AutoConfig.from_pretrained(found, trust_remote_code=False, **place)
        check_class_names(config)
        check_weights(found, config, AutoModelForTokenClassification, as_what)
        model, info = AutoModelForTokenClassification.from_pretrained(found, output_loading_info=True, **place, **SAFE)
    if info["missing_keys"]:
        raise InputError(f"{found} is no trained explainer: it lacks {_some(info['missing_keys'])}.")
    return model.eval()


def load_tokenizer(name: str, model=None, **where):
    """The tokenizer of a folder or Hub id.

    Args:
        model: the model that reads its tokens, if it is there already.
        where: the revision.

    Raises:
        InputError: if it cannot be loaded, or has no words: then every text would be unknown tokens.
    """
    with read_from(name, TOKENIZER):
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False, **where)
        special = len(set(tokenizer.all_special_ids))
        if len(tokenizer) <= special:
            raise ValueError(f"the tokenizer has {special} special tokens and no words, as if its file were missing.")
    with read_from(name, "tokenizer_config.json"):
        least, longest = tokenizer.num_special_tokens_to_add() + 1, tokenizer.model_max_length
        if isinstance(longest, bool) or not isinstance(longest, int | float) or not least <= longest:
            raise ValueError(f"model_max_length is {longest!r}; it must be a number of tokens, at least {least}.")
    if model is not None:
        with read_from(name, CONFIG):
            maximum_length(model, tokenizer)
    return tokenizer


@contextmanager
def read_from(name: str, file: str, as_what: str = "", advice: str = "") -> Iterator[None]:
    """A place where one file of a folder or Hub id is read, or decides: whatever goes wrong there is the file's fault.

    Raises:
        InputError: naming folder, file and reason. What is refused by a sentence of its own goes through.
    """
    try:
        yield
    except (InputError, MissingExtra, WithoutEffect):
        raise
    except Exception as error:  # transformers, safetensors and tokenizers raise any kind for what they did not expect
        told = name if name.isprintable() else shown(name)
        raise InputError(f"{told} cannot be loaded{as_what}: {_file(name, file)}{reason(error)}{advice}") from error


def check_class_names(config) -> None:
    """
    Raises:
        ValueError: if not every class has a name of its own.
    """
    names = config.id2label
    if sorted(names) != list(range(config.num_labels)) or len(set(names.values())) != len(names):
        raise ValueError(f"id2label={names} must give each class from 0 to {config.num_labels - 1} a name of its own.")


def check_weights(name: str, config, auto_class, as_what: str = "") -> None:
    """Compare the weights in a folder with its configuration, reading no more than the files' headers. A Hub id is not looked
    at.

    Args:
        config: the configuration.
        auto_class: the class of transformers that makes the model of it.

    Raises:
        Exception: of any kind, if the configuration makes no model; see [`read_from`].
        InputError: if a file is missing or torn, there are pickles alone, a weight has another shape, or there are layers
            that the model lacks or has beyond them.
    """
    folder = check_path(name)
    if not folder.is_dir():
        return
    with torch.device("meta"):  # no memory yet, whatever the configuration asks for
        wanted = auto_class.from_config(config, trust_remote_code=False)
    files = [SAFE_WEIGHTS_NAME]
    if not (folder / SAFE_WEIGHTS_NAME).is_file() and (folder / SAFE_WEIGHTS_INDEX_NAME).is_file():
        with read_from(name, SAFE_WEIGHTS_INDEX_NAME, as_what):
            files = sorted(set(parse_json((folder / SAFE_WEIGHTS_INDEX_NAME).read_bytes())["weight_map"].values()))
    shapes: dict[str, list[int]] = {}
    for file in files:
        with read_from(name, file, as_what):
            pickles = [other for other in (WEIGHTS_NAME, WEIGHTS_INDEX_NAME) if (folder / other).is_file()]
            if not (folder / file).is_file():
                beside = (
                    f"; {pickles[0]} beside it is a pickle, which could run code and is not read" if pickles else ""
                )
                raise ValueError(f"there is no such file{beside}. Save the model with save_pretrained.")
            try:
                with safe_open(folder / file, "pt") as weights:
                    shapes |= {key: weights.get_slice(key).get_shape() for key in weights.keys()}  # noqa: SIM118
            except SafetensorError as error:
                raise ValueError(f"the file is torn or no safetensors file ({error}). Save or copy it anew.") from error
    prefix, differing = f"{wanted.base_model_prefix}.", []
    for own, tensor in wanted.state_dict().items():
        for key in {own, own.removeprefix(prefix), prefix + own} & shapes.keys():
            if tuple(shapes[key]) != tuple(tensor.shape):
                differing.append(
                    f"{key} is {tuple(shapes[key])} there and {tuple(tensor.shape)} in the model of {CONFIG}"
                )
    if differing:
        raise InputError(f"{name} cannot be loaded{as_what}: {_file(name, files[0])}{_some(differing, '; ')}.")
    for stack, module in wanted.named_modules():
        if isinstance(module, nn.ModuleList):
            stored = {
                int(number)
                for key in shapes
                for one in {stack, stack.removeprefix(prefix), prefix + stack}
                if key.startswith(f"{one}.") and (number := key.removeprefix(f"{one}.").partition(".")[0]).isdecimal()
            }
            if stored and len(stored) != len(module):
                raise InputError(
                    f"{name} cannot be loaded{as_what}: {_file(name, CONFIG)}the model that it describes has {len(module)} layers "
                    f"in {stack}, and {files[0]} has {len(stored)}. Give the configuration that they were saved with."
                )


def _file(name: str, file: str) -> str:
    """The file as a message begins with it; where there is no folder, the reason says what is missing."""
    return f"{file}: " if check_path(name).is_dir() else ""


def reason(error: Exception) -> str:
    """What an exception says, in one line: of a check of a configuration its last one, and the kind where it says little."""
    text = str(error).strip()
    if type(error).__name__.startswith("StrictDataclass"):
        text = text.splitlines()[-1].strip().removeprefix("ValueError: ").removeprefix("TypeError: ")
    elif not isinstance(error, OSError | ValueError):
        text = f"{type(error).__name__}: {text}"
    return " ".join(text.split())[:400]


def _some(keys: Any, separator: str = ", ") -> str:
    keys = sorted(keys)
    return separator.join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
