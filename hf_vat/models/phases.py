"""What a phase trains, by which loss, and which head predicts: one table, which everything that asks for it reads."""

from typing import NamedTuple


class Phase(NamedTuple):
    """One phase of training.

    Attributes:
        trained: groups of modules, see [`~hf_vat.BertForVATClassification.phase_modules`]. An encoder that is not among them
            is a constant: in eval mode and without a graph; so is a word mask, whose term is then not in the loss.
        loss: heads whose cross-entropy is in the loss; with the compressor's there is the compression term.
        predicts: the head that has been trained last when the phase is over; of two, the learner's.
        told: what it does, in words.
        compressor: whether it is a phase of models with a bottleneck only.
        starts: whether training may begin with it, before learner and compressor take turns.
        cost: of an epoch, where one that trains all costs 1 (docs/measurements.md).
    """

    trained: tuple[str, ...]
    loss: tuple[str, ...]
    predicts: str
    told: str
    compressor: bool = True
    starts: bool = False
    cost: float = 1.0


PHASES = {
    "finetune": Phase(
        trained=("mask", "encoder", "attention", "learner"),
        loss=("learner",),
        predicts="learner",
        told="trains the encoder and the learner's head, the compressor waits",
        compressor=False,
        starts=True,
    ),
    "joint": Phase(
        trained=("mask", "encoder", "attention", "learner", "compressor"),
        loss=("compressor", "learner"),
        predicts="learner",
        told="trains everything together",
        starts=True,
    ),
    "compress": Phase(
        trained=("attention", "compressor"),
        loss=("compressor",),
        predicts="compressor",
        told="trains attention and compressor, the encoder stays as it is",
        cost=0.2,
    ),
    "learn": Phase(
        trained=("mask", "encoder", "learner"),
        loss=("learner",),
        predicts="learner",
        told="trains the encoder and the learner's head, attention stays as it is",
    ),
}

ROUND = ("compress", "learn")  # what takes turns
PHASE_OF_ALL = {False: "finetune", True: "joint"}  # what trains everything there is, without and with a bottleneck

__all__ = ["PHASES", "PHASE_OF_ALL", "ROUND"]
