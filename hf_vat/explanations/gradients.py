"""Gradient, input times gradient, and integrated gradients of the target's probability, or score, at the word embeddings.

The model is given the ids of the text, as in any other call, and only what its layer of word embeddings gives for them is
exchanged. Given `inputs_embeds` in their place, it could not see a padding token that was typed: RoBERTa counts positions
without those, and GPT-2 reads the last token before them. Texts of equal length run together, so that nothing is padded.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hf_vat.embeddings import OTHERS, embedded_as, embedding_layer
from hf_vat.errors import InputError, import_extra
from hf_vat.inference import evaluation_mode, mask_token_id, model_inputs, shared
from hf_vat.models.reading import named_outputs

from .analysis import Analysis, WordScores
from .explanation import Explanation

BASELINES = ("pad", "mask", "unk", "zero")


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
    results = [WordScores([])] * len(analysis.texts)
    with _gradients_of(analysis.model):
        for positions, batch, targets in _equal_lengths(analysis):
            special = torch.tensor([analysis.texts[position].special for position in positions], dtype=torch.bool)
            with torch.no_grad():
                embeddings = _embed(analysis, batch["input_ids"])
                if token_id is None:
                    baseline = embeddings * special.to(embeddings).unsqueeze(-1)
                else:
                    special = special.to(embeddings.device)
                    baseline = _embed(analysis, torch.where(special, batch["input_ids"], token_id))
            attributions, gaps = captum.IntegratedGradients(_Output(analysis, batch)).attribute(
                embeddings,
                baselines=baseline,
                additional_forward_args=(targets, *batch.values()),
                n_steps=analysis.settings["n_steps"],
                internal_batch_size=analysis.batch_size,
                return_convergence_delta=True,
            )
            values = attributions.cpu().double().sum(-1)  # [B, T]
            for position, row, gap in zip(positions, values.tolist(), gaps.tolist(), strict=True):
                difference = sum(row) - gap
                full = analysis.outputs[position][analysis.targets[position]]
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


class _Output:
    """Probability or score of the target [B], as a function of the embeddings [B, T, d] of the tokens of a batch.

    Args:
        batch: by whose names the model's inputs are handed over, beside the embeddings: Captum repeats their rows.
    """

    def __init__(self, analysis: Analysis, batch: dict[str, torch.Tensor]):
        self.analysis, self.names = analysis, list(batch)

    def __call__(self, embeddings: torch.Tensor, targets: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
        rows, length = embeddings.shape[:2]
        if rows == length > 1:  # [B, T] and [T, B] could not be told apart
            parts = [
                self(*(tensor[part] for tensor in (embeddings, targets, *inputs)))
                for part in (slice(rows - 1), slice(rows - 1, rows))
            ]
            return torch.cat(parts)
        model, batch = self.analysis.model, dict(zip(self.names, inputs, strict=True))
        try:
            with embedded_as(model, batch["input_ids"], embeddings):
                output = model(**batch, **named_outputs(model))
        except (TypeError, NotImplementedError) as error:
            raise InputError(f"{type(model).__name__} cannot be asked for a gradient ({error}); {OTHERS}") from error
        if torch.is_grad_enabled() and not output.logits.requires_grad:
            raise InputError(
                f"{type(model).__name__} gives logits without a gradient, as if it ran under torch.no_grad(); {OTHERS}"
            )
        self.analysis.bar.update(rows)
        # float64, where there is one: a float32 softmax of a sure prediction has no gradient
        precise = torch.float32 if embeddings.device.type == "mps" else torch.float64
        return self.analysis.problem.outputs(output.logits.to(precise)).gather(1, targets.unsqueeze(1)).squeeze(1)


@contextmanager
def _gradients_of(model) -> Iterator[None]:
    """Eval mode, with gradients whatever the caller's mode, and not compiled, as embeddings are exchanged within.

    Raises:
        InputError: if the model has no gradient at its embeddings.
    """
    _check_differentiable(model)
    # It has none for an LSTM in eval mode.
    cudnn = shared("cudnn", lambda: torch.backends.cudnn.flags(enabled=False))
    eager = shared("stance", lambda: torch.compiler.set_stance("force_eager"))
    try:
        with evaluation_mode(model), cudnn, eager, torch.inference_mode(False), torch.enable_grad():
            yield
    except RuntimeError as error:
        if "not have been used in the graph" not in str(error):
            raise
        raise InputError(f"{type(model).__name__} gives logits that have no gradient at the words; {OTHERS}") from error


def _check_differentiable(model) -> None:
    name, quantizer = type(model).__name__, getattr(model, "hf_quantizer", None)
    if quantizer is not None and not quantizer.is_trainable:
        raise InputError(f"{name} is quantised in a way that gives no gradient; {OTHERS}")
    for module in model.modules():  # also where some layers alone are: a part of the gradient would be lost
        if type(module).__module__.startswith("torch.ao.nn.quantized"):
            raise InputError(
                f"{name} is quantised, with {type(module).__name__} layers that give no gradient; {OTHERS}"
            )
    if any(parameter.is_inference() for parameter in model.parameters()):
        raise InputError(
            f"The weights of {name} were made under torch.inference_mode() and give no gradient; load the model outside it. "
            f"Or take another method: {OTHERS}"
        )


def _embed(analysis: Analysis, input_ids: torch.Tensor) -> torch.Tensor:
    embeddings = embedding_layer(analysis.model)(input_ids)
    if not isinstance(embeddings, torch.Tensor) or not embeddings.is_floating_point():
        name = type(analysis.model).__name__
        raise InputError(f"{name} has embeddings of another kind than one vector for each token; {OTHERS}")
    return embeddings


def _from_gradients(analysis: Analysis, token_scores) -> list[WordScores]:
    results = [WordScores([])] * len(analysis.texts)
    with _gradients_of(analysis.model):
        for positions, batch, targets in _equal_lengths(analysis):
            with torch.no_grad():
                embeddings = _embed(analysis, batch["input_ids"])
            embeddings.requires_grad_()
            total = _Output(analysis, batch)(embeddings, targets, *batch.values()).sum()
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
        group.sort(key=lambda position: analysis.texts[position].typed_ids)  # the same batches in any order of texts
        for start in range(0, len(group), analysis.batch_size):
            positions = group[start : start + analysis.batch_size]
            batch = model_inputs(analysis.tokenizer, [analysis.texts[position].typed_ids for position in positions])
            targets = torch.tensor([analysis.targets[position] for position in positions], device=device)
            yield positions, {name: tensor.to(device) for name, tensor in batch.items()}, targets


def _baseline_id(analysis: Analysis) -> int | None:
    """The token that stands for every word in the baseline; None for a zero vector."""
    name = analysis.settings["baseline"]
    if name == "zero":
        return None
    token_id = getattr(analysis.tokenizer, f"{name}_token_id")
    if name == "mask" and token_id is not None:
        token_id = mask_token_id(analysis.model, analysis.tokenizer)
        if token_id is None:
            raise InputError('A word encoder never learns its mask token; use baseline="unk", "pad" or "zero".')
    if token_id is None:
        raise InputError(f'The tokenizer has no {name} token for baseline={name!r}; use baseline="zero".')
    return token_id
