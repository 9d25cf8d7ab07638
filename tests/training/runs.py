"""What tests of training share: records, weights, models of a few numbers, and trainings in processes of their own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import DataCollatorWithPadding, EarlyStoppingCallback, TrainerCallback, set_seed

import hf_vat
from hf_vat import BertForVATClassification, BertVMaskConfig, BertWithVMask
from hf_vat.cli import run
from hf_vat.metrics import load
from hf_vat.training import VATTrainer, VATTrainingArguments

WORDS = {"positive": ["good", "great", "superb", "lovely"], "negative": ["bad", "awful", "boring", "dull"]}
SMALL = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 32,
}  # fmt: skip
EACH_EPOCH = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}


def records(trainer, kind: str = "loss") -> list[dict]:
    """The records of its log that have such a number."""
    return [record for record in trainer.state.log_history if kind in record]


def assert_same_weights(one, other) -> None:
    """To the bit; parameters and buffers."""
    expected, found = one.state_dict(), other.state_dict()
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


class StopAt(TrainerCallback):
    """Saves and stops at a step."""

    def __init__(self, step: int = 2):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            control.should_save = control.should_training_stop = True


class PressCtrlC(TrainerCallback):
    """Before the step that comes after so many."""

    def __init__(self, steps: int):
        self.steps = steps

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == self.steps:
            signal.raise_signal(signal.SIGINT)


class Poison(TrainerCallback):
    """Makes a parameter NaN before the sixth step."""

    def __init__(self, name: str):
        self.name = name

    def on_step_begin(self, args, state, control, model=None, **kwargs):
        if state.global_step == 5:
            model.get_parameter(self.name).data.fill_(float("nan"))


def broken_and_unbroken(make, stop) -> tuple:
    """Two trained trainers: of a run in one go, and of one that was stopped and resumed.

    Args:
        make: gives a trainer by folder and further settings.
        stop: the callback that stops.
    """
    unbroken = make(folder="unbroken")
    unbroken.train()
    make(folder="broken", callbacks=[stop]).train()
    resumed = make(folder="broken", seed=99)
    resumed.train(resume_from_checkpoint=True)
    return resumed, unbroken


# Several processes


def launch(script: str, processes: int, output: Path, *arguments: str) -> list[dict]:
    """Start a script as one process or several; gives what each wrote, `OUTPUT.RANK.json`."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(Path(hf_vat.__file__).parents[1]),
    }
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    command = [sys.executable, *(launcher if processes > 1 else []), script, str(output), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return [json.loads(Path(f"{output}.{rank}.json").read_text()) for rank in range(processes)]


def weights(output: Path, rank: int = 0) -> dict[str, torch.Tensor]:
    """What a process of this script has trained."""
    return load_file(f"{output}.{rank}.safetensors")


def tiny_data():
    """Tokenizer and maker of data sets, as the fixtures of the tests have them."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import conftest

    tokenizer = conftest.tokenizer._get_wrapped_function()()
    return tokenizer, conftest.make_dataset._get_wrapped_function()(tokenizer)


class _Sums(TrainerCallback):
    """Sums of all parameters at the end of each epoch."""

    def __init__(self):
        self.taken = []

    def on_epoch_end(self, args, state, control, model=None, **kwargs):
        self.taken.append([p.detach().double().sum().item() for p in model.parameters()])


def main():
    """One process of a training: `runs.py OUTPUT MODEL SETTINGS OTHERS`, the last three as JSON.

    MODEL has the settings of a word mask's model, or is null for VAT. OTHERS may have a `patience`, and a step at which to
    `stop` and to go on from with a new trainer.
    """
    output, model_settings, settings, others = sys.argv[1], *map(json.loads, sys.argv[2:])
    rank = os.environ.get("RANK", 0)
    tokenizer, make_dataset = tiny_data()
    aopc, calls, sums = load("aopc"), [], _Sums()

    def metric(prediction) -> dict:
        calls.append(1)
        probabilities = torch.tensor(prediction.predictions).softmax(-1).double().tolist()
        result = aopc.compute(
            predictions=probabilities,
            perturbed=[[row[::-1]] for row in probabilities],
            references=prediction.label_ids.tolist(),
            definition="prob_drop",
        )
        # worse each time, so that patience 1 stops after the second round, at the end of epoch 5 (F10)
        return {"prob_drop@1": result["prob_drop@1"] - len(calls)}

    def make_trainer(callbacks) -> VATTrainer:
        set_seed(0)
        if model_settings is None:
            import conftest

            model = BertForVATClassification(conftest.tiny_config(initializer_range=0.2))
        else:
            model = BertWithVMask(BertVMaskConfig(vocab_size=len(tokenizer), **model_settings))
        args = VATTrainingArguments(
            output, report_to="none", disable_tqdm=True, logging_steps=1, eval_strategy="epoch",
            per_device_train_batch_size=8 // int(os.environ.get("WORLD_SIZE", 1)), optim="sgd", max_grad_norm=0, **settings,
        )  # fmt: skip
        return VATTrainer(
            model,
            args,
            DataCollatorWithPadding(tokenizer),
            make_dataset(32),
            make_dataset(10, seed=1),
            tokenizer,
            compute_metrics=metric,
            callbacks=callbacks,
        )

    # draws differ between processes and splits of a batch: take the middle instead
    torch.rand_like = lambda tensor: torch.full_like(tensor, 0.5)
    torch.randn_like = lambda tensor, **kwargs: torch.zeros_like(tensor, **kwargs)
    if "stop" in others:
        make_trainer([StopAt(others["stop"])]).train()
    trainer = make_trainer([sums, *([EarlyStoppingCallback(others["patience"])] if "patience" in others else [])])
    trainer.train(resume_from_checkpoint="stop" in others)
    found = {
        "world_size": trainer.args.world_size,
        "step": trainer.state.global_step,
        "sums": sums.taken,
        "log": trainer.state.log_history[:-1],
    }
    Path(f"{output}.{rank}.json").write_text(json.dumps(found))
    save_file(trainer.model.state_dict(), f"{output}.{rank}.safetensors")


if __name__ == "__main__":
    run(main)
