"""The package ``functorch``, as ``torch.func`` was called before: its names, each with PyTorch's warning."""

from __future__ import annotations

import copy
import functools

from .. import func
from ..errors import warn_user
from ..func import functional_call, functionalize, stack_module_state
from ..nn.module import Module
from ..version import __version__

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "__version__",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]


def __dir__():
    return __all__


class FunctionalModuleWithBuffers(Module):
    """A module without values of its own: called as ``f(parameters, buffers, *args)``."""

    def __init__(self, stateless_model, param_names, buffer_names):
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, param_names, buffer_names

    def forward(self, params, buffers, *args, **kwargs):
        values = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers)))
        return functional_call(self.stateless_model, values, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without values of its own: called as ``f(parameters, *args)``."""

    def __init__(self, stateless_model, param_names):
        super().__init__(stateless_model, param_names, ())

    def forward(self, params, *args, **kwargs):
        return super().forward(params, (), *args, **kwargs)


def make_functional(model, disable_autograd_tracking: bool = False):
    """(function of the parameters and what the model takes, a copy of the parameters)"""
    _warn("make_functional", "torch.func.functional_call")
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    stateless, params, _ = _taken_apart(model, disable_autograd_tracking)
    return FunctionalModule(stateless, tuple(params)), tuple(params.values())


def make_functional_with_buffers(model, disable_autograd_tracking: bool = False):
    """(function of parameters, buffers and what the model takes, a copy of the parameters, one of the buffers)"""
    _warn("make_functional_with_buffers", "torch.func.functional_call")
    stateless, params, buffers = _taken_apart(model, disable_autograd_tracking)
    function = FunctionalModuleWithBuffers(stateless, tuple(params), tuple(buffers))
    return function, tuple(params.values()), tuple(buffers.values())


def combine_state_for_ensemble(models):
    """A function of models of one kind, with their parameters, and buffers, stacked: for ``vmap``."""
    _warn("combine_state_for_ensemble", "torch.func.stack_module_state")
    params, buffers = stack_module_state(models)
    stateless = copy.deepcopy(models[0]).to("meta")
    function = FunctionalModuleWithBuffers(stateless, tuple(params), tuple(buffers))
    return function, tuple(params.values()), tuple(buffers.values())


def _taken_apart(model, untracked: bool):
    """The model on the meta device, and copies of its parameters and buffers by name."""
    own = copy.deepcopy(model)
    params, buffers = dict(own.named_parameters()), dict(own.named_buffers())
    if untracked:
        for p in params.values():
            p.requires_grad_(False)
    return copy.deepcopy(own).to("meta"), params, buffers


def _deprecated(function, instead: str = "torch.func"):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        _warn(function.__name__, f"{instead}.{function.__name__}")
        return function(*args, **kwargs)

    return wrapped


def _warn(name: str, instead: str) -> None:
    warn_user(
        f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{name}` is "
        f"deprecated as of PyTorch 2.0 and will be deleted in a future version of PyTorch >= 2.3. Please use "
        f"`{instead}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` migration guide for more "
        "details https://pytorch.org/docs/main/func.migrating.html",
        FutureWarning,
    )


grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp = map(
    _deprecated, (func.grad, func.grad_and_value, func.hessian, func.jacfwd, func.jacrev, func.jvp, func.vjp)
)
vmap = _deprecated(func.vmap, "torch")
