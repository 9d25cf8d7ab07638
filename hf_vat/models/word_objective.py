"""What keeps the state of a token about that token: the word-level objectives of Tutek & Šnajder (RepL4NLP 2020)."""

from collections.abc import Callable

import torch
from torch import nn

from .modeling_word_encoder import WordEncoderModel


def mean_over(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of each text over the positions in `mask`: [B, T], [B, T] -> float32 [B]; 0 for a text without any."""
    return (values.float() * mask).sum(1) / mask.sum(1).clamp(min=1)


def distance_to_words(states: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """‖h_t − x_t‖ of states and embeddings, both [B, T, H], -> float32 [B, T]. Its gradient is 0 where they are equal."""
    squares = (states.float() - words.float()).square().sum(-1)
    equal = squares == 0  # the root has no gradient there
    return torch.where(equal, 0.0, torch.where(equal, 1.0, squares).sqrt())


def conicity(states: torch.Tensor, content: torch.Tensor) -> torch.Tensor:
    """Mean cosine between the states of a text's tokens and the mean of these, [B, T, H] -> float32 [B], from −1 to 1:
    near 1 all states point the same way, and no attention can tell them apart (Mohankumar et al., ACL 2020, §3.2)."""
    states = states.float() * content.unsqueeze(-1)
    mean = states.sum(1, keepdim=True) / content.sum(1).clamp(min=1)[:, None, None]
    return mean_over(nn.functional.cosine_similarity(states, mean, dim=-1), content)


class WordObjective(nn.Module):
    """The setting `word_objective` of a classifier: which states are pooled, and the term of its loss.

    Args:
        config: with the settings of [`VATSettings`].
        encoder: of the classifier.
    """

    def __init__(self, config, encoder):
        super().__init__()
        self.kind = config.word_objective
        self.share, self.mask_token_id = config.mlm_probability, config.mask_token_id
        hidden = config.hidden_size
        try:
            embedded = encoder.get_input_embeddings().weight.shape[1]
        except (AttributeError, NotImplementedError):  # CANINE hashes characters
            raise ValueError(
                f'word_objective="{self.kind}" reads the embedding of each token, and {type(encoder).__name__} has none; use '
                'word_objective="none", or another encoder, such as BERT.'
            ) from None
        # Where transformers has embeddings of another width, it maps them before the first layer.
        self.words_size = embedded if isinstance(encoder, WordEncoderModel) else hidden
        self.output_size = hidden + self.words_size if self.kind == "concat" else hidden
        self.decoder = (
            nn.Linear(hidden, embedded, bias=False) if self.kind == "mlm" and hidden != embedded else nn.Identity()
        )

    def pooled(self, states: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """The states that attention and heads read, from those of the encoder [B, T, H] and embeddings [B, T, d]."""
        if self.kind == "concat":
            return torch.cat([states, words], -1)
        return states + words if self.kind == "residual" else states

    def term(
        self,
        states: torch.Tensor,
        words: torch.Tensor,
        content: torch.Tensor,
        input_ids: torch.Tensor | None,
        embeddings: torch.Tensor,
        encode: Callable[[torch.Tensor], torch.Tensor],
    ) -> torch.Tensor | None:
        """The term of each text, float32 [B]: a mean over its tokens, of "mlm" over those that are hidden. None where there
        is none: "concat" and "residual", and "mlm" outside training.

        Args:
            states: of the encoder, [B, T, H].
            words: embeddings, [B, T, d].
            content: bool [B, T].
            input_ids: [B, T].
            embeddings: of the vocabulary, [V, d].
            encode: from other input ids to states.

        Raises:
            ValueError: if "mlm" is given embeddings in place of ids.
        """
        if self.kind == "tying":
            return mean_over(distance_to_words(states, words), content)
        if self.kind == "conicity":
            return conicity(states, content)
        if self.kind != "mlm" or not self.training:
            return None
        if input_ids is None:
            raise ValueError('word_objective="mlm" predicts ids; give input_ids, not inputs_embeds.')
        hidden = self._draw(content)
        masked = encode(input_ids.masked_fill(hidden, self.mask_token_id))[hidden]  # [N, H]
        logits = self.decoder(masked) @ embeddings.T  # [N, V]
        losses = nn.functional.cross_entropy(logits.float(), input_ids[hidden], reduction="none")
        return mean_over(torch.zeros_like(content, dtype=torch.float32).masked_scatter(hidden, losses), hidden)

    def _draw(self, content: torch.Tensor) -> torch.Tensor:
        """Tokens to hide, bool [B, T]: each with probability `share`, and of each text at least one."""
        if not content.shape[1]:  # no text of the batch has a token
            return content
        draws = torch.rand(content.shape, device=content.device).masked_fill(~content, 2.0)
        first = draws == draws.amin(1, keepdim=True)
        return content & ((draws < self.share) | first)


__all__ = ["WordObjective", "conicity", "distance_to_words", "mean_over"]
