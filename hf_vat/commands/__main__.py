"""`torchrun -m hf_vat.commands train …`: several processes cannot start the console script."""

from . import main

main()
