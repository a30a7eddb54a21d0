"""Initializers: they fill a tensor in place, outside the graph, by PyTorch's formulas and random streams.

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

def calculate_gain(nonlinearity: Any, param: Any = None) -> _float:
    """By how much weights before `nonlinearity` must be larger to keep the variance of activations."""
def constant(tensor: _Tensor, val: Any) -> _Tensor:
    """Fill with `val`."""
def constant_(tensor: _Tensor, val: Any) -> _Tensor:
    """Fill with `val`."""
def dirac(tensor: _Tensor, groups: _int = 1) -> _Tensor:
    """Make a convolution's weight pass its input channels through, as many as it has."""
def dirac_(tensor: _Tensor, groups: _int = 1) -> _Tensor:
    """Make a convolution's weight pass its input channels through, as many as it has."""
def eye(tensor: _Tensor) -> _Tensor:
    """Make a matrix the identity, as far as it is square."""
def eye_(tensor: _Tensor) -> _Tensor:
    """Make a matrix the identity, as far as it is square."""
def kaiming_normal(tensor: _Tensor, a: _float = 0, mode: _str = 'fan_in', nonlinearity: _str = 'leaky_relu', generator: _Generator | None = None) -> _Tensor:
    """Normal with std gain / √fan: He et al., 2015."""
def kaiming_normal_(tensor: _Tensor, a: _float = 0, mode: _str = 'fan_in', nonlinearity: _str = 'leaky_relu', generator: _Generator | None = None) -> _Tensor:
    """Normal with std gain / √fan: He et al., 2015."""
def kaiming_uniform(tensor: _Tensor, a: _float = 0, mode: _str = 'fan_in', nonlinearity: _str = 'leaky_relu', generator: _Generator | None = None) -> _Tensor:
    """Uniform in ±gain·√(3 / fan): He et al., 2015."""
def kaiming_uniform_(tensor: _Tensor, a: _float = 0, mode: _str = 'fan_in', nonlinearity: _str = 'leaky_relu', generator: _Generator | None = None) -> _Tensor:
    """Uniform in ±gain·√(3 / fan): He et al., 2015."""
def normal(tensor: _Tensor, mean: _float = 0.0, std: _float = 1.0, generator: _Generator | None = None) -> _Tensor:
    """Fill with normal numbers."""
def normal_(tensor: _Tensor, mean: _float = 0.0, std: _float = 1.0, generator: _Generator | None = None) -> _Tensor:
    """Fill with normal numbers."""
def ones_(tensor: _Tensor) -> _Tensor:
    """Fill with ones."""
def orthogonal(tensor: _Tensor, gain: _float = 1, generator: _Generator | None = None) -> _Tensor:
    """Orthonormal rows or columns (of the tensor flattened to a matrix), times `gain`: Saxe et al., 2013."""
def orthogonal_(tensor: _Tensor, gain: _float = 1, generator: _Generator | None = None) -> _Tensor:
    """Orthonormal rows or columns (of the tensor flattened to a matrix), times `gain`: Saxe et al., 2013."""
def sparse(tensor: _Tensor, sparsity: Any, std: _float = 0.01, generator: _Generator | None = None) -> _Tensor:
    """Normal numbers, a share of `sparsity` in each column set to zero: Martens, 2010."""
def sparse_(tensor: _Tensor, sparsity: Any, std: _float = 0.01, generator: _Generator | None = None) -> _Tensor:
    """Normal numbers, a share of `sparsity` in each column set to zero: Martens, 2010."""
def trunc_normal_(tensor: _Tensor, mean: _float = 0.0, std: _float = 1.0, a: _float = -2.0, b: _float = 2.0, generator: _Generator | None = None) -> _Tensor:
    """Fill with normal numbers of which only those within [a, b] are taken."""
def uniform(tensor: _Tensor, a: _float = 0.0, b: _float = 1.0, generator: _Generator | None = None) -> _Tensor:
    """Fill with uniform numbers from [a, b)."""
def uniform_(tensor: _Tensor, a: _float = 0.0, b: _float = 1.0, generator: _Generator | None = None) -> _Tensor:
    """Fill with uniform numbers from [a, b)."""
def xavier_normal(tensor: _Tensor, gain: _float = 1.0, generator: _Generator | None = None) -> _Tensor:
    """Normal with std gain·√(2 / (fan_in + fan_out)): Glorot & Bengio, 2010."""
def xavier_normal_(tensor: _Tensor, gain: _float = 1.0, generator: _Generator | None = None) -> _Tensor:
    """Normal with std gain·√(2 / (fan_in + fan_out)): Glorot & Bengio, 2010."""
def xavier_uniform(tensor: _Tensor, gain: _float = 1.0, generator: _Generator | None = None) -> _Tensor:
    """Uniform in ±gain·√(6 / (fan_in + fan_out)): Glorot & Bengio, 2010."""
def xavier_uniform_(tensor: _Tensor, gain: _float = 1.0, generator: _Generator | None = None) -> _Tensor:
    """Uniform in ±gain·√(6 / (fan_in + fan_out)): Glorot & Bengio, 2010."""
def zeros_(tensor: _Tensor) -> _Tensor:
    """Fill with zeros."""
