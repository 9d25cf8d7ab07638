"""How long the search for other attention takes, on an LSTM that is trained here.

    python benchmarks/adversarial.py --check
    python benchmarks/adversarial.py --dataset trec --data_dir ../shared/data

500 texts of at most 30 tokens of a test split, five adversaries and 500 steps each, as Jain and Wallace have them. The LSTM has
300 numbers for each word and is trained for a few epochs, which takes longer than the tests. Exits 1 if the search takes longer
than its target, or if a text's result depends on its batch.
"""

import argparse
import time

import torch
from measuring import Row, compared, quiet, tell
from torch.nn.utils.rnn import pad_sequence

from hf_vat import EncoderForVATClassification, EncoderVATConfig, WordEncoderConfig
from hf_vat.analysis import adversarial_attention
from hf_vat.data import load_paper_dataset
from hf_vat.data.offline import rotten_tomatoes
from hf_vat.data.vocabulary import train_word_tokenizer

TARGET, TOLERANCE = 300, 1e-5  # seconds; JSD of a text in another batch
TEXTS, LONGEST, AGAIN = 500, 30, 50
SIZE, BATCH, RATE = 300, 64, 1e-3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--dataset", help="one of the papers', such as trec or sst2 (default: Rotten Tomatoes)")
    parser.add_argument("--data_dir", help="folder with that data set (default: the Hub)")
    parser.add_argument("--epochs", type=int, default=3, help="of training (default: 3)")
    args = parser.parse_args()
    quiet()
    tell(rows(args.dataset, args.data_dir, args.epochs), args.check)


def rows(
    dataset: str | None = None, data_dir: str | None = None, epochs: int = 3, train_size: int = 6000, texts: int = TEXTS
) -> list[Row]:
    data = load_paper_dataset(dataset, data_dir) if dataset else rotten_tomatoes(train_size, 1, 1000)
    tokenizer = train_word_tokenizer(data["train"]["text"][:], "vat")
    model = train(data["train"], tokenizer, epochs)
    short = [text for text in data["test"]["text"][:] if len(tokenizer(text)["input_ids"]) <= LONGEST][:texts]
    started = time.perf_counter()
    found = adversarial_attention(model, tokenizer, short)
    seconds = time.perf_counter() - started
    again = adversarial_attention(model, tokenizer, short[:AGAIN], batch_size=7)
    apart = max(abs(one.jsd - other.jsd) for one, other in zip(again, found, strict=False))
    return [
        compared(f"search for other attention, {len(short)} texts", "what is allowed", [seconds], [TARGET], 1.0),
        compared("the same text in another batch: JSD", "what is allowed", [apart], [TOLERANCE], 1.0, unit="nats"),
    ]


def train(rows, tokenizer, epochs: int) -> EncoderForVATClassification:
    torch.manual_seed(0)
    encoder = WordEncoderConfig(
        vocab_size=len(tokenizer), embedding_size=SIZE, hidden_size=SIZE, bidirectional=True, dropout=0.3
    )
    config = EncoderVATConfig(
        encoder=encoder, pooling="attention", bottleneck="none", num_labels=rows.features["label"].num_classes
    )
    model = EncoderForVATClassification(config)
    ids = [torch.tensor(one) for one in tokenizer(rows["text"][:])["input_ids"]]
    labels = torch.tensor(rows["label"][:])
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    model.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(ids)).split(BATCH):
            some = [ids[row] for row in batch]
            masks = pad_sequence([torch.ones_like(one) for one in some], True)
            padded = pad_sequence(some, True, tokenizer.pad_token_id)
            model(input_ids=padded, attention_mask=masks, labels=labels[batch]).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return model.eval()


if __name__ == "__main__":
    main()
