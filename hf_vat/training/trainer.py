"""Trainer that alternates learner and compressor phases, and trains word masks."""

import inspect
from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, IterableDataset
from torch import nn
from transformers import (
    DataCollator,
    EarlyStoppingCallback,
    EvalPrediction,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerCallback,
    TrainerState,
)
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import BestRun, default_compute_objective

from hf_vat.distributions import jensen_shannon
from hf_vat.errors import InputError
from hf_vat.models.classifier import VATClassifier
from hf_vat.models.phases import PHASES
from hf_vat.models.reading import named_outputs
from hf_vat.models.words import special_token_ids

from .adapters import check_adapter, find_classifier
from .arguments import VATTrainingArguments
from .callbacks import PhaseCallback, StopOnInterrupt, callbacks_of
from .checkpoints import CheckpointingTrainer, find_fault, find_whole
from .encoder_outputs import EncoderOutputs, encoder_outputs
from .labels import check_labels, find_class_weights
from .measures import EvaluationMeans, TrainingMeans, measure_texts
from .monitor import DivergenceWatch, attention_of, warn_of_collapse
from .resume import Progress, read_state, resumed_settings, take_over, write_state
from .schedule import TERMS, PhaseSchedule, loss_weights, mask_beta_schedule, phase_factor
from .selection import RoundPatience, early_stopping, warn_of_two_losses
from .streams import TrainingStream, is_stream, refuse_stream

_EXAMPLES = 16  # texts on which it is seen whether the encoder's outputs can be used again


