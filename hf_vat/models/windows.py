"""Texts that are longer than an encoder reads, in windows that overlap.

Each window has the special tokens that stand before and after the text, and as many of its tokens as there is room for. What is
computed of a token is taken from the window in which it has context on both sides: half of the overlap, or more.
"""

from typing import NamedTuple

import torch


class Windows(NamedTuple):
    """The windows of a batch of texts, W of L tokens each.

    Attributes:
        columns: the column of the batch that each token of a window is from, [B, W, L].
        attended: whether there is a token that is attended to, bool [B, W, L].
        needed: whether a text has so many windows, bool [B, W].
        place: for each token of a text, [B, T], where in its windows it is read, as an index into W · L.
    """

    columns: torch.Tensor
    attended: torch.Tensor
    needed: torch.Tensor
    place: torch.Tensor

    def cut(self, tokens: torch.Tensor) -> torch.Tensor:
        """What belongs to tokens, [B, T, …], for the tokens of the windows, [B, W, L, …]."""
        texts = torch.arange(len(tokens), device=tokens.device)[:, None, None]
        return tokens[texts, self.columns]

    def joined(self, values: torch.Tensor) -> torch.Tensor:
        """What was computed of the windows' tokens, [B, W, L, …], for those of the texts, [B, T, …]."""
        texts = torch.arange(len(values), device=values.device)[:, None]
        return values.flatten(1, 2)[texts, self.place]


def windows(attention_mask: torch.Tensor, length: int, overlap: int, prefix: int, suffix: int) -> Windows:
    """Windows of at most `length` tokens over texts, [B, T], that are padded on either side.

    A text that fits into one window has one, and the same windows whatever else is in its batch.

    Args:
        overlap: tokens that neighbouring windows share.
        prefix, suffix: special tokens before and after each text, which every window has.
    """
    attended = attention_mask.bool()
    columns = attended.shape[1]
    first = attended.int().argmax(1)  # [B]
    end = columns - attended.flip(1).int().argmax(1)
    inside = (end - first - prefix - suffix).clamp(min=0)  # tokens of each text between the special ones
    room = length - prefix - suffix
    stride = room - overlap
    number = ((inside - room + stride - 1).div(stride, rounding_mode="floor")).clamp(min=0) + 1  # windows of each text
    most = int(number.max())

    window = torch.arange(most, device=first.device)[None, :, None]
    position = torch.arange(length, device=first.device)[None, None]
    texts = (first, end, inside, number)
    first, end, inside, number = (one[:, None, None] for one in texts)
    own = (inside - window * stride).clamp(0, room)  # tokens of each window between the special ones
    in_prefix, in_text = position < prefix, position < prefix + own
    of_text = position + window * stride
    of_suffix = prefix + inside + position - prefix - own
    rank = torch.where(in_prefix, position, torch.where(in_text, of_text, of_suffix))
    exists = (position < prefix + own + suffix) & (rank < end - first)
    of_batch = torch.where(exists, first + rank, first)
    needed = window < number
    rows = torch.arange(len(attended), device=first.device)[:, None, None]

    column = torch.arange(columns, device=first.device)[None]
    first, inside, number = first[:, 0], inside[:, 0], number[:, 0]
    token = column - first - prefix  # its number between the special tokens
    reading = (token - overlap // 2).div(stride, rounding_mode="floor").clamp(min=0)
    reading = torch.where(token >= inside, number - 1, torch.minimum(reading, number - 1))
    reading = torch.where(token < 0, 0, reading)
    place = (column - first - reading * stride).clamp(0, length - 1)
    return Windows(of_batch, exists & attended[rows, of_batch], needed[..., 0], reading * length + place)


__all__ = ["Windows", "windows"]
