"""Reproduce tables and figures of a paper, beside its numbers; the same as `hf-vat reproduce`.

python examples/reproduce.py vat --table 2,3,4,6 --datasets trec --encoders lstm --seeds 3 --jobs 2
"""

from hf_vat.cli import run
from hf_vat.commands.reproduce import main

if __name__ == "__main__":
    run(main)
