"""Trainer that alternates learner and compressor phases, and trains word masks."""

import inspect
import json
import logging
import math
import operator
import os
from bisect import bisect_right
from collections import Counter, defaultdict
from contextlib import contextmanager
from itertools import islice, pairwise

import torch
from datasets import IterableDataset
from transformers import EarlyStoppingCallback, TrainerCallback
from transformers.trainer_utils import default_compute_objective, get_last_checkpoint, has_length

from hf_vat.data import StreamedEpochs
from hf_vat.errors import InputError
from hf_vat.inference import evaluation_mode

from .adapters import check_adapter, find_classifier
from .arguments import VATTrainingArguments
from .attention_shift import jensen_shannon, normalised_entropy
from .interrupt import StopOnInterrupt
from .pushing import PushingTrainer
from .schedule import BetaSchedule, PhaseSchedule, phase_factor

logger = logging.getLogger(__name__)

STATE_NAME = "vat_state.json"

# What each measure is a mean over: texts with a label, all texts, or the tokens that a word mask lies on.
_MEANS = {
    "cross_entropy": "class_weights",  # 1 for each text with a label, unless classes have other weights
    **dict.fromkeys(("compression", "mask_compression"), "labelled"),
    "attention_entropy": "texts",
    **dict.fromkeys(("mask_mean", "mask_open", "mask_sd"), "mask_tokens"),
}

_MASK_BETA_SCHEDULE = ("mask_beta_start", "mask_beta_end", "mask_beta_step_epochs")

# Settings of a model that must agree between a checkpoint and the run that resumes it, as far as the model has them.
_MODEL_SETTINGS = (
    *("model_type", "pooling", "bottleneck", "heads", "kl_reduction", "prior", "num_labels"),
    *("mask_type", "mask_layers", "mask_hidden_size", "mask_sample", "mask_temperature", "mask_reduction"),
    *("mask_normalization", "mask_k", "mask_site", "freeze_embeddings"),
)


