"""Layers that are quantized as one: a convolution with its batch norm and activation, a linear layer with its ReLU."""

from __future__ import annotations

import copy

from ...nn.layers.activation import ReLU
from ...nn.layers.batchnorm import BatchNorm1d, BatchNorm2d
from ...nn.layers.conv import Conv1d, Conv2d
from ...nn.layers.linear import Identity, Linear
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ..nn.intrinsic import ConvReLU1d, ConvReLU2d, LinearReLU

__all__ = ["fuse_modules", "fuse_modules_qat"]

_FUSED = {Conv1d: ConvReLU1d, Conv2d: ConvReLU2d, Linear: LinearReLU}
_NORMS = {Conv1d: BatchNorm1d, Conv2d: BatchNorm2d, Linear: BatchNorm1d}


def fuse_modules(model, modules_to_fuse, inplace=False, fuser_func=None, fuse_custom_config_dict=None):
    """``[["conv", "bn", "relu"], …]``: the first of each list takes over what the others do, they become ``Identity``.

    The model is in eval mode: the batch norm's statistics go into the weights.
    """
    return _fuse_all(model, modules_to_fuse, inplace, training=False)


def fuse_modules_qat(model, modules_to_fuse, inplace=False, fuser_func=None, fuse_custom_config_dict=None):
    """``fuse_modules`` for training: a layer with its ReLU. One with a batch norm is refused."""
    return _fuse_all(model, modules_to_fuse, inplace, training=True)


def _fuse_all(model, groups, inplace, training):
    model = model if inplace else copy.deepcopy(model)
    for names in [groups] if all(isinstance(n, str) for n in groups) else groups:
        parts = [model.get_submodule(name) for name in names]
        for name, made in zip(names, _fused(parts, names, training)):
            owner, _, last = name.rpartition(".")
            setattr(model.get_submodule(owner), last, made)
    return model


def _fused(parts, names, training):
    first, *rest = parts
    kind = type(first)
    kinds = [type(part) for part in rest]
    if kind not in _FUSED or kinds not in ([_NORMS[kind]], [_NORMS[kind], ReLU], [ReLU]):
        raise NotImplementedError(f"Cannot fuse modules: {[type(part) for part in parts]}")
    if training != first.training:
        wanted = "fuse_modules is for models in eval mode" if first.training else "fuse_modules_qat is for training"
        raise AssertionError(f"{wanted}: {names[0]} has training={first.training}")
    if _NORMS[kind] in kinds:
        if training:
            raise NotImplementedError(
                f"Cannot fuse modules: {names} for training: a batch norm that is folded while it trains is not here; "
                "fuse in eval mode, or leave the batch norm apart"
            )
        first = (fuse_linear_bn_eval if kind is Linear else fuse_conv_bn_eval)(first, rest[0])
    made = _FUSED[kind](first, rest[-1]) if ReLU in kinds else first
    made.train(parts[0].training)
    for hook in parts[0]._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in parts[-1]._forward_hooks.values():
        made.register_forward_hook(hook)
    return [made, *(_nothing(part) for part in rest)]


def _nothing(part):
    made = Identity()
    made.training = part.training
    return made
