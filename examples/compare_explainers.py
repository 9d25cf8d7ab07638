"""Compare explanation methods on one classifier and data set; the same as `hf-vat evaluate`.

python examples/compare_explainers.py --model runs/quickstart/VAT --methods attention integrated_gradients lime \
    --test_file test.csv --output_dir runs/comparison
"""

from hf_vat.cli import run
from hf_vat.commands.evaluate import main

if __name__ == "__main__":
    run(main)