class VATTrainer(PushingTrainer):
    """
    [`~transformers.Trainer`] for VAT classifiers: everything works as there, and each epoch belongs to a phase.

    The phase of an epoch follows from [`PhaseSchedule`] alone. The optimizer holds all parameters from the start;
    parameters outside the phase get no gradient and therefore do not move. Each log record carries `cross_entropy`
    and `compression` (nats; their sum with weight `beta` is `loss`), `phase`, `attention_entropy` (normalised, 0 to 1)
    and `attention_jsd` (nats; between the attention now and at the beginning of the phase). Evaluation uses the head
    that the phase trains and adds the same measures with the prefix of its metrics. A measure that the loss of a phase, or
    the head that predicts, does not have is absent from the record.

    Models with a word mask, [`BertWithVMask`] and [`EncoderWithVMask`], are trained in one phase, or with a bottleneck in
    the phases of VAT. Their records also carry `mask_mean` and `mask_sd`, mean and standard deviation of the mask over
    content tokens, and `mask_open`, the share of these with a mask above 0.5; where the loss has the mask's term,
    `mask_compression` (nats) and its weight `mask_beta`, which is added to `loss`. With `mask_beta_start` and
    `mask_beta_end` this weight follows [`BetaSchedule`] and is written to `model.config.mask_beta`, so a saved model says
    which one it had last. An evaluation warns if the mask is open or closed nearly everywhere, or nearly the same for all
    words, since it then cannot tell which words matter.

    With `load_best_model_at_end=True` the best evaluation over all phases is loaded, with the head that gave it. By the
    loss, those of compressor and learner phases cannot be compared, and a warning says so; `cross_entropy` can.
    With phases the patience of an [`~transformers.EarlyStoppingCallback`], or of `early_stopping_patience`, counts rounds: one
    compressor and one learner phase, the first round with the start phase. Training stops after so many rounds in which no
    evaluation was better than all before; so everything is trained before it can stop.
    After `train()`, also after an exception, the model is as one that was just loaded: in no phase, nothing closed, in eval
    mode; which head predicts stays. Class weights and label smoothing are the run's and never the model's. The model may be
    one that PEFT has put an adapter on, see [`modules_to_save`]; without a bottleneck all else is to the bit the stock
    Trainer's. A subclass may add to what `super().compute_loss(...)` returns, but not replace it. An optimizer that is given
    with a learning rate of its own, by `optimizers` or `optimizer_cls_and_kwargs`, keeps that for all parameters.
    A second call of `train()` starts again with a fresh optimizer. Ctrl-C finishes the step, saves a checkpoint and
    raises `KeyboardInterrupt`.

    An `IterableDataset`, of datasets or torch, is read as it comes, by each process for itself, and needs `max_steps` if
    it has no length. Its epochs are `max_steps / num_train_epochs` steps long, rounded up, so that phases, evaluations
    and checkpoints come as with any other data; see [`~hf_vat.data.StreamedEpochs`]. A warning says if the rounding
    leaves no steps to the last epochs. Labels are checked while they are read. Evaluation sets cannot be streams.

    Raises:
        InputError: if the model is not a VAT classifier, an adapter leaves new layers at random, a label lies outside the
            model's classes, or a setting cannot be combined with phases or with the model's mask.
        FloatingPointError: in training, if the loss is not finite, naming step, phase and component; at the next record of
            the log, evaluation, checkpoint or end of an epoch, so nothing that follows from such a step is saved.
    """

    args: VATTrainingArguments

    # The models' losses are means over a batch: the Trainer divides them by the accumulation steps.
    loss_is_scaled_for_ga = False

    def __init__(
        self,
        model=None,
        args: VATTrainingArguments | None = None,
        data_collator=None,
        train_dataset=None,
        *trainer_args,
        **kwargs,
    ):
        if args is not None and not isinstance(args, VATTrainingArguments):
            raise InputError(f"args is a {type(args).__name__}; VATTrainer needs VATTrainingArguments.")
        _refuse_other_loss(type(self))
        args = args or VATTrainingArguments()
        if _is_stream(train_dataset):
            # Otherwise one process would read for all, and put together batches that are padded to different lengths.
            args.accelerator_config.dispatch_batches = False
        super().__init__(model, args, data_collator, train_dataset, *trainer_args, **kwargs)
        if self.compute_loss_func is not None:
            raise InputError(
                "compute_loss_func would replace the losses of the phases; leave it out. Class weights and label smoothing "
                "are the settings class_weights and label_smoothing_factor."
            )
        self._check_model()
        self._stream: _CheckedRows | None = None
        self._first_rows: list | None = None
        if _is_stream(self.train_dataset):
            self._read_as_stream()
        else:
            _check_labels(self.train_dataset, "training", self.classifier.config)
        for dataset in self.eval_dataset.values() if isinstance(self.eval_dataset, dict) else [self.eval_dataset]:
            _refuse_stream(dataset)
            _check_labels(dataset, "evaluation", self.classifier.config)
        self._take_settings()
        self.label_smoother = None  # the models' heads smooth, each for itself
        self._owns_optimizer = self.optimizer is None
        self._trained: defaultdict[str, torch.Tensor | float] = defaultdict(float)  # sums since the last record
        self._evaluated: list[dict[str, torch.Tensor]] = []  # measures of the texts of each batch
        self._rounds = 0  # that are over
        self._improved: set[EarlyStoppingCallback] = set()  # those that saw the present round get better
        self._watched: list[tuple[int, str, list[str], torch.Tensor]] = []  # whether the loss of each step was finite
        self._own_metrics = {"phase"}
        self._resumed_from: str | None = None
        self._probe_reference: torch.Tensor | None = None
        self._interrupt = StopOnInterrupt()
        self.add_callback(self._interrupt)
        self.add_callback(_PhaseCallback(self))
        if self.args.early_stopping_patience is not None:
            self._stop_early()

    @property
    def classifier(self) -> torch.nn.Module:
        """The model, or the one within what PEFT or FSDP have wrapped around it."""
        return find_classifier(self.model)

    def _check_model(self) -> None:
        if self.classifier is None:
            raise InputError(
                f"{type(self.model).__name__} has no phases; VATTrainer trains hf_vat's models, for instance "
                "BertForVATClassification.from_pretrained(...)."
            )
        if hasattr(self.model, "peft_config"):
            check_adapter(self.classifier)

    def _take_settings(self) -> None:
        """Check settings against the model, and follow them: a new model or trial may bring others.

        Raises:
            InputError: if they do not fit together.
        """
        args, alternates = self.args, self.classifier.config.bottleneck != "none"
        if not alternates and args.predict_from == "compressor":
            raise InputError('predict_from="compressor" needs a model with bottleneck="gaussian".')
        if alternates:
            self._refuse_flat_parameters()
        if args.label_names not in (None, ["labels"]):
            raise InputError(
                f"label_names={args.label_names} would name the model's inputs that are labels, and these are called "
                "'labels'; leave it out. Classes get names by the model's id2label."
            )
        one_rate = any(part in args.optim for part in ("lomo", "layerwise"))
        if one_rate and args.learning_rate != args.compressor_learning_rate:
            raise InputError(
                f"optim={args.optim!s} has one learning rate for all parameters; set compressor_learning_rate "
                f"({args.compressor_learning_rate}) to learning_rate ({args.learning_rate}), or choose another optim."
            )
        self.schedule = PhaseSchedule(
            args.start, args.start_epochs, args.compress_epochs, args.learn_epochs, alternates
        )
        self.mask_beta_schedule = self._mask_beta_schedule()
        self._class_weights = self._find_class_weights()

    def _refuse_flat_parameters(self) -> None:
        """Phases rest on this: what has no gradient does not move. Flat parameters give zeros instead, and moments move on."""
        if self.is_deepspeed_enabled or self.is_fsdp_enabled or self.is_fsdp_xla_enabled:
            raise InputError(
                f"{'DeepSpeed' if self.is_deepspeed_enabled else 'FSDP'} cannot keep still what a phase does not train. Start "
                'the processes with torchrun, without it, or train a model with bottleneck="none", which has one phase.'
            )
        alone = self.args.world_size == 1
        if not alone and (self.args.ddp_find_unused_parameters is False or self.args.ddp_static_graph):
            raise InputError(
                f"ddp_find_unused_parameters={self.args.ddp_find_unused_parameters} and "
                f"ddp_static_graph={self.args.ddp_static_graph}: each phase leaves other parameters unused. Leave both out."
            )

    def _find_class_weights(self) -> torch.Tensor | None:
        given, classes = self.args.class_weights, self.classifier.num_labels
        if given is None:
            return None
        if given != "balanced":
            if len(given) != classes:
                raise InputError(
                    f"class_weights={given} are {len(given)} numbers, and the model has {classes} classes; give one each."
                )
            return torch.tensor(given, device=self.args.device)
        columns = getattr(self.train_dataset, "column_names", None)
        if self._stream is not None or columns is None:
            raise InputError(
                'class_weights="balanced" counts the labels of the training set beforehand, which a stream or a set without '
                "columns does not allow; give one number per class."
            )
        counts = Counter(self.train_dataset[_label_column(columns, "training")][:])
        counts = [counts[label] for label in range(classes)]
        if 0 in counts:
            raise InputError(
                f'class_weights="balanced" has no weight for class {counts.index(0)}, of which the training set has no text; '
                "give one number per class."
            )
        return torch.tensor([sum(counts) / (classes * count) for count in counts], device=self.args.device)

    @contextmanager
    def _loss_settings(self):
        """The run's class weights and label smoothing in the models' loss, for one call: the model does not keep them."""
        classifier = self.classifier
        before = classifier.label_smoothing, classifier.class_weights
        classifier.label_smoothing, classifier.class_weights = self.args.label_smoothing_factor, self._class_weights
        try:
            yield
        finally:
            classifier.label_smoothing, classifier.class_weights = before

    @property
    def _has_mask_term(self) -> bool:
        return getattr(self.model.config, "mask_type", "none") in ("vmask", "iba")

    def _mask_beta_schedule(self) -> BetaSchedule | None:
        start, end, step_epochs = (getattr(self.args, name) for name in _MASK_BETA_SCHEDULE)
        if start is end is step_epochs is None:
            return None
        if start is None or end is None:
            raise InputError(
                f"mask_beta_start is {start} and mask_beta_end is {end}; give both, or neither (and no mask_beta_step_epochs) "
                "for a constant mask_beta."
            )
        if not self._has_mask_term:
            raise InputError(
                f"mask_beta_start={start} weighs the term of a word mask, and {type(self.model).__name__} with "
                f"mask_type={getattr(self.model.config, 'mask_type', None)!r} has none; leave it out, or use mask_type "
                "'vmask' or 'iba'."
            )
        if self.args.load_best_model_at_end and self.args.metric_for_best_model.removeprefix("eval_") == "loss":
            logger.warning(
                "The losses of two epochs cannot be compared while mask_beta goes from %s to %s; choose the best model by "
                "another metric_for_best_model, such as accuracy.",
                *(start, end),
            )
        return BetaSchedule(start, end, step_epochs)

    def _read_as_stream(self) -> None:
        args = self.args
        if args.dataloader_num_workers:
            raise InputError(
                f"dataloader_num_workers is {args.dataloader_num_workers}, but each worker would read the whole stream; "
                "leave it at 0."
            )
        self._stream = _CheckedRows(self.train_dataset, self.classifier.config)
        # Now, and not when they are needed, which in a resumed run is a later pass in another order.
        self._first_rows = list(islice(self._stream, args.attention_probe_size))
        self._cut_into_epochs()
        if not has_length(self._stream.rows):
            steps = self._steps_of_stream()
            epochs, wanted = math.ceil(args.max_steps / steps), math.ceil(args.num_train_epochs)
            if epochs < wanted:
                logger.warning(
                    "%d steps make %d epochs of %d steps and leave none to the other %d of num_train_epochs, nor to their "
                    "phases; %d steps would do for all.",
                    *(args.max_steps, epochs, steps, wanted - epochs, steps * wanted),
                )

    def _steps_of_stream(self) -> int:
        """Steps of an epoch of a stream without a length."""
        args = self.args
        return math.ceil(args.max_steps / args.num_train_epochs) if args.num_train_epochs > 0 else args.max_steps

    def _cut_into_epochs(self) -> None:
        rows, args = self._stream.rows, self.args
        if has_length(rows):
            size = len(rows)
        else:
            size = self._steps_of_stream() * args.gradient_accumulation_steps * self._train_batch_size * args.world_size
        self.train_dataset = StreamedEpochs(self._stream, size)

    def get_train_dataloader(self):
        if self._stream is not None:  # a trial or auto_find_batch_size may have changed the size of an epoch
            self._cut_into_epochs()
        return super().get_train_dataloader()

    # Training

    def train(self, resume_from_checkpoint: str | bool | None = None, trial=None, ignore_keys_for_eval=None):
        if self._owns_optimizer:
            self.optimizer = None
        if resume_from_checkpoint is True:
            resume_from_checkpoint = get_last_checkpoint(self.args.output_dir)
            if resume_from_checkpoint is None:
                raise InputError(f"There is no checkpoint to resume from in {self.args.output_dir}.")
        self._resumed_from = resume_from_checkpoint or None
        try:
            output = super().train(resume_from_checkpoint, trial, ignore_keys_for_eval)
        finally:
            self.is_in_train = False
            self._interrupt.restore()
            if self.model is not None:  # which model_init may have failed to make
                self.classifier.leave_phases()
        if self._interrupt.interrupted:
            raise KeyboardInterrupt(f"Training stopped at step {self.state.global_step}; a checkpoint is saved.")
        return output

    def _hp_search_setup(self, trial) -> None:
        # Only now the model is made and a trial's settings are there; weights of a checkpoint come after.
        super()._hp_search_setup(trial)
        self._check_model()
        self._take_settings()
        self._probe_reference = None
        self._betas_at_start = self._constant_betas()
        if self._resumed_from is not None:
            self._restore(self._resumed_from)

    def hyperparameter_search(self, hp_space=None, compute_objective=None, *args, **kwargs):
        """As in transformers. The objective is by default that of the stock Trainer, from what it measures: the sum of the
        metrics of `compute_metrics`, else the loss."""
        return super().hyperparameter_search(hp_space, compute_objective or self._stock_objective, *args, **kwargs)

    def _stock_objective(self, metrics: dict) -> float:
        return default_compute_objective({k: v for k, v in metrics.items() if k not in self._own_metrics})

    def create_optimizer(self, model=None):
        """The stock optimizer over all parameters that the user has not frozen, with `compressor_learning_rate` for what is
        not the encoder's. One that is given with a learning rate of its own keeps that for all."""
        self.classifier.open_phases()  # parameters outside the first phase belong in too, and into DistributedDataParallel
        if self.optimizer is not None:
            return super().create_optimizer(model)
        optimizer = super().create_optimizer(model)
        if self.optimizer_cls_and_kwargs is None:
            in_encoder = {
                id(parameter)
                for parameter in find_classifier(self.model if model is None else model).base_model.parameters()
            }
            optimizer.param_groups[:] = [
                {**group, "params": parameters, "lr": group["lr"] if encoder else self.args.compressor_learning_rate}
                for group in optimizer.param_groups
                for encoder in (True, False)
                if (parameters := [p for p in group["params"] if (id(p) in in_encoder) == encoder])
            ]
        return optimizer

    def set_initial_training_values(self, args, dataloader):
        values = super().set_initial_training_values(args, dataloader)
        self._steps_per_epoch = values[1]
        return values

    def create_scheduler(self, num_training_steps: int, optimizer=None):
        """The stock scheduler, once for each phase: every phase has its own warm-up and decay, so that those that come
        late have their learning rate as well (docs/schedules.md). `warmup_steps` below 1 are a share of the phase, others its
        steps."""
        starts = [epoch * self._steps_per_epoch for epoch in self.schedule.starts(self.state.num_train_epochs)]
        if self.lr_scheduler is not None or len(starts) < 2:
            return super().create_scheduler(num_training_steps, optimizer)
        optimizer = self.optimizer if optimizer is None else optimizer
        lengths = [end - start for start, end in pairwise([*starts, num_training_steps])]
        factors = [phase_factor(self.args, optimizer, length) for length in lengths]
        if None in factors:  # it follows a metric, or steps by itself, over all phases
            return super().create_scheduler(num_training_steps, optimizer)

        def factor(step: int) -> float:
            phase = bisect_right(starts, step) - 1
            return factors[phase](step - starts[phase])

        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        self._created_lr_scheduler = True
        return self.lr_scheduler

    def enter_epoch(self, epoch: int) -> None:
        """Put the model into the phase of an epoch, and set β of its mask; called at its beginning."""
        phase = self.schedule.phase(epoch)
        self.model.set_phase(phase)
        fresh = "compressor" if phase == "compress" else "learner"
        self.model.config.predict_from = fresh if self.args.predict_from == "auto" else self.args.predict_from
        if self.mask_beta_schedule is not None:
            self.model.config.mask_beta = self.mask_beta_schedule.beta(epoch, self.state.num_train_epochs)
        in_middle = self.state.epoch is not None and self.state.epoch > epoch + 1e-6  # resumed within the epoch
        if self._probe_reference is None or (self.schedule.begins(epoch) and not in_middle):
            self._probe_reference = self._probe_attention()

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        self.model.update_betas()
        with self._loss_settings():
            loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        if model.training:
            if self.is_in_train:  # and not someone who looks at a batch
                self._watch(loss, outputs)
                # As the Trainer averages the loss: over micro-batches, then over steps.
                self._collect(self._measure_texts(inputs, outputs), 1 / self.current_gradient_accumulation_steps)
        elif "labels" in inputs:
            texts = self._measure_texts(inputs, outputs)
            # Without the texts that only fill up the last batch, so that each counts once on any number of processes.
            table = self.accelerator.gather_for_metrics(torch.stack(list(texts.values()), 1))  # [texts, measures]
            self._evaluated.append(dict(zip(texts, table.unbind(1), strict=True)))
        return (loss, outputs) if return_outputs else loss

    def _measure_texts(self, inputs: dict, outputs) -> dict[str, torch.Tensor]:
        """What was measured of each text of a batch, float32 [B] by name; sums over tokens for the word mask."""
        labelled = inputs["labels"] != -100
        weights, cross_entropy = labelled.float(), outputs.cross_entropy
        if self._class_weights is not None:
            weights = self._class_weights[inputs["labels"].clamp(min=0)] * labelled
            # As it is before the model divides by the weights of its batch.
            cross_entropy = cross_entropy * (weights.sum() / labelled.sum().clamp(min=1))
        texts = {"texts": torch.ones_like(labelled), "labelled": labelled, "class_weights": weights}
        texts |= {
            "cross_entropy": cross_entropy,
            "compression": outputs.compression,
            "mask_compression": outputs.mask_compression,
        }
        if outputs.token_importance is not None:
            texts["attention_entropy"] = normalised_entropy(outputs.token_importance.detach())
        if outputs.token_mask is not None:
            mask = outputs.token_mask.detach()
            attended = inputs.get("attention_mask", torch.ones_like(mask))
            content = self.model.content_tokens(attended, inputs.get("special_tokens_mask"))
            texts["mask_tokens"] = content.sum(1)
            texts["mask_mean"] = mask.sum(1)
            texts["mask_open"] = (mask > 0.5).sum(1)
            texts["mask_sd"] = ((mask - 0.5).square() * content).sum(1)  # about ½, or float32 would cancel out
        return {name: values.detach().float() for name, values in texts.items() if values is not None}

    def _collect(self, texts: dict[str, torch.Tensor], weight: float) -> None:
        """Add up the batch means of a training step, but for the mask, whose mean is over tokens."""
        sums = {name: values.sum() for name, values in texts.items()}
        for name, over in _MEANS.items():
            if name in sums and over != "mask_tokens":
                self._trained[name] += sums[name] / sums[over].clamp(min=1e-12) * weight
            elif name in sums:
                self._trained[name] += sums[name]
        self._trained["weight"] += weight
        if "mask_tokens" in sums:
            self._trained["mask_tokens"] += sums["mask_tokens"]

    def _training_means(self) -> dict[str, float]:
        """Means since the last call over batches and processes; what the phase does not measure is absent."""
        # The same on all processes, as no record mixes phases.
        names = list(self._trained)
        sums = torch.stack([torch.as_tensor(float(self._trained[name]), dtype=torch.float64) for name in names])
        self._trained.clear()
        totals = self.accelerator.reduce(sums.to(self.args.device, torch.float32), "sum").tolist()
        sums = dict(zip(names, totals, strict=True))
        over = {name: "mask_tokens" if over == "mask_tokens" else "weight" for name, over in _MEANS.items()}
        return self._means(sums, over)

    def _evaluation_means(self) -> dict[str, float]:
        """Means over the texts that were evaluated, and the loss that follows from them if any has a label."""
        names = self._evaluated[0]
        sums = {name: torch.cat([batch[name] for batch in self._evaluated]).cpu().double().sum() for name in names}
        self._evaluated.clear()
        means = self._means({name: total.item() for name, total in sums.items()}, _MEANS)
        if "cross_entropy" not in means:
            return means
        loss = means["cross_entropy"]
        for name, beta in (("compression", "beta"), ("mask_compression", "mask_beta")):
            loss += means[beta] * means[name] if name in means else 0
        return {"loss": loss, **means}

    def _means(self, sums: dict[str, float], over: dict[str, str]) -> dict[str, float]:
        means = {name: sums[name] / sums[over[name]] for name in over if name in sums and sums[over[name]]}
        if "mask_sd" in means:  # until here the mean of squares
            means["mask_sd"] = max(means["mask_sd"] - (means["mask_mean"] - 0.5) ** 2, 0) ** 0.5
        if self.schedule.alternates:
            means["beta"] = float(self.model.config.beta)
        if self._has_mask_term:
            means["mask_beta"] = float(self.model.config.mask_beta)
        return means

    def log(self, logs, start_time=None):
        if self.is_in_train:
            logs["phase"] = self.classifier.phase
        if "loss" in logs:
            logs.update(self._training_means())
            if self._probe_reference is not None:
                logs["attention_jsd"] = jensen_shannon(self._probe_reference, self._probe_attention()).mean().item()
        super().log(logs, start_time)

    def evaluation_loop(self, dataloader, description, *args, metric_key_prefix="eval", **kwargs):
        _refuse_stream(dataloader.dataset)
        if not len(dataloader.dataset):
            raise InputError("The evaluation set is empty.")
        self._evaluated.clear()
        output = super().evaluation_loop(dataloader, description, *args, metric_key_prefix=metric_key_prefix, **kwargs)
        stock = set(output.metrics)
        output.metrics[f"{metric_key_prefix}_samples"] = output.num_samples
        if self._evaluated:
            means = self._evaluation_means()
            if type(self).compute_loss is VATTrainer.compute_loss:
                output.metrics.pop(f"{metric_key_prefix}_loss", None)  # of batches, and 0 where no text has a label
            else:
                means.pop("loss", None)  # a subclass has added to it
            output.metrics.update({f"{metric_key_prefix}_{name}": value for name, value in means.items()})
            if "mask_mean" in means:
                self._warn_of_collapse(means["mask_mean"], means["mask_sd"], metric_key_prefix)
        self._own_metrics |= output.metrics.keys() - stock
        return output

    # Selection

    def _stop_early(self) -> None:
        args = self.args
        if args.metric_for_best_model is None or args.eval_strategy == "no":
            raise InputError(
                f"early_stopping_patience={args.early_stopping_patience} stops when evaluations get no better; give "
                f"metric_for_best_model (now {args.metric_for_best_model}), such as 'accuracy', and an eval_strategy (now "
                f"{args.eval_strategy.value!r}), such as 'epoch'."
            )
        if not args.early_stopping_patience >= 1 or not args.early_stopping_threshold >= 0:
            raise InputError(
                f"early_stopping_patience={args.early_stopping_patience} must be at least 1, and early_stopping_threshold="
                f"{args.early_stopping_threshold} at least 0."
            )
        self.add_callback(EarlyStoppingCallback(args.early_stopping_patience, args.early_stopping_threshold))

    def begin_selection(self) -> None:
        """Count rounds from here on, and say so if the best model is chosen by losses of two kinds."""
        self._rounds, self._improved = self.schedule.rounds(self.state.epoch or 0), set()
        metric = (self.args.metric_for_best_model or "").removeprefix("eval_")
        wants = self.args.load_best_model_at_end or any(self._patient())
        two_heads = self.schedule.alternates and self.args.predict_from == "auto"
        if wants and metric == "loss" and two_heads and self.model.config.beta:
            logger.warning(
                "The losses of compressor and learner phases cannot be compared: only the first have the compression term, "
                "weighed by beta=%s. Choose the best model by metric_for_best_model='cross_entropy', or by accuracy.",
                self.model.config.beta,
            )

    def _patient(self) -> list[EarlyStoppingCallback]:
        return [callback for callback in self.callback_handler.callbacks if isinstance(callback, EarlyStoppingCallback)]

    def _evaluate(self, *args, **kwargs):
        """As in the base class, but with phases the patience of an `EarlyStoppingCallback` counts rounds."""
        if not self.schedule.alternates:
            return super()._evaluate(*args, **kwargs)
        given = {callback: callback.early_stopping_patience for callback in self._patient()}
        waited = {callback: callback.early_stopping_patience_counter for callback in given}
        for callback in given:
            callback.early_stopping_patience = math.inf  # it would stop in the middle of a round
        try:
            metrics = super()._evaluate(*args, **kwargs)
        finally:
            for callback, patience in given.items():
                callback.early_stopping_patience = patience
        rounds = self.schedule.rounds(self.state.epoch + 1e-6)
        for callback, patience in given.items():
            if callback.early_stopping_patience_counter == 0:
                self._improved.add(callback)
            better = callback in self._improved
            callback.early_stopping_patience_counter = 0 if better else waited[callback] + (rounds > self._rounds)
            if callback.early_stopping_patience_counter >= patience:
                self.control.should_training_stop = True
        if rounds > self._rounds:
            self._rounds = rounds
            self._improved.clear()
        return metrics

    def _warn_of_collapse(self, mean: float, sd: float, prefix: str) -> None:
        config = self.model.config
        # Weights that share 1, or k, among the words of a text are small in every long one.
        shared = config.mask_type == "l2x" and config.mask_normalization != "sigmoid"
        if shared or not self.is_world_process_zero():
            return
        # IBA begins with every word at 0.9933.
        begins, most = (0.98, 0.995) if config.mask_type == "iba" else (1, 0.99)
        # VMASK's term draws the mask to one half, from both sides; IBA's closes it.
        if mean > most:
            what, change = "lets nearly every word through whole", "Raise"
        elif mean < 0.01:
            what, change = "lets nearly nothing through", "Lower" if config.mask_type == "iba" else "Raise"
        elif sd < 0.01 and mean < begins:
            what, change = "is nearly the same for all words", "Lower"
        else:
            return
        remedy = f"{change} mask_beta (now {config.mask_beta})" if self._has_mask_term else ""
        if 0.01 <= mean <= most:
            remedy += (" or train" if remedy else "Train") + " longer."
        else:
            rate = f"compressor_learning_rate ({self.args.compressor_learning_rate})."
            remedy += (" or lower " if remedy else "Lower ") + rate
        logger.warning(
            f"{prefix}_mask_mean is {mean:.4f} and {prefix}_mask_sd {sd:.4f}: the word mask {what}, so it cannot tell which "
            f"words matter. {remedy}"
        )

    def _probe_attention(self) -> torch.Tensor | None:
        """Attention on the first training texts, [texts, T] on the CPU; None without attention pooling."""
        if self.model.config.pooling != "attention" or self.train_dataset is None:
            return None
        rows = self._first_rows
        if rows is None:
            size = min(self.args.attention_probe_size, len(self.train_dataset))
            rows = [self.train_dataset[position] for position in range(size)]
        collate = self._get_collator_with_removed_columns(self.data_collator, description="attention probe")
        batch = self._prepare_inputs(collate(rows))
        batch.pop("labels", None)
        with evaluation_mode(self.model), torch.no_grad(), self.compute_loss_context_manager():
            return self.model(**batch).token_importance.double().cpu()

    # Divergence. Whether the loss is finite is asked at each step, and the answer read with the next record: to read it at
    # once, a GPU would have to finish the step first.

    def begin_records(self) -> None:
        """Forget steps of a training that broke off, such as that of a batch size for which there was no memory."""
        self._trained.clear()
        self._watched.clear()

    def _watch(self, loss: torch.Tensor, outputs) -> None:
        names = ("cross_entropy", "compression", "mask_compression", "token_importance", "token_mask")
        values = {name: getattr(outputs, name) for name in names if getattr(outputs, name) is not None}
        finite = torch.stack([torch.isfinite(value.detach()).all() for value in (*values.values(), loss)])
        self._watched.append((self.state.global_step + 1, self.model.phase, [*values, "loss"], finite))

    def refuse_divergence(self) -> None:
        """Raise the error if the loss of a step since the last call was not finite."""
        watched, self._watched = self._watched, []
        answers = iter(torch.cat([finite for *_, finite in watched]).tolist() if watched else [])
        for step, phase, names, _ in watched:
            broken = [name for name in names if not next(answers)]
            if broken:
                raise FloatingPointError(
                    f"The loss is not finite at step {step} in phase {phase!r}: {', '.join(broken[:-1] or broken)}. Lower "
                    f"learning_rate ({self.args.learning_rate}) or compressor_learning_rate "
                    f"({self.args.compressor_learning_rate}), or resume from the last checkpoint."
                )

    def _maybe_log_save_evaluate(self, *args, **kwargs):
        if self.control.should_log or self.control.should_evaluate or self.control.should_save:
            self.refuse_divergence()
        super()._maybe_log_save_evaluate(*args, **kwargs)

    # Checkpoints

    def _constant_betas(self) -> dict:
        """The weights of the loss's terms that no schedule moves. A callback may, and a run is known by those it began with."""
        betas = {"beta": self.model.config.beta} if self.schedule.alternates else {}
        if self._has_mask_term and self.mask_beta_schedule is None:
            betas["mask_beta"] = self.model.config.mask_beta
        return betas

    def _settings(self) -> dict:
        """What must agree between a checkpoint and the run that resumes it."""
        config = self.model.config
        names = [name for name in _MODEL_SETTINGS if hasattr(config, name)]
        schedule = {
            name: getattr(self.schedule, name) for name in ("start", "start_epochs", "compress_epochs", "learn_epochs")
        }
        settings = {name: getattr(config, name) for name in names} | (schedule if self.schedule.alternates else {})
        if self._has_mask_term:
            settings |= {name: getattr(self.args, name) for name in _MASK_BETA_SCHEDULE}
        weights = None if self._class_weights is None else self._class_weights.tolist()
        return settings | {"class_weights": weights} | self._betas_at_start

    def _save_checkpoint(self, model, trial):
        # Written first: rotation and "best model" bookkeeping follow in the base class.
        folder = os.path.join(self._get_output_dir(trial), f"checkpoint-{self.state.global_step}")
        if self.args.should_save:
            os.makedirs(folder, exist_ok=True)
            reference = None if self._probe_reference is None else self._probe_reference.tolist()
            with open(os.path.join(folder, STATE_NAME), "w", encoding="utf-8") as file:
                json.dump({"settings": self._settings(), "attention_probe": reference}, file)
        super()._save_checkpoint(model, trial)

    def _restore(self, checkpoint: str) -> None:
        """Check a checkpoint's settings against ours and take over its attention probe."""
        path = os.path.join(checkpoint, STATE_NAME)
        if not os.path.isfile(path):
            raise InputError(f"{checkpoint} is not a checkpoint of VATTrainer: it has no {STATE_NAME}.")
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
        ours = self._settings()
        different = [
            f"{name} was {value!r} and is {ours[name]!r}"
            for name, value in sorted({"class_weights": None, **state["settings"]}.items())
            if name in ours and value != ours[name]
        ]
        if different:
            raise InputError(
                f"{checkpoint} cannot be resumed with other settings: {'; '.join(different)}. Use the settings it was "
                "made with, or start a new run in another output_dir."
            )
        # A finished run has no epoch left that would set them.
        self._take_over(checkpoint)
        if state["attention_probe"] is not None:
            self._probe_reference = torch.tensor(state["attention_probe"], dtype=torch.float64)

    def _load_best_model(self):
        super()._load_best_model()
        # The weights alone do not tell which head gave the best score.
        self._take_over(self.state.best_model_checkpoint)

    def _take_over(self, checkpoint: str) -> None:
        """What training writes into the configuration, as it was at a checkpoint."""
        config = type(self.model.config).from_pretrained(checkpoint)
        for name in ("predict_from", "beta", "mask_beta"):
            if hasattr(config, name):
                setattr(self.model.config, name, getattr(config, name))


