"""Jacobians, Hessians and their products with vectors, of plain functions of tensors.

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

def hessian(func: Callable[..., Any], inputs: Any, create_graph: _bool = False, strict: _bool = False, vectorize: _bool = False, outer_jacobian_strategy: _str = 'reverse-mode') -> Any:
    """The Hessian of a scalar function."""
def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: _bool = False, strict: _bool = False) -> Any:
    """`(func(inputs), H v)` of a scalar function: forward mode over a backward pass."""
def jacobian(func: Callable[..., Any], inputs: Any, create_graph: _bool = False, strict: _bool = False, vectorize: _bool = False, strategy: _str = 'reverse-mode') -> Any:
    """The Jacobian of `func`: for each output and input a tensor of shape `(*output.shape, *input.shape)`."""
def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: _bool = False, strict: _bool = False) -> Any:
    """`(func(inputs), J v)`, by forward mode."""
def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: _bool = False, strict: _bool = False) -> Any:
    """`(func(inputs), vᵀ H)` of a scalar function."""
def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: _bool = False, strict: _bool = False) -> Any:
    """`(func(inputs), vᵀ J)`."""
