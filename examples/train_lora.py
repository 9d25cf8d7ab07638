"""Fine-tune an encoder with LoRA: small matrices beside its weights, which stay; what is new is trained whole.

    python examples/train_lora.py --dataset_name SetFit/sst2 --output_dir runs/sst2-lora
    python examples/train_lora.py --model_name_or_path FacebookAI/roberta-base --train_file train.csv --output_dir runs/mine

Needs the extra lora. The folder holds the adapter, and in `merged/` the whole model, which `hf-vat explain --model` and all
else take like any other. `load_adapter` puts an adapter on its encoder again.
"""

from dataclasses import dataclass, field
from pathlib import Path

from transformers import AutoConfig, DataCollatorWithPadding, set_seed

from hf_vat.cli import parse_arguments, run
from hf_vat.data import DataArguments, load_text_classification
from hf_vat.errors import import_extra
from hf_vat.training import ModelArguments, VATTrainer, VATTrainingArguments, modules_to_save, show_epochs
from hf_vat.training.loading import load_model
from hf_vat.training.metrics import accuracy_and_macro_f1


@dataclass
class LoraArguments:
    rank: int = field(default=8, metadata={"help": "Rank of the matrices beside each weight."})
    lora_alpha: int = field(default=16, metadata={"help": "They count lora_alpha / rank times."})
    lora_dropout: float = field(default=0.1, metadata={"help": "Dropout before them."})


def main():
    model_args, data_args, args, lora_args = parse_arguments(
        (ModelArguments, DataArguments, VATTrainingArguments, LoraArguments),
        __doc__,
        per_device_train_batch_size=32,
        learning_rate=5e-4,  # ten times that of all weights
        warmup_steps=0.1,
        logging_steps=20,
        report_to="none",
    )
    peft = import_extra("peft", "lora")
    set_seed(args.seed)
    data = load_text_classification(data_args)
    tokenizer, model = load_model(model_args, data["train"], args.seed)
    settings = peft.LoraConfig(
        r=lora_args.rank,
        lora_alpha=lora_args.lora_alpha,
        lora_dropout=lora_args.lora_dropout,
        target_modules="all-linear",
        modules_to_save=modules_to_save(model),  # attention, bottleneck and heads begin at random
    )
    encoded = data.map(lambda rows: tokenizer(rows["text"], truncation=True), batched=True)
    trainer = VATTrainer(
        peft.get_peft_model(model, settings),
        args,
        DataCollatorWithPadding(tokenizer),
        encoded["train"],
        encoded.get("validation"),
        processing_class=tokenizer,
        compute_metrics=accuracy_and_macro_f1,
    )
    trainable, every = trainer.model.get_nb_trainable_parameters()
    print(f"{trainable:,} of {every:,} weights are trained")
    show_epochs(trainer)
    trainer.train(args.resume_from_checkpoint)
    trainer.save_model()
    if "test" in encoded:
        trainer.evaluate(encoded["test"], metric_key_prefix="test")  # prints the accuracy
    if args.push_to_hub:
        trainer.push_to_hub()
    for part in (trainer.model.merge_and_unload(), tokenizer):
        part.save_pretrained(Path(args.output_dir) / "merged")


def load_adapter(model, folder: str):
    """An adapter on the model that it was made for, which is built again with the same encoder and settings."""
    model.config.predict_from = AutoConfig.from_pretrained(folder).predict_from
    return import_extra("peft", "lora").PeftModel.from_pretrained(model, folder).eval()


if __name__ == "__main__":
    run(main)
