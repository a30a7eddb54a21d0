"""Wrappers around modules: intermediate values that backward computes again, or that are kept in the host's memory.

A wrapped module has the names that it had before, in ``named_parameters`` and in state dicts.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ....autograd.graph import save_on_cpu
from ....nn import Module
from ....utils.checkpoint import checkpoint
from ...fsdp.wrap import CustomPolicy

__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing",
    "checkpoint_wrapper", "offload_wrapper",
]  # fmt: skip

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(enum.Enum):
    """Which of ``torch.utils.checkpoint``'s two ways: ``use_reentrant`` or not."""

    REENTRANT = 1
    NO_REENTRANT = 2


class ActivationWrapper(Module):
    """A module around another, whose names and attributes it has."""

    _checkpoint_wrapped_module: Module

    def __init__(self, mod: Module):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_without_our_name)
        self.register_load_state_dict_pre_hook(_with_our_name)

    def forward(self, *args, **kwargs):
        raise ValueError("Subclasses should implement forward().")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key):
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args, **kwargs):
        for name, p in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), p


class OffloadWrapper(ActivationWrapper):
    """What forward saves is kept in the host's memory."""

    def forward(self, *args, **kwargs):
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """What forward would save is computed again by ``checkpoint_fn``, by default ``torch.utils.checkpoint``."""

    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable | None = None, **checkpoint_fn_kwargs,
    ):  # fmt: skip
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn, again = checkpoint, checkpoint_impl is CheckpointImpl.REENTRANT
            checkpoint_fn_kwargs["use_reentrant"] = again
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        inner = self._checkpoint_wrapped_module
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(inner, *args, **kwargs)
        names, count = list(kwargs), len(args)  # that way takes what stands in its place only

        def called(*given):
            return inner(*given[:count], **dict(zip(names, given[count:])))

        return self.checkpoint_fn(called, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """``module``, with what its forward saves kept in the host's memory."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable | None = None, **checkpoint_fn_kwargs,
) -> Module:  # fmt: skip
    """``module``, with what its forward saves computed again when backward needs it."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda _: True, auto_wrap_policy=None
) -> None:
    """Wrap the modules inside ``model`` that ``check_fn``, or a policy of FSDP, chooses; inner ones first."""
    policy = CustomPolicy(check_fn) if auto_wrap_policy is None else auto_wrap_policy
    if not callable(policy) and not hasattr(policy, "chooses"):
        raise ValueError(f"Expected {policy} to be callable or be a pre-defined wrap policy")
    chooses = getattr(policy, "chooses", None) or (
        lambda module: policy(
            module=module, recurse=False, nonwrapped_numel=sum(p.numel() for p in module.parameters())
        )
    )
    _wrap_inside(model, checkpoint_wrapper_fn, chooses, {})


def _wrap_inside(module: Module, wrapper: Callable, chooses: Callable, made: dict[int, Module]) -> None:
    for name, child in list(module._modules.items()):
        if child is None:
            continue
        if id(child) not in made:  # one that stands in two places is wrapped once
            _wrap_inside(child, wrapper, chooses, made)
            made[id(child)] = wrapper(child) if chooses(child) else child
        setattr(module, name, made[id(child)])


def _without_our_name(module, state_dict: dict, prefix: str, *args) -> None:
    for name in [n for n in state_dict if n.startswith(prefix + _CHECKPOINT_PREFIX)]:
        state_dict[prefix + name.removeprefix(prefix + _CHECKPOINT_PREFIX)] = state_dict.pop(name)


def _with_our_name(module, state_dict: dict, prefix: str, *args) -> None:
    for name in [n for n in state_dict if n.startswith(prefix)]:
        state_dict[prefix + _CHECKPOINT_PREFIX + name.removeprefix(prefix)] = state_dict.pop(name)
