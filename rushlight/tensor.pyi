"""The Tensor: an array, its place in the graph, and what it shares with its views.

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
from rushlight.utils.hooks import RemovableHandle as _RemovableHandle

_Number = _int | _float | _bool
_Scalar = _Number | _complex
_Device = _device | _str | _int | None
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])


class Size(tuple[_int, ...]):
    """The shape of a tensor: a tuple of ints."""

    def numel(self) -> _int:
        """The product of the sizes."""
    @overload  # type: ignore[override]
    def __getitem__(self, index: slice) -> Size: ...
    @overload
    def __getitem__(self, index: _int) -> _int: ...
    def __add__(self, other: tuple[_int, ...]) -> Size: ...  # type: ignore[override]

_Size = Size

class Tensor:
    """A multi-dimensional array of one dtype that can remember how it was computed."""
    grad: _Tensor | None
    data: _Tensor
    requires_grad: _bool
    grad_dtype: _dtype | None
    layout: _layout
    __array_priority__: _int
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def shape(self) -> _Size: ...
    @property
    def grad_fn(self) -> Any: ...
    @property
    def T(self) -> _Tensor: ...
    @property
    def H(self) -> _Tensor: ...
    @property
    def mT(self) -> _Tensor: ...
    @property
    def mH(self) -> _Tensor: ...
    @property
    def real(self) -> _Tensor: ...
    @property
    def imag(self) -> _Tensor: ...
    @overload
    def size(self, dim: None=None) -> _Size: ...
    @overload
    def size(self, dim: _int) -> _int: ...
    @overload
    def stride(self, dim: None=None) -> tuple[_int, ...]: ...
    @overload
    def stride(self, dim: _int) -> _int: ...
    def item(self) -> _Number: ...
    def tolist(self) -> Any: ...
    def numpy(self, *, force: _bool=False) -> np.ndarray[Any, Any]: ...
    def backward(self, gradient: _Tensor | None=None, retain_graph: _bool | None=None, create_graph: _bool=False, inputs: Any=None) -> None: ...
    def register_hook(self, hook: Callable[[_Tensor], Any]) -> _RemovableHandle: ...
    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], None]) -> _RemovableHandle: ...
    def requires_grad_(self, requires_grad: _bool=True) -> Self: ...
    def detach_(self) -> Self: ...
    def view(self, *shape: _int | Sequence[_int] | _dtype) -> _Tensor: ...
    def expand(self, *sizes: _int | Sequence[_int]) -> _Tensor: ...
    def repeat(self, *repeats: _int | Sequence[_int]) -> _Tensor: ...
    def resize_(self, *sizes: _int | Sequence[_int], memory_format: _memory_format=...) -> _Tensor: ...
    def sum_to_size(self, *size: _int | Sequence[_int]) -> _Tensor: ...
    def to(self, *args: Any, dtype: _dtype | None=None, device: _Device=None, non_blocking: _bool=False, copy: _bool=False, memory_format: _memory_format=...) -> _Tensor: ...
    def new(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def new_empty(self, *size: _int | Sequence[_int], dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor: ...
    def new_empty_strided(self, size: Sequence[_int], stride: Sequence[_int], *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor: ...
    def new_full(self, size: Sequence[_int], fill_value: Any, *, dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor: ...
    def new_ones(self, *size: _int | Sequence[_int], dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor: ...
    def new_zeros(self, *size: _int | Sequence[_int], dtype: _dtype | None=None, layout: _layout | None=None, device: _Device=None, pin_memory: _bool=False, requires_grad: _bool=False) -> _Tensor: ...
    def cauchy_(self, median: _float=0, sigma: _float=1, *, generator: _Generator | None=None) -> _Tensor: ...
    def exponential_(self, lambd: _float=1, *, generator: _Generator | None=None) -> _Tensor: ...
    def geometric_(self, p: _float, *, generator: _Generator | None=None) -> _Tensor: ...
    def log_normal_(self, mean: _float=1, std: _float=2, *, generator: _Generator | None=None) -> _Tensor: ...
    def normal_(self, mean: _float=0, std: _float=1, *, generator: _Generator | None=None) -> _Tensor: ...
    def uniform_(self, from_: _float=0, to: _float=1, *, generator: _Generator | None=None) -> _Tensor: ...
    def random_(self, *bounds: _int, generator: _Generator | None=None) -> _Tensor: ...
    @overload
    def type(self, dtype: None=None, non_blocking: _bool=False) -> _str: ...
    @overload
    def type(self, dtype: Any, non_blocking: _bool=False) -> _Tensor: ...
    def where(self, condition: _Tensor, other: _Tensor | _Number) -> _Tensor: ...
    def polygamma(self, n: _int) -> _Tensor: ...
    def as_subclass(self, cls: _type[_T]) -> _T: ...
    def __getitem__(self, index: Any) -> _Tensor: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __iter__(self) -> Iterator[_Tensor]: ...
    def __reversed__(self) -> _Tensor: ...
    def __contains__(self, element: Any) -> _bool: ...
    def __len__(self) -> _int: ...
    def __bool__(self) -> _bool: ...
    def __int__(self) -> _int: ...
    def __index__(self) -> _int: ...
    def __float__(self) -> _float: ...
    def __complex__(self) -> _complex: ...
    def __format__(self, spec: _str, /) -> _str: ...
    def __hash__(self) -> _int: ...
    def __deepcopy__(self, memo: Any) -> Self: ...
    def __array__(self, dtype: Any=None, copy: _bool | None=None) -> np.ndarray[Any, Any]: ...
    def __dlpack__(self, *, stream: Any=None, max_version: Any=None, dl_device: Any=None, copy: _bool | None=None) -> Any: ...
    def __dlpack_device__(self) -> Any: ...
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any=(), kwargs: Any=None) -> Any: ...
    def __abs__(self) -> _Tensor: ...
    def __add__(self, other: Any, /) -> _Tensor: ...
    def __and__(self, other: Any, /) -> _Tensor: ...
    def __eq__(self, other: Any, /) -> _Tensor: ...  # type: ignore[override]  # element by element
    def __floordiv__(self, other: Any, /) -> _Tensor: ...
    def __ge__(self, other: Any, /) -> _Tensor: ...
    def __gt__(self, other: Any, /) -> _Tensor: ...
    def __iadd__(self, other: Any, /) -> _Tensor: ...
    def __iand__(self, other: Any, /) -> _Tensor: ...
    def __ifloordiv__(self, other: Any, /) -> _Tensor: ...
    def __ilshift__(self, other: Any, /) -> _Tensor: ...
    def __imod__(self, other: Any, /) -> _Tensor: ...
    def __imul__(self, other: Any, /) -> _Tensor: ...
    def __invert__(self) -> _Tensor: ...
    def __ior__(self, other: Any, /) -> _Tensor: ...
    def __ipow__(self, other: Any, /) -> _Tensor: ...
    def __irshift__(self, other: Any, /) -> _Tensor: ...
    def __isub__(self, other: Any, /) -> _Tensor: ...
    def __itruediv__(self, other: Any, /) -> _Tensor: ...
    def __ixor__(self, other: Any, /) -> _Tensor: ...
    def __le__(self, other: Any, /) -> _Tensor: ...
    def __lshift__(self, other: Any, /) -> _Tensor: ...
    def __lt__(self, other: Any, /) -> _Tensor: ...
    def __matmul__(self, other: Any, /) -> _Tensor: ...
    def __mod__(self, other: Any, /) -> _Tensor: ...
    def __mul__(self, other: Any, /) -> _Tensor: ...
    def __ne__(self, other: Any, /) -> _Tensor: ...  # type: ignore[override]  # element by element
    def __neg__(self) -> _Tensor: ...
    def __or__(self, other: Any, /) -> _Tensor: ...
    def __pos__(self) -> _Tensor: ...
    def __pow__(self, other: Any, /) -> _Tensor: ...
    def __radd__(self, other: Any, /) -> _Tensor: ...
    def __rand__(self, other: Any, /) -> _Tensor: ...
    def __rfloordiv__(self, other: Any, /) -> _Tensor: ...
    def __rlshift__(self, other: Any, /) -> _Tensor: ...
    def __rmatmul__(self, other: Any, /) -> _Tensor: ...
    def __rmod__(self, other: Any, /) -> _Tensor: ...
    def __rmul__(self, other: Any, /) -> _Tensor: ...
    def __ror__(self, other: Any, /) -> _Tensor: ...
    def __rpow__(self, other: Any, /) -> _Tensor: ...
    def __rrshift__(self, other: Any, /) -> _Tensor: ...
    def __rshift__(self, other: Any, /) -> _Tensor: ...
    def __rsub__(self, other: Any, /) -> _Tensor: ...
    def __rtruediv__(self, other: Any, /) -> _Tensor: ...
    def __rxor__(self, other: Any, /) -> _Tensor: ...
    def __sub__(self, other: Any, /) -> _Tensor: ...
    def __truediv__(self, other: Any, /) -> _Tensor: ...
    def __xor__(self, other: Any, /) -> _Tensor: ...
    def abs(self) -> _Tensor:
        """|x|."""
    def abs_(self) -> Self:
        """In-place version of abs."""
    def absolute(self) -> _Tensor:
        """|x|."""
    def absolute_(self) -> Self:
        """In-place version of absolute."""
    def acos(self) -> _Tensor:
        """The angle whose cosine is x."""
    def acos_(self) -> Self:
        """In-place version of acos."""
    def acosh(self) -> _Tensor:
        """The inverse of cosh."""
    def acosh_(self) -> Self:
        """In-place version of acosh."""
    def add(self, other: _Tensor | _Scalar, *, alpha: _Number = 1) -> _Tensor:
        """`input + alpha * other`."""
    def add_(self, other: _Tensor | _Scalar, *, alpha: _Number = 1) -> Self:
        """In-place version of add."""
    def addbmm(self, batch1: _Tensor, batch2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> _Tensor:
        """`beta * input + alpha * sum(batch1 @ batch2)` over the batch."""
    def addbmm_(self, batch1: _Tensor, batch2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Self:
        """In-place version of addbmm."""
    def addcdiv(self, tensor1: _Tensor, tensor2: _Tensor, *, value: _float = 1) -> _Tensor:
        """`input + value * tensor1 / tensor2`."""
    def addcdiv_(self, tensor1: _Tensor, tensor2: _Tensor, *, value: _float = 1) -> Self:
        """In-place version of addcdiv."""
    def addcmul(self, tensor1: _Tensor, tensor2: _Tensor, *, value: _float = 1) -> _Tensor:
        """`input + value * tensor1 * tensor2`."""
    def addcmul_(self, tensor1: _Tensor, tensor2: _Tensor, *, value: _float = 1) -> Self:
        """In-place version of addcmul."""
    def addmm(self, mat1: _Tensor, mat2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> _Tensor:
        """`beta * input + alpha * (mat1 @ mat2)`."""
    def addmm_(self, mat1: _Tensor, mat2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Self:
        """In-place version of addmm."""
    def addmv(self, mat: _Tensor, vec: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> _Tensor:
        """`beta * input + alpha * (mat @ vec)`."""
    def addmv_(self, mat: _Tensor, vec: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Self:
        """In-place version of addmv."""
    def addr(self, vec1: _Tensor, vec2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> _Tensor:
        """`beta * input + alpha * outer(vec1, vec2)`."""
    def addr_(self, vec1: _Tensor, vec2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Self:
        """In-place version of addr."""
    def adjoint(self) -> _Tensor:
        """The last two dimensions exchanged and conjugated."""
    def all(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False) -> _Tensor:
        """Whether all elements are true."""
    def allclose(self, other: _Tensor | _Scalar, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
        """Whether all elements are close; a Python bool."""
    def amax(self, dim: _int | Sequence[_int] = (), keepdim: _bool = False) -> _Tensor:
        """The largest elements over `dim`; ties share the gradient."""
    def amin(self, dim: _int | Sequence[_int] = (), keepdim: _bool = False) -> _Tensor:
        """The smallest elements over `dim`; ties share the gradient."""
    def aminmax(self, *, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False) -> _returns.aminmax:
        """The smallest and the largest elements at once."""
    def angle(self) -> _Tensor:
        """The angle of each complex number, in radians; π for negative real ones."""
    def any(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False) -> _Tensor:
        """Whether any element is true."""
    def apply_(self, callable: Any) -> _Tensor:
        """Replace each element by `callable(element)`: slow, for the CPU only."""
    def arccos(self) -> _Tensor:
        """The angle whose cosine is x."""
    def arccos_(self) -> Self:
        """In-place version of arccos."""
    def arccosh(self) -> _Tensor:
        """The inverse of cosh."""
    def arccosh_(self) -> Self:
        """In-place version of arccosh."""
    def arcsin(self) -> _Tensor:
        """The angle whose sine is x."""
    def arcsin_(self) -> Self:
        """In-place version of arcsin."""
    def arcsinh(self) -> _Tensor:
        """The inverse of sinh."""
    def arcsinh_(self) -> Self:
        """In-place version of arcsinh."""
    def arctan(self) -> _Tensor:
        """The angle whose tangent is x."""
    def arctan2(self, other: _Tensor | _Scalar) -> _Tensor:
        """The angle of the point (y, x), in its quadrant."""
    def arctan2_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of arctan2."""
    def arctan_(self) -> Self:
        """In-place version of arctan."""
    def arctanh(self) -> _Tensor:
        """The inverse of tanh."""
    def arctanh_(self) -> Self:
        """In-place version of arctanh."""
    def argmax(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False) -> _Tensor:
        """The index of the (first) largest element, counted over all elements or along `dim`."""
    def argmin(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False) -> _Tensor:
        """The index of the (first) smallest element, counted over all elements or along `dim`."""
    def argsort(self, dim: _int | Sequence[_int] = -1, descending: _bool = False, *, stable: _bool = False) -> _Tensor:
        """The indices that sort `input` along `dim`."""
    def argwhere(self) -> _Tensor:
        """Where elements are not zero, one row of indices each."""
    def as_strided(self, size: Sequence[_int], stride: Sequence[_int], storage_offset: Any = None) -> _Tensor:
        """A view of the tensor's storage with sizes and strides given outright."""
    def as_strided_(self, size: Sequence[_int], stride: Sequence[_int], storage_offset: Any = None) -> Self:
        """In-place version of as_strided."""
    def as_strided_scatter(self, src: _Tensor, size: _int | Sequence[_int], stride: _int | Sequence[_int], storage_offset: Any = None) -> _Tensor:
        """`input` with `src` in place of a strided part; a copy."""
    def asin(self) -> _Tensor:
        """The angle whose sine is x."""
    def asin_(self) -> Self:
        """In-place version of asin."""
    def asinh(self) -> _Tensor:
        """The inverse of sinh."""
    def asinh_(self) -> Self:
        """In-place version of asinh."""
    def atan(self) -> _Tensor:
        """The angle whose tangent is x."""
    def atan2(self, other: _Tensor | _Scalar) -> _Tensor:
        """The angle of the point (y, x), in its quadrant."""
    def atan2_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of atan2."""
    def atan_(self) -> Self:
        """In-place version of atan."""
    def atanh(self) -> _Tensor:
        """The inverse of tanh."""
    def atanh_(self) -> Self:
        """In-place version of atanh."""
    def baddbmm(self, batch1: _Tensor, batch2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> _Tensor:
        """`beta * input + alpha * (batch1 @ batch2)`, matrix by matrix."""
    def baddbmm_(self, batch1: _Tensor, batch2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Self:
        """In-place version of baddbmm."""
    def bernoulli(self, p: _float | None = None, *, generator: _Generator | None = None) -> _Tensor:
        """Ones, each with the probability that `input` gives, and zeros."""
    def bernoulli_(self, p: _float = 0.5, *, generator: _Generator | None = None) -> _Tensor:
        """Fill with ones, each with probability `p` (a number, or a tensor of them), and zeros."""
    def bfloat16(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.bfloat16."""
    def bincount(self, weights: _Tensor | None = None, minlength: _int = 0) -> _Tensor:
        """How often each whole number occurs, or the sum of `weights` at its places."""
    def bitwise_and(self, other: _Tensor | _Scalar) -> _Tensor:
        """The bits that both have."""
    def bitwise_and_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of bitwise_and."""
    def bitwise_left_shift(self, other: _Tensor | _Scalar) -> _Tensor:
        """The bits of x, y places to the left."""
    def bitwise_left_shift_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of bitwise_left_shift."""
    def bitwise_not(self) -> _Tensor:
        """The bits of x turned over; of a bool, its opposite."""
    def bitwise_not_(self) -> Self:
        """In-place version of bitwise_not."""
    def bitwise_or(self, other: _Tensor | _Scalar) -> _Tensor:
        """The bits that one of them has."""
    def bitwise_or_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of bitwise_or."""
    def bitwise_right_shift(self, other: _Tensor | _Scalar) -> _Tensor:
        """The bits of x, y places to the right."""
    def bitwise_right_shift_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of bitwise_right_shift."""
    def bitwise_xor(self, other: _Tensor | _Scalar) -> _Tensor:
        """The bits that exactly one of them has."""
    def bitwise_xor_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of bitwise_xor."""
    def bmm(self, mat2: _Tensor) -> _Tensor:
        """The products of two batches of matrices, pair by pair."""
    def bool(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.bool."""
    def broadcast_to(self, *size: _int | Sequence[_int]) -> _Tensor:
        """`input.expand(size)`."""
    def byte(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.uint8."""
    def ccol_indices(self, *_: Any) -> _Tensor:
        """Where in the values each column begins."""
    def cdouble(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.complex128."""
    def ceil(self) -> _Tensor:
        """Rounded up."""
    def ceil_(self) -> Self:
        """In-place version of ceil."""
    def cfloat(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.complex64."""
    def chalf(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.complex32."""
    def char(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.int8."""
    def cholesky(self, upper: _bool = False) -> _Tensor:
        """The triangular factor of positive-definite matrices."""
    def cholesky_inverse(self, upper: _bool = False) -> _Tensor:
        """The inverse of A, from A's Cholesky factor."""
    def cholesky_solve(self, L: _Tensor, upper: _bool = False) -> _Tensor:
        """X with `A X = input`, from A's Cholesky factor."""
    def chunk(self, chunks: _int, dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
        """At most `chunks` parts of equal size (the last may be smaller); views."""
    def clamp(self, min: Any = None, max: Any = None) -> _Tensor:
        """Each element, but at least `min` and at most `max`: numbers, or tensors that broadcast."""
    def clamp_(self, min: Any = None, max: Any = None) -> Self:
        """In-place version of clamp."""
    def clamp_max(self, max: _Number | _Tensor) -> _Tensor:
        """Each element, but at most `max`."""
    def clamp_max_(self, max: _Number | _Tensor) -> Self:
        """In-place version of clamp_max."""
    def clamp_min(self, min: _Number | _Tensor) -> _Tensor:
        """Each element, but at least `min`."""
    def clamp_min_(self, min: _Number | _Tensor) -> Self:
        """In-place version of clamp_min."""
    def clip(self, min: Any = None, max: Any = None) -> _Tensor:
        """Each element, but at least `min` and at most `max`: numbers, or tensors that broadcast."""
    def clip_(self, min: Any = None, max: Any = None) -> Self:
        """In-place version of clip."""
    def clone(self, *, memory_format: _memory_format = ...) -> _Tensor:
        """A copy that gradients flow through."""
    def coalesce(self, *_: Any) -> _Tensor:
        """The sparse tensor with each place once, in order."""
    def col_indices(self, *_: Any) -> _Tensor:
        """The column of each value."""
    def combinations(self, r: _int = 2, with_replacement: _bool = False) -> _Tensor:
        """All ways to take `r` elements of a vector, in order, as rows."""
    def conj(self) -> _Tensor:
        """The complex conjugate, as a view of the same memory; a real tensor is returned as it is."""
    def conj_physical(self) -> _Tensor:
        """The complex conjugate, written out in new memory."""
    def conj_physical_(self) -> Self:
        """In-place version of conj_physical."""
    def const_data_ptr(self) -> _int:
        """The address of the first element, for who only reads it."""
    def contiguous(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor if it lies in memory that way, else a copy that does."""
    def copy_(self, src: _Tensor, non_blocking: _bool = False) -> _Tensor:
        """Write `src`, broadcast and cast, into this tensor."""
    def copysign(self, other: _Tensor | _Scalar) -> _Tensor:
        """The magnitude of x with the sign of y."""
    def copysign_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of copysign."""
    def corrcoef(self) -> _Tensor:
        """The matrix of correlation coefficients of variables in rows."""
    def cos(self) -> _Tensor:
        """The cosine."""
    def cos_(self) -> Self:
        """In-place version of cos."""
    def cosh(self) -> _Tensor:
        """The hyperbolic cosine."""
    def cosh_(self) -> Self:
        """In-place version of cosh."""
    def count_nonzero(self, dim: _int | Sequence[_int] | None = None) -> _Tensor:
        """How many elements are not zero."""
    def cov(self, *, correction: _int = 1, fweights: _Tensor | None = None, aweights: _Tensor | None = None) -> _Tensor:
        """The covariance matrix of variables in rows, observations in columns."""
    def cpu(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor in the CPU's memory."""
    def cross(self, other: _Tensor | _Scalar, dim: _int | Sequence[_int] | None = None) -> _Tensor:
        """The cross product of vectors of three along `dim` (the first of size 3 if not given)."""
    def crow_indices(self, *_: Any) -> _Tensor:
        """Where in the values each row begins."""
    def cuda(self, device: _Device = None, non_blocking: _bool = False, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor on a GPU."""
    def cummax(self, dim: _int | Sequence[_int]) -> _returns.cummax:
        """The largest element so far along `dim`, and where it was."""
    def cummin(self, dim: _int | Sequence[_int]) -> _returns.cummin:
        """The smallest element so far along `dim`, and where it was."""
    def cumprod(self, dim: _int | Sequence[_int], *, dtype: _dtype | None = None) -> _Tensor:
        """The running product along `dim`."""
    def cumprod_(self, dim: _int | Sequence[_int], *, dtype: _dtype | None = None) -> _Tensor:
        """In-place version of cumprod."""
    def cumsum(self, dim: _int | Sequence[_int], *, dtype: _dtype | None = None) -> _Tensor:
        """The running sum along `dim`."""
    def cumsum_(self, dim: _int | Sequence[_int], *, dtype: _dtype | None = None) -> _Tensor:
        """In-place version of cumsum."""
    def data_ptr(self) -> _int:
        """The address of the first element."""
    def deg2rad(self) -> _Tensor:
        """Degrees as radians."""
    def deg2rad_(self) -> Self:
        """In-place version of deg2rad."""
    def dense_dim(self) -> _int:
        """How many dimensions the values of a sparse tensor have."""
    def dequantize(self) -> _Tensor:
        """The float32 tensor that the codes stand for; of a list, each."""
    def det(self) -> _Tensor:
        """The determinant."""
    def detach(self) -> _Tensor:
        """The same memory, outside the graph."""
    @property
    def device(self) -> _device: 
        """Where the elements are."""
    def diag(self, diagonal: _int = 0) -> _Tensor:
        """A vector as a matrix's diagonal, or a matrix's diagonal as a vector."""
    def diag_embed(self, offset: _float = 0, dim1: _int = -2, dim2: _int = -1) -> _Tensor:
        """Matrices with the last dimension of `input` on a diagonal."""
    def diagflat(self, offset: _float = 0) -> _Tensor:
        """The flattened input as a matrix's diagonal."""
    def diagonal(self, offset: _float = 0, dim1: _int = 0, dim2: _int = 1) -> _Tensor:
        """The elements of a diagonal of two dimensions, as a last dimension; a view."""
    def diagonal_scatter(self, src: _Tensor, offset: _float = 0, dim1: _int = 0, dim2: _int = 1) -> _Tensor:
        """`input` with `src` in place of a diagonal; a copy."""
    def diff(self, n: _int = 1, dim: _int | Sequence[_int] = -1, prepend: _Tensor | None = None, append: _Tensor | None = None) -> _Tensor:
        """The `n`-th difference of neighbours along `dim`."""
    def digamma(self) -> _Tensor:
        """The slope of `lgamma`."""
    def digamma_(self) -> Self:
        """In-place version of digamma."""
    def dim(self) -> _int:
        """The number of dimensions."""
    def dim_order(self) -> tuple[_int, ...]:
        """The dimensions from outermost to innermost in memory."""
    def dist(self, other: _Tensor | _Scalar, p: _float = 2) -> _Tensor:
        """The `p`-norm of `input - other`."""
    def div(self, other: _Tensor | _Scalar, *, rounding_mode: _str | None = None) -> _Tensor:
        """`input / other`; `rounding_mode` is None, 'trunc' or 'floor'."""
    def div_(self, other: _Tensor | _Scalar, *, rounding_mode: _str | None = None) -> Self:
        """In-place version of div."""
    def divide(self, other: _Tensor | _Scalar, *, rounding_mode: _str | None = None) -> _Tensor:
        """`input / other`; `rounding_mode` is None, 'trunc' or 'floor'."""
    def divide_(self, other: _Tensor | _Scalar, *, rounding_mode: _str | None = None) -> Self:
        """In-place version of divide."""
    def dot(self, tensor: _Tensor) -> _Tensor:
        """The sum of the products of two vectors' elements."""
    def double(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.float64."""
    def dsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[_Tensor, ...]:
        """`tensor_split` along dimension 2."""
    @property
    def dtype(self) -> _dtype: 
        """The type of the elements."""
    def eig(self, *args: Any, **kwargs: Any) -> _Tensor:
        """Removed: torch.linalg.eig(A), or eigvals(A) without vectors, returns complex tensors."""
    def element_size(self) -> _int:
        """The bytes of one element."""
    def eq(self, other: _Tensor | _Scalar) -> _Tensor:
        """x = y, element by element."""
    def eq_(self, other: _Tensor | _Scalar) -> _Tensor:
        """In-place version of eq."""
    def equal(self, other: _Tensor | _Scalar) -> _bool:
        """Whether both tensors have one shape and the same elements; a Python bool."""
    def erf(self) -> _Tensor:
        """The error function."""
    def erf_(self) -> Self:
        """In-place version of erf."""
    def erfc(self) -> _Tensor:
        """1 - erf(x), precise where that is small."""
    def erfc_(self) -> Self:
        """In-place version of erfc."""
    def erfinv(self) -> _Tensor:
        """The inverse of the error function."""
    def erfinv_(self) -> Self:
        """In-place version of erfinv."""
    def exp(self) -> _Tensor:
        """e to the power of x."""
    def exp2(self) -> _Tensor:
        """2 to the power of x."""
    def exp2_(self) -> Self:
        """In-place version of exp2."""
    def exp_(self) -> Self:
        """In-place version of exp."""
    def expand_as(self, other: _Tensor | _Scalar) -> _Tensor:
        """`self.expand(other.size())`."""
    def expm1(self) -> _Tensor:
        """exp(x) - 1, precise near 0."""
    def expm1_(self) -> Self:
        """In-place version of expm1."""
    def fill_(self, value: Any) -> _Tensor:
        """Write one value everywhere."""
    def fill_diagonal_(self, fill_value: Any, wrap: _bool = False) -> _Tensor:
        """Write `fill_value` on the main diagonal; `wrap` goes on below a tall matrix, one row left out."""
    def fix(self) -> _Tensor:
        """Rounded towards zero."""
    def fix_(self) -> Self:
        """In-place version of fix."""
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> _Tensor:
        """The dimensions `start_dim` to `end_dim` as one."""
    def flip(self, *dims: _int | Sequence[_int]) -> _Tensor:
        """The given dimensions back to front; a copy."""
    def fliplr(self) -> _Tensor:
        """Columns back to front."""
    def flipud(self) -> _Tensor:
        """Rows back to front."""
    def float(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.float32."""
    def float_power(self, exponent: _Tensor | _Scalar) -> _Tensor:
        """`input ** exponent` in double precision."""
    def float_power_(self, exponent: _Tensor | _Scalar) -> Self:
        """In-place version of float_power."""
    def floor(self) -> _Tensor:
        """Rounded down."""
    def floor_(self) -> Self:
        """In-place version of floor."""
    def floor_divide(self, other: _Tensor | _Scalar) -> _Tensor:
        """x / y, rounded down."""
    def floor_divide_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of floor_divide."""
    def fmax(self, other: _Tensor | _Scalar) -> _Tensor:
        """The larger of each pair; a number wins over nan."""
    def fmin(self, other: _Tensor | _Scalar) -> _Tensor:
        """The smaller of each pair; a number wins over nan."""
    def fmod(self, other: _Tensor | _Scalar) -> _Tensor:
        """What is left of x / y rounded towards zero; it has the sign of x."""
    def fmod_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of fmod."""
    def frac(self) -> _Tensor:
        """What is left of x rounded towards zero."""
    def frac_(self) -> Self:
        """In-place version of frac."""
    def frexp(self) -> _returns.frexp:
        """Mantissa in [0.5, 1) and integer exponent of each element."""
    def gather(self, dim: _int | Sequence[_int], index: _Tensor, *, sparse_grad: _bool = False) -> _Tensor:
        """`out[i][j] = input[index[i][j]][j]` (for dim 0): elements picked along a dimension."""
    def gcd(self, other: _Tensor | _Scalar) -> _Tensor:
        """The greatest common divisor."""
    def gcd_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of gcd."""
    def ge(self, other: _Tensor | _Scalar) -> _Tensor:
        """x ≥ y, element by element."""
    def ge_(self, other: _Tensor | _Scalar) -> _Tensor:
        """In-place version of ge."""
    def geqrf(self) -> _returns.geqrf:
        """QR as LAPACK packs it: R above, reflectors below the diagonal, and their factors."""
    def ger(self, vec2: _Tensor) -> _Tensor:
        """Every product of an element of one vector with one of the other."""
    def get_device(self) -> _int:
        """The device's index; -1 on the CPU."""
    def greater(self, other: _Tensor | _Scalar) -> _Tensor:
        """x > y, element by element."""
    def greater_(self, other: _Tensor | _Scalar) -> _Tensor:
        """In-place version of gt."""
    def greater_equal(self, other: _Tensor | _Scalar) -> _Tensor:
        """x ≥ y, element by element."""
    def greater_equal_(self, other: _Tensor | _Scalar) -> _Tensor:
        """In-place version of ge."""
    def gt(self, other: _Tensor | _Scalar) -> _Tensor:
        """x > y, element by element."""
    def gt_(self, other: _Tensor | _Scalar) -> _Tensor:
        """In-place version of gt."""
    def half(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.float16."""
    def hardshrink(self, lambd: _float = 0.5) -> _Tensor:
        """x, but 0 within `lambd` of 0."""
    def hash_tensor(self, dim: _int | Sequence[_int] = (), *, keepdim: _bool = False, mode: _float = 0) -> _Tensor:
        """The exclusive or of the bits of all elements, or along `dim`, each taken as a float64 or an int64."""
    def heaviside(self, other: _Tensor | _Scalar) -> _Tensor:
        """0 below zero, 1 above, y at zero."""
    def heaviside_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of heaviside."""
    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0) -> _Tensor:
        """How many elements fall into each of `bins` equal parts of the range from `min` to `max` (0, 0: all)."""
    def histogram(self, bins: _int | Sequence[_int] | _Tensor, *, range: Any = None, weight: Any = None, density: _bool = False) -> _returns.histogram:
        """`(hist, bin_edges)`: the count (or weight, or density) of elements between the edges."""
    def hsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[_Tensor, ...]:
        """`tensor_split` along dimension 1."""
    def hypot(self, other: _Tensor | _Scalar) -> _Tensor:
        """√(x² + y²)."""
    def hypot_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of hypot."""
    def i0(self) -> _Tensor:
        """The modified Bessel function of the first kind, order 0."""
    def i0_(self) -> Self:
        """In-place version of i0."""
    def igamma(self, other: _Tensor | _Scalar) -> _Tensor:
        """The lower incomplete gamma function, as a share of the whole."""
    def igamma_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of igamma."""
    def igammac(self, other: _Tensor | _Scalar) -> _Tensor:
        """The upper incomplete gamma function, as a share of the whole."""
    def igammac_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of igammac."""
    def index_add(self, dim: _int | Sequence[_int], index: _Tensor, source: Any, *, alpha: _Number = 1) -> _Tensor:
        """`out[index[i]] += alpha * source[i]` along a dimension."""
    def index_add_(self, dim: _int | Sequence[_int], index: _Tensor, source: Any, *, alpha: _Number = 1) -> Self:
        """In-place version of index_add."""
    def index_copy(self, dim: _int | Sequence[_int], index: _Tensor, source: Any) -> _Tensor:
        """`out[index[i]] = source[i]` along a dimension."""
    def index_copy_(self, dim: _int | Sequence[_int], index: _Tensor, source: Any) -> Self:
        """In-place version of index_copy."""
    def index_fill(self, dim: _int | Sequence[_int], index: _Tensor, value: Any) -> _Tensor:
        """`out[index[i]] = value` along a dimension."""
    def index_fill_(self, dim: _int | Sequence[_int], index: _Tensor, value: Any) -> Self:
        """In-place version of index_fill."""
    def index_put(self, indices: Any, values: Any, accumulate: _bool = False) -> _Tensor:
        """`input[indices] = values`, or `+=` counting repeated indices, as a copy."""
    def index_put_(self, indices: Any, values: Any, accumulate: _bool = False) -> Self:
        """In-place version of index_put."""
    def index_reduce(self, dim: _int | Sequence[_int], index: _Tensor, source: Any, reduce: Any, *, include_self: _bool = True) -> _Tensor:
        """`index_add` with a choice of 'prod', 'mean', 'amax', 'amin'."""
    def index_reduce_(self, dim: _int | Sequence[_int], index: _Tensor, source: Any, reduce: Any, *, include_self: _bool = True) -> Self:
        """In-place version of index_reduce."""
    def index_select(self, dim: _int | Sequence[_int], index: _Tensor) -> _Tensor:
        """The slices of a dimension that `index` names; a copy."""
    def indices(self, *_: Any) -> _Tensor:
        """The places of a coalesced sparse tensor's values."""
    def inner(self, other: _Tensor) -> _Tensor:
        """The sums of products over both last dimensions."""
    def int(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.int32."""
    def int_repr(self) -> _Tensor:
        """The codes of a quantized tensor."""
    def inverse(self) -> _Tensor:
        """The inverse of square matrices."""
    def ipu(self, device: _Device = None, non_blocking: _bool = False, **kwargs: Any) -> _Tensor:
        """A copy on a device of type ipu, which is not here."""
    def is_coalesced(self, *_: Any) -> _bool:
        """Is each place of a sparse tensor there once, in order?"""
    def is_complex(self) -> _bool:
        """Are the elements complex?"""
    def is_conj(self) -> _bool:
        """Does it show the conjugates of what lies in memory?"""
    def is_contiguous(self, memory_format: _memory_format = ...) -> _bool:
        """Do the elements lie in memory in order, without gaps?"""
    @property
    def is_cpu(self) -> _bool: 
        """Is it on the CPU?"""
    @property
    def is_cuda(self) -> _bool: 
        """Is it on an NVIDIA GPU?"""
    def is_distributed(self) -> _bool:
        """Whether the tensor is spread over processes: never, here."""
    def is_floating_point(self) -> _bool:
        """Are the elements real and not whole?"""
    def is_inference(self) -> _bool:
        """Was it made in inference mode?"""
    is_ipu: _bool
    @property
    def is_leaf(self) -> _bool: 
        """Was it made by the user, not by an operator that is recorded?"""
    is_maia: _bool
    @property
    def is_meta(self) -> _bool: 
        """Has it a shape and no values?"""
    is_mkldnn: _bool
    is_mps: _bool
    is_mtia: _bool
    def is_neg(self) -> _bool:
        """Does it show the negatives of what lies in memory?"""
    is_nested: _bool
    def is_nonzero(self) -> _bool:
        """Is the one element not zero?"""
    def is_pinned(self, device: _Device = None) -> _bool:
        """Does it lie in pinned memory? Never here."""
    is_quantized: _bool
    def is_same_size(self, other: _Tensor | _Scalar) -> _bool:
        """Have both the same shape?"""
    def is_set_to(self, tensor: _Tensor) -> _bool:
        """Do both tensors show the same memory in the same way?"""
    def is_shared(self) -> _bool:
        """Does it lie in memory that processes share?"""
    def is_signed(self) -> _bool:
        """Can the elements be negative?"""
    is_sparse: _bool
    is_sparse_csr: _bool
    is_vulkan: _bool
    @property
    def is_xla(self) -> _bool: 
        """Is it on a device of XLA?"""
    is_xpu: _bool
    def isclose(self, other: _Tensor | _Scalar, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _Tensor:
        """Where `|input - other| <= atol + rtol * |other|`."""
    def isfinite(self) -> _Tensor:
        """Where an element is neither infinite nor nan."""
    def isinf(self) -> _Tensor:
        """Where an element is infinite."""
    def isnan(self) -> _Tensor:
        """Where an element is nan."""
    def isneginf(self) -> _Tensor:
        """Where an element is -inf."""
    def isposinf(self) -> _Tensor:
        """Where an element is +inf."""
    def isreal(self) -> _Tensor:
        """Where an element has no imaginary part."""
    def istft(self, n_fft: _int, hop_length: _int | None = None, win_length: Any = None, window: Any = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: Any = None, return_complex: _bool = False) -> _Tensor:
        """The signal whose short-time transform this is, by adding up its windows and dividing by their weight."""
    @property
    def itemsize(self) -> _int: 
        """The bytes of one element."""
    def kron(self, other: _Tensor | _Scalar) -> _Tensor:
        """The Kronecker product: every block of the result is `other` times an element of `input`."""
    def kthvalue(self, k: _int, dim: _int | Sequence[_int] = -1, keepdim: _bool = False) -> _returns.kthvalue:
        """The `k`-th smallest element along `dim` and its index."""
    def lcm(self, other: _Tensor | _Scalar) -> _Tensor:
        """The least common multiple."""
    def lcm_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of lcm."""
    def ldexp(self, other: _Tensor | _Scalar) -> _Tensor:
        """x 2ʸ."""
    def ldexp_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of ldexp."""
    def le(self, other: _Tensor | _Scalar) -> _Tensor:
        """x ≤ y, element by element."""
    def le_(self, other: _Tensor | _Scalar) -> _Tensor:
        """In-place version of le."""
    def lerp(self, end: Any, weight: Any) -> _Tensor:
        """Linear interpolation: `input + weight * (end - input)`."""
    def lerp_(self, end: Any, weight: Any) -> Self:
        """In-place version of lerp."""
    def less(self, other: _Tensor | _Scalar) -> _Tensor:
        """x < y, element by element."""
    def less_(self, other: _Tensor | _Scalar) -> _Tensor:
        """In-place version of lt."""
    def less_equal(self, other: _Tensor | _Scalar) -> _Tensor:
        """x ≤ y, element by element."""
    def less_equal_(self, other: _Tensor | _Scalar) -> _Tensor:
        """In-place version of le."""
    def lgamma(self) -> _Tensor:
        """The logarithm of |Γ(x)|."""
    def lgamma_(self) -> Self:
        """In-place version of lgamma."""
    def log(self) -> _Tensor:
        """The natural logarithm."""
    def log10(self) -> _Tensor:
        """The logarithm to base 10."""
    def log10_(self) -> Self:
        """In-place version of log10."""
    def log1p(self) -> _Tensor:
        """log(1 + x), precise near 0."""
    def log1p_(self) -> Self:
        """In-place version of log1p."""
    def log2(self) -> _Tensor:
        """The logarithm to base 2."""
    def log2_(self) -> Self:
        """In-place version of log2."""
    def log_(self) -> Self:
        """In-place version of log."""
    def log_softmax(self, dim: _int | Sequence[_int], dtype: _dtype | None = None) -> _Tensor:
        """The logarithm of `softmax`, without overflow."""
    def logaddexp(self, other: _Tensor | _Scalar) -> _Tensor:
        """log(exp(x) + exp(y)), without overflow."""
    def logaddexp2(self, other: _Tensor | _Scalar) -> _Tensor:
        """log₂(2ˣ + 2ʸ), without overflow."""
    def logcumsumexp(self, dim: _int | Sequence[_int]) -> _Tensor:
        """`log(cumsum(exp(input)))` along `dim`, without overflow."""
    def logdet(self) -> _Tensor:
        """The log of the determinant: nan where that is negative, -inf where it is zero."""
    def logical_and(self, other: _Tensor | _Scalar) -> _Tensor:
        """Where both are not zero."""
    def logical_and_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of logical_and."""
    def logical_not(self) -> _Tensor:
        """Where an element is zero."""
    def logical_not_(self) -> Self:
        """In-place version of logical_not."""
    def logical_or(self, other: _Tensor | _Scalar) -> _Tensor:
        """Where one of them is not zero."""
    def logical_or_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of logical_or."""
    def logical_xor(self, other: _Tensor | _Scalar) -> _Tensor:
        """Where exactly one of them is not zero."""
    def logical_xor_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of logical_xor."""
    def logit(self, eps: _float | None = None) -> _Tensor:
        """`log(input / (1 - input))`, the inverse of sigmoid; input clamped to [eps, 1 - eps] if eps is given."""
    def logit_(self, eps: _float | None = None) -> Self:
        """In-place version of logit."""
    def logsumexp(self, dim: _int | Sequence[_int], keepdim: _bool = False) -> _Tensor:
        """`log(sum(exp(input)))` over `dim`, without overflow."""
    def long(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.int64."""
    def lstsq(self, *args: Any, **kwargs: Any) -> _Tensor:
        """Removed: torch.linalg.lstsq(A, B).solution has its arguments reversed and does not hold the QR decomposition."""
    def lt(self, other: _Tensor | _Scalar) -> _Tensor:
        """x < y, element by element."""
    def lt_(self, other: _Tensor | _Scalar) -> _Tensor:
        """In-place version of lt."""
    def lu(self, pivot: _bool=True, get_infos: _bool=False) -> Any:
        """LU with partial pivoting, packed; the pivots; and on request an info per matrix."""
    def lu_solve(self, LU_data: _Tensor, LU_pivots: _Tensor) -> _Tensor:
        """X with `A X = input`, from A's packed LU."""
    def map2_(self, x: Any, y: Any, callable: Any) -> _Tensor:
        """Replace each element by `callable(element, element of x, element of y)`: slow, for the CPU only."""
    def map_(self, tensor: _Tensor, callable: Any) -> _Tensor:
        """Replace each element by `callable(element, element of tensor)`: slow, for the CPU only."""
    def masked_fill(self, mask: _Tensor, value: _Number | _Tensor) -> _Tensor:
        """`input` with `value` where `mask` is True."""
    def masked_fill_(self, mask: _Tensor, value: _Number | _Tensor) -> Self:
        """In-place version of masked_fill."""
    def masked_scatter(self, mask: _Tensor, source: Any) -> _Tensor:
        """`input` with the elements of `source`, in order, wherever `mask` is true."""
    def masked_scatter_(self, mask: _Tensor, source: Any) -> Self:
        """In-place version of masked_scatter."""
    def masked_select(self, mask: _Tensor) -> _Tensor:
        """The elements where `mask` is true, as a vector."""
    def matmul(self, other: _Tensor | _Scalar) -> _Tensor:
        """The product of two tensors: dot, matrix-vector or batched matrix product, by their dimensions."""
    def matrix_exp(self) -> _Tensor:
        """The exponential of square matrices."""
    def matrix_power(self, n: _int) -> _Tensor:
        """The n-th power of square matrices, of their inverses if n is negative."""
    @overload
    def max(self) -> _Tensor: ...
    @overload
    def max(self, other: _Tensor, *, out: _Tensor | None=None) -> _Tensor: ...
    @overload
    def max(self, dim: _int, keepdim: _bool=False, *, out: Any=None) -> _returns.max:
        """The largest element; with `dim`, (values, indices) along it; with a tensor, the larger of each pair."""
    def maximum(self, other: _Tensor | _Scalar) -> _Tensor:
        """The larger of each pair; nan wins."""
    def mean(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> _Tensor:
        """The mean of all elements, or over `dim`."""
    @overload
    def median(self) -> _Tensor: ...
    @overload
    def median(self, dim: _int, keepdim: _bool=False, *, out: Any=None) -> _returns.median:
        """The median (the lower of two); along `dim` with its index. NaN if there is any."""
    @overload
    def min(self) -> _Tensor: ...
    @overload
    def min(self, other: _Tensor, *, out: _Tensor | None=None) -> _Tensor: ...
    @overload
    def min(self, dim: _int, keepdim: _bool=False, *, out: Any=None) -> _returns.min:
        """The smallest element; with `dim`, (values, indices) along it; with a tensor, the smaller of each pair."""
    def minimum(self, other: _Tensor | _Scalar) -> _Tensor:
        """The smaller of each pair; nan wins."""
    def mm(self, mat2: _Tensor) -> _Tensor:
        """The product of two matrices."""
    def mode(self, dim: _int | Sequence[_int] = -1, keepdim: _bool = False) -> _returns.mode:
        """The most frequent element along `dim` (the smallest of several) and the index of its last occurrence."""
    def module_load(self, other: _Tensor | _Scalar, assign: _bool = False) -> _Tensor:
        """What `load_state_dict` puts in this tensor's place when modules swap tensors."""
    def moveaxis(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> _Tensor:
        """Dimensions moved to other places, the rest in their old order."""
    def movedim(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> _Tensor:
        """Dimensions moved to other places, the rest in their old order."""
    def msort(self) -> _Tensor:
        """`input` sorted along its first dimension."""
    def mtia(self, device: _Device = None, non_blocking: _bool = False, **kwargs: Any) -> _Tensor:
        """A copy on a device of type mtia, which is not here."""
    def mul(self, other: _Tensor | _Scalar) -> _Tensor:
        """x y."""
    def mul_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of mul."""
    def multinomial(self, num_samples: _int, replacement: _bool = False, *, generator: _Generator | None = None) -> _Tensor:
        """Indices drawn with the probabilities (unnormalized) in each row of `input`."""
    def multiply(self, other: _Tensor | _Scalar) -> _Tensor:
        """x y."""
    def multiply_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of multiply."""
    def mv(self, vec: _Tensor) -> _Tensor:
        """A matrix times a vector."""
    def mvlgamma(self, p: _int) -> _Tensor:
        """The logarithm of the multivariate gamma function of dimension `p`."""
    def mvlgamma_(self, p: _int) -> Self:
        """In-place version of mvlgamma."""
    name: None
    def nan_to_num(self, nan: _float = 0.0, posinf: Any = None, neginf: Any = None) -> _Tensor:
        """nan, inf and -inf replaced; by 0 and the dtype's largest and smallest numbers unless given."""
    def nan_to_num_(self, nan: _float = 0.0, posinf: Any = None, neginf: Any = None) -> Self:
        """In-place version of nan_to_num."""
    def nanmean(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> _Tensor:
        """The mean of the elements that are not NaN."""
    @overload
    def nanmedian(self) -> _Tensor: ...
    @overload
    def nanmedian(self, dim: _int, keepdim: _bool=False, *, out: Any=None) -> _returns.nanmedian:
        """The median of the elements that are not NaN."""
    def nanquantile(self, q: _Tensor | _Scalar, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> _Tensor:
        """`quantile` of the elements that are not NaN."""
    def nansum(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> _Tensor:
        """The sum with NaN taken as zero."""
    def narrow(self, dim: _int | Sequence[_int], start: Any, length: Any) -> _Tensor:
        """`length` entries of `dim` from `start` on."""
    def narrow_copy(self, dim: _int | Sequence[_int], start: Any, length: Any) -> _Tensor:
        """`narrow` as a copy."""
    @property
    def nbytes(self) -> _int: 
        """The bytes of all elements."""
    @property
    def ndim(self) -> _int: 
        """The number of dimensions."""
    def ndimension(self) -> _int:
        """The number of dimensions."""
    def ne(self, other: _Tensor | _Scalar) -> _Tensor:
        """x ≠ y, element by element."""
    def ne_(self, other: _Tensor | _Scalar) -> _Tensor:
        """In-place version of ne."""
    def neg(self) -> _Tensor:
        """-x."""
    def neg_(self) -> Self:
        """In-place version of neg."""
    def negative(self) -> _Tensor:
        """-x."""
    def negative_(self) -> Self:
        """In-place version of negative."""
    def nelement(self) -> _int:
        """The number of elements."""
    def new_tensor(self, data: Any, *, dtype: _dtype | None = None, device: _Device = None, requires_grad: _bool = False) -> _Tensor:
        """A copy of `data` with this tensor's dtype and device."""
    def nextafter(self, other: _Tensor | _Scalar) -> _Tensor:
        """The next number that the dtype has, from x towards y."""
    def nextafter_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of nextafter."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False]=False, out: _Tensor | None=None) -> _Tensor: ...
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[_Tensor, ...]:
        """Where elements are not zero: one row of indices each, or a tuple of index vectors."""
    def nonzero_static(self, *, size: _int | Sequence[_int], fill_value: _float = -1) -> _Tensor:
        """`nonzero` with `size` rows: cut off, or filled up."""
    def norm(self, p: _str = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, dtype: _dtype | None = None) -> _Tensor:
        """The `p`-norm of all elements or over `dim`; `'fro'` is 2, `'nuc'` the sum of singular values."""
    def not_equal(self, other: _Tensor | _Scalar) -> _Tensor:
        """x ≠ y, element by element."""
    def not_equal_(self, other: _Tensor | _Scalar) -> _Tensor:
        """In-place version of ne."""
    def numel(self) -> _int:
        """The number of elements."""
    def orgqr(self, tau: _Tensor) -> _Tensor:
        """The matrix Q from what `geqrf` returns."""
    def ormqr(self, tau: _Tensor, other: _Tensor, left: _bool = True, transpose: _bool = False) -> _Tensor:
        """The product of the Q that `geqrf` packed with a matrix, without forming Q."""
    def outer(self, vec2: _Tensor) -> _Tensor:
        """Every product of an element of one vector with one of the other."""
    @property
    def output_nr(self) -> _int: 
        """Which output of its node it is."""
    def permute(self, *dims: _int | Sequence[_int]) -> _Tensor:
        """The dimensions in another order."""
    def pin_memory(self, device: _Device = None) -> _Tensor:
        """This tensor: XLA stages its own transfers, so there is no memory to pin."""
    def pinverse(self, rcond: _float = 1e-15) -> _Tensor:
        """The pseudo-inverse."""
    def polygamma_(self, n: _int) -> _Tensor:
        """`polygamma`, in place."""
    def positive(self) -> _Tensor:
        """`input` itself."""
    def pow(self, exponent: _Number | _Tensor) -> _Tensor:
        """`input ** exponent`; either may be a Python number."""
    def pow_(self, exponent: _Number | _Tensor) -> Self:
        """In-place version of pow."""
    def prelu(self, weight: Any) -> _Tensor:
        """`leaky_relu` with a learned slope: one for all, or one for each channel (dimension 1)."""
    def prod(self, dim: _int | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> _Tensor:
        """The product of all elements, or over one `dim`."""
    def put(self, index: _Tensor, source: Any, accumulate: _bool = False) -> _Tensor:
        """`source` placed (or added) at positions of the flattened tensor."""
    def put_(self, index: _Tensor, source: Any, accumulate: _bool = False) -> Self:
        """In-place version of put."""
    def q_per_channel_axis(self) -> _Tensor:
        """The dimension whose indices are the channels."""
    def q_per_channel_scales(self) -> _Tensor:
        """The scale of each channel."""
    def q_per_channel_zero_points(self) -> _Tensor:
        """The code that stands for 0 in each channel."""
    def q_scale(self) -> _Tensor:
        """How far apart the numbers of a quantized tensor are."""
    def q_zero_point(self) -> _Tensor:
        """The code of a quantized tensor that stands for 0."""
    def qr(self, some: _bool = True) -> _returns.qr:
        """Q and R; `some` for the reduced ones."""
    def qscheme(self) -> _Tensor:
        """How the codes of a quantized tensor stand for numbers."""
    def quantile(self, q: _Tensor | _Scalar, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> _Tensor:
        """The values below which fractions `q` of the elements lie, all or along `dim`."""
    def rad2deg(self) -> _Tensor:
        """Radians as degrees."""
    def rad2deg_(self) -> Self:
        """In-place version of rad2deg."""
    def ravel(self) -> _Tensor:
        """One dimension; a view if the memory is in order."""
    def reciprocal(self) -> _Tensor:
        """1 / x."""
    def reciprocal_(self) -> Self:
        """In-place version of reciprocal."""
    def record_stream(self, stream: Any) -> None:
        """Nothing to record: XLA keeps memory alive for as long as work needs it."""
    def reinforce(self, reward: Any) -> _Tensor:
        """Removed: `-distributions.Categorical(probs).log_prob(action) * reward` is a loss."""
    def relu(self) -> _Tensor:
        """max(x, 0)."""
    def relu_(self) -> Self:
        """In-place version of relu."""
    def remainder(self, other: _Tensor | _Scalar) -> _Tensor:
        """What is left of x / y rounded down; it has the sign of y."""
    def remainder_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of remainder."""
    def renorm(self, p: _float, dim: _int | Sequence[_int], maxnorm: _float) -> _Tensor:
        """`input` with each slice along `dim` scaled down to a `p`-norm of at most `maxnorm`."""
    def renorm_(self, p: _float, dim: _int | Sequence[_int], maxnorm: _float) -> Self:
        """In-place version of renorm."""
    def repeat_interleave(self, repeats: _int | Sequence[_int] | _Tensor | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> _Tensor:
        """Each element (or slice along `dim`) repeated, one number of times for all or one for each."""
    def reshape(self, *shape: _int | Sequence[_int]) -> _Tensor:
        """Another shape: a view where the strides allow it, otherwise a copy."""
    def reshape_as(self, other: _Tensor | _Scalar) -> _Tensor:
        """`self.reshape(other.size())`."""
    def resize(self, *sizes: Any) -> _Tensor:
        """`reshape` by its old name, with a warning."""
    def resize_as(self, tensor: _Tensor) -> _Tensor:
        """`reshape` to another tensor's shape, with a warning."""
    def resize_as_(self, the_template: _Tensor, *, memory_format: _memory_format = ...) -> _Tensor:
        """`resize_` to another tensor's shape."""
    def resolve_conj(self) -> _Tensor:
        """The conjugates written out, where `input` only shows them; else itself."""
    def resolve_neg(self) -> _Tensor:
        """The negatives written out, where `input` only shows them; else itself."""
    def retain_grad(self) -> None:
        """Keep this tensor's gradient in `.grad` although it is not a leaf."""
    @property
    def retains_grad(self) -> _bool: 
        """Does it keep its gradient though it is no leaf?"""
    def roll(self, shifts: _int | Sequence[_int], dims: _int | Sequence[_int] | None = ()) -> _Tensor:
        """Elements moved along, those that fall off coming in again on the other side."""
    def rot90(self, k: _int = 1, dims: _int | Sequence[_int] = (0, 1)) -> _Tensor:
        """Turned by 90 degrees `k` times, from the first of two dimensions to the second."""
    def round(self, *, decimals: _int | None = None) -> _Tensor:
        """To the nearest integer (or to `decimals` places), halves to even."""
    def round_(self, *, decimals: _int | None = None) -> Self:
        """In-place version of round."""
    def row_indices(self, *_: Any) -> _Tensor:
        """The row of each value."""
    def rsqrt(self) -> _Tensor:
        """1 / √x."""
    def rsqrt_(self) -> Self:
        """In-place version of rsqrt."""
    def scatter(self, dim: _int | Sequence[_int], index: _Tensor, src: _Tensor | None = None, *, value: Any = None, reduce: _str | None = None) -> _Tensor:
        """`out[index[i][j]][j] = src[i][j]` (for dim 0): elements placed along a dimension."""
    def scatter_(self, dim: _int | Sequence[_int], index: _Tensor, src: _Tensor | None = None, *, value: Any = None, reduce: _str | None = None) -> Self:
        """In-place version of scatter."""
    def scatter_add(self, dim: _int | Sequence[_int], index: _Tensor, src: _Tensor) -> _Tensor:
        """`out[index[i][j]][j] += src[i][j]` (for dim 0)."""
    def scatter_add_(self, dim: _int | Sequence[_int], index: _Tensor, src: _Tensor) -> Self:
        """In-place version of scatter_add."""
    def scatter_reduce(self, dim: _int | Sequence[_int], index: _Tensor, src: _Tensor, reduce: Any, *, include_self: _bool = True) -> _Tensor:
        """`scatter_add` with a choice of 'sum', 'prod', 'mean', 'amax', 'amin'."""
    def scatter_reduce_(self, dim: _int | Sequence[_int], index: _Tensor, src: _Tensor, reduce: Any, *, include_self: _bool = True) -> Self:
        """In-place version of scatter_reduce."""
    def select(self, dim: _int | Sequence[_int], index: _Tensor) -> _Tensor:
        """The `index`-th part along `dim`, without that dimension."""
    def select_scatter(self, src: _Tensor, dim: _int | Sequence[_int], index: _Tensor) -> _Tensor:
        """`input` with `src` in place of `input.select(dim, index)`; a copy."""
    def set_(self, source: Any = None, storage_offset: _float = 0, size: _int | Sequence[_int] | None = None, stride: _int | Sequence[_int] | None = None) -> _Tensor:
        """Make this tensor another view of `source`'s memory; empty without one."""
    def sgn(self) -> _Tensor:
        """The sign; of a complex number, the number on the unit circle in its direction."""
    def sgn_(self) -> Self:
        """In-place version of sgn."""
    def share_memory_(self) -> _Tensor:
        """Move the tensor's memory to where other processes started from here see writes to it."""
    def short(self, memory_format: _memory_format = ...) -> _Tensor:
        """This tensor as torch.int16."""
    def sigmoid(self) -> _Tensor:
        """1 / (1 + exp(-x))."""
    def sigmoid_(self) -> Self:
        """In-place version of sigmoid."""
    def sign(self) -> _Tensor:
        """-1, 0 or 1 for each element."""
    def sign_(self) -> Self:
        """In-place version of sign."""
    def signbit(self) -> _Tensor:
        """Where the sign is negative, that of -0.0 too."""
    def sin(self) -> _Tensor:
        """The sine."""
    def sin_(self) -> Self:
        """In-place version of sin."""
    def sinc(self) -> _Tensor:
        """sin(πx) / πx, 1 at 0."""
    def sinc_(self) -> Self:
        """In-place version of sinc."""
    def sinh(self) -> _Tensor:
        """The hyperbolic sine."""
    def sinh_(self) -> Self:
        """In-place version of sinh."""
    def slice_inverse(self, src: _Tensor, dim: _int | Sequence[_int] = 0, start: Any = None, end: Any = None, step: _int = 1) -> _Tensor:
        """The memory of a slice seen as what it was cut from: `src` says shape and strides."""
    def slice_scatter(self, src: _Tensor, dim: _int | Sequence[_int] = 0, start: Any = None, end: Any = None, step: _int = 1) -> _Tensor:
        """`input` with `src` in place of `input[start:end:step]` along `dim`; a copy."""
    def slogdet(self) -> _returns.slogdet:
        """The sign and the log of the absolute value of the determinant."""
    def softmax(self, dim: _int | Sequence[_int], dtype: _dtype | None = None) -> _Tensor:
        """`exp(input)` divided by its sum over `dim`."""
    def solve(self, *args: Any, **kwargs: Any) -> _Tensor:
        """Removed: torch.linalg.solve(A, B) has its arguments reversed and does not return the LU factorization."""
    def sort(self, dim: _int | Sequence[_int] = -1, descending: _bool = False, *, stable: _bool | None = None) -> _returns.sort:
        """`(values, indices)` in order along `dim`; equal elements keep theirs."""
    def sparse_dim(self) -> _int:
        """How many dimensions of a sparse tensor are given by indices."""
    def sparse_mask(self, mask: _Tensor) -> _Tensor:
        """The elements at the places of a sparse `mask`."""
    def split(self, split_size_or_sections: _int | Sequence[_int], dim: _int=0) -> tuple[_Tensor, ...]:
        """Parts of the given size (the last may be smaller), or of the given sizes; views."""
    def split_with_sizes(self, split_sizes: Sequence[_int], dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
        """Parts of the given sizes; views."""
    def sqrt(self) -> _Tensor:
        """√x."""
    def sqrt_(self) -> Self:
        """In-place version of sqrt."""
    def square(self) -> _Tensor:
        """`input ** 2`."""
    def square_(self) -> Self:
        """In-place version of square."""
    def squeeze(self, dim: _int | Sequence[_int] | None = None) -> _Tensor:
        """Without its dimensions of size 1, or without those of `dim` that are."""
    def squeeze_(self, dim: _int | Sequence[_int] | None = None) -> Self:
        """In-place version of squeeze."""
    def std(self, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: Any = None) -> _Tensor:
        """The standard deviation: the square root of `var`."""
    def stft(self, n_fft: _int, hop_length: _int | None = None, win_length: Any = None, window: Any = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: Any = None) -> _Tensor:
        """The Fourier transforms of windows along a signal: frequencies by frames."""
    def storage(self) -> Any:
        """Deprecated: the memory as elements; use `untyped_storage()`."""
    def storage_offset(self) -> _int:
        """Where in its storage the tensor begins, in elements."""
    def storage_type(self) -> Any:
        """The class of the deprecated typed storage."""
    def sub(self, other: _Tensor | _Scalar, *, alpha: _Number = 1) -> _Tensor:
        """`input - alpha * other`."""
    def sub_(self, other: _Tensor | _Scalar, *, alpha: _Number = 1) -> Self:
        """In-place version of sub."""
    def subtract(self, other: _Tensor | _Scalar, *, alpha: _Number = 1) -> _Tensor:
        """`input - alpha * other`."""
    def subtract_(self, other: _Tensor | _Scalar, *, alpha: _Number = 1) -> Self:
        """In-place version of subtract."""
    def sum(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> _Tensor:
        """The sum of all elements, or over `dim`."""
    def svd(self, some: _bool = True, compute_uv: _bool = True) -> _returns.svd:
        """U, S and V (not its adjoint) with `U diag(S) V.H = input`."""
    def swapaxes(self, axis0: _int, axis1: _int) -> _Tensor:
        """Two dimensions exchanged, under NumPy's argument names."""
    def swapaxes_(self, axis0: _int, axis1: _int) -> Self:
        """In-place version of swapaxes."""
    def swapdims(self, dim0: _int, dim1: _int) -> _Tensor:
        """Two dimensions exchanged."""
    def swapdims_(self, dim0: _int, dim1: _int) -> Self:
        """In-place version of swapdims."""
    def symeig(self, *args: Any, **kwargs: Any) -> _Tensor:
        """Removed: torch.linalg.eigh(A, UPLO='U' if upper else 'L'), or eigvalsh without vectors."""
    def t(self) -> _Tensor:
        """A matrix transposed; fewer dimensions stay as they are."""
    def t_(self) -> Self:
        """In-place version of t."""
    def take(self, index: _Tensor) -> _Tensor:
        """The elements at `index` of the flattened tensor, in the index's shape."""
    def take_along_dim(self, indices: Any, dim: _int | Sequence[_int] | None = None) -> _Tensor:
        """`gather` that broadcasts the tensor and the indices together first."""
    def tan(self) -> _Tensor:
        """The tangent."""
    def tan_(self) -> Self:
        """In-place version of tan."""
    def tanh(self) -> _Tensor:
        """The hyperbolic tangent."""
    def tanh_(self) -> Self:
        """In-place version of tanh."""
    def tensor_split(self, indices_or_sections: _Tensor | _int | Sequence[_int], dim: _int=0) -> tuple[_Tensor, ...]:
        """Parts as even as can be, or cut at the given places; views."""
    def tile(self, *dims: _int | Sequence[_int]) -> _Tensor:
        """`repeat`, with missing leading counts taken as 1."""
    def to_dense(self, dtype: _dtype | None = None, *, masked_grad: Any = None) -> _Tensor:
        """A tensor with all elements: itself, unless it is sparse."""
    def to_padded_tensor(self, padding: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None) -> _Tensor:
        """For nested tensors, which are not here; others are refused, as in PyTorch."""
    def to_sparse(self, sparse_dim: Any = None, *, layout: _layout | None = None, blocksize: Any = None, dense_dim: Any = None) -> _Tensor:
        """The elements that are not zero, with their places."""
    def to_sparse_bsc(self, blocksize: Any, dense_dim: Any = None) -> _Tensor:
        """Not here: blocks of columns; use `to_sparse_csc`."""
    def to_sparse_bsr(self, blocksize: Any, dense_dim: Any = None) -> _Tensor:
        """Not here: blocks of rows; use `to_sparse_csr`."""
    def to_sparse_coo(self) -> _Tensor:
        """`to_sparse` of layout COO."""
    def to_sparse_csc(self, dense_dim: Any = None) -> _Tensor:
        """A matrix by columns, without its zeros."""
    def to_sparse_csr(self, dense_dim: Any = None) -> _Tensor:
        """A matrix by rows, without its zeros."""
    def topk(self, k: _int, dim: _int | Sequence[_int] = -1, largest: _bool = True, sorted: _bool = True) -> _returns.topk:
        """The `k` largest (or smallest) elements along `dim`, in order, and their indices."""
    def trace(self) -> _Tensor:
        """The sum of a matrix's diagonal."""
    def transpose(self, dim0: _int, dim1: _int) -> _Tensor:
        """Two dimensions exchanged."""
    def transpose_(self, dim0: _int, dim1: _int) -> Self:
        """In-place version of transpose."""
    def triangular_solve(self, A: _Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> _returns.triangular_solve:
        """X with `A X = input` for triangular A."""
    def tril(self, diagonal: _int = 0) -> _Tensor:
        """The lower triangle, zeros elsewhere."""
    def tril_(self, diagonal: _int = 0) -> Self:
        """In-place version of tril."""
    def triu(self, diagonal: _int = 0) -> _Tensor:
        """The upper triangle, zeros elsewhere."""
    def triu_(self, diagonal: _int = 0) -> Self:
        """In-place version of triu."""
    def true_divide(self, other: _Tensor | _Scalar) -> _Tensor:
        """x / y, never rounded."""
    def true_divide_(self, other: _Tensor | _Scalar) -> Self:
        """In-place version of true_divide."""
    def trunc(self) -> _Tensor:
        """Rounded towards zero."""
    def trunc_(self) -> Self:
        """In-place version of trunc."""
    def type_as(self, other: _Tensor | _Scalar) -> _Tensor:
        """This tensor with `other`'s dtype and device."""
    def unbind(self, dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
        """The parts along `dim`, without that dimension; views."""
    def unflatten(self, dim: _int | Sequence[_int], sizes: Sequence[_int]) -> _Tensor:
        """One dimension as several: `unflatten(x, 1, (3, -1))`."""
    def unfold(self, dimension: _int, size: _int, step: _int) -> _Tensor:
        """All windows of `size` along a dimension, each `step` further on, as a last dimension; a view."""
    @overload
    def unique(self, sorted: _bool=True, return_inverse: Literal[False]=False, return_counts: Literal[False]=False, dim: _int | None=None) -> _Tensor: ...
    @overload
    def unique(self, sorted: _bool=True, return_inverse: _bool=False, return_counts: _bool=False, dim: _int | None=None) -> Any:
        """The distinct values (or slices along `dim`) in order, with where each element went and how often each is."""
    @overload
    def unique_consecutive(self, return_inverse: Literal[False]=False, return_counts: Literal[False]=False, dim: _int | None=None) -> _Tensor: ...
    @overload
    def unique_consecutive(self, return_inverse: _bool=False, return_counts: _bool=False, dim: _int | None=None) -> Any:
        """`input` without elements (or slices along `dim`) equal to the one before."""
    def unsafe_chunk(self, chunks: _int, dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
        """`chunk` whose parts are not tied to the tensor as views."""
    def unsafe_split(self, split_size: Any, dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
        """`split` whose parts are not tied to the tensor as views."""
    def unsafe_split_with_sizes(self, split_sizes: Sequence[_int], dim: _int | Sequence[_int] = 0) -> tuple[_Tensor, ...]:
        """`split_with_sizes` whose parts are not tied to the tensor as views."""
    def unsqueeze(self, dim: _int | Sequence[_int]) -> _Tensor:
        """With a dimension of size 1 put in at `dim`."""
    def unsqueeze_(self, dim: _int | Sequence[_int]) -> Self:
        """In-place version of unsqueeze."""
    def untyped_storage(self) -> _UntypedStorage:
        """The memory this tensor shares with its views."""
    def values(self, *_: Any) -> _Tensor:
        """The values of a sparse tensor."""
    def var(self, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: Any = None) -> _Tensor:
        """The variance: squares of differences from the mean, summed and divided by count - `correction` (1)."""
    def vdot(self, other: _Tensor | _Scalar) -> _Tensor:
        """The dot product with the first vector conjugated."""
    def view_as(self, other: _Tensor | _Scalar) -> _Tensor:
        """`self.view(other.size())`."""
    def view_as_complex(self) -> _Tensor:
        """A real tensor whose last dimension is 2 as a complex one, sharing memory."""
    def view_as_real(self) -> _Tensor:
        """A complex tensor as a real one with a last dimension of 2, sharing memory."""
    @property
    def volatile(self) -> Any: 
        """False: `no_grad` took its place."""
    def vsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[_Tensor, ...]:
        """`tensor_split` along dimension 0."""
    def xlogy(self, other: _Number | _Tensor) -> _Tensor:
        """`input * log(other)`, 0 where input is 0."""
    def xlogy_(self, other: _Number | _Tensor) -> Self:
        """In-place version of xlogy."""
    def xpu(self, device: _Device = None, non_blocking: _bool = False, **kwargs: Any) -> _Tensor:
        """A copy on a device of type xpu, which is not here."""
    def zero_(self) -> _Tensor:
        """Write zeros everywhere."""

_Tensor = Tensor
