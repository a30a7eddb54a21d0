"""The Tensor: an array, its place in the graph, and what it shares with its views.

Here is what every tensor is; what it can do (``Tensor.sum`` …) is attached by ``ops/``, one family per file.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtypes, storage
from .config import epoch
from .device import cpu, device
from .engine import namespace_of
from .engine.open_size import is_open
from .errors import warn_once, warn_user
from .layout import contiguous_format, dense_strides, is_dense, memory_order, stride_order, strided

__all__ = ["Tensor"]

_new = object.__new__
_plain_tuple = tuple.__new__  # a Size without its check
_ndarray = np.ndarray


class Storage:
    """What all views of one piece of memory share: how often it was written in place.

    A tensor gets one when it is first viewed or written (``Tensor._counted``); most never do.
    """

    __slots__ = ("version", "inference", "views")

    def __init__(self, version: int = 0, inference: bool = False):
        self.version, self.inference = version, inference
        self.views = None  # a list to collect new views in, while an in-place op runs; see autograd/views.py


class View:
    """What a tensor is a view of: ``path`` (steps of (op, static arguments, output index)) leads there from ``base``.

    ``seen`` is the storage's version that the view last looked at. NumPy views alias memory and only refresh their
    place in the graph; XLA arrays cannot be written, so there a stale view reads its part of the base again.
    """

    __slots__ = ("base", "_way", "seen", "recorded", "node")

    def __init__(self, base, steps, seen, recorded, before=None):
        self.base, self._way, self.seen = base, (before, steps), seen  # the path: that of ``before``, then these
        # True: made with gradients on, part of the graph; "no_grad" or "inference": made without;
        # None: no view as PyTorch has them, it only shares values.
        self.recorded = recorded
        self.node = base._node

    @property
    def path(self) -> tuple:
        """Put together when somebody asks: views of views of views would be long lists of what the ones before have."""
        before, steps = self._way
        if before is None:
            return steps
        parts = [steps]
        while before is not None:
            before, steps = before._way
            parts.append(steps)
        path = tuple([step for steps in reversed(parts) for step in steps])
        self._way = None, path
        return path

    def again(self, seen, recorded) -> View:
        """The same view for another tensor."""
        return type(self)(self.base, self.path, seen, recorded)

    @property
    def owner(self) -> Tensor:
        """The base; or the tensor that left it behind when its own shape was changed in place, which users know."""
        heir = None if self.base is None else self.base.__dict__.get("_heir")
        owner = None if heir is None else heir()
        return self.base if owner is None else owner


class Mirror(View):
    """A view that shows the conjugates or negatives of what lies in memory, of a tensor that ``is_conj`` or ``is_neg``.

    Its tensor's array is computed from the memory whenever somebody looks: the view has never seen the last version.
    """

    __slots__ = ("looked",)

    @property
    def seen(self):
        return None

    @seen.setter
    def seen(self, version) -> None:
        self.looked = version

    def memory(self):
        """The part of the base's array that it shows."""
        from .autograd import views

        return views.memory(self)


