"""PyTorch's `nn.Module` and all it stands on, in readable Python: `import rushlight as torch`.

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

from rushlight.errors import AcceleratorError as AcceleratorError
BFloat16Storage: Any
BFloat16Tensor: Any
BoolStorage: Any
BoolTensor: Any
ByteStorage: Any
ByteTensor: Any
CharStorage: Any
CharTensor: Any
ComplexDoubleStorage: Any
ComplexFloatStorage: Any
from rushlight.autograd.overriding import DisableTorchFunction as DisableTorchFunction
from rushlight.autograd.overriding import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
DoubleStorage: Any
DoubleTensor: Any
FloatStorage: Any
FloatTensor: Any
from rushlight.random import Generator as Generator
from rushlight.amp.grad_scaler import GradScaler as GradScaler
HalfStorage: Any
HalfTensor: Any
IntStorage: Any
IntTensor: Any
LongStorage: Any
LongTensor: Any
from rushlight.errors import OutOfMemoryError as OutOfMemoryError
ShortStorage: Any
ShortTensor: Any
from rushlight.tensor import Size as Size
Storage: Any
from rushlight.tensor import Tensor as Tensor
from rushlight.storage import TypedStorage as TypedStorage
from rushlight.storage import UntypedStorage as UntypedStorage
def abs(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """|x|."""
def abs_(input: _Tensor) -> _Tensor:
    """In-place version of abs."""
def absolute(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """|x|."""
from rushlight import accelerator as accelerator
def acos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The angle whose cosine is x."""
def acos_(input: _Tensor) -> _Tensor:
    """In-place version of acos."""
def acosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of cosh."""
def acosh_(input: _Tensor) -> _Tensor:
    """In-place version of acosh."""
def adaptive_avg_pool1d(input: _Tensor, output_size: _int | Sequence[_int]) -> _Tensor:
    """The means of windows chosen so that the output has `output_size`."""
def adaptive_max_pool1d(input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False) -> Any:
    """`adaptive_max_pool1d` and where in the flattened image each element was."""
def add(input: _Tensor, other: _Tensor | _Scalar, *, alpha: _Number = 1, out: _Tensor | None = None) -> _Tensor:
    """`input + alpha * other`."""
def addbmm(input: _Tensor, batch1: _Tensor, batch2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: _Tensor | None = None) -> _Tensor:
    """`beta * input + alpha * sum(batch1 @ batch2)` over the batch."""
def addcdiv(input: _Tensor, tensor1: _Tensor, tensor2: _Tensor, *, value: _float = 1, out: _Tensor | None = None) -> _Tensor:
    """`input + value * tensor1 / tensor2`."""
def addcmul(input: _Tensor, tensor1: _Tensor, tensor2: _Tensor, *, value: _float = 1, out: _Tensor | None = None) -> _Tensor:
    """`input + value * tensor1 * tensor2`."""
def addmm(input: _Tensor, mat1: _Tensor, mat2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: _Tensor | None = None) -> _Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`."""
def addmv(input: _Tensor, mat: _Tensor, vec: _Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: _Tensor | None = None) -> _Tensor:
    """`beta * input + alpha * (mat @ vec)`."""
def addmv_(input: _Tensor, mat: _Tensor, vec: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> _Tensor:
    """In-place version of addmv."""
def addr(input: _Tensor, vec1: _Tensor, vec2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: _Tensor | None = None) -> _Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`."""
def adjoint(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The last two dimensions exchanged and conjugated."""
def affine_grid_generator(theta: _Tensor, size: _int | Sequence[_int], align_corners: _bool | None) -> _Tensor:
    """`affine_grid` without its checks."""
def alias_copy(x: Any, **static: Any) -> _Tensor:
    """`alias` as a copy."""
def all(input: _Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Whether all elements are true."""
def allclose(input: _Tensor, other: _Tensor | _Scalar, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
    """Whether all elements are close; a Python bool."""
def alpha_dropout(input: _Tensor, p: _float, train: Any) -> _Tensor:
    """Where `train`, elements dropped with probability `p`, as SELU wants it."""
def alpha_dropout_(input: _Tensor, p: _float, train: Any) -> _Tensor:
    """`alpha_dropout`, in place."""
def amax(input: _Tensor, dim: _int | Sequence[_int] = (), keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """The largest elements over `dim`; ties share the gradient."""
def amin(input: _Tensor, dim: _int | Sequence[_int] = (), keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """The smallest elements over `dim`; ties share the gradient."""
def aminmax(input: _Tensor, *, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, out: Any = None) -> _returns.aminmax:
    """The smallest and the largest elements at once."""
from rushlight import amp as amp
def angle(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The angle of each complex number, in radians; π for negative real ones."""
def any(input: _Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Whether any element is true."""
from rushlight import ao as ao
@overload
def arange(start: _Number, end: _Number, step: _Number=1, *, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor: ...
@overload
def arange(end: _Number, *, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """Numbers from `start` to below `end`, `step` apart."""
def arccos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The angle whose cosine is x."""
def arccos_(input: _Tensor) -> _Tensor:
    """In-place version of arccos."""
def arccosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of cosh."""
def arccosh_(input: _Tensor) -> _Tensor:
    """In-place version of arccosh."""
def arcsin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The angle whose sine is x."""
def arcsin_(input: _Tensor) -> _Tensor:
    """In-place version of arcsin."""
def arcsinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of sinh."""
def arcsinh_(input: _Tensor) -> _Tensor:
    """In-place version of arcsinh."""
def arctan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The angle whose tangent is x."""
def arctan2(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The angle of the point (y, x), in its quadrant."""
def arctan_(input: _Tensor) -> _Tensor:
    """In-place version of arctan."""
def arctanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of tanh."""
def arctanh_(input: _Tensor) -> _Tensor:
    """In-place version of arctanh."""
def are_deterministic_algorithms_enabled() -> _bool:
    """Are operators that are not repeatable refused?"""
def argmax(input: _Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """The index of the (first) largest element, counted over all elements or along `dim`."""
def argmin(input: _Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """The index of the (first) smallest element, counted over all elements or along `dim`."""
def argsort(input: _Tensor, dim: _int | Sequence[_int] = -1, descending: _bool = False, *, stable: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """The indices that sort `input` along `dim`."""
def argwhere(input: _Tensor) -> _Tensor:
    """Where elements are not zero, one row of indices each."""
def as_strided(input: _Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: Any = None) -> _Tensor:
    """A view of the tensor's storage with sizes and strides given outright."""
def as_strided_(input: _Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: Any = None) -> _Tensor:
    """In-place version of as_strided."""
def as_strided_copy(input: _Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: Any = None) -> _Tensor:
    """`as_strided` as a copy."""
def as_strided_scatter(input: _Tensor, src: _Tensor, size: _int | Sequence[_int], stride: _int | Sequence[_int], storage_offset: Any = None) -> _Tensor:
    """`input` with `src` in place of a strided part; a copy."""
def as_tensor(data: Any, dtype: _dtype | None = None, device: _Device = None) -> _Tensor:
    """`data` as a tensor, sharing its memory and history where dtype and device allow."""
def asarray(obj: object, *, dtype: _dtype | None = None, device: _Device = None, copy: Any = None, requires_grad: Any = None) -> _Tensor:
    """A tensor of almost anything: tensors, arrays, DLPack exporters, buffers, scalars and sequences."""
def asin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The angle whose sine is x."""
def asin_(input: _Tensor) -> _Tensor:
    """In-place version of asin."""
def asinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of sinh."""
def asinh_(input: _Tensor) -> _Tensor:
    """In-place version of asinh."""
def atan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The angle whose tangent is x."""
def atan2(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The angle of the point (y, x), in its quadrant."""
def atan_(input: _Tensor) -> _Tensor:
    """In-place version of atan."""
def atanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of tanh."""
def atanh_(input: _Tensor) -> _Tensor:
    """In-place version of atanh."""
@overload
def atleast_1d(tensor: _Tensor, /) -> _Tensor: ...
@overload
def atleast_1d(*tensors: _Tensor | Sequence[_Tensor]) -> Any:
    """Tensors of fewer than 1 dimensions with more of size 1."""
@overload
def atleast_2d(tensor: _Tensor, /) -> _Tensor: ...
@overload
def atleast_2d(*tensors: _Tensor | Sequence[_Tensor]) -> Any:
    """Tensors of fewer than 2 dimensions with more of size 1."""
@overload
def atleast_3d(tensor: _Tensor, /) -> _Tensor: ...
@overload
def atleast_3d(*tensors: _Tensor | Sequence[_Tensor]) -> Any:
    """Tensors of fewer than 3 dimensions with more of size 1."""
from rushlight.amp.autocast_mode import autocast as autocast
def autocast_decrement_nesting() -> Any:
    """One autocast block less; how many there are now."""
def autocast_increment_nesting() -> Any:
    """One autocast block more; how many there are now."""
from rushlight import autograd as autograd
def avg_pool1d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: Any = None) -> _Tensor:
    """The mean of each window of the last 1 dimension(s)."""
from rushlight import backends as backends
def baddbmm(input: _Tensor, batch1: _Tensor, batch2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: _Tensor | None = None) -> _Tensor:
    """`beta * input + alpha * (batch1 @ batch2)`, matrix by matrix."""
def bartlett_window(window_length: _int, periodic: _bool=True, *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """A triangle that begins at zero."""
def batch_norm(input: _Tensor, weight: _Tensor | None, bias: _Tensor | None, running_mean: _Tensor | None, running_var: _Tensor | None, training: Any, momentum: _float, eps: _float, cudnn_enabled: Any) -> _Tensor:
    """`nn.functional.batch_norm` with the arguments in another order."""
def bernoulli(input: _Tensor, p: _float | None = None, *, generator: _Generator | None = None, out: _Tensor | None = None) -> _Tensor:
    """Ones, each with the probability that `input` gives, and zeros."""
bfloat16: _dtype
def bilinear(input1: _Tensor, input2: _Tensor, weight: Any, bias: _Tensor | None = None) -> _Tensor:
    """`y[o] = x1 · weight[o] · x2 + bias[o]`."""
def binary_cross_entropy_with_logits(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, pos_weight: _Tensor | None = None, reduction: _float = 0) -> _Tensor:
    """`nn.functional.binary_cross_entropy_with_logits` with the reduction as a number."""
def bincount(input: _Tensor, weights: _Tensor | None = None, minlength: _int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """How often each whole number occurs, or the sum of `weights` at its places."""
def binomial(count: _Tensor, prob: _Tensor, generator: _Generator | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """How many of `count` trials succeed, each with probability `prob`."""
def bitwise_and(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The bits that both have."""
def bitwise_left_shift(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The bits of x, y places to the left."""
def bitwise_not(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The bits of x turned over; of a bool, its opposite."""
def bitwise_or(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The bits that one of them has."""
def bitwise_right_shift(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The bits of x, y places to the right."""
def bitwise_xor(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The bits that exactly one of them has."""
def blackman_window(window_length: _int, periodic: _bool=True, *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """Three cosine terms: 0.42 - 0.5 cos(2πn / N) + 0.08 cos(4πn / N)."""
def block_diag(*tensors: _Tensor) -> _Tensor:
    """A matrix with the given matrices down its diagonal, zeros elsewhere."""
def bmm(input: _Tensor, mat2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The products of two batches of matrices, pair by pair."""
bool: _dtype
def broadcast_shapes(*shapes: _int | Sequence[_int]) -> _Size:
    """The shape that tensors of these shapes broadcast to."""
def broadcast_tensors(*tensors: _Tensor | Sequence[_Tensor]) -> tuple[_Tensor, ...]:
    """The tensors expanded to one common shape."""
def broadcast_to(input: _Tensor, *size: _int | Sequence[_int]) -> _Tensor:
    """`input.expand(size)`."""
def bucketize(input: _Tensor, boundaries: _Tensor, *, out_int32: _bool = False, right: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """The index of the interval between `boundaries` that each element lies in."""
def can_cast(from_: Any, to: Any) -> _bool:
    """May in-place arithmetic cast from one dtype to the other?"""
def cartesian_prod(*tensors: _Tensor) -> _Tensor:
    """All ways to take one element of each vector, as rows."""
def cat(tensors: Sequence[_Tensor], dim: _int | Sequence[_int] = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Tensors one after the other along `dim`."""
def cdist(x1: _Tensor, x2: _Tensor, p: _float = 2.0, compute_mode: _str = ..., *, out: _Tensor | None = None) -> _Tensor:
    """The p-norm distance of every row of x1 to every row of x2."""
cdouble: _dtype
def ceil(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Rounded up."""
def ceil_(input: _Tensor) -> _Tensor:
    """In-place version of ceil."""
def celu(input: _Tensor, alpha: _Number = 1.0, inplace: _bool = False) -> _Tensor:
    """x where positive, `alpha · (exp(x / alpha) - 1)` elsewhere."""
def celu_(input: _Tensor, alpha: _Number = 1.0) -> _Tensor:
    """`celu`, in place."""
cfloat: _dtype
def chain_matmul(*matrices: _Tensor) -> _Tensor:
    """The product of several matrices, in the cheapest order."""
chalf: _dtype
def channel_shuffle(input: _Tensor, groups: _int) -> _Tensor:
    """Channels (dimension 1) dealt out anew: the first of each group, then the second of each, …"""
channels_last: _memory_format
channels_last_3d: _memory_format
def cholesky(input: _Tensor, upper: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """The triangular factor of positive-definite matrices."""
def cholesky_inverse(L: _Tensor, upper: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of A, from A's Cholesky factor."""
def cholesky_solve(input: _Tensor, L: _Tensor, upper: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """X with `A X = input`, from A's Cholesky factor."""
def chunk(input: _Tensor, chunks: _int, dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
    """At most `chunks` parts of equal size (the last may be smaller); views."""
def clamp(input: _Tensor, min: Any = None, max: Any = None, *, out: _Tensor | None = None) -> _Tensor:
    """Each element, but at least `min` and at most `max`: numbers, or tensors that broadcast."""
def clamp_(input: _Tensor, min: Any = None, max: Any = None) -> _Tensor:
    """In-place version of clamp."""
def clamp_max(input: _Tensor, max: _Number | _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Each element, but at most `max`."""
def clamp_max_(input: _Tensor, max: _Number | _Tensor) -> _Tensor:
    """In-place version of clamp_max."""
def clamp_min(input: _Tensor, min: _Number | _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Each element, but at least `min`."""
def clamp_min_(input: _Tensor, min: _Number | _Tensor) -> _Tensor:
    """In-place version of clamp_min."""
def clear_autocast_cache() -> None:
    """Does nothing: casts are not cached here."""
def clip(input: _Tensor, min: Any = None, max: Any = None, *, out: _Tensor | None = None) -> _Tensor:
    """Each element, but at least `min` and at most `max`: numbers, or tensors that broadcast."""
def clip_(input: _Tensor, min: Any = None, max: Any = None) -> _Tensor:
    """In-place version of clip."""
def clone(input: _Tensor, *, memory_format: _memory_format = ...) -> _Tensor:
    """A copy that gradients flow through."""
def column_stack(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Joined along dimension 1, vectors as columns."""
def combinations(input: _Tensor, r: _int = 2, with_replacement: _bool = False) -> _Tensor:
    """All ways to take `r` elements of a vector, in order, as rows."""
@overload
def compile(model: _F, *, fallback: _bool=False, options: dict[_str, Any] | None=None, **torch_options: Any) -> _F: ...
@overload
def compile(model: None=None, *, fallback: _bool=False, options: dict[_str, Any] | None=None, **torch_options: Any) -> Callable[[_F], _F]:
    """Compile a function, or a module's call, into XLA programs; also a decorator."""
def compiled_with_cxx11_abi() -> Any:
    """True: there is no C++ here whose binary interface could be the old one."""
from rushlight import compiler as compiler
def complex(real: Any, imag: Any, *, out: _Tensor | None = None) -> _Tensor:
    """A complex tensor from its parts."""
complex128: _dtype
complex32: _dtype
complex64: _dtype
def concat(tensors: Sequence[_Tensor], dim: _int | Sequence[_int] = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Tensors one after the other along `dim`."""
def concatenate(tensors: Sequence[_Tensor], dim: _int | Sequence[_int] = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Tensors one after the other along `dim`."""
def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` or `false_fn(*operands)`. Differs from PyTorch: a traced `pred` is refused."""
def conj(input: _Tensor) -> _Tensor:
    """The complex conjugate, as a view of the same memory; a real tensor is returned as it is."""
def conj_physical(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The complex conjugate, written out in new memory."""
def conj_physical_(input: _Tensor) -> _Tensor:
    """In-place version of conj_physical."""
def constant_pad_nd(input: _Tensor, pad: Sequence[_int], value: _Number = 0) -> _Tensor:
    """A constant around the tensor; `pad` counts from the last dimension, and negative numbers cut off."""
contiguous_format: _memory_format
def conv1d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1) -> _Tensor:
    """`weight` (outputs, inputs / groups, *kernel) slid over the last 1 dimension(s)."""
