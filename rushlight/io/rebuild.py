"""What the names in PyTorch's files stand for here: storages, and the functions that make tensors of them."""

from __future__ import annotations

import codecs
import functools
from collections import Counter, OrderedDict

import numpy as np

from .. import dtypes
from ..device import cpu, device
from ..device import device as Device
from ..layout import per_channel_affine, per_tensor_affine, sparse_coo, sparse_csc, sparse_csr, strided
from ..nn.parameter import Parameter
from ..ops.creation import empty, on_device
from ..storage import TypedStorage, UntypedStorage, check_layout, extent
from ..tensor import Size, Tensor, wrap
from .unpickler import UnpicklingError, brief, checked_key

__all__ = ["LoadedStorage", "StorageType", "rebuild_functions", "safe_globals"]


class StorageType:
    """``torch.FloatStorage`` and the like: in a file, the dtype of a storage."""

    def __init__(self, dtype: dtypes.dtype | None):
        self.dtype = dtype  # None: untyped, bytes

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize if self.dtype else 1


class LoadedStorage(UntypedStorage):
    """A storage of the file being loaded. Its bytes may still be on their way: ``settle`` waits for them."""

    def __init__(self, memory: np.ndarray, place: device, settle):
        super().__init__(memory, place)
        self.settle = settle

    def moved(self, place: device) -> LoadedStorage:
        return LoadedStorage(self._memory, place, self.settle)

    def to(self, place=None, *, device=None, non_blocking=False) -> LoadedStorage:
        return self.moved(Device(place if device is None else device))

    def cpu(self) -> LoadedStorage:
        return self.moved(cpu)

    def cuda(self, index=None) -> LoadedStorage:
        return self.moved(device("cuda", index or 0))


# -- tensors ---------------------------------------------------------------------------------------------------------


def rebuild_tensor(storage, offset, size, stride):
    """A tensor that lies in ``storage`` at ``offset``, counted in elements."""
    return rebuild_tensor_v2(storage, offset, size, stride, False, None)


def rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks, metadata=None):
    if not isinstance(storage, TypedStorage):
        raise UnpicklingError(f"the file is corrupted: a tensor in a {type(storage).__name__} instead of a storage")
    return _placed(storage.untyped(), storage.dtype, offset, size, stride, requires_grad, metadata)


