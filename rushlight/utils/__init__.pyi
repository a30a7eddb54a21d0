"""Helpers around the library: hooks' handles, checkpointing, data loading.

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

from rushlight.utils import benchmark as benchmark
from rushlight.utils import checkpoint as checkpoint
from rushlight.utils import collect_env as collect_env
from rushlight.utils import data as data
from rushlight.utils import dlpack as dlpack
from rushlight.utils import flop_counter as flop_counter
from rushlight.utils import hooks as hooks
from rushlight.utils import model_zoo as model_zoo
def swap_tensors(t1: _Tensor, t2: _Tensor) -> None:
    """Exchange class, values, gradient and attributes: whoever holds `t1` then holds what `t2` was."""
from rushlight.utils import tensorboard as tensorboard
