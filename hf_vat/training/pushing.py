"""What a trainer sends to the Hub: the model and what belongs to it, and nothing else of its folder."""

import logging
import shutil
from concurrent.futures import Future
from dataclasses import replace
from glob import escape
from pathlib import Path

from huggingface_hub.errors import HfHubHTTPError, HTTPError, OfflineModeIsEnabled
from torch import nn
from transformers import Trainer, TrainingArguments
from transformers.trainer import TRAINING_ARGS_NAME, PushInProgress
from transformers.trainer_utils import HubStrategy
from transformers.utils.hub import hf_api

from hf_vat.errors import InputError
from hf_vat.hub import ModelCardCallback
from hf_vat.hub.card import CURVES_NAME, EXPLANATIONS_NAME
from hf_vat.hub.metadata import check_languages, check_license
from hf_vat.hub.provenance import Origin

from .callbacks import callbacks_of

logger = logging.getLogger(__name__)

_CARD = ("README.md", EXPLANATIONS_NAME, CURVES_NAME)
_WITH_CHECKPOINTS = ("checkpoint", "all_checkpoints")


class PushingTrainer(Trainer):
    """
    [`~transformers.Trainer`] whose pushes hold the files that it has saved and the model card, which is that of
    [`~hf_vat.hub.ModelCardCallback`].

    The base class would send its whole folder, which also holds its data's and base model's paths, its log, and what the
    user put there, and in it `training_args.bin`, a pickle with the token and local paths; it
    is not written here at all. A push during training holds the model's code as well, waits for the one before it, and
    says if it failed.

    Raises:
        InputError: if `hub_strategy` asks for checkpoints, which hold optimizer states and random states as pickles, or
            the Hub does not take a push.
    """

    hub_model_id: str  # type: ignore[assignment]  # which init_hf_repo sets; the base class says that it is None

    def __init__(self, model: nn.Module | None = None, args: TrainingArguments | None = None, *others, **named):
        if args is not None and args.push_to_hub and args.hub_strategy in _WITH_CHECKPOINTS:
            raise InputError(
                f"hub_strategy={HubStrategy(args.hub_strategy).value!r} would push optimizer states and pickles; use 'end' or 'every_save'."
            )
        self._saved: set[str] = set()  # names of the files that this trainer has written to save its model
        super().__init__(model, args, *others, **named)
        given = callbacks_of(self, ModelCardCallback)
        self.card = given[0] if given else ModelCardCallback()
        if not given:
            self.add_callback(self.card)
            self.card.on_init_end(self.args, self.state, self.control, model=self.model)

    def create_model_card(
        self,
        language: str | list[str] | None = None,
        license: str | None = None,
        tags: str | list[str] | None = None,
        model_name: str | None = None,
        finetuned_from: str | None = None,
        tasks: str | list[str] | None = None,
        dataset_tags: str | list[str] | None = None,
        dataset: str | list[str] | None = None,
        dataset_args: str | list[str] | None = None,
        revision: str | None = None,
    ) -> None:
        """
        As in transformers, and the faithfulness of the model's explanations is measured for the card; see
        [`~hf_vat.hub.ModelCardCallback`]. Of several tasks or data sets the first is named.

        Args:
            revision: the branch that the model is pushed to, for the snippet that loads it.
        """
        if not self.is_world_process_zero():
            return
        if hasattr(self.model, "peft_config"):
            logger.info("The card of an adapter is PEFT's; for one with measured explanations push the merged model.")
            return
        hub_id, name, config = map(_first, (dataset_tags, dataset, dataset_args))
        data = Origin.of(known, config=config) if (known := hub_id or name) else None
        if data is not None and name and not Origin.of(name).local:
            data = replace(data, name=name)
        path = self.card.write(
            self,
            repo_id=self.hub_model_id,
            revision=revision or self.args.hub_revision,
            language=language,
            license=license,
            tags=[tags] if isinstance(tags, str) else tags,
            name=model_name,
            base=finetuned_from and Origin.of(finetuned_from),
            task=_first(tasks),
            data=data,
        )
        if path is not None:
            logger.info("Model card: %s", path)

    def init_hf_repo(self, token: str | None = None, private: bool | None = None) -> None:
        try:
            super().init_hf_repo(token, private)
        except (HfHubHTTPError, OfflineModeIsEnabled) as error:
            raise InputError(
                f"The Hub does not take a push: {' '.join(str(error).split())} Give a token that may write (`hf auth login`, "
                "HF_TOKEN or hub_token), or leave push_to_hub out."
            ) from error
        if self.is_world_process_zero():
            info = hf_api().model_info(self.hub_model_id, token=token or self.args.hub_token)
            logger.info("Pushes go to %s, which is %s.", info.id, "private" if info.private else "public")

    def push_to_hub(
        self,
        commit_message: str | None = "End of training",
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        private: bool | None = None,
        **kwargs,
    ):
        """As in transformers."""
        check_license(kwargs.get("license"))  # before anything is written or sent
        check_languages(kwargs.get("language"))
        self.callback_handler.on_push_begin(self.args, self.state, self.control)
        if self.hub_model_id is None:
            self.init_hf_repo(token=token, private=private)
        self._finish_current_push()  # which reads the folder that is written next
        self.save_model(_internal_call=True)
        if not self.is_world_process_zero():
            return None
        self.create_model_card(**{"model_name": self.hub_model_id.split("/")[-1], "revision": revision, **kwargs})
        try:
            return self._upload(commit_message, blocking, token, revision)
        except (HTTPError, OSError) as error:
            raise InputError(
                f"The push to {self.hub_model_id} failed: {' '.join(str(error).split())} Everything is in "
                f"{self.args.output_dir}; the same command with --resume_from_checkpoint last pushes again and trains nothing."
            ) from error

    def _save(self, output_dir=None, state_dict=None):
        folder = Path(output_dir or self.args.output_dir)
        before = _stamps(folder)
        super()._save(output_dir, state_dict)
        (folder / TRAINING_ARGS_NAME).unlink(missing_ok=True)
        if hasattr(self.model, "peft_config") and self.args.should_save:
            self.model.config.save_pretrained(
                folder
            )  # beside an adapter PEFT saves none, and it says which head predicts
        self._saved |= {name for name, stamp in _stamps(folder).items() if stamp != before.get(name)}

    def _push_from_checkpoint(self, checkpoint_folder):
        if not self.is_world_process_zero() or self.args.hub_strategy == "end":
            return
        running = self.push_in_progress is not None and not self.push_in_progress.is_done()
        if running and not self.args.hub_always_push:
            return
        self.callback_handler.on_push_begin(self.args, self.state, self.control)
        self._finish_current_push()
        for file in Path(checkpoint_folder).iterdir():
            if file.name in self._saved:
                shutil.copy(file, self.args.output_dir)
        job = self._upload(f"Training in progress, step {self.state.global_step}", blocking=False)
        job.add_done_callback(_report_failure)
        self.push_in_progress = PushInProgress([job])

    def _upload(self, commit_message, blocking: bool, token: str | None = None, revision: str | None = None):
        return hf_api().upload_folder(  # type: ignore[call-overload]  # of two, for each value of run_as_future
            repo_id=self.hub_model_id,
            folder_path=self.args.output_dir,
            allow_patterns=[escape(name) for name in sorted({*self._saved, *_CARD})],
            ignore_patterns=["*/*"],  # checkpoints
            commit_message=commit_message,
            token=token or self.args.hub_token,
            revision=revision or self.args.hub_revision,
            run_as_future=not blocking,
        )


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """By which a file is known to have been written again."""
    if not folder.is_dir():
        return {}
    stats = {path.name: path.stat() for path in folder.iterdir() if path.is_file()}
    return {name: (one.st_mtime_ns, one.st_ino) for name, one in stats.items()}


def _first(given: str | list[str] | None) -> str | None:
    if isinstance(given, str):
        return given or None
    return given[0] if given else None


def _report_failure(job: Future) -> None:
    if job.exception() is not None:
        logger.warning("A push during training failed: %s", job.exception())
