"""Classifiers without their Python code: as programs of `torch.export`, and as ONNX files with a class that runs them.

```python
folder = export_onnx(model, tokenizer, "runs/onnx")
classifier = OnnxClassifier(folder)
[explanation] = explain(classifier, AutoTokenizer.from_pretrained(folder), ["A warm, funny film."])
```

What leaves is what a prediction and its explanation need: token ids in, `logits` and, where the model has them, `token_importance`
(attention), `token_attribution` (what each token adds to each logit by the attention) and `token_mask` out, for any number of texts of any length that the model takes; of one that reads longer texts in windows, for
texts of one window. Everything is compared with PyTorch before
it is handed over.
"""

import copy
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from math import inf
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.export import Dim, ExportedProgram

# Without it PyTorch fixes an LSTM to the length that it is traced with.
from torch.export._patches import register_lstm_while_loop_decomposition as dynamic_lstm
from transformers import AutoConfig

from .errors import InputError, check_path, import_extra
from .inference import check_classifier, check_tokenizer
from .models import VATClassifierOutput
from .models.attribution import CENTERS
from .models.reading import takes_center
from .models.words import maximum_length
from .pretrained import CONFIG, read_from

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUTS = ("logits", "token_importance", "token_attribution", "token_mask")
TOLERANCE = 1e-5  # absolute, and relative for numbers above 1
MODEL_FILE, DATA_FILE = "model.onnx", "model.onnx.data"  # weights of more than 2 GB are in the second
_LONGEST = 512  # tokens of the texts that are compared
_EXAMPLE = (3, 7)  # words of the texts that the model is traced with
_COMPARED = ((1,), (0, 5), (2, _LONGEST, 40))


def export_program(model, tokenizer) -> ExportedProgram:
    """A model as a program that needs PyTorch alone: `torch.export.save(program, "model.pt2")`.

    `program.module()(input_ids=…, attention_mask=…)`, with what else the tokenizer gives, returns a dictionary of `logits`
    [B, C] and, where the model has them, `token_importance` and `token_mask` [B, T] and `token_attribution` [B, T, C], centred on
    the mean state of the text. The program is for the CPU and in
    eval mode; the model stays as it is.

    Raises:
        InputError: if the model is not in float32, the tokenizer cannot pad, PyTorch cannot trace the model, or the program
            gives other numbers than the model.
    """
    classifier = _Tensors(model)
    return _trace(classifier, _cutting(tokenizer, classifier))


def export_onnx(model, tokenizer, folder: str | PathLike) -> Path:
    """Write a model as `model.onnx`, with its configuration and tokenizer.

    The file takes what the tokenizer gives, int64 [B, T], and returns what [`export_program`] does. The tokenizer cuts
    texts to what the model takes, and loads without hf_vat. Weights of more than 2 GB lie in a second file.

    Args:
        folder: made if it is missing; what it holds of an earlier export is replaced. Whenever that is interrupted, the folder has the
            earlier export, or none that loads, or the new one.

    Returns:
        The folder.

    Raises:
        InputError: see [`export_program`]; also if the model has an operation that ONNX has not, or onnxruntime gives
            other numbers. Nothing is written then.
        MissingExtra: if the packages of the extra `onnx` are not installed.
    """
    import_extra("onnxscript", "onnx")
    runtime = import_extra("onnxruntime", "onnx")
    classifier, folder = _Tensors(model), check_path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder.")
    tokenizer = _cutting(tokenizer, classifier)
    program = _trace(classifier, tokenizer)
    example = _batch(tokenizer, classifier.model, _EXAMPLE)
    axes = {name: {0: "batch", 1: "sequence"} for name in example}
    outputs = list(classifier(**example))
    with dynamic_lstm():
        written = _or_refuse(
            classifier,
            "writing ONNX",
            lambda: torch.onnx.export(
                program, input_names=list(example), output_names=outputs, dynamic_shapes=axes, verbose=False
            ),
        )
    config = copy.deepcopy(classifier.model.config)
    for name in (
        "auto_map",
        "custom_pipelines",
        "explainer",
    ):  # the file shall ask for no code, and for no other folder
        vars(config).pop(name, None)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".hf_vat-onnx-") as made:
        written.save(Path(made, MODEL_FILE))
        session = runtime.InferenceSession(Path(made, MODEL_FILE), providers=["CPUExecutionProvider"])
        _compare(lambda **inputs: _run(session, inputs), classifier, tokenizer)
        tokenizer.save_pretrained(made)
        config.to_json_file(Path(made, "config.json"))
        # Without its model the folder is no export: an earlier one is never read with the new configuration.
        for name in (MODEL_FILE, DATA_FILE):
            (folder / name).unlink(missing_ok=True)
        for file in sorted(Path(made).iterdir(), key=lambda file: file.name == MODEL_FILE):  # the model last
            file.replace(folder / file.name)
    return folder


