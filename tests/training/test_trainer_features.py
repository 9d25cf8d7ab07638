"""
A walk over all that a Trainer has: its constructor's arguments, the fields of TrainingArguments, its public methods and its
callbacks' events. For each there is a decision, and `python tests/training/test_trainer_features.py` counts them:

- equal: with a model without a bottleneck VATTrainer gives the stock Trainer's weights to the bit (methods: its result),
- refused: with an InputError at construction,
- without effect on weights, or not here, with the reason.

What a new version of transformers brings has no decision, and fails the test until someone makes one.
"""

import dataclasses
import gc
import inspect
import json
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from runs import StopAt
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_utils import SchedulerType
from transformers.training_args import OptimizerNames

from hf_vat import BertForVATClassification, BertVATConfig
from hf_vat.errors import InputError
from hf_vat.training import VATTrainer, VATTrainingArguments

EACH_EPOCH = {"eval_strategy": "epoch"}
KEPT = {"eval_strategy": "epoch", "save_strategy": "epoch"}
COMPILED = {"torch_compile": True, "torch_compile_backend": "eager"}  # the other backends compile for half a minute
WORKER = {"dataloader_num_workers": 1}


@dataclasses.dataclass(frozen=True)
class Decision:
    kind: str
    value: object = None
    reason: str = ""
    others: dict = dataclasses.field(default_factory=dict)
    moves: bool = False  # whether the value gives other weights than the default


def equal(value, moves: bool = False, **others) -> Decision:
    return Decision("equal", value, others=others, moves=moves)


def refused(value, reason: str, **others) -> Decision:
    return Decision("refused", value, reason, others)


moving = partial(equal, moves=True)
without_effect = partial(Decision, "without effect", None)
not_here = partial(Decision, "not here", None)

OF_THE_HUB = without_effect("what is sent to the Hub, and to whom; tests/hub pushes")
OF_TRACKERS = without_effect("a name for services that log; none is installed here")
OF_SCRIPTS = without_effect("read by command lines alone, not by the Trainer")
OF_LAUNCHERS = (
    "read only with several devices; with phases VATTrainer refuses it (test_f03_flat_parameters_are_refused)"
)

