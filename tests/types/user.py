"""A user's script. It is not run: `make types` asks mypy whether it infers these types."""

from typing import assert_type

from transformers import AutoTokenizer

import hf_vat
from hf_vat import BertForVATClassification, Explanation, Faithfulness, VATTrainer, VATTrainingArguments, explain
from hf_vat.faithfulness import FaithfulnessResult

tokenizer = AutoTokenizer.from_pretrained("google-bert/bert-base-uncased")
model = BertForVATClassification.from_pretrained("google-bert/bert-base-uncased", num_labels=2)
trainer = VATTrainer(model, VATTrainingArguments("runs/mine", compress_epochs=2))
explanations = explain(model, tokenizer, ["A warm, funny film."], labels=[1])
result = Faithfulness(model, tokenizer, explanations).measure(explanations)

assert_type(trainer, VATTrainer)
assert_type(trainer.args, VATTrainingArguments)
assert_type(explanations, list[Explanation])
assert_type(explanations[0].scores, list[float])
assert_type(result, FaithfulnessResult)
assert_type(result.scores, dict[str, float])
assert_type(hf_vat.training.VATTrainer(model), VATTrainer)
assert_type(hf_vat.explanations.load_explanations("explanations.jsonl"), list[Explanation])
