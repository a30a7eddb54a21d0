"""Function transforms: they take a function of tensors and return one.

Made by tools/stubs.py; do not edit.
"""

from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self, TypeVar, overload

import numpy as np
from typing_extensions import TypeIs

from rushlight.device import device as _device
from rushlight.dtypes import dtype as _dtype
from rushlight.layout import layout as _layout, memory_format as _memory_format
from rushlight.ops import returns as _returns
from rushlight.random import Generator as _Generator
from rushlight.storage import UntypedStorage as _UntypedStorage
from rushlight.tensor import Size as _Size, Tensor as _Tensor
from rushlight.utils.hooks import RemovableHandle as _RemovableHandle

_Number = _int | _float | _bool
_Scalar = _Number | _complex
_Device = _device | _str | _int | None
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])

def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, *, tie_weights: _bool = True, strict: _bool = False) -> Any:
    """Call a module with some of its parameters and buffers replaced."""
def functionalize(func: Callable[..., Any], *, remove: _str = 'mutations') -> Any:
    """`func` itself: its results, and what it wrote into its arguments, are those of the same program without writes."""
def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: _bool = False) -> Any:
    """A function that computes the gradient of the scalar `func` with respect to its `argnums`-th argument(s)."""
def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: _bool = False) -> Any:
    """Like `grad`; the function returns `(gradient, value)`."""
def hessian(func: Callable[..., Any], argnums: Any = 0) -> Any:
    """A function that computes the Hessian of the scalar `func`: forward mode over a backward pass."""
def jacfwd(func: Callable[..., Any], argnums: Any = 0, has_aux: _bool = False, *, chunk_size: Any = None, randomness: _str = 'error') -> Any:
    """A function that computes the Jacobian of `func` by its `argnums`-th argument(s), column by column."""
def jacrev(func: Callable[..., Any], argnums: Any = 0, *, has_aux: _bool = False, chunk_size: Any = None, _preallocate_and_copy: _bool = False) -> Any:
    """A function that computes the Jacobian of `func` by its `argnums`-th argument(s), row by row."""
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: _bool = False, has_aux: _bool = False) -> Any:
    """`(func(*primals), J tangents)`, by forward mode."""
def linearize(func: Callable[..., Any], *primals: Any) -> Any:
    """`(func(*primals), f)` where `f(*tangents)` is `J tangents`; `func` is called once."""
def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let every BatchNorm of a module normalize by its batch alone: running statistics would be written in place."""
def stack_module_state(models: Any) -> Any:
    """The parameters, and the buffers, of several models of one class, each stacked along a new first dimension."""
def vjp(func: Callable[..., Any], *primals: Any, has_aux: _bool = False) -> Any:
    """`(func(*primals), f)` where `f(v)` is `vᵀ J` for each of the primals."""
def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: _str = 'error', *, chunk_size: Any = None) -> Any:
    """A function that maps `func` over a dimension of its arguments and stacks the results."""
