"""Word scores that another model has learned from a slow method, and gives in one forward pass of its own.

The explainer is a model for token classification: its logits [B, T, C] say what each token does for each class, label or score of
the classifier, and those of a word's tokens add up. [`hf_vat.amortized`] trains one. After FastSHAP (Jethani et al., ICLR 2022) and
amortised Shapley values of texts (Yang et al., ACL 2023).
"""

from collections.abc import Sequence
from contextlib import closing
from os import PathLike
from typing import Any

import numpy as np
from torch import nn

from hf_vat.errors import InputError
from hf_vat.faithfulness.perturb import Operator
from hf_vat.inference import embedding_rows, forward_batches, predict_outputs
from hf_vat.models.problems import says_the_same
from hf_vat.models.words import TYPE_BITS, positions_of
from hf_vat.pretrained import load_explainer

from .analysis import Analysis, WordScores


def with_explainer(settings: dict, model, tokenizer) -> dict:
    """Settings whose explainer is a model.

    Raises:
        InputError: if there is none, or it is none for this classifier.
    """
    explainer = settings["explainer"]
    if explainer is None:
        name, place = getattr(model.config, "name_or_path", ""), getattr(model.config, "explainer", None)
        if not name or not isinstance(place, str):
            raise InputError(
                'method="amortized" reads an explainer, and the model has none in its folder; give one as explainer, a folder, a Hub '
                "id or a model. `hf-vat distill` and hf_vat.fit_amortized train one."
            )
        revision = getattr(model.config, "_commit_hash", None)
        explainer = load_explainer(name, place, revision).to(model.device)
    elif isinstance(explainer, str | PathLike):
        explainer = load_explainer(str(explainer)).to(model.device)
    elif not isinstance(explainer, nn.Module):
        raise InputError(f"explainer is {type(explainer).__name__}; give a folder, a Hub id or a model.")
    check_names(explainer, model)
    check_same(explainer, model, tokenizer)
    return {**settings, "explainer": explainer}


def check_same(explainer: Any, model, tokenizer) -> None:
    """
    Raises:
        InputError: if the classifier says something else of a text without any word than when the explainer was made.
    """
    ids = getattr(explainer.config, "no_word_ids", None)
    if ids is None:
        return
    now, before = predict_outputs(model, tokenizer, [ids])[0].tolist(), explainer.config.no_word_outputs
    if not says_the_same(before, now):
        raise InputError(
            "The explainer was made for another classifier, or for this one before it was trained further: of a text without words it "
            f"said {np.round(before, 3).tolist()}, and says {np.round(now, 3).tolist()}. Make another one: hf-vat distill."
        )


def check_names(explainer: Any, model) -> None:
    """
    Raises:
        InputError: if an explainer was not made for the classes of a classifier.
    """
    names, own = (dict(one.config.id2label) for one in (explainer, model))
    if names != own:
        raise InputError(
            f"The explainer has scores for {', '.join(names.values())}, and the model has {', '.join(own.values())}; give an "
            "explainer that was made for this model."
        )


def amortized(analysis: Analysis) -> list[WordScores]:
    """The explainer's scores of the target. Where its configuration says `adds_up`, as that of one that has learned from Shapley
    values, they add up to f(text) - f(no word): each word gets an equal share of what they lack (Ruiz et al. 1998; Jethani
    et al. 2022, §3).

    Details: `base_value`, f(no word), where they add up.
    """
    explainer, rows = analysis.settings["explainer"], [tuple(text.typed_ids) for text in analysis.texts]
    unique = list(dict.fromkeys(rows))
    check_reads(explainer, unique)
    tokens: dict[tuple[int, ...], np.ndarray] = {}
    with closing(forward_batches(explainer, analysis.tokenizer, unique, analysis.batch_size)) as batches:
        for positions, output in batches:
            logits = token_logits(explainer, output).float().cpu().double().numpy()  # [B, T, C]
            for position, row in zip(positions, logits, strict=True):
                tokens[unique[position]] = row[: len(unique[position])]
            analysis.bar.update(len(positions))
    bases = _without_words(analysis) if getattr(explainer.config, "adds_up", False) else []
    results = []
    for place, (text, row, target) in enumerate(zip(analysis.texts, rows, analysis.targets, strict=True)):
        scores, details = text.word_scores(tokens[row][:, target].tolist()), {}
        if bases:
            details["base_value"] = bases[place][target]
            scores = text.adding_up_to(analysis.outputs[place][target] - bases[place][target], scores)
        results.append(WordScores(scores, details))
    return results


def _without_words(analysis: Analysis) -> list[list[float]]:
    """f(no word) of each text: what the explainer remembers of it, or of a text of another form, such as a pair beside single texts
    or one without any word, what the classifier says."""
    config, model, tokenizer = analysis.settings["explainer"].config, analysis.model, analysis.tokenizer
    stand_in = Operator.of("delete", tokenizer, model).token_id
    rows = [tuple(text.without_words(stand_in)) for text in analysis.texts]
    other = [row for row in dict.fromkeys(rows) if row != tuple(config.no_word_ids)]
    said = predict_outputs(model, tokenizer, other, analysis.batch_size).tolist() if other else []
    known = dict(zip(other, said, strict=True)) | {tuple(config.no_word_ids): config.no_word_outputs}
    return [known[row] for row in rows]


def check_reads(explainer, rows: Sequence[Sequence[int]]) -> None:
    """
    Raises:
        InputError: if an explainer cannot read lists of typed token ids, as they are too long or of another vocabulary.
    """
    longest, most = max(map(len, rows), default=0), positions_of(explainer)
    if longest > most:
        raise InputError(f"The explainer reads {most} tokens of a text, and one has {longest}; give max_length={most}.")
    known = embedding_rows(explainer)
    highest = max((one % 2**TYPE_BITS for row in rows for one in row), default=0)
    if highest >= known:
        raise InputError(
            f"The explainer has embeddings for {known} tokens, and the tokenizer gives the id {highest}; it was made for another vocabulary."
        )


def token_logits(explainer, output):
    """
    Raises:
        InputError: if a model does not give one finite score for each token and class.
    """
    logits = getattr(output, "logits", None)
    if logits is None or logits.dim() != 3 or logits.shape[-1] != explainer.config.num_labels:
        raise InputError(
            f"{type(explainer).__name__} is no explainer: it gives no logits of shape [batch, tokens, {explainer.config.num_labels}]."
        )
    if not logits.isfinite().all():
        raise InputError(
            f"The explainer {type(explainer).__name__} gives logits that are not finite; its training has diverged."
        )
    return logits
