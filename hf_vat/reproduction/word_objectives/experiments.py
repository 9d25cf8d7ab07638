"""Cells of the word objectives: a system is trained, and its states and its attention are put to the test."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict
from transformers import TrainerCallback

from hf_vat.analysis import (
    adversarial_attention,
    adversary_curve,
    mutual_information,
    permute_attention,
    state_distances,
)
from hf_vat.explanations import Explanation, explain
from hf_vat.faithfulness import ERASER_SHARES, Faithfulness
from hf_vat.faithfulness.agreement import normalized_entropy
from hf_vat.pretrained import load_classifier
from hf_vat.reproduction.cells import Cell, CellSettings
from hf_vat.reproduction.measuring import BATCH_SIZE, predicted_right

from .systems import ENCODERS, SYSTEMS

TEXTS = 300  # test texts at most whose attention is changed and whose rankings are measured
HIGH = 0.5  # attention of which one word has so much ought to matter
JSDS = (0.3, 0.5)  # at which the curve of the adversary is read, nats
SCORES = ("prob_drop@5", "aopc_comprehensiveness", "aopc_sufficiency", "posthoc_self@5")
N_WORDS, N_CLUSTERS = 1000, 200


class _FreezeAttention(TrainerCallback):
    """The attention stays as it was drawn."""

    def on_init_end(self, args, state, control, **kwargs):
        kwargs["model"].attention.requires_grad_(False)


class WordObjectiveCell(Cell):
    """One training run of a system; measured is the model of the last epoch.

    Its result holds "validation", the accuracy there, and "correct", for each test text whether it is classified correctly; of
    all systems but "uniform", which has no attention, also, of all test texts, "information" of states and words ("states" and
    "words", the embeddings) and "conicity", "distance" and "cosine" per text; and of up to 300 random test texts
    "faithfulness" of the attention by score and text, "entropy" per text, "permuted": the TVD per text, with its mean where
    one word has half of the attention or more and the share of such texts; "adversarial": the JSD per text that is found
    within ε; and "curve" of the adversary: its points, its area, and the TVD at some JSDs, None where it does not come so far. The
    run of ATT also has the "random" faithfulness: means over three random rankings.
    """

    encoders = ENCODERS
    kinds = SYSTEMS

    @property
    def needs(self) -> None:
        return None

    def trained(self, settings: CellSettings, data: DatasetDict):
        """Train the system, unless that is done already; its model and tokenizer.

        Raises:
            InputError: if the folder holds another run, or the encoder cannot be loaded.
        """
        callbacks = [_FreezeAttention()] if self.trained_as == "frozen" else []
        when = {"save_strategy": "no", "eval_strategy": "no", "predict_from": "learner"}
        return load_classifier(str(self.train(settings, data, callbacks, **when)))

    def measure(self, settings: CellSettings, data: DatasetDict) -> dict:
        model, tokenizer = self.trained(settings, data)
        found: dict[str, Any] = {
            "validation": float(predicted_right(model, tokenizer, data["validation"]).mean()),
            "correct": predicted_right(model, tokenizer, data["test"]).astype(int).tolist(),
        }
        if self.kind != "uniform":
            found |= information(model, tokenizer, data["test"]["text"][:])
            found |= self._attention(settings, model, tokenizer, data)
        return found

    def _attention(self, settings: CellSettings, model, tokenizer, data: DatasetDict) -> dict:
        rows = some(data["test"])
        texts, labels = rows["text"][:], rows["label"][:]
        save_to = self.explanations(settings, "attention")
        explanations = explain(model, tokenizer, texts, labels=labels, batch_size=BATCH_SIZE, save_to=save_to)
        faithfulness = Faithfulness(
            model, tokenizer, explanations, ks=(5,), shares=ERASER_SHARES, batch_size=BATCH_SIZE
        )
        measured = faithfulness.measure(explanations).values
        found: dict[str, Any] = {"faithfulness": {name: measured[name].tolist() for name in SCORES}}
        if self.kind == "ATT":
            runs = [run.values for run in faithfulness.random(range(3)).results]
            found["random"] = {name: np.mean([values[name] for values in runs], 0).tolist() for name in SCORES}
        found["entropy"] = entropies(explanations)
        # Of a text of one token there is nothing to permute, whichever the system.
        permuted = [one for one in permute_attention(model, tokenizer, texts) if one.n_tokens > 1]
        high = [one.tvd for one in permuted if one.max_attention >= HIGH]
        found["permuted"] = {
            "tvd": [one.tvd for one in permuted],
            "high": float(np.mean(high)) if high else None,
            "share": len(high) / len(permuted),
        }
        found["adversarial"] = [one.jsd for one in adversarial_attention(model, tokenizer, texts)]
        of_training, save_to = data["train"]["text"][:], self.folder(settings) / "curve.jsonl"
        curve = adversary_curve(
            model, tokenizer, of_training, texts, seed=self.seed, save_to=save_to, **self.settled.adversary
        )
        at = {f"tvd@{jsd}": curve.tvd_at(jsd) for jsd in JSDS}
        found["curve"] = {
            "points": [one._asdict() for one in curve.points],
            "area": curve.area,
            **{name: None if np.isnan(tvd) else tvd for name, tvd in at.items()},
        }
        return found


def some(rows: Dataset) -> Dataset:
    """Up to 300 random rows, in their order."""
    return rows.select(np.sort(np.random.default_rng(0).permutation(len(rows))[:TEXTS]))


def entropies(explanations: Sequence[Explanation]) -> list[float]:
    """Entropy of the attention over words, per text, from 0 to 1; see
    [`normalized_entropy`](hf_vat.faithfulness.agreement.normalized_entropy)."""
    return [normalized_entropy(one.scores) for one in explanations if one.words]


def information(model, tokenizer, texts: list[str]) -> dict:
    """What states say of their words: "information" of states and of embeddings, and the distances of states per text."""
    found: dict[str, Any] = {"information": {}}
    for layer in ("states", "words"):
        one = mutual_information(model, tokenizer, texts, N_WORDS, N_CLUSTERS, layer=layer, batch_size=BATCH_SIZE)
        numbers = {name: getattr(one, name) for name in ("value", "share", "shuffled", "entropy", "n_pairs", "n_words")}
        found["information"][layer] = numbers | ({"by_text": one.by_text.tolist()} if layer == "states" else {})
    distances = state_distances(model, tokenizer, texts, batch_size=BATCH_SIZE)
    for name in ("conicity", "distance", "cosine"):
        values = getattr(distances, name)
        found |= {} if values is None else {name: values.tolist()}
    return found
