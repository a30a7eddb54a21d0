"""Function transforms: they take a function of tensors and return one."""

from __future__ import annotations

from .differentiation import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from .mapping import sliced, vmap
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .writing import functionalize

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def __dir__():
    return __all__
