"""Classifiers that read a text of any length in windows that overlap, as if they had been made for it.

A model of hf_vat pools over the tokens of all windows. What any other model says of a text is the mean of what it says of the
text's windows: of probabilities, or of scores. So the scores of a word add up over the windows that it is in, and what makes
scores of outputs, such as Shapley values and integrated gradients, is as exact as for a single window.
"""

import copy
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers.modeling_outputs import SequenceClassifierOutput

from .embeddings import embedded_as
from .models.classifier import VATClassifier
from .models.problems import Problem
from .models.reading import named_outputs
from .models.windows import windows
from .models.words import maximum_length, special_tokens_around

_WINDOWS = 32  # that the model is given at once


def in_windows(model, tokenizer, max_length):
    """A model that reads texts of so many tokens: the same one if it does, else one that reads them in windows."""
    known = isinstance(max_length, int | np.integer) and hasattr(getattr(model, "config", None), "num_labels")
    if not known:  # what it is else, is refused when texts are encoded
        return model
    if getattr(model.config, "window_length", None) is not None or max_length <= maximum_length(model, tokenizer):
        return model
    if not isinstance(model, VATClassifier):
        return WindowedClassifier(model, tokenizer)
    windowed: Any = copy.copy(model)  # with the same layers
    windowed.config = copy.deepcopy(model.config)
    windowed.config.window_length = maximum_length(model, tokenizer)
    windowed.config.validate()
    return windowed


class WindowedClassifier(nn.Module):
    """Any classifier on texts of any length: its outputs are the means of those for a text's windows, which are as long as the
    model takes and share a quarter of their tokens with the next. A text that fits into one window is read as ever.

    Args:
        model: a sequence classification model.
        tokenizer: its tokenizer.
    """

    def __init__(self, model, tokenizer):
        super().__init__()
        self.model = model
        self.length = maximum_length(model, tokenizer)
        self.around = tuple(map(len, special_tokens_around(tokenizer)))
        self.overlap = min(self.length // 4, self.length - sum(self.around) - 1)
        self.config = copy.deepcopy(model.config)
        self.config.window_length, self.config.return_dict = self.length, True
        self._lookup: list[_Lookup] = []  # in a list, as it is no layer of its own
        self.hf_quantizer = getattr(model, "hf_quantizer", None)

    @property
    def device(self) -> torch.device:
        return self.model.device

    def get_input_embeddings(self) -> nn.Module:
        """The lookup of a whole text, which gives what the model's own layer does."""
        if not self._lookup:
            self._lookup.append(_Lookup(self.model.get_input_embeddings()))
        return self._lookup[0]

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        **kwargs,
    ) -> SequenceClassifierOutput:
        """Logits [B, C] whose [`Problem.outputs`] are the means over the windows of each text [B, T]."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        given = {"input_ids": input_ids, "token_type_ids": token_type_ids}
        embeddings = None
        if self._lookup and self._lookup[0]._forward_hooks:  # someone asks for a gradient
            embeddings = self._lookup[0](input_ids)
        cut = windows(mask, self.length, self.overlap, *self.around)
        rows = {name: cut.cut(tensor).flatten(0, 1) for name, tensor in given.items() if tensor is not None}
        rows["attention_mask"] = cut.attended.long().flatten(0, 1)
        needed = cut.needed.flatten().nonzero().squeeze(1)
        text = needed // cut.needed.shape[1]
        problem, found = Problem.of(self.config), []
        for part in needed.split(_WINDOWS):
            batch = {name: tensor[part] for name, tensor in rows.items()}
            longest = int(batch["attention_mask"].sum(1).max())
            batch = {
                name: tensor[:, :longest] for name, tensor in batch.items()
            }  # as if it were a batch of short texts
            if embeddings is None:
                output = self.model(**batch, **named_outputs(self.model))
            else:
                of_windows = cut.cut(embeddings).flatten(0, 1)[part][:, :longest]
                with embedded_as(self.model, batch["input_ids"], of_windows):
                    output = self.model(**batch, **named_outputs(self.model))
            found.append(problem.outputs(output.logits.to(_precise(output.logits))))
        outputs = torch.cat(found)
        sums = outputs.new_zeros(len(input_ids), outputs.shape[1]).index_add(0, text, outputs)
        means = sums / cut.needed.sum(1, keepdim=True)
        return SequenceClassifierOutput(logits=problem.logits(means))


class _Lookup(nn.Module):
    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.layer(input_ids)


def _precise(tensor: torch.Tensor) -> torch.dtype:
    return torch.float32 if tensor.device.type == "mps" else torch.float64
