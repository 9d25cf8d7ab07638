"""What trained models are measured by in more than one paper."""

import numpy as np

from hf_vat.inference import forward_batches, predict_outputs

BATCH_SIZE = 64


def predicted_right(model, tokenizer, rows) -> np.ndarray:
    """Whether the model classifies each text of a split correctly, shape [N]."""
    inputs = _token_ids(tokenizer, rows["text"][:])
    return predict_outputs(model, tokenizer, inputs, BATCH_SIZE).argmax(1) == np.array(rows["label"][:])


def text_vectors(model, tokenizer, texts: list[str]) -> np.ndarray:
    """The vectors that the classifier reads, shape [N, H]."""
    vectors = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
    for places, output in forward_batches(model, tokenizer, _token_ids(tokenizer, texts), BATCH_SIZE):
        vectors[places] = output.pooler_output.float().numpy(force=True)
    return vectors


def _token_ids(tokenizer, texts: list[str]) -> list[list[int]]:
    return [ids or [tokenizer.unk_token_id] for ids in tokenizer(texts, truncation=True)["input_ids"]]