FIELDS = {
    "output_dir": without_effect("where files go; every run here has a folder of its own"),
    "per_device_train_batch_size": moving(2),
    "num_train_epochs": moving(1),
    "max_steps": moving(4),
    "learning_rate": moving(5e-3),
    "lr_scheduler_type": moving("cosine"),
    "lr_scheduler_kwargs": moving({"num_cycles": 2}, lr_scheduler_type="cosine_with_restarts"),
    "warmup_steps": moving(0.5),
    "optim": moving("sgd"),
    "optim_args": not_here("the optimizers that read it come with packages that are not installed"),
    "weight_decay": moving(0.1),
    "adam_beta1": moving(0.5),
    "adam_beta2": moving(0.9),
    "adam_epsilon": moving(1e-3),
    "optim_target_modules": not_here("GaLore and APOLLO, which read it, are not installed"),
    "gradient_accumulation_steps": moving(2),
    "average_tokens_across_devices": equal(False),
    "max_grad_norm": moving(0.01, optim="sgd"),
    "label_smoothing_factor": moving(0.2),
    "bf16": moving(True),
    "fp16": not_here("needs a GPU"),
    "bf16_full_eval": equal(True, **EACH_EPOCH),
    "fp16_full_eval": equal(True, **EACH_EPOCH),
    "tf32": not_here("needs a GPU"),
    "activation_checkpointing": equal(True),
    "activation_checkpointing_kwargs": equal({"use_reentrant": False}, activation_checkpointing=True),
    "gradient_checkpointing": equal(True),
    "gradient_checkpointing_kwargs": equal({"use_reentrant": False}, gradient_checkpointing=True),
    "torch_compile": equal(True, torch_compile_backend="eager"),
    "torch_compile_backend": equal("eager", torch_compile=True),
    "torch_compile_mode": equal("default", **COMPILED),
    "use_liger_kernel": not_here("needs a GPU, and kernels for a model's type, which ours have not"),
    "liger_kernel_config": not_here("needs a GPU, and kernels for a model's type, which ours have not"),
    "use_cache": equal(True),
    "neftune_noise_alpha": moving(5.0),
    "torch_empty_cache_steps": equal(1),
    "auto_find_batch_size": equal(True),
    "logging_strategy": equal("epoch"),
    "logging_steps": equal(2),
    "logging_first_step": equal(True),
    "log_on_each_node": equal(False),
    "logging_nan_inf_filter": equal(True),
    "include_num_input_tokens_seen": equal("all"),
    "log_level": equal("error"),
    "log_level_replica": equal("error"),
    "disable_tqdm": equal(False),
    "eval_strategy": equal("epoch"),
    "eval_steps": equal(2, eval_strategy="steps"),
    "eval_delay": equal(1, **EACH_EPOCH),
    "per_device_eval_batch_size": equal(2, **EACH_EPOCH),
    "prediction_loss_only": equal(True, **EACH_EPOCH),
    "eval_on_start": equal(True, **EACH_EPOCH),
    "eval_do_concat_batches": equal(False, **EACH_EPOCH),
    "eval_use_gather_object": equal(True, **EACH_EPOCH),
    "eval_accumulation_steps": equal(1, **EACH_EPOCH),
    "include_for_metrics": equal(["inputs", "loss"], **EACH_EPOCH),
    "batch_eval_metrics": equal(True, **EACH_EPOCH),
    "save_only_model": equal(True, save_strategy="epoch"),
    "save_strategy": equal("best", **EACH_EPOCH, metric_for_best_model="loss"),
    "save_steps": equal(2, save_strategy="steps"),
    "save_on_each_node": equal(True, save_strategy="epoch"),
    "save_total_limit": equal(1, save_strategy="epoch"),
    "enable_jit_checkpoint": equal(True),
    "hub_strategy": refused("checkpoint", "would push optimizer states and pickles; use 'end'", push_to_hub=True),
    "load_best_model_at_end": moving(True, **KEPT, metric_for_best_model="first"),
    "metric_for_best_model": moving("first", **KEPT, load_best_model_at_end=True),
    "greater_is_better": moving(False, **KEPT, load_best_model_at_end=True, metric_for_best_model="last"),
    "ignore_data_skip": moving(True, resume=True),
    "restore_callback_states_from_checkpoint": equal(True, resume=True),
    "full_determinism": equal(True),
    "seed": moving(7),
    "data_seed": moving(7),
    "use_cpu": equal(True),
    "accelerator_config": moving({"use_seedable_sampler": False}),
    "dataloader_drop_last": moving(True),
    "dataloader_num_workers": equal(1),
    "dataloader_pin_memory": equal(False),
    "dataloader_persistent_workers": equal(True, **WORKER),
    "dataloader_prefetch_factor": equal(3, **WORKER),
    "dataloader_multiprocessing_context": equal("fork", **WORKER),
    "dataloader_in_order": equal(False, **WORKER),
    "remove_unused_columns": equal(False),
    "label_names": refused(["negative", "positive"], "leave it out. Classes get names by the model's id2label"),
    "train_sampling_strategy": moving("group_by_length"),
    "length_column_name": moving("size", train_sampling_strategy="group_by_length"),
    "ddp_find_unused_parameters": equal(False),
    "ddp_bucket_cap_mb": equal(1),
    "ddp_broadcast_buffers": equal(False),
    "ddp_static_graph": equal(True),
    "ddp_backend": not_here("read only with several processes, in tests/training/test_trainer.py"),
    "ddp_timeout": equal(60),
    "debug": not_here("the tool of transformers cannot read masks that are true or false, in the stock Trainer either"),
    "skip_memory_metrics": equal(False),
    **dict.fromkeys(
        ("push_to_hub", "hub_token", "hub_private_repo", "hub_model_id", "hub_always_push", "hub_revision"), OF_THE_HUB
    ),
    **dict.fromkeys(
        ("report_to", "run_name", "project", "trackio_space_id", "trackio_bucket_id", "trackio_static_space_id"),
        OF_TRACKERS,
    ),
    **dict.fromkeys(("do_train", "do_eval", "do_predict", "resume_from_checkpoint", "local_rank"), OF_SCRIPTS),
    **dict.fromkeys(("parallelism_config", "fsdp", "fsdp_config", "deepspeed"), not_here(OF_LAUNCHERS)),
}

