"""What watches a training: whether its loss is finite, where the attention is, and whether a word mask still tells words apart."""

import logging

import torch

from hf_vat.inference import evaluation_mode
from hf_vat.models.reading import named_outputs

from .arguments import VATTrainingArguments
from .schedule import TERMS, loss_weights

logger = logging.getLogger(__name__)


class DivergenceWatch:
    """
    Whether the loss of each step was finite, asked at the step and answered later.

    To read the answer at once, a GPU would have to finish the step first.
    """

    def __init__(self):
        self._steps: list[tuple[int, str, list[str], torch.Tensor]] = []

    def clear(self) -> None:
        self._steps.clear()

    def see(self, step: int, phase: str, loss: torch.Tensor, outputs) -> None:
        names = ("cross_entropy", *TERMS, "token_importance", "token_mask")
        values = {name: getattr(outputs, name) for name in names if getattr(outputs, name) is not None}
        finite = torch.stack([torch.isfinite(value.detach()).all() for value in (*values.values(), loss)])
        self._steps.append((step, phase, [*values, "loss"], finite))

    def refuse(self, args: VATTrainingArguments) -> None:
        """Look at the steps since the last call.

        Raises:
            FloatingPointError: if the loss of one was not finite, naming step, phase and component.
        """
        steps, self._steps = self._steps, []
        answers = iter(torch.cat([finite for *_, finite in steps]).tolist() if steps else [])
        for step, phase, names, _ in steps:
            broken = [name for name in names if not next(answers)]
            if broken:
                raise FloatingPointError(
                    f"The loss is not finite at step {step} in phase {phase!r}: {', '.join(broken[:-1] or broken)}. Lower "
                    f"learning_rate ({args.learning_rate}) or compressor_learning_rate "
                    f"({args.compressor_learning_rate}), or resume from the last checkpoint."
                )


def attention_of(model, batch: dict) -> torch.Tensor:
    """Attention on the texts of a batch, float64 [texts, T] on the CPU, as in evaluation."""
    batch.pop("labels", None)
    with evaluation_mode(model), torch.no_grad():
        return model(**batch, **named_outputs(model)).token_importance.double().cpu()


def warn_of_collapse(config, mean: float, sd: float, prefix: str, args: VATTrainingArguments) -> None:
    """Warn if a word mask is open or closed nearly everywhere, or nearly the same for all words.

    Args:
        config: the model's.
        mean: of the mask over content tokens.
        sd: standard deviation over these.
        prefix: of the metrics of this evaluation.
        args: with the learning rate that the warning names.
    """
    # Weights that share 1, or k, among the words of a text are small in every long one.
    if config.mask_type == "l2x" and config.mask_normalization != "sigmoid":
        return
    # IBA begins with every word at 0.9933.
    begins, most = (0.98, 0.995) if config.mask_type == "iba" else (1, 0.99)
    # VMASK's term draws the mask to one half, from both sides; IBA's closes it.
    if mean > most:
        what, change = "lets nearly every word through whole", "Raise"
    elif mean < 0.01:
        what, change = "lets nearly nothing through", "Lower" if config.mask_type == "iba" else "Raise"
    elif sd < 0.01 and mean < begins:
        what, change = "is nearly the same for all words", "Lower"
    else:
        return
    remedy = f"{change} mask_beta (now {config.mask_beta})" if "mask_beta" in loss_weights(config) else ""
    if 0.01 <= mean <= most:
        remedy += (" or train" if remedy else "Train") + " longer."
    else:
        rate = f"compressor_learning_rate ({args.compressor_learning_rate})."
        remedy += (" or lower " if remedy else "Lower ") + rate
    logger.warning(
        f"{prefix}_mask_mean is {mean:.4f} and {prefix}_mask_sd {sd:.4f}: the word mask {what}, so it cannot tell which "
        f"words matter. {remedy}"
    )
