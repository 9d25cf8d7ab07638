"""Train a classifier that explains itself, as one trains anything with transformers: data set, tokenizer, model, Trainer.

    accelerate launch examples/train_vat.py --output_dir runs/sst2-vat
    accelerate launch --multi_gpu --num_processes 2 examples/train_vat.py --output_dir runs/sst2-vat
    python examples/train_vat.py --dataset_name my-folder --num_train_epochs 6 --output_dir runs/mine

Every option of VATTrainingArguments, which has those of TrainingArguments, is an option here. `hf-vat train` is the same with
files of any format, other encoders, resuming and a model card.
"""

from dataclasses import dataclass, field

from datasets import load_dataset
from transformers import AutoTokenizer, set_seed

from hf_vat import BertForVATClassification, VATTrainer, VATTrainingArguments
from hf_vat.cli import parse_arguments, run
from hf_vat.training import show_epochs


@dataclass
class Arguments:
    model_name_or_path: str = field(default="google-bert/bert-base-uncased", metadata={"help": "A BERT encoder."})
    dataset_name: str = field(default="SetFit/sst2", metadata={"help": "Hub id or folder; columns text and label."})


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    args, training_args = parse_arguments(
        (Arguments, VATTrainingArguments), __doc__, num_train_epochs=6, eval_strategy="epoch", report_to="none"
    )
    set_seed(training_args.seed)
    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    data = load_dataset(args.dataset_name)
    data = data.map(lambda rows: tokenizer(rows["text"], truncation=True, max_length=256), batched=True)
    num_labels = len(set(data["train"]["label"]))
    model = BertForVATClassification.from_pretrained(args.model_name_or_path, num_labels=num_labels)
    trainer = VATTrainer(
        model,
        training_args,
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        processing_class=tokenizer,
        compute_metrics=accuracy,
    )
    show_epochs(trainer)  # a line for each epoch, with its phase
    trainer.train()
    trainer.save_model()
    trainer.evaluate(data["test"], metric_key_prefix="test")


if __name__ == "__main__":
    run(main)
