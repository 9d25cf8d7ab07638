"""What a trainer sends to the Hub: the model and what belongs to it, and nothing else of its folder."""

import logging
import shutil
from concurrent.futures import Future
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from transformers import Trainer
from transformers.trainer import TRAINING_ARGS_NAME, PushInProgress
from transformers.utils.hub import hf_api

from ..errors import InputError

logger = logging.getLogger(__name__)

# The folder of a run also holds its data's and base model's paths, its log, and what the user put there.
PUSHED = (
    *("config.json", "*.safetensors", "*.safetensors.index.json", "*.py", "README.md", "*.svg"),
    *("tokenizer*.json", "vocab.*", "merges.txt", "*.model", "special_tokens_map.json", "added_tokens.json", "*.jinja"),
)
_WITH_CHECKPOINTS = ("checkpoint", "all_checkpoints")


class PushingTrainer(Trainer):
    """
    [`~transformers.Trainer`] whose pushes hold what [`PUSHED`] names.

    The base class would send its whole folder, and in it `training_args.bin`, a pickle with the token and local paths; it
    is not written here at all. A push during training holds the model's code as well, waits for the one before it, and
    says if it failed.

    Raises:
        InputError: if `hub_strategy` asks for checkpoints, which hold optimizer states and random states as pickles, or
            the Hub does not take a push.
    """

    def __init__(self, model=None, args=None, *trainer_args, **kwargs):
        if args is not None and args.push_to_hub and args.hub_strategy in _WITH_CHECKPOINTS:
            raise InputError(
                f"hub_strategy={args.hub_strategy.value!r} would push optimizer states and pickles; use 'end' or 'every_save'."
            )
        super().__init__(model, args, *trainer_args, **kwargs)

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
        self.callback_handler.on_push_begin(self.args, self.state, self.control)
        if self.hub_model_id is None:
            self.init_hf_repo(token=token, private=private)
        self._finish_current_push()  # which reads the folder that is written next
        self.save_model(_internal_call=True)
        if not self.is_world_process_zero():
            return None
        self.create_model_card(**{"model_name": self.hub_model_id.split("/")[-1], **kwargs})
        return self._upload(commit_message, blocking, token, revision)

    def _save(self, output_dir=None, state_dict=None):
        super()._save(output_dir, state_dict)
        Path(output_dir or self.args.output_dir, TRAINING_ARGS_NAME).unlink(missing_ok=True)

    def _push_from_checkpoint(self, checkpoint_folder):
        if not self.is_world_process_zero() or self.args.hub_strategy == "end":
            return
        running = self.push_in_progress is not None and not self.push_in_progress.is_done()
        if running and not self.args.hub_always_push:
            return
        self.callback_handler.on_push_begin(self.args, self.state, self.control)
        self._finish_current_push()
        for file in Path(checkpoint_folder).iterdir():
            if any(fnmatch(file.name, pattern) for pattern in PUSHED):
                shutil.copy(file, self.args.output_dir)
        job = self._upload(f"Training in progress, step {self.state.global_step}", blocking=False)
        job.add_done_callback(_report_failure)
        self.push_in_progress = PushInProgress([job])

    def _upload(self, commit_message, blocking: bool, token: str | None = None, revision: str | None = None):
        return hf_api().upload_folder(
            repo_id=self.hub_model_id,
            folder_path=self.args.output_dir,
            allow_patterns=list(PUSHED),
            ignore_patterns=["*/*"],  # checkpoints
            commit_message=commit_message,
            token=token or self.args.hub_token,
            revision=revision or self.args.hub_revision,
            run_as_future=not blocking,
        )


def _report_failure(job: Future) -> None:
    if job.exception() is not None:
        logger.warning("A push during training failed: %s", job.exception())
