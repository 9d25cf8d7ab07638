"""A trainer on tiny models of whichever file asks for it: its own fixture `make_model` decides."""

import numpy as np
import pytest
from transformers import DataCollatorWithPadding, TrainerCallback, set_seed

from hf_vat.training import VATTrainer, VATTrainingArguments


@pytest.fixture
def plain_accuracy():
    """The function of the Hugging Face course, as it is."""

    def compute_metrics(eval_pred):
        logits, labels = eval_pred
        return {"accuracy": (np.argmax(logits, axis=-1) == labels).mean()}

    return compute_metrics


@pytest.fixture
def make_trainer(make_model, make_dataset, tokenizer, plain_accuracy, tmp_path):
    """Four epochs of four steps, with a model or with that which `make_model` makes of the arguments in front."""

    def make(*which, size=32, model=None, eval_dataset=None, callbacks=None, folder="run", seed=0, **settings):
        settings = {
            "num_train_epochs": 4,
            "start_epochs": 1,
            **{"start": "joint", "compress_epochs": 1, "learn_epochs": 1},
            "per_device_train_batch_size": 8,
            "learning_rate": 1e-3,
            "compressor_learning_rate": 1e-2,
            "logging_steps": 1,
            "use_cpu": True,
            "report_to": "none",
            "disable_tqdm": True,
            "save_strategy": "no",
        } | settings
        set_seed(seed)
        return VATTrainer(
            make_model(*which) if model is None else model,
            VATTrainingArguments(str(tmp_path / folder), **settings),
            train_dataset=make_dataset(size),
            eval_dataset=make_dataset(10, seed=1) if eval_dataset is None else eval_dataset,
            data_collator=DataCollatorWithPadding(tokenizer),
            processing_class=tokenizer,
            compute_metrics=plain_accuracy,
            callbacks=callbacks,
        )

    return make


class _StopAt(TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            control.should_save = control.should_training_stop = True


@pytest.fixture
def stop_at():
    """A callback that saves and stops at a step."""
    return _StopAt
