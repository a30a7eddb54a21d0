"""Tensors among Python's and NumPy's protocols: lists, arrays, iteration, formatting, copying, pickling, DLPack."""

from __future__ import annotations

import copy

import numpy as np

from .. import dtypes
from ..autograd.mode import state
from ..autograd.op import differentiable
from ..autograd.overriding import unasked
from ..autograd.tape import AccumulateGrad
from ..config import epoch
from ..device import device as _device
from ..engine import WIDER, meta, namespace_of
from ..storage import lend, memory_of
from ..tensor import Mirror, Tensor, wrap
from .creation import on_device
from .public import public

_ndarray = np.ndarray
_HAS_GRAD = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."

# -- Python ----------------------------------------------------------------------------------------------------------


@public(function=False)
def tolist(self):
    """The values as nested lists of Python numbers."""
    array = _host(self)
    return (array if array.dtype.kind in "biufc" else array.astype(WIDER.get(array.dtype, np.float32))).tolist()


def _iterate(self):
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def _contains(self, element):
    if not isinstance(element, (Tensor, int, float, complex)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    return bool((element == self).any().item())


def _reversed(self):
    return self.flip(0) if self.ndim else self


def _format(self, spec):
    if self.ndim == 0 and type(self) is Tensor:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


Tensor.__iter__, Tensor.__contains__, Tensor.__reversed__, Tensor.__format__ = _iterate, _contains, _reversed, _format


# -- NumPy -----------------------------------------------------------------------------------------------------------


@public(function=False)
def numpy(self, *, force=False):
    """The values as a NumPy array that shares this tensor's memory (a copy from other devices, with ``force=True``)."""
    plain = self._array.__class__ is _ndarray and self._node is None and self._view is None
    if not plain or self._array.dtype.isbuiltin != 1:  # one of NumPy's own
        _check_numpy(self, force)
    array = _host(self)
    return lend(array) if array is self._array else array


def _check_numpy(self, force) -> None:
    if self.requires_grad and state.grad and not force:
        raise RuntimeError(_HAS_GRAD)
    if self.dtype in (dtypes.bfloat16, dtypes.complex32) or (self.is_floating_point() and self.dtype.itemsize == 1):
        raise TypeError(f"Got unsupported ScalarType {self.dtype.word}")
    if self._view.__class__ is Mirror and not force:
        word = "conj" if self.is_conj() else "neg"
        raise RuntimeError(
            f"Can't call numpy() on Tensor that has {'conjugate' if word == 'conj' else 'negative'} bit set. Use "
            f"tensor.resolve_{word}().numpy() instead."
        )
    if self._array.__class__ is not _ndarray and not force:
        if namespace_of(self._array).is_traced(self._array) and not self.is_meta:
            _host(self)  # which says why that cannot be
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )


def _host(t) -> np.ndarray:
    if epoch.readers:
        epoch.tell(t)
    t._come_home()
    return t._array if t._array.__class__ is _ndarray else namespace_of(t._array).to_numpy(t._array)


def _as_ndarray(self, dtype=None, copy=None):
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("a tensor cannot become an array of another dtype without a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def _wrap_ndarray(self, array, context=None, return_scalar=False):
    """What NumPy's functions make of tensors becomes a tensor again."""
    return wrap(np.asarray(array))


Tensor.__array__, Tensor.__array_wrap__ = _as_ndarray, _wrap_ndarray


# -- DLPack ----------------------------------------------------------------------------------------------------------


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self._view.__class__ is Mirror and self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if epoch.readers:
        epoch.tell(self)
    self._come_home()
    if self._array.__class__ is _ndarray:
        lend(self._array)
    else:
        return self._array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
    return self._array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)


def _dlpack_device(self):
    return self._array.__dlpack_device__()


Tensor.__dlpack__, Tensor.__dlpack_device__ = _dlpack, _dlpack_device


# -- copying and pickling --------------------------------------------------------------------------------------------