class Tensor:
    """A multi-dimensional array of one dtype that can remember how it was computed."""

    __slots__ = ("_array", "_node", "_grad", "_storage", "_view", "_frozen", "__dict__", "__weakref__")
    __array_priority__ = 1000
    __hash__ = object.__hash__

    if TYPE_CHECKING:  # what ``ops/`` attaches, as type checkers should see it; other methods are Any
        _array: Any
        _node: Any
        _grad: Tensor | None
        _storage: Any
        _view: Any
        _frozen: Any

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __contains__(self, element: Any) -> bool: ...
        def _unary(self) -> Tensor: ...
        def _binary(self, other: Any) -> Tensor: ...

        __neg__ = __pos__ = __abs__ = __invert__ = _unary
        __add__ = __radd__ = __iadd__ = __sub__ = __rsub__ = __isub__ = __mul__ = __rmul__ = __imul__ = _binary
        __truediv__ = __rtruediv__ = __itruediv__ = __floordiv__ = __rfloordiv__ = __ifloordiv__ = _binary
        __mod__ = __rmod__ = __imod__ = __pow__ = __rpow__ = __ipow__ = __matmul__ = __rmatmul__ = _binary
        __and__ = __rand__ = __iand__ = __or__ = __ror__ = __ior__ = __xor__ = __rxor__ = __ixor__ = _binary
        __lshift__ = __rlshift__ = __ilshift__ = __rshift__ = __rrshift__ = __irshift__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = _binary
        __eq__ = __ne__ = _binary  # type: ignore[assignment]  # element by element, where object's give a bool

    def __new__(cls, *args, **kwargs):
        from .ops.creation import legacy_tensor

        made = legacy_tensor(*args, **kwargs)
        t = _new(cls)
        t._array, t._node, t._grad, t._storage, t._view = made._array, None, None, made._storage, None
        return t

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        from .autograd import overriding

        overriding.enroll(cls)

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def shape(self):
        """The size of each dimension."""
        return _plain_tuple(Size, self._array.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.of_numpy(self._array.dtype)

    @property
    def device(self) -> device:
        """Where the elements are."""
        return cpu if self._array.__class__ is _ndarray else namespace_of(self._array).device_of(self._array)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    ndimension = dim

    def size(self, dim=None):
        """The shape, or one of its sizes."""
        if dim is None:
            return _plain_tuple(Size, self._array.shape)
        if not hasattr(dim, "__index__"):
            raise TypeError(f"size(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
        return self._array.shape[_checked_dim(dim, self._array.ndim)]

    def numel(self) -> int:
        """The number of elements."""
        return self._array.size

    nelement = numel

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._array.dtype.itemsize

    def element_size(self) -> int:
        """The bytes of one element."""
        return self._array.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self._array.size * self._array.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Are the elements real and not whole?"""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Are the elements complex?"""
        return self._array.dtype.kind in "cW"

    def is_signed(self) -> bool:
        """Can the elements be negative?"""
        return self.dtype.is_signed

    @property
    def is_cpu(self) -> bool:
        """Is it on the CPU?"""
        return self.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        """Is it on an NVIDIA GPU?"""
        return self.device.type == "cuda"

    @property
    def is_xla(self) -> bool:
        """Is it on a device of XLA?"""
        return self.device.type == "xla"

    @property
    def is_meta(self) -> bool:
        """Has it a shape and no values?"""
        return self.device.type == "meta"

    is_sparse = is_sparse_csr = is_quantized = is_mkldnn = is_nested = is_mps = is_xpu = False

    def get_device(self) -> int:
        """The device's index; -1 on the CPU."""
        place = self.device
        return -1 if place.type in ("cpu", "meta") else place.index or 0

    def is_inference(self) -> bool:
        """Was it made in inference mode?"""
        return self._storage is not None and self._storage.inference

    # -- how it lies in memory ---------------------------------------------------------------------------------------

    layout = strided

    def stride(self, dim=None):
        """Steps between neighbours, in elements: of all dimensions, or of one."""
        array = self._strided_array()
        if array.__class__ is not _ndarray:
            strides = dense_strides(array.shape, range(array.ndim))
        elif array.size == 0:
            strides = self._place().strides
        else:
            strides = tuple(s // array.itemsize for s in array.strides)
        return strides if dim is None else strides[_checked_dim(dim, array.ndim)]

    def is_contiguous(self, memory_format=contiguous_format) -> bool:
        """Do the elements lie in memory in order, without gaps?"""
        array = self._strided_array()
        if memory_format is contiguous_format:
            return array.__class__ is not _ndarray or array.flags.c_contiguous
        try:
            order = memory_order(memory_format, array.ndim)
        except RuntimeError:
            return False
        return is_dense(array.shape, self.stride(), order)

    def _strided_array(self):
        """An array with this tensor's strides: for a view on XLA, those it would have if memory were shared."""
        if self._view.__class__ is Mirror:
            return self._view.memory()
        if self._array.__class__ is _ndarray:
            return self._array
        if self._view is None:
            laid_out = getattr(self._array, "laid_out", None)
            return self._array if laid_out is None else laid_out()
        from .autograd import views

        return views.layout(self)

    def _place(self):
        from .autograd import views

        return views.place(self)

    def dim_order(self) -> tuple[int, ...]:
        """The dimensions from outermost to innermost in memory."""
        strides, shape = self.stride(), self._array.shape
        if is_dense(shape, strides, range(len(shape))):
            return tuple(range(len(shape)))
        return stride_order(shape, strides)

    def storage_offset(self) -> int:
        """Where in its storage the tensor begins, in elements."""
        array = self._strided_array()
        if array.__class__ is not _ndarray:
            return 0
        if array.size == 0:
            return self._place().offset
        whole = self._owner() if array is self._array else storage.owner(array)
        return (storage.pointer(array) - storage.pointer(whole)) // array.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        if self._array.__class__ is _ndarray:
            return storage.pointer(self._strided_array()) if self._array.size else 0
        return self._array.unsafe_buffer_pointer()

    def untyped_storage(self) -> storage.UntypedStorage:
        """The memory this tensor shares with its views."""
        if self.is_meta:
            nothing = np.broadcast_to(np.zeros(1, np.uint8), (self.nbytes,))  # of that size, and no bytes
            return storage.UntypedStorage(nothing, self.device)
        if epoch.readers:
            epoch.tell(self)
        array = storage.lend(self._owner()) if self._array.__class__ is _ndarray else np.asarray(self._array)
        return storage.UntypedStorage(storage.memory_of(array), self.device)

    def storage(self):
        """Deprecated: the memory as elements; use ``untyped_storage()``."""
        storage.warn_typed()
        return self._typed_storage()

    def _typed_storage(self):
        return storage.TypedStorage(self.untyped_storage(), self.dtype)

    def _owner(self) -> np.ndarray:
        view = self._view  # read once: another thread may take it away
        return storage.owner(self._array if view is None or view.base is None else view.base._array)

    # -- its place in the graph --------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Are gradients of it wanted?"""
        self._sync()
        if self._node is not None and not self._node.lost:
            return True
        # A view requires grad with its base, even if it was made before that did, or without gradients.
        view = self._view
        if view is None or view.recorded is None or view.base is None:
            return False
        if self._array.dtype.kind in "biu" and view.base._array.dtype.kind not in "biu":
            return False
        return view.base._node is not None or view.owner._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if value and not self.is_leaf:
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        if value and self._array.dtype.kind in "biu":
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Start (or stop) collecting gradients for this leaf, in place."""
        from .autograd.mode import state
        from .autograd.tape import AccumulateGrad, Nowhere

        if not self.is_leaf:
            if requires_grad and self._array.dtype.kind not in "biu":
                return self
            if requires_grad:
                raise RuntimeError("only Tensors of floating point dtype can require gradients")
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        epoch.value += 1
        if not requires_grad:
            if self._node is not None and self._node.hooks is not None:
                self._frozen = self._node  # hooks stay, for when gradients are wanted again
            self._node = None
        elif self._node is None or type(self._node) is Nowhere:
            if self._array.dtype.kind in "biu":
                raise RuntimeError("only Tensors of floating point dtype can require gradients")
            if self._storage is not None and self._storage.inference and not state.inference:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
                )
            self._node = getattr(self, "_frozen", None) or AccumulateGrad(self)
        return self

    @property
    def is_leaf(self) -> bool:
        """Was it made by the user, not by an operator that is recorded?"""
        self._sync_graph()
        return self._node is None or self._node.is_leaf

    @property
    def grad_fn(self):
        """The node of the graph that made it; None for a leaf."""
        from .autograd.tape import Output

        view = self._view
        if view is not None and view.seen != self._storage.version:
            self._refresh("always")
        if self.is_leaf:
            return None
        return (self._node.parent if type(self._node) is Output else self._node).shown()

    @property
    def output_nr(self) -> int:
        """Which output of its node it is."""
        return getattr(self._node, "index", 0)

    @property
    def grad(self) -> Tensor | None:
        """The gradient that ``backward`` added up, or None."""
        grad = self._grad
        if grad is None:
            if not self.is_leaf and not self.retains_grad:
                _warn_non_leaf_grad()
        else:
            view = grad._view  # read once: a compiled step in another thread may take it away
            if view is not None and view.base is None:
                view.shown()
        return grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            _check_assigned_grad(self, value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def grad_dtype(self):
        """The dtype of ``grad``: this tensor's own, unless another was set; None takes any."""
        return self.__dict__.get("_grad_dtype", self.dtype)

    @grad_dtype.setter
    def grad_dtype(self, value) -> None:
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be set on leaf tensors.")
        self._grad_dtype = value
        if self._node is not None:
            self._node._hooks()  # a node with hooks is not given gradients the short way, which does not look here

    def register_hook(self, hook):
        """``hook(grad) -> None | grad``, each time this tensor's gradient is computed."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return self._node._hooks().add("tensor", hook)

    @property
    def _backward_hooks(self):
        """The hooks that ``register_hook`` added, by handle; None before the first."""
        return None if self._node is None or self._node.hooks is None else self._node.hooks.tensor or None

    def register_post_accumulate_grad_hook(self, hook):
        """``hook(tensor)``, each time a gradient was added into this leaf's ``.grad``."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return self._node._hooks().add("after_accumulate", hook)

    def retain_grad(self) -> None:
        """Keep this tensor's gradient in ``.grad`` although it is not a leaf."""
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if not self.is_leaf:
            self._node._hooks().retain = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        """Does it keep its gradient though it is no leaf?"""
        if self.is_leaf or self._node.hooks is None:
            return False
        retain = self._node.hooks.retain
        return retain is not None and retain() is self

    def detach(self) -> Tensor:
        """The same memory, outside the graph."""
        if self._view is not None:
            self._sync()
        array, node, storage = self._array, self._node, self._storage or self._counted()
        t = _new(Tensor)  # spelled out: state_dict() does this for every tensor of a model
        t._array, t._node, t._grad, t._storage, t._view = array, None, None, storage, None
        if (
            array.__class__ is not _ndarray or node is None or node.is_leaf or self._view.__class__ is Mirror
        ):  # compiled code may move a leaf's values away
            self._share_values(t)
        return t

    def detach_(self) -> Tensor:
        """Leave the graph, in place."""
        if self._is_view():
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        self._node = None
        if self._view is not None and self._view.owner is self:
            self._view.base._node = None
        return self

    @property
    def data(self) -> Tensor:
        """The same memory, outside the graph; assigning takes over another tensor's."""
        self._come_home()
        t = wrap(self._array)
        if self._array.__class__ is not _ndarray or self._view.__class__ is Mirror:
            t._storage = self._counted()
            self._share_values(t)
        elif self._storage is not None and self._storage.inference:
            t._storage = self._storage
        return t

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        value._sync()
        if self._node is not None and value._array.dtype.kind in "biu":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        view = self._view
        if view is not None and view.base is None:
            view.leave(self)
        self._array, self._view, self._storage = value._array, None, None
        epoch.value += 1

    def _share_values(self, t: Tensor) -> None:
        """Make ``t`` follow this tensor's changes where memory does not: XLA arrays, compiled programs."""
        view = self._view
        if view is None or view.base is None:
            t._view = View(self, (), self._storage.version, None)
        else:
            t._view = view.again(self._storage.version, None)

    def _come_home(self) -> None:
        """Have the values in this tensor's own memory for good: somebody is about to be handed that memory."""
        self._sync()
        view = self._view
        if view is not None:
            view.leave(self) if view.base is None else view.base._come_home()

    def _counted(self) -> Storage:
        """The storage that counts writes to this tensor's memory; made now if there was none."""
        storage = self._storage
        if storage is None:
            storage = self._storage = Storage()
            if self._node is not None:
                self._node.watch(storage)
        return storage

    @property
    def _version(self) -> int:
        if self.is_inference():
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self._storage is None else self._storage.version

    @property
    def _base(self) -> Tensor | None:
        view = self._view
        if view is None or view.recorded is None or not view.path:
            return None
        return None if view.owner is self else view.owner

    def _is_view(self) -> bool:
        return self._base is not None

    def _sync(self) -> None:
        view = self._view
        if view is not None and view.seen != self._storage.version:
            self._refresh(for_graph=False)

    def _sync_graph(self) -> None:
        """Catch up with in-place changes, or raise if the place in the graph cannot be known any more."""
        self._sync()
        view = self._view
        if view is not None and view.base is not None and view.seen != self._storage.version:
            self._refresh("always")

    def _refresh(self, for_graph: bool | str = True) -> None:
        """Catch up with in-place changes made to the memory this tensor is a view of; ``for_graph``, or raise."""
        from .autograd import views

        views.refresh(self, for_graph)

    # -- out to Python and NumPy -------------------------------------------------------------------------------------

    def item(self):
        """The one element, as a Python number."""
        if epoch.readers:
            epoch.tell(self)
        self._sync()
        if self._array.size != 1:
            raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
        if epoch.path is not None and self._array.dtype.kind in "biu":
            return epoch.path.answer(self, self._element)
        return self._element()

    def _element(self):
        array = self._array
        if array.__class__ is not _ndarray and self.is_meta:
            array.item()  # which says that there is none
        value = (array if array.__class__ is _ndarray else namespace_of(array).to_numpy(array)).item()
        return float(value) if self.dtype is dtypes.bfloat16 else value

    def __bool__(self) -> bool:
        if self._array.size != 1:
            what = "no values" if self._array.size == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        if self._array.__class__ is not _ndarray and hasattr(self._array, "level"):  # one for each example of a vmap
            namespace_of(self._array).decide(self._array)
        return bool(self.item())

    def __float__(self) -> float:
        return float(_real(self._only(), "double"))

    def __int__(self) -> int:
        return int(_real(self._only(), "int64_t"))

    def __complex__(self) -> complex:
        return complex(self._only())

    def _only(self):
        """``item()`` for Python's conversions, which have an error of their own and warn about lost gradients."""
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if self.requires_grad:
            _warn_to_scalar()
        return self.item()

    def __index__(self) -> int:
        if self._array.dtype.kind not in "biu" or self._array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self._array.shape[0]

    def __repr__(self, *, tensor_contents=None) -> str:
        from ._printing import tensor_text

        if epoch.readers:
            epoch.tell(self)
        return tensor_text(self, tensor_contents)

    def _repr_html_(self) -> str:
        from .inspect.graph import tensor_html

        return tensor_html(self)


class Size(tuple):
    """A shape: a tuple that prints as ``torch.Size([2, 3])``."""

    __slots__ = ()

    def __new__(cls, values=()):
        values = tuple(values)
        for i, v in enumerate(values):
            if not hasattr(v, "__index__") and not is_open(v):
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(v).__name__}')")
        return tuple.__new__(cls, values)

    def numel(self) -> int:
        n = 1
        for d in self:
            n *= d
        return n

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, index):
        part = tuple.__getitem__(self, index)
        return _plain_tuple(Size, part) if isinstance(index, slice) else part

    def __add__(self, other):
        whole = tuple.__add__(self, tuple(other))
        for size in other:
            if size.__class__ is not int:
                return Size(whole)
        return _plain_tuple(Size, whole)

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, times):
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self):
        return Size, (tuple(self),)


