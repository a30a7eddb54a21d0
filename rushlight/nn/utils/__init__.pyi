"""Tools around modules and their parameters, under PyTorch's names.

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

def clip_grad_norm(parameters: Any, max_norm: Any, norm_type: _float = 2.0, error_if_nonfinite: _bool = False, foreach: Any = None) -> _Tensor:
    """Deprecated: the former name of `clip_grad_norm_`."""
def clip_grad_norm_(parameters: Any, max_norm: _float, norm_type: _float = 2.0, error_if_nonfinite: _bool = False, foreach: _bool | None = None) -> _Tensor:
    """Scale all gradients by one factor so that their norm is at most `max_norm`; returns the norm they had."""
def clip_grad_value_(parameters: Any, clip_value: _float, foreach: _bool | None = None) -> None:
    """Bring every element of the gradients into [-clip_value, clip_value]."""
def clip_grads_with_norm_(parameters: Any, max_norm: _float, total_norm: _Tensor, foreach: _bool | None = None) -> None:
    """Scale the gradients so that a total norm of `total_norm` becomes at most `max_norm`."""
def convert_conv2d_weight_memory_format(module: Any, memory_format: _memory_format) -> Any:
    """Bring the weights of all two-dimensional convolutions within into `memory_format`."""
def convert_conv3d_weight_memory_format(module: Any, memory_format: _memory_format) -> Any:
    """Bring the weights of all three-dimensional convolutions within into `memory_format`."""
def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: _bool = False) -> Any:
    """A copy of the convolution that also does what the batch norm after it does, both in eval mode."""
def fuse_conv_bn_weights(conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: Any, bn_w: Any, bn_b: Any, transpose: _bool = False) -> Any:
    """The weight and bias of a convolution with a batch norm folded in."""
def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of the linear layer that also does what the batch norm after it does, both in eval mode."""
def fuse_linear_bn_weights(linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: Any, bn_w: Any, bn_b: Any) -> Any:
    """The weight and bias of a linear layer with a batch norm folded in."""
def get_total_norm(tensors: Sequence[_Tensor], norm_type: _float = 2.0, error_if_nonfinite: _bool = False, foreach: _bool | None = None) -> _Tensor:
    """The norm of all the tensors' elements together."""
def parameters_to_vector(parameters: Any) -> _Tensor:
    """The elements of all parameters, one after the other."""
from rushlight.nn.utils import parametrizations as parametrizations
from rushlight.nn.utils import parametrize as parametrize
def remove_spectral_norm(module: Any, name: _str = 'weight') -> Any:
    """Make the weight a parameter again, with the values it has."""
def remove_weight_norm(module: Any, name: _str = 'weight') -> Any:
    """Make the weight a parameter again, with the values it has."""
from rushlight.nn.utils import rnn as rnn
def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """`module_cls(*args, **kwargs)` whose values are not to be relied on; draws no random numbers."""
def spectral_norm(module: Any, name: _str = 'weight', n_power_iterations: _int = 1, eps: _float = 1e-12, dim: _int | None = None) -> Any:
    """Divide the weight by its largest singular value before every forward."""
from rushlight.nn.utils import stateless as stateless
def vector_to_parameters(vec: _Tensor, parameters: Any) -> None:
    """Let each parameter's values be its part of `vec`."""
def weight_norm(module: Any, name: _str = 'weight', dim: _int | None = 0) -> Any:
    """Deprecated: use `parametrizations.weight_norm`."""
