"""Every encoder does what the table of the documentation says, or is refused as it says."""

import sys
from pathlib import Path

import pytest
import torch
from transformers import BigBirdConfig, CanineConfig, OPTConfig, PreTrainedConfig

from hf_vat import EncoderForVATClassification, EncoderVATConfig

sys.path.append(str(Path(__file__).parent))
import encoders


@pytest.mark.parametrize("family", encoders.FAMILIES)
def test_the_table_says_what_becomes_of_it(family):
    assert encoders.row(family) in encoders.PAGE.read_text(encoding="utf-8")


def test_the_table_has_each_family_once():
    lines = encoders.PAGE.read_text(encoding="utf-8").partition("<!-- table -->")[2].splitlines()
    shown = [line.split("|")[1].strip() for line in lines if line.startswith("| ")]
    assert shown[1:] == list(encoders.FAMILIES)


def with_words(config: PreTrainedConfig, objective: str):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return EncoderForVATClassification(
            EncoderVATConfig(encoder=config, word_objective=objective, special_token_ids=[0, 2], initializer_range=0.3)
        ).eval()


SPARSE = BigBirdConfig(**encoders._BERT, attention_type="block_sparse", block_size=2, num_random_blocks=1)


@pytest.mark.parametrize("objective", ["residual", "concat"])
@pytest.mark.parametrize("family", [*encoders.FAMILIES, "BigBird, sparse"])
def test_the_word_that_is_put_back_is_that_of_the_token(family, objective):
    """Pooled is the state with what the encoder made of this token alone, before its first layer; whatever the text's length."""
    try:
        config = SPARSE if family == "BigBird, sparse" else encoders.config_of(family)
        model = with_words(config, objective)
    except ValueError as error:
        assert "one of" in str(error) or "use " in str(error)  # says what to do
        return
    for length in (18, 27):
        ids = torch.tensor([[0, *(6 + place % 12 for place in range(length - 2)), 2]])
        changed = ids.clone()
        changed[0, 5] = 23
        mask = torch.ones_like(ids)
        with torch.no_grad():
            model(input_ids=ids, attention_mask=mask, attribution_center="mean")
            last = model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
            found = [model.token_states(one, mask, words=True) for one in (ids, changed)]
        words, other = (one.words for one in found)
        assert words.shape[:2] == last.shape[:2] == (1, length)
        moved = (words - other).abs().sum(-1)[0].nonzero().flatten().tolist()
        assert moved == ([4, 5, 6] if family == "MobileBERT" else [5])  # whose embeddings read the neighbours
        wanted = torch.cat([last, words], -1) if objective == "concat" else last + words
        torch.testing.assert_close(found[0].states, wanted, atol=1e-5, rtol=1e-5)


def test_encoders_without_what_is_read_are_refused():
    small = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 16}
    with pytest.raises(
        ValueError, match='word_objective="residual" reads the embedding of each token, and CanineModel has none'
    ):
        with_words(CanineConfig(**small), "residual")
    with pytest.raises(ValueError, match="states of word_embed_proj_dim=8, and not of its hidden_size=16"):
        EncoderVATConfig(encoder=OPTConfig(**encoders.FAMILIES["OPT"][1] | {"word_embed_proj_dim": 8}))
