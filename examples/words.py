"""Which words does a classifier let through? The learned mask of VMASK over a corpus, as a table and a picture.

    hf-vat train --dataset_name SetFit/sst2 --word_encoder cnn --mask_type vmask \
        --mask_beta_start 1 --mask_beta_end 0.01 --output_dir runs/sst2-vmask
    python examples/words.py --model runs/sst2-vmask --dataset_name SetFit/sst2

Needs the extras explain and viz.
"""

from dataclasses import dataclass, field

from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_vat.cli import parse_arguments, run
from hf_vat.explanations import mask_importance
from hf_vat.faithfulness import frequency_correlation
from hf_vat.report import word_bars


@dataclass
class Arguments:
    model: str = field(default="runs/sst2-vmask", metadata={"help": "A classifier with a word mask."})
    dataset_name: str = field(default="SetFit/sst2", metadata={"help": "Hub id or folder; its column `text` is read."})
    min_count: int = field(default=5, metadata={"help": "How often a word must occur; rare ones were hardly trained."})
    picture: str = field(default="words.png", metadata={"help": "File for the picture."})


def main():
    (args,) = parse_arguments((Arguments,), __doc__)
    model = AutoModelForSequenceClassification.from_pretrained(args.model)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    texts = load_dataset(args.dataset_name, split="train")["text"][:]
    words = mask_importance(model, tokenizer, texts, min_count=args.min_count)
    for row in words.top(10):
        print(f"{row.importance:.3f}  {row.word}  ({row.count} times in {row.texts} texts)")
    found = frequency_correlation([row.count for row in words], [row.importance for row in words]).spearman
    print(f"Importance and frequency: Spearman {found.value:.2f} [{found.low:.2f}, {found.high:.2f}]")
    word_bars({args.model: words.top(10)}, args.picture)
    print(f"Picture: {args.picture}")


if __name__ == "__main__":
    run(main)
