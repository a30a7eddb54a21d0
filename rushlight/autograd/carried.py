"""Tensors that are made of others: sparse, nested, masked. Their place in the graph is that of one plain tensor.

Operators on them are compositions of plain operators on that one, so gradients flow, and one of them is a leaf if its
plain tensor is.
"""

from __future__ import annotations

from ..tensor import Tensor

__all__ = ["Carrier"]


class Carrier(Tensor):
    """Has a plain tensor ``_inside``, and ``_carrying(t)`` is the same with another one."""

    __slots__ = ()

    @property
    def _inside(self) -> Tensor:
        raise NotImplementedError

    def _carrying(self, inside: Tensor):
        raise NotImplementedError

    def _start(self) -> None:
        """What every Tensor has, empty."""
        self._node = self._grad = self._storage = self._view = None

    @property
    def dtype(self):
        return self._inside.dtype

    @property
    def device(self):
        return self._inside.device

    @property
    def requires_grad(self):
        return self._inside.requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad=True):
        self._inside.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self):
        return self._inside.is_leaf

    @property
    def grad_fn(self):
        return self._inside.grad_fn

    @property
    def grad(self):
        g = self._inside.grad
        return None if g is None else self._carrying(g)

    @grad.setter
    def grad(self, value):
        if value is not None and (type(value) is not type(self) or value.shape != self.shape):
            kind = type(self).__name__.removesuffix("Tensor")
            raise RuntimeError(f"the gradient of a {kind} tensor of size {list(self.shape)} is one too")
        self._inside.grad = None if value is None else value._inside

    def retain_grad(self):
        self._inside.retain_grad()

    def register_hook(self, hook):
        def on_inside(g):
            given = hook(self._carrying(g))
            return given if given is None else given._inside

        return self._inside.register_hook(on_inside)

    def detach(self):
        return self._carrying(self._inside.detach())

    @property
    def data(self):
        return self._carrying(self._inside.data)

    @data.setter
    def data(self, value):
        self._inside.data = bare(value)

    @property
    def _version(self):
        return self._inside._version

    def _sync(self):
        self._inside._sync()

    def _come_home(self):
        self._inside._come_home()

    def __copy__(self):
        return self._carrying(self._inside)


def bare(value):
    """The plain tensors in the place of those that carry them, in tuples and lists too."""
    if isinstance(value, (tuple, list)):
        return tuple(bare(v) for v in value)
    return value._inside if isinstance(value, Carrier) else value


def backward(t: Carrier, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
    """``t.backward(…)``"""
    if gradient is None and t._inside.ndim:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    t._inside.backward(bare(gradient), retain_graph, create_graph, bare(inputs))


def grad(outputs, inputs, grad_outputs=None, *args, **kwargs) -> tuple:
    """``autograd.grad``: the gradients are of the inputs' kinds."""
    from .grad import grad as plain

    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    found = plain(bare(outputs), bare(given), bare(grad_outputs), *args, **kwargs)
    return tuple(t._carrying(g) if isinstance(t, Carrier) and g is not None else g for t, g in zip(given, found))
