"""Classifiers with a mask on their words: VMASK (Chen and Ji, EMNLP 2020), L2X and IBA, also under VAT."""

import torch
from transformers import initialization as init
from transformers.models.bert.modeling_bert import BertEmbeddings

from .configuration_vmask import BertVMaskConfig, EncoderVMaskConfig
from .modeling_vat import BertForVATClassification, EncoderForVATClassification
from .word_mask import MASKS, InformationBottleneckMask
from .words import position_offset


class MaskableEmbeddings(BertEmbeddings):
    """
    BERT's embedding layer, whose output [B, T, H] may lie under a mask: BERT, which calls it, is given that output as
    `inputs_embeds`, and it comes back as it is. With `of_words=True` they are word embeddings, as in BERT itself.
    """

    def forward(self, input_ids=None, *, inputs_embeds=None, of_words: bool = False, **kwargs) -> torch.Tensor:
        if input_ids is None and not of_words:
            return inputs_embeds
        return super().forward(input_ids, inputs_embeds=inputs_embeds, **kwargs)


class WordMasking:
    """
    A mask between the word embeddings of an encoder and the rest of it. To be mixed into a [`VATClassifier`] whose
    configuration holds [`VMaskSettings`].

    The mask lies on the content tokens: special tokens and padding reach the encoder as they are. The output has
    `token_mask`, and the loss has β · mean(mask_compression) with β = `config.mask_beta`, which may be changed between
    steps.
    """

    def _add_heads(self, config, dropout: float) -> None:
        super()._add_heads(config, dropout)
        if config.mask_type != "none":
            embeddings = self.get_input_embeddings().embedding_dim
            size = embeddings if config.mask_site == "word" else config.hidden_size
            self.word_mask = MASKS[config.mask_type](config, size)
            if config.mask_site == "embedding_output":
                self.base_model.embeddings = MaskableEmbeddings(config)
        self._position_offset = position_offset(self.base_model)
        self._freeze_embeddings()

    def _freeze_embeddings(self) -> None:
        """Turn the parameters of the embedding layer into buffers.

        `requires_grad=False` would not last: `from_pretrained` forgets it.
        """
        if not self.config.freeze_embeddings:
            return
        layer = getattr(self.base_model, "embeddings", self.get_input_embeddings())
        for module in layer.modules():
            for name, parameter in list(module.named_parameters(recurse=False)):
                delattr(module, name)
                module.register_buffer(name, parameter.detach())

    @torch.no_grad()
    def _init_weights(self, module):
        super()._init_weights(module)
        if isinstance(module, InformationBottleneckMask):
            init.zeros_(module.mean)
            init.ones_(module.variance)
            init.zeros_(module.count)

    def _encode(self, inputs: dict, content: torch.Tensor, **kwargs):
        if self.word_mask is None:
            return super()._encode(inputs, content, **kwargs)
        if self.config.mask_site == "embedding_output":
            return self._encode_masking_output(inputs, content, **kwargs)
        inputs = dict(inputs)
        if "input_ids" in inputs:
            input_ids = inputs.pop("input_ids").long()  # tokenizers give floats if no text has a token
            inputs["inputs_embeds"] = self.get_input_embeddings()(input_ids)  # [B, T, d]
            offset = self._position_offset
            if offset is not None and "position_ids" not in inputs:
                # From embeddings such encoders cannot tell the padding, which they leave out when they count.
                words = input_ids != offset
                inputs["position_ids"] = words.cumsum(1) * words + offset
        masked = self.word_mask(inputs["inputs_embeds"], content)
        encoded = self.base_model(**{**inputs, "inputs_embeds": masked.embeddings}, **kwargs)
        return encoded, masked.probabilities, masked.term

    def _encode_masking_output(self, inputs: dict, content: torch.Tensor, **kwargs):
        of_words = {name: tensor for name, tensor in inputs.items() if name != "attention_mask"}
        masked = self.word_mask(self.base_model.embeddings(**of_words, of_words=True), content)
        inputs = {**inputs, "input_ids": None, "inputs_embeds": masked.embeddings}
        return self.base_model(**inputs, **kwargs), masked.probabilities, masked.term


class BertWithVMask(WordMasking, BertForVATClassification):
    """
    BERT whose words pass a mask that is trained with it.

    `from_pretrained` takes checkpoints of this class, plain BERT checkpoints, and those of
    [`BertForVATClassification`], of which the heads are kept too: the paper fine-tunes BERT on the task first and then
    trains it with the mask. What is not in the checkpoint is initialised.
    """

    config_class = BertVMaskConfig


class EncoderWithVMask(WordMasking, EncoderForVATClassification):
    """
    Any encoder of `AutoModel` whose words pass a mask that is trained with it; word encoders are the paper's CNN and LSTM.

    [`from_encoder_pretrained`] begins with a pretrained encoder; `from_pretrained` loads checkpoints of this class and
    of [`EncoderForVATClassification`], of which the heads are kept too.

    An encoder whose first layer normalises each word embedding alone, such as ModernBERT, takes a factor out again: the
    masks of VMASK and L2X then change nothing, while that of IBA does. BERT and its kin add positions first.
    """

    config_class = EncoderVMaskConfig


__all__ = ["BertWithVMask", "EncoderWithVMask"]
