"""Whatever classifies texts, as the model and the tokenizer that everything else here works with.

`explain`, `Faithfulness` and `compare_explainers` take, in the place of a model and its tokenizer: the name of a folder or a Hub
id; a pipeline of transformers; a `SetFitModel`; a `CrossEncoder` of sentence-transformers; an
[`OnnxClassifier`](hf_vat.export.OnnxClassifier); any function from a list of texts to an array of probabilities, or a
[`TextFunction`] that says what they mean.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import Pipeline, PreTrainedConfig, PreTrainedTokenizer
from transformers.modeling_outputs import SequenceClassifierOutput

from .errors import InputError, shown
from .inference import check_tokenizer
from .models.problems import MULTI_LABEL, PROBLEM_TYPES, REGRESSION, SINGLE_LABEL, Problem
from .models.words import PAIR, split_words
from .pretrained import load_classifier, load_tokenizer


def as_classifier(model, tokenizer=None) -> tuple[Any, Any]:
    """Model and tokenizer of a caller.

    Raises:
        InputError: if a model comes without its tokenizer, or there is nothing that would classify texts.
    """
    if tokenizer is not None:
        check_tokenizer(tokenizer)
    if isinstance(model, str):
        found, own = load_classifier(model)
        return found, own if tokenizer is None else tokenizer
    if isinstance(model, Pipeline):
        return model.model, model.tokenizer if tokenizer is None else tokenizer
    if isinstance(model, TextFunction):
        return model, model.tokenizer
    if hasattr(model, "model_body") and hasattr(model, "model_head"):
        return (model, tokenizer) if isinstance(model, _SetFit) else (_SetFit(model), model.model_body.tokenizer)
    if _is_cross_encoder(model):
        return _from_cross_encoder(model)
    if not isinstance(model, nn.Module) and callable(model):
        function = TextFunction(model)
        return function, function.tokenizer
    folder = getattr(model, "folder", None)
    if tokenizer is None and folder is not None:  # an exported model has its tokenizer beside it
        tokenizer = load_tokenizer(str(folder))
    if tokenizer is None:
        raise InputError(
            f"The model is a {type(model).__name__}; give its tokenizer too. A pipeline, a SetFitModel, a CrossEncoder, an "
            "OnnxClassifier, a function from texts to probabilities or the name of a model needs none."
        )
    return model, tokenizer


def _is_cross_encoder(model) -> bool:
    names = {base.__name__ for base in type(model).__mro__}
    return "CrossEncoder" in names and hasattr(model, "model") and hasattr(model, "tokenizer")


def _from_cross_encoder(encoder) -> tuple[Any, Any]:
    """The model of a cross-encoder; one without a sigmoid gives scores, as those have that rank passages."""
    model = copy.copy(encoder.model)  # with the same layers: the caller's configuration stays as it is
    model.config = copy.deepcopy(model.config)
    activation = getattr(encoder, "activation_fn", None) or getattr(encoder, "default_activation_function", None)
    if model.config.num_labels == 1 and isinstance(activation, nn.Identity):
        model.config.problem_type = REGRESSION
    return model, encoder.tokenizer


class _SetFit(nn.Module):
    """A SetFitModel from token ids to logits: its sentence transformer, and its head, also one of scikit-learn."""

    def __init__(self, model):
        super().__init__()
        self.model_body, self.model_head = model.model_body, model.model_head
        head = model.model_head
        if isinstance(head, nn.Module):
            linear = head.linear
            weight, bias = linear.weight.detach(), linear.bias
        elif hasattr(head, "coef_"):
            weight, bias = torch.tensor(head.coef_, dtype=torch.float32), torch.tensor(head.intercept_)
        else:
            raise InputError(
                f"The head of the SetFitModel is a {type(head).__name__}; heads of setfit and linear ones of scikit-learn can be "
                "explained. Give model.predict_proba, a function from texts to probabilities, for others."
            )
        bias = torch.zeros(len(weight)) if bias is None else bias.detach().float()
        if len(weight) == 1:  # log-odds of the second class
            weight, bias = torch.cat([-weight / 2, weight / 2]), torch.cat([-bias / 2, bias / 2])
        self.register_buffer("weight", weight)
        self.register_buffer("bias", bias)
        labels = getattr(model, "labels", None) or [str(name) for name in getattr(head, "classes_", range(len(weight)))]
        positions = getattr(model.model_body, "max_seq_length", None)
        self.config = PreTrainedConfig(
            id2label=dict(enumerate(map(str, labels))),
            problem_type=MULTI_LABEL if getattr(model, "multi_target_strategy", None) else SINGLE_LABEL,
        )
        self.config.max_position_embeddings = positions or 512
        self.config.name_or_path = type(model).__name__

    @property
    def device(self) -> torch.device:
        return next(self.model_body.parameters()).device

    def get_input_embeddings(self) -> nn.Module:
        return self.model_body[0].auto_model.get_input_embeddings()

    def forward(self, input_ids, attention_mask, token_type_ids=None) -> SequenceClassifierOutput:
        features = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            features["token_type_ids"] = token_type_ids
        vectors = self.model_body(features)["sentence_embedding"]
        weight, bias = self.weight.to(vectors), self.bias.to(vectors)
        return SequenceClassifierOutput(logits=vectors @ weight.T + bias)


class TextFunction(nn.Module):
    """A function from texts to what it says of them, in the place of a model: every method works that needs no gradient.

    A text without some of its words is what is left of the string. Pairs of texts are given to the function as dictionaries of
    `text` and `text_pair`.

    Args:
        function: from a list of N texts to an array [N, C] of probabilities, or of scores; [N] for one score, or for the
            probability of the second of two classes.
        label_names: of its C classes, labels or scores; LABEL_0 and so on by default.
        problem_type: "single_label_classification", whose probabilities sum to 1, "multi_label_classification" or "regression".

    Raises:
        InputError: if it gives something else for a text.
    """

    def __init__(
        self,
        function: Callable[[list], Any],
        label_names: Sequence[str] | None = None,
        problem_type: str = SINGLE_LABEL,
    ):
        super().__init__()
        if problem_type not in PROBLEM_TYPES:
            raise InputError(f"problem_type is {problem_type!r}; it must be one of {', '.join(PROBLEM_TYPES)}.")
        self.function, self.problem_type = function, problem_type
        self.tokenizer = TextTokenizer()
        count = self._ask(["a"]).shape[1]
        names = [f"LABEL_{place}" for place in range(count)] if label_names is None else list(label_names)
        if len(names) != count:
            raise InputError(f"label_names has {len(names)} names, and the function gives {count} numbers for a text.")
        kind: Any = problem_type  # one of transformers' own, as was checked
        self.config = PreTrainedConfig(id2label=dict(enumerate(names)), problem_type=kind)
        self.config.name_or_path = getattr(function, "__name__", type(function).__name__)

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SequenceClassifierOutput:
        texts = [
            self.tokenizer.text_of(ids[attended.bool()].tolist())
            for ids, attended in zip(input_ids, attention_mask, strict=True)
        ]
        return SequenceClassifierOutput(logits=Problem.of(self.config).logits(torch.from_numpy(self._ask(texts))))

    def _ask(self, texts: list) -> np.ndarray:
        answer = self.function(texts)
        try:
            found = np.asarray(answer, dtype=float)
        except (TypeError, ValueError):
            raise InputError(f"The function gives {shown(answer)}; it must give an array of numbers.") from None
        if found.ndim == 1 and len(found) == len(texts):
            found = np.stack([1 - found, found], 1) if self.problem_type == SINGLE_LABEL else found[:, None]
        if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
            raise InputError(
                f"The function gives {shown(found)} of shape {found.shape} for {len(texts)} texts; it must give finite numbers of "
                f"shape [{len(texts)}, C]."
            )
        if self.problem_type != REGRESSION and ((found < 0) | (found > 1)).any():
            raise InputError(
                f"The function gives {shown(found[0].tolist())}; give probabilities from 0 to 1, or a "
                f'TextFunction with problem_type="{REGRESSION}" for scores.'
            )
        if self.problem_type == SINGLE_LABEL and not np.allclose(found.sum(1), 1, atol=1e-3):
            raise InputError(
                f"The probabilities of a text sum to {found.sum(1)[0]:.3g}; of classes they sum to 1. Give a TextFunction with "
                f'problem_type="{MULTI_LABEL}" for labels that a text may have side by side.'
            )
        return found


class TextTokenizer(PreTrainedTokenizer):
    """Words, and what stands between them, as the tokens of a [`TextFunction`]: together they are the text."""

    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012 - as in transformers

    def __init__(self):
        self._ids: dict[str, int] = {"": 0, "\ue000pad": 1, "\ue000sep": 2}
        self._tokens = list(self._ids)
        super().__init__(unk_token="", pad_token="\ue000pad", sep_token="\ue000sep")

    @property
    def vocab_size(self) -> int:
        return len(self._tokens)

    def get_vocab(self) -> dict[str, int]:
        return dict(self._ids)

    def __call__(self, text, add_special_tokens: bool = True, **kwargs):
        if isinstance(text, str) and not add_special_tokens:
            return {"input_ids": [self._id(piece) for piece in self._pieces(text)]}
        return super().__call__(text, add_special_tokens=add_special_tokens, **kwargs)

    def _pieces(self, text: str) -> list[str]:
        pieces, end = [], 0
        for word in split_words(text):
            pieces += [text[end : word.start], word.text]
            end = word.end
        return [piece for piece in (*pieces, text[end:]) if piece]

    def _id(self, piece: str) -> int:
        if piece not in self._ids:
            self._ids[piece] = len(self._tokens)
            self._tokens.append(piece)
        return self._ids[piece]

    def _tokenize(self, text: str, **kwargs) -> list[str]:
        return self._pieces(text)

    def _convert_token_to_id(self, token: str) -> int:
        return self._id(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self._tokens[index]

    def build_inputs_with_special_tokens(self, token_ids_0, token_ids_1=None):
        return token_ids_0 if token_ids_1 is None else [*token_ids_0, self.sep_token_id, *token_ids_1]

    def get_special_tokens_mask(self, token_ids_0, token_ids_1=None, already_has_special_tokens=False):
        if token_ids_1 is None:
            return [0] * len(token_ids_0)
        return [*[0] * len(token_ids_0), 1, *[0] * len(token_ids_1)]

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        return int(pair)

    def text_of(self, ids: list[int]) -> str | dict[str, str]:
        """The text, or the pair of texts, that the tokens are of."""
        parts: list[list[str]] = [[]]
        for token in ids:
            if token == self.sep_token_id:
                parts.append([])
            else:
                parts[-1].append(self._tokens[token])
        texts = ["".join(part) for part in parts]
        return texts[0] if len(texts) == 1 else dict(zip(PAIR, texts, strict=True))