def conv2d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1) -> _Tensor:
    """`weight` (outputs, inputs / groups, *kernel) slid over the last 2 dimension(s)."""
def conv3d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1) -> _Tensor:
    """`weight` (outputs, inputs / groups, *kernel) slid over the last 3 dimension(s)."""
def conv_tbc(input: _Tensor, weight: Any, bias: _Tensor | None, pad: _float = 0) -> _Tensor:
    """conv1d on (time, batch, channels), with weights (kernel, channels, outputs)."""
def conv_transpose1d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1) -> _Tensor:
    """The gradient of conv1d in its input, as a function of its own."""
def conv_transpose2d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1) -> _Tensor:
    """The gradient of conv2d in its input, as a function of its own."""
def conv_transpose3d(input: _Tensor, weight: Any, bias: _Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1) -> _Tensor:
    """The gradient of conv3d in its input, as a function of its own."""
def convolution(input: _Tensor, weight: Any, bias: _Tensor | None, stride: _int | Sequence[_int], padding: _int | Sequence[_int], dilation: _int | Sequence[_int], transposed: Any, output_padding: _int | Sequence[_int], groups: _int) -> _Tensor:
    """Any of `conv1d` to `conv_transpose3d`; the weight says how many dimensions."""
def copysign(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The magnitude of x with the sign of y."""
def corrcoef(input: _Tensor) -> _Tensor:
    """The matrix of correlation coefficients of variables in rows."""
def cos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The cosine."""
def cos_(input: _Tensor) -> _Tensor:
    """In-place version of cos."""
def cosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The hyperbolic cosine."""
def cosh_(input: _Tensor) -> _Tensor:
    """In-place version of cosh."""
def cosine_embedding_loss(input1: _Tensor, input2: _Tensor, target: _Tensor, margin: _float = 0.0, reduction: _float = 0) -> _Tensor:
    """`nn.functional.cosine_embedding_loss` with the reduction as a number."""
def cosine_similarity(x1: _Tensor, x2: _Tensor, dim: _int = 1, eps: _float = 1e-08) -> _Tensor:
    """x1 · x2 / (|x1| |x2|) along `dim`; lengths below `eps` count as `eps`."""
def count_nonzero(input: _Tensor, dim: _int | Sequence[_int] | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """How many elements are not zero."""
def cov(input: _Tensor, *, correction: _int = 1, fweights: _Tensor | None = None, aweights: _Tensor | None = None) -> _Tensor:
    """The covariance matrix of variables in rows, observations in columns."""
def cross(input: _Tensor, other: _Tensor | _Scalar, dim: _int | Sequence[_int] | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The cross product of vectors of three along `dim` (the first of size 3 if not given)."""
def ctc_loss(log_probs: _Tensor, targets: _Tensor, input_lengths: Any, target_lengths: Any, blank: _int = 0, reduction: _float = 0, zero_infinity: _bool = False) -> _Tensor:
    """`nn.functional.ctc_loss` with the reduction as a number."""
from rushlight import cuda as cuda
def cummax(input: _Tensor, dim: _int | Sequence[_int], *, out: Any = None) -> _returns.cummax:
    """The largest element so far along `dim`, and where it was."""
def cummin(input: _Tensor, dim: _int | Sequence[_int], *, out: Any = None) -> _returns.cummin:
    """The smallest element so far along `dim`, and where it was."""
def cumprod(input: _Tensor, dim: _int | Sequence[_int], *, dtype: _dtype | None = None, out: _Tensor | None = None) -> _Tensor:
    """The running product along `dim`."""
def cumsum(input: _Tensor, dim: _int | Sequence[_int], *, dtype: _dtype | None = None, out: _Tensor | None = None) -> _Tensor:
    """The running sum along `dim`."""
def cumulative_trapezoid(y: Any, x: _Tensor | None = None, *, dx: _Number | None = None, dim: _int | Sequence[_int] = -1) -> _Tensor:
    """The running integral of `y` along `dim` by the trapezoidal rule."""
default_generator: _Generator
def deg2rad(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Degrees as radians."""
def deg2rad_(input: _Tensor) -> _Tensor:
    """In-place version of deg2rad."""
def dequantize(input: _Tensor) -> _Tensor:
    """The float32 tensor that the codes stand for; of a list, each."""
def det(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The determinant."""
def detach(self: _Tensor) -> _Tensor:
    """The same memory, outside the graph."""
def detach_(self: _Tensor) -> _Tensor:
    """Leave the graph, in place."""
def detach_copy(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`detach` as a copy."""
from rushlight.device import device as device
def diag(input: _Tensor, diagonal: _int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """A vector as a matrix's diagonal, or a matrix's diagonal as a vector."""
def diag_embed(input: _Tensor, offset: _float = 0, dim1: _int = -2, dim2: _int = -1, *, out: _Tensor | None = None) -> _Tensor:
    """Matrices with the last dimension of `input` on a diagonal."""
def diagflat(input: _Tensor, offset: _float = 0, *, out: _Tensor | None = None) -> _Tensor:
    """The flattened input as a matrix's diagonal."""
def diagonal(input: _Tensor, offset: _float = 0, dim1: _int = 0, dim2: _int = 1) -> _Tensor:
    """The elements of a diagonal of two dimensions, as a last dimension; a view."""
def diagonal_copy(input: _Tensor, offset: _float = 0, dim1: _int = 0, dim2: _int = 1) -> _Tensor:
    """`diagonal` as a copy."""
def diagonal_scatter(input: _Tensor, src: _Tensor, offset: _float = 0, dim1: _int = 0, dim2: _int = 1) -> _Tensor:
    """`input` with `src` in place of a diagonal; a copy."""
def diff(input: _Tensor, n: _int = 1, dim: _int | Sequence[_int] = -1, prepend: _Tensor | None = None, append: _Tensor | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The `n`-th difference of neighbours along `dim`."""
def digamma(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The slope of `lgamma`."""
def dist(input: _Tensor, other: _Tensor | _Scalar, p: _float = 2, *, out: _Tensor | None = None) -> _Tensor:
    """The `p`-norm of `input - other`."""
from rushlight import distributed as distributed
from rushlight import distributions as distributions
def div(input: _Tensor, other: _Tensor | _Scalar, *, rounding_mode: _str | None = None, out: _Tensor | None = None) -> _Tensor:
    """`input / other`; `rounding_mode` is None, 'trunc' or 'floor'."""
def divide(input: _Tensor, other: _Tensor | _Scalar, *, rounding_mode: _str | None = None, out: _Tensor | None = None) -> _Tensor:
    """`input / other`; `rounding_mode` is None, 'trunc' or 'floor'."""
def dot(input: _Tensor, tensor: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The sum of the products of two vectors' elements."""
double: _dtype
def dropout(input: _Tensor, p: _float, train: Any) -> _Tensor:
    """Where `train`, elements dropped with probability `p`."""
def dropout_(input: _Tensor, p: _float, train: Any) -> _Tensor:
    """`dropout`, in place."""
def dsplit(input: _Tensor, indices_or_sections: _int | Sequence[_int]) -> tuple[_Tensor, ...]:
    """`tensor_split` along dimension 2."""
def dstack(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Joined along the third dimension."""
from rushlight.dtypes import dtype as dtype
e: _float
def eig(self: _Tensor, *args: Any, **kwargs: Any) -> Any:
    """Removed: torch.linalg.eig(A), or eigvals(A) without vectors, returns complex tensors."""
def einsum(*args: Any) -> _Tensor:
    """The sum of products that an equation names: `einsum('ij,jk->ik', a, b)`, or `einsum(a, [0, 1], b, [1, 2])`."""
def embedding(weight: Any, indices: Any, padding_idx: _int = -1, scale_grad_by_freq: _bool = False, sparse: _bool = False) -> _Tensor:
    """The rows of `weight` that `indices` name."""
def embedding_bag(weight: Any, indices: Any, offsets: _Tensor | None, scale_grad_by_freq: _bool = False, mode: _float = 0, sparse: _bool = False, per_sample_weights: _Tensor | None = None, include_last_offset: _bool = False, padding_idx: _int | None = None) -> Any:
    """(the bags, the bag of each index, how many indices a bag has, for 'max' where each element was found)."""
def embedding_renorm_(weight: Any, indices: Any, max_norm: Any, norm_type: _float) -> _Tensor:
    """Scale the named rows down, in place, where they are longer than `max_norm`."""
def empty(*size: _int | Sequence[_int], out: _Tensor | None=None, memory_format: _memory_format=..., dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """A tensor whose values nobody has set."""
def empty_like(input: _Tensor, *, dtype: _dtype | None = None, layout: _layout | None = None, device: _Device = None, requires_grad: _bool = False, memory_format: _memory_format = ..., pin_memory: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """`empty` with the shape, dtype and device of `input`."""
def empty_permuted(size: Sequence[_int], physical_layout: Sequence[_int], *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """An uninitialized tensor whose dimensions lie in memory in the given order."""
def empty_strided(size: Sequence[_int], stride: Sequence[_int], *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """An uninitialized tensor with the given strides."""
from rushlight.autograd.mode import enable_grad as enable_grad
def eq(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x = y, element by element."""
def equal(input: _Tensor, other: _Tensor | _Scalar) -> _bool:
    """Whether both tensors have one shape and the same elements; a Python bool."""
def erf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The error function."""
def erf_(input: _Tensor) -> _Tensor:
    """In-place version of erf."""
def erfc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """1 - erf(x), precise where that is small."""
def erfc_(input: _Tensor) -> _Tensor:
    """In-place version of erfc."""
def erfinv(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of the error function."""
def exp(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """e to the power of x."""
def exp2(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """2 to the power of x."""
def exp2_(input: _Tensor) -> _Tensor:
    """In-place version of exp2."""
def exp_(input: _Tensor) -> _Tensor:
    """In-place version of exp."""
def expand_copy(input: _Tensor, *size: _int | Sequence[_int]) -> _Tensor:
    """`expand` as a copy."""
def expm1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """exp(x) - 1, precise near 0."""
def expm1_(input: _Tensor) -> _Tensor:
    """In-place version of expm1."""
from rushlight import export as export
def eye(n: _int, m: _int | None=None, *, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """Ones on the diagonal, zeros elsewhere."""
def fake_quantize_per_channel_affine(input: _Tensor, scale: Any, zero_point: Any, axis: Any, quant_min: Any, quant_max: Any) -> _Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and zero point for each index along `axis`."""
def fake_quantize_per_tensor_affine(input: _Tensor, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any) -> _Tensor:
    """`input` rounded to the values that codes from `quant_min` to `quant_max` can stand for."""
def feature_alpha_dropout(input: _Tensor, p: _float, train: Any) -> _Tensor:
    """Where `train`, whole channels dropped with probability `p`, as SELU wants it."""
def feature_alpha_dropout_(input: _Tensor, p: _float, train: Any) -> _Tensor:
    """`feature_alpha_dropout`, in place."""
def feature_dropout(input: _Tensor, p: _float, train: Any) -> _Tensor:
    """Where `train`, whole channels dropped with probability `p`."""
def feature_dropout_(input: _Tensor, p: _float, train: Any) -> _Tensor:
    """`feature_dropout`, in place."""
from rushlight import fft as fft
def fill(input: _Tensor, value: Any, *, out: _Tensor | None = None) -> _Tensor:
    """A tensor like `input` with `value` everywhere."""
def fill_(self: _Tensor, value: Any) -> _Tensor:
    """Write one value everywhere."""
from rushlight.dtypes import finfo as finfo
def fix(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Rounded towards zero."""
def fix_(input: _Tensor) -> _Tensor:
    """In-place version of fix."""
def flatten(input: _Tensor, start_dim: _int = 0, end_dim: _int = -1, *, out: _Tensor | None = None) -> _Tensor:
    """The dimensions `start_dim` to `end_dim` as one."""
def flip(input: _Tensor, *dims: _int | Sequence[_int]) -> _Tensor:
    """The given dimensions back to front; a copy."""
def fliplr(input: _Tensor) -> _Tensor:
    """Columns back to front."""
def flipud(input: _Tensor) -> _Tensor:
    """Rows back to front."""
float: _dtype
float16: _dtype
float32: _dtype
float64: _dtype
float8_e4m3fn: _dtype
float8_e4m3fnuz: _dtype
float8_e5m2: _dtype
float8_e5m2fnuz: _dtype
float8_e8m0fnu: _dtype
def float_power(input: _Tensor, exponent: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """`input ** exponent` in double precision."""
def floor(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Rounded down."""
def floor_(input: _Tensor) -> _Tensor:
    """In-place version of floor."""
def floor_divide(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x / y, rounded down."""
def fmax(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The larger of each pair; a number wins over nan."""
def fmin(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The smaller of each pair; a number wins over nan."""
def fmod(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """What is left of x / y rounded towards zero; it has the sign of x."""
def frac(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """What is left of x rounded towards zero."""
def frac_(input: _Tensor) -> _Tensor:
    """In-place version of frac."""
def frexp(input: _Tensor, *, out: Any = None) -> _returns.frexp:
    """Mantissa in [0.5, 1) and integer exponent of each element."""
def frobenius_norm(input: _Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """The root of the sum of squares over `dim`; over everything if that is empty."""
def from_dlpack(ext_tensor: Any, *, device: _Device = None, copy: Any = None) -> _Tensor:
    """A tensor that shares the memory of any library's array, by the DLPack protocol."""
def from_file(filename: Any, shared: Any = None, size: _int | Sequence[_int] = 0, *, dtype: _dtype | None = None, device: _Device = None, requires_grad: _bool = False) -> _Tensor:
    """A 1-dim tensor of `size` elements whose memory is a file's; `shared` writes through, and makes the file."""
def from_numpy(ndarray: Any) -> _Tensor:
    """A tensor that shares the memory of a NumPy array."""
def frombuffer(buffer: Any, *, dtype: _dtype | None = None, count: _float = -1, offset: _float = 0, requires_grad: _bool = False) -> _Tensor:
    """A 1-dim tensor that shares the memory of a Python buffer."""
def full(size: _int | Sequence[_int], fill_value: Any, *, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """A tensor filled with `fill_value`."""
def full_like(input: _Tensor, fill_value: Any, *, dtype: _dtype | None = None, layout: _layout | None = None, device: _Device = None, requires_grad: _bool = False, memory_format: _memory_format = ..., pin_memory: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """A tensor of `fill_value` with `input`'s shape, dtype and device."""
from rushlight import func as func
from rushlight import futures as futures
from rushlight import fx as fx
def gather(input: _Tensor, dim: _int | Sequence[_int], index: _Tensor, *, sparse_grad: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """`out[i][j] = input[index[i][j]][j]` (for dim 0): elements picked along a dimension."""
def gcd(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The greatest common divisor."""
def gcd_(input: _Tensor, other: _Tensor | _Scalar) -> _Tensor:
    """In-place version of gcd."""
def ge(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x ≥ y, element by element."""
def geqrf(input: _Tensor, *, out: Any = None) -> _returns.geqrf:
    """QR as LAPACK packs it: R above, reflectors below the diagonal, and their factors."""
def ger(input: _Tensor, vec2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Every product of an element of one vector with one of the other."""
def get_autocast_cpu_dtype() -> _dtype:
    """The dtype that autocast casts to on the CPU."""
def get_autocast_dtype(device_type: _str) -> _dtype:
    """The half precision that `autocast` uses on a kind of device unless it is told another."""
def get_autocast_gpu_dtype() -> _dtype:
    """The dtype that autocast casts to on GPUs."""
def get_default_device() -> _device:
    """Where new tensors are made."""
def get_default_dtype() -> _dtype:
    """The dtype of new floating-point tensors."""
def get_deterministic_debug_mode() -> _int:
    """0, 1 or 2: operators that are not repeatable are allowed, warned about, refused."""
def get_device(self: _Tensor) -> _int:
    """The device's index; -1 on the CPU."""
def get_device_module(device: _Device = None) -> Any:
    """The module of a kind of device: `rushlight.cuda` for `'cuda'`."""
def get_file_path(*path_components: Any) -> Any:
    """A path beside the package."""
def get_float32_matmul_precision() -> _str:
    """How precise products of float32 matrices are: 'highest', 'high' or 'medium'."""
def get_num_interop_threads() -> _int:
    """How many operators may run at once."""
def get_num_threads() -> _int:
    """How many threads an operator may use."""
def get_rng_state() -> _Tensor:
    """The state of the default generator, as a tensor of bytes."""
def gradient(input: _Tensor, *, spacing: _float = 1, dim: _int | Sequence[_int] | None = None, edge_order: _int = 1) -> tuple[_Tensor, ...]:
    """The slope of `input` along each `dim`: central differences inside, one-sided ones at the edges."""
def greater(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x > y, element by element."""
def greater_equal(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x ≥ y, element by element."""
def grid_sampler(input: _Tensor, grid: _Tensor, interpolation_mode: Any, padding_mode: Any, align_corners: _bool | None) -> _Tensor:
    """`grid_sample` with modes by number."""
def grid_sampler_2d(input: _Tensor, grid: _Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> _Tensor:
    """`grid_sampler` of images."""
def grid_sampler_3d(input: _Tensor, grid: _Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> _Tensor:
    """`grid_sampler` of volumes."""
def group_norm(input: _Tensor, num_groups: _int, weight: Any = None, bias: _Tensor | None = None, eps: _float = 1e-05, cudnn_enabled: _bool = True) -> _Tensor:
    """`nn.functional.group_norm`."""
def gru(input: _Tensor, *args: Any) -> tuple[_Tensor, _Tensor]:
    """The layers of `nn.GRU` as a function of flat `params`."""
def gru_cell(input: _Tensor, hx: _Tensor, w_ih: _Tensor, w_hh: _Tensor, b_ih: _Tensor | None = None, b_hh: _Tensor | None = None) -> _Tensor:
    """One step of a GRU: the new hidden state."""
def gt(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x > y, element by element."""
half: _dtype
def hamming_window(window_length: _int, periodic: _bool=True, alpha: _float=0.54, beta: _float=0.46, *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """A raised cosine: alpha - beta · cos(2πn / N)."""
def hann_window(window_length: _int, periodic: _bool=True, *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """A raised cosine that begins at zero: sin²(πn / N)."""
def hardshrink(input: _Tensor, lambd: _float = 0.5, *, out: _Tensor | None = None) -> _Tensor:
    """x, but 0 within `lambd` of 0."""
has_lapack: _bool
has_mkl: _bool
has_openmp: _bool
has_spectral: _bool
def hash_tensor(input: _Tensor, dim: _int | Sequence[_int] = (), *, keepdim: _bool = False, mode: _float = 0, out: _Tensor | None = None) -> _Tensor:
    """The exclusive or of the bits of all elements, or along `dim`, each taken as a float64 or an int64."""
def heaviside(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """0 below zero, 1 above, y at zero."""
def hinge_embedding_loss(input: _Tensor, target: _Tensor, margin: _float = 1.0, reduction: _float = 0) -> _Tensor:
    """`nn.functional.hinge_embedding_loss` with the reduction as a number."""
def histc(input: _Tensor, bins: _int = 100, min: _float = 0, max: _float = 0, *, out: _Tensor | None = None) -> _Tensor:
    """How many elements fall into each of `bins` equal parts of the range from `min` to `max` (0, 0: all)."""
def histogram(input: _Tensor, bins: _int | Sequence[_int] | _Tensor, *, range: Any = None, weight: Any = None, density: _bool = False, out: Any = None) -> _returns.histogram:
    """`(hist, bin_edges)`: the count (or weight, or density) of elements between the edges."""
def histogramdd(input: _Tensor, bins: _int, *, range: Any = None, weight: Any = None, density: _bool = False) -> _returns.histogramdd:
    """`(hist, bin_edges)` of points in space, whose coordinates are the last dimension."""
def hsplit(input: _Tensor, indices_or_sections: _int | Sequence[_int]) -> tuple[_Tensor, ...]:
    """`tensor_split` along dimension 1."""
def hstack(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Joined column-wise: along dimension 1, or 0 for vectors."""
from rushlight import hub as hub
def hypot(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """√(x² + y²)."""
def i0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The modified Bessel function of the first kind, order 0."""
def i0_(input: _Tensor) -> _Tensor:
    """In-place version of i0."""
def igamma(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The lower incomplete gamma function, as a share of the whole."""
def igammac(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The upper incomplete gamma function, as a share of the whole."""
from rushlight.dtypes import iinfo as iinfo
def imag(input: _Tensor) -> _Tensor:
    """The imaginary parts, as a view."""
def index_add(input: _Tensor, dim: _int | Sequence[_int], index: _Tensor, source: Any, *, alpha: _Number = 1, out: _Tensor | None = None) -> _Tensor:
    """`out[index[i]] += alpha * source[i]` along a dimension."""
def index_copy(input: _Tensor, dim: _int | Sequence[_int], index: _Tensor, source: Any, *, out: _Tensor | None = None) -> _Tensor:
    """`out[index[i]] = source[i]` along a dimension."""
def index_fill(input: _Tensor, dim: _int | Sequence[_int], index: _Tensor, value: Any, *, out: _Tensor | None = None) -> _Tensor:
    """`out[index[i]] = value` along a dimension."""
def index_put(input: _Tensor, indices: Any, values: Any, accumulate: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """`input[indices] = values`, or `+=` counting repeated indices, as a copy."""
def index_put_(input: _Tensor, indices: Any, values: Any, accumulate: _bool = False) -> _Tensor:
    """In-place version of index_put."""
def index_reduce(input: _Tensor, dim: _int | Sequence[_int], index: _Tensor, source: Any, reduce: Any, *, include_self: _bool = True, out: _Tensor | None = None) -> _Tensor:
    """`index_add` with a choice of 'prod', 'mean', 'amax', 'amin'."""
def index_select(input: _Tensor, dim: _int | Sequence[_int], index: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The slices of a dimension that `index` names; a copy."""
inf: _float
from rushlight.autograd.mode import inference_mode as inference_mode
def init_num_threads() -> Any:
    """Nothing to set up: threads are made when they are first needed."""
def initial_seed() -> _int:
    """The seed of the default generator."""
def inner(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The sums of products over both last dimensions."""
from rushlight import inspect as inspect
def install() -> None:
    """Make `import torch` import rushlight, from now on, in this process and those it spawns."""
def instance_norm(input: _Tensor, weight: _Tensor | None, bias: _Tensor | None, running_mean: _Tensor | None, running_var: _Tensor | None, use_input_stats: Any, momentum: _float, eps: _float, cudnn_enabled: Any) -> _Tensor:
    """`nn.functional.instance_norm` with the arguments in another order."""
int: _dtype
int16: _dtype
int32: _dtype
int64: _dtype
int8: _dtype
def int_repr(self: _Tensor) -> _Tensor:
    """The codes of a quantized tensor."""
def inverse(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The inverse of square matrices."""
def is_anomaly_check_nan_enabled() -> _bool:
    """Does anomaly detection look for nan in gradients?"""
def is_anomaly_enabled() -> _bool:
    """Is anomaly detection on?"""
def is_autocast_cache_enabled() -> _bool:
    """Whether autocast was asked to keep casts."""
def is_autocast_cpu_enabled() -> _bool:
    """Is autocast on for the CPU?"""
def is_autocast_enabled(device_type: _str | None = None) -> _bool:
    """Is an `autocast` in force here, for this kind of device (`cuda` if not said)?"""
def is_complex(input: _Tensor) -> _bool:
    """Are the elements complex?"""
def is_conj(input: _Tensor) -> _bool:
    """Does it show the conjugates of what lies in memory?"""
def is_deterministic_algorithms_warn_only_enabled() -> _bool:
    """Are operators that are not repeatable only warned about?"""
def is_distributed(self: _Tensor) -> _bool:
    """Whether the tensor is spread over processes: never, here."""
def is_floating_point(input: _Tensor) -> _bool:
    """Are the elements real and not whole?"""
def is_grad_enabled() -> _bool:
    """Are operators recorded now?"""
def is_inference(input: _Tensor) -> _bool:
    """Was it made in inference mode?"""
def is_inference_mode_enabled() -> _bool:
    """Is inference mode on?"""
def is_neg(input: _Tensor) -> _bool:
    """Does it show the negatives of what lies in memory?"""
def is_nonzero(input: _Tensor) -> _bool:
    """Is the one element not zero?"""
def is_same_size(input: _Tensor, other: _Tensor | _Scalar) -> _bool:
    """Have both the same shape?"""
def is_signed(input: _Tensor) -> _bool:
    """Can the elements be negative?"""
def is_storage(obj: object) -> _bool:
    """Is `obj` a storage?"""
def is_tensor(obj: object) -> TypeIs[_Tensor]:
    """Is `obj` a tensor?"""
def is_vulkan_available() -> Any:
    """False."""
def is_warn_always_enabled() -> _bool:
    """Are warnings given every time, not once?"""
def isclose(input: _Tensor, other: _Tensor | _Scalar, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _Tensor:
    """Where `|input - other| <= atol + rtol * |other|`."""
def isfinite(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Where an element is neither infinite nor nan."""
def isin(elements: _Number | _Tensor, test_elements: _Number | _Tensor, *, assume_unique: _bool = False, invert: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """Which `elements` occur among `test_elements`."""
def isinf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Where an element is infinite."""
def isnan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Where an element is nan."""
def isneginf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Where an element is -inf."""
def isposinf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Where an element is +inf."""
def isreal(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Where an element has no imaginary part."""
def istft(input: _Tensor, n_fft: _int, hop_length: _int | None = None, win_length: Any = None, window: Any = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: Any = None, return_complex: _bool = False) -> _Tensor:
    """The signal whose short-time transform this is, by adding up its windows and dividing by their weight."""
jagged: _layout
from rushlight import jit as jit
def kaiser_window(window_length: _int, periodic: _bool=True, beta: _float=12.0, *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """I₀(beta · √(1 - (2n / N - 1)²)) / I₀(beta), I₀ the modified Bessel function."""
def kl_div(input: _Tensor, target: _Tensor, reduction: _float = 0, *, log_target: _bool = False) -> _Tensor:
    """`nn.functional.kl_div` with the reduction as a number."""
def kron(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The Kronecker product: every block of the result is `other` times an element of `input`."""
def kthvalue(input: _Tensor, k: _int, dim: _int | Sequence[_int] = -1, keepdim: _bool = False, *, out: Any = None) -> _returns.kthvalue:
    """The `k`-th smallest element along `dim` and its index."""
def layer_norm(input: _Tensor, normalized_shape: _int | Sequence[_int], weight: Any = None, bias: _Tensor | None = None, eps: _float = 1e-05, cudnn_enable: _bool = True) -> _Tensor:
    """`nn.functional.layer_norm`."""
from rushlight.layout import layout as layout
def lcm(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The least common multiple."""
def lcm_(input: _Tensor, other: _Tensor | _Scalar) -> _Tensor:
    """In-place version of lcm."""
def ldexp(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x 2ʸ."""
def ldexp_(input: _Tensor, other: _Tensor | _Scalar) -> _Tensor:
    """In-place version of ldexp."""
def le(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x ≤ y, element by element."""
legacy_contiguous_format: _memory_format
def lerp(input: _Tensor, end: Any, weight: Any, *, out: _Tensor | None = None) -> _Tensor:
    """Linear interpolation: `input + weight * (end - input)`."""
def less(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x < y, element by element."""
def less_equal(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x ≤ y, element by element."""
def lgamma(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The logarithm of |Γ(x)|."""
from rushlight import library as library
from rushlight import linalg as linalg
def linspace(start: _Number | _Tensor, end: _Number | _Tensor, steps: _int, *, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """`steps` numbers from `start` to `end`, evenly apart."""
def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: Any = None, mmap: Any = None, **pickle_load_args: Any) -> Any:
    """Read what `save` or `torch.save` wrote: tensors and plain Python values, unless `weights_only=False`."""
def lobpcg(A: _Tensor, k: _int | None = None, B: _Tensor | None = None, X: Any = None, n: _int | None = None, iK: Any = None, niter: Any = None, tol: Any = None, largest: Any = None, method: Any = None, tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None) -> tuple[_Tensor, _Tensor]:
    """The `k` largest (or smallest) solutions of `A x = e B x`: (eigenvalues, eigenvectors)."""
def log(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The natural logarithm."""
def log10(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The logarithm to base 10."""
def log10_(input: _Tensor) -> _Tensor:
    """In-place version of log10."""
def log1p(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """log(1 + x), precise near 0."""
def log1p_(input: _Tensor) -> _Tensor:
    """In-place version of log1p."""
def log2(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The logarithm to base 2."""
def log2_(input: _Tensor) -> _Tensor:
    """In-place version of log2."""
def log_(input: _Tensor) -> _Tensor:
    """In-place version of log."""
def log_softmax(input: _Tensor, dim: _int | Sequence[_int], dtype: _dtype | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The logarithm of `softmax`, without overflow."""
def logaddexp(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """log(exp(x) + exp(y)), without overflow."""
def logaddexp2(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """log₂(2ˣ + 2ʸ), without overflow."""
def logcumsumexp(input: _Tensor, dim: _int | Sequence[_int], *, out: _Tensor | None = None) -> _Tensor:
    """`log(cumsum(exp(input)))` along `dim`, without overflow."""
def logdet(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The log of the determinant: nan where that is negative, -inf where it is zero."""
def logical_and(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """Where both are not zero."""
def logical_not(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Where an element is zero."""
def logical_or(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """Where one of them is not zero."""
def logical_xor(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """Where exactly one of them is not zero."""
def logit(input: _Tensor, eps: _float | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`log(input / (1 - input))`, the inverse of sigmoid; input clamped to [eps, 1 - eps] if eps is given."""
def logit_(input: _Tensor, eps: _float | None = None) -> _Tensor:
    """In-place version of logit."""
def logspace(start: _Number | _Tensor, end: _Number | _Tensor, steps: _int, base: _float=10.0, *, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """`steps` powers of `base`, whose exponents go evenly from `start` to `end`."""
def logsumexp(input: _Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """`log(sum(exp(input)))` over `dim`, without overflow."""
long: _dtype
def lstm(input: _Tensor, *args: Any) -> tuple[_Tensor, _Tensor, _Tensor]:
    """The layers of `nn.LSTM` as a function of flat `params`."""
def lstm_cell(input: _Tensor, hx: _Tensor, w_ih: _Tensor, w_hh: _Tensor, b_ih: _Tensor | None = None, b_hh: _Tensor | None = None) -> tuple[_Tensor, _Tensor]:
    """One step of an LSTM: the new (h, c)."""
def lstsq(self: _Tensor, *args: Any, **kwargs: Any) -> Any:
    """Removed: torch.linalg.lstsq(A, B).solution has its arguments reversed and does not hold the QR decomposition."""
def lt(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x < y, element by element."""
def lu(A: _Tensor, pivot: _bool=True, get_infos: _bool=False) -> Any:
    """LU with partial pivoting, packed; the pivots; and on request an info per matrix."""
def lu_solve(input: _Tensor, LU_data: _Tensor, LU_pivots: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """X with `A X = input`, from A's packed LU."""
def lu_unpack(LU_data: _Tensor, LU_pivots: _Tensor, unpack_data: _bool = True, unpack_pivots: _bool = True, *, out: Any = None) -> _returns.lu_unpack:
    """P, L and U out of a packed LU and its pivots."""
def manual_seed(seed: _int) -> _Generator:
    """Seed the default generator; the numbers that follow are PyTorch's for the same seed."""
def margin_ranking_loss(input1: _Tensor, input2: _Tensor, target: _Tensor, margin: _float = 0.0, reduction: _float = 0) -> _Tensor:
    """`nn.functional.margin_ranking_loss` with the reduction as a number."""
from rushlight import masked as masked
def masked_fill(input: _Tensor, mask: _Tensor, value: _Number | _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`input` with `value` where `mask` is True."""
def masked_scatter(input: _Tensor, mask: _Tensor, source: Any, *, out: _Tensor | None = None) -> _Tensor:
    """`input` with the elements of `source`, in order, wherever `mask` is true."""
def masked_select(input: _Tensor, mask: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The elements where `mask` is true, as a vector."""
def matmul(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The product of two tensors: dot, matrix-vector or batched matrix product, by their dimensions."""
def matrix_exp(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The exponential of square matrices."""
def matrix_power(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The n-th power of square matrices, of their inverses if n is negative."""
def matrix_rank(self: _Tensor, *args: Any, **kwargs: Any) -> Any:
    """Removed: torch.linalg.matrix_rank has 'hermitian' for 'symmetric'."""
@overload
def max(input: _Tensor) -> _Tensor: ...
@overload
def max(input: _Tensor, other: _Tensor, *, out: _Tensor | None=None) -> _Tensor: ...
@overload
def max(input: _Tensor, dim: _int, keepdim: _bool=False, *, out: Any=None) -> _returns.max:
    """The largest element; with `dim`, (values, indices) along it; with a tensor, the larger of each pair."""
def max_pool1d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> _Tensor:
    """The largest element of each window of the last 1 dimension(s)."""
def max_pool1d_with_indices(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> tuple[_Tensor, _Tensor]:
    """`max_pool1d` and where in the flattened image each element was."""
def max_pool2d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> _Tensor:
    """The largest element of each window of the last 2 dimension(s)."""
def max_pool3d(input: _Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> _Tensor:
    """The largest element of each window of the last 3 dimension(s)."""
def maximum(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The larger of each pair; nan wins."""
def mean(input: _Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: _Tensor | None = None) -> _Tensor:
    """The mean of all elements, or over `dim`."""
@overload
def median(input: _Tensor) -> _Tensor: ...
@overload
def median(input: _Tensor, dim: _int, keepdim: _bool=False, *, out: Any=None) -> _returns.median:
    """The median (the lower of two); along `dim` with its index. NaN if there is any."""
from rushlight.layout import memory_format as memory_format
def meshgrid(*tensors: _Tensor | Sequence[_Tensor], indexing: _str | None=None) -> tuple[_Tensor, ...]:
    """Coordinate grids of vectors; `indexing` is 'ij' (rows first) or 'xy'."""
@overload
def min(input: _Tensor) -> _Tensor: ...
@overload
def min(input: _Tensor, other: _Tensor, *, out: _Tensor | None=None) -> _Tensor: ...
@overload
def min(input: _Tensor, dim: _int, keepdim: _bool=False, *, out: Any=None) -> _returns.min:
    """The smallest element; with `dim`, (values, indices) along it; with a tensor, the smaller of each pair."""
def minimum(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The smaller of each pair; nan wins."""
def mm(input: _Tensor, mat2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The product of two matrices."""
def mode(input: _Tensor, dim: _int | Sequence[_int] = -1, keepdim: _bool = False, *, out: Any = None) -> _returns.mode:
    """The most frequent element along `dim` (the smallest of several) and the index of its last occurrence."""
def moveaxis(input: _Tensor, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> _Tensor:
    """Dimensions moved to other places, the rest in their old order."""
def movedim(input: _Tensor, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> _Tensor:
    """Dimensions moved to other places, the rest in their old order."""
def msort(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`input` sorted along its first dimension."""
def mul(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x y."""
def multinomial(input: _Tensor, num_samples: _int, replacement: _bool = False, *, generator: _Generator | None = None, out: _Tensor | None = None) -> _Tensor:
    """Indices drawn with the probabilities (unnormalized) in each row of `input`."""
def multiply(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x y."""
from rushlight import multiprocessing as multiprocessing
def mv(input: _Tensor, vec: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """A matrix times a vector."""
def mvlgamma(input: _Tensor, p: _int, *, out: _Tensor | None = None) -> _Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`."""
nan: _float
def nan_to_num(input: _Tensor, nan: _float = 0.0, posinf: Any = None, neginf: Any = None, *, out: _Tensor | None = None) -> _Tensor:
    """nan, inf and -inf replaced; by 0 and the dtype's largest and smallest numbers unless given."""
def nan_to_num_(input: _Tensor, nan: _float = 0.0, posinf: Any = None, neginf: Any = None) -> _Tensor:
    """In-place version of nan_to_num."""
def nanmean(input: _Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: _Tensor | None = None) -> _Tensor:
    """The mean of the elements that are not NaN."""
@overload
def nanmedian(input: _Tensor) -> _Tensor: ...
@overload
def nanmedian(input: _Tensor, dim: _int, keepdim: _bool=False, *, out: Any=None) -> _returns.nanmedian:
    """The median of the elements that are not NaN."""
def nanquantile(input: _Tensor, q: _Tensor | _Scalar, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out: _Tensor | None = None) -> _Tensor:
    """`quantile` of the elements that are not NaN."""
def nansum(input: _Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: _Tensor | None = None) -> _Tensor:
    """The sum with NaN taken as zero."""
def narrow(input: _Tensor, dim: _int | Sequence[_int], start: Any, length: Any) -> _Tensor:
    """`length` entries of `dim` from `start` on."""
def narrow_copy(input: _Tensor, dim: _int | Sequence[_int], start: Any, length: Any) -> _Tensor:
    """`narrow` as a copy."""
def native_batch_norm(input: _Tensor, weight: _Tensor | None, bias: _Tensor | None, running_mean: _Tensor | None, running_var: _Tensor | None, training: _bool, momentum: _float, eps: _float) -> tuple[_Tensor, _Tensor, _Tensor]:
    """(y, mean, 1 / standard deviation); the last two are empty outside training."""
def native_channel_shuffle(input: _Tensor, groups: _int) -> _Tensor:
    """`channel_shuffle`."""
def native_dropout(input: _Tensor, p: _float, train: Any) -> tuple[_Tensor, _Tensor]:
    """`input` with elements dropped, and the mask of those kept."""
def native_group_norm(input: _Tensor, weight: Any, bias: _Tensor | None, N: _int, C: _int, HxW: _int, group: _int, eps: _float) -> tuple[_Tensor, _Tensor, _Tensor]:
    """(y, mean, 1 / standard deviation); the last two of shape (N, groups)."""
def native_layer_norm(input: _Tensor, normalized_shape: Sequence[_int], weight: Any, bias: _Tensor | None, eps: _float) -> tuple[_Tensor, _Tensor, _Tensor]:
    """(y, mean, 1 / standard deviation)."""
def ne(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x ≠ y, element by element."""
def neg(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """-x."""
def neg_(input: _Tensor) -> _Tensor:
    """In-place version of neg."""
def negative(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """-x."""
def negative_(input: _Tensor) -> _Tensor:
    """In-place version of negative."""
from rushlight import nested as nested
newaxis: None
def nextafter(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The next number that the dtype has, from x towards y."""
from rushlight import nn as nn
from rushlight.autograd.mode import no_grad as no_grad
@overload
def nonzero(input: _Tensor, *, as_tuple: Literal[False]=False, out: _Tensor | None=None) -> _Tensor: ...
@overload
def nonzero(input: _Tensor, *, as_tuple: Literal[True]) -> tuple[_Tensor, ...]:
    """Where elements are not zero: one row of indices each, or a tuple of index vectors."""
def nonzero_static(input: _Tensor, *, size: _int | Sequence[_int], fill_value: _float = -1, out: _Tensor | None = None) -> _Tensor:
    """`nonzero` with `size` rows: cut off, or filled up."""
def norm(input: _Tensor, p: _str = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, dtype: _dtype | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """The `p`-norm of all elements or over `dim`; `'fro'` is 2, `'nuc'` the sum of singular values."""
def norm_except_dim(v: Any, pow: _float = 2, dim: _int | Sequence[_int] = 0) -> _Tensor:
    """The norm over all dimensions but one; that one stays in its place."""
@overload
def normal(mean: _Tensor, std: _Tensor | _float=1.0, *, generator: _Generator | None=None, out: _Tensor | None=None) -> _Tensor: ...
@overload
def normal(mean: _float, std: _Tensor, *, generator: _Generator | None=None, out: _Tensor | None=None) -> _Tensor: ...
@overload
def normal(mean: _float, std: _float, size: Sequence[_int], *, generator: _Generator | None=None, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, requires_grad: _bool=False) -> _Tensor:
    """Normal numbers with the given means and standard deviations: numbers with `size`, or tensors."""
def not_equal(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x ≠ y, element by element."""
def nuclear_norm(input: _Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """The sum of the singular values of a matrix, or of the matrices that two dimensions make."""
def numel(input: _Tensor) -> _int:
    """The number of elements."""
def ones(*size: _int | Sequence[_int], out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """A tensor filled with ones."""
def ones_like(input: _Tensor, *, dtype: _dtype | None = None, layout: _layout | None = None, device: _Device = None, requires_grad: _bool = False, memory_format: _memory_format = ..., pin_memory: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """`ones` with the shape, dtype and device of `input`."""
from rushlight import onnx as onnx
from rushlight import ops as ops
from rushlight import optim as optim
def orgqr(input: _Tensor, tau: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The matrix Q from what `geqrf` returns."""
def ormqr(input: _Tensor, tau: _Tensor, other: _Tensor, left: _bool = True, transpose: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """The product of the Q that `geqrf` packed with a matrix, without forming Q."""
def outer(input: _Tensor, vec2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Every product of an element of one vector with one of the other."""
from rushlight import overrides as overrides
def pairwise_distance(x1: _Tensor, x2: _Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> _Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
def pca_lowrank(A: _Tensor, q: _Tensor | _Scalar | None = None, center: _bool = True, niter: _float = 2) -> tuple[_Tensor, _Tensor, _Tensor]:
    """Principal components of the rows of A: `svd_lowrank` of A with its columns' means taken off."""
def pdist(input: _Tensor, p: _float = 2.0) -> _Tensor:
    """The p-norm distances between all pairs of rows."""
per_channel_affine: Any
per_channel_affine_float_qparams: Any
per_channel_symmetric: Any
per_tensor_affine: Any
per_tensor_symmetric: Any
def permute(input: _Tensor, *dims: _int | Sequence[_int]) -> _Tensor:
    """The dimensions in another order."""
def permute_copy(input: _Tensor, *dims: _int | Sequence[_int]) -> _Tensor:
    """`permute` as a copy."""
pi: _float
def pinverse(input: _Tensor, rcond: _float = 1e-15) -> _Tensor:
    """The pseudo-inverse."""
def pixel_shuffle(input: _Tensor, upscale_factor: _int) -> _Tensor:
    """(…, C r², H, W) to (…, C, H r, W r): each group of r² channels becomes a block of r by r pixels."""
def pixel_unshuffle(input: _Tensor, downscale_factor: _int) -> _Tensor:
    """(…, C, H r, W r) to (…, C r², H, W): what undoes `pixel_shuffle`."""
def poisson(input: _Tensor, generator: _Generator | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Poisson numbers with the rates in `input`."""
def poisson_nll_loss(input: _Tensor, target: _Tensor, log_input: Any, full: Any, eps: _float, reduction: Any) -> _Tensor:
    """`nn.functional.poisson_nll_loss` with the reduction as a number."""
def polar(abs: Any, angle: Any, *, out: _Tensor | None = None) -> _Tensor:
    """A complex tensor from its absolute values and angles."""
def polygamma(n: _int, input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The `n`-th derivative of the digamma function."""
def positive(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`input` itself."""
def pow(input: _Tensor, exponent: _Number | _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`input ** exponent`; either may be a Python number."""
def prelu(input: _Tensor, weight: Any) -> _Tensor:
    """`leaky_relu` with a learned slope: one for all, or one for each channel (dimension 1)."""
def prepare_multiprocessing_environment(path: Any) -> Any:
    """Nothing to prepare."""
preserve_format: _memory_format
def prod(input: _Tensor, dim: _int | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: _Tensor | None = None) -> _Tensor:
    """The product of all elements, or over one `dim`."""
from rushlight import profiler as profiler
def promote_types(type1: Any, type2: Any) -> _dtype:
    """The smallest dtype that both promote to."""
def put(input: _Tensor, index: _Tensor, source: Any, accumulate: _bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """`source` placed (or added) at positions of the flattened tensor."""
def q_per_channel_axis(self: _Tensor) -> _Tensor:
    """The dimension whose indices are the channels."""
def q_per_channel_scales(self: _Tensor) -> _Tensor:
    """The scale of each channel."""
def q_per_channel_zero_points(self: _Tensor) -> _Tensor:
    """The code that stands for 0 in each channel."""
def q_scale(self: _Tensor) -> _Tensor:
    """How far apart the numbers of a quantized tensor are."""
def q_zero_point(self: _Tensor) -> _Tensor:
    """The code of a quantized tensor that stands for 0."""
qint32: _dtype
qint8: _dtype
def qr(input: _Tensor, some: _bool = True) -> _returns.qr:
    """Q and R; `some` for the reduced ones."""
from rushlight.layout import qscheme as qscheme
def quantile(input: _Tensor, q: _Tensor | _Scalar, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out: _Tensor | None = None) -> _Tensor:
    """The values below which fractions `q` of the elements lie, all or along `dim`."""
from rushlight import quantization as quantization
def quantize_per_channel(input: _Tensor, scales: Any, zero_points: Any, axis: Any, dtype: _dtype | None) -> _Tensor:
    """A quantized tensor with a scale and zero point for each index along `axis`."""
def quantize_per_tensor(input: _Tensor, scale: Any, zero_point: Any, dtype: _dtype | None) -> _Tensor:
    """A quantized tensor: codes of `dtype` (qint8, quint8 or qint32) with one scale and zero point."""
def quantize_per_tensor_dynamic(input: _Tensor, dtype: _dtype | None, reduce_range: Any) -> _Tensor:
    """`quantize_per_tensor` with the scale and zero point that cover all of `input`."""
from rushlight import quasirandom as quasirandom
quint8: _dtype
def rad2deg(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Radians as degrees."""
def rad2deg_(input: _Tensor) -> _Tensor:
    """In-place version of rad2deg."""
def rand(*size: _int | Sequence[_int], generator: _Generator | None=None, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """Uniform numbers from [0, 1)."""
def rand_like(input: _Tensor, *, dtype: _dtype | None = None, layout: _layout | None = None, device: _Device = None, requires_grad: _bool = False, memory_format: _memory_format = ..., generator: _Generator | None = None, out: _Tensor | None = None) -> _Tensor:
    """Uniform numbers from [0, 1) in `input`'s shape."""
@overload
def randint(low: _int, high: _int, size: Sequence[_int], *, generator: _Generator | None=None, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor: ...
@overload
def randint(high: _int, size: Sequence[_int], *, generator: _Generator | None=None, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """Integers from [low, high): `randint(high, size)` or `randint(low, high, size)`."""
def randint_like(input: _Tensor, low: _float = 0, high: Any = None, *, dtype: _dtype | None = None, layout: _layout | None = None, device: _Device = None, requires_grad: _bool = False, memory_format: _memory_format = ..., generator: _Generator | None = None, out: _Tensor | None = None) -> _Tensor:
    """Integers from [low, high) in `input`'s shape; `randint_like(input, high)` starts at 0."""
def randn(*size: _int | Sequence[_int], generator: _Generator | None=None, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """Numbers from the standard normal distribution."""
def randn_like(input: _Tensor, *, dtype: _dtype | None = None, layout: _layout | None = None, device: _Device = None, requires_grad: _bool = False, memory_format: _memory_format = ..., generator: _Generator | None = None, out: _Tensor | None = None) -> _Tensor:
    """Standard normal numbers in `input`'s shape."""
from rushlight import random as random
def randperm(n: _int, *, generator: _Generator | None=None, out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """A random order of the integers below `n`."""
def range(start: _float = 0, end: Any = None, step: _int = 1, *, dtype: _dtype | None = None, layout: _layout | None = None, device: _Device = None, requires_grad: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """Deprecated: like `arange`, but with `end` included and floating point by default."""
def ravel(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """One dimension; a view if the memory is in order."""
def real(input: _Tensor) -> _Tensor:
    """The real parts, as a view."""
def reciprocal(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """1 / x."""
def reciprocal_(input: _Tensor) -> _Tensor:
    """In-place version of reciprocal."""
def relu(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """max(x, 0)."""
def relu_(input: _Tensor) -> _Tensor:
    """`relu`, in place."""
def remainder(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """What is left of x / y rounded down; it has the sign of y."""
def renorm(input: _Tensor, p: _float, dim: _int | Sequence[_int], maxnorm: _float, *, out: _Tensor | None = None) -> _Tensor:
    """`input` with each slice along `dim` scaled down to a `p`-norm of at most `maxnorm`."""
def repeat_interleave(input: _Tensor, repeats: _int | Sequence[_int] | _Tensor | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> _Tensor:
    """Each element (or slice along `dim`) repeated, one number of times for all or one for each."""
def reshape(input: _Tensor, *shape: _int | Sequence[_int]) -> _Tensor:
    """Another shape: a view where the strides allow it, otherwise a copy."""
def resize_as_(self: _Tensor, the_template: _Tensor, *, memory_format: _memory_format = ...) -> _Tensor:
    """`resize_` to another tensor's shape."""
def resolve_conj(input: _Tensor) -> _Tensor:
    """The conjugates written out, where `input` only shows them; else itself."""
def resolve_neg(input: _Tensor) -> _Tensor:
    """The negatives written out, where `input` only shows them; else itself."""
def result_type(tensor1: _Tensor, tensor2: _Tensor) -> _dtype:
    """The dtype that arithmetic on the two (tensors or numbers) gives."""
def rms_norm(input: _Tensor, normalized_shape: _int | Sequence[_int], weight: Any = None, eps: _float | None = None) -> _Tensor:
    """The last dimensions, of shape `normalized_shape`, divided by the root of their mean square."""
def rnn_relu(input: _Tensor, *args: Any) -> tuple[_Tensor, _Tensor]:
    """The layers of `nn.RNN` as a function of flat `params`."""
def rnn_relu_cell(input: _Tensor, hx: _Tensor, w_ih: _Tensor, w_hh: _Tensor, b_ih: _Tensor | None = None, b_hh: _Tensor | None = None) -> _Tensor:
    """relu(W_ih x + b_ih + W_hh h + b_hh)."""
def rnn_tanh(input: _Tensor, *args: Any) -> tuple[_Tensor, _Tensor]:
    """The layers of `nn.RNN` as a function of flat `params`."""
def rnn_tanh_cell(input: _Tensor, hx: _Tensor, w_ih: _Tensor, w_hh: _Tensor, b_ih: _Tensor | None = None, b_hh: _Tensor | None = None) -> _Tensor:
    """tanh(W_ih x + b_ih + W_hh h + b_hh)."""
def roll(input: _Tensor, shifts: _int | Sequence[_int], dims: _int | Sequence[_int] | None = ()) -> _Tensor:
    """Elements moved along, those that fall off coming in again on the other side."""
def rot90(input: _Tensor, k: _int = 1, dims: _int | Sequence[_int] = (0, 1)) -> _Tensor:
    """Turned by 90 degrees `k` times, from the first of two dimensions to the second."""
def round(input: _Tensor, *, decimals: _int | None = None, out: _Tensor | None = None) -> _Tensor:
    """To the nearest integer (or to `decimals` places), halves to even."""
def round_(input: _Tensor, *, decimals: _int | None = None) -> _Tensor:
    """In-place version of round."""
def row_stack(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Joined row-wise: vectors become rows."""
def rrelu(input: _Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, inplace: _bool = False) -> _Tensor:
    """`leaky_relu` with slopes drawn from [lower, upper) in training, their mean otherwise."""
def rrelu_(input: _Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False) -> _Tensor:
    """`rrelu`, in place."""
def rsqrt(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """1 / √x."""
def rsqrt_(input: _Tensor) -> _Tensor:
    """In-place version of rsqrt."""
def rsub(input: _Tensor, other: _Tensor | _Scalar, *, alpha: _Number = 1, out: _Tensor | None = None) -> _Tensor:
    """`other - alpha * input`."""
def save(obj: object, f: Any, pickle_module: Any = ..., pickle_protocol: _int = 2, _use_new_zipfile_serialization: _bool = True, _disable_byteorder_record: _bool = False) -> None:
    """Write an object to a file that PyTorch opens too. A path is replaced only when the new file is whole."""
def scalar_tensor(s: Any, *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """A number as a tensor of no dimensions."""
def scatter(input: _Tensor, dim: _int | Sequence[_int], index: _Tensor, src: _Tensor | None = None, *, value: Any = None, reduce: _str | None = None, out: _Tensor | None = None) -> _Tensor:
    """`out[index[i][j]][j] = src[i][j]` (for dim 0): elements placed along a dimension."""
def scatter_add(input: _Tensor, dim: _int | Sequence[_int], index: _Tensor, src: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`out[index[i][j]][j] += src[i][j]` (for dim 0)."""
def scatter_reduce(input: _Tensor, dim: _int | Sequence[_int], index: _Tensor, src: _Tensor, reduce: Any, *, include_self: _bool = True, out: _Tensor | None = None) -> _Tensor:
    """`scatter_add` with a choice of 'sum', 'prod', 'mean', 'amax', 'amin'."""
def searchsorted(sorted_sequence: _Tensor, input: _Tensor | _Number, *, out_int32: _bool=False, right: _bool=False, side: _str | None=None, sorter: _Tensor | None=None, out: _Tensor | None=None) -> _Tensor:
    """Where each value would go into `sorted_sequence` (row by row if that has rows) to keep it sorted."""
def seed() -> _int:
    """Seed the default generator from the operating system; returns the seed."""
def segment_reduce(data: Any, reduce: Any, *, lengths: Any = None, indices: Any = None, offsets: _Tensor | None = None, axis: _float = 0, unsafe: _bool = False, initial: Any = None) -> _Tensor:
    """Segments along `axis` reduced to one element each, by 'sum', 'mean', 'max', 'min' or 'prod'."""
def select(input: _Tensor, dim: _int | Sequence[_int], index: _Tensor) -> _Tensor:
    """The `index`-th part along `dim`, without that dimension."""
def select_copy(input: _Tensor, dim: _int | Sequence[_int], index: _Tensor) -> _Tensor:
    """`select` as a copy."""
def select_scatter(input: _Tensor, src: _Tensor, dim: _int | Sequence[_int], index: _Tensor) -> _Tensor:
    """`input` with `src` in place of `input.select(dim, index)`; a copy."""
def selu(input: _Tensor, inplace: _bool = False) -> _Tensor:
    """`elu` with the scale and alpha that keep mean 0 and variance 1."""
def selu_(input: _Tensor) -> _Tensor:
    """`selu`, in place."""
from rushlight import serialization as serialization
def set_anomaly_enabled(enabled: Any, check_nan: _bool = True) -> None:
    """Switch anomaly detection on or off."""
def set_autocast_cache_enabled(enabled: Any) -> None:
    """Remembered only: casts are not cached here."""
def set_autocast_cpu_dtype(dtype: _dtype | None) -> None:
    """Set the dtype that autocast casts to on the CPU."""
def set_autocast_cpu_enabled(enabled: Any) -> None:
    """Switch autocast on the CPU on or off."""
def set_autocast_dtype(device_type: _str, dtype: _dtype | None) -> None:
    """Set the dtype that autocast casts to on this kind of device."""
def set_autocast_enabled(device_type: Any, enabled: Any = None) -> None:
    """Switch autocast on or off outside of any `with`; one argument alone means 'cuda'."""
def set_autocast_gpu_dtype(dtype: _dtype | None) -> None:
    """Set the dtype that autocast casts to on GPUs."""
def set_default_device(d: Any) -> None:
    """Where new tensors are made when no `device=` is given; None for the CPU."""
def set_default_dtype(d: _dtype) -> None:
    """The dtype that `tensor(0.5)` and `zeros(3)` get; float32 unless changed."""
def set_default_tensor_type(t: Any) -> None:
    """Old way to set the default dtype: a tensor type or its name, `torch.DoubleTensor`."""
def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """0 or 'default', 1 or 'warn', 2 or 'error': what to do about operators that are not repeatable."""
def set_float32_matmul_precision(precision: _str) -> None:
    """`highest`, `high` or `medium`: how exactly float32 matrix products are computed on accelerators."""
def set_flush_denormal(mode: Any) -> Any:
    """Small numbers are never flushed to zero here: `False`, PyTorch's way to say that it cannot be set."""
from rushlight.autograd.mode import set_grad_enabled as set_grad_enabled
def set_num_interop_threads(n: _int) -> None:
    """Set how many operators may run at once."""
def set_num_threads(n: _int) -> None:
    """How many threads one op may use; told to the kernels in C and to the BLAS library that came with NumPy."""
def set_printoptions(precision: Any = None, threshold: Any = None, edgeitems: Any = None, linewidth: Any = None, profile: Any = None, sci_mode: Any = None) -> None:
    """Change how tensors print."""
def set_rng_state(new_state: _Tensor) -> None:
    """Set the state of the default generator."""
def set_warn_always(b: _float) -> None:
    """Give warnings every time, or once."""
def sgn(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The sign; of a complex number, the number on the unit circle in its direction."""
short: _dtype
def sigmoid(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """1 / (1 + exp(-x))."""
def sigmoid_(input: _Tensor) -> _Tensor:
    """In-place version of sigmoid."""
def sign(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """-1, 0 or 1 for each element."""
from rushlight import signal as signal
def signbit(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Where the sign is negative, that of -0.0 too."""
def sin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The sine."""
def sin_(input: _Tensor) -> _Tensor:
    """In-place version of sin."""
def sinc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """sin(πx) / πx, 1 at 0."""
def sinc_(input: _Tensor) -> _Tensor:
    """In-place version of sinc."""
def sinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The hyperbolic sine."""
def sinh_(input: _Tensor) -> _Tensor:
    """In-place version of sinh."""
def slice_copy(input: _Tensor, dim: _int | Sequence[_int] = 0, start: Any = None, end: Any = None, step: _int = 1) -> _Tensor:
    """`slice` as a copy."""
def slice_inverse(input: _Tensor, src: _Tensor, dim: _int | Sequence[_int] = 0, start: Any = None, end: Any = None, step: _int = 1) -> _Tensor:
    """The memory of a slice seen as what it was cut from: `src` says shape and strides."""
def slice_scatter(input: _Tensor, src: _Tensor, dim: _int | Sequence[_int] = 0, start: Any = None, end: Any = None, step: _int = 1) -> _Tensor:
    """`input` with `src` in place of `input[start:end:step]` along `dim`; a copy."""
def slogdet(input: _Tensor, *, out: Any = None) -> _returns.slogdet:
    """The sign and the log of the absolute value of the determinant."""
def softmax(input: _Tensor, dim: _int | Sequence[_int], dtype: _dtype | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`exp(input)` divided by its sum over `dim`."""
def solve(self: _Tensor, *args: Any, **kwargs: Any) -> Any:
    """Removed: torch.linalg.solve(A, B) has its arguments reversed and does not return the LU factorization."""
def sort(input: _Tensor, dim: _int | Sequence[_int] = -1, descending: _bool = False, *, stable: _bool | None = None, out: Any = None) -> _returns.sort:
    """`(values, indices)` in order along `dim`; equal elements keep theirs."""
from rushlight import sparse as sparse
sparse_bsc: _layout
def sparse_bsc_tensor(*args: Any, **kwargs: Any) -> _Tensor:
    """Not here: sparse matrices of blocks."""
sparse_bsr: _layout
def sparse_bsr_tensor(*args: Any, **kwargs: Any) -> _Tensor:
    """Not here: sparse matrices of blocks."""
def sparse_compressed_tensor(*args: Any, **kwargs: Any) -> _Tensor:
    """A sparse matrix by rows or by columns, as `layout` says."""
sparse_coo: _layout
def sparse_coo_tensor(indices: Any, values: Any, size: Sequence[_int] | None=None, *, dtype: _dtype | None=None, device: _Device=None, requires_grad: _bool=False, check_invariants: _bool | None=None, is_coalesced: _bool | None=None) -> _Tensor:
    """A sparse tensor from the places of its values, and the values."""
sparse_csc: _layout
def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[_int] | None=None, *, dtype: _dtype | None=None, device: _Device=None, requires_grad: _bool=False, check_invariants: _bool | None=None) -> _Tensor:
    """A sparse matrix from where its columns begin, the rows of its values, and the values."""
sparse_csr: _layout
def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Sequence[_int] | None=None, *, dtype: _dtype | None=None, device: _Device=None, requires_grad: _bool=False, check_invariants: _bool | None=None) -> _Tensor:
    """A sparse matrix from where its rows begin, the columns of its values, and the values."""
from rushlight import special as special
def split(tensor: _Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int=0) -> tuple[_Tensor, ...]:
    """Parts of the given size (the last may be smaller), or of the given sizes; views."""
def split_copy(tensor: _Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int=0) -> tuple[_Tensor, ...]:
    """`split` as a copy."""
def split_with_sizes(input: _Tensor, split_sizes: Sequence[_int], dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
    """Parts of the given sizes; views."""
def split_with_sizes_copy(input: _Tensor, split_sizes: Sequence[_int], dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
    """`split_with_sizes` as a copy."""
def spmm(input: _Tensor, mat2: _Tensor) -> _Tensor:
    """`mm`, under the name that old code has for sparse matrices."""
def sqrt(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """√x."""
def sqrt_(input: _Tensor) -> _Tensor:
    """In-place version of sqrt."""
def square(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`input ** 2`."""
def square_(input: _Tensor) -> _Tensor:
    """In-place version of square."""
def squeeze(input: _Tensor, dim: _int | Sequence[_int] | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Without its dimensions of size 1, or without those of `dim` that are."""
def squeeze_copy(input: _Tensor, dim: _int | Sequence[_int] | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`squeeze` as a copy."""
def stack(tensors: Sequence[_Tensor], dim: _int | Sequence[_int] = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Tensors of one shape side by side along a new dimension."""
def std(input: _Tensor, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: Any = None, out: _Tensor | None = None) -> _Tensor:
    """The standard deviation: the square root of `var`."""
def std_mean(input: _Tensor, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: Any = None, out: Any = None) -> tuple[_Tensor, _Tensor]:
    """The standard deviation and the mean at once."""
def stft(input: _Tensor, n_fft: _int, hop_length: _int | None = None, win_length: Any = None, window: Any = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: Any = None) -> _Tensor:
    """The Fourier transforms of windows along a signal: frequencies by frames."""
from rushlight import storage as storage
strided: _layout
def sub(input: _Tensor, other: _Tensor | _Scalar, *, alpha: _Number = 1, out: _Tensor | None = None) -> _Tensor:
    """`input - alpha * other`."""
def subtract(input: _Tensor, other: _Tensor | _Scalar, *, alpha: _Number = 1, out: _Tensor | None = None) -> _Tensor:
    """`input - alpha * other`."""
def sum(input: _Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: _Tensor | None = None) -> _Tensor:
    """The sum of all elements, or over `dim`."""
def svd(input: _Tensor, some: _bool = True, compute_uv: _bool = True) -> _returns.svd:
    """U, S and V (not its adjoint) with `U diag(S) V.H = input`."""
def svd_lowrank(A: _Tensor, q: _Tensor | _Scalar = 6, niter: _float = 2, M: _int | None = None) -> tuple[_Tensor, _Tensor, _Tensor]:
    """The leading singular values and vectors of a large matrix (minus M), approximated from a random projection."""
def swapaxes(input: _Tensor, axis0: _int, axis1: _int, *, out: _Tensor | None = None) -> _Tensor:
    """Two dimensions exchanged, under NumPy's argument names."""
def swapdims(input: _Tensor, dim0: _int, dim1: _int, *, out: _Tensor | None = None) -> _Tensor:
    """Two dimensions exchanged."""
def sym_constrain_range(size: _int | Sequence[_int], *, min: Any = None, max: Any = None) -> Any:
    """Raise unless a size lies within bounds."""
def sym_constrain_range_for_size(size: _int | Sequence[_int], *, min: Any = None, max: Any = None) -> Any:
    """Raise unless a size lies within bounds, of which the upper one is above 2."""
def sym_float(a: _float) -> _float:
    """A number as a float."""
def sym_fresh_size(expr: Any) -> Any:
    """The size itself."""
def sym_int(a: _float) -> _int:
    """A number without its fraction."""
def sym_ite(b: _float, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`; both are of one type."""
def sym_max(a: _float, b: _float) -> Any:
    """The larger; a float if one of the two is."""
def sym_min(a: _float, b: _float) -> Any:
    """The smaller; a float if one of the two is."""
def sym_not(a: _float) -> _bool:
    """Not `a`."""
def sym_sqrt(a: _float) -> Any:
    """The square root of a size."""
def sym_sum(args: Any) -> Any:
    """The sum of numbers."""
def symeig(self: _Tensor, *args: Any, **kwargs: Any) -> Any:
    """Removed: torch.linalg.eigh(A, UPLO='U' if upper else 'L'), or eigvalsh without vectors."""
def t(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """A matrix transposed; fewer dimensions stay as they are."""
def t_copy(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`t` as a copy."""
def take(input: _Tensor, index: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The elements at `index` of the flattened tensor, in the index's shape."""
def take_along_dim(input: _Tensor, indices: Any, dim: _int | Sequence[_int] | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """`gather` that broadcasts the tensor and the indices together first."""
def tan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The tangent."""
def tan_(input: _Tensor) -> _Tensor:
    """In-place version of tan."""
def tanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The hyperbolic tangent."""
def tanh_(input: _Tensor) -> _Tensor:
    """In-place version of tanh."""
def tensor(data: Any, *, dtype: _dtype | None=None, device: _Device=None, requires_grad: _bool=False, pin_memory: _bool=False) -> _Tensor:
    """A new tensor that copies `data`: a number, nested sequences of numbers, a NumPy array or a tensor."""
def tensor_split(input: _Tensor, indices_or_sections: _Tensor | _int | Sequence[_int], dim: _int=0) -> tuple[_Tensor, ...]:
    """Parts as even as can be, or cut at the given places; views."""
def tensordot(a: _float, b: _float, dims: _int | Sequence[_int] = 2, *, out: _Tensor | None = None) -> _Tensor:
    """The sums of products over the given dimensions of each tensor."""
from rushlight import testing as testing
def thread_safe_generator() -> Any:
    """The generator of a DataLoader's thread; there are none here."""
def threshold(input: _Tensor, threshold: _Number, value: _Number, inplace: _bool = False) -> _Tensor:
    """x where it is above `threshold`, `value` elsewhere."""
def threshold_(input: _Tensor, threshold: _Number, value: _Number) -> _Tensor:
    """`threshold`, in place."""
def tile(input: _Tensor, *dims: _int | Sequence[_int]) -> _Tensor:
    """`repeat`, with missing leading counts taken as 1."""
def to_dlpack(tensor: _Tensor) -> Any:
    """The tensor's memory as a DLPack capsule."""
def topk(input: _Tensor, k: _int, dim: _int | Sequence[_int] = -1, largest: _bool = True, sorted: _bool = True, *, out: Any = None) -> _returns.topk:
    """The `k` largest (or smallest) elements along `dim`, in order, and their indices."""
from rushlight import torch_version as torch_version
def trace(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """The sum of a matrix's diagonal."""
def transpose(input: _Tensor, dim0: _int, dim1: _int, *, out: _Tensor | None = None) -> _Tensor:
    """Two dimensions exchanged."""
def transpose_copy(input: _Tensor, dim0: _int, dim1: _int, *, out: _Tensor | None = None) -> _Tensor:
    """`transpose` as a copy."""
def trapezoid(y: Any, x: _Tensor | None = None, *, dx: _Number | None = None, dim: _int | Sequence[_int] = -1) -> _Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule, at places `x` or `dx` apart."""
def trapz(y: Any, x: _Tensor | None = None, *, dx: _Number | None = None, dim: _int | Sequence[_int] = -1) -> _Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule, at places `x` or `dx` apart."""
def triangular_solve(input: _Tensor, A: _Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: Any = None) -> _returns.triangular_solve:
    """X with `A X = input` for triangular A."""
def tril(input: _Tensor, diagonal: _int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """The lower triangle, zeros elsewhere."""
def tril_indices(row: _int, col: _int, offset: _int=0, *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False) -> _Tensor:
    """Rows and columns of the lower triangle of a matrix."""
def triplet_margin_loss(anchor: _Tensor, positive: _Tensor, negative: _Tensor, margin: _float = 1.0, p: _float = 2, eps: _float = 1e-06, swap: _bool = False, reduction: _float = 0) -> _Tensor:
    """`nn.functional.triplet_margin_loss` with the reduction as a number."""
def triu(input: _Tensor, diagonal: _int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """The upper triangle, zeros elsewhere."""
def triu_indices(row: _int, col: _int, offset: _int=0, *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False) -> _Tensor:
    """Rows and columns of the upper triangle of a matrix."""
def true_divide(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """x / y, never rounded."""
def trunc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Rounded towards zero."""
def trunc_(input: _Tensor) -> _Tensor:
    """In-place version of trunc."""
def typename(obj: object) -> _str:
    """The tensor-type word of a tensor, else the name of the object's class."""
from rushlight import types as types
uint16: _dtype
uint32: _dtype
uint64: _dtype
uint8: _dtype
def unbind(input: _Tensor, dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
    """The parts along `dim`, without that dimension; views."""
def unbind_copy(input: _Tensor, dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
    """`unbind` as a copy."""
def unflatten(input: _Tensor, dim: _int | Sequence[_int], sizes: Sequence[_int], *, out: _Tensor | None = None) -> _Tensor:
    """One dimension as several: `unflatten(x, 1, (3, -1))`."""
def unfold_copy(self: _Tensor, dimension: _int, size: _int, step: _int) -> _Tensor:
    """`unfold` as a copy."""
@overload
def unique(input: _Tensor, sorted: _bool=True, return_inverse: Literal[False]=False, return_counts: Literal[False]=False, dim: _int | None=None) -> _Tensor: ...
@overload
def unique(input: _Tensor, sorted: _bool=True, return_inverse: _bool=False, return_counts: _bool=False, dim: _int | None=None) -> Any:
    """The distinct values (or slices along `dim`) in order, with where each element went and how often each is."""
@overload
def unique_consecutive(input: _Tensor, return_inverse: Literal[False]=False, return_counts: Literal[False]=False, dim: _int | None=None) -> _Tensor: ...
@overload
def unique_consecutive(input: _Tensor, return_inverse: _bool=False, return_counts: _bool=False, dim: _int | None=None) -> Any:
    """`input` without elements (or slices along `dim`) equal to the one before."""
def unravel_index(indices: Any, shape: Any) -> tuple[_Tensor, ...]:
    """Positions in a flattened tensor as a tuple of indices into `shape`."""
def unsafe_chunk(input: _Tensor, chunks: _int, dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
    """`chunk` whose parts are not tied to the tensor as views."""
def unsafe_split(tensor: _Tensor, split_size: Any, dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
    """`split` whose parts are not tied to the tensor as views."""
def unsafe_split_with_sizes(input: _Tensor, split_sizes: Sequence[_int], dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
    """`split_with_sizes` whose parts are not tied to the tensor as views."""
def unsqueeze(input: _Tensor, dim: _int | Sequence[_int], *, out: _Tensor | None = None) -> _Tensor:
    """With a dimension of size 1 put in at `dim`."""
def unsqueeze_copy(input: _Tensor, dim: _int | Sequence[_int], *, out: _Tensor | None = None) -> _Tensor:
    """`unsqueeze` as a copy."""
def use_deterministic_algorithms(mode: _bool, *, warn_only: _bool = False) -> None:
    """Kept for programs that ask: everything here is deterministic already."""
from rushlight import utils as utils
def vander(x: Any, N: Any = None, increasing: _bool = False) -> _Tensor:
    """The powers of a vector's elements as rows, highest first unless `increasing`."""
def var(input: _Tensor, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: Any = None, out: _Tensor | None = None) -> _Tensor:
    """The variance: squares of differences from the mean, summed and divided by count - `correction` (1)."""
def var_mean(input: _Tensor, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: Any = None, out: Any = None) -> tuple[_Tensor, _Tensor]:
    """The variance and the mean at once."""
def vdot(input: _Tensor, other: _Tensor | _Scalar, *, out: _Tensor | None = None) -> _Tensor:
    """The dot product with the first vector conjugated."""
from rushlight import version as version
def view_as_complex(input: _Tensor) -> _Tensor:
    """A real tensor whose last dimension is 2 as a complex one, sharing memory."""
def view_as_complex_copy(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`view_as_complex` as a copy."""
def view_as_real(input: _Tensor) -> _Tensor:
    """A complex tensor as a real one with a last dimension of 2, sharing memory."""
def view_as_real_copy(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`view_as_real` as a copy."""
def view_copy(input: _Tensor, *shape: _int | Sequence[_int]) -> _Tensor:
    """`view` as a copy."""
from rushlight import vision as vision
def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: _str = 'error', *, chunk_size: Any = None) -> Any:
    """A function that maps `func` over a dimension of its arguments and stacks the results."""
def vsplit(input: _Tensor, indices_or_sections: _int | Sequence[_int]) -> tuple[_Tensor, ...]:
    """`tensor_split` along dimension 0."""
def vstack(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Joined row-wise: vectors become rows."""
@overload
def where(condition: _Tensor) -> tuple[_Tensor, ...]: ...
@overload
def where(condition: _Tensor, input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None=None) -> _Tensor:
    """`input` where `condition` holds, `other` elsewhere; with a condition only, the indices where it holds."""
def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """`body_fn` again and again, while `cond_fn` of what it carries is true."""
def xlogy(input: _Number | _Tensor, other: _Number | _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """`input * log(other)`, 0 where input is 0."""
def xlogy_(input: _Tensor, other: _Number | _Tensor) -> _Tensor:
    """In-place version of xlogy."""
def zero_(self: _Tensor) -> _Tensor:
    """Write zeros everywhere."""
def zeros(*size: _int | Sequence[_int], out: _Tensor | None=None, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor:
    """A tensor filled with zeros."""
def zeros_like(input: _Tensor, *, dtype: _dtype | None = None, layout: _layout | None = None, device: _Device = None, requires_grad: _bool = False, memory_format: _memory_format = ..., pin_memory: _bool = False, out: _Tensor | None = None) -> _Tensor:
    """`zeros` with the shape, dtype and device of `input`."""
classes: Any
cpu: Any
functional: Any
monitor: Any
mps: Any
mtia: Any
package: Any
return_types: Any
xpu: Any
__version__: _str
