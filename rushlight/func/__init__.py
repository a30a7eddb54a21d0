"""Function transforms: they take a function of tensors and return one."""

from __future__ import annotations

from .differentiation import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from .mapping import sliced, vmap
from .modules import functional_call, stack_module_state

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]


def __dir__():
    return __all__
