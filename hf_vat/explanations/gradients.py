"""Gradient, input times gradient, and integrated gradients of the target's probability at the word embeddings.

Texts of equal length run together, so that nothing is padded: models then read `inputs_embeds` as they read ids (with
padding, RoBERTa would count positions differently and GPT-2 would not find the last token).
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hf_vat.errors import InputError, import_extra
from hf_vat.inference import evaluation_mode, model_inputs

from .analysis import Analysis, WordScores
from .explanation import Explanation

BASELINES = ("pad", "mask", "unk", "zero")
_OTHERS = "methods that work with any model are occlusion, lime and shapley."


def gradient(analysis: Analysis) -> list[WordScores]:
    """‖∂f/∂e‖₂ of each token's embedding e. Simonyan et al. (2014)."""
    return _from_gradients(analysis, lambda embeddings, gradients: gradients.norm(dim=-1))


def input_x_gradient(analysis: Analysis) -> list[WordScores]:
    """e · ∂f/∂e of each token's embedding e. Shrikumar et al. (2016)."""
    return _from_gradients(analysis, lambda embeddings, gradients: (embeddings * gradients).sum(-1))


def integrated_gradients(analysis: Analysis) -> list[WordScores]:
    """Captum's IntegratedGradients from the embeddings of a text whose words are replaced by the baseline.

    Special tokens are the same in text and baseline, so they get 0. The scores of a text's tokens sum to
    f(text) - f(baseline), up to the gap. Sundararajan et al. (2017), eq. 3.

    Details: `baseline_probability`, f(baseline), and `convergence_gap`, how far the sum is from the difference.
    """
    captum = import_extra("captum.attr")
    token_id = _baseline_id(analysis)
    results: list[WordScores | None] = [None] * len(analysis.texts)
    with _gradients_of(analysis.model):
        for positions, batch, targets in _equal_lengths(analysis):
            probability = _Probability(analysis, batch)
            special = torch.tensor([analysis.texts[position].special for position in positions], dtype=torch.bool)
            with torch.no_grad():
                embeddings = _embed(analysis, batch["input_ids"])
                if token_id is None:
                    baseline = embeddings * special.to(embeddings).unsqueeze(-1)
                else:
                    special = special.to(embeddings.device)
                    baseline = _embed(analysis, torch.where(special, batch["input_ids"], token_id))
            attributions, gaps = captum.IntegratedGradients(probability).attribute(
                embeddings,
                baselines=baseline,
                additional_forward_args=(targets,),
                n_steps=analysis.settings["n_steps"],
                internal_batch_size=analysis.batch_size,
                return_convergence_delta=True,
            )
            values = attributions.cpu().double().sum(-1)  # [B, T]
            for position, row, gap in zip(positions, values.tolist(), gaps.tolist(), strict=True):
                difference = sum(row) - gap
                full = analysis.probabilities[position][analysis.targets[position]]
                results[position] = WordScores(
                    analysis.texts[position].word_scores(row),
                    {"baseline_probability": full - difference, "convergence_gap": gap},
                )
    return results


def warn_of_gaps(explanations: list[Explanation]) -> None:
    """Say how many integrated gradients do not add up: gap above 1 % of the difference and above 0.001."""
    large = 0
    for explanation in explanations:
        difference = explanation.probabilities[explanation.target] - explanation.details["baseline_probability"]
        large += abs(explanation.details["convergence_gap"]) > max(0.01 * abs(difference), 1e-3)
    if large:
        warnings.warn(
            f"The integrated gradients of {large} of {len(explanations)} texts differ from the change in probability "
            "by more than 1 %; use more n_steps.",
            stacklevel=3,
        )


class _Probability:
    """Probability of the target class [B], as a function of embeddings [B, T, d]."""

    def __init__(self, analysis: Analysis, batch: dict):
        self.analysis = analysis
        self.types = batch.get("token_type_ids")

    def __call__(self, embeddings: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        rows, length = embeddings.shape[:2]
        types = {} if self.types is None else {"token_type_ids": self.types[:1].expand(rows, -1)}
        attention_mask = torch.ones(rows, length, dtype=torch.long, device=embeddings.device)
        model = self.analysis.model
        try:
            output = model(inputs_embeds=embeddings, attention_mask=attention_mask, **types)
        except (TypeError, NotImplementedError) as error:
            raise InputError(f"{type(model).__name__} does not read embeddings ({error}); {_OTHERS}") from error
        self.analysis.bar.update(rows)
        # float64, where there is one: a float32 softmax of a sure prediction has no gradient
        precise = torch.float32 if embeddings.device.type == "mps" else torch.float64
        return output.logits.to(precise).softmax(-1).gather(1, targets.unsqueeze(1)).squeeze(1)


@contextmanager
def _gradients_of(model) -> Iterator[None]:
    """Eval mode, with gradients whatever the caller's mode; cuDNN's LSTM has none in eval mode."""
    cudnn = torch.backends.cudnn.flags(enabled=False)
    with evaluation_mode(model), cudnn, torch.inference_mode(False), torch.enable_grad():
        yield


def _embed(analysis: Analysis, input_ids: torch.Tensor) -> torch.Tensor:
    model = analysis.model
    try:
        return model.get_input_embeddings()(input_ids)
    except (AttributeError, NotImplementedError) as error:
        raise InputError(f"{type(model).__name__} has no word embeddings to take a gradient at; {_OTHERS}") from error


def _from_gradients(analysis: Analysis, token_scores) -> list[WordScores]:
    results: list[WordScores | None] = [None] * len(analysis.texts)
    with _gradients_of(analysis.model):
        for positions, batch, targets in _equal_lengths(analysis):
            with torch.no_grad():
                embeddings = _embed(analysis, batch["input_ids"])
            embeddings.requires_grad_()
            total = _Probability(analysis, batch)(embeddings, targets).sum()
            [gradients] = torch.autograd.grad(total, embeddings)
            values = token_scores(embeddings.detach(), gradients).tolist()
            for position, row in zip(positions, values, strict=True):
                results[position] = WordScores(analysis.texts[position].word_scores(row))
    return results


def _equal_lengths(analysis: Analysis) -> Iterator[tuple[list[int], dict, torch.Tensor]]:
    """Positions, model inputs and targets of at most `batch_size` texts with the same number of tokens."""
    groups = defaultdict(list)
    for position, text in enumerate(analysis.texts):
        groups[len(text.input_ids)].append(position)
    device = analysis.model.device
    for _, group in sorted(groups.items(), reverse=True):
        group.sort(key=lambda position: analysis.texts[position].input_ids)  # the same batches in any order of texts
        for start in range(0, len(group), analysis.batch_size):
            positions = group[start : start + analysis.batch_size]
            batch = model_inputs(analysis.tokenizer, [analysis.texts[position].input_ids for position in positions])
            targets = torch.tensor([analysis.targets[position] for position in positions], device=device)
            yield positions, {name: tensor.to(device) for name, tensor in batch.items()}, targets


def _baseline_id(analysis: Analysis) -> int | None:
    """The token that stands for every word in the baseline; None for a zero vector."""
    name = analysis.settings["baseline"]
    if name == "zero":
        return None
    token_id = getattr(analysis.tokenizer, f"{name}_token_id")
    if token_id is None:
        raise InputError(f'The tokenizer has no {name} token for baseline={name!r}; use baseline="zero".')
    return token_id
