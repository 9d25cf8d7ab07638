"""Training throughput of the LSTM word encoder, against a bare PyTorch loop in the same run.

    python benchmarks/word_encoder.py --check

Ours is `WordEncoderModel` with mean-pooling and a linear head; the baseline is `nn.Embedding`, `nn.LSTM` and the same
head, as one writes them without transformers: reading to the right over the padded batch, or in both directions over
packed sequences. Same sizes, batches, dropout and optimizer, one step of each in turn. Of each step the median over rounds
counts; the throughput counts words, not padding. Exits 1 if a target is missed.
"""

import argparse
import time

import torch
from measuring import Row, compared, quiet, tell
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from hf_vat.models.attention import mean_pool
from hf_vat.models.configuration_word_encoder import WordEncoderConfig
from hf_vat.models.modeling_word_encoder import WordEncoderModel

TARGET = 0.9  # ours / baseline, in words per second
VOCABULARY, EMBEDDING, HIDDEN, CLASSES = 10_000, 300, 100, 6  # the VAT paper's LSTM, on TREC
BATCH, LONGEST = 64, 40


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of both (default: 7)")
    parser.add_argument("--steps", type=int, default=8, help="steps in a round (default: 8)")
    args = parser.parse_args()

    quiet()
    tell(rows(args.rounds, args.steps), args.check)


def rows(rounds: int = 7, steps: int = 8) -> list[Row]:
    batches = make_batches(steps)
    words = sum(int(mask.sum()) for _, mask, _ in batches)
    found = []
    for name, bidirectional in {"LSTM": False, "bidirectional LSTM": True}.items():
        models = [Ours(bidirectional).train(), Bare(bidirectional).train()]
        optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3) for model in models]
        for model, optimizer in zip(models, optimizers, strict=True):
            step_seconds(model, optimizer, batches[0])  # the first step allocates
        seconds = torch.zeros(len(models), rounds, steps, dtype=torch.float64)
        for number in range(rounds):
            for step, batch in enumerate(batches):
                for which, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
                    seconds[which, number, step] = step_seconds(model, optimizer, batch)
        against = "bare loop, packed" if bidirectional else "bare loop"
        found.append(compared(f"training: {name}", against, *seconds, TARGET, "at least", "words/s", words / steps))
    return found


class Ours(nn.Module):
    def __init__(self, bidirectional: bool):
        super().__init__()
        config = WordEncoderConfig(
            vocab_size=VOCABULARY, embedding_size=EMBEDDING, hidden_size=HIDDEN, bidirectional=bidirectional
        )
        self.encoder = WordEncoderModel(config)
        self.head = nn.Linear(HIDDEN, CLASSES)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.head(mean_pool(self.encoder(ids, attention_mask=mask).last_hidden_state, mask))


class Bare(nn.Module):
    def __init__(self, bidirectional: bool):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, EMBEDDING, padding_idx=0)
        self.dropout = nn.Dropout(0.5)
        width = HIDDEN // 2 if bidirectional else HIDDEN
        self.lstm = nn.LSTM(EMBEDDING, width, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(HIDDEN, CLASSES)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        words = self.dropout(self.embedding(ids))  # [B, T, E]
        if self.lstm.bidirectional:
            packed = pack_padded_sequence(words, mask.sum(1), batch_first=True, enforce_sorted=False)
            hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=ids.shape[1])
        else:
            hidden, _ = self.lstm(words)
        return self.head(mean_pool(hidden, mask))


def make_batches(number: int) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Ids, mask and labels of texts of 5 to 40 random words, padded on the right."""
    generator = torch.Generator().manual_seed(0)
    batches = []
    for _ in range(number):
        lengths = torch.randint(5, LONGEST + 1, (BATCH, 1), generator=generator)
        mask = torch.arange(int(lengths.max())) < lengths
        ids = torch.randint(1, VOCABULARY, mask.shape, generator=generator) * mask
        batches.append((ids, mask, torch.randint(CLASSES, (BATCH,), generator=generator)))
    return batches


def step_seconds(model: nn.Module, optimizer: torch.optim.Optimizer, batch) -> float:
    ids, mask, labels = batch
    started = time.perf_counter()
    nn.functional.cross_entropy(model(ids, mask), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
