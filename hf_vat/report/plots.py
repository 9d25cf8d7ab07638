"""Training curves as SVG or PNG. Needs matplotlib, which is imported only here and only when drawing."""

from collections.abc import Mapping, Sequence
from io import StringIO
from math import ceil
from os import PathLike
from pathlib import Path

from hf_vat.errors import InputError

_PANELS = {
    "loss": "Training loss",
    "cross_entropy": "Training cross-entropy (nats)",
    "eval_loss": "Evaluation loss",
    "eval_accuracy": "Evaluation accuracy",
    "attention_entropy": "Attention entropy",
    "attention_jsd": "Change of attention (JSD)",
}
# Okabe and Ito's colours, which colour-blind readers can tell apart; dashes tell them apart in black and white.
_STYLES = (
    ("#3d96d8", "-"),
    ("#e0701a", (0, (5, 1.5))),
    ("#1b9e77", (0, (1.5, 1))),
    ("#cc79a7", (0, (5, 1.5, 1, 1.5))),
)
_INK = "#3d444d"
_MUTED = "#8a919a"


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
    path = None if path is None else Path(path)
    if path is not None and path.suffix.lower() not in (".svg", ".png"):
        raise InputError(f"{str(path)!r} ends in {path.suffix!r}; figures are written as .svg or .png.")
    keys = [key for key in _PANELS if any(_points(records, key) for records in log_history.values())]
    if not keys:
        raise InputError(f"There is nothing to draw: no log has any of {', '.join(_PANELS)} with an epoch.")
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("Training curves need matplotlib: pip install hf-vat[viz]") from error

    settings = {
        "svg.hashsalt": "hf_vat",  # ids in the file are random without it
        "svg.fonttype": "none",
        "text.parse_math": False,  # a $ in a run's name is a $
        "font.size": 9,
    }
    with matplotlib.rc_context(settings):
        figure = _draw(log_history, keys)
        svg = StringIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
            figure.savefig(path, format=path.suffix[1:].lower(), dpi=150, metadata=metadata)
    element = svg.getvalue()
    return element[element.index("<svg") :].replace(_INK, "currentColor")


def _draw(log_history, keys):
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    columns = min(len(keys), 3)
    rows = ceil(len(keys) / columns)
    figure = Figure(figsize=(3.2 * columns, 2.3 * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).flat
    figure.get_layout_engine().set(h_pad=0.1)
    last = max(epoch for key in keys for records in log_history.values() for epoch, _ in _points(records, key))
    lines = {}
    for key, axis in zip(keys, axes, strict=False):
        for epoch in _compress_epochs(log_history):
            lines["compress phase"] = axis.axvspan(epoch, epoch + 1, color=_MUTED, alpha=0.18, linewidth=0)
        for place, (name, records) in enumerate(log_history.items()):
            points = _points(records, key)
            if not points:
                continue
            color, dashes = _STYLES[place % len(_STYLES)]
            marker = "o" if len(points) < 25 else None
            (lines[name],) = axis.plot(
                *zip(*points, strict=True), color=color, linestyle=dashes, marker=marker, markersize=3
            )
        axis.set_xlim(0, last * 1.03)
        axis.set_title(_PANELS[key], loc="left", color=_INK, fontsize=9.5)
        axis.set_xlabel("epoch", color=_INK)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.tick_params(color=_MUTED, labelcolor=_INK)
        axis.grid(color=_MUTED, alpha=0.25, linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.spines[["left", "bottom"]].set_color(_MUTED)
    for axis in axes[len(keys) :]:
        axis.set_visible(False)
    figure.legend(
        lines.values(),
        lines,
        loc="outside lower left",
        ncols=len(lines),
        frameon=False,
        labelcolor=_INK,
        handlelength=3,
    )
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