def _deepcopy(self, memo):
    """A copy in which tensors that shared memory share it again."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    made = object.__new__(type(self))
    memo[id(self)] = made
    array = self._array if self._array.__class__ is not _ndarray else _copied_memory(self, memo)
    _fill_slots(made, array, self.requires_grad)
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    made.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return made


def _copied_memory(t, memo) -> np.ndarray:
    owner, array = t._owner(), t._array
    if owner.nbytes == 0 or t._view.__class__ is Mirror:
        t._sync()
        return t._array.copy()
    key = ("memory", id(owner))
    if key not in memo:
        memo[key] = memory_of(owner).copy(), owner  # the owner too: while it lives, its id is its own
    offset = t.storage_offset() * array.itemsize
    return np.ndarray(array.shape, array.dtype, memo[key][0], offset, array.strides)


def _shallow_copy(self):
    made = object.__new__(type(self))
    self._sync()
    _fill_slots(made, self._array, False)
    made._node, made._storage, made._view = self._node, self._storage, self._view
    if type(self._node) is AccumulateGrad:
        made._node = AccumulateGrad(made)
    made.__dict__.update(self.__dict__)
    return made


def _copy(self):
    """The same memory under a leaf of its own."""
    made = _shallow_copy(self)
    if self._view.__class__ is Mirror:
        self._share_values(made)
    else:
        made._view = None
    made._node = AccumulateGrad(made) if self.requires_grad else None
    return made


def _fill_slots(made, array, requires_grad) -> None:
    made._array, made._node, made._grad, made._storage, made._view = array, None, None, None, None
    if requires_grad:
        made._node = AccumulateGrad(made)


def _reduce(self, protocol):
    """Pickle the owning array and where this tensor lies in it: tensors that share memory share it when loaded."""
    self._sync()
    extra = (self.requires_grad, self.__dict__ or None)
    if self.is_meta:
        return _from_meta, (type(self), tuple(self.shape), self._array.dtype, *extra)
    if self._array.__class__ is not _ndarray:
        return _from_device, (type(self), _host(self), str(self.device), *extra)
    array, owner = self._array, self._owner()
    if owner.base is not None or not owner.flags.forc or self._view.__class__ is Mirror:
        owner = array = np.array(array)
    offset = 0 if array is owner else self.storage_offset() * array.itemsize
    return _rebuild, (type(self), owner, offset, array.shape, array.strides, array.dtype, *extra)


def _rebuild(cls, owner, offset, shape, strides, dtype, requires_grad, attributes):
    whole = offset == 0 and (owner.shape, owner.strides, owner.dtype) == (shape, strides, dtype)
    if whole or owner.size == 0:
        array = owner.reshape(shape)
    else:
        array = np.ndarray(shape, dtype, memory_of(owner), offset, strides)
    return _restored(cls, array, requires_grad, attributes)


def _from_meta(cls, shape, dtype, requires_grad, attributes):
    return _restored(cls, meta().Meta(shape, dtype), requires_grad, attributes)


def _from_device(cls, array, device, requires_grad, attributes):
    from ..device import device as Device

    return _restored(cls, on_device(array, Device(device)), requires_grad, attributes)


def _restored(cls, array, requires_grad, attributes):
    made = object.__new__(cls)
    _fill_slots(made, array, requires_grad)
    made.__dict__.update(attributes or {})
    return made


Tensor.__deepcopy__, Tensor.__copy__, Tensor.__reduce_ex__ = _deepcopy, _copy, _reduce


# -- subclasses ------------------------------------------------------------------------------------------------------


@public(function=False)
def as_subclass(self, cls):
    """The same tensor seen as a subclass of Tensor."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    made = unasked(differentiable.alias, self)
    made.__class__ = cls
    return made


def _make_subclass(cls, data, require_grad=False):
    made = object.__new__(cls)
    data._sync()
    _fill_slots(made, data._array, require_grad)
    made._storage = data._storage
    return made


def _make_wrapper_subclass(
    cls,
    size,
    strides=None,
    storage_offset=None,
    memory_format=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    dispatch_sizes_strides_policy=None,
    dispatch_device=False,
    dispatch_layout=False,
):
    """A tensor without values of its own: its class answers for every operator, by ``__torch_dispatch__``."""
    if cls.__torch_dispatch__ is Tensor.__torch_dispatch__:
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    made = object.__new__(cls)
    kind, steps = dtype or dtypes.get_default_dtype(), None if strides is None else tuple(strides)
    from ..engine.meta.shell import Shell  # an engine of its own: most programs never ask for it

    _fill_slots(made, Shell(tuple(size), kind.numpy, _device(device or "cpu"), steps), requires_grad)
    return made


Tensor._make_subclass = staticmethod(_make_subclass)
Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)