_INSTALL = "comes with a package that is not installed"
OPTIMIZERS = {name.value: not_here(_INSTALL) for name in OptimizerNames} | {
    name: moving(name) for name in ("adafactor", "sgd", "adagrad", "rmsprop")
}
OPTIMIZERS |= {name: equal(name) for name in ("adamw_torch", "adamw_torch_fused")}
OPTIMIZERS |= {name: not_here("needs another device") for name in ("adamw_torch_xla", "adamw_torch_npu_fused")}
OPTIMIZERS |= {
    name: refused(name, "has one learning rate for all parameters", compressor_learning_rate=0.1)
    for name in ("lomo", "adalomo", *(name.value for name in OptimizerNames if name.endswith("layerwise")))
}

SCHEDULERS = {name.value: moving(name.value, warmup_steps=2) for name in SchedulerType} | {
    "linear": moving("linear", warmup_steps=2),
    "reduce_lr_on_plateau": moving("reduce_lr_on_plateau", **EACH_EPOCH, metric_for_best_model="loss"),
    "greedy": moving("greedy", **EACH_EPOCH, metric_for_best_model="loss"),
    "cosine_with_min_lr": moving("cosine_with_min_lr", lr_scheduler_kwargs={"min_lr": 1e-4}),
    "cosine_warmup_with_min_lr": moving("cosine_warmup_with_min_lr", lr_scheduler_kwargs={"min_lr": 1e-4}),
    "warmup_stable_decay": moving("warmup_stable_decay", lr_scheduler_kwargs={"num_decay_steps": 2}),
}


def rows(size: int = 8, seed: int = 0) -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    texts = [
        [2, *torch.randint(5, 30, (int(torch.randint(1, 9, (), generator=generator)),), generator=generator), 3]
        for _ in range(size)
    ]
    ids = [[int(token) for token in text] for text in texts]
    return Dataset.from_dict({"input_ids": ids, "labels": [row % 2 for row in range(size)]})


def model(**settings) -> BertForVATClassification:
    with torch.random.fork_rng():
        set_seed(0)
        return BertForVATClassification(
            BertVATConfig(
                **{"vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
                | {"intermediate_size": 8, "max_position_embeddings": 16, "initializer_range": 0.2, "num_labels": 2}
                | {"bottleneck": "none"}
                | settings
            )
        )


class Metrics:
    """The first evaluation has the best `first`, the last one the lowest `last`."""

    def __init__(self):
        self.calls = 0

    def __call__(self, prediction, compute_result=True):
        self.calls += compute_result
        return {"first": -self.calls, "last": self.calls}


class Events(TrainerCallback):
    """Which events there were, in their order."""

    def __init__(self):
        self.seen = []

    def __getattribute__(self, name):
        if name.startswith("on_"):
            return lambda *args, **kwargs: self.seen.append(name)
        return super().__getattribute__(name)


def trainer_of(cls, folder, settings: dict, **arguments):
    args_class = VATTrainingArguments if cls is VATTrainer else TrainingArguments
    settings = {
        **{"num_train_epochs": 2, "per_device_train_batch_size": 3, "learning_rate": 1e-2, "use_cpu": True},
        **{"report_to": "none", "disable_tqdm": True, "save_strategy": "no", "logging_steps": 1},
        **{"lr_scheduler_type": "linear", "warmup_steps": 0},
    } | settings
    if cls is VATTrainer:
        settings = {"compressor_learning_rate": settings["learning_rate"]} | settings
    data = rows()
    if "length_column_name" in settings:
        data = data.add_column("size", list(range(len(data))))
    arguments = {
        "train_dataset": data,
        "eval_dataset": rows(5, seed=1),
        "data_collator": pad,
        "compute_metrics": Metrics(),
    } | arguments
    set_seed(settings.get("seed", 0))
    if "model_init" not in arguments:
        arguments = {"model": model()} | arguments
    return cls(args=args_class(str(folder / cls.__name__), **settings), **arguments)


def pad(batch: list[dict]) -> dict:
    """Padded ids, their mask and labels."""
    longest = max(len(row["input_ids"]) for row in batch)
    ids = torch.tensor([row["input_ids"] + [0] * (longest - len(row["input_ids"])) for row in batch])
    return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.tensor([r["labels"] for r in batch])}


