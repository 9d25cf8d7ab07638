"""Show which words decided, for texts on the command line or in a file; the same as `hf-vat explain`.

python examples/explain.py --model runs/quickstart/VAT --text "A warm, funny and beautifully acted film."
python examples/explain.py --model runs/mine --method lime --test_file reviews.csv --html explanations.html
"""

from hf_vat.cli import run
from hf_vat.commands.explain import main

if __name__ == "__main__":
    run(main)
