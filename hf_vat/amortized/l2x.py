"""Learning to explain (L2X): a selector that is fitted to a classifier once, and then scores the words of any text.

Chen, Song, Wainwright and Jordan, "Learning to Explain: An Information-Theoretic Perspective on Model Interpretation",
ICML 2018. The selector chooses words from which a second network, the variational predictor, is to tell what the
classifier says of the whole text; training both together maximises a lower bound on what the chosen words know of the
classifier's answer. Labels play no part. (`mask_type="l2x"` is something else: a word mask that is trained as a part of
the classifier.)
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from hf_vat.errors import InputError, check_texts
from hf_vat.explanations import Explanation, explain
from hf_vat.inference import check_chooser, encode_texts, model_inputs, predict_outputs, progress_bar, whole_number
from hf_vat.models import WordEncoderConfig, WordEncoderModel
from hf_vat.models.attention import masked_softmax, max_pool, weighted_sum
from hf_vat.models.word_mask import concrete_top_k
from hf_vat.models.words import EncodedText

TEMPERATURE = 0.5  # of the draws, as in the authors' code
LEARNING_RATE = 1e-3
_SIZE = 96  # of embeddings and layers; in their code 50 to 250


@dataclass
class L2X:
    """An explainer that [`fit_l2x`] has fitted to a classifier.

    Attributes:
        model, tokenizer: the classifier.
        selector: the network that scores tokens, in eval mode.
        settings: with which it was fitted.
    """

    model: nn.Module
    tokenizer: object
    selector: nn.Module
    settings: dict

    def explain(
        self, texts: Sequence[str | Sequence[str]], labels: Sequence[int | str] | None = None, batch_size: int = 32
    ) -> list[Explanation]:
        """Score the words of texts; arguments, result and errors are as those of [`explain`](hf_vat.explain).

        A word's score is the probability that a draw of the selector takes it: at least 0, and the words of a text sum
        to 1. It does not depend on a target, and nothing is drawn here.
        """
        started = time.perf_counter()
        # For the words, which of them the model saw, and what it said; the random scores are replaced.
        explanations = explain(self.model, self.tokenizer, texts, "random", labels=labels, batch_size=batch_size)
        encoded = encode_texts(self.tokenizer, check_texts(texts), self.model, None)
        scores: list[list[float]] = []
        for start in range(0, len(encoded), batch_size):
            some = encoded[start : start + batch_size]
            ids, attended, content = _tensors(self.tokenizer, some, self.model.device)
            with torch.inference_mode():
                rows = masked_softmax(self.selector(ids, attended, content), content).tolist()
            scores += [text.word_scores(row[: len(text.input_ids)]) for text, row in zip(some, rows, strict=True)]
        seconds = (time.perf_counter() - started) / max(len(encoded), 1)
        return [
            replace(one, method="l2x", scores=row, settings=self.settings, seconds=seconds)
            for one, row in zip(explanations, scores, strict=True)
        ]


def fit_l2x(
    model,
    tokenizer,
    texts: Sequence[str | Sequence[str]],
    k: int = 10,
    epochs: int = 5,
    batch_size: int = 32,
    seed: int = 0,
    progress: bool = False,
) -> L2X:
    """Fit a selector to what a classifier says of texts.

    Works with every model that chooses one class of two or more for a text, as only its probabilities are used. The selector
    sees a token with its neighbours and the text as a whole; in training, k Gumbel-softmax draws over a text's tokens
    choose about k of them.

    Args:
        model: a sequence classification model.
        tokenizer: its tokenizer.
        texts: texts to learn from, without labels, such as the training texts; a thousand or more.
        k: how many tokens of a text are chosen; words, where each is one token.
        epochs: passes over the texts.
        batch_size: texts of a training step, and the largest batch that the model is given.
        seed: of all that is random. The global random state is left as it was.
        progress: show a progress bar.

    Raises:
        InputError: if an argument cannot be used.
    """
    settings = {"k": k, "epochs": epochs, "batch_size": batch_size}
    settings = {name: whole_number(name, number, 1) for name, number in settings.items()}
    settings["seed"] = whole_number("seed", seed, 0)
    check_chooser(model)
    encoded = encode_texts(tokenizer, check_texts(texts), model, None)
    if not encoded:
        raise InputError("There are no texts to learn from; give a thousand or more, such as the training texts.")
    answers = predict_outputs(model, tokenizer, [text.typed_ids for text in encoded], batch_size)
    targets = torch.tensor(answers, dtype=torch.float32, device=model.device)  # [N, C]
    tokens = max(tokenizer.get_vocab().values()) + 1
    with torch.random.fork_rng(), progress_bar("l2x", epochs * len(encoded), progress) as bar:
        torch.manual_seed(seed)
        selector = _Selector(tokens, tokenizer.pad_token_id).to(model.device)
        predictor = _Predictor(tokens, targets.shape[1]).to(model.device)
        optimizer = torch.optim.Adam([*selector.parameters(), *predictor.parameters()], lr=LEARNING_RATE)
        for _ in range(epochs):
            for rows in torch.randperm(len(encoded)).split(batch_size):
                ids, attended, content = _tensors(tokenizer, [encoded[row] for row in rows], model.device)
                chosen = concrete_top_k(selector(ids, attended, content), content, k, TEMPERATURE)
                loss = nn.functional.cross_entropy(predictor(ids, chosen / k), targets[rows.to(targets.device)])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                bar.update(len(rows))
    return L2X(model, tokenizer, selector.eval(), settings)


class _Selector(nn.Module):
    """Scores [B, T] of tokens, each from a window of three tokens and from the largest values over its text."""

    def __init__(self, tokens: int, padding: int | None):
        super().__init__()
        sizes: dict[str, Any] = {"embedding_size": _SIZE, "hidden_size": _SIZE, "kernel_sizes": (3,)}
        self.encoder = WordEncoderModel(
            WordEncoderConfig(encoder_type="cnn", vocab_size=tokens, pad_token_id=padding, dropout=0.2, **sizes)
        )
        self.score = nn.Sequential(nn.Linear(2 * _SIZE, _SIZE), nn.ReLU(), nn.Linear(_SIZE, 1))

    def forward(self, input_ids, attention_mask, content) -> torch.Tensor:
        window = self.encoder(input_ids, attention_mask).last_hidden_state  # [B, T, H]
        text = max_pool(window, content).unsqueeze(1).expand_as(window)
        return self.score(torch.cat([window, text], -1)).squeeze(-1)


class _Predictor(nn.Module):
    """Logits [B, C] from the embeddings of tokens alone, weighted by how far they are chosen [B, T]."""

    def __init__(self, tokens: int, classes: int):
        super().__init__()
        self.embeddings = nn.Embedding(tokens, _SIZE)
        self.head = nn.Sequential(nn.Linear(_SIZE, _SIZE), nn.ReLU(), nn.Linear(_SIZE, classes))

    def forward(self, input_ids, chosen) -> torch.Tensor:
        return self.head(weighted_sum(chosen, self.embeddings(input_ids)))


def _tensors(tokenizer, texts: list[EncodedText], device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, attention mask and content mask of texts, each [B, T]."""
    batch = model_inputs(tokenizer, [text.typed_ids for text in texts])
    special = nn.utils.rnn.pad_sequence([torch.tensor(text.special) for text in texts], True, True)
    return batch["input_ids"].to(device), batch["attention_mask"].to(device), ~special.to(device)