class _PhaseCallback(TrainerCallback):
    """Enters the phase of each epoch, and logs at its end so that no record mixes two phases."""

    def __init__(self, trainer: VATTrainer):
        self.trainer = trainer

    def on_train_begin(self, args, state, control, **kwargs):
        self.trainer.begin_records()
        self.trainer.begin_selection()

    def on_epoch_begin(self, args, state, control, **kwargs):
        self.trainer.enter_epoch(int(state.epoch + 1e-6))

    def on_epoch_end(self, args, state, control, **kwargs):
        self.trainer.refuse_divergence()
        if args.logging_strategy != "no":
            control.should_log = True
        return control


class _CheckedRows:
    """The rows of a stream, whose labels are checked while they are read."""

    def __init__(self, rows, config):
        self.rows, self.config = rows, config

    def set_epoch(self, epoch: int) -> None:
        if hasattr(self.rows, "set_epoch"):
            self.rows.set_epoch(epoch)

    def __iter__(self):
        for number, row in enumerate(self.rows):
            column = _label_column(row, "training")
            _check_label(row[column], f"row {number} of the stream, column {column!r}", "training", self.config)
            yield row


def _refuse_other_loss(cls: type) -> None:
    """A loss of one's own would leave out what phases and masks add: a subclass may build on ours, not replace it."""
    for one in cls.__mro__[: cls.__mro__.index(VATTrainer)]:
        override = inspect.unwrap(vars(one).get("compute_loss", VATTrainer.compute_loss))
        if override is not VATTrainer.compute_loss and "compute_loss" not in override.__code__.co_names:
            raise InputError(
                f"{one.__name__}.compute_loss replaces the losses of the phases. Class weights and label smoothing are the "
                "settings class_weights and label_smoothing_factor; for more, add to what super().compute_loss(...) returns."
            )


