"""``Variable``, from the time when a tensor and its place in the graph were two things: now another name for Tensor."""

from __future__ import annotations

from ..errors import warn_user
from ..tensor import Tensor
from .mode import state

__all__ = ["Variable"]


def __dir__():
    return __all__


class _Engine:
    """What runs backward, as far as programs talk to it: ``Variable._execution_engine``."""

    def queue_callback(self, callback) -> None:
        """Call ``callback()`` when the backward pass that this thread is in is over."""
        if state.running is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        state.callbacks = (*state.callbacks, callback)


class _EveryTensor(type):
    """Makes every Tensor an instance, which inheritance cannot: Tensors are made as Tensors."""

    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_EveryTensor):
    """``Variable(tensor, requires_grad=False)``: a leaf of its own that shares the tensor's memory.

    >>> rushlight.autograd.Variable(rushlight.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=False, volatile=False, **_):
        if volatile:
            warn_user("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
