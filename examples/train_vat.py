"""Fine-tune a BERT classifier with attention that is trained to explain (VAT); the same as `hf-vat train`.

python examples/train_vat.py --dataset_name SetFit/sst2 --output_dir runs/sst2-vat
torchrun --nproc_per_node 2 examples/train_vat.py --train_file train.csv --test_file test.csv --output_dir runs/mine
"""

from hf_vat.cli import run
from hf_vat.commands.train import main

if __name__ == "__main__":
    run(main)
