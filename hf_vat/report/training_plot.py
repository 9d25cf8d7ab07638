"""Training curves as SVG or PNG."""

from collections.abc import Mapping, Sequence
from math import ceil
from os import PathLike

from hf_vat.errors import InputError

from .figures import INK, LINE_STYLES, MUTED, add_legend, panels, render

_PANELS = {
    "loss": "Training loss",
    "cross_entropy": "Training cross-entropy (nats)",
    "eval_loss": "Evaluation loss",
    "eval_accuracy": "Evaluation accuracy",
    "attention_entropy": "Attention entropy",
    "attention_jsd": "Change of attention (JSD)",
}


def training_curves(log_history: Mapping[str, Sequence[Mapping]], path: str | PathLike | None = None) -> str:
    """Draw what the Trainer logged, by epoch: one panel per quantity, one line per run.

    Losses, evaluation accuracy, attention entropy and the change of attention are drawn where they were logged.
    Epochs of the phase "compress" are shaded.

    Args:
        log_history: for each run, by the name to show, its `trainer.state.log_history`.
        path: also write the figure to this file, .svg or .png; missing folders are made.

    Returns:
        An SVG element to put into a page, equal for equal input; its text takes the colour of the page's text.

    Raises:
        InputError: if the logs hold none of the quantities, or the path has another suffix.
        ImportError: if matplotlib is not installed.
    """
    keys = [key for key in _PANELS if any(_points(records, key) for records in log_history.values())]
    if not keys:
        raise InputError(f"There is nothing to draw: no log has any of {', '.join(_PANELS)} with an epoch.")
    return render(lambda: _draw(log_history, keys), path)


def _draw(log_history, keys):
    from matplotlib.ticker import MaxNLocator

    figure, axes = panels([_PANELS[key] for key in keys])
    last = max(epoch for key in keys for records in log_history.values() for epoch, _ in _points(records, key))
    lines = {}
    for key, axis in zip(keys, axes, strict=True):
        for epoch in _compress_epochs(log_history):
            lines["compress phase"] = axis.axvspan(epoch, epoch + 1, color=MUTED, alpha=0.18, linewidth=0)
        for place, (name, records) in enumerate(log_history.items()):
            points = _points(records, key)
            if not points:
                continue
            color, dashes, marker = LINE_STYLES[place % len(LINE_STYLES)]
            (lines[name],) = axis.plot(
                *zip(*points, strict=True),
                color=color,
                linestyle=dashes,
                marker=marker if len(points) < 25 else None,
                markersize=3,
            )
        axis.set_xlim(0, last * 1.03)
        axis.set_xlabel("epoch", color=INK)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    add_legend(figure, lines)
    return figure


def _points(records, key) -> list[tuple[float, float]]:
    return [(record["epoch"], record[key]) for record in records if key in record and "epoch" in record]


def _compress_epochs(log_history) -> list[int]:
    """Epochs, counted from 0, in which a run compressed. A record at epoch 2.0 closes epoch 1; phases are per epoch."""
    return sorted(
        {
            max(ceil(record["epoch"] - 1e-6) - 1, 0)
            for records in log_history.values()
            for record in records
            if record.get("phase") == "compress" and "epoch" in record
        }
    )
