"""Tensors that a Module registers when they are assigned to it: ``Parameter``, ``Buffer``, and their lazy forms."""

from __future__ import annotations

from collections import OrderedDict
from typing import Self

import numpy as np

from ..autograd import overriding
from ..dtypes import get_default_dtype
from ..engine import SPREAD
from ..tensor import Storage, Tensor, wrap

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


def __dir__():
    return __all__


_new = object.__new__


class _ParameterMeta(type):
    """Makes ``isinstance(t, Parameter)`` true for tensors of other classes that ``Parameter(…)`` marked."""

    def __instancecheck__(cls, instance) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a module's parameter: it needs gradients, and ``module.parameters()`` yields it.

    >>> nn.Parameter(rushlight.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    _is_param = True
    __torch_function__ = overriding.disabled

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if isinstance(data, Tensor) and data.__class__ is not Tensor and data.__class__ is not Parameter:
            return _marked(data, requires_grad)  # type: ignore[return-value]
        return _adopt(cls, _empty() if data is None else data.detach(), requires_grad)  # type: ignore[return-value]

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        # Hooks of a tensor are not saved. The empty table keeps the arguments those of PyTorch's files.
        data, attributes = self.data, self.__dict__
        if not attributes:
            return _rebuild_parameter, (data, self.requires_grad, OrderedDict())
        return _rebuild_parameter_with_state, (data, self.requires_grad, OrderedDict(), dict(attributes))

    def __repr__(self, *, tensor_contents=None) -> str:  # type: ignore[override]  # mypy takes dunders' names away
        text = super().__repr__(tensor_contents=tensor_contents)  # type: ignore[call-arg]
        if self._array.__class__ is SPREAD.array:
            return text
        return f"Parameter containing:\n{text if type(self) is Parameter else f'Parameter({text})'}"


class _BufferType(type):
    """Makes ``isinstance(t, Buffer)`` true for the plain tensors that ``Buffer(…)`` returns."""

    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferType):
    """A plain tensor, marked: assigned to a module it becomes a buffer, part of its state but not trained."""

    __torch_function__ = overriding.disabled

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        t = (_empty() if data is None else data).detach().requires_grad_(data is not None and data.requires_grad)
        t.__dict__.update(persistent=persistent, _is_buffer=True)
        return t


class UninitializedTensorMixin(Tensor):
    """A parameter or buffer whose shape is not known yet. Only ``materialize`` makes it usable."""

    cls_to_become: type
    __torch_function__ = overriding.disabled

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Become a ``cls_to_become`` of the given shape, with uninitialized values, in place."""
        data = _empty(shape, device=self.device if device is None else device, dtype=dtype or self.dtype)
        self._array, self._view, self._storage = data._array, None, data._storage
        self.__class__ = self.cls_to_become

    def detach(self):
        return self  # there is nothing yet that could be shared

    def to(self, *args, **kwargs):
        return self._converted(wrap(self._array).to(*args, **kwargs))

    def type(self, dtype=None, non_blocking=False):
        made = wrap(self._array).type(dtype)
        return made if dtype is None else self._converted(made)

    def cpu(self):
        return self.to("cpu")

    def cuda(self, device=None, non_blocking=False):
        return self.to("cuda" if device is None else device)

    def float(self):
        return self._cast("float32")

    def double(self):
        return self._cast("float64")

    def half(self):
        return self._cast("float16")

    def bfloat16(self):
        return self._cast("bfloat16")

    @property
    def data(self):
        return wrap(self._array)

    @data.setter
    def data(self, value) -> None:
        self._array = value._array

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def numel(self):
        self._refresh()

    nelement = numel

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def _refresh(self, for_graph: bool | str = True) -> None:
        raise ValueError(
            "Attempted to use an uninitialized parameter in an operation. This error happens when you are using a "
            "`LazyModule` or explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )

    def _sync(self) -> None:
        """Nothing to catch up with. Ops do not ask this: they see a stale view, and end in ``_refresh``."""

    def _cast(self, name: str):
        from .. import dtypes

        return self.to(getattr(dtypes, name))

    def _converted(self, made: Tensor):
        return type(self)(self.requires_grad, made.device, made.dtype)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self._converted(self)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad, self.device, self.dtype)

    def __repr__(self, *, tensor_contents=None) -> str:  # type: ignore[override]
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]  # of __repr__
    """A Parameter whose shape the first forward pass will tell."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device=None, dtype=None):
        return _blank(cls, requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin):
    """A buffer whose shape the first forward pass will tell."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad: bool = False, device=None, dtype=None, persistent: bool = True):
        t = _blank(cls, requires_grad, device, dtype)
        t.__dict__.update(persistent=persistent, _is_buffer=True)
        return t


def is_lazy(param) -> bool:
    """Is it a parameter or buffer without a shape yet?"""
    return isinstance(param, UninitializedTensorMixin)


class _Unknown:
    """The ``_view`` of an uninitialized tensor: always stale, so that every op asks the tensor to refresh."""

    seen, path, recorded, base = -1, (), False, None


def _marked(data, requires_grad: bool):
    """A tensor of a class that overrides functions stays of its class, and is marked as a parameter."""
    t = data.detach().requires_grad_(requires_grad)
    if type(t) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
            f"instance of the same type, but return type {type(t).__name__} was found instead. To use the type as a "
            "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    t._is_param = True
    return t


def _adopt(cls, data: Tensor, requires_grad: bool) -> Tensor:
    """An instance of ``cls`` that takes over the memory of a detached tensor."""
    t = _new(cls)
    t._array, t._node, t._grad, t._storage, t._view = data._array, None, None, data._storage, None
    if requires_grad:
        if data._array.dtype.kind in "biu":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t.requires_grad_()
    return t


def _blank(cls, requires_grad, device, dtype) -> Tensor:
    t = _adopt(cls, _empty(device=device, dtype=dtype), False)
    t._storage, t._view = Storage(), _Unknown
    return t.requires_grad_(requires_grad)


def _empty(shape=(0,), device=None, dtype=None) -> Tensor:
    if device is None or str(device) == "cpu":
        return wrap(np.empty(tuple(shape), (dtype or get_default_dtype()).numpy))
    from ..ops import empty

    return empty(tuple(shape), device=device, dtype=dtype)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    p = Parameter(data, requires_grad)
    p.__dict__.update(state)
    return p


def factory_kwargs(kwargs) -> dict:
    """Of a layer's keywords those that say how to make tensors; any other is an error.

    >>> nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": "x"}})
    {'dtype': 'x', 'device': 'cpu'}
    """
    kwargs, known = dict(kwargs or {}), {"device", "dtype", "memory_format"}
    made = dict(kwargs.pop("factory_kwargs", {}))
    if set(kwargs) - known:
        raise TypeError(f"unexpected kwargs {set(kwargs) - known}")
    for name, value in kwargs.items():
        if name in made:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        made[name] = value
    return made