def wrap(array) -> Tensor:
    """A Tensor around an engine's array; shares it, records nothing."""
    t = _new(Tensor)
    t._array = np.asarray(array) if array.__class__ is not _ndarray and isinstance(array, np.generic) else array
    t._node = t._grad = t._storage = t._view = None
    return t


def _checked_dim(dim, ndim: int) -> int:
    n = ndim or 1
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return int(dim)


def _real(value, c_type: str):
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {c_type} without overflow")
        return value.real
    return value


def _warn_to_scalar() -> None:
    warn_once(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
        "Consider using tensor.detach() first.",
    )


def _warn_non_leaf_grad() -> None:
    warn_user(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
        "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
        "you access the leaf Tensor instead."
    )


def _check_assigned_grad(t: Tensor, grad: Tensor) -> None:
    if not isinstance(grad, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
    if grad is t:
        raise RuntimeError("can't assign Variable as its own grad")
    if grad.dtype is not t.grad_dtype and t.grad_dtype is not None:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{grad.dtype.name}' to a tensor with grad_dtype "
            f"'{t.grad_dtype.name}'. The grad_dtype attribute can be changed to allow gradients with a different dtype."
        )
    if grad.device != t.device:
        raise RuntimeError(
            f"attempting to assign a gradient with device '{grad.device}' to a tensor with device '{t.device}'. "
            "Please ensure that the gradient and the tensor are on the same device"
        )
    if grad.shape != t.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad.shape)}' to a tensor of size '{list(t.shape)}'. "
            "Please ensure that the gradient and the tensor are the same size"
        )