class VATTrainer(CheckpointingTrainer):
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

    With a word objective, or a penalty on VᵀW, records carry `word_term` or `vw_product` with its weight, `word_weight` or
    `vw_weight`; weight times term is in `loss`. Of "mlm", which hides words in training alone, an evaluation has none.

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
    model: VATClassifier  # or what is wrapped around one and hands its attributes on, as PEFT's models do

    # The models' losses are means over a batch: the Trainer divides them by the accumulation steps.
    loss_is_scaled_for_ga = False

    def __init__(
        self,
        model: PreTrainedModel | nn.Module | None = None,
        args: VATTrainingArguments | None = None,
        data_collator: DataCollator | None = None,
        train_dataset: Dataset | torch.utils.data.Dataset | IterableDataset | None = None,
        eval_dataset: Dataset | torch.utils.data.Dataset | Mapping[str, Dataset] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        model_init: Callable[..., PreTrainedModel] | None = None,
        compute_loss_func: Callable | None = None,
        compute_metrics: Callable[[EvalPrediction], dict] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[torch.optim.Optimizer | None, torch.optim.lr_scheduler.LambdaLR | None] = (None, None),
        optimizer_cls_and_kwargs: tuple[type[torch.optim.Optimizer], dict[str, Any]] | None = None,
        preprocess_logits_for_metrics: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    ):
        if args is not None and not isinstance(args, VATTrainingArguments):
            raise InputError(f"args is a {type(args).__name__}; VATTrainer needs VATTrainingArguments.")
        if compute_loss_func is not None:
            raise InputError(
                "compute_loss_func would replace the losses of the phases; leave it out. Class weights and label smoothing "
                "are the settings class_weights and label_smoothing_factor."
            )
        _refuse_other_loss(type(self))
        args = args or VATTrainingArguments()
        if is_stream(train_dataset):
            # Otherwise one process would read for all, and put together batches that are padded to different lengths.
            args.accelerator_config.dispatch_batches = False  # type: ignore[union-attr]  # an object by now
        super().__init__(
            model,
            args,
            data_collator,
            train_dataset,
            eval_dataset,
            processing_class,
            model_init,
            compute_metrics=compute_metrics,
            callbacks=callbacks,
            optimizers=optimizers,
            optimizer_cls_and_kwargs=optimizer_cls_and_kwargs,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
        )
        self._stream: TrainingStream | None = None
        if isinstance(processing_class, PreTrainedTokenizerBase) and self.classifier.config.special_token_ids is None:
            self.classifier.config.special_token_ids = special_token_ids(processing_class)
        problem = self.classifier.problem
        if is_stream(self.train_dataset):
            self._stream = TrainingStream(self.train_dataset, problem, self.args)
            self.train_dataset = self._stream.epochs(self.args, self._train_batch_size)
        else:
            check_labels(self.train_dataset, "training", problem)
        for dataset in self.eval_dataset.values() if isinstance(self.eval_dataset, dict) else [self.eval_dataset]:
            refuse_stream(dataset)
            check_labels(dataset, "evaluation", problem)
        self._take_settings()
        self.label_smoother = None  # the models' heads smooth, each for itself
        self._owns_optimizer = self.optimizer is None
        self._trained, self._evaluated = TrainingMeans(), EvaluationMeans()
        self._divergence = DivergenceWatch()
        self._patience = RoundPatience()
        self._own_metrics = {"phase"}
        self._resumed_from: str | None = None
        self._progress = Progress()
        self._probe_reference: torch.Tensor | None = None
        self._encoder_outputs: EncoderOutputs | None = None  # in a phase that leaves the encoder as it is
        self._interrupt = StopOnInterrupt()
        self.add_callback(self._interrupt)
        self.add_callback(PhaseCallback(self))
        if self.args.early_stopping_patience is not None:
            self.add_callback(early_stopping(self.args.early_stopping_patience, self.args))

    @property
    def classifier(self) -> VATClassifier:
        """The model, or the one within what PEFT or FSDP have wrapped around it."""
        return find_classifier(self.model)

    def _take_settings(self) -> None:
        """Check settings against the model, and follow them: a new model or trial may bring others.

        Raises:
            InputError: if they do not fit together.
        """
        args, alternates = self.args, self.classifier.config.bottleneck != "none"
        if hasattr(self.model, "peft_config"):
            check_adapter(self.classifier)
        if not self.classifier.problem.is_single_label and (args.class_weights or args.label_smoothing_factor):
            raise InputError(
                f"class_weights={args.class_weights} and label_smoothing_factor={args.label_smoothing_factor} are for models that "
                f"choose one of several classes; this one has problem_type={self.classifier.problem.kind!r}. Leave them out."
            )
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
        self.mask_beta_schedule = mask_beta_schedule(args, self.model.config, type(self.model).__name__)
        weights = find_class_weights(args.class_weights, self.train_dataset, self.classifier.num_labels)
        self._class_weights = None if weights is None else torch.tensor(weights, device=args.device)

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

    def get_train_dataloader(self):
        if self._stream is not None:  # a trial or auto_find_batch_size may have changed the size of an epoch
            self.train_dataset = self._stream.epochs(self.args, self._train_batch_size)
        return super().get_train_dataloader()

    # Training

    def train(self, resume_from_checkpoint: str | bool | None = None, trial=None, ignore_keys_for_eval=None):
        if self._owns_optimizer:
            self.optimizer = None
        self._resumed_from = self._checkpoint_to_resume(resume_from_checkpoint)
        self._progress = Progress()
        try:
            output = super().train(self._resumed_from, trial, ignore_keys_for_eval)
        finally:
            self.is_in_train = False
            self._interrupt.restore()
            self._encoder_outputs = None
            if self.model is not None:  # which model_init may have failed to make
                self.classifier.leave_phases()
        if self._interrupt.interrupted:
            raise KeyboardInterrupt(f"Training stopped at step {self.state.global_step}; a checkpoint is saved.")
        return output

    def _checkpoint_to_resume(self, given: str | bool | None) -> str | None:
        if not given:
            return None
        if given is True:
            found = find_whole(Path(self.args.output_dir), self.args.load_best_model_at_end)
            if found is None:
                raise InputError(f"There is no checkpoint to resume from in {self.args.output_dir} that is whole.")
            return str(found)
        if fault := find_fault(Path(given), self.args.load_best_model_at_end):
            raise InputError(f"{given} cannot be resumed: {fault}. Choose another checkpoint, or the last whole one.")
        return str(given)

    def _hp_search_setup(self, trial) -> None:
        # Only now the model is made and a trial's settings are there; weights of a checkpoint come after.
        super()._hp_search_setup(trial)
        self._take_settings()
        self._probe_reference = None
        # A callback may move them, and a run is known by those it began with.
        self._betas_at_start = loss_weights(self.model.config)
        if self.mask_beta_schedule is not None:
            del self._betas_at_start["mask_beta"]
        if self._resumed_from is not None:
            self._restore(self._resumed_from)

    def hyperparameter_search(
        self,
        hp_space: Callable[[Any], dict] | None = None,
        compute_objective: Callable[[dict[str, float]], float] | None = None,
        n_trials: int = 20,
        direction: str | list[str] = "minimize",
        backend: str | None = None,
        hp_name: Callable[[Any], str] | None = None,
        **kwargs,
    ) -> BestRun | list[BestRun]:
        """As in transformers. The objective is by default that of the stock Trainer, from what it measures: the sum of the
        metrics of `compute_metrics`, else the loss."""
        objective = compute_objective or self._stock_objective
        return super().hyperparameter_search(hp_space, objective, n_trials, direction, backend, hp_name, **kwargs)

    def _stock_objective(self, metrics: dict) -> float:
        return default_compute_objective({k: v for k, v in metrics.items() if k not in self._own_metrics})

    # Phases

    def begin_training(self) -> None:
        """Forget what a training measured that broke off, such as that of a batch size for which there was no memory; count
        rounds from here on."""
        self._trained.clear()
        self._divergence.clear()
        self._encoder_outputs = None
        self._patience.begin(self.schedule.rounds(self.state.epoch or 0))
        patient = callbacks_of(self, EarlyStoppingCallback)
        self._patience.restore(self._progress.patience, patient)
        if self.state.global_step:
            self.model.set_phase(self.schedule.phase(ceil(self.state.epoch - 1e-6) - 1))  # if no epoch is left to
        selects = self.args.load_best_model_at_end or patient
        if selects and self.schedule.alternates:
            warn_of_two_losses(self.args, self.model.config)

    def enter_epoch(self, epoch: int) -> None:
        """Put the model into the phase of an epoch, and set β of its mask; called at its beginning."""
        phase = self.schedule.phase(epoch)
        self.model.set_phase(phase)
        predicts = PHASES[phase].predicts if self.args.predict_from == "auto" else self.args.predict_from
        self.model.config.predict_from = predicts
        if self.mask_beta_schedule is not None:
            self.model.config.mask_beta = self.mask_beta_schedule.beta(epoch, self.state.num_train_epochs)
        in_middle = self.state.epoch is not None and self.state.epoch > epoch + 1e-6  # resumed within the epoch
        if self._probe_reference is None or (self.schedule.begins(epoch) and not in_middle):
            self._probe_reference = self._probe_attention()
        if "encoder" in PHASES[phase].trained:
            self._encoder_outputs = None
        elif self._encoder_outputs is None or self.schedule.begins(epoch):
            self._encoder_outputs = None  # which first gives back its memory
            self._encoder_outputs = self._begin_encoder_outputs(epoch)

    def _begin_encoder_outputs(self, epoch: int) -> EncoderOutputs:
        """For what is left of the phase of an epoch, which leaves the encoder as it is."""
        starts = [start for start in self.schedule.starts(self.state.num_train_epochs) if start > epoch]
        epochs = min([*starts, self.state.num_train_epochs]) - epoch
        args = self.args
        step = self._train_batch_size * args.gradient_accumulation_steps * args.world_size
        texts = self._steps_per_epoch * step
        if self._stream is None:
            texts = min(texts, len(self.train_dataset))  # type: ignore[arg-type]  # torch's Dataset declares no length
        with self.compute_loss_context_manager():
            return encoder_outputs(
                args.cache_encoder_outputs,
                self.classifier,
                lambda: self._first_texts(_EXAMPLES),
                texts,
                epochs,
                args.output_dir,
                args.world_size,
            )

    # Optimizer and learning rates

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

    def get_decay_parameter_names(self, model) -> list[str]:
        """Names of the weights that `weight_decay` is on, as `weight_decay_on` says."""
        names = super().get_decay_parameter_names(model)
        if self.args.weight_decay_on == "all":
            return names
        classifier = find_classifier(model)
        layers = [classifier.base_model, getattr(classifier.attention, "projection", None)]
        wanted = {id(parameter) for layer in layers if layer is not None for parameter in layer.parameters()}
        wanted -= {id(parameter) for parameter in classifier.get_input_embeddings().parameters()}
        parameters = dict(model.named_parameters())
        return [name for name in names if id(parameters[name]) in wanted]

    def _init_training_state(self, max_steps, num_update_steps_per_epoch, num_train_epochs, *others):
        begun, steps = super()._init_training_state(max_steps, num_update_steps_per_epoch, num_train_epochs, *others)
        patience = [callback.early_stopping_patience for callback in callbacks_of(self, EarlyStoppingCallback)]
        waited = [count for count, _ in self._progress.patience]
        if any(count >= most for count, most in zip(waited, patience, strict=False)):  # it had stopped there
            return num_train_epochs, 0
        return begun, steps

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
            steps = max(num_training_steps, self.args.get_warmup_steps(num_training_steps) + 1)  # see `phase_factor`
            return super().create_scheduler(steps, optimizer)
        optimizer = self.optimizer if optimizer is None else optimizer
        lengths = [end - start for start, end in pairwise([*starts, num_training_steps])]
        found = [phase_factor(self.args, optimizer, length) for length in lengths]
        factors = [factor for factor in found if factor is not None]
        if len(factors) < len(found):  # it follows a metric, or steps by itself, over all phases
            return super().create_scheduler(num_training_steps, optimizer)

        def factor(step: int) -> float:
            phase = bisect_right(starts, step) - 1
            return factors[phase](step - starts[phase])

        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        self._created_lr_scheduler = True
        return self.lr_scheduler

    # Loss

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        self.model.update_betas()
        if model.training and self.is_in_train and self._encoder_outputs is not None:
            with self.compute_loss_context_manager():
                encoded = self._encoder_outputs.of(inputs)
            inputs = inputs if encoded is None else {**inputs, "encoded_texts": encoded}
        with self._loss_settings():
            named = {**inputs, **named_outputs(self.model)}
            loss, outputs = super().compute_loss(model, named, True, num_items_in_batch)
        if model.training:
            if self.is_in_train:  # and not someone who looks at a batch
                self._divergence.see(self.state.global_step + 1, self.model.phase, loss, outputs)
                # As the Trainer averages the loss: over micro-batches, then over steps.
                texts = measure_texts(self.model, inputs, outputs, self._class_weights)
                self._trained.add(texts, 1 / self.current_gradient_accumulation_steps)
        elif "labels" in inputs:
            texts = measure_texts(self.model, inputs, outputs, self._class_weights)
            self._evaluated.add(texts, self.accelerator)
        return (loss, outputs) if return_outputs else loss

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

    # Evaluation

    def evaluation_loop(
        self, dataloader, description, prediction_loss_only=None, ignore_keys=None, metric_key_prefix="eval"
    ):
        refuse_stream(dataloader.dataset)
        if not len(dataloader.dataset):
            raise InputError("The evaluation set is empty.")
        self._evaluated.clear()
        output = super().evaluation_loop(dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix)
        stock = set(output.metrics)
        output.metrics[f"{metric_key_prefix}_samples"] = output.num_samples
        means = self._evaluated.take()
        if means is not None:
            means |= loss_weights(self.model.config)
            if type(self).compute_loss is VATTrainer.compute_loss:
                output.metrics.pop(f"{metric_key_prefix}_loss", None)  # of batches, and 0 where no text has a label
                if "cross_entropy" in means:
                    means = {"loss": _loss_of(means), **means}
            output.metrics.update({f"{metric_key_prefix}_{name}": value for name, value in means.items()})
            if "mask_mean" in means and self.is_world_process_zero():
                warn_of_collapse(self.model.config, means["mask_mean"], means["mask_sd"], metric_key_prefix, self.args)
        self._own_metrics |= output.metrics.keys() - stock
        return output

    # Records

    def refuse_divergence(self) -> None:
        """Raise the error if the loss of a step since the last call was not finite."""
        self._divergence.refuse(self.args)

    def _maybe_log_save_evaluate(
        self, tr_loss, grad_norm, model, trial, epoch, ignore_keys_for_eval, start_time, learning_rate=None
    ):
        if self.control.should_log or self.control.should_evaluate or self.control.should_save:
            self.refuse_divergence()
        super()._maybe_log_save_evaluate(
            tr_loss, grad_norm, model, trial, epoch, ignore_keys_for_eval, start_time, learning_rate
        )

    def log(self, logs, start_time=None):
        if self.is_in_train:
            logs["phase"] = self.classifier.phase
        if "train_loss" in logs:  # the mean over all steps, also over those before the run was resumed
            total = self._progress.loss_sum + self._total_loss_scalar
            logs["train_loss"] = total / max(self.state.global_step, 1)
        if "loss" in logs:
            logs.update(self._trained.take(self.accelerator) | loss_weights(self.model.config))
            if self._probe_reference is not None:
                logs["attention_jsd"] = jensen_shannon(self._probe_reference, self._probe_attention()).mean().item()
        super().log(logs, start_time)

    def _probe_attention(self) -> torch.Tensor | None:
        """Attention on the first training texts, [texts, T] on the CPU; None without attention pooling."""
        if self.model.config.pooling != "attention" or self.train_dataset is None:
            return None
        batch = self._first_texts(self.args.attention_probe_size)
        with self.compute_loss_context_manager():
            return attention_of(self.model, batch)

    def _first_texts(self, number: int) -> Any:
        """The model's inputs for the first training texts, up to a number; of a stream at most `attention_probe_size`."""
        if self._stream is not None:
            rows = self._stream.first[:number]
        else:
            dataset: Any = self.train_dataset
            rows = [dataset[position] for position in range(min(number, len(dataset)))]
        collate = self._get_collator_with_removed_columns(self.data_collator, description="first texts")
        return self._prepare_inputs(collate(rows))

    # Selection of the best model

    def _evaluate(self, trial, ignore_keys_for_eval, skip_scheduler=False):
        """As in the base class, but with phases the patience of an `EarlyStoppingCallback` counts rounds."""
        if not self.schedule.alternates:
            return super()._evaluate(trial, ignore_keys_for_eval, skip_scheduler)
        with self._patience.held_back(callbacks_of(self, EarlyStoppingCallback)) as waited:
            metrics = super()._evaluate(trial, ignore_keys_for_eval, skip_scheduler)
        if self._patience.is_over(waited, self.schedule.rounds(self.state.epoch + 1e-6)):
            self.control.should_training_stop = True
        return metrics

    # Checkpoints

    def _settings(self) -> dict:
        """What must agree between a checkpoint and the run that resumes it."""
        settings = resumed_settings(self.model.config, self.schedule, self.args, self._class_weights)
        return settings | self._betas_at_start

    def _save_checkpoint(self, model, trial):
        with self.checkpoint_beside(trial) as folder:
            if self.args.should_save:
                patience = self._patience.state(callbacks_of(self, EarlyStoppingCallback))
                loss_sum = self._progress.loss_sum + self._total_loss_scalar + self._tr_loss.item()
                write_state(folder, self._settings(), Progress(self._probe_reference, loss_sum, patience))
            super()._save_checkpoint(model, trial)

    def _restore(self, checkpoint: str) -> None:
        """Check a checkpoint's settings against ours and take over its attention probe."""
        self._progress = read_state(checkpoint, self._settings())
        self._probe_reference = self._progress.attention_probe
        # A finished run has no epoch left that would set them.
        take_over(self.model.config, checkpoint)

    def load_finished(self, folder: str) -> None:
        """Take up the model, and the state with all records, that a finished run has saved in its folder."""
        self._load_from_checkpoint(folder)
        take_over(self.model.config, folder)
        self.state = TrainerState.load_from_json(str(Path(folder, TRAINER_STATE_NAME)))

    def _load_best_model(self):
        super()._load_best_model()
        # The weights alone do not tell which head gave the best score.
        take_over(self.model.config, self.state.best_model_checkpoint)


def _refuse_other_loss(cls: type) -> None:
    """A loss of one's own would leave out what phases and masks add: a subclass may build on ours, not replace it."""
    for one in cls.__mro__[: cls.__mro__.index(VATTrainer)]:
        override = inspect.unwrap(vars(one).get("compute_loss", VATTrainer.compute_loss))
        if override is not VATTrainer.compute_loss and "compute_loss" not in override.__code__.co_names:
            raise InputError(
                f"{one.__name__}.compute_loss replaces the losses of the phases. Class weights and label smoothing are the "
                "settings class_weights and label_smoothing_factor; for more, add to what super().compute_loss(...) returns."
            )


def _loss_of(means: dict[str, float]) -> float:
    """The loss that follows from the means of its terms."""
    loss = means["cross_entropy"]
    for name, beta in TERMS.items():
        loss += means[beta] * means[name] if name in means else 0
    return loss