class OnnxClassifier(nn.Module):
    """A model that [`export_onnx`] wrote, run by onnxruntime on the CPU, in the place of the model itself.

    [`explain`](hf_vat.explain), [`Faithfulness`](hf_vat.Faithfulness) and [`compare_explainers`](hf_vat.compare_explainers)
    take it, with every method that needs no gradient, but for `polarity`, and of `attention_x_gradient` with the default center alone.

    Args:
        folder: what `export_onnx` wrote, or a folder with a changed `model.onnx`, such as a quantised one.

    Raises:
        InputError: if there is no such file, or it takes or gives something else.
        MissingExtra: if onnxruntime is not installed.
    """

    def __init__(self, folder: str | PathLike):
        super().__init__()
        path = Path(folder, MODEL_FILE)
        if not path.is_file():
            raise InputError(f"{folder} has no {MODEL_FILE}; give a folder that export_onnx wrote.")
        runtime = import_extra("onnxruntime", "onnx")
        try:
            self.session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        except Exception as error:  # of onnxruntime, each of its own class
            raise InputError(f"{path} cannot be loaded: {' '.join(str(error).split())}") from error
        for kind, nodes, known in (
            ("takes", self.session.get_inputs(), INPUTS),
            ("gives", self.session.get_outputs(), OUTPUTS),
        ):
            names = [node.name for node in nodes]
            if known[0] not in names or not set(names) <= set(known):
                raise InputError(
                    f"{path} {kind} {', '.join(names)}, and not {known[0]} with or without {', '.join(known[1:])}; give a folder that "
                    "export_onnx wrote."
                )
        self.folder = folder
        with read_from(str(folder), CONFIG):
            self.config = AutoConfig.from_pretrained(folder, return_dict=True, trust_remote_code=False)
        self.device = torch.device("cpu")
        # In the place of weights, by which stored explanations know their model.
        self.register_buffer("digest", torch.tensor(list(sha256(path.read_bytes()).digest()), dtype=torch.uint8))

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        attribution_center: str = CENTERS[0],
    ) -> VATClassifierOutput:
        """Token ids [B, T] to what [`export_program`] says.

        Raises:
            InputError: if another center is asked for than the file has.
        """
        if attribution_center != CENTERS[0]:
            raise InputError(
                f"An exported model has its attributions with center={CENTERS[0]!r} alone, not {attribution_center!r}; leave it out."
            )
        given = {
            "input_ids": input_ids,
            "attention_mask": torch.ones_like(input_ids) if attention_mask is None else attention_mask,
            "token_type_ids": torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids,
        }
        highest = int(input_ids.max()) if input_ids.numel() else 0
        if highest >= (known := getattr(self.config, "vocab_size", None) or inf):
            raise InputError(
                f"There is a token of the id {highest}, but the model knows 0 to {known - 1}; give its own tokenizer."
            )
        inputs = {node.name: given[node.name] for node in self.session.get_inputs()}
        found: dict[str, Any] = {name: torch.from_numpy(array) for name, array in _run(self.session, inputs).items()}
        return VATClassifierOutput(**found)