def weights_after(cls, folder, settings: dict, **arguments) -> dict[str, torch.Tensor]:
    settings = dict(settings)
    if settings.pop("resume", False):
        trainer_of(cls, folder, settings, callbacks=[StopAt()]).train()
        trainer = trainer_of(cls, folder, settings, **arguments)
        trainer.train(resume_from_checkpoint=True)
    else:
        trainer = trainer_of(cls, folder, settings, **arguments)
        trainer.train()
    return {name: value.detach().clone() for name, value in trainer.model.state_dict().items()}


def assert_decided(names, decisions: dict, what: str) -> None:
    missing, gone = sorted(set(names) - set(decisions)), sorted(set(decisions) - set(names))
    assert not missing, (
        f"transformers has {what} that nobody has decided about: {', '.join(missing)}. Try each with VATTrainer, mend or "
        "refuse what differs from the stock Trainer, and enter the decision here."
    )
    assert not gone, f"{what} that this version of transformers has no more: {', '.join(gone)}"


def assert_holds(decision: Decision, name: str, folder, default: dict, **arguments) -> None:
    settings = {**decision.others, **({} if name is None else {name: decision.value})}
    if decision.kind == "refused":
        with pytest.raises(InputError, match=decision.reason):
            trainer_of(VATTrainer, folder, settings, **arguments)
        return
    stock = weights_after(Trainer, folder, settings, **arguments)
    ours = weights_after(VATTrainer, folder, settings, **arguments)
    assert not same(stock, model().state_dict()), "nothing was trained"
    assert same(stock, ours), f"{name}={decision.value} gives other weights than the stock Trainer"
    if decision.moves:
        assert not same(default, ours), f"{name}={decision.value} changes nothing, so the test shows nothing"


def same(first: dict, second: dict) -> bool:
    return first.keys() == second.keys() and all(torch.equal(value, second[name]) for name, value in first.items())


