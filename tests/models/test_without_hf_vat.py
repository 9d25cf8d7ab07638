"""Folders of all classes in a process that has transformers alone."""

import os
import subprocess
import sys

from transformers import BertConfig

from hf_vat.models import (
    BertForVATClassification,
    BertVATConfig,
    BertVMaskConfig,
    BertWithVMask,
    EncoderForVATClassification,
    EncoderVATConfig,
    EncoderVMaskConfig,
    EncoderWithVMask,
    WordEncoderConfig,
    WordEncoderModel,
)

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
LOAD = """
import sys
sys.modules["hf_vat"] = None  # makes "import hf_vat" fail
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer, pipeline
for folder in sys.argv[1:]:
    AutoConfig.from_pretrained(folder, trust_remote_code=True)
    AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    if folder.endswith("word_encoder"):
        AutoModel.from_pretrained(folder, trust_remote_code=True)
        continue
    AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)
    pipeline("text-classification", model=folder, trust_remote_code=True)("a good film")
    pipeline(model=folder, trust_remote_code=True)("a good film")
print("loaded")
"""


def test_f71_no_class_is_loaded_with_a_warning(tokenizer, tmp_path):
    bert = {"vocab_size": len(tokenizer), "max_position_embeddings": 32, **SIZES}
    words = {"vocab_size": len(tokenizer), "embedding_size": 8, "hidden_size": 16}
    models = {
        "bert_vat": BertForVATClassification(BertVATConfig(**bert)),
        "bert_vmask": BertWithVMask(BertVMaskConfig(**bert)),
        "encoder_vat": EncoderForVATClassification(EncoderVATConfig(encoder=BertConfig(**bert))),
        "encoder_vmask": EncoderWithVMask(EncoderVMaskConfig(encoder=BertConfig(**bert))),
        "lstm_vat": EncoderForVATClassification(EncoderVATConfig(encoder=WordEncoderConfig(**words))),
        "word_encoder": WordEncoderModel(WordEncoderConfig(**words)),
    }
    for name, model in models.items():
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *(str(tmp_path / name) for name in models)],
        **{"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 240},
        env=os.environ | {"TRANSFORMERS_NO_ADVISORY_WARNINGS": "", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0 and done.stdout == "loaded\n", done.stderr[-3000:]
    assert "You are using a model of type" not in done.stderr
