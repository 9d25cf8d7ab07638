"""Which words matter to a classifier over all texts of a file or data set; the same as `hf-vat words`.

python examples/words.py --model runs/trec-vmask --paper_dataset trec --min_count 5 --output_dir runs/words
"""

from hf_vat.cli import run
from hf_vat.commands.words import main

if __name__ == "__main__":
    run(main)
