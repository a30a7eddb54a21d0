"""`torch.signal.windows`: the windows of signal processing, symmetric unless `sym=False`.

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

def bartlett(M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ..., device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """A triangle from zero to one and back."""
def blackman(M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ..., device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """0.42 - 0.5 cos(2πn / N) + 0.08 cos(4πn / N)."""
def cosine(M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ..., device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """sin(π(n + 0.5) / N)."""
def exponential(M: _int, *, center: Any = None, tau: _float = 1.0, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ..., device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """exp(-\\|n - center\\| / tau)."""
def gaussian(M: _int, *, std: _float = 1.0, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ..., device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """exp(-(n / std)² / 2) around the middle."""
def general_cosine(M: _int, *, a: _float, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ..., device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """Σ (-1)ⁱ aᵢ cos(2πin / N)."""
def general_hamming(M: _int, *, alpha: _Number = 0.54, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ..., device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """alpha - (1 - alpha) cos(2πn / N)."""
def hamming(M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ..., device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """0.54 - 0.46 cos(2πn / N)."""
def hann(M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ..., device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """sin²(πn / N)."""
def kaiser(M: _int, *, beta: _Number = 12.0, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ..., device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """I₀(beta · √(1 - (2n / N - 1)²)) / I₀(beta), I₀ the modified Bessel function."""
def nuttall(M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ..., device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """Four cosine terms with very low side lobes."""
