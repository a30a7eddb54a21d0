"""Automatic differentiation: the tape, the ops' declaration, and the ways to start a backward pass.

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

from rushlight.autograd.function import Function as Function
from rushlight.autograd.gradcheck import GradcheckError as GradcheckError
from rushlight.autograd.variable import Variable as Variable
def backward(tensors: Sequence[_Tensor], grad_tensors: Any = None, retain_graph: Any = None, create_graph: _bool = False, inputs: Any = None) -> None:
    """Sum the gradients of `tensors` into the leaves' `.grad` (or only into those of `inputs`)."""
from rushlight.autograd.anomaly import detect_anomaly as detect_anomaly
differentiable: Any
from rushlight.autograd.mode import enable_grad as enable_grad
from rushlight.autograd.mode import enforce_grad_layout_policy as enforce_grad_layout_policy
from rushlight.autograd import forward_ad as forward_ad
from rushlight.autograd import functional as functional
def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Any = None, create_graph: _bool = False, only_inputs: _bool = True, allow_unused: Any = None, is_grads_batched: _bool = False, materialize_grads: _bool = False) -> Any:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; nothing is accumulated."""
def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: _float = 1e-06, atol: _float = 1e-05, rtol: _float = 0.001, raise_exception: _bool = True, nondet_tol: _float = 0.0, check_undefined_grad: _bool = True, check_grad_dtypes: _bool = False, check_batched_grad: _bool = False, check_batched_forward_grad: _bool = False, check_forward_ad: _bool = False, check_backward_ad: _bool = True, fast_mode: _bool = False, masked: Any = None) -> _bool:
    """Compare the gradients of `func` at `inputs` with central differences; True if they agree."""
def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: _float = 1e-06, atol: _float = 1e-05, rtol: _float = 0.001, gen_non_contig_grad_outputs: _bool = False, raise_exception: _bool = True, nondet_tol: _float = 0.0, check_undefined_grad: _bool = True, check_grad_dtypes: _bool = False, check_batched_grad: _bool = False, check_fwd_over_rev: _bool = False, check_rev_over_rev: _bool = True, fast_mode: _bool = False, masked: _bool = False) -> _bool:
    """`gradcheck` of the gradient of `func`: checks second derivatives."""
from rushlight.autograd import graph as graph
from rushlight.autograd.mode import inference_mode as inference_mode
def is_multithreading_enabled() -> _bool:
    """What `set_multithreading_enabled` said last."""
from rushlight.autograd.mode import no_grad as no_grad
def op(_forward: Any = None, **options: Any) -> Any:
    """Declare an operator; see the module's text. The options, beside a rule for each array:"""
from rushlight.autograd import profiler as profiler
from rushlight.autograd.anomaly import set_detect_anomaly as set_detect_anomaly
from rushlight.autograd.mode import set_grad_enabled as set_grad_enabled
from rushlight.autograd.mode import set_multithreading_enabled as set_multithreading_enabled