def _is_stream(dataset) -> bool:
    return isinstance(dataset, torch.utils.data.IterableDataset | IterableDataset)


def _refuse_stream(dataset) -> None:
    if _is_stream(dataset):
        raise InputError(
            "The evaluation set is a stream, but all of it is evaluated each time; give rows that are in memory, such as "
            "Dataset.from_list(list(stream.take(1000)))."
        )


def _check_labels(dataset, name: str, config) -> None:
    """Check the label column of a map-style dataset once, before the first step.

    Raises:
        InputError: if there is none, or naming the first label outside the classes and its row (counted from 0).
    """
    columns = getattr(dataset, "column_names", None)
    if columns is None or not len(dataset):
        return
    label_column = _label_column(columns, name)
    for row, label in enumerate(dataset[label_column]):
        _check_label(label, f"row {row} of column {label_column!r}", name, config)


def _label_column(columns, name: str) -> str:
    label_column = next((column for column in ("labels", "label", "label_ids") if column in columns), None)
    if label_column is None:
        raise InputError(f"The {name} set has no column 'labels' or 'label'; its columns are {list(columns)}.")
    return label_column


def _check_label(label, place: str, name: str, config) -> None:
    try:
        known = 0 <= operator.index(label) < config.num_labels or label == -100  # also NumPy integers
    except TypeError:
        known = False
    if not known:
        raise InputError(
            f"The {name} set has the label {label!r} in {place}; labels must be whole numbers from 0 to "
            f"{config.num_labels - 1} (or -100 to leave a text out of the loss)."
        )