class _Tensors(nn.Module):
    """A model from tensors to a dictionary of tensors: a copy, so that the user's stays in its mode and on its device."""

    def __init__(self, model):
        super().__init__()
        check_classifier(model)
        if isinstance(model, OnnxClassifier):
            raise InputError(f"The model is the export in {model.folder}; give the model that it was made of.")
        if model.dtype != torch.float32:
            raise InputError(f"The model is in {model.dtype}; load it with dtype=torch.float32 to export it.")
        self.model = copy.deepcopy(model).cpu().requires_grad_(False)
        self.longest = getattr(model.config, "window_length", None)  # a program cannot branch by the length of a text
        if self.longest is not None:
            self.model.config.window_length = self.model.config.window_overlap = None
        self.asked = {"attribution_center": CENTERS[0]} if takes_center(model) else {}
        self.eval()

    def forward(self, input_ids, attention_mask, token_type_ids=None) -> dict[str, torch.Tensor]:
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        output = self.model(input_ids=input_ids, attention_mask=attention_mask, **types, **self.asked, return_dict=True)
        return {name: output[name] for name in OUTPUTS if output.get(name) is not None}


@torch.no_grad()
def _trace(classifier: _Tensors, tokenizer) -> ExportedProgram:
    if tokenizer.pad_token is None:
        raise InputError(f"{type(tokenizer).__name__} has no padding token; set tokenizer.pad_token.")
    example = _batch(tokenizer, classifier.model, _EXAMPLE)
    shapes = {name: {0: Dim.DYNAMIC, 1: Dim.DYNAMIC} for name in example}
    with dynamic_lstm():
        program = _or_refuse(
            classifier, "tracing", lambda: torch.export.export(classifier, (), example, dynamic_shapes=shapes)
        )
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                node.meta.pop("stack_trace", None)  # it names local files, and would be saved
    _compare(program.module(), classifier, tokenizer)
    return program


def _or_refuse(classifier: _Tensors, doing: str, export: Callable):
    try:
        with _quietly():
            return export()
    except Exception as error:  # of many kinds
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}"
        raise InputError(
            f"{_name(classifier)} cannot be exported: {doing} fails with {reason} (PyTorch {torch.__version__})"
        ) from error


@contextmanager
def _quietly() -> Iterator[None]:
    """PyTorch's exporter warns of packages that no model here needs, and of what it does inside."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _name(classifier: _Tensors) -> str:
    encoder = getattr(classifier.model, "base_model", classifier.model)
    return f"{type(classifier.model).__name__} over {type(encoder).__name__}"


@torch.no_grad()
def _compare(exported: Callable, classifier: _Tensors, tokenizer) -> None:
    """Refuse an export that differs from the model on random texts: one alone, an empty one and a short one beside long."""
    for words in _COMPARED:
        batch = _batch(tokenizer, classifier.model, words)
        found = _or_refuse(classifier, "running", lambda batch=batch: exported(**batch))
        for name, tensor in classifier(**batch).items():
            value, wanted = np.asarray(found[name]), tensor.numpy()
            if not np.allclose(value, wanted, TOLERANCE, TOLERANCE):
                difference = np.abs(value - wanted).max()
                raise InputError(
                    f"{_name(classifier)} cannot be exported: on texts of shape {list(batch['input_ids'].shape)} the result's "
                    f"{name} differs from the model's by {difference:.1e}, more than {TOLERANCE:g}."
                )


def _cutting(tokenizer, classifier: _Tensors):
    """A copy of the tokenizer that cuts texts to what the exported model takes: to one window, of a model that reads several."""
    check_tokenizer(tokenizer)
    tokenizer = copy.deepcopy(tokenizer)
    longest = maximum_length(classifier.model, tokenizer)
    tokenizer.model_max_length = longest if classifier.longest is None else min(longest, classifier.longest)
    return tokenizer


def _batch(tokenizer, model, words: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """Texts of so many random tokens of the vocabulary, as the tokenizer gives them, the same each time."""
    generator = np.random.default_rng(0)
    vocabulary = np.setdiff1d(np.arange(len(tokenizer)), tokenizer.all_special_ids)
    texts = [tokenizer.decode(generator.choice(vocabulary, number)) for number in words]
    longest = min(maximum_length(model, tokenizer), _LONGEST)
    encoded = tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
    return {name: encoded[name] for name in INPUTS if name in encoded}


def _run(session, inputs: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    names = [node.name for node in session.get_outputs()]
    arrays = session.run(names, {name: tensor.long().cpu().numpy() for name, tensor in inputs.items()})
    return dict(zip(names, arrays, strict=True))