def rebuild_tensor_v3(storage, offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """For dtypes that have no typed storage: the dtype is said apart."""
    if not isinstance(storage, UntypedStorage) or not isinstance(dtype, dtypes.dtype):
        raise UnpicklingError("the file is corrupted: a tensor without storage or dtype")
    return _placed(storage, dtype, offset, size, stride, requires_grad, metadata)


def rebuild_meta_tensor(dtype, size, stride, requires_grad):
    """A tensor on the meta device: there is nothing of it in the file but this."""
    numbers = [*_listed(size), *_listed(stride)]
    if not isinstance(dtype, dtypes.dtype) or not all(type(n) is int for n in numbers):
        raise UnpicklingError("the file is corrupted: a tensor without dtype or sizes")
    check_layout(size, stride, 0)
    return _without_values(dtype, 0, tuple(size), tuple(stride), requires_grad)


def rebuild_sparse_tensor(form, parts):
    """A sparse tensor. Its indices are still on their way: their values are looked at when they are used."""
    from ..sparse.tensor import SparseTensor

    if form not in _SPARSE or not isinstance(parts, (tuple, list)) or len(parts) not in (3, 4):
        raise UnpicklingError("the file is corrupted: a sparse tensor without its parts")
    if form is sparse_coo:
        index, values, size, coalesced = (*parts, False)[:4]
        fits = _tensor(index).ndim == 2 and index.shape[1:] == _tensor(values).shape[:1]
        dimensions, indices = index.shape[:1].numel() + values.ndim - 1, (index,)
    else:
        starts, others, values, size = parts
        fits = _tensor(starts).ndim == 1 and _tensor(others).shape == _tensor(values).shape[:1]
        dimensions, indices, coalesced = 2, (starts, others), True
    if not fits or len(_whole_numbers(size)) != dimensions or any(i.dtype.name not in _INDEX for i in indices):
        raise UnpicklingError("the file is corrupted: the parts of a sparse tensor do not go together")
    return SparseTensor(form, indices, values, size, coalesced is True)


_SPARSE, _INDEX = (sparse_coo, sparse_csr, sparse_csc), ("int64", "int32")


def rebuild_quantized(storage, offset, size, stride, quantizer, requires_grad, backward_hooks):
    """A quantized tensor, of a storage whose dtype says what its codes are."""
    if not isinstance(storage, TypedStorage) or storage.dtype not in dtypes.QUANTIZED:
        raise UnpicklingError("the file is corrupted: a quantized tensor in a storage of plain numbers")
    stored = dtypes.of_numpy(storage.dtype.numpy)
    codes = _placed(storage.untyped(), stored, offset, size, stride, False, None)
    return quantized_from_codes(codes, storage.dtype, quantizer)


def quantized_from_codes(codes, kind, quantizer):
    """A quantized tensor from a plain one of its codes."""
    from ..quantized import QuantizedTensor

    match quantizer:
        case [scheme, float() as scale, int() as zero] if scheme is per_tensor_affine:
            return QuantizedTensor(codes, kind, scale, zero)
        case [scheme, Tensor() as scale, Tensor() as zero, int() as axis] if scheme is per_channel_affine:
            if 0 <= axis < codes.ndim and scale.shape == zero.shape == codes.shape[axis : axis + 1]:
                return QuantizedTensor(codes, kind, scale, zero, axis)
    raise UnpicklingError("the file is corrupted: a quantized tensor without its scale and zero point")


def rebuild_parameter(data, requires_grad, backward_hooks):
    return Parameter(_tensor(data), bool(requires_grad))


def rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    made = rebuild_parameter(data, requires_grad, backward_hooks)
    set_attributes(made, state)
    return made


def rebuild_from_type(function, kind, args, state):
    """A tensor with attributes, or of a subclass."""
    if function not in rebuild_functions().values() or not isinstance(kind, type) or not issubclass(kind, Tensor):
        raise UnpicklingError("the file is corrupted or malicious: a tensor made by no function that makes tensors")
    made = function(*args)
    if not isinstance(made, kind):
        made = made.as_subclass(kind)
    if isinstance(state, tuple) and len(state) == 2:  # attributes in __dict__, and in __slots__
        state = {**(state[0] or {}), **(state[1] or {})}
    set_attributes(made, state)
    return made


def rebuild_from_cpu(data, dtype, place, requires_grad):
    """A tensor of a device whose memory PyTorch does not save as such (a TPU's): it stays on the CPU."""
    if _tensor(data).dtype is not dtype:
        raise UnpicklingError("the file is corrupted: a tensor of another dtype than it says")
    return data.requires_grad_(bool(requires_grad))


def set_attributes(made, state) -> None:
    if not isinstance(state, dict) or not all(type(key) is str for key in state):
        raise UnpicklingError("the file is corrupted: attributes that are no dict of names")
    made.__dict__.update(state)


def _tensor(value) -> Tensor:
    if not isinstance(value, Tensor):
        raise UnpicklingError(f"the file is corrupted: a {type(value).__name__} in place of a tensor")
    return value


def _placed(storage: UntypedStorage, dtype, offset, size, stride, requires_grad, metadata) -> Tensor:
    size, stride = _whole_numbers(size), _whole_numbers(stride)
    array = _strided(storage._memory, dtype, offset, size, stride)
    if storage.device.type == "meta":
        return _without_values(dtype, offset, size, stride, requires_grad)
    if array.size and (metadata or storage.device != cpu):
        if isinstance(storage, LoadedStorage):
            storage.settle(array.nbytes)
        array = _resolved(array, metadata or {})
    t = wrap(on_device(array, storage.device))
    return t.requires_grad_() if requires_grad else t


def _without_values(dtype, offset: int, size: tuple, stride: tuple, requires_grad) -> Tensor:
    whole = empty(offset + extent(size, stride), dtype=dtype, device="meta")
    return whole.as_strided(size, stride, offset).detach().requires_grad_(bool(requires_grad))


def _strided(memory: np.ndarray, dtype, offset, size, stride) -> np.ndarray:
    item = dtype.itemsize
    if len(size) != len(stride) or type(offset) is not int or offset < 0:
        raise UnpicklingError("the file is corrupted: size, stride and offset of a tensor do not match")
    if 0 in size:
        return np.empty(size, dtype.numpy)
    needed = offset + 1 + sum((n - 1) * s for n, s in zip(size, stride))
    if needed * item > memory.size:
        raise UnpicklingError(
            f"the file is corrupted: a tensor of size {str(size)[:80]}, stride {str(stride)[:80]} and offset {offset} "
            f"needs {needed * item} bytes, its storage has {memory.size}"
        )
    return np.ndarray(size, dtype.numpy, memory, offset * item, tuple(s * item for s in stride))


def _whole_numbers(values) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or len(values) > 64:
        raise UnpicklingError("the file is corrupted: a tensor's size is no tuple")
    for value in values:
        if type(value) is not int or not 0 <= value < 1 << 62:
            raise UnpicklingError("the file is corrupted: a tensor has a negative, huge or fractional size or stride")
    return tuple(values)


def _resolved(array: np.ndarray, metadata: dict) -> np.ndarray:
    """PyTorch keeps a conjugate or negated view as a flag; here it is computed."""
    if not isinstance(metadata, dict):
        raise UnpicklingError(f"the file is corrupted: {brief(metadata)} for a tensor's metadata")
    other = next((key for key in metadata if key not in ("conj", "neg")), None)
    if other is not None:
        raise UnpicklingError(f"tensor metadata {brief(other)} is not supported")
    if metadata.get("conj"):
        array = np.conj(array)
    return np.negative(array) if metadata.get("neg") else array


# -- plain values: what a file may call, with the arguments it may give ------------------------------------------------


def _ordered_dict(items=()):
    return OrderedDict((checked_key(key), value) for key, value in _listed(items))


def _counter(counts=None):
    return Counter({checked_key(key): count for key, count in (counts or {}).items()})


def _set(items=()):
    return {checked_key(item) for item in _listed(items)}


_ENCODINGS = ("latin1", "latin-1", "utf-8")  # what pickles of bytes have; others can be slow without end


def _bytearray(data=b"", encoding=None):
    if isinstance(data, str) and encoding in _ENCODINGS:
        return bytearray(data, encoding)
    if not isinstance(data, bytes):
        raise UnpicklingError("the file is corrupted or malicious: a bytearray made of something else than bytes")
    return bytearray(data)


def _encode(text, encoding="utf-8"):
    if type(text) is not str or encoding not in _ENCODINGS:
        raise UnpicklingError("the file is corrupted or malicious: codecs.encode with unusual arguments")
    return codecs.encode(text, encoding)


def _complex(*parts):
    if not all(type(part) in (int, float) for part in parts):
        raise UnpicklingError("the file is corrupted: a complex number made of no numbers")
    return complex(*parts)


def _size(values=()):
    return Size(_whole_numbers(values))


def _device(kind, index=None):
    if type(kind) is not str or len(kind) > 20 or not (index is None or type(index) is int):
        raise UnpicklingError("the file is corrupted: a device without a name")
    return device(kind, index)


def _layout(name):
    for known in (strided, sparse_coo, sparse_csr, sparse_csc):
        if isinstance(name, str) and name == repr(known):
            return known
    raise UnpicklingError(f"layout {brief(name)} is not supported")


def _listed(items):
    if not isinstance(items, (list, tuple, set, frozenset)):
        raise UnpicklingError("the file is corrupted: a container made of something else than a list")
    return items


# -- the tables ------------------------------------------------------------------------------------------------------


@functools.cache
def rebuild_functions() -> dict[str, object]:
    return {
        "torch._utils._rebuild_tensor": rebuild_tensor,
        "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
        "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
        "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta_tensor,
        "torch._utils._rebuild_sparse_tensor": rebuild_sparse_tensor,
        "torch._utils._rebuild_qtensor": rebuild_quantized,
        "torch._utils._rebuild_parameter": rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": rebuild_parameter_with_state,
        "torch._utils._rebuild_device_tensor_from_cpu_tensor": rebuild_from_cpu,
        "torch._tensor._rebuild_from_type_v2": rebuild_from_type,
    }


@functools.cache
def safe_globals() -> dict[str, object]:
    """Everything that a file may name by default, and what that is here."""
    known = {**rebuild_functions(), "torch.Tensor": Tensor, "torch.nn.parameter.Parameter": Parameter}
    known["torch.nn.Parameter"] = Parameter
    known["torch.storage.UntypedStorage"] = StorageType(None)
    known.update({f"torch.{scheme.name}": scheme for scheme in (per_tensor_affine, per_channel_affine)})
    for dtype in (*dtypes.ALL, *dtypes.QUANTIZED):
        known[f"torch.{dtype.name}"] = dtype
        for place in ("torch", "torch.cuda"):
            known[f"{place}.{dtype.word}Storage"] = StorageType(dtype)
    return {**known, **{name: function for name, (_, function) in constructors().items()}}


@functools.cache
def constructors() -> dict[str, tuple[type | None, object]]:
    """Names of plain values: the class they stand for, and how it is called with a file's arguments."""
    return {
        "collections.OrderedDict": (OrderedDict, _ordered_dict),
        "collections.Counter": (Counter, _counter),
        "builtins.set": (set, _set),
        "builtins.bytearray": (bytearray, _bytearray),
        "builtins.complex": (complex, _complex),
        "_codecs.encode": (None, _encode),
        "torch.Size": (Size, _size),
        "torch.device": (device, _device),
        "torch.serialization._get_layout": (None, _layout),
    }