@pytest.fixture(scope="module", autouse=True)
def little_to_collect():
    """Each training collects garbage among all objects of the process; these here are all that it shall look through."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def default(tmp_path_factory):
    return weights_after(VATTrainer, tmp_path_factory.mktemp("default"), {})


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """Settings of the process that arguments change."""
    import signal

    from accelerate.state import AcceleratorState

    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    AcceleratorState._reset_state(True)
    yield
    AcceleratorState._reset_state(True)
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = False, False
    torch._dynamo.reset()
    signal.signal(signal.SIGTERM, handler)


def tried(decisions: dict) -> list[str]:
    return [name for name, decision in decisions.items() if decision.kind in ("equal", "refused")]


def test_every_field_has_a_decision():
    assert_decided([field.name for field in dataclasses.fields(TrainingArguments)], FIELDS, "training arguments")
    assert_decided([name.value for name in OptimizerNames], OPTIMIZERS, "optimizers")
    assert_decided([name.value for name in SchedulerType], SCHEDULERS, "schedulers")


@pytest.mark.parametrize("name", tried(FIELDS))
def test_fields(name, tmp_path, default):
    assert_holds(FIELDS[name], name, tmp_path, default)


@pytest.mark.parametrize("name", tried(OPTIMIZERS))
def test_optimizers(name, tmp_path, default):
    assert_holds(OPTIMIZERS[name], "optim", tmp_path, default)


@pytest.mark.parametrize("name", tried(SCHEDULERS))
def test_schedulers(name, tmp_path, default):
    assert_holds(SCHEDULERS[name], "lr_scheduler_type", tmp_path, default)


# Arguments of the constructor: what the value is made by


def _optimizers(cls, folder, settings):
    own = model()
    optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    return {"model": own, "optimizers": (optimizer, scheduler)}


class SignDescent:
    """An optimizer factory, as transformers takes those that need the whole model."""

    def __call__(self, whole, lr):
        return torch.optim.SGD([{"params": [p], "lr": lr} for p in whole.parameters()], maximize=False)


CONSTRUCTOR = {
    "model": equal(lambda: {"model": model(pooling="first")}, moves=True),
    "args": without_effect("the fields above"),
    "data_collator": equal(lambda: {"data_collator": lambda batch: pad(batch[::-1])}, moves=True),
    "train_dataset": equal(lambda: {"train_dataset": list(rows(6))}, moves=True),
    "eval_dataset": equal(lambda: {"eval_dataset": {"one": rows(3), "two": rows(4)}}, **EACH_EPOCH),
    "processing_class": without_effect("saved beside the model, and pads where no data_collator is given"),
    "model_init": equal(lambda: {"model_init": lambda: model()}, moves=True, label_smoothing_factor=0.4),
    "compute_loss_func": refused(
        lambda: {"compute_loss_func": lambda outputs, labels, num_items_in_batch: outputs.loss},
        "the settings class_weights and label_smoothing_factor",
    ),
    "compute_metrics": equal(lambda: {"compute_metrics": lambda prediction: {"size": 1.0}}, **EACH_EPOCH),
    "callbacks": equal(lambda: {"callbacks": [StopAt()]}, moves=True),
    "optimizers": equal(lambda: _optimizers(None, None, None), moves=True),
    "optimizer_cls_and_kwargs": equal(
        lambda: {"optimizer_cls_and_kwargs": (torch.optim.SGD, {"lr": 0.5, "momentum": 0.9})}, moves=True
    ),
    "preprocess_logits_for_metrics": equal(
        lambda: {"preprocess_logits_for_metrics": lambda logits, labels: logits.argmax(-1)}, **EACH_EPOCH
    ),
}


def test_every_constructor_argument_has_a_decision():
    names = list(inspect.signature(Trainer.__init__).parameters)[1:]
    assert_decided(names, CONSTRUCTOR, "constructor arguments")


@pytest.mark.parametrize("name", tried(CONSTRUCTOR))
def test_constructor_arguments(name, tmp_path, default):
    decision = CONSTRUCTOR[name]
    if decision.kind == "refused":
        with pytest.raises(InputError, match=decision.reason):
            trainer_of(VATTrainer, tmp_path, decision.others, **decision.value())
        return
    stock = weights_after(Trainer, tmp_path, decision.others, **decision.value())
    ours = weights_after(VATTrainer, tmp_path, decision.others, **decision.value())
    assert same(stock, ours)
    assert not (decision.moves and same(default, ours))


def test_a_factory_of_optimizers(tmp_path, default):
    factory = {"optimizer_cls_and_kwargs": (SignDescent, {"lr": 0.3})}
    ours = weights_after(VATTrainer, tmp_path, {}, **factory)
    assert same(weights_after(Trainer, tmp_path, {}, **factory), ours) and not same(ours, default)


# Public methods: what they give, before any training


def first_batch(trainer) -> dict:
    return dict(next(iter(trainer.get_train_dataloader())))


def of_names(metrics: dict) -> dict:
    """Those of ours beside them are left out, and times; ours are means over texts in double precision."""
    names = ("eval_loss", "eval_first", "eval_last", "test_loss", "test_first", "test_last")
    return {name: round(metrics[name], 5) for name in names if name in metrics}


def loss_of_step(trainer) -> torch.Tensor:
    trainer.create_optimizer()
    trainer.current_gradient_accumulation_steps = 1
    return trainer.training_step(trainer.model, first_batch(trainer))


def _with_optimizer(trainer):
    trainer.set_initial_training_values(trainer.args, trainer.get_train_dataloader())
    trainer.create_optimizer()
    return trainer


def learning_rates(trainer) -> set:
    trainer.set_initial_training_values(trainer.args, trainer.get_train_dataloader())
    trainer.create_optimizer_and_scheduler(10)
    return set(trainer.get_learning_rates())


OF_PARALLELISM = without_effect("sizes of groups of devices; not overridden")
OF_LOG_FILES = without_effect("writes files or lines; not overridden")
METHODS = {
    "add_callback": equal(lambda t: t.add_callback(StopAt) or type(t.pop_callback(StopAt)).__name__),
    "autocast_smart_context_manager": without_effect("a context without effect in transformers too; not overridden"),
    "call_model_init": without_effect("model_init above"),
    "compute_loss": equal(lambda t: t.compute_loss(t.model.eval(), first_batch(t)).item()),
    "compute_loss_context_manager": without_effect("not overridden"),
    "create_accelerator_and_postprocess": without_effect("called by the constructor; not overridden"),
    "create_model_card": without_effect("writes the card of hf_vat; tests/hub"),
    "create_optimizer": equal(lambda t: type(t.create_optimizer()).__name__),
    "create_optimizer_and_scheduler": equal(learning_rates),
    "create_scheduler": equal(learning_rates),
    "end": without_effect("ends processes; not overridden"),
    "evaluate": equal(lambda t: of_names(t.evaluate())),
    "evaluation_loop": equal(
        lambda t: t.evaluation_loop(
            t.get_eval_dataloader(), "evaluation", metric_key_prefix="test"
        ).predictions.tolist()
    ),
    "floating_point_ops": equal(lambda t: t.floating_point_ops(first_batch(t))),
    "get_batch_samples": equal(lambda t: len(t.get_batch_samples(iter([first_batch(t)] * 2), 2, "cpu")[0])),
    "get_decay_parameter_names": equal(lambda t: sorted(t.get_decay_parameter_names(t.model))),
    "get_eval_dataloader": equal(lambda t: [batch["labels"].tolist() for batch in t.get_eval_dataloader()]),
    "get_learning_rates": equal(lambda t: set(_with_optimizer(t).get_learning_rates())),
    "get_num_trainable_parameters": equal(lambda t: t.get_num_trainable_parameters()),
    "get_optimizer_cls_and_kwargs": equal(lambda t: str(t.get_optimizer_cls_and_kwargs(t.args))),
    "get_optimizer_group": equal(
        lambda t: sorted(p.numel() for group in _with_optimizer(t).get_optimizer_group() for p in group)
    ),
    "get_test_dataloader": equal(lambda t: [b["labels"].tolist() for b in t.get_test_dataloader(rows(4))]),
    "get_total_train_batch_size": equal(lambda t: t.get_total_train_batch_size(t.args)),
    "get_train_dataloader": equal(lambda t: [batch["labels"].tolist() for batch in t.get_train_dataloader()]),
    "hyperparameter_search": without_effect("test_f05_trials"),
    "init_hf_repo": OF_THE_HUB,
    "is_local_process_zero": equal(lambda t: t.is_local_process_zero()),
    "is_world_process_zero": equal(lambda t: t.is_world_process_zero()),
    "log": equal(lambda t: t.log({"note": 1.0}) or t.state.log_history),
    "num_examples": equal(lambda t: t.num_examples(t.get_train_dataloader())),
    "pop_callback": equal(lambda t: t.add_callback(StopAt) or type(t.pop_callback(StopAt)).__name__),
    "predict": equal(lambda t: t.predict(rows(4)).predictions.tolist()),
    "prediction_step": equal(lambda t: t.prediction_step(t.model, first_batch(t), True)[0].item()),
    "push_to_hub": OF_THE_HUB,
    "remove_callback": equal(lambda t: t.add_callback(StopAt) or t.remove_callback(StopAt)),
    "save_model": equal(lambda t: t.save_model() or same(t.model.state_dict(), _saved(t))),
    "set_initial_training_values": equal(lambda t: t.set_initial_training_values(t.args, t.get_train_dataloader())),
    "train": equal(lambda t: t.train(None, None, None).global_step),
    "training_step": equal(lambda t: loss_of_step(t).item()),
    **dict.fromkeys(("get_cp_size", "get_sp_size", "get_tp_size"), OF_PARALLELISM),
    "save_metrics": equal(lambda t: t.save_metrics("test", {"test_a": 1.5}) or _written(t, "all_results.json")),
    "save_state": equal(lambda t: t.save_state() or _written(t, "trainer_state.json")["global_step"]),
    **dict.fromkeys(("log_metrics", "metrics_format", "store_flos"), OF_LOG_FILES),
}


def _written(trainer, name: str) -> dict:
    return json.loads(Path(trainer.args.output_dir, name).read_text(encoding="utf-8"))


def _saved(trainer) -> dict:
    return BertForVATClassification.from_pretrained(trainer.args.output_dir).state_dict()


def test_every_public_method_has_a_decision():
    names = [name for name in dir(Trainer) if not name.startswith("_") and callable(getattr(Trainer, name))]
    assert_decided(names, METHODS, "public methods of Trainer")


@pytest.mark.parametrize("name", tried(METHODS))
def test_methods(name, tmp_path):
    stock, ours = (METHODS[name].value(trainer_of(cls, tmp_path, {})) for cls in (Trainer, VATTrainer))
    assert stock == ours


def test_not_overridden_is_true():
    """What the reasons above call not overridden."""
    for name, decision in METHODS.items():
        if "not overridden" in decision.reason:
            assert getattr(VATTrainer, name) is getattr(Trainer, name), name


# Events of callbacks


def test_every_event_comes_as_from_the_stock_trainer(tmp_path):
    """One log at each step, so that the one at an epoch's end, by which no record mixes phases, has nothing to add."""
    seen = []
    for cls in (Trainer, VATTrainer):
        events = Events()
        settings = {**KEPT, "logging_strategy": "no", "gradient_accumulation_steps": 2}
        trainer = trainer_of(cls, tmp_path, settings, callbacks=[events])
        trainer.train()
        trainer.predict(rows(2))
        seen.append(events.seen)
    assert seen[0] == seen[1]
    there = {name for name in dir(TrainerCallback) if name.startswith("on_")}
    assert there - set(seen[1]) == {"on_push_begin"}  # tests/hub


def summary() -> str:
    """How many decisions there are of each kind, as a table, and what is refused."""
    groups = {
        "fields of TrainingArguments": FIELDS,
        "optimizers (optim)": OPTIMIZERS,
        "schedulers (lr_scheduler_type)": SCHEDULERS,
        "arguments of the constructor": CONSTRUCTOR,
        "public methods": METHODS,
    }
    kinds = ("equal", "refused", "without effect", "not here")
    lines = [f"| | {' | '.join(kinds)} |", "|---|" + "---|" * len(kinds)]
    for name, decisions in groups.items():
        counts = Counter(decision.kind for decision in decisions.values())
        lines.append(f"| {name} | {' | '.join(str(counts[kind]) for kind in kinds)} |")
    lines += ["", "Refused:"]
    for decisions in groups.values():
        lines += [f"- {name}: {d.reason}" for name, d in decisions.items() if d.kind == "refused"]
    return "\n".join(lines)


if __name__ == "__main__":
    print(summary())
