"""Fine-tune a classifier that explains itself, with attention (VAT) or a mask on its words (VMASK), and save it.

    hf-vat train --dataset_name SetFit/sst2 --output_dir runs/sst2-vat
    torchrun --nproc_per_node 2 -m hf_vat.commands train --train_file train.csv --test_file test.csv --output_dir runs/mine

Phases, β and rates are by default those of the encoder's recipe, chosen on validation data (docs/schedules.md, docs/heads): a
pretrained encoder begins with the compressor; `--start joint --start_epochs 2` has one. `--bottleneck none` trains BERT-ATT, with `--pooling first`
BERT-base. After an interruption `--resume_from_checkpoint last` goes on where the run stopped.

`--mask_type vmask` trains a mask on the words, on a plain encoder, on a word encoder, or as in the paper on a classifier
that was fine-tuned before, whose encoder and head are kept; `hf-vat explain --method mask` shows it. The weight of the
mask's term may go down from epoch to epoch. Left at 1 it keeps all masks close to one half:

    hf-vat train --paper_dataset trec --bottleneck none --pooling first --output_dir runs/trec-base
    hf-vat train --paper_dataset trec --model_name_or_path runs/trec-base --mask_type vmask \
        --mask_beta_start 1 --mask_beta_end 0.01 --output_dir runs/trec-vmask

`--mask_type l2x` and `iba` are its competitors, `none` with `--weight_decay 1e-3` its baseline.

`--paper_dataset trec` is a data set of the papers with their splits. `--streaming` reads a training file of any length in
constant memory (validation and test files are read whole):

    hf-vat train --train_file huge.csv --streaming --max_steps 12000 --eval_strategy no --load_best_model_at_end False \
        --output_dir runs/huge

Then `--num_train_epochs` says into how many epochs the steps are divided, and phases go by these, so make the steps a
multiple of the epochs. Rows are shuffled within
1,000 neighbours: shuffle a file that is sorted by label beforehand.

The folder holds a model card, README.md, for which the faithfulness of the model's explanations is measured on
`--card_texts` test texts. It shows `--card_examples` of them, by default none of local files, which may be private. A
README.md that someone has edited is kept.
"""

from hf_vat.cli import given_options, output_folder, parse_arguments
from hf_vat.data import DataArguments
from hf_vat.hub import CardArguments, ModelCardCallback
from hf_vat.models.problems import REGRESSION
from hf_vat.options import refuse_without_effect, settings_of
from hf_vat.training import ModelArguments, VATTrainingArguments, recipe_defaults, train_classifier

ARGUMENTS = (ModelArguments, DataArguments, VATTrainingArguments, CardArguments)
DEFAULTS = {
    "eval_strategy": "epoch",
    "save_strategy": "epoch",
    "load_best_model_at_end": True,
    "metric_for_best_model": "accuracy",
    "logging_steps": 20,
    "save_total_limit": 2,
    "report_to": "none",
}


def main():
    # The defaults are those of the encoder's recipe; --help shows a pretrained encoder's.
    model_args, data_args, *_ = parse_arguments(ARGUMENTS, __doc__, **DEFAULTS, **recipe_defaults(ModelArguments()))
    defaults = DEFAULTS | recipe_defaults(model_args, data_args.streaming)
    if data_args.problem_type == REGRESSION:
        defaults["metric_for_best_model"] = "rmse"
    model_args, data_args, training_args, card_args = parse_arguments(ARGUMENTS, __doc__, **defaults)
    given = given_options(ARGUMENTS)
    refuse_without_effect("train", given, settings_of(model_args, data_args, training_args, card_args))
    card = ModelCardCallback(
        card_args.card_texts,
        card_args.card_examples,
        license=card_args.card_license,
        language=card_args.card_language,
    )
    output_folder("--output_dir", training_args.output_dir)
    trainer = train_classifier(model_args, data_args, training_args, callbacks=[card], given=given)
    if trainer.is_world_process_zero():
        print(f"Saved in {training_args.output_dir}")
