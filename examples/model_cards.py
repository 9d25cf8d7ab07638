"""Keep the model cards of finished runs, with their images and without their models: how model_cards/ was made.

python examples/quickstart.py
python examples/model_cards.py --runs runs/quickstart/VAT
"""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from hf_vat.cli import output_folder, parse_arguments, run
from hf_vat.errors import InputError
from hf_vat.hub.card import CURVES_NAME, EXPLANATIONS_NAME, is_unedited


@dataclass
class ModelCardsArguments:
    runs: list[str] = field(metadata={"help": "Folders of training runs, such as runs/quickstart/VAT."})
    output_dir: str = field(default="model_cards", metadata={"help": "Folder that takes a folder for each card."})


def main():
    (args,) = parse_arguments((ModelCardsArguments,), __doc__)
    for source in (Path(name).resolve() for name in args.runs):
        card = source / "README.md"
        if not card.is_file() or not is_unedited(card):
            raise InputError(
                f"{card} is not there, or is no card as a run wrote it; give folders of runs that `hf-vat train` or the "
                "quickstart left."
            )
        folder = output_folder("--output_dir", str(Path(args.output_dir, "-".join(source.parts[-2:]))))
        for name in (card.name, EXPLANATIONS_NAME, CURVES_NAME):
            (folder / name).unlink(missing_ok=True)
            if (source / name).is_file():
                shutil.copyfile(source / name, folder / name)
        print(f"Card: {folder / card.name}")


if __name__ == "__main__":
    run(main)
