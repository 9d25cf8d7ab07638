"""The files of examples/accelerate_configs, and processes that a launcher was asked for."""

import os
import sys
from pathlib import Path

import accelerate
import pytest
import torch
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.state import PartialState
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env
from runs import launch, tiny_data, weights
from safetensors.torch import save_file
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, set_seed

import hf_vat.training.arguments
from hf_vat import BertForVATClassification
from hf_vat.errors import InputError
from hf_vat.training import VATTrainer, VATTrainingArguments

CONFIGS = Path(__file__).parents[2] / "examples" / "accelerate_configs"
SHARDED = {"fsdp2": "FSDP", "deepspeed_zero2": "DEEPSPEED"}


def launcher(name: str, *options: str):
    """What `accelerate launch` makes of a file."""
    file = CONFIGS / f"{name}.yaml"
    return _validate_launch_command(
        launch_command_parser().parse_args(["--config_file", str(file), *options, "script.py"])
    )[0]


def environment(name: str, *options: str) -> dict[str, str]:
    """What it tells the processes of such a file."""
    args = launcher(name, *options)
    if args.use_deepspeed:
        args.deepspeed_fields_from_accelerate_config = ""
        return prepare_deepspeed_cmd_env(args)[1]
    return prepare_multi_gpu_env(args)


@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIGS.iterdir()))
def test_every_file_asks_for_two_processes_by_a_launcher_that_starts_them(name):
    args = launcher(name)
    assert args.num_processes == 2 and args.num_machines == 1
    assert args.multi_gpu or args.use_fsdp or args.use_deepspeed  # else accelerate starts one process, and says nothing
    assert environment(name)["ACCELERATE_MIXED_PRECISION"] == ("no" if name == "multi_cpu" else "bf16")


@pytest.mark.parametrize("name", SHARDED)
def test_c88_parameters_in_shares_are_refused_for_a_model_of_phases(make_trainer, monkeypatch, name):
    """The environment is that of the file; what accelerate makes of it on GPUs is played."""
    told = environment(name)
    prepare = VATTrainer.create_accelerator_and_postprocess

    def pretend(self):
        prepare(self)
        self.is_fsdp_enabled = told.get("ACCELERATE_USE_FSDP") == "true"
        self.is_deepspeed_enabled = told.get("ACCELERATE_USE_DEEPSPEED") == "true"

    monkeypatch.setattr(VATTrainer, "create_accelerator_and_postprocess", pretend)
    with pytest.raises(InputError, match=f'(?i:{SHARDED[name]}) cannot keep still .* bottleneck="none"'):
        make_trainer("vat")
    make_trainer("att")


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"WORLD_SIZE": "2"}, "2 processes were started, but each is about to run alone"),
        (
            {"ACCELERATE_MIXED_PRECISION": "no", "MASTER_ADDR": "127.0.0.1"},
            "asked for several processes and has started one",
        ),
    ],
)
def test_c87_fewer_processes_than_the_launcher_was_asked_for_are_refused(monkeypatch, tmp_path, told, named):
    arguments = {"use_cpu": True, "report_to": "none"}
    monkeypatch.setattr(VATTrainingArguments, "world_size", 1)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(VATTrainingArguments, "_setup_devices", torch.device("cpu"))  # which would meet the other one
    with pytest.raises(InputError, match=named):
        VATTrainingArguments(str(tmp_path), **arguments)


@pytest.mark.parametrize("name", SHARDED)
def test_parameters_in_shares_are_refused_on_cpus(monkeypatch, tmp_path, name):
    """accelerate would leave FSDP and DeepSpeed out there, without a word."""
    key = f"ACCELERATE_USE_{SHARDED[name]}"
    monkeypatch.setenv(key, environment(name)[key])
    with pytest.raises(InputError, match=f"(?i:asked for {SHARDED[name]}), which accelerate leaves out on CPUs"):
        VATTrainingArguments(str(tmp_path), use_cpu=True, report_to="none")


# FSDP over gloo


def main():
    """One process of a training: `python test_launching.py OUTPUT`; under FSDP if there are several."""
    output, processes = sys.argv[1], int(os.environ.get("WORLD_SIZE", 1))
    if processes > 1:  # accelerate has FSDP for accelerators only; torch for CPUs too
        torch.distributed.init_process_group("gloo")
        PartialState._prepare_backend = lambda *_: ("gloo", accelerate.DistributedType.MULTI_GPU)
        PartialState.set_device = lambda self: setattr(self, "device", torch.device("cpu"))
        hf_vat.training.arguments.refuse_shares_on_cpus = lambda: None
    tokenizer, make_dataset = tiny_data()
    import conftest

    set_seed(0)
    model = BertForVATClassification(conftest.tiny_config(initializer_range=0.2, bottleneck="none"))
    args = VATTrainingArguments(
        output, report_to="none", disable_tqdm=True, per_device_train_batch_size=8 // processes, num_train_epochs=2,
        optim="sgd", max_grad_norm=0, learning_rate=1e-1, compressor_learning_rate=1e-1, save_strategy="no",
    )  # fmt: skip
    trainer = VATTrainer(model, args, DataCollatorWithPadding(tokenizer), make_dataset(32), processing_class=tokenizer)
    trainer.train()
    assert trainer.is_fsdp_enabled == (processes > 1)
    trainer.save_model()
    rank = os.environ.get("RANK", 0)
    Path(f"{output}.{rank}.json").write_text(str(args.world_size))
    if processes == 1:
        save_file(model.state_dict(), f"{output}.0.safetensors")
    else:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_fsdp_over_gloo_agrees_with_one_process_and_saves_a_folder_as_any_other(tmp_path, monkeypatch):
    launch(__file__, 1, tmp_path / "one")
    for name, value in environment("fsdp2", "--mixed_precision", "no").items():
        if name.startswith(("ACCELERATE_", "FSDP_")):
            monkeypatch.setenv(name, value)
    assert launch(__file__, 2, tmp_path / "two") == [2, 2]
    files = [{path.name for path in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert files[0] == files[1]
    assert (tmp_path / "one" / "config.json").read_text() == (tmp_path / "two" / "config.json").read_text()
    found = AutoModelForSequenceClassification.from_pretrained(tmp_path / "two").state_dict()
    for name, tensor in weights(tmp_path / "one").items():
        torch.testing.assert_close(found[name], tensor, atol=1e-5, rtol=0, msg=name)


if __name__ == "__main__":
    main()
