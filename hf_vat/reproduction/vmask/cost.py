"""What a training step costs with each word mask, relative to the same model without: table 9 of the VMASK paper."""

import time

import numpy as np
import torch
from datasets import DatasetDict
from transformers import DataCollatorWithPadding, set_seed

from hf_vat.training import ModelArguments
from hf_vat.training.loading import load_model

from .systems import SYSTEMS, VMaskEncoder

_BATCHES = 10
_ROUNDS = 7


def step_seconds(encoder: VMaskEncoder, data: DatasetDict) -> dict[str, float]:
    """Seconds of a training step (forward, backward, update) by system, on the same batches.

    The systems take turns at each batch. Of each step the fastest of seven rounds counts, since other work on the machine
    only adds time. Global random state is left as it was.

    Raises:
        InputError: if the encoder cannot be loaded.
    """
    size = encoder.training["per_device_train_batch_size"]
    rows = data["train"].select(np.random.default_rng(0).permutation(len(data["train"]))[: _BATCHES * size])
    seconds = {system: np.full((_ROUNDS, -(-len(rows) // size)), np.inf) for system in SYSTEMS}
    with torch.random.fork_rng():
        set_seed(0)
        steps = {}
        for system in SYSTEMS:
            arguments = ModelArguments(max_length=256, **encoder.system(system)[0], **encoder.model())
            tokenizer, model = load_model(arguments, data["train"])
            weight_decay = encoder.weight_decay if system == "l2" else 0.0
            trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
            steps[system] = model.train(), torch.optim.AdamW(trained, lr=1e-5, weight_decay=weight_decay)
        collate = DataCollatorWithPadding(tokenizer)
        encoded = [
            {**tokenizer(text, truncation=True), "labels": label}
            for text, label in zip(rows["text"][:], rows["label"][:], strict=True)
        ]
        encoded.sort(key=lambda row: len(row["input_ids"]))  # as training puts texts of like length together
        batches = [collate(encoded[start : start + size]) for start in range(0, len(encoded), size)]
        for turn in range(_ROUNDS):
            for place, batch in enumerate(batches):
                for system, (model, optimizer) in steps.items():
                    started = time.perf_counter()
                    model(**batch).loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    seconds[system][turn, place] = time.perf_counter() - started
    return {system: float(found.min(0).mean()) for system, found in seconds.items()}
