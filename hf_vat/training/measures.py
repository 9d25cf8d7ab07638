"""What the records say of the texts: measured of each text, added up, and divided by what it is a mean over."""

from collections import defaultdict
from collections.abc import Mapping

import torch
from accelerate import Accelerator

from hf_vat.distributions import normalized_entropy
from hf_vat.models.classifier import has_label

# What each measure is a mean over: texts with a label, all texts, or the tokens that a word mask lies on.
_MEANS = {
    "cross_entropy": "class_weights",  # 1 for each text with a label, unless classes have other weights
    **dict.fromkeys(("compression", "mask_compression", "word_term"), "labelled"),
    "vw_product": "texts",
    "attention_entropy": "texts",
    **dict.fromkeys(("mask_mean", "mask_open", "mask_sd"), "mask_tokens"),
}


def measure_texts(model, inputs: Mapping, outputs, class_weights: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """What was measured of each text of a batch, float32 [B] by name; sums over tokens for the word mask.

    Args:
        model: a classifier of hf_vat.
        inputs: its inputs, with `labels`.
        outputs: what it made of them.
        class_weights: [C], or None if all classes count the same.
    """
    labelled = has_label(inputs["labels"])
    weights, cross_entropy = labelled.float(), outputs.cross_entropy
    if class_weights is not None:
        weights = class_weights[inputs["labels"].clamp(min=0)] * labelled
        # As it is before the model divides by the weights of its batch.
        cross_entropy = cross_entropy * (weights.sum() / labelled.sum().clamp(min=1))
    texts = {"texts": torch.ones_like(labelled), "labelled": labelled, "class_weights": weights}
    texts |= {
        "cross_entropy": cross_entropy,
        "compression": outputs.compression,
        "mask_compression": outputs.mask_compression,
        "word_term": outputs.word_term,
    }
    if outputs.vw_product is not None:  # of the weights, so the same for all texts
        texts["vw_product"] = outputs.vw_product.detach().expand(len(labelled))
    if outputs.token_importance is not None:
        attention = outputs.token_importance.detach()
        texts["attention_entropy"] = normalized_entropy(attention, (attention > 0).sum(-1))
    if outputs.token_mask is not None:
        mask = outputs.token_mask.detach()
        attended = inputs.get("attention_mask", torch.ones_like(mask))
        content = model.content_tokens(attended, inputs.get("special_tokens_mask"), inputs.get("input_ids"))
        texts["mask_tokens"] = content.sum(1)
        texts["mask_mean"] = mask.sum(1)
        texts["mask_open"] = (mask > 0.5).sum(1)
        texts["mask_sd"] = ((mask - 0.5).square() * content).sum(1)  # about ½, or float32 would cancel out
    return {name: values.detach().float() for name, values in texts.items() if values is not None}


class TrainingMeans:
    """Means over the training steps since the last record."""

    def __init__(self):
        self._sums: defaultdict[str, torch.Tensor | float] = defaultdict(float)

    def clear(self) -> None:
        self._sums.clear()

    def add(self, texts: dict[str, torch.Tensor], weight: float) -> None:
        """Add up the batch means of a training step, but for the mask, whose mean is over tokens."""
        sums = {name: values.sum() for name, values in texts.items()}
        for name, over in _MEANS.items():
            if name in sums and over != "mask_tokens":
                self._sums[name] += sums[name] / sums[over].clamp(min=1e-12) * weight
            elif name in sums:
                self._sums[name] += sums[name]
        self._sums["weight"] += weight
        if "mask_tokens" in sums:
            self._sums["mask_tokens"] += sums["mask_tokens"]

    def take(self, accelerator: Accelerator) -> dict[str, float]:
        """Means since the last call over batches and processes; what the phase does not measure is absent."""
        # The same on all processes, as no record mixes phases.
        names = list(self._sums)
        sums = torch.stack([torch.as_tensor(float(self._sums[name]), dtype=torch.float64) for name in names])
        self._sums.clear()
        totals = accelerator.reduce(sums.to(accelerator.device, torch.float32), "sum").tolist()
        over = {name: "mask_tokens" if over == "mask_tokens" else "weight" for name, over in _MEANS.items()}
        return _divide(dict(zip(names, totals, strict=True)), over)


class EvaluationMeans:
    """Means over the texts that were evaluated."""

    def __init__(self):
        self._batches: list[dict[str, torch.Tensor]] = []

    def clear(self) -> None:
        self._batches.clear()

    def add(self, texts: dict[str, torch.Tensor], accelerator: Accelerator) -> None:
        """Add the texts of a batch of each process."""
        # Without the texts that only fill up the last batch, so that each counts once on any number of processes.
        table = accelerator.gather_for_metrics(torch.stack(list(texts.values()), 1))  # [texts, measures]
        self._batches.append(dict(zip(texts, table.unbind(1), strict=True)))

    def take(self) -> dict[str, float] | None:
        """Means of what was added since the last call; None if nothing was."""
        if not self._batches:
            return None
        names = self._batches[0]
        sums = {name: torch.cat([batch[name] for batch in self._batches]).cpu().double().sum() for name in names}
        self._batches.clear()
        return _divide({name: total.item() for name, total in sums.items()}, _MEANS)


def _divide(sums: dict[str, float], over: dict[str, str]) -> dict[str, float]:
    means = {name: sums[name] / sums[over[name]] for name in over if name in sums and sums[over[name]]}
    if "mask_sd" in means:  # until here the mean of squares
        means["mask_sd"] = max(means["mask_sd"] - (means["mask_mean"] - 0.5) ** 2, 0) ** 0.5
    return means
