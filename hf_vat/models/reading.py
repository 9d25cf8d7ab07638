"""What a model has to be told, and what it reads beside a text."""

from inspect import Parameter, signature

from torch import nn

from .configuration_vat import SEE_PADDING


def named_outputs(model) -> dict[str, bool]:
    """What a model is told so that its outputs have names, where the configuration asks for tuples."""
    return {} if getattr(model.config, "return_dict", True) else {"return_dict": True}


def takes_center(model) -> bool:
    """Whether a model, or what it is wrapped around, can be asked for `token_attribution`: a classifier of hf_vat."""
    if not isinstance(model, nn.Module):
        return "attribution_center" in signature(model.forward).parameters
    own = signature(model.forward).parameters.values()
    if not any(one.name == "attribution_center" or one.kind is Parameter.VAR_KEYWORD for one in own):
        return False
    return any("attribution_center" in signature(module.forward).parameters for module in model.modules())


def sees_padding(model) -> bool:
    """Whether the numbers that a model gives for a text change with the padding beside it."""
    encoder = getattr(model.config, "encoder", model.config)
    return getattr(encoder, "model_type", None) in SEE_PADDING


__all__ = ["named_outputs", "sees_padding", "takes_center"]
